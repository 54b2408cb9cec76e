/* SPDX-License-Identifier: MIT
 *
 * Reads scan.bin. Every length is checked before it is used: the file may come from anywhere.
 */
#include "scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/core/file.h"
#include "src/core/le.h"

#define SCAN_BYTES_MAX (8ULL << 30)

struct reader {
	const uint8_t *at, *end;
	struct pp_scan *scan;
	uint32_t runs_needed;     /* one more than the highest run index that a slot used */
	size_t sparse_room;
	struct pp_error *err;
};

static int bad(struct reader *r, const char *what)
{
	return pp_fail(r->err, PP_ERR_EVIDENCE, "scan is damaged: %s", what);
}

static const uint8_t *take(struct reader *r, uint64_t bytes)
{
	const uint8_t *at = r->at;

	if (bytes > (uint64_t)(r->end - r->at))
		return NULL;
	r->at += bytes;
	return at;
}

static int read_slot(struct reader *r, struct pp_scan_slot *slot)
{
	uint32_t cells = r->scan->record_bytes / PP_CELL_BYTES;
	const uint8_t *at = take(r, 1);

	if (!at || *at >= PP_SLOT_KINDS)
		return bad(r, "no such kind of slot");
	memset(slot, 0, sizeof(*slot));
	slot->kind = *at;
	if (slot->kind == PP_SLOT_INTACT) {
		at = take(r, 36);
		if (!at)
			return bad(r, "it ends inside a slot");
		slot->run = le32_get(at);
		slot->lane = le32_get(at + 4);
		slot->flags = le32_get(at + 8);
		slot->seq = le64_get(at + 12);
		slot->issued_ns = (int64_t)le64_get(at + 20);
		slot->durable = le64_get(at + 28);
		if (slot->run == UINT32_MAX || slot->flags > PP_RECORD_COMPRESSIBLE)
			return bad(r, "a slot has impossible fields");
		if (slot->run >= r->runs_needed)
			r->runs_needed = slot->run + 1;
	} else if (slot->kind == PP_SLOT_RAW) {
		slot->unread = take(r, (cells + 7) / 8);
		slot->absent = take(r, (cells + 7) / 8);
		slot->bytes = take(r, r->scan->record_bytes);
		if (!slot->unread || !slot->absent || !slot->bytes)
			return bad(r, "it ends inside a slot");
	}
	return 0;
}

static int read_lane(struct reader *r)
{
	const uint8_t *at = take(r, 25);
	struct pp_scan_lane *lane;
	uint64_t i;

	if (!at)
		return bad(r, "it ends inside a lane");
	if (le32_get(at) >= r->scan->lanes || r->scan->lane[le32_get(at)].present)
		return bad(r, "a lane is named twice or does not exist");
	lane = &r->scan->lane[le32_get(at)];
	lane->present = true;
	if (at[4] > PP_FILE_GONE)
		return bad(r, "no such state of a file");
	lane->file_state = at[4];
	lane->os_code = (int32_t)le32_get(at + 5);
	lane->file_bytes = le64_get(at + 9);
	lane->slots = le64_get(at + 17);
	if (r->scan->sparse)
		return 0;
	/* A slot takes at least one byte here, so the file bounds what is allocated. */
	if (lane->slots > (uint64_t)(r->end - r->at))
		return bad(r, "it has fewer slots than it says");
	lane->slot = calloc(lane->slots ? lane->slots : 1, sizeof(*lane->slot));
	if (!lane->slot)
		return pp_fail_os(r->err, ENOMEM, "cannot load a scan");
	for (i = 0; i < lane->slots; i++)
		if (read_slot(r, &lane->slot[i]) != 0)
			return -1;
	return 0;
}

static int read_sparse(struct reader *r)
{
	const uint8_t *at = take(r, 12);
	struct pp_scan_sparse *s;

	if (!at || !r->scan->sparse || le32_get(at) >= r->scan->lanes)
		return bad(r, "a slot of no lane");
	if (r->scan->sparse_count == r->sparse_room) {
		size_t room = r->sparse_room ? 2 * r->sparse_room : 64;

		s = realloc(r->scan->sparse_slots, room * sizeof(*s));
		if (!s)
			return pp_fail_os(r->err, ENOMEM, "cannot load a scan");
		r->scan->sparse_slots = s;
		r->sparse_room = room;
	}
	s = &r->scan->sparse_slots[r->scan->sparse_count];
	s->lane = le32_get(at);
	s->index = le64_get(at + 4);
	if (r->scan->sparse_count && (s[-1].lane > s->lane ||
		(s[-1].lane == s->lane && s[-1].index >= s->index)))
		return bad(r, "its slots are not in order");
	r->scan->sparse_count++;
	return read_slot(r, &s->slot);
}

static int read_runs(struct reader *r)
{
	const uint8_t *at = take(r, 4);
	uint32_t count;

	if (!at || r->scan->runs)
		return bad(r, "it has no single list of runs");
	count = le32_get(at);
	at = take(r, (uint64_t)count * 16);
	if (!at)
		return bad(r, "it ends inside its list of runs");
	r->scan->runs = calloc(count ? count : 1, sizeof(*r->scan->runs));
	if (!r->scan->runs)
		return pp_fail_os(r->err, ENOMEM, "cannot load a scan");
	memcpy(r->scan->runs, at, (size_t)count * 16);
	r->scan->run_count = count;
	return 0;
}

