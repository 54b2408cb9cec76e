/* SPDX-License-Identifier: MIT
 *
 * plugpull lab: a machine under test, its drives and its PDU on this computer, until told to stop.
 * A process of its own, so that it outlives a controller that is killed. Options and the
 * configuration file share one table of keys.
 */
#include <errno.h>
#include <getopt.h>
#include <ini.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cmd_lab.h"
#include "lab_keys.h"
#include "lab/lab.h"
#include "lab/rig.h"

#define AGENT_WORDS_MAX 32

struct options {
	struct pp_lab_config lab;
	struct pp_lab_drive drives[PP_RIG_DRIVES_MAX];
	const char *agent_words[AGENT_WORDS_MAX + 1];
	int agent_word_count;
	char *password;
	bool until_eof;
};

/* ---- drives ----------------------------------------------------------------------------- */

static struct pp_lab_drive *add_drive(struct options *o, const char *serial)
{
	struct pp_lab_drive *drive = &o->drives[o->lab.drive_count];

	if (o->lab.drive_count == PP_RIG_DRIVES_MAX || strlen(serial) >= sizeof(drive->serial))
		return NULL;
	*drive = pp_lab_drive_defaults;
	strcpy(drive->serial, serial);
	o->lab.drive_count++;
	return drive;
}

/* SERIAL[,key=value]... */
static int parse_drive(struct options *o, const char *text)
{
	char copy[1024], *save = NULL, *word;
	struct pp_lab_drive *drive;

	snprintf(copy, sizeof(copy), "%s", text);
	word = strtok_r(copy, ",", &save);
	drive = word ? add_drive(o, word) : NULL;
	while (drive && (word = strtok_r(NULL, ",", &save))) {
		char *equals = strchr(word, '=');

		if (!equals)
			return -1;
		*equals = '\0';
		if (pp_lab_drive_set(drive, word, equals + 1))
			return -1;
	}
	return drive ? 0 : -1;
}

/* ---- options ---------------------------------------------------------------------------- */

enum { OPT_CONFIG = 256, OPT_UNTIL_EOF, OPT_HELP };

static const struct {
	struct option option;
	const char *argument, *help;
} table[] = {
	{ { "drive", required_argument, NULL, 'd' }, "SERIAL[,KEY=VALUE]...",
		"a drive; keys: behaviour (honest, protected, ignores-flush, ignores-fua,\n"
		"      ...: all in plugpull-lab(1)), size, cache, destage (bytes/s), survive (%),\n"
		"      order (oldest, random), latency-us, block (512, 4096)" },
	{ { "seed", required_argument, NULL, 's' }, "N", "of all draws (default 1)" },
	{ { "rig", required_argument, NULL, 'r' }, "vm|loop",
		"QEMU, or namespaces of this kernel over loop devices (default vm)" },
	{ { "work-dir", required_argument, NULL, 'w' }, "DIR",
		"keep drive images and logs there (default: gone at the end)" },
	{ { "agent-port", required_argument, NULL, 'p' }, "PORT",
		"where the controller will listen for the agent (default 7333)" },
	{ { "agent-arg", required_argument, NULL, 'a' }, "WORD", "one more word for the agent" },
	{ { "key", required_argument, NULL, 'k' }, "FILE", "shared key (default: a new one)" },
	{ { "password-file", required_argument, NULL, 'P' }, "FILE",
		"of the PDU (default: a new password)" },
	{ { "control-socket", required_argument, NULL, 'c' }, "PATH", "for tests, see plugpull-lab(1)" },
	{ { "kernel", required_argument, NULL, 'K' }, "DIR",
		"vmlinuz and lib/modules (default: Debian's cloud kernel, downloaded once)" },
	{ { "accel", required_argument, NULL, 'A' }, "kvm|tcg", "(default: what works)" },
	{ { "dut", required_argument, NULL, 'D' }, "FILE", "plugpull-dut for the guest (rig loop: or plugpull-dut.exe, by Wine);\n"
		"      none: no agent" },
	{ { "guest-tool", required_argument, NULL, 'G' }, "FILE", "plugpull-lab-guest" },
	{ { "plugin", required_argument, NULL, 'L' }, "FILE", "plugpull-drive.so" },
	{ { "drive-tool", required_argument, NULL, 'T' }, "FILE", "plugpull-lab-drive" },
	{ { "config", required_argument, NULL, OPT_CONFIG }, "FILE",
		"the same as an INI file: [lab] with these names, [drive SERIAL] with keys" },
	{ { "until-eof", no_argument, NULL, OPT_UNTIL_EOF }, NULL, "stop when standard input ends too" },
	{ { "help", no_argument, NULL, OPT_HELP }, NULL, "print this, exit" },
};
#define OPTIONS (sizeof(table) / sizeof(table[0]))

