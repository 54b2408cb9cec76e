/* SPDX-License-Identifier: MIT
 *
 * The sentences that every form of a report has in common, so that a page for a purchase file says
 * the same as the table on a terminal.
 */
#include "report_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 80 };

void pp_report_wrapped(struct pp_buf *out, const char *lead, const char *text)
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

static void add_part(struct pp_buf *text, const char *part)
{
	if (part[0])
		pp_buf_addf(text, "%s%s", text->bytes ? ", " : "", part);
}

/* "overwrite, raw, 1 lane, 8192-byte records, write back, fua, mains, kernel 6.18". */
void pp_report_conditions(const struct pp_arm_key *key, char *out, size_t bytes)
{
	struct pp_buf text;
	char part[300];

	pp_buf_init(&text, bytes - 1);
	add_part(&text, key->workload);
	add_part(&text, strcmp(key->pattern, "random") == 0 ? "random order" : "");
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
	add_part(&text, key->setting);
	add_part(&text, key->policy);
	add_part(&text, key->cut_kind);
	snprintf(part, sizeof(part), "kernel %s", key->kernel);
	add_part(&text, key->kernel[0] ? part : "");
	snprintf(out, bytes, "%s", text.data ? text.data : "");
	pp_buf_release(&text);
}

bool pp_report_losses(const struct pp_verdict_arm *arm, char *out, size_t bytes)
{
	char low[16], high[16];
	size_t i, used = 0;

	out[0] = '\0';
	if (!arm->records_lost)
		return false;
	for (i = 0; i < PP_LOSS_CLASSES && used < bytes; i++)
		if (arm->lost[i])
			used += (size_t)snprintf(out + used, bytes - used, "%s%llu %s",
				used ? ", " : "", (unsigned long long)arm->lost[i],
				pp_loss_class_name((enum pp_loss_class)i));
	if (arm->lost_age_ns_max >= 0 && used < bytes) {
		pp_report_duration(low, sizeof(low), arm->lost_age_ns_min);
		pp_report_duration(high, sizeof(high), arm->lost_age_ns_max);
		snprintf(out + used, bytes - used, "%sacked %s to %s before the end",
			used ? "; " : "", low, high);
	}
	return out[0] != '\0';
}

static void name_arm(const struct pp_verdict_arm *arm, char *out, size_t bytes)
{
	snprintf(out, bytes, "%s, %s%s%s on %s", arm->key.method, arm->key.workload,
		arm->key.setting[0] ? ", " : "", arm->key.setting, arm->key.serial);
}

void pp_report_marks(const struct pp_report_source *source, const char *marks[PP_MARKS_MAX + 1])
{
	const struct { bool said; const char *text; } known[PP_MARKS_MAX] = {
		{ source && !source->sealed, "UNSEALED: the evidence does not fit its seal, so it is not what "
			"the campaign left; nothing here is to be relied on" },
		{ source && source->simulated, "SIMULATED: the drive, the machine and the power switch are a "
			"lab's; this says nothing of any drive that can be bought" },
		{ source && source->unproven_wiring, "WIRING NOT PROVEN: nobody showed that the outlet feeds "
			"this machine ('plugpull pdu prove')" },
	};
	size_t i, n = 0;

	for (i = 0; i < PP_MARKS_MAX; i++)
		if (known[i].said)
			marks[n++] = known[i].text;
	marks[n] = NULL;
}

const char *pp_report_sentence(const struct pp_verdict *verdict, char *text, size_t bytes)
{
	const struct pp_verdict_arm *first = NULL;
	int held = pp_verdict_exit(verdict);
	size_t i, required = 0, these = 0;
	char name[320];

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
		snprintf(text, bytes, "held: %zu of %zu required arms SAFE at %s", required,
			required, verdict->criterion.text);
	else if (held == 1)
		snprintf(text, bytes,
			"BROKEN: %s lost acked data in %u cut%s; %zu arm%s UNSAFE", name,
			first->cuts_loss, first->cuts_loss == 1 ? "" : "s", these,
			these == 1 ? "" : "s");
	else if (first)
		snprintf(text, bytes, "not judged: %zu of %zu required arms not SAFE at %s; "
			"first: %s: %s", these, required, verdict->criterion.text, name,
			first->reason_count ? first->reasons[0].text : "no reason");
	else
		snprintf(text, bytes,
			"not judged: no required arm promises to survive a cut");
	return text;
}

