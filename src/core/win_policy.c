/* SPDX-License-Identifier: MIT
 *
 * Which of Windows' two boxes is ticked, and ticking them. The rules are the class driver's
 * (storage/class/disk): FUA is set with the write cache on and not power-protected, and unless the
 * drive refused it; a flush is completed at once when power-protected.
 */
#include "win_policy.h"

#include <stdio.h>
#include <string.h>

#include "text.h"
#include "win_identify.h"

#define WINDOWS "windows"

/* What the steps of one call share. */
struct work {
	const struct pp_win_storage *s;
	const char *disk;
	struct pp_win_facts facts;
	struct pp_drive_info drive;
};

static int ask(struct work *w, struct pp_error *err)
{
	unsigned disk;

	if (!pp_win_disk_number(w->disk, &disk))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "there is no physical drive '%s'", w->disk);
	if (pp_win_ask(w->s, disk, PP_WIN_ASK_ALL, &w->facts, err) != 0)
		return -1;
	pp_win_fill_info(&w->facts, &w->drive);
	return 0;
}

static int start(struct work *w, const struct pp_win_storage *s, const char *disk,
	struct pp_error *err)
{
	memset(w, 0, sizeof(*w));
	w->s = s;
	w->disk = disk;
	if (pp_policy_in_run(disk))
		return pp_fail(err, PP_ERR_REFUSED, "the policy of '%s' is not touched during a run: asking "
			"for it flushes the drive", disk);
	return ask(w, err);
}

/* ---- reading ------------------------------------------------------------------------------ */

static enum pp_truth truth(int value)
{
	return value < 0 ? PP_TRUTH_UNKNOWN : value ? PP_TRUTH_YES : PP_TRUTH_NO;
}

/* The stored value of a box: 1, 0, or -1 where it is the default or not known. */
static int stored_cache(const struct pp_win_facts *f)
{
	return f->user_cache_error || f->user_cache > 1 ? -1 : (int)f->user_cache;
}

static int stored_protection(const struct pp_win_facts *f)
{
	if (f->protected_error == PP_WIN_NOT_FOUND && !f->instance_error)
		return 0;
	return f->protected_error ? -1 : f->protected_value == 1;
}

static enum pp_truth cache_changeable(const struct pp_win_facts *f)
{
	if (pp_win_drive_cache(f) == PP_CACHE_NONE)
		return PP_TRUTH_NO;
	if (!f->setting_error && f->setting.state == PP_WIN_CACHE_NOT_MODIFIED)
		return PP_TRUTH_NO;
	if (!f->property_error && f->property.changeable)
		return f->property.changeable == 2 ? PP_TRUTH_YES : PP_TRUTH_NO;
	return f->info_error ? PP_TRUTH_UNKNOWN : PP_TRUTH_YES;
}

static const char *on_off(bool on)
{
	return on ? "on" : "off";
}

static void say_drive(const struct pp_win_facts *f, struct pp_policy *p)
{
	static const char *const words[] = {
		[PP_CACHE_UNKNOWN] = "no answer", [PP_CACHE_NONE] = "has no volatile write cache",
		[PP_CACHE_OFF] = "write cache off", [PP_CACHE_ON] = "write cache on",
	};
	const char *who = "not reported";
	char why[64] = "";

	if (!f->nvme_error && !f->nvme_vwc)
		who = "NVMe Identify (VWC)";
	else if (!f->nvme_feature_error)
		who = "NVMe feature 06h";
	else if (!f->ata_error)
		who = "ATA IDENTIFY word 85";
	else if (!f->info_error)
		who = "IOCTL_DISK_GET_CACHE_INFORMATION";
	else if (!f->property_error)
		who = "the write-cache property";
	else
		pp_win_error_text(f->info_error, why);
	snprintf(p->drive_words, sizeof(p->drive_words), "%s: %s", who,
		why[0] ? why : words[p->drive_cache]);
}

static void say_system(const struct pp_win_facts *f, struct pp_policy *p)
{
	char info[80], setting[80], why[64];

	if (f->info_error)
		snprintf(info, sizeof(info), "not reported (%s)", pp_win_error_text(f->info_error, why));
	else
		snprintf(info, sizeof(info), "%s", on_off(f->info.write_enabled));
	if (f->setting_error)
		snprintf(setting, sizeof(setting), "not reported (%s)",
			pp_win_error_text(f->setting_error, why));
	else
		snprintf(setting, sizeof(setting), "%s", f->setting.power_protected ? "yes" : "no");
	pp_text_format(p->system_words, sizeof(p->system_words), "write cache: %s; power protected: %s",
		info, setting);
}