static int help(void)
{
	printf("Usage: plugpull lab --drive SERIAL[,KEY=VALUE]... [OPTION]...\n"
		"A machine under test with drives and a PDU on this computer. Prints one JSON\n"
		"object that says where they are, then serves until SIGTERM or SIGINT. The outlet\n"
		"is off at first.\n\n");
	for (size_t i = 0; i < OPTIONS; i++)
		printf("  --%s%s%s\n      %s\n", table[i].option.name, table[i].argument ? " " : "",
			table[i].argument ? table[i].argument : "", table[i].help);
	return fflush(stdout) ? 2 : 0;
}

static int read_password(struct options *o, const char *path)
{
	char line[256];
	FILE *f = fopen(path, "re");

	if (!f)
		return -1;
	if (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\r\n")] = '\0';
		free(o->password);
		o->password = strdup(line);
		o->lab.password = o->password;
	}
	fclose(f);
	return o->lab.password ? 0 : -1;
}

/* value must live as long as the options. */
static int set_option(struct options *o, int c, const char *value)
{
	uint64_t n = 0;

	switch (c) {
	case 'd': return parse_drive(o, value);
	case 's': return pp_lab_number(value, &o->lab.seed);
	case 'r': o->lab.rig = value; return pp_rig_kind_exists(value) ? 0 : -1;
	case 'w': o->lab.work_dir = value; return 0;
	case 'p':
		if (pp_lab_number(value, &n) || n < 1 || n > 65535)
			return -1;
		o->lab.agent_port = (int)n;
		return 0;
	case 'a':
		if (o->agent_word_count == AGENT_WORDS_MAX)
			return -1;
		o->agent_words[o->agent_word_count++] = value;
		return 0;
	case 'k': o->lab.key_file = value; return 0;
	case 'P': return read_password(o, value);
	case 'c': o->lab.control_socket = value; return 0;
	case 'K': o->lab.kernel_dir = value; return 0;
	case 'A': o->lab.accel = value; return 0;
	case 'D': o->lab.dut = value; return 0;
	case 'G': o->lab.guest_tool = value; return 0;
	case 'L': o->lab.plugin = value; return 0;
	case 'T': o->lab.drive_tool = value; return 0;
	case OPT_UNTIL_EOF: o->until_eof = true; return 0;
	default: return -1;
	}
}

static int on_ini(void *ctx, const char *section, const char *name, const char *value)
{
	struct options *o = ctx;
	struct pp_lab_drive *drive = NULL;
	char *kept;

	if (!strncmp(section, "drive ", 6)) {
		for (int i = 0; i < o->lab.drive_count; i++)
			if (!strcmp(o->drives[i].serial, section + 6))
				drive = &o->drives[i];
		if (!drive)
			drive = add_drive(o, section + 6);
		return drive && !pp_lab_drive_set(drive, name, value);
	}
	for (size_t i = 0; !strcmp(section, "lab") && i < OPTIONS; i++)
		if (!strcmp(table[i].option.name, name) && table[i].argument
		    && table[i].option.val != OPT_CONFIG) {
			kept = strdup(value); /* for the life of the process */
			return kept && !set_option(o, table[i].option.val, kept);
		}
	return 0;
}

