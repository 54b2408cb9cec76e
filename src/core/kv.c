/* SPDX-License-Identifier: MIT */
#include "kv.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool key_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

/* Length of the key at text, 0 when what stands there is none. */
static size_t key_length(const char *text, size_t bytes, char end)
{
	size_t n = 0;

	while (n < bytes && key_char(text[n]))
		n++;
	if (n == 0 || n > PP_KV_KEY_MAX || n == bytes || text[n] != end)
		return 0;
	return n;
}

/* Resolves the escapes of a terminated value in place. */
static bool unescape(char *value)
{
	char *out = value;

	for (; *value; value++) {
		if (*value != '\\') {
			*out++ = *value;
			continue;
		}
		value++;
		if (*value == 'n')
			*out++ = '\n';
		else if (*value == '\\')
			*out++ = '\\';
		else
			return false;
	}
	*out = '\0';
	return true;
}

static size_t count_lines(const char *text, size_t bytes)
{
	size_t lines = 0, i;

	for (i = 0; i < bytes; i++)
		lines += text[i] == '\n';
	return lines;
}

static int parse_line(struct pp_kv *kv, char *line, char *end, struct pp_error *err)
{
	size_t number = kv->count + 1;
	size_t key = key_length(line, (size_t)(end - line), '=');

	if (!key)
		return pp_fail(err, PP_ERR_PEER, "line %zu of a message is not key=value", number);
	line[key] = '\0';
	*end = '\0';
	if (pp_kv_find(kv, line))
		return pp_fail(err, PP_ERR_PEER, "a message has '%s' twice", line);
	if (!unescape(line + key + 1))
		return pp_fail(err, PP_ERR_PEER, "'%s' of a message has an unknown escape", line);
	kv->pairs[kv->count].key = line;
	kv->pairs[kv->count].value = line + key + 1;
	kv->count++;
	return 0;
}

static int parse_lines(struct pp_kv *kv, size_t bytes, struct pp_error *err)
{
	char *at = kv->text, *stop = kv->text + bytes;

	while (at < stop) {
		char *end = memchr(at, '\n', (size_t)(stop - at));

		if (parse_line(kv, at, end, err) != 0)
			return -1;
		at = end + 1;
	}
	return 0;
}

int pp_kv_parse(struct pp_kv *kv, const void *data, size_t bytes, struct pp_error *err)
{
	const char *text = data;
	size_t lines;

	memset(kv, 0, sizeof(*kv));
	if (bytes == 0)
		return 0;
	if (bytes > PP_KV_BYTES_MAX)
		return pp_fail(err, PP_ERR_PEER, "a message of %zu bytes is too long", bytes);
	if (text[bytes - 1] != '\n')
		return pp_fail(err, PP_ERR_PEER, "a message ends in the middle of a line");
	if (memchr(text, '\0', bytes))
		return pp_fail(err, PP_ERR_PEER, "a message holds a NUL");
	lines = count_lines(text, bytes);
	if (lines > PP_KV_PAIRS_MAX)
		return pp_fail(err, PP_ERR_PEER, "a message of %zu lines is too long", lines);
	kv->text = malloc(bytes + 1);
	kv->pairs = calloc(lines, sizeof(*kv->pairs));
	if (!kv->text || !kv->pairs) {
		pp_kv_release(kv);
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory for a message");
	}
	memcpy(kv->text, text, bytes);
	kv->text[bytes] = '\0';
	if (parse_lines(kv, bytes, err) != 0) {
		pp_kv_release(kv);
		return -1;
	}
	return 0;
}

void pp_kv_release(struct pp_kv *kv)
{
	free(kv->text);
	free(kv->pairs);
	memset(kv, 0, sizeof(*kv));
}

const char *pp_kv_find(const struct pp_kv *kv, const char *key)
{
	size_t i;

	for (i = 0; i < kv->count; i++)
		if (strcmp(kv->pairs[i].key, key) == 0)
			return kv->pairs[i].value;
	return NULL;
}

int pp_kv_str(const struct pp_kv *kv, const char *key, const char **out, struct pp_error *err)
{
	*out = pp_kv_find(kv, key);
	if (!*out)
		return pp_fail(err, PP_ERR_PEER, "missing '%s'", key);
	return 0;
}

const char *pp_kv_str_or(const struct pp_kv *kv, const char *key, const char *fallback)
{
	const char *value = pp_kv_find(kv, key);

	return value ? value : fallback;
}

