/* SPDX-License-Identifier: MIT
 *
 * Goal: each SNMP profile speaks its device's numbers, never another's; the device's own errors and lies
 * are no off; version 2c and 3 with their passwords, none of which is ever written anywhere.
 * Method: Debian's real snmpd on a free loopback port serves the objects by mock_snmp.c. The table here
 * is the MIBs', written apart from the profiles. Skips where snmpd or net-snmp is not there.
 */
#define MOCK_PDU_EMBEDDED
#include "mock_pdu.c"
#include "rig.h"

#include <sys/prctl.h>

#include "src/core/subprocess.h"

#define E ".1.3.6.1.4.1"
#define COMMUNITY "c0mmunity-of-9"
#define PRIVACY   "privacy-phrase-9"

static const struct {
	const char *profile, *sys_object, *outlet;
	const char *on_oid, *on, *off_oid, *off; /* what is set */
	const char *state_oid, *is_on, *is_off;

} rows[] = {
	{ "snmp-apc-masterswitch", E ".318.1.3.4.1", "3", E ".318.1.1.4.4.2.1.3.3", "1",
	  E ".318.1.1.4.4.2.1.3.3", "2", E ".318.1.1.4.4.2.1.3.3", "1", "2" },
	{ "snmp-apc-rpdu", E ".318.1.3.4.5", "3", E ".318.1.1.12.3.3.1.1.4.3", "1",
	  E ".318.1.1.12.3.3.1.1.4.3", "2", E ".318.1.1.12.3.5.1.1.4.3", "1", "2" },
	{ "snmp-apc-rpdu2", E ".318.1.3.4.6", "3", E ".318.1.1.26.9.2.4.1.5.3", "1",
	  E ".318.1.1.26.9.2.4.1.5.3", "2", E ".318.1.1.26.9.2.3.1.5.3", "2", "1" },
	{ "snmp-cyberpower", E ".3808.1.1.3", "3", E ".3808.1.1.3.3.3.1.1.4.3", "1",
	  E ".3808.1.1.3.3.3.1.1.4.3", "2", E ".3808.1.1.3.3.3.1.1.4.3", "1", "2" },
	{ "snmp-eaton-g3", E ".534.6.6.7", "0.3", E ".534.6.6.7.6.6.1.4.0.3", "0",
	  E ".534.6.6.7.6.6.1.3.0.3", "0", E ".534.6.6.7.6.6.1.2.0.3", "1", "0" },
	{ "snmp-eaton-managed", E ".534.6.6.6", "3", E ".534.6.6.6.1.2.2.1.3.2", "1",
	  E ".534.6.6.6.1.2.2.1.3.2", "0", E ".534.6.6.6.1.2.2.1.3.2", "1", "0" },
	{ "snmp-raritan-pdu2", E ".13742.6", "3", E ".13742.6.4.1.2.1.2.1.3", "1",
	  E ".13742.6.4.1.2.1.2.1.3", "0", E ".13742.6.4.1.2.1.3.1.3", "7", "8" },
	{ "snmp-raritan-px1", E ".13742.4", "3", E ".13742.4.1.2.2.1.3.3", "1",
	  E ".13742.4.1.2.2.1.3.3", "0", E ".13742.4.1.2.2.1.3.3", "1", "0" },
	{ "snmp-sentry3", E ".1718.3", "1.1.3", E ".1718.3.2.3.1.11.1.1.3", "1",
	  E ".1718.3.2.3.1.11.1.1.3", "2", E ".1718.3.2.3.1.5.1.1.3", "1", "0" },
	{ "snmp-sentry4", E ".1718.4", "1.1.3", E ".1718.4.1.8.5.1.2.1.1.3", "1",
	  E ".1718.4.1.8.5.1.2.1.1.3", "2", E ".1718.4.1.8.5.1.1.1.1.3", "11", "10" },
	{ "snmp-tripplite-padm", E ".850.1", "3", E ".850.10.2.3.5.1.4.1.3", "2",
	  E ".850.10.2.3.5.1.4.1.3", "1", E ".850.10.2.3.5.1.2.1.3", "2", "1" },
	{ "snmp-tripplite-lx", E ".850.1", "3", E ".850.1.1.3.2.3.3.1.1.6.1.3", "2",
	  E ".850.1.1.3.2.3.3.1.1.6.1.3", "1", E ".850.1.1.3.2.3.3.1.1.4.1.3", "2", "1" },
	{ "snmp-geist", E ".21239.5", "3", E ".21239.5.2.3.5.1.6.3", "2", E ".21239.5.2.3.5.1.6.3",
	  "4", E ".21239.5.2.3.5.1.4.3", "1", "2" },
	{ "snmp-aten", E ".21317.1.3", "3", E ".21317.1.3.2.2.2.2.4.0", "2", E ".21317.1.3.2.2.2.2.4.0",
	  "1", E ".21317.1.3.2.2.2.2.4.0", "2", "1" },
	{ "snmp-poe", E ".9.1.1", "1.3", ".1.3.6.1.2.1.105.1.1.1.3.1.3", "1",
	  ".1.3.6.1.2.1.105.1.1.1.3.1.3", "2", ".1.3.6.1.2.1.105.1.1.1.3.1.3", "1", "2" },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

struct agent {
	struct rig rig;
	pid_t pid;
	int port;
	char url[64];
};

static void put(struct agent *agent, const char *name, const char *text)
{
	char path[200];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", agent->rig.dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%s\n", text);
	fclose(file);
	chmod(path, 0600);
}

