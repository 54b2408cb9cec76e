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

enum { COLUMNS = 80 };

/* Adds text in lines of at most 80 columns; the first begins with lead, the others with blanks. */
static void add_wrapped(struct pp_buf *out, const char *lead, const char *text)
{
	int indent = (int)strlen(lead), room = COLUMNS - indent;
	char ascii[2048];
	const char *at = pp_report_ascii(ascii, sizeof(ascii), text);

	pp_buf_addf(out, "%s", lead);
	for (;;) {
		int length = (int)strlen(at), cut = length;

		if (length > room) {
			for (cut = room; cut > 0 && at[cut] != ' '; cut--)
				;
			if (cut == 0)
				cut = room; /* one word longer than the line */
		}
		pp_buf_addf(out, "%.*s\n", cut, at);
		at += cut;
		at += strspn(at, " ");
		if (!*at)
			return;
		pp_buf_addf(out, "%*s", indent, "");
	}
}

/* ---- order -------------------------------------------------------------------------------- */

struct line {
	struct report_row row;
	bool apart;           /* promises less than media */
	char conditions[900];
	size_t place;         /* in the verdict, which has the methods in their order */
};

static int same_drive(const struct pp_arm_key *a, const struct pp_arm_key *b)
{
	return strcmp(a->serial, b->serial) == 0 && strcmp(a->model, b->model) == 0 &&
		strcmp(a->firmware, b->firmware) == 0;
}

static int by_table(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	const struct pp_arm_key *k = &x->row.arm->key, *l = &y->row.arm->key;
	int order = strcmp(k->serial, l->serial);

	if (order == 0)
		order = strcmp(k->model, l->model);
	if (order == 0)
		order = strcmp(k->firmware, l->firmware);
	if (order == 0)
		order = x->apart - y->apart;
	if (order == 0)
		order = strcmp(x->conditions, y->conditions);
	return order ? order : (x->place > y->place) - (x->place < y->place);
}

static void add_part(struct pp_buf *text, const char *part)
{
	if (part[0])
		pp_buf_addf(text, "%s%s", text->bytes ? ", " : "", part);
}

/* "overwrite, raw, 1 lane, 8192-byte records, write back, fua, mains, kernel 6.18". */
static void describe(const struct pp_arm_key *key, char *out, size_t bytes)
{
	struct pp_buf text;
	char part[300];

	pp_buf_init(&text, bytes - 1);
	add_part(&text, key->workload);
	add_part(&text, key->target);
	add_part(&text, key->fs);
	if (key->mount_options[0]) {
		snprintf(part, sizeof(part), "(%s)", key->mount_options);
		add_part(&text, part);
	}
	if (key->lanes) {
		snprintf(part, sizeof(part), "%u lane%s", key->lanes, key->lanes == 1 ? "" : "s");
		add_part(&text, part);
		snprintf(part, sizeof(part), "group of %u", key->group);
		add_part(&text, key->group > 1 ? part : "");
		snprintf(part, sizeof(part), "%u-byte records", key->record_bytes);
		add_part(&text, part);
	}
	add_part(&text, key->noise ? "noise" : "");
	add_part(&text, key->policy);
	add_part(&text, key->cut_kind);
	snprintf(part, sizeof(part), "kernel %s", key->kernel);
	add_part(&text, key->kernel[0] ? part : "");
	snprintf(out, bytes, "%s", text.data ? text.data : "");
	pp_buf_release(&text);
}

static struct line *make_lines(const struct pp_report_input *input)
{
	size_t i, count = input->verdict->arm_count;
	struct line *lines = calloc(count + 1, sizeof(*lines));

	for (i = 0; lines && i < count; i++) {
		lines[i].row = pp_report_row(input, i);
		lines[i].apart = lines[i].row.arm->promise == PP_PROMISE_NONE ||
			lines[i].row.arm->promise == PP_PROMISE_DEVICE;
		lines[i].place = i;
		describe(&lines[i].row.arm->key, lines[i].conditions, sizeof(lines[i].conditions));
	}
	if (lines)
		qsort(lines, count, sizeof(*lines), by_table);
	return lines;
}

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

