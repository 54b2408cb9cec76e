/* SPDX-License-Identifier: MIT
 *
 * What holds of a policy on every system: names, comparison, words, the text form. What a system
 * reads and writes is in policy_linux.c and policy_win.c.
 */
#include "policy.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const truth_names[] = {
	[PP_TRUTH_UNKNOWN] = "unknown", [PP_TRUTH_NO] = "no", [PP_TRUTH_YES] = "yes",
};
static const char *const switch_names[] = {
	[PP_TRUTH_UNKNOWN] = "unknown", [PP_TRUTH_NO] = "off", [PP_TRUTH_YES] = "on",
};
static const char *const cache_names[] = {
	[PP_CACHE_UNKNOWN] = "unknown", [PP_CACHE_NONE] = "none", [PP_CACHE_OFF] = "off",
	[PP_CACHE_ON] = "on",
};
static const char *const when_names[] = {
	[PP_POLICY_NOW] = "now", [PP_POLICY_REBOOT] = "reboot",
};

const struct pp_policy_setting pp_policy_settings[] = {
	{"cache-on", PP_TRUTH_YES, PP_TRUTH_YES,
		"the drive's write cache is on, and a sync flushes it"},
	{"cache-off", PP_TRUTH_NO, PP_TRUTH_YES,
		"the drive's write cache is off: a write is done when it is on the medium"},
	{"flushing-off", PP_TRUTH_YES, PP_TRUTH_NO,
		"the drive's write cache is on, and the system drops every flush"},
};
const size_t pp_policy_setting_count = COUNT(pp_policy_settings);

const char *pp_truth_name(enum pp_truth truth)
{
	return truth_names[truth];
}

const char *pp_truth_switch(enum pp_truth truth)
{
	return switch_names[truth];
}

const struct pp_policy_setting *pp_policy_setting_find(const char *name)
{
	for (size_t i = 0; i < pp_policy_setting_count; i++)
		if (strcmp(pp_policy_settings[i].name, name) == 0)
			return &pp_policy_settings[i];
	return NULL;
}

/* Is the drive's cache as the setting wants it, by the best word there is? */
static bool cache_matches(const struct pp_policy *p, const struct pp_policy_setting *setting)
{
	if (setting->write_cache == PP_TRUTH_NO)
		return p->drive_cache == PP_CACHE_OFF || p->drive_cache == PP_CACHE_NONE;
	if (p->drive_cache != PP_CACHE_UNKNOWN)
		return p->drive_cache == PP_CACHE_ON;
	/* Where flushes are dropped the system's belief is the trick itself: it only has to be known. */
	return setting->flushing == PP_TRUTH_NO ? p->system_cache != PP_TRUTH_UNKNOWN :
		p->system_cache == PP_TRUTH_YES;
}

bool pp_policy_matches(const struct pp_policy *policy, const struct pp_policy_setting *setting)
{
	return policy->when == PP_POLICY_NOW && policy->flushing == setting->flushing &&
		cache_matches(policy, setting);
}

const struct pp_policy_setting *pp_policy_setting_of(const struct pp_policy *policy)
{
	for (size_t i = 0; i < pp_policy_setting_count; i++)
		if (pp_policy_matches(policy, &pp_policy_settings[i]))
			return &pp_policy_settings[i];
	return NULL;
}

void pp_policy_text(const struct pp_policy *policy, char *out, size_t out_bytes)
{
	const char *fua = policy->fua_sent == PP_TRUTH_YES ? "FUA sent" :
		policy->fua_sent == PP_TRUTH_NO ? "no FUA" : "FUA unknown";

	pp_text_format(out, out_bytes, "drive cache %s, buffer flushing %s, %s%s",
		cache_names[policy->drive_cache], pp_truth_switch(policy->flushing), fua,
		policy->when == PP_POLICY_REBOOT ? ", after a restart" : "");
}

/* ---- words -------------------------------------------------------------------------------- */

enum held { HELD_ON, HELD_OFF, HELD_UNKNOWN }; /* the drive's cache, for these words */

#define LINUX   "linux"
#define WINDOWS "windows"
#define ANY     PP_TRUTH_UNKNOWN