static void get(struct agent *agent, const char *name, char *out, size_t bytes)
{
	char path[200];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", agent->rig.dir, name);
	file = fopen(path, "r");
	out[0] = '\0';
	if (file) {
		if (!fgets(out, (int)bytes, file))
			out[0] = '\0';
		fclose(file);
	}
	out[strcspn(out, "\n")] = '\0';
}

static int free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(address);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(bind(fd, (void *)&address, sizeof(address)), 0);
	getsockname(fd, (void *)&address, &bytes);
	close(fd);
	return ntohs(address.sin_port);
}

static void write_config(struct agent *agent, const char *sys_object)
{
	char text[2048], exe[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	assert_true(n > 0);
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	*slash = '\0';
	snprintf(text, sizeof(text), "rwcommunity " COMMUNITY " 127.0.0.1\n"
		"createUser tester SHA-256 \"" RIG_PASSWORD "\" AES \"" PRIVACY "\"\nrwuser tester priv\n"
		"sysobjectid %s\npass .1.3.6.1.4.1 %.400s/mock_snmp %s\n"
		"pass .1.3.6.1.2.1.105 %.400s/mock_snmp %s\n", sys_object, exe, agent->rig.dir, exe,
		agent->rig.dir);
	put(agent, "snmpd.conf", text);
}

/* Up when it answers. */
static void agent_start(struct agent *agent, size_t i, const char *sys_object)
{
	char path[PATH_MAX], listen_on[64], conf[128], text[1024];

	memset(agent, 0, sizeof(*agent));
	rig_start(&agent->rig, "generic-rest"); /* for its folder and its records */
	if (!pp_subprocess_find("snmpd", path, sizeof(path))) {
		rig_stop(&agent->rig);
		skip();
	}
	agent->port = free_port();
	snprintf(agent->url, sizeof(agent->url), "snmp://127.0.0.1:%d", agent->port);
	snprintf(text, sizeof(text), "%s control %s %s\n%s control %s %s\n%s state %s %s\n"
		E ".318.1.1.12.1.6.0 text SERIAL9\n" E ".318.1.1.12.3.3.1.1.2.3 text dut-3\n",
		rows[i].on_oid, rows[i].on, strcmp(rows[i].on_oid, rows[i].off_oid) ? "-" : rows[i].off,
		rows[i].off_oid, "-", rows[i].off, rows[i].state_oid, rows[i].is_on, rows[i].is_off);
	put(agent, "oids", text);
	put(agent, "relay", "on");
	put(agent, "mode", "none");
	write_config(agent, sys_object);
	snprintf(listen_on, sizeof(listen_on), "udp:127.0.0.1:%d", agent->port);
	snprintf(conf, sizeof(conf), "%s/snmpd.conf", agent->rig.dir);
	agent->pid = fork();
	if (agent->pid == 0) {
		int null = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves none behind */
		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		setenv("SNMP_PERSISTENT_DIR", agent->rig.dir, 1);
		execl(path, "snmpd", "-f", "-Ln", "-C", "-c", conf, "-I",
			"-smux,-ifTable,-ipAddressTable,-hrh_filesys", listen_on, (char *)NULL);
		_exit(127);
	}
	agent->rig.config.profile = rows[i].profile;
	agent->rig.config.url = agent->url;
	agent->rig.config.outlets[0] = rows[i].outlet;
	agent->rig.config.request_timeout_ms = 700;
	agent->rig.config.verify_timeout_ms = 1500;
}

static void agent_stop(struct agent *agent)
{
	kill(agent->pid, SIGKILL);
	waitpid(agent->pid, NULL, 0);
	rig_stop(&agent->rig);
}

static void credentials(struct agent *agent, const char *text)
{
	put(agent, "credentials", text);
	agent->rig.config.credentials_file = agent->rig.credentials;
}

static struct pp_pdu *agent_open(struct agent *agent)
{
	struct pp_pdu_status status;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu = pp_pdu_open(&agent->rig.config, &err);

	if (!pdu && err.class == PP_ERR_UNSUPPORTED) {
		agent_stop(agent);
		skip();
	}
	if (!pdu)
		fail_msg("%s", err.text);
	for (int i = 0; i < 40; i++) /* until snmpd is up */
		if (pp_pdu_status(pdu, &status, &err) == 0 || !strstr(err.text, "no answer"))
			return pdu;
	return pdu;
}

static void no_secret_in(struct agent *agent)
{
	static const char *const secrets[] = { COMMUNITY, RIG_PASSWORD, PRIVACY };

	for (size_t s = 0; s < 3; s++) {
		char command[512];

		if (agent->rig.records.data)
			assert_null(strstr(agent->rig.records.data, secrets[s]));
		snprintf(command, sizeof(command), "grep -rqF %s %s 2>/dev/null", secrets[s],
			agent->rig.state);
		assert_int_not_equal(system(command), 0);
	}
}

static void each_family_cycles(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		struct pp_pdu_times times;
		struct pp_error err = { 0 };
		struct agent agent;
		struct pp_pdu *pdu;
		char text[300];

		agent_start(&agent, i, rows[i].sys_object);
		credentials(&agent, i % 2 && strcmp(rows[i].profile, "snmp-apc-masterswitch") ?
			"user = tester\npassword = " RIG_PASSWORD "\nauth = SHA-256\n"
			"privacy_password = " PRIVACY : "community = " COMMUNITY);
		pdu = agent_open(&agent);
		if (pp_pdu_off(pdu, &times, &err) != 0)
			fail_msg("%s: off: %s\n%s", rows[i].profile, err.text, agent.rig.records.data);
		get(&agent, "relay", text, sizeof(text));
		assert_string_equal(text, "off");
		get(&agent, "last", text, sizeof(text));
		assert_string_equal(text, rows[i].off_oid);
		if (pp_pdu_on(pdu, &times, &err) != 0)
			fail_msg("%s: on: %s", rows[i].profile, err.text);
		get(&agent, "relay", text, sizeof(text));
		assert_string_equal(text, "on");
		get(&agent, "last", text, sizeof(text));
		assert_string_equal(text, rows[i].on_oid);
		no_secret_in(&agent);
		pp_pdu_close(pdu);
		agent_stop(&agent);
	}
}

