/* SPDX-License-Identifier: MIT
 *
 * Threads around lanes. A lane's thread steps it until it ends and sleeps only while the window is
 * closed or its pace says so. Who ends the run (a failing lane, pp_writer_stop) sets its state first and then wakes
 * every lane and the sender of acks, so none sleeps through the end.
 */
#include "writer.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acks.h"
#include "src/core/clock.h"
#include "src/core/thread.h"
#include "lane_file.h"

struct lane_thread {
	struct pp_writer *writer;
	struct pp_lane lane;
	struct pp_lane_file file;
	struct pp_histogram latency;
	void *buf;
	pthread_t thread;
	pthread_mutex_t lock; /* guards only the sleep: the window itself is atomic */
	pthread_cond_t wake;
	bool started, joined;
	bool ended; /* under writer->lock */
};

struct pp_writer {
	struct pp_writer_config config;
	struct pp_run run;
	pthread_mutex_t lock;
	pthread_cond_t one_ended;
	uint32_t lanes_ended; /* under lock */
	bool acks_ended;      /* under lock; also where there is no such thread (yet, any more) */
	struct pp_acks *acks;
	uint32_t lanes;
	struct lane_thread *threads;
};

static void wake_all(struct pp_writer *writer)
{
	uint32_t i;

	if (writer->acks)
		pp_acks_wake(writer->acks);
	for (i = 0; i < writer->lanes; i++) {
		pthread_mutex_lock(&writer->threads[i].lock);
		pthread_cond_broadcast(&writer->threads[i].wake);
		pthread_mutex_unlock(&writer->threads[i].lock);
	}
}