/* What the system does, and what that can break. A NULL system and an unknown truth match any. */
static const struct {
	const char *system;
	enum held cache;
	enum pp_truth flushing, fua;
	const char *does, *breaks;
} meanings[] = {
	{NULL, HELD_OFF, ANY, ANY,
		"No flush and no FUA is needed: a write is done when it is on the medium.",
		"Nothing can be lost from a cache that is off. A drive that says off and caches all the same "
		"breaks every method; only a cut shows that."},
	{LINUX, HELD_ON, PP_TRUTH_NO, ANY,
		"Linux drops every flush and every FUA on the way to the drive: fsync, fdatasync and O_DSYNC "
		"return as soon as the data is in the drive's cache.",
		"It can break every method, buffered and direct. Safe only if the drive's cache survives a "
		"power loss by itself."},
	{WINDOWS, HELD_ON, PP_TRUTH_NO, ANY,
		"Windows completes each flush at once without sending it, and does not set FUA on "
		"write-through writes.",
		"It can break every method: fsync (FlushFileBuffers), fdatasync, fsync_writethrough and "
		"open_datasync, buffered and direct. Safe only if the drive's cache survives a power loss by "
		"itself."},
	{LINUX, HELD_UNKNOWN, PP_TRUTH_NO, ANY,
		"Linux believes that there is no cache and sends neither flush nor FUA.",
		"If the drive does have a cache, and it was not possible to ask it, it can break every "
		"method."},
	{WINDOWS, HELD_UNKNOWN, PP_TRUTH_NO, ANY,
		"Windows completes each flush at once without sending it, and does not set FUA.",
		"If the drive's cache is on, and it was not possible to ask it, it can break every method."},
	{LINUX, HELD_ON, PP_TRUTH_YES, PP_TRUTH_YES,
		"fsync and fdatasync send a flush; a direct write with O_DSYNC goes as one FUA write, without "
		"a flush.",
		"A drive that ignores flushes breaks fsync and fdatasync; one that ignores FUA breaks "
		"open_datasync (direct) alone. Writes without a sync promise nothing."},
	{LINUX, HELD_ON, PP_TRUTH_YES, PP_TRUTH_NO,
		"Each sync, also that of O_DSYNC, sends a flush; FUA is not used.",
		"A drive that ignores flushes breaks every method. Writes without a sync promise nothing."},
	{WINDOWS, HELD_ON, PP_TRUTH_YES, PP_TRUTH_YES,
		"A flush is sent as SYNCHRONIZE CACHE; a write-through write carries FUA, and no flush follows "
		"it.",
		"A drive or driver that ignores FUA breaks open_datasync (FILE_FLAG_WRITE_THROUGH) alone; one "
		"that ignores flushes breaks fsync, fdatasync and fsync_writethrough."},
	{WINDOWS, HELD_ON, PP_TRUTH_YES, PP_TRUTH_NO,
		"A flush is sent as SYNCHRONIZE CACHE; this drive takes no FUA, so a write-through write "
		"stays in its cache and no flush follows it.",
		"It breaks open_datasync (FILE_FLAG_WRITE_THROUGH); fsync and fdatasync hold if the drive "
		"honours flushes."},
	{WINDOWS, HELD_ON, PP_TRUTH_YES, ANY,
		"A flush is sent as SYNCHRONIZE CACHE; whether write-through writes carry FUA is not known.",
		"It may break open_datasync (FILE_FLAG_WRITE_THROUGH); fsync and fdatasync hold if the drive "
		"honours flushes."},
	{LINUX, HELD_UNKNOWN, PP_TRUTH_YES, ANY,
		"Linux believes that there is a cache: each sync sends a flush, or FUA where that is passed "
		"on.",
		"The drive itself could not be asked. One that ignores flushes breaks fsync and fdatasync."},
	{NULL, HELD_UNKNOWN, PP_TRUTH_YES, ANY,
		"Flushes are sent; the drive itself could not be asked whether its cache is on.",
		"If its cache is on, open_datasync may break, and one that ignores flushes breaks the others "
		"too."},
	{NULL, HELD_ON, ANY, ANY,
		"The drive's cache is on; whether flushes are sent could not be read.",
		"It can break every method; take nothing for safe."},
	{NULL, HELD_UNKNOWN, ANY, ANY,
		"Neither the drive's cache nor what is done with flushes could be read.",
		"Nothing is known; take nothing for safe."},
};

static enum held held_of(const struct pp_policy *policy)
{
	if (policy->drive_cache == PP_CACHE_ON)
		return HELD_ON;
	return policy->drive_cache == PP_CACHE_UNKNOWN ? HELD_UNKNOWN : HELD_OFF;
}

static void explain_boxes(const struct pp_policy *policy, struct pp_buf *out)
{
	const char *ticked[] = {"could not be read", "is not ticked", "is ticked"};
	int cache = policy->drive_cache == PP_CACHE_UNKNOWN ? 0 : policy->drive_cache == PP_CACHE_ON ? 2 : 1;
	int flushing = policy->flushing == PP_TRUTH_UNKNOWN ? 0 : policy->flushing == PP_TRUTH_NO ? 2 : 1;

	if (strcmp(policy->system, WINDOWS) != 0)
		return;
	pp_buf_addf(out, "Box \"Enable write caching on the device\" %s.\n", ticked[cache]);
	pp_buf_addf(out, "Box \"Turn off Windows write-cache buffer flushing on the device\" %s.\n",
		ticked[flushing]);
}

