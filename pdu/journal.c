/* SPDX-License-Identifier: MIT */
#include "journal.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/clock.h"
#include "src/core/file.h"

#define ENTRY_BYTES_MAX 65536

enum form { TEXT, NUMBER, FLAG, COUNT, REAL };

static const struct {
	const char *key;
	enum form form;
	size_t offset;
} settings[] = {
#define C(member) offsetof(struct pp_pdu_config, member)
	{ "profile", TEXT, C(profile) },
	{ "url", TEXT, C(url) },
	{ "parameters", TEXT, C(parameters) },
	{ "identity", TEXT, C(identity) },
	{ "label", TEXT, C(label) },
	{ "credentials_file", TEXT, C(credentials_file) },
	{ "ca_file", TEXT, C(ca_file) },
	{ "pin", TEXT, C(pin) },
	{ "insecure", FLAG, C(insecure) },
	{ "state_dir", TEXT, C(state_dir) },
	{ "min_off_ms", NUMBER, C(min_off_ms) },
	{ "min_on_ms", NUMBER, C(min_on_ms) },
	{ "cycles_per_hour_max", COUNT, C(cycles_per_hour_max) },
	{ "cycles_total_max", COUNT, C(cycles_total_max) },
	{ "dut_host", TEXT, C(dut_host) },
	{ "wake", TEXT, C(wake) },
	{ "device_restore_ms", NUMBER, C(device_restore_ms) },
	{ "connect_timeout_ms", NUMBER, C(connect_timeout_ms) },
	{ "request_timeout_ms", NUMBER, C(request_timeout_ms) },
	{ "verify_timeout_ms", NUMBER, C(verify_timeout_ms) },
	{ "settle_ms", NUMBER, C(settle_ms) },
	{ "poll_ms", NUMBER, C(poll_ms) },
	{ "stagger_ms", NUMBER, C(stagger_ms) },
	{ "watts_period_ms", NUMBER, C(watts_period_ms) },
	{ "watts_stale_ms", NUMBER, C(watts_stale_ms) },
	{ "watts_off_max", REAL, C(watts_off_max) },
#undef C
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

json_t *pp_config_to_json(const struct pp_pdu_config *config)
{
	json_t *json = json_object(), *outlets = json_array();

	for (size_t i = 0; i < SETTINGS; i++) {
		const void *slot = (const char *)config + settings[i].offset;
		json_t *value = NULL;

		switch (settings[i].form) {
		case TEXT:
			value = *(char *const *)slot ? json_string(*(char *const *)slot) : NULL;
			break;
		case NUMBER:
			value = json_integer(*(const int64_t *)slot);
			break;
		case COUNT:
			value = json_integer(*(const int *)slot);
			break;
		case FLAG:
			value = json_boolean(*(const bool *)slot);
			break;
		case REAL:
			value = json_real(*(const double *)slot);
			break;
		}
		if (value)
			json_object_set_new(json, settings[i].key, value);
	}
	for (int i = 0; i < config->outlet_count; i++)
		json_array_append_new(outlets, json_string(config->outlets[i]));
	json_object_set_new(json, "outlets", outlets);
	return json;
}

int pp_config_from_json(const json_t *json, struct pp_pdu_config *config, struct pp_error *err)
{
	json_t *outlets = json_object_get(json, "outlets"), *outlet;
	size_t n;

	memset(config, 0, sizeof(*config));
	for (size_t i = 0; i < SETTINGS; i++) {
		void *slot = (char *)config + settings[i].offset;
		const json_t *value = json_object_get(json, settings[i].key);

		if (!value)
			continue;
		switch (settings[i].form) {
		case TEXT:
			*(const char **)slot = json_string_value(value);
			break;
		case NUMBER:
			*(int64_t *)slot = json_integer_value(value);
			break;
		case COUNT:
			*(int *)slot = (int)json_integer_value(value);
			break;
		case FLAG:
			*(bool *)slot = json_is_true(value);
			break;
		case REAL:
			*(double *)slot = json_number_value(value);
			break;
		}
	}
	json_array_foreach(outlets, n, outlet) {
		if (n == PP_PDU_OUTLETS_MAX || !json_is_string(outlet))
			return pp_fail(err, PP_ERR_EVIDENCE, "the outlets are not a list of names");
		config->outlets[config->outlet_count++] = json_string_value(outlet);
	}
	if (!config->profile || !config->outlet_count)
		return pp_fail(err, PP_ERR_EVIDENCE, "profile or outlet is missing");
	return 0;
}

struct pp_journal_owner pp_journal_me(void)
{
	return (struct pp_journal_owner){ getpid(), pp_state_process_start(getpid()) };
}

static int entry_path(const char *dir, const char *host_key, const char *outlet, char *out,
	size_t bytes, struct pp_error *err)
{
	char key[1024];

	snprintf(key, sizeof(key), "%s_%s", host_key, outlet);
	return pp_state_path(dir, "journal", key, ".json", out, bytes, err);
}

static enum pp_journal_state classify(const json_t *json, struct pp_journal_owner owner)
{
	pid_t pid = (pid_t)json_integer_value(json_object_get(json, "pid"));
	unsigned long long start =
		(unsigned long long)json_integer_value(json_object_get(json, "pid_start"));
	const char *boot_id = json_string_value(json_object_get(json, "boot_id"));
	const char *must_be = json_string_value(json_object_get(json, "must_be"));
	char now[PP_BOOT_ID_BYTES];

	if (json_is_string(json_object_get(json, "restored_by")))
		return PP_JOURNAL_RESTORED;
	if (!must_be || strcmp(must_be, "on") != 0 || !boot_id)
		return PP_JOURNAL_DAMAGED;
	pp_state_boot_id(now);
	if (strcmp(now, boot_id) == 0 && pid == owner.pid && start == owner.start)
		return PP_JOURNAL_MINE;
	return pp_state_alive(pid, start, boot_id) ? PP_JOURNAL_OTHERS : PP_JOURNAL_ORPHAN;
}

static int read_entry(struct pp_journal_owner owner, struct pp_journal_entry *entry,
	struct pp_error *err)
{
	struct pp_buf buf;

	if (access(entry->path, F_OK) != 0 && errno == ENOENT)
		return 0;
	pp_buf_init(&buf, ENTRY_BYTES_MAX);
	if (pp_file_read(entry->path, &buf, err) != 0) {
		pp_buf_release(&buf);
		return -1;
	}
	entry->json = json_loadb(buf.data ? buf.data : "", buf.bytes, 0, NULL);
	pp_buf_release(&buf);
	entry->state = PP_JOURNAL_DAMAGED;
	if (!entry->json || pp_config_from_json(json_object_get(entry->json, "config"),
	    &entry->config, NULL) != 0)
		return 0;
	entry->state = classify(entry->json, owner);
	entry->by = json_string_value(json_object_get(entry->json, "restored_by"));
	entry->boot_id = json_string_value(json_object_get(entry->json, "restored_boot_id"));
	entry->t_on_mono_ns = json_integer_value(json_object_get(entry->json, "t_on_mono_ns"));
	entry->t_on_boot_ns = json_integer_value(json_object_get(entry->json, "t_on_boot_ns"));
	return 0;
}

int pp_journal_read(const char *dir, const char *host_key, const char *outlet,
	struct pp_journal_owner owner, struct pp_journal_entry *entry, struct pp_error *err)
{
	memset(entry, 0, sizeof(*entry));
	if (entry_path(dir, host_key, outlet, entry->path, sizeof(entry->path), err) != 0)
		return -1;
	return read_entry(owner, entry, err);
}

void pp_journal_release(struct pp_journal_entry *entry)
{
	json_decref(entry->json);
	entry->json = NULL;
}

static int save(const char *path, const json_t *json, struct pp_error *err)
{
	char *text = json_dumps(json, JSON_INDENT(2));
	int rc;

	if (!text)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	rc = pp_file_write(path, text, strlen(text), 0600, err);
	free(text);
	return rc;
}

int pp_journal_begin(const char *dir, const char *host_key, const char *outlet,
	const struct pp_pdu_config *config, struct pp_error *err)
{
	struct pp_journal_owner me = pp_journal_me();
	struct pp_pdu_config one = *config;
	struct pp_journal_entry entry;
	char boot_id[PP_BOOT_ID_BYTES], wall[32];
	json_t *json;
	int rc;

	if (pp_journal_read(dir, host_key, outlet, me, &entry, err) != 0)
		return -1;
	pp_journal_release(&entry);
	if (entry.state == PP_JOURNAL_OTHERS)
		return pp_fail(err, PP_ERR_REFUSED, "outlet '%s' of '%s' is in use by another process",
			outlet, host_key);
	if (entry.state == PP_JOURNAL_ORPHAN || entry.state == PP_JOURNAL_DAMAGED)
		return pp_fail(err, PP_ERR_REFUSED, "the journal says that outlet '%s' of '%s' must be "
			"turned on first; run: plugpull pdu recover", outlet, host_key);
	one.outlets[0] = outlet;
	one.outlet_count = 1;
	pp_state_boot_id(boot_id);
	pp_clock_wall(wall, sizeof(wall));
	json = json_pack("{s:i, s:s, s:o, s:I, s:I, s:s, s:I, s:s}", "format", 1, "must_be", "on",
		"config", pp_config_to_json(&one), "pid", (json_int_t)me.pid, "pid_start",
		(json_int_t)me.start, "boot_id", boot_id, "t_mono_ns",
		(json_int_t)pp_clock_mono_ns(), "time", wall);
	if (!json)
		return pp_fail(err, PP_ERR_SYSTEM, "cannot make a journal entry");
	rc = save(entry.path, json, err);
	json_decref(json);
	return rc;
}

int pp_journal_restored(const char *dir, const char *host_key, const char *outlet, const char *by,
	int64_t t_on_mono_ns, struct pp_error *err)
{
	int64_t ago_ns = pp_clock_mono_ns() - t_on_mono_ns;
	struct pp_journal_entry entry;
	char boot_id[PP_BOOT_ID_BYTES];
	int rc;

	if (pp_journal_read(dir, host_key, outlet, pp_journal_me(), &entry, err) != 0)
		return -1;
	if (!entry.json) {
		if (entry.state == PP_JOURNAL_DAMAGED)
			return pp_fail(err, PP_ERR_EVIDENCE, "'%s' is damaged", entry.path);
		return 0;
	}
	pp_state_boot_id(boot_id);
	json_object_set_new(entry.json, "restored_by", json_string(by));
	json_object_set_new(entry.json, "restored_boot_id", json_string(boot_id));
	json_object_set_new(entry.json, "t_on_mono_ns", json_integer(t_on_mono_ns));
	json_object_set_new(entry.json, "t_on_boot_ns",
		json_integer(pp_clock_boot_ns() - ago_ns));
	rc = save(entry.path, entry.json, err);
	pp_journal_release(&entry);
	return rc;
}

int pp_journal_clear(const char *dir, const char *host_key, const char *outlet,
	struct pp_error *err)
{
	char path[PATH_MAX];

	if (entry_path(dir, host_key, outlet, path, sizeof(path), err) != 0)
		return -1;
	if (unlink(path) != 0)
		return errno == ENOENT ? 0 : pp_fail_os(err, errno, "cannot remove '%s'", path);
	return pp_file_sync_parent(path, err);
}

static int is_entry(const struct dirent *entry)
{
	size_t bytes = strlen(entry->d_name);

	return bytes > 5 && strcmp(entry->d_name + bytes - 5, ".json") == 0;
}

int pp_journal_each(const char *dir, void (*each)(void *arg, struct pp_journal_entry *entry),
	void *arg, struct pp_error *err)
{
	struct dirent **names;
	char folder[PATH_MAX];
	int count, rc = 0;

	snprintf(folder, sizeof(folder), "%s/journal", dir);
	count = scandir(folder, &names, is_entry, alphasort);
	if (count < 0)
		return errno == ENOENT ? 0 : pp_fail_os(err, errno, "cannot read '%s'", folder);
	for (int i = 0; i < count; i++) {
		struct pp_journal_entry entry = { .state = PP_JOURNAL_NONE };

		if (snprintf(entry.path, sizeof(entry.path), "%s/%s", folder, names[i]->d_name) >=
		    (int)sizeof(entry.path) || read_entry(pp_journal_me(), &entry, err) != 0)
			rc = -1;
		else if (entry.state != PP_JOURNAL_NONE)
			each(arg, &entry);
		pp_journal_release(&entry);
		free(names[i]);
	}
	free(names);
	return rc;
}
