/* SPDX-License-Identifier: MIT
 *
 * Goal: what a test server counts agrees with the exit status (M8.7), and no name of a drive or word
 * of a person leaves its place in XML or HTML. Method: rows of made arms; hostile texts; a scanner that
 * follows every tag and every entity.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verifier/lot.h"
#include "verifier/report.h"

struct made {
	struct pp_verdict verdict;
	struct pp_verdict_arm arms[8];
	struct pp_verdict_reason reasons[8];
	struct pp_report_source source;
};

static struct made *made_new(void)
{
	static const struct pp_report_fact facts[] = { { "operator", "A & B <qa>" }, { "note", "" } };
	struct made *m = calloc(1, sizeof(*m));

	assert_int_equal(pp_criterion_parse("95/90", &m->verdict.criterion, NULL), 0);
	m->verdict.arms = m->arms;
	m->source = (struct pp_report_source){ .folder = "a.campaign", .name = "a",
		.started = "2026-11-30T12:00:00Z", .seal_sha256 = "0123abcd", .sealed = true,
		.facts = facts, .fact_count = 2 };
	return m;
}

static struct pp_verdict_arm *arm(struct made *m, const char *method, enum pp_arm_verdict verdict,
	bool required)
{
	size_t i = m->verdict.arm_count++;
	struct pp_verdict_arm *a = &m->arms[i];

	strcpy(a->key.serial, "S1");
	strcpy(a->key.method, method);
	strcpy(a->key.workload, "overwrite");
	a->verdict = verdict;
	a->required = required;
	a->promise = verdict == PP_ARM_LOSES || verdict == PP_ARM_KEEPS ? PP_PROMISE_NONE :
		PP_PROMISE_MEDIA;
	a->lost_age_ns_min = a->lost_age_ns_max = -1;
	a->reasons = &m->reasons[i];
	a->reason_count = 1;
	strcpy(m->reasons[i].text, "because");
	if (verdict == PP_ARM_UNSAFE) {
		a->cuts_loss = 1;
		a->records_lost = 7;
		a->lost[PP_LOSS_STALE] = 3;
		a->lost[PP_LOSS_TORN] = 4;
	}
	return a;
}

static char *render(const struct made *m, bool html)
{
	struct pp_report_input in = { .verdict = &m->verdict, .source = &m->source };
	struct pp_error err;
	struct pp_buf out;

	pp_buf_init(&out, 1 << 20);
	assert_int_equal(html ? pp_report_html(&in, 1, NULL, &out, &err)
		: pp_report_junit(&in, 1, &out, &err), 0);
	return out.data;
}

static int count(const char *text, const char *what)
{
	int n = 0;

	while ((text = strstr(text, what))) {
		text += strlen(what);
		n++;
	}
	return n;
}

/* Every tag is closed in its order, every & begins an entity, every byte is ASCII. */
static void check_nesting(const char *text)
{
	static const char *const alone[] = { "meta", "!DOCTYPE", "?xml" };
	char stack[64][32], name[32];
	int depth = 0;
	size_t i;

	for (; *text; text++) {
		assert_true((unsigned char)*text < 128 && (*text >= ' ' || *text == '\n'));
		if (*text == '&')
			assert_true(strncmp(text, "&amp;", 5) == 0 || strncmp(text, "&lt;", 4) == 0 ||
				strncmp(text, "&gt;", 4) == 0 || strncmp(text, "&quot;", 6) == 0);
		if (*text != '<')
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(text + 1, " >"), text + 1);
		text += strcspn(text, ">");
		assert_int_equal(*text, '>');
		if (name[0] == '/') {
			assert_true(depth > 0);
			assert_string_equal(name + 1, stack[--depth]);
			continue;
		}
		for (i = 0; i < 3 && strcmp(alone[i], name) != 0; i++)
			;
		if (i < 3 || text[-1] == '/')
			continue;
		assert_true(depth < 64);
		strcpy(stack[depth++], name);
	}
	assert_int_equal(depth, 0);
}

