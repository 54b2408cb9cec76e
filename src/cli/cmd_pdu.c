/* SPDX-License-Identifier: MIT
 *
 * plugpull pdu: the power switch by itself. Parses, calls pdu/, reports. A cut is a dry run unless
 * --yes is given; the outlet is always named. Exit: 0 done and verified, 2 refused or failed, 3 state
 * unknown, 4 power not restored.
 */
#include "cmd_pdu.h"
#include "alive_agent.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pdu/guard.h"
#include "pdu/pdu.h"
#include "pdu/profile.h"
#include "pdu/prove.h"
#include "src/core/clock.h"

enum { EXIT_DONE = 0, EXIT_REFUSED = 2, EXIT_UNKNOWN = 3, EXIT_NOT_RESTORED = 4 };

struct options {
	struct pp_pdu_config config;
	int64_t off_ms, back_ms, hold_up_ms;
	const char *alive, *proof;
	struct pp_alive_agent *agent;
	const char *others[64];
	int others_count;
	int fd;
	bool yes, json, help;
	FILE *record;
};

enum form { TEXT, SECONDS, FLAG, OUTLET, OTHER, RECORD, NUMBER };

struct option_row {
	const char *name, *argument, *help;
	enum form form;
	size_t offset;
};

#define O(member) offsetof(struct options, member)