void pp_policy_explain(const struct pp_policy *policy, struct pp_buf *out)
{
	enum held held = held_of(policy);

	explain_boxes(policy, out);
	for (size_t i = 0; i < COUNT(meanings); i++) {
		if ((meanings[i].system && strcmp(meanings[i].system, policy->system) != 0) ||
			meanings[i].cache != held ||
			(meanings[i].flushing != ANY && meanings[i].flushing != policy->flushing) ||
			(meanings[i].fua != ANY && meanings[i].fua != policy->fua_sent))
			continue;
		pp_buf_addf(out, "%s\n%s\n", meanings[i].does, meanings[i].breaks);
		break;
	}
	if (policy->oddity[0])
		pp_buf_addf(out, "Odd: %s.\n", policy->oddity);
	if (policy->when == PP_POLICY_REBOOT)
		pp_buf_addf(out, "What is stored is not in force before a restart.\n");
}

/* ---- text form ---------------------------------------------------------------------------- */

static const struct {
	const char *key;
	size_t offset;
} truths[] = {
	{"system_cache", offsetof(struct pp_policy, system_cache)},
	{"flushing", offsetof(struct pp_policy, flushing)},
	{"flush_sent", offsetof(struct pp_policy, flush_sent)},
	{"fua_sent", offsetof(struct pp_policy, fua_sent)},
	{"cache_changeable", offsetof(struct pp_policy, cache_changeable)},
	{"flushing_changeable", offsetof(struct pp_policy, flushing_changeable)},
	{"lasts", offsetof(struct pp_policy, lasts)},
};

static const struct {
	const char *key;
	size_t offset;
} words[] = {
	{"drive_words", offsetof(struct pp_policy, drive_words)},
	{"system_words", offsetof(struct pp_policy, system_words)},
	{"oddity", offsetof(struct pp_policy, oddity)},
};

static void put(struct pp_buf *buf, const char *prefix, const char *name, const char *value)
{
	char key[PP_KV_KEY_MAX + 1];

	snprintf(key, sizeof(key), "%s%s", prefix, name);
	pp_kv_add(buf, key, value);
}

static int get_text(const struct pp_kv *kv, const char *prefix, const char *name, char *out,
	size_t out_bytes, struct pp_error *err)
{
	char key[PP_KV_KEY_MAX + 1];
	const char *value;

	snprintf(key, sizeof(key), "%s%s", prefix, name);
	if (pp_kv_str(kv, key, &value, err) != 0)
		return -1;
	if (strlen(value) >= out_bytes)
		return pp_fail(err, PP_ERR_PEER, "'%s' is too long", key);
	snprintf(out, out_bytes, "%s", value);
	return 0;
}

