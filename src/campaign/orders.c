/* SPDX-License-Identifier: MIT
 *
 * Orders. Which order has which groups of keys is a table; each group knows its keys, how to write
 * and how to read them.
 */
#include "orders.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fields.h"

enum group_bit {
	G_INDEX = 1 << 0, G_SERIAL = 1 << 1, G_OTHER = 1 << 2, G_SPEC = 1 << 3, G_LAYOUT = 1 << 4,
	G_FILE = 1 << 5, G_METHOD = 1 << 6, G_RUN = 1 << 7, G_DIRECT = 1 << 8, G_RANGES = 1 << 9,
	G_MATRIX = 1 << 10, G_SETTING = 1 << 11, G_SAVED = 1 << 12,
};

static const struct {
	const char *name;
	unsigned groups;
} orders[] = {
	[PP_ORDER_PING] = { "ping", 0 },
	[PP_ORDER_IDENTIFY] = { "identify", G_SERIAL },
	[PP_ORDER_SMART] = { "smart", G_SERIAL },
	[PP_ORDER_SHARE] = { "share", G_SERIAL | G_OTHER },
	[PP_ORDER_FORMAT] = { "format", G_INDEX | G_SPEC },
	[PP_ORDER_PROVE] = { "prove", G_INDEX | G_SPEC },
	[PP_ORDER_RELEASE] = { "release", G_INDEX },
	[PP_ORDER_CHECK] = { "check", G_INDEX | G_SPEC },
	[PP_ORDER_PREWRITE] = { "prewrite", G_INDEX | G_LAYOUT | G_FILE | G_RUN | G_DIRECT },
	[PP_ORDER_SIZES] = { "sizes", G_INDEX | G_LAYOUT | G_FILE },
	[PP_ORDER_WATCH] = { "watch", G_INDEX },
	[PP_ORDER_RUN] = { "run", G_INDEX | G_LAYOUT | G_FILE | G_METHOD | G_RUN },
	[PP_ORDER_NOISE] = { "noise", G_INDEX | G_LAYOUT | G_FILE | G_RUN },
	[PP_ORDER_STOP] = { "stop", G_INDEX },
	[PP_ORDER_SCAN] = { "scan", G_INDEX | G_LAYOUT | G_FILE | G_RANGES },
	[PP_ORDER_MATRIX] = { "matrix", G_INDEX | G_MATRIX },
	[PP_ORDER_POLICY] = { "policy", G_INDEX | G_SPEC },
	[PP_ORDER_POLICY_SET] = { "policy-set", G_INDEX | G_SPEC | G_SETTING },
	[PP_ORDER_POLICY_RESTORE] = { "policy-restore", G_INDEX | G_SPEC | G_SAVED },
	[PP_ORDER_POWEROFF] = { "poweroff", 0 },
	[PP_ORDER_REBOOT] = { "reboot", 0 },
};

const char *pp_order_name(enum pp_order_kind kind)
{
	return orders[kind].name;
}

bool pp_order_has_index(enum pp_order_kind kind)
{
	return orders[kind].groups & G_INDEX;
}

/* ---- fields -------------------------------------------------------------------------------- */

static const char *kind_name(int kind)
{
	return kind == PP_TARGET_RAW ? "raw" : "file";
}

static const char *workload_name(int workload)
{
	return pp_workload_name((enum pp_workload)workload);
}

