/* SPDX-License-Identifier: MIT */
#include "template.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TEXT_BYTES_MAX 8192

static bool has_control(const char *text)
{
	for (; *text; text++)
		if (iscntrl((unsigned char)*text))
			return true;
	return false;
}

static void add_escaped(struct pp_buf *out, const char *text, enum pp_place place)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		switch (place) {
		case PP_PLACE_PATH:
		case PP_PLACE_FORM:
			if (isalnum(c) || strchr("-._~", c))
				pp_buf_add(out, text, 1);
			else
				pp_buf_addf(out, "%%%02X", c);
			break;
		case PP_PLACE_JSON:
			if (c == '"' || c == '\\')
				pp_buf_addf(out, "\\%c", c);
			else if (c < 0x20)
				pp_buf_addf(out, "\\u%04x", c);
			else
				pp_buf_add(out, text, 1);
			break;
		case PP_PLACE_POINTER: /* RFC 6901, 3 */
			if (c == '~' || c == '/')
				pp_buf_add(out, c == '~' ? "~0" : "~1", 2);
			else
				pp_buf_add(out, text, 1);
			break;
		case PP_PLACE_RAW:
		case PP_PLACE_ARGV:
		case PP_PLACE_INPUT:
			pp_buf_add(out, text, 1);
			break;
		}
	}
}

/* Names of the credentials: 1 filled, 0 not one of them, or not in this place; -1 no value. */
static int lookup_secret(char *out, size_t bytes, const char *name, enum pp_place place,
	const struct pp_values *values, struct pp_error *err)
{
	const struct pp_credentials *credentials = values->credentials;
	const char *value = NULL;

	if (place != PP_PLACE_ARGV && place != PP_PLACE_INPUT)
		return 0;
	if (strcmp(name, "user") == 0)
		value = credentials ? credentials->user : "";
	else if (strcmp(name, "password") == 0)
		value = credentials ? credentials->password : "";
	else if (strcmp(name, "token") == 0)
		value = credentials ? credentials->token : "";
	if (!value)
		return 0;
	if (place == PP_PLACE_ARGV && strcmp(name, "user") != 0)
		return pp_fail(err, PP_ERR_USAGE, "{%s} on a command line, where all can read it", name);
	if (!*value)
		return pp_fail(err, PP_ERR_USAGE, "the credentials have no %s", name);
	snprintf(out, bytes, "%s", value);
	return 1;
}

/* The value of one name: 1 filled, 0 not a name of ours, -1 no value here. */
static int lookup(char *out, size_t bytes, const char *name, const struct pp_values *values,
	struct pp_error *err)
{
	long long n;
	char *end;

	if (strcmp(name, "n") == 0 || strcmp(name, "id") == 0) {
		if (!values->outlet)
			return pp_fail(err, PP_ERR_USAGE, "{%s} where there is no outlet", name);
		snprintf(out, bytes, "%s", values->outlet);
		return 1;
	}
	if (strcmp(name, "n0") == 0) {
		n = values->outlet ? strtoll(values->outlet, &end, 10) : -1;
		if (!values->outlet || *end || end == values->outlet || n < values->index_base)
			return pp_fail(err, PP_ERR_USAGE, "outlet '%s' is not a number from %lld",
				values->outlet ? values->outlet : "", (long long)values->index_base);
		snprintf(out, bytes, "%lld", n - (long long)values->index_base);
		return 1;
	}
	if (strcmp(name, "n1") == 0) {
		n = values->outlet ? strtoll(values->outlet, &end, 10) : -1;
		if (!values->outlet || *end || end == values->outlet || n < 0)
			return pp_fail(err, PP_ERR_USAGE, "outlet '%s' is not a number",
				values->outlet ? values->outlet : "");
		snprintf(out, bytes, "%lld", n + 1);
		return 1;
	}
	if (strcmp(name, "host") == 0) {
		if (!values->host)
			return pp_fail(err, PP_ERR_USAGE, "the profile needs a host");
		snprintf(out, bytes, "%s", values->host);
		return 1;
	}
	if (strcmp(name, "secs") == 0 || strcmp(name, "ms") == 0 || strcmp(name, "ds") == 0) {
		int64_t unit_ms = name[0] == 's' ? 1000 : name[0] == 'd' ? 100 : 1;

		if (values->time_ms < 0)
			return pp_fail(err, PP_ERR_USAGE, "{%s} where there is no time", name);
		snprintf(out, bytes, "%lld", (long long)((values->time_ms + unit_ms - 1) / unit_ms));
		return 1;
	}
	return 0;
}

