/* SPDX-License-Identifier: MIT */
#include "layout.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "record.h"

static const struct {
	const char *name;
	bool own_files;
} workloads[] = {
	[PP_OVERWRITE] = { "overwrite", false },
	[PP_APPEND] = { "append", true },
};

#define WORKLOADS (sizeof(workloads) / sizeof(workloads[0]))

const char *pp_workload_name(enum pp_workload workload)
{
	return workloads[workload].name;
}

bool pp_workload_find(const char *name, enum pp_workload *workload)
{
	size_t i;

	for (i = 0; i < WORKLOADS; i++) {
		if (strcmp(workloads[i].name, name) == 0) {
			*workload = (enum pp_workload)i;
			return true;
		}
	}
	return false;
}

bool pp_workload_own_files(enum pp_workload workload)
{
	return workloads[workload].own_files;
}

uint32_t pp_layout_window(const struct pp_layout *layout)
{
	return 2 * layout->group > 64 ? 2 * layout->group : 64;
}

static int check_sizes(const struct pp_layout *l, struct pp_error *err)
{
	if (l->lanes < 1 || l->lanes > PP_LANES_MAX)
		return pp_fail(err, PP_ERR_USAGE, "lanes must be 1 to %d, not %u", PP_LANES_MAX, l->lanes);
	if (l->group < 1 || l->group > PP_GROUP_MAX)
		return pp_fail(err, PP_ERR_USAGE, "group must be 1 to %d, not %u", PP_GROUP_MAX, l->group);
	if (l->record_bytes < PP_CELL_BYTES || l->record_bytes % PP_CELL_BYTES != 0 ||
		l->record_bytes > PP_RECORD_BYTES_MAX)
		return pp_fail(err, PP_ERR_USAGE,
			"record size must be a multiple of %d bytes up to %u, not %u", PP_CELL_BYTES,
			PP_RECORD_BYTES_MAX, l->record_bytes);
	if (l->unit_bytes < PP_CELL_BYTES || l->unit_bytes % PP_CELL_BYTES != 0)
		return pp_fail(err, PP_ERR_USAGE, "unit of %u bytes is not a multiple of %d",
			l->unit_bytes, PP_CELL_BYTES);
	if (l->record_bytes % l->unit_bytes != 0 && !l->sub_block)
		return pp_fail(err, PP_ERR_USAGE,
			"record size %u is not a multiple of this target's block of %u bytes: "
			"neighbours could be damaged together; use a multiple, or say sub_block = yes",
			l->record_bytes, l->unit_bytes);
	if (l->region_offset % l->unit_bytes != 0)
		return pp_fail(err, PP_ERR_USAGE, "region start %" PRIu64
			" is not a multiple of the block of %u bytes", l->region_offset, l->unit_bytes);
	return 0;
}

/* Regions start on multiples of the unit, so a lane's bytes are too; and slots go by whole groups. */
static uint64_t slots_that_fit(const struct pp_layout *l, uint64_t lane_bytes)
{
	uint64_t slots = lane_bytes / l->record_bytes;

	slots -= slots % l->group;
	while (slots && slots * l->record_bytes % l->unit_bytes != 0)
		slots -= l->group;
	return slots;
}

/* The fewest slots of 4 W or more for which that holds. */
static uint64_t slots_least(const struct pp_layout *l)
{
	uint64_t slots = 4ULL * pp_layout_window(l);

	slots = (slots + l->group - 1) / l->group * l->group;
	while (slots * l->record_bytes % l->unit_bytes != 0)
		slots += l->group;
	return slots;
}

int pp_layout_init(struct pp_layout *layout, enum pp_workload workload, uint32_t lanes,
	uint32_t group, uint32_t record_bytes, uint32_t unit_bytes, bool sub_block,
	uint64_t region_offset, uint64_t target_bytes, struct pp_error *err)
{
	uint64_t least, usable;

	memset(layout, 0, sizeof(*layout));
	layout->workload = workload;
	layout->lanes = lanes;
	layout->group = group;
	layout->record_bytes = record_bytes;
	layout->unit_bytes = unit_bytes;
	layout->sub_block = sub_block;
	layout->region_offset = region_offset;
	if (check_sizes(layout, err) != 0)
		return -1;
	usable = target_bytes > region_offset ? target_bytes - region_offset : 0;
	layout->slots = slots_that_fit(layout, usable / lanes);
	least = slots_least(layout);
	if (layout->slots < least)
		return pp_fail(err, PP_ERR_USAGE, "target of %" PRIu64 " bytes is too small: %u lane%s "
			"of %u-byte records need%s at least %" PRIu64 " bytes", target_bytes, lanes,
			lanes == 1 ? "" : "s", record_bytes, lanes == 1 ? "s" : "",
			region_offset + least * record_bytes * lanes);
	return 0;
}

uint32_t pp_layout_files(const struct pp_layout *layout)
{
	return pp_workload_own_files(layout->workload) ? layout->lanes : 1;
}

uint32_t pp_layout_file_of(const struct pp_layout *layout, uint32_t lane)
{
	return pp_workload_own_files(layout->workload) ? lane : 0;
}

void pp_layout_file_name(const struct pp_layout *layout, const char *base, uint32_t file,
	char *name, int name_bytes)
{
	if (pp_workload_own_files(layout->workload))
		snprintf(name, (size_t)name_bytes, "%s.%s.%u", base,
			pp_workload_name(layout->workload), file);
	else
		snprintf(name, (size_t)name_bytes, "%s", base);
}

static uint64_t base_of(const struct pp_layout *layout, uint32_t lane)
{
	return layout->workload == PP_APPEND ? layout->base_slots[lane] : 0;
}

uint64_t pp_layout_seq_max(const struct pp_layout *layout)
{
	uint64_t most = UINT64_MAX, room;
	uint32_t lane;

	if (layout->workload != PP_APPEND)
		return UINT64_MAX;
	for (lane = 0; lane < layout->lanes; lane++) {
		room = layout->slots > base_of(layout, lane) ? layout->slots - base_of(layout, lane) : 0;
		room -= room % layout->group;
		if (room < most)
			most = room;
	}
	return most;
}

uint64_t pp_layout_slot(const struct pp_layout *layout, uint32_t lane, uint64_t seq)
{
	assert(seq >= 1 && lane < layout->lanes);
	if (layout->workload == PP_APPEND)
		return base_of(layout, lane) + (seq - 1);
	return (seq - 1) % layout->slots;
}

uint64_t pp_layout_offset(const struct pp_layout *layout, uint32_t lane, uint64_t slot)
{
	uint64_t region = pp_workload_own_files(layout->workload)
		? 0 : layout->region_offset + lane * layout->slots * layout->record_bytes;

	return region + slot * layout->record_bytes;
}

uint64_t pp_layout_newest(const struct pp_layout *layout, uint32_t lane, uint64_t slot,
	uint64_t limit)
{
	if (layout->workload == PP_APPEND) {
		uint64_t base = base_of(layout, lane);

		return slot >= base && slot - base + 1 <= limit ? slot - base + 1 : 0;
	}
	if (limit < slot + 1)
		return 0;
	return slot + 1 + (limit - (slot + 1)) / layout->slots * layout->slots;
}
