/* SPDX-License-Identifier: MIT
 *
 * The write-cache policy of a drive, as data: is the drive's own cache on, what does the system
 * (Linux or Windows) believe of it, and does a sync reach the drive as FLUSH or FUA. M1.5: it is read
 * back before every run and after every boot.
 *
 * Two things are told apart throughout: the word of the *drive* (ATA IDENTIFY word 85 bit 5, NVMe
 * feature 06h, SCSI caching mode page 08h, IOCTL_DISK_GET_CACHE_INFORMATION) and the belief of the
 * *system* (queue/write_cache; DEV_WRITE_CACHE of Windows' class driver). What could not be read is
 * unknown, never off.
 *
 * "Buffer flushing" is Windows' word: its box "Turn off Windows write-cache buffer flushing" is the
 * registry value CacheIsPowerProtected, under which every flush is completed without being sent.
 * Linux's like is a kernel that believes write through while the drive's cache is on.
 *
 * Lasts: on Linux nothing here survives a power cut for certain (the belief never does, a drive's
 * cache goes back to its own default), so a policy is set again after each boot; on Windows it stands
 * in the registry. Either way the state saved by the *first* set is what a restore wants.
 *
 * Never during a run: the Windows property query itself flushes the drive (a real SYNCHRONIZE CACHE),
 * and a set changes what is measured. pp_policy_run_begin() guards that.
 *
 * All functions act on this machine. disk is the kernel's name of a whole drive as struct
 * pp_drive_info has it: "sda", "nvme0n1", "PhysicalDrive1".
 * Rests on: Documentation/ABI/stable/sysfs-block (queue/write_cache), Documentation/scsi/sd-parameters,
 * ATA ACS (SET FEATURES 02h, 82h), NVMe Base Specification (feature 06h), SPC/SBC (mode page 08h),
 * Microsoft's documentation of ntdddisk.h and its published class driver (storage/class/disk).
 */
#ifndef PP_CORE_POLICY_H
#define PP_CORE_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "drive.h"
#include "error.h"
#include "kv.h"

#define PP_POLICY_WORDS_BYTES 256

/* Zero is unknown, so that a struct of zeros claims nothing. */
enum pp_truth { PP_TRUTH_UNKNOWN, PP_TRUTH_NO, PP_TRUTH_YES };

/* "unknown", "no", "yes"; and "unknown", "off", "on". */
const char *pp_truth_name(enum pp_truth truth);
const char *pp_truth_switch(enum pp_truth truth);

/* Whether a change holds at once or waits. */
enum pp_policy_when {
	PP_POLICY_NOW,    /* in force */
	PP_POLICY_REBOOT, /* stored, in force after a restart or when the drive is plugged in again */
};

struct pp_policy {
	char system[16];                 /* "linux", "windows": whose ways the words describe */
	enum pp_drive_cache drive_cache; /* the drive's own word: unknown, none, off, on */
	enum pp_truth system_cache;      /* the system believes that a volatile cache is on */
	/* Buffer flushing. no: flushes are dropped although the drive's cache is on or unknown. yes: they
	 * are sent, or there is no cache that they would be needed for. */
	enum pp_truth flushing;
	enum pp_truth flush_sent;        /* a sync makes the system send a flush command */
	enum pp_truth fua_sent;          /* a write-through write (O_DSYNC direct) may go as FUA */
	enum pp_truth cache_changeable;  /* write-cache on/off can be set from here */
	enum pp_truth flushing_changeable;
	enum pp_truth lasts;             /* what is set from here is still there after a power cut */
	enum pp_policy_when when;        /* what is stored is in force now, or only after a restart */
	char drive_words[PP_POLICY_WORDS_BYTES];  /* who was asked and what it said, for people */
	char system_words[PP_POLICY_WORDS_BYTES];
	char oddity[PP_POLICY_WORDS_BYTES];       /* two sources that contradict each other; or "" */
};

/* A policy that a plan or a person names. */
struct pp_policy_setting {
	const char *name;         /* "cache-on", "cache-off", "flushing-off" */
	enum pp_truth write_cache;/* of the drive itself */
	enum pp_truth flushing;
	const char *summary;      /* for people, a sentence */
};

extern const struct pp_policy_setting pp_policy_settings[];
extern const size_t pp_policy_setting_count;

/* Names match whole; NULL if there is none. */
const struct pp_policy_setting *pp_policy_setting_find(const char *name);