static const struct option_row rows[] = {
	{ "profile", "NAME|FILE", "what kind of switch it is (plugpull pdu list)", TEXT,
	  O(config.profile) },
	{ "url", "URL", "http://HOST[:PORT] of the switch; the {host} of an exec profile", TEXT,
	  O(config.url) },
	{ "set", "NAME=VALUE", "of the profile's [parameters]; several with commas between", TEXT,
	  O(config.parameters) },
	{ "outlet", "N", "as printed on the case; again for a machine with several supplies", OUTLET,
	  0 },
	{ "identity", "ID", "refuse unless the device says that it is this one", TEXT,
	  O(config.identity) },
	{ "label", "NAME", "refuse unless the outlet is called so", TEXT, O(config.label) },
	{ "credentials", "FILE", "user, password, token; mode 0600 [PLUGPULL_PDU_USER, ...]", TEXT,
	  O(config.credentials_file) },
	{ "ca", "FILE", "certificates to trust for https", TEXT, O(config.ca_file) },
	{ "pin", "sha256//KEY", "public key of the device; enough without a chain", TEXT,
	  O(config.pin) },
	{ "insecure", NULL, "do not verify https", FLAG, O(config.insecure) },
	{ "state-dir", "DIR", "locks and journal [$XDG_STATE_HOME/plugpull]", TEXT,
	  O(config.state_dir) },
	{ "off-time", "SECONDS", "cycle: how long off [10]", SECONDS, O(off_ms) },
	{ "min-on", "SECONDS", "refuse an off sooner after an on [60]", SECONDS,
	  O(config.min_on_ms) },
	{ "device-restore", "SECONDS", "ask the switch to turn on by itself after this", SECONDS,
	  O(config.device_restore_ms) },
	{ "verify-timeout", "SECONDS", "how long a change may take [the profile's]", SECONDS,
	  O(config.verify_timeout_ms) },
	{ "alive", "HOW", "ask the machine: agent:KEYFILE, tcp:HOST:PORT, ping:HOST, cmd:PROGRAM", TEXT, O(alive) },
	{ "hold-up", "SECONDS", "how long it may still answer after the off [20]", SECONDS,
	  O(hold_up_ms) },
	{ "back-time", "SECONDS", "prove: how long it may take to answer again [600]", SECONDS,
	  O(back_ms) },
	{ "other", "N", "prove: an outlet that must not change; again for more [all]", OTHER, 0 },
	{ "proof", "FILE", "prove: write the proof there too", TEXT, O(proof) },
	{ "dut", "HOST", "the machine: refuse if the switch is it [--alive's]", TEXT,
	  O(config.dut_host) },
	{ "max-cycles", "N", "refuse an off beyond so many in all [no limit]", NUMBER,
	  O(config.cycles_total_max) },
	{ "wake", "MAC[@ADDRESS]", "wake it on LAN after the on", TEXT, O(config.wake) },
	{ "record", "FILE", "append each request and answer as a line of JSON", RECORD, 0 },
	{ "yes", NULL, "really switch; without it only the state is read", FLAG, O(yes) },
	{ "json", NULL, "print one JSON object", FLAG, O(json) },
	{ "fd", "N", NULL, NUMBER, O(fd) },
	{ "help", NULL, "print this", FLAG, O(help) },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

struct command {
	const char *name, *arguments, *help;
	int (*run)(struct options *options, int argc, char **argv);
	bool needs_switch;
};

static void record_line(void *arg, const char *line)
{
	FILE *file = arg;

	if (fprintf(file, "%s\n", line) < 0 || fflush(file) != 0)
		fprintf(stderr, "plugpull pdu: cannot write the record\n");
}

static int usage_error(const char *what, const char *subject)
{
	fprintf(stderr, "plugpull pdu: %s '%s'; see plugpull pdu --help\n", what, subject);
	return EXIT_REFUSED;
}

static int say_error(const struct pp_error *err, int code)
{
	fprintf(stderr, "plugpull pdu: %s\n", err->text);
	return code;
}

static int exit_of(enum pp_pdu_outcome outcome)
{
	static const int codes[] = { EXIT_DONE, EXIT_REFUSED, EXIT_REFUSED, EXIT_UNKNOWN,
		EXIT_NOT_RESTORED };

	return codes[outcome];
}

/* ---- results ------------------------------------------------------------------------------ */

static void print_json(json_t *json)
{
	char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;

	if (text)
		puts(text);
	free(text);
	json_decref(json);
}

static int report(struct options *options, const char *what, const struct pp_pdu_times *times,
	const struct pp_pdu_status *status, const struct pp_error *err)
{
	const char *outcome = pp_pdu_outcome_name(times->outcome);
	json_t *json;

	if (err->text[0])
		fprintf(stderr, "plugpull pdu: %s\n", err->text);
	if (options->json) {
		json = json_pack("{s:i, s:s, s:s, s:I, s:I, s:I, s:b, s:b}", "format", 1, "command",
			what, "outcome", outcome, "t_sent_ns", (json_int_t)times->t_sent_ns,
			"t_answered_ns", (json_int_t)times->t_answered_ns, "t_read_ns",
			(json_int_t)times->t_read_ns, "ambiguous", times->ambiguous,
			"device_restore", times->device_restore);
		if (json && status)
			json_object_set_new(json, "state",
				json_string(pp_pdu_state_name(status->state)));
		if (json && status && status->has_watts)
			json_object_set_new(json, "watts", json_real(status->watts));
		if (json && err->text[0])
			json_object_set_new(json, "error", json_string(err->text));
		print_json(json);
	} else if (times->outcome == PP_PDU_VERIFIED && times->t_sent_ns) {
		printf("%s: %s, read back after %.0f ms\n", what, outcome,
			(double)(times->t_read_ns - times->t_sent_ns) / 1e6);
	} else {
		printf("%s: %s\n", what, outcome);
	}
	return exit_of(times->outcome);
}

static int report_status(struct options *options, struct pp_pdu *pdu,
	const struct pp_pdu_status *status, const struct pp_pdu_identity *identity)
{
	json_t *json, *outlets = json_object();

	for (int i = 0; i < options->config.outlet_count; i++)
		json_object_set_new(outlets, options->config.outlets[i],
			json_string(pp_pdu_state_name(status->outlet[i])));
	json = json_pack("{s:i, s:s, s:s, s:o, s:s, s:s, s:s, s:s, s:b}", "format", 1, "command",
		"status", "state", pp_pdu_state_name(status->state), "outlets", outlets, "identity",
		identity->id, "model", identity->model, "label", identity->label[0], "cuts",
		pp_pdu_cuts_name(pp_pdu_cuts(pdu)), "device_restore",
		pp_pdu_has_device_restore(pdu));
	if (json && status->has_watts)
		json_object_set_new(json, "watts", json_real(status->watts));
	if (options->json) {
		print_json(json);
	} else {
		json_decref(json);
		printf("%s", pp_pdu_state_name(status->state));
		if (status->has_watts)
			printf(", %.1f W", status->watts);
		printf("\n");
		if (identity->id[0])
			printf("device %s %s\n", identity->id, identity->model);
		if (identity->label[0][0])
			printf("outlet %s is called %s\n", options->config.outlets[0],
				identity->label[0]);
	}
	return status->state == PP_PDU_ON || status->state == PP_PDU_OFF ? EXIT_DONE :
		EXIT_UNKNOWN;
}

/* ---- commands ----------------------------------------------------------------------------- */

static struct pp_pdu *open_switch(struct options *options)
{
	struct pp_error err = { 0 };
	struct pp_pdu *pdu = pp_pdu_open(&options->config, &err);

	if (!pdu)
		say_error(&err, 0);
	else if (options->config.insecure)
		fprintf(stderr, "plugpull pdu: https is not verified (--insecure)\n");
	return pdu;
}

static int run_status(struct options *options, int argc, char **argv)
{
	struct pp_pdu *pdu = open_switch(options);
	struct pp_pdu_identity identity;
	struct pp_pdu_status status;
	struct pp_error err = { 0 };
	int code;

	(void)argc;
	(void)argv;
	if (!pdu)
		return EXIT_REFUSED;
	if (pp_pdu_identify(pdu, &identity, &err) != 0)
		code = say_error(&err, err.class == PP_ERR_REFUSED ? EXIT_REFUSED : EXIT_UNKNOWN);
	else if (pp_pdu_status(pdu, &status, &err) != 0)
		code = say_error(&err, EXIT_UNKNOWN);
	else
		code = report_status(options, pdu, &status, &identity);
	pp_pdu_close(pdu);
	return code;
}

/* Without --yes: says what would be done, from what can be read. */
static int dry_run(struct options *options, const char *what)
{
	int code = run_status(options, 0, NULL);

	fprintf(stderr, "plugpull pdu: dry run: would switch outlet %s %s; add --yes to do it\n",
		options->config.outlets[0], what);
	return code == EXIT_DONE ? EXIT_REFUSED : code;
}

static int run_on(struct options *options, int argc, char **argv)
{
	struct pp_pdu *pdu;
	struct pp_pdu_times times;
	struct pp_error err = { 0 };
	int code;

	(void)argc;
	(void)argv;
	if (!options->yes)
		return dry_run(options, "on");
	pdu = open_switch(options);
	if (!pdu)
		return EXIT_REFUSED;
	pp_pdu_on(pdu, &times, &err);
	code = report(options, "on", &times, NULL, &err);
	pp_pdu_close(pdu);
	return code;
}

static struct pp_alive *open_alive(struct options *options, struct pp_error *err)
{
	struct pp_alive *alive;

	if (strncmp(options->alive, "agent:", 6) == 0) {
		options->agent = pp_alive_agent_open(options->alive + 6, err);
		return options->agent ? pp_alive_of(options->alive, pp_alive_agent_ask,
			pp_alive_agent_boot, options->agent, err) : NULL;
	}
	alive = pp_alive_parse(options->alive, err);
	if (alive && !options->config.dut_host)
		options->config.dut_host = pp_alive_host(alive);
	return alive;
}

/* After a verified off: what else says so. 0, or the exit status. */
static int witnessed(struct options *options, struct pp_pdu *pdu, struct pp_alive *alive,
	struct pp_error *err)
{
	struct pp_off_witness_config config = { .alive = alive, .timeout_ms = options->hold_up_ms };
	struct pp_off_witness witness;

	if (pp_pdu_witness(pdu, &config, &witness, err) == 0) {
		fprintf(stderr, "plugpull pdu: off, and %s\n", witness.lost ?
			"the machine fell silent" : "its meter shows nothing");
		return EXIT_DONE;
	}
	if (err->class == PP_ERR_UNSUPPORTED || !alive) {
		fprintf(stderr, "plugpull pdu: %s (--alive)\n", err->text);
		*err = (struct pp_error){ 0 };
		return EXIT_DONE;
	}
	return EXIT_UNKNOWN;
}

/* From here to leave_off or on, the guard turns on if this process ends. */
static int off_guarded(struct options *options, struct pp_pdu *pdu, struct pp_guard *guard,
	struct pp_alive *alive, bool and_on)
{
	int64_t off_ms = options->off_ms > 0 ? options->off_ms : 10000;
	struct pp_pdu_status status = { 0 };
	struct pp_pdu_times times = { 0 };
	struct pp_error err = { 0 };
	int code;
	bool seen;

	if (pp_guard_arm(guard, pp_clock_mono_ns() + (off_ms + 300000) * PP_NS_PER_MS, &err) != 0)
		return say_error(&err, EXIT_REFUSED);
	if (pp_pdu_off(pdu, &times, &err) != 0) {
		code = report(options, and_on ? "cycle" : "off", &times, NULL, &err);
		/* An outlet that may be off stays the guard's until it is on. */
		if (times.outcome != PP_PDU_NOT_RESTORED)
			pp_guard_disarm(guard, NULL, NULL);
		return code;
	}
	seen = witnessed(options, pdu, alive, &err) == EXIT_DONE;
	/* An off that the machine contradicts is not left so: it is not known what was switched. */
	if (and_on || !seen) {
		int64_t done_ms = (pp_clock_mono_ns() - times.t_read_ns) / PP_NS_PER_MS;
		struct pp_error trouble = { 0 };
		struct pp_pdu_times on;

		if (seen)
			pp_clock_sleep_ms(off_ms > done_ms ? off_ms - done_ms : 0);
		if (pp_pdu_on(pdu, &on, &trouble) != 0) {
			times.outcome = PP_PDU_NOT_RESTORED;
			err = trouble;
		} else if (!seen) {
			times.outcome = PP_PDU_STATE_UNKNOWN;
		}
	} else if (pp_pdu_leave_off(pdu, &err) != 0) {
		times.outcome = PP_PDU_STATE_UNKNOWN;
	}
	pp_pdu_status(pdu, &status, NULL);
	code = report(options, and_on ? "cycle" : "off", &times, &status, &err);
	if (times.outcome != PP_PDU_NOT_RESTORED)
		pp_guard_disarm(guard, NULL, NULL);
	return code;
}

static int run_cut(struct options *options, bool and_on)
{
	struct pp_pdu_status status;
	struct pp_guard *guard;
	struct pp_error err = { 0 };
	struct pp_alive *alive = NULL;
	struct pp_pdu *pdu;
	int code;

	if (!options->yes)
		return dry_run(options, and_on ? "off and on" : "off");
	if (options->alive && (!(alive = open_alive(options, &err)) ||
	    pp_pdu_await_life(alive, 10000, &err) != 0)) {
		pp_alive_free(alive);
		return say_error(&err, EXIT_REFUSED);
	}
	pdu = open_switch(options);
	if (!pdu) {
		pp_alive_free(alive);
		return EXIT_REFUSED;
	}
	if (!and_on && pp_pdu_status(pdu, &status, NULL) == 0 && status.state == PP_PDU_OFF) {
		struct pp_pdu_times times = { .outcome = PP_PDU_VERIFIED };

		fprintf(stderr, "plugpull pdu: the outlet is off already\n");
		if (alive) { /* it has just answered */
			times.outcome = PP_PDU_STATE_UNKNOWN;
			pp_fail(&err, PP_ERR_PEER, "the outlet reads off, but '%s' answers", options->alive);
		}
		code = report(options, "off", &times, &status, &err);
		pp_pdu_close(pdu);
		pp_alive_free(alive);
		return code;
	}
	guard = pp_guard_start(&options->config, NULL, &err);
	if (!guard) {
		pp_pdu_close(pdu);
		pp_alive_free(alive);
		return say_error(&err, err.class == PP_ERR_PEER ? EXIT_UNKNOWN : EXIT_REFUSED);
	}
	code = off_guarded(options, pdu, guard, alive, and_on);
	if (code == EXIT_NOT_RESTORED)
		fprintf(stderr, "plugpull pdu: THE POWER IS NOT RESTORED; the guard (process %d) goes on "
			"trying; press Ctrl-C to leave it to that\n", (int)pp_guard_pid(guard));
	pp_guard_stop(guard, NULL);
	pp_pdu_close(pdu);
	pp_alive_free(alive);
	return code;
}

static int run_off(struct options *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return run_cut(options, false);
}

static int run_cycle(struct options *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return run_cut(options, true);
}

static void say_step(void *arg, const char *step)
{
	(void)arg;
	fprintf(stderr, "plugpull pdu: %s\n", step);
}

static int run_prove(struct options *options, int argc, char **argv)
{
	struct pp_prove_config config = { .pdu = &options->config, .off_ms = options->off_ms,
		.back_ms = options->back_ms, .witness = { .timeout_ms = options->hold_up_ms },
		.say = say_step, .path = options->proof, .others_count = options->others_count };
	enum pp_pdu_outcome outcome;
	struct pp_error err = { 0 };
	json_t *json;
	int rc;

	(void)argc;
	(void)argv;
	if (!options->alive)
		return usage_error("--alive is missing for", "prove");
	if (!options->yes)
		return dry_run(options, "off and on, watching the machine and the other outlets");
	memcpy(config.others, options->others, sizeof(config.others));
	config.alive = open_alive(options, &err);
	if (!config.alive)
		return say_error(&err, EXIT_REFUSED);
	rc = pp_prove(&config, &outcome, &err);
	pp_alive_free(config.alive);
	if (rc != 0)
		fprintf(stderr, "plugpull pdu: %s\n", err.text);
	if (options->json) {
		json = json_pack("{s:i, s:s, s:b, s:s}", "format", 1, "command", "prove", "proven",
			rc == 0, "outcome", pp_pdu_outcome_name(outcome));
		if (json && rc != 0)
			json_object_set_new(json, "error", json_string(err.text));
		print_json(json);
	} else {
		printf("prove: %s\n", rc == 0 ? "this outlet, and it alone, feeds the machine" :
			"not proven");
	}
	return rc == 0 ? EXIT_DONE : outcome == PP_PDU_VERIFIED ? EXIT_UNKNOWN : exit_of(outcome);
}

/* For whoever installs it: the program's own path, and the folder that this user would use. */
static int run_unit(struct options *options, int argc, char **argv)
{
	const char *state = options->config.state_dir;
	char exe[4096];
	ssize_t bytes = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	(void)argc;
	(void)argv;
	if (bytes <= 0 || (state && state[0] != '/'))
		return usage_error("not a full path:", bytes <= 0 ? "/proc/self/exe" : state);
	exe[bytes] = '\0';
	printf("# plugpull pdu unit > /etc/systemd/system/plugpull-recover.service\n"
		"# systemctl enable plugpull-recover.service\n"
		"[Unit]\n"
		"Description=turn on the outlets that plugpull's journal says must be on\n"
		"Wants=network-online.target\n"
		"After=network-online.target\n\n"
		"[Service]\n"
		"Type=oneshot\n"
		"User=%s\n"
		"ExecStart=%s pdu recover%s%s\n"
		"Restart=on-failure\n"
		"RestartSec=30\n\n"
		"[Install]\n"
		"WantedBy=multi-user.target\n", getenv("USER") ? getenv("USER") : "root", exe,
		state ? " --state-dir " : "", state ? state : "");
	return EXIT_DONE;
}

struct recovery {
	json_t *list; /* NULL: as text */
	size_t count;
};

static void say_recovered(void *arg, const struct pp_pdu_recovered *recovered)
{
	struct recovery *r = arg;
	json_t *list = r->list;

	r->count++;
	if (list) {
		json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:b, s:s, s:I, s:I}", "url",
			recovered->url, "outlet", recovered->outlet, "restored", recovered->restored,
			"busy", recovered->busy, "by", recovered->by ? recovered->by : "",
			"t_on_mono_ns", (json_int_t)recovered->t_on_mono_ns, "t_on_boot_ns",
			(json_int_t)recovered->t_on_boot_ns));
		return;
	}
	printf("%s outlet %s: %s\n", recovered->url, recovered->outlet,
		recovered->restored ? "on" : recovered->busy ? "in use by a running process" :
		"NOT RESTORED");
}

