/* SPDX-License-Identifier: MIT
 *
 * Goal: the speed matrix measures what it says, cleans up, refuses what it must not touch, and its
 * rows survive the way to the control host (M10).
 * Method: short tests in a folder of our own; this program's fsync stands before libc's and can
 * fail; rows by hand for text and warnings. Figures are checked for sense, never for speed.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/core/disk_counters.h"
#include "tests/janitor.h"
#include "writer/matrix.h"

static int fsync_fails_at, fsyncs;

int fsync(int fd)
{
	if (++fsyncs == fsync_fails_at) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fsync, fd);
}

struct fixture {
	char folder[64], path[128];
	struct pp_matrix matrix;
	struct pp_matrix_config config;
	size_t began, done;
	volatile sig_atomic_t stop;
	size_t stop_after;
};

static void on_began(void *ctx, const struct pp_matrix_row *row)
{
	struct fixture *f = ctx;

	f->began++;
	assert_int_equal(f->began, f->done + 1);
	assert_true(row->label[0] != '\0');
	assert_int_equal(access(f->path, F_OK), 0);
}

static void on_done(void *ctx, const struct pp_matrix_row *row)
{
	struct fixture *f = ctx;

	(void)row;
	f->done++;
	if (f->done == f->stop_after)
		f->stop = 1;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->folder, "/tmp/plugpull-test-XXXXXX");
	if (!janitor_mkdtemp(f->folder))
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/m", f->folder);
	f->config = (struct pp_matrix_config){ .path = f->path, .seconds = 0.01, .stop = &f->stop,
		.began = on_began, .done = on_done, .ctx = f };
	fsync_fails_at = fsyncs = 0;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int rc = rmdir(f->folder); /* the matrix has left nothing */

	free(f);
	return rc;
}

static void check_row(const struct pp_matrix_row *row)
{
	if (row->status == PP_MATRIX_NA) {
		assert_int_equal(row->promise, PP_PROMISE_NA);
		assert_true(row->reason[0] != '\0');
		assert_int_equal(row->ops, 0);
		return;
	}
	assert_true(row->ops > 0 && row->elapsed_ns > 0);
	assert_true(fabs(row->ops_per_s * (double)row->elapsed_ns / 1e9 - (double)row->ops) <
		1e-6 * (double)row->ops + 1e-6);
	assert_true(row->latency_ns_p50 > 0);
	assert_true(row->latency_ns_p50 <= row->latency_ns_p90);
	assert_true(row->latency_ns_p90 <= row->latency_ns_p99);
	assert_true(row->latency_ns_p99 <= row->latency_ns_p999);
	assert_true(row->latency_ns_p999 <= row->latency_ns_max);
	assert_true(row->counted || (row->flushes_per_op == -1 && row->writes_per_op == -1));
}

