/* SPDX-License-Identifier: MIT
 *
 * plugpull policy show|set|restore: the write cache of a drive and the flushing of it. What was before
 * the first change goes to a file that survives a power cut before anything is changed, and stays there
 * until it is put back.
 */
#include "cmd_policy.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "identify_parts.h"
#include "option_table.h"
#include "src/core/file.h"
#include "src/core/kv.h"
#include "src/core/policy.h"
#include "src/core/text.h"

#define STATE_BYTES_MAX 65536
#define PATH_BYTES      1024

struct options {
	const char *act, *target, *state;
	enum pp_truth cache, flushing; /* unknown: not asked for */
};

static int usage_error(const char *what, const char *subject)
{
	return pp_usage_error("policy", what, subject);
}

static int failed(const struct pp_error *err)
{
	fprintf(stderr, "%s policy: %s\n", pp_program_name(), err->text);
	return 2;
}

static bool take_switch(const char *text, enum pp_truth *to)
{
	if (strcmp(text, "on") == 0)
		*to = PP_TRUTH_YES;
	else if (strcmp(text, "off") == 0)
		*to = PP_TRUTH_NO;
	else
		return false;
	return true;
}

static int take(void *ctx, int letter, const char *argument)
{
	struct options *o = ctx;

	if (letter == 's')
		o->state = argument;
	if ((letter == 'c' && !take_switch(argument, &o->cache)) ||
		(letter == 'f' && !take_switch(argument, &o->flushing)))
		return usage_error("expected on or off, not", argument);
	return -1;
}

static const struct pp_option_row option_rows[] = {
	{"write-cache", 'c', "on|off", "set: the drive's own write cache"},
	{"buffer-flushing", 'f', "on|off", "set: off drops every flush"},
	{"state", 's', "FILE", "where the state before is kept"},
};

static const struct pp_option_table table = {
	.command = "policy",
	.usage = "Usage: plugpull policy show TARGET\n"
		"       plugpull policy set TARGET [--write-cache on|off]\n"
		"                                  [--buffer-flushing on|off]\n"
		"       plugpull policy restore TARGET\n"
		"The write-cache policy of the drive beneath TARGET (a file, folder, device, or a\n"
		"drive's serial): what the drive says, what the system believes, and what a sync\n"
		"then does. set keeps what was before in a file; restore puts it back.\n"
		"Not while a run writes to the drive: asking flushes it on Windows.\n",
	.status = "Exit status: 0 done, or as it was set; 2 could not, or not as it was set.",
	.columns = 25,
	.rows = option_rows,
	.count = sizeof(option_rows) / sizeof(option_rows[0]),
	.take = take,
};

/* -1: go on; else the exit status. */
static int take_options(int argc, char **argv, struct options *o)
{
	int status = pp_option_table_read(&table, argc, argv, o);

	if (status >= 0)
		return status;
	if (argc - optind < 2)
		return usage_error("expected show, set or restore, and a target", NULL);
	o->act = argv[optind];
	o->target = argv[optind + 1];
	if (argc - optind > 2)
		return usage_error("takes one target; the policy is said by --write-cache and "
			"--buffer-flushing. There is a second", argv[optind + 2]);
	return -1;
}

/* ---- the drive ---------------------------------------------------------------------------- */

static int find_layers(const struct options *o, struct pp_stack *stack, struct pp_error *err)
{
	if (identify_find_stack(&pp_sysroot_live, o->target, stack, err) != 0)
		return -1;
	for (size_t i = 0; i < stack->layer_count; i++)
		if (stack->layers[i].whole)
			return 0;
	return pp_fail(err, PP_ERR_UNSUPPORTED, "no drive of this machine can be seen beneath '%s'%s%s",
		o->target, stack->incomplete_text[0] ? ": " : "", stack->incomplete_text);
}

