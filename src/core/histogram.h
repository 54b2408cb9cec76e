/* SPDX-License-Identifier: MIT
 *
 * Latencies in fixed memory: counts in buckets whose width grows with the value, so that every
 * percentile is right to within 1/128 (0.8 %) from 1 ns to 2^42 ns (73 minutes), and adding one
 * costs a few nanoseconds. The idea is HdrHistogram's. One thread adds; merge afterwards.
 */
#ifndef PP_CORE_HISTOGRAM_H
#define PP_CORE_HISTOGRAM_H

#include <stdint.h>

#define PP_HISTOGRAM_SUB_BITS  7
#define PP_HISTOGRAM_TOP_BITS  42
#define PP_HISTOGRAM_BUCKETS \
	(((PP_HISTOGRAM_TOP_BITS - PP_HISTOGRAM_SUB_BITS + 1) << PP_HISTOGRAM_SUB_BITS) + 1)

/* The caller owns it (36 kB: not for the stack of a thread with a small one). */
struct pp_histogram {
	uint64_t counts[PP_HISTOGRAM_BUCKETS];
	uint64_t count;
	int64_t min_ns, max_ns; /* exact; 0 while empty */
	double sum_ns, sum_squares_ns2;
};

void pp_histogram_init(struct pp_histogram *histogram);
/* Negative counts as 0; above the top counts in the last bucket, and max_ns still has it exactly. */
void pp_histogram_add(struct pp_histogram *histogram, int64_t ns);
void pp_histogram_merge(struct pp_histogram *into, const struct pp_histogram *from);

/*
 * The smallest recorded value (to a bucket: its upper end, never above max_ns) that at least
 * `quantile` (0 ... 1) of all values do not exceed; 0 while empty.
 */
int64_t pp_histogram_quantile_ns(const struct pp_histogram *histogram, double quantile);
double pp_histogram_mean_ns(const struct pp_histogram *histogram);
/* Coefficient of variation: standard deviation / mean; 0 where there is none. */
double pp_histogram_variation(const struct pp_histogram *histogram);

#endif
