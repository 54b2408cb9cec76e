/* SPDX-License-Identifier: MIT
 *
 * The tests, and the order in which they run.
 */
#include <assert.h>
#include <string.h>

#include "matrix_parts.h"
#include "src/core/record.h"
#include "src/core/text.h"
#include "src/core/thread.h"

#define SPARE_BYTES (1U << 20)

#define ONE(label, method)   { "one", label, method, SYNC_LOOP, 1, 8192, 1, PP_OVERWRITE }
#define TWO(label, method)   { "two", label, method, SYNC_LOOP, 2, 8192, 1, PP_OVERWRITE }
#define NONE(section, label, writes, bytes) \
	{ section, label, "", NOT_HERE, writes, bytes, 1, PP_OVERWRITE }
#define SIZE(label, method, writes, bytes) \
	{ "sizes", label, method, SYNC_LOOP, writes, bytes, 1, PP_OVERWRITE }
#define LAST \
	{ "reopen", "write, fsync, close", "fsync", WRITE_SYNC_CLOSE, 1, 8192, 1, PP_OVERWRITE }, \
	{ "reopen", "write, close, fsync", "fsync", WRITE_CLOSE_SYNC, 1, 8192, 1, PP_OVERWRITE }, \
	{ "none", "write", "write", SYNC_LOOP, 1, 8192, 1, PP_OVERWRITE }

/* pg_test_fsync's order and labels; its open_datasync and open_sync are direct. */
static const struct matrix_test pg_tests[] = {
	ONE("open_datasync", "open_datasync (direct)"),
	ONE("fdatasync", "fdatasync"),
	ONE("fsync", "fsync"),
	NONE("one", "fsync_writethrough", 1, 8192),
	ONE("open_sync", "open_sync (direct)"),
	TWO("open_datasync", "open_datasync (direct)"),
	TWO("fdatasync", "fdatasync"),
	TWO("fsync", "fsync"),
	NONE("two", "fsync_writethrough", 2, 8192),
	TWO("open_sync", "open_sync (direct)"),
	SIZE(" 1 * 16kB open_sync write", "open_sync (direct)", 1, 16384),
	SIZE(" 2 *  8kB open_sync writes", "open_sync (direct)", 2, 8192),
	SIZE(" 4 *  4kB open_sync writes", "open_sync (direct)", 4, 4096),
	SIZE(" 8 *  2kB open_sync writes", "open_sync (direct)", 8, 2048),
	SIZE("16 *  1kB open_sync writes", "open_sync (direct)", 16, 1024),
	LAST,
};

/*
 * On Windows O_SYNC is nothing, and open_datasync is told apart: the server's own is buffered, that
 * of pg_test_fsync direct, and published results name both.
 */
