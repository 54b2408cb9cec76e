/* SPDX-License-Identifier: MIT
 *
 * Measuring a row. Each operation ends where the next begins, so one clock reading an operation
 * gives both the rate and every latency. Where an operation is so short that the clock would be felt
 * (a write into RAM), one in FAST_STRIDE is timed, by itself; all are counted.
 *
 * The run's time is cut into equal slices; how much their operations differ says whether the figure
 * can be relied on. A test that may end when it has settled does so once its median has moved by
 * less than SETTLED over the last SETTLED_SLICES slices, in every thread.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "matrix_parts.h"
#include "src/core/record.h"
#include "src/core/text.h"
#include "src/core/thread.h"

#define IDLE_MS        50
#define FAST_PROBE_OPS 256
#define FAST_OP_NS     5000
#define FAST_STRIDE    16
#define SLICES         10
#define SLICES_MAX     256
#define SETTLE_SLICE_NS 200000000LL
#define SETTLED_SLICES 5
#define SETTLED        0.01
#define SETTLED_OPS    100
/* Others' requests while idle, as a share of the row's own, from which figures are called foreign. */
#define FOREIGN_SHARE  0.02
#define TRACED_OPS     64
#define TRACED_NS      500000000LL

/* Threads of one row: they begin together, and one that fails ends all. */
struct gang {
	const struct matrix_bench *b;
	_Atomic enum { WAIT, GO, GIVE_UP } start;
	bool settle;
	double seconds;
	uint32_t threads;
	atomic_uint settled;
	atomic_bool failed;
};

struct worker {
	struct gang *gang;
	struct matrix_op op;
	struct pp_histogram *latency;
	pthread_t thread;
	uint64_t ops, slice_ops[SLICES_MAX];
	size_t slices;             /* whole ones */
	int64_t began_ns, ended_ns, paused_ns;
	int64_t medians[SETTLED_SLICES];
	bool settled;
	int rc;
};

int matrix_op_fail(struct matrix_op_error *e, const char *call, int64_t code)
{
	e->call = call;
	e->code = code;
	return -1;
}

