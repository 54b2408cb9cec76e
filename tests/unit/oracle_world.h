/* SPDX-License-Identifier: MIT
 *
 * A target in memory for tests of scan and oracle: files that can be written, shortened, removed,
 * made unreadable in places; scanned by the real scan code, judged by the real oracle.
 */
#ifndef PP_TESTS_ORACLE_WORLD_H
#define PP_TESTS_ORACLE_WORLD_H

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "verifier/oracle.h"

#define WORLD_FILES 4
#define WORLD_CELLS 4 /* a record, unless a test says otherwise */

struct world_file {
	uint8_t *bytes;
	uint8_t *bad;        /* a byte a cell: the code its read fails with, 0 fine */
	uint64_t size, room;
	bool gone;
	/* Where every slot is a file: its bytes, or -1 where there is none, or -code of a failing open. */
	int32_t *slot_bytes;
};

#define WORLD_NO_FILE (-1)
#define WORLD_FAILS   (-1000)

struct world {
	struct pp_layout layout;
	struct pp_run_id run, before, other; /* this run, the one that laid the base, one nobody knows */
	struct world_file file[WORLD_FILES];
	struct pp_scan_source source;
	uint64_t acked[PP_LANES_MAX];
	enum pp_target_kind kind;
	bool untorn;
	struct pp_scan *base, *scan, *reread[PP_REREADS_MAX];
	size_t rereads;
	struct pp_oracle_result result;
	struct pp_error err;
	unsigned reads, hangs, fail_read; /* fail_read: the number of the read that fails, from 1; 0 none */
	int32_t fail_code;
	uint64_t read_bytes_min;
};

static inline int world_size(void *ctx, uint32_t file, uint64_t *bytes, int32_t *os_code)
{
	struct world *w = ctx;

	if (pp_workload_record_files(w->layout.workload)) {
		uint64_t each = pp_layout_scan_slots(&w->layout);
		int32_t held = w->file[file / each].slot_bytes[file % each];

		*os_code = held == WORLD_NO_FILE ? ENOENT : held <= WORLD_FAILS ? WORLD_FAILS - held : 0;
		*bytes = held < 0 ? 0 : (uint64_t)held;
		return held < 0 ? -1 : 0;
	}
	if (w->file[file].gone) {
		*os_code = ENOENT;
		return -1;
	}
	*bytes = w->file[file].size;
	return 0;
}

static inline int world_read(void *ctx, uint32_t file, uint64_t offset, void *buf, size_t bytes,
	int32_t *os_code)
{
	struct world *w = ctx;
	bool each = pp_workload_record_files(w->layout.workload);
	uint64_t slots = pp_layout_scan_slots(&w->layout);
	struct world_file *f = &w->file[each ? file / slots : file];
	uint64_t at, align = w->source.align_bytes ? w->source.align_bytes : PP_CELL_BYTES;

	assert_true(bytes > 0 && bytes % PP_CELL_BYTES == 0 && offset % PP_CELL_BYTES == 0);
	assert_true(offset + bytes <= (each ? (uint64_t)f->slot_bytes[file % slots] : f->size));
	if (each)
		offset += file % slots * w->layout.record_bytes;
	w->reads++;
	if (bytes < w->read_bytes_min)
		w->read_bytes_min = bytes;
	if (w->reads == w->fail_read) {
		*os_code = w->fail_code;
		return -1;
	}
	/* A bad cell takes its whole block along. */
	for (at = offset / align * align; at < offset + bytes; at += PP_CELL_BYTES) {
		uint64_t block = at / align * align, cell;

		for (cell = block; cell < block + align && cell < f->room; cell += PP_CELL_BYTES) {
			if (f->bad[cell / PP_CELL_BYTES]) {
				*os_code = f->bad[cell / PP_CELL_BYTES];
				w->hangs += *os_code == ETIMEDOUT;
				return -1;
			}
		}
	}
	memcpy(buf, f->bytes + offset, bytes);
	return 0;
}

static inline void world_run_id(struct pp_run_id *id, uint8_t fill)
{
	memset(id->bytes, fill, sizeof(id->bytes));
}