static void test_own_set(void **state)
{
	struct fixture *f = *state;
	struct pp_error err = { 0 };
	size_t i;

	f->config.warm_up_seconds = 0.002;
	if (pp_matrix_run(&f->config, &f->matrix, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(f->matrix.row_count, pp_method_count_of(pp_system_here));
	assert_int_equal(f->done, pp_method_count_of(pp_system_here));
	assert_false(f->matrix.stopped);
	assert_true((f->matrix.disk[0] != '\0') != (f->matrix.no_disk_reason[0] != '\0'));
	for (i = 0; i < f->matrix.row_count; i++) {
		const struct pp_matrix_row *row = &f->matrix.rows[i];

		assert_string_equal(row->label, pp_method_of(pp_system_here, i)->name);
		assert_int_equal(row->write_bytes, PP_MATRIX_BLOCK_BYTES);
		if (row->status == PP_MATRIX_OK)
			assert_int_equal(row->promise, pp_method_of(pp_system_here, i)->promise_file);
		check_row(row);
	}
}

static void test_only(void **state)
{
	static const char *const names[] = { "open_sync", "fdatasync" };
	static const char *const wrong[] = { "fdatasync", "fdata" };
	struct fixture *f = *state;
	struct pp_error err = { 0 };

	f->config.only = names;
	f->config.only_count = 2;
	f->config.block_bytes = 4096;
	assert_int_equal(pp_matrix_run(&f->config, &f->matrix, &err), 0);
	assert_int_equal(f->matrix.row_count, 2);
	assert_string_equal(f->matrix.rows[0].method, "fdatasync"); /* the table's order */
	assert_string_equal(f->matrix.rows[1].method, "open_sync");
	assert_int_equal(f->matrix.rows[1].write_bytes, 4096);
	f->config.only = wrong;
	assert_int_equal(pp_matrix_run(&f->config, &f->matrix, &err), -1);
	assert_non_null(strstr(err.text, "there is no method 'fdata'"));
	f->config.only = names;
	f->config.block_bytes = 1000;
	assert_int_equal(pp_matrix_run(&f->config, &f->matrix, &err), -1);
	f->config.block_bytes = 0;
	f->config.seconds = 0;
	assert_int_equal(pp_matrix_run(&f->config, &f->matrix, &err), -1);
}

/* Rows go workload, block, threads, method; each names its own; own files are gone at the end. */
static void test_axes(void **state)
{
	static const char *const names[] = { "write", "fdatasync", "open_datasync", "msync",
		"io_uring write+fdatasync", "sync_file_range" };
	static const enum pp_workload workloads[] = { PP_APPEND, PP_CREATE, PP_FALLOCATED, PP_OVERWRITE };
	struct fixture *f = *state;
	struct pp_error err = { 0 };
	size_t i;

	f->config.only = names;
	f->config.only_count = 6;
	f->config.axes = (struct pp_matrix_axes){ .workloads = 4, .blocks = 2, .thread_counts = 2,
		.block_bytes = { 4096, 16384 }, .threads = { 1, 3 } };
	memcpy(f->config.axes.workload, workloads, sizeof(workloads));
	if (pp_matrix_run(&f->config, &f->matrix, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(f->matrix.row_count, 6 * 4 * 2 * 2);
	for (i = 0; i < f->matrix.row_count; i++) {
		const struct pp_matrix_row *row = &f->matrix.rows[i];

		assert_string_equal(row->workload, pp_workload_name(workloads[i / 24]));
		assert_int_equal(row->write_bytes, i / 12 % 2 ? 16384 : 4096);
		assert_int_equal(row->threads, i / 6 % 2 ? 3 : 1);
		assert_int_equal(row->status, PP_MATRIX_OK);
		check_row(row);
	}
	f->config.axes.threads[0] = 0;
	assert_int_equal(pp_matrix_run(&f->config, &f->matrix, &err), -1);
	f->config.axes.threads[0] = 1;
	f->config.axes.workload[0] = PP_RENAME;
	assert_int_equal(pp_matrix_run(&f->config, &f->matrix, &err), -1);
	f->config.axes.workload[0] = PP_APPEND;
	f->config.axes.block_bytes[1] = 1 << 20;
	f->config.axes.threads[1] = 17;
	assert_int_equal(pp_matrix_run(&f->config, &f->matrix, &err), -1);
	assert_non_null(strstr(err.text, "do not fit"));
}

/* What grows begins anew when its room is used up, and what was written is still all there is. */
static void test_room(void **state)
{
	static const char *const names[] = { "write" };
	static const enum pp_workload workloads[] = { PP_APPEND, PP_CREATE };
	struct fixture *f = *state;
	struct pp_error err = { 0 };
	size_t i;

	f->config.only = names;
	f->config.only_count = 1;
	f->config.seconds = 0.4; /* enough for more than 32 MB into RAM, or 1024 files */
	f->config.axes = (struct pp_matrix_axes){ .workloads = 2, .blocks = 1, .block_bytes = { 1 << 20 } };
	memcpy(f->config.axes.workload, workloads, sizeof(workloads));
	f->config.axes.workloads = 1;
	for (i = 0; i < 2; i++) {
		f->config.axes.workload[0] = workloads[i];
		f->config.axes.block_bytes[0] = i ? 512 : 1 << 20;
		if (pp_matrix_run(&f->config, &f->matrix, &err) != 0)
			fail_msg("%s", err.text);
		check_row(&f->matrix.rows[0]);
		assert_true(f->matrix.rows[0].elapsed_ns <= 30000000000LL);
	}
}

/* Ends before its time once the median stands still, and says so; else it does not. */
static void test_settle(void **state)
{
	static const char *const names[] = { "write" };
	struct fixture *f = *state;
	struct pp_error err = { 0 };

	f->config.only = names;
	f->config.only_count = 1;
	f->config.settle = true;
	f->config.seconds = 30;
	assert_int_equal(pp_matrix_run(&f->config, &f->matrix, &err), 0);
	assert_true(f->matrix.rows[0].settled == (f->matrix.rows[0].elapsed_ns < 30000000000LL));
	f->config.seconds = 0.05;
	assert_int_equal(pp_matrix_run(&f->config, &f->matrix, &err), 0);
	assert_false(f->matrix.rows[0].settled);
}

static void test_throughput(void **state)
{
	struct fixture *f = *state;
	struct pp_error err = { 0 };
	size_t i;

	f->config.no_methods = f->config.throughput = true;
	f->config.throughput_bytes = 8 << 20;
	if (pp_matrix_run(&f->config, &f->matrix, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(f->matrix.row_count, 8);
	for (i = 0; i < f->matrix.row_count; i++) {
		const struct pp_matrix_row *row = &f->matrix.rows[i];

		assert_string_equal(row->section, "throughput");
		assert_string_equal(row->workload, strstr(row->label, "read") ? "read" : "write");
		check_row(row);
		if (row->status == PP_MATRIX_OK)
			assert_true(fabs(row->bytes_per_s - row->ops_per_s * row->write_bytes) <
				1e-6 * row->bytes_per_s);
		/* Each block once: a second time it would come from RAM. */
		if (row->status == PP_MATRIX_OK && strcmp(row->label, "sequential read") == 0)
			assert_true(row->ops <= 8);
	}
	f->config.compressible = 101;
	assert_int_equal(pp_matrix_run(&f->config, &f->matrix, &err), -1);
}

static void test_pg_set(void **state)
{
	struct fixture *f = *state;
	struct pp_error err = { 0 };
	size_t i;

	f->config.pg = true;
	if (pp_matrix_run(&f->config, &f->matrix, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(f->matrix.row_count, 18);
	for (i = 0; i < f->matrix.row_count; i++)
		check_row(&f->matrix.rows[i]);
	assert_int_equal(f->matrix.rows[3].status, PP_MATRIX_NA); /* fsync_writethrough */
}

/* Somebody's file is never overwritten, let alone removed. */
static void test_existing_file(void **state)
{
	struct fixture *f = *state;
	struct pp_error err = { 0 };
	char text[5] = "";
	int fd = open(f->path, O_RDWR | O_CREAT, 0600);

	assert_int_equal(write(fd, "mine", 4), 4);
	assert_int_equal(pp_matrix_run(&f->config, &f->matrix, &err), -1);
	assert_int_equal(err.class, PP_ERR_REFUSED);
	assert_int_equal(pread(fd, text, 4, 0), 4);
	assert_string_equal(text, "mine");
	assert_int_equal(lseek(fd, 0, SEEK_END), 4);
	close(fd);
	assert_int_equal(unlink(f->path), 0);
}

static void test_stop(void **state)
{
	struct fixture *f = *state;
	struct pp_error err = { 0 };

	f->stop_after = 3;
	f->config.pg = true;
	assert_int_equal(pp_matrix_run(&f->config, &f->matrix, &err), 0);
	assert_true(f->matrix.stopped);
	assert_int_equal(f->matrix.row_count, 3);
}

/* Fails fsync 1, 2, 3, ...: each time an error that names call and test, and nothing left behind. */
static void test_fault_walk(void **state)
{
	static const char *const names[] = { "fsync" };
	struct fixture *f = *state;
	int n;

	f->config.only = names;
	f->config.only_count = 1;
	f->config.seconds = 5; /* it ends at the failure, however slow the disk is */
	for (n = 1; n <= 5; n++) {
		struct pp_error err = { 0 };

		fsyncs = 0;
		fsync_fails_at = n;
		f->began = f->done = 0;
		assert_int_equal(pp_matrix_run(&f->config, &f->matrix, &err), -1);
		assert_int_equal(err.os_code, EIO);
		assert_non_null(strstr(err.text, n == 1 ? "cannot sync" : "fsync of"));
		assert_non_null(strstr(err.text, f->path));
		assert_int_equal(fsyncs, n); /* not tried again */
		assert_int_equal(access(f->path, F_OK), -1);
	}
}

static void test_no_folder(void **state)
{
	struct fixture *f = *state;
	struct pp_error err = { 0 };

	f->config.path = "/nowhere/at/all";
	assert_int_equal(pp_matrix_run(&f->config, &f->matrix, &err), -1);
	assert_int_equal(err.os_code, ENOENT);
}

static struct pp_matrix_row sample(void)
{
	struct pp_matrix_row row = {
		.section = "sizes", .label = " 2 *  8kB open_sync writes", .method = "open_sync (direct)",
		.promise = PP_PROMISE_MEDIA, .writes = 2, .write_bytes = 8192, .status = PP_MATRIX_OK,
		.ops = 123456789012ULL, .elapsed_ns = 5000000123LL, .ops_per_s = 24691.35719,
		.latency_ns_p50 = 1, .latency_ns_p90 = 2, .latency_ns_p99 = 3, .latency_ns_p999 = 4,
		.latency_ns_max = 1LL << 40, .latency_ns_mean = 0.1, .latency_variation = 1.0 / 3,
		.slice_variation = 0.07, .settled = true, .bytes_per_s = 4.0451e8,
		.workload = "overwrite", .threads = 4, .disk_writes = 7, .disk_flushes = 8,
		.disk_bytes = 1ULL << 50, .foreign_per_s = 0.5, .bytes_per_op = 8192.5, .fua_per_op = 1,
		.preflushes_per_op = 0.25,
		.counted = true, .flushes_per_op = -1, .writes_per_op = 2.0625, .foreign_traffic = true,
	};

	return row;
}

static void test_text(void **state)
{
	struct pp_matrix_row rows[2] = { sample(), sample() }, back;
	struct pp_error err = { 0 };
	struct pp_buf buf, again;
	struct pp_kv kv;

	(void)state;
	memset(&rows[1], 0, sizeof(rows[1]));
	snprintf(rows[1].label, sizeof(rows[1].label), "fsync_writethrough");
	rows[1].status = PP_MATRIX_NA;
	pp_buf_init(&buf, 100000);
	pp_buf_init(&again, 100000);
	pp_matrix_row_put(&buf, "0.", &rows[0]);
	pp_matrix_row_put(&buf, "1.", &rows[1]);
	assert_false(buf.failed);
	assert_int_equal(pp_kv_parse(&kv, buf.data, buf.bytes, &err), 0);
	assert_true(kv.count * PP_MATRIX_ROWS_A_TEXT / 2 <= PP_KV_PAIRS_MAX);
	assert_int_equal(pp_matrix_row_get(&kv, "0.", &back, &err), 0);
	pp_matrix_row_put(&again, "0.", &back);
	assert_int_equal(pp_matrix_row_get(&kv, "1.", &back, &err), 0);
	pp_matrix_row_put(&again, "1.", &back);
	assert_string_equal(again.data, buf.data);
	assert_string_equal(back.label, "fsync_writethrough");
	assert_int_equal(pp_matrix_row_get(&kv, "2.", &back, &err), -1);
	assert_int_equal(err.class, PP_ERR_PEER);
	pp_kv_release(&kv);
	pp_buf_release(&buf);
	pp_buf_release(&again);
}

/* A field at a time turned into what no row has: refused, and the key is named. */
static void test_bad_text(void **state)
{
	static const struct { const char *key, *value; } rows[] = {
		{ "threads", "-1" }, { "settled", "1" }, { "fua_per_op", "" },
		{ "promise", "medi" }, { "promise", "" }, { "status", "okay" }, { "writes", "-1" },
		{ "writes", "4294967296" }, { "ops", "x" }, { "ops_per_s", "1e" }, { "ops_per_s", "nan" },
		{ "ops_per_s", "" }, { "counted", "2" }, { "section", "seventeen letters" },
	};
	struct pp_matrix_row row = sample(), back;
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_error err = { 0 };
		struct pp_buf good, bad;
		struct pp_kv kv;

		pp_buf_init(&good, 100000);
		pp_buf_init(&bad, 100000);
		pp_matrix_row_put(&good, "", &row);
		assert_int_equal(pp_kv_parse(&kv, good.data, good.bytes, &err), 0);
		for (k = 0; k < kv.count; k++)
			pp_kv_add(&bad, kv.pairs[k].key, strcmp(kv.pairs[k].key, rows[i].key) == 0
				? rows[i].value : kv.pairs[k].value);
		pp_kv_release(&kv);
		assert_int_equal(pp_kv_parse(&kv, bad.data, bad.bytes, &err), 0);
		assert_int_equal(pp_matrix_row_get(&kv, "", &back, &err), -1);
		assert_int_equal(err.class, PP_ERR_PEER);
		assert_non_null(strstr(err.text, rows[i].key));
		pp_kv_release(&kv);
		pp_buf_release(&good);
		pp_buf_release(&bad);
	}
}

static void test_warnings(void **state)
{
	static const struct {
		const char *method;
		enum pp_promise promise;
		enum pp_matrix_status status;
		bool counted, foreign;
		double flushes;
		int64_t p50;
		const char *text;
		double fua; /* 0: not traced */
		uint32_t threads;
	} rows[] = {
		{ "fsync", PP_PROMISE_MEDIA, PP_MATRIX_OK, true, false, 1, 90000, NULL, 0, 0 },
		{ "fsync", PP_PROMISE_MEDIA, PP_MATRIX_OK, true, false, 0, 90000, "did not ask", 0, 0 },
		{ "fsync", PP_PROMISE_MEDIA, PP_MATRIX_OK, true, false, 0.49, 90000, "did not ask", 0, 0 },
		{ "fsync", PP_PROMISE_MEDIA, PP_MATRIX_OK, false, false, -1, 90000, NULL, 0, 0 },
		{ "fsync", PP_PROMISE_MEDIA, PP_MATRIX_OK, true, false, -1, 90000, NULL, 0, 0 },
		/* FUA is not counted as a flush: nothing follows from 0. */
		{ "open_datasync (direct)", PP_PROMISE_MEDIA, PP_MATRIX_OK, true, false, 0, 90000, NULL, 0, 0 },
		{ "write", PP_PROMISE_NONE, PP_MATRIX_OK, true, false, 0, 900, NULL, 0, 0 },
		{ "fsync", PP_PROMISE_MEDIA, PP_MATRIX_OK, true, false, 1, 4999, "faster than", 0, 0 },
		{ "fsync", PP_PROMISE_MEDIA, PP_MATRIX_OK, true, true, 1, 90000, "others use", 0, 0 },
		/* A busy disk's counts accuse nobody. */
		{ "fsync", PP_PROMISE_MEDIA, PP_MATRIX_OK, true, true, 0, 90000, "others use", 0, 0 },
		{ "fsync", PP_PROMISE_NA, PP_MATRIX_NA, false, false, 0, 0, NULL, 0, 0 },
		/* But where FUA was traced, it does. */
		{ "open_datasync (direct)", PP_PROMISE_MEDIA, PP_MATRIX_OK, true, false, 0, 90000, NULL, 1, 0 },
		{ "open_datasync (direct)", PP_PROMISE_MEDIA, PP_MATRIX_OK, true, false, 0, 90000,
			"did not ask", 0.01, 0 },
		/* Threads share a flush. */
		{ "fsync", PP_PROMISE_MEDIA, PP_MATRIX_OK, true, false, 0.3, 90000, NULL, 0, 4 },
		{ "fsync", PP_PROMISE_MEDIA, PP_MATRIX_OK, true, false, 0.1, 90000, "did not ask", 0, 4 },
		/* What goes past the block layer is not in its counters. */
		{ "NVMe flush", PP_PROMISE_MEDIA, PP_MATRIX_OK, true, false, 0, 90000, NULL, 0, 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_matrix_row row = { .promise = rows[i].promise, .status = rows[i].status,
			.counted = rows[i].counted, .foreign_traffic = rows[i].foreign,
			.flushes_per_op = rows[i].flushes, .latency_ns_p50 = rows[i].p50,
			.fua_per_op = rows[i].fua > 0 ? rows[i].fua : -1, .threads = rows[i].threads };
		const char *text;

		snprintf(row.method, sizeof(row.method), "%s", rows[i].method);
		text = pp_matrix_row_warning(&row);
		if (!rows[i].text)
			assert_null(text);
		else
			assert_true(text && strstr(text, rows[i].text));
	}
}

static void test_counters(void **state)
{
	struct pp_disk_counters c;

	(void)state;
	assert_true(pp_disk_counters_parse("   72565    25697  3127842    40977   307606    15548  "
		"3787416    15039        0    36056    61772     6976       67   355528      739   "
		"146114     5016\n", &c));
	assert_true(c.reads == 72565 && c.writes == 307606 && c.sectors_written == 3787416);
	assert_true(c.sectors_read == 3127842);
	assert_true(c.has_flushes && c.flushes == 146114);
	/* Before Linux 5.5 (no flushes), before 4.18 (no discards). */
	assert_true(pp_disk_counters_parse("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n", &c));
	assert_true(c.writes == 5 && !c.has_flushes);
	assert_true(pp_disk_counters_parse("1 2 3 4 5 6 7 8 9 10 11\n", &c));
	assert_false(pp_disk_counters_parse("", &c));
	assert_false(pp_disk_counters_parse("1 2 3 4 5 6", &c));
	assert_false(pp_disk_counters_parse("a b c d e f g h", &c));
}

static void test_no_disk(void **state)
{
	struct pp_disk_source source;
	struct pp_error err = { 0 };

	(void)state;
	assert_int_equal(pp_disk_source_open("/proc/self", &source, &err), -1);
	assert_int_equal(err.class, PP_ERR_UNSUPPORTED);
	assert_int_equal(source.fd, -1);
	assert_int_equal(pp_disk_source_open_name("../etc", &source, &err), -1);
	pp_disk_source_close(&source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_own_set, setup, teardown),
		cmocka_unit_test_setup_teardown(test_only, setup, teardown),
		cmocka_unit_test_setup_teardown(test_axes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_settle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_throughput, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pg_set, setup, teardown),
		cmocka_unit_test_setup_teardown(test_existing_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fault_walk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_folder, setup, teardown),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_bad_text),
		cmocka_unit_test(test_warnings),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_no_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
