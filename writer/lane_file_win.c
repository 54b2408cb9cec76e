/* SPDX-License-Identifier: MIT */
#include "lane_file.h"

int pp_lane_file_open(struct pp_lane_file *file, const struct pp_layout *layout,
	const struct pp_method *method, const struct pp_target *target, const char *path,
	uint32_t lane, struct pp_error *err)
{
	(void)layout;
	(void)method;
	(void)target;
	(void)path;
	(void)lane;
	file->fd = -1;
	return pp_fail(err, PP_ERR_UNSUPPORTED, "lanes do not write on Windows yet");
}

int pp_lane_file_close(struct pp_lane_file *file, struct pp_error *err)
{
	(void)file;
	(void)err;
	return 0;
}

void pp_lane_file_io(struct pp_lane_file *file, struct pp_lane_io *io)
{
	(void)file;
	(void)io;
}
