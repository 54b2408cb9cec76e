/* SPDX-License-Identifier: MIT
 *
 * The oracle (docs/method.md, M4): given what was acked, what stood there before and what stands
 * there now, which slots are as they must be, which may be as they are, and which are a loss.
 * The default is loss: what the rules do not allow, the drive did not keep.
 *
 * For a lane, A is the highest acked sequence and D the highest that any surviving record says was
 * durable (or A). For a slot, e is the newest record <= D that belongs there, or the base (what the
 * last scan found), and F the records D+1 .. A+W that belong there: at most one, as a lane owns at
 * least 4 W slots.
 */
#ifndef PP_VERIFIER_ORACLE_H
#define PP_VERIFIER_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scan.h"
#include "trial.h"

#define PP_REREADS_MAX 3

struct pp_oracle_input {
	const struct pp_layout *layout;
	struct pp_run_id run;
	uint64_t acked[PP_LANES_MAX];      /* A of each lane, 0 where nothing was acked */
	const struct pp_scan *base;        /* the scan before the run; dense */
	const struct pp_scan *scan;        /* the scan after the cut; dense */
	const struct pp_scan *reread[PP_REREADS_MAX]; /* of the slots that look lost (M4.7) */
	size_t rereads;
	enum pp_target_kind kind;
	bool untorn;                       /* the method promises it for each write (M4.5) */
};

struct pp_loss {
	uint32_t lane;
	uint64_t slot, offset;
	uint64_t seq;                      /* e; 0: the base was lost; untorn: the record in flight */
	enum pp_loss_class class;
	bool by_ack;                       /* witnessed by an ack, else by a later record only */
	bool unserializable;               /* a later record of the lane survived */
	bool untorn;                       /* nothing up to D, but a write that had to be whole or not
	                                    * at all arrived in part (M4.5) */
	bool unstable;                     /* a re-read found it whole: open, not lost (M4.7) */
};

struct pp_oracle_lane {
	uint64_t acked, durable;           /* A, D */
	uint64_t newest;                   /* highest sequence of the run found whole in its place */
};

struct pp_oracle_result {
	struct pp_oracle_lane lane[PP_LANES_MAX];
	struct pp_loss *loss;              /* in order of lane and slot; unstable ones included */
	size_t losses;
	uint64_t lost[PP_LOSS_CLASSES];    /* confirmed */
	uint64_t lost_total, lost_acked, lost_by_order, lost_base, lost_untorn, unstable;
	uint64_t slots_checked, records_durable; /* records_durable: sum of D */
	uint64_t in_flight_seen;           /* slots in which something of F arrived */
	uint64_t in_flight_torn;           /* of those: not whole (mixed, damaged or unread) */
	uint64_t in_flight_unreadable;
	uint64_t torn_at[PP_TEAR_UNITS];   /* of in_flight_seen, as in struct pp_trial (M4.8) */
	uint64_t collateral;               /* M2.5 with sub_block */
	bool unserializable, exposed_stale;
	size_t unknown_runs;               /* ids in the scan that are neither the run's nor the base's */
	struct pp_run_id unknown_run[16];  /* the first of them */
};

/*
 * Judges. Returns 0 with *result filled (release it); -1 with err of class PP_ERR_EVIDENCE where
 * the evidence contradicts itself (M4.6): never a verdict. Without re-reads every would-be loss is
 * reported as found (the caller then asks for pp_oracle_ranges and judges again).
 */
int pp_oracle_judge(const struct pp_oracle_input *input, struct pp_oracle_result *result,
	struct pp_error *err);
void pp_oracle_release(struct pp_oracle_result *result);

/*
 * The slots to read again, as ranges (malloc, caller frees): all would-be losses, in order.
 * Returns their number, 0 where there is none.
 */
size_t pp_oracle_ranges(const struct pp_oracle_result *result, struct pp_scan_range **ranges);

#endif
