/* SPDX-License-Identifier: MIT */
#include "disk_trace.h"

#include <string.h>

int pp_disk_trace_open(struct pp_disk_trace *trace, const char *disk, struct pp_error *err)
{
	memset(trace, 0, sizeof(*trace));
	return pp_fail(err, PP_ERR_UNSUPPORTED, "requests of '%s' are not traced on Windows", disk);
}

int pp_disk_trace_start(struct pp_disk_trace *trace, struct pp_error *err)
{
	return pp_disk_trace_open(trace, "", err);
}

int pp_disk_trace_stop(struct pp_disk_trace *trace, struct pp_disk_trace_counts *counts,
	struct pp_error *err)
{
	memset(counts, 0, sizeof(*counts));
	return pp_disk_trace_open(trace, "", err);
}

void pp_disk_trace_close(struct pp_disk_trace *trace)
{
	(void)trace;
}
