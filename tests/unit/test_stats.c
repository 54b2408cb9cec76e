/* SPDX-License-Identifier: MIT
 *
 * Goal: every number that a verdict rests on is right (M7.3, M9.1, M9.2).
 * Method: published values, closed forms, and the defining property itself: the binomial tail at
 * the bound, summed term by term without the beta function, must be 1 - confidence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "src/core/stats.h"

#define NEAR(got, want, within)                                                       \
	do {                                                                          \
		double got_ = (got), want_ = (want);                                  \
		if (!(fabs(got_ - want_) <= (within)))                                \
			fail_msg("%s is %.9g, not %.9g", #got, got_, want_);          \
	} while (0)

/* Success-run table and facts of the c = 0 plans. */
static void test_clean_cuts_needed(void **state)
{
	static const struct { const char *criterion; uint32_t n; } rows[] = {
		{ "95/90", 29 }, { "95/95", 59 }, { "95/99", 299 }, { "95/99.9", 2995 },
		{ "99/90", 44 }, { "99/95", 90 }, { "99/99", 459 }, { "99/99.9", 4603 },
		{ "95/50", 5 }, { "90/90", 22 }, { "90/99", 230 }, { "50/50", 1 },
		/* Exact powers, where rounding would ask for one cut more. */
		{ "75/50", 2 }, { "87.5/50", 3 }, { "99/10", 2 }, { "99.9/10", 3 },
		{ "99.99/10", 4 }, { "36/80", 2 }, { "48.8/80", 3 }, { "19/90", 2 },
		{ "27.1/90", 3 }, { "34.39/90", 4 }, { "40.951/90", 5 }, { "46.8559/90", 6 },
		{ "75.0001/50", 3 }, { "74.9999/50", 2 }, { "0.0001/99.9999", 1 },
		{ "99.9999/0.0001", 1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_criterion criterion;

		assert_int_equal(pp_criterion_parse(rows[i].criterion, &criterion, NULL), 0);
		if (pp_criterion_clean_cuts(&criterion) != rows[i].n)
			fail_msg("%s needs %u, not %u", rows[i].criterion,
				pp_criterion_clean_cuts(&criterion), rows[i].n);
	}
}

static void test_criterion_is_parsed_strictly(void **state)
{
	static const char *const refused[] = { "", "95", "95/", "/90", "95/90/", "95/90 ", " 95/90",
		"95 /90", "+95/90", "-95/90", "95/100", "100/90", "0/90", "95/0", "95/0.0", "095/90",
		"95/090", "95/00.5", "95,5/90", "95/9e1", "95./90", ".5/90", "95/90.", "95/90.00001",
		"0x5f/90", "nan/90", "95/90%", "95\\90", "95/99.9999", "99.9999/99.999" };
	static const struct { const char *text, *canonical; } taken[] = {
		{ "95/90", "95/90" }, { "95.0/90.000", "95/90" }, { "99.9/99.90", "99.9/99.9" },
		{ "0.5/90", "0.5/90" }, { "95/90.0001", "95/90.0001" }, { "95/90.0500", "95/90.05" } };
	struct pp_criterion criterion;
	struct pp_error err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		memset(&criterion, 7, sizeof(criterion));
		if (pp_criterion_parse(refused[i], &criterion, &err) != -1)
			fail_msg("'%s' was taken", refused[i]);
		assert_int_equal(err.class, PP_ERR_USAGE);
		assert_int_equal(criterion.text[0], 7);
	}
	for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		assert_int_equal(pp_criterion_parse(taken[i].text, &criterion, &err), 0);
		assert_string_equal(criterion.text, taken[i].canonical);
	}
}

