/* SPDX-License-Identifier: MIT
 *
 * Goal: one look shows which policy of the write cache breaks which method. Method: verdicts made up
 * arm by arm; the table must hold their words in the right cells, within 80 columns, and be missing where
 * the arms of a drive do not differ in policy. Guards M1.3 in the report.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "verifier/report.h"

#define ARMS_MAX 16

static struct pp_verdict_arm arms[ARMS_MAX];
static size_t count;
static char text[65536];

static struct pp_verdict_arm *add(const char *serial, const char *method, const char *setting,
	enum pp_arm_verdict verdict)
{
	struct pp_verdict_arm *arm = &arms[count++];

	memset(arm, 0, sizeof(*arm));
	snprintf(arm->key.serial, sizeof(arm->key.serial), "%s", serial);
	snprintf(arm->key.method, sizeof(arm->key.method), "%s", method);
	snprintf(arm->key.setting, sizeof(arm->key.setting), "%s", setting);
	snprintf(arm->key.policy, sizeof(arm->key.policy), "by its word: %s", setting);
	strcpy(arm->key.workload, "overwrite");
	strcpy(arm->key.target, "file");
	strcpy(arm->key.pattern, "sequential");
	arm->key.lanes = arm->key.group = 1;
	arm->key.record_bytes = 8192;
	arm->verdict = verdict;
	arm->promise = strcmp(method, "direct") ? PP_PROMISE_MEDIA : PP_PROMISE_NONE;
	arm->lost_age_ns_min = arm->lost_age_ns_max = -1;
	return arm;
}

static const char *report(bool html)
{
	struct pp_verdict verdict = { .arms = arms, .arm_count = count };
	const struct pp_report_source source = { .folder = "f", .name = "n", .started = "",
		.seal_sha256 = "", .sealed = true };
	struct pp_report_input input = { .verdict = &verdict, .source = &source };
	struct pp_error err = { 0 };
	struct pp_buf out;

	strcpy(verdict.criterion.text, "95/90");
	pp_buf_init(&out, sizeof(text) - 1);
	if ((html ? pp_report_html(&input, 1, NULL, &out, &err) : pp_report_text(&input, &out, &err)) != 0)
		fail_msg("%s", err.text);
	snprintf(text, sizeof(text), "%s", out.data);
	pp_buf_release(&out);
	return text;
}

static void fill(void)
{
	count = 0;
	add("S1", "open_datasync (direct)", "cache-on", PP_ARM_UNSAFE);
	add("S1", "open_datasync (direct)", "cache-off", PP_ARM_SAFE);
	add("S1", "open_datasync (direct)", "flushing-off", PP_ARM_INCONCLUSIVE);
	add("S1", "fdatasync", "cache-on", PP_ARM_SAFE);
	add("S1", "fdatasync", "flushing-off", PP_ARM_UNSAFE);
	add("S1", "direct", "cache-on", PP_ARM_LOSES);
	add("S1", "direct", "cache-off", PP_ARM_KEEPS);
	add("S2", "fdatasync", "cache-on", PP_ARM_SAFE);
	add("S3", "fdatasync", "", PP_ARM_SAFE);
}

static void test_text(void **state)
{
	static const char table[] =
		"policy:                 cache-on      cache-off     flushing-off\n"
		"open_datasync (direct)  UNSAFE        SAFE          INCONCLUSIVE\n"
		"fdatasync               SAFE          -             UNSAFE\n"
		"direct                  LOSES         KEEPS         -\n";
	const char *at, *end;

	(void)state;
	fill();
	if (!strstr(report(false), table))
		fail_msg("%s", text);
	/* One policy, or none, makes no table. */
	assert_null(strstr(strstr(text, "policy:") + 1, "policy:"));
	for (at = text; *at; at = end + (*end == '\n')) {
		end = at + strcspn(at, "\n");
		assert_true(end - at <= 80);
	}
}

static void test_html(void **state)
{
	(void)state;
	fill();
	report(true);
	assert_non_null(strstr(text, "<th class=\"l\">cache-on</th><th class=\"l\">cache-off</th>"
		"<th class=\"l\">flushing-off</th>"));
	assert_non_null(strstr(text, "<td class=\"l\">fdatasync</td><td class=\"v SAFE\">SAFE</td>"
		"<td class=\"l\">-</td><td class=\"v UNSAFE\">UNSAFE</td>"));
	assert_non_null(strstr(text, "<td class=\"l\">direct</td><td class=\"v\">LOSES</td>"));
}

/* Rows that differ in more are not one, and where two arms share a cell the worse word stands there. */
static void test_rows(void **state)
{
	(void)state;
	fill();
	add("S1", "fdatasync", "cache-off", PP_ARM_SAFE)->key.lanes = 4;
	strcpy(add("S1", "fdatasync", "cache-on", PP_ARM_INCONCLUSIVE)->key.kernel, "other");
	report(false);
	assert_non_null(strstr(text, "fdatasync, sequential, 4 lanes of 1, 8192 bytes\n"
		"                        -             SAFE          -\n"));
	assert_non_null(strstr(text, "fdatasync, sequential, 1 lane of 1, 8192 bytes\n"
		"                        INCONCLUSIVE  -             UNSAFE\n"));
}

/* What SAFE rests on is told of the policy that it rests on. */
static void test_rests(void **state)
{
	(void)state;
	fill();
	assert_null(strstr(report(false), "rests on the drive's word"));
	arms[1].rests_on_protection = true;
	report(false);
	assert_non_null(strstr(text, "SAFE under cache-off"));
	assert_null(strstr(text, "rests on protection"));
	arms[3].rests_on_protection = true;
	assert_non_null(strstr(report(false), "SAFE rests on protection"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_html),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_rests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