/* One drive: the device that is named, or the only one beneath. */
static int find_drive(const struct options *o, struct pp_drive_info *drive, struct pp_error *err)
{
	const struct pp_stack_layer *found = NULL;
	struct pp_stack stack;
	size_t count = 0;

	if (find_layers(o, &stack, err) != 0)
		return -1;
	for (size_t i = 0; i < stack.layer_count; i++)
		if (stack.layers[i].whole && count++ == 0)
			found = &stack.layers[i];
	if (count > 1 && (stack.fs_type[0] || !stack.layers[0].whole))
		return pp_fail(err, PP_ERR_USAGE, "several devices are beneath '%s': name the one that is "
			"meant, such as '%s'", o->target, found->name);
	return pp_drive_read(&pp_sysroot_live, found->name, drive, err);
}

/* ---- the state file ----------------------------------------------------------------------- */

/* /var/lib or ProgramData, by the drive's name. */
static int state_path(const struct options *o, const struct pp_drive_info *drive, char *out,
	size_t out_bytes, struct pp_error *err)
{
	const char *id = drive->serial[0] ? drive->serial : drive->wwn[0] ? drive->wwn : drive->name;
	const char *data = getenv("ProgramData");
	char name[PP_DRIVE_SERIAL_BYTES];
	bool fits;

	if (o->state) {
		fits = pp_text_format(out, out_bytes, "%s", o->state);
	} else {
		pp_drive_folder_name(id, name, sizeof(name));
		fits = pp_text_format(out, out_bytes, "%s/plugpull/policy-%s.state",
			data && data[0] ? data : "/var/lib", name);
	}
	return fits ? 0 : pp_fail(err, PP_ERR_USAGE, "the name of the state file is too long");
}

/* 1: read; 0: there is none; -1 */
static int load_state(const char *path, struct pp_policy_saved *saved, struct pp_error *err)
{
	struct pp_buf text;
	struct pp_kv kv;
	struct stat st;
	int rc;

	if (stat(path, &st) != 0 && errno == ENOENT)
		return 0;
	pp_buf_init(&text, STATE_BYTES_MAX);
	rc = pp_file_read(path, &text, err);
	if (rc == 0)
		rc = pp_kv_parse(&kv, text.data, text.bytes, err);
	pp_buf_release(&text);
	if (rc == 0) {
		rc = pp_policy_saved_get(&kv, saved, err);
		pp_kv_release(&kv);
	}
	return rc == 0 ? 1 : pp_fail_within(err, "the state file '%s' cannot be used", path);
}

static int write_state(const char *path, const struct pp_policy_saved *saved, struct pp_error *err)
{
	char folder[PATH_BYTES], *slash;
	struct pp_buf text;
	int rc;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (slash && slash != folder) {
		*slash = '\0';
		if (pp_mkdirs(folder, err) != 0)
			return -1;
	}
	pp_buf_init(&text, STATE_BYTES_MAX);
	pp_policy_saved_put(&text, saved);
	rc = text.failed ? pp_fail(err, PP_ERR_SYSTEM, "out of memory") :
		pp_file_write(path, text.data, text.bytes, 0600, err);
	pp_buf_release(&text);
	return rc;
}

static int remove_state(const char *path, struct pp_error *err)
{
	if (unlink(path) != 0)
		return pp_fail_os(err, errno, "cannot remove '%s'", path);
	return pp_file_sync_parent(path, err);
}

/* ---- show --------------------------------------------------------------------------------- */

static void print_policy(const struct pp_drive_info *drive, const struct pp_policy *p)
{
	const struct pp_policy_setting *is = pp_policy_setting_of(p);
	struct pp_buf words;
	char text[160];

	pp_policy_text(p, text, sizeof(text));
	printf("%s%s%s\n", drive->name, drive->serial[0] ? ", " : "", drive->serial);
	printf("  policy          %s%s%s\n", is ? is->name : "", is ? ": " : "none that has a name: ", text);
	printf("  the drive says  %s\n", p->drive_words);
	printf("  %-15s %s\n", strcmp(p->system, "windows") == 0 ? "Windows says" : "the kernel says",
		p->system_words);
	printf("  changeable      write cache: %s; buffer flushing: %s\n",
		pp_truth_name(p->cache_changeable), pp_truth_name(p->flushing_changeable));
	printf("  after a restart %s\n", p->lasts == PP_TRUTH_YES ? "as it is set" :
		p->lasts == PP_TRUTH_NO ? "not kept: set it again" : "perhaps not kept: look again");
	pp_buf_init(&words, STATE_BYTES_MAX);
	pp_policy_explain(p, &words);
	for (char *line = words.data ? strtok(words.data, "\n") : NULL; line; line = strtok(NULL, "\n"))
		printf("  %s\n", line);
	pp_buf_release(&words);
}