/* The setting that this policy is, or NULL where it is none or cannot be told. */
const struct pp_policy_setting *pp_policy_setting_of(const struct pp_policy *policy);

/*
 * Does the policy in force equal the setting? A drive that cannot be asked (nbd, virtio, loop) counts
 * as having its cache on as far as the system says so; "cache-off" always needs the drive's own word.
 * What is unknown never matches. A change that waits for a restart does not match.
 */
bool pp_policy_matches(const struct pp_policy *policy, const struct pp_policy_setting *setting);

/* One line for an arm or an event: "drive cache on, buffer flushing on, FUA sent". */
void pp_policy_text(const struct pp_policy *policy, char *out, size_t out_bytes);

/*
 * In plain words, one sentence a line: which of the two boxes is ticked, what the system then does
 * with flush and FUA, which methods that can break.
 */
void pp_policy_explain(const struct pp_policy *policy, struct pp_buf *out);

/* What was before the first change; enough to put it back, also after a reboot. */
struct pp_policy_saved {
	char system[16];                     /* "linux", "windows": never restored on another */
	char serial[PP_DRIVE_SERIAL_BYTES];  /* of the drive; restored to no other */
	char wwn[128];
	char model[128];
	char wanted[32];                     /* the setting that was then made, or "" */
	struct pp_policy before;             /* as read; its words are not kept */
	/* Raw values. "": this system or drive has none. */
	char queue_write_cache[32];          /* Linux: the kernel's belief */
	char scsi_cache_type[48];            /* Linux: sd's */
	/* Windows' registry; PP_POLICY_ABSENT: there was no such value; PP_POLICY_NONE: not known */
	int32_t user_write_cache_setting;
	int32_t cache_is_power_protected;
};
#define PP_POLICY_ABSENT (-1000)
#define PP_POLICY_NONE   (-1001)

/*
 * PP_ERR_UNSUPPORTED: no such drive, or it has no policy; PP_ERR_SYSTEM: the system refused. A single
 * question that is refused is no failure: its field stays unknown. PP_ERR_REFUSED while a run is going
 * on.
 */
int pp_policy_read(const char *disk, struct pp_policy *policy, struct pp_error *err);

/* Reads what a restore would need; changes nothing. */
int pp_policy_save(const char *disk, struct pp_policy_saved *saved, struct pp_error *err);

/*
 * Makes this setting and reads it back. saved (may be NULL) is filled before anything is changed, also
 * if a later step fails. PP_ERR_UNSUPPORTED where this drive or system cannot be set so: nothing was
 * changed then. PP_ERR_SYSTEM if a step failed or the drive did as it liked: what had been changed was
 * put back as far as possible, and the text says what it is now. A setting that is in force already
 * changes nothing and is no failure. 0 also if it is stored but not in force before a restart: read it
 * and look at `when`.
 */
int pp_policy_set(const char *disk, const struct pp_policy_setting *setting,
	struct pp_policy_saved *saved, struct pp_error *err);

/*
 * Puts back what was saved and reads it back. PP_ERR_REFUSED if it was saved on another system or from
 * another drive. What is as it was already is left alone.
 */
int pp_policy_restore(const char *disk, const struct pp_policy_saved *saved, struct pp_error *err);

/* The saved state as lines "key=value" (kv.h), and back; keys begin with "policy_". */
void pp_policy_saved_put(struct pp_buf *buf, const struct pp_policy_saved *saved);
int pp_policy_saved_get(const struct pp_kv *kv, struct pp_policy_saved *saved, struct pp_error *err);

/* The same for a policy as it was read (an agent's answer), with a prefix before each key. */
void pp_policy_put(struct pp_buf *buf, const char *prefix, const struct pp_policy *policy);
int pp_policy_get(const struct pp_kv *kv, const char *prefix, struct pp_policy *policy,
	struct pp_error *err);

/*
 * The guard: from begin to end (they nest; any thread) pp_policy_read, _save, _set and _restore of this
 * disk refuse with PP_ERR_REFUSED, and identify on Windows leaves out the query that flushes
 * (pp_drive_read never sends it). At most PP_POLICY_RUNS_MAX runs at a time: one more guards every
 * disk.
 */
#define PP_POLICY_RUNS_MAX 32
void pp_policy_run_begin(const char *disk);
void pp_policy_run_end(const char *disk);
bool pp_policy_in_run(const char *disk);

#endif