static const struct pp_field index_fields[] = {
	PP_F_U32_IN(pp_order, index, 0, PP_ORDER_INDEX_MAX),
};
static const struct pp_field serial_fields[] = { PP_F_TEXT(pp_order, serial) };
static const struct pp_field other_fields[] = { PP_F_TEXT(pp_order, other) };
static const struct pp_field file_fields[] = { PP_F_TEXT(pp_order, file) };
static const struct pp_field direct_fields[] = { PP_F_BOOL(pp_order, direct) };
static const struct pp_field compressible_fields[] = { PP_F_BOOL(pp_order, compressible) };
static const struct pp_field pace_fields[] = { PP_F_U32_IN(pp_order, pace_per_s, 0, PP_ORDER_PACE_MAX) };
static const struct pp_field matrix_fields[] = {
	PP_F_U32_IN(pp_order, seconds_ms, 1, 3600000),
	PP_F_U32_IN(pp_order, block_bytes, 0, 1 << 20),
	PP_F_U64(pp_order, region_offset),
};
static const struct pp_field spec_fields[] = {
	PP_F_ENUM(pp_target_spec, kind, kind_name, 2),
	PP_F_TEXT(pp_target_spec, serial),
	PP_F_U64(pp_target_spec, drive_size_bytes),
	PP_F_TEXT(pp_target_spec, fs_uuid),
	PP_F_TEXT(pp_target_spec, fs_type),
	PP_F_INT(pp_target_spec, fs_partition, PP_PARTITION_UNKNOWN, 1024),
	PP_F_TEXT(pp_target_spec, mount_options),
	PP_F_TEXT(pp_target_spec, mount_dir),
	PP_F_TEXT(pp_target_spec, directory),
	PP_F_TEXT(pp_target_spec, path),
	PP_F_U64(pp_target_spec, size_bytes),
	PP_F_TEXT(pp_target_spec, destroy),
	PP_F_BOOL(pp_target_spec, force),
	PP_F_BOOL(pp_target_spec, boot_drive),
	{ .key = "wait_ms", .type = PP_FIELD_I64, .offset = offsetof(struct pp_target_spec, wait_ms),
		.min = -1, .max = 3600000 },
};
static const struct pp_field layout_fields[] = {
	PP_F_ENUM(pp_layout, workload, workload_name, PP_WORKLOADS),
	PP_F_U32_IN(pp_layout, lanes, 1, PP_LANES_MAX),
	PP_F_U32_IN(pp_layout, group, 1, PP_GROUP_MAX),
	PP_F_U32_IN(pp_layout, record_bytes, PP_CELL_BYTES, PP_RECORD_BYTES_MAX),
	PP_F_U32_IN(pp_layout, unit_bytes, PP_CELL_BYTES, 1u << 30),
	PP_F_BOOL(pp_layout, sub_block),
	PP_F_U64(pp_layout, region_offset),
	PP_F_U64(pp_layout, slots),
	PP_F_U64(pp_layout, shuffle),
};

/* Splits off the next piece of a list; false at its end. Empty pieces are the caller's to refuse. */
static bool next_piece(const char **at, char separator, char *out, size_t out_bytes, bool *fits)
{
	const char *end;
	size_t bytes;

	if (!*at)
		return false;
	end = strchr(*at, separator);
	bytes = end ? (size_t)(end - *at) : strlen(*at);
	*fits = bytes < out_bytes;
	if (*fits) {
		memcpy(out, *at, bytes);
		out[bytes] = '\0';
	}
	*at = end ? end + 1 : NULL;
	return true;
}

