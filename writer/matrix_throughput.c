/* SPDX-License-Identifier: MIT
 *
 * Moving a lot of data. Every 4 KiB that is written differ from all others, so that nothing can be
 * saved by noticing what is equal; they are made while the drive works on others, by a stamp into
 * prepared noise, since a pause to make them would give the drive time to empty its cache. The last
 * sync is part of the time, and writes into RAM are synced at each end of the file. What is read must come from the disk: direct, or after the file was
 * known to have left RAM, each block once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "matrix_parts.h"
#include "src/core/clock.h"
#include "src/core/splitmix.h"
#include "src/core/thread.h"

#define SEQUENTIAL_BYTES (1U << 20)
#define RANDOM_BYTES     4096U
#define POOL_BYTES       (16U << 20)
#define STAMP_BYTES      4096U
/* A prime above 2^31 (Knuth): shares no factor with fewer blocks, so each is met once a round. */
#define STEP_PRIME       2654435761U

struct flow {
	struct matrix_bench *b;
	uint8_t *pool;
	uint64_t bytes, stamp, seed;
	char path[4096];
	bool created;
	struct pp_histogram *latency;
};

static const struct flow_test {
	const char *label;
	bool direct, reads, random;
} flow_tests[] = {
	{ "sequential write (direct)", true, false, false },
	{ "sequential read (direct)", true, true, false },
	{ "random write (direct)", true, false, true },
	{ "random read (direct)", true, true, true },
	{ "sequential write", false, false, false },
	{ "sequential read", false, true, false },
	{ "random write", false, false, true },
	{ "random read", false, true, true },
};

static uint64_t mix(uint64_t x)
{
	return pp_splitmix_next(&x);
}

static void fill_pool(struct flow *f, unsigned compressible)
{
	uint64_t noise = (uint64_t)STAMP_BYTES * (100 - compressible) / 100, at, i;

	memset(f->pool, 0, POOL_BYTES);
	for (at = 0; at < POOL_BYTES; at += STAMP_BYTES)
		for (i = 0; i + 8 <= noise; i += 8) {
			uint64_t word = mix(f->seed + at + i);

			memcpy(f->pool + at + i, &word, 8);
		}
}

/* Fresh data for the next write. Fully compressible data has no stamp: it is all zeros. */
static const uint8_t *fresh(struct flow *f, uint64_t op, uint32_t bytes)
{
	uint8_t *at = f->pool + op * bytes % POOL_BYTES;
	uint32_t i;

	for (i = 0; f->b->config->compressible < 100 && i < bytes; i += STAMP_BYTES) {
		uint64_t word = mix(f->seed ^ ++f->stamp);

		memcpy(at + i, &word, sizeof(word));
	}
	return at;
}

