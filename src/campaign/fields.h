/* SPDX-License-Identifier: MIT
 *
 * A struct as kv text, by a table that says which key is which member: what is written and what is
 * read cannot drift apart, and a test can walk every field.
 */
#ifndef PP_CAMPAIGN_FIELDS_H
#define PP_CAMPAIGN_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/buf.h"
#include "src/core/error.h"
#include "src/core/kv.h"

enum pp_field_type { PP_FIELD_TEXT, PP_FIELD_BOOL, PP_FIELD_U32, PP_FIELD_U64, PP_FIELD_I64,
	PP_FIELD_INT, PP_FIELD_ENUM };

struct pp_field {
	const char *key;
	enum pp_field_type type;
	size_t offset;
	size_t bytes;               /* of a text, its NUL included; a longer value is refused */
	int64_t min;                /* of I64 and INT */
	uint64_t max;               /* of numbers; 0: what the type holds */
	uint64_t least;             /* of U32 and U64 */
	const char *(*name)(int value); /* of an enum: 0 ... count - 1 */
	int count;
};

#define PP_F_TEXT(s, m)    { .key = #m, .type = PP_FIELD_TEXT, .offset = offsetof(struct s, m), \
	.bytes = sizeof(((struct s *)0)->m) }
#define PP_F_BOOL(s, m)    { .key = #m, .type = PP_FIELD_BOOL, .offset = offsetof(struct s, m) }
#define PP_F_U32(s, m)     { .key = #m, .type = PP_FIELD_U32, .offset = offsetof(struct s, m) }
#define PP_F_U64(s, m)     { .key = #m, .type = PP_FIELD_U64, .offset = offsetof(struct s, m) }
#define PP_F_I64(s, m)     { .key = #m, .type = PP_FIELD_I64, .offset = offsetof(struct s, m), \
	.min = INT64_MIN, .max = INT64_MAX }
#define PP_F_INT(s, m, lo, hi) { .key = #m, .type = PP_FIELD_INT, .offset = offsetof(struct s, m), \
	.min = (lo), .max = (hi) }
#define PP_F_U32_IN(s, m, lo, hi) { .key = #m, .type = PP_FIELD_U32, \
	.offset = offsetof(struct s, m), .least = (lo), .max = (hi) }
#define PP_F_ENUM(s, m, fn, n) { .key = #m, .type = PP_FIELD_ENUM, \
	.offset = offsetof(struct s, m), .name = (fn), .count = (n) }

#define PP_FIELDS(table) (table), sizeof(table) / sizeof((table)[0])

/* prefix stands before every key. */
void pp_fields_put(struct pp_buf *buf, const char *prefix, const struct pp_field *fields,
	size_t count, const void *thing);
/* Every field must be there; members without a field stay as they were. */
int pp_fields_get(const struct pp_kv *kv, const char *prefix, const struct pp_field *fields,
	size_t count, void *thing, struct pp_error *err);
bool pp_fields_have(const struct pp_field *fields, size_t count, const char *key);

/* A text of less than out_bytes bytes. */
int pp_field_text(const struct pp_kv *kv, const char *key, char *out, size_t out_bytes,
	struct pp_error *err);

#endif