static int read_head(struct reader *r)
{
	const uint8_t *at = take(r, 24);

	if (!at || memcmp(at, "PPSCAN1\n", 8) != 0)
		return pp_fail(r->err, PP_ERR_EVIDENCE, "not a scan (no PPSCAN1 at its start)");
	if (le32_get(at + 8) != 1)
		return pp_fail(r->err, PP_ERR_EVIDENCE, "scan has version %u; this tool reads 1",
			le32_get(at + 8));
	r->scan->record_bytes = le32_get(at + 12);
	r->scan->lanes = le32_get(at + 16);
	r->scan->sparse = le32_get(at + 20) & 1;
	if (r->scan->record_bytes < PP_CELL_BYTES || r->scan->record_bytes % PP_CELL_BYTES != 0 ||
		r->scan->record_bytes > PP_RECORD_BYTES_MAX || r->scan->lanes < 1 ||
		r->scan->lanes > PP_LANES_MAX || le32_get(at + 20) > 1)
		return bad(r, "impossible sizes in its header");
	return 0;
}

static int read_all(struct reader *r, const uint8_t *start)
{
	uint32_t lane;

	if (read_head(r) != 0)
		return -1;
	for (;;) {
		const uint8_t *tag = take(r, 1);
		const uint8_t *sum;
		int rc = 0;

		if (!tag)
			return bad(r, "its end is missing: the scan was not finished");
		if (*tag == 'L')
			rc = read_lane(r);
		else if (*tag == 'P')
			rc = read_sparse(r);
		else if (*tag == 'R')
			rc = read_runs(r);
		else if (*tag != 'E')
			return bad(r, "unknown entry");
		if (rc != 0)
			return -1;
		if (*tag != 'E')
			continue;
		sum = take(r, 8);
		if (!sum || r->at != r->end)
			return bad(r, "its end is not at the end");
		if (le64_get(sum) != XXH3_64bits(start, (size_t)(tag - start)))
			return bad(r, "its checksum is wrong");
		break;
	}
	if (r->runs_needed > r->scan->run_count)
		return bad(r, "a slot refers to a run that is not listed");
	for (lane = 0; lane < r->scan->lanes; lane++)
		if (!r->scan->lane[lane].present)
			return bad(r, "a lane is missing");
	return 0;
}

struct pp_scan *pp_scan_parse(void *data, size_t bytes, struct pp_error *err)
{
	struct reader r = { .at = data, .end = (uint8_t *)data + bytes, .err = err };

	r.scan = calloc(1, sizeof(*r.scan));
	if (!r.scan) {
		free(data);
		pp_fail_os(err, ENOMEM, "cannot load a scan");
		return NULL;
	}
	r.scan->memory = data;
	if (read_all(&r, data) != 0) {
		pp_scan_free(r.scan);
		return NULL;
	}
	return r.scan;
}

struct pp_scan *pp_scan_load(const char *path, struct pp_error *err)
{
	struct pp_scan *scan;
	struct pp_buf buf;

	pp_buf_init(&buf, SCAN_BYTES_MAX);
	if (pp_file_read(path, &buf, err) != 0) {
		pp_buf_release(&buf);
		return NULL;
	}
	if (!buf.data)
		pp_buf_add(&buf, "", 0);
	scan = pp_scan_parse(buf.data, buf.bytes, err);
	if (!scan)
		pp_fail_within(err, "'%s'", path);
	return scan;
}

void pp_scan_free(struct pp_scan *scan)
{
	uint32_t lane;

	if (!scan)
		return;
	for (lane = 0; lane < PP_LANES_MAX; lane++)
		free(scan->lane[lane].slot);
	free(scan->sparse_slots);
	free(scan->runs);
	free(scan->memory);
	free(scan);
}

static int compare_sparse(const void *a, const void *b)
{
	const struct pp_scan_sparse *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

const struct pp_scan_slot *pp_scan_slot(const struct pp_scan *scan, uint32_t lane, uint64_t index)
{
	struct pp_scan_sparse key = { .lane = lane, .index = index };
	const struct pp_scan_sparse *found;

	if (lane >= scan->lanes)
		return NULL;
	if (!scan->sparse)
		return index < scan->lane[lane].slots ? &scan->lane[lane].slot[index] : NULL;
	if (!scan->sparse_count)
		return NULL;
	found = bsearch(&key, scan->sparse_slots, scan->sparse_count, sizeof(key), compare_sparse);
	return found ? &found->slot : NULL;
}

/* What a slot is that nothing was ever written to. */
static enum pp_slot_kind free_kind(const struct pp_layout *layout)
{
	if (pp_workload_record_files(layout->workload))
		return PP_SLOT_GONE;
	return layout->workload == PP_FALLOCATED ? PP_SLOT_ZERO : PP_SLOT_ABSENT;
}

uint64_t pp_scan_taken(const struct pp_scan *scan, const struct pp_layout *layout, uint32_t lane)
{
	const struct pp_scan_lane *l = &scan->lane[lane];
	uint64_t taken = l->slots;

	/* A file that grew has what it has: zeros within it were written, or are lost. */
	while (layout->workload != PP_APPEND && taken &&
		l->slot[taken - 1].kind == free_kind(layout))
		taken--;
	return taken;
}

bool pp_scan_base_whole(const struct pp_scan *scan, const struct pp_layout *layout)
{
	uint64_t slots = pp_layout_scan_slots(layout), want, i;
	uint32_t lane;

	for (lane = 0; lane < scan->lanes; lane++) {
		const struct pp_scan_lane *l = &scan->lane[lane];

		want = pp_workload_grows(layout->workload) ? layout->base_slots[lane] : layout->slots;
		if (l->file_state != PP_FILE_PRESENT || l->slots != (slots == UINT64_MAX ? want : slots))
			return false;
		for (i = 0; i < l->slots; i++)
			if (l->slot[i].kind != (i < want ? PP_SLOT_INTACT : free_kind(layout)))
				return false;
	}
	return true;
}
