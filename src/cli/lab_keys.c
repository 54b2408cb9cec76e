/* SPDX-License-Identifier: MIT */
#include "lab_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/file.h"
#include "src/core/text.h"
#include "src/lab/rig.h"

const struct pp_lab_drive pp_lab_drive_defaults = { .behaviour = "honest", .size_bytes = 512 << 20,
	.cache_bytes = 8 << 20, .destage_bytes_per_s = 4 << 20, .survive_pct = 50, .block_bytes = 512 };

int pp_lab_number(const char *text, uint64_t *out)
{
	const char *unit;
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (end == text || errno || text[0] == '-')
		return -1;
	for (unit = "KMG"; *end && *unit; unit++) {
		*out *= 1024;
		if (*unit == *end)
			return end[1] ? -1 : 0;
	}
	return *end ? -1 : 0;
}

int pp_lab_drive_set(struct pp_lab_drive *drive, const char *key, const char *value)
{
	uint64_t n = 0;

	if (strcmp(key, "behaviour") == 0) {
		pp_text_copy(drive->behaviour, sizeof(drive->behaviour), value);
		return 0;
	}
	if (strcmp(key, "order") == 0) {
		drive->random_order = strcmp(value, "random") == 0;
		return drive->random_order || strcmp(value, "oldest") == 0 ? 0 : -1;
	}
	if (pp_lab_number(value, &n) != 0)
		return -1;
	if (strcmp(key, "size") == 0)
		drive->size_bytes = n;
	else if (strcmp(key, "cache") == 0)
		drive->cache_bytes = n;
	else if (strcmp(key, "destage") == 0)
		drive->destage_bytes_per_s = n;
	else if (strcmp(key, "survive") == 0)
		drive->survive_pct = (unsigned)n;
	else if (strcmp(key, "latency-us") == 0)
		drive->latency_us = (unsigned)n;
	else if (strcmp(key, "block") == 0)
		drive->block_bytes = (int)n;
	else
		return -1;
	return 0;
}

static int set_all(struct pp_lab_of_plan *lab, const struct pp_plan *plan, const char *key,
	const char *value)
{
	const char *dot = strchr(key, '.');
	char name[64];
	uint32_t i;
	int rc = -1;

	pp_text_copy(name, sizeof(name), key);
	if (dot)
		name[dot - key] = '\0';
	for (i = 0; i < plan->drives; i++)
		if (!dot || strcmp(plan->drive[i].name, dot + 1) == 0) {
			rc = pp_lab_drive_set(&lab->drives[i], name, value);
			if (rc != 0)
				break;
		}
	return rc;
}

static int set_key(struct pp_lab_of_plan *lab, const struct pp_plan *plan, const char *key,
	const char *value)
{
	if (strcmp(key, "rig") == 0) {
		pp_text_copy(lab->rig, sizeof(lab->rig), value);
		return pp_rig_kind_exists(value) ? 0 : -1;
	}
	if (strcmp(key, "accel") == 0) {
		pp_text_copy(lab->accel, sizeof(lab->accel), value);
		lab->config.accel = lab->accel;
		return strcmp(value, "kvm") == 0 || strcmp(value, "tcg") == 0 ? 0 : -1;
	}
	if (strcmp(key, "kernel") == 0) {
		pp_text_copy(lab->kernel, sizeof(lab->kernel), value);
		lab->config.kernel_dir = lab->kernel;
		return 0;
	}
	if (strcmp(key, "agent") == 0) {
		pp_text_copy(lab->agent, sizeof(lab->agent), value);
		return strcmp(value, "linux") == 0 || strcmp(value, "windows") == 0 ? 0 : -1;
	}
	if (strcmp(key, "seed") == 0)
		return pp_lab_number(value, &lab->config.seed);
	return set_all(lab, plan, key, value);
}

/* What each key takes, for a person whose word was not. */
static const struct {
	const char *key, *takes;
	bool of_drive; /* also KEY.DRIVE */
} takes[] = {
	{ "rig", "vm or loop", false }, { "accel", "kvm or tcg", false },
	{ "kernel", "a folder", false }, { "agent", "linux or windows", false },
	{ "seed", "a number", false }, { "behaviour", "a name of plugpull-lab(1)", true },
	{ "order", "oldest or random", true },
	{ "size", "bytes, such as 512M", true }, { "cache", "bytes, such as 8M", true },
	{ "destage", "bytes a second, such as 4M", true }, { "survive", "a percentage", true },
	{ "latency-us", "a number", true }, { "block", "512 or 4096", true },
};

static void explain(const struct pp_plan *plan, const char *key, char *out, size_t bytes)
{
	size_t name = strcspn(key, "."), used = 0, i;
	uint32_t d;

	for (i = 0; i < sizeof(takes) / sizeof(takes[0]); i++)
		if (strlen(takes[i].key) == name && strncmp(takes[i].key, key, name) == 0)
			break;
	if (i == sizeof(takes) / sizeof(takes[0])) {
		used = (size_t)snprintf(out, bytes, "no such key; there are ");
		for (i = 0; i < sizeof(takes) / sizeof(takes[0]); i++)
			used += (size_t)snprintf(out + used, bytes - used, "%s%s", i ? ", " : "",
				takes[i].key);
		return;
	}
	for (d = 0; key[name] && d < plan->drives; d++)
		if (strcmp(plan->drive[d].name, key + name + 1) == 0)
			break;
	if (key[name] && !takes[i].of_drive)
		snprintf(out, bytes, "%s is the lab's, not a drive's", takes[i].key);
	else if (key[name] && d == plan->drives)
		snprintf(out, bytes, "no [drive %s]", key + name + 1);
	else
		snprintf(out, bytes, "%s takes %s", takes[i].key, takes[i].takes);
}

