/* SPDX-License-Identifier: MIT
 *
 * Three forms of the same figures. pg_test_fsync's rows are a label in 38 columns and "N ops/sec N
 * usecs/op" on every system; its open_datasync and open_sync are direct where the system has that.
 */
#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assess.h"
#include "method.h"
#include "text.h"

/* ---- what a label is ------------------------------------------------------------------------- */

static struct pp_assess_row *new_row(struct pp_assess_input *in, const char *label)
{
	struct pp_assess_row *row;

	if (in->count == PP_ASSESS_ROWS_MAX)
		return NULL;
	row = &in->rows[in->count++];
	pp_assess_row_init(row, label);
	return row;
}

static int too_many(struct pp_error *err)
{
	return pp_fail(err, PP_ERR_USAGE, "more than %d rows", PP_ASSESS_ROWS_MAX);
}

/* ---- our JSON -------------------------------------------------------------------------------- */

static double number(const json_t *o, const char *key, double otherwise)
{
	const json_t *value = json_object_get(o, key);

	return json_is_number(value) ? json_number_value(value) : otherwise;
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *value = json_string_value(json_object_get(o, key));

	return value ? value : "";
}

static void take_json_counts(const json_t *o, struct pp_assess_row *row)
{
	double asked = number(o, "ops", 0) * number(o, "writes", 1) * number(o, "write_bytes", 0);

	if (!json_is_true(json_object_get(o, "counted")))
		return;
	row->bytes_asked = asked;
	row->flushes_per_op = number(o, "flushes_per_op", -1);
	row->fua_per_op = number(o, "fua_per_op", -1);
	row->foreign_per_s = number(o, "foreign_per_s", -1);
	row->disk_bytes = number(o, "disk_bytes", -1);
	row->foreign = json_is_true(json_object_get(o, "foreign_traffic"));
}

static int take_json_row(const json_t *o, struct pp_assess_input *in, struct pp_error *err)
{
	const char *label = text_of(o, "label"), *method = text_of(o, "method");
	const struct pp_method *m = pp_method_find(method);
	struct pp_assess_row *row;

	if (!*label)
		return pp_fail(err, PP_ERR_USAGE, "a row has no 'label'");
	if (strcmp(text_of(o, "status"), "ok") != 0)
		return 0;
	row = new_row(in, label);
	if (!row)
		return too_many(err);
	if (m)
		pp_assess_row_method(row, m);
	row->media = strcmp(text_of(o, "promise"), pp_promise_name(PP_PROMISE_MEDIA)) == 0;
	row->in_place = !*text_of(o, "workload") || strcmp(text_of(o, "workload"), "overwrite") == 0;
	row->threads = (uint32_t)number(o, "threads", 1);
	row->ops_per_s = number(o, "ops_per_s", 0);
	row->bytes_per_s = number(o, "bytes_per_s", 0);
	row->latency_ns_p50 = number(o, "latency_ns_p50", 0);
	take_json_counts(o, row);
	pp_text_format(row->group, sizeof(row->group), "%s %s %u %.0f x %.0f", text_of(o, "section"),
		text_of(o, "workload"), row->threads, number(o, "writes", 1),
		number(o, "write_bytes", 0));
	return 0;
}

static void take_json_drive(const json_t *drive, struct pp_assess_facts *facts)
{
	const char *cache = text_of(drive, "cache");

	if (*text_of(drive, "link"))
		pp_link_parse(text_of(drive, "link"), &facts->link);
	facts->rotational = json_is_true(json_object_get(drive, "rotational"));
	if (strcmp(cache, "on") == 0 || strcmp(cache, "off") == 0)
		pp_assess_fact("cache", cache, facts, NULL);
}

static int read_json(const char *text, size_t bytes, struct pp_assess_input *in,
	struct pp_error *err)
{
	json_error_t why;
	json_t *whole = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why), *rows, *row;
	size_t i;
	int rc = 0;

	if (!whole)
		return pp_fail(err, PP_ERR_USAGE, "line %d: %s", why.line, why.text);
	rows = json_object_get(whole, "rows");
	if (number(whole, "format", 0) != 1 || !json_is_array(rows))
		rc = pp_fail(err, PP_ERR_USAGE, "it is no result of 'plugpull matrix --json'");
	take_json_drive(json_object_get(whole, "drive"), &in->facts);
	for (i = 0; rc == 0 && i < json_array_size(rows); i++) {
		row = json_array_get(rows, i);
		rc = take_json_row(row, in, err);
	}
	json_decref(whole);
	return rc;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static char *trim(char *s)
{
	char *end;

	while (isspace((unsigned char)*s))
		s++;
	for (end = s + strlen(s); end > s && isspace((unsigned char)end[-1]); end--)
		;
	*end = '\0';
	return s;
}

#define PG_LABEL_COLUMNS 38

static int read_pg_line(char *line, char section[64], struct pp_assess_input *in,
	struct pp_error *err)
{
	char *unit = strstr(line, " ops/sec"), *end, *label;
	struct pp_assess_row *row;
	double rate, us = 0;

