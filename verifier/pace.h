/* SPDX-License-Identifier: MIT
 *
 * Which losses of the control `direct` speak for an arm (docs/method.md, M7.3). Pure functions, the
 * same for the judge and for the controller that plans more controls.
 *
 * A drive that writes its cache down by itself keeps up with a slow method and not with a quick
 * control, and a liar would then pass unseen (tried: `direct` lost in 4 of 4 cuts, and a drive that
 * ignores flushes kept all of fdatasync's five times slower writes). So a loss of the control counts
 * for an arm only if no more than twice as many records, and as many bytes, were acked in the last
 * 100 ms before that cut as before the arm's: their median, and a few records for chance. The same
 * holds for the last second: what a control wrote before a pause of its own is in the cache still, and
 * few records in 100 ms do not tell five a second from forty.
 */
#ifndef PP_VERIFIER_PACE_H
#define PP_VERIFIER_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trial.h"

/* The lower median of counts, which are sorted in place; UINT64_MAX of none. */
uint64_t pp_pace_median(uint64_t *counts, size_t count);

/*
 * arm_acked are the medians of an arm's clean trials, by the index of acked_within (10 ms is not looked
 * at). UINT64_MAX: nothing is known of the arm yet, and nothing is held against the control. A control
 * that was not exposed had been silent, and nobody can say how fast it was.
 */
bool pp_pace_speaks_for(const struct pp_trial *control, const uint64_t arm_acked[PP_WITHIN],
	uint32_t arm_record_bytes);

/* Records a second that an arm of these medians writes, at least 1. */
uint64_t pp_pace_per_s(const uint64_t arm_acked[PP_WITHIN]);

#endif
