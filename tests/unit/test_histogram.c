/* SPDX-License-Identifier: MIT
 *
 * Goal: percentiles right to within a bucket, in fixed memory (M10.1).
 * Method: against a sorted array of the same values, over shapes of data; every bucket's edges.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/core/histogram.h"

#define VALUES 20000

static uint64_t random_state;

static uint64_t draw(void)
{
	random_state += 0x9e3779b97f4a7c15ULL;
	uint64_t x = random_state;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static int64_t constant(void) { return 98765; }
static int64_t small(void) { return (int64_t)(draw() % 300); }
static int64_t spread(void) { return (int64_t)(draw() >> (22 + draw() % 42)); }
static int64_t two_humps(void) { return (int64_t)(draw() % 100 ? 100000 + draw() % 999 : 9000000); }

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void test_quantiles(void **state)
{
	static int64_t (*const shapes[])(void) = { constant, small, spread, two_humps };
	static const double quantiles[] = { 0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1 };
	static struct pp_histogram h;
	static int64_t values[VALUES];
	size_t s, q, i;

	(void)state;
	for (s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		double sum = 0, squares = 0, mean;

		pp_histogram_init(&h);
		for (i = 0; i < VALUES; i++) {
			values[i] = shapes[s]();
			pp_histogram_add(&h, values[i]);
			sum += (double)values[i];
		}
		mean = sum / VALUES;
		for (i = 0; i < VALUES; i++)
			squares += ((double)values[i] - mean) * ((double)values[i] - mean);
		qsort(values, VALUES, sizeof(values[0]), by_value);
		for (q = 0; q < sizeof(quantiles) / sizeof(quantiles[0]); q++) {
			size_t rank = (size_t)ceil(quantiles[q] * VALUES);
			int64_t exact = values[rank ? rank - 1 : 0];
			int64_t got = pp_histogram_quantile_ns(&h, quantiles[q]);

			assert_true(got >= exact);
			assert_true((double)got <= (double)exact * (1 + 1.0 / 128) + 0.5);
		}
		assert_true(h.min_ns == values[0] && h.max_ns == values[VALUES - 1]);
		assert_true(fabs(pp_histogram_mean_ns(&h) - mean) <= mean * 1e-9);
		assert_true(fabs(pp_histogram_variation(&h) - sqrt(squares / (VALUES - 1)) / mean) < 1e-3);
	}
}

/* One value alone is its own every percentile, also at the edges of buckets and above the top. */
static void test_edges(void **state)
{
	static struct pp_histogram h;
	int bit, delta;

	(void)state;
	for (bit = 0; bit < 63; bit++) {
		for (delta = -2; delta <= 2; delta++) {
			int64_t value = (int64_t)(1ULL << bit) + delta;

			pp_histogram_init(&h);
			pp_histogram_add(&h, value);
			if (value < 0)
				value = 0;
			assert_true(pp_histogram_quantile_ns(&h, 0.5) == value);
			/* With company above, the bucket's end answers. */
			pp_histogram_add(&h, INT64_MAX);
			assert_true(pp_histogram_quantile_ns(&h, 0.5) >= value);
			if (value < 1LL << PP_HISTOGRAM_TOP_BITS)
				assert_true((double)pp_histogram_quantile_ns(&h, 0.5) <=
					(double)value * (1 + 1.0 / 128));
			assert_true(pp_histogram_quantile_ns(&h, 1) == INT64_MAX);
		}
	}
}

static void test_empty_and_negative(void **state)
{
	static struct pp_histogram h;

	(void)state;
	pp_histogram_init(&h);
	assert_true(pp_histogram_quantile_ns(&h, 0.5) == 0);
	assert_true(pp_histogram_mean_ns(&h) == 0 && pp_histogram_variation(&h) == 0);
	pp_histogram_add(&h, -5);
	assert_true(h.count == 1 && h.min_ns == 0 && h.max_ns == 0);
	assert_true(pp_histogram_variation(&h) == 0);
}

static void test_merge(void **state)
{
	static struct pp_histogram whole, parts[3], merged;
	int i;

	(void)state;
	pp_histogram_init(&whole);
	pp_histogram_init(&merged);
	for (i = 0; i < 3; i++)
		pp_histogram_init(&parts[i]); /* the last stays empty */
	for (i = 0; i < VALUES; i++) {
		int64_t value = spread();

		pp_histogram_add(&whole, value);
		pp_histogram_add(&parts[i % 2], value);
	}
	for (i = 0; i < 3; i++)
		pp_histogram_merge(&merged, &parts[i]);
	assert_memory_equal(merged.counts, whole.counts, sizeof(whole.counts));
	assert_true(merged.count == whole.count);
	assert_true(merged.min_ns == whole.min_ns && merged.max_ns == whole.max_ns);
	assert_true(fabs(merged.sum_ns - whole.sum_ns) <= whole.sum_ns * 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_empty_and_negative),
		cmocka_unit_test(test_merge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
