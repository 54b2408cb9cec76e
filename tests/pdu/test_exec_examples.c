/* SPDX-License-Identifier: MIT
 *
 * Goal: each shipped profile that runs a program turns off and on what that program says, with its
 * command line as documented, and with the password on no command line.
 * Method: stand-ins with the programs' names, first on the PATH, that check their words, write down
 * their command line as others see it (/proc), and answer as the real ones' sources and manuals do.
 */
#define MOCK_PDU_EMBEDDED
#include "mock_pdu.c"
#include "rig.h"

/* D is the folder. Each begins with writing its command line down. */
#define HEAD "#!/bin/sh\ntr '\\0' ' ' < /proc/$$/cmdline >> D/cmdlines; echo >> D/cmdlines\n"
#define OUT "echo off > D/relay"
#define ON "echo on > D/relay"

static const struct {
	const char *profile, *program, *host, *outlet, *script;
	bool secret; /* the stand-in wants the password */
} rows[] = {
	{ "ipmi", "ipmitool", "10.0.0.9", "1", HEAD
	  "[ \"$IPMI_PASSWORD\" = " RIG_PASSWORD " ] || { echo 'Error: Unable to establish'; exit 1; }\n"
	  "case \"$*\" in\n"
	  "'-I lanplus -H 10.0.0.9 -U admin -E chassis power off') [ $(cat D/relay) = on ] || {\n"
	  "echo 'Set Chassis Power Control to Down/Off failed: Command not supported in present state'\n"
	  "exit 1; }; " OUT "; echo 'Chassis Power Control: Down/Off';;\n"
	  "'-I lanplus -H 10.0.0.9 -U admin -E chassis power on') " ON ";\n"
	  "echo 'Chassis Power Control: Up/On';;\n"
	  "*'chassis power status') echo \"Chassis Power is $(cat D/relay)\";;\n"
	  "*'mc guid') echo 'System GUID  : 31303043-534d-2500-90d8-7a4c5a5d0000';;\n"
	  "*) exit 2;; esac\n", true },
	{ "fence", "fence_apc", "10.0.0.9", "7", HEAD
	  "while read line; do case $line in action=*) action=${line#*=};; passwd=*) ;;\n"
	  "password=" RIG_PASSWORD ") good=1;; ip=10.0.0.9|username=admin|plug=7) n=x$n;;\n"
	  "*) exit 1;; esac; done\n"
	  "[ \"$good$n\" = 1xxx ] && [ -z \"$*\" ] || exit 1\n"
	  "case $action in off) " OUT "; echo 'Success: Powered OFF';; on) " ON ";\n"
	  "echo 'Success: Powered ON';;\n"
	  "status) if [ $(cat D/relay) = on ]; then echo 'Status: ON'; else echo 'Status: OFF'; exit 2; fi;;\n"
	  "*) exit 1;; esac\n", true },
	{ "powerman", "powerman", "pm.lab:10101", "t12", HEAD
	  "[ \"$1 $2\" = '-h pm.lab:10101' ] && [ $4 = t12 ] || exit 1\n"
	  "case $3 in -0) " OUT "; echo 'Command completed successfully';;\n"
	  "-1) " ON "; echo 'Command completed successfully';;\n"
	  "-q) if [ $(cat D/relay) = on ]; then printf 'on:      t12\\noff:     \\nunknown: \\n';\n"
	  "else printf 'on:      \\noff:     t12\\nunknown: \\n'; fi;; *) exit 1;; esac\n", false },
	{ "labgrid", "labgrid-client", "coord:20408", "dut-3", HEAD
	  "[ \"$1 $2 $3 $4 $5\" = '-x coord:20408 -p dut-3 power' ] || exit 1\n"
	  "case $6 in off) " OUT ";; on) " ON ";;\n"
	  "get) echo \"power for place dut-3 is $(cat D/relay)\";; *) exit 1;; esac\n", false },
	{ "uhubctl", "uhubctl", "1-1.4", "2", HEAD
	  "case \"$*\" in '-l 1-1.4 -p 2 -a off') " OUT ";; '-l 1-1.4 -p 2 -a on') " ON ";;\n"
	  "'-l 1-1.4 -p 2') echo 'Current status for hub 1-1.4 [2109:2817 USB2.0 Hub, 4 ports, ppps]'\n"
	  "if [ $(cat D/relay) = on ]; then echo '  Port 2: 0103 power enable connect [0781:5581 x]';\n"
	  "else echo '  Port 2: 0000 off'; fi;; *) exit 1;; esac\n", false },
	{ "usbrelay", "usbrelay", NULL, "HURTM_2", HEAD
	  "case \"$*\" in HURTM_2=0) " OUT ";; HURTM_2=1) " ON ";;\n"
	  "'') [ $(cat D/relay) = on ] && s=1 || s=0; printf \"HURTM_1=1\\nHURTM_2=$s\\n\";;\n"
	  "*) exit 1;; esac\n", false },
	{ "kasa", "kasa", "10.0.0.9", "1", HEAD
	  "[ \"$KASA_USERNAME $KASA_PASSWORD\" = 'admin " RIG_PASSWORD "' ] || exit 1\n"
	  "case \"$*\" in '--host 10.0.0.9 off') " OUT ";; '--host 10.0.0.9 on') " ON ";;\n"
	  "'--json --host 10.0.0.9 state') [ $(cat D/relay) = on ] && s=1 || s=0\n"
	  "echo '{\"system\": {\"get_sysinfo\": {\"mac\": \"50:C7\", \"model\": \"HS110(EU)\", "
	  "\"relay_state\": '$s'}}}';; *) exit 1;; esac\n", true },
	{ "quarch", "plugpull-quarch", "TCP:QTL1999-02-001", "1", HEAD
	  "[ $1 = TCP:QTL1999-02-001 ] || exit 1\n"
	  "case \"$2 $3\" in 'run:power down') " OUT "; echo OK;; 'run:power up') " ON "; echo OK;;\n"
	  "'run:power? ') [ $(cat D/relay) = on ] && echo PLUGGED || echo PULLED;; *) exit 1;; esac\n",
	  false },
	{ "exec", "plugpull-pdu-exec", "10.0.0.9", "a1", HEAD
	  "[ \"$1 $2\" = '10.0.0.9 a1' ] && [ \"$PLUGPULL_PDU_PASSWORD\" = " RIG_PASSWORD " ] || exit 1\n"
	  "case $3 in off) " OUT ";; on) " ON ";; status) cat D/relay;; *) exit 1;; esac\n", true },
};

