/* SPDX-License-Identifier: MIT */
#include "matrix.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct pp_matrix_row, member)
#define ROOM(member) sizeof(((struct pp_matrix_row *)0)->member)

const struct pp_matrix_field pp_matrix_fields[] = {
	{ "section", PP_MATRIX_TEXT, AT(section), ROOM(section) },
	{ "label", PP_MATRIX_TEXT, AT(label), ROOM(label) },
	{ "method", PP_MATRIX_TEXT, AT(method), ROOM(method) },
	{ "workload", PP_MATRIX_TEXT, AT(workload), ROOM(workload) },
	{ "threads", PP_MATRIX_U32, AT(threads), ROOM(threads) },
	{ "promise", PP_MATRIX_PROMISE, AT(promise), ROOM(promise) },
	{ "writes", PP_MATRIX_U32, AT(writes), ROOM(writes) },
	{ "write_bytes", PP_MATRIX_U32, AT(write_bytes), ROOM(write_bytes) },
	{ "status", PP_MATRIX_STATUS, AT(status), ROOM(status) },
	{ "reason", PP_MATRIX_TEXT, AT(reason), ROOM(reason) },
	{ "ops", PP_MATRIX_U64, AT(ops), ROOM(ops) },
	{ "elapsed_ns", PP_MATRIX_U64, AT(elapsed_ns), ROOM(elapsed_ns) },
	{ "ops_per_s", PP_MATRIX_DOUBLE, AT(ops_per_s), ROOM(ops_per_s) },
	{ "latency_ns_p50", PP_MATRIX_U64, AT(latency_ns_p50), ROOM(latency_ns_p50) },
	{ "latency_ns_p90", PP_MATRIX_U64, AT(latency_ns_p90), ROOM(latency_ns_p90) },
	{ "latency_ns_p99", PP_MATRIX_U64, AT(latency_ns_p99), ROOM(latency_ns_p99) },
	{ "latency_ns_p999", PP_MATRIX_U64, AT(latency_ns_p999), ROOM(latency_ns_p999) },
	{ "latency_ns_max", PP_MATRIX_U64, AT(latency_ns_max), ROOM(latency_ns_max) },
	{ "latency_ns_mean", PP_MATRIX_DOUBLE, AT(latency_ns_mean), ROOM(latency_ns_mean) },
	{ "latency_variation", PP_MATRIX_DOUBLE, AT(latency_variation), ROOM(latency_variation) },
	{ "slice_variation", PP_MATRIX_DOUBLE, AT(slice_variation), ROOM(slice_variation) },
	{ "settled", PP_MATRIX_BOOL, AT(settled), ROOM(settled) },
	{ "bytes_per_s", PP_MATRIX_DOUBLE, AT(bytes_per_s), ROOM(bytes_per_s) },
	{ "counted", PP_MATRIX_BOOL, AT(counted), ROOM(counted) },
	{ "disk_writes", PP_MATRIX_U64, AT(disk_writes), ROOM(disk_writes) },
	{ "disk_flushes", PP_MATRIX_U64, AT(disk_flushes), ROOM(disk_flushes) },
	{ "disk_bytes", PP_MATRIX_U64, AT(disk_bytes), ROOM(disk_bytes) },
	{ "foreign_per_s", PP_MATRIX_DOUBLE, AT(foreign_per_s), ROOM(foreign_per_s) },
	{ "flushes_per_op", PP_MATRIX_DOUBLE, AT(flushes_per_op), ROOM(flushes_per_op) },
	{ "writes_per_op", PP_MATRIX_DOUBLE, AT(writes_per_op), ROOM(writes_per_op) },
	{ "bytes_per_op", PP_MATRIX_DOUBLE, AT(bytes_per_op), ROOM(bytes_per_op) },
	{ "foreign_traffic", PP_MATRIX_BOOL, AT(foreign_traffic), ROOM(foreign_traffic) },
	{ "fua_per_op", PP_MATRIX_DOUBLE, AT(fua_per_op), ROOM(fua_per_op) },
	{ "preflushes_per_op", PP_MATRIX_DOUBLE, AT(preflushes_per_op), ROOM(preflushes_per_op) },
};
const size_t pp_matrix_field_count = sizeof(pp_matrix_fields) / sizeof(pp_matrix_fields[0]);

static const char *const status_names[] = { [PP_MATRIX_OK] = "ok", [PP_MATRIX_NA] = "n/a" };

const char *pp_matrix_status_name(enum pp_matrix_status status)
{
	return status_names[status];
}

static const void *member(const struct pp_matrix_row *row, const struct pp_matrix_field *field)
{
	return (const char *)row + field->at;
}

static void put_value(struct pp_buf *buf, const char *key, const struct pp_matrix_field *field,
	const void *p)
{
	switch (field->kind) {
	case PP_MATRIX_TEXT:
		pp_kv_add(buf, key, p);
		break;
	case PP_MATRIX_U32:
		pp_kv_add_u64(buf, key, *(const uint32_t *)p);
		break;
	case PP_MATRIX_U64:
		pp_kv_add_u64(buf, key, *(const uint64_t *)p);
		break;
	case PP_MATRIX_DOUBLE:
		pp_kv_addf(buf, key, "%.17g", *(const double *)p);
		break;
	case PP_MATRIX_BOOL:
		pp_kv_add_bool(buf, key, *(const bool *)p);
		break;
	case PP_MATRIX_PROMISE:
		pp_kv_add(buf, key, pp_promise_name(*(const enum pp_promise *)p));
		break;
	case PP_MATRIX_STATUS:
		pp_kv_add(buf, key, status_names[*(const enum pp_matrix_status *)p]);
		break;
	}
}

