/* SPDX-License-Identifier: MIT
 *
 * Goal: the judge reads what the listener wrote, a torn end is told, and nothing else is believed.
 * Method: ledgers written by the real writer, then cut at every byte and flipped at every byte; a
 * full disk by RLIMIT_FSIZE; the questions of M4.9, M5.1 and M8.1 on hand-made runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/file.h"
#include "tests/janitor.h"
#include "verifier/ledger.h"

static char dir[] = "/tmp/pp-ledger-XXXXXX";
static char path[64];
static const struct pp_run_id run = { { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } };
static struct pp_error err;

static int set_up(void **state)
{
	(void)state;
	if (!janitor_mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/acks.ledger", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static struct pp_ledger *create(uint32_t lanes)
{
	struct pp_ledger *l;

	unlink(path);
	l = pp_ledger_create(path, &run, lanes, &err);
	assert_non_null(l);
	return l;
}

static struct pp_ledger_data finish(struct pp_ledger *l)
{
	struct pp_ledger_data d;

	assert_int_equal(pp_ledger_close(l, &err), 0);
	assert_int_equal(pp_ledger_load(path, &d, &err), 0);
	return d;
}

static void write_read(void **state)
{
	struct pp_ledger *l = create(3);
	struct pp_ledger_data d;

	(void)state;
	assert_null(pp_ledger_create(path, &run, 3, &err)); /* never overwritten */
	assert_int_equal(pp_ledger_mark(l, 5, PP_MARK_WRITING, 42, &err), 0);
	assert_int_equal(pp_ledger_ack(l, 10, 0, 1, 1, &err), 0);
	assert_int_equal(pp_ledger_ack(l, 20, 2, 1, 4, &err), 0);
	assert_int_equal(pp_ledger_beat(l, 25, 100, 200, 300, &err), 0);
	assert_int_equal(pp_ledger_ack(l, 30, 0, 2, 9, &err), 0);
	assert_int_equal(pp_ledger_frame(l, 31, &err), 0);
	assert_int_equal(pp_ledger_frame(l, 31, &err), 0); /* not later: nothing */
	assert_int_equal(pp_ledger_closed(l, 40, PP_CLOSE_RST, &err), 0);
	assert_int_equal(pp_ledger_acked(l, 0), 9);
	assert_int_equal(pp_ledger_acked(l, 1), 0);
	d = finish(l);
	assert_int_equal(d.count, 7);
	assert_false(d.truncated);
	assert_true(pp_run_id_equal(&d.run, &run));
	assert_int_equal(d.lanes, 3);
	assert_int_equal(d.entries[0].type, PP_LEDGER_MARK);
	assert_int_equal(d.entries[0].small, PP_MARK_WRITING);
	assert_int_equal(d.entries[0].a, 42);
	assert_int_equal(d.entries[3].type, PP_LEDGER_BEAT);
	assert_int_equal(d.entries[3].b, 200);
	assert_int_equal(pp_ledger_data_acked(&d, 0), 9);
	assert_int_equal(pp_ledger_data_acked(&d, 1), 0);
	assert_int_equal(pp_ledger_data_acked(&d, 2), 4);
	assert_int_equal(pp_ledger_data_acked(&d, 3), 0);
	assert_int_equal(pp_ledger_data_records(&d), 13);
	pp_ledger_data_release(&d);
}

/* A record's order is its witness: the ledger takes no ack out of order (design, section 3). */
static void gaps_are_refused(void **state)
{
	static const struct { uint32_t lane; uint64_t first, last; } bad[] = {
		{ 0, 5, 5 }, { 0, 3, 3 }, { 0, 0, 0 }, { 0, 4, 3 }, { 0, 4, UINT64_MAX }, { 2, 1, 1 },
		{ 1, 2, 2 }, { UINT32_MAX, 1, 1 },
	};
	struct pp_ledger *l = create(2);
	struct pp_ledger_data d;
	size_t i;

	(void)state;
	assert_int_equal(pp_ledger_ack(l, 1, 0, 1, 3, &err), 0);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(pp_ledger_ack(l, 2, bad[i].lane, bad[i].first, bad[i].last, &err), -1);
		assert_int_equal(err.class, PP_ERR_EVIDENCE);
	}
	assert_int_equal(pp_ledger_ack(l, 3, 0, 4, 4, &err), 0);
	d = finish(l);
	assert_int_equal(d.count, 2);
	pp_ledger_data_release(&d);
}

