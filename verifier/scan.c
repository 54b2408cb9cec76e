/* SPDX-License-Identifier: MIT
 *
 * Makes the scan: reads a megabyte at a time, checks record by record, and where a read fails goes
 * down to records and then to single blocks, so that one bad sector hides no neighbour.
 */
#include "scan.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/core/le.h"
#include "src/core/thread.h"

#define CHUNK_BYTES   (1U << 20)
#define OUT_BYTES     (256U << 10)
#ifndef EUCLEAN
#define EUCLEAN EIO
#endif
#define TIMEOUTS_MAX  8 /* after so many reads without an answer the rest counts as unread */

struct maker {
	const struct pp_layout *layout;
	const struct pp_scan_source *source;
	pp_scan_sink sink;
	void *sink_ctx;
	XXH3_state_t *sum;
	uint8_t *out;
	size_t out_bytes;
	uint8_t *chunk;           /* aligned; what was read */
	uint64_t chunk_at, chunk_bytes; /* where in the file, how much of it is good */
	uint32_t chunk_file;
	uint64_t small_until;     /* in this file: up to here a large read has failed */
	struct pp_run_id *runs;
	size_t run_count, run_room;
	unsigned timeouts;
	int32_t last_code;        /* of the last read; 0: it succeeded */
	struct pp_error *err;
};

static int flush_out(struct maker *m)
{
	size_t bytes = m->out_bytes;

	m->out_bytes = 0;
	if (bytes == 0)
		return 0;
	XXH3_64bits_update(m->sum, m->out, bytes);
	return m->sink(m->sink_ctx, m->out, bytes, m->err);
}

static int put(struct maker *m, const void *data, size_t bytes)
{
	const uint8_t *at = data;

	while (bytes) {
		size_t room = OUT_BYTES - m->out_bytes;
		size_t n = bytes < room ? bytes : room;

		memcpy(m->out + m->out_bytes, at, n);
		m->out_bytes += n;
		at += n;
		bytes -= n;
		if (m->out_bytes == OUT_BYTES && flush_out(m) != 0)
			return -1;
	}
	return 0;
}

static int run_index(struct maker *m, const struct pp_run_id *id, uint32_t *index)
{
	size_t i;

	/* From the newest back: neighbours mostly share their run. */
	for (i = m->run_count; i-- > 0;) {
		if (pp_run_id_equal(&m->runs[i], id)) {
			*index = (uint32_t)i;
			return 0;
		}
	}
	if (m->run_count == m->run_room) {
		size_t room = m->run_room ? 2 * m->run_room : 16;
		struct pp_run_id *grown = realloc(m->runs, room * sizeof(*grown));

		if (!grown)
			return pp_fail_os(m->err, ENOMEM, "cannot list run ids");
		m->runs = grown;
		m->run_room = room;
	}
	m->runs[m->run_count] = *id;
	*index = (uint32_t)m->run_count++;
	return 0;
}

static void bit_set(uint8_t *map, uint32_t bit)
{
	map[bit / 8] |= (uint8_t)(1U << bit % 8);
}

/* A slot whose bytes stand at buf, with what of it could not be read or is not there. The ids of
 * its cells are listed too: a run that nobody knows must not hide in a torn slot. */
static int put_raw(struct maker *m, const uint8_t *buf, const uint8_t *unread, const uint8_t *absent)
{
	uint32_t cells = m->layout->record_bytes / PP_CELL_BYTES, i, index;
	uint8_t kind = PP_SLOT_RAW;
	struct pp_cell cell;

	for (i = 0; i < cells; i++)
		if (pp_cell_check(buf + (size_t)i * PP_CELL_BYTES, &cell) == PP_CELL_VALID &&
			run_index(m, &cell.record.run, &index) != 0)
			return -1;
	if (put(m, &kind, 1) != 0 || put(m, unread, (cells + 7) / 8) != 0 ||
		put(m, absent, (cells + 7) / 8) != 0)
		return -1;
	return put(m, buf, m->layout->record_bytes);
}

static int put_kind(struct maker *m, uint8_t kind)
{
	return put(m, &kind, 1);
}

