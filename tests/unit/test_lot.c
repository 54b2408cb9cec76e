/* SPDX-License-Identifier: MIT
 *
 * Goal: a lot pools what is alike in all but the serial and nothing else, counts drives and cuts, and
 * lists the drives (M9.4). Method: made arms in rows of letters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verifier/lot.h"

struct made {
	struct pp_verdict verdict;
	struct pp_verdict_arm arms[8];
};

static struct pp_verdict_arm *arm(struct made *m, const char *serial, uint32_t clean, uint32_t loss)
{
	struct pp_verdict_arm *a = &m->arms[m->verdict.arm_count++];

	m->verdict.arms = m->arms;
	strcpy(a->key.serial, serial);
	strcpy(a->key.model, "Fast SSD");
	strcpy(a->key.firmware, "1.2");
	strcpy(a->key.method, "fdatasync");
	strcpy(a->key.workload, "overwrite");
	strcpy(a->key.kernel, "6.18");
	a->promise = PP_PROMISE_MEDIA;
	a->cuts_clean = clean;
	a->cuts_loss = loss;
	a->verdict = loss ? PP_ARM_UNSAFE : clean >= 29 ? PP_ARM_SAFE : PP_ARM_INCONCLUSIVE;
	return a;
}

static struct pp_lots pool(const struct made *a, const struct made *b)
{
	const struct pp_verdict *verdicts[] = { &a->verdict, &b->verdict };
	struct pp_error err;
	struct pp_lots lots;

	assert_int_equal(pp_lots_make(&lots, verdicts, 2, &err), 0);
	return lots;
}

static const char golden[] =
	"lot Fast SSD, firmware 1.2: fdatasync\n"
	"overwrite, kernel 6.18\n"
	"  - 3 drives, 1 with a loss; lost in 1 of 89 cuts, 1 open and counted as lost:\n"
	"    at most 6.9 % of cuts lose (95 %), which assumes that the drives are alike;\n"
	"    some lost and some did not, so this may be true of none of them\n"
	"  - of drives: at most 86.5 % of such drives lose at all in as many cuts (95 %),\n"
	"    if these were drawn at random\n"
	"drive                            campaigns         c/l/v/o  bound verdict\n"
	"S1                                       2        58/0/3/0  5.0 % SAFE\n"
	"S2                                       1         9/1/0/0 39.4 % UNSAFE\n"
	"S3                                       1        20/0/0/1 20.7 % INCONCLUSIVE\n";

static void test_golden(void **state)
{
	struct made *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	struct pp_lots lots;
	struct pp_error err;
	struct pp_buf out;
	json_t *json;

	(void)state;
	arm(a, "S1", 29, 0)->cuts_void = 3;
	arm(a, "S3", 20, 0)->cuts_open = 1;
	arm(b, "S2", 9, 1);
	arm(b, "S1", 29, 0);
	lots = pool(a, b);
	assert_int_equal(lots.count, 1);
	assert_true(fabs(lots.list[0].cuts.loss_bound_95 - pp_stats_bound_upper(2, 89, 0.95)) < 1e-12);
	pp_buf_init(&out, 1 << 16);
	assert_int_equal(pp_lots_text(&lots, &out, &err), 0);
	assert_string_equal(out.data, golden);
	pp_buf_release(&out);
	json = pp_lots_json(&lots);
	assert_int_equal(json_array_size(json_object_get(json_array_get(json, 0), "per_drive")), 3);
	assert_string_equal(json_string_value(json_object_get(json_array_get(json, 0), "assumes")),
		"the drives are alike");
	json_decref(json);
	pp_buf_init(&out, 100);
	assert_int_equal(pp_lots_text(&lots, &out, &err), -1);
	pp_buf_release(&out);
	pp_lots_release(&lots);
	/* The order of the campaigns does not matter. */
	lots = pool(b, a);
	pp_buf_init(&out, 1 << 16);
	assert_int_equal(pp_lots_text(&lots, &out, &err), 0);
	assert_string_equal(out.data, golden);
	pp_buf_release(&out);
	pp_lots_release(&lots);
	free(a);
	free(b);
}

/* Whatever else differs, a lot it is not. */
static void test_what_is_not_pooled(void **state)
{
	static const struct { const char *what; size_t at; } texts[] = {
#define TEXT(m) { #m, offsetof(struct pp_arm_key, m) }
		TEXT(model), TEXT(firmware), TEXT(method), TEXT(workload), TEXT(target), TEXT(fs),
		TEXT(mount_options), TEXT(policy), TEXT(kernel), TEXT(cut_kind), TEXT(pattern),
		TEXT(lanes), TEXT(group), TEXT(record_bytes), TEXT(noise),
#undef TEXT
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct made *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
		struct pp_lots lots;

		arm(a, "S1", 29, 0);
		*((char *)&arm(b, "S2", 29, 0)->key + texts[i].at) = 1;
		lots = pool(a, b);
		if (lots.count)
			fail_msg("pooled although %s differs", texts[i].what);
		pp_lots_release(&lots);
		free(a);
		free(b);
	}
}

static void test_what_makes_no_lot(void **state)
{
	struct made *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	struct pp_lots lots;

	(void)state;
	arm(a, "S1", 29, 0);
	arm(b, "S2", 0, 0); /* planned, never tried */
	lots = pool(a, b);
	assert_int_equal(lots.count, 0);
	pp_lots_release(&lots);
	b->arms[0].cuts_clean = 29;
	b->arms[0].verdict = PP_ARM_NA;
	lots = pool(a, b);
	assert_int_equal(lots.count, 0);
	pp_lots_release(&lots);
	b->verdict.arm_count = 0;
	lots = pool(a, b);
	assert_int_equal(lots.count, 0);
	pp_lots_release(&lots);
	free(a);
	free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden), cmocka_unit_test(test_what_is_not_pooled),
		cmocka_unit_test(test_what_makes_no_lot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
