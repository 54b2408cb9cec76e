/* SPDX-License-Identifier: MIT */
#include "fields.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void full_key(char out[PP_KV_KEY_MAX + 1], const char *prefix, const char *key)
{
	int n = snprintf(out, PP_KV_KEY_MAX + 1, "%s%s", prefix, key);

	assert(n > 0 && n <= PP_KV_KEY_MAX);
}

static void put_one(struct pp_buf *buf, const char *key, const struct pp_field *f, const void *at)
{
	switch (f->type) {
	case PP_FIELD_TEXT:
		pp_kv_add(buf, key, at);
		break;
	case PP_FIELD_BOOL:
		pp_kv_add_bool(buf, key, *(const bool *)at);
		break;
	case PP_FIELD_U32:
		pp_kv_add_u64(buf, key, *(const uint32_t *)at);
		break;
	case PP_FIELD_U64:
		pp_kv_add_u64(buf, key, *(const uint64_t *)at);
		break;
	case PP_FIELD_I64:
		pp_kv_add_i64(buf, key, *(const int64_t *)at);
		break;
	case PP_FIELD_INT:
		pp_kv_add_i64(buf, key, *(const int *)at);
		break;
	case PP_FIELD_ENUM:
		pp_kv_add(buf, key, f->name(*(const int *)at));
		break;
	}
}

void pp_fields_put(struct pp_buf *buf, const char *prefix, const struct pp_field *fields,
	size_t count, const void *thing)
{
	char key[PP_KV_KEY_MAX + 1];
	size_t i;

	for (i = 0; i < count; i++) {
		full_key(key, prefix, fields[i].key);
		put_one(buf, key, &fields[i], (const char *)thing + fields[i].offset);
	}
}

int pp_field_text(const struct pp_kv *kv, const char *key, char *out, size_t out_bytes,
	struct pp_error *err)
{
	const char *value;
	size_t bytes;

	if (pp_kv_str(kv, key, &value, err) != 0)
		return -1;
	bytes = strlen(value);
	if (bytes >= out_bytes)
		return pp_fail(err, PP_ERR_PEER, "'%s' has %zu bytes, at most %zu are allowed", key, bytes,
			out_bytes - 1);
	memcpy(out, value, bytes + 1);
	return 0;
}

static int get_enum(const struct pp_kv *kv, const char *key, const struct pp_field *f, int *out,
	struct pp_error *err)
{
	const char *value;
	int i;

	if (pp_kv_str(kv, key, &value, err) != 0)
		return -1;
	for (i = 0; i < f->count; i++) {
		if (strcmp(f->name(i), value) == 0) {
			*out = i;
			return 0;
		}
	}
	return pp_fail(err, PP_ERR_PEER, "'%s' is '%.64s', which is none of the words known here", key,
		value);
}

static int get_one(const struct pp_kv *kv, const char *key, const struct pp_field *f, void *at,
	struct pp_error *err)
{
	uint64_t u;
	int64_t i;

	switch (f->type) {
	case PP_FIELD_TEXT:
		return pp_field_text(kv, key, at, f->bytes, err);
	case PP_FIELD_BOOL:
		return pp_kv_bool(kv, key, at, err);
	case PP_FIELD_U32:
		if (pp_kv_u64(kv, key, f->least, f->max ? f->max : UINT32_MAX, &u, err) != 0)
			return -1;
		*(uint32_t *)at = (uint32_t)u;
		return 0;
	case PP_FIELD_U64:
		return pp_kv_u64(kv, key, f->least, f->max ? f->max : UINT64_MAX, at, err);
	case PP_FIELD_I64:
		return pp_kv_i64(kv, key, f->min, (int64_t)f->max, at, err);
	case PP_FIELD_INT:
		if (pp_kv_i64(kv, key, f->min, (int64_t)f->max, &i, err) != 0)
			return -1;
		*(int *)at = (int)i;
		return 0;
	case PP_FIELD_ENUM:
		return get_enum(kv, key, f, at, err);
	}
	return pp_fail(err, PP_ERR_PEER, "'%s' is of no type", key);
}

int pp_fields_get(const struct pp_kv *kv, const char *prefix, const struct pp_field *fields,
	size_t count, void *thing, struct pp_error *err)
{
	char key[PP_KV_KEY_MAX + 1];
	size_t i;

	for (i = 0; i < count; i++) {
		full_key(key, prefix, fields[i].key);
		if (get_one(kv, key, &fields[i], (char *)thing + fields[i].offset, err) != 0)
			return -1;
	}
	return 0;
}

bool pp_fields_have(const struct pp_field *fields, size_t count, const char *key)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (strcmp(fields[i].key, key) == 0)
			return true;
	return false;
}