static int put_intact(struct maker *m, const struct pp_record *record)
{
	uint8_t entry[37];
	uint32_t run = 0;

	if (run_index(m, &record->run, &run) != 0)
		return -1;
	entry[0] = PP_SLOT_INTACT;
	le32_put(entry + 1, run);
	le32_put(entry + 5, record->lane);
	le32_put(entry + 9, record->flags);
	le64_put(entry + 13, record->seq);
	le64_put(entry + 21, (uint64_t)record->issued_ns);
	le64_put(entry + 29, record->durable);
	return put(m, entry, sizeof(entry));
}

/* A slot that was read whole. */
static int put_read_slot(struct maker *m, const uint8_t *buf, uint64_t offset)
{
	static const uint8_t none[PP_RECORD_BYTES_MAX / PP_CELL_BYTES / 8];
	uint32_t bytes = m->layout->record_bytes;
	struct pp_record record;

	if (pp_record_check(buf, bytes / PP_CELL_BYTES, offset, &record))
		return put_intact(m, &record);
	if (pp_bytes_all(buf, bytes, 0))
		return put_kind(m, PP_SLOT_ZERO);
	if (pp_bytes_all(buf, bytes, 0xff))
		return put_kind(m, PP_SLOT_FF);
	return put_raw(m, buf, none, none);
}

static int read_some(struct maker *m, uint32_t file, uint64_t offset, void *buf, size_t bytes)
{
	m->last_code = ETIMEDOUT;
	if (m->timeouts >= TIMEOUTS_MAX)
		return -1;
	m->last_code = 0;
	if (m->source->read(m->source->ctx, file, offset, buf, bytes, &m->last_code) == 0)
		return 0;
	if (m->last_code == ETIMEDOUT)
		m->timeouts++;
	return -1;
}

/* A slot's place: in which file, where in it, and the offset that its cells name. */
struct place {
	uint32_t file;
	uint64_t at, named, file_bytes;
};

/*
 * The slow way for one slot: cell by cell (or logical block by logical block) where a whole read
 * failed or the file ends inside it. Where a read gave no answer the rest of the slot is not asked:
 * each try takes a minute, and the slot is not whole anyway.
 */
static int put_slot_by_cells(struct maker *m, const struct place *p)
{
	uint64_t offset = p->at, file_bytes = p->file_bytes;
	uint32_t bytes = m->layout->record_bytes, cells = bytes / PP_CELL_BYTES;
	uint32_t step = m->source->align_bytes > PP_CELL_BYTES ? m->source->align_bytes : PP_CELL_BYTES;
	uint8_t unread[PP_RECORD_BYTES_MAX / PP_CELL_BYTES / 8] = {0};
	uint8_t absent[PP_RECORD_BYTES_MAX / PP_CELL_BYTES / 8] = {0};
	uint8_t *buf = m->chunk;
	bool hurt = false;
	uint32_t at, cell, n;

	m->chunk_bytes = 0; /* the chunk buffer is borrowed */
	memset(buf, 0, bytes);
	for (cell = 0; cell < cells; cell++) {
		if (offset + (uint64_t)(cell + 1) * PP_CELL_BYTES > file_bytes) {
			bit_set(absent, cell);
			hurt = true;
		}
	}
	for (at = 0; at < bytes; at += n) {
		n = step < bytes - at ? step : bytes - at;
		while (n && offset + at + n > file_bytes)
			n -= PP_CELL_BYTES; /* the whole cells before the end of the file */
		if (n == 0)
			break;
		if (m->last_code != ETIMEDOUT && read_some(m, p->file, offset + at, buf + at, n) == 0)
			continue;
		memset(buf + at, 0, n);
		hurt = true;
		for (cell = at / PP_CELL_BYTES; cell < (at + n) / PP_CELL_BYTES; cell++)
			bit_set(unread, cell);
	}
	return hurt ? put_raw(m, buf, unread, absent) : put_read_slot(m, buf, p->named);
}

/*
 * Makes the chunk hold [offset, offset + record) if it can be read at all in a large piece. Where
 * one has failed, its records are read one by one: to run into the same bad block again from each of
 * them would cost its retries, or a minute's silence, as many times.
 */