/* Another vendor's device, and the neighbour in the same catalogue: nothing is set. */
static void another_device_is_refused(void **state)
{
	static const char *const others[] = { E ".318.1.3.4.6", E ".318.1.3.4.50", E ".8072.3.2.10" };

	(void)state;
	for (size_t o = 0; o < sizeof(others) / sizeof(others[0]); o++) {
		struct pp_pdu_times times;
		struct pp_error err = { 0 };
		struct agent agent;
		struct pp_pdu *pdu;
		char text[300];

		agent_start(&agent, 1, others[o]); /* apc-rpdu */
		credentials(&agent, "community = " COMMUNITY);
		pdu = agent_open(&agent);
		assert_int_equal(pp_pdu_off(pdu, &times, &err), -1);
		if (!strstr(err.text, "sysObjectID"))
			fail_msg("%s: %s", others[o], err.text);
		pp_pdu_on(pdu, &times, &err);
		get(&agent, "last", text, sizeof(text));
		assert_string_equal(text, "");
		pp_pdu_close(pdu);
		agent_stop(&agent);
	}
}

static const struct {
	const char *mode, *credentials;
	enum pp_pdu_outcome outcome;
	const char *relay;
} troubles[] = {
	{ "lie", "community = " COMMUNITY, PP_PDU_FAILED, "on" },
	/* It switched, but said no: not an off to rely on, and the power comes back. */
	{ "generr", "community = " COMMUNITY, PP_PDU_NOT_RESTORED, NULL },
	{ "pending", "community = " COMMUNITY, PP_PDU_STATE_UNKNOWN, "on" },
	{ "gone", "community = " COMMUNITY, PP_PDU_STATE_UNKNOWN, "on" },
	{ "none", "community = wrong-c0mmunity", PP_PDU_STATE_UNKNOWN, "on" },
	{ "none", "user = tester\npassword = wrong-passphrase", PP_PDU_STATE_UNKNOWN, "on" },
};

