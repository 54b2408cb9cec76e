/* SPDX-License-Identifier: MIT
 *
 * The policy of a drive on Linux. A set has two parts: the drive's own cache (by the way its transport
 * has: a table), then the kernel's belief. sd's cache_type does both at once and keeps them in step;
 * a drive that does not obey it is told directly (SET FEATURES), and the kernel to look again.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "drive_sysfs.h"
#include "os.h"
#include "policy_ops_linux.h"

#define BACK    "write back"
#define THROUGH "write through"

/* What the steps of one call share. */
struct work {
	const struct pp_policy_host *host;
	const struct pp_sysroot *sys;
	struct pp_drive_info drive;
	char dir[PATH_MAX];         /* /sys/devices/.../block/sda */
	char cache_type[PATH_MAX];  /* sd's or virtio's attribute; "" */
	bool sd;                    /* cache_type is sd's */
};

static const struct pp_policy_ops none;

static const struct pp_policy_ops *ops_of(const struct work *w)
{
	return w->host->ops ? w->host->ops : &none;
}

static int start(struct work *w, const struct pp_policy_host *host, const char *disk,
	struct pp_error *err)
{
	char (*names)[PP_DRIVE_NAME_BYTES];
	size_t count;

	memset(w, 0, sizeof(*w));
	w->host = host;
	w->sys = pp_sys(host->sys);
	if (pp_policy_in_run(disk))
		return pp_fail(err, PP_ERR_REFUSED, "the policy of '%s' is not touched during a run", disk);
	if (pp_drive_read(w->sys, disk, &w->drive, err) != 0)
		return -1;
	if (!pp_sys_block_dir(w->sys, w->drive.name, w->dir))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "there is no block device '%s'", disk);
	count = pp_sys_names(w->sys, &names, "%s/device/scsi_disk", w->dir);
	w->sd = count > 0;
	if (w->sd)
		snprintf(w->cache_type, sizeof(w->cache_type), "%.3900s/device/scsi_disk/%s/cache_type", w->dir,
			names[0]);
	else if (pp_sys_exists(w->sys, "%s/cache_type", w->dir))
		snprintf(w->cache_type, sizeof(w->cache_type), "%.4000s/cache_type", w->dir);
	free(names);
	return 0;
}

/* By its mode, since root may open what the kernel has marked read-only. */
static bool writable(const struct work *w, const char *path)
{
	char full[2 * PATH_MAX];
	struct stat st;

	snprintf(full, sizeof(full), "%s%s", w->sys->root, path);
	return ops_of(w)->write_text && stat(full, &st) == 0 && st.st_mode & S_IWUSR;
}

static bool queue_writable(const struct work *w)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.4000s/queue/write_cache", w->dir);
	return writable(w, path);
}

/* ---- reading ------------------------------------------------------------------------------ */

static enum pp_drive_cache on_off(bool on)
{
	return on ? PP_CACHE_ON : PP_CACHE_OFF;
}

static const char *cache_word(enum pp_drive_cache cache)
{
	static const char *const words[] = {
		[PP_CACHE_UNKNOWN] = "no answer", [PP_CACHE_NONE] = "has no volatile write cache",
		[PP_CACHE_OFF] = "write cache off", [PP_CACHE_ON] = "write cache on",
	};

	return words[cache];
}

static void ask_nvme(const struct work *w, struct pp_policy *p)
{
	p->drive_cache = w->drive.drive_cache;
	p->cache_changeable = p->drive_cache == PP_CACHE_UNKNOWN ? PP_TRUTH_UNKNOWN :
		p->drive_cache != PP_CACHE_NONE && ops_of(w)->nvme_set_cache ? PP_TRUTH_YES : PP_TRUTH_NO;
	p->lasts = PP_TRUTH_NO; /* set without the save bit */
	snprintf(p->drive_words, sizeof(p->drive_words), "NVMe %s: %s",
		p->drive_cache == PP_CACHE_NONE ? "Identify (VWC)" : "feature 06h", cache_word(p->drive_cache));
}