/* M8.7: a failure if and only if 1, neither failure nor error if and only if 0. */
static void test_counts_and_exit(void **state)
{
	static const struct {
		const char *what;
		enum pp_arm_verdict a, b;
		bool required_a, required_b;
		int failures, errors, skipped;
	} rows[] = {
		{ "held", PP_ARM_SAFE, PP_ARM_LOSES, true, false, 0, 0, 0 },
		{ "broken", PP_ARM_UNSAFE, PP_ARM_INCONCLUSIVE, true, true, 1, 1, 0 },
		{ "broken, optional", PP_ARM_SAFE, PP_ARM_UNSAFE, true, false, 1, 0, 0 },
		{ "not judged", PP_ARM_SAFE, PP_ARM_INCONCLUSIVE, true, true, 0, 1, 0 },
		{ "optional, not judged", PP_ARM_SAFE, PP_ARM_INCONCLUSIVE, true, false, 0, 0, 1 },
		{ "n/a", PP_ARM_SAFE, PP_ARM_NA, true, false, 0, 0, 1 },
		{ "n/a, yet required", PP_ARM_SAFE, PP_ARM_NA, true, true, 0, 1, 1 },
		{ "controls alone", PP_ARM_LOSES, PP_ARM_KEEPS, false, false, 0, 1, 0 },
		{ "a control without a cut", PP_ARM_SAFE, PP_ARM_INCONCLUSIVE, true, false, 0, 0, 1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct made *m = made_new();
		char *text, attribute[64];
		int status;

		arm(m, "fsync", rows[i].a, rows[i].required_a);
		arm(m, "direct", rows[i].b, rows[i].required_b);
		status = pp_verdict_exit(&m->verdict);
		text = render(m, false);
		check_nesting(text);
		if (count(text, "<failure") != rows[i].failures || count(text, "<error") != rows[i].errors ||
			count(text, "<skipped") != rows[i].skipped)
			fail_msg("%s: %s", rows[i].what, text);
		snprintf(attribute, sizeof(attribute), "failures=\"%d\" errors=\"%d\" skipped=\"%d\"",
			rows[i].failures, rows[i].errors, rows[i].skipped);
		assert_non_null(strstr(text, attribute));
		snprintf(attribute, sizeof(attribute), "tests=\"%d\"", count(text, "<testcase"));
		assert_non_null(strstr(text, attribute));
		assert_int_equal(status == 1, rows[i].failures > 0);
		assert_int_equal(status == 0, rows[i].failures + rows[i].errors == 0);
		free(text);
		text = render(m, true);
		check_nesting(text);
		assert_int_equal(count(text, "class=\"verdict held\""), status == 0);
		assert_int_equal(count(text, "class=\"verdict broken\""), status == 1);
		free(text);
		free(m);
	}
}

static const char junit_golden[] =
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	"<testsuites>\n"
	"  <testsuite name=\"S1\" package=\"a\" id=\"0\" timestamp=\"2026-11-30T12:00:00\" hostname=\"S1\" "
	"tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\" time=\"0\">\n"
	"    <properties>\n"
	"      <property name=\"campaign\" value=\"a\"/>\n"
	"      <property name=\"criterion\" value=\"95/90\"/>\n"
	"      <property name=\"kernel\" value=\"6.18\"/>\n"
	"      <property name=\"policy\" value=\"write back\"/>\n"
	"      <property name=\"operator\" value=\"A &amp; B &lt;qa&gt;\"/>\n"
	"      <property name=\"SHA-256 of SHA256SUMS\" value=\"0123abcd\"/>\n"
	"      <property name=\"seal\" value=\"fits\"/>\n"
	"      <property name=\"simulated\" value=\"no\"/>\n"
	"    </properties>\n"
	"    <testcase name=\"fsync, overwrite\" classname=\"S1\" time=\"0\">\n"
	"      <failure type=\"torn\" message=\"because\">UNSAFE: 0 clean, 1 lost, 0 void, 0 open\n"
	"lost: 3 stale, 4 torn\n"
	"because\n"
	"</failure>\n"
	"    </testcase>\n"
	"    <testcase name=\"write, overwrite\" classname=\"S1\" time=\"0\"/>\n"
	"    <system-out>write, overwrite: LOSES: 0 clean, 0 lost, 0 void, 0 open\n"
	"because\n"
	"</system-out>\n"
	"    <system-err></system-err>\n"
	"  </testsuite>\n"
	"</testsuites>\n";

static void test_junit_golden(void **state)
{
	struct made *m = made_new();
	struct pp_verdict_arm *a = arm(m, "fsync", PP_ARM_UNSAFE, true);
	char *text;

	(void)state;
	strcpy(a->key.kernel, "6.18");
	strcpy(a->key.policy, "write back");
	a = arm(m, "write", PP_ARM_LOSES, false);
	strcpy(a->key.kernel, "6.18");
	strcpy(a->key.policy, "write back");
	text = render(m, false);
	assert_string_equal(text, junit_golden);
	free(text);
	/* Two arms of one name get their conditions; a drive of its own a suite of its own. */
	strcpy(arm(m, "fsync", PP_ARM_SAFE, true)->key.kernel, "7.0");
	strcpy(arm(m, "fsync", PP_ARM_SAFE, true)->key.serial, "S2");
	text = render(m, false);
	assert_int_equal(count(text, "<testsuite "), 2);
	assert_non_null(strstr(text, "name=\"fsync, overwrite, write back, kernel 6.18\""));
	assert_non_null(strstr(text, "name=\"fsync, overwrite, kernel 7.0\""));
	assert_non_null(strstr(text, "name=\"kernel\" value=\"7.0\""));
	assert_int_equal(count(text, "name=\"fsync, overwrite\" classname=\"S2\""), 1);
	check_nesting(text);
	free(text);
	/* Nothing planned, nothing tried, no time: still an error that a server shows. */
	m->verdict.arm_count = 0;
	m->source.started = "yesterday";
	text = render(m, false);
	check_nesting(text);
	assert_int_equal(count(text, "<error"), 1);
	assert_non_null(strstr(text, "1970-01-01T00:00:00"));
	free(text);
	free(m);
}

static void test_hostile(void **state)
{
	static const char evil[] = "</td><script>alert(\"1\")</script>&\x01\x1b[2J\xff]]>";
	struct made *m = made_new();
	struct pp_verdict_arm *a = arm(m, evil, PP_ARM_UNSAFE, true);
	size_t form;

	(void)state;
	strcpy(a->key.serial, evil);
	strcpy(a->key.model, evil);
	strcpy(a->key.firmware, evil);
	strcpy(a->key.mount_options, evil);
	strcpy(a->key.policy, evil);
	strcpy(m->reasons[0].text, evil);
	m->source.name = m->source.folder = m->source.started = evil;
	for (form = 0; form < 2; form++) {
		char *text = render(m, form);

		check_nesting(text);
		assert_null(strstr(text, "<script"));
		assert_null(strstr(text, "]]>"));
		free(text);
	}
	free(m);
}

/* For a purchase file: all of it is there, and nothing comes from elsewhere. */
static void test_page(void **state)
{
	static const char *const wanted[] = { "<h1>Power-cut test: a</h1>", "class=\"verdict broken\"",
		"A &amp; B &lt;qa&gt;", "Drive S1", "<td class=\"v UNSAFE\">UNSAFE</td>",
		"<td class=\"v\">LOSES</td>", "by class and age", "<td class=\"l\">torn</td><td>4</td>",
		"last 10 ms", "What it rests on", "What it does not cover", "0123abcd", "<li>because</li>",
		"sha256sum -c", "<dt>SAFE</dt>" };
	struct made *m = made_new();
	char *text;
	size_t i;

	(void)state;
	arm(m, "fsync", PP_ARM_UNSAFE, true);
	arm(m, "write", PP_ARM_LOSES, false);
	m->reasons[0].blocks = true;
	text = render(m, true);
	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!strstr(text, wanted[i]))
			fail_msg("no '%s' in %s", wanted[i], text);
	assert_null(strstr(text, "://"));
	assert_null(strstr(text, "url("));
	assert_null(strstr(text, "<script"));
	assert_null(strstr(text, "<link"));
	assert_null(strstr(text, "<img"));
	assert_null(strstr(text, "DOES NOT FIT"));
	free(text);
	m->source.sealed = false;
	text = render(m, true);
	assert_non_null(strstr(text, "DOES NOT FIT"));
	assert_non_null(strstr(text, "nothing here is to be relied on"));
	free(text);
	text = render(m, false);
	assert_non_null(strstr(text, "value=\"does not fit\""));
	free(text);
	free(m);
}

