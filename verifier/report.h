/* SPDX-License-Identifier: MIT
 *
 * Verdicts and speed side by side, for people (a table of 80 columns), for programs (JSON, CSV).
 * All three are made from one table of fields; the same input gives the same bytes. Whatever comes
 * from a drive or a person is shown as printable ASCII.
 */
#ifndef PP_VERIFIER_REPORT_H
#define PP_VERIFIER_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/buf.h"
#include "src/core/error.h"
#include "verifier/verdict.h"

/* A row of the speed matrix (M10), joined to its arms by serial, method and workload. */
struct pp_speed_row {
	char serial[PP_TEXT_SHORT], method[PP_TEXT_SHORT], workload[PP_TEXT_SHORT];
	double ops_per_s;
	int64_t latency_ns_p50, latency_ns_p99;
	double flushes_per_op; /* below 0: the disk does not count them */
};

/* What the last lines of a campaign say; an empty or NULL text leaves its line out. */
struct pp_report_end {
	const char *where;    /* where the report is */
	const char *outlet;   /* state of the outlet: "outlet 3 of rack-7 is on" */
	const char *clean_up; /* how to clean up */
};

struct pp_report_input {
	const struct pp_verdict *verdict;
	const struct pp_speed_row *speed;
	size_t speed_count;
	const struct pp_report_end *end; /* may be NULL */
	bool colour;                     /* the caller knows that it writes to a terminal */
};

/*
 * Appends to out. They fail only when out overflows its maximum or memory runs out.
 */
int pp_report_text(const struct pp_report_input *input, struct pp_buf *out, struct pp_error *err);
int pp_report_json(const struct pp_report_input *input, struct pp_buf *out, struct pp_error *err);
int pp_report_csv(const struct pp_report_input *input, struct pp_buf *out, struct pp_error *err);

#endif
