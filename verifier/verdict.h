/* SPDX-License-Identifier: MIT
 *
 * From judged trials to verdicts (docs/method.md, M6.5, M7, M8, M9.3). A pure function of its
 * input: no clock, no disk; the order in which trials are given does not matter. The rule above
 * all: what was not measured is INCONCLUSIVE. Where evidence contradicts itself the reading that
 * is further from SAFE is taken.
 */
#ifndef PP_VERIFIER_VERDICT_H
#define PP_VERIFIER_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/error.h"
#include "src/core/method.h"
#include "src/core/stats.h"
#include "verifier/trial.h"

enum pp_arm_verdict {
	PP_ARM_INCONCLUSIVE, /* zero: what nobody decided is this */
	PP_ARM_SAFE,
	PP_ARM_UNSAFE,
	PP_ARM_NA,
	PP_ARM_LOSES,        /* arms that promise less than media (M8.6) */
	PP_ARM_KEEPS,
};
const char *pp_arm_verdict_name(enum pp_arm_verdict verdict);

/*
 * An arm that the plan asks for, so that one without a single trial is not forgotten. Matched
 * whole against the keys of trials; where none matches, the result has an arm of zero trials with
 * these fields as its key.
 */
struct pp_planned_arm {
	char serial[PP_TEXT_SHORT], method[PP_TEXT_SHORT], workload[PP_TEXT_SHORT];
	char target[PP_TEXT_SHORT];    /* "raw" or "file" */
	char pattern[16];              /* "sequential" or "random" */
	char setting[16];              /* of the cache policy; "" for as found */
	bool optional;                 /* need not be SAFE for exit 0; its losses still count */
	char na_reason[PP_TEXT_SHORT]; /* not empty: cannot run here, and why (M8.5) */
};

/* Everything is borrowed for the call alone. Pointers may be NULL where their count is 0. */
struct pp_verdict_input {
	/* Of one campaign (M7.1). A drive has one trial a cut: the pair (serial, cut) is unique. */
	const struct pp_trial *trials;
	size_t count;
	/* Of earlier campaigns (M9.3): a loss there blocks SAFE; nothing there helps towards it. */
	const struct pp_trial *earlier;
	size_t earlier_count;
	struct pp_criterion criterion;
	const struct pp_planned_arm *planned;
	size_t planned_count;
	/* Drives for which the plan says `cache = protected` (M7.4). */
	const char *const *protected_serials;
	size_t protected_count;
};

struct pp_verdict_reason {
	bool blocks;    /* stands between this arm and SAFE; else a note */
	char text[320]; /* one line, plain text */
};

struct pp_verdict_arm {
	struct pp_arm_key key;
	enum pp_promise promise;
	enum pp_arm_verdict verdict;
	bool control;                /* by the method's row */
	bool required;               /* counts for exit 0 */
	bool via_flush;              /* M8.4 */
	bool rests_on_protection;    /* M7.4 */
	bool kernel_did_not_ask;     /* M8.2: every lost cut; the drive is not accused */
	/*
	 * Every trial is in exactly one of these. A trial that a person cleared is among the void.
	 */
	uint32_t cuts_clean;         /* M8.1: exposed, nothing collateral */
	uint32_t cuts_loss, cuts_void, cuts_open;
	uint32_t cuts_unexposed;     /* no loss, but nothing at risk */
	uint32_t cuts_collateral;    /* M2.5 */
	uint32_t cuts_void_missing;  /* of cuts_void: acked data is missing and nobody said why */
	uint32_t cuts_foreign;       /* unexposed because others flushed, M8.4 */
	uint64_t records_acked;      /* of all but void trials */
	uint64_t acked_within[PP_WITHIN]; /* the same, shortly before the end (pp_within_ms) */
	uint64_t records_lost;       /* of loss trials, with their classes and ages */
	uint64_t lost[PP_LOSS_CLASSES];
	int64_t lost_age_ns_min, lost_age_ns_max; /* -1 where none has an age */
	/* M4.8, of direct arms: writes in flight at a cut that arrived at least in part, those that
	 * arrived in part, and those with a torn block of 512 << i bytes. Never a promise. */
	uint64_t tears_in_flight, tears_torn, torn_at[PP_TEAR_UNITS];
	double loss_bound_95;        /* upper; counts what is unresolved as lost (M6.5) */
	/* The control `direct` that this arm was measured against (M7.3). */
	uint32_t control_lost, control_cuts;
	double detection_power;
	struct pp_verdict_reason *reasons; /* blocking ones first, in the order of the rules */
	size_t reason_count;
};

struct pp_verdict {
	struct pp_criterion criterion;
	uint32_t clean_cuts_needed;
	struct pp_verdict_arm *arms; /* by serial, then the methods' table, then the key */
	size_t arm_count;
};

/*
 * Fills *verdict, which the caller releases (after a failure too). Fails on evidence that cannot be
 * one campaign's (two trials of one drive claim one cut) and on lack of memory; a lost byte is
 * never a failure.
 */
int pp_verdict_judge(const struct pp_verdict_input *input, struct pp_verdict *verdict,
	struct pp_error *err);
void pp_verdict_release(struct pp_verdict *verdict);

/*
 * M8.7: 1 if a promise was broken in a proven trial, else 0 if at least one arm is required and
 * every required one is SAFE, else 2.
 */
int pp_verdict_exit(const struct pp_verdict *verdict);

/*
 * M6.5: NULL where a person's resolution would clear this trial: it is open, or void with acked data
 * missing, or the drive was gone and a swap is recorded. Else why none can, as a static text.
 */
const char *pp_trial_not_clearable(const struct pp_trial *trial, bool swapped);

/*
 * M4.8: the smallest block of this arm that was seen torn, and the largest that was not although
 * writes of at least its size were in flight; 0 where there is none.
 */
void pp_verdict_tears(const struct pp_verdict_arm *arm, uint32_t *smallest_bytes,
	uint32_t *untorn_bytes);

/*
 * M7.2: whether `direct` with this key stands for the drive's cache, or only for RAM. File systems
 * that are not known to write in place do not qualify.
 */
bool pp_verdict_shows_cache(const struct pp_arm_key *key);

#endif
