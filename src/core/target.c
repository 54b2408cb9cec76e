/* SPDX-License-Identifier: MIT */
#include "target.h"

#include <string.h>

static const char *const states[] = {
	[PP_TARGET_OK] = "ok",
	[PP_TARGET_DRIVE_GONE] = "drive-gone",
	[PP_TARGET_DRIVE_CHANGED] = "drive-changed",
	[PP_TARGET_DRIVE_UNREADABLE] = "drive-unreadable",
	[PP_TARGET_FS_DAMAGED] = "fs-damaged",
	[PP_TARGET_FS_UNAVAILABLE] = "fs-unavailable",
	[PP_TARGET_REFUSED] = "refused",
	[PP_TARGET_FAILED] = "failed",
};

const char *pp_target_state_name(enum pp_target_state state)
{
	return states[state];
}

bool pp_target_state_find(const char *name, enum pp_target_state *state)
{
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (strcmp(name, states[i]) == 0) {
			*state = (enum pp_target_state)i;
			return true;
		}
	return false;
}

const char *pp_check_result_name(enum pp_check_result result)
{
	static const char *const names[] = {
		[PP_CHECK_CLEAN] = "clean",
		[PP_CHECK_DAMAGED] = "damaged",
		[PP_CHECK_UNAVAILABLE] = "not available",
	};

	return names[result];
}

void pp_target_spec_init(struct pp_target_spec *spec)
{
	memset(spec, 0, sizeof(*spec));
	spec->fs_partition = PP_PARTITION_UNKNOWN;
	spec->wait_ms = PP_TARGET_WAIT_MS;
}

void pp_target_init(struct pp_target *target)
{
	memset(target, 0, sizeof(*target));
	target->fd = -1;
	target->fs_partition = PP_PARTITION_UNKNOWN;
}
