/* SPDX-License-Identifier: MIT
 *
 * Method: the binomial tail is the regularized incomplete beta function, which a continued fraction
 * gives to full precision; a bound is where that tail crosses 1 - confidence, found by bisection,
 * which cannot diverge. The corners (no event, nothing but events) have closed forms.
 */
#include "stats.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#define PPM 1000000u

/* DLMF 8.17.22, evaluated by the modified Lentz method; converges for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1.0, d = 1.0 - (a + b) * x / (a + 1.0), f;
	int m;

	d = 1.0 / (fabs(d) < tiny ? tiny : d);
	f = d;
	/* The number of terms grows with sqrt(a + b): some thousand for a million trials. */
	for (m = 1; m <= 100000; m++) {
		double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
		double step;

		d = 1.0 + even * d;
		d = 1.0 / (fabs(d) < tiny ? tiny : d);
		c = 1.0 + even / c;
		c = fabs(c) < tiny ? tiny : c;
		f *= d * c;
		d = 1.0 + odd * d;
		d = 1.0 / (fabs(d) < tiny ? tiny : d);
		c = 1.0 + odd / c;
		c = fabs(c) < tiny ? tiny : c;
		step = d * c;
		f *= step;
		if (fabs(step - 1.0) < 4.0 * DBL_EPSILON)
			break;
	}
	return f;
}

double pp_stats_beta_inc(double a, double b, double x)
{
	double front;

	assert(a > 0.0 && b > 0.0);
	if (x <= 0.0)
		return 0.0;
	if (x >= 1.0)
		return 1.0;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1.0) / (a + b + 2.0))
		return front * beta_fraction(a, b, x) / a;
	return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b;
}

/* The p at which I_p(a, b) = level, as an interval; I rises with p. */
static void beta_inverse(double a, double b, double level, double *low, double *high)
{
	int i;

	*low = 0.0;
	*high = 1.0;
	for (i = 0; i < 200; i++) {
		double middle = *low + (*high - *low) / 2.0;

		if (middle <= *low || middle >= *high)
			break;
		if (pp_stats_beta_inc(a, b, middle) < level)
			*low = middle;
		else
			*high = middle;
	}
}

double pp_stats_bound_upper(uint32_t k, uint32_t n, double confidence)
{
	double low, high;

	assert(k <= n && confidence > 0.0 && confidence < 1.0);
	if (k == n)
		return 1.0;
	if (k == 0)
		return -expm1(log1p(-confidence) / n);
	beta_inverse(k + 1.0, (double)n - k, confidence, &low, &high);
	return high;
}

double pp_stats_bound_lower(uint32_t k, uint32_t n, double confidence)
{
	double low, high;

	assert(k <= n && confidence > 0.0 && confidence < 1.0);
	if (k == 0)
		return 0.0;
	if (k == n)
		return exp(log1p(-confidence) / n);
	beta_inverse(k, (double)n - k + 1.0, 1.0 - confidence, &low, &high);
	return low;
}

double pp_stats_detection_power(double q, uint32_t n)
{
	assert(q >= 0.0 && q <= 1.0);
	if (n == 0)
		return 0.0;
	return q >= 1.0 ? 1.0 : -expm1(n * log1p(-q));
}

/*
 * R^n <= 1 - C. The two sides can be equal only up to n = 6, because a fraction with denominator q
 * to the power n must still divide a million; there integers decide (n = 2 for 75/50, not 3).
 */
static bool run_suffices(const struct pp_criterion *criterion, uint32_t n)
{
	unsigned __int128 power = criterion->reliability_ppm;
	unsigned __int128 limit = PPM - criterion->confidence_ppm;
	uint32_t i;

	if (n > 6)
		return n * logl(criterion->reliability_ppm / (long double)PPM) <=
			logl((PPM - criterion->confidence_ppm) / (long double)PPM);
	for (i = 1; i < n; i++) {
		power *= criterion->reliability_ppm;
		limit *= PPM;
	}
	return power <= limit;
}

uint32_t pp_criterion_clean_cuts(const struct pp_criterion *criterion)
{
	long double ratio;
	uint32_t n;

	assert(criterion->confidence_ppm > 0 && criterion->confidence_ppm < PPM);
	assert(criterion->reliability_ppm > 0 && criterion->reliability_ppm < PPM);
	ratio = logl((PPM - criterion->confidence_ppm) / (long double)PPM) /
		logl(criterion->reliability_ppm / (long double)PPM);
	assert(ratio < UINT32_MAX);
	/* From two below, since the quotient may be off by one either way. */
	n = ratio > 3.0L ? (uint32_t)ratio - 2 : 1;
	while (!run_suffices(criterion, n))
		n++;
	return n;
}

