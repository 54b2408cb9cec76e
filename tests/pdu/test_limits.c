/* SPDX-License-Identifier: MIT
 *
 * Goal: what must not be cut is not: the deny list, the switch that is the machine, a worn relay; two
 * supplies come on one after the other; a BMC is given its time; a woken machine is woken.
 */
#define MOCK_PDU_EMBEDDED
#include "mock_pdu.c"
#include "rig.h"

#include <jansson.h>

#include "pdu/limits.h"
#include "pdu/state.h"

static void deny(struct rig *rig, const char *text)
{
	char path[160];
	FILE *file;

	mkdir(rig->state, 0700);
	snprintf(path, sizeof(path), "%s/deny", rig->state);
	file = fopen(path, "w");
	fputs(text, file);
	fclose(file);
}

static void the_deny_list(void **state)
{
	static const struct {
		const char *line; /* PORT stands for the mock's */
		bool refused;
	} cases[] = {
		{ "", false },
		{ "# 127.0.0.1 1\n\n   \n", false },
		{ "127.0.0.1 1 controller\n", true },
		{ "127.0.0.1 *\n", true },
		{ "127.0.0.1:PORT 1", true },
		{ "127.0.0.1:1 1\n", false },
		{ "127.0.0.1 2\n", false },
		{ "127.0.0.1 11\n", false },
		{ "127.0.0 1\n", false },
		{ "10.0.0.1 1\n127.0.0.1\t1\tswitch of the network\r\n", true },
		{ "10.0.0.1\n", true }, /* not understood: nothing is safe */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pp_pdu_times times;
		struct pp_error err = { 0 };
		char text[200];
		const char *port;
		struct pp_pdu *pdu;
		struct rig rig;

		rig_start(&rig, "shelly-gen2");
		port = strstr(cases[i].line, "PORT");
		if (port)
			snprintf(text, sizeof(text), "%.*s%d%s", (int)(port - cases[i].line),
				cases[i].line, rig.mock.port, port + 4);
		else
			snprintf(text, sizeof(text), "%s", cases[i].line);
		deny(&rig, text);
		pdu = pp_pdu_open(&rig.config, &err);
		pp_pdu_off(pdu, &times, &err);
		if (times.outcome != (cases[i].refused ? PP_PDU_REFUSED : PP_PDU_VERIFIED) ||
		    rig.mock.sets[0] != !cases[i].refused)
			fail_msg("'%s': %s: %s", cases[i].line, pp_pdu_outcome_name(times.outcome),
				err.text);
		assert_int_equal(pp_pdu_on(pdu, &times, &err), 0); /* on is never denied */
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

static void the_machine_is_not_the_switch(void **state)
{
	static const struct {
		const char *host;
		bool same;
	} cases[] = {
		{ "127.0.0.1", true }, { "localhost", true }, { "127.0.0.2", false },
		{ "no-such-host.invalid", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pp_pdu_times times;
		struct pp_error err = { 0 };
		struct pp_pdu *pdu;
		struct rig rig;

		rig_start(&rig, "shelly-gen2");
		rig.config.dut_host = cases[i].host;
		pdu = pp_pdu_open(&rig.config, &err);
		pp_pdu_off(pdu, &times, &err);
		if ((times.outcome == PP_PDU_REFUSED) != cases[i].same)
			fail_msg("%s: %s", cases[i].host, err.text);
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

static void cycles_in_all(void **state)
{
	struct pp_pdu_times times;
	struct pp_error err = { 0 };
	struct rig rig;

	(void)state;
	rig_start(&rig, "shelly-gen2");
	rig.config.cycles_total_max = 3;
	for (int i = 0; i < 5; i++) { /* counted in the folder, not in the process */
		struct pp_pdu *pdu = pp_pdu_open(&rig.config, &err);

		pp_pdu_off(pdu, &times, &err);
		assert_int_equal(times.outcome, i < 3 ? PP_PDU_VERIFIED : PP_PDU_REFUSED);
		assert_int_equal(pp_pdu_on(pdu, &times, &err), 0);
		pp_pdu_close(pdu);
	}
	rig_stop(&rig);
}

/* The total outlives the hour and the boot that the lines are of. */
static void the_total_is_for_ever(void **state)
{
	struct pp_history history;
	struct pp_error err = { 0 };
	char path[200];
	struct rig rig;
	FILE *file;

	(void)state;
	rig_start(&rig, "gude");
	mkdir(rig.state, 0700);
	snprintf(path, sizeof(path), "%s/history", rig.state);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/history/k.txt", rig.state);
	file = fopen(path, "w");
	fprintf(file, "total 41\n00000000-dead-beef 12 off\n");
	fclose(file);
	assert_int_equal(pp_history_add(rig.state, "k", "off", &err), 0);
	assert_int_equal(pp_history_add(rig.state, "k", "on", &err), 0);
	assert_int_equal(pp_history_read(rig.state, "k", &history, &err), 0);
	assert_int_equal(history.offs_total, 42);
	assert_int_equal(history.offs_last_hour, 1);
	rig_stop(&rig);
}

/* From the records: when each outlet's first "on" was sent. A lower bound, so no load can break it. */
static void supplies_come_on_one_after_the_other(void **state)
{
	int64_t sent[3] = { 0 };
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;
	char *line;

	(void)state;
	rig_start(&rig, "shelly-gen2");
	rig.config.outlets[1] = "2";
	rig.config.outlet_count = 2;
	rig.config.verify_timeout_ms = 3000;
	pdu = pp_pdu_open(&rig.config, &err);
	assert_int_equal(pp_pdu_off(pdu, NULL, &err), 0);
	pp_buf_clear(&rig.records);
	assert_int_equal(pp_pdu_on(pdu, NULL, &err), 0);
	for (line = strtok(rig.records.data, "\n"); line; line = strtok(NULL, "\n")) {
		json_t *json = json_loads(line, 0, NULL);
		const char *what = json_string_value(json_object_get(json, "what"));

		if (what && strcmp(what, "on") == 0) {
			int n = atoi(json_string_value(json_object_get(json, "outlet")));

			if (!sent[n])
				sent[n] = json_integer_value(json_object_get(json, "t_sent_ns"));
		}
		json_decref(json);
	}
	assert_true(sent[1] && sent[2] && sent[2] - sent[1] > PP_NS_PER_S);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

/* A BMC that still says PoweringOff is not told "on" yet. */
static void a_bmc_is_given_its_time(void **state)
{
	struct pp_pdu_times times;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start(&rig, "redfish-system");
	rig.config.verify_timeout_ms = 3000;
	rig.mock.slow_reads = 12;
	rig.mock.target[0] = false; /* somebody has just told it to go off */
	rig.mock.countdown[0] = 12;
	rig.mock.fault = FAULT_PENDING;
	rig.mock.kinds = 0;
	pdu = pp_pdu_open(&rig.config, &err);
	assert_int_equal(pp_pdu_on(pdu, &times, &err), 0);
	assert_true(rig.mock.first_set_after_reads >= 12);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

/* 30 s off at least, unless a test or a guard says that there is no time. */
static void dc_profiles_stay_off_longer(void **state)
{
	struct pp_error err = { 0 };
	struct rig rig;

	(void)state;
	rig_start(&rig, "redfish-system");
	for (int i = 0; i < 2; i++) {
		char path[160], line[4096] = "";
		struct pp_pdu *pdu;
		FILE *pipe;

		rig.config.profile = i ? "shelly-gen2" : "redfish-system";
		rig.config.url = rig.url;
		rig.config.min_off_ms = 12000;
		pdu = pp_pdu_open(&rig.config, &err);
		assert_non_null(pdu);
		if (i == 0) { /* the journal keeps what is in force */
			assert_int_equal(pp_pdu_off(pdu, NULL, &err), 0);
			snprintf(path, sizeof(path), "grep -h min_off_ms %s/journal/*", rig.state);
			pipe = popen(path, "r");
			assert_non_null(fgets(line, sizeof(line), pipe));
			pclose(pipe);
			assert_non_null(strstr(line, "30000"));
		}
		pp_pdu_close(pdu);
	}
	rig_stop(&rig);
}

static void wakes(void **state)
{
	static const char *const bad[] = { "", "52:54:00:12:34", "52:54:00:12:34:56:78", "host",
		"52:54:00:12:34:56@", "52:54:00:12:34:56@host", "52:54:00:12:34:56@10.0.0.1:0" };
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(address);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct timeval limit = { .tv_sec = 10 };
	unsigned char packet[256];
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;
	char wake[80];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (pp_wake_check(bad[i], &err) == 0)
			fail_msg("'%s' is taken", bad[i]);
	assert_int_equal(bind(fd, (void *)&address, sizeof(address)), 0);
	getsockname(fd, (void *)&address, &bytes);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	snprintf(wake, sizeof(wake), "52:54:00:12:34:56@127.0.0.1:%d", ntohs(address.sin_port));
	rig_start(&rig, "shelly-gen2");
	rig.config.wake = wake;
	pdu = pp_pdu_open(&rig.config, &err);
	assert_int_equal(pp_pdu_off(pdu, NULL, &err), 0);
	assert_int_equal(recv(fd, packet, sizeof(packet), MSG_DONTWAIT), -1);
	assert_int_equal(pp_pdu_on(pdu, NULL, &err), 0);
	assert_int_equal(recv(fd, packet, sizeof(packet), 0), 102);
	assert_memory_equal(packet, "\xff\xff\xff\xff\xff\xff\x52\x54\x00\x12\x34\x56\x52\x54", 14);
	assert_memory_equal(packet + 96, "\x52\x54\x00\x12\x34\x56", 6);
	pp_pdu_close(pdu);
	rig.config.wake = "nonsense";
	assert_null(pp_pdu_open(&rig.config, &err));
	rig_stop(&rig);
	close(fd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_deny_list),
		cmocka_unit_test(the_machine_is_not_the_switch),
		cmocka_unit_test(cycles_in_all),
		cmocka_unit_test(the_total_is_for_ever),
		cmocka_unit_test(supplies_come_on_one_after_the_other),
		cmocka_unit_test(a_bmc_is_given_its_time),
		cmocka_unit_test(dc_profiles_stay_off_longer),
		cmocka_unit_test(wakes),
	};
	int rc = rig_main(argc, argv);

	return rc >= 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