/* Words 82, 85 and 87 as in drive_linux.c; PP_CACHE_UNKNOWN where they are not valid. */
static enum pp_drive_cache cache_of_identify(const uint8_t page[512])
{
	if ((pp_ata_word(page, 87) & 0xc000) != 0x4000)
		return PP_CACHE_UNKNOWN;
	if (!(pp_ata_word(page, 82) & 1 << 5))
		return PP_CACHE_NONE;
	return on_off(pp_ata_word(page, 85) & 1 << 5);
}

/* Asked anew: the kernel's copy is read again only some time after a SET FEATURES (libata's EH). */
static void ask_sata(const struct work *w, struct pp_policy *p)
{
	uint8_t page[512] = {0};

	if (ops_of(w)->sat_identify && ops_of(w)->sat_identify(w->drive.node, page) == 0)
		p->drive_cache = cache_of_identify(page);
	else
		p->drive_cache = w->drive.drive_cache;
	snprintf(p->drive_words, sizeof(p->drive_words), "ATA IDENTIFY word 85: %s",
		cache_word(p->drive_cache));
}

static void ask_scsi(const struct work *w, struct pp_policy *p)
{
	const char *who = "SCSI mode page 08h";
	bool on;

	if (ops_of(w)->scsi_write_cache && ops_of(w)->scsi_write_cache(w->drive.node, &on) == 0) {
		p->drive_cache = on_off(on);
	} else if (!pp_sys_living(w->sys)) {
		p->drive_cache = w->drive.drive_cache; /* recorded: as sd read it */
		who = "sd's cache_type";
	}
	snprintf(p->drive_words, sizeof(p->drive_words), "%s: %s", who, cache_word(p->drive_cache));
}

/* The disk behind a bridge has the last word; what a bridge says of it may be made up. */
static void ask_usb(const struct work *w, struct pp_policy *p)
{
	enum pp_drive_cache bridge, disk = PP_CACHE_UNKNOWN;
	uint8_t page[512] = {0};

	ask_scsi(w, p);
	bridge = p->drive_cache;
	if (ops_of(w)->sat_identify && ops_of(w)->sat_identify(w->drive.node, page) == 0)
		disk = cache_of_identify(page);
	if (disk == PP_CACHE_UNKNOWN)
		return;
	p->drive_cache = disk;
	snprintf(p->drive_words, sizeof(p->drive_words), "ATA IDENTIFY through the bridge: %s",
		cache_word(disk));
	if (bridge != PP_CACHE_UNKNOWN && bridge != disk)
		snprintf(p->oddity, sizeof(p->oddity), "the bridge says '%s', the disk behind it says '%s'",
			cache_word(bridge), cache_word(disk));
}

/* Where the host lets the guest choose (VIRTIO_BLK_F_CONFIG_WCE), its answer is the device's own. */
static void ask_virtio(const struct work *w, struct pp_policy *p)
{
	char text[48];

	if (w->sd) {
		ask_scsi(w, p);
		return;
	}
	if (!w->cache_type[0] || !writable(w, w->cache_type) ||
		!pp_sys_text(w->sys, text, sizeof(text), "%s", w->cache_type)) {
		snprintf(p->drive_words, sizeof(p->drive_words), "a virtual disk: cannot be asked");
		return;
	}
	p->drive_cache = on_off(strcmp(text, BACK) == 0);
	snprintf(p->drive_words, sizeof(p->drive_words), "virtio cache_type: %s",
		cache_word(p->drive_cache));
}

static void ask_nobody(const struct work *w, struct pp_policy *p)
{
	snprintf(p->drive_words, sizeof(p->drive_words), "%s: cannot be asked",
		pp_transport_name(w->drive.transport));
	p->lasts = PP_TRUTH_NO;
}

/* Nobody, but for the drives of a lab. */
static void ask_lab(const struct work *w, struct pp_policy *p)
{
	enum pp_drive_cache cache;

	ask_nobody(w, p);
	if (!ops_of(w)->lab_cache || ops_of(w)->lab_cache(w->drive.node, &cache) != 0)
		return;
	p->drive_cache = cache;
	p->cache_changeable = ops_of(w)->lab_set_cache ? PP_TRUTH_YES : PP_TRUTH_NO;
	snprintf(p->drive_words, sizeof(p->drive_words), "the lab's drive: %s", cache_word(p->drive_cache));
}

