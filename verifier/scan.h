/* SPDX-License-Identifier: MIT
 *
 * The scan: what stands in every slot of a target after a cut (docs/method.md, M4). The machine
 * under test makes it (it has the drive), the control host keeps it as scan.bin and judges it.
 *
 * scan.bin, little-endian, a stream:
 *	header   "PPSCAN1\n", u32 version 1, u32 record bytes, u32 lanes, u32 flags (bit 0: sparse)
 *	lane     'L', u32 lane, u8 file state, i32 os code, u64 file bytes, u64 slots; then, unless
 *	         sparse, `slots` slot entries in order (pp_layout_scan_slots of them); where every slot
 *	         is a file of its own, state and bytes say nothing: its entry does
 *	sparse   'P', u32 lane, u64 slot, one slot entry (re-reads, M4.7)
 *	runs     'R', u32 count, count * 16 bytes: ids in the order in which slots refer to them
 *	end      'E', u64 XXH3-64 of all bytes before the 'E'
 *	slot     u8 kind; INTACT: u32 run, u32 lane, u32 flags, u64 seq, i64 issued, u64 durable;
 *	         RAW: bitmap of unread cells, bitmap of absent cells (ceil(cells / 8) bytes each),
 *	         record bytes (zeros where unread or absent)
 * Without its end a scan is incomplete, and an incomplete scan judges nothing (M6.2).
 */
#ifndef PP_VERIFIER_SCAN_H
#define PP_VERIFIER_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/error.h"
#include "src/core/layout.h"
#include "src/core/record.h"

enum pp_slot_kind {
	PP_SLOT_INTACT, /* one whole record, meant for this place */
	PP_SLOT_ZERO,   /* all bytes 00 */
	PP_SLOT_FF,     /* all bytes FF */
	PP_SLOT_ABSENT, /* wholly beyond the end of the file */
	PP_SLOT_RAW,    /* anything else; the bytes are kept */
	PP_SLOT_GONE,   /* its own file is not there */
	PP_SLOT_KINDS
};

enum pp_file_state { PP_FILE_PRESENT, PP_FILE_GONE };

struct pp_scan_slot {
	uint8_t kind;             /* enum pp_slot_kind */
	uint32_t run;             /* index into the scan's run ids */
	uint32_t lane, flags;
	uint64_t seq;
	int64_t issued_ns;
	uint64_t durable;
	const uint8_t *unread;    /* RAW: bitmaps and bytes, inside the scan's memory */
	const uint8_t *absent;
	const uint8_t *bytes;
};

struct pp_scan_lane {
	bool present;             /* the scan has a section for this lane */
	enum pp_file_state file_state;
	int32_t os_code;
	uint64_t file_bytes;
	uint64_t slots;
	struct pp_scan_slot *slot;   /* dense: slots of them */
};

struct pp_scan_sparse {
	uint32_t lane;
	uint64_t index;
	struct pp_scan_slot slot;
};

struct pp_scan {
	uint32_t record_bytes, lanes;
	bool sparse;
	struct pp_scan_lane lane[PP_LANES_MAX];
	struct pp_scan_sparse *sparse_slots; /* sorted by (lane, index) */
	size_t sparse_count;
	struct pp_run_id *runs;
	size_t run_count;
	void *memory;             /* the file's bytes */
};

/* ---- making one, on the machine under test ---------------------------------------------- */

/* Reads the target; a simulator and tests stand in. Files are counted as pp_layout_file_at does. */
struct pp_scan_source {
	void *ctx;
	/* Size of the file, or os_code set (ENOENT: gone). Returns 0 or -1. */
	int (*size)(void *ctx, uint32_t file, uint64_t *bytes, int32_t *os_code);
	/*
	 * Reads exactly bytes at offset, not from a cache. Both are multiples of 512 and inside the
	 * size; a source that can only read larger blocks widens them itself. Returns 0; or -1 with
	 * *os_code, after which nothing of buf counts. Must come back: ETIMEDOUT after no answer
	 * for 60 s (M4.1).
	 */
	int (*read)(void *ctx, uint32_t file, uint64_t offset, void *buf, size_t bytes,
		int32_t *os_code);
	uint32_t align_bytes;     /* logical block: where a read fails, no smaller piece is tried */
};

/* Takes the bytes of scan.bin as they come. Returns 0, or -1 with err: the scan ends. */
typedef int (*pp_scan_sink)(void *ctx, const void *data, size_t bytes, struct pp_error *err);

struct pp_scan_range {
	uint32_t lane;
	uint64_t first, last;     /* slots, inclusive */
};

/*
 * Scans every slot of every lane, or, with ranges, those slots only (a sparse scan; ranges in
 * order of lane and slot). Goes on after read errors down to the single cell. Fails only if the sink
 * fails, memory is short, a range has no place, or a file's size cannot be had for a reason other
 * than its absence.
 */
int pp_scan_make(const struct pp_layout *layout, const struct pp_scan_source *source,
	const struct pp_scan_range *ranges, size_t range_count, pp_scan_sink sink, void *sink_ctx,
	struct pp_error *err);

/* ---- reading one, on the control host --------------------------------------------------- */

/* Whole file, checked; garbage, truncation or a wrong sum is an evidence error. */
struct pp_scan *pp_scan_load(const char *path, struct pp_error *err);
/* The same from memory; takes ownership of data (malloc). For tests and fuzzing. */
struct pp_scan *pp_scan_parse(void *data, size_t bytes, struct pp_error *err);
void pp_scan_free(struct pp_scan *scan);

/*
 * For workloads that take each slot once: the slots of a lane that are taken, whatever stands in
 * them, as the next run's base_slots: one more than the last that is not free. Of a dense scan.
 */
uint64_t pp_scan_taken(const struct pp_scan *scan, const struct pp_layout *layout, uint32_t lane);
/* Whether a set-up's base is whole: every slot that it wrote holds a record, every other is free. */
bool pp_scan_base_whole(const struct pp_scan *scan, const struct pp_layout *layout);

/* Slot of a lane: dense by index, sparse by search; NULL if the scan has none such. */
const struct pp_scan_slot *pp_scan_slot(const struct pp_scan *scan, uint32_t lane, uint64_t index);

#endif
