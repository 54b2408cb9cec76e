/* SPDX-License-Identifier: MIT
 *
 * Method: one table says which key of which section goes where and in what form; the parser only
 * walks that table, so that a key which is not in it cannot be meant by anybody. Each section that
 * is a request shares the request keys. libinih reads lines through a reader of ours that counts
 * them (its own line numbers are a build option) and refuses the ones it would have cut.
 */
#include "profile.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "src/core/buf.h"
#include "src/core/file.h"

#define PROFILE_BYTES_MAX 65536

enum form { STRING, LIST, BAR_LIST, WORD_LIST, INTEGER, AUTH, CUTS, TRANSPORT, UNIT };

struct key {
	const char *section; /* NULL: any request */
	const char *name;
	enum form form;
	size_t offset;       /* into pp_profile, or pp_profile_request for requests */
};

#define P(member) offsetof(struct pp_profile, member)
#define R(member) offsetof(struct pp_profile_request, member)

static const struct key keys[] = {
	{ "profile", "name", STRING, P(name) },
	{ "profile", "title", STRING, P(title) },
	{ "profile", "notes", LIST, P(notes) },
	{ "profile", "transport", TRANSPORT, P(transport) },
	{ "profile", "sys_object", WORD_LIST, P(sys_object) },
	{ "profile", "snmp_version", INTEGER, P(snmp_version) },
	{ "profile", "cuts", CUTS, P(cuts) },
	{ "profile", "auth", AUTH, P(auth) },
	{ "profile", "auth_user", STRING, P(auth_user) },
	{ "profile", "outlet", STRING, P(outlet) },
	{ "profile", "index_base", INTEGER, P(index_base) },
	{ "profile", "settle_ms", INTEGER, P(settle_ms) },
	{ "profile", "verify_timeout_ms", INTEGER, P(verify_timeout_ms) },
	{ "profile", "stagger_ms", INTEGER, P(stagger_ms) },
	{ "profile", "watts_period_ms", INTEGER, P(watts_period_ms) },
	{ "profile", "watts_stale_ms", INTEGER, P(watts_stale_ms) },
	{ "status", "state", STRING, P(state) },
	{ "status", "state_regex", STRING, P(state_regex) },
	{ "status", "on", BAR_LIST, P(state_on) },
	{ "status", "off", BAR_LIST, P(state_off) },
	{ "status", "pending", BAR_LIST, P(state_pending) },
	{ "status", "pending_if", LIST, P(pending_if) },
	{ "status", "watts", STRING, P(status_watts) },
	{ "watts", "watts", STRING, P(watts_watts) },
	{ "identity", "id", STRING, P(identity_id) },
	{ "identity", "id_regex", STRING, P(identity_regex) },
	{ "identity", "model", STRING, P(identity_model) },
	{ "label", "label", STRING, P(label_label) },
	{ "target", "target", STRING, P(target_target) },
	{ "timed-off", "unit", UNIT, P(timed_unit) },
	{ "timed-off", "min", INTEGER, P(timed_min) },
	{ "timed-off", "max", INTEGER, P(timed_max) },
	{ NULL, "method", STRING, R(method) },
	{ NULL, "path", STRING, R(path) },
	{ NULL, "body", STRING, R(body) },
	{ NULL, "header", LIST, R(header) },
	{ NULL, "status", WORD_LIST, R(status) },
	{ NULL, "expect", LIST, R(expect) },
	{ NULL, "forbid", LIST, R(forbid) },
	{ NULL, "expect_text", STRING, R(expect_text) },
	{ NULL, "forbid_text", STRING, R(forbid_text) },
	{ NULL, "argv", STRING, R(argv) },
	{ NULL, "input", LIST, R(input) },
	{ NULL, "exit", WORD_LIST, R(exits) },
	{ NULL, "oid", STRING, R(oid) },
	{ NULL, "set", STRING, R(set) },
};

static const struct {
	const char *section;
	size_t offset;
} requests[] = {
	{ "off", P(off) },       { "on", P(on) },       { "status", P(status) },
	{ "identity", P(identity) }, { "label", P(label) }, { "watts", P(watts) },
	{ "timed-off", P(timed_off) }, { "target", P(target) },
};