static void questions(void **state)
{
	struct pp_ledger *l = create(2);
	struct pp_ledger_data d;
	int64_t t;

	(void)state;
	pp_ledger_mark(l, 90, PP_MARK_OFF_SENT, 0, &err);
	pp_ledger_beat(l, 100, 0, 0, 7, &err);
	pp_ledger_ack(l, 110, 0, 1, 2, &err);
	pp_ledger_beat(l, 120, 0, 0, 8, &err);  /* rose */
	pp_ledger_ack(l, 130, 1, 1, 5, &err);
	pp_ledger_beat(l, 140, 9, 0, 8, &err);  /* did not */
	pp_ledger_ack(l, 170, 0, 3, 3, &err);
	pp_ledger_closed(l, 500, PP_CLOSE_TIMEOUT, &err);
	pp_ledger_closed(l, 600, PP_CLOSE_RST, &err);
	pp_ledger_closed(l, 700, PP_CLOSE_LOCAL, &err);
	pp_ledger_mark(l, 800, PP_MARK_OFF_SENT, 0, &err);
	d = finish(l);
	assert_int_equal(pp_ledger_t_acked(&d, 0, 0), PP_LEDGER_NEVER);
	assert_int_equal(pp_ledger_t_acked(&d, 0, 1), 110);
	assert_int_equal(pp_ledger_t_acked(&d, 0, 2), 110);
	assert_int_equal(pp_ledger_t_acked(&d, 0, 3), 170);
	assert_int_equal(pp_ledger_t_acked(&d, 0, 4), PP_LEDGER_NEVER);
	assert_int_equal(pp_ledger_t_acked(&d, 1, 5), 130);
	assert_int_equal(pp_ledger_t_acked(&d, 9, 1), PP_LEDGER_NEVER);
	/* M5.1: what the controller did after the cut is no sign of life */
	assert_int_equal(pp_ledger_t_last(&d), 170);
	assert_int_equal(pp_ledger_t_last_ack(&d), 170);
	/* M8.1: intervals 20 and 40, the lower of the middle two */
	assert_int_equal(pp_ledger_median_ack_interval_ns(&d), 20);
	assert_int_equal(pp_ledger_t_flush_rose(&d), 120);
	assert_int_equal(pp_ledger_first_beat(&d)->t_ns, 100);
	assert_int_equal(pp_ledger_last_beat(&d)->a, 9);
	assert_int_equal(pp_ledger_last_close(&d, &t), PP_CLOSE_LOCAL);
	assert_int_equal(t, 700);
	assert_int_equal(pp_ledger_first_orderly_close(&d, &t), PP_CLOSE_RST);
	assert_int_equal(t, 600);
	assert_int_equal(pp_ledger_t_mark(&d, PP_MARK_OFF_SENT), 90);
	assert_int_equal(pp_ledger_t_mark(&d, PP_MARK_ON_SENT), PP_LEDGER_NEVER);
	pp_ledger_data_release(&d);
}

static void nothing_happened(void **state)
{
	struct pp_ledger_data d = finish(create(1));
	int64_t t;

	(void)state;
	assert_int_equal(d.count, 0);
	assert_int_equal(pp_ledger_t_last(&d), PP_LEDGER_NEVER);
	assert_int_equal(pp_ledger_t_last_ack(&d), PP_LEDGER_NEVER);
	assert_int_equal(pp_ledger_median_ack_interval_ns(&d), PP_LEDGER_NEVER);
	assert_int_equal(pp_ledger_t_flush_rose(&d), PP_LEDGER_NEVER);
	assert_null(pp_ledger_first_beat(&d));
	assert_null(pp_ledger_last_beat(&d));
	assert_int_equal(pp_ledger_last_close(&d, &t), PP_CLOSE_NOT);
	assert_int_equal(pp_ledger_first_orderly_close(&d, NULL), PP_CLOSE_NOT);
	pp_ledger_data_release(&d);
	d = finish(create(1)); /* and a beat alone has not risen */
	pp_ledger_data_release(&d);
}

static struct pp_buf sample(void)
{
	struct pp_ledger *l = create(2);
	struct pp_buf buf;
	uint64_t i;

	for (i = 1; i <= 6; i++)
		assert_int_equal(pp_ledger_ack(l, (int64_t)i, i & 1, (i + 1) / 2, (i + 1) / 2, &err), 0);
	assert_int_equal(pp_ledger_close(l, &err), 0);
	pp_buf_init(&buf, 1 << 20);
	assert_int_equal(pp_file_read(path, &buf, &err), 0);
	return buf;
}

/* M5.6, M8.3: what a crash left is read, and said to be incomplete. */
static void a_torn_end_is_dropped_and_told(void **state)
{
	struct pp_buf buf = sample();
	struct pp_ledger_data d;
	size_t n;

	(void)state;
	for (n = 0; n <= buf.bytes; n++) {
		int rc = pp_ledger_read(buf.data, n, &d, &err);

		if (n < 64) {
			assert_int_equal(rc, -1);
			continue;
		}
		assert_int_equal(rc, 0);
		assert_int_equal(d.count, (n - 64) / 40);
		assert_int_equal(d.truncated, (n - 64) % 40 != 0);
		assert_int_equal(d.dropped_bytes, (n - 64) % 40);
		pp_ledger_data_release(&d);
	}
	memset(buf.data + 64 + 4 * 40, 0, 80); /* blocks that never reached the disk */
	assert_int_equal(pp_ledger_read(buf.data, buf.bytes, &d, &err), 0);
	assert_int_equal(d.count, 4);
	assert_true(d.truncated);
	assert_int_equal(d.dropped_bytes, 80);
	pp_ledger_data_release(&d);
	pp_buf_release(&buf);
}

