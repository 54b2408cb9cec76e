/* SPDX-License-Identifier: MIT
 *
 * The target on the machine under test (docs/method.md, M2.7): before the first ack, and again
 * before a scan, it is proven to lie on the planned drive. The proof is made on open descriptors:
 * a writer that trusts a path writes into the initramfs when the mount failed, and acks it.
 *
 *   raw:  the whole disk by serial or WWN, opened exclusively (open(2), O_EXCL on a block device),
 *         with no mount, no other holder, no signature (libblkid) unless it is told so.
 *   file: the file system by its recorded UUID on that drive, mounted by us in a private place; or,
 *         in path mode, a folder of a mounted file system whose drive and UUID are proven.
 *
 * One thread at a time may use one struct pp_target. Nothing here retries a failed sync.
 */
#ifndef PP_CORE_TARGET_H
#define PP_CORE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "drive.h"
#include "error.h"
#include "method.h"

#define PP_TARGET_PATH_BYTES   512
#define PP_TARGET_WAIT_MS      300000 /* M2.7 */
#define PP_TARGET_UUID_BYTES   64
#define PP_TARGET_MOUNT_ROOT   "/run/plugpull"
#define PP_PARTITION_UNKNOWN   (-1)

/*
 * What came of it; M6 treats each differently. Only DRIVE_GONE, DRIVE_CHANGED and FS_DAMAGED
 * speak against the drive; what is in doubt is UNAVAILABLE.
 */
enum pp_target_state {
	PP_TARGET_OK,
	PP_TARGET_DRIVE_GONE,       /* no drive of that identity within the time (M6.1) */
	PP_TARGET_DRIVE_CHANGED,    /* there, but smaller than recorded (M6.1) */
	PP_TARGET_DRIVE_UNREADABLE, /* there, but does not answer reads */
	PP_TARGET_FS_DAMAGED,       /* drive readable, mount reports damage (M6.3: fs-gone when twice) */
	PP_TARGET_FS_UNAVAILABLE,   /* no such UUID, missing module, stack not assembled, busy: open */
	PP_TARGET_REFUSED,          /* a safety rule said no */
	PP_TARGET_FAILED,           /* this machine failed: no memory, bad path, not root, bad options */
};

const char *pp_target_state_name(enum pp_target_state state); /* "ok", "drive-gone", ... */
bool pp_target_state_find(const char *name, enum pp_target_state *state);

struct pp_target_spec {
	enum pp_target_kind kind;
	char serial[PP_DRIVE_SERIAL_BYTES];    /* or WWN: the whole of it */
	uint64_t drive_size_bytes;             /* as recorded when the plan began; 0: not yet */
	char fs_uuid[PP_TARGET_UUID_BYTES];    /* as recorded; "auto" takes the only one there is */
	char fs_type[32];                      /* as recorded, or what to format; "" takes what is there */
	int fs_partition;                      /* where it was: 0 whole disk, n, PP_PARTITION_UNKNOWN */
	char mount_options[256];               /* as for mount(8) -o; "" for the defaults */
	char mount_dir[PP_TARGET_PATH_BYTES];  /* "" is PP_TARGET_MOUNT_ROOT/SERIAL */
	char directory[256];                   /* in the file system, made if missing; "": its root */
	char path[PP_TARGET_PATH_BYTES];       /* path mode: a folder that must exist; else "" */
	uint64_t size_bytes;                   /* wanted: of the target's file(s), or of the raw area */
	char destroy[PP_DRIVE_SERIAL_BYTES];   /* the serial that a person named for destruction */
	bool force;   /* a signature is no obstacle: payload of earlier runs may look like one by chance */
	bool boot_drive;                       /* the drive may carry the running system */
	int64_t wait_ms;                       /* for the drive; negative is PP_TARGET_WAIT_MS */
};

void pp_target_spec_init(struct pp_target_spec *spec);

