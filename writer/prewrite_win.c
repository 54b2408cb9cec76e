/* SPDX-License-Identifier: MIT */
#include "prewrite.h"
#include "writer.h"

uint64_t pp_writer_target_bytes(const struct pp_layout *layout)
{
	return pp_layout_target_bytes(layout);
}

int pp_writer_prewrite(struct pp_layout *layout, const char *path, const struct pp_run_id *run_id,
	bool compressible, bool direct, const struct pp_target *target, struct pp_error *err)
{
	(void)layout;
	(void)run_id;
	(void)compressible;
	(void)direct;
	(void)target;
	return pp_fail(err, PP_ERR_UNSUPPORTED, "'%s' is not written on Windows yet", path);
}
