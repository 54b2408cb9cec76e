/* SPDX-License-Identifier: MIT
 *
 * Goal: acks that wait to be sent never leave once the run has failed or stopped (M2.3), none is lost
 * or repeated while it runs, and a lane is never held up by a slow peer.
 * Method: a peer that can be held inside an ack.
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "writer/acks.h"

#define LANES 3

struct peer {
	pthread_mutex_t lock;
	uint64_t last[LANES];
	uint64_t acks;
	bool gap;
	_Atomic bool hold;
	sem_t inside, go_on, ended;
	struct pp_run run;
};

static void peer_ack(void *ctx, uint32_t lane, uint64_t first, uint64_t last)
{
	struct peer *p = ctx;

	pthread_mutex_lock(&p->lock);
	p->gap |= first != p->last[lane] + 1 || last < first;
	p->last[lane] = last;
	p->acks++;
	pthread_mutex_unlock(&p->lock);
	if (atomic_load(&p->hold)) {
		sem_post(&p->inside);
		sem_wait(&p->go_on);
	}
}

static void peer_ended(void *ctx)
{
	sem_post(&((struct peer *)ctx)->ended);
}

static struct pp_acks *start(struct peer *p)
{
	struct pp_lane_peer peer = { p, peer_ack };
	struct pp_acks *acks;

	memset(p, 0, sizeof(*p));
	pthread_mutex_init(&p->lock, NULL);
	sem_init(&p->inside, 0, 0);
	sem_init(&p->go_on, 0, 0);
	sem_init(&p->ended, 0, 0);
	acks = pp_acks_start(LANES, &peer, &p->run, peer_ended, p, NULL);
	assert_non_null(acks);
	return acks;
}

static void test_all_go_out(void **state)
{
	struct peer p;
	struct pp_acks *acks = start(&p);
	uint64_t seq;
	uint32_t lane;

	(void)state;
	for (seq = 1; seq <= 20000; seq++)
		for (lane = 0; lane < LANES; lane++)
			pp_acks_queue(acks, lane, seq, seq);
	pp_acks_finish(acks);
	sem_wait(&p.ended);
	for (lane = 0; lane < LANES; lane++) {
		assert_int_equal(p.last[lane], 20000);
		assert_int_equal(pp_acks_sent(acks, lane), 20000);
	}
	assert_false(p.gap);
	pp_acks_free(acks);
}

/* Also from a sender that sleeps: each ack alone, after a rest. */
static void test_sleeper_wakes(void **state)
{
	struct peer p;
	struct pp_acks *acks = start(&p);
	uint64_t seq;

	(void)state;
	atomic_store(&p.hold, true);
	for (seq = 1; seq <= 20; seq++) {
		struct timespec rest = { 0, 1000000 };

		nanosleep(&rest, NULL);
		pp_acks_queue(acks, 0, seq, seq);
		sem_wait(&p.inside);
		sem_post(&p.go_on);
	}
	pp_acks_finish(acks);
	sem_wait(&p.ended);
	assert_int_equal(p.acks, 20);
	pp_acks_free(acks);
}

/* The peer is held inside the first ack while more are queued and then the run ends. */
static void none_after(int end_state)
{
	struct peer p;
	struct pp_acks *acks = start(&p);

	atomic_store(&p.hold, true);
	pp_acks_queue(acks, 1, 1, 1);
	sem_wait(&p.inside);
	pp_acks_queue(acks, 0, 1, 4); /* not held up by the peer */
	pp_acks_queue(acks, 1, 2, 2);
	pp_acks_queue(acks, 2, 1, 1);
	atomic_store(&p.run.state, end_state);
	pp_acks_wake(acks);
	atomic_store(&p.hold, false);
	sem_post(&p.go_on);
	sem_wait(&p.ended);
	assert_int_equal(p.acks, 1);
	assert_int_equal(pp_acks_sent(acks, 0), 0);
	assert_int_equal(pp_acks_sent(acks, 1), 1);
	pp_acks_free(acks);
}

static void test_none_after_end(void **state)
{
	(void)state;
	none_after(PP_RUN_FAILED);
	none_after(PP_RUN_STOPPING);
}

static void test_waiting_go_out_as_one(void **state)
{
	struct peer p;
	struct pp_acks *acks = start(&p);

	(void)state;
	atomic_store(&p.hold, true);
	pp_acks_queue(acks, 0, 1, 1);
	sem_wait(&p.inside);
	pp_acks_queue(acks, 0, 2, 2);
	pp_acks_queue(acks, 0, 3, 5);
	atomic_store(&p.hold, false);
	sem_post(&p.go_on);
	pp_acks_finish(acks);
	sem_wait(&p.ended);
	assert_int_equal(p.acks, 2);
	assert_int_equal(p.last[0], 5);
	assert_false(p.gap);
	pp_acks_free(acks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_go_out),
		cmocka_unit_test(test_sleeper_wakes),
		cmocka_unit_test(test_none_after_end),
		cmocka_unit_test(test_waiting_go_out_as_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