static void test_overflow_fails(void **state)
{
	struct made *m = made_new();
	struct pp_report_input in = { .verdict = &m->verdict, .source = &m->source };
	struct pp_error err;
	struct pp_buf out;
	size_t i;

	(void)state;
	arm(m, "fsync", PP_ARM_UNSAFE, true);
	for (i = 0; i < 3; i++) {
		pp_buf_init(&out, 300);
		assert_int_equal(i == 0 ? pp_report_html(&in, 1, NULL, &out, &err) : i == 1 ?
			pp_report_junit(&in, 1, &out, &err) :
			pp_report_json_all(&in, 1, NULL, &out, &err), -1);
		pp_buf_release(&out);
	}
	free(m);
}

/* Evidence that does not fit its seal, a lab's, an outlet that nobody proved: said in every form. */
static void test_marks(void **state)
{
	static const struct {
		bool sealed, simulated, unproven;
		const char *words; /* NULL: no mark at all */
		const char *json, *csv;
	} rows[] = {
		{ true, false, false, NULL, "  \"simulated\": false,\n  \"unproven_wiring\": false", ",1,0,0\r\n" },
		{ false, false, false, "UNSEALED: ", "  \"sealed\": false,\n", ",0,0,0\r\n" },
		{ true, true, false, "SIMULATED: ", "  \"simulated\": true,\n", ",1,1,0\r\n" },
		{ true, false, true, "WIRING NOT PROVEN: ", "  \"unproven_wiring\": true,\n", ",1,0,1\r\n" },
	};
	static const char *const all[] = { "UNSEALED: ", "SIMULATED: ", "WIRING NOT PROVEN: " };
	int (*const forms[])(const struct pp_report_input *, struct pp_buf *, struct pp_error *) = {
		pp_report_text, pp_report_json, pp_report_csv };
	struct made *m = made_new();
	size_t i, k, w;

	(void)state;
	arm(m, "fsync", PP_ARM_SAFE, true);
	arm(m, "fdatasync", PP_ARM_INCONCLUSIVE, true)->cuts_unexposed = 7;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_report_input in = { .verdict = &m->verdict, .source = &m->source };
		char *text[5];

		m->source.sealed = rows[i].sealed;
		m->source.simulated = rows[i].simulated;
		m->source.unproven_wiring = rows[i].unproven;
		text[3] = render(m, true);
		text[4] = render(m, false);
		for (k = 0; k < 3; k++) {
			struct pp_buf out;

			pp_buf_init(&out, 1 << 20);
			assert_int_equal(forms[k](&in, &out, NULL), 0);
			text[k] = out.data;
		}
		for (k = 0; k < 5; k++)
			for (w = 0; w < 3; w++)
				assert_int_equal(strstr(text[k], all[w]) != NULL, k != 1 && k != 2 &&
					rows[i].words && strcmp(rows[i].words, all[w]) == 0);
		assert_non_null(strstr(text[3], "<td>0</td><td>7</td><td>0</td>"));
		assert_non_null(strstr(text[4], "0 open, 7 not exposed\n"));
		assert_int_equal(strstr(text[0], "simulated drive S1\n") != NULL, rows[i].simulated);
		assert_int_equal(strstr(text[1], "\"sealed\"") != NULL, !rows[i].sealed);
		assert_non_null(strstr(text[1], rows[i].json));
		assert_non_null(strstr(text[2], ",sealed,simulated,unproven_wiring\r\n"));
		assert_non_null(strstr(text[2], rows[i].csv));
		for (k = 0; k < 5; k++)
			free(text[k]);
	}
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_counts_and_exit), cmocka_unit_test(test_junit_golden),
		cmocka_unit_test(test_hostile), cmocka_unit_test(test_page),
		cmocka_unit_test(test_overflow_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
