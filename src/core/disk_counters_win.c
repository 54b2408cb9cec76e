/* SPDX-License-Identifier: MIT */
#include "disk_counters.h"

#include <string.h>

int pp_disk_source_open(const char *path, struct pp_disk_source *source, struct pp_error *err)
{
	memset(source, 0, sizeof(*source));
	source->fd = -1;
	return pp_fail(err, PP_ERR_UNSUPPORTED, "what the disk of '%s' counts is not read on Windows yet",
		path);
}

int pp_disk_source_open_name(const char *name, struct pp_disk_source *source, struct pp_error *err)
{
	return pp_disk_source_open(name, source, err);
}

int pp_disk_source_read(const struct pp_disk_source *source, struct pp_disk_counters *counters,
	struct pp_error *err)
{
	memset(counters, 0, sizeof(*counters));
	return pp_fail(err, PP_ERR_UNSUPPORTED, "'%s' counts nothing", source->name);
}

void pp_disk_source_close(struct pp_disk_source *source)
{
	source->fd = -1;
}
