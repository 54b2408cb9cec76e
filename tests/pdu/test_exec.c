/* SPDX-License-Identifier: MIT
 *
 * Goal: a program as power switch: no shell, a time limit that leaves no process behind, exit 0 and a
 * parsed state both needed, the password in its environment and on no command line.
 * Method: a profile whose program is a small script with a file as relay.
 */
#define MOCK_PDU_EMBEDDED
#include "mock_pdu.c"
#include "rig.h"

#include "pdu/state.h"

static const char script[] =
	"#!/bin/sh\n"
	"echo \"$* secret=$PLUGPULL_PDU_PASSWORD\" >> DIR/calls\n"
	"mode=$(cat DIR/mode)\n"
	"case \"$mode.$3\" in\n"
	"hang.off) echo off > DIR/relay; sleep 1000 & echo $! > DIR/child; wait;;\n"
	"fail.off) echo off > DIR/relay; exit 3;;\n"
	"lie.off) exit 0;;\n"
	"noise.off) yes; ;;\n"
	"shout.status) echo 'relay is off'; exit 0;;\n"
	"failstatus.status) cat DIR/relay; exit 1;;\n"
	"*.on|*.off) echo $3 > DIR/relay;;\n"
	"*.status) cat DIR/relay;;\n"
	"esac\n";

static void put(const char *dir, const char *name, const char *text, mode_t mode)
{
	char path[200];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	for (; *text; text++) {
		if (strncmp(text, "DIR", 3) == 0) {
			fputs(dir, file);
			text += 2;
		} else {
			fputc(*text, file);
		}
	}
	fclose(file);
	chmod(path, mode);
}

static void get(const char *dir, const char *name, char *out, size_t bytes)
{
	char path[200];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "r");
	out[0] = '\0';
	if (file) {
		out[fread(out, 1, bytes - 1, file)] = '\0';
		fclose(file);
	}
}

static const struct {
	const char *mode;
	enum pp_pdu_outcome outcome;
} rows[] = {
	{ "good", PP_PDU_VERIFIED },
	{ "hang", PP_PDU_VERIFIED }, /* killed after it had switched: the read-back decides */
	{ "fail", PP_PDU_FAILED },   /* exit 3, although the relay went: not ours to trust */
	{ "lie", PP_PDU_FAILED },
	{ "noise", PP_PDU_FAILED },
	{ "shout", PP_PDU_STATE_UNKNOWN },
	{ "failstatus", PP_PDU_STATE_UNKNOWN },
};

static void programs(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char profile[200], text[8192];
		struct pp_pdu_times times;
		struct pp_error err = { 0 };
		struct pp_pdu *pdu;
		struct rig rig;

		rig_start(&rig, "generic-rest");
		put(rig.dir, "switch", script, 0700);
		put(rig.dir, "mode", rows[i].mode, 0600);
		put(rig.dir, "relay", "on\n", 0600);
		put(rig.dir, "p.ini", "[profile]\nname = p\ntransport = exec\noutlet = ^[a-z $;`]+$\n"
			"[off]\nargv = DIR/switch {host} {id} off\n[on]\nargv = DIR/switch {host} {id} on\n"
			"[status]\nargv = DIR/switch \"{host}\" '{id}' status\n"
			"state_regex = ^(on|off)$\non = on\noff = off\n", 0600);
		snprintf(profile, sizeof(profile), "%s/p.ini", rig.dir);
		rig_credentials(&rig, RIG_PASSWORD);
		rig.config.profile = profile;
		rig.config.url = "a host";
		rig.config.outlets[0] = "x `touch y`; z $z";
		pdu = pp_pdu_open(&rig.config, &err);
		if (!pdu)
			fail_msg("%s", err.text);
		pp_pdu_off(pdu, &times, &err);
		if (times.outcome != rows[i].outcome)
			fail_msg("%s: %s: %s", rows[i].mode, pp_pdu_outcome_name(times.outcome), err.text);
		get(rig.dir, "calls", text, sizeof(text));
		assert_non_null(strstr(text, "a host x `touch y`; z $z off secret=" RIG_PASSWORD) ? text :
			rows[i].outcome == PP_PDU_STATE_UNKNOWN ? text : NULL);
		assert_null(strstr(rig.records.data, RIG_PASSWORD));
		get(rig.dir, "child", text, sizeof(text));
		if (text[0]) /* the child of the killed program is gone too */
			assert_int_equal(pp_state_process_start(atoi(text)), 0);
		get(rig.dir, "relay", text, sizeof(text));
		assert_string_equal(text, rows[i].outcome == PP_PDU_VERIFIED ? "off\n" : "on\n");
		assert_int_equal(access("y", F_OK), -1);
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(programs) };
	int rc = rig_main(argc, argv);

	return rc >= 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