/* M9.1 and the method's examples, as printed: per cent to the digits given. */
static void test_published_bounds(void **state)
{
	static const struct { uint32_t k, n; double confidence, upper, within; } uppers[] = {
		{ 0, 29, 0.95, 0.098, 5e-4 }, { 0, 24, 0.95, 0.117, 5e-4 }, { 0, 5, 0.95, 0.451, 5e-4 },
		{ 0, 10, 0.95, 0.259, 5e-4 }, { 0, 30, 0.95, 0.095, 5e-4 }, { 0, 59, 0.95, 0.0495, 5e-5 },
		{ 0, 100, 0.95, 0.0295, 5e-5 }, { 0, 299, 0.95, 0.00997, 5e-6 },
		{ 0, 1000, 0.95, 0.0030, 5e-5 }, { 0, 2995, 0.95, 0.0010, 5e-6 },
		{ 1, 100, 0.95, 0.0466, 5e-5 }, { 2, 100, 0.95, 0.0616, 5e-5 },
		{ 0, 300, 0.95, 0.0099, 1e-4 }, { 1, 300, 0.95, 0.0157, 1e-4 },
		{ 2, 300, 0.95, 0.0208, 1e-4 }, { 1, 10, 0.95, 0.394, 5e-4 },
		{ 5, 10, 0.95, 0.778, 5e-4 }, { 9, 10, 0.95, 0.995, 5e-4 }, { 10, 10, 0.95, 1.0, 0 },
		{ 0, 0, 0.95, 1.0, 0 }, { 0, 1, 0.95, 0.95, 1e-12 }, { 0, 44, 0.99, 0.0994, 5e-5 },
	};
	static const struct { uint32_t k, n; double lower, within; } lowers[] = {
		{ 1, 29, 0.0018, 5e-5 }, { 0, 29, 0, 0 }, { 0, 0, 0, 0 }, { 1, 1, 0.05, 1e-12 },
		{ 2, 2, 0.2236, 5e-5 }, { 2, 3, 0.1354, 5e-5 }, { 3, 8, 0.1111, 5e-5 },
		{ 1, 3, 0.0170, 5e-5 }, { 3, 10, 0.0873, 5e-5 }, { 29, 29, 0.902, 5e-4 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(uppers) / sizeof(uppers[0]); i++)
		NEAR(pp_stats_bound_upper(uppers[i].k, uppers[i].n, uppers[i].confidence),
			uppers[i].upper, uppers[i].within);
	for (i = 0; i < sizeof(lowers) / sizeof(lowers[0]); i++)
		NEAR(pp_stats_bound_lower(lowers[i].k, lowers[i].n, 0.95), lowers[i].lower,
			lowers[i].within);
}

/* P(X <= k) for X of n trials with chance p, term by term. */
static double tail_at_most(uint32_t k, uint32_t n, double p)
{
	long double sum = 0, term = n * log1pl(-(long double)p);
	uint32_t i;

	for (i = 0; i <= k; i++) {
		sum += expl(term);
		term += logl((n - i) / (i + 1.0L)) + logl(p) - log1pl(-(long double)p);
	}
	return (double)sum;
}

static void test_bounds_by_their_definition(void **state)
{
	static const uint32_t sizes[] = { 2, 3, 8, 29, 59, 300, 2995, 50000, 1000000 };
	static const uint32_t parts[] = { 1, 2, 3, 7, 10, 50, 333, 500, 900, 999 };
	static const double levels[] = { 0.5, 0.9, 0.95, 0.99, 0.999 };
	size_t i, j, l;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (j = 0; j < sizeof(parts) / sizeof(parts[0]); j++)
			for (l = 0; l < sizeof(levels) / sizeof(levels[0]); l++) {
				uint32_t n = sizes[i], k = j < 4 ? parts[j] : n / 1000 * parts[j];
				double upper, lower;

				/* The long sums only where they are short enough for a unit test. */
				if (k == 0 || k >= n || k > 20000)
					continue;
				upper = pp_stats_bound_upper(k, n, levels[l]);
				lower = pp_stats_bound_lower(k, n, levels[l]);
				NEAR(tail_at_most(k, n, upper), 1 - levels[l], 1e-7);
				NEAR(1 - tail_at_most(k - 1, n, lower), 1 - levels[l], 1e-7);
				assert_true(levels[l] < 0.6 || lower < (double)k / n);
				assert_true(levels[l] < 0.6 || upper > (double)k / n);
			}
}

static void test_beta_function(void **state)
{
	double x;

	(void)state;
	for (x = 0.0; x <= 1.0; x += 0.0625) {
		NEAR(pp_stats_beta_inc(1, 1, x), x, 1e-14);
		NEAR(pp_stats_beta_inc(3, 1, x), x * x * x, 1e-14);
		NEAR(pp_stats_beta_inc(2, 2, x), x * x * (3 - 2 * x), 1e-14);
		NEAR(pp_stats_beta_inc(5, 9, x) + pp_stats_beta_inc(9, 5, 1 - x), 1.0, 1e-13);
	}
	NEAR(pp_stats_beta_inc(500000, 500000, 0.5), 0.5, 1e-8);
	assert_true(pp_stats_beta_inc(2, 3, -1) == 0.0 && pp_stats_beta_inc(2, 3, 2) == 1.0);
}

/* M7.3: which control results let 29 clean cuts speak, both ways. */
static void test_detection_power(void **state)
{
	static const struct { uint32_t k, n; bool sees; } rows[] = {
		{ 2, 2, true }, { 2, 3, true }, { 3, 8, true },
		{ 1, 1, false }, { 1, 3, false }, { 3, 10, false }, { 0, 100, false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double q = pp_stats_bound_lower(rows[i].k, rows[i].n, 0.95);

		assert_int_equal(pp_stats_detection_power(q, 29) >= 0.95, rows[i].sees);
	}
	NEAR(pp_stats_detection_power(0.5, 3), 0.875, 1e-15);
	NEAR(pp_stats_detection_power(1e-12, 1000), 1e-9, 1e-17);
	assert_true(pp_stats_detection_power(0.3, 0) == 0.0);
	assert_true(pp_stats_detection_power(1.0, 1) == 1.0);
	assert_true(pp_stats_detection_power(0.0, 1000000) == 0.0);
}

static void test_fisher(void **state)
{
	(void)state;
	/* 2 of 2 against 0 of 53: one table in 55 choose 2. */
	NEAR(pp_stats_fisher_greater(2, 0, 0, 53), 1 / 1485.0, 1e-12);
	NEAR(pp_stats_fisher_two_sided(2, 0, 0, 53), 1 / 1485.0, 1e-12);
	NEAR(pp_stats_fisher_less(0, 53, 2, 0), 1 / 1485.0, 1e-12);
	NEAR(pp_stats_fisher_less(2, 0, 0, 53), 1.0, 1e-12);
	/* The lady tasting tea. */
	NEAR(pp_stats_fisher_greater(3, 1, 1, 3), 17 / 70.0, 1e-12);
	NEAR(pp_stats_fisher_two_sided(3, 1, 1, 3), 34 / 70.0, 1e-12);
	/* R: fisher.test(matrix(c(3, 15, 10, 2), 2)) */
	NEAR(pp_stats_fisher_two_sided(3, 10, 15, 2), 0.0005367241, 1e-9);
	NEAR(pp_stats_fisher_two_sided(0, 29, 0, 29), 1.0, 1e-12);
	NEAR(pp_stats_fisher_two_sided(0, 0, 1, 5), 1.0, 1e-12);
	NEAR(pp_stats_fisher_greater(1, 28, 0, 29), 0.5, 1e-12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean_cuts_needed),
		cmocka_unit_test(test_criterion_is_parsed_strictly),
		cmocka_unit_test(test_published_bounds),
		cmocka_unit_test(test_bounds_by_their_definition),
		cmocka_unit_test(test_beta_function),
		cmocka_unit_test(test_detection_power),
		cmocka_unit_test(test_fisher),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