/* What it was set to and what it is now; 2 if they differ. */
static int compare(const char *path, const struct pp_policy_saved *saved, const struct pp_policy *p)
{
	const struct pp_policy_setting *wanted = pp_policy_setting_find(saved->wanted);
	char before[160];

	pp_policy_text(&saved->before, before, sizeof(before));
	printf("  before          %s (%s)\n", before, path);
	if (!wanted)
		return 0;
	if (pp_policy_matches(p, wanted)) {
		printf("  set to          %s, and so it is\n", saved->wanted);
		return 0;
	}
	if (p->when == PP_POLICY_REBOOT)
		printf("  set to          %s: restart the machine, or unplug the drive and plug it in again\n",
			saved->wanted);
	else
		printf("  WARNING         it was set to %s and came back different\n", saved->wanted);
	return 2;
}

/* first: of several devices, the one that a state file named by hand is about. */
static int show_drive(const struct options *o, const char *name, bool first)
{
	struct pp_policy_saved saved;
	struct pp_drive_info drive;
	struct pp_policy p;
	struct pp_error err;
	char path[PATH_BYTES];
	int rc;

	if (pp_drive_read(&pp_sysroot_live, name, &drive, &err) != 0 ||
		pp_policy_read(name, &p, &err) != 0 ||
		state_path(o, &drive, path, sizeof(path), &err) != 0)
		return failed(&err);
	print_policy(&drive, &p);
	rc = load_state(path, &saved, &err);
	if (rc < 0)
		return failed(&err);
	if (rc == 0)
		return 0;
	if (strcmp(saved.serial, drive.serial) != 0 || strcmp(saved.wwn, drive.wwn) != 0)
		return o->state && first ? usage_error("this state file is of another drive:", path) : 0;
	return compare(path, &saved, &p);
}

static int show(const struct options *o)
{
	struct pp_stack stack;
	struct pp_error err;
	bool first = true;
	int status = 0;

	if (find_layers(o, &stack, &err) != 0)
		return failed(&err);
	for (size_t i = 0; i < stack.layer_count; i++) {
		int one;

		if (!stack.layers[i].whole)
			continue;
		one = show_drive(o, stack.layers[i].name, first);
		first = false;
		status = one > status ? one : status;
	}
	return status;
}

/* ---- set and restore ---------------------------------------------------------------------- */

/* What is not asked for stays as it is. */
static const struct pp_policy_setting *wanted_setting(const struct options *o,
	const struct pp_policy *now)
{
	bool off = now->drive_cache == PP_CACHE_OFF || now->drive_cache == PP_CACHE_NONE;
	enum pp_truth cache = o->cache, flushing = o->flushing;

	if (cache == PP_TRUTH_UNKNOWN)
		cache = flushing == PP_TRUTH_NO || !off ? PP_TRUTH_YES : PP_TRUTH_NO;
	if (flushing == PP_TRUTH_UNKNOWN)
		flushing = cache == PP_TRUTH_YES && now->flushing == PP_TRUTH_NO && !off ? PP_TRUTH_NO :
			PP_TRUTH_YES;
	for (size_t i = 0; i < pp_policy_setting_count; i++)
		if (pp_policy_settings[i].write_cache == cache && pp_policy_settings[i].flushing == flushing)
			return &pp_policy_settings[i];
	return NULL;
}

static int print_result(const struct pp_drive_info *drive, const struct pp_policy_setting *setting,
	const char *path)
{
	struct pp_policy p;
	struct pp_error err;

	if (pp_policy_read(drive->name, &p, &err) != 0)
		return failed(&err);
	print_policy(drive, &p);
	if (!pp_policy_matches(&p, setting))
		printf("  now             stored as %s, not in force: restart the machine, or unplug the drive "
			"and plug it in again; then 'policy show'\n", setting->name);
	else if (p.lasts != PP_TRUTH_YES)
		printf("  now             in force until the machine restarts; then 'policy show', and set it "
			"again\n");
	else
		printf("  now             in force; 'policy show' after the next restart\n");
	printf("  to go back      plugpull policy restore %s (state: %s)\n", drive->name, path);
	return 0;
}

