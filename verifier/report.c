/* SPDX-License-Identifier: MIT
 *
 * The table of fields, and the two forms for programs. JSON is built by jansson, keys in the order
 * of the table, numbers with six significant digits, so that the same verdict gives the same bytes.
 */
#include "report.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lot.h"
#include "report_fields.h"

#define JSON_FORMAT (JSON_INDENT(2) | JSON_REAL_PRECISION(6) | JSON_ENSURE_ASCII)

/* ---- small formats ------------------------------------------------------------------------ */

const char *pp_report_ascii(char *out, size_t bytes, const char *text)
{
	size_t i;

	assert(bytes > 0);
	for (i = 0; text[i] && i + 1 < bytes; i++)
		out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	out[i] = '\0';
	return out;
}

void pp_report_compact(char *out, size_t bytes, double value)
{
	static const char units[] = "kMGTPE";
	size_t unit = 0;

	if (!(value >= 0.0) || value >= 1e21) {
		snprintf(out, bytes, "-");
		return;
	}
	if (value < 9999.5) {
		bool whole = value >= 99.95 || value == floor(value);

		snprintf(out, bytes, "%.*f", whole ? 0 : 1, value);
		return;
	}
	value /= 1000.0;
	while (value >= 999.5 && unit + 2 < sizeof(units)) {
		value /= 1000.0;
		unit++;
	}
	snprintf(out, bytes, "%.*f%c", value < 99.95 ? 1 : 0, value, units[unit]);
}

void pp_report_duration(char *out, size_t bytes, int64_t ns)
{
	static const struct { double ns; const char *name; } units[] = {
		{ 1.0, "ns" }, { 1e3, "us" }, { 1e6, "ms" }, { 1e9, "s" },
	};
	size_t i = 0;
	double value;

	if (ns < 0) {
		snprintf(out, bytes, "-");
		return;
	}
	while (i < 3 && (double)ns / units[i].ns >= 999.5)
		i++;
	value = (double)ns / units[i].ns;
	if (value >= 99999.5)
		snprintf(out, bytes, ">1day");
	else
		snprintf(out, bytes, "%.*f%s", i && value < 9.95 ? 1 : 0, value, units[i].name);
}

void pp_report_share(char *out, size_t bytes, double fraction)
{
	double value = fraction * 100.0;

	if (value >= 99.95)
		snprintf(out, bytes, "100 %%");
	else if (value < 0.01)
		snprintf(out, bytes, "<0.01%%");
	else
		snprintf(out, bytes, "%.*f %%", value < 0.095 ? 2 : 1, value);
}

static json_t *string(const char *text)
{
	char ascii[PP_FIGURE_BYTES];

	return json_string(pp_report_ascii(ascii, sizeof(ascii), text));
}

static json_t *real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

/* ---- fields ------------------------------------------------------------------------------- */

#define VALUE(name, expression) \
	static json_t *value_##name(const struct report_row *row) { return expression; }

VALUE(serial, string(row->arm->key.serial))
VALUE(model, string(row->arm->key.model))
VALUE(firmware, string(row->arm->key.firmware))
VALUE(method, string(row->arm->key.method))
VALUE(workload, string(row->arm->key.workload))
VALUE(policy, string(row->arm->key.policy))
VALUE(setting, string(row->arm->key.setting))
VALUE(promise, string(pp_promise_name(row->arm->promise)))
VALUE(ops, row->speed ? real(row->speed->ops_per_s) : json_null())
VALUE(p50, row->speed ? json_integer(row->speed->latency_ns_p50) : json_null())
VALUE(p99, row->speed ? json_integer(row->speed->latency_ns_p99) : json_null())
VALUE(flushes, row->speed && row->speed->flushes_per_op >= 0 ? real(row->speed->flushes_per_op) :
	json_null())