/* Words that have no business in a profile: secrets come from the credentials file. */
static const char *const secret_words[] = {
	"password", "passwd", "pass=", "pwd", "secret", "token=", "authorization", "x-auth-token",
	"x-sessiontoken", "x-kvmd-", "cookie", "api_key", "apikey", "user=", "community",
};

struct parse {
	const char *file;
	const char *text;
	size_t bytes, at;
	int line;
	char bad_reader[160]; /* what the reader itself found wrong */
	int bad_line;
	struct pp_profile *profile;
	struct pp_error *err;
	bool failed;
};

static int complain(struct parse *parse, const char *what, const char *subject)
{
	if (!parse->failed)
		pp_fail(parse->err, PP_ERR_USAGE, "%s:%d: %s '%s'", parse->file, parse->line, what,
			subject);
	parse->failed = true;
	return 0; /* what inih takes for "stop" */
}

static char *read_line(char *out, int bytes, void *stream)
{
	struct parse *parse = stream;
	int n = 0;

	if (parse->at >= parse->bytes)
		return NULL;
	while (parse->at < parse->bytes && n < bytes - 1) {
		char c = parse->text[parse->at++];

		if (c == '\0' && !parse->bad_line) {
			snprintf(parse->bad_reader, sizeof(parse->bad_reader), "NUL byte");
			parse->bad_line = parse->line + 1;
		}
		out[n++] = c ? c : ' ';
		if (c == '\n')
			break;
	}
	out[n] = '\0';
	parse->line++;
	if (n == bytes - 1 && out[n - 1] != '\n' && parse->at < parse->bytes && !parse->bad_line) {
		snprintf(parse->bad_reader, sizeof(parse->bad_reader),
			"line is longer than %d characters", bytes - 2);
		parse->bad_line = parse->line;
	}
	return out;
}

/* A short word counts only as a word: the path of a program may hold its letters by chance. */
static bool has_word(const char *text, const char *word)
{
	size_t bytes = strlen(word);
	const char *at;

	for (at = strcasestr(text, word); at; at = strcasestr(at + 1, word))
		if (bytes > 4 || ((at == text || !isalnum((unsigned char)at[-1])) &&
			!isalnum((unsigned char)at[bytes])))
			return true;
	return false;
}

static bool has_secret(const char *text)
{
	const char *at = strstr(text, "://");

	for (size_t i = 0; i < sizeof(secret_words) / sizeof(secret_words[0]); i++)
		if (has_word(text, secret_words[i]))
			return true;
	/* user:password@host */
	return at && strchr(at + 3, '@') && strcspn(at + 3, "@") < strcspn(at + 3, "/");
}

/* A line for a program's standard input names a secret ("passwd={password}") without holding it. */
static bool names_secret(const char *text)
{
	const char *at = strchr(text, '=');
	size_t bytes = at ? (size_t)(at - text) : 0;

	return at && strspn(text, "abcdefghijklmnopqrstuvwxyz_-") == bytes &&
		(strcmp(at, "={password}") == 0 || strcmp(at, "={token}") == 0);
}

static bool add_item(struct pp_profile_list *list, const char *text, size_t bytes)
{
	if (list->count == PP_PROFILE_LIST_MAX)
		return false;
	list->item[list->count] = strndup(text, bytes);
	return list->item[list->count] && ++list->count;
}

static bool split(struct pp_profile_list *list, const char *text, const char *separators)
{
	while (*text) {
		size_t n = strcspn(text, separators);
		size_t end = n;
		const char *from = text;

		while (end && isspace((unsigned char)*from)) {
			from++;
			end--;
		}
		while (end && isspace((unsigned char)from[end - 1]))
			end--;
		if (end && !add_item(list, from, end))
			return false;
		text += n + (text[n] != '\0');
	}
	return true;
}