static inline void world_init_sized(struct world *w, enum pp_workload workload, uint32_t lanes,
	uint32_t group, uint32_t record_bytes, uint32_t unit_bytes, bool sub_block, uint64_t slots)
{
	uint32_t i;

	memset(w, 0, sizeof(*w));
	assert_int_equal(pp_layout_init(&w->layout, workload, lanes, group, record_bytes, unit_bytes,
		sub_block, 0, slots * record_bytes * lanes, &w->err), 0);
	world_run_id(&w->run, 0xaa);
	world_run_id(&w->before, 0xbb);
	world_run_id(&w->other, 0xcc);
	w->kind = PP_TARGET_FILE;
	w->fail_code = EIO;
	w->read_bytes_min = UINT64_MAX;
	for (i = 0; i < pp_layout_files(&w->layout); i++) {
		struct world_file *f = &w->file[i];

		uint64_t each = workload == PP_APPEND ? w->layout.slots : pp_layout_scan_slots(&w->layout);
		uint64_t slot;

		f->room = each * record_bytes * (pp_workload_own_files(workload) ? 1 : lanes);
		f->size = workload == PP_APPEND ? 0 : f->room;
		if (pp_workload_record_files(workload))
			f->slot_bytes = malloc(each * sizeof(*f->slot_bytes));
		for (slot = 0; f->slot_bytes && slot < each; slot++)
			f->slot_bytes[slot] = WORLD_NO_FILE;
		f->bytes = calloc(1, f->room);
		f->bad = calloc(1, f->room / PP_CELL_BYTES);
	}
	w->source = (struct pp_scan_source){ w, world_size, world_read, PP_CELL_BYTES };
}

static inline void world_init(struct world *w, enum pp_workload workload, uint32_t lanes,
	uint32_t group)
{
	world_init_sized(w, workload, lanes, group, WORLD_CELLS * PP_CELL_BYTES, PP_CELL_BYTES, false,
		group > 32 ? 8 * group : 256);
}

static inline uint8_t *world_slot(struct world *w, uint32_t lane, uint64_t slot)
{
	return w->file[pp_layout_file_of(&w->layout, lane)].bytes +
		(pp_workload_record_files(w->layout.workload) ? slot * w->layout.record_bytes
		: pp_layout_offset(&w->layout, lane, slot));
}

static inline struct pp_record world_record(const struct world *w, const struct pp_run_id *run,
	uint32_t lane, uint64_t slot, uint64_t seq)
{
	uint64_t group = w->layout.group;

	return (struct pp_record){ .run = *run, .lane = lane,
		.cells = w->layout.record_bytes / PP_CELL_BYTES, .seq = seq,
		.offset = pp_layout_offset(&w->layout, lane, slot), .issued_ns = (int64_t)(1000 * seq),
		.durable = seq ? (seq - 1) / group * group : 0 };
}

/* Cells [first, first + n) of a record, at a slot; a file that is too short grows. */
static inline void world_write_cells(struct world *w, const struct pp_record *r, uint32_t lane,
	uint64_t slot, uint32_t first, uint32_t n)
{
	struct world_file *f = &w->file[pp_layout_file_of(&w->layout, lane)];
	uint64_t end = pp_layout_offset(&w->layout, lane, slot) +
		(uint64_t)(first + n) * PP_CELL_BYTES;
	uint8_t *buf = malloc((size_t)r->cells * PP_CELL_BYTES);

	pp_record_fill(buf, r);
	memcpy(world_slot(w, lane, slot) + first * PP_CELL_BYTES, buf + first * PP_CELL_BYTES,
		(size_t)n * PP_CELL_BYTES);
	if (f->slot_bytes) {
		int32_t held = (int32_t)((first + n) * PP_CELL_BYTES);

		if (held > f->slot_bytes[slot])
			f->slot_bytes[slot] = held;
	} else if (end > f->size) {
		f->size = end;
	}
	free(buf);
}

/* A record of this run where it belongs. */
static inline void world_put(struct world *w, uint32_t lane, uint64_t seq)
{
	uint64_t slot = pp_layout_slot(&w->layout, lane, seq);
	struct pp_record r = world_record(w, &w->run, lane, slot, seq);

	world_write_cells(w, &r, lane, slot, 0, r.cells);
}