int pp_template_fill(struct pp_buf *out, const char *text, enum pp_place place,
	const struct pp_values *values, struct pp_error *err)
{
	while (*text) {
		char name[10] = "", value[1100];
		size_t bytes = *text == '{' ? strspn(text + 1, "abcdefghijklmnopqrstuvwxyz01") : 0;
		int known = 0;

		if (*text == '{' && strncmp(text, "{target}", 8) == 0) {
			if (!values->target)
				return pp_fail(err, PP_ERR_USAGE, "{target} where there is none");
			pp_buf_add(out, values->target, strlen(values->target)); /* a path as it is */
			text += 8;
			continue;
		}
		if (bytes && bytes < sizeof(name) && text[1 + bytes] == '}') {
			memcpy(name, text + 1, bytes);
			known = lookup_secret(value, sizeof(value), name, place, values, err);
			if (known == 0)
				known = lookup(value, sizeof(value), name, values, err);
		}
		if (known == 0 && place == PP_PLACE_PATH && pp_parameters_find(values->parameters, name)) {
			pp_buf_addf(out, "%s", pp_parameters_find(values->parameters, name)); /* as it is */
			text += bytes + 2;
			continue;
		}
		if (known == 0 && pp_parameters_find(values->parameters, name)) {
			snprintf(value, sizeof(value), "%s", pp_parameters_find(values->parameters, name));
			known = 1;
		}
		if (known < 0)
			return -1;
		if (!known) {
			pp_buf_add(out, text++, 1);
			continue;
		}
		if (has_control(value))
			return pp_fail(err, PP_ERR_USAGE, "control character in {%s}", name);
		add_escaped(out, value, place);
		explicit_bzero(value, sizeof(value));
		text += bytes + 2;
	}
	if (out->failed)
		return pp_fail(err, PP_ERR_USAGE, "request is too long");
	return 0;
}

static char *fill(const char *text, enum pp_place place, const struct pp_values *values,
	struct pp_error *err)
{
	struct pp_buf buf;
	char *copy = NULL;

	pp_buf_init(&buf, TEXT_BYTES_MAX);
	if (pp_template_fill(&buf, text, place, values, err) == 0) {
		copy = strdup(buf.data ? buf.data : "");
		if (!copy)
			pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	}
	pp_buf_release(&buf);
	return copy;
}

/* Words as a person would quote them, but no shell: no variables, globs or operators. The words
 * are split first and filled afterwards, so that a value can never become two words. */
static int split_words(struct pp_pdu_request *request, const char *text,
	const struct pp_values *values, struct pp_error *err)
{
	char word[TEXT_BYTES_MAX];

	while (*(text += strspn(text, " \t"))) {
		size_t n = 0;
		char quote = 0;

		for (; *text && (quote || !strchr(" \t", *text)); text++) {
			if (quote ? *text == quote : (*text == '\'' || *text == '"'))
				quote = quote ? 0 : *text;
			else if (n < sizeof(word) - 1)
				word[n++] = *text;
		}
		word[n] = '\0';
		if (quote)
			return pp_fail(err, PP_ERR_USAGE, "argv has an open quote");
		if (request->argv_count == PP_PDU_WORDS_MAX)
			return pp_fail(err, PP_ERR_USAGE, "argv has too many words");
		request->argv[request->argv_count] = fill(word, PP_PLACE_ARGV, values, err);
		if (!request->argv[request->argv_count])
			return -1;
		request->argv_count++;
	}
	return 0;
}

static char *fill_lines(const struct pp_profile_list *lines, const struct pp_values *values,
	struct pp_error *err)
{
	struct pp_buf buf;
	char *copy = NULL;
	int rc = 0;

	pp_buf_init(&buf, TEXT_BYTES_MAX);
	for (int i = 0; rc == 0 && i < lines->count; i++) {
		rc = pp_template_fill(&buf, lines->item[i], PP_PLACE_INPUT, values, err);
		pp_buf_add(&buf, "\n", 1);
	}
	if (rc == 0 && !buf.failed && buf.data)
		copy = strdup(buf.data);
	if (rc == 0 && !copy)
		pp_fail(err, PP_ERR_USAGE, "input is too long");
	if (buf.data)
		explicit_bzero(buf.data, buf.bytes);
	pp_buf_release(&buf);
	return copy;
}

static enum pp_place body_place(const struct pp_profile_request *from)
{
	for (int i = 0; i < from->header.count; i++)
		if (strcasestr(from->header.item[i], "urlencoded"))
			return PP_PLACE_FORM;
	return from->body[0] == '{' || from->body[0] == '[' ? PP_PLACE_JSON : PP_PLACE_FORM;
}

int pp_template_request(struct pp_pdu_request *request, const struct pp_profile_request *from,
	const struct pp_values *values, struct pp_error *err)
{
	if (from->method && !(request->method = fill(from->method, PP_PLACE_RAW, values, err)))
		return -1;
	if (from->path && !(request->path = fill(from->path, PP_PLACE_PATH, values, err)))
		return -1;
	if (from->path && request->path[0] != '/') /* else it would lengthen the host's name */
		return pp_fail(err, PP_ERR_USAGE, "path '%.200s' does not begin with '/'", request->path);
	if (from->body && !(request->body = fill(from->body, body_place(from), values, err)))
		return -1;
	if (from->oid && !(request->path = fill(from->oid, PP_PLACE_RAW, values, err)))
		return -1;
	if (from->set && !(request->body = fill(from->set, PP_PLACE_RAW, values, err)))
		return -1;
	if (from->input.count && !(request->input = fill_lines(&from->input, values, err)))
		return -1;
	for (int i = 0; i < from->header.count; i++) {
		char *header = fill(from->header.item[i], PP_PLACE_RAW, values, err);

		if (!header)
			return -1;
		request->header[request->header_count++] = header;
	}
	return from->argv ? split_words(request, from->argv, values, err) : 0;
}

void pp_request_release(struct pp_pdu_request *request)
{
	for (int i = 0; i < request->header_count; i++)
		free(request->header[i]);
	for (int i = 0; i < request->argv_count; i++)
		free(request->argv[i]);
	free(request->method);
	free(request->path);
	free(request->body);
	if (request->input)
		explicit_bzero(request->input, strlen(request->input)); /* may hold a password */
	free(request->input);
	memset(request, 0, sizeof(*request));
}