VALUE(clean, json_integer(row->arm->cuts_clean))
VALUE(loss, json_integer(row->arm->cuts_loss))
VALUE(void, json_integer(row->arm->cuts_void))
VALUE(open, json_integer(row->arm->cuts_open))
VALUE(acked, json_integer((json_int_t)row->arm->records_acked))
VALUE(lost, json_integer((json_int_t)row->arm->records_lost))
VALUE(bound, real(row->arm->loss_bound_95))
VALUE(verdict, string(pp_arm_verdict_name(row->arm->verdict)))
VALUE(age_min, row->arm->lost_age_ns_min < 0 ? json_null() :
	json_integer(row->arm->lost_age_ns_min))
VALUE(age_max, row->arm->lost_age_ns_max < 0 ? json_null() :
	json_integer(row->arm->lost_age_ns_max))
VALUE(pattern, string(row->arm->key.pattern))
VALUE(tears_in_flight, json_integer((json_int_t)row->arm->tears_in_flight))
VALUE(tears_torn, json_integer((json_int_t)row->arm->tears_torn))
VALUE(required, json_boolean(row->arm->required))
VALUE(target, string(row->arm->key.target))
VALUE(fs, string(row->arm->key.fs))
VALUE(mount_options, string(row->arm->key.mount_options))
VALUE(kernel, string(row->arm->key.kernel))
VALUE(cut_kind, string(row->arm->key.cut_kind))
VALUE(lanes, json_integer(row->arm->key.lanes))
VALUE(group, json_integer(row->arm->key.group))
VALUE(record_bytes, json_integer(row->arm->key.record_bytes))
VALUE(noise, json_boolean(row->arm->key.noise))
VALUE(unexposed, json_integer(row->arm->cuts_unexposed))
VALUE(collateral, json_integer(row->arm->cuts_collateral))
VALUE(control_lost, json_integer(row->arm->control_lost))
VALUE(control_cuts, json_integer(row->arm->control_cuts))

static json_t *value_tears_bound(const struct report_row *row)
{
	const struct pp_verdict_arm *arm = row->arm;

	return arm->tears_in_flight ? real(pp_report_tears_bound(arm)) : json_null();
}

static json_t *value_tears_smallest(const struct report_row *row)
{
	uint32_t smallest, untorn;

	pp_verdict_tears(row->arm, &smallest, &untorn);
	return smallest ? json_integer(smallest) : json_null();
}

static json_t *value_tears_untorn(const struct report_row *row)
{
	uint32_t smallest, untorn;

	pp_verdict_tears(row->arm, &smallest, &untorn);
	return untorn ? json_integer(untorn) : json_null();
}

