/* SPDX-License-Identifier: MIT
 *
 * The tests, and the file that they overwrite.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "matrix_parts.h"
#include "src/core/record.h"
#include "src/core/text.h"

#define SPARE_BYTES (1U << 20)

/* pg_test_fsync's order and labels; its open_datasync and open_sync are direct. */
static const struct matrix_test pg_tests[] = {
	{ "one", "open_datasync", "open_datasync (direct)", SYNC_LOOP, 1, 8192, 1, PP_OVERWRITE },
	{ "one", "fdatasync", "fdatasync", SYNC_LOOP, 1, 8192, 1, PP_OVERWRITE },
	{ "one", "fsync", "fsync", SYNC_LOOP, 1, 8192, 1, PP_OVERWRITE },
	{ "one", "fsync_writethrough", "", NOT_HERE, 1, 8192, 1, PP_OVERWRITE },
	{ "one", "open_sync", "open_sync (direct)", SYNC_LOOP, 1, 8192, 1, PP_OVERWRITE },
	{ "two", "open_datasync", "open_datasync (direct)", SYNC_LOOP, 2, 8192, 1, PP_OVERWRITE },
	{ "two", "fdatasync", "fdatasync", SYNC_LOOP, 2, 8192, 1, PP_OVERWRITE },
	{ "two", "fsync", "fsync", SYNC_LOOP, 2, 8192, 1, PP_OVERWRITE },
	{ "two", "fsync_writethrough", "", NOT_HERE, 2, 8192, 1, PP_OVERWRITE },
	{ "two", "open_sync", "open_sync (direct)", SYNC_LOOP, 2, 8192, 1, PP_OVERWRITE },
	{ "sizes", " 1 * 16kB open_sync write", "open_sync (direct)", SYNC_LOOP, 1, 16384, 1, PP_OVERWRITE },
	{ "sizes", " 2 *  8kB open_sync writes", "open_sync (direct)", SYNC_LOOP, 2, 8192, 1, PP_OVERWRITE },
	{ "sizes", " 4 *  4kB open_sync writes", "open_sync (direct)", SYNC_LOOP, 4, 4096, 1, PP_OVERWRITE },
	{ "sizes", " 8 *  2kB open_sync writes", "open_sync (direct)", SYNC_LOOP, 8, 2048, 1, PP_OVERWRITE },
	{ "sizes", "16 *  1kB open_sync writes", "open_sync (direct)", SYNC_LOOP, 16, 1024, 1, PP_OVERWRITE },
	{ "reopen", "write, fsync, close", "fsync", WRITE_SYNC_CLOSE, 1, 8192, 1, PP_OVERWRITE },
	{ "reopen", "write, close, fsync", "fsync", WRITE_CLOSE_SYNC, 1, 8192, 1, PP_OVERWRITE },
	{ "none", "write", "write", SYNC_LOOP, 1, 8192, 1, PP_OVERWRITE },
};

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

static bool selected(const struct pp_matrix_config *config, const char *name)
{
	size_t i;

	for (i = 0; i < config->only_count; i++)
		if (strcmp(config->only[i], name) == 0)
			return true;
	return config->only == NULL && pp_method_on(pp_method_find(name), pp_system_here);
}

