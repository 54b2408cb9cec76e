/* SPDX-License-Identifier: MIT
 *
 * The text of control frames: lines "key=value\n".
 *
 * A key is 1 to 64 characters of a-z 0-9 _ . -; a value is any bytes but NUL, with newline written
 * \n and backslash written \\ . The parser is strict: a line without '=', a missing last newline,
 * another escape, a NUL, a repeated key, more than PP_KV_PAIRS_MAX lines or PP_KV_BYTES_MAX bytes
 * refuse the whole text, since a peer that is misunderstood must not be obeyed by half. Keys that
 * nobody asks for are fine: a newer peer may say more. No text at all is an empty set.
 *
 * Getters fail with PP_ERR_PEER and a text that names the key: "missing 'lanes'", "'lanes' is
 * 'many', expected a number from 1 to 64". The `_or` forms give the fallback when the key is
 * missing, and still fail when it is there and wrong.
 */
#ifndef PP_CORE_KV_H
#define PP_CORE_KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "error.h"
#include "os.h"

#define PP_KV_PAIRS_MAX 1024
#define PP_KV_KEY_MAX   64
#define PP_KV_BYTES_MAX (1u << 20)

struct pp_kv_pair {
	const char *key, *value; /* terminated, into pp_kv.text */
};

/* Caller-allocated; parse fills it, release empties it. All zeros is an empty set. */
struct pp_kv {
	char *text;
	struct pp_kv_pair *pairs; /* in the order of the text */
	size_t count;
};

/* kv need not be initialised; on failure it is empty and needs no release. */
int pp_kv_parse(struct pp_kv *kv, const void *data, size_t bytes, struct pp_error *err);
void pp_kv_release(struct pp_kv *kv);

const char *pp_kv_find(const struct pp_kv *kv, const char *key); /* NULL when missing */

int pp_kv_str(const struct pp_kv *kv, const char *key, const char **out, struct pp_error *err);
const char *pp_kv_str_or(const struct pp_kv *kv, const char *key, const char *fallback);
/* Decimal digits only, no sign, no blanks. */
int pp_kv_u64(const struct pp_kv *kv, const char *key, uint64_t min, uint64_t max, uint64_t *out,
	struct pp_error *err);
int pp_kv_u64_or(const struct pp_kv *kv, const char *key, uint64_t fallback, uint64_t min,
	uint64_t max, uint64_t *out, struct pp_error *err);
int pp_kv_i64(const struct pp_kv *kv, const char *key, int64_t min, int64_t max, int64_t *out,
	struct pp_error *err);
int pp_kv_i64_or(const struct pp_kv *kv, const char *key, int64_t fallback, int64_t min, int64_t max,
	int64_t *out, struct pp_error *err);
/* "yes" or "no". */
int pp_kv_bool(const struct pp_kv *kv, const char *key, bool *out, struct pp_error *err);
int pp_kv_bool_or(const struct pp_kv *kv, const char *key, bool fallback, bool *out,
	struct pp_error *err);

/* Builders append one line; a bad key is our own mistake (assert). Check buf->failed at the end. */
void pp_kv_add(struct pp_buf *buf, const char *key, const char *value);
void pp_kv_addf(struct pp_buf *buf, const char *key, const char *fmt, ...)
	__attribute__((format(PP_FORMAT, 3, 4)));
void pp_kv_add_u64(struct pp_buf *buf, const char *key, uint64_t value);
void pp_kv_add_i64(struct pp_buf *buf, const char *key, int64_t value);
void pp_kv_add_bool(struct pp_buf *buf, const char *key, bool value);

#endif