static void troubles_are_no_off(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++) {
		struct pp_pdu_times times;
		struct pp_error err = { 0 };
		struct agent agent;
		struct pp_pdu *pdu;
		char text[300];

		agent_start(&agent, 1, rows[1].sys_object);
		put(&agent, "mode", troubles[i].mode); /* snmpd remembers what it has read */
		credentials(&agent, "community = " COMMUNITY);
		pdu = agent_open(&agent);
		pp_pdu_close(pdu);
		credentials(&agent, troubles[i].credentials);
		agent.rig.config.request_timeout_ms = 300;
		pdu = pp_pdu_open(&agent.rig.config, &err);
		if (!pdu)
			fail_msg("%s", err.text);
		assert_int_equal(pp_pdu_off(pdu, &times, &err), -1);
		get(&agent, "relay", text, sizeof(text));
		/* With generr the on is answered so too; the state says that it was done. */
		if (strcmp(troubles[i].mode, "generr") == 0)
			assert_true(times.outcome == PP_PDU_FAILED && strcmp(text, "on") == 0);
		else if (times.outcome != troubles[i].outcome || strcmp(text, troubles[i].relay) != 0)
			fail_msg("%s: %s, relay %s: %s", troubles[i].mode,
				pp_pdu_outcome_name(times.outcome), text, err.text);
		pp_pdu_close(pdu);
		agent_stop(&agent);
	}
}

static void identity_and_label(void **state)
{
	struct pp_pdu_identity identity;
	struct pp_error err = { 0 };
	struct agent agent;
	struct pp_pdu *pdu;

	(void)state;
	agent_start(&agent, 1, rows[1].sys_object);
	credentials(&agent, "community = " COMMUNITY);
	agent.rig.config.identity = "SERIAL9";
	agent.rig.config.label = "dut-3";
	pdu = agent_open(&agent);
	if (pp_pdu_identify(pdu, &identity, &err) != 0 || pp_pdu_off(pdu, NULL, &err) != 0 ||
	    pp_pdu_on(pdu, NULL, &err) != 0)
		fail_msg("%s", err.text);
	pp_pdu_close(pdu);
	agent.rig.config.identity = "SERIAL8";
	pdu = pp_pdu_open(&agent.rig.config, &err);
	assert_int_equal(pp_pdu_off(pdu, NULL, &err), -1);
	pp_pdu_close(pdu);
	agent_stop(&agent);
}

static void credentials_are_needed(void **state)
{
	static const char *const bad[] = { "user = tester", "user = tester\npassword = short",
		"user = tester\npassword = long-enough-9\nauth = ROT13", "password = long-enough-9" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct pp_error err = { 0 };
		struct pp_pdu *pdu;
		struct rig rig;
		FILE *file;

		rig_start(&rig, "generic-rest");
		file = fopen(rig.credentials, "w");
		fprintf(file, "%s\n", bad[i]);
		fclose(file);
		chmod(rig.credentials, 0600);
		rig.config.credentials_file = rig.credentials;
		rig.config.profile = "snmp-apc-rpdu";
		rig.config.url = "127.0.0.1:9";
		pdu = pp_pdu_open(&rig.config, &err);
		if (pdu)
			assert_int_equal(pp_pdu_off(pdu, NULL, &err), -1);
		assert_null(strstr(err.text, "long-enough-9"));
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_family_cycles),
		cmocka_unit_test(another_device_is_refused),
		cmocka_unit_test(troubles_are_no_off),
		cmocka_unit_test(identity_and_label),
		cmocka_unit_test(credentials_are_needed),
	};
	int rc = rig_main(argc, argv);

	return rc >= 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