/* Decimal digits only, no overflow. */
static bool parse_u64(const char *text, size_t bytes, uint64_t *out)
{
	uint64_t value = 0;
	size_t i;

	if (bytes == 0 || bytes > 20)
		return false;
	for (i = 0; i < bytes; i++) {
		unsigned digit = (unsigned)(text[i] - '0');

		if (digit > 9 || value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*out = value;
	return true;
}

/* ---- layout -------------------------------------------------------------------------------- */

void pp_layout_put(struct pp_buf *buf, const struct pp_layout *layout)
{
	struct pp_buf list;
	uint32_t i;

	pp_fields_put(buf, "", PP_FIELDS(layout_fields), layout);
	pp_buf_init(&list, 32 * PP_LANES_MAX);
	for (i = 0; pp_workload_grows(layout->workload) && i < layout->lanes; i++)
		pp_buf_addf(&list, "%s%" PRIu64, i ? "," : "", layout->base_slots[i]);
	pp_kv_add(buf, "base_slots", list.data ? list.data : "");
	pp_buf_release(&list);
}

static int get_base_slots(const struct pp_kv *kv, struct pp_layout *layout, struct pp_error *err)
{
	uint32_t want = pp_workload_grows(layout->workload) ? layout->lanes : 0, n = 0;
	const char *text, *at;
	char piece[24];
	bool fits;

	if (pp_kv_str(kv, "base_slots", &text, err) != 0)
		return -1;
	at = *text ? text : NULL;
	while (next_piece(&at, ',', piece, sizeof(piece), &fits)) {
		if (n >= want || !fits || !parse_u64(piece, strlen(piece), &layout->base_slots[n]) ||
			layout->base_slots[n] > layout->slots)
			return pp_fail(err, PP_ERR_PEER, "'base_slots' is '%.64s', expected %u numbers up to %"
				PRIu64, text, want, layout->slots);
		n++;
	}
	if (n != want)
		return pp_fail(err, PP_ERR_PEER, "'base_slots' has %u numbers, expected %u", n, want);
	return 0;
}

/* Only what pp_layout_init makes: its rules are the layout's, said once. */
int pp_layout_get(const struct pp_kv *kv, struct pp_layout *layout, struct pp_error *err)
{
	struct pp_layout made;

	memset(layout, 0, sizeof(*layout));
	if (pp_fields_get(kv, "", PP_FIELDS(layout_fields), layout, err) != 0)
		return -1;
	if (layout->slots > (UINT64_C(1) << 50) / layout->record_bytes ||
		layout->region_offset > UINT64_C(1) << 62)
		return pp_fail(err, PP_ERR_PEER, "'slots' or 'region_offset' is absurdly large");
	if (pp_layout_init(&made, layout->workload, layout->lanes, layout->group, layout->record_bytes,
		layout->unit_bytes, layout->sub_block, layout->region_offset,
		pp_layout_target_bytes(layout), err) != 0) {
		if (err)
			err->class = PP_ERR_PEER;
		return pp_fail_within(err, "layout");
	}
	if (made.slots != layout->slots)
		return pp_fail(err, PP_ERR_PEER, "'slots' is %" PRIu64 ", which is no whole number of "
			"groups and blocks", layout->slots);
	if (layout->shuffle && layout->workload != PP_OVERWRITE)
		return pp_fail(err, PP_ERR_PEER, "'shuffle' is for workload overwrite");
	return get_base_slots(kv, layout, err);
}

/* ---- ranges -------------------------------------------------------------------------------- */

void pp_ranges_put(struct pp_buf *buf, const struct pp_scan_range *ranges, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		pp_buf_addf(buf, "%s%u:%" PRIu64 "-%" PRIu64, i ? "," : "", ranges[i].lane,
			ranges[i].first, ranges[i].last);
}

static bool parse_range(const char *text, struct pp_scan_range *range)
{
	const char *colon = strchr(text, ':'), *dash = colon ? strchr(colon, '-') : NULL;
	uint64_t lane;

	if (!dash || !parse_u64(text, (size_t)(colon - text), &lane) || lane >= PP_LANES_MAX ||
		!parse_u64(colon + 1, (size_t)(dash - colon - 1), &range->first) ||
		!parse_u64(dash + 1, strlen(dash + 1), &range->last))
		return false;
	range->lane = (uint32_t)lane;
	return range->first <= range->last;
}

int pp_ranges_parse(const char *text, struct pp_scan_range **ranges, size_t *count,
	struct pp_error *err)
{
	const char *at = *text ? text : NULL;
	size_t most = 1, i;
	char piece[64];
	bool fits;

	*ranges = NULL;
	*count = 0;
	if (!at)
		return 0;
	for (i = 0; text[i]; i++)
		most += text[i] == ',';
	if (most > PP_ORDER_RANGES_MAX)
		return pp_fail(err, PP_ERR_PEER, "%zu ranges, at most %d are allowed", most,
			PP_ORDER_RANGES_MAX);
	*ranges = calloc(most, sizeof(**ranges));
	if (!*ranges)
		return pp_fail(err, PP_ERR_SYSTEM, "no memory for %zu ranges", most);
	while (next_piece(&at, ',', piece, sizeof(piece), &fits)) {
		if (!fits || !parse_range(piece, &(*ranges)[*count])) {
			free(*ranges);
			*ranges = NULL;
			*count = 0;
			return pp_fail(err, PP_ERR_PEER, "'ranges' is '%.64s', expected LANE:FIRST-LAST,...",
				text);
		}
		(*count)++;
	}
	return 0;
}

/* ---- groups -------------------------------------------------------------------------------- */

static void put_spec(const struct pp_order *o, struct pp_buf *buf)
{
	pp_fields_put(buf, "", PP_FIELDS(spec_fields), &o->spec);
}

static int get_spec(struct pp_order *o, const struct pp_kv *kv, struct pp_error *err)
{
	if (pp_fields_get(kv, "", PP_FIELDS(spec_fields), &o->spec, err) != 0)
		return -1;
	if (!o->spec.serial[0])
		return pp_fail(err, PP_ERR_PEER, "'serial' is empty: a target needs its drive's identity");
	return 0;
}

static int get_serial(struct pp_order *o, const struct pp_kv *kv, struct pp_error *err)
{
	if (pp_fields_get(kv, "", PP_FIELDS(serial_fields), o, err) != 0)
		return -1;
	return o->serial[0] ? 0 : pp_fail(err, PP_ERR_PEER, "'serial' is empty");
}

static void put_layout(const struct pp_order *o, struct pp_buf *buf)
{
	pp_layout_put(buf, &o->layout);
}

static int get_layout(struct pp_order *o, const struct pp_kv *kv, struct pp_error *err)
{
	return pp_layout_get(kv, &o->layout, err);
}

/* A plain name: it is opened below the proven folder and must not lead out of it. */
static int get_file(struct pp_order *o, const struct pp_kv *kv, struct pp_error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789._-";

	if (pp_fields_get(kv, "", PP_FIELDS(file_fields), o, err) != 0)
		return -1;
	if (!o->file[0] || o->file[0] == '.' || o->file[strspn(o->file, letters)])
		return pp_fail(err, PP_ERR_PEER, "'file' is '%s', expected a plain file name", o->file);
	return 0;
}

static void put_method(const struct pp_order *o, struct pp_buf *buf)
{
	pp_kv_add(buf, "method", o->method ? o->method->name : "");
	pp_fields_put(buf, "", PP_FIELDS(pace_fields), o);
}

static int get_method(struct pp_order *o, const struct pp_kv *kv, struct pp_error *err)
{
	const char *name;

	if (pp_kv_str(kv, "method", &name, err) != 0)
		return -1;
	o->method = pp_method_find(name);
	if (!o->method)
		return pp_fail(err, PP_ERR_PEER, "method '%.64s' is not known to this build", name);
	return pp_fields_get(kv, "", PP_FIELDS(pace_fields), o, err);
}

static void put_run(const struct pp_order *o, struct pp_buf *buf)
{
	char text[PP_RUN_ID_TEXT_BYTES];

	pp_run_id_format(&o->run_id, text);
	pp_kv_add(buf, "run_id", text);
	pp_fields_put(buf, "", PP_FIELDS(compressible_fields), o);
}

static int get_run(struct pp_order *o, const struct pp_kv *kv, struct pp_error *err)
{
	const char *text;

	if (pp_kv_str(kv, "run_id", &text, err) != 0)
		return -1;
	if (!pp_run_id_parse(text, &o->run_id))
		return pp_fail(err, PP_ERR_PEER, "'run_id' is '%.64s', expected 32 hex digits", text);
	return pp_fields_get(kv, "", PP_FIELDS(compressible_fields), o, err);
}

static void put_ranges(const struct pp_order *o, struct pp_buf *buf)
{
	struct pp_buf text;

	pp_buf_init(&text, PP_ORDER_BYTES_MAX);
	pp_ranges_put(&text, o->ranges, o->range_count);
	if (text.failed)
		buf->failed = true;
	else
		pp_kv_add(buf, "ranges", text.data ? text.data : "");
	pp_buf_release(&text);
}

static int get_ranges(struct pp_order *o, const struct pp_kv *kv, struct pp_error *err)
{
	const char *text;
	size_t i;

	if (pp_kv_str(kv, "ranges", &text, err) != 0 ||
		pp_ranges_parse(text, &o->ranges, &o->range_count, err) != 0)
		return -1;
	for (i = 0; i < o->range_count; i++)
		if (o->ranges[i].lane >= o->layout.lanes || o->ranges[i].last >= o->layout.slots)
			return pp_fail(err, PP_ERR_PEER, "range %u:%" PRIu64 "-%" PRIu64 " is outside the layout",
				o->ranges[i].lane, o->ranges[i].first, o->ranges[i].last);
	return 0;
}

static void put_matrix(const struct pp_order *o, struct pp_buf *buf)
{
	struct pp_buf list;
	size_t i;

	pp_fields_put(buf, "", PP_FIELDS(matrix_fields), o);
	pp_buf_init(&list, 4096);
	for (i = 0; i < o->method_count; i++)
		pp_buf_addf(&list, "%s%s", i ? "," : "", o->methods[i]->name);
	if (list.failed)
		buf->failed = true;
	else
		pp_kv_add(buf, "methods", list.data ? list.data : "");
	pp_buf_release(&list);
}

static int get_matrix(struct pp_order *o, const struct pp_kv *kv, struct pp_error *err)
{
	const char *text, *at;
	char piece[64];
	bool fits;

	if (pp_fields_get(kv, "", PP_FIELDS(matrix_fields), o, err) != 0 ||
		pp_kv_str(kv, "methods", &text, err) != 0)
		return -1;
	if (o->block_bytes % PP_CELL_BYTES != 0)
		return pp_fail(err, PP_ERR_PEER, "'block_bytes' is %u, expected a multiple of %d",
			o->block_bytes, PP_CELL_BYTES);
	if (o->region_offset % 4096 != 0)
		return pp_fail(err, PP_ERR_PEER, "'region_offset' is no multiple of 4096");
	at = *text ? text : NULL;
	while (next_piece(&at, ',', piece, sizeof(piece), &fits)) {
		const struct pp_method *method = fits ? pp_method_find(piece) : NULL;

		if (!method || o->method_count >= PP_ORDER_METHODS_MAX)
			return pp_fail(err, PP_ERR_PEER, "'methods' is '%.100s': a method of it is not known "
				"to this build, or there are too many", text);
		o->methods[o->method_count++] = method;
	}
	return 0;
}

static void put_setting(const struct pp_order *o, struct pp_buf *buf)
{
	pp_kv_add(buf, "setting", o->setting ? o->setting->name : "");
}

static int get_setting(struct pp_order *o, const struct pp_kv *kv, struct pp_error *err)
{
	const char *name;

	if (pp_kv_str(kv, "setting", &name, err) != 0)
		return -1;
	o->setting = pp_policy_setting_find(name);
	if (!o->setting)
		return pp_fail(err, PP_ERR_PEER, "policy '%.64s' is not known to this build", name);
	return 0;
}

static void put_saved(const struct pp_order *o, struct pp_buf *buf)
{
	pp_policy_saved_put(buf, &o->saved);
}

static int get_saved(struct pp_order *o, const struct pp_kv *kv, struct pp_error *err)
{
	return pp_policy_saved_get(kv, &o->saved, err);
}

/* Which keys a saved policy has is src/core/policy.c's business: those that it writes. */
static bool saved_has(const char *key)
{
	const struct pp_policy_saved none = { .system = "" };
	struct pp_error ignored;
	struct pp_buf text;
	struct pp_kv kv;
	bool has = false;

	pp_buf_init(&text, 1U << 16);
	pp_policy_saved_put(&text, &none);
	if (!text.failed && pp_kv_parse(&kv, text.data, text.bytes, &ignored) == 0) {
		has = pp_kv_find(&kv, key) != NULL;
		pp_kv_release(&kv);
	}
	pp_buf_release(&text);
	return has;
}

/* Groups that are nothing but fields of struct pp_order. */
#define FIELDS_GROUP(name) \
	static void put_##name(const struct pp_order *o, struct pp_buf *buf) \
	{ pp_fields_put(buf, "", PP_FIELDS(name##_fields), o); }
#define FIELDS_GROUP_GET(name) \
	static int get_##name(struct pp_order *o, const struct pp_kv *kv, struct pp_error *err) \
	{ return pp_fields_get(kv, "", PP_FIELDS(name##_fields), o, err); }
FIELDS_GROUP(index)
FIELDS_GROUP_GET(index)
FIELDS_GROUP(serial)
FIELDS_GROUP(other)
FIELDS_GROUP_GET(other)
FIELDS_GROUP(file)
FIELDS_GROUP(direct)
FIELDS_GROUP_GET(direct)

/* In the order in which they are read: ranges are checked against the layout before them. */
static const struct {
	unsigned bit;
	const struct pp_field *fields;
	size_t field_count;
	const char *more[3]; /* keys that are no plain fields */
	void (*put)(const struct pp_order *o, struct pp_buf *buf);
	int (*get)(struct pp_order *o, const struct pp_kv *kv, struct pp_error *err);
} groups[] = {
	{ G_INDEX, PP_FIELDS(index_fields), { NULL }, put_index, get_index },
	{ G_SERIAL, PP_FIELDS(serial_fields), { NULL }, put_serial, get_serial },
	{ G_OTHER, PP_FIELDS(other_fields), { NULL }, put_other, get_other },
	{ G_SPEC, PP_FIELDS(spec_fields), { NULL }, put_spec, get_spec },
	{ G_LAYOUT, PP_FIELDS(layout_fields), { "base_slots" }, put_layout, get_layout },
	{ G_FILE, PP_FIELDS(file_fields), { NULL }, put_file, get_file },
	{ G_METHOD, PP_FIELDS(pace_fields), { "method" }, put_method, get_method },
	{ G_RUN, PP_FIELDS(compressible_fields), { "run_id" }, put_run, get_run },
	{ G_DIRECT, PP_FIELDS(direct_fields), { NULL }, put_direct, get_direct },
	{ G_RANGES, NULL, 0, { "ranges" }, put_ranges, get_ranges },
	{ G_MATRIX, PP_FIELDS(matrix_fields), { "methods" }, put_matrix, get_matrix },
	{ G_SETTING, NULL, 0, { "setting" }, put_setting, get_setting },
	{ G_SAVED, NULL, 0, { NULL }, put_saved, get_saved },
};
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

/* ---- whole orders -------------------------------------------------------------------------- */

void pp_order_init(struct pp_order *order, enum pp_order_kind kind)
{
	memset(order, 0, sizeof(*order));
	order->kind = kind;
	pp_target_spec_init(&order->spec);
	memcpy(order->file, PP_ORDER_FILE, sizeof(PP_ORDER_FILE));
	order->seconds_ms = 2000;
}

void pp_order_release(struct pp_order *order)
{
	free(order->ranges);
	order->ranges = NULL;
	order->range_count = 0;
}

static bool find_order(const char *name, enum pp_order_kind *kind)
{
	int i;

	for (i = 0; i < PP_ORDER_KINDS; i++) {
		if (strcmp(orders[i].name, name) == 0) {
			*kind = (enum pp_order_kind)i;
			return true;
		}
	}
	return false;
}

static bool key_known(unsigned bits, const char *key)
{
	size_t i, k;

	if (strcmp(key, "do") == 0)
		return true;
	for (i = 0; i < GROUPS; i++) {
		if (!(groups[i].bit & bits))
			continue;
		if (groups[i].bit == G_SAVED && saved_has(key))
			return true;
		if (pp_fields_have(groups[i].fields, groups[i].field_count, key))
			return true;
		for (k = 0; k < 3 && groups[i].more[k]; k++)
			if (strcmp(groups[i].more[k], key) == 0)
				return true;
	}
	return false;
}

static int check_pairs(const struct pp_kv *kv, enum pp_order_kind kind, struct pp_error *err)
{
	const char *c;
	size_t i;

	for (i = 0; i < kv->count; i++) {
		if (!key_known(orders[kind].groups, kv->pairs[i].key))
			return pp_fail(err, PP_ERR_PEER, "'%s' has no field '%s'", orders[kind].name,
				kv->pairs[i].key);
		for (c = kv->pairs[i].value; *c; c++)
			if ((unsigned char)*c < 0x20 || *c == 0x7f)
				return pp_fail(err, PP_ERR_PEER, "'%s' holds a control character",
					kv->pairs[i].key);
	}
	return 0;
}

static int parse_kv(struct pp_order *order, const struct pp_kv *kv, struct pp_error *err)
{
	enum pp_order_kind kind;
	const char *name;
	size_t i;

	if (pp_kv_str(kv, "do", &name, err) != 0)
		return -1;
	if (!find_order(name, &kind))
		return pp_fail(err, PP_ERR_PEER, "order '%.64s' is not known to this agent", name);
	order->kind = kind;
	if (check_pairs(kv, kind, err) != 0)
		return -1;
	for (i = 0; i < GROUPS; i++)
		if ((groups[i].bit & orders[kind].groups) && groups[i].get(order, kv, err) != 0)
			return pp_fail_within(err, "order '%s'", name);
	return 0;
}

int pp_order_parse(struct pp_order *order, const void *data, size_t bytes, struct pp_error *err)
{
	struct pp_kv kv;
	int rc;

	pp_order_init(order, PP_ORDER_PING);
	if (pp_kv_parse(&kv, data, bytes, err) != 0)
		return -1;
	rc = parse_kv(order, &kv, err);
	pp_kv_release(&kv);
	if (rc != 0)
		pp_order_release(order);
	return rc;
}

int pp_order_put(const struct pp_order *order, struct pp_buf *buf, struct pp_error *err)
{
	struct pp_order back;
	struct pp_buf text;
	int rc = -1;
	size_t i;

	pp_buf_init(&text, PP_ORDER_BYTES_MAX);
	pp_kv_add(&text, "do", orders[order->kind].name);
	for (i = 0; i < GROUPS; i++)
		if (groups[i].bit & orders[order->kind].groups)
			groups[i].put(order, &text);
	if (text.failed) {
		pp_fail(err, PP_ERR_USAGE, "order '%s' is too long", orders[order->kind].name);
		goto out;
	}
	rc = pp_order_parse(&back, text.data, text.bytes, err);
	if (rc == 0) {
		pp_order_release(&back);
		pp_buf_add(buf, text.data, text.bytes);
		rc = buf->failed ? pp_fail(err, PP_ERR_SYSTEM, "no memory for an order") : 0;
	}
out:
	pp_buf_release(&text);
	return rc;
}