static void add_figures(struct pp_buf *out, const struct line *line, bool colour)
{
	char cell[PP_CELL_BYTES], below[PP_CELL_BYTES] = "";
	const char *paint = colour && !line->apart ? colour_of(line->row.arm->verdict) : NULL;
	size_t i, seen = 0;

	for (i = 0; i < pp_report_field_count; i++) {
		const struct report_field *field = &pp_report_fields[i];

		if (!field->heading)
			continue;
		field->text(&line->row, cell, sizeof(cell));
		if (seen == 0 && (int)strlen(cell) > abs(field->width)) {
			add_wrapped(out, "", cell);
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
		add_wrapped(out, "  * ", below);
}

static void add_lost(struct pp_buf *out, const struct pp_verdict_arm *arm)
{
	char text[512], low[16], high[16];
	size_t i, used = 0;

	if (!arm->records_lost)
		return;
	for (i = 0; i < PP_LOSS_CLASSES; i++)
		if (arm->lost[i])
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%llu %s",
				used ? ", " : "", (unsigned long long)arm->lost[i],
				pp_loss_class_name((enum pp_loss_class)i));
	if (arm->lost_age_ns_max >= 0) {
		pp_report_duration(low, sizeof(low), arm->lost_age_ns_min);
		pp_report_duration(high, sizeof(high), arm->lost_age_ns_max);
		snprintf(text + used, sizeof(text) - used, "%sacked %s to %s before the end",
			used ? "; " : "", low, high);
	} else if (!used) {
		return;
	}
	add_wrapped(out, "    lost: ", text);
}

static void add_arm(struct pp_buf *out, const struct line *line, bool colour)
{
	const struct pp_verdict_arm *arm = line->row.arm;
	size_t i;

	add_figures(out, line, colour);
	add_lost(out, arm);
	for (i = 0; i < arm->reason_count; i++)
		add_wrapped(out, arm->reasons[i].blocks ? "  ! " : "  - ", arm->reasons[i].text);
}

/* ---- tables ------------------------------------------------------------------------------- */

static void add_drive(struct pp_buf *out, const struct pp_arm_key *key)
{
	char text[400];

	snprintf(text, sizeof(text), "%s%s%s%s%s", key->serial[0] ? key->serial : "(no serial)",
		key->model[0] ? ", " : "", key->model, key->firmware[0] ? ", firmware " : "",
		key->firmware);
	add_wrapped(out, "drive ", text);
}

static void add_tables(struct pp_buf *out, const struct line *lines, size_t count, bool colour)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const struct line *line = &lines[i], *last = i ? &lines[i - 1] : NULL;
		bool drive = !last || !same_drive(&last->row.arm->key, &line->row.arm->key);
		bool section = drive || last->apart != line->apart;

		if (drive) {
			pp_buf_addf(out, "%s", i ? "\n" : "");
			add_drive(out, &line->row.arm->key);
		}
		if (section && line->apart)
			pp_buf_addf(out,
				"%scontrols and others that do not promise to survive a cut\n",
				drive ? "" : "\n");
		if (section || strcmp(last->conditions, line->conditions) != 0) {
			pp_buf_addf(out, "%s", section ? "" : "\n");
			add_wrapped(out, "", line->conditions);
			add_headings(out, line->apart);
		}
		add_arm(out, line, colour);
	}
	if (count)
		pp_buf_addf(out,
			"\nc/l/v/o: cuts clean/loss/void/open; bound: at most this share of "
			"cuts loses\n(95 %%); ! stands against SAFE, - is a note\n");
}

/* ---- the last lines ----------------------------------------------------------------------- */

static void name_arm(const struct pp_verdict_arm *arm, char *out, size_t bytes)
{
	snprintf(out, bytes, "%s, %s on %s", arm->key.method, arm->key.workload, arm->key.serial);
}

static void add_sentence(struct pp_buf *out, const struct pp_verdict *verdict)
{
	const struct pp_verdict_arm *first = NULL;
	int held = pp_verdict_exit(verdict);
	size_t i, required = 0, these = 0;
	char text[800], name[320];

	for (i = 0; i < verdict->arm_count; i++) {
		const struct pp_verdict_arm *arm = &verdict->arms[i];
		bool this = held == 1 ? arm->verdict == PP_ARM_UNSAFE :
			arm->required && arm->verdict != PP_ARM_SAFE;

		required += arm->required;
		these += this;
		if (this && !first)
			first = arm;
	}
	if (first)
		name_arm(first, name, sizeof(name));
	if (held == 0)
		snprintf(text, sizeof(text), "held: %zu of %zu required arms SAFE at %s", required,
			required, verdict->criterion.text);
	else if (held == 1)
		snprintf(text, sizeof(text),
			"BROKEN: %s lost acked data in %u cut%s; %zu arm%s UNSAFE", name,
			first->cuts_loss, first->cuts_loss == 1 ? "" : "s", these,
			these == 1 ? "" : "s");
	else if (first)
		snprintf(text, sizeof(text), "not judged: %zu of %zu required arms not SAFE at %s; "
			"first: %s: %s", these, required, verdict->criterion.text, name,
			first->reason_count ? first->reasons[0].text : "no reason");
	else
		snprintf(text, sizeof(text),
			"not judged: no required arm promises to survive a cut");
	add_wrapped(out, "verdict:        ", text);
}

