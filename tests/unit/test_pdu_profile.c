/* SPDX-License-Identifier: MIT
 *
 * Goal: a profile that is wrong is refused with file and line, one that holds a secret too; values
 * land escaped where they are put; and no answer means "off" but the one that says so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pdu/answer.h"
#include "pdu/credentials.h"
#include "pdu/profile.h"
#include "pdu/template.h"

#define HEAD "[profile]\nname = x\noutlet = ^[0-9]$\n"
#define SETS "[off]\npath = /off\n[on]\npath = /on\n"
#define STATUS "[status]\npath = /s\nstate = /a\non = 1\noff = 0\n"

static const struct {
	const char *text, *says; /* NULL: good */
} texts[] = {
	{ HEAD SETS STATUS, NULL },
	{ HEAD SETS, NULL }, /* no read-back: allowed, and never proves */
	{ "", "no 'name'" },
	{ HEAD SETS STATUS "colour = red\n", "f.ini:13: unknown key 'colour'" },
	{ HEAD "tea = 1\n" SETS, "f.ini:4: unknown key 'tea'" },
	{ HEAD SETS "[blink]\npath = /x\n", "f.ini:9: unknown section 'blink'" },
	{ HEAD SETS "[timed-off]\npath = /x\nunit = min\nmax = 3\n", "f.ini:10: unknown unit" },
	{ HEAD SETS "[timed-off]\npath = /x\n", "needs 'unit'" },
	{ HEAD "cuts = everything\n" SETS, "f.ini:4: unknown value 'everything'" },
	{ HEAD "auth = any\n" SETS, "f.ini:4: unknown value 'any'" },
	{ HEAD "settle_ms = soon\n" SETS, "f.ini:4: not a number" },
	{ HEAD "settle_ms = -1\n" SETS, "f.ini:4: not a number" },
	{ HEAD "name = y\n" SETS, "f.ini:4: key given twice" },
	{ HEAD "password = hunter2\n" SETS, "f.ini:4: a profile must not hold credentials" },
	{ HEAD "[off]\npath = /off?user=a&pass=b\n", "f.ini:5: a profile must not hold credentials" },
	{ HEAD "[off]\nheader = Authorization: Basic eA==\n", "f.ini:5: a profile must not" },
	{ HEAD "[off]\npath = http://u:p@h/\n", "f.ini:5: a profile must not hold" },
	{ HEAD SETS "[status]\npath = /s\nstate = /a\non = 1\noff = 1\n", "both on and off" },
	{ HEAD SETS "[status]\npath = /s\nstate = /a\non = 1\noff = 0\npending = 0\n",
	  "off and pending" },
	{ HEAD SETS "[status]\npath = /s\nstate = /a\non = 1\n", "needs the values" },
	{ HEAD SETS "[status]\npath = /s\non = 1\noff = 0\n", "'state' or 'state_regex'" },
	{ HEAD "[off]\npath = /off\nstatus = 2xx\n[on]\npath = /on\n", "not an exact code" },
	{ HEAD "[off]\nmethod = PUT\n[on]\npath = /on\n", "[off] has no 'path'" },
	{ HEAD "[off]\nargv = a\npath = /\n[on]\npath = /on\n", "transport is http" },
	{ "[profile]\nname = x\noutlet = [\n" SETS, "not a regular expression" },
	{ HEAD "[parameters]\nrack = /a/b-1_2.c~\n" SETS, NULL },
	{ HEAD "[parameters]\nrack = 1\nrack = 2\n" SETS, "there twice" },
	{ HEAD "[parameters]\nRack = 1\n" SETS, "no name of a parameter" },
	{ HEAD "[parameters]\ntarget = 1\n" SETS, "a meaning of its own" },
	{ HEAD "[parameters]\nrack = a?b\n" SETS, "f.ini:5: parameter rack is 'a?b'" },
	{ HEAD "[parameters]\nrack = /../x\n" SETS, "parameter rack is '/../x'" },
	{ HEAD "[parameters]\nrack = -x\n" SETS, "no '-' first" },
	{ "[profile]\nname x\n", "f.ini:2: not 'key = value'" },
};

static void profiles_are_checked(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct pp_error err = { 0 };
		struct pp_profile *profile = pp_profile_parse("f.ini", texts[i].text,
			strlen(texts[i].text), &err);

		if (!profile != !!texts[i].says)
			fail_msg("row %zu: %s", i, err.text);
		if (texts[i].says && !strstr(err.text, texts[i].says))
			fail_msg("row %zu: '%s' does not say '%s'", i, err.text, texts[i].says);
		assert_null(strstr(err.text, "hunter2"));
		pp_profile_free(profile);
	}
}

static void long_lines_are_not_cut(void **state)
{
	char text[600];
	struct pp_error err = { 0 };

	(void)state;
	snprintf(text, sizeof(text), "%s[off]\npath = /%0300d\n", HEAD, 0);
	assert_null(pp_profile_parse("f.ini", text, strlen(text), &err));
	assert_non_null(strstr(err.text, "f.ini:5: line is longer"));
}

