/* SPDX-License-Identifier: MIT
 *
 * Two arms side by side (docs/method.md, M9.2): did one lose in a larger share of its cuts than the
 * other? Fisher's exact test over cuts, never over records. A rate that its own first loss brought to
 * an end is not a rate, so such an arm is not compared; nor is one with trials that nobody settled.
 */
#ifndef PP_VERIFIER_COMPARE_H
#define PP_VERIFIER_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "evidence.h"
#include "src/core/buf.h"
#include "src/core/error.h"

struct pp_compare_side {
	char name[400];                   /* for people */
	uint32_t lost, cuts;              /* cuts: those that lost, and the clean ones */
	const struct pp_verdict_arm *arm; /* borrowed; NULL: counts that a person entered */
	bool stop_known, stop_at_first_loss;
	uint32_t cuts_fixed;              /* how many were planned; 0: as the criterion needed */
};

enum pp_compare_result {
	PP_COMPARE_NOT,        /* zero: refused says why */
	PP_COMPARE_NONE_SHOWN,
	PP_COMPARE_A_LOSES_MORE,
	PP_COMPARE_B_LOSES_MORE,
};

#define PP_COMPARE_NOTES 8

struct pp_comparison {
	struct pp_compare_side side[2];
	enum pp_compare_result result;
	char refused[400];
	double lower[2], upper[2];        /* one-sided 95 % bounds of the share of cuts that lose */
	double p_two_sided;
	double p_one_sided;               /* in the direction that was seen */
	double limit;                     /* a difference is a two-sided p below it */
	bool hopeless;                    /* so few cuts that no outcome could have shown one */
	char notes[PP_COMPARE_NOTES][400];
	size_t note_count;
};

/*
 * Judges c->side[0] and [1], which the caller has filled. together: how many comparisons are made
 * at once, so that the chance of a single false difference among them stays below 5 % (Bonferroni).
 */
void pp_compare(struct pp_comparison *c, size_t together);

/* "2/53": 2 lost of 53 cuts. False where the text is not two whole numbers with k <= n. */
bool pp_compare_counts(const char *text, struct pp_compare_side *side);

/* One campaign, and which of its arms; an empty text takes any, controls left out. */
struct pp_compare_source {
	const char *folder;
	const struct pp_evidence *evidence;
	const struct pp_verdict *verdict;
	char method[PP_TEXT_SHORT], workload[PP_TEXT_SHORT], serial[PP_TEXT_SHORT];
};

/* METHOD[,WORKLOAD[,SERIAL]] into a source's three texts. */
int pp_compare_arm(const char *text, struct pp_compare_source *source, struct pp_error *err);

/* The counts of one arm with all that pp_compare asks of them. */
void pp_compare_fill(struct pp_compare_side *side, const struct pp_compare_source *source,
	const struct pp_verdict_arm *arm);

/*
 * The only arm that fits. NULL with PP_ERR_USAGE where none does, or more than one.
 */
const struct pp_verdict_arm *pp_compare_only(const struct pp_compare_source *source,
	struct pp_error *err);

struct pp_comparisons {
	struct pp_comparison *list; /* malloc; pp_comparisons_release */
	size_t count, alone;        /* alone: arms that only one of the two has */
};

/*
 * Compares all arms that fit: each with its like in the other campaign (method, workload, target,
 * pattern, lanes, group, record size; the same drive where there are several). Where each side has
 * one arm that fits, those two, however unlike. PP_ERR_USAGE where nothing is left to compare, where
 * it is not clear which is whose like, and where an arm would be compared with itself (copies of one
 * campaign are one campaign).
 */
int pp_compare_campaigns(const struct pp_compare_source *a, const struct pp_compare_source *b,
	struct pp_comparisons *out, struct pp_error *err);
void pp_comparisons_release(struct pp_comparisons *c);

/* Append to out; -1 where it overflows. */
int pp_comparisons_text(const struct pp_comparisons *c, struct pp_buf *out, struct pp_error *err);
int pp_comparisons_json(const struct pp_comparisons *c, struct pp_buf *out, struct pp_error *err);

/* 1: a difference in any; else 2: some pair could not be compared; else 0. */
int pp_comparisons_exit(const struct pp_comparisons *c);

#endif
