/* SPDX-License-Identifier: MIT */
#include "prewrite.h"

#include "writer.h"

uint64_t pp_writer_target_bytes(const struct pp_layout *layout)
{
	return pp_layout_target_bytes(layout);
}

void pp_prewrite_fill(const struct pp_layout *layout, const struct pp_run_id *run_id,
	uint32_t flags, uint32_t lane, uint64_t slot, void *buf)
{
	struct pp_record record = {
		.run = *run_id,
		.lane = lane,
		.cells = layout->record_bytes / PP_CELL_BYTES,
		.flags = flags,
		.offset = pp_layout_offset(layout, lane, slot),
	};

	pp_record_fill(buf, &record);
}
