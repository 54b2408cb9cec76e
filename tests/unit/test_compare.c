/* SPDX-License-Identifier: MIT
 *
 * Goal: a comparison says what the counts say and no more, and refuses what has no rate (M9.2).
 * Method: a published investigation's counts, rows of made arms, and golden words.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verifier/compare.h"

static struct pp_comparison by_hand(const char *a, const char *b)
{
	struct pp_comparison c;

	memset(&c, 0, sizeof(c));
	assert_true(pp_compare_counts(a, &c.side[0]));
	assert_true(pp_compare_counts(b, &c.side[1]));
	pp_compare(&c, 1);
	return c;
}

/*
 * OpenZFS issue 18996: cuts under load lost data in 2 of 2, three other arrangements in 0 of 29, 0 of
 * 24 and (raw) 0 of 23.
 */
static void test_a_real_case(void **state)
{
	struct pp_comparison c = by_hand("2/2", "0/53");
	struct pp_criterion criterion;

	(void)state;
	assert_int_equal(c.result, PP_COMPARE_A_LOSES_MORE);
	assert_true(fabs(c.p_two_sided - 0.00067) < 0.000005);
	assert_true(fabs(c.p_one_sided - 1.0 / 1485.0) < 1e-12);
	assert_true(fabs(c.lower[0] - 0.2236) < 0.0001);
	c = by_hand("0/29", "0/24");
	assert_int_equal(c.result, PP_COMPARE_NONE_SHOWN);
	assert_true(fabs(c.upper[0] - 0.098) < 0.0005);
	assert_true(fabs(c.upper[1] - 0.117) < 0.0005);
	assert_int_equal(pp_criterion_parse("95/90", &criterion, NULL), 0);
	assert_true(pp_criterion_clean_cuts(&criterion) > 23);
	assert_true(by_hand("0/23", "0/1").upper[0] > 0.10);
}

static void test_counts(void **state)
{
	static const struct { const char *a, *b; enum pp_compare_result result; bool hopeless; } rows[] = {
		{ "0/53", "2/2", PP_COMPARE_B_LOSES_MORE, false },
		{ "29/29", "0/29", PP_COMPARE_A_LOSES_MORE, false },
		{ "1/29", "0/29", PP_COMPARE_NONE_SHOWN, false },
		{ "5/29", "0/29", PP_COMPARE_NONE_SHOWN, false }, /* p = 0.052 */
		{ "6/29", "0/29", PP_COMPARE_A_LOSES_MORE, false },
		{ "3/3", "0/3", PP_COMPARE_NONE_SHOWN, true },    /* p = 0.1, and nothing is further apart */
		{ "4/4", "0/4", PP_COMPARE_A_LOSES_MORE, false },
		{ "0/0", "0/29", PP_COMPARE_NOT, false },
		{ "1/29", "0/0", PP_COMPARE_NOT, false },
		{ "1000000/1000000", "0/1", PP_COMPARE_A_LOSES_MORE, false },
	};
	static const char *const bad[] = { "", "/", "1", "1/", "/1", "2/1", "-1/2", "1/2/3", " 1/2", "1/2 ",
		"1/1000001", "0x1/2", "1.0/2", "99999999999999999999/1" };
	struct pp_compare_side side;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_comparison c = by_hand(rows[i].a, rows[i].b);

		if (c.result != rows[i].result || c.hopeless != rows[i].hopeless)
			fail_msg("%s %s: %d, p %g", rows[i].a, rows[i].b, c.result, c.p_two_sided);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (pp_compare_counts(bad[i], &side))
			fail_msg("'%s' was taken", bad[i]);
}

/* ---- arms --------------------------------------------------------------------------------- */

struct made {
	struct pp_evidence evidence;
	struct pp_trial trial;
	struct pp_verdict verdict;
	struct pp_verdict_arm arms[8];
	struct pp_compare_source source;
};

static struct made *campaign(const char *folder, const char *serial)
{
	struct made *m = calloc(1, sizeof(*m));

	m->verdict.arms = m->arms;
	m->evidence.trials = &m->trial;
	m->evidence.trial_count = 1;
	m->evidence.facts.stop_known = true;
	m->evidence.facts.cuts_fixed = 29;
	m->trial.run_id.bytes[0] = (uint8_t)folder[0];
	snprintf(m->trial.key.serial, sizeof(m->trial.key.serial), "%s", serial);
	m->source.folder = folder;
	m->source.evidence = &m->evidence;
	m->source.verdict = &m->verdict;
	return m;
}

static struct pp_verdict_arm *arm(struct made *m, const char *method, uint32_t lost, uint32_t clean)
{
	struct pp_verdict_arm *a = &m->arms[m->verdict.arm_count++];

	snprintf(a->key.method, sizeof(a->key.method), "%s", method);
	snprintf(a->key.workload, sizeof(a->key.workload), "overwrite");
	snprintf(a->key.serial, sizeof(a->key.serial), "%s", m->trial.key.serial);
	snprintf(a->key.firmware, sizeof(a->key.firmware), "1");
	a->promise = PP_PROMISE_MEDIA;
	a->cuts_loss = lost;
	a->cuts_clean = clean;
	return a;
}

