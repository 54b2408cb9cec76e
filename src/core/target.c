/* SPDX-License-Identifier: MIT */
#include "target_parts.h"

#include <stdarg.h>
#include <stdio.h>
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

int pp_target_fail(enum pp_target_state *state, enum pp_target_state is, struct pp_error *err,
	const char *fmt, ...)
{
	char text[sizeof(err->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	*state = is;
	return pp_fail(err, is == PP_TARGET_REFUSED ? PP_ERR_REFUSED : PP_ERR_SYSTEM, "%s", text);
}

int pp_target_find_drive(const struct pp_target_spec *spec, struct pp_drive_info *drive,
	enum pp_target_state *state, struct pp_error *err)
{
	int64_t wait_ms = spec->wait_ms < 0 ? PP_TARGET_WAIT_MS : spec->wait_ms;
	struct pp_error why;
	char text[256];
	int rc;

	if (!spec->serial[0])
		return pp_target_fail(state, PP_TARGET_FAILED, err,
			"the target names no drive: give its serial or WWN");
	if (pp_drive_wait(NULL, spec->serial, wait_ms, drive, &why) != 0)
		return pp_target_fail(state, why.class == PP_ERR_UNSUPPORTED ? PP_TARGET_DRIVE_GONE :
			PP_TARGET_FAILED, err, "%s", why.text);
	if (spec->drive_size_bytes && drive->size_bytes < spec->drive_size_bytes)
		return pp_target_fail(state, PP_TARGET_DRIVE_CHANGED, err,
			"drive '%s' (%s) has %llu bytes and had %llu", spec->serial, drive->node,
			(unsigned long long)drive->size_bytes,
			(unsigned long long)spec->drive_size_bytes);
	rc = pp_drive_carries_system(NULL, drive->name, text, sizeof(text), &why);
	if (rc < 0)
		return pp_target_fail(state, PP_TARGET_FAILED, err, "%s", why.text);
	if (rc && !spec->boot_drive)
		return pp_target_fail(state, PP_TARGET_REFUSED, err,
			"%s: it is a target only with --boot-drive", text);
	return 0;
}

uint64_t pp_common_multiple(uint64_t a, uint64_t b)
{
	uint64_t x = a, y = b;

	if (!b)
		return a;
	while (y) {
		uint64_t rest = x % y;

		x = y;
		y = rest;
	}
	return a / x * b;
}
