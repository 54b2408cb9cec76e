/* SPDX-License-Identifier: MIT */
#include "disk_counters.h"

#include <inttypes.h>
#include <stdio.h>

bool pp_disk_counters_parse(const char *line, struct pp_disk_counters *counters)
{
	struct pp_disk_counters c = { 0 };
	int n = sscanf(line, "%" SCNu64 " %*u %" SCNu64 " %*u %" SCNu64 " %*u %" SCNu64
		" %*u %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &c.reads, &c.sectors_read, &c.writes,
		&c.sectors_written, &c.flushes);

	if (n != 4 && n != 5)
		return false;
	c.has_flushes = n == 5;
	*counters = c;
	return true;
}
