/* SPDX-License-Identifier: MIT */
#include "scan_source.h"

int pp_scan_source_open(const struct pp_layout *layout, const char *const *paths, size_t count,
	const struct pp_scan_source_options *options, struct pp_scan_source *source,
	struct pp_error *err)
{
	(void)layout;
	(void)paths;
	(void)count;
	(void)options;
	(void)source;
	return pp_fail(err, PP_ERR_UNSUPPORTED, "nothing is scanned on Windows yet");
}

bool pp_scan_source_buffered(const struct pp_scan_source *source)
{
	(void)source;
	return false;
}

unsigned pp_scan_source_stuck(const struct pp_scan_source *source)
{
	(void)source;
	return 0;
}

void pp_scan_source_close(struct pp_scan_source *source)
{
	(void)source;
}