static void wait_for_window(struct lane_thread *t)
{
	pthread_mutex_lock(&t->lock);
	while (!pp_lane_may_go_on(&t->lane))
		pthread_cond_wait(&t->wake, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

static void wait_for_pace(struct lane_thread *t)
{
	int rc = 0;

	pthread_mutex_lock(&t->lock);
	while (rc == 0 && atomic_load(&t->writer->run.state) == PP_RUN_RUNNING)
		rc = pp_cond_wait_until(&t->wake, &t->lock, t->lane.due_ns);
	pthread_mutex_unlock(&t->lock);
}

static void *lane_main(void *arg)
{
	struct lane_thread *t = arg;
	struct pp_writer *writer = t->writer;
	enum pp_lane_status status;

	while ((status = pp_lane_step(&t->lane)) <= PP_LANE_BLOCKED)
		if (status == PP_LANE_BLOCKED)
			wait_for_window(t);
		else if (status == PP_LANE_EARLY)
			wait_for_pace(t);
	if (status == PP_LANE_FAILED)
		wake_all(writer);
	pthread_mutex_lock(&writer->lock);
	t->ended = true;
	if (++writer->lanes_ended == writer->lanes)
		pp_acks_finish(writer->acks);
	pthread_cond_broadcast(&writer->one_ended);
	pthread_mutex_unlock(&writer->lock);
	return NULL;
}

static void acks_ended(void *ctx)
{
	struct pp_writer *writer = ctx;

	pthread_mutex_lock(&writer->lock);
	writer->acks_ended = true;
	pthread_cond_broadcast(&writer->one_ended);
	pthread_mutex_unlock(&writer->lock);
}

static void free_all(struct pp_writer *writer)
{
	uint32_t i;

	pp_acks_free(writer->acks);
	for (i = 0; i < writer->lanes; i++) {
		struct lane_thread *t = &writer->threads[i];

		pp_lane_file_close(&t->file, NULL);
		pp_aligned_free(t->buf);
		pthread_cond_destroy(&t->wake);
		pthread_mutex_destroy(&t->lock);
	}
	pthread_cond_destroy(&writer->one_ended);
	pthread_mutex_destroy(&writer->lock);
	free(writer->threads);
	free((char *)writer->config.path);
	free(writer);
}

static int open_lane(struct pp_writer *writer, uint32_t number, struct pp_error *err)
{
	const struct pp_writer_config *config = &writer->config;
	struct lane_thread *t = &writer->threads[number];
	struct pp_lane_peer peer = { writer->acks, pp_acks_queue };
	struct pp_lane_io io;

	if (pp_lane_file_open(&t->file, &config->layout, config->method, config->target,
		config->path, number, err) != 0)
		return -1;
	t->buf = pp_aligned_alloc(PP_LANE_ALIGN_BYTES,
		(config->layout.record_bytes + PP_LANE_ALIGN_BYTES - 1) / PP_LANE_ALIGN_BYTES *
		PP_LANE_ALIGN_BYTES);
	if (!t->buf)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	pp_lane_file_io(&t->file, &io);
	pp_histogram_init(&t->latency);
	pp_lane_init(&t->lane, number, &config->layout, config->method, &config->run_id,
		config->compressible ? PP_RECORD_COMPRESSIBLE : 0, &io, &peer, &writer->run,
		t->buf, &t->latency);
	if (config->pace_per_s)
		t->lane.pace_ns = (int64_t)config->layout.group * PP_NS_PER_S / config->pace_per_s;
	return 0;
}

static int start_lanes(struct pp_writer *writer, struct pp_error *err)
{
	uint32_t i;

	for (i = 0; i < writer->lanes; i++) {
		struct lane_thread *t = &writer->threads[i];
		int code = pp_thread_start(&t->thread, lane_main, t);

		if (code != 0)
			return pp_fail_os(err, code, "cannot start the thread of lane %u", i);
		t->started = true;
	}
	return 0;
}

static int start_all(struct pp_writer *writer, struct pp_error *err)
{
	uint32_t i;

	writer->acks = pp_acks_start(writer->lanes, &writer->config.peer, &writer->run, acks_ended,
		writer, err);
	if (!writer->acks) {
		writer->acks_ended = true;
		return -1;
	}
	for (i = 0; i < writer->lanes; i++)
		if (open_lane(writer, i, err) != 0)
			return -1;
	return start_lanes(writer, err);
}

static struct pp_writer *writer_new(const struct pp_writer_config *config)
{
	struct pp_writer *writer = calloc(1, sizeof(*writer));
	struct lane_thread *threads = calloc(config->layout.lanes, sizeof(*threads));
	char *path = strdup(config->path);
	uint32_t i;

	if (!writer || !threads || !path) {
		free(writer);
		free(threads);
		free(path);
		return NULL;
	}
	writer->config = *config;
	writer->config.path = path;
	writer->lanes = config->layout.lanes;
	writer->threads = threads;
	pthread_mutex_init(&writer->lock, NULL);
	pp_cond_init(&writer->one_ended);
	for (i = 0; i < writer->lanes; i++) {
		threads[i].writer = writer;
		threads[i].file.fd = -1;
		pthread_mutex_init(&threads[i].lock, NULL);
		pp_cond_init(&threads[i].wake);
	}
	return writer;
}

struct pp_writer *pp_writer_start(const struct pp_writer_config *config, struct pp_error *err)
{
	struct pp_writer *writer = writer_new(config);

	if (!writer) {
		pp_fail(err, PP_ERR_SYSTEM, "out of memory");
		return NULL;
	}
	if (start_all(writer, err) == 0)
		return writer;
	pp_writer_stop(writer, -1, NULL);
	free_all(writer);
	return NULL;
}

int pp_writer_echo(struct pp_writer *writer, uint32_t lane, uint64_t last, struct pp_error *err)
{
	struct lane_thread *t;

	if (lane >= writer->lanes)
		return pp_fail(err, PP_ERR_PEER, "listener echoed lane %u of %u", lane, writer->lanes);
	t = &writer->threads[lane];
	if (pp_lane_echo(&t->lane, last, err) != 0)
		return -1;
	pthread_mutex_lock(&t->lock);
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	return 0;
}

void pp_writer_progress(const struct pp_writer *writer, uint32_t lane,
	struct pp_writer_progress *progress)
{
	const struct pp_lane *l;

	assert(lane < writer->lanes);
	l = &writer->threads[lane].lane;
	/* In this order, so that echoed <= acked <= issued also while they grow. */
	progress->echoed = atomic_load(&l->echoed);
	progress->acked = pp_acks_sent(writer->acks, lane);
	progress->issued = atomic_load(&l->issued);
}

enum pp_run_state pp_writer_state(const struct pp_writer *writer)
{
	return (enum pp_run_state)atomic_load(&writer->run.state);
}

bool pp_writer_ended(const struct pp_writer *writer)
{
	struct pp_writer *w = (struct pp_writer *)writer;
	bool ended;

	pthread_mutex_lock(&w->lock);
	ended = w->lanes_ended == w->lanes && w->acks_ended;
	pthread_mutex_unlock(&w->lock);
	return ended;
}

/* Waits until every started lane has ended; false at the deadline. */
static bool wait_ended(struct pp_writer *writer, int64_t timeout_ms)
{
	int64_t until_ns = pp_clock_mono_ns() + timeout_ms * PP_NS_PER_MS;
	uint32_t i, started = 0;
	int rc = 0;

	for (i = 0; i < writer->lanes; i++)
		started += writer->threads[i].started;
	pthread_mutex_lock(&writer->lock);
	while ((writer->lanes_ended < started || !writer->acks_ended) && rc == 0)
		rc = timeout_ms < 0 ? pthread_cond_wait(&writer->one_ended, &writer->lock)
			: pp_cond_wait_until(&writer->one_ended, &writer->lock, until_ns);
	pthread_mutex_unlock(&writer->lock);
	return rc == 0;
}

static bool has_ended(struct pp_writer *writer, const bool *ended)
{
	bool yes;

	pthread_mutex_lock(&writer->lock);
	yes = *ended;
	pthread_mutex_unlock(&writer->lock);
	return yes;
}

int pp_writer_stop(struct pp_writer *writer, int64_t timeout_ms, struct pp_error *err)
{
	int expected = PP_RUN_RUNNING, rc = 0;
	char left[128] = "";
	uint32_t i;

	atomic_compare_exchange_strong(&writer->run.state, &expected, PP_RUN_STOPPING);
	wake_all(writer);
	wait_ended(writer, timeout_ms);
	for (i = 0; i < writer->lanes; i++) {
		struct lane_thread *t = &writer->threads[i];
		size_t used = strlen(left);

		if (!t->started || t->joined)
			continue;
		if (!has_ended(writer, &t->ended)) {
			snprintf(left + used, sizeof(left) - used, "%s%u", used ? ", " : "", i);
			continue;
		}
		pthread_join(t->thread, NULL);
		t->joined = true;
		if (pp_lane_file_close(&t->file, err) != 0)
			rc = -1;
	}
	if (left[0])
		return pp_fail(err, PP_ERR_SYSTEM, "a write or sync did not return within %lld ms: "
			"left behind lane %s", (long long)timeout_ms, left);
	if (!has_ended(writer, &writer->acks_ended))
		return pp_fail(err, PP_ERR_SYSTEM, "sending an ack did not return within %lld ms",
			(long long)timeout_ms);
	return rc;
}

static void add_failure(const struct lane_thread *t, uint32_t number,
	struct pp_writer_result *result)
{
	if (!t->lane.failure.call || (result->failed && !t->lane.failure.first))
		return;
	result->failed = true;
	result->failed_lane = number;
	result->failure = t->lane.failure;
	pp_lane_failure_error(&t->lane, &result->error);
	pp_fail_within(&result->error, "'%s'", t->file.name);
}

void pp_writer_result(const struct pp_writer *writer, struct pp_writer_result *result)
{
	uint32_t i;

	memset(result, 0, sizeof(*result));
	for (i = 0; i < writer->lanes; i++) {
		const struct lane_thread *t = &writer->threads[i];

		result->records_issued += atomic_load(&t->lane.issued);
		result->records_acked += pp_acks_sent(writer->acks, i);
		if (!t->joined) {
			result->lanes_left_behind++;
			continue;
		}
		result->lanes_full += t->lane.status == PP_LANE_FULL;
		pp_histogram_merge(&result->latency, &t->latency);
		add_failure(t, i, result);
	}
}

void pp_writer_free(struct pp_writer *writer)
{
	uint32_t i;

	if (!writer)
		return;
	pp_writer_stop(writer, 0, NULL);
	for (i = 0; i < writer->lanes; i++)
		if (!writer->threads[i].joined)
			return; /* a thread in a call that never returned still owns all of this */
	if (has_ended(writer, &writer->acks_ended))
		free_all(writer);
}