static int get_name(const struct pp_kv *kv, const char *prefix, const char *name,
	const char *const *names, size_t count, int *out, struct pp_error *err)
{
	char text[32];

	if (get_text(kv, prefix, name, text, sizeof(text), err) != 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (strcmp(text, names[i]) == 0) {
			*out = (int)i;
			return 0;
		}
	return pp_fail(err, PP_ERR_PEER, "'%s%s' is '%s', which is no such word", prefix, name, text);
}

void pp_policy_put(struct pp_buf *buf, const char *prefix, const struct pp_policy *policy)
{
	const char *base = (const char *)policy;

	put(buf, prefix, "system", policy->system);
	put(buf, prefix, "drive_cache", cache_names[policy->drive_cache]);
	for (size_t i = 0; i < COUNT(truths); i++)
		put(buf, prefix, truths[i].key, pp_truth_name(*(const enum pp_truth *)(const void *)
			(base + truths[i].offset)));
	put(buf, prefix, "when", when_names[policy->when]);
	for (size_t i = 0; i < COUNT(words); i++)
		put(buf, prefix, words[i].key, base + words[i].offset);
}

int pp_policy_get(const struct pp_kv *kv, const char *prefix, struct pp_policy *policy,
	struct pp_error *err)
{
	char *base = (char *)policy;
	int value = 0;

	memset(policy, 0, sizeof(*policy));
	if (get_text(kv, prefix, "system", policy->system, sizeof(policy->system), err) != 0 ||
		get_name(kv, prefix, "drive_cache", cache_names, COUNT(cache_names), &value, err) != 0)
		return -1;
	policy->drive_cache = (enum pp_drive_cache)value;
	for (size_t i = 0; i < COUNT(truths); i++) {
		if (get_name(kv, prefix, truths[i].key, truth_names, COUNT(truth_names), &value, err) != 0)
			return -1;
		*(enum pp_truth *)(void *)(base + truths[i].offset) = (enum pp_truth)value;
	}
	if (get_name(kv, prefix, "when", when_names, COUNT(when_names), &value, err) != 0)
		return -1;
	policy->when = (enum pp_policy_when)value;
	for (size_t i = 0; i < COUNT(words); i++)
		if (get_text(kv, prefix, words[i].key, base + words[i].offset, PP_POLICY_WORDS_BYTES,
			err) != 0)
			return -1;
	return 0;
}

static const struct {
	const char *key;
	size_t offset, bytes;
} saved_texts[] = {
	{"system", offsetof(struct pp_policy_saved, system), 16},
	{"serial", offsetof(struct pp_policy_saved, serial), PP_DRIVE_SERIAL_BYTES},
	{"wwn", offsetof(struct pp_policy_saved, wwn), 128},
	{"model", offsetof(struct pp_policy_saved, model), 128},
	{"wanted", offsetof(struct pp_policy_saved, wanted), 32},
	{"queue_write_cache", offsetof(struct pp_policy_saved, queue_write_cache), 32},
	{"scsi_cache_type", offsetof(struct pp_policy_saved, scsi_cache_type), 48},
};

void pp_policy_saved_put(struct pp_buf *buf, const struct pp_policy_saved *saved)
{
	for (size_t i = 0; i < COUNT(saved_texts); i++)
		put(buf, "policy_", saved_texts[i].key, (const char *)saved + saved_texts[i].offset);
	pp_kv_add_i64(buf, "policy_user_write_cache_setting", saved->user_write_cache_setting);
	pp_kv_add_i64(buf, "policy_cache_is_power_protected", saved->cache_is_power_protected);
	pp_policy_put(buf, "policy_before_", &saved->before);
}

int pp_policy_saved_get(const struct pp_kv *kv, struct pp_policy_saved *saved, struct pp_error *err)
{
	int64_t setting, protected;

	memset(saved, 0, sizeof(*saved));
	for (size_t i = 0; i < COUNT(saved_texts); i++)
		if (get_text(kv, "policy_", saved_texts[i].key, (char *)saved + saved_texts[i].offset,
			saved_texts[i].bytes, err) != 0)
			return -1;
	if (pp_kv_i64(kv, "policy_user_write_cache_setting", INT32_MIN, INT32_MAX, &setting, err) != 0 ||
		pp_kv_i64(kv, "policy_cache_is_power_protected", INT32_MIN, INT32_MAX, &protected, err) != 0)
		return -1;
	saved->user_write_cache_setting = (int32_t)setting;
	saved->cache_is_power_protected = (int32_t)protected;
	return pp_policy_get(kv, "policy_before_", &saved->before, err);
}

/* ---- the guard ---------------------------------------------------------------------------- */

static pthread_mutex_t runs_lock = PTHREAD_MUTEX_INITIALIZER;
static char runs[PP_POLICY_RUNS_MAX][PP_DRIVE_NAME_BYTES];
static unsigned runs_unnamed; /* found no room: these guard every disk */

void pp_policy_run_begin(const char *disk)
{
	bool found = false;

	pthread_mutex_lock(&runs_lock);
	for (size_t i = 0; i < PP_POLICY_RUNS_MAX && !found; i++)
		if ((found = runs[i][0] == '\0'))
			snprintf(runs[i], sizeof(runs[i]), "%s", disk);
	runs_unnamed += !found;
	pthread_mutex_unlock(&runs_lock);
}

void pp_policy_run_end(const char *disk)
{
	bool found = false;

	pthread_mutex_lock(&runs_lock);
	for (size_t i = 0; i < PP_POLICY_RUNS_MAX && !found; i++)
		if ((found = strcmp(runs[i], disk) == 0))
			runs[i][0] = '\0';
	runs_unnamed -= !found && runs_unnamed;
	pthread_mutex_unlock(&runs_lock);
}

bool pp_policy_in_run(const char *disk)
{
	bool found;

	pthread_mutex_lock(&runs_lock);
	found = runs_unnamed != 0;
	for (size_t i = 0; i < PP_POLICY_RUNS_MAX && !found; i++)
		found = runs[i][0] && strcmp(runs[i], disk) == 0;
	pthread_mutex_unlock(&runs_lock);
	return found;
}