static int run_recover(struct options *options, int argc, char **argv)
{
	struct recovery r = { .list = options->json ? json_array() : NULL };
	struct pp_error err = { 0 };
	int left;

	(void)argc;
	(void)argv;
	left = pp_pdu_recover(options->config.state_dir, 60000, say_recovered, &r, &err);
	if (left >= 0)
		pp_pdu_recover_clear(options->config.state_dir, NULL);
	if (options->json)
		print_json(json_pack("{s:i, s:s, s:o}", "format", 1, "command", "recover", "outlets",
			r.list));
	if (left < 0)
		return say_error(&err, EXIT_NOT_RESTORED);
	if (!r.count)
		fprintf(stderr, "plugpull pdu: the journal is empty: no outlet is to be turned on\n");
	return left ? EXIT_NOT_RESTORED : EXIT_DONE;
}

static void list_profile(void *arg, const char *name, const char *path)
{
	struct pp_error err = { 0 };
	struct pp_profile *profile = pp_profile_load(path, &err);
	json_t *list = arg;

	if (!profile) {
		fprintf(stderr, "plugpull pdu: %s\n", err.text);
		return;
	}
	if (list)
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b, s:b, s:b, s:s}", "name",
			name, "title", profile->title ? profile->title : "", "cuts",
			pp_pdu_cuts_name(profile->cuts), "reads_back", profile->status.given, "watts",
			profile->status_watts || profile->watts.given, "device_restore",
			profile->timed_off.given, "path", path));
	else
		printf("%-22s %-5s %-8s %-5s %-7s %s\n", name, pp_pdu_cuts_name(profile->cuts),
			profile->status.given ? "readback" : "n/a",
			profile->status_watts || profile->watts.given ? "watts" : "n/a",
			profile->timed_off.given ? "restore" : "n/a",
			profile->title ? profile->title : "");
	pp_profile_free(profile);
}