static const struct matrix_test pg_tests_windows[] = {
	ONE("open_datasync (direct)", "open_datasync (direct)"),
	ONE("open_datasync (buffered)", "open_datasync"),
	ONE("fdatasync", "fdatasync"),
	ONE("fsync", "fsync"),
	ONE("fsync_writethrough", "fsync_writethrough"),
	NONE("one", "open_sync", 1, 8192),
	TWO("open_datasync (direct)", "open_datasync (direct)"),
	TWO("open_datasync (buffered)", "open_datasync"),
	TWO("fdatasync", "fdatasync"),
	TWO("fsync", "fsync"),
	TWO("fsync_writethrough", "fsync_writethrough"),
	NONE("two", "open_sync", 2, 8192),
	NONE("sizes", " 1 * 16kB open_sync write", 1, 16384),
	NONE("sizes", " 2 *  8kB open_sync writes", 2, 8192),
	NONE("sizes", " 4 *  4kB open_sync writes", 4, 4096),
	NONE("sizes", " 8 *  2kB open_sync writes", 8, 2048),
	NONE("sizes", "16 *  1kB open_sync writes", 16, 1024),
	LAST,
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

struct pp_matrix_row *matrix_row_begin(struct matrix_bench *b, const struct matrix_test *t)
{
	const struct pp_matrix_config *config = b->config;
	struct pp_matrix_row *row = &b->matrix->rows[b->matrix->row_count];
	const struct pp_method *method = pp_method_find(t->method);

	if (b->matrix->row_count == PP_MATRIX_ROWS_MAX)
		return NULL;
	memset(row, 0, sizeof(*row));
	pp_text_copy(row->section, sizeof(row->section), t->section);
	pp_text_copy(row->label, sizeof(row->label), t->label);
	pp_text_copy(row->method, sizeof(row->method), t->method);
	pp_text_copy(row->workload, sizeof(row->workload), pp_workload_name(t->workload));
	row->promise = method ? pp_workload_promise(t->workload, method,
		config->raw ? PP_TARGET_RAW : PP_TARGET_FILE, NULL) : PP_PROMISE_NA;
	row->threads = t->threads ? t->threads : 1;
	row->writes = t->writes;
	row->write_bytes = t->write_bytes;
	row->flushes_per_op = row->writes_per_op = row->bytes_per_op = -1;
	row->fua_per_op = row->preflushes_per_op = -1;
	if (config->began)
		config->began(config->ctx, row);
	return row;
}

void matrix_row_done(struct matrix_bench *b)
{
	const struct pp_matrix_config *config = b->config;
	const struct pp_matrix_row *row = &b->matrix->rows[b->matrix->row_count++];

	if (!matrix_stopped(b) && config->done)
		config->done(config->ctx, row);
}

static int run_test(struct matrix_bench *b, const struct matrix_test *t, struct pp_error *err)
{
	struct pp_matrix_row *row = matrix_row_begin(b, t);

	assert(row); /* check_config has counted them */
	if (matrix_measure(b, t, row, err) != 0)
		return -1;
	matrix_row_done(b);
	return 0;
}

/* By name, of whatever system: a row says n/a then; else those that this system has. */
static bool selected(const struct matrix_bench *b, const struct pp_method *method)
{
	const struct pp_matrix_config *config = b->config;
	size_t i;

	for (i = 0; i < config->only_count; i++)
		if (strcmp(config->only[i], method->name) == 0)
			return true;
	return config->only == NULL && pp_method_on(method, b->system);
}

static int run_methods(struct matrix_bench *b, enum pp_workload workload, uint32_t block,
	uint32_t threads, struct pp_error *err)
{
	size_t i;

	for (i = 0; i < pp_method_count && !matrix_stopped(b); i++) {
		struct matrix_test t = { "methods", pp_methods[i].name, pp_methods[i].name, SYNC_LOOP,
			1, block, threads, workload };

		if (selected(b, &pp_methods[i]) && run_test(b, &t, err) != 0)
			return -1;
	}
	return 0;
}

/* The axes with their defaults filled in. */
static struct pp_matrix_axes axes_of(const struct pp_matrix_config *config)
{
	struct pp_matrix_axes axes = config->axes;

	if (!axes.workloads)
		axes.workload[axes.workloads++] = PP_OVERWRITE;
	if (!axes.blocks)
		axes.block_bytes[axes.blocks++] = config->block_bytes ? config->block_bytes
			: PP_MATRIX_BLOCK_BYTES;
	if (!axes.thread_counts)
		axes.threads[axes.thread_counts++] = 1;
	return axes;
}

static int run_axes(struct matrix_bench *b, struct pp_error *err)
{
	struct pp_matrix_axes axes = axes_of(b->config);
	size_t w, k, n;

	for (w = 0; w < axes.workloads; w++)
		for (k = 0; k < axes.blocks; k++)
			for (n = 0; n < axes.thread_counts; n++)
				if (run_methods(b, axes.workload[w], axes.block_bytes[k], axes.threads[n],
					err) != 0)
					return -1;
	return 0;
}

static int run_pg(struct matrix_bench *b, struct pp_error *err)
{
	bool windows = b->system == PP_SYSTEM_WINDOWS;
	const struct matrix_test *tests = windows ? pg_tests_windows : pg_tests;
	size_t i, count = windows ? COUNT(pg_tests_windows) : COUNT(pg_tests);

	for (i = 0; i < count && !matrix_stopped(b); i++)
		if (run_test(b, &tests[i], err) != 0)
			return -1;
	return 0;
}

static int run_tests(struct matrix_bench *b, struct pp_error *err)
{
	const struct pp_matrix_config *config = b->config;

	if (config->pg)
		return run_pg(b, err);
	if (!config->no_methods && run_axes(b, err) != 0)
		return -1;
	return config->throughput && !matrix_stopped(b) ? b->calls->throughput(b, err) : 0;
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static int check_axes(const struct pp_matrix_axes *axes, struct pp_error *err)
{
	size_t i;

	for (i = 0; i < axes->workloads; i++)
		if (axes->workload[i] != PP_OVERWRITE && axes->workload[i] != PP_FALLOCATED &&
			axes->workload[i] != PP_APPEND && axes->workload[i] != PP_CREATE)
			return pp_fail(err, PP_ERR_USAGE, "the matrix has no workload '%s'",
				pp_workload_name(axes->workload[i]));
	for (i = 0; i < axes->blocks; i++)
		if (axes->block_bytes[i] == 0 || axes->block_bytes[i] % PP_CELL_BYTES != 0 ||
			axes->block_bytes[i] > PP_RECORD_BYTES_MAX)
			return pp_fail(err, PP_ERR_USAGE, "block must be a multiple of %d bytes up to %u, "
				"not %u", PP_CELL_BYTES, PP_RECORD_BYTES_MAX, axes->block_bytes[i]);
	for (i = 0; i < axes->thread_counts; i++)
		if (axes->threads[i] == 0 || axes->threads[i] > PP_MATRIX_THREADS_MAX)
			return pp_fail(err, PP_ERR_USAGE, "threads must be 1 to %d, not %u",
				PP_MATRIX_THREADS_MAX, axes->threads[i]);
	for (i = 0; i < axes->blocks * axes->thread_counts; i++)
		if ((uint64_t)axes->block_bytes[i % axes->blocks] *
			axes->threads[i / axes->blocks] > PP_MATRIX_FILE_BYTES)
			return pp_fail(err, PP_ERR_USAGE, "%u threads with blocks of %u bytes do not fit "
				"into the file of %u bytes", axes->threads[i / axes->blocks],
				axes->block_bytes[i % axes->blocks], PP_MATRIX_FILE_BYTES);
	return 0;
}

static int check_config(const struct pp_matrix_config *config, struct pp_error *err)
{
	struct pp_matrix_axes axes = axes_of(config);
	size_t i;

	if (check_axes(&axes, err) != 0)
		return -1;
	if (axes.workloads * axes.blocks * axes.thread_counts * pp_method_count + 16 >
		PP_MATRIX_ROWS_MAX)
		return pp_fail(err, PP_ERR_USAGE, "that would be more than %d rows", PP_MATRIX_ROWS_MAX);
	if (!(config->seconds > 0 && config->seconds <= 1e6))
		return pp_fail(err, PP_ERR_USAGE, "seconds per test must be more than 0");
	if (config->compressible > 100)
		return pp_fail(err, PP_ERR_USAGE, "compressible must be 0 to 100 per cent, not %u",
			config->compressible);
	for (i = 0; config->only && i < config->only_count; i++)
		if (!pp_method_find(config->only[i]))
			return pp_fail(err, PP_ERR_USAGE, "there is no method '%s'", config->only[i]);
	return 0;
}

/* The most that stands on the disk at once. */
uint64_t matrix_bytes_needed(const struct pp_matrix_config *config)
{
	struct pp_matrix_axes axes = axes_of(config);
	uint64_t most = 0, throughput = config->throughput_bytes ? config->throughput_bytes
		: PP_MATRIX_THROUGHPUT_BYTES;
	uint32_t threads = 0, block = 0;
	size_t i;

	for (i = 0; i < axes.thread_counts; i++)
		threads = axes.threads[i] > threads ? axes.threads[i] : threads;
	for (i = 0; i < axes.blocks; i++)
		block = axes.block_bytes[i] > block ? axes.block_bytes[i] : block;
	for (i = 0; i < axes.workloads && !config->pg && !config->no_methods; i++) {
		uint64_t each = axes.workload[i] == PP_OVERWRITE ? 0
			: axes.workload[i] == PP_CREATE ? (uint64_t)MATRIX_GROW_FILES * (block < 4096
			? 4096 : block) : MATRIX_GROW_BYTES;

		most = each * threads > most ? each * threads : most;
	}
	if (config->throughput && !config->pg && throughput > most)
		most = throughput;
	return most + PP_MATRIX_FILE_BYTES + SPARE_BYTES;
}

/* A test writes this, but for its first bytes, again and again. */
static void fill_buffer(struct matrix_bench *b)
{
	struct pp_record record = { .cells = PP_RECORD_BYTES_MAX / PP_CELL_BYTES };

	pp_record_fill(b->buf, &record);
}

int pp_matrix_run(const struct pp_matrix_config *config, struct pp_matrix *matrix,
	struct pp_error *err)
{
	struct matrix_bench b = { .config = config, .matrix = matrix, .disk = { .fd = -1 },
		.calls = config->calls ? config->calls : &pp_matrix_calls_live };
	int rc = -1;

	b.system = b.calls->system == PP_SYSTEM_ANY ? pp_system_here : b.calls->system;
	memset(matrix, 0, sizeof(*matrix));
	if (check_config(config, err) != 0)
		return -1;
	b.at = config->raw ? config->raw_offset : 0;
	b.buf = pp_aligned_alloc(MATRIX_ALIGN_BYTES, PP_RECORD_BYTES_MAX);
	if (!b.buf)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	fill_buffer(&b);
	if (b.calls->make(&b, err) != 0)
		goto out;
	b.calls->look(&b);
	rc = run_tests(&b, err);
	matrix->stopped = matrix_stopped(&b);
out:
	if (b.created && b.calls->remove(&b, rc == 0 ? err : NULL) != 0)
		rc = -1;
	pp_disk_trace_close(&b.trace);
	pp_disk_source_close(&b.disk);
	pp_aligned_free(b.buf);
	return rc;
}
