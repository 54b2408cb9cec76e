/* SPDX-License-Identifier: MIT
 *
 * Measuring. Each operation ends where the next begins, so one clock reading an operation gives
 * both the rate and every latency. Where an operation is so short that the clock would be felt (a
 * write into RAM), one in FAST_STRIDE is timed, by itself; all are counted. The first bytes of the block change with every operation: a
 * drive that notices equal data must not win by it.
 */
#include "matrix.h"

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

#include "src/core/clock.h"
#include "src/core/disk_counters.h"
#include "src/core/histogram.h"
#include "src/core/record.h"

#define ALIGN_BYTES 65536
#define IDLE_MS     50
#define FAST_PROBE_OPS 256
#define FAST_OP_NS     5000
#define FAST_STRIDE    16
/* Others' requests while idle, as a share of the row's own, from which figures are called foreign. */
#define FOREIGN_SHARE 0.02

enum shape {
	SYNC_LOOP,         /* open once; write, sync */
	WRITE_SYNC_CLOSE,  /* open, write, fsync, close; open, close */
	WRITE_CLOSE_SYNC,  /* open, write, close; open, fsync, close */
	NOT_HERE,          /* what only another system has */
};

struct test {
	const char *section, *label, *method;
	enum shape shape;
	uint32_t writes, write_bytes;
};

/* pg_test_fsync's order and labels; its open_datasync and open_sync are direct. */
static const struct test pg_tests[] = {
	{ "one", "open_datasync", "open_datasync (direct)", SYNC_LOOP, 1, 8192 },
	{ "one", "fdatasync", "fdatasync", SYNC_LOOP, 1, 8192 },
	{ "one", "fsync", "fsync", SYNC_LOOP, 1, 8192 },
	{ "one", "fsync_writethrough", "", NOT_HERE, 1, 8192 },
	{ "one", "open_sync", "open_sync (direct)", SYNC_LOOP, 1, 8192 },
	{ "two", "open_datasync", "open_datasync (direct)", SYNC_LOOP, 2, 8192 },
	{ "two", "fdatasync", "fdatasync", SYNC_LOOP, 2, 8192 },
	{ "two", "fsync", "fsync", SYNC_LOOP, 2, 8192 },
	{ "two", "fsync_writethrough", "", NOT_HERE, 2, 8192 },
	{ "two", "open_sync", "open_sync (direct)", SYNC_LOOP, 2, 8192 },
	{ "sizes", " 1 * 16kB open_sync write", "open_sync (direct)", SYNC_LOOP, 1, 16384 },
	{ "sizes", " 2 *  8kB open_sync writes", "open_sync (direct)", SYNC_LOOP, 2, 8192 },
	{ "sizes", " 4 *  4kB open_sync writes", "open_sync (direct)", SYNC_LOOP, 4, 4096 },
	{ "sizes", " 8 *  2kB open_sync writes", "open_sync (direct)", SYNC_LOOP, 8, 2048 },
	{ "sizes", "16 *  1kB open_sync writes", "open_sync (direct)", SYNC_LOOP, 16, 1024 },
	{ "reopen", "write, fsync, close", "fsync", WRITE_SYNC_CLOSE, 1, 8192 },
	{ "reopen", "write, close, fsync", "fsync", WRITE_CLOSE_SYNC, 1, 8192 },
	{ "none", "write", "write", SYNC_LOOP, 1, 8192 },
};

struct bench {
	const struct pp_matrix_config *config;
	struct pp_matrix *matrix;
	struct pp_histogram *latency;
	struct pp_disk_source disk;
	uint8_t *buf;
	uint64_t at;    /* bytes, of the first write */
	bool created;
};

/* Why an operation failed: which call, and the system's code (0: a short write). */
struct op_error {
	const char *call;
	int code;
};

/* ---- one operation --------------------------------------------------------------------------- */

static int op_fail(struct op_error *e, const char *call, int code)
{
	e->call = call;
	e->code = code;
	return -1;
}

static int do_writes(struct bench *b, const struct test *t, int fd, struct op_error *e)
{
	uint32_t i;

	for (i = 0; i < t->writes; i++) {
		ssize_t n = pwrite(fd, b->buf, t->write_bytes,
			(off_t)(b->at + (uint64_t)i * t->write_bytes));

		if (n != (ssize_t)t->write_bytes)
			return op_fail(e, "write", n < 0 ? errno : 0);
	}
	return 0;
}

static int do_sync(enum pp_sync_call call, int fd, struct op_error *e)
{
	switch (call) {
	case PP_SYNC_NONE:
		return 0;
	case PP_SYNC_FDATASYNC:
		return fdatasync(fd) == 0 ? 0 : op_fail(e, "fdatasync", errno);
	case PP_SYNC_FSYNC:
		return fsync(fd) == 0 ? 0 : op_fail(e, "fsync", errno);
	}
	return op_fail(e, "sync", ENOSYS);
}

