/* SPDX-License-Identifier: MIT
 *
 * Acks on their way out, in a thread of their own. A send through the network stack costs tens of
 * microseconds, as much as a sync of a fast drive; a lane that sent its acks itself would be slower
 * than the method that it measures. So a lane only leaves a number here, and goes on.
 *
 * What a lane leaves while its last ack is being sent goes out as one ack, first ... last.
 */
#ifndef PP_WRITER_ACKS_H
#define PP_WRITER_ACKS_H

#include "lane.h"

struct pp_acks;

/* peer's ack is called from one thread, for one lane at a time. ended(ctx) is that thread's last act. */
struct pp_acks *pp_acks_start(uint32_t lanes, const struct pp_lane_peer *peer, struct pp_run *run,
	void (*ended)(void *ctx), void *ctx, struct pp_error *err);

/* For lanes: ctx is the struct pp_acks. Never blocks. */
void pp_acks_queue(void *ctx, uint32_t lane, uint64_t first, uint64_t last);

/*
 * No lane will queue more. The thread ends when everything has gone out, or at once when the run is
 * no longer running: what is queued then is never sent (M2.3).
 */
void pp_acks_finish(struct pp_acks *acks);
/* Wakes the thread so that it sees that the run ended. */
void pp_acks_wake(struct pp_acks *acks);

/* Highest sequence of the lane whose ack has gone out. */
uint64_t pp_acks_sent(const struct pp_acks *acks, uint32_t lane);

/* The thread has ended (`ended` was called): joins, frees; NULL is fine. */
void pp_acks_free(struct pp_acks *acks);

#endif