typedef void ask_fn(const struct work *, struct pp_policy *);

static ask_fn *const asks[] = {
	[PP_TRANSPORT_OTHER] = ask_scsi, [PP_TRANSPORT_NVME] = ask_nvme,
	[PP_TRANSPORT_SATA] = ask_sata,  [PP_TRANSPORT_SAS] = ask_scsi,
	[PP_TRANSPORT_SCSI] = ask_scsi,  [PP_TRANSPORT_USB] = ask_usb,
	[PP_TRANSPORT_VIRTIO] = ask_virtio, [PP_TRANSPORT_MMC] = ask_nobody,
	[PP_TRANSPORT_ISCSI] = ask_scsi, [PP_TRANSPORT_NBD] = ask_lab,
	[PP_TRANSPORT_LOOP] = ask_lab, [PP_TRANSPORT_MD] = ask_nobody,
	[PP_TRANSPORT_DM] = ask_nobody,  [PP_TRANSPORT_RAM] = ask_nobody,
};

static bool has_no_cache(const struct pp_policy *p)
{
	return p->drive_cache == PP_CACHE_OFF || p->drive_cache == PP_CACHE_NONE;
}

/* What the block layer makes of the belief: block/blk-flush.c, blk-core.c. */
static void conclude(const struct work *w, struct pp_policy *p)
{
	const char *belief = w->drive.write_cache;

	if (strcmp(belief, BACK) == 0)
		p->system_cache = PP_TRUTH_YES;
	else if (strcmp(belief, THROUGH) == 0)
		p->system_cache = PP_TRUTH_NO;
	p->flush_sent = p->system_cache;
	if (p->system_cache == PP_TRUTH_YES)
		p->fua_sent = w->drive.fua ? PP_TRUTH_YES : PP_TRUTH_NO;
	else
		p->fua_sent = p->system_cache;
	p->flushing = p->system_cache;
	if (p->system_cache == PP_TRUTH_NO && has_no_cache(p))
		p->flushing = PP_TRUTH_YES; /* none is dropped that anything would need */
	snprintf(p->system_words, sizeof(p->system_words), "queue/write_cache: %s, queue/fua: %d",
		belief[0] ? belief : "no answer", w->drive.fua);
	if (p->oddity[0])
		return;
	if (p->system_cache == PP_TRUTH_NO && p->drive_cache == PP_CACHE_ON)
		snprintf(p->oddity, sizeof(p->oddity),
			"the kernel believes write through, the drive says that its cache is on");
	else if (p->system_cache == PP_TRUTH_YES && has_no_cache(p))
		snprintf(p->oddity, sizeof(p->oddity),
			"the kernel believes write back, the drive says '%s': flushes are sent for nothing",
			cache_word(p->drive_cache));
}

static void read_policy(const struct work *w, struct pp_policy *p)
{
	memset(p, 0, sizeof(*p));
	snprintf(p->system, sizeof(p->system), "%s", PP_OS_NAME);
	p->cache_changeable = w->cache_type[0] && writable(w, w->cache_type) ? PP_TRUTH_YES : PP_TRUTH_NO;
	asks[w->drive.transport](w, p);
	if (p->drive_cache == PP_CACHE_NONE)
		p->cache_changeable = PP_TRUTH_NO;
	p->flushing_changeable = queue_writable(w) ? PP_TRUTH_YES : PP_TRUTH_NO;
	conclude(w, p);
}

int pp_policy_read_on(const struct pp_policy_host *host, const char *disk, struct pp_policy *policy,
	struct pp_error *err)
{
	struct work w;

	memset(policy, 0, sizeof(*policy));
	if (start(&w, host, disk, err) != 0)
		return -1;
	read_policy(&w, policy);
	return 0;
}