static int good, bad;

static void load_one(void *arg, const char *name, const char *path)
{
	struct pp_error err = { 0 };
	struct pp_profile *profile = pp_profile_load(path, &err);

	(void)arg;
	if (!profile)
		print_error("%s\n", err.text);
	else
		assert_string_equal(profile->name, name); /* the file is called as it is */
	good += profile != NULL;
	bad += profile == NULL;
	pp_profile_free(profile);
}

static void all_that_we_ship_load(void **state)
{
	(void)state;
	pp_profile_each(load_one, NULL);
	assert_int_equal(bad, 0);
	assert_true(good >= 16);
}

static void values_are_escaped(void **state)
{
	static const struct {
		const char *template, *outlet, *filled;
		enum pp_place place;
	} rows[] = {
		{ "/o/{n}?x={n0}", "3", "/o/3?x=2", PP_PLACE_PATH },
		{ "/o/{id}", "a/../b?c&d e", "/o/a%2F..%2Fb%3Fc%26d%20e", PP_PLACE_PATH },
		{ "{\"id\":\"{id}\"}", "a\",\"on\":true", "{\"id\":\"a\\\",\\\"on\\\":true\"}",
		  PP_PLACE_JSON },
		{ "/Outputs/{id}", "a/b~c", "/Outputs/a~1b~0c", PP_PLACE_POINTER },
		{ "v={id}", "a&b=c", "v=a%26b%3Dc", PP_PLACE_FORM },
		{ "{x}{}{", "1", "{x}{}{", PP_PLACE_JSON },
		{ "{n0}", "0", NULL, PP_PLACE_RAW }, /* below the lowest on the case */
		{ "{n0}", "A1", NULL, PP_PLACE_RAW },
		{ "{secs}", "1", NULL, PP_PLACE_RAW },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_values values = { .outlet = rows[i].outlet, .index_base = 1, .time_ms = -1 };
		struct pp_buf buf;
		int rc;

		pp_buf_init(&buf, 1000);
		rc = pp_template_fill(&buf, rows[i].template, rows[i].place, &values, NULL);
		assert_int_equal(rc == 0, rows[i].filled != NULL);
		if (rows[i].filled)
			assert_string_equal(buf.data, rows[i].filled);
		pp_buf_release(&buf);
	}
}

static void parameters_are_filled(void **state)
{
	static const struct {
		const char *set;
		const char *path, *json; /* NULL: it must fail */
	} rows[] = {
		{ "rack=/a/b", "/a/b/1", "{\"/a/b\"}" },
		{ " rack = /c , other=x", "/c/1", "{\"/c\"}" },
		{ "rack=", NULL, NULL }, { "rack", NULL, NULL }, { "", NULL, NULL }, { ",", NULL, NULL },
		{ "rack=/a,", NULL, NULL }, { "rac=/a", NULL, NULL }, { "racks=/a", NULL, NULL },
		{ "rack=/a b", NULL, NULL }, { "rack=/a?x", NULL, NULL }, { "rack=/a\"", NULL, NULL },
		{ "rack=/../a", NULL, NULL },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_parameters parameters = { .count = 0 };
		struct pp_values values = { .outlet = "1", .time_ms = -1, .parameters = &parameters };
		struct pp_buf buf;

		assert_int_equal(pp_parameters_declare(&parameters, "rack", "/d", NULL), 0);
		assert_int_equal(pp_parameters_declare(&parameters, "other", "y", NULL), 0);
		assert_int_equal(pp_parameters_set(&parameters, rows[i].set, NULL), rows[i].path ? 0 : -1);
		if (!rows[i].path)
			continue;
		pp_buf_init(&buf, 1000);
		assert_int_equal(pp_template_fill(&buf, "{rack}/{n}", PP_PLACE_PATH, &values, NULL), 0);
		assert_string_equal(buf.data, rows[i].path);
		pp_buf_clear(&buf);
		assert_int_equal(pp_template_fill(&buf, "{\"{rack}\"}", PP_PLACE_JSON, &values, NULL), 0);
		assert_string_equal(buf.data, rows[i].json);
		pp_buf_release(&buf);
	}
}

/* A value without its '/' must not end up in the host's name. */
static void paths_begin_with_a_slash(void **state)
{
	struct pp_parameters parameters = { .count = 0 };
	struct pp_values values = { .time_ms = -1, .parameters = &parameters };
	char path[] = "{rack}/x";
	struct pp_profile_request from = { .given = true, .path = path };
	struct pp_pdu_request request = { .what = "status" };
	struct pp_error err;

	(void)state;
	assert_int_equal(pp_parameters_declare(&parameters, "rack", ".evil.example", &err), 0);
	assert_int_equal(pp_template_request(&request, &from, &values, &err), -1);
	assert_non_null(strstr(err.text, "does not begin with '/'"));
	pp_request_release(&request);
}