static int run_methods(struct matrix_bench *b, enum pp_workload workload, uint32_t block,
	uint32_t threads, struct pp_error *err)
{
	size_t i;

	for (i = 0; i < pp_method_count && !matrix_stopped(b); i++) {
		struct matrix_test t = { "methods", pp_methods[i].name, pp_methods[i].name, SYNC_LOOP,
			1, block, threads, workload };

		if (selected(b->config, t.method) && run_test(b, &t, err) != 0)
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

static int run_tests(struct matrix_bench *b, struct pp_error *err)
{
	const struct pp_matrix_config *config = b->config;
	size_t i;

	if (config->pg) {
		for (i = 0; i < sizeof(pg_tests) / sizeof(pg_tests[0]) && !matrix_stopped(b); i++)
			if (run_test(b, &pg_tests[i], err) != 0)
				return -1;
		return 0;
	}
	if (!config->no_methods && run_axes(b, err) != 0)
		return -1;
	return config->throughput && !matrix_stopped(b) ? matrix_throughput(b, err) : 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

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
static uint64_t bytes_needed(const struct pp_matrix_config *config)
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

static int check_space(const struct pp_matrix_config *config, struct pp_error *err)
{
	uint64_t needed = bytes_needed(config);
	char copy[4096];
	const char *folder;
	struct statvfs fs;

	if (snprintf(copy, sizeof(copy), "%s", config->path) >= (int)sizeof(copy))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", config->path);
	folder = dirname(copy);
	if (statvfs(folder, &fs) != 0)
		return pp_fail_os(err, errno, "cannot find the free space of '%s'", folder);
	if ((uint64_t)fs.f_bavail * fs.f_frsize < needed)
		return pp_fail(err, PP_ERR_USAGE, "'%s' has %" PRIu64 " kB free, but the test needs %"
			PRIu64 " kB", folder, (uint64_t)fs.f_bavail * fs.f_frsize >> 10, needed >> 10);
	return 0;
}

/* A test writes this, but for its first bytes, again and again. */
static void fill_buffer(struct matrix_bench *b)
{
	struct pp_record record = { .cells = PP_RECORD_BYTES_MAX / PP_CELL_BYTES };

	pp_record_fill(b->buf, &record);
}

/*
 * 16 MB that no drive can compress, written and synced; in the small writes of pg_test_fsync, since
 * the page cache keeps a large write in large folios, and a rewrite of one is slower (ext4, 6.18).
 */
static int fill_file(struct matrix_bench *b, int fd, struct pp_error *err)
{
	struct pp_record record = { .cells = PP_MATRIX_BLOCK_BYTES / PP_CELL_BYTES };
	uint64_t done;

	if (pp_run_id_draw(&record.run, err) != 0)
		return -1;
	for (done = 0; done < PP_MATRIX_FILE_BYTES; done += PP_MATRIX_BLOCK_BYTES) {
		ssize_t n;

		record.offset = b->at + done;
		pp_record_fill(b->buf, &record);
		n = pwrite(fd, b->buf, PP_MATRIX_BLOCK_BYTES, (off_t)record.offset);
		if (n < 0)
			return pp_fail_os(err, errno, "cannot write '%s'", b->config->path);
		if (n != (ssize_t)PP_MATRIX_BLOCK_BYTES)
			return pp_fail(err, PP_ERR_SYSTEM, "short write to '%s'", b->config->path);
	}
	if (fsync(fd) != 0)
		return pp_fail_os(err, errno, "cannot sync '%s'", b->config->path);
	return 0;
}

/*
 * O_EXCL: never somebody's file (regular), never somebody's device (open(2), block devices); a
 * proven target holds its device already.
 */
static int make_file(struct matrix_bench *b, struct pp_error *err)
{
	const char *path = b->config->path;
	bool raw = b->config->raw;
	int flags = O_RDWR | O_CLOEXEC | (raw && b->config->target ? 0 : O_EXCL) | (raw ? 0 : O_CREAT);
	int fd, rc;

	if (!raw && check_space(b->config, err) != 0)
		return -1;
	fd = open(path, flags, 0600);
	if (fd < 0 && errno == EEXIST)
		return pp_fail(err, PP_ERR_REFUSED, "'%s' exists: the test would overwrite and remove it; "
			"give another name", path);
	if (fd < 0)
		return pp_fail_os(err, errno, "cannot %s '%s'", raw ? "open" : "create", path);
	b->created = !raw;
	rc = b->config->target ? pp_target_prove_fd(b->config->target, fd, err) : 0;
	if (rc == 0)
		rc = fill_file(b, fd, err);
	if (close(fd) != 0 && rc == 0)
		rc = pp_fail_os(err, errno, "cannot close '%s'", path);
	return rc;
}

static void look_at_disk(struct matrix_bench *b)
{
	struct pp_matrix *matrix = b->matrix;
	struct pp_error why = { 0 };

	if (pp_disk_source_open(b->config->path, &b->disk, &why) != 0) {
		pp_text_copy(matrix->no_disk_reason, sizeof(matrix->no_disk_reason), why.text);
		pp_text_copy(matrix->no_trace_reason, sizeof(matrix->no_trace_reason), why.text);
		return;
	}
	pp_text_copy(matrix->disk, sizeof(matrix->disk), b->disk.name);
	if (b->config->pg || b->config->no_trace)
		pp_text_copy(matrix->no_trace_reason, sizeof(matrix->no_trace_reason), "not asked for");
	else if (pp_disk_trace_open(&b->trace, b->disk.name, &why) != 0)
		pp_text_copy(matrix->no_trace_reason, sizeof(matrix->no_trace_reason), why.text);
}

static void look_at_direct(struct matrix_bench *b)
{
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (statx(AT_FDCWD, b->config->path, 0, STATX_DIOALIGN, &stx) == 0 &&
		stx.stx_mask & STATX_DIOALIGN)
		b->matrix->logical_block_bytes = stx.stx_dio_offset_align;
#endif
	b->matrix->direct_works = true;
}

int pp_matrix_run(const struct pp_matrix_config *config, struct pp_matrix *matrix,
	struct pp_error *err)
{
	struct matrix_bench b = { .config = config, .matrix = matrix, .disk = { .fd = -1 } };
	int rc = -1;

	memset(matrix, 0, sizeof(*matrix));
	if (check_config(config, err) != 0)
		return -1;
	b.at = config->raw ? config->raw_offset : 0;
	b.buf = aligned_alloc(MATRIX_ALIGN_BYTES, PP_RECORD_BYTES_MAX);
	if (!b.buf)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	fill_buffer(&b);
	if (make_file(&b, err) != 0)
		goto out;
	look_at_disk(&b);
	look_at_direct(&b);
	rc = run_tests(&b, err);
	matrix->stopped = matrix_stopped(&b);
out:
	if (b.created && unlink(config->path) != 0 && rc == 0)
		rc = pp_fail_os(err, errno, "cannot remove '%s'", config->path);
	pp_disk_trace_close(&b.trace);
	pp_disk_source_close(&b.disk);
	free(b.buf);
	return rc;
}
