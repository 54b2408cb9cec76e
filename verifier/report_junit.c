/* SPDX-License-Identifier: MIT
 *
 * JUnit XML, in the form that Ant's JUnitReport wrote first and test servers read: a testsuite for
 * each drive of each campaign, a testcase for each arm. The schema of that form allows no properties
 * in a testcase and wants times and a host, so times are 0 and the host is the drive's.
 *
 * What a server counts must agree with the exit status (M8.7): a failure is a broken promise, an error
 * is what could not be judged although it was required; where a campaign held nothing and failed
 * nothing, its first suite says so in a testcase of its own. n/a is skipped, as is an optional arm
 * without a verdict; a control that did what controls do is a pass.
 */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_fields.h"

static void add_xml(struct pp_buf *out, const char *text)
{
	for (; *text; text++) {
		char c = *text;

		if (c == '&')
			pp_buf_addf(out, "&amp;");
		else if (c == '<')
			pp_buf_addf(out, "&lt;");
		else if (c == '>')
			pp_buf_addf(out, "&gt;");
		else if (c == '"')
			pp_buf_addf(out, "&quot;");
		else if (c == '\n')
			pp_buf_add(out, "\n", 1);
		else
			pp_buf_add(out, c >= ' ' && c <= '~' ? &c : "?", 1);
	}
}

static void add_attribute(struct pp_buf *out, const char *name, const char *value)
{
	pp_buf_addf(out, " %s=\"", name);
	add_xml(out, value);
	pp_buf_add(out, "\"", 1);
}

/* ---- one arm ------------------------------------------------------------------------------ */

enum outcome { PASSED, SKIPPED, ERROR, FAILED };

static enum outcome outcome_of(const struct pp_verdict_arm *arm)
{
	switch (arm->verdict) {
	case PP_ARM_UNSAFE:
		return FAILED;
	case PP_ARM_NA:
		return SKIPPED;
	case PP_ARM_INCONCLUSIVE:
		return arm->required ? ERROR : SKIPPED;
	case PP_ARM_SAFE:
	case PP_ARM_LOSES:
	case PP_ARM_KEEPS:
		break;
	}
	return arm->required && arm->verdict != PP_ARM_SAFE ? ERROR : PASSED;
}

/* The class of which most records were lost; the first of them in the order of reports. */
static const char *failure_class(const struct pp_verdict_arm *arm)
{
	size_t i, most = 0;

	for (i = 1; i < PP_LOSS_CLASSES; i++)
		if (arm->lost[i] > arm->lost[most])
			most = i;
	return arm->lost[most] ? pp_loss_class_name((enum pp_loss_class)most) : "loss";
}

/* "method, workload", and the conditions only where two arms of a suite would else share a name. */
static void name_of(const struct report_line *lines, size_t count, const struct report_line *line,
	char *out, size_t bytes)
{
	const struct pp_arm_key *key = &line->row.arm->key;
	bool twice = false;
	size_t i;

	for (i = 0; i < count; i++) {
		const struct pp_arm_key *other = &lines[i].row.arm->key;

		twice |= &lines[i] != line && pp_report_same_drive(other, key) &&
			strcmp(other->method, key->method) == 0 &&
			strcmp(other->workload, key->workload) == 0;
	}
	if (twice)
		snprintf(out, bytes, "%s, %s", key->method, line->conditions);
	else
		snprintf(out, bytes, "%s, %s", key->method, key->workload);
}

static void add_reasons(struct pp_buf *out, const struct pp_verdict_arm *arm)
{
	char losses[512];
	size_t i;

	pp_buf_addf(out, "%s: %u clean, %u lost, %u void, %u open", pp_arm_verdict_name(arm->verdict),
		arm->cuts_clean, arm->cuts_loss, arm->cuts_void, arm->cuts_open);
	if (arm->cuts_unexposed)
		pp_buf_addf(out, ", %u not exposed", arm->cuts_unexposed);
	pp_buf_add(out, "\n", 1);
	if (pp_report_losses(arm, losses, sizeof(losses))) {
		add_xml(out, "lost: ");
		add_xml(out, losses);
		pp_buf_add(out, "\n", 1);
	}
	for (i = 0; i < arm->reason_count; i++) {
		add_xml(out, arm->reasons[i].text);
		pp_buf_add(out, "\n", 1);
	}
}