static json_t *value_reasons(const struct report_row *row)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; list && i < row->arm->reason_count; i++)
		if (json_array_append_new(list, string(row->arm->reasons[i].text)) != 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static json_t *value_within(const struct report_row *row)
{
	json_t *object = json_object();
	char key[16];
	size_t i;

	for (i = 0; object && i < PP_WITHIN; i++) {
		snprintf(key, sizeof(key), "%u", pp_within_ms[i]);
		if (json_object_set_new(object, key,
			json_integer((json_int_t)row->arm->acked_within[i])) != 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

static json_t *value_classes(const struct report_row *row)
{
	json_t *classes = json_object();
	size_t i;

	for (i = 0; classes && i < PP_LOSS_CLASSES; i++)
		if (row->arm->lost[i] && json_object_set_new(classes,
			pp_loss_class_name((enum pp_loss_class)i),
			json_integer((json_int_t)row->arm->lost[i])) != 0) {
			json_decref(classes);
			return NULL;
		}
	return classes;
}

static void text_method(const struct report_row *row, char *out, size_t bytes)
{
	pp_report_ascii(out, bytes, row->arm->key.method);
}

static void text_ops(const struct report_row *row, char *out, size_t bytes)
{
	pp_report_compact(out, bytes, row->speed ? row->speed->ops_per_s : -1.0);
}

static void text_p99(const struct report_row *row, char *out, size_t bytes)
{
	pp_report_duration(out, bytes, row->speed ? row->speed->latency_ns_p99 : -1);
}

/* The four counts together, because four columns do not fit into 80 characters. */
static void text_cuts(const struct report_row *row, char *out, size_t bytes)
{
	snprintf(out, bytes, "%u/%u/%u/%u", row->arm->cuts_clean, row->arm->cuts_loss,
		row->arm->cuts_void, row->arm->cuts_open);
}

static void text_acked(const struct report_row *row, char *out, size_t bytes)
{
	pp_report_compact(out, bytes, (double)row->arm->records_acked);
}

static void text_lost(const struct report_row *row, char *out, size_t bytes)
{
	pp_report_compact(out, bytes, (double)row->arm->records_lost);
}

static void text_bound(const struct report_row *row, char *out, size_t bytes)
{
	if (row->arm->verdict == PP_ARM_NA)
		snprintf(out, bytes, "-");
	else
		pp_report_share(out, bytes, row->arm->loss_bound_95);
}

static void text_verdict(const struct report_row *row, char *out, size_t bytes)
{
	snprintf(out, bytes, "%s", pp_arm_verdict_name(row->arm->verdict));
}

const struct report_field pp_report_fields[] = {
	{ "serial", NULL, 0, value_serial, NULL },
	{ "model", NULL, 0, value_model, NULL },
	{ "firmware", NULL, 0, value_firmware, NULL },
	{ "method", "method", -22, value_method, text_method },
	{ "workload", NULL, 0, value_workload, NULL },
	{ "policy", NULL, 0, value_policy, NULL },
	{ "promise", NULL, 0, value_promise, NULL },
	{ "ops_per_s", "ops/s", 5, value_ops, text_ops },
	{ "latency_ns_p50", NULL, 0, value_p50, NULL },
	{ "latency_ns_p99", "p99", 6, value_p99, text_p99 },
	{ "flushes_per_op", NULL, 0, value_flushes, NULL },
	{ "cuts_clean", NULL, 0, value_clean, NULL },
	{ "cuts_loss", NULL, 0, value_loss, NULL },
	{ "cuts_void", NULL, 0, value_void, NULL },
	{ "cuts_open", NULL, 0, value_open, NULL },
	{ NULL, "c/l/v/o", 11, NULL, text_cuts },
	{ "records_acked", "acked", 5, value_acked, text_acked },
	{ "records_lost", "lost", 5, value_lost, text_lost },
	{ "loss_bound_95", "bound", 6, value_bound, text_bound },
	{ "verdict", "verdict", -12, value_verdict, text_verdict },
	{ "reasons", NULL, 0, value_reasons, NULL },
	{ "records_lost_by_class", NULL, 0, value_classes, NULL },
	{ "lost_age_ns_min", NULL, 0, value_age_min, NULL },
	{ "lost_age_ns_max", NULL, 0, value_age_max, NULL },
	{ "required", NULL, 0, value_required, NULL },
	{ "target", NULL, 0, value_target, NULL },
	{ "fs", NULL, 0, value_fs, NULL },
	{ "mount_options", NULL, 0, value_mount_options, NULL },
	{ "kernel", NULL, 0, value_kernel, NULL },
	{ "cut_kind", NULL, 0, value_cut_kind, NULL },
	{ "lanes", NULL, 0, value_lanes, NULL },
	{ "group", NULL, 0, value_group, NULL },
	{ "record_bytes", NULL, 0, value_record_bytes, NULL },
	{ "noise", NULL, 0, value_noise, NULL },
	{ "pattern", NULL, 0, value_pattern, NULL },
	{ "tears_in_flight", NULL, 0, value_tears_in_flight, NULL },
	{ "tears_torn", NULL, 0, value_tears_torn, NULL },
	{ "tears_bound_95", NULL, 0, value_tears_bound, NULL },
	{ "tears_smallest_bytes", NULL, 0, value_tears_smallest, NULL },
	{ "tears_untorn_bytes", NULL, 0, value_tears_untorn, NULL },
	{ "cuts_unexposed", NULL, 0, value_unexposed, NULL },
	{ "cuts_collateral", NULL, 0, value_collateral, NULL },
	{ "control_lost", NULL, 0, value_control_lost, NULL },
	{ "control_cuts", NULL, 0, value_control_cuts, NULL },
	{ "records_acked_within_ms", NULL, 0, value_within, NULL },
	{ "policy_setting", NULL, 0, value_setting, NULL },
};
const size_t pp_report_field_count = sizeof(pp_report_fields) / sizeof(pp_report_fields[0]);

struct report_row pp_report_row(const struct pp_report_input *input, size_t arm)
{
	struct report_row row = { .arm = &input->verdict->arms[arm] };
	const struct pp_arm_key *key = &row.arm->key;
	size_t i;

	for (i = 0; i < input->speed_count && !row.speed; i++)
		if (strcmp(input->speed[i].serial, key->serial) == 0 &&
			strcmp(input->speed[i].method, key->method) == 0 &&
			strcmp(input->speed[i].workload, key->workload) == 0 &&
			strcmp(input->speed[i].setting, key->setting) == 0)
			row.speed = &input->speed[i];
	return row;
}

/* ---- JSON --------------------------------------------------------------------------------- */

static json_t *arm_object(const struct report_row *row)
{
	json_t *object = json_object();
	size_t i;

	for (i = 0; object && i < pp_report_field_count; i++) {
		const struct report_field *field = &pp_report_fields[i];

		if (field->key && json_object_set_new(object, field->key, field->value(row)) != 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

static json_t *arms_array(const struct pp_report_input *input)
{
	json_t *arms = json_array();
	size_t i;

	for (i = 0; arms && i < input->verdict->arm_count; i++) {
		struct report_row row = pp_report_row(input, i);

		if (json_array_append_new(arms, arm_object(&row)) != 0) {
			json_decref(arms);
			return NULL;
		}
	}
	return arms;
}

/* Takes the reference. */
static int add_json(json_t *object, struct pp_buf *out, struct pp_error *err)
{
	char *text = object ? json_dumps(object, JSON_FORMAT) : NULL;

	if (text)
		pp_buf_addf(out, "%s\n", text);
	json_decref(object);
	if (!text || out->failed) {
		free(text);
		return pp_fail(err, PP_ERR_SYSTEM, "cannot make the report: out of memory");
	}
	free(text);
	return 0;
}

/* What must be known of the whole, before its arms. "sealed" only where it is not: campaign.json, which
 * the seal covers, cannot tell. */
static int add_marks(json_t *object, const struct pp_report_source *source)
{
	if (!object || !source)
		return 0;
	if (!source->sealed && json_object_set_new(object, "sealed", json_false()) != 0)
		return -1;
	return json_object_set_new(object, "simulated", json_boolean(source->simulated)) == 0 &&
		json_object_set_new(object, "unproven_wiring",
			json_boolean(source->unproven_wiring)) == 0 ? 0 : -1;
}

/* One campaign into object, which it takes. NULL: out of memory. */
static json_t *campaign_object(json_t *object, const struct pp_report_input *input)
{
	json_t *arms = arms_array(input);

	if (object && arms && json_object_set_new(object, "criterion",
		json_string(input->verdict->criterion.text)) == 0 &&
		add_marks(object, input->source) == 0 && json_object_set(object, "arms", arms) == 0) {
		json_decref(arms);
		return object;
	}
	json_decref(arms);
	json_decref(object);
	return NULL;
}

int pp_report_json(const struct pp_report_input *input, struct pp_buf *out, struct pp_error *err)
{
	return add_json(campaign_object(json_pack("{s:i}", "format", 1), input), out, err);
}

int pp_report_json_all(const struct pp_report_input *inputs, size_t count,
	const struct pp_lots *lots, struct pp_buf *out, struct pp_error *err)
{
	json_t *list = json_array(), *of_lots = lots ? pp_lots_json(lots) : json_array();
	size_t i;

	for (i = 0; list && i < count; i++) {
		json_t *one = campaign_object(json_pack("{s:o}", "folder",
			string(inputs[i].source->folder)), &inputs[i]);

		if (json_array_append_new(list, one) != 0) {
			json_decref(list);
			list = NULL;
		}
	}
	if (!list || !of_lots) {
		json_decref(list);
		json_decref(of_lots);
		return add_json(NULL, out, err);
	}
	return add_json(json_pack("{s:i, s:o, s:o}", "format", 1, "campaigns", list, "lots", of_lots),
		out, err);
}

/* ---- CSV (RFC 4180) ----------------------------------------------------------------------- */

static void add_quoted(struct pp_buf *out, const char *text)
{
	pp_buf_add(out, "\"", 1);
	for (; *text; text++)
		pp_buf_add(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
	pp_buf_add(out, "\"", 1);
}

/* A list becomes "a; b", an object "a=1; b=2"; null an empty cell. */
static void flatten(const json_t *value, char *out, size_t bytes)
{
	const char *key;
	json_t *part;
	size_t i, used = 0;

	out[0] = '\0';
	json_array_foreach((json_t *)value, i, part)
		if (used < bytes)
			used += (size_t)snprintf(out + used, bytes - used, "%s%s", i ? "; " : "",
				json_string_value(part));
	json_object_foreach((json_t *)value, key, part)
		if (used < bytes)
			used += (size_t)snprintf(out + used, bytes - used, "%s%s=%lld",
				used ? "; " : "", key, (long long)json_integer_value(part));
}

static void add_cell(struct pp_buf *out, const json_t *value)
{
	char text[8192];

	if (json_is_string(value)) {
		add_quoted(out, json_string_value(value));
	} else if (json_is_array(value) || json_is_object(value)) {
		flatten(value, text, sizeof(text));
		add_quoted(out, text);
	} else if (json_is_real(value)) {
		pp_buf_addf(out, "%.6g", json_real_value(value));
	} else if (json_is_integer(value)) {
		pp_buf_addf(out, "%lld", (long long)json_integer_value(value));
	} else if (json_is_boolean(value)) {
		pp_buf_addf(out, "%d", json_is_true(value) ? 1 : 0);
	}
}

int pp_report_csv(const struct pp_report_input *input, struct pp_buf *out, struct pp_error *err)
{
	const struct pp_report_source *source = input->source;
	size_t arm, i;
	bool first = true;

	for (i = 0; i < pp_report_field_count; i++)
		if (pp_report_fields[i].key) {
			pp_buf_addf(out, "%s%s", first ? "" : ",", pp_report_fields[i].key);
			first = false;
		}
	pp_buf_addf(out, "%s\r\n", source ? ",sealed,simulated,unproven_wiring" : "");
	for (arm = 0; arm < input->verdict->arm_count; arm++) {
		struct report_row row = pp_report_row(input, arm);

		for (i = 0, first = true; i < pp_report_field_count; i++) {
			json_t *value;

			if (!pp_report_fields[i].key)
				continue;
			value = pp_report_fields[i].value(&row);
			if (!value)
				out->failed = true;
			if (!first)
				pp_buf_add(out, ",", 1);
			add_cell(out, value);
			json_decref(value);
			first = false;
		}
		if (source)
			pp_buf_addf(out, ",%d,%d,%d", source->sealed, source->simulated,
				source->unproven_wiring);
		pp_buf_addf(out, "\r\n");
	}
	if (out->failed)
		return pp_fail(err, PP_ERR_SYSTEM, "cannot make the report: out of memory");
	return 0;
}
