/* SPDX-License-Identifier: MIT */
#include "json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/file.h"

#define JSON_BYTES_MAX (64U << 20)

json_t *pp_json_load(const char *path, struct pp_error *err)
{
	struct pp_buf buf;
	json_error_t why;
	json_t *object;

	pp_buf_init(&buf, JSON_BYTES_MAX);
	if (pp_file_read(path, &buf, err) != 0) {
		pp_buf_release(&buf);
		return NULL;
	}
	object = json_loadb(buf.data ? buf.data : "", buf.bytes, JSON_REJECT_DUPLICATES, &why);
	pp_buf_release(&buf);
	if (!object) {
		pp_fail(err, PP_ERR_EVIDENCE, "'%s' is not JSON: line %d: %s", path, why.line, why.text);
		return NULL;
	}
	if (!json_is_object(object) ||
		json_integer_value(json_object_get(object, "format")) != 1) {
		pp_fail(err, PP_ERR_EVIDENCE, "'%s' has no \"format\": 1; this tool reads no other", path);
		json_decref(object);
		return NULL;
	}
	return object;
}

int pp_json_save(json_t *object, const char *path, struct pp_error *err)
{
	char *text = object ? json_dumps(object, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : NULL;
	struct pp_buf buf;
	int rc;

	json_decref(object);
	if (!text)
		return pp_fail_os(err, ENOMEM, "cannot write '%s'", path);
	pp_buf_init(&buf, JSON_BYTES_MAX);
	pp_buf_add(&buf, text, strlen(text));
	pp_buf_add(&buf, "\n", 1);
	free(text);
	rc = buf.failed ? pp_fail_os(err, ENOMEM, "cannot write '%s'", path)
		: pp_file_write(path, buf.data, buf.bytes, 0644, err);
	pp_buf_release(&buf);
	return rc;
}

static void wrong(struct pp_json_in *in, const char *key, const char *wanted)
{
	if (in->ok)
		pp_fail(in->err, PP_ERR_EVIDENCE, "'%s': \"%s\" is missing or not %s", in->where, key,
			wanted);
	in->ok = false;
}

void pp_json_str(struct pp_json_in *in, const char *key, char *out, int out_bytes)
{
	const json_t *value = json_object_get(in->object, key);
	const char *text = json_string_value(value);

	out[0] = '\0';
	if (!text || json_string_length(value) != strlen(text) ||
		strlen(text) >= (size_t)out_bytes) {
		wrong(in, key, "a text of the length that is allowed");
		return;
	}
	strcpy(out, text);
}

int64_t pp_json_int(struct pp_json_in *in, const char *key, int64_t min, int64_t max)
{
	const json_t *value = json_object_get(in->object, key);
	int64_t n = json_integer_value(value);

	if (!json_is_integer(value) || n < min || n > max) {
		wrong(in, key, "a number in its range");
		return min;
	}
	return n;
}

bool pp_json_bool(struct pp_json_in *in, const char *key)
{
	const json_t *value = json_object_get(in->object, key);

	if (!json_is_boolean(value))
		wrong(in, key, "true or false");
	return json_is_true(value);
}

const json_t *pp_json_array(struct pp_json_in *in, const char *key, size_t max)
{
	const json_t *value = json_object_get(in->object, key);

	if (!json_is_array(value) || json_array_size(value) > max) {
		wrong(in, key, "a list of the length that is allowed");
		return NULL;
	}
	return value;
}
