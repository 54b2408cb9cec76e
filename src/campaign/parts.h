/* SPDX-License-Identifier: MIT
 *
 * What the parts of the controller share: the campaign in work, its drives, their arms. Private to
 * src/campaign.
 */
#ifndef PP_CAMPAIGN_PARTS_H
#define PP_CAMPAIGN_PARTS_H

#include "controller.h"
#include "machine.h"
#include "pdu/guard.h"
#include "pdu/pdu.h"
#include "verifier/evidence.h"
#include "verifier/pace.h"

#define PP_POWER_CYCLES_MAX 3 /* M6.1, M6.2 */
#define PP_ARMS_A_DRIVE     256

/* The part of a drive that one set of arms writes to: a file (or several), or an area of a raw one. */
struct pp_area {
	bool used;
	char file[PP_ORDER_FILE_BYTES];
	struct pp_layout layout;
	char base[256];           /* last scan of it, relative to the folder; "" where there is none */
};

struct pp_arm_state {
	uint32_t set;             /* of the plan's arms */
	const struct pp_method *method;
	const struct pp_policy_setting *setting; /* of the cache policy; NULL: as it is found */
	bool optional;
	char na_reason[PP_TEXT_SHORT];
	uint32_t clean, lost, voids, open, tried; /* tried: all but void */
	uint32_t voids_in_row;
	char last_void[256];
	bool done;
};

struct pp_stand {
	const struct pp_plan_drive *plan;
	uint32_t index;           /* in the plan; the wire's run index */
	char folder[PP_TEXT_SHORT]; /* its name in the evidence */
	struct pp_target_spec spec;
	struct pp_drive_answer drive;
	bool identified, formatted, planned;
	bool needs_build;         /* M2.8: before the next run */
	bool gone;                /* nothing more can be had from it (M6.1) */
	struct pp_area area[PP_PLAN_ARMS_MAX];
	struct pp_area noise;     /* M7.6: used where any set of arms of this drive has noise */
	struct pp_arm_state arm[PP_ARMS_A_DRIVE];
	uint32_t arms;
	const struct pp_policy_setting *setting; /* of the run before: it is the drive's policy still */
	struct pp_policy_saved policy_saved; /* as it was found; where policy_known */
	bool policy_known, policy_touched; /* it may be another by now */
	char policy_wanted[PP_PLAN_POLICIES_MAX][PP_TEXT_SHORT]; /* as read when each was first made */
	uint32_t last_cut;        /* whose scan is the base of the next run; 0: a set-up's */
	/* the cut in work */
	struct pp_arm_state *now; /* NULL: this drive sits it out */
	struct pp_run_facts run;
	struct pp_ledger *ledger, *noise_ledger;
	bool reread_wanted;
	struct pp_scan_range *ranges, *noise_ranges;
	size_t range_count, noise_range_count;
};

struct pp_campaign {
	const struct pp_campaign_config *config;
	struct pp_plan plan;
	char folder[4096];
	struct pp_evidence evidence;
	struct pp_key key;
	struct pp_machine machine;
	struct pp_pdu *pdu;
	struct pp_guard *guard;
	struct pp_pdu_config pdu_config;
	int pdu_log;              /* pdu.jsonl of the cut in work; -1: none */
	struct pp_stand *stand;   /* plan.drives of them */
	struct pp_cut_facts cut;
	bool made_folder;         /* by this process: it goes again if nothing came of it */
	uint32_t planned_sets;    /* of arms; those behind them are the schedule's own, for controls */
	uint32_t setups;          /* how many there have been */
	size_t own_trials;        /* from this one on: this controller's, for voids in a row (M5.6) */
	uint64_t random;          /* state of the generator of cut moments (splitmix.h) */
	struct pp_progress progress;
	int64_t cycle_ns;         /* of the last cut, for the time left */
	bool resuming;            /* the cut in work was another controller's */
	char pause[768];          /* why the campaign must pause; "": it need not */
};