static const struct {
	enum form form;
	const char *word;
	int value;
} words[] = {
	{ AUTH, "none", PP_AUTH_NONE },     { AUTH, "basic", PP_AUTH_BASIC },
	{ AUTH, "digest", PP_AUTH_DIGEST }, { AUTH, "bearer", PP_AUTH_BEARER },
	{ CUTS, "mains", PP_PDU_CUTS_MAINS }, { CUTS, "dc", PP_PDU_CUTS_DC },
	{ CUTS, "slot", PP_PDU_CUTS_SLOT }, { TRANSPORT, "http", PP_TRANSPORT_HTTP },
	{ TRANSPORT, "exec", PP_TRANSPORT_EXEC }, { TRANSPORT, "snmp", PP_TRANSPORT_SNMP },
	{ UNIT, "s", 0 },
	{ UNIT, "ms", 0 },                  { UNIT, "ds", 0 },
};

static int word_value(enum form form, const char *word)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i].form == form && strcmp(words[i].word, word) == 0)
			return words[i].value;
	return -1;
}

static int store(struct parse *parse, const struct key *key, void *base, const char *value)
{
	void *slot = (char *)base + key->offset;
	int word;

	switch (key->form) {
	case STRING:
		if (*(char **)slot)
			return complain(parse, "key given twice:", key->name);
		*(char **)slot = strdup(value);
		return *(char **)slot != NULL;
	case LIST:
		return add_item(slot, value, strlen(value)) ? 1 :
			complain(parse, "too many of", key->name);
	case BAR_LIST:
	case WORD_LIST:
		if (((struct pp_profile_list *)slot)->count)
			return complain(parse, "key given twice:", key->name);
		return split(slot, value, key->form == BAR_LIST ? "|" : " \t") ? 1 :
			complain(parse, "too many values in", key->name);
	case INTEGER: {
		char *end;
		long long number;

		errno = 0;
		number = strtoll(value, &end, 10);
		if (end == value || *end || errno || number < 0 || number > 86400000)
			return complain(parse, "not a number from 0 to 86400000:", value);
		*(int64_t *)slot = number;
		return 1;
	}
	case UNIT:
		if (word_value(UNIT, value) < 0)
			return complain(parse, "unknown unit (s, ms or ds):", value);
		if (*(char **)slot)
			return complain(parse, "key given twice:", key->name);
		*(char **)slot = strdup(value);
		return *(char **)slot != NULL;
	case AUTH:
	case CUTS:
	case TRANSPORT:
		word = word_value(key->form, value);
		if (word < 0)
			return complain(parse, "unknown value", value);
		*(int *)slot = word;
		return 1;
	}
	return 0;
}

static struct pp_profile_request *find_request(struct parse *parse, const char *section)
{
	struct pp_profile *profile = parse->profile;
	const char *name = section + 6;

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (strcmp(requests[i].section, section) == 0)
			return (void *)((char *)profile + requests[i].offset);
	if (strncmp(section, "check ", 6) != 0 || !*name)
		return NULL;
	for (int i = 0; i < profile->check_count; i++)
		if (strcmp(profile->check[i].name, name) == 0)
			return &profile->check[i].request;
	if (profile->check_count == PP_PROFILE_CHECKS_MAX)
		return NULL;
	profile->check[profile->check_count].name = strdup(name);
	return &profile->check[profile->check_count++].request;
}

static int set_why(struct parse *parse, const char *section, const char *value)
{
	struct pp_profile *profile = parse->profile;

	for (int i = 0; i < profile->check_count; i++) {
		char **why = &profile->check[i].why;

		if (strcmp(profile->check[i].name, section + 6) != 0)
			continue;
		if (*why)
			return complain(parse, "key given twice:", "why");
		*why = strdup(value);
		return 1;
	}
	return complain(parse, "unknown key", "why");
}