struct pp_target {
	enum pp_target_state state;
	struct pp_drive_info drive;
	enum pp_target_kind kind;
	int fd;              /* raw: the device, O_RDWR|O_EXCL; file: the folder. -1 if none */
	char path[PP_TARGET_PATH_BYTES];  /* raw: "/dev/nvme0n1"; file: the folder */
	dev_t dev;           /* raw: st_rdev of the device; file: st_dev of the folder */
	uint64_t size_bytes; /* raw: of the device; file: free bytes of the file system */
	uint32_t unit_bytes; /* U of M2.5 */
	char fs_uuid[PP_TARGET_UUID_BYTES];
	char fs_type[32];
	char fs_node[PP_DRIVE_NODE_BYTES]; /* device that the file system is on */
	int fs_partition;    /* as in the spec */
	char mount_options[1600]; /* effective, from /proc/self/mountinfo: part of the arm key */
	char mount_dir[PP_TARGET_PATH_BYTES];
	bool mounted_by_us;
	bool no_barrier;     /* a mount option keeps the kernel from asking the drive */
	char complaints[2048]; /* the kernel's words on this device at mount, a line each: `fs-damaged` */
};

/* An empty target, fd -1. */
void pp_target_init(struct pp_target *target);

/*
 * Proves and opens the target. 0 with state PP_TARGET_OK; otherwise -1, the state says which kind
 * of trouble, nothing stays open or mounted (a further pp_target_release does no harm).
 */
int pp_target_prove(const struct pp_target_spec *spec, struct pp_target *target,
	struct pp_error *err);

/*
 * The same proof for a descriptor that a lane or scan has opened itself: fd is the proven raw
 * device, or a regular file or folder of the proven file system (btrfs: by its fsid).
 */
int pp_target_prove_fd(const struct pp_target *target, int fd, struct pp_error *err);

/* openat(2) below a proven target (name NULL: the raw device itself), then pp_target_prove_fd. */
int pp_target_open(const struct pp_target *target, const char *name, int flags, mode_t mode,
	int *fd, struct pp_error *err);

/* Still there, same size, answers a read: 0, or -1 with target->state set. For use after a cut. */
int pp_target_probe(struct pp_target *target, struct pp_error *err);

/*
 * Unmounts what prove had mounted and closes fd. If the file system stays busy or the device hangs
 * for timeout_ms, it is detached (umount2(2), MNT_DETACH), *lazy is set and that is no failure.
 */
int pp_target_unmount(struct pp_target *target, int64_t timeout_ms, bool *lazy,
	struct pp_error *err);

/* pp_target_unmount with 10 s, errors unsaid; for every way out. Idempotent. */
void pp_target_release(struct pp_target *target);

/*
 * Makes a new file system of spec->fs_type on the drive (or on its partition fs_partition) and
 * records UUID, place and drive size in spec. Destroys: only where spec->destroy names
 * this drive, all the refusals of a raw target hold.
 */
int pp_target_format(struct pp_target_spec *spec, enum pp_target_state *state,
	struct pp_error *err);

enum pp_check_result { PP_CHECK_CLEAN, PP_CHECK_DAMAGED, PP_CHECK_UNAVAILABLE };

const char *pp_check_result_name(enum pp_check_result result);

struct pp_target_check {
	enum pp_check_result result;
	char program[64];
	char text[2048]; /* the first lines of what the checker said, or why it could not */
};

/* M2.8: read-only check of the unmounted file system. -1 only if the drive or file system is not
 * found; an absent or failing checker is a result. */
int pp_target_check(const struct pp_target_spec *spec, struct pp_target_check *check,
	struct pp_error *err);

/*
 * U of M2.5 for an open file, folder or device: the least multiple of page, file system block, and,
 * on drive (may be NULL) and every layer beneath fd, physical block and parity stripe.
 */
int pp_target_unit_bytes(const struct pp_drive_info *drive, int fd, uint32_t *unit_bytes,
	struct pp_error *err);

/* Every signature that libblkid finds on the node, as "ext4, gpt"; "" where there is none. */
int pp_target_signatures(const char *node, char *out, size_t out_bytes, struct pp_error *err);

#endif
