/* SPDX-License-Identifier: MIT
 *
 * Goal: the simulated PDU speaks the dialect, moves the outlet before it answers, and each flaw is
 * the one that its name says. Method: libcurl as the client, an outlet that records its calls.
 * Every pp-pdu and campaign test on the lab rests on this (M5.1: the off was read back).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <curl/curl.h>
#include <jansson.h>
#include <cmocka.h>

#include "core/clock.h"
#include "lab/sim_pdu.h"

#define PASSWORD "seven-of-nine"
#define WAIT_MS  20000

struct outlet {
	bool on;
	int offs, ons;
	bool broken;
};

static struct outlet outlet;

static int off(void *ctx, struct pp_error *err)
{
	struct outlet *o = ctx;

	o->offs++;
	if (o->broken)
		return pp_fail(err, PP_ERR_PEER, "stuck");
	o->on = false;
	return 0;
}

static int on(void *ctx, struct pp_error *err)
{
	struct outlet *o = ctx;

	(void)err;
	o->ons++;
	o->on = true;
	return 0;
}

static double watts(void *ctx)
{
	return ((struct outlet *)ctx)->on ? 42 : 0;
}

static struct pp_sim_pdu *start(const char *password, bool starts_on)
{
	struct pp_sim_pdu_config config = { { &outlet, off, on, watts }, password, starts_on };
	struct pp_error err = { 0 };
	struct pp_sim_pdu *pdu;

	outlet = (struct outlet){ .on = starts_on };
	pdu = pp_sim_pdu_start(&config, &err);
	assert_non_null(pdu);
	return pdu;
}

struct answer {
	long status;
	char text[4096];
	size_t bytes;
};

static size_t receive(char *data, size_t one, size_t n, void *ctx)
{
	struct answer *a = ctx;

	if (a->bytes + n >= sizeof(a->text))
		return 0;
	memcpy(a->text + a->bytes, data, n);
	a->bytes += n;
	a->text[a->bytes] = '\0';
	return one * n;
}

/* body NULL: GET. user_password NULL: none. */
static json_t *ask(struct pp_sim_pdu *pdu, const char *path, const char *body,
	const char *user_password, long expect_status)
{
	struct answer answer = { 0 };
	CURL *curl = curl_easy_init();
	char url[512];

	snprintf(url, sizeof(url), "%s%s", pp_sim_pdu_url(pdu), path);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
	if (body)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	if (user_password) {
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_DIGEST);
		curl_easy_setopt(curl, CURLOPT_USERPWD, user_password);
	}
	assert_int_equal(curl_easy_perform(curl), CURLE_OK);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
	curl_easy_cleanup(curl);
	assert_int_equal(answer.status, expect_status);
	return json_loads(answer.text, 0, NULL);
}

static void set(struct pp_sim_pdu *pdu, bool want, const char *more)
{
	char body[256];
	json_t *a;

	snprintf(body, sizeof(body),
		"{\"id\":1,\"method\":\"Switch.Set\",\"params\":{\"id\":0,\"on\":%s%s}}",
		want ? "true" : "false", more);
	a = ask(pdu, "/rpc", body, NULL, 200);
	assert_true(json_is_boolean(json_object_get(json_object_get(a, "result"), "was_on")));
	json_decref(a);
}

static bool reads_on(struct pp_sim_pdu *pdu)
{
	json_t *a = ask(pdu, "/rpc/Switch.GetStatus?id=0", NULL, NULL, 200);
	bool output = json_is_true(json_object_get(a, "output"));

	assert_int_equal(json_integer_value(json_object_get(a, "id")), 0);
	assert_true(json_is_real(json_object_get(a, "apower")));
	json_decref(a);
	return output;
}

static void test_off_before_the_answer(void **state)
{
	struct pp_sim_pdu *pdu = start(NULL, true);

	(void)state;
	assert_true(reads_on(pdu));
	set(pdu, false, "");
	assert_false(outlet.on);
	assert_int_equal(outlet.offs, 1);
	assert_false(reads_on(pdu));
	set(pdu, false, "");
	assert_int_equal(outlet.offs, 1);
	set(pdu, true, "");
	assert_true(outlet.on);
	json_decref(ask(pdu, "/rpc/Switch.Set?id=0&on=false", NULL, NULL, 200));
	assert_false(outlet.on);
	pp_sim_pdu_stop(pdu);
}

static const struct {
	const char *body;
	long status;
	int code;
} refusals[] = {
	{ "{\"id\":1,\"method\":\"Switch.Set\",\"params\":{\"id\":1,\"on\":false}}", 200, -105 },
	{ "{\"id\":1,\"method\":\"Switch.Set\",\"params\":{\"on\":false}}", 200, -103 },
	{ "{\"id\":1,\"method\":\"Switch.Set\",\"params\":{\"id\":0,\"on\":\"no\"}}", 200, -103 },
	{ "{\"id\":1,\"method\":\"Switch.Set\",\"params\":{\"id\":0,\"on\":false,\"toggle_after\":0}}",
		200, -103 },
	{ "{\"id\":1,\"method\":\"Switch.Set\"}", 200, -103 },
	{ "{\"id\":1,\"method\":\"Switch.Se\",\"params\":{\"id\":0,\"on\":false}}", 200, 404 },
};