static int handle(void *user, const char *section, const char *name, const char *value)
{
	struct parse *parse = user;
	struct pp_profile_request *request;

	if (parse->failed)
		return 0;
	if (has_secret(name) || (has_secret(value) && strcmp(name, "notes") != 0 &&
	    strcmp(name, "why") != 0 && !(strcmp(name, "input") == 0 && names_secret(value))))
		return complain(parse, "a profile must not hold credentials (use the credentials "
			"file):", name);
	if (strcmp(section, "parameters") == 0) {
		struct pp_error why;

		return pp_parameters_declare(&parse->profile->parameters, name, value, &why) == 0 ? 1 :
			complain(parse, why.text, name);
	}
	request = find_request(parse, section);
	if (!request && strcmp(section, "profile") != 0)
		return complain(parse, "unknown section", section);
	if (request)
		request->given = true;
	if (strncmp(section, "check ", 6) == 0 && strcmp(name, "why") == 0)
		return set_why(parse, section, value);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(keys[i].name, name) != 0)
			continue;
		/* In [status], "status" is the list of codes: section keys win by their own names. */
		if (keys[i].section && strcmp(keys[i].section, section) == 0)
			return store(parse, &keys[i], parse->profile, value);
		if (!keys[i].section && request)
			return store(parse, &keys[i], request, value);
	}
	return complain(parse, "unknown key", name);
}

static int incomplete(struct pp_profile *profile, struct pp_error *err, const char *what)
{
	return pp_fail(err, PP_ERR_USAGE, "%s: %s", profile->path, what);
}

/* Which keys a request may hold and which it must, by transport. */
static int check_keys(struct pp_profile *profile, const char *section,
	struct pp_profile_request *request, struct pp_error *err)
{
	static const char *const names[] = { "path", "argv", "oid" };
	static const char *const transports[] = { "http", "exec", "snmp" };
	const struct {
		bool given;
		enum pp_profile_transport of;
	} keys_of[] = {
		{ request->path || request->body || request->header.count, PP_TRANSPORT_HTTP },
		{ request->argv || request->input.count || request->exits.count, PP_TRANSPORT_EXEC },
		{ request->oid || request->set, PP_TRANSPORT_SNMP },
	};
	const char *const must[] = { request->path, request->argv, request->oid };

	if (!must[profile->transport])
		return pp_fail(err, PP_ERR_USAGE, "%s: [%s] has no '%s'", profile->path, section,
			names[profile->transport]);
	for (size_t i = 0; i < sizeof(keys_of) / sizeof(keys_of[0]); i++)
		if (keys_of[i].given && keys_of[i].of != profile->transport)
			return pp_fail(err, PP_ERR_USAGE, "%s: [%s] has keys of %s, but the transport "
				"is %s", profile->path, section, transports[keys_of[i].of],
				transports[profile->transport]);
	return 0;
}

static int check_status_codes(struct pp_profile *profile, const char *section,
	struct pp_profile_request *request, struct pp_error *err)
{
	for (int i = 0; i < request->status.count; i++) {
		int code = atoi(request->status.item[i]);

		if (profile->transport != PP_TRANSPORT_HTTP ||
		    strlen(request->status.item[i]) != 3 || code < 200 || code > 499)
			return pp_fail(err, PP_ERR_USAGE, "%s: [%s] status '%s' is not an exact code",
				profile->path, section, request->status.item[i]);
	}
	for (int i = 0; i < request->exits.count; i++) {
		const char *text = request->exits.item[i];
		char code[16];

		if (strspn(text, "0123456789") != strlen(text) || strlen(text) > 3 || atoi(text) > 255)
			return pp_fail(err, PP_ERR_USAGE, "%s: [%s] exit '%s' is not an exit status",
				profile->path, section, text);
		snprintf(code, sizeof(code), "%d", atoi(text) ? 1000 + atoi(text) : 200);
		if (!add_item(&request->status, code, strlen(code)))
			return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	}
	return 0;
}

/* The guard runs in "/" and must find the same program: a name that is on PATH, or a whole path. */
static int check_program(struct pp_profile *profile, const char *section,
	struct pp_profile_request *request, struct pp_error *err)
{
	const char *word = request->argv ? request->argv + strspn(request->argv, " \t'\"") : "/";
	size_t length = strcspn(word, " \t'\"");

	if (word[0] == '/' || word[0] == '{' || !memchr(word, '/', length))
		return 0;
	return pp_fail(err, PP_ERR_USAGE, "%s: [%s] argv: '%.*s' is relative to a folder; say its whole "
		"path, for the guard runs elsewhere, or the name of a program on PATH", profile->path,
		section, (int)length, word);
}

static bool is_oid(const char *text)
{
	return text[0] == '.' && !strstr(text, "..") && text[1];
}