static int run_list(struct options *options, int argc, char **argv)
{
	json_t *list = options->json ? json_array() : NULL;

	(void)argc;
	(void)argv;
	if (!list)
		printf("%-22s %-5s %-8s %-5s %-7s %s\n", "PROFILE", "CUTS", "READBACK", "WATTS",
			"RESTORE", "DEVICE");
	pp_profile_each(list_profile, list);
	if (options->json)
		print_json(json_pack("{s:i, s:s, s:o}", "format", 1, "command", "list", "profiles",
			list));
	return EXIT_DONE;
}

static int run_check(struct options *options, int argc, char **argv)
{
	struct pp_error err = { 0 };
	int code = EXIT_DONE;

	(void)options;
	if (argc < 1)
		return usage_error("no profile to check after", "check");
	for (int i = 0; i < argc; i++) {
		struct pp_profile *profile = pp_profile_load(argv[i], &err);

		if (profile)
			printf("%s: good\n", profile->path);
		else
			code = say_error(&err, EXIT_REFUSED);
		pp_profile_free(profile);
	}
	return code;
}

static int run_guard(struct options *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return pp_guard_main(options->fd);
}

static const struct command commands[] = {
	{ "on", "", "turn on and read back", run_on, true },
	{ "off", "", "turn off, read back off twice; leave it off", run_off, true },
	{ "cycle", "", "off, wait, on, each read back", run_cycle, true },
	{ "status", "", "read state, watts, identity, label", run_status, true },
	{ "prove", "", "cycle it, see that this machine alone hangs on it", run_prove,
	  true },
	{ "recover", "", "turn on whatever the journal says must be on", run_recover, false },
	{ "unit", "", "print a systemd unit that runs recover at boot", run_unit, false },
	{ "list", "", "profiles there are", run_list, false },
	{ "check", "FILE...", "check profiles", run_check, false },
	{ "guard", "", NULL, run_guard, false },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* ---- options ------------------------------------------------------------------------------ */

static int print_help(void)
{
	printf("usage: plugpull pdu COMMAND [OPTIONS]\n\ncommands:\n");
	for (size_t i = 0; i < COMMANDS; i++)
		if (commands[i].help)
			printf("  %-8s %-10s %s\n", commands[i].name, commands[i].arguments,
				commands[i].help);
	printf("\noptions:\n");
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].help)
			printf("  --%s%s%s\n        %s\n", rows[i].name, rows[i].argument ? " " : "",
				rows[i].argument ? rows[i].argument : "", rows[i].help);
	printf("\nexit status: 0 done and verified, 2 refused or failed, 3 state unknown,\n"
		"4 power not restored\n");
	return EXIT_DONE;
}