/* Digits alone: strtoull takes blanks, signs and wraps negatives. */
static bool parse_u64(const char *text, uint64_t *out)
{
	uint64_t v = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		uint64_t digit = (uint64_t)(*text - '0');

		if (*text < '0' || *text > '9')
			return false;
		if (v > (UINT64_MAX - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*out = v;
	return true;
}

static bool parse_i64(const char *text, int64_t *out)
{
	uint64_t v;

	if (*text != '-') {
		if (!parse_u64(text, &v) || v > INT64_MAX)
			return false;
		*out = (int64_t)v;
		return true;
	}
	if (!parse_u64(text + 1, &v) || v > (uint64_t)INT64_MAX + 1)
		return false;
	*out = (int64_t)(0 - v);
	return true;
}

int pp_kv_u64(const struct pp_kv *kv, const char *key, uint64_t min, uint64_t max, uint64_t *out,
	struct pp_error *err)
{
	const char *value;
	uint64_t v;

	if (pp_kv_str(kv, key, &value, err) != 0)
		return -1;
	if (!parse_u64(value, &v) || v < min || v > max)
		return pp_fail(err, PP_ERR_PEER, "'%s' is '%.40s', expected a number from %" PRIu64
			" to %" PRIu64, key, value, min, max);
	*out = v;
	return 0;
}

int pp_kv_u64_or(const struct pp_kv *kv, const char *key, uint64_t fallback, uint64_t min,
	uint64_t max, uint64_t *out, struct pp_error *err)
{
	if (pp_kv_find(kv, key))
		return pp_kv_u64(kv, key, min, max, out, err);
	*out = fallback;
	return 0;
}

int pp_kv_i64(const struct pp_kv *kv, const char *key, int64_t min, int64_t max, int64_t *out,
	struct pp_error *err)
{
	const char *value;
	int64_t v;

	if (pp_kv_str(kv, key, &value, err) != 0)
		return -1;
	if (!parse_i64(value, &v) || v < min || v > max)
		return pp_fail(err, PP_ERR_PEER, "'%s' is '%.40s', expected a number from %" PRId64
			" to %" PRId64, key, value, min, max);
	*out = v;
	return 0;
}

int pp_kv_i64_or(const struct pp_kv *kv, const char *key, int64_t fallback, int64_t min, int64_t max,
	int64_t *out, struct pp_error *err)
{
	if (pp_kv_find(kv, key))
		return pp_kv_i64(kv, key, min, max, out, err);
	*out = fallback;
	return 0;
}

int pp_kv_bool(const struct pp_kv *kv, const char *key, bool *out, struct pp_error *err)
{
	const char *value;

	if (pp_kv_str(kv, key, &value, err) != 0)
		return -1;
	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return pp_fail(err, PP_ERR_PEER, "'%s' is '%.40s', expected yes or no", key, value);
	*out = value[0] == 'y';
	return 0;
}

int pp_kv_bool_or(const struct pp_kv *kv, const char *key, bool fallback, bool *out,
	struct pp_error *err)
{
	if (pp_kv_find(kv, key))
		return pp_kv_bool(kv, key, out, err);
	*out = fallback;
	return 0;
}

void pp_kv_add(struct pp_buf *buf, const char *key, const char *value)
{
	const char *stop;

	assert(key_length(key, strlen(key) + 1, '\0') != 0);
	pp_buf_add(buf, key, strlen(key));
	pp_buf_add(buf, "=", 1);
	while (*(stop = value + strcspn(value, "\n\\"))) {
		pp_buf_add(buf, value, (size_t)(stop - value));
		pp_buf_add(buf, *stop == '\n' ? "\\n" : "\\\\", 2);
		value = stop + 1;
	}
	pp_buf_add(buf, value, (size_t)(stop - value));
	pp_buf_add(buf, "\n", 1);
}

void pp_kv_addf(struct pp_buf *buf, const char *key, const char *fmt, ...)
{
	char small[512], *text = small;
	va_list ap;
	int need;

	va_start(ap, fmt);
	need = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	assert(need >= 0);
	if ((size_t)need >= sizeof(small)) {
		text = malloc((size_t)need + 1);
		if (!text) {
			buf->failed = true;
			return;
		}
		va_start(ap, fmt);
		vsnprintf(text, (size_t)need + 1, fmt, ap);
		va_end(ap);
	}
	pp_kv_add(buf, key, text);
	if (text != small)
		free(text);
}

void pp_kv_add_u64(struct pp_buf *buf, const char *key, uint64_t value)
{
	pp_kv_addf(buf, key, "%" PRIu64, value);
}

void pp_kv_add_i64(struct pp_buf *buf, const char *key, int64_t value)
{
	pp_kv_addf(buf, key, "%" PRId64, value);
}

void pp_kv_add_bool(struct pp_buf *buf, const char *key, bool value)
{
	pp_kv_add(buf, key, value ? "yes" : "no");
}
