/* SPDX-License-Identifier: MIT
 *
 * Many simulated cuts: arms of drives and methods, with everything that is not given drawn from the
 * seed, counted against the truth (sim_rig.h). And whole campaigns, to measure what a criterion is
 * worth: how often a drive that lies ends as SAFE (docs/method.md, M7.3, M8.3).
 */
#ifndef PP_LAB_SIMULATE_H
#define PP_LAB_SIMULATE_H

#include "sim_rig.h"
#include "src/core/stats.h"

/* What is fixed; 0, NULL and PP_WORKLOADS mean: draw it for each rig. */
struct pp_sim_plan {
	const struct pp_sim_drive_behaviour *behaviour; /* must be given */
	const struct pp_method *method;                 /* NULL: one that promises media */
	enum pp_workload workload;
	int kind;                                       /* enum pp_target_kind, or -1 */
	uint32_t lanes, group, record_bytes;
	uint32_t records;                               /* a run; must be given */
	uint32_t run_ms;                                /* instead of records; 0: by records */
	uint32_t pace_per_s;                            /* records of all lanes, at most; 0: no limit */
	bool paced_control;       /* campaigns: `direct` writes no faster than the arm did (M7.3) */
	int64_t net_delay_ns, net_loss_ns;              /* -1: draw */
	uint64_t cache_bytes, destage_bytes_per_s;      /* cache 0: draw both */
	unsigned survive_pct;                           /* above 100: draw */
	bool barriers;
	bool noise;                                     /* M7.6 */
	unsigned io_error_pct;                          /* of runs: a call fails in the middle (M2.3) */
	uint32_t cuts_a_rig;                            /* must be given */
};

struct pp_sim_tally {
	uint64_t cuts, records;
	uint64_t lost;                   /* cuts in which something was truly lost */
	uint64_t word[PP_SIM_WORDS];
	uint64_t voids, opens, unexposed; /* as judged */
	uint64_t collateral;             /* cuts without a loss, but with such damage (M2.5) */
	uint64_t torn_only;              /* cuts whose only loss is a torn `untorn` write (M4.5) */
	uint64_t noise_lost, noise_seen; /* cuts that took acked noise, truly and as judged (M7.6) */
	uint64_t io_errors;              /* runs in which a call of the lanes failed */
	uint64_t veiled;                 /* cuts without a loss, but damage that the rules allow for */
	uint64_t of[PP_LOSS_CLASSES];    /* records truly lost */
	int64_t simulated_ns;
};

/* Whoever wants to know of each cut. Return false to stop. */
typedef bool (*pp_sim_watch)(void *ctx, const struct pp_sim_plan *plan, uint64_t rig_seed,
	const struct pp_sim_outcome *outcome);

/* The set-up that this plan and seed give, and the method. */
void pp_sim_draw(const struct pp_sim_plan *plan, uint64_t seed, struct pp_sim_setup *setup,
	const struct pp_method **method);

/* So many cuts, on rigs with the seeds seed, seed + 1, ...; adds to *tally. watch may be NULL. */
int pp_simulate(const struct pp_sim_plan *plan, uint64_t seed, uint64_t cuts,
	struct pp_sim_tally *tally, pp_sim_watch watch, void *ctx, struct pp_error *err);

/* One rig from its beginning, telling what happens. */
int pp_sim_replay(const struct pp_sim_plan *plan, uint64_t seed, pp_sim_trace trace, void *ctx,
	struct pp_error *err);

/* ---- campaigns -------------------------------------------------------------------------------- */

/* How campaigns of one drive and method ended. */
struct pp_sim_campaigns {
	uint64_t campaigns, safe, unsafe, inconclusive;
	uint64_t blind;                 /* of inconclusive: for want of losses in `direct` */
	uint64_t cuts, arm_cuts, arm_lost; /* all; of the arm, as long as it was cut on for the count */
	uint64_t direct_cuts, direct_lost;
	uint32_t clean_needed;
};

/*
 * Runs campaigns: `write`, `direct` and the plan's method on one drive each, until the verdict is not
 * changed by more clean cuts, judged by the product's verdict (verifier/verdict.h). Pace is counted
 * in the last 100 ms before a cut: run_ms should be more.
 */
int pp_sim_campaign(const struct pp_sim_plan *plan, const struct pp_criterion *criterion,
	uint64_t seed, uint64_t campaigns, struct pp_sim_campaigns *result, struct pp_error *err);

#endif
