/* SPDX-License-Identifier: MIT
 *
 * The statistics of docs/method.md, M9: trials are the unit, bounds are exact and one-sided
 * (Clopper and Pearson, Biometrika 26, 1934), comparisons are Fisher's exact test. Everything here
 * is a pure function of its arguments; probabilities are fractions of 1, never per cent. Good for
 * n up to a million trials.
 */
#ifndef PP_CORE_STATS_H
#define PP_CORE_STATS_H

#include <stdint.h>

#include "error.h"

#define PP_STATS_N_MAX 1000000u

/* "95/90": with 95 % confidence at least 90 % of cuts lose nothing (M8.3). */
struct pp_criterion {
	uint32_t confidence_ppm;  /* parts in a million, so that 99.9 is exact: 999000 */
	uint32_t reliability_ppm;
	char text[20];            /* shortest form: "95/90", "95/99.9" */
};

/*
 * Parses CONFIDENCE/RELIABILITY, two decimal numbers in per cent, each above 0 and below 100 with
 * at most four decimals; nothing else may stand before, between or after them. Refuses a criterion
 * that needs more than PP_STATS_N_MAX clean cuts. On failure *criterion is untouched.
 */
int pp_criterion_parse(const char *text, struct pp_criterion *criterion, struct pp_error *err);

/*
 * The success-run sample size: the smallest n with reliability^n <= 1 - confidence, which is
 * ceil(ln(1 - C) / ln R) where rounding cannot move it. 95/90: 29. 95/99: 299.
 */
uint32_t pp_criterion_clean_cuts(const struct pp_criterion *criterion);

/*
 * The regularized incomplete beta function I_x(a, b), a and b above 0 (DLMF 8.17).
 */
double pp_stats_beta_inc(double a, double b, double x);

/*
 * One-sided bounds of the probability behind k events in n trials (k <= n). The upper bound of
 * n = 0 is 1, the lower bound of k = 0 is 0.
 */
double pp_stats_bound_upper(uint32_t k, uint32_t n, double confidence);
double pp_stats_bound_lower(uint32_t k, uint32_t n, double confidence);

/* 1 - (1 - q)^n: the chance that at least one of n cuts shows what each shows with chance q. */
double pp_stats_detection_power(double q, uint32_t n);

/*
 * Fisher's exact test of a in a+b against c in c+d, margins fixed. The greater side is the chance
 * of a or more; two-sided adds every table no likelier than the one seen.
 */
double pp_stats_fisher_greater(uint32_t a, uint32_t b, uint32_t c, uint32_t d);
double pp_stats_fisher_less(uint32_t a, uint32_t b, uint32_t c, uint32_t d);
double pp_stats_fisher_two_sided(uint32_t a, uint32_t b, uint32_t c, uint32_t d);

#endif