static void save(const struct work *w, struct pp_policy_saved *saved)
{
	memset(saved, 0, sizeof(*saved));
	snprintf(saved->system, sizeof(saved->system), "%s", PP_OS_NAME);
	snprintf(saved->serial, sizeof(saved->serial), "%s", w->drive.serial);
	snprintf(saved->wwn, sizeof(saved->wwn), "%s", w->drive.wwn);
	snprintf(saved->model, sizeof(saved->model), "%s", w->drive.model);
	snprintf(saved->queue_write_cache, sizeof(saved->queue_write_cache), "%s", w->drive.write_cache);
	if (w->cache_type[0])
		pp_sys_text(w->sys, saved->scsi_cache_type, sizeof(saved->scsi_cache_type), "%s",
			w->cache_type);
	saved->user_write_cache_setting = saved->cache_is_power_protected = PP_POLICY_NONE;
	read_policy(w, &saved->before);
}

int pp_policy_save_on(const struct pp_policy_host *host, const char *disk,
	struct pp_policy_saved *saved, struct pp_error *err)
{
	struct work w;

	memset(saved, 0, sizeof(*saved));
	if (start(&w, host, disk, err) != 0)
		return -1;
	save(&w, saved);
	return 0;
}

/* ---- changing ----------------------------------------------------------------------------- */

/* The drive again, after a change. */
static int look_again(struct work *w, struct pp_policy *p, struct pp_error *err)
{
	struct pp_drive_info drive;

	if (pp_drive_read(w->sys, w->drive.name, &drive, err) != 0)
		return -1;
	w->drive = drive;
	read_policy(w, p);
	return 0;
}

static int write_attribute(const struct work *w, const char *path, const char *text,
	struct pp_error *err)
{
	int code = ops_of(w)->write_text ? ops_of(w)->write_text(w->sys, path, text) : ENOTSUP;

	if (code)
		return pp_fail_os(err, code, "cannot write '%s' to '%s'%s", text, path,
			code == EACCES || code == EPERM ? " (root may)" : "");
	return 0;
}

/* Keeps what the drive does with reads: RCD is in the same word. */
static const char *cache_type_for(const char *now, bool on)
{
	bool no_read = strcmp(now, "none") == 0 || strstr(now, "no read") != NULL;

	if (no_read)
		return on ? "write back, no read (daft)" : "none";
	return on ? BACK : THROUGH;
}

static int by_cache_type(struct work *w, bool on, struct pp_error *err)
{
	char now[48] = "";

	pp_sys_text(w->sys, now, sizeof(now), "%s", w->cache_type);
	return write_attribute(w, w->cache_type, cache_type_for(now, on), err);
}

/* Told past the kernel, which must then look again (sd_revalidate_disk). */
static int by_set_features(struct work *w, bool on, struct pp_error *err)
{
	int code = ops_of(w)->ata_set_cache ? ops_of(w)->ata_set_cache(w->drive.node, on) : ENOTSUP;
	char path[PATH_MAX];

	if (code)
		return pp_fail_os(err, code, "cannot switch the write cache of '%s' %s (SET FEATURES)",
			w->drive.node, on ? "on" : "off");
	snprintf(path, sizeof(path), "%.4000s/device/rescan", w->dir);
	return pp_sys_exists(w->sys, "%s", path) ? write_attribute(w, path, "1", err) : 0;
}

static int by_nvme_feature(struct work *w, bool on, struct pp_error *err)
{
	int code = ops_of(w)->nvme_set_cache ? ops_of(w)->nvme_set_cache(w->drive.node, on) : ENOTSUP;

	if (code)
		return pp_fail_os(err, code, "cannot switch the write cache of '%s' %s (NVMe feature 06h)",
			w->drive.node, on ? "on" : "off");
	return 0;
}

static int by_lab(struct work *w, bool on, struct pp_error *err)
{
	int code = ops_of(w)->lab_set_cache(w->drive.node, on);

	return code ? pp_fail_os(err, code, "cannot switch the write cache of the lab's drive '%s' %s",
		w->drive.node, on ? "on" : "off") : 0;
}

static bool is_lab(const struct work *w, const struct pp_policy *p)
{
	return p->cache_changeable == PP_TRUTH_YES && ops_of(w)->lab_set_cache &&
		(w->drive.transport == PP_TRANSPORT_NBD || w->drive.transport == PP_TRANSPORT_LOOP);
}