static int check_snmp(struct pp_profile *profile, const char *section,
	struct pp_profile_request *request, struct pp_error *err)
{
	bool sets = request == &profile->off || request == &profile->on ||
		request == &profile->timed_off;

	if (!is_oid(request->oid))
		return pp_fail(err, PP_ERR_USAGE, "%s: [%s] oid '%s' does not begin with '.' and a "
			"number", profile->path, section, request->oid);
	if (sets != (request->set != NULL))
		return pp_fail(err, PP_ERR_USAGE, "%s: [%s] %s", profile->path, section,
			sets ? "has no 'set'" : "must only read");
	/* An error of the agent comes as an answer, and is never a good one. */
	return add_item(&request->forbid, "/error", 6) ? 0 :
		pp_fail(err, PP_ERR_SYSTEM, "out of memory");
}

static int check_request(struct pp_profile *profile, const char *section,
	struct pp_profile_request *request, struct pp_error *err)
{
	if (!request->given)
		return 0;
	if (check_keys(profile, section, request, err) != 0 ||
	    check_program(profile, section, request, err) != 0 ||
	    check_status_codes(profile, section, request, err) != 0 ||
	    (request->oid && check_snmp(profile, section, request, err) != 0))
		return -1;
	if (request->path && request->path[0] != '/' && request->path[0] != '{')
		return pp_fail(err, PP_ERR_USAGE, "%s: [%s] path must begin with '/'", profile->path,
			section);
	if (!request->method)
		request->method = strdup("GET");
	if (!request->status.count && !add_item(&request->status, "200", 3))
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	return 0;
}

/* What SNMP answers is one value: the profile need not say where in the answer it is. */
static int set_snmp_defaults(struct pp_profile *profile, struct pp_error *err)
{
	const struct {
		bool given;
		char **pointer;
	} values[] = {
		{ profile->status.given && !profile->state_regex, &profile->state },
		{ profile->identity.given && !profile->identity_regex, &profile->identity_id },
		{ profile->label.given, &profile->label_label },
		{ profile->watts.given, &profile->watts_watts },
	};

	if (profile->transport != PP_TRANSPORT_SNMP)
		return profile->sys_object.count ?
			incomplete(profile, err, "'sys_object' is a key of the transport snmp") : 0;
	if (profile->auth != PP_AUTH_NONE)
		return incomplete(profile, err, "'auth' is a key of the transport http");
	if (profile->snmp_version != 1 && profile->snmp_version != 2)
		return incomplete(profile, err, "'snmp_version' is 1 or 2");
	if (!profile->sys_object.count)
		return incomplete(profile, err, "[profile] has no 'sys_object' (whose sysObjectID it is for)");
	for (int i = 0; i < profile->sys_object.count; i++)
		if (!is_oid(profile->sys_object.item[i]))
			return incomplete(profile, err, "'sys_object' does not begin with '.' and a number");
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (values[i].given && !*values[i].pointer && !(*values[i].pointer = strdup("/value")))
			return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	return 0;
}

static int check_state_map(struct pp_profile *profile, struct pp_error *err)
{
	const struct pp_profile_list *on = &profile->state_on, *off = &profile->state_off;
	const struct pp_profile_list *pending = &profile->state_pending;

	if (!profile->status.given)
		return 0; /* never able to prove an off; pdu.c refuses to try */
	if (!profile->state == !profile->state_regex)
		return incomplete(profile, err, "[status] needs 'state' or 'state_regex', one of them");
	if (!on->count || !off->count)
		return incomplete(profile, err, "[status] needs the values 'on' and 'off'");
	for (int i = 0; i < off->count; i++) {
		for (int j = 0; j < on->count; j++)
			if (strcmp(off->item[i], on->item[j]) == 0)
				return incomplete(profile, err, "[status] one value is both on and off");
		for (int j = 0; j < pending->count; j++)
			if (strcmp(off->item[i], pending->item[j]) == 0)
				return incomplete(profile, err, "[status] one value is off and pending");
	}
	return 0;
}

