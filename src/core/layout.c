/* SPDX-License-Identifier: MIT */
#include "layout.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "record.h"
#include "splitmix.h"

/* Two windows of the largest group, and few enough that one folder of them is no test of folders. */
#define RENAME_SLOTS_MAX 1024
#define CREATE_SLOTS_MAX 65536

static const struct {
	const char *name;
	bool own_files, grows, record_files, renames, syncs_folder, promises_nothing;
	uint64_t slots_max;
} workloads[PP_WORKLOADS] = {
	[PP_OVERWRITE] = { .name = "overwrite" },
	[PP_APPEND] = { .name = "append", .own_files = true, .grows = true },
	[PP_FALLOCATED] = { .name = "fallocated", .own_files = true, .grows = true },
	[PP_CREATE] = { .name = "create", .own_files = true, .grows = true, .record_files = true,
		.syncs_folder = true, .slots_max = CREATE_SLOTS_MAX },
	[PP_CREATE_NODIR] = { .name = "create-nodir", .own_files = true, .grows = true,
		.record_files = true, .promises_nothing = true, .slots_max = CREATE_SLOTS_MAX },
	[PP_RENAME] = { .name = "rename", .own_files = true, .record_files = true, .renames = true,
		.syncs_folder = true, .slots_max = RENAME_SLOTS_MAX },
};

const char *pp_workload_name(enum pp_workload workload)
{
	return workloads[workload].name;
}