static bool is_ata(const struct work *w)
{
	return w->drive.transport == PP_TRANSPORT_SATA || w->drive.transport == PP_TRANSPORT_USB;
}

/* Sets the drive's own cache and leaves in *p what it is then. */
static int set_drive_cache(struct work *w, bool on, struct pp_policy *p, struct pp_error *err)
{
	bool asked_sd = w->cache_type[0] != '\0';
	int rc;

	if (w->drive.transport == PP_TRANSPORT_NVME)
		rc = by_nvme_feature(w, on, err);
	else if (is_lab(w, p))
		rc = by_lab(w, on, err);
	else if (asked_sd)
		rc = by_cache_type(w, on, err);
	else
		return pp_fail(err, PP_ERR_UNSUPPORTED, "'%s' has no write cache that can be set from here",
			w->drive.node);
	if (is_ata(w) && (rc != 0 || (look_again(w, p, NULL) == 0 && p->drive_cache != on_off(on))))
		rc = by_set_features(w, on, err);
	return rc == 0 ? look_again(w, p, err) : -1;
}

static int set_belief(struct work *w, const char *text, struct pp_policy *p, struct pp_error *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.4000s/queue/write_cache", w->dir);
	if (write_attribute(w, path, text, err) != 0)
		return -1;
	return look_again(w, p, err);
}

/* Refuses before anything is changed what cannot work. */
static int check(const struct work *w, const struct pp_policy_setting *setting,
	const struct pp_policy *p, struct pp_error *err)
{
	bool off = setting->write_cache == PP_TRUTH_NO;

	if (off && !has_no_cache(p) && p->cache_changeable != PP_TRUTH_YES)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "cannot make '%s' %s: its write cache cannot be set "
			"from here (%s)", w->drive.node, setting->name, p->drive_words);
	if (!off && has_no_cache(p) && p->cache_changeable != PP_TRUTH_YES)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "cannot make '%s' %s: %s", w->drive.node, setting->name,
			p->drive_words);
	/* The next one's flushes would be dropped; to have them back is always right. */
	if (!off && setting->flushing == PP_TRUTH_NO && w->drive.transport == PP_TRANSPORT_LOOP)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "cannot make '%s' %s: a loop device would keep it when "
			"it changes hands", w->drive.node, setting->name);
	if (!off && p->flushing_changeable != PP_TRUTH_YES &&
		p->system_cache != (setting->flushing == PP_TRUTH_YES ? PP_TRUTH_YES : PP_TRUTH_NO))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "cannot make '%s' %s: this kernel lets nobody change "
			"what it believes of it (queue/write_cache)", w->drive.node, setting->name);
	return 0;
}

static int make(struct work *w, const struct pp_policy_setting *setting, struct pp_policy *p,
	struct pp_error *err)
{
	bool on = setting->write_cache == PP_TRUTH_YES;
	char text[160];

	if (on ? has_no_cache(p) : !has_no_cache(p))
		if (set_drive_cache(w, on, p, err) != 0)
			return -1;
	if (on && setting->flushing == PP_TRUTH_YES && p->system_cache != PP_TRUTH_YES &&
		set_belief(w, BACK, p, err) != 0)
		return -1;
	if (on && setting->flushing == PP_TRUTH_NO && p->system_cache != PP_TRUTH_NO &&
		set_belief(w, THROUGH, p, err) != 0)
		return -1;
	if (pp_policy_matches(p, setting))
		return 0;
	pp_policy_text(p, text, sizeof(text));
	return pp_fail(err, PP_ERR_SYSTEM, "'%s' did not become %s: read back as '%s'", w->drive.node,
		setting->name, text);
}