static void only_off_is_off(void **state)
{
	static const struct {
		const char *body;
		enum pp_pdu_state state;
	} rows[] = {
		{ "{\"a\":0}", PP_PDU_OFF },       { "{\"a\":\"0\"}", PP_PDU_OFF },
		{ "{\"a\":1}", PP_PDU_ON },        { "{\"a\":false}", PP_PDU_UNKNOWN },
		{ "{\"a\":null}", PP_PDU_UNKNOWN },{ "{\"a\":2}", PP_PDU_UNKNOWN },
		{ "{\"a\":00}", PP_PDU_UNKNOWN },  { "{\"a\":0.0}", PP_PDU_OFF },
		{ "{\"a\":[0]}", PP_PDU_UNKNOWN }, { "{\"b\":0}", PP_PDU_UNKNOWN },
		{ "{\"a\":0,\"a\":1}", PP_PDU_UNKNOWN }, { "{\"a\":0", PP_PDU_UNKNOWN },
		{ "{\"a\":0}}", PP_PDU_UNKNOWN },  { "0", PP_PDU_UNKNOWN },
		{ "", PP_PDU_UNKNOWN },            { "{\"a\":\"\"}", PP_PDU_UNKNOWN },
		{ "{\"a\":\"off\"}", PP_PDU_UNKNOWN },
	};
	struct pp_profile *profile = pp_profile_parse("f", HEAD SETS STATUS,
		strlen(HEAD SETS STATUS), NULL);
	struct pp_values values = { .outlet = "1", .index_base = 1, .time_ms = -1 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_buf body;
		struct pp_answer *answer;

		pp_buf_init(&body, 1000);
		pp_buf_add(&body, rows[i].body, strlen(rows[i].body));
		answer = pp_answer_parse(&body);
		if (pp_answer_state(answer, profile, &values) != rows[i].state)
			fail_msg("%s reads %s", rows[i].body,
				pp_pdu_state_name(pp_answer_state(answer, profile, &values)));
		pp_answer_free(answer);
		pp_buf_release(&body);
	}
	pp_profile_free(profile);
}

/* Two elements that claim one id are as good as none. */
static void elements_are_found_by_id(void **state)
{
	static const char *const text = "{\"o\":[{\"ID\":2,\"s\":\"b\"},{\"ID\":1,\"s\":\"a\"},"
		"{\"ID\":3,\"s\":\"c\"},{\"ID\":3,\"s\":\"d\"}]}";
	struct pp_buf body;
	struct pp_answer *answer;

	(void)state;
	pp_buf_init(&body, 1000);
	pp_buf_add(&body, text, strlen(text));
	answer = pp_answer_parse(&body);
	for (int n = 1; n <= 4; n++) {
		char outlet[2] = { (char)('0' + n), '\0' };
		struct pp_values values = { .outlet = outlet, .index_base = 1, .time_ms = -1 };
		const char *found = pp_answer_text(answer, "/o/[ID={n}]/s", &values);

		if (n <= 2)
			assert_string_equal(found, n == 1 ? "a" : "b");
		else
			assert_null(found);
	}
	pp_answer_free(answer);
	pp_buf_release(&body);
}

static void credentials_files(void **state)
{
	static const char text[] = "# mine\nuser = bob\npassword =  p = w#d \n";
	struct pp_credentials credentials;
	struct pp_error err = { 0 };
	char path[] = "/tmp/plugpull-cred-XXXXXX";
	char line[200] = "GET /?password=abc&x=1 Authorization: Basic Ym9i\nx p = w#d  p%20%3D%20w%23d%20";
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	assert_int_equal(pp_credentials_load(&credentials, path, NULL, &err), 0);
	assert_string_equal(credentials.user, "bob");
	assert_string_equal(credentials.password, "p = w#d ");
	pp_credentials_redact(&credentials, line);
	assert_null(strstr(line, "w#d"));
	assert_null(strstr(line, "w%23d"));
	assert_null(strstr(line, "abc"));
	assert_null(strstr(line, "Ym9i"));
	assert_non_null(strstr(line, "&x=1"));
	chmod(path, 0640);
	assert_int_equal(pp_credentials_load(&credentials, path, NULL, &err), -1);
	assert_int_equal(err.class, PP_ERR_REFUSED);
	unlink(path);
	setenv("PLUGPULL_PDU_PASSWORD", "from-env", 1);
	assert_int_equal(pp_credentials_load(&credentials, NULL, "admin", &err), 0);
	assert_string_equal(credentials.user, "admin");
	assert_string_equal(credentials.password, "from-env");
	unsetenv("PLUGPULL_PDU_PASSWORD");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profiles_are_checked),
		cmocka_unit_test(long_lines_are_not_cut),
		cmocka_unit_test(all_that_we_ship_load),
		cmocka_unit_test(values_are_escaped),
		cmocka_unit_test(parameters_are_filled),
		cmocka_unit_test(paths_begin_with_a_slash),
		cmocka_unit_test(only_off_is_off),
		cmocka_unit_test(elements_are_found_by_id),
		cmocka_unit_test(credentials_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