bool pp_workload_find(const char *name, enum pp_workload *workload)
{
	size_t i;

	for (i = 0; i < PP_WORKLOADS; i++) {
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

bool pp_workload_grows(enum pp_workload workload)
{
	return workloads[workload].grows;
}

bool pp_workload_record_files(enum pp_workload workload)
{
	return workloads[workload].record_files;
}

bool pp_workload_renames(enum pp_workload workload)
{
	return workloads[workload].renames;
}

bool pp_workload_syncs_folder(enum pp_workload workload)
{
	return workloads[workload].syncs_folder;
}

enum pp_promise pp_workload_promise(enum pp_workload workload, const struct pp_method *method,
	enum pp_target_kind kind, const char **why)
{
	enum pp_promise promise = pp_method_promise(method, kind);
	const char *reason = NULL;

	if (promise == PP_PROMISE_NA) {
		reason = "the method is not for this kind of target";
	} else if (kind == PP_TARGET_RAW && workloads[workload].own_files) {
		promise = PP_PROMISE_NA;
		reason = "the workload needs files, the target is a device";
	} else if (workloads[workload].promises_nothing) {
		promise = PP_PROMISE_NONE;
	}
	if (why)
		*why = reason;
	return promise;
}

const char *pp_layout_pattern_name(const struct pp_layout *layout)
{
	return layout->shuffle ? "random" : "sequential";
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

/* A file takes whole blocks, however little is in it. */
static uint64_t slot_bytes(const struct pp_layout *l)
{
	uint64_t bytes = l->record_bytes, unit = l->unit_bytes ? l->unit_bytes : 1;

	return workloads[l->workload].record_files ? (bytes + unit - 1) / unit * unit : bytes;
}

/* Regions start on multiples of the unit, so a lane's bytes are too; and slots go by whole groups. */
static bool slots_fit(const struct pp_layout *l, uint64_t slots)
{
	return slots * slot_bytes(l) % l->unit_bytes == 0;
}

static uint64_t slots_that_fit(const struct pp_layout *l, uint64_t lane_bytes)
{
	uint64_t slots = lane_bytes / slot_bytes(l), most = workloads[l->workload].slots_max;

	if (most && slots > most)
		slots = most;
	slots -= slots % l->group;
	while (slots && !slots_fit(l, slots))
		slots -= l->group;
	return slots;
}

/* The fewest slots of 4 W or more for which that holds. */
static uint64_t slots_least(const struct pp_layout *l)
{
	uint64_t slots = 4ULL * pp_layout_window(l);

	slots = (slots + l->group - 1) / l->group * l->group;
	while (!slots_fit(l, slots))
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
			region_offset + least * slot_bytes(layout) * lanes);
	return 0;
}

uint64_t pp_layout_target_bytes(const struct pp_layout *layout)
{
	return layout->region_offset + layout->slots * slot_bytes(layout) * layout->lanes;
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

uint64_t pp_layout_scan_slots(const struct pp_layout *layout)
{
	if (layout->workload == PP_APPEND)
		return UINT64_MAX;
	return workloads[layout->workload].renames ? 2 * layout->slots : layout->slots;
}

uint32_t pp_layout_file_at(const struct pp_layout *layout, uint32_t lane, uint64_t slot)
{
	if (!workloads[layout->workload].record_files)
		return pp_layout_file_of(layout, lane);
	return (uint32_t)(lane * pp_layout_scan_slots(layout) + slot);
}

uint32_t pp_layout_record_name(const struct pp_layout *layout, uint32_t file_at, char *name,
	int name_bytes)
{
	uint64_t each = pp_layout_scan_slots(layout), slot = file_at % each;

	snprintf(name, (size_t)name_bytes, "%08" PRIu64 "%s", slot % layout->slots,
		slot < layout->slots ? "" : ".tmp");
	return (uint32_t)(file_at / each);
}

uint64_t pp_layout_file_offset(const struct pp_layout *layout, uint32_t lane, uint64_t slot)
{
	return workloads[layout->workload].record_files ? 0 : pp_layout_offset(layout, lane, slot);
}

/* ---- the random order --------------------------------------------------------------------------
 *
 * A Feistel network over the next power of four, walked along its cycle until it hits a slot
 * ("cycle walking", Black and Rogaway 2002): a permutation that is inverted as easily as computed.
 */
#define ROUNDS 4

static uint32_t round_of(const struct pp_layout *l, uint32_t lane, unsigned round, uint32_t half)
{
	uint64_t x = l->shuffle + ((uint64_t)lane << 40) + ((uint64_t)round << 32) + half;

	return (uint32_t)pp_splitmix_mix(x);
}

static uint64_t shuffle_once(const struct pp_layout *l, uint32_t lane, uint64_t at, bool back)
{
	unsigned bits = 1, round;
	uint32_t mask, left, right, next;

	while (bits < 31 && l->slots > 1ULL << 2 * bits)
		bits++;
	mask = (1U << bits) - 1;
	left = (uint32_t)(at >> bits) & mask;
	right = (uint32_t)at & mask;
	for (round = 0; round < ROUNDS; round++) {
		if (back) {
			next = right ^ (round_of(l, lane, ROUNDS - 1 - round, left) & mask);
			right = left;
			left = next;
		} else {
			next = left ^ (round_of(l, lane, round, right) & mask);
			left = right;
			right = next;
		}
	}
	return (uint64_t)left << bits | right;
}

static uint64_t shuffle(const struct pp_layout *l, uint32_t lane, uint64_t at, bool back)
{
	if (!l->shuffle)
		return at;
	do
		at = shuffle_once(l, lane, at, back);
	while (at >= l->slots);
	return at;
}

/* ---- places ------------------------------------------------------------------------------------ */

static uint64_t base_of(const struct pp_layout *layout, uint32_t lane)
{
	return workloads[layout->workload].grows ? layout->base_slots[lane] : 0;
}

uint64_t pp_layout_seq_max(const struct pp_layout *layout)
{
	uint64_t most = UINT64_MAX, room;
	uint32_t lane;

	if (!workloads[layout->workload].grows)
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
	if (workloads[layout->workload].grows)
		return base_of(layout, lane) + (seq - 1);
	return shuffle(layout, lane, (seq - 1) % layout->slots, false);
}

uint64_t pp_layout_offset(const struct pp_layout *layout, uint32_t lane, uint64_t slot)
{
	uint64_t region = pp_workload_own_files(layout->workload)
		? 0 : layout->region_offset + lane * layout->slots * layout->record_bytes;

	if (workloads[layout->workload].renames && slot >= layout->slots)
		slot -= layout->slots;
	return region + slot * layout->record_bytes;
}

uint64_t pp_layout_newest(const struct pp_layout *layout, uint32_t lane, uint64_t slot,
	uint64_t limit)
{
	if (workloads[layout->workload].grows) {
		uint64_t base = base_of(layout, lane);

		return slot >= base && slot - base + 1 <= limit ? slot - base + 1 : 0;
	}
	slot = shuffle(layout, lane, slot, true);
	if (limit < slot + 1)
		return 0;
	return slot + 1 + (limit - (slot + 1)) / layout->slots * layout->slots;
}
