/* SPDX-License-Identifier: MIT */
#include "answer.h"

#include <jansson.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTER_BYTES_MAX 1024

struct pp_answer {
	json_t *json; /* NULL: not JSON */
	char *body;
	size_t bytes;
	char text[512];
};

struct pp_answer *pp_answer_parse(const struct pp_buf *body)
{
	struct pp_answer *answer = calloc(1, sizeof(*answer));

	if (!answer)
		return NULL;
	answer->bytes = body->bytes;
	answer->body = calloc(1, body->bytes + 1);
	if (!answer->body) {
		free(answer);
		return NULL;
	}
	if (body->bytes)
		memcpy(answer->body, body->data, body->bytes);
	/* Scalars count too: DLI answers "true". A member given twice is no document to rely on. */
	answer->json = json_loadb(answer->body, answer->bytes,
		JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
	return answer;
}

void pp_answer_free(struct pp_answer *answer)
{
	if (!answer)
		return;
	json_decref(answer->json);
	free(answer->body);
	free(answer);
}

static bool scalar_text(const json_t *value, char *out, size_t bytes)
{
	if (json_is_string(value))
		return strlen(json_string_value(value)) == json_string_length(value) &&
			snprintf(out, bytes, "%s", json_string_value(value)) < (int)bytes;
	if (json_is_boolean(value))
		return snprintf(out, bytes, "%s", json_is_true(value) ? "true" : "false") > 0;
	if (json_is_integer(value))
		return snprintf(out, bytes, "%lld", (long long)json_integer_value(value)) > 0;
	if (json_is_real(value))
		return snprintf(out, bytes, "%.17g", json_real_value(value)) > 0;
	return false;
}

/* "[KEY=VALUE]": the only element whose KEY is VALUE; two of them are as bad as none. */
static const json_t *find_element(const json_t *array, char *token)
{
	char *value = strchr(token, '=');
	const json_t *hit = NULL;
	size_t i;
	json_t *element;

	if (!value || !json_is_array(array))
		return NULL;
	*value++ = '\0';
	if (!*value || value[strlen(value) - 1] != ']')
		return NULL;
	value[strlen(value) - 1] = '\0';
	json_array_foreach(array, i, element) {
		char text[256];

		if (!scalar_text(json_object_get(element, token + 1), text, sizeof(text)) ||
		    strcmp(text, value) != 0)
			continue;
		if (hit)
			return NULL;
		hit = element;
	}
	return hit;
}

static void unescape(char *token)
{
	char *out = token;

	for (; *token; token++) {
		if (token[0] == '~' && (token[1] == '0' || token[1] == '1'))
			*out++ = *++token == '0' ? '~' : '/';
		else
			*out++ = *token;
	}
	*out = '\0';
}

static const json_t *step(const json_t *at, char *token)
{
	char *end;
	unsigned long index;

	if (token[0] == '[')
		return find_element(at, token);
	unescape(token);
	if (json_is_object(at))
		return json_object_get(at, token);
	if (!json_is_array(at) || !*token || strspn(token, "0123456789") != strlen(token))
		return NULL;
	index = strtoul(token, &end, 10);
	return json_array_get(at, index);
}

/* pointer has been filled already; it is cut to pieces. "" is the whole document. */
static const json_t *resolve(const json_t *at, char *pointer)
{
	while (at && *pointer) {
		char *token = pointer + 1, *next = strchr(token, '/');

		if (*pointer != '/')
			return NULL;
		if (next)
			*next = '\0';
		at = step(at, token);
		if (!next)
			break;
		*next = '/';
		pointer = next;
	}
	return at;
}

static const json_t *find(struct pp_answer *answer, const char *pointers,
	const struct pp_values *values)
{
	const json_t *hit = NULL;

	for (;;) {
		size_t bytes = strcspn(pointers, "|");
		char one[POINTER_BYTES_MAX];
		struct pp_buf filled;

		if (bytes >= sizeof(one))
			return NULL;
		memcpy(one, pointers, bytes);
		one[bytes] = '\0';
		if (strcmp(one, "/") == 0)
			one[0] = '\0'; /* the whole document, which "" cannot say in an INI file */
		pp_buf_init(&filled, POINTER_BYTES_MAX);
		if (pp_template_fill(&filled, one, PP_PLACE_POINTER, values, NULL) == 0)
			hit = resolve(answer->json, filled.data ? filled.data : (char[]){ "" });
		pp_buf_release(&filled);
		if (hit || !pointers[bytes])
			return hit;
		pointers += bytes + 1;
	}
}

const char *pp_answer_text(struct pp_answer *answer, const char *pointers,
	const struct pp_values *values)
{
	const json_t *value = answer->json ? find(answer, pointers, values) : NULL;

	return value && scalar_text(value, answer->text, sizeof(answer->text)) ? answer->text : NULL;
}

bool pp_answer_number(struct pp_answer *answer, const char *pointers,
	const struct pp_values *values, double *number)
{
	const char *text = pp_answer_text(answer, pointers, values);
	char *end;

	if (!text || !*text)
		return false;
	*number = strtod(text, &end);
	return !*end && isfinite(*number);
}

static bool on_bar_list(const char *bars, const char *text)
{
	size_t want = strlen(text);

	for (;;) {
		size_t bytes = strcspn(bars, "|");

		if (bytes == want && memcmp(bars, text, want) == 0)
			return true;
		if (!bars[bytes])
			return false;
		bars += bytes + 1;
	}
}

/* "/pointer value|value"; "/pointer? value|value" holds too when nothing is there. */
static int check_expect(struct pp_answer *answer, const char *expect,
	const struct pp_values *values, struct pp_error *err)
{
	size_t bytes = strcspn(expect, " \t");
	const char *wanted = expect + bytes + strspn(expect + bytes, " \t");
	bool may_miss = bytes && expect[bytes - 1] == '?';
	char pointer[POINTER_BYTES_MAX];
	struct pp_buf filled;
	const char *text;
	int rc = 0;

	if (bytes >= sizeof(pointer))
		return pp_fail(err, PP_ERR_USAGE, "pointer is too long");
	memcpy(pointer, expect, bytes);
	pointer[bytes - may_miss] = '\0';
	text = answer->json ? pp_answer_text(answer, pointer, values) : NULL;
	if (!text) {
		if (may_miss && answer->json && !find(answer, pointer, values))
			return 0;
		return pp_fail(err, PP_ERR_PEER, "the answer has no '%s'", pointer);
	}
	pp_buf_init(&filled, POINTER_BYTES_MAX);
	if (pp_template_fill(&filled, wanted, PP_PLACE_RAW, values, err) != 0)
		rc = -1;
	else if (!on_bar_list(filled.data ? filled.data : "", text))
		rc = pp_fail(err, PP_ERR_PEER, "the answer says '%s' at '%s', not '%s'", text, pointer,
			filled.data ? filled.data : "");
	pp_buf_release(&filled);
	return rc;
}

/* 1 matches, 0 not, -1 no such expression. out may be NULL. */
static int match(const char *body, const char *pattern, char *out, size_t bytes)
{
	regmatch_t group[2];
	regex_t regex;
	int rc;

	if (regcomp(&regex, pattern, REG_EXTENDED | REG_NEWLINE) != 0)
		return -1;
	rc = regexec(&regex, body, 2, group, 0) == 0;
	if (rc && out) {
		int n = group[1].rm_so < 0 ? -1 : (int)(group[1].rm_eo - group[1].rm_so);

		if (n < 0 || (size_t)n >= bytes)
			rc = 0;
		else
			snprintf(out, bytes, "%.*s", n, body + group[1].rm_so);
	}
	regfree(&regex);
	return rc;
}

static int match_filled(struct pp_answer *answer, const char *pattern, char *out, size_t bytes,
	const struct pp_values *values)
{
	struct pp_buf filled;
	int rc = -1;

	pp_buf_init(&filled, POINTER_BYTES_MAX);
	if (pp_template_fill(&filled, pattern, PP_PLACE_RAW, values, NULL) == 0 && filled.data)
		rc = match(answer->body, filled.data, out, bytes);
	pp_buf_release(&filled);
	return rc;
}

bool pp_answer_match(struct pp_answer *answer, const char *pattern, char *out, size_t bytes)
{
	return match(answer->body, pattern, out, bytes) == 1;
}

int pp_answer_check(struct pp_answer *answer, const struct pp_profile_request *request, int status,
	const struct pp_values *values, struct pp_error *err)
{
	bool listed = false;

	for (int i = 0; i < request->status.count; i++)
		listed = listed || atoi(request->status.item[i]) == status;
	if (!listed && status >= 1000)
		return pp_fail(err, PP_ERR_PEER, "the command exited with %d", status - 1000);
	if (!listed)
		return pp_fail(err, PP_ERR_PEER, "the device answered with status %d%s", status,
			status == 401 ? " (user name or password refused)" :
			status == 403 ? " (this user may not do that)" : "");
	for (int i = 0; i < request->expect.count; i++)
		if (check_expect(answer, request->expect.item[i], values, err) != 0)
			return -1;
	for (int i = 0; i < request->forbid.count; i++) {
		const json_t *value = answer->json ?
			find(answer, request->forbid.item[i], values) : NULL;

		if (value && !json_is_null(value))
			return pp_fail(err, PP_ERR_PEER, "the answer holds '%s': %.120s",
				request->forbid.item[i], answer->body);
	}
	if (request->expect_text &&
	    match_filled(answer, request->expect_text, NULL, 0, values) != 1)
		return pp_fail(err, PP_ERR_PEER, "the answer does not match '%s'",
			request->expect_text);
	if (request->forbid_text &&
	    match_filled(answer, request->forbid_text, NULL, 0, values) != 0)
		return pp_fail(err, PP_ERR_PEER, "the answer matches '%s'", request->forbid_text);
	return 0;
}

static bool on_list(const struct pp_profile_list *list, const char *text)
{
	for (int i = 0; i < list->count; i++)
		if (strcmp(list->item[i], text) == 0)
			return true;
	return false;
}

enum pp_pdu_state pp_answer_state(struct pp_answer *answer, const struct pp_profile *profile,
	const struct pp_values *values)
{
	char group[256];
	const char *text = NULL;

	for (int i = 0; i < profile->pending_if.count; i++)
		if (check_expect(answer, profile->pending_if.item[i], values, NULL) == 0)
			return PP_PDU_PENDING;
	if (profile->state)
		text = pp_answer_text(answer, profile->state, values);
	else if (match_filled(answer, profile->state_regex, group, sizeof(group), values) == 1)
		text = group;
	if (!text)
		return PP_PDU_UNKNOWN;
	if (on_list(&profile->state_pending, text))
		return PP_PDU_PENDING;
	if (on_list(&profile->state_off, text))
		return PP_PDU_OFF;
	return on_list(&profile->state_on, text) ? PP_PDU_ON : PP_PDU_UNKNOWN;
}
