/* SPDX-License-Identifier: MIT
 *
 * Shared by target*.c only: the steps that proving, formatting and checking have in common.
 */
#ifndef PP_CORE_TARGET_PARTS_H
#define PP_CORE_TARGET_PARTS_H

#include "os.h"
#include "target.h"

/* A file system found by libblkid. */
struct pp_fs_found {
	char name[PP_DRIVE_NAME_BYTES]; /* kernel name of the device it is on */
	char node[PP_DRIVE_NODE_BYTES];
	char uuid[PP_TARGET_UUID_BYTES];
	char type[32];
	int partition; /* 0: the whole drive; n; PP_PARTITION_UNKNOWN: on a layer above */
};

/* Sets *state and fails: `return pp_target_fail(&state, PP_TARGET_REFUSED, err, ...)`. */
int pp_target_fail(enum pp_target_state *state, enum pp_target_state is, struct pp_error *err,
	const char *fmt, ...) __attribute__((format(PP_FORMAT, 4, 5)));

/* Waits for the drive of the spec, checks its size and that it does not carry the system. */
int pp_target_find_drive(const struct pp_target_spec *spec, struct pp_drive_info *drive,
	enum pp_target_state *state, struct pp_error *err);

/* The least that both divide; a where b is 0. */
uint64_t pp_common_multiple(uint64_t a, uint64_t b);

/* Reads a block at the start, in the middle and at the end of the device, past the page cache. */
int pp_target_readable(const char *node, uint64_t size_bytes, struct pp_error *err);

/*
 * Nothing on the device of this kernel name (a drive with all its partitions, or a partition) is
 * mounted, and an exclusive open succeeds: *fd, or closed again if fd is NULL.
 */
int pp_target_claim(const char *name, int flags, int *fd, enum pp_target_state *state,
	struct pp_error *err);

/* What libblkid says of one device: 1 found, 0 no file system, -1 not readable. */
int pp_fs_probe(const char *name, struct pp_fs_found *found);

/* The file system of the spec on this drive ("auto": the only one); waits for late partitions. */
int pp_fs_find(const struct pp_target_spec *spec, const struct pp_drive_info *drive,
	struct pp_fs_found *found, enum pp_target_state *state, struct pp_error *err);

/* Kernel name of partition n of the drive; n 0 is the drive itself. */
bool pp_partition_name(const char *drive, int n, char name[PP_DRIVE_NAME_BYTES]);
/* The reverse; PP_PARTITION_UNKNOWN if name is neither. */
int pp_partition_number(const char *drive, const char *name);

/* mount(2) with options as for mount(8) -o; 0, or an errno. Kernel complaints go to text. */
int pp_mount_fs(const struct pp_fs_found *fs, const char *disk, const char *dir,
	const char *options, char *text, size_t text_bytes);

/* True if a mount(2) that fails so speaks of the file system, not of this machine. */
bool pp_mount_errno_is_damage(int code);

/* umount(2) within timeout_ms, else detached and *lazy set; 0, or an errno. */
int pp_umount_fs(const char *dir, int64_t timeout_ms, bool *lazy);

#endif
