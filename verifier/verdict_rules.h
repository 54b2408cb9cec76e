/* SPDX-License-Identifier: MIT
 *
 * What verdict.c (pooling and counting) and verdict_rules.c (M7 and M8) share; nobody else includes
 * this. All trials are pooled and counted before the first rule runs, because rules look at other
 * arms: at the controls, and at arms that failed on the same command.
 */
#ifndef PP_VERIFIER_VERDICT_RULES_H
#define PP_VERIFIER_VERDICT_RULES_H

#include "verdict.h"

/* What a trial counts as, after resolutions (M6.5) and contradictions. */
enum standing {
	STANDS_CLEAN,
	STANDS_UNEXPOSED,
	STANDS_COLLATERAL,
	STANDS_LOSS,
	STANDS_OPEN,
	STANDS_VOID,
	STANDS_VOID_MISSING, /* void, acked data is missing, nobody said why */
	STANDS_CLEARED,      /* a person's resolution: counts for nothing */
};
enum standing pp_trial_standing(const struct pp_trial *trial);
/* True for the standings in which the machine provably lost power and no person cleared it. */
bool pp_standing_counts(enum standing standing);

/* What the drive is asked for (M8.3, "rests on the same command"). */
enum { RESTS_ON_FLUSH = 1, RESTS_ON_FUA = 2, RESTS_ON_UNTORN = 4 };

/* One arm at work. The result's fields are in *arm; these serve the rules alone. */
struct arm_work {
	const struct pp_verdict_input *input;
	struct pp_verdict_arm *arm;
	const struct pp_method *method;       /* NULL: not one of ours */
	const struct pp_planned_arm *planned; /* NULL: seen, not planned */
	const struct pp_trial *const *trials; /* of this arm, by cut */
	size_t count;
	unsigned rests_on;
	uint32_t proven;            /* trials that count */
	uint32_t cache_losses;      /* of them: data lost as a dropped cache loses it */
	uint32_t ram_losses;        /* the same, with what a lost page cache does to files */
	uint32_t noise_losses;
	uint32_t clean_powered;     /* clean, and the drive provably lost power (M7.5) */
	uint32_t clean_no_cache;    /* clean, and the drive declares no volatile cache */
	uint32_t device_gone_cut;   /* a cut after which the drive was gone; 0: none */
	uint32_t losses_asked, losses_not_asked; /* loss trials in which the kernel did ask the drive,
	                             * or did not; in others nobody can say (M8.2) */
	uint32_t losses_of_durable; /* loss trials in which more was broken than `untorn` (M4.5) */
	uint64_t untorn_broken;     /* records that were torn although the method promises `untorn` */
	uint32_t earlier_cuts, earlier_lost, earlier_unsettled; /* M9.3 */
	uint32_t earlier_elsewhere; /* lost by this method on this drive under other conditions */
	bool failed;                /* out of memory */
};

struct verdict_work {
	struct pp_verdict *verdict;
	struct arm_work *arms; /* parallel to verdict->arms */
};

/* Adds a line to the arm's reasons. */
void pp_verdict_reason(struct arm_work *work, bool blocks, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Whether a comma-separated list ("rw,nodatacow", "write back, fua") has this whole word. */
bool pp_list_has(const char *list, const char *word);

/* Runs the rules over arm number `at`: fills verdict and reasons. */
void pp_verdict_rule(const struct verdict_work *all, size_t at);

#endif