static bool chunk_holds(struct maker *m, uint32_t file, uint64_t offset, uint64_t end)
{
	uint32_t bytes = m->layout->record_bytes;
	uint64_t want = CHUNK_BYTES / bytes * bytes;

	if (m->chunk_bytes && m->chunk_file == file && offset >= m->chunk_at &&
		offset + bytes <= m->chunk_at + m->chunk_bytes)
		return true;
	if (want > end - offset)
		want = (end - offset) / bytes * bytes;
	if (m->chunk_file != file)
		m->small_until = 0;
	if (offset < m->small_until)
		want = bytes;
	m->chunk_bytes = 0;
	m->chunk_file = file;
	m->chunk_at = offset;
	if (read_some(m, file, offset, m->chunk, want) == 0) {
		m->chunk_bytes = want;
		return true;
	}
	if (want == bytes)
		return false;
	m->small_until = offset + want;
	if (read_some(m, file, offset, m->chunk, bytes) != 0)
		return false;
	m->chunk_bytes = bytes;
	return true;
}

static int put_slot(struct maker *m, uint32_t lane, uint64_t slot, uint64_t file_bytes,
	uint64_t read_end)
{
	struct place p = { pp_layout_file_at(m->layout, lane, slot),
		pp_layout_file_offset(m->layout, lane, slot), pp_layout_offset(m->layout, lane, slot),
		file_bytes };

	m->last_code = 0;
	if (p.at >= file_bytes)
		return put_kind(m, PP_SLOT_ABSENT);
	if (p.at + m->layout->record_bytes <= read_end && chunk_holds(m, p.file, p.at, read_end))
		return put_read_slot(m, m->chunk + (p.at - m->chunk_at), p.named);
	return put_slot_by_cells(m, &p);
}

/*
 * What a file system says of a name, or of the file behind it, that its drive did not keep whole.
 * Anything else (EACCES, EMFILE, ENOMEM) is this machine's trouble and accuses nobody.
 */
static bool code_of_damage(int32_t code)
{
	return code == EIO || code == EUCLEAN || code == EBADMSG || code == EILSEQ || code == ETIMEDOUT;
}

/* A slot that is a file of its own. */
static int put_slot_file(struct maker *m, uint32_t lane, uint64_t slot)
{
	uint8_t all[PP_RECORD_BYTES_MAX / PP_CELL_BYTES / 8], none[sizeof(all)] = {0};
	uint32_t file = pp_layout_file_at(m->layout, lane, slot);
	uint64_t bytes = 0, record = m->layout->record_bytes;
	int32_t code = 0;

	if (m->source->size(m->source->ctx, file, &bytes, &code) == 0)
		return put_slot(m, lane, slot, bytes, bytes < record ? bytes : record);
	if (code == ENOENT)
		return put_kind(m, PP_SLOT_GONE);
	if (!code_of_damage(code))
		return pp_fail_os(m->err, code, "cannot look at slot %" PRIu64 " of lane %u", slot, lane);
	memset(all, 0xff, sizeof(all));
	m->chunk_bytes = 0; /* the chunk buffer is borrowed */
	memset(m->chunk, 0, record);
	return put_raw(m, m->chunk, all, none);
}

static int put_lane_head(struct maker *m, uint32_t lane, uint64_t *file_bytes, uint64_t *slots)
{
	uint32_t record = m->layout->record_bytes;
	uint8_t head[26];
	int32_t code = 0;
	uint8_t state = PP_FILE_PRESENT;

	*file_bytes = 0;
	if (!pp_workload_record_files(m->layout->workload) && m->source->size(m->source->ctx, pp_layout_file_of(m->layout, lane), file_bytes, &code) != 0) {
		if (code != ENOENT)
			return pp_fail_os(m->err, code, "cannot look at the file of lane %u", lane);
		state = PP_FILE_GONE;
	}
	*slots = pp_layout_scan_slots(m->layout);
	if (*slots == UINT64_MAX)
		*slots = (*file_bytes + record - 1) / record;
	head[0] = 'L';
	le32_put(head + 1, lane);
	head[5] = state;
	le32_put(head + 6, (uint32_t)code);
	le64_put(head + 10, *file_bytes);
	le64_put(head + 18, *slots);
	return put(m, head, sizeof(head));
}

/* The end of what a lane's slots can hold, so that read-ahead never crosses into another lane. */
static uint64_t lane_end(const struct pp_layout *layout, uint32_t lane, uint64_t file_bytes,
	uint64_t slots)
{
	uint64_t end = pp_layout_offset(layout, lane, slots);

	return end < file_bytes ? end : file_bytes;
}

/* end: behind the last slot that may be read along with this one. */
static int put_any_slot(struct maker *m, uint32_t lane, uint64_t slot, uint64_t file_bytes,
	uint64_t end)
{
	if (pp_workload_record_files(m->layout->workload))
		return put_slot_file(m, lane, slot);
	return put_slot(m, lane, slot, file_bytes, lane_end(m->layout, lane, file_bytes, end));
}

