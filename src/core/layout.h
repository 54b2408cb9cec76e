/* SPDX-License-Identifier: MIT
 *
 * Where each record of a run belongs (docs/method.md, M2.4, M2.5), the same for the writer that
 * puts it there, the scan that looks for it and the judge that compares.
 *
 * A target has one file (or raw device) in which every lane owns a region, or, for workloads that
 * grow, a file for each lane. A file is cut into slots of record_bytes from its region's start; a
 * record fills one slot. `overwrite` walks its slots round and round; `append` takes each slot
 * once, after the slots that earlier runs left.
 */
#ifndef PP_CORE_LAYOUT_H
#define PP_CORE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

#define PP_LANES_MAX 64
#define PP_GROUP_MAX 64

enum pp_workload { PP_OVERWRITE, PP_APPEND };

struct pp_layout {
	enum pp_workload workload;
	uint32_t lanes;
	uint32_t group;          /* records a sync */
	uint32_t record_bytes;
	uint32_t unit_bytes;     /* U of M2.5; regions and, without sub_block, records are multiples */
	bool sub_block;
	uint64_t region_offset;  /* of lane 0's region, bytes; 0 in files */
	uint64_t slots;          /* a lane; for append: the most that its file may grow to */
	uint64_t base_slots[PP_LANES_MAX]; /* append: slots that stood in the lane's file before the run */
};

/* W of M2.4: how many records a lane may run ahead of the last echoed ack. */
uint32_t pp_layout_window(const struct pp_layout *layout);

/*
 * Fills layout for a target of target_bytes (overwrite: the file or device; append: the most that
 * all lanes' files together may take): regions as large as fit. Fails if a lane would own fewer
 * than 4 W slots, or sizes break M2.5.
 */
int pp_layout_init(struct pp_layout *layout, enum pp_workload workload, uint32_t lanes,
	uint32_t group, uint32_t record_bytes, uint32_t unit_bytes, bool sub_block,
	uint64_t region_offset, uint64_t target_bytes, struct pp_error *err);

const char *pp_workload_name(enum pp_workload workload);
bool pp_workload_find(const char *name, enum pp_workload *workload);
/* True where every lane has a file of its own (M2.6). */
bool pp_workload_own_files(enum pp_workload workload);

/* Files of the target: 1, or one a lane. */
uint32_t pp_layout_files(const struct pp_layout *layout);
uint32_t pp_layout_file_of(const struct pp_layout *layout, uint32_t lane);
/* Name of file `file` for a target whose base name is `base` ("plugpull.target"). */
void pp_layout_file_name(const struct pp_layout *layout, const char *base, uint32_t file,
	char *name, int name_bytes);

/* The highest sequence that has a place; above it an append lane is full. */
uint64_t pp_layout_seq_max(const struct pp_layout *layout);

/* Slot of a record, and byte offset of a slot in its file. */
uint64_t pp_layout_slot(const struct pp_layout *layout, uint32_t lane, uint64_t seq);
uint64_t pp_layout_offset(const struct pp_layout *layout, uint32_t lane, uint64_t slot);

/* Newest sequence <= limit that belongs in this slot; 0 where only the base does. */
uint64_t pp_layout_newest(const struct pp_layout *layout, uint32_t lane, uint64_t slot,
	uint64_t limit);

#endif
