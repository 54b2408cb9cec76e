/* SPDX-License-Identifier: MIT
 *
 * From a trial's files to a judged trial: the proof of the cut (M5), the oracle (M4), what the
 * aftermath was (M6), exposure (M8.1). The same function serves the campaign while it runs and
 * `judge DIR` ever after, so that both say the same.
 */
#ifndef PP_VERIFIER_JUDGE_H
#define PP_VERIFIER_JUDGE_H

#include <stdint.h>

#include "facts.h"
#include "oracle.h"
#include "proof.h"
#include "trial.h"

/* Everything known of one trial. Owns what it loaded; pp_case_release. */
struct pp_case {
	char folder[4096];         /* the campaign's */
	char path[4096];           /* the trial's own folder, in the campaign's: cuts/0001/SERIAL */
	struct pp_cut_facts cut;
	struct pp_run_facts run;
	struct pp_ledger_data ledger;
	bool has_ledger;
	struct pp_scan *base, *scan, *reread[PP_REREADS_MAX];
	/* the same of the noise beside it (M7.6); no scan where there was none to load */
	struct pp_ledger_data noise_ledger;
	bool has_noise_ledger;
	struct pp_scan *noise_base, *noise_scan, *noise_reread[PP_REREADS_MAX];
	struct pp_drive_counters before, after;
};

/* Loads what is there; a scan that should be there and is not, or is damaged, is PP_ERR_EVIDENCE. */
int pp_case_load(struct pp_case *c, const char *folder, uint32_t cut, const char *serial_folder,
	struct pp_error *err);
void pp_case_release(struct pp_case *c);

/* What one judgement found, for judgement.json and the report. */
struct pp_judgement {
	struct pp_trial trial;
	struct pp_oracle_result oracle; /* empty where there was nothing to scan */
	struct pp_oracle_result noise;  /* of the noise: it witnesses the cut, and has no verdict */
	uint64_t noise_acked, noise_lost; /* records; lost: so that it proves the cut (M7.6) */
	struct pp_cut_proof proof;
	int64_t t_last_ns, t_last_ack_ns, exposure_limit_ns;
	uint64_t flushes, syncs;
	enum pp_counter_word counters;
	char counters_reason[PP_TEXT_SHORT];
};

/*
 * Judges one trial. witness is that of the whole cut; history is the drive's, carried from trial to
 * trial in the order of the cuts. -1 with PP_ERR_EVIDENCE where the evidence contradicts itself.
 */
int pp_judge_case(const struct pp_case *c, const struct pp_witness *witness,
	struct pp_counter_history *history, struct pp_judgement *out, struct pp_error *err);
void pp_judgement_release(struct pp_judgement *judgement);

/* judgement.json: the same judgement gives the same bytes. */
int pp_judgement_save(const struct pp_judgement *judgement, const char *path, struct pp_error *err);

#endif