int pp_lab_of_plan(struct pp_lab_of_plan *lab, const struct pp_plan *plan, const char *file,
	struct pp_error *err)
{
	char why[300];
	bool windows;
	uint32_t i;

	memset(lab, 0, sizeof(*lab));
	strcpy(lab->rig, "vm");
	lab->config.rig = lab->rig;
	lab->config.seed = 1;
	lab->config.drives = lab->drives;
	lab->config.drive_count = (int)plan->drives;
	lab->words[0] = "--name";
	lab->words[1] = "lab";
	lab->config.agent_words = lab->words;
	lab->config.dut = lab->dut;
	lab->config.guest_tool = lab->guest_tool;
	lab->config.plugin = lab->plugin;
	lab->config.drive_tool = lab->drive_tool;
	for (i = 0; i < plan->drives; i++) {
		lab->drives[i] = pp_lab_drive_defaults;
		if (strlen(plan->drive[i].serial) >= sizeof(lab->drives[i].serial))
			return pp_fail(err, PP_ERR_USAGE, "%s: serial of [drive %s] is too long for the lab",
				file, plan->drive[i].name);
		strcpy(lab->drives[i].serial, plan->drive[i].serial);
	}
	for (i = 0; i < plan->lab_keys; i++)
		if (set_key(lab, plan, plan->lab[i].key, plan->lab[i].value) != 0) {
			explain(plan, plan->lab[i].key, why, sizeof(why));
			return pp_fail(err, PP_ERR_USAGE, "%s:%d: [lab] cannot use '%s = %s': %s", file,
				plan->lab[i].line, plan->lab[i].key, plan->lab[i].value, why);
		}
	for (i = 0; i < plan->drives; i++)
		if (pp_lab_drive_check(&lab->drives[i], err) != 0)
			return pp_fail_within(err, "%s: [lab], drive '%s'", file, plan->drive[i].name);
	windows = strcmp(lab->agent, "windows") == 0;
	if (windows && strcmp(lab->rig, "loop") != 0)
		return pp_fail(err, PP_ERR_USAGE, "%s: [lab] agent = windows needs rig = loop", file);
	if (pp_lab_find_part(windows ? "plugpull-dut.exe" : "plugpull-dut", lab->dut, sizeof(lab->dut), err) != 0 ||
		pp_lab_find_part("plugpull-lab-guest", lab->guest_tool, sizeof(lab->guest_tool), err) != 0)
		return -1;
	if (strcmp(lab->rig, "loop") == 0)
		return pp_lab_find_part("plugpull-lab-drive", lab->drive_tool, sizeof(lab->drive_tool), err);
	return pp_lab_find_part("plugpull-drive.so", lab->plugin, sizeof(lab->plugin), err);
}

/* The lab's file holds the bare password; the power switch's client reads "password = ...". */
static int write_credentials(const struct pp_plan *plan, const char *password_file,
	struct pp_error *err)
{
	struct pp_buf bare, line;
	int rc;

	pp_buf_init(&bare, 4096);
	pp_buf_init(&line, 8192);
	rc = pp_file_read(password_file, &bare, err);
	if (rc == 0) {
		pp_buf_addf(&line, "password = %s", bare.data ? bare.data : "");
		rc = pp_file_write(plan->pdu_credentials, line.data, line.bytes, 0600, err);
	}
	pp_buf_release(&bare);
	pp_buf_release(&line);
	return rc;
}

int pp_lab_fill_plan(struct pp_plan *plan, const struct pp_lab_info *info, struct pp_error *err)
{
	if (!pp_text_format(plan->listen_address, sizeof(plan->listen_address), "%s",
			info->listen_address) ||
		!pp_text_format(plan->key_file, sizeof(plan->key_file), "%s", info->key_file) ||
		!pp_text_format(plan->pdu_url, sizeof(plan->pdu_url), "%s", info->pdu_url) ||
		!pp_text_format(plan->pdu_credentials, sizeof(plan->pdu_credentials),
			"%s/pdu.credentials", info->run_dir) ||
		!pp_text_format(plan->pdu_identity, sizeof(plan->pdu_identity), "%s", info->pdu_id) ||
		!pp_text_format(plan->pdu_state_dir, sizeof(plan->pdu_state_dir), "%s/pdu",
			info->run_dir))
		return pp_fail(err, PP_ERR_SYSTEM, "a path of the lab is too long");
	plan->listen_port = (uint16_t)info->listen_port;
	if (!plan->poll_ms)
		plan->poll_ms = 100; /* no relay that bounces, no device that is slow */
	strcpy(plan->pdu_profile, "shelly-gen2");
	strcpy(plan->outlet[0], "1");
	plan->outlets = 1;
	plan->unproven = true; /* wired by the lab itself, new each time */
	if (write_credentials(plan, info->password_file, err) != 0)
		return -1;
	return pp_mkdirs(plan->pdu_state_dir, err);
}
