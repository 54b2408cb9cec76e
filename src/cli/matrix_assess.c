/* SPDX-License-Identifier: MIT
 *
 * A matrix as assess.h takes it: the same facts and figures that assess_read.c takes from its JSON.
 */
#include <string.h>

#include "matrix_show.h"
#include "src/core/assess.h"
#include "src/core/drive.h"
#include "src/core/text.h"

static void take_counts(const struct pp_matrix_row *from, struct pp_assess_row *row)
{
	row->flushes_per_op = row->fua_per_op = row->foreign_per_s = row->disk_bytes = -1;
	if (!from->counted)
		return;
	row->bytes_asked = (double)from->ops * from->writes * from->write_bytes;
	row->flushes_per_op = from->flushes_per_op;
	row->fua_per_op = from->fua_per_op;
	row->foreign_per_s = from->foreign_per_s;
	row->disk_bytes = (double)from->disk_bytes;
	row->foreign = from->foreign_traffic;
}

static void take_row(const struct pp_matrix_row *from, struct pp_assess_row *row)
{
	pp_assess_row_init(row, from->label);
	if (pp_method_find(from->method))
		pp_assess_row_method(row, pp_method_find(from->method));
	row->media = from->promise == PP_PROMISE_MEDIA;
	row->in_place = !from->workload[0] || strcmp(from->workload, "overwrite") == 0;
	row->threads = from->threads;
	row->ops_per_s = from->ops_per_s;
	row->bytes_per_s = from->bytes_per_s;
	row->latency_ns_p50 = (double)from->latency_ns_p50;
	take_counts(from, row);
	pp_text_format(row->group, sizeof(row->group), "%s %s %u %u x %u", from->section,
		from->workload, from->threads, from->writes, from->write_bytes);
}

static void take_drive(const char *disk, struct pp_assess_facts *facts)
{
	static struct pp_drive_info drive; /* large */

	if (!*disk || pp_drive_read(NULL, disk, &drive, NULL) != 0)
		return;
	pp_link_of_disk(NULL, disk, &facts->link);
	facts->rotational = drive.rotational && !pp_transport_remote(drive.transport);
	pp_assess_fact("cache", pp_matrix_cache_of(&drive), facts, NULL);
}

void pp_matrix_assess_input(const struct pp_matrix *matrix, struct pp_assess_input *in)
{
	size_t i;

	memset(in, 0, sizeof(*in));
	in->format = "json";
	take_drive(matrix->disk, &in->facts);
	for (i = 0; i < matrix->row_count && in->count < PP_ASSESS_ROWS_MAX; i++)
		if (matrix->rows[i].status == PP_MATRIX_OK)
			take_row(&matrix->rows[i], &in->rows[in->count++]);
}

/* What of a drive's cache nobody reports is unknown, and says nothing. */
const char *pp_matrix_cache_of(const struct pp_drive_info *drive)
{
	if (drive->drive_cache == PP_CACHE_NONE || drive->drive_cache == PP_CACHE_OFF ||
		drive->no_volatile_cache)
		return "off";
	if (drive->drive_cache == PP_CACHE_ON || strcmp(drive->write_cache, "write back") == 0)
		return "on";
	return strcmp(drive->write_cache, "write through") == 0 ? "off" : "unknown";
}