/* M9.2: each reason to refuse, alone; and what is close to it and is none. */
static void test_refusals(void **state)
{
	static const struct {
		const char *what;
		uint32_t lost, clean, open, missing;
		bool known, stop, control;
		const char *says; /* NULL: compared */
	} rows[] = {
		{ "fixed n", 2, 27, 0, 0, true, false, false, NULL },
		{ "stopped", 1, 3, 0, 0, true, true, false, "stopped at its first loss" },
		{ "would have stopped", 0, 29, 0, 0, true, true, false, NULL },
		{ "not said", 1, 28, 0, 0, false, false, false, "does not say" },
		{ "not said, nothing lost", 0, 29, 0, 0, false, false, false, NULL },
		{ "a control is never stopped", 3, 0, 0, 0, true, true, true, NULL },
		{ "open", 0, 29, 1, 0, true, false, false, "1 trial of A may have lost data" },
		{ "void, data missing", 0, 29, 0, 2, true, false, false, "2 trials of A may" },
		{ "nothing counts", 0, 0, 0, 0, true, false, false, "no cut that counts" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct made *m = campaign("a", "S1");
		struct pp_verdict_arm *a = arm(m, "fdatasync", rows[i].lost, rows[i].clean);
		struct pp_comparison c;

		memset(&c, 0, sizeof(c));
		m->evidence.facts.stop_known = rows[i].known;
		m->evidence.facts.stop_at_first_loss = rows[i].stop;
		a->cuts_open = rows[i].open;
		a->cuts_void_missing = rows[i].missing;
		a->control = rows[i].control;
		pp_compare_fill(&c.side[0], &m->source, a);
		assert_true(pp_compare_counts("0/29", &c.side[1]));
		pp_compare(&c, 1);
		if ((c.result == PP_COMPARE_NOT) != (rows[i].says != NULL) ||
			(rows[i].says && !strstr(c.refused, rows[i].says)))
			fail_msg("%s: %d '%s'", rows[i].what, c.result, c.refused);
		free(m);
	}
}

static bool noted(const struct pp_comparison *c, const char *says)
{
	size_t i;

	for (i = 0; i < c->note_count; i++)
		if (strstr(c->notes[i], says))
			return true;
	return false;
}

static void test_notes(void **state)
{
	struct made *a = campaign("a", "S1"), *b = campaign("b", "S2");
	struct pp_comparisons list;
	struct pp_error err;

	(void)state;
	arm(a, "fdatasync", 1, 20)->cuts_unexposed = 3;
	snprintf(arm(b, "fdatasync", 1, 28)->key.firmware, PP_TEXT_SHORT, "2");
	b->evidence.facts.cuts_fixed = 0;
	assert_int_equal(pp_compare_campaigns(&a->source, &b->source, &list, &err), 0);
	assert_true(noted(&list.list[0], "differ in: drive (S1 / S2), firmware (1 / 2)"));
	assert_true(noted(&list.list[0], "21 of the 29 cuts that were planned for A"));
	assert_true(noted(&list.list[0], "3 cuts of A in which nothing was at risk"));
	assert_true(noted(&list.list[0], "of B was not fixed before"));
	pp_comparisons_release(&list);
	free(a);
	free(b);
}

/* Which arms meet; the limit falls with their number. */
static void test_pairs(void **state)
{
	struct made *a = campaign("a", "S1"), *b = campaign("b", "S2");
	struct pp_comparisons list;
	struct pp_error err;

	(void)state;
	arm(a, "direct", 3, 0)->control = true;
	arm(a, "fdatasync", 0, 29);
	arm(a, "fsync", 6, 23);
	arm(a, "syncfs", 0, 0)->verdict = PP_ARM_NA;
	arm(b, "fdatasync", 0, 29);
	arm(b, "fsync", 0, 29);
	arm(b, "rename", 0, 29);
	assert_int_equal(pp_compare_campaigns(&a->source, &b->source, &list, &err), 0);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.alone, 1);
	assert_true(list.list[0].limit == 0.025);
	/* p = 0.023 */
	assert_int_equal(list.list[1].result, PP_COMPARE_A_LOSES_MORE);
	assert_int_equal(pp_comparisons_exit(&list), 1);
	pp_comparisons_release(&list);

	a->arms[2].cuts_loss = 5;
	a->arms[2].cuts_clean = 24;
	assert_int_equal(pp_compare_campaigns(&a->source, &b->source, &list, &err), 0);
	assert_int_equal(pp_comparisons_exit(&list), 0);
	pp_comparisons_release(&list);
	a->arms[1].cuts_open = 1;
	assert_int_equal(pp_compare_campaigns(&a->source, &b->source, &list, &err), 0);
	assert_int_equal(pp_comparisons_exit(&list), 2);
	pp_comparisons_release(&list);

	/* Two arms of one campaign, however unlike; a control when it is named. */
	assert_int_equal(pp_compare_arm("fsync", &a->source, &err), 0);
	assert_int_equal(pp_compare_arm("fdatasync,overwrite,S2", &b->source, &err), 0);
	assert_int_equal(pp_compare_campaigns(&a->source, &b->source, &list, &err), 0);
	assert_int_equal(list.count, 1);
	pp_comparisons_release(&list);
	assert_int_equal(pp_compare_arm("direct", &a->source, &err), 0);
	assert_non_null(pp_compare_only(&a->source, &err));
	assert_int_equal(pp_compare_arm("syncfs", &a->source, &err), 0);
	assert_null(pp_compare_only(&a->source, &err));
	free(a);
	free(b);
}

