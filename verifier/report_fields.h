/* SPDX-License-Identifier: MIT
 *
 * The fields of a report, one table for text, JSON and CSV, and the words that all forms share. For
 * report*.c, lot.c and compare_report.c; nobody else includes this.
 */
#ifndef PP_VERIFIER_REPORT_FIELDS_H
#define PP_VERIFIER_REPORT_FIELDS_H

#include <jansson.h>

#include "report.h"

#define PP_FIGURE_BYTES   320
#define PP_SENTENCE_BYTES 1024

/* An arm and its speed, or NULL where there is none. */
struct report_row {
	const struct pp_verdict_arm *arm;
	const struct pp_speed_row *speed;
};

struct report_field {
	const char *key;     /* in JSON and CSV; NULL: a column of the text alone */
	const char *heading; /* of the text's column; NULL: not a column */
	int width;           /* of the column; below 0: to the left */
	json_t *(*value)(const struct report_row *row); /* NULL from it: out of memory */
	void (*text)(const struct report_row *row, char *out, size_t bytes);
};

extern const struct report_field pp_report_fields[];
extern const size_t pp_report_field_count;

struct report_row pp_report_row(const struct pp_report_input *input, size_t arm);

/* The arms in the order of the report: by drive, those that promise less apart, by conditions. */
struct report_line {
	struct report_row row;
	bool apart;           /* promises less than media (M8.6) */
	char conditions[900];
	size_t place;         /* in the verdict, which has the methods in their order */
};
struct report_line *pp_report_lines(const struct pp_report_input *input); /* malloc; NULL: no memory */
bool pp_report_same_drive(const struct pp_arm_key *a, const struct pp_arm_key *b);

/*
 * report_policy.c, method by policy, over the lines of one drive: the settings that its arms have, in
 * order, 0 unless they differ; whether line `at` is the first of its row; the arm of a row under a
 * setting, NULL where there is none; what the row is called.
 */
#define PP_REPORT_POLICIES_MAX 4
size_t pp_report_policies(const struct report_line *lines, size_t count, const char **names,
	size_t most);
bool pp_report_policy_row(const struct report_line *lines, size_t at);
const struct report_line *pp_report_policy_cell(const struct report_line *lines, size_t count,
	size_t row, const char *setting);
void pp_report_policy_label(const struct report_line *lines, size_t count, size_t row, char *out,
	size_t bytes);

/* Copies what is printable ASCII, '?' for the rest: nothing from a drive steers a terminal. */
const char *pp_report_ascii(char *out, size_t bytes, const char *text);

/* At most 5 characters: "8.3", "451", "2160", "33.7k", "1.2M". */
void pp_report_compact(char *out, size_t bytes, double value);

/* At most 6 characters: "451us", "9.8ms", "12.5s"; "-" below 0. */
void pp_report_duration(char *out, size_t bytes, int64_t ns);

/* Adds text in lines of at most 80 columns; the first begins with lead, the others with blanks. */
void pp_report_wrapped(struct pp_buf *out, const char *lead, const char *text);

/* "overwrite, raw, 1 lane, 8192-byte records, write back, fua, mains, kernel 6.18". */
void pp_report_conditions(const struct pp_arm_key *key, char *out, size_t bytes);

/* "36 stale, 2 torn; acked 1.2ms to 45ms before the end"; false where there is nothing to say. */
bool pp_report_losses(const struct pp_verdict_arm *arm, char *out, size_t bytes);

/* What must be known before any figure is believed, a sentence each: evidence that does not fit its
 * seal, a lab's, an outlet that was not proven. NULL at the end; also where nothing is known. */
#define PP_MARKS_MAX 3
void pp_report_marks(const struct pp_report_source *source, const char *marks[PP_MARKS_MAX + 1]);

/* The verdict in a sentence, what it rests on, what it does not cover. They return text. */
const char *pp_report_sentence(const struct pp_verdict *verdict, char *text, size_t bytes);
const char *pp_report_rests(const struct pp_verdict *verdict, char *text, size_t bytes);
const char *pp_report_not_covered(const struct pp_verdict *verdict, char *text, size_t bytes);

/* "9.8 %", "0.52 %", "<0.01%", "100 %": of a fraction of 1. At most 6 characters. */
void pp_report_share(char *out, size_t bytes, double fraction);

/* M4.8: "3 of 40 writes torn (...) ..."; false where nothing was seen in flight. */
bool pp_report_tears(const struct pp_verdict_arm *arm, char *out, size_t bytes);
/* Upper bound of the share of torn writes among those in flight. */
double pp_report_tears_bound(const struct pp_verdict_arm *arm);

#endif
