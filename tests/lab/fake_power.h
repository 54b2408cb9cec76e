/* SPDX-License-Identifier: MIT
 *
 * What the fake machine and its power switch agree on by files: flags that make trouble, the power,
 * and the switch itself (profile `exec`). fake_machine.c says which flags there are.
 */
#ifndef PP_TESTS_FAKE_POWER_H
#define PP_TESTS_FAKE_POWER_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/clock.h"

static const char *fake_dir;

/* ---- flags ------------------------------------------------------------------------------------- */

static bool read_text(const char *name, char *text, size_t bytes)
{
	char path[512];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fake_dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, bytes - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return true;
}

/* -1: not there; 0: there, empty; else its number. */
static int flag(const char *name)
{
	char path[96], text[32];

	snprintf(path, sizeof(path), "flag/%s", name);
	return read_text(path, text, sizeof(text)) ? atoi(text) : -1;
}

/* True if this trouble is wanted now; a number counts down. */
static bool take(const char *name)
{
	int left = flag(name);
	char path[512];
	FILE *f;

	if (left < 0)
		return false;
	if (left == 0)
		return true;
	snprintf(path, sizeof(path), "%s/flag/%s", fake_dir, name);
	if (left == 1)
		return unlink(path) == 0;
	f = fopen(path, "we");
	if (f) {
		fprintf(f, "%d", left - 1);
		fclose(f);
	}
	return true;
}

static void raise_flag(const char *name, bool up)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/flag/%s", fake_dir, name);
	if (!up) {
		unlink(path);
		return;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
}

static bool power_is_on(void)
{
	char text[32];

	return read_text("power", text, sizeof(text)) && strncmp(text, "on", 2) == 0;
}

/* ---- the power switch --------------------------------------------------------------------------- */

static int set_power(const char *word)
{
	char path[512], tmp[544];
	FILE *f;

	snprintf(path, sizeof(path), "%s/power", fake_dir);
	snprintf(tmp, sizeof(tmp), "%s.%d", path, (int)getpid());
	f = fopen(tmp, "we");
	if (!f || fprintf(f, "%s\n", word) < 0 || fclose(f) != 0 || rename(tmp, path) != 0)
		return 1;
	return 0;
}

/* Ends with whoever asked: a request that outlived its controller must not switch anything. */
static void hold(const char *name)
{
	pid_t asker = getppid();

	while (flag(name) >= 0 && getppid() == asker)
		pp_clock_sleep_ms(2);
	if (getppid() != asker)
		exit(1);
}

/* With flag "meter" the answer is JSON and has watts: "machine-off" is raised by an orderly shutdown. */
static int show_state(const char *state)
{
	if (flag("meter") >= 0)
		printf("{\"state\": \"%s\", \"watts\": %s}\n", state, power_is_on() &&
			flag("machine-off") < 0 && flag("meter-dead") < 0 ? "42.0" : "0.0");
	else
		puts(state);
	return fflush(stdout) == 0 ? 0 : 1;
}

static int pdu(const char *word)
{
	bool off = strcmp(word, "off") == 0;
	char told[32] = "pdu-told-off";

	if (strcmp(word, "status") == 0) {
		bool meant = flag(told) >= 0 && flag("in-run") >= 0;

		if (meant && flag("pdu-pending") >= 0)
			return show_state("pending");
		if (meant && flag("pdu-false-off") >= 0)
			return show_state("off");
		return show_state(power_is_on() ? "on" : "off");
	}
	if (off)
		raise_flag("pdu-asked-off", true);
	if (!off)
		hold("hold-on");
	raise_flag(told, off);
	if (off && flag("in-run") >= 0 && (flag("pdu-lies") >= 0 || flag("pdu-false-off") >= 0 ||
		flag("pdu-pending") >= 0))
		return 0;
	if (set_power(word) != 0)
		return 1;
	if (off)
		hold("hold-off");
	return 0;
}

#endif