static int make_lane(struct maker *m, uint32_t lane)
{
	uint64_t file_bytes, slots, slot;

	if (put_lane_head(m, lane, &file_bytes, &slots) != 0)
		return -1;
	for (slot = 0; slot < slots; slot++)
		if (put_any_slot(m, lane, slot, file_bytes, slots) != 0)
			return -1;
	return 0;
}

/* A file that grows may be longer than it should be, and then that is looked at too. */
static uint64_t last_slot(const struct pp_layout *layout)
{
	return layout->workload == PP_APPEND ? INT64_MAX / layout->record_bytes - 1
		: layout->slots - 1;
}

static int make_ranges(struct maker *m, const struct pp_scan_range *ranges, size_t count)
{
	uint64_t file_bytes[PP_LANES_MAX] = {0}, slots;
	uint8_t head[13];
	uint32_t lane;
	size_t i;

	for (lane = 0; lane < m->layout->lanes; lane++)
		if (put_lane_head(m, lane, &file_bytes[lane], &slots) != 0)
			return -1;
	for (i = 0; i < count; i++) {
		uint64_t slot;

		if (ranges[i].lane >= m->layout->lanes || ranges[i].last > last_slot(m->layout))
			return pp_fail(m->err, PP_ERR_USAGE, "lane %u has no slots up to %" PRIu64,
				ranges[i].lane, ranges[i].last);
		for (slot = ranges[i].first; slot <= ranges[i].last; slot++) {
			head[0] = 'P';
			le32_put(head + 1, ranges[i].lane);
			le64_put(head + 5, slot);
			/* No read-ahead past the slot: what is read again is what was asked. */
			if (put(m, head, sizeof(head)) != 0 || put_any_slot(m, ranges[i].lane, slot,
				file_bytes[ranges[i].lane], slot + 1) != 0)
				return -1;
		}
	}
	return 0;
}

static int put_tail(struct maker *m)
{
	uint8_t head[5], end[9];
	size_t i;

	head[0] = 'R';
	le32_put(head + 1, (uint32_t)m->run_count);
	if (put(m, head, sizeof(head)) != 0)
		return -1;
	for (i = 0; i < m->run_count; i++)
		if (put(m, m->runs[i].bytes, 16) != 0)
			return -1;
	if (flush_out(m) != 0)
		return -1;
	end[0] = 'E';
	le64_put(end + 1, XXH3_64bits_digest(m->sum));
	return m->sink(m->sink_ctx, end, sizeof(end), m->err);
}

static int make_all(struct maker *m, const struct pp_scan_range *ranges, size_t range_count)
{
	uint8_t head[24] = "PPSCAN1\n";
	uint32_t lane;

	le32_put(head + 8, 1);
	le32_put(head + 12, m->layout->record_bytes);
	le32_put(head + 16, m->layout->lanes);
	le32_put(head + 20, range_count ? 1 : 0);
	if (put(m, head, sizeof(head)) != 0)
		return -1;
	if (range_count) {
		if (make_ranges(m, ranges, range_count) != 0)
			return -1;
		return put_tail(m);
	}
	for (lane = 0; lane < m->layout->lanes; lane++)
		if (make_lane(m, lane) != 0)
			return -1;
	return put_tail(m);
}

int pp_scan_make(const struct pp_layout *layout, const struct pp_scan_source *source,
	const struct pp_scan_range *ranges, size_t range_count, pp_scan_sink sink, void *sink_ctx,
	struct pp_error *err)
{
	struct maker m = { .layout = layout, .source = source, .sink = sink, .sink_ctx = sink_ctx,
		.err = err };
	int rc = -1;

	m.sum = XXH3_createState();
	m.out = malloc(OUT_BYTES);
	m.chunk = pp_aligned_alloc(4096, CHUNK_BYTES);
	if (!m.sum || !m.out || !m.chunk) {
		pp_fail_os(err, ENOMEM, "cannot scan");
		goto out;
	}
	XXH3_64bits_reset(m.sum);
	rc = make_all(&m, ranges, range_count);
out:
	XXH3_freeState(m.sum);
	free(m.out);
	pp_aligned_free(m.chunk);
	free(m.runs);
	return rc;
}
