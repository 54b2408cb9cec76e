/* SPDX-License-Identifier: MIT
 *
 * May a physical drive of Windows be written to as it is? Only where nothing of Windows writes to it
 * too: it is offline, or every volume of this machine was asked and none is on it. What cannot be
 * asked counts as being on it. Compiled everywhere, so that it is tested everywhere.
 *
 * Rests on IOCTL_DISK_GET_DISK_ATTRIBUTES and IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS (winioctl.h).
 */
#ifndef PP_CORE_WIN_RAW_H
#define PP_CORE_WIN_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target.h"

#define PP_WIN_ATTRIBUTE_OFFLINE   1u /* DISK_ATTRIBUTE_OFFLINE */
#define PP_WIN_ATTRIBUTE_READ_ONLY 2u /* DISK_ATTRIBUTE_READ_ONLY */
#define PP_WIN_NO_MORE             18u /* ERROR_NO_MORE_FILES */
#define PP_WIN_EXTENTS_MAX         64

struct pp_win_volume_place {
	char name[128];       /* as FindFirstVolume has it */
	bool no_disk;         /* a CD drive, or one without a medium */
	uint32_t code;        /* of asking for its disks, a Win32 code: 0, or why it is not known */
	size_t disks;
	unsigned disk[PP_WIN_EXTENTS_MAX];
};

struct pp_win_raw_calls {
	void *ctx;
	/* Win32 codes, both. Volumes are asked for in order, from 0; PP_WIN_NO_MORE after the last. */
	uint32_t (*attributes)(void *ctx, uint64_t *attributes);
	uint32_t (*volume)(void *ctx, size_t i, struct pp_win_volume_place *place);
};

/* 0, or -1 with *state and what a person can do. number: of \\.\PhysicalDriveN, which is node. */
int pp_win_raw_unused(const struct pp_win_raw_calls *calls, const char *node, unsigned number,
	enum pp_target_state *state, struct pp_error *err);

/* The N of \\.\PhysicalDriveN, whole; -1 for any other path. */
int pp_win_raw_number(const char *node);

#endif