static void add_case(struct pp_buf *out, const struct report_line *lines, size_t count,
	const struct report_line *line)
{
	const struct pp_verdict_arm *arm = line->row.arm;
	const char *first = arm->reason_count ? arm->reasons[0].text : pp_arm_verdict_name(arm->verdict);
	enum outcome outcome = outcome_of(arm);
	char name[1100];

	name_of(lines, count, line, name, sizeof(name));
	pp_buf_addf(out, "    <testcase");
	add_attribute(out, "name", name);
	add_attribute(out, "classname", arm->key.serial[0] ? arm->key.serial : "no serial");
	pp_buf_addf(out, " time=\"0\"");
	if (outcome == PASSED) {
		pp_buf_addf(out, "/>\n");
		return;
	}
	pp_buf_addf(out, ">\n      <%s", outcome == FAILED ? "failure" : outcome == ERROR ? "error" :
		"skipped");
	if (outcome == FAILED)
		add_attribute(out, "type", failure_class(arm));
	else if (outcome == ERROR)
		add_attribute(out, "type", pp_arm_verdict_name(arm->verdict));
	add_attribute(out, "message", first);
	pp_buf_add(out, ">", 1);
	add_reasons(out, arm);
	pp_buf_addf(out, "</%s>\n    </testcase>\n", outcome == FAILED ? "failure" : outcome == ERROR ?
		"error" : "skipped");
}

/* ---- one drive ---------------------------------------------------------------------------- */

static void add_property(struct pp_buf *out, const char *name, const char *value)
{
	if (!value[0])
		return;
	pp_buf_addf(out, "      <property");
	add_attribute(out, "name", name);
	add_attribute(out, "value", value);
	pp_buf_addf(out, "/>\n");
}

/* A property for each of its values in this suite: arms may differ in it. */
static void add_each(struct pp_buf *out, const char *name, const struct report_line *lines,
	size_t count, size_t offset)
{
	size_t i, k;

	for (i = 0; i < count; i++) {
		const char *value = (const char *)&lines[i].row.arm->key + offset;

		for (k = 0; k < i; k++)
			if (strcmp((const char *)&lines[k].row.arm->key + offset, value) == 0)
				break;
		if (k == i)
			add_property(out, name, value);
	}
}

static void add_properties(struct pp_buf *out, const struct pp_report_input *input,
	const struct report_line *lines, size_t count)
{
	const struct pp_report_source *source = input->source;
	size_t i;

	pp_buf_addf(out, "    <properties>\n");
	add_property(out, "campaign", source->name);
	add_property(out, "criterion", input->verdict->criterion.text);
	add_property(out, "model", lines[0].row.arm->key.model);
	add_property(out, "firmware", lines[0].row.arm->key.firmware);
	add_each(out, "kernel", lines, count, offsetof(struct pp_arm_key, kernel));
	add_each(out, "fs", lines, count, offsetof(struct pp_arm_key, fs));
	add_each(out, "mount options", lines, count, offsetof(struct pp_arm_key, mount_options));
	add_each(out, "policy", lines, count, offsetof(struct pp_arm_key, policy));
	add_each(out, "kind of cut", lines, count, offsetof(struct pp_arm_key, cut_kind));
	for (i = 0; i < source->fact_count; i++)
		add_property(out, source->facts[i].label, source->facts[i].value);
	add_property(out, "SHA-256 of SHA256SUMS", source->seal_sha256);
	add_property(out, "seal", source->sealed ? "fits" : "does not fit");
	add_property(out, "simulated", source->simulated ? "yes" : "no");
	pp_buf_addf(out, "    </properties>\n");
}

/* The schema wants a time without a zone; what is not one becomes a time that nobody believes. */
static void add_timestamp(struct pp_buf *out, const char *started)
{
	static const char form[] = "0000-00-00T00:00:00";
	size_t i;

	for (i = 0; i < sizeof(form) - 1; i++)
		if (form[i] == '0' ? started[i] < '0' || started[i] > '9' : started[i] != form[i])
			break;
	pp_buf_addf(out, " timestamp=\"%.19s\"", i == sizeof(form) - 1 ? started :
		"1970-01-01T00:00:00");
}

struct totals {
	size_t of[FAILED + 1];
};

