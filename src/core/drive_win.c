/* SPDX-License-Identifier: MIT */
#include "drive.h"

#include <stdlib.h>
#include <string.h>

const struct pp_sysroot pp_sysroot_live = { .root = "", .ops = NULL };

#define NOT_YET pp_fail(err, PP_ERR_UNSUPPORTED, "drives are not identified on Windows yet")

int pp_drive_read(const struct pp_sysroot *sys, const char *name, struct pp_drive_info *info,
	struct pp_error *err)
{
	(void)sys;
	(void)name;
	memset(info, 0, sizeof(*info));
	return NOT_YET;
}

int pp_drive_list(const struct pp_sysroot *sys, struct pp_drive_info **infos, size_t *count,
	struct pp_error *err)
{
	(void)sys;
	*infos = NULL;
	*count = 0;
	return NOT_YET;
}

int pp_drive_find(const struct pp_sysroot *sys, const char *id, struct pp_drive_info *info,
	struct pp_error *err)
{
	(void)sys;
	(void)id;
	memset(info, 0, sizeof(*info));
	return NOT_YET;
}

int pp_drive_wait(const struct pp_sysroot *sys, const char *id, int64_t timeout_ms,
	struct pp_drive_info *info, struct pp_error *err)
{
	(void)timeout_ms;
	return pp_drive_find(sys, id, info, err);
}

int pp_drive_of_fd(int fd, const char *path, struct pp_stack *stack, struct pp_error *err)
{
	(void)fd;
	(void)path;
	memset(stack, 0, sizeof(*stack));
	return NOT_YET;
}

int pp_drives_share(const struct pp_sysroot *sys, const char *a, const char *b, char *why,
	size_t why_bytes, struct pp_error *err)
{
	(void)sys;
	(void)a;
	(void)b;
	(void)why;
	(void)why_bytes;
	return NOT_YET;
}

int pp_drive_smart_raw(const struct pp_drive_info *info, struct pp_buf *json, struct pp_error *err)
{
	(void)info;
	(void)json;
	(void)err;
	return 0; /* no smartctl: that is no failure */
}