static int take_number(const char *name, const char *text, double scale, int64_t *out)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || *end || !(number >= 0 && number <= 86400 * 30)) {
		usage_error("not a number:", text);
		fprintf(stderr, "plugpull pdu: after --%s\n", name);
		return -1;
	}
	*out = (int64_t)(number * scale);
	return 0;
}

static int take_option(struct options *options, const struct option_row *row, char *argument)
{
	void *slot = (char *)options + row->offset;
	int64_t number;

	switch (row->form) {
	case TEXT:
		*(const char **)slot = argument;
		return 0;
	case FLAG:
		*(bool *)slot = true;
		return 0;
	case SECONDS:
		if (take_number(row->name, argument, 1000, slot) != 0)
			return -1;
		if (*(int64_t *)slot == 0)
			*(int64_t *)slot = -1; /* 0 would mean the default */
		return 0;
	case NUMBER:
		if (take_number(row->name, argument, 1, &number) != 0)
			return -1;
		*(int *)slot = (int)number;
		return 0;
	case OUTLET:
		if (options->config.outlet_count == PP_PDU_OUTLETS_MAX)
			return usage_error("too many outlets at", argument), -1;
		options->config.outlets[options->config.outlet_count++] = argument;
		return 0;
	case OTHER:
		if (options->others_count == (int)(sizeof(options->others) / sizeof(*options->others)))
			return usage_error("too many others at", argument), -1;
		options->others[options->others_count++] = argument;
		return 0;
	case RECORD:
		options->record = fopen(argument, "ae");
		if (!options->record) {
			fprintf(stderr, "plugpull pdu: cannot open '%s': %s\n", argument,
				strerror(errno));
			return -1;
		}
		options->config.record = record_line;
		options->config.record_arg = options->record;
		return 0;
	}
	return -1;
}