static int do_open(const struct bench *b, int flags, struct op_error *e)
{
	int fd = open(b->config->path, O_RDWR | O_CLOEXEC | flags);

	return fd >= 0 ? fd : op_fail(e, "open", errno);
}

static int do_close(int fd, int rc, struct op_error *e)
{
	if (close(fd) != 0 && rc == 0)
		return op_fail(e, "close", errno);
	return rc;
}

/* The question of these two: does fsync reach what another descriptor wrote? Both open twice. */
static int reopen_op(struct bench *b, const struct test *t, struct op_error *e)
{
	bool sync_first = t->shape == WRITE_SYNC_CLOSE;
	int fd = do_open(b, 0, e), rc;

	if (fd < 0)
		return -1;
	rc = do_writes(b, t, fd, e);
	if (rc == 0 && sync_first)
		rc = do_sync(PP_SYNC_FSYNC, fd, e);
	if (do_close(fd, rc, e) != 0)
		return -1;
	fd = do_open(b, 0, e);
	if (fd < 0)
		return -1;
	return do_close(fd, sync_first ? 0 : do_sync(PP_SYNC_FSYNC, fd, e), e);
}

/* ---- one test -------------------------------------------------------------------------------- */

static bool stopped(const struct bench *b)
{
	return b->config->stop && *b->config->stop;
}

static int do_op(struct bench *b, const struct test *t, enum pp_sync_call sync, int fd, uint64_t op,
	struct op_error *e)
{
	memcpy(b->buf, &op, sizeof(op));
	if (t->shape != SYNC_LOOP)
		return reopen_op(b, t, e);
	if (do_writes(b, t, fd, e) != 0)
		return -1;
	return do_sync(sync, fd, e);
}

static int time_ops(struct bench *b, const struct test *t, const struct pp_method *method, int fd,
	double seconds, struct pp_matrix_row *row, struct op_error *e)
{
	int64_t start = pp_clock_mono_ns(), end = start + (int64_t)(seconds * 1e9), before = start;
	int64_t probe = start, now;
	uint64_t ops = 0, stride = 1, i;

	pp_histogram_init(b->latency);
	do {
		for (i = 1; i < stride; i++)
			if (do_op(b, t, method->sync, fd, ops++, e) != 0)
				return -1;
		if (stride > 1)
			before = pp_clock_mono_ns();
		if (do_op(b, t, method->sync, fd, ops++, e) != 0)
			return -1;
		now = pp_clock_mono_ns();
		pp_histogram_add(b->latency, now - before);
		before = now;
		if (stride == 1 && ops % FAST_PROBE_OPS == 0) {
			if (now - probe < FAST_PROBE_OPS * FAST_OP_NS)
				stride = FAST_STRIDE;
			probe = now;
		}
	} while (now < end && !stopped(b));
	row->ops = ops;
	row->elapsed_ns = now - start;
	return 0;
}

static void fill_speed(const struct bench *b, struct pp_matrix_row *row)
{
	const struct pp_histogram *h = b->latency;

	row->ops_per_s = (double)row->ops * 1e9 / (double)row->elapsed_ns;
	row->latency_ns_p50 = pp_histogram_quantile_ns(h, 0.5);
	row->latency_ns_p90 = pp_histogram_quantile_ns(h, 0.9);
	row->latency_ns_p99 = pp_histogram_quantile_ns(h, 0.99);
	row->latency_ns_p999 = pp_histogram_quantile_ns(h, 0.999);
	row->latency_ns_max = h->max_ns;
	row->latency_ns_mean = pp_histogram_mean_ns(h);
	row->latency_variation = pp_histogram_variation(h);
}

static bool read_disk(const struct bench *b, struct pp_disk_counters *counters)
{
	return b->disk.fd >= 0 && pp_disk_source_read(&b->disk, counters, NULL) == 0;
}

/* Requests a second that reach the disk while this test sends none. */
static double idle_per_s(const struct bench *b)
{
	struct pp_disk_counters before, after;
	int64_t began = pp_clock_mono_ns();
	double requests;

	if (!read_disk(b, &before))
		return 0;
	pp_clock_sleep_ms(IDLE_MS);
	if (!read_disk(b, &after))
		return 0;
	requests = (double)(after.writes - before.writes + after.flushes - before.flushes);
	return requests * 1e9 / (double)(pp_clock_mono_ns() - began);
}

