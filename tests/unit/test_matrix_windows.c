/* SPDX-License-Identifier: MIT
 *
 * Goal: published results of Windows systems, as a drive with those latencies gives them, print as
 * pg_test_fsync's table and raise the suspicions that they deserve and no others (M10.2); our own
 * table of the same drive says the same, and a drive that waits for write-through raises none.
 * Method: the matrix's calls and clock are a fake: an operation moves the clock by the latency of
 * its method, and nobody waits. Figures are those of PostgreSQL's thread "Windows now has
 * fdatasync()", operations a second; 0: the system has it not.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/cli/matrix_show.h"
#include "src/core/assess.h"
#include "writer/matrix_parts.h"

enum { WT_DIRECT, WT_BUFFERED, FDATASYNC, FSYNC, WRITETHROUGH, FIGURES };

static const struct published {
	const char *what, *cache;
	double rate[FIGURES];
	bool footgun;
	size_t pg_findings; /* direct and buffered; with two writes, each its own sync, at half the rate */
} published[] = {
	{ "NVMe, Windows 11, cache on", "on", { 27306, 27306, 3065, 2577, 2577 }, true, 2 },
	{ "the same, cache off", "off", { 3477, 3477, 3263, 1641, 1641 }, false, 0 },
	{ "SATA, Windows 8.1", NULL, { 19934, 19934, 231, 240, 240 }, true, 4 },
	{ "virtual SATA, Windows 10", NULL, { 7914, 6593, 650, 512, 551 }, true, 4 },
};

static const struct published *drive;
static int64_t now_ns;
static bool made;

/* ---- the drive ----------------------------------------------------------------------------------- */

static double rate_of(const struct pp_method *m)
{
	static const struct { const char *name; int figure; } of[] = {
		{ "open_datasync", WT_BUFFERED }, { "open_datasync (direct)", WT_DIRECT },
		{ "fdatasync", FDATASYNC }, { "fdatasync (direct)", FDATASYNC }, { "fsync", FSYNC },
		{ "fsync (direct)", FSYNC }, { "fsync_writethrough", WRITETHROUGH },
		{ "fsync_writethrough (direct)", WRITETHROUGH },
	};
	size_t i;

	for (i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (strcmp(of[i].name, m->name) == 0)
			return drive->rate[of[i].figure];
	return m->sync == PP_SYNC_NONE && !m->o_dsync ? 400000 : 0;
}

static int make(struct matrix_bench *b, struct pp_error *err)
{
	(void)err;
	made = true;
	b->created = true;
	return 0;
}

static int remove_it(struct matrix_bench *b, struct pp_error *err)
{
	(void)b;
	(void)err;
	made = false;
	return 0;
}

static void look(struct matrix_bench *b)
{
	strcpy(b->matrix->no_disk_reason, "nobody counts here");
	b->matrix->direct_works = true;
}

static int op_begin(struct matrix_op *op, const struct matrix_bench *b,
	const struct matrix_test *test, uint32_t thread)
{
	(void)thread;
	op->config = b->config;
	op->test = test;
	op->method = pp_method_find(test->method);
	assert_true(pp_method_on(op->method, PP_SYSTEM_WINDOWS));
	if (rate_of(op->method) > 0)
		return 0;
	pp_fail(&op->e.why, PP_ERR_UNSUPPORTED, "this drive's system has it not");
	return matrix_op_fail(&op->e, "setting up", 0);
}

static bool op_full(const struct matrix_op *op)
{
	(void)op;
	return false;
}

static int op_do(struct matrix_op *op)
{
	uint32_t syncs = op->method->o_dsync ? op->test->writes : 1;

	now_ns += (int64_t)(syncs * 1e9 / rate_of(op->method));
	return 0;
}

static int op_end(struct matrix_op *op)
{
	(void)op;
	return 0;
}

static enum disk_code code_of(int64_t os_code)
{
	(void)os_code;
	return DISK_CODE_OTHER;
}

static int64_t clock_ns(void)
{
	return now_ns;
}

static void sleep_ms(int64_t ms)
{
	now_ns += ms * 1000000;
}

static const struct pp_matrix_calls calls = {
	.system = PP_SYSTEM_WINDOWS, .make = make, .remove = remove_it, .look = look, .code = code_of,
	.op_begin = op_begin, .op_full = op_full, .op_do = op_do, .op_end = op_end,
	.now_ns = clock_ns, .sleep_ms = sleep_ms,
};

/* ---- what is printed ----------------------------------------------------------------------------- */

static struct pp_matrix matrix;
static char text[65536];
static int stdout_fd;
static FILE *caught;

static void catch_stdout(void)
{
	fflush(stdout);
	caught = tmpfile();
	stdout_fd = dup(1);
	assert_true(caught && stdout_fd >= 0 && dup2(fileno(caught), 1) == 1);
}

static void release_stdout(void)
{
	size_t n;

	fflush(stdout);
	dup2(stdout_fd, 1);
	close(stdout_fd);
	rewind(caught);
	n = fread(text, 1, sizeof(text) - 1, caught);
	text[n] = '\0';
	fclose(caught);
}

/* Returns after `text` holds what a person would have seen. */
static void measure(bool pg)
{
	volatile sig_atomic_t stop = 0;
	struct pp_matrix_printer printer = { .seconds = 5, .stop = &stop };
	struct pp_matrix_config config = { .calls = &calls, .path = "D:/x", .pg = pg, .seconds = 5,
		.stop = &stop, .ctx = &printer,
		.began = pg ? pp_matrix_pg_began : pp_matrix_table_began,
		.done = pg ? pp_matrix_pg_done : pp_matrix_table_done };
	struct pp_error err = { 0 };
	int rc;

	now_ns = 1;
	catch_stdout();
	rc = pp_matrix_run(&config, &matrix, &err);
	if (rc == 0 && pg)
		pp_matrix_pg_end(&printer);
	else if (rc == 0)
		rc = pp_matrix_table_end(&matrix, &err);
	release_stdout();
	if (rc != 0)
		fail_msg("%s", err.text);
	assert_false(made);
}

/* The figure behind a label in the first table of pg_test_fsync's layout; 0: n/a. */
static double figure(const char *label)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), "        %-30s", label);
	at = strstr(text, key);
	assert_non_null(at);
	return strtod(at + strlen(key), NULL);
}

