/* SPDX-License-Identifier: MIT
 *
 * The letters of a request (rwbs): an F before the operation is a flush before it, an F after it is
 * FUA; the operation itself is one letter, and for an empty flush an F too, so "FF" is a flush and
 * "FWFS" a synchronous FUA write with a flush before it.
 */
#include "disk_trace.h"

#include <stdio.h>
#include <string.h>

#define EVENT " block_rq_issue: "
#define OPERATIONS "WRDNFZ"

static void add(const char *rwbs, uint64_t bytes, struct pp_disk_trace_counts *counts)
{
	bool preflush = rwbs[0] == 'F' && rwbs[1] && strchr(OPERATIONS, rwbs[1]);
	char operation = rwbs[preflush];
	const char *flags = rwbs + preflush + (operation != '\0');

	counts->requests++;
	if (operation == 'F') {
		counts->flushes++;
	} else if (operation != 'W') {
		counts->others++;
	} else {
		counts->writes++;
		counts->write_bytes += bytes;
		counts->preflushes += preflush;
		counts->fua_writes += strchr(flags, 'F') != NULL;
		counts->metadata += strchr(flags, 'M') != NULL;
	}
}

bool pp_disk_trace_line(const char *line, unsigned dev_major, unsigned dev_minor,
	struct pp_disk_trace_counts *counts)
{
	const char *at = line[0] == '#' ? NULL : strstr(line, EVENT);
	unsigned major, minor, bytes;
	char rwbs[16];

	if (!at || sscanf(at + strlen(EVENT), "%u,%u %15s %u", &major, &minor, rwbs, &bytes) != 4 ||
		major != dev_major || minor != dev_minor)
		return false;
	add(rwbs, bytes, counts);
	return true;
}
