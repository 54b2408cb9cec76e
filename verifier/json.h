/* SPDX-License-Identifier: MIT
 *
 * Reading our own JSON files strictly, and writing them so that the same facts give the same bytes.
 */
#ifndef PP_VERIFIER_JSON_H
#define PP_VERIFIER_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/core/error.h"

/* The object of a file (a new reference) whose "format" is 1; NULL with PP_ERR_EVIDENCE. */
json_t *pp_json_load(const char *path, struct pp_error *err);

/* Indented, keys in the order in which they were set, newline at the end. Takes the reference. */
int pp_json_save(json_t *object, const char *path, struct pp_error *err);

/* The first call that fails fills err; later ones do nothing: check *ok once at the end. */
struct pp_json_in {
	const json_t *object;
	const char *where;     /* for messages: the file */
	struct pp_error *err;
	bool ok;
};
void pp_json_str(struct pp_json_in *in, const char *key, char *out, int out_bytes);
int64_t pp_json_int(struct pp_json_in *in, const char *key, int64_t min, int64_t max);
bool pp_json_bool(struct pp_json_in *in, const char *key);
const json_t *pp_json_array(struct pp_json_in *in, const char *key, size_t max);

#endif
