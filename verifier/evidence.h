/* SPDX-License-Identifier: MIT
 *
 * A campaign's folder (design: Evidence), read as a whole: every trial judged again from its files,
 * with what the verdict needs besides. No lab, no power switch, no root, no network.
 *
 *	plan.ini                     as given
 *	target.json                  criterion, drives, the arms that the plan asks for
 *	matrix.json                  the speed rows
 *	setups/0001/SERIAL/scan.bin  the base after a set-up
 *	cuts/0001/cut.json, pdu.jsonl
 *	cuts/0001/SERIAL/            run.json, acks.ledger, scan.bin, reread-N.bin, drive-before.json,
 *	                             drive-after.json, judgement.json
 *	resolutions/0001-SERIAL.json what a person wrote to clear a trial (M6.5)
 *	campaign.json, SHA256SUMS    the result
 */
#ifndef PP_VERIFIER_EVIDENCE_H
#define PP_VERIFIER_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "judge.h"
#include "report.h"
#include "verdict.h"

/* target.json, as the controller writes it when the campaign begins. */
struct pp_campaign_facts {
	char name[PP_TEXT_SHORT], tool_version[32], tool_commit[64], started[32];
	char agent_version[PP_TEXT_SHORT], agent_commit[64], agent_sha256[80], tool_sha256[80];
	char kernel[PP_TEXT_SHORT], power_switch[256], outlets[256], operator[256], note[256];
	struct pp_criterion criterion;
	struct pp_planned_arm *planned;   /* malloc; pp_campaign_facts_release */
	size_t planned_count;
	char (*protected_serial)[PP_TEXT_SHORT];
	size_t protected_count;
	bool unproven_wiring;
	bool simulated;            /* a lab's: nothing of it was made of metal */
	/* M9.2: how the number of cuts was chosen; evidence of older versions does not say. */
	bool stop_known, stop_at_first_loss;
	uint32_t cuts_fixed;              /* trials of each arm, fixed before; 0: as the criterion needs */
};
int pp_campaign_facts_save(const struct pp_campaign_facts *facts, const char *folder,
	struct pp_error *err);
int pp_campaign_facts_load(struct pp_campaign_facts *facts, const char *folder,
	struct pp_error *err);
void pp_campaign_facts_release(struct pp_campaign_facts *facts);

/* matrix.json. */
int pp_speed_save(const struct pp_speed_row *rows, size_t count, const char *folder,
	struct pp_error *err);

/* What is carried from trial to trial of one drive (M5.3). */
struct pp_drive_history {
	char serial[PP_TEXT_SHORT];
	struct pp_counter_history counters;
};

struct pp_evidence {
	char folder[4096];
	struct pp_campaign_facts facts;
	struct pp_speed_row *speed;
	size_t speed_count;
	struct pp_trial *trials;          /* in the order of the cuts */
	size_t trial_count, trial_room;
	struct pp_drive_history *history;
	size_t histories;
	uint32_t cuts;                    /* highest cut number there is */
};

/*
 * Loads and judges. With write, judgement.json of every trial is (re)written. Evidence that is
 * damaged, foreign or contradicts itself is an error, never a verdict.
 */
int pp_evidence_load(struct pp_evidence *evidence, const char *folder, bool write,
	struct pp_error *err);
void pp_evidence_release(struct pp_evidence *evidence);

/* Judges one more cut, the next in number, and adds its trials: how a campaign goes on. */
int pp_evidence_add_cut(struct pp_evidence *evidence, uint32_t cut, bool write,
	struct pp_error *err);

/*
 * The first judgement of one trial, before any re-read (M4.7), with nothing carried over: what of
 * it looks lost. Release the judgement; ranges (malloc) and their number may be empty.
 */
int pp_evidence_would_be_losses(const char *folder, uint32_t cut, const char *serial_folder,
	struct pp_scan_range **ranges, size_t *count, size_t *unknown_runs, struct pp_error *err);
/* The same of the noise beside it (M7.6), and only some: one record of it is proof enough. */
int pp_evidence_noise_losses(const char *folder, uint32_t cut, const char *serial_folder,
	struct pp_scan_range **ranges, size_t *count, size_t *unknown_runs, struct pp_error *err);

/* The verdict of one folder, the losses of earlier ones counted (M9.3). Caller releases. */
int pp_evidence_verdict(const struct pp_evidence *evidence, const struct pp_evidence *earlier,
	size_t earlier_count, struct pp_verdict *verdict, struct pp_error *err);

/* What a folder is, before anything of it is believed; but for WHOLE, *err says it in a sentence. */
enum pp_evidence_kind {
	PP_EVIDENCE_NOT,        /* not there, or something else */
	PP_EVIDENCE_UNFINISHED, /* its campaign runs, or was killed: no seal, or a cut in work */
	PP_EVIDENCE_WHOLE,      /* so it seems: the seal decides */
};
enum pp_evidence_kind pp_evidence_kind(const char *folder, struct pp_error *err);

/* SHA256SUMS over every file of the folder but itself, and its check. */
int pp_evidence_seal(const char *folder, struct pp_error *err);
int pp_evidence_check_seal(const char *folder, struct pp_error *err);

/* The SHA-256 of SHA256SUMS, in hexadecimal: it stands for every file of the evidence. */
int pp_evidence_seal_sum(const char *folder, char hex[65], struct pp_error *err);

/* Whether both are one campaign, under whatever names: their first runs are the same run. */
bool pp_evidence_same_campaign(const struct pp_evidence *a, const struct pp_evidence *b);

/* Judges the folder anew; writes judgement.json of each trial, and campaign.json. Seal it after. */
int pp_evidence_write_result(const char *folder, struct pp_error *err);

/*
 * M6.5: writes resolutions/NNNN-SERIAL.json, judges anew, and seals. serial_folder is the trial's
 * folder beneath cuts/NNNN. Refused, with nothing written: a trial that is not there, one that no
 * resolution can clear (pp_trial_not_clearable), one that has a resolution already, and a cause that
 * is blank, longer than 199 bytes or not UTF-8.
 */
struct pp_resolution {
	const char *cause, *who;
	bool swapped; /* the drive was taken out, or exchanged, by a person */
};
int pp_resolution_save(const char *folder, uint32_t cut, const char *serial_folder,
	const struct pp_resolution *resolution, struct pp_error *err);

/* Fills run's resolution where there is one; one that is damaged or another trial's is an error. */
int pp_resolution_load(const char *folder, uint32_t cut, const char *serial_folder,
	struct pp_run_facts *run, struct pp_error *err);

#endif
