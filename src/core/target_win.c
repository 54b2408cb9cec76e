/* SPDX-License-Identifier: MIT */
#include "target.h"

#include <unistd.h>

#define NOT_YET pp_fail(err, PP_ERR_UNSUPPORTED, "targets are not supported on Windows yet")

int pp_target_prove(const struct pp_target_spec *spec, struct pp_target *target,
	struct pp_error *err)
{
	(void)spec;
	target->state = PP_TARGET_FAILED;
	return NOT_YET;
}

int pp_target_prove_fd(const struct pp_target *target, int fd, struct pp_error *err)
{
	(void)target;
	(void)fd;
	return NOT_YET;
}

int pp_target_open(const struct pp_target *target, const char *name, int flags, mode_t mode,
	int *fd, struct pp_error *err)
{
	(void)target;
	(void)name;
	(void)flags;
	(void)mode;
	*fd = -1;
	return NOT_YET;
}

int pp_target_probe(struct pp_target *target, struct pp_error *err)
{
	target->state = PP_TARGET_FAILED;
	return NOT_YET;
}

int pp_target_unmount(struct pp_target *target, int64_t timeout_ms, bool *lazy,
	struct pp_error *err)
{
	(void)timeout_ms;
	(void)err;
	*lazy = false;
	pp_target_release(target);
	return 0;
}

void pp_target_release(struct pp_target *target)
{
	if (target->fd >= 0)
		close(target->fd);
	target->fd = -1;
}

int pp_target_format(struct pp_target_spec *spec, enum pp_target_state *state,
	struct pp_error *err)
{
	(void)spec;
	*state = PP_TARGET_REFUSED;
	return pp_fail(err, PP_ERR_UNSUPPORTED, "plugpull formats nothing on Windows: format it by hand "
		"and name the folder in the plan (path = FOLDER)");
}

int pp_target_check(const struct pp_target_spec *spec, struct pp_target_check *check,
	struct pp_error *err)
{
	(void)spec;
	(void)check;
	return NOT_YET;
}

int pp_target_unit_bytes(const struct pp_drive_info *drive, int fd, uint32_t *unit_bytes,
	struct pp_error *err)
{
	(void)drive;
	(void)fd;
	(void)unit_bytes;
	return NOT_YET;
}

int pp_target_signatures(const char *node, char *out, size_t out_bytes, struct pp_error *err)
{
	(void)node;
	(void)out;
	(void)out_bytes;
	return NOT_YET;
}
