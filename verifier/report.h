/* SPDX-License-Identifier: MIT
 *
 * Verdicts and speed side by side, for people (a table of 80 columns, a page to print), for programs
 * (JSON, CSV) and for test servers (JUnit). All are made from one table of fields and one set of
 * sentences; the same input gives the same bytes. Whatever comes from a drive or a person is shown as
 * printable ASCII.
 */
#ifndef PP_VERIFIER_REPORT_H
#define PP_VERIFIER_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/buf.h"
#include "src/core/error.h"
#include "verifier/verdict.h"

/* A row of the speed matrix (M10), joined to its arms by serial, method, workload and
 * setting of the cache policy. */
struct pp_speed_row {
	char serial[PP_TEXT_SHORT], method[PP_TEXT_SHORT], workload[PP_TEXT_SHORT];
	double ops_per_s;
	int64_t latency_ns_p50, latency_ns_p99;
	double flushes_per_op; /* below 0: the disk does not count them */
	char setting[16];      /* of the cache policy under which it was measured; "" for as found */
};

/* What the last lines of a campaign say; an empty or NULL text leaves its line out. */
struct pp_report_end {
	const char *where;    /* where the report is */
	const char *outlet;   /* state of the outlet: "outlet 3 of rack-7 is on" */
	const char *policy;   /* cache policies that were changed: put back, or how to */
	const char *clean_up; /* how to clean up */
};

/* Where the evidence is, and what is told of it beside the verdicts. */
struct pp_report_fact {
	const char *label, *value; /* an empty value is left out */
};

struct pp_report_source {
	const char *folder, *name;
	const char *started;       /* "2026-11-30T12:00:00Z" */
	const char *seal_sha256;   /* of SHA256SUMS; "" where there is none */
	bool sealed;               /* the evidence fits its seal */
	bool simulated;            /* a lab's: no drive, machine or power switch was there */
	bool unproven_wiring;      /* nobody proved that the outlet feeds the machine */
	const struct pp_report_fact *facts;
	size_t fact_count;
};

struct pp_lots; /* lot.h */

struct pp_report_input {
	const struct pp_verdict *verdict;
	const struct pp_report_source *source; /* may be NULL for text, JSON and CSV */
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

/*
 * Of one or more campaigns, each with its source; lots may be NULL. JSON: one object with a list of
 * campaigns. JUnit: a testsuite a drive, a testcase an arm, such that there is a failure where a
 * promise was broken, and else an error where exit status is 2 (M8.7). HTML: one file that needs no
 * other, without scripts, to read and to print.
 */
int pp_report_json_all(const struct pp_report_input *inputs, size_t count,
	const struct pp_lots *lots, struct pp_buf *out, struct pp_error *err);
int pp_report_junit(const struct pp_report_input *inputs, size_t count, struct pp_buf *out,
	struct pp_error *err);
int pp_report_html(const struct pp_report_input *inputs, size_t count, const struct pp_lots *lots,
	struct pp_buf *out, struct pp_error *err);

#endif