static void add_rests(struct pp_buf *out, const struct pp_verdict *verdict)
{
	uint32_t clean = 0, loss = 0, write_lost = 0, direct_lost = 0, write_cuts = 0,
		direct_cuts = 0;
	bool protection = false;
	char text[400];
	size_t i;

	for (i = 0; i < verdict->arm_count; i++) {
		const struct pp_verdict_arm *arm = &verdict->arms[i];
		uint32_t kept = arm->cuts_clean + arm->cuts_unexposed + arm->cuts_collateral;

		if (strcmp(arm->key.method, "write") == 0) {
			write_lost += arm->cuts_loss;
			write_cuts += kept + arm->cuts_loss;
		} else if (strcmp(arm->key.method, "direct") == 0) {
			direct_lost += arm->cuts_loss;
			direct_cuts += kept + arm->cuts_loss;
		} else if (arm->promise == PP_PROMISE_MEDIA) {
			clean += arm->cuts_clean;
			loss += arm->cuts_loss;
			protection |= arm->verdict == PP_ARM_SAFE && arm->rests_on_protection;
		}
	}
	snprintf(text, sizeof(text), "%u clean and %u lost trials; controls: `write` lost in %u of "
		"%u, `direct` in %u of %u%s", clean, loss, write_lost, write_cuts, direct_lost,
		direct_cuts, protection ? "; SAFE rests on protection, flush not tested" : "");
	add_wrapped(out, "rests on:       ", text);
}

static void add_not_covered(struct pp_buf *out, const struct pp_verdict *verdict)
{
	double bound = -1.0;
	bool via_flush = false;
	char text[400];
	size_t i, used = 0;

	for (i = 0; i < verdict->arm_count; i++) {
		const struct pp_verdict_arm *arm = &verdict->arms[i];

		if (arm->verdict == PP_ARM_SAFE && arm->loss_bound_95 > bound)
			bound = arm->loss_bound_95;
		via_flush |= arm->verdict == PP_ARM_SAFE && arm->via_flush;
	}
	if (bound >= 0.0)
		used = (size_t)snprintf(text, sizeof(text),
			"losses in fewer than %.2g %% of cuts; ", bound * 100.0);
	snprintf(text + used, sizeof(text) - used,
		"%sother drives, firmware, kernels, file systems, "
		"mount options, workloads and kinds of cut than those above",
		via_flush ? "FUA in arms via flush; " : "");
	add_wrapped(out, "does not cover: ", text);
}

static void add_end(struct pp_buf *out, const struct pp_report_input *input)
{
	const struct pp_report_end *end = input->end;
	const struct { const char *lead, *text; } lines[] = {
		{ "report:         ", end ? end->where : NULL },
		{ "power:          ", end ? end->outlet : NULL },
		{ "clean up:       ", end ? end->clean_up : NULL },
	};
	size_t i;

	pp_buf_addf(out, "\n");
	add_sentence(out, input->verdict);
	add_rests(out, input->verdict);
	add_not_covered(out, input->verdict);
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (lines[i].text && lines[i].text[0])
			add_wrapped(out, lines[i].lead, lines[i].text);
}

int pp_report_text(const struct pp_report_input *input, struct pp_buf *out, struct pp_error *err)
{
	struct line *lines = make_lines(input);

	if (lines) {
		add_tables(out, lines, input->verdict->arm_count, input->colour);
		add_end(out, input);
	}
	if (!lines || out->failed) {
		free(lines);
		return pp_fail(err, PP_ERR_SYSTEM, "cannot make the report: out of memory");
	}
	free(lines);
	return 0;
}