/* As it was: the drive's cache, then the belief; what is so already is not written. */
static int put_back(struct work *w, const struct pp_policy_saved *saved, struct pp_error *err)
{
	bool on = saved->before.drive_cache == PP_CACHE_ON;
	bool known = on || saved->before.drive_cache == PP_CACHE_OFF;
	char now[48] = "", type[64];
	struct pp_policy p;
	int rc = 0;

	read_policy(w, &p);
	if (known && p.drive_cache != saved->before.drive_cache)
		rc = set_drive_cache(w, on, &p, err);
	/* A belief of sd's that never was the drive's: "temporary" changes nothing in the drive. */
	if (rc == 0 && w->sd && saved->scsi_cache_type[0] &&
		pp_sys_text(w->sys, now, sizeof(now), "%s", w->cache_type) &&
		strcmp(now, saved->scsi_cache_type) != 0) {
		snprintf(type, sizeof(type), "temporary %s", saved->scsi_cache_type);
		rc = write_attribute(w, w->cache_type, type, err);
		if (rc == 0)
			rc = look_again(w, &p, err);
	}
	if (rc == 0 && saved->queue_write_cache[0] &&
		strcmp(w->drive.write_cache, saved->queue_write_cache) != 0)
		rc = set_belief(w, saved->queue_write_cache, &p, err);
	if (rc != 0)
		return -1;
	if ((known && p.drive_cache != saved->before.drive_cache) ||
		strcmp(w->drive.write_cache, saved->queue_write_cache) != 0)
		return pp_fail(err, PP_ERR_SYSTEM, "'%s' did not go back: it is '%s', and the kernel believes "
			"'%s'", w->drive.node, cache_word(p.drive_cache), w->drive.write_cache);
	return 0;
}

int pp_policy_set_on(const struct pp_policy_host *host, const char *disk,
	const struct pp_policy_setting *setting, struct pp_policy_saved *saved, struct pp_error *err)
{
	struct pp_policy_saved own;
	struct pp_error again;
	struct pp_policy now;
	struct work w;

	if (start(&w, host, disk, err) != 0)
		return -1;
	save(&w, &own);
	snprintf(own.wanted, sizeof(own.wanted), "%s", setting->name);
	if (saved)
		*saved = own;
	now = own.before;
	if (pp_policy_matches(&now, setting))
		return 0;
	if (check(&w, setting, &now, err) != 0)
		return -1;
	if (make(&w, setting, &now, err) == 0)
		return 0;
	if (put_back(&w, &own, &again) != 0)
		return pp_fail_within(err, "now half set (%s)", again.text);
	return -1;
}

int pp_policy_restore_on(const struct pp_policy_host *host, const char *disk,
	const struct pp_policy_saved *saved, struct pp_error *err)
{
	struct work w;

	if (strcmp(saved->system, PP_OS_NAME) != 0)
		return pp_fail(err, PP_ERR_REFUSED, "the saved policy is of %s, this is %s", saved->system,
			PP_OS_NAME);
	if (start(&w, host, disk, err) != 0)
		return -1;
	if (strcmp(saved->serial, w.drive.serial) != 0 || strcmp(saved->wwn, w.drive.wwn) != 0 ||
		strncmp(saved->model, w.drive.model, sizeof(saved->model) - 1) != 0)
		return pp_fail(err, PP_ERR_REFUSED, "the saved policy is of drive '%s', '%s' is '%s'",
			saved->serial[0] ? saved->serial : saved->wwn, w.drive.node,
			w.drive.serial[0] ? w.drive.serial : w.drive.wwn);
	return put_back(&w, saved, err);
}

/* ---- on this machine ---------------------------------------------------------------------- */

const struct pp_policy_host pp_policy_host_live = {NULL, &pp_policy_ops_live};

int pp_policy_read(const char *disk, struct pp_policy *policy, struct pp_error *err)
{
	return pp_policy_read_on(&pp_policy_host_live, disk, policy, err);
}

int pp_policy_save(const char *disk, struct pp_policy_saved *saved, struct pp_error *err)
{
	return pp_policy_save_on(&pp_policy_host_live, disk, saved, err);
}

int pp_policy_set(const char *disk, const struct pp_policy_setting *setting,
	struct pp_policy_saved *saved, struct pp_error *err)
{
	return pp_policy_set_on(&pp_policy_host_live, disk, setting, saved, err);
}

int pp_policy_restore(const char *disk, const struct pp_policy_saved *saved, struct pp_error *err)
{
	return pp_policy_restore_on(&pp_policy_host_live, disk, saved, err);
}