static void add_system_out(struct pp_buf *out, const struct pp_report_input *input,
	const struct report_line *lines, size_t count)
{
	const char *marks[PP_MARKS_MAX + 1];
	size_t i;

	pp_buf_addf(out, "    <system-out>");
	pp_report_marks(input->source, marks);
	for (i = 0; marks[i]; i++) {
		add_xml(out, marks[i]);
		pp_buf_add(out, "\n", 1);
	}
	for (i = 0; i < count; i++) {
		if (outcome_of(lines[i].row.arm) != PASSED)
			continue;
		add_xml(out, lines[i].row.arm->key.method);
		add_xml(out, ", ");
		add_xml(out, lines[i].row.arm->key.workload);
		pp_buf_addf(out, ": ");
		add_reasons(out, lines[i].row.arm);
	}
	pp_buf_addf(out, "</system-out>\n    <system-err></system-err>\n");
}

/* blind: nothing failed, nothing is an error, and yet the campaign did not hold. */
static void add_suite(struct pp_buf *out, const struct pp_report_input *input,
	const struct report_line *lines, size_t count, size_t id, bool blind)
{
	struct totals n = { { 0 } };
	const struct pp_arm_key *key = &lines[0].row.arm->key;
	char name[300], sentence[PP_SENTENCE_BYTES];
	size_t i;

	for (i = 0; i < count; i++)
		n.of[outcome_of(lines[i].row.arm)]++;
	snprintf(name, sizeof(name), "%s%s%s", key->serial[0] ? key->serial : "no serial",
		key->model[0] ? " " : "", key->model);
	pp_buf_addf(out, "  <testsuite");
	add_attribute(out, "name", name);
	add_attribute(out, "package", input->source->name[0] ? input->source->name : "plugpull");
	pp_buf_addf(out, " id=\"%zu\"", id);
	add_timestamp(out, input->source->started);
	add_attribute(out, "hostname", key->serial[0] ? key->serial : "localhost");
	pp_buf_addf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"0\">\n",
		count + blind, n.of[FAILED], n.of[ERROR] + blind, n.of[SKIPPED]);
	add_properties(out, input, lines, count);
	for (i = 0; i < count; i++)
		add_case(out, lines, count, &lines[i]);
	if (blind) {
		pp_buf_addf(out, "    <testcase name=\"campaign\"");
		add_attribute(out, "classname", key->serial[0] ? key->serial : "no serial");
		pp_buf_addf(out, " time=\"0\">\n      <error type=\"INCONCLUSIVE\"");
		add_attribute(out, "message", pp_report_sentence(input->verdict, sentence,
			sizeof(sentence)));
		pp_buf_addf(out, "></error>\n    </testcase>\n");
	}
	add_system_out(out, input, lines, count);
	pp_buf_addf(out, "  </testsuite>\n");
}

static void add_empty(struct pp_buf *out, const struct pp_report_input *input, size_t id)
{
	pp_buf_addf(out, "  <testsuite name=\"campaign\" package=\"plugpull\" id=\"%zu\"", id);
	add_timestamp(out, input->source->started);
	pp_buf_addf(out, " hostname=\"localhost\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\" "
		"time=\"0\">\n    <properties></properties>\n    <testcase name=\"campaign\" "
		"classname=\"plugpull\" time=\"0\">\n      <error type=\"INCONCLUSIVE\" message=\"no arm "
		"was planned or tried\"></error>\n    </testcase>\n    <system-out></system-out>\n"
		"    <system-err></system-err>\n  </testsuite>\n");
}

static int add_campaign(struct pp_buf *out, const struct pp_report_input *input, size_t *id)
{
	size_t count = input->verdict->arm_count, i, k, errors = 0;
	struct report_line *lines = pp_report_lines(input);
	bool blind;

	if (!lines)
		return -1;
	for (i = 0; i < count; i++)
		errors += outcome_of(lines[i].row.arm) == ERROR;
	blind = pp_verdict_exit(input->verdict) == 2 && errors == 0;
	if (count == 0)
		add_empty(out, input, (*id)++);
	for (i = 0; i < count; i += k) {
		for (k = 1; i + k < count && pp_report_same_drive(&lines[i].row.arm->key,
			&lines[i + k].row.arm->key); k++)
			;
		add_suite(out, input, lines + i, k, (*id)++, blind && i == 0);
	}
	free(lines);
	return 0;
}

int pp_report_junit(const struct pp_report_input *inputs, size_t count, struct pp_buf *out,
	struct pp_error *err)
{
	size_t i, id = 0;
	int rc = 0;

	pp_buf_addf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
	for (i = 0; i < count && rc == 0; i++)
		rc = add_campaign(out, &inputs[i], &id);
	pp_buf_addf(out, "</testsuites>\n");
	return rc != 0 || out->failed ? pp_fail(err, PP_ERR_SYSTEM, "cannot make the report: out of "
		"memory") : 0;
}