/* Reads "95" or "99.9" (above 0, below 100, at most four decimals); NULL if it is not one. */
static const char *parse_percent(const char *text, uint32_t *ppm)
{
	uint32_t value = 0, scale = PPM / 100;
	const char *at = text;

	for (; *at >= '0' && *at <= '9'; at++) {
		if (at - text == 2 || (at - text == 1 && *text == '0'))
			return NULL;
		value = value * 10 + (uint32_t)(*at - '0');
	}
	if (at == text)
		return NULL;
	value *= scale;
	if (*at == '.') {
		const char *decimals = ++at;

		for (; *at >= '0' && *at <= '9'; at++) {
			if (at - decimals == 4)
				return NULL;
			scale /= 10;
			value += scale * (uint32_t)(*at - '0');
		}
		if (at == decimals)
			return NULL;
	}
	if (value == 0)
		return NULL;
	*ppm = value;
	return at;
}

static int print_percent(char *out, size_t bytes, uint32_t ppm)
{
	uint32_t whole = ppm / 10000, part = ppm % 10000;
	int digits = 4;

	if (part == 0)
		return snprintf(out, bytes, "%u", whole);
	for (; part % 10 == 0; part /= 10)
		digits--;
	return snprintf(out, bytes, "%u.%0*u", whole, digits, part);
}

int pp_criterion_parse(const char *text, struct pp_criterion *criterion, struct pp_error *err)
{
	struct pp_criterion parsed = { 0 };
	const char *at = parse_percent(text, &parsed.confidence_ppm);
	int used;

	if (at && *at == '/')
		at = parse_percent(at + 1, &parsed.reliability_ppm);
	else
		at = NULL;
	if (!at || *at)
		return pp_fail(err, PP_ERR_USAGE,
			"'%s' is not a criterion: say CONFIDENCE/RELIABILITY in per cent, as in "
			"95/90",
			text);
	if (log1p(-(parsed.confidence_ppm / (double)PPM)) <
		PP_STATS_N_MAX * log(parsed.reliability_ppm / (double)PPM))
		return pp_fail(err, PP_ERR_USAGE, "criterion '%s' needs more than %u clean cuts",
			text, PP_STATS_N_MAX);
	used = print_percent(parsed.text, sizeof(parsed.text), parsed.confidence_ppm);
	parsed.text[used++] = '/';
	print_percent(parsed.text + used, sizeof(parsed.text) - (size_t)used,
		parsed.reliability_ppm);
	*criterion = parsed;
	return 0;
}

/* ---- Fisher's exact test ------------------------------------------------------------------ */

struct fisher {
	double row, other_row, column; /* margins */
	double log_total;
	uint32_t low, high;            /* what the first cell may be */
};

static double log_choose(double n, double k)
{
	return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);
}

static struct fisher fisher_of(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	struct fisher f = { .row = (double)a + b, .other_row = (double)c + d,
		.column = (double)a + c };

	assert((uint64_t)a + b + c + d <= 4ull * PP_STATS_N_MAX);
	f.log_total = log_choose(f.row + f.other_row, f.column);
	f.low = a > d ? a - d : 0;
	f.high = a + (b < c ? b : c);
	return f;
}

static double fisher_point(const struct fisher *f, uint32_t cell)
{
	return exp(log_choose(f->row, cell) + log_choose(f->other_row, f->column - cell) -
		f->log_total);
}

static double fisher_sum(const struct fisher *f, uint32_t from, uint32_t to, double most)
{
	double sum = 0.0;
	uint32_t cell;

	for (cell = from; cell <= to; cell++) {
		double p = fisher_point(f, cell);

		if (p <= most)
			sum += p;
	}
	return sum < 1.0 ? sum : 1.0;
}

double pp_stats_fisher_greater(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	struct fisher f = fisher_of(a, b, c, d);

	return fisher_sum(&f, a, f.high, 1.0);
}

double pp_stats_fisher_less(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	struct fisher f = fisher_of(a, b, c, d);

	return fisher_sum(&f, f.low, a, 1.0);
}

double pp_stats_fisher_two_sided(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	struct fisher f = fisher_of(a, b, c, d);

	/* Tables of equal likelihood differ by rounding; they belong to the sum. */
	return fisher_sum(&f, f.low, f.high, fisher_point(&f, a) * (1.0 + 1e-7));
}