/* Two answers to one question; the first that differ. */
static void find_oddity(const struct pp_win_facts *f, struct pp_policy *p)
{
	char *out = p->oddity;
	size_t room = sizeof(p->oddity);
	bool property = !f->property_error && f->property.enabled;
	bool property_on = f->property.enabled == 2;
	bool on = p->drive_cache == PP_CACHE_ON;
	int stored = stored_cache(f), protect = stored_protection(f), in_force = pp_win_protected(f);

	if (!f->info_error && property && f->info.write_enabled != property_on)
		snprintf(out, room, "the write-cache property says %s, IOCTL_DISK_GET_CACHE_INFORMATION says %s",
			on_off(property_on), on_off(f->info.write_enabled));
	else if (p->drive_cache != PP_CACHE_UNKNOWN && !f->info_error && on != (f->info.write_enabled != 0))
		snprintf(out, room, "Windows says that the write cache is %s, the drive itself says %s",
			on_off(f->info.write_enabled), on_off(on));
	else if (p->drive_cache != PP_CACHE_UNKNOWN && property && on != property_on)
		snprintf(out, room, "the write-cache property says %s, the drive itself says %s",
			on_off(property_on), on_off(on));
	else if (stored >= 0 && p->drive_cache != PP_CACHE_UNKNOWN && (stored == 1) != on)
		snprintf(out, room, "the registry says that the write cache is to be %s, the drive's is %s",
			on_off(stored), on_off(on));
	else if (!f->setting_error && !f->property_error &&
		(f->setting.power_protected != 0) != (f->property.user_protection != 0))
		snprintf(out, room, "power protection: the class driver says %s, the write-cache property %s",
			f->setting.power_protected ? "yes" : "no", f->property.user_protection ? "yes" : "no");
	else if (protect >= 0 && in_force >= 0 && protect != in_force)
		snprintf(out, room, "power protection is %s in the registry, %s in force",
			on_off(protect), on_off(in_force));
	else if (!f->property_error && !f->property.flush_supported)
		snprintf(out, room, "the drive refused the flush that the write-cache property's query sends");
}

static void read_policy(const struct pp_win_facts *f, struct pp_policy *p)
{
	int protected = pp_win_protected(f), stored = stored_cache(f), protect = stored_protection(f);

	memset(p, 0, sizeof(*p));
	snprintf(p->system, sizeof(p->system), WINDOWS);
	p->drive_cache = pp_win_drive_cache(f);
	if (!f->info_error && !(!f->property_error && f->property.enabled &&
		(f->property.enabled == 2) != (f->info.write_enabled != 0)))
		p->system_cache = truth(f->info.write_enabled != 0);
	p->flushing = protected < 0 ? PP_TRUTH_UNKNOWN : truth(!protected);
	p->flush_sent = p->flushing;
	p->fua_sent = truth(pp_win_sends_fua(f));
	p->cache_changeable = cache_changeable(f);
	p->flushing_changeable = truth(!f->setting_error || !f->instance_error ? 1 : -1);
	p->lasts = f->instance_error ? PP_TRUTH_UNKNOWN : PP_TRUTH_YES;
	/* What is stored and not in force waits for the next start of the drive. */
	if ((stored >= 0 && p->drive_cache != PP_CACHE_UNKNOWN && p->drive_cache != PP_CACHE_NONE &&
		(stored == 1) != (p->drive_cache == PP_CACHE_ON)) ||
		(protect >= 0 && protected >= 0 && protect != protected))
		p->when = PP_POLICY_REBOOT;
	say_drive(f, p);
	say_system(f, p);
	find_oddity(f, p);
}

int pp_win_policy_read(const struct pp_win_storage *s, const char *disk, struct pp_policy *policy,
	struct pp_error *err)
{
	struct work w;

	memset(policy, 0, sizeof(*policy));
	if (start(&w, s, disk, err) != 0)
		return -1;
	read_policy(&w.facts, policy);
	return 0;
}

static int32_t raw(uint32_t error, uint32_t value)
{
	return error == PP_WIN_NOT_FOUND ? PP_POLICY_ABSENT : error ? PP_POLICY_NONE : (int32_t)value;
}

static void save(const struct work *w, struct pp_policy_saved *saved)
{
	const struct pp_win_facts *f = &w->facts;

	memset(saved, 0, sizeof(*saved));
	snprintf(saved->system, sizeof(saved->system), WINDOWS);
	pp_text_copy(saved->serial, sizeof(saved->serial), w->drive.serial);
	pp_text_copy(saved->wwn, sizeof(saved->wwn), w->drive.wwn);
	pp_text_copy(saved->model, sizeof(saved->model), w->drive.model);
	saved->user_write_cache_setting = f->instance_error ? PP_POLICY_NONE :
		raw(f->user_cache_error, f->user_cache);
	saved->cache_is_power_protected = f->instance_error ? PP_POLICY_NONE :
		raw(f->protected_error, f->protected_value);
	read_policy(f, &saved->before);
}