static void put(const char *dir, const char *name, const char *text, mode_t mode)
{
	char path[300];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	for (; *text; text++) {
		if (strncmp(text, "D/relay", 7) == 0 || strncmp(text, "D/cmd", 5) == 0)
			fputs(dir, file); /* in place of the D */
		else
			fputc(*text, file);
	}
	fclose(file);
	chmod(path, mode);
}

static void get(const char *dir, const char *name, char *out, size_t bytes)
{
	char path[300];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "r");
	out[0] = '\0';
	if (file) {
		out[fread(out, 1, bytes - 1, file)] = '\0';
		fclose(file);
	}
}

static void start(struct rig *rig, size_t i)
{
	char path[4096];

	rig_start(rig, "generic-rest");
	put(rig->dir, rows[i].program, rows[i].script, 0700);
	put(rig->dir, "relay", "on\n", 0600);
	snprintf(path, sizeof(path), "%s:/usr/bin:/bin", rig->dir);
	setenv("PATH", path, 1);
	rig->config.profile = rows[i].profile;
	rig->config.url = rows[i].host;
	rig->config.outlets[0] = rows[i].outlet;
	rig->config.request_timeout_ms = 5000;
	rig->config.verify_timeout_ms = 5000;
}

static void each_cycles(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[16384];
		struct pp_error err = { 0 };
		struct pp_pdu *pdu;
		struct rig rig;

		start(&rig, i);
		rig_credentials(&rig, RIG_PASSWORD);
		pdu = pp_pdu_open(&rig.config, &err);
		if (!pdu)
			fail_msg("%s: %s", rows[i].profile, err.text);
		if (pp_pdu_identify(pdu, NULL, &err) != 0 || pp_pdu_off(pdu, NULL, &err) != 0)
			fail_msg("%s: off: %s\n%s", rows[i].profile, err.text, rig.records.data);
		get(rig.dir, "relay", text, sizeof(text));
		assert_string_equal(text, "off\n");
		if (pp_pdu_on(pdu, NULL, &err) != 0)
			fail_msg("%s: on: %s", rows[i].profile, err.text);
		get(rig.dir, "relay", text, sizeof(text));
		assert_string_equal(text, "on\n");
		get(rig.dir, "cmdlines", text, sizeof(text));
		assert_non_null(strstr(text, rows[i].program));
		assert_null(strstr(text, RIG_PASSWORD));
		assert_null(strstr(rig.records.data, RIG_PASSWORD));
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

static void a_wrong_password_is_no_off(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_error err = { 0 };
		char text[64];
		struct pp_pdu *pdu;
		struct rig rig;

		start(&rig, i);
		rig_credentials(&rig, "wrong-password");
		pdu = pp_pdu_open(&rig.config, &err);
		if (rows[i].secret && pp_pdu_off(pdu, NULL, &err) == 0)
			fail_msg("%s", rows[i].profile);
		get(rig.dir, "relay", text, sizeof(text));
		assert_string_equal(text, "on\n");
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

/* {user} is not there: say so, and do not run a program with a hole in its command line. */
static void a_missing_user_is_said(void **state)
{
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;
	char text[64];

	(void)state;
	start(&rig, 1);
	put(rig.dir, "credentials", "token = only-a-token\n", 0600);
	rig.config.credentials_file = rig.credentials;
	pdu = pp_pdu_open(&rig.config, &err);
	assert_int_equal(pp_pdu_off(pdu, NULL, &err), -1);
	assert_non_null(strstr(err.text, "no user"));
	get(rig.dir, "cmdlines", text, sizeof(text));
	assert_string_equal(text, "");
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

/* A profile of somebody's own that would put a secret where all can read it is not run. */
static void no_secret_in_words(void **state)
{
	static const char *const words[] = { "{password}", "{token}", "x{token}y" };

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char text[1024], profile[200];
		struct pp_error err = { 0 };
		struct pp_pdu *pdu;
		struct rig rig;

		start(&rig, 8);
		snprintf(text, sizeof(text), "[profile]\nname = p\ntransport = exec\noutlet = ^a1$\n"
			"[off]\nargv = plugpull-pdu-exec %s off\n[on]\nargv = plugpull-pdu-exec on\n"
			"[status]\nargv = plugpull-pdu-exec %s status\nstate_regex = ^(on|off)\n"
			"on = on\noff = off\n", words[i], words[i]);
		put(rig.dir, "p.ini", text, 0600);
		snprintf(profile, sizeof(profile), "%s/p.ini", rig.dir);
		rig.config.profile = profile;
		rig_credentials(&rig, RIG_PASSWORD);
		pdu = pp_pdu_open(&rig.config, &err);
		if (pdu)
			assert_int_equal(pp_pdu_off(pdu, NULL, &err), -1);
		get(rig.dir, "cmdlines", text, sizeof(text));
		assert_string_equal(text, "");
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_cycles),
		cmocka_unit_test(a_wrong_password_is_no_off),
		cmocka_unit_test(a_missing_user_is_said),
		cmocka_unit_test(no_secret_in_words),
	};
	int rc = rig_main(argc, argv);

	return rc >= 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
