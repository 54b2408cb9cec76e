/* SPDX-License-Identifier: MIT
 *
 * Where each record of a run belongs (docs/method.md, M2.4, M2.5), the same for the writer that
 * puts it there, the scan that looks for it and the judge that compares.
 *
 * A target has one file (or raw device) in which every lane owns a region, or a file for each lane,
 * or a folder for each lane with a file for each slot. A record fills one slot of record_bytes.
 *
 *   overwrite     walks its slots round and round, in order or in a random order that is the same
 *                 in every lap, so that a slot is not written again before `slots` records
 *   append        takes each slot once, after the slots that earlier runs left; its file grows
 *   fallocated    the same in a file whose blocks are allocated, but unwritten
 *   create        the same with a file for each slot; the folder is synced before the ack
 *   create-nodir  the same without the folder's sync: a control, it promises nothing
 *   rename        overwrite with a file for each slot: a record is written beside it and renamed
 *                 over it; the folder is synced before the ack
 *
 * Whatever file a record is in, its cells name slot * record_bytes (from the region's start): in a
 * folder too, so that a block that shows up in another file is known for what it is.
 */
#ifndef PP_CORE_LAYOUT_H
#define PP_CORE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "method.h"

#define PP_LANES_MAX 64
#define PP_GROUP_MAX 64

enum pp_workload {
	PP_OVERWRITE, PP_APPEND, PP_FALLOCATED, PP_CREATE, PP_CREATE_NODIR, PP_RENAME,
	PP_WORKLOADS
};

struct pp_layout {
	enum pp_workload workload;
	uint32_t lanes;
	uint32_t group;          /* records a sync */
	uint32_t record_bytes;
	uint32_t unit_bytes;     /* U of M2.5; regions and, without sub_block, records are multiples */
	bool sub_block;
	uint64_t region_offset;  /* of lane 0's region, bytes; 0 in files */
	uint64_t slots;          /* a lane; where slots are taken once: the most that there may be */
	uint64_t base_slots[PP_LANES_MAX]; /* where slots are taken once: those taken before the run */
	uint64_t shuffle;        /* overwrite: key of the random order, 63 bits; 0: in order */
};

/* W of M2.4: how many records a lane may run ahead of the last echoed ack. */
uint32_t pp_layout_window(const struct pp_layout *layout);

/*
 * Fills layout for a target of target_bytes (overwrite: the file or device; else the most that
 * all lanes' files together may take): regions as large as fit, folders of a bounded number of
 * files. Fails if a lane would own fewer than 4 W slots, or sizes break M2.5.
 */
int pp_layout_init(struct pp_layout *layout, enum pp_workload workload, uint32_t lanes,
	uint32_t group, uint32_t record_bytes, uint32_t unit_bytes, bool sub_block,
	uint64_t region_offset, uint64_t target_bytes, struct pp_error *err);

const char *pp_workload_name(enum pp_workload workload);
bool pp_workload_find(const char *name, enum pp_workload *workload);
/* True where every lane has a file, or a folder, of its own (M2.6). */
bool pp_workload_own_files(enum pp_workload workload);
/* True where a slot is taken once and base_slots counts; the target is rebuilt when it is full. */
bool pp_workload_grows(enum pp_workload workload);
/* True where every slot is a file of its own, in the lane's folder. */
bool pp_workload_record_files(enum pp_workload workload);
/* True where a record is written to a temporary file and renamed over its slot's (M4.5). */
bool pp_workload_renames(enum pp_workload workload);
/* True where the folder is synced before an ack, unless the method syncs nothing (M2.2). */
bool pp_workload_syncs_folder(enum pp_workload workload);

/*
 * What a method promises for records of this workload (M2.1, M2.6): n/a where the method is, or
 * where the workload needs files and the target is a device; *why (may be NULL) is then the reason.
 * A workload without the folder's sync promises nothing, whatever the method does.
 */
enum pp_promise pp_workload_promise(enum pp_workload workload, const struct pp_method *method,
	enum pp_target_kind kind, const char **why);

/* "sequential" or "random". */
const char *pp_layout_pattern_name(const struct pp_layout *layout);

/* Bytes that the files (or the device) of this layout must have room for. */
uint64_t pp_layout_target_bytes(const struct pp_layout *layout);

/* Files of the target: 1, or one a lane; folders where every slot is a file. */
uint32_t pp_layout_files(const struct pp_layout *layout);
uint32_t pp_layout_file_of(const struct pp_layout *layout, uint32_t lane);
/* Name of file (or folder) `file` for a target whose base name is `base` ("plugpull.target"). */
void pp_layout_file_name(const struct pp_layout *layout, const char *base, uint32_t file,
	char *name, int name_bytes);

/*
 * Slots that a scan of a lane looks at: for renames the temporary files too, slot s's at
 * slots + s; append: UINT64_MAX, as many as the file has.
 */
uint64_t pp_layout_scan_slots(const struct pp_layout *layout);
/*
 * The file that a slot is in, as a scan's source counts them: file_of the lane, or, where every slot
 * is a file, a number that pp_layout_record_name turns into its name within the lane's folder.
 */
uint32_t pp_layout_file_at(const struct pp_layout *layout, uint32_t lane, uint64_t slot);
/* Lane of such a number; name gets the file's, such as "00000012" or "00000012.tmp". */
uint32_t pp_layout_record_name(const struct pp_layout *layout, uint32_t file_at, char *name,
	int name_bytes);
/* Where in that file: 0 where every slot is a file, else as pp_layout_offset. */
uint64_t pp_layout_file_offset(const struct pp_layout *layout, uint32_t lane, uint64_t slot);

/* The highest sequence that has a place; above it a lane that takes slots once is full. */
uint64_t pp_layout_seq_max(const struct pp_layout *layout);

/* Slot of a record, and the byte offset that the record's cells name (that of the slot's file for
 * a temporary one). */
uint64_t pp_layout_slot(const struct pp_layout *layout, uint32_t lane, uint64_t seq);
uint64_t pp_layout_offset(const struct pp_layout *layout, uint32_t lane, uint64_t slot);

/* Newest sequence <= limit that belongs in this slot; 0 where only the base does. */
uint64_t pp_layout_newest(const struct pp_layout *layout, uint32_t lane, uint64_t slot,
	uint64_t limit);

#endif