int pp_win_policy_save(const struct pp_win_storage *s, const char *disk,
	struct pp_policy_saved *saved, struct pp_error *err)
{
	struct work w;

	memset(saved, 0, sizeof(*saved));
	if (start(&w, s, disk, err) != 0)
		return -1;
	save(&w, saved);
	return 0;
}

/* ---- changing ----------------------------------------------------------------------------- */

/* Sends one structure to the drive's class driver. */
static uint32_t send(const struct work *w, uint32_t code, void *what, uint32_t bytes)
{
	uint32_t error, got;
	void *device;

	error = w->s->open(w->s->ctx, w->facts.node, PP_WIN_WRITE, &device);
	if (error)
		return error;
	error = w->s->control(w->s->ctx, device, code, what, bytes, NULL, 0, &got);
	w->s->close(w->s->ctx, device);
	return error;
}

static uint32_t store(const struct work *w, const char *name, int32_t value)
{
	uint32_t number = (uint32_t)value;

	if (w->facts.instance_error)
		return w->facts.instance_error;
	return w->s->registry_set(w->s->ctx, w->facts.instance, name,
		value == PP_POLICY_ABSENT ? NULL : &number);
}

/* At once by the class driver; else stored, for the next start of the drive. */
static int set_cache(struct work *w, bool on, struct pp_error *err)
{
	struct pp_win_cache_info info = w->facts.info;
	uint32_t error, stored;
	char why[64];

	info.write_enabled = on;
	error = w->facts.info_error ? w->facts.info_error :
		send(w, PP_WIN_SET_CACHE_INFO, &info, sizeof(info));
	if (!error)
		return ask(w, err);
	stored = store(w, PP_WIN_USER_WRITE_CACHE, on);
	if (stored)
		return pp_fail(err, PP_ERR_SYSTEM, "cannot switch the write cache of '%s' %s: %s", w->disk,
			on_off(on), pp_win_error_text(error, why));
	return ask(w, err);
}

static int set_protection(struct work *w, bool protect, struct pp_error *err)
{
	struct pp_win_cache_setting setting = {
		.version = sizeof(setting), .state = PP_WIN_CACHE_NORMAL, .power_protected = protect,
	};
	uint32_t error, stored;
	char why[64];

	error = w->facts.setting_error ? w->facts.setting_error :
		send(w, PP_WIN_SET_CACHE_SETTING, &setting, sizeof(setting));
	if (!error)
		return ask(w, err);
	stored = store(w, PP_WIN_CACHE_IS_PROTECTED, protect);
	if (stored)
		return pp_fail(err, PP_ERR_SYSTEM, "cannot turn the buffer flushing of '%s' %s: %s", w->disk,
			on_off(!protect), pp_win_error_text(error, why));
	return ask(w, err);
}

/* Is this box as it is wanted, in force or stored for the next start? */
static bool cache_is(const struct work *w, bool on)
{
	enum pp_drive_cache cache = pp_win_drive_cache(&w->facts);
	int stored = stored_cache(&w->facts);

	if (stored >= 0 && stored != on)
		return false;
	if (cache == PP_CACHE_UNKNOWN)
		return stored == on;
	return (cache == PP_CACHE_ON) == on || (stored == on && cache != PP_CACHE_NONE);
}

static bool protection_is(const struct work *w, bool protect)
{
	int stored = stored_protection(&w->facts), now = pp_win_protected(&w->facts);

	return stored >= 0 ? stored == protect : now == protect;
}

static int check(const struct work *w, const struct pp_policy_setting *setting, struct pp_error *err)
{
	bool on = setting->write_cache == PP_TRUTH_YES;
	enum pp_drive_cache cache = pp_win_drive_cache(&w->facts);
	bool same = on ? cache == PP_CACHE_ON : cache == PP_CACHE_OFF || cache == PP_CACHE_NONE;

	if (!same && cache_changeable(&w->facts) == PP_TRUTH_NO)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "cannot make '%s' %s: its write cache cannot be "
			"changed", w->disk, setting->name);
	if (!same && w->facts.info_error && w->facts.instance_error)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "cannot make '%s' %s: neither its driver nor the "
			"registry lets its write cache be set", w->disk, setting->name);
	if (w->facts.setting_error && w->facts.instance_error)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "cannot make '%s' %s: neither its driver nor the "
			"registry tells of its buffer flushing", w->disk, setting->name);
	return 0;
}

/* Flushing is turned on before and off after the cache is touched. */
static int make(struct work *w, const struct pp_policy_setting *setting, struct pp_policy *p,
	struct pp_error *err)
{
	bool on = setting->write_cache == PP_TRUTH_YES, protect = setting->flushing == PP_TRUTH_NO;
	char text[160];