void pp_matrix_row_put(struct pp_buf *buf, const char *prefix, const struct pp_matrix_row *row)
{
	char key[PP_KV_KEY_MAX + 1];
	size_t i;

	for (i = 0; i < pp_matrix_field_count; i++) {
		snprintf(key, sizeof(key), "%s%s", prefix, pp_matrix_fields[i].key);
		put_value(buf, key, &pp_matrix_fields[i], member(row, &pp_matrix_fields[i]));
	}
}

static bool get_promise(const char *value, enum pp_promise *promise)
{
	int i;

	for (i = PP_PROMISE_NA; i <= PP_PROMISE_MEDIA; i++) {
		if (strcmp(pp_promise_name((enum pp_promise)i), value) == 0) {
			*promise = (enum pp_promise)i;
			return true;
		}
	}
	return false;
}

static bool get_status(const char *value, enum pp_matrix_status *status)
{
	*status = strcmp(value, status_names[PP_MATRIX_OK]) == 0 ? PP_MATRIX_OK : PP_MATRIX_NA;
	return strcmp(value, status_names[*status]) == 0;
}

static int bad_value(const char *key, const char *value, struct pp_error *err)
{
	return pp_fail(err, PP_ERR_PEER, "'%s' is '%s', which a matrix row cannot have", key, value);
}

static int get_value(const struct pp_kv *kv, const char *key, const struct pp_matrix_field *field,
	void *p, struct pp_error *err)
{
	const char *value;
	uint64_t number = 0;
	char *end;

	if (pp_kv_str(kv, key, &value, err) != 0)
		return -1;
	switch (field->kind) {
	case PP_MATRIX_TEXT:
		return snprintf(p, field->bytes, "%s", value) < (int)field->bytes
			? 0 : bad_value(key, value, err);
	case PP_MATRIX_U32:
		if (pp_kv_u64(kv, key, 0, UINT32_MAX, &number, err) != 0)
			return -1;
		*(uint32_t *)p = (uint32_t)number;
		return 0;
	case PP_MATRIX_U64:
		return pp_kv_u64(kv, key, 0, INT64_MAX, p, err);
	case PP_MATRIX_DOUBLE:
		*(double *)p = strtod(value, &end);
		return *value && *end == '\0' && isfinite(*(double *)p) ? 0 : bad_value(key, value, err);
	case PP_MATRIX_BOOL:
		return pp_kv_bool(kv, key, p, err);
	case PP_MATRIX_PROMISE:
		return get_promise(value, p) ? 0 : bad_value(key, value, err);
	case PP_MATRIX_STATUS:
		return get_status(value, p) ? 0 : bad_value(key, value, err);
	}
	return -1;
}

int pp_matrix_row_get(const struct pp_kv *kv, const char *prefix, struct pp_matrix_row *row,
	struct pp_error *err)
{
	char key[PP_KV_KEY_MAX + 1];
	size_t i;

	memset(row, 0, sizeof(*row));
	for (i = 0; i < pp_matrix_field_count; i++) {
		const struct pp_matrix_field *field = &pp_matrix_fields[i];

		snprintf(key, sizeof(key), "%s%s", prefix, field->key);
		if (get_value(kv, key, field, (char *)row + field->at, err) != 0)
			return -1;
	}
	return 0;
}

/* What a flush costs at the very least: there and back on the link. */
#define FLUSH_NS_LEAST 5000
#define FLUSHES_PER_SYNC_LEAST 0.5

static bool promises_media(const struct pp_matrix_row *row)
{
	return row->status == PP_MATRIX_OK && row->promise == PP_PROMISE_MEDIA;
}

/* A FUA write is not counted as a flush; where it was not traced, one that may send it may have none. */
static bool no_flush(const struct pp_matrix_row *row)
{
	const struct pp_method *method = pp_method_find(row->method);

	/* Threads that sync at the same time share a flush. */
	double least = FLUSHES_PER_SYNC_LEAST / (row->threads ? row->threads : 1);

	/* Where others' requests are taken off the counts, too few are left of ours now and then. */
	if (!promises_media(row) || !row->counted || row->foreign_traffic || row->flushes_per_op < 0 ||
		(method && method->passthrough))
		return false;
	if (row->fua_per_op >= 0)
		return row->flushes_per_op + row->fua_per_op < least;
	return row->flushes_per_op < least && !(method && method->may_send_fua);
}

static bool too_fast(const struct pp_matrix_row *row)
{
	return promises_media(row) && row->latency_ns_p50 < FLUSH_NS_LEAST;
}

static bool foreign(const struct pp_matrix_row *row)
{
	return row->status == PP_MATRIX_OK && row->counted && row->foreign_traffic;
}

static const struct {
	bool (*applies)(const struct pp_matrix_row *row);
	const char *text;
} warnings[] = {
	{ no_flush, "fewer flushes than syncs: the kernel did not ask the drive" },
	{ too_fast, "faster than a command can reach a drive and come back (5 us)" },
	{ foreign, "others use this disk: its counters are not of this test alone" },
};

const char *pp_matrix_row_warning(const struct pp_matrix_row *row)
{
	size_t i;

	for (i = 0; i < sizeof(warnings) / sizeof(warnings[0]); i++)
		if (warnings[i].applies(row))
			return warnings[i].text;
	return NULL;
}