bool matrix_stopped(const struct matrix_bench *b)
{
	return b->config->stop && *b->config->stop;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static int one_op(struct worker *w)
{
	const struct pp_matrix_calls *calls = w->gang->b->calls;

	if (calls->op_full(&w->op)) {
		int64_t before = calls->now_ns();

		if (calls->op_make_room(&w->op) != 0)
			return -1;
		w->paused_ns += calls->now_ns() - before;
	}
	w->ops++;
	return calls->op_do(&w->op);
}

static void settle(struct worker *w)
{
	int64_t least, most, median = pp_histogram_quantile_ns(w->latency, 0.5);
	size_t i;

	w->medians[w->slices % SETTLED_SLICES] = median;
	if (w->settled || w->slices < 2 * SETTLED_SLICES || w->ops < SETTLED_OPS)
		return;
	least = most = median;
	for (i = 0; i < SETTLED_SLICES; i++) {
		least = w->medians[i] < least ? w->medians[i] : least;
		most = w->medians[i] > most ? w->medians[i] : most;
	}
	w->settled = (double)(most - least) <= SETTLED * (double)median;
	if (w->settled)
		atomic_fetch_add(&w->gang->settled, 1);
}

/* At the end of a slice: what was done in it. */
static void slice(struct worker *w, uint64_t *ops_before)
{
	if (w->slices == SLICES_MAX)
		return;
	w->slice_ops[w->slices++] = w->ops - *ops_before;
	*ops_before = w->ops;
	if (w->gang->settle)
		settle(w);
}

static bool over(const struct worker *w, int64_t worked_ns, int64_t length_ns)
{
	const struct gang *g = w->gang;

	return worked_ns >= length_ns || matrix_stopped(g->b) || atomic_load(&w->gang->failed) ||
		(g->settle && atomic_load(&w->gang->settled) == g->threads);
}

static int time_ops(struct worker *w)
{
	int64_t (*now_ns)(void) = w->gang->b->calls->now_ns;
	int64_t length = (int64_t)(w->gang->seconds * 1e9), start = now_ns();
	int64_t slice_ns = w->gang->settle ? SETTLE_SLICE_NS : length / SLICES + 1;
	int64_t slice_end = slice_ns, before = start, probe = start, now, paused, worked;
	uint64_t stride = 1, i, ops_before = 0;

	w->began_ns = start;
	do {
		for (i = 1; i < stride; i++)
			if (one_op(w) != 0)
				return -1;
		if (stride > 1)
			before = now_ns();
		paused = w->paused_ns;
		if (one_op(w) != 0)
			return -1;
		now = now_ns();
		pp_histogram_add(w->latency, now - before - (w->paused_ns - paused));
		before = now;
		if (stride == 1 && w->ops % FAST_PROBE_OPS == 0) {
			if (now - probe < FAST_PROBE_OPS * FAST_OP_NS)
				stride = FAST_STRIDE;
			probe = now;
		}
		worked = now - start - w->paused_ns;
		for (; worked >= slice_end; slice_end += slice_ns)
			slice(w, &ops_before);
	} while (!over(w, worked, length));
	w->ended_ns = now;
	return 0;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	while (atomic_load(&w->gang->start) == WAIT)
		sched_yield();
	if (atomic_load(&w->gang->start) == GIVE_UP)
		return NULL;
	w->rc = time_ops(w);
	if (w->rc != 0)
		atomic_store(&w->gang->failed, true);
	return NULL;
}

static void reset(struct worker *w)
{
	w->ops = 0;
	w->slices = 0;
	w->paused_ns = w->began_ns = w->ended_ns = 0;
	w->settled = false;
	pp_histogram_init(w->latency);
}

/* The first worker that failed, or NULL. */
static struct worker *run_gang(struct gang *g, struct worker *workers, double seconds, bool settle_it)
{
	uint32_t i, began = 1;

	g->seconds = seconds;
	g->settle = settle_it;
	atomic_store(&g->settled, 0);
	atomic_store(&g->start, WAIT);
	for (i = 0; i < g->threads; i++)
		reset(&workers[i]);
	while (began < g->threads &&
		pthread_create(&workers[began].thread, NULL, work, &workers[began]) == 0)
		began++;
	atomic_store(&g->start, began == g->threads ? GO : GIVE_UP);
	work(&workers[0]);
	for (i = 1; i < began; i++)
		pthread_join(workers[i].thread, NULL);
	if (began < g->threads)
		workers[0].rc = matrix_op_fail(&workers[0].op.e, "starting threads", EAGAIN);
	for (i = 0; i < g->threads; i++)
		if (workers[i].rc != 0)
			return &workers[i];
	return NULL;
}

/* ---- figures --------------------------------------------------------------------------------- */

void matrix_fill_speed(const struct pp_histogram *h, struct pp_matrix_row *row)
{
	row->ops_per_s = (double)row->ops * 1e9 / (double)row->elapsed_ns;
	row->bytes_per_s = row->ops_per_s * row->writes * row->write_bytes;
	row->latency_ns_p50 = pp_histogram_quantile_ns(h, 0.5);
	row->latency_ns_p90 = pp_histogram_quantile_ns(h, 0.9);
	row->latency_ns_p99 = pp_histogram_quantile_ns(h, 0.99);
	row->latency_ns_p999 = pp_histogram_quantile_ns(h, 0.999);
	row->latency_ns_max = h->max_ns;
	row->latency_ns_mean = pp_histogram_mean_ns(h);
	row->latency_variation = pp_histogram_variation(h);
}

static double slice_variation(const struct worker *workers, uint32_t threads)
{
	size_t slices = SLICES_MAX, k;
	double sum = 0, squares = 0, mean;
	uint32_t i;

	for (i = 0; i < threads; i++)
		slices = workers[i].slices < slices ? workers[i].slices : slices;
	for (k = 0; k < slices; k++) {
		double ops = 0;

		for (i = 0; i < threads; i++)
			ops += (double)workers[i].slice_ops[k];
		sum += ops;
		squares += ops * ops;
	}
	if (slices < 2 || sum <= 0)
		return 0;
	mean = sum / (double)slices;
	return sqrt(fmax(0, squares / (double)slices - mean * mean)) / mean;
}

static void fill(struct worker *workers, uint32_t threads, struct pp_matrix_row *row)
{
	uint32_t i;

	row->ops = 0;
	row->elapsed_ns = 0;
	for (i = 0; i < threads; i++) {
		int64_t worked = workers[i].ended_ns - workers[i].began_ns - workers[i].paused_ns;

		row->ops += workers[i].ops;
		row->elapsed_ns = worked > row->elapsed_ns ? worked : row->elapsed_ns;
		if (i > 0)
			pp_histogram_merge(workers[0].latency, workers[i].latency);
	}
	matrix_fill_speed(workers[0].latency, row);
	row->slice_variation = slice_variation(workers, threads);
	row->settled = workers[0].gang->settle &&
		atomic_load(&workers[0].gang->settled) == threads;
}

/* ---- the disk's word ------------------------------------------------------------------------- */

bool matrix_read_disk(const struct matrix_bench *b, struct pp_disk_counters *counters)
{
	return b->disk.fd >= 0 && pp_disk_source_read(&b->disk, counters, NULL) == 0;
}

void matrix_look_idle(struct matrix_bench *b)
{
	struct pp_disk_counters before, after;
	int64_t began = b->calls->now_ns();

	if (!matrix_read_disk(b, &before))
		return;
	b->calls->sleep_ms(IDLE_MS);
	if (!matrix_read_disk(b, &after))
		return;
	b->idle_s += (double)(b->calls->now_ns() - began) / 1e9;
	b->idle.writes += after.writes - before.writes;
	b->idle.flushes += after.flushes - before.flushes;
	b->idle.sectors_written += after.sectors_written - before.sectors_written;
	b->idle.reads += after.reads - before.reads;
	b->idle.sectors_read += after.sectors_read - before.sectors_read;
}

/* An operation's share of what was counted, others' taken off. */
static double per_op(const struct matrix_bench *b, uint64_t counted, uint64_t idle,
	const struct pp_matrix_row *row)
{
	double others = b->idle_s > 0 ? (double)idle / b->idle_s * (double)row->elapsed_ns / 1e9 : 0;

	return fmax(0, (double)counted - others) / (double)row->ops;
}

void matrix_fill_counters(const struct matrix_bench *b, const struct pp_disk_counters *before,
	const struct pp_disk_counters *after, bool reads, struct pp_matrix_row *row)
{
	double idle = b->idle_s > 0 ? (double)(b->idle.writes + b->idle.flushes) / b->idle_s : 0;
	double requests;

	row->counted = true;
	row->disk_writes = after->writes - before->writes;
	row->disk_flushes = after->flushes - before->flushes;
	row->disk_bytes = 512 * (reads ? after->sectors_read - before->sectors_read
		: after->sectors_written - before->sectors_written);
	row->foreign_per_s = idle;
	row->writes_per_op = per_op(b, row->disk_writes, b->idle.writes, row);
	row->bytes_per_op = per_op(b, row->disk_bytes, 512 * (reads ? b->idle.sectors_read
		: b->idle.sectors_written), row);
	if (after->has_flushes)
		row->flushes_per_op = per_op(b, row->disk_flushes, b->idle.flushes, row);
	requests = (double)(row->disk_writes + row->disk_flushes) * 1e9 / (double)row->elapsed_ns;
	row->foreign_traffic = !reads && idle > 0 && (requests <= 0 || idle > FOREIGN_SHARE * requests);
}

/* A few more operations of one thread, not timed. Without a trace there is no figure, no failure. */
static int trace(struct matrix_bench *b, struct matrix_op *op, struct pp_matrix_row *row)
{
	struct pp_disk_trace_counts counts;
	int64_t until = b->calls->now_ns() + TRACED_NS;
	uint64_t ops = 0;
	int rc = 0;

	if (!b->trace.folder[0] || pp_disk_trace_start(&b->trace, NULL) != 0)
		return 0;
	do {
		if (b->calls->op_full(op))
			break;
		rc = b->calls->op_do(op);
		ops++;
	} while (rc == 0 && ops < TRACED_OPS && b->calls->now_ns() < until);
	if (pp_disk_trace_stop(&b->trace, &counts, NULL) != 0 || rc != 0 || ops == 0)
		return rc;
	row->fua_per_op = (double)counts.fua_writes / (double)ops;
	row->preflushes_per_op = (double)counts.preflushes / (double)ops;
	return 0;
}

/* ---- a row ----------------------------------------------------------------------------------- */

void matrix_na(struct pp_matrix_row *row, const char *reason)
{
	row->status = PP_MATRIX_NA;
	row->promise = PP_PROMISE_NA;
	pp_text_copy(row->reason, sizeof(row->reason), reason);
}

static bool is(const struct matrix_bench *b, const struct matrix_op_error *e, const char *call,
	enum disk_code code)
{
	return b->calls->code(e->code) == code && strcmp(e->call, call) == 0;
}

/* What cannot be had here is a property of the target, all else an error. */
static int refused(struct matrix_bench *b, const struct matrix_op *op, struct pp_matrix_row *row,
	struct pp_error *err)
{
	const struct matrix_op_error *e = &op->e;
	const char *path = b->config->path;
	char reason[sizeof(row->reason)];

	if (e->why.class == PP_ERR_UNSUPPORTED) {
		matrix_na(row, e->why.text);
	} else if (op->method->direct && is(b, e, "open", DISK_CODE_INVALID)) {
		b->matrix->direct_works = false;
		matrix_na(row, "direct I/O is refused here");
	} else if (op->method->rw_flags & PP_RWF_ATOMIC && is(b, e, "write", DISK_CODE_INVALID)) {
		matrix_na(row, "a write of this size is refused: not within the atomic unit");
	} else if (op->method->direct && is(b, e, "write", DISK_CODE_INVALID)) {
		snprintf(reason, sizeof(reason), "direct I/O of %u bytes is refused: below the logical "
			"block", op->test->write_bytes);
		matrix_na(row, reason);
	} else if (is(b, e, "write", DISK_CODE_UNSUPPORTED) ||
		is(b, e, "fallocate", DISK_CODE_UNSUPPORTED)) {
		snprintf(reason, sizeof(reason), "this file system has no such %s", e->call);
		matrix_na(row, reason);
	} else if (e->why.class != PP_ERR_NONE) {
		return pp_fail_os(err, e->code, "cannot set up '%s' on '%s'", row->label, path);
	} else if (e->code == 0) {
		return pp_fail(err, PP_ERR_SYSTEM, "short %s to '%s' in test '%s'", e->call, path,
			row->label);
	} else {
		return pp_fail_os(err, e->code, "%s of '%s' failed in test '%s'", e->call, path,
			row->label);
	}
	return 0;
}

/* The worker that failed, or NULL. */
static struct worker *measure_gang(struct matrix_bench *b, struct gang *g, struct worker *workers,
	struct pp_matrix_row *row)
{
	const struct pp_matrix_config *config = b->config;
	struct pp_disk_counters before, after;
	struct worker *bad = NULL;
	bool counted;

	matrix_look_idle(b);
	if (config->warm_up_seconds > 0)
		bad = run_gang(g, workers, config->warm_up_seconds, false);
	if (bad)
		return bad;
	counted = matrix_read_disk(b, &before);
	bad = run_gang(g, workers, config->seconds, config->settle);
	if (bad)
		return bad;
	counted = counted && matrix_read_disk(b, &after);
	fill(workers, g->threads, row);
	if (counted)
		matrix_fill_counters(b, &before, &after, false, row);
	return config->pg || trace(b, &workers[0].op, row) == 0 ? NULL : &workers[0];
}

static void release(struct worker *workers, uint32_t threads)
{
	uint32_t i;

	for (i = 0; workers && i < threads; i++) {
		free(workers[i].latency);
		pp_aligned_free(workers[i].op.buf);
	}
	free(workers);
}

static struct worker *prepare(const struct matrix_bench *b, struct gang *g)
{
	struct worker *workers = calloc(g->threads, sizeof(*workers));
	uint32_t i;

	for (i = 0; workers && i < g->threads; i++) {
		workers[i].gang = g;
		workers[i].op.fd = workers[i].op.io.staging_fd = -1;
		workers[i].latency = malloc(sizeof(*workers[i].latency));
		workers[i].op.buf = pp_aligned_alloc(MATRIX_ALIGN_BYTES, PP_RECORD_BYTES_MAX);
		if (!workers[i].latency || !workers[i].op.buf) {
			release(workers, g->threads);
			return NULL;
		}
		memcpy(workers[i].op.buf, b->buf, PP_RECORD_BYTES_MAX);
	}
	return workers;
}

/* What of the test cannot be on this target, before anything is opened. */
static const char *not_here(const struct matrix_bench *b, const struct matrix_test *t,
	const struct pp_matrix_row *row)
{
	const char *why = NULL;

	if (t->shape == NOT_HERE)
		return "this system has no such call";
	if (!pp_method_on(pp_method_find(t->method), b->system))
		return pp_method_elsewhere(pp_method_find(t->method));
	pp_workload_promise(t->workload, pp_method_find(t->method),
		b->config->raw ? PP_TARGET_RAW : PP_TARGET_FILE, &why);
	return why ? why : row->promise == PP_PROMISE_NA ? "does nothing on this kind of target" : NULL;
}

int matrix_measure(struct matrix_bench *b, const struct matrix_test *t, struct pp_matrix_row *row,
	struct pp_error *err)
{
	struct gang g = { .b = b, .threads = t->threads ? t->threads : 1 };
	const char *why = not_here(b, t, row);
	struct worker *workers, *bad = NULL;
	uint32_t i;
	int rc = 0;

	if (why) {
		matrix_na(row, why);
		return 0;
	}
	workers = prepare(b, &g);
	if (!workers)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	for (i = 0; i < g.threads && !bad; i++)
		if (b->calls->op_begin(&workers[i].op, b, t, i) != 0)
			bad = &workers[i];
	if (!bad)
		bad = measure_gang(b, &g, workers, row);
	for (i = 0; i < g.threads; i++)
		if (b->calls->op_end(&workers[i].op) != 0 && !bad)
			bad = &workers[i];
	if (bad)
		rc = refused(b, &bad->op, row, err);
	release(workers, g.threads);
	return rc;
}
