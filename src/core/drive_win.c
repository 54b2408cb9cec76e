/* SPDX-License-Identifier: MIT
 *
 * Volumes alone, so far (volume_win.h): physical drives are not asked yet.
 */
#include "drive.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "volume_win.h"

#define VOLUMES_MAX 26
#define PAUSE_MS    250

const struct pp_sysroot pp_sysroot_live = { .root = "", .ops = NULL };

int pp_drive_list(const struct pp_sysroot *sys, struct pp_drive_info **infos, size_t *count,
	struct pp_error *err)
{
	(void)sys;
	*count = 0;
	*infos = calloc(VOLUMES_MAX, sizeof(**infos));
	if (!*infos)
		return pp_fail(err, PP_ERR_SYSTEM, "no memory for a list of drives");
	*count = pp_volume_list(*infos, VOLUMES_MAX);
	return 0;
}

int pp_drive_read(const struct pp_sysroot *sys, const char *name, struct pp_drive_info *info,
	struct pp_error *err)
{
	struct pp_drive_info *all;
	size_t count, i;
	int rc = -1;

	if (pp_drive_list(sys, &all, &count, err) != 0)
		return -1;
	for (i = 0; i < count && rc != 0; i++)
		if (strcmp(all[i].name, name) == 0) {
			*info = all[i];
			rc = 0;
		}
	free(all);
	return rc == 0 ? 0 : pp_fail(err, PP_ERR_UNSUPPORTED, "there is no drive '%s'", name);
}

int pp_drive_find(const struct pp_sysroot *sys, const char *id, struct pp_drive_info *info,
	struct pp_error *err)
{
	(void)sys;
	return pp_volume_find(id, info, err);
}

int pp_drive_wait(const struct pp_sysroot *sys, const char *id, int64_t timeout_ms,
	struct pp_drive_info *info, struct pp_error *err)
{
	int64_t until_ns = pp_clock_mono_ns() + timeout_ms * PP_NS_PER_MS;

	for (;;) {
		if (pp_drive_find(sys, id, info, err) == 0)
			return 0;
		if (pp_clock_mono_ns() >= until_ns)
			return -1;
		pp_clock_sleep_ms(PAUSE_MS);
	}
}

int pp_drive_of_fd(int fd, const char *path, struct pp_stack *stack, struct pp_error *err)
{
	return pp_volume_stack(fd, path, stack, err);
}

/* Two volumes may well be on one disk, and nobody can tell. */
int pp_drives_share(const struct pp_sysroot *sys, const char *a, const char *b, char *why,
	size_t why_bytes, struct pp_error *err)
{
	(void)sys;
	(void)why;
	(void)why_bytes;
	return pp_fail(err, PP_ERR_UNSUPPORTED, "cannot tell whether volumes %s and %s share a disk: test "
		"one at a time", a, b);
}

int pp_drive_carries_system(const struct pp_sysroot *sys, const char *name, char *why,
	size_t why_bytes, struct pp_error *err)
{
	const char *root = getenv("SystemDrive");

	(void)sys;
	(void)err;
	if (why_bytes)
		why[0] = '\0';
	if (!root || strcmp(root, name) != 0)
		return 0;
	if (why_bytes > 0)
		strncat(why, "it carries Windows", why_bytes - 1);
	return 1;
}

int pp_drive_smart_raw(const struct pp_drive_info *info, struct pp_buf *json, struct pp_error *err)
{
	(void)info;
	(void)json;
	(void)err;
	return 0; /* no smartctl: that is no failure */
}