static inline void world_write_until(struct world *w, uint32_t lane, uint64_t last)
{
	uint64_t seq;

	for (seq = 1; seq <= last; seq++)
		world_put(w, lane, seq);
}

/* What the run before left: overwrite, rename: every slot; else: `slots` slots a lane. */
static inline void world_lay(struct world *w, uint64_t slots)
{
	uint32_t lane;
	uint64_t slot;

	for (lane = 0; lane < w->layout.lanes; lane++) {
		for (slot = 0; slot < slots; slot++) {
			struct pp_record r = world_record(w, &w->before, lane, slot, slot + 1);

			world_write_cells(w, &r, lane, slot, 0, r.cells);
		}
		if (pp_workload_grows(w->layout.workload))
			w->layout.base_slots[lane] = slots;
	}
}

struct world_bytes { uint8_t *data; size_t bytes, room; size_t fail_at; };

static inline int world_sink(void *ctx, const void *data, size_t bytes, struct pp_error *err)
{
	struct world_bytes *b = ctx;

	if (b->fail_at && b->bytes + bytes >= b->fail_at)
		return pp_fail(err, PP_ERR_PEER, "nobody listens");
	if (b->bytes + bytes > b->room) {
		b->room = 2 * (b->bytes + bytes);
		b->data = realloc(b->data, b->room);
	}
	memcpy(b->data + b->bytes, data, bytes);
	b->bytes += bytes;
	return 0;
}

static inline struct pp_scan *world_take_scan(struct world *w, const struct pp_scan_range *ranges,
	size_t count)
{
	struct world_bytes b = { 0 };
	struct pp_scan *scan;

	if (pp_scan_make(&w->layout, &w->source, ranges, count, world_sink, &b, &w->err) != 0)
		fail_msg("%s", w->err.text);
	scan = pp_scan_parse(b.data, b.bytes, &w->err);
	if (!scan)
		fail_msg("%s", w->err.text);
	return scan;
}

static inline void world_take_base(struct world *w)
{
	pp_scan_free(w->base);
	w->base = world_take_scan(w, NULL, 0);
}

static inline int world_judge_again(struct world *w)
{
	struct pp_oracle_input in = { .layout = &w->layout, .run = w->run, .base = w->base,
		.scan = w->scan, .rereads = w->rereads, .kind = w->kind,
		.untorn = w->untorn };

	memcpy(in.acked, w->acked, sizeof(in.acked));
	memcpy(in.reread, w->reread, sizeof(in.reread));
	pp_oracle_release(&w->result);
	return pp_oracle_judge(&in, &w->result, &w->err);
}

/* Scans what is there now and judges it. */
static inline int world_judge(struct world *w)
{
	pp_scan_free(w->scan);
	w->scan = world_take_scan(w, NULL, 0);
	return world_judge_again(w);
}

/* Reads again what looked lost, as it is now (M4.7). */
static inline void world_reread(struct world *w)
{
	struct pp_scan_range *ranges;
	size_t n = pp_oracle_ranges(&w->result, &ranges);

	assert_true(n > 0 && w->rereads < PP_REREADS_MAX);
	w->reread[w->rereads++] = world_take_scan(w, ranges, n);
	free(ranges);
}

static inline void world_set_bad(struct world *w, uint32_t lane, uint64_t slot, uint32_t cell,
	int code)
{
	uint64_t at = (uint64_t)(world_slot(w, lane, slot) -
		w->file[pp_layout_file_of(&w->layout, lane)].bytes) / PP_CELL_BYTES + cell;

	w->file[pp_layout_file_of(&w->layout, lane)].bad[at] = (uint8_t)code;
}

static inline void world_release(struct world *w)
{
	size_t i;

	pp_oracle_release(&w->result);
	pp_scan_free(w->base);
	pp_scan_free(w->scan);
	for (i = 0; i < w->rereads; i++)
		pp_scan_free(w->reread[i]);
	for (i = 0; i < WORLD_FILES; i++) {
		free(w->file[i].bytes);
		free(w->file[i].bad);
		free(w->file[i].slot_bytes);
	}
}

#endif