static int check_whole(struct pp_profile *profile, struct pp_error *err)
{
	if (!profile->name)
		return incomplete(profile, err, "[profile] has no 'name'");
	if (!profile->outlet)
		return incomplete(profile, err, "[profile] has no 'outlet' (a regular expression)");
	if (regcomp(&profile->outlet_regex, profile->outlet, REG_EXTENDED | REG_NOSUB) != 0)
		return incomplete(profile, err, "'outlet' is not a regular expression");
	profile->outlet_regex_ready = true;
	if (!profile->off.given || !profile->on.given)
		return incomplete(profile, err, "needs [off] and [on]");
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (check_request(profile, requests[i].section,
		    (void *)((char *)profile + requests[i].offset), err) != 0)
			return -1;
	for (int i = 0; i < profile->check_count; i++)
		if (check_request(profile, "check", &profile->check[i].request, err) != 0)
			return -1;
	if (set_snmp_defaults(profile, err) != 0 || check_state_map(profile, err) != 0)
		return -1;
	if (profile->timed_off.given && (!profile->timed_unit || !profile->timed_max))
		return incomplete(profile, err, "[timed-off] needs 'unit' and 'max'");
	if (profile->identity.given && !profile->identity_id && !profile->identity_regex)
		return incomplete(profile, err, "[identity] has no 'id'");
	if (profile->watts.given && !profile->watts_watts)
		return incomplete(profile, err, "[watts] has no 'watts'");
	if (profile->label.given && !profile->label_label)
		return incomplete(profile, err, "[label] has no 'label'");
	if (profile->target.given && !profile->target_target)
		return incomplete(profile, err, "[target] has no 'target'");
	return 0;
}

struct pp_profile *pp_profile_parse(const char *file, const char *text, size_t bytes,
	struct pp_error *err)
{
	struct parse parse = { .file = file, .text = text, .bytes = bytes, .err = err };
	int bad;

	parse.profile = calloc(1, sizeof(*parse.profile));
	if (!parse.profile || !(parse.profile->path = strdup(file))) {
		pp_fail(err, PP_ERR_SYSTEM, "out of memory");
		goto undo;
	}
	parse.profile->index_base = 1;
	parse.profile->snmp_version = 2;
	parse.profile->verify_timeout_ms = 30000;
	parse.profile->stagger_ms = 1100; /* over a second, for inrush */
	parse.profile->watts_period_ms = 1000;
	bad = ini_parse_stream(read_line, &parse, handle, &parse);
	if (parse.bad_line) {
		pp_fail(err, PP_ERR_USAGE, "%s:%d: %s", file, parse.bad_line, parse.bad_reader);
		goto undo;
	}
	if (parse.failed)
		goto undo;
	if (bad) {
		pp_fail(err, PP_ERR_USAGE, "%s:%d: not 'key = value', '[section]' or a comment", file,
			bad);
		goto undo;
	}
	if (check_whole(parse.profile, err) != 0)
		goto undo;
	return parse.profile;
undo:
	pp_profile_free(parse.profile);
	return NULL;
}

static void free_list(struct pp_profile_list *list)
{
	for (int i = 0; i < list->count; i++)
		free(list->item[i]);
}

static void free_request(struct pp_profile_request *request)
{
	free(request->method);
	free(request->path);
	free(request->body);
	free(request->expect_text);
	free(request->forbid_text);
	free(request->argv);
	free(request->oid);
	free(request->set);
	free_list(&request->input);
	free_list(&request->exits);
	free_list(&request->header);
	free_list(&request->status);
	free_list(&request->expect);
	free_list(&request->forbid);
}

void pp_profile_free(struct pp_profile *profile)
{
	if (!profile)
		return;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		void *slot = (char *)profile + keys[i].offset;

		if (!keys[i].section)
			continue;
		if (keys[i].form == STRING || keys[i].form == UNIT)
			free(*(char **)slot);
		else if (keys[i].form == LIST || keys[i].form == BAR_LIST || keys[i].form == WORD_LIST)
			free_list(slot);
	}
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		free_request((void *)((char *)profile + requests[i].offset));
	for (int i = 0; i < profile->check_count; i++) {
		free(profile->check[i].name);
		free(profile->check[i].why);
		free_request(&profile->check[i].request);
	}
	if (profile->outlet_regex_ready)
		regfree(&profile->outlet_regex);
	free(profile->path);
	free(profile);
}