	/* Every heading begins in the first column; the rows after it are compared among each other. */
	if (!unit) {
		if (line[0] && line[0] != ' ' && line[0] != '(' && line[0] != '*')
			pp_text_copy(section, 64, line);
		return 0;
	}
	if (strlen(line) <= PG_LABEL_COLUMNS || strspn(line, " ") < 8)
		return pp_fail(err, PP_ERR_USAGE, "it is no row of pg_test_fsync");
	rate = strtod(line + PG_LABEL_COLUMNS, &end);
	if (end != unit || !(rate > 0) || sscanf(unit, " ops/sec %lf usecs/op", &us) != 1)
		return pp_fail(err, PP_ERR_USAGE, "it is no row of pg_test_fsync");
	line[PG_LABEL_COLUMNS] = '\0';
	label = trim(line);
	row = new_row(in, label);
	if (!row)
		return too_many(err);
	pp_text_copy(row->group, sizeof(row->group), section);
	row->ops_per_s = rate;
	/* A mean, but of thousands: below the way of a command it is as telling as a median. */
	row->latency_ns_p50 = 1e9 / rate;
	return 0;
}

static const struct {
	const char *unit;
	double factor;
	enum { RATE, BYTES, LATENCY } what;
} units[] = {
	{ "ops/s", 1, RATE }, { "ops/sec", 1, RATE }, { "/s", 1, RATE }, { "", 1, RATE },
	{ "kB/s", 1e3, BYTES }, { "MB/s", 1e6, BYTES }, { "GB/s", 1e9, BYTES },
	{ "KiB/s", 1024, BYTES }, { "MiB/s", 1048576, BYTES }, { "GiB/s", 1073741824, BYTES },
	{ "ns", 1, LATENCY }, { "us", 1e3, LATENCY }, { "ms", 1e6, LATENCY }, { "s", 1e9, LATENCY },
};

static int take_figure(const char *label, const char *value, struct pp_assess_input *in,
	struct pp_error *err)
{
	struct pp_assess_row *row = NULL;
	char *unit;
	double figure = strtod(value, &unit);
	size_t i, k;

	while (isspace((unsigned char)*unit))
		unit++;
	for (i = 0; i < sizeof(units) / sizeof(units[0]) && strcmp(units[i].unit, unit) != 0; i++)
		;
	if (unit == value || !(figure > 0) || !isfinite(figure) ||
		i == sizeof(units) / sizeof(units[0]))
		return pp_fail(err, PP_ERR_USAGE, "'%s' is no figure such as 3065 ops/s, 326 us or 2.79 "
			"GB/s", value);
	/* A second figure of the same name belongs to the same row. */
	for (k = 0; k < in->count; k++)
		if (strcmp(in->rows[k].label, label) == 0)
			row = &in->rows[k];
	if (!row)
		row = new_row(in, label);
	if (!row)
		return too_many(err);
	if (row->kind == PP_ASSESS_OTHER && units[i].what != BYTES)
		return pp_fail(err, PP_ERR_USAGE, "there is no method '%s'", label);
	if (units[i].what == BYTES)
		row->bytes_per_s = figure * units[i].factor;
	else if (units[i].what == RATE)
		row->ops_per_s = figure;
	else
		row->latency_ns_p50 = figure * units[i].factor;
	if (units[i].what == LATENCY && row->ops_per_s <= 0)
		row->ops_per_s = 1e9 / row->latency_ns_p50;
	return 0;
}

static int read_list_line(char *line, struct pp_assess_input *in, struct pp_error *err)
{
	char *colon, *label, *value;

	line[strcspn(line, "#")] = '\0';
	line = trim(line);
	if (!*line)
		return 0;
	colon = strpbrk(line, ":=");
	if (!colon)
		return pp_fail(err, PP_ERR_USAGE, "expected NAME: FIGURE; of a speed matrix, the "
			"form of --json or --format pg can be read");
	*colon = '\0';
	label = trim(line);
	value = trim(colon + 1);
	if (strcmp(label, "link") == 0 || strcmp(label, "rpm") == 0 || strcmp(label, "cache") == 0)
		return pp_assess_fact(label, value, &in->facts, err);
	return take_figure(label, value, in, err);
}

static int read_lines(const char *text, size_t bytes, bool pg, struct pp_assess_input *in,
	struct pp_error *err)
{
	char line[512], section[64] = "";
	size_t at = 0, n, number_of = 0;

	for (; at < bytes; at += n + 1) {
		const char *end = memchr(text + at, '\n', bytes - at);

		number_of++;
		n = end ? (size_t)(end - text) - at : bytes - at;
		if (n >= sizeof(line) || memchr(text + at, '\0', n))
			return pp_fail(err, PP_ERR_USAGE, "line %zu is too long, or no text", number_of);
		memcpy(line, text + at, n);
		line[n] = '\0';
		if (n && line[n - 1] == '\r')
			line[n - 1] = '\0';
		if ((pg ? read_pg_line(line, section, in, err) : read_list_line(line, in, err)) != 0)
			return pp_fail_within(err, "line %zu", number_of);
	}
	return 0;
}

int pp_assess_read(const char *text, size_t bytes, struct pp_assess_input *in,
	struct pp_error *err)
{
	size_t start = 0;
	bool pg = memmem(text, bytes, "per test", 8) && memmem(text, bytes, "ops/sec", 7);
	int rc;

	memset(in, 0, sizeof(*in));
	while (start < bytes && isspace((unsigned char)text[start]))
		start++;
	if (start < bytes && text[start] == '{') {
		in->format = "json";
		rc = read_json(text, bytes, in, err);
	} else {
		in->format = pg ? "pg_test_fsync" : "list";
		rc = read_lines(text, bytes, pg, in, err);
	}
	if (rc == 0 && in->count == 0)
		rc = pp_fail(err, PP_ERR_USAGE, "there is no figure in it");
	return rc;
}