static uint64_t place(const struct flow_test *t, uint64_t op, uint64_t blocks)
{
	return t->random ? op % blocks * STEP_PRIME % blocks : op % blocks;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int write_all(struct flow *f, struct pp_error *err)
{
	bool raw = f->b->config->raw;
	int fd, rc = 0;
	int64_t code = disk_open(f->path, O_RDWR | (raw ? 0 : O_CREAT | O_EXCL), &fd);
	uint64_t at;

	if (code)
		return pp_fail_os(err, code, "cannot %s '%s'", raw ? "open" : "create", f->path);
	f->created = !raw;
	for (at = 0; rc == 0 && at < f->bytes && !matrix_stopped(f->b); at += SEQUENTIAL_BYTES) {
		uint32_t n;

		code = disk_write(fd, fresh(f, at / SEQUENTIAL_BYTES, SEQUENTIAL_BYTES),
			SEQUENTIAL_BYTES, f->b->at + at, &n);
		if (n != SEQUENTIAL_BYTES)
			rc = code ? pp_fail_os(err, code, "cannot write '%s'", f->path)
				: pp_fail(err, PP_ERR_SYSTEM, "short write to '%s'", f->path);
	}
	code = rc == 0 ? disk_sync(fd) : 0;
	if (code)
		rc = pp_fail_os(err, code, "cannot sync '%s'", f->path);
	code = disk_close(fd);
	return code && rc == 0 ? pp_fail_os(err, code, "cannot close '%s'", f->path) : rc;
}

/* ---- a row ----------------------------------------------------------------------------------- */

static int flow(struct flow *f, const struct flow_test *t, int fd, struct pp_matrix_row *row,
	struct matrix_op_error *e)
{
	uint32_t bytes = row->write_bytes;
	uint64_t blocks = f->bytes / bytes, op = 0;
	int64_t start = pp_clock_mono_ns(), now = start, before, code;
	int64_t end = start + (int64_t)(f->b->config->seconds * 1e9);
	bool once = t->reads && !t->direct, syncs_rounds = !t->reads && !t->direct;
	uint8_t *into = f->pool;

	pp_histogram_init(f->latency);
	do {
		uint64_t at = f->b->at + place(t, op, blocks) * bytes;
		uint32_t n;

		before = now;
		code = t->reads ? disk_read(fd, into, bytes, at, &n)
			: disk_write(fd, fresh(f, op, bytes), bytes, at, &n);
		if (n != bytes)
			return matrix_op_fail(e, t->reads ? "read" : "write", code);
		now = pp_clock_mono_ns();
		pp_histogram_add(f->latency, now - before);
		op++;
		/* What is overwritten in RAM before it was synced never reaches the disk. */
		code = syncs_rounds && op % blocks == 0 ? disk_sync(fd) : 0;
		if (code)
			return matrix_op_fail(e, "fsync", code);
	} while (now < end && !matrix_stopped(f->b) && !(once && op == blocks));
	code = t->reads ? 0 : disk_sync(fd);
	if (code)
		return matrix_op_fail(e, "fsync", code);
	row->ops = op;
	row->elapsed_ns = pp_clock_mono_ns() - start;
	return 0;
}

static int measure(struct flow *f, const struct flow_test *t, struct pp_matrix_row *row,
	struct matrix_op_error *e)
{
	struct pp_disk_counters before, after;
	int64_t code;
	bool counted;
	int fd, rc;

	code = disk_open(f->path, O_RDWR | (t->direct ? O_DIRECT : 0), &fd);
	if (code)
		return matrix_op_fail(e, "open", code);
	if (t->reads && !t->direct && !disk_drop(fd, f->b->at, f->bytes)) {
		disk_close(fd);
		matrix_na(row, "the file stays in RAM, or may: a read would not reach the disk");
		return 0;
	}
	if (t->random)
		disk_random(fd);
	matrix_look_idle(f->b);
	counted = matrix_read_disk(f->b, &before);
	rc = flow(f, t, fd, row, e);
	if (rc == 0 && counted && matrix_read_disk(f->b, &after))
		matrix_fill_counters(f->b, &before, &after, t->reads, row);
	if (rc == 0)
		matrix_fill_speed(f->latency, row);
	code = disk_close(fd);
	return code && rc == 0 ? matrix_op_fail(e, "close", code) : rc;
}

static int refused(const struct flow *f, const struct flow_test *t, const struct matrix_op_error *e,
	struct pp_matrix_row *row, struct pp_error *err)
{
	if (t->direct && disk_code_of(e->code) == DISK_CODE_INVALID) {
		matrix_na(row, "direct I/O is refused here");
		return 0;
	}
	return e->code ? pp_fail_os(err, e->code, "%s of '%s' failed in test '%s'", e->call, f->path,
		row->label) : pp_fail(err, PP_ERR_SYSTEM, "short %s of '%s' in test '%s'", e->call,
		f->path, row->label);
}

static int run_flows(struct flow *f, struct pp_error *err)
{
	size_t i;

	for (i = 0; i < sizeof(flow_tests) / sizeof(flow_tests[0]) && !matrix_stopped(f->b); i++) {
		const struct flow_test *t = &flow_tests[i];
		struct matrix_test names = { "throughput", t->label, "", SYNC_LOOP, 1,
			t->random ? RANDOM_BYTES : SEQUENTIAL_BYTES, 1, PP_OVERWRITE };
		struct pp_matrix_row *row = matrix_row_begin(f->b, &names);
		struct matrix_op_error e = { 0 };

		if (!row)
			return pp_fail(err, PP_ERR_USAGE, "more than %d rows", PP_MATRIX_ROWS_MAX);
		snprintf(row->workload, sizeof(row->workload), "%s", t->reads ? "read" : "write");
		if (measure(f, t, row, &e) != 0 && refused(f, t, &e, row, err) != 0)
			return -1;
		matrix_row_done(f->b);
	}
	return 0;
}

int matrix_throughput(struct matrix_bench *b, struct pp_error *err)
{
	struct flow f = { .b = b, .bytes = b->config->throughput_bytes ? b->config->throughput_bytes
		: PP_MATRIX_THROUGHPUT_BYTES, .seed = (uint64_t)pp_clock_mono_ns() };
	int64_t code;
	int rc = -1;

	f.bytes -= f.bytes % SEQUENTIAL_BYTES;
	if (f.bytes == 0)
		return pp_fail(err, PP_ERR_USAGE, "throughput needs a file of 1 MiB or more");
	if (snprintf(f.path, sizeof(f.path), b->config->raw ? "%s" : "%s.data", b->config->path) >=
		(int)sizeof(f.path))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", b->config->path);
	f.pool = pp_aligned_alloc(MATRIX_ALIGN_BYTES, POOL_BYTES);
	f.latency = malloc(sizeof(*f.latency));
	if (!f.pool || !f.latency) {
		pp_fail(err, PP_ERR_SYSTEM, "out of memory");
		goto out;
	}
	fill_pool(&f, b->config->compressible);
	rc = write_all(&f, err);
	if (rc == 0)
		rc = run_flows(&f, err);
	code = f.created ? disk_remove(f.path) : 0;
	if (code && rc == 0)
		rc = pp_fail_os(err, code, "cannot remove '%s'", f.path);
out:
	free(f.latency);
	pp_aligned_free(f.pool);
	return rc;
}