static void fill_counters(const struct pp_disk_counters *before,
	const struct pp_disk_counters *after, double idle, struct pp_matrix_row *row)
{
	double requests = (double)(after->writes - before->writes + after->flushes - before->flushes);
	double seconds = (double)row->elapsed_ns / 1e9;

	row->counted = true;
	row->writes_per_op = (double)(after->writes - before->writes) / (double)row->ops;
	if (after->has_flushes)
		row->flushes_per_op = (double)(after->flushes - before->flushes) / (double)row->ops;
	row->foreign_traffic = idle > 0 && (requests <= 0 || idle > FOREIGN_SHARE * requests / seconds);
}

static void na(struct pp_matrix_row *row, const char *reason)
{
	row->status = PP_MATRIX_NA;
	row->promise = PP_PROMISE_NA;
	snprintf(row->reason, sizeof(row->reason), "%s", reason);
}

/* Direct I/O that the system refuses is a property of the target, all else an error. */
static int refused(struct bench *b, const struct test *t, const struct pp_method *method,
	const struct op_error *e, struct pp_matrix_row *row, struct pp_error *err)
{
	char reason[sizeof(row->reason)];

	if (method->direct && e->code == EINVAL && strcmp(e->call, "open") == 0) {
		b->matrix->direct_works = false;
		na(row, "direct I/O is refused here");
		return 0;
	}
	if (method->direct && e->code == EINVAL && strcmp(e->call, "write") == 0) {
		snprintf(reason, sizeof(reason), "direct I/O of %u bytes is refused: below the logical "
			"block", t->write_bytes);
		na(row, reason);
		return 0;
	}
	if (e->code == 0)
		return pp_fail(err, PP_ERR_SYSTEM, "short %s to '%s' in test '%s'", e->call,
			b->config->path, row->label);
	return pp_fail_os(err, e->code, "%s of '%s' failed in test '%s'", e->call, b->config->path,
		row->label);
}

static int measure_open(struct bench *b, const struct test *t, const struct pp_method *method,
	int fd, struct pp_matrix_row *row, struct op_error *e)
{
	struct pp_disk_counters before, after;
	double idle = idle_per_s(b);
	bool counted;

	if (b->config->warm_up_seconds > 0 &&
		time_ops(b, t, method, fd, b->config->warm_up_seconds, row, e) != 0)
		return -1;
	counted = read_disk(b, &before);
	if (time_ops(b, t, method, fd, b->config->seconds, row, e) != 0)
		return -1;
	if (counted && read_disk(b, &after))
		fill_counters(&before, &after, idle, row);
	fill_speed(b, row);
	/* What a test without a sync left in RAM must not reach the disk in the next one. */
	return method->sync == PP_SYNC_NONE ? do_sync(PP_SYNC_FDATASYNC, fd, e) : 0;
}

static int measure(struct bench *b, const struct test *t, struct pp_matrix_row *row,
	struct pp_error *err)
{
	const struct pp_method *method = pp_method_find(t->method);
	struct op_error e = { 0 };
	int fd, rc;

	if (t->shape == NOT_HERE) {
		na(row, "this system has no such call");
		return 0;
	}
	if (row->promise == PP_PROMISE_NA) {
		na(row, "does nothing on this kind of target");
		return 0;
	}
	fd = do_open(b, t->shape == SYNC_LOOP ? pp_method_open_flags(method) : 0, &e);
	if (fd < 0)
		return refused(b, t, method, &e, row, err);
	rc = measure_open(b, t, method, fd, row, &e);
	rc = do_close(fd, rc, &e);
	return rc == 0 ? 0 : refused(b, t, method, &e, row, err);
}

static int run_test(struct bench *b, const struct test *t, struct pp_error *err)
{
	const struct pp_matrix_config *config = b->config;
	struct pp_matrix_row *row = &b->matrix->rows[b->matrix->row_count];
	const struct pp_method *method = pp_method_find(t->method);

	assert(b->matrix->row_count < PP_MATRIX_ROWS_MAX);
	memset(row, 0, sizeof(*row));
	snprintf(row->section, sizeof(row->section), "%s", t->section);
	snprintf(row->label, sizeof(row->label), "%s", t->label);
	snprintf(row->method, sizeof(row->method), "%s", t->method);
	row->promise = method ? pp_method_promise(method, config->raw ? PP_TARGET_RAW : PP_TARGET_FILE)
		: PP_PROMISE_NA;
	row->writes = t->writes;
	row->write_bytes = t->write_bytes;
	row->flushes_per_op = row->writes_per_op = -1;
	if (config->began)
		config->began(config->ctx, row);
	if (measure(b, t, row, err) != 0)
		return -1;
	b->matrix->row_count++;
	if (!stopped(b) && config->done)
		config->done(config->ctx, row);
	return 0;
}