static void every_flipped_byte_is_seen(void **state)
{
	struct pp_buf buf = sample();
	struct pp_ledger_data d;
	size_t i;

	(void)state;
	for (i = 0; i < buf.bytes; i++) {
		int rc;

		buf.data[i] ^= 0x10;
		rc = pp_ledger_read(buf.data, buf.bytes, &d, &err);
		buf.data[i] ^= 0x10;
		if (i < buf.bytes - 40) {
			if (rc != -1)
				fail_msg("byte %zu", i);
			assert_int_equal(err.class, PP_ERR_EVIDENCE);
			continue;
		}
		assert_int_equal(rc, 0); /* the last entry: cannot be told from a torn one */
		assert_true(d.truncated);
		pp_ledger_data_release(&d);
	}
	pp_buf_release(&buf);
}

static void moved_and_foreign_entries_are_refused(void **state)
{
	static const struct pp_run_id other = { { 9 } };
	struct pp_buf buf = sample(), foreign;
	struct pp_ledger_data d;
	struct pp_ledger *l;
	char entry[40];

	(void)state;
	memcpy(entry, buf.data + 64, 40); /* two entries change places */
	memcpy(buf.data + 64, buf.data + 104, 40);
	memcpy(buf.data + 104, entry, 40);
	assert_int_equal(pp_ledger_read(buf.data, buf.bytes, &d, &err), -1);
	pp_buf_release(&buf);
	buf = sample();
	memmove(buf.data + 104, buf.data + 144, buf.bytes - 144); /* one is missing */
	assert_int_equal(pp_ledger_read(buf.data, buf.bytes - 40, &d, &err), 0);
	assert_int_equal(d.count, 1);
	assert_true(d.truncated);
	pp_ledger_data_release(&d);
	pp_buf_release(&buf);
	buf = sample();
	unlink(path);
	l = pp_ledger_create(path, &other, 2, &err);
	assert_int_equal(pp_ledger_ack(l, 1, 1, 1, 1, &err), 0);
	assert_int_equal(pp_ledger_close(l, &err), 0);
	pp_buf_init(&foreign, 1 << 20);
	assert_int_equal(pp_file_read(path, &foreign, &err), 0);
	memcpy(buf.data + 64, foreign.data + 64, 40); /* the same ack of another run */
	assert_int_equal(pp_ledger_read(buf.data, buf.bytes, &d, &err), -1);
	pp_buf_release(&foreign);
	pp_buf_release(&buf);
}

/* A file that may not grow stands for a full disk: EFBIG instead of ENOSPC, the same path. */
static void a_full_disk_is_final(void **state)
{
	struct rlimit before, small = { 64 + 40 * 100 + 20, RLIM_INFINITY };
	struct pp_ledger *l = create(1);
	struct pp_ledger_data d;
	uint64_t i;
	int rc = 0;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	small.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (i = 1; i <= 1000 && rc == 0; i++) {
		rc = pp_ledger_ack(l, (int64_t)i, 0, i, i, &err);
		if (rc == 0 && i % 7 == 0)
			rc = pp_ledger_flush(l, &err);
	}
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(rc, -1);
	assert_int_equal(err.class, PP_ERR_SYSTEM);
	assert_non_null(strstr(err.text, path));
	assert_true(pp_ledger_failed(l));
	/* also now that there would be room again */
	assert_int_equal(pp_ledger_beat(l, 1, 1, 1, 1, &err), -1);
	assert_int_equal(pp_ledger_mark(l, 1, PP_MARK_FAILED, 0, &err), -1);
	assert_int_equal(pp_ledger_sync(l, &err), -1);
	assert_int_equal(pp_ledger_close(l, &err), -1);
	assert_int_equal(pp_ledger_load(path, &d, &err), 0);
	assert_int_equal(d.count, 100); /* whole entries that fitted stay */
	assert_false(d.truncated);
	pp_ledger_data_release(&d);
}

static void many_entries_between_flushes(void **state)
{
	struct pp_ledger *l = create(7);
	struct pp_ledger_data d;
	uint64_t i;

	(void)state;
	for (i = 0; i < 70000; i++)
		assert_int_equal(pp_ledger_ack(l, (int64_t)(1000 + i), i % 7, i / 7 + 1, i / 7 + 1, &err),
			0);
	d = finish(l);
	assert_int_equal(d.count, 70000);
	for (i = 0; i < 70000; i += 11)
		assert_int_equal(pp_ledger_t_acked(&d, i % 7, i / 7 + 1), 1000 + i);
	assert_int_equal(pp_ledger_median_ack_interval_ns(&d), 1);
	pp_ledger_data_release(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_read), cmocka_unit_test(gaps_are_refused),
		cmocka_unit_test(questions), cmocka_unit_test(nothing_happened),
		cmocka_unit_test(a_torn_end_is_dropped_and_told),
		cmocka_unit_test(every_flipped_byte_is_seen),
		cmocka_unit_test(moved_and_foreign_entries_are_refused),
		cmocka_unit_test(a_full_disk_is_final),
		cmocka_unit_test(many_entries_between_flushes),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