/* ---- assess -------------------------------------------------------------------------------------- */

static struct pp_assess_input input;
static struct pp_assess_finding findings[64];

static size_t fired(size_t count, const char *rule)
{
	size_t i, n = 0;

	for (i = 0; i < count; i++)
		n += strcmp(findings[i].rule, rule) == 0;
	return n;
}

static void test_pg_layout(void **state)
{
	static const char *const labels[FIGURES] = { "open_datasync (direct)",
		"open_datasync (buffered)", "fdatasync", "fsync", "fsync_writethrough" };
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
		struct pp_error err = { 0 };
		size_t count;

		drive = &published[i];
		measure(true);
		for (k = 0; k < FIGURES; k++)
			if (fabs(figure(labels[k]) - drive->rate[k]) > 0.001 * drive->rate[k])
				fail_msg("%s: %s is %f", drive->what, labels[k], figure(labels[k]));
		assert_non_null(strstr(text, "        open_sync                                       n/a\n"));
		assert_null(strstr(text, "n/a*"));
		/* Two writes: each its own sync where the write is one, else one for both. */
		assert_true(matrix.rows[6].section[0] == 't' && fabs(matrix.rows[6].ops_per_s -
			drive->rate[WT_DIRECT] / 2) < 1 + 0.001 * drive->rate[WT_DIRECT]);
		if (pp_assess_read(text, strlen(text), &input, &err) != 0)
			fail_msg("%s", err.text);
		assert_string_equal(input.format, "pg_test_fsync");
		if (drive->cache)
			assert_int_equal(pp_assess_fact("cache", drive->cache, &input.facts, &err), 0);
		count = pp_assess(&input, findings, 64);
		if (count != fired(count, "footgun") || count != drive->pg_findings)
			fail_msg("%s: %zu findings, %s", drive->what, count,
				count ? findings[0].text : "");
	}
}