static bool selected(const struct pp_matrix_config *config, const char *name)
{
	size_t i;

	for (i = 0; i < config->only_count; i++)
		if (strcmp(config->only[i], name) == 0)
			return true;
	return config->only == NULL;
}

static int run_tests(struct bench *b, struct pp_error *err)
{
	const struct pp_matrix_config *config = b->config;
	size_t i;

	if (config->pg) {
		for (i = 0; i < sizeof(pg_tests) / sizeof(pg_tests[0]) && !stopped(b); i++)
			if (run_test(b, &pg_tests[i], err) != 0)
				return -1;
		return 0;
	}
	for (i = 0; i < pp_method_count && !stopped(b); i++) {
		struct test t = { "methods", pp_methods[i].name, pp_methods[i].name, SYNC_LOOP, 1,
			config->block_bytes ? config->block_bytes : PP_MATRIX_BLOCK_BYTES };

		if (selected(config, t.method) && run_test(b, &t, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int check_config(const struct pp_matrix_config *config, struct pp_error *err)
{
	size_t i;

	if (config->block_bytes % PP_CELL_BYTES != 0 || config->block_bytes > PP_RECORD_BYTES_MAX)
		return pp_fail(err, PP_ERR_USAGE, "block must be a multiple of %d bytes up to %u, not %u",
			PP_CELL_BYTES, PP_RECORD_BYTES_MAX, config->block_bytes);
	if (!(config->seconds > 0 && config->seconds <= 1e6))
		return pp_fail(err, PP_ERR_USAGE, "seconds per test must be more than 0");
	for (i = 0; config->only && i < config->only_count; i++)
		if (!pp_method_find(config->only[i]))
			return pp_fail(err, PP_ERR_USAGE, "there is no method '%s'", config->only[i]);
	return 0;
}

static int check_space(const char *path, struct pp_error *err)
{
	char copy[4096];
	const char *folder;
	struct statvfs fs;

	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", path);
	folder = dirname(copy);
	if (statvfs(folder, &fs) != 0)
		return pp_fail_os(err, errno, "cannot find the free space of '%s'", folder);
	if ((uint64_t)fs.f_bavail * fs.f_frsize < PP_MATRIX_FILE_BYTES + (1U << 20))
		return pp_fail(err, PP_ERR_USAGE, "'%s' has %" PRIu64 " kB free, but the test needs %u kB",
			folder, (uint64_t)fs.f_bavail * fs.f_frsize >> 10,
			(PP_MATRIX_FILE_BYTES + (1U << 20)) >> 10);
	return 0;
}

/*
 * 16 MB that no drive can compress, written and synced; in the small writes of pg_test_fsync, since
 * the page cache keeps a large write in large folios, and a rewrite of one is slower (ext4, 6.18).
 */
static int fill_file(struct bench *b, int fd, struct pp_error *err)
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
static int make_file(struct bench *b, struct pp_error *err)
{
	const char *path = b->config->path;
	bool raw = b->config->raw;
	int flags = O_RDWR | O_CLOEXEC | (raw && b->config->target ? 0 : O_EXCL) | (raw ? 0 : O_CREAT);
	int fd, rc;

	if (!raw && check_space(path, err) != 0)
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

static void look_at_disk(struct bench *b)
{
	struct pp_matrix *matrix = b->matrix;
	struct pp_error why = { 0 };

	if (pp_disk_source_open(b->config->path, &b->disk, &why) == 0)
		snprintf(matrix->disk, sizeof(matrix->disk), "%s", b->disk.name);
	else
		snprintf(matrix->no_disk_reason, sizeof(matrix->no_disk_reason), "%.*s",
			(int)sizeof(matrix->no_disk_reason) - 1, why.text);
}

static void look_at_direct(struct bench *b)
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
	struct bench b = { .config = config, .matrix = matrix, .disk = { .fd = -1 } };
	int rc = -1;

	memset(matrix, 0, sizeof(*matrix));
	if (check_config(config, err) != 0)
		return -1;
	b.at = config->raw ? config->raw_offset : 0;
	b.latency = malloc(sizeof(*b.latency));
	b.buf = aligned_alloc(ALIGN_BYTES, PP_RECORD_BYTES_MAX);
	if (!b.latency || !b.buf) {
		pp_fail(err, PP_ERR_SYSTEM, "out of memory");
		goto out;
	}
	if (make_file(&b, err) != 0)
		goto out;
	look_at_disk(&b);
	look_at_direct(&b);
	rc = run_tests(&b, err);
	matrix->stopped = stopped(&b);
out:
	if (b.created && unlink(config->path) != 0 && rc == 0)
		rc = pp_fail_os(err, errno, "cannot remove '%s'", config->path);
	pp_disk_source_close(&b.disk);
	free(b.buf);
	free(b.latency);
	return rc;
}
