/* SPDX-License-Identifier: MIT
 *
 * Goal: what goes over the wire is what the profile says and nothing else: no password before it is asked
 * for or to whom it is not meant, no proxy and no .netrc of the person, no redirect, no empty POST, and an
 * exact status.
 * Method: the mock keeps the head of every request.
 */
#define MOCK_PDU_EMBEDDED
#include "mock_pdu.c"
#include "rig.h"

static struct pp_pdu *open_or_fail(struct rig *rig)
{
	struct pp_error err = { 0 };
	struct pp_pdu *pdu = pp_pdu_open(&rig->config, &err);

	if (!pdu)
		fail_msg("%s", err.text);
	return pdu;
}

/* A person's ~/.netrc and proxy settings are for browsers. */
static void the_persons_settings_do_not_leak(void **state)
{
	static const char *const proxies[] = { "http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY",
		"ALL_PROXY" };
	char path[128];
	struct pp_pdu *pdu;
	struct rig rig;
	FILE *file;

	(void)state;
	rig_start(&rig, "shelly-gen2");
	snprintf(path, sizeof(path), "%s/.netrc", rig.dir);
	file = fopen(path, "w");
	fprintf(file, "machine 127.0.0.1 login admin password from-netrc\ndefault login a password b\n");
	fclose(file);
	chmod(path, 0600);
	setenv("HOME", rig.dir, 1);
	for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++)
		setenv(proxies[i], "http://127.0.0.1:1", 1);
	pdu = open_or_fail(&rig);
	assert_int_equal(pp_pdu_off(pdu, NULL, NULL), 0);
	assert_int_equal(pp_pdu_on(pdu, NULL, NULL), 0);
	assert_null(strcasestr(rig.mock.seen, "authorization:"));
	assert_null(strcasestr(rig.mock.seen, "proxy"));
	for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++)
		unsetenv(proxies[i]);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

/* Digest: asked first, never Basic, one handshake for many requests, and no POST without its body. */
static void digest_shows_no_password(void **state)
{
	static const char *const dialects[] = { "shelly-gen2", "dli-rest", "esphome" };

	(void)state;
	for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++) {
		struct pp_pdu *pdu;
		struct rig rig;

		rig_start(&rig, dialects[i]);
		if (i == 2)
			rig.config.outlets[0] = "dut";
		rig_credentials(&rig, RIG_PASSWORD);
		rig.mock.password = RIG_PASSWORD;
		pdu = open_or_fail(&rig);
		for (int n = 0; n < 2; n++) {
			assert_int_equal(pp_pdu_off(pdu, NULL, NULL), 0);
			assert_int_equal(pp_pdu_on(pdu, NULL, NULL), 0);
		}
		assert_null(strcasestr(rig.mock.seen, "authorization: basic"));
		assert_non_null(strstr(rig.mock.seen, "Authorization: Digest"));
		assert_non_null(strcasestr(rig.mock.seen, i == 0 ? "algorithm=SHA-256" : "digest"));
		assert_int_equal(rig.mock.unauthorized, 1);
		if (i == 0)
			assert_int_equal(rig.mock.empty_posts, 0);
		assert_null(strcasestr(rig.mock.seen, "\r\nexpect:"));
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

/* Basic and bearer go in their header, never into an address. */
static void each_scheme_as_it_is_meant(void **state)
{
	static const struct {
		const char *dialect, *outlet, *header;
	} cases[] = {
		{ "tasmota", "1", "Authorization: Basic YWRtaW46Y29ycmVjdC1ob3JzZS05" },
		{ "home-assistant", "switch.dut_1", "Authorization: Bearer " RIG_PASSWORD },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pp_pdu *pdu;
		struct rig rig;
		char *line;

		rig_start(&rig, cases[i].dialect);
		rig.config.outlets[0] = cases[i].outlet;
		rig_credentials(&rig, RIG_PASSWORD);
		rig.mock.password = RIG_PASSWORD;
		pdu = open_or_fail(&rig);
		assert_int_equal(pp_pdu_off(pdu, NULL, NULL), 0);
		assert_non_null(strstr(rig.mock.seen, cases[i].header));
		for (line = strtok(rig.mock.seen, "\r\n"); line; line = strtok(NULL, "\r\n"))
			if (strstr(line, " HTTP/1."))
				assert_null(strstr(line, RIG_PASSWORD));
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

/* Without a scheme in the profile no password goes out, whatever the credentials hold. */
static void no_scheme_no_password(void **state)
{
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start(&rig, "mystrom");
	rig_credentials(&rig, RIG_PASSWORD);
	pdu = open_or_fail(&rig);
	assert_int_equal(pp_pdu_off(pdu, NULL, NULL), 0);
	assert_null(strcasestr(rig.mock.seen, "authorization"));
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

static void redirects_are_not_followed(void **state)
{
	static const int codes[] = { 301, 302, 303, 307, 308 };

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		for (int kinds = KIND_OFF; kinds <= KIND_STATUS; kinds *= 4) {
			struct pp_pdu_times times;
			struct pp_pdu *pdu;
			struct rig rig;

			rig_start(&rig, "shelly-gen2");
			rig.mock.fault = FAULT_REDIRECT;
			rig.mock.redirect = codes[i];
			rig.mock.kinds = kinds;
			pdu = open_or_fail(&rig);
			assert_int_equal(pp_pdu_off(pdu, &times, NULL), -1);
			assert_null(strstr(rig.mock.seen, "/elsewhere"));
			assert_true(rig.mock.relay[0]);
			pp_pdu_close(pdu);
			rig_stop(&rig);
		}
	}
}

/* Only the codes of the profile are good, also among the good ones. */
static void the_status_is_exact(void **state)
{
	static const struct {
		const char *dialect, *outlet;
		int status, rc;
	} cases[] = {
		{ "shelly-gen2", "1", 200, 0 },   { "shelly-gen2", "1", 201, -1 },
		{ "shelly-gen2", "1", 202, -1 },  { "shelly-gen2", "1", 204, -1 },
		{ "shelly-gen2", "1", 206, -1 },  { "shelly-gen2", "1", 299, -1 },
		{ "dli-rest", "1", 204, 0 },      { "dli-rest", "1", 200, 0 },
		{ "dli-rest", "1", 202, -1 },     { "dli-rest", "1", 207, -1 },
		{ "redfish-outlet", "A1", 202, 0 }, { "redfish-outlet", "A1", 201, -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pp_error err = { 0 };
		struct pp_pdu *pdu;
		struct rig rig;

		rig_start(&rig, cases[i].dialect);
		rig.config.outlets[0] = cases[i].outlet;
		rig.mock.instead = cases[i].status;
		pdu = open_or_fail(&rig);
		if (pp_pdu_off(pdu, NULL, &err) != cases[i].rc)
			fail_msg("%s %d: %s", cases[i].dialect, cases[i].status, err.text);
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_persons_settings_do_not_leak),
		cmocka_unit_test(digest_shows_no_password),
		cmocka_unit_test(each_scheme_as_it_is_meant),
		cmocka_unit_test(no_scheme_no_password),
		cmocka_unit_test(redirects_are_not_followed),
		cmocka_unit_test(the_status_is_exact),
	};
	int rc = rig_main(argc, argv);

	return rc >= 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
