/* SPDX-License-Identifier: MIT
 *
 * The report for people. A drive has one table; arms that share their conditions stand under one
 * line that names them, so that the figures stand in columns. A name that is too long for its
 * column gets a line of its own, a figure that is too long moves below the row: nothing shifts.
 * Arms that promise less than media stand apart (M8.6), in no colour.
 */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_fields.h"

/* ---- one arm ------------------------------------------------------------------------------ */

static void add_headings(struct pp_buf *out, bool apart)
{
	size_t i, seen = 0;

	for (i = 0; i < pp_report_field_count; i++) {
		const struct report_field *field = &pp_report_fields[i];
		const char *heading = field->heading;

		if (!heading)
			continue;
		if (strcmp(heading, "verdict") == 0)
			pp_buf_addf(out, " %s", apart ? "result" : heading);
		else
			pp_buf_addf(out, "%s%*s", seen ? " " : "", field->width, heading);
		seen++;
	}
	pp_buf_addf(out, "\n");
}

static const char *colour_of(enum pp_arm_verdict verdict)
{
	static const char *const colours[] = {
		[PP_ARM_SAFE] = "\033[32m", [PP_ARM_UNSAFE] = "\033[1;31m",
		[PP_ARM_INCONCLUSIVE] = "\033[33m", [PP_ARM_NA] = NULL,
		[PP_ARM_LOSES] = NULL, [PP_ARM_KEEPS] = NULL,
	};

	return colours[verdict];
}

static void add_figures(struct pp_buf *out, const struct report_line *line, bool colour)
{
	char cell[PP_FIGURE_BYTES], below[PP_FIGURE_BYTES] = "";
	const char *paint = colour && !line->apart ? colour_of(line->row.arm->verdict) : NULL;
	size_t i, seen = 0;

	for (i = 0; i < pp_report_field_count; i++) {
		const struct report_field *field = &pp_report_fields[i];

		if (!field->heading)
			continue;
		field->text(&line->row, cell, sizeof(cell));
		if (seen == 0 && (int)strlen(cell) > abs(field->width)) {
			pp_report_wrapped(out, "", cell);
			cell[0] = '\0';
		} else if ((int)strlen(cell) > abs(field->width)) {
			snprintf(below, sizeof(below), "%s: %.64s", field->heading, cell);
			snprintf(cell, sizeof(cell), "*");
		}
		if (strcmp(field->heading, "verdict") == 0)
			pp_buf_addf(
				out, " %s%s%s", paint ? paint : "", cell, paint ? "\033[0m" : "");
		else
			pp_buf_addf(out, "%s%*s", seen ? " " : "", field->width, cell);
		seen++;
	}
	pp_buf_addf(out, "\n");
	if (below[0])
		pp_report_wrapped(out, "  * ", below);
}

static void add_lost(struct pp_buf *out, const struct pp_verdict_arm *arm)
{
	char text[512];

	if (pp_report_losses(arm, text, sizeof(text)))
		pp_report_wrapped(out, "    lost: ", text);
}

static void add_arm(struct pp_buf *out, const struct report_line *line, bool colour)
{
	const struct pp_verdict_arm *arm = line->row.arm;
	char tears[320];
	size_t i;

	add_figures(out, line, colour);
	add_lost(out, arm);
	if (pp_report_tears(arm, tears, sizeof(tears)))
		pp_report_wrapped(out, "    in flight: ", tears);
	for (i = 0; i < arm->reason_count; i++)
		pp_report_wrapped(out, arm->reasons[i].blocks ? "  ! " : "  - ", arm->reasons[i].text);
}

/* ---- tables ------------------------------------------------------------------------------- */

static void add_drive(struct pp_buf *out, const struct pp_arm_key *key, bool simulated)
{
	char text[400];

	snprintf(text, sizeof(text), "%s%s%s%s%s", key->serial[0] ? key->serial : "(no serial)",
		key->model[0] ? ", " : "", key->model, key->firmware[0] ? ", firmware " : "",
		key->firmware);
	pp_report_wrapped(out, simulated ? "simulated drive " : "drive ", text);
}

#define POLICY_LABEL 24
#define POLICY_CELL  13