/* ---- the search path ---------------------------------------------------------------------- */

#define FOLDERS_MAX 6

/* The person's own first; then beside the program: as installed (bin/../share) and in a build tree
 * (build/, build/HOST-VARIANT/ and the tests two folders below that). */
static int folders(char out[FOLDERS_MAX][PATH_MAX])
{
	static const char *const beside[] = {
		"../share/plugpull/profiles", "../pdu/profiles", "../../pdu/profiles",
		"../../../../pdu/profiles",
	};
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char exe[PATH_MAX];
	ssize_t bytes = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	int n = 0;

	if (config && *config)
		snprintf(out[n++], PATH_MAX, "%s/plugpull/profiles", config);
	else if (home && *home)
		snprintf(out[n++], PATH_MAX, "%s/.config/plugpull/profiles", home);
	if (bytes <= 0)
		return n;
	exe[bytes] = '\0';
	*strrchr(exe, '/') = '\0';
	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++)
		if (snprintf(out[n], PATH_MAX, "%s/%s", exe, beside[i]) < PATH_MAX)
			n++;
	return n;
}

static struct pp_profile *load_file(const char *path, struct pp_error *err)
{
	struct pp_profile *profile = NULL;
	struct pp_buf buf;

	pp_buf_init(&buf, PROFILE_BYTES_MAX);
	if (pp_file_read(path, &buf, err) == 0)
		profile = pp_profile_parse(path, buf.data ? buf.data : "", buf.bytes, err);
	pp_buf_release(&buf);
	return profile;
}

struct pp_profile *pp_profile_load(const char *name, struct pp_error *err)
{
	char folder[FOLDERS_MAX][PATH_MAX], path[PATH_MAX];
	size_t bytes = strlen(name);
	int count;

	if (strchr(name, '/') || (bytes > 4 && strcmp(name + bytes - 4, ".ini") == 0))
		return load_file(name, err);
	count = folders(folder);
	for (int i = 0; i < count; i++) {
		if (snprintf(path, sizeof(path), "%s/%s.ini", folder[i], name) >= (int)sizeof(path))
			continue;
		if (access(path, F_OK) == 0)
			return load_file(path, err);
	}
	pp_fail(err, PP_ERR_USAGE, "no profile '%s'; `plugpull pdu list` shows those there are", name);
	return NULL;
}

struct found {
	char *name, *path;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct found *)a)->name, ((const struct found *)b)->name);
}

static int scan_folder(const char *folder, struct found **list, int count)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		size_t bytes = strlen(entry->d_name);
		char path[PATH_MAX];
		struct found *grown;
		bool seen = false;

		if (bytes < 5 || strcmp(entry->d_name + bytes - 4, ".ini") != 0)
			continue;
		for (int i = 0; i < count && !seen; i++)
			seen = strlen((*list)[i].name) == bytes - 4 &&
				strncmp((*list)[i].name, entry->d_name, bytes - 4) == 0;
		if (seen || snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >=
		    (int)sizeof(path))
			continue;
		grown = realloc(*list, (size_t)(count + 1) * sizeof(**list));
		if (!grown)
			break;
		*list = grown;
		grown[count].name = strndup(entry->d_name, bytes - 4);
		grown[count].path = strdup(path);
		if (grown[count].name && grown[count].path)
			count++;
	}
	if (dir)
		closedir(dir);
	return count;
}

int pp_profile_each(void (*found)(void *arg, const char *name, const char *path), void *arg)
{
	char folder[FOLDERS_MAX][PATH_MAX];
	struct found *list = NULL;
	int count = 0, folder_count = folders(folder);

	for (int i = 0; i < folder_count; i++)
		count = scan_folder(folder[i], &list, count);
	if (count)
		qsort(list, (size_t)count, sizeof(*list), by_name);
	for (int i = 0; i < count; i++) {
		found(arg, list[i].name, list[i].path);
		free(list[i].name);
		free(list[i].path);
	}
	free(list);
	return count;
}