static int parse(struct options *options, int argc, char **argv)
{
	struct option longs[ROWS + 1] = { 0 };
	int which, rc;

	for (size_t i = 0; i < ROWS; i++)
		longs[i] = (struct option){ rows[i].name,
			rows[i].argument ? required_argument : no_argument, NULL, 0 };
	optind = 0; /* GNU: begin anew */
	while ((rc = getopt_long(argc, argv, "", longs, &which)) != -1) {
		if (rc == '?') {
			fprintf(stderr, "see plugpull pdu --help\n");
			return -1;
		}
		if (take_option(options, &rows[which], optarg) != 0)
			return -1;
	}
	return 0;
}

int pp_cmd_pdu(int argc, char **argv)
{
	struct options options = { .fd = -1 };
	const struct command *command = NULL;
	int code;

	if (parse(&options, argc, argv) != 0)
		return EXIT_REFUSED;
	if (options.help)
		return print_help();
	if (optind >= argc)
		return usage_error("no command after", "pdu");
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i].name, argv[optind]) == 0)
			command = &commands[i];
	if (!command)
		return usage_error("unknown command", argv[optind]);
	if (command->needs_switch && !options.config.profile)
		return usage_error("--profile is missing for", command->name);
	if (command->needs_switch && !options.config.outlet_count)
		return usage_error("--outlet is missing for", command->name);
	if (command->run != run_check && optind + 1 < argc)
		return usage_error("too many arguments:", argv[optind + 1]);
	code = command->run(&options, argc - optind - 1, argv + optind + 1);
	pp_alive_agent_close(options.agent);
	if (options.record && fclose(options.record) != 0 && code == EXIT_DONE)
		code = EXIT_REFUSED;
	if (fflush(stdout) != 0 && code == EXIT_DONE)
		code = EXIT_REFUSED;
	return code;
}