static void test_refusals(void **state)
{
	struct pp_sim_pdu *pdu = start(NULL, true);
	json_t *a;

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		a = ask(pdu, "/rpc", refusals[i].body, NULL, refusals[i].status);
		assert_null(json_object_get(a, "result"));
		assert_int_equal(json_integer_value(json_object_get(json_object_get(a, "error"), "code")),
			refusals[i].code);
		json_decref(a);
	}
	a = ask(pdu, "/rpc/Switch.Set?id=3&on=false", NULL, NULL, 400);
	assert_int_equal(json_integer_value(json_object_get(a, "code")), -105);
	json_decref(a);
	json_decref(ask(pdu, "/rpc", "nonsense", NULL, 400));
	json_decref(ask(pdu, "/relay/0?turn=off", NULL, NULL, 404));
	assert_int_equal(outlet.offs, 0);
	assert_true(reads_on(pdu));
	pp_sim_pdu_stop(pdu);
}

static void test_password(void **state)
{
	static const char body[] =
		"{\"id\":1,\"method\":\"Switch.Set\",\"params\":{\"id\":0,\"on\":false}}";
	struct pp_sim_pdu *pdu = start(PASSWORD, true);
	json_t *a;

	(void)state;
	a = ask(pdu, "/shelly", NULL, NULL, 200);
	assert_string_equal(json_string_value(json_object_get(a, "id")), pp_sim_pdu_id(pdu));
	assert_true(json_is_true(json_object_get(a, "auth_en")));
	json_decref(a);
	json_decref(ask(pdu, "/rpc", body, NULL, 401));
	json_decref(ask(pdu, "/rpc", body, "admin:wrong", 401));
	json_decref(ask(pdu, "/rpc", body, "root:" PASSWORD, 401));
	json_decref(ask(pdu, "/rpc/Switch.Set?id=0&on=false", NULL, NULL, 401));
	assert_int_equal(outlet.offs, 0);
	json_decref(ask(pdu, "/rpc", body, "admin:" PASSWORD, 200));
	assert_int_equal(outlet.offs, 1);
	json_decref(ask(pdu, "/rpc/Switch.GetStatus?id=0", NULL, "admin:" PASSWORD, 200));
	pp_sim_pdu_stop(pdu);
}

/* What the relay says and whether there is power, after an off, under each flaw. */
static void test_flaws(void **state)
{
	static const struct {
		const char *flaw;
		bool reads_on, power;
	} rows[] = {
		{ "none", false, false }, { "ignores", true, true }, { "welded", false, true },
		{ "slow", false, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_sim_pdu *pdu = start(NULL, true);

		assert_int_equal(pp_sim_pdu_set_flaw(pdu, rows[i].flaw, WAIT_MS, NULL), 0);
		set(pdu, false, "");
		assert_int_equal(reads_on(pdu), rows[i].reads_on);
		assert_int_equal(outlet.on, rows[i].power);
		pp_sim_pdu_stop(pdu);
	}
}

static void test_flaw_names_match_whole(void **state)
{
	struct pp_sim_pdu *pdu = start(NULL, true);
	struct pp_error err = { 0 };

	(void)state;
	assert_int_equal(pp_sim_pdu_set_flaw(pdu, "weld", 0, &err), -1);
	assert_int_equal(err.class, PP_ERR_USAGE);
	assert_int_equal(pp_sim_pdu_set_flaw(pdu, "", 0, &err), -1);
	pp_sim_pdu_stop(pdu);
}

static void wait_until(struct pp_sim_pdu *pdu, bool want)
{
	for (int ms = 0; reads_on(pdu) != want; ms += 5) {
		assert_true(ms < WAIT_MS);
		pp_clock_sleep_ms(5);
	}
}

static void test_toggle_after(void **state)
{
	struct pp_sim_pdu *pdu = start(NULL, true);
	json_t *a;

	(void)state;
	set(pdu, false, ",\"toggle_after\":1000");
	a = ask(pdu, "/rpc/Switch.GetStatus?id=0", NULL, NULL, 200);
	assert_true(json_number_value(json_object_get(a, "timer_duration")) == 1000);
	json_decref(a);
	set(pdu, false, ",\"toggle_after\":0.05");
	wait_until(pdu, true);
	assert_true(outlet.on);
	/* A later command takes the timer back. */
	set(pdu, false, ",\"toggle_after\":0.2");
	set(pdu, false, "");
	pp_clock_sleep_ms(400);
	assert_false(reads_on(pdu));
	assert_false(outlet.on);
	pp_sim_pdu_stop(pdu);
}

static void test_outlet_that_fails(void **state)
{
	struct pp_sim_pdu *pdu = start(NULL, true);
	json_t *a;

	(void)state;
	outlet.broken = true;
	a = ask(pdu, "/rpc", "{\"id\":1,\"method\":\"Switch.Set\",\"params\":{\"id\":0,\"on\":false}}",
		NULL, 200);
	assert_non_null(json_object_get(a, "error"));
	json_decref(a);
	assert_true(reads_on(pdu));
	pp_sim_pdu_stop(pdu);
	pp_sim_pdu_stop(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_off_before_the_answer), cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_password), cmocka_unit_test(test_flaws),
		cmocka_unit_test(test_flaw_names_match_whole), cmocka_unit_test(test_toggle_after),
		cmocka_unit_test(test_outlet_that_fails),
	};
	int failed;

	curl_global_init(CURL_GLOBAL_DEFAULT);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	curl_global_cleanup();
	return failed;
}