/* Our own table: the same figures, the same words beneath it, on the spot. */
static void test_own_table(void **state)
{
	size_t i, k, warnings;
	const char *at;

	(void)state;
	for (i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
		drive = &published[i];
		measure(false);
		assert_int_equal(matrix.row_count, pp_method_count_of(PP_SYSTEM_WINDOWS));
		for (k = 0; k < matrix.row_count; k++) {
			const struct pp_matrix_row *row = &matrix.rows[k];
			double rate = rate_of(pp_method_find(row->method));

			assert_int_equal(row->status, rate > 0 ? PP_MATRIX_OK : PP_MATRIX_NA);
			if (rate > 0 && fabs(row->ops_per_s - rate) > 0.001 * rate)
				fail_msg("%s: %s is %f", drive->what, row->label, row->ops_per_s);
		}
		assert_non_null(strstr(text, "n/a: this drive's system has it not"));
		for (warnings = 0, at = text; (at = strstr(at, "\nwarning: open_datasync")); at++)
			warnings++;
		assert_int_equal(warnings, drive->footgun ? 2 : 0);
		assert_int_equal(strstr(text, "\nwarning: ") != NULL, drive->footgun);
		assert_non_null(strstr(text, "flushes not counted: nobody counts here\n"));
	}
}

/* JSON of the same is read back as the same, finding by finding. */
static void test_json(void **state)
{
	size_t i, k, count, direct;

	(void)state;
	for (i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
		static struct pp_assess_input from_matrix;
		struct pp_matrix_facts facts = { .path = "D:/x \"y\"\\z\n", .seconds = 5 };
		struct pp_error err = { 0 };
		char *json;

		drive = &published[i];
		measure(false);
		json = pp_matrix_json(&facts, &matrix);
		assert_non_null(json);
		if (pp_assess_read(json, strlen(json), &input, &err) != 0)
			fail_msg("%s", err.text);
		free(json);
		pp_matrix_assess_input(&matrix, &from_matrix);
		assert_int_equal(input.count, from_matrix.count);
		for (k = 0; k < input.count; k++) {
			const struct pp_assess_row *a = &input.rows[k], *b = &from_matrix.rows[k];

			assert_string_equal(a->label, b->label);
			assert_string_equal(a->group, b->group);
			assert_true(a->kind == b->kind && a->media == b->media &&
				a->in_place == b->in_place && a->threads == b->threads &&
				a->may_send_fua == b->may_send_fua &&
				fabs(a->ops_per_s - b->ops_per_s) < 1e-6 * a->ops_per_s &&
				a->flushes_per_op == b->flushes_per_op && a->foreign == b->foreign);
		}
		count = pp_assess(&input, findings, 64);
		direct = pp_assess(&from_matrix, findings, 64);
		assert_int_equal(count, direct);
		assert_int_equal(count, drive->footgun ? 2 : 0);
	}
}

/* The same as text by hand, with what is known of the drive. */
static void test_list(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
		const struct published *p = &published[i];
		struct pp_error err = { 0 };
		size_t count;

		snprintf(text, sizeof(text), "cache: %s\nopen_datasync (direct): %.0f ops/s\n"
			"open_datasync (buffered): %.0f ops/s\nfdatasync: %.0f ops/s\nfsync: %.0f ops/s\n"
			"fsync_writethrough: %.0f ops/s\n", p->cache ? p->cache : "on", p->rate[0],
			p->rate[1], p->rate[2], p->rate[3], p->rate[4]);
		if (pp_assess_read(text, strlen(text), &input, &err) != 0)
			fail_msg("%s: %s", p->what, err.text);
		count = pp_assess(&input, findings, 64);
		assert_int_equal(fired(count, "footgun"), p->footgun ? 2 : 0);
		assert_int_equal(count, fired(count, "footgun"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pg_layout),
		cmocka_unit_test(test_own_table),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
