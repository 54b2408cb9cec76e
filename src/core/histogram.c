/* SPDX-License-Identifier: MIT */
#include "histogram.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define SUB_BITS PP_HISTOGRAM_SUB_BITS
#define SUB      (1U << SUB_BITS)

/*
 * Values below 2 * SUB have a bucket each; above, every power of two is cut into SUB equal ones.
 * With `shift` = how far the value lies above that, the bucket is shift * SUB + (value >> shift).
 */
static uint32_t bucket_of(uint64_t value)
{
	uint32_t shift;

	if (value < 2 * SUB)
		return (uint32_t)value;
	if (value >> PP_HISTOGRAM_TOP_BITS)
		return PP_HISTOGRAM_BUCKETS - 1;
	shift = 63 - (uint32_t)__builtin_clzll(value) - SUB_BITS;
	return (shift << SUB_BITS) + (uint32_t)(value >> shift);
}

static uint64_t bucket_end(uint32_t bucket)
{
	uint32_t shift;

	if (bucket < 2 * SUB)
		return bucket;
	shift = (bucket >> SUB_BITS) - 1;
	return ((uint64_t)(bucket - (shift << SUB_BITS) + 1) << shift) - 1;
}

void pp_histogram_init(struct pp_histogram *histogram)
{
	memset(histogram, 0, sizeof(*histogram));
}

void pp_histogram_add(struct pp_histogram *histogram, int64_t ns)
{
	double d;

	if (ns < 0)
		ns = 0;
	d = (double)ns;
	if (histogram->count == 0 || ns < histogram->min_ns)
		histogram->min_ns = ns;
	if (ns > histogram->max_ns)
		histogram->max_ns = ns;
	histogram->counts[bucket_of((uint64_t)ns)]++;
	histogram->count++;
	histogram->sum_ns += d;
	histogram->sum_squares_ns2 += d * d;
}

void pp_histogram_merge(struct pp_histogram *into, const struct pp_histogram *from)
{
	uint32_t i;

	if (from->count == 0)
		return;
	if (into->count == 0 || from->min_ns < into->min_ns)
		into->min_ns = from->min_ns;
	if (from->max_ns > into->max_ns)
		into->max_ns = from->max_ns;
	for (i = 0; i < PP_HISTOGRAM_BUCKETS; i++)
		into->counts[i] += from->counts[i];
	into->count += from->count;
	into->sum_ns += from->sum_ns;
	into->sum_squares_ns2 += from->sum_squares_ns2;
}

int64_t pp_histogram_quantile_ns(const struct pp_histogram *histogram, double quantile)
{
	uint64_t rank, seen = 0;
	uint32_t i;

	assert(quantile >= 0 && quantile <= 1);
	if (histogram->count == 0)
		return 0;
	rank = (uint64_t)ceil(quantile * (double)histogram->count);
	if (rank < 1)
		return histogram->min_ns;
	if (rank >= histogram->count)
		return histogram->max_ns;
	for (i = 0; i < PP_HISTOGRAM_BUCKETS - 1; i++) {
		seen += histogram->counts[i];
		if (seen >= rank)
			break;
	}
	/* The last bucket has no upper end of its own: what lies there may be any size. */
	if (i == PP_HISTOGRAM_BUCKETS - 1 || (int64_t)bucket_end(i) > histogram->max_ns)
		return histogram->max_ns;
	return (int64_t)bucket_end(i);
}

double pp_histogram_mean_ns(const struct pp_histogram *histogram)
{
	return histogram->count ? histogram->sum_ns / (double)histogram->count : 0;
}

double pp_histogram_variation(const struct pp_histogram *histogram)
{
	double n = (double)histogram->count, mean = pp_histogram_mean_ns(histogram), variance;

	if (histogram->count < 2 || mean <= 0)
		return 0;
	variance = (histogram->sum_squares_ns2 - n * mean * mean) / (n - 1);
	return variance > 0 ? sqrt(variance) / mean : 0;
}