/* One look: which policy of the write cache breaks which method. */
static void add_policies(struct pp_buf *out, const struct report_line *lines, size_t count,
	bool colour)
{
	const char *names[PP_REPORT_POLICIES_MAX];
	size_t used = pp_report_policies(lines, count, names, PP_REPORT_POLICIES_MAX), i, k;
	char label[200];

	if (!used)
		return;
	pp_buf_addf(out, "\n%-*s", POLICY_LABEL, "policy:");
	for (k = 0; k < used; k++)
		pp_buf_addf(out, "%s%-*s", k ? " " : "", k + 1 < used ? POLICY_CELL : 0, names[k]);
	pp_buf_addf(out, "\n");
	for (i = 0; i < count; i++) {
		if (!pp_report_policy_row(lines, i))
			continue;
		pp_report_policy_label(lines, count, i, label, sizeof(label));
		if (strlen(label) >= POLICY_LABEL) {
			pp_report_wrapped(out, "", label);
			label[0] = '\0';
		}
		pp_buf_addf(out, "%-*s", POLICY_LABEL, label);
		for (k = 0; k < used; k++) {
			const struct report_line *cell = pp_report_policy_cell(lines, count, i, names[k]);
			const char *word = cell ? pp_arm_verdict_name(cell->row.arm->verdict) : "-";
			const char *paint = colour && cell && !cell->apart
				? colour_of(cell->row.arm->verdict) : NULL;
			int blanks = POLICY_CELL - (int)strlen(word);

			pp_buf_addf(out, "%s%s%s%s%*s", k ? " " : "", paint ? paint : "", word,
				paint ? "\033[0m" : "", k + 1 < used && blanks > 0 ? blanks : 0, "");
		}
		pp_buf_addf(out, "\n");
	}
}

/* How many lines from here on are of one drive. */
static size_t lines_of_drive(const struct report_line *lines, size_t count)
{
	size_t n = 1;

	while (n < count && pp_report_same_drive(&lines[0].row.arm->key, &lines[n].row.arm->key))
		n++;
	return n;
}

static void add_tables(struct pp_buf *out, const struct pp_report_input *input,
	const struct report_line *lines, size_t count)
{
	bool simulated = input->source && input->source->simulated;
	size_t i, first = 0;

	for (i = 0; i < count; i++) {
		const struct report_line *line = &lines[i], *last = i ? &lines[i - 1] : NULL;
		bool drive = !last || !pp_report_same_drive(&last->row.arm->key, &line->row.arm->key);
		bool section = drive || last->apart != line->apart;

		if (drive) {
			pp_buf_addf(out, "%s", i ? "\n" : "");
			add_drive(out, &line->row.arm->key, simulated);
			first = i;
		}
		if (section && line->apart)
			pp_buf_addf(out,
				"%scontrols and others that do not promise to survive a cut\n",
				drive ? "" : "\n");
		if (section || strcmp(last->conditions, line->conditions) != 0) {
			pp_buf_addf(out, "%s", section ? "" : "\n");
			pp_report_wrapped(out, "", line->conditions);
			add_headings(out, line->apart);
		}
		add_arm(out, line, input->colour);
		if (i + 1 == first + lines_of_drive(&lines[first], count - first))
			add_policies(out, &lines[first], i + 1 - first, input->colour);
	}
	if (count)
		pp_buf_addf(out,
			"\nc/l/v/o: cuts clean/loss/void/open, others (not exposed) in a note; bound: at\n"
			"most this share of cuts loses (95 %%); ! stands against SAFE, - is a note\n");
}

/* ---- the last lines ----------------------------------------------------------------------- */

static void add_end(struct pp_buf *out, const struct pp_report_input *input)
{
	const struct pp_report_end *end = input->end;
	const struct { const char *lead, *text; } lines[] = {
		{ "report:         ", end ? end->where : NULL },
		{ "power:          ", end ? end->outlet : NULL },
		{ "cache policy:   ", end ? end->policy : NULL },
		{ "clean up:       ", end ? end->clean_up : NULL },
	};
	const char *marks[PP_MARKS_MAX + 1];
	char text[PP_SENTENCE_BYTES];
	size_t i;

	pp_buf_addf(out, "\n");
	pp_report_marks(input->source, marks);
	for (i = 0; marks[i]; i++)
		pp_report_wrapped(out, "!! ", marks[i]);
	pp_report_wrapped(out, "verdict:        ",
		pp_report_sentence(input->verdict, text, sizeof(text)));
	pp_report_wrapped(out, "rests on:       ", pp_report_rests(input->verdict, text, sizeof(text)));
	pp_report_wrapped(out, "does not cover: ",
		pp_report_not_covered(input->verdict, text, sizeof(text)));
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (lines[i].text && lines[i].text[0])
			pp_report_wrapped(out, lines[i].lead, lines[i].text);
}

int pp_report_text(const struct pp_report_input *input, struct pp_buf *out, struct pp_error *err)
{
	struct report_line *lines = pp_report_lines(input);

	if (lines) {
		add_tables(out, input, lines, input->verdict->arm_count);
		add_end(out, input);
	}
	if (!lines || out->failed) {
		free(lines);
		return pp_fail(err, PP_ERR_SYSTEM, "cannot make the report: out of memory");
	}
	free(lines);
	return 0;
}