void pp_say(struct pp_campaign *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void pp_show(struct pp_campaign *c, const char *state);

/* by_hand.c: the same as pp_power_off and pp_power_on where a person is the switch. */
bool pp_by_hand(const struct pp_plan *plan);
int pp_by_hand_off(struct pp_campaign *c, struct pp_pdu_times *times, struct pp_error *err);
/* While a machine is awaited: says now and then what a person can do; returns when to say it next. */
int64_t pp_by_hand_remind(struct pp_campaign *c, int64_t next_ns);
int pp_by_hand_on(struct pp_campaign *c, struct pp_pdu_times *times, struct pp_error *err);

/* power.c */
/* What the plan says of the switch; strings are the plan's. */
void pp_power_config(const struct pp_plan *plan, struct pp_pdu_config *config);
int64_t pp_power_allowed_in_ms(struct pp_campaign *c);
/* Whether a rule that no waiting will lift forbids the next cut; c->pause then says which. */
bool pp_power_forbidden(struct pp_campaign *c);
int pp_power_open(struct pp_campaign *c, struct pp_error *err);
void pp_power_close(struct pp_campaign *c, struct pp_campaign_result *result);
/* Cuts, believing only the read-back; on failure times->outcome says what happened. */
int pp_power_off(struct pp_campaign *c, struct pp_pdu_times *times, struct pp_error *err);
int pp_power_on(struct pp_campaign *c, struct pp_pdu_times *times, struct pp_error *err);
/* Off for the plan's time: pumps the machine's events meanwhile and watches the watts. */
int pp_power_hold(struct pp_campaign *c, struct pp_pdu_watts *watts, struct pp_error *err);
enum pp_back {
	PP_BACK_NOT,     /* no boot after PP_POWER_CYCLES_MAX cycles of the outlet */
	PP_BACK_BOOTED,
	PP_BACK_LIVED,   /* the boot that should have ended still talks */
};
/*
 * Waits for a boot other than not_boot that says hello after since_ns (0: at any time), cycling the
 * outlet again as often as M6.2 says. With alive_after_ns, frames of the old boot later than that
 * end the wait: it has lived. -1 on failure, else enum pp_back.
 */
int pp_power_await_boot(struct pp_campaign *c, const char *not_boot, int64_t since_ns,
	int64_t alive_after_ns, uint32_t *cycles, struct pp_error *err);
/* M2.8: the machine shuts itself down, loses power, boots. As pp_power_await_boot. */
int pp_power_orderly_cycle(struct pp_campaign *c, struct pp_error *err);

/* setup.c */
/* Identity of every drive, drives that share nothing (M1.2), the speed matrix. */
int pp_setup_identify(struct pp_campaign *c, struct pp_error *err);
/* Builds the targets that need it, power-cycles in order, scans the bases (M2.8). */
int pp_setup_build(struct pp_campaign *c, struct pp_error *err);
int pp_setup_load(struct pp_campaign *c, struct pp_error *err); /* what resume needs of the last */
/* Cuts a proven target into the areas of the sets of arms (M2.6); of proof: its size and block. */
int pp_setup_areas(struct pp_campaign *c, struct pp_stand *s, const struct pp_proof *proof,
	struct pp_error *err);
int pp_stand_prove(struct pp_campaign *c, struct pp_stand *s, struct pp_proof *proof,
	struct pp_error *err);
int pp_stand_release(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err);
/* Streams a scan into a file of the evidence; ranges may be NULL. */
int pp_stand_scan(struct pp_campaign *c, struct pp_stand *s, const struct pp_area *area,
	const struct pp_scan_range *ranges, size_t range_count, const char *relative,
	struct pp_error *err);

/* schedule.c (M1.4) */
void pp_schedule_init(struct pp_campaign *c);
void pp_schedule_count(struct pp_campaign *c); /* counts all trials of the evidence anew */
/* Chooses the next arm of every drive; false when there is nothing left to do. */
bool pp_schedule_next(struct pp_campaign *c);

/* pace.c: trials of this arm; records that it acks shortly before a cut, as medians of its clean trials
 * (verifier/pace.h), UINT64_MAX without any; what `direct` is held to in its next run: records a second of each lane,
 * 0 for everything else and where nothing is known (M7.3). */
bool pp_arm_owns(const struct pp_campaign *c, const struct pp_stand *s,
	const struct pp_arm_state *arm, const struct pp_trial *t);
void pp_arm_pace(const struct pp_campaign *c, const struct pp_stand *s,
	const struct pp_arm_state *arm, uint64_t pace[PP_WITHIN]);
uint32_t pp_control_pace(const struct pp_campaign *c, const struct pp_stand *s,
	const struct pp_arm_state *control);

/* policy.c (M1.5): where the plan names policies; all others are as they are found */
bool pp_stand_has_policies(const struct pp_stand *s);
int pp_stand_policy(struct pp_campaign *c, struct pp_stand *s, struct pp_policy_answer *answer,
	struct pp_error *err);
/* Of a campaign that goes on: what was found before it, to be put back however this start ends. */
int pp_policies_recall(struct pp_campaign *c, struct pp_error *err);
/* What was found goes into the evidence; each policy is tried, and N/A where it cannot be had. */
int pp_policies_begin(struct pp_campaign *c, struct pp_error *err);
/* Makes the policy of each drive's next run, unless it is so already. */
int pp_policies_ready(struct pp_campaign *c, struct pp_error *err);
int pp_policy_for(struct pp_campaign *c, struct pp_stand *s, const struct pp_policy_setting *setting,
	struct pp_error *err);
int pp_policy_for_build(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err);
/* Reads it back, as the last thing before the run: what s->run says of it. */
int pp_policy_before_run(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err);
/* And after the boot: s->run.policy_after; "" where it cannot be read. */
void pp_policy_after_boot(struct pp_campaign *c, struct pp_stand *s);
/* Puts back what was found, also after an interrupt; words say how that went, "" if nothing was due.
 * False if something could not be put back. */
bool pp_policies_restore(struct pp_campaign *c, char *words, size_t bytes);

/* schedule.c: whether `control` is run under the conditions of the arm (M7.3). */
bool pp_arm_speaks_for(const struct pp_campaign *c, const struct pp_arm_state *control,
	const struct pp_arm_state *arm);

/* cut.c, aftermath.c, resume.c */
int pp_cut_run(struct pp_campaign *c, struct pp_error *err);
int pp_cut_save(struct pp_campaign *c, const char *state, struct pp_error *err);
int pp_run_save(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err);
int pp_cut_path(const struct pp_campaign *c, const struct pp_stand *s, const char *name, char *out,
	size_t bytes, struct pp_error *err);
/* From the power being back to the judgement of every drive of the cut. */
int pp_aftermath(struct pp_campaign *c, enum pp_back back, struct pp_error *err);
int pp_counters_save(struct pp_campaign *c, struct pp_stand *s, const char *name,
	struct pp_error *err);
/* M2.8: what is damaged or gone before a run belongs to the trial before; found: plan anew. */
int pp_late_check(struct pp_campaign *c, bool *found, struct pp_error *err);
int pp_resume(struct pp_campaign *c, struct pp_error *err);

#endif