/* The state before the first change is the one that is kept. */
static int save_state(const char *path, const struct pp_drive_info *drive, const char *wanted,
	bool *is_new, struct pp_error *err)
{
	struct pp_policy_saved saved, old;
	int there = load_state(path, &old, err);

	if (there < 0)
		return -1;
	if (pp_policy_save(drive->name, &saved, err) != 0)
		return -1;
	*is_new = there == 0;
	if (there && (strcmp(old.serial, saved.serial) != 0 || strcmp(old.wwn, saved.wwn) != 0 ||
		strcmp(old.model, saved.model) != 0))
		return pp_fail(err, PP_ERR_REFUSED, "'%s' holds the state of another drive, '%s': name another "
			"file with --state", path, old.serial[0] ? old.serial : old.model);
	if (there)
		saved = old;
	snprintf(saved.wanted, sizeof(saved.wanted), "%s", wanted);
	return write_state(path, &saved, err);
}

static int set(const struct options *o)
{
	const struct pp_policy_setting *setting;
	struct pp_drive_info drive;
	struct pp_policy now;
	struct pp_error err, ignored;
	char path[PATH_BYTES];
	bool is_new = false;

	if (!o->cache && !o->flushing)
		return usage_error("name what to set: --write-cache, --buffer-flushing", NULL);
	if (find_drive(o, &drive, &err) != 0 || pp_policy_read(drive.name, &now, &err) != 0 ||
		state_path(o, &drive, path, sizeof(path), &err) != 0)
		return failed(&err);
	setting = wanted_setting(o, &now);
	if (!setting)
		return usage_error("with the write cache off there is nothing to flush: leave "
			"--buffer-flushing", NULL);
	if (save_state(path, &drive, setting->name, &is_new, &err) != 0)
		return failed(&err);
	if (pp_policy_set(drive.name, setting, NULL, &err) == 0)
		return print_result(&drive, setting, path);
	/* Nothing was changed: a file that says so would only puzzle. */
	if (is_new && (err.class == PP_ERR_UNSUPPORTED || err.class == PP_ERR_REFUSED))
		remove_state(path, &ignored);
	return failed(&err);
}

static int restore(const struct options *o)
{
	struct pp_policy_saved saved;
	struct pp_drive_info drive;
	struct pp_policy p;
	struct pp_error err;
	char path[PATH_BYTES];
	int rc;

	if (find_drive(o, &drive, &err) != 0 || state_path(o, &drive, path, sizeof(path), &err) != 0)
		return failed(&err);
	rc = load_state(path, &saved, &err);
	if (rc == 0)
		pp_fail(&err, PP_ERR_USAGE, "there is no saved state '%s': nothing was set from here, or "
			"--state named another file", path);
	if (rc <= 0 || pp_policy_restore(drive.name, &saved, &err) != 0 ||
		pp_policy_read(drive.name, &p, &err) != 0)
		return failed(&err);
	print_policy(&drive, &p);
	if (p.when == PP_POLICY_REBOOT) {
		printf("  now             stored, not in force: restart the machine, or unplug the drive and "
			"plug it in again\n");
		return 0;
	}
	printf("  now             as it was before\n");
	return remove_state(path, &err) == 0 ? 0 : failed(&err);
}

int pp_cmd_policy(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const struct options *);
		bool sets;
	} acts[] = {{"show", show, false}, {"set", set, true}, {"restore", restore, false}};
	struct options o = {.act = NULL};
	int status = take_options(argc, argv, &o);

	if (status >= 0)
		return status;
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		if (strcmp(acts[i].name, o.act) != 0)
			continue;
		if (!acts[i].sets && (o.cache || o.flushing))
			return usage_error("--write-cache and --buffer-flushing belong to 'policy set'", NULL);
		return acts[i].run(&o);
	}
	return usage_error("there is no act", o.act);
}