	if (!protect && (!protection_is(w, false) || pp_win_protected(&w->facts) == 1) &&
		set_protection(w, false, err) != 0)
		return -1;
	if ((on || pp_win_drive_cache(&w->facts) != PP_CACHE_NONE) && !cache_is(w, on) &&
		set_cache(w, on, err) != 0)
		return -1;
	if (protect && (!protection_is(w, true) || pp_win_protected(&w->facts) == 0) &&
		set_protection(w, true, err) != 0)
		return -1;
	read_policy(&w->facts, p);
	if (pp_policy_matches(p, setting))
		return 0;
	if (p->when == PP_POLICY_REBOOT && (cache_is(w, on) || p->drive_cache == PP_CACHE_NONE) &&
		protection_is(w, protect))
		return 0;
	pp_policy_text(p, text, sizeof(text));
	return pp_fail(err, PP_ERR_SYSTEM, "'%s' did not become %s: read back as '%s'", w->disk,
		setting->name, text);
}

/* The class driver stores what it was told; the values themselves go back last. */
static int put_back_registry(struct work *w, const char *name, int32_t value, uint32_t error_now,
	uint32_t value_now, struct pp_error *err)
{
	uint32_t error;
	char why[64];

	if (value == PP_POLICY_NONE || w->facts.instance_error || raw(error_now, value_now) == value)
		return 0;
	error = store(w, name, value);
	return error ? pp_fail(err, PP_ERR_SYSTEM, "cannot write '%s' of '%s' in the registry: %s", name,
		w->disk, pp_win_error_text(error, why)) : 0;
}

static int put_back(struct work *w, const struct pp_policy_saved *saved, struct pp_error *err)
{
	enum pp_drive_cache before = saved->before.drive_cache;
	bool on = before == PP_CACHE_ON, known = on || before == PP_CACHE_OFF;
	int protected = saved->before.flushing == PP_TRUTH_UNKNOWN ? -1 :
		saved->before.flushing == PP_TRUTH_NO;
	struct pp_policy p;

	if (protected == 0 && pp_win_protected(&w->facts) == 1 && set_protection(w, false, err) != 0)
		return -1;
	if (known && pp_win_drive_cache(&w->facts) != before && set_cache(w, on, err) != 0)
		return -1;
	if (protected == 1 && pp_win_protected(&w->facts) == 0 && set_protection(w, true, err) != 0)
		return -1;
	if (put_back_registry(w, PP_WIN_USER_WRITE_CACHE, saved->user_write_cache_setting,
		w->facts.user_cache_error, w->facts.user_cache, err) != 0 ||
		put_back_registry(w, PP_WIN_CACHE_IS_PROTECTED, saved->cache_is_power_protected,
			w->facts.protected_error, w->facts.protected_value, err) != 0 ||
		ask(w, err) != 0)
		return -1;
	read_policy(&w->facts, &p);
	if ((known && p.drive_cache != before && p.when == PP_POLICY_NOW) ||
		(protected >= 0 && p.flushing != saved->before.flushing && p.when == PP_POLICY_NOW))
		return pp_fail(err, PP_ERR_SYSTEM, "'%s' did not go back: %s; %s", w->disk, p.drive_words,
			p.system_words);
	return 0;
}

int pp_win_policy_set(const struct pp_win_storage *s, const char *disk,
	const struct pp_policy_setting *setting, struct pp_policy_saved *saved, struct pp_error *err)
{
	struct pp_policy_saved own;
	struct pp_policy now;
	struct pp_error again;
	struct work w;

	if (start(&w, s, disk, err) != 0)
		return -1;
	save(&w, &own);
	snprintf(own.wanted, sizeof(own.wanted), "%s", setting->name);
	if (saved)
		*saved = own;
	if (pp_policy_matches(&own.before, setting))
		return 0;
	if (check(&w, setting, err) != 0)
		return -1;
	if (make(&w, setting, &now, err) == 0)
		return 0;
	if (ask(&w, &again) != 0 || put_back(&w, &own, &again) != 0)
		return pp_fail_within(err, "now half set (%s)", again.text);
	return -1;
}

int pp_win_policy_restore(const struct pp_win_storage *s, const char *disk,
	const struct pp_policy_saved *saved, struct pp_error *err)
{
	struct work w;

	if (strcmp(saved->system, WINDOWS) != 0)
		return pp_fail(err, PP_ERR_REFUSED, "the saved policy is of %s, this is " WINDOWS,
			saved->system);
	if (start(&w, s, disk, err) != 0)
		return -1;
	if (strcmp(saved->serial, w.drive.serial) != 0 || strcmp(saved->wwn, w.drive.wwn) != 0 ||
		strncmp(saved->model, w.drive.model, sizeof(saved->model) - 1) != 0)
		return pp_fail(err, PP_ERR_REFUSED, "the saved policy is of drive '%s', '%s' is '%s'",
			saved->serial, disk, w.drive.serial);
	return put_back(&w, saved, err);
}
