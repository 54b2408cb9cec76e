/* SPDX-License-Identifier: MIT */
#include "win_raw.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "target_parts.h"

#define DISK_PREFIX "\\\\.\\PhysicalDrive"
#define DIGITS_MAX  4

int pp_win_raw_number(const char *node)
{
	size_t n = strlen(DISK_PREFIX), digits;

	if (strncmp(node, DISK_PREFIX, n) != 0)
		return -1;
	digits = strspn(node + n, "0123456789");
	return digits == 0 || digits > DIGITS_MAX || node[n + digits] ? -1 : atoi(node + n);
}

static bool is_on(const struct pp_win_volume_place *place, unsigned number)
{
	size_t i;

	for (i = 0; i < place->disks; i++)
		if (place->disk[i] == number)
			return true;
	return false;
}

static int check_volumes(const struct pp_win_raw_calls *calls, const char *node, unsigned number,
	enum pp_target_state *state, struct pp_error *err)
{
	struct pp_win_volume_place place;
	uint32_t code;
	size_t i;

	for (i = 0;; i++) {
		memset(&place, 0, sizeof(place));
		code = calls->volume(calls->ctx, i, &place);
		if (code == PP_WIN_NO_MORE)
			return 0;
		if (code != 0)
			return pp_target_fail(state, PP_TARGET_REFUSED, err, "cannot list the volumes of this "
				"machine (error %" PRIu32 "): take '%s' offline in diskpart, 'select disk %u', "
				"'offline disk'", code, node, number);
		if (is_on(&place, number))
			return pp_target_fail(state, PP_TARGET_REFUSED, err, "'%s' has the volume '%s', which "
				"Windows writes to: in diskpart, 'select disk %u', 'offline disk'", node,
				place.name, number);
		if (place.code != 0 && !place.no_disk)
			return pp_target_fail(state, PP_TARGET_REFUSED, err, "cannot tell whether the volume "
				"'%s' is on '%s' (error %" PRIu32 "): in diskpart, 'select disk %u', "
				"'offline disk'", place.name, node, place.code, number);
	}
}

int pp_win_raw_unused(const struct pp_win_raw_calls *calls, const char *node, unsigned number,
	enum pp_target_state *state, struct pp_error *err)
{
	uint64_t attributes = 0;
	uint32_t code = calls->attributes(calls->ctx, &attributes);

	if (code == 0 && attributes & PP_WIN_ATTRIBUTE_READ_ONLY)
		return pp_target_fail(state, PP_TARGET_REFUSED, err, "'%s' is read-only: in diskpart, "
			"'select disk %u', 'attributes disk clear readonly'", node, number);
	if (code == 0 && attributes & PP_WIN_ATTRIBUTE_OFFLINE)
		return 0;
	/* A driver that tells no attributes has no offline disks. */
	return check_volumes(calls, node, number, state, err);
}