static void test_what_cannot_be_paired(void **state)
{
	static const char *const bad[] = { "", ",", "fsync,", ",overwrite", "fsync,overwrite," };
	struct made *a = campaign("a", "S1"), *b = campaign("b", "S1");
	struct pp_comparisons list;
	struct pp_error err;
	size_t i;

	(void)state;
	arm(a, "fdatasync", 0, 29);
	arm(b, "fsync", 0, 29);
	arm(b, "fsync", 0, 29);
	assert_int_equal(pp_compare_campaigns(&a->source, &b->source, &list, &err), -1);
	assert_non_null(strstr(err.text, "no arm of 'a' is like one of 'b'"));
	arm(a, "fsync", 0, 29);
	assert_int_equal(pp_compare_campaigns(&a->source, &b->source, &list, &err), -1);
	assert_non_null(strstr(err.text, "more than one arm is like"));
	assert_null(pp_compare_only(&b->source, &err));
	assert_non_null(strstr(err.text, "2 arms of 'b' fit"));
	/* The same campaign twice, as a copy under another name. */
	b->trial.run_id = a->trial.run_id;
	b->verdict.arm_count = 1;
	b->arms[0] = a->arms[0];
	assert_int_equal(pp_compare_campaigns(&a->source, &b->source, &list, &err), -1);
	assert_non_null(strstr(err.text, "same arm of one campaign"));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (pp_compare_arm(bad[i], &a->source, &err) == 0)
			fail_msg("'%s' was taken", bad[i]);
	free(a);
	free(b);
}

/* ---- words -------------------------------------------------------------------------------- */

static const char golden[] =
	"A  lost in 2 of 2 cuts: at least 22.4 % of cuts lose (95 %)\n"
	"B  lost in 0 of 53 cuts: at most 5.5 % of cuts lose (95 %)\n"
	"   Fisher's exact test: p = 0.00067 two-sided, 0.00067 one-sided; a difference\n"
	"   needs two-sided p below 0.05\n"
	"   difference: A loses in a larger share of cuts than B. If both lost equally\n"
	"   often, counts as far apart as these would come up in 0.067 % of comparisons.\n"
	"   - what was entered by hand is taken as settled, its number of cuts as fixed\n"
	"     before\n";

static void test_words(void **state)
{
	struct pp_comparison c = by_hand("2/2", "0/53");
	struct pp_comparisons list = { .list = &c, .count = 1 };
	struct pp_error err;
	struct pp_buf out;
	json_t *o, *one;

	(void)state;
	pp_buf_init(&out, 1 << 16);
	assert_int_equal(pp_comparisons_text(&list, &out, &err), 0);
	assert_string_equal(out.data, golden);
	pp_buf_clear(&out);
	assert_int_equal(pp_comparisons_json(&list, &out, &err), 0);
	o = json_loads(out.data, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	one = json_array_get(json_object_get(o, "comparisons"), 0);
	assert_string_equal(json_string_value(json_object_get(one, "result")), "difference");
	assert_string_equal(json_string_value(json_object_get(one, "loses_more")), "a");
	assert_true(fabs(json_real_value(json_object_get(one, "p_two_sided")) - 0.000673) < 1e-6);
	json_decref(o);
	pp_buf_clear(&out);
	c = by_hand("3/3", "0/3");
	assert_int_equal(pp_comparisons_text(&list, &out, &err), 0);
	assert_non_null(strstr(out.data, "no difference shown: counts as far apart as these come up by "
		"chance in 10 %"));
	assert_non_null(strstr(out.data, "no outcome could"));
	pp_buf_clear(&out);
	c = by_hand("0/0", "0/3");
	assert_int_equal(pp_comparisons_text(&list, &out, &err), 0);
	assert_non_null(strstr(out.data, "not compared: A has no cut that counts"));
	assert_null(strstr(out.data, "p ="));
	pp_buf_release(&out);
	pp_buf_init(&out, 100);
	assert_int_equal(pp_comparisons_text(&list, &out, &err), -1);
	assert_int_equal(pp_comparisons_json(&list, &out, &err), -1);
	pp_buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_real_case), cmocka_unit_test(test_counts),
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_notes),
		cmocka_unit_test(test_pairs), cmocka_unit_test(test_what_cannot_be_paired),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