/* -1: go on; else the exit status. */
static int parse(struct options *o, int argc, char **argv)
{
	struct option options[OPTIONS + 1] = { 0 };
	int c, line;

	for (size_t i = 0; i < OPTIONS; i++)
		options[i] = table[i].option;
	optind = 1;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == '?') {
			fprintf(stderr, "Try 'plugpull lab --help'.\n");
			return 2;
		}
		if (c == OPT_HELP)
			return help();
		if (c == OPT_CONFIG) {
			line = ini_parse(optarg, on_ini, o);
			if (line) {
				fprintf(stderr, "plugpull lab: cannot use '%s', line %d\n", optarg, line);
				return 2;
			}
		} else if (set_option(o, c, optarg)) {
			fprintf(stderr, "plugpull lab: cannot use '%s'\nTry 'plugpull lab --help'.\n", optarg);
			return 2;
		}
	}
	if (optind < argc || !o->lab.drive_count) {
		fprintf(stderr, "plugpull lab: %s%s\nTry 'plugpull lab --help'.\n",
			optind < argc ? "unexpected " : "no --drive given", optind < argc ? argv[optind] : "");
		return 2;
	}
	return -1;
}

/* ---- serve ------------------------------------------------------------------------------ */

static void talk(const char *text)
{
	fprintf(stderr, "plugpull lab: %s\n", text);
}

static int announce(const struct pp_lab_info *info)
{
	json_t *body = json_pack("{s:i, s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:s}", "format", 1, "pdu_url",
		info->pdu_url, "pdu_id", info->pdu_id, "password_file", info->password_file,
		"listen_address", info->listen_address, "listen_port", info->listen_port, "key_file",
		info->key_file, "control_socket", info->control_socket, "accel", info->accel);
	int rc = body ? json_dumpf(body, stdout, 0) : -1;

	json_decref(body);
	return rc || putchar('\n') == EOF || fflush(stdout) ? -1 : 0;
}

/* Until a signal of the set, or the end of standard input where that counts. */
static void wait_for_end(int signals, bool until_eof)
{
	struct pollfd p[2] = { { .fd = signals, .events = POLLIN },
		{ .fd = until_eof ? STDIN_FILENO : -1, .events = POLLIN } };
	char c[256];

	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return;
		if (p[0].revents || (p[1].revents && read(STDIN_FILENO, c, sizeof(c)) <= 0))
			return;
	}
}

static int serve(struct options *o)
{
	struct pp_lab_info info;
	struct pp_error err = { 0 };
	struct pp_lab *lab;
	sigset_t set;
	int signals, status = 0;

	/* Before any thread starts, so that they all have it blocked and only we see it. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (signals < 0) {
		fprintf(stderr, "plugpull lab: cannot wait for signals: %s\n", strerror(errno));
		return 2;
	}
	lab = pp_lab_open(&o->lab, &info, &err);
	if (!lab) {
		fprintf(stderr, "plugpull lab: %s\n", err.text);
		close(signals);
		return 2;
	}
	if (announce(&info)) {
		fprintf(stderr, "plugpull lab: cannot write to standard output\n");
		status = 2;
	} else {
		wait_for_end(signals, o->until_eof);
	}
	pp_lab_close(lab);
	close(signals);
	return status;
}

/* A part that was not named is looked for beside this program; "none" is for a machine without an
 * agent. */
static int find_part(const char **part, const char *name, char *path, size_t bytes)
{
	struct pp_error err = { 0 };

	if (*part)
		return 0;
	if (pp_lab_find_part(name, path, bytes, &err)) {
		fprintf(stderr, "plugpull lab: %s\n", err.text);
		return -1;
	}
	*part = path;
	return 0;
}

int pp_cmd_lab(int argc, char **argv)
{
	static char dut[4096 + 64], guest_tool[4096 + 64], front[4096 + 64];
	static struct options o;
	int status;
	bool loop;

	o = (struct options){ .lab = { .rig = "vm", .seed = 1, .talk = talk } };
	o.lab.drives = o.drives;
	o.lab.agent_words = o.agent_words;
	status = parse(&o, argc, argv);
	loop = !strcmp(o.lab.rig, "loop");
	if (status < 0 && (find_part(&o.lab.dut, "plugpull-dut", dut, sizeof(dut))
		    || find_part(&o.lab.guest_tool, "plugpull-lab-guest", guest_tool, sizeof(guest_tool))
		    || find_part(loop ? &o.lab.drive_tool : &o.lab.plugin,
			    loop ? "plugpull-lab-drive" : "plugpull-drive.so", front, sizeof(front))))
		status = 2;
	if (status < 0) {
		if (!strcmp(o.lab.dut, "none"))
			o.lab.dut = NULL;
		status = serve(&o);
	}
	free(o.password);
	return status;
}