/* "`write` lost in 3 of 4". */
static const char *control_words(char *out, size_t bytes, const char *method, uint32_t lost,
	uint32_t cuts)
{
	if (cuts)
		snprintf(out, bytes, "`%s` lost in %u of %u", method, lost, cuts);
	else
		snprintf(out, bytes, "`%s` not cut", method);
	return out;
}

const char *pp_report_rests(const struct pp_verdict *verdict, char *text, size_t bytes)
{
	uint32_t clean = 0, loss = 0, write_lost = 0, direct_lost = 0, write_cuts = 0,
		direct_cuts = 0;
	char write[48], direct[48];
	bool protection = false, cache_off = false;
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
			if (arm->verdict == PP_ARM_SAFE && arm->rests_on_protection)
				*(strcmp(arm->key.setting, "cache-off") == 0 ? &cache_off : &protection) = true;
		}
	}
	snprintf(text, bytes, "%u clean and %u lost trials; controls: %s, %s%s%s", clean, loss,
		control_words(write, sizeof(write), "write", write_lost, write_cuts),
		control_words(direct, sizeof(direct), "direct", direct_lost, direct_cuts),
		protection ? "; SAFE rests on protection, flush not tested" : "",
		cache_off ? "; SAFE under cache-off rests on the drive's word that it is off" : "");
	return text;
}

const char *pp_report_not_covered(const struct pp_verdict *verdict, char *text, size_t bytes)
{
	double bound = -1.0;
	bool via_flush = false;
	size_t i, used = 0;

	for (i = 0; i < verdict->arm_count; i++) {
		const struct pp_verdict_arm *arm = &verdict->arms[i];

		if (arm->verdict == PP_ARM_SAFE && arm->loss_bound_95 > bound)
			bound = arm->loss_bound_95;
		via_flush |= arm->verdict == PP_ARM_SAFE && arm->via_flush;
	}
	if (bound >= 0.0)
		used = (size_t)snprintf(text, bytes,
			"losses in fewer than %.2g %% of cuts; ", bound * 100.0);
	snprintf(text + used, bytes - used,
		"%sother drives, firmware, kernels, file systems, "
		"mount options, workloads and kinds of cut than those above",
		via_flush ? "FUA in arms via flush; " : "");
	return text;
}

/* ---- order -------------------------------------------------------------------------------- */

bool pp_report_same_drive(const struct pp_arm_key *a, const struct pp_arm_key *b)
{
	return strcmp(a->serial, b->serial) == 0 && strcmp(a->model, b->model) == 0 &&
		strcmp(a->firmware, b->firmware) == 0;
}

static int by_table(const void *a, const void *b)
{
	const struct report_line *x = a, *y = b;
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

struct report_line *pp_report_lines(const struct pp_report_input *input)
{
	size_t i, count = input->verdict->arm_count;
	struct report_line *lines = calloc(count + 1, sizeof(*lines));

	for (i = 0; lines && i < count; i++) {
		lines[i].row = pp_report_row(input, i);
		lines[i].apart = lines[i].row.arm->promise == PP_PROMISE_NONE ||
			lines[i].row.arm->promise == PP_PROMISE_DEVICE;
		lines[i].place = i;
		pp_report_conditions(&lines[i].row.arm->key, lines[i].conditions, sizeof(lines[i].conditions));
	}
	if (lines)
		qsort(lines, count, sizeof(*lines), by_table);
	return lines;
}
