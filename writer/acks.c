/* SPDX-License-Identifier: MIT
 *
 * Waking a sleeping thread is a system call too, and on a virtual machine an expensive one. While
 * acks come thick and fast the sender therefore looks again every POLL_NS by itself and lanes wake
 * nobody; after IDLE_NS without an ack it sleeps until a lane wakes it, which at that pace is cheap.
 */
#include "acks.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "src/core/clock.h"
#include "src/core/thread.h"

#define POLL_NS 25000
#define IDLE_NS 500000

struct pp_acks {
	uint32_t lanes;
	struct pp_lane_peer peer;
	struct pp_run *run;
	void (*ended)(void *ctx);
	void *ctx;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	_Atomic bool asleep, finished;
	struct {
		_Atomic uint64_t queued, sent;
	} lane[PP_LANES_MAX];
};

static bool running(const struct pp_acks *acks)
{
	return atomic_load(&acks->run->state) == PP_RUN_RUNNING;
}

static bool anything_queued(struct pp_acks *acks)
{
	uint32_t i;

	for (i = 0; i < acks->lanes; i++)
		if (atomic_load(&acks->lane[i].queued) > atomic_load(&acks->lane[i].sent))
			return true;
	return false;
}

/* True if something went out. The run is asked before every ack (M2.3). */
static bool send_queued(struct pp_acks *acks)
{
	bool any = false;
	uint32_t i;

	for (i = 0; i < acks->lanes; i++) {
		uint64_t sent = atomic_load(&acks->lane[i].sent);
		uint64_t queued = atomic_load(&acks->lane[i].queued);

		if (queued == sent)
			continue;
		if (!running(acks))
			return any;
		acks->peer.ack(acks->peer.ctx, i, sent + 1, queued);
		atomic_store(&acks->lane[i].sent, queued);
		any = true;
	}
	return any;
}

static void sleep_until_woken(struct pp_acks *acks)
{
	pthread_mutex_lock(&acks->lock);
	/* First asleep, then a last look; a lane first queues, then looks whether we sleep. */
	atomic_store(&acks->asleep, true);
	while (atomic_load(&acks->asleep) && running(acks) && !atomic_load(&acks->finished) &&
		!anything_queued(acks))
		pthread_cond_wait(&acks->wake, &acks->lock);
	atomic_store(&acks->asleep, false);
	pthread_mutex_unlock(&acks->lock);
}

static void *acks_main(void *arg)
{
	struct pp_acks *acks = arg;
	const struct timespec pause = { 0, POLL_NS };
	int64_t last_ns = pp_clock_mono_ns();

	while (running(acks)) {
		bool finished = atomic_load(&acks->finished);

		if (send_queued(acks))
			last_ns = pp_clock_mono_ns();
		else if (finished)
			break;
		else if (pp_clock_mono_ns() - last_ns > IDLE_NS)
			sleep_until_woken(acks);
		else
			nanosleep(&pause, NULL);
	}
	acks->ended(acks->ctx);
	return NULL;
}

struct pp_acks *pp_acks_start(uint32_t lanes, const struct pp_lane_peer *peer, struct pp_run *run,
	void (*ended)(void *ctx), void *ctx, struct pp_error *err)
{
	struct pp_acks *acks = calloc(1, sizeof(*acks));
	int code;

	if (!acks) {
		pp_fail(err, PP_ERR_SYSTEM, "out of memory");
		return NULL;
	}
	acks->lanes = lanes;
	acks->peer = *peer;
	acks->run = run;
	acks->ended = ended;
	acks->ctx = ctx;
	pthread_mutex_init(&acks->lock, NULL);
	pthread_cond_init(&acks->wake, NULL);
	code = pp_thread_start(&acks->thread, acks_main, acks);
	if (code == 0)
		return acks;
	pp_fail_os(err, code, "cannot start the thread that sends acks");
	pthread_cond_destroy(&acks->wake);
	pthread_mutex_destroy(&acks->lock);
	free(acks);
	return NULL;
}

void pp_acks_wake(struct pp_acks *acks)
{
	pthread_mutex_lock(&acks->lock);
	atomic_store(&acks->asleep, false);
	pthread_cond_signal(&acks->wake);
	pthread_mutex_unlock(&acks->lock);
}

void pp_acks_queue(void *ctx, uint32_t lane, uint64_t first, uint64_t last)
{
	struct pp_acks *acks = ctx;

	(void)first; /* what was queued before ends just below it */
	atomic_store(&acks->lane[lane].queued, last);
	if (atomic_load(&acks->asleep))
		pp_acks_wake(acks);
}

void pp_acks_finish(struct pp_acks *acks)
{
	atomic_store(&acks->finished, true);
	pp_acks_wake(acks);
}

uint64_t pp_acks_sent(const struct pp_acks *acks, uint32_t lane)
{
	return atomic_load(&acks->lane[lane].sent);
}

void pp_acks_free(struct pp_acks *acks)
{
	if (!acks)
		return;
	pthread_join(acks->thread, NULL);
	pthread_cond_destroy(&acks->wake);
	pthread_mutex_destroy(&acks->lock);
	free(acks);
}
