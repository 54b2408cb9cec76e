/* SPDX-License-Identifier: MIT
 *
 * Method. First pass: walk every cell of the scan once, check that no record contradicts the ledger
 * (M4.6) and find each lane's D. Second pass: judge each cell of each slot against e and F, take
 * the slot's worst, and map it to a class. Third: hear the re-reads.
 */
#include "oracle.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What one cell is, worst last (M4.1). */
enum cell_class { CELL_OK, CELL_NEW, CELL_OLD, CELL_BLANK, CELL_FOREIGN, CELL_UNREAD, CELL_DAMAGED,
	CELL_CLASSES };

/* A cell as found, whatever form the scan kept it in. */
struct found {
	enum { FOUND_VALID, FOUND_ZERO, FOUND_FF, FOUND_DAMAGED, FOUND_UNREAD, FOUND_ABSENT,
		FOUND_GONE } kind;
	struct pp_cell cell;    /* FOUND_VALID */
	const uint8_t *bytes;   /* raw bytes where the scan kept them, else NULL */
};

/* What one record says of itself; every cell of it must say the same. */
struct version {
	uint32_t lane, flags;
	uint64_t seq, durable;
	int64_t issued_ns;
};

struct oracle {
	const struct pp_oracle_input *in;
	struct pp_oracle_result *out;
	uint32_t cells;
	size_t loss_room;
	struct version *version; /* of records found torn or out of place */
	size_t versions, version_room;
	struct pp_error *err;
};

struct place {
	uint32_t lane;
	uint64_t slot, offset;
	uint64_t expected;      /* e; 0: the base */
	uint64_t flight;        /* the one of F; 0: none */
	bool hole;              /* e is a base that never held anything */
	bool replaced;          /* M4.5: what stands here came there whole, by its name */
};

static bool bit(const uint8_t *map, uint32_t i)
{
	return map[i / 8] >> i % 8 & 1;
}

static const struct pp_scan_slot *slot_of(const struct pp_scan *scan, uint32_t lane, uint64_t slot)
{
	static const struct pp_scan_slot absent = { .kind = PP_SLOT_ABSENT };
	const struct pp_scan_slot *s = pp_scan_slot(scan, lane, slot);

	return s ? s : &absent;
}

static struct found cell_at(const struct pp_scan *scan, const struct pp_scan_slot *s, uint32_t i,
	uint64_t offset)
{
	struct found f = { .kind = FOUND_ABSENT };

	switch ((enum pp_slot_kind)s->kind) {
	case PP_SLOT_INTACT:
		f.kind = FOUND_VALID;
		f.cell.index = i;
		f.cell.record = (struct pp_record){ .run = scan->runs[s->run], .lane = s->lane,
			.cells = scan->record_bytes / PP_CELL_BYTES, .flags = s->flags, .seq = s->seq,
			.offset = offset, .issued_ns = s->issued_ns, .durable = s->durable };
		break;
	case PP_SLOT_ZERO:
		f.kind = FOUND_ZERO;
		break;
	case PP_SLOT_FF:
		f.kind = FOUND_FF;
		break;
	case PP_SLOT_RAW:
		if (bit(s->absent, i)) {
			f.kind = FOUND_ABSENT;
			break;
		}
		if (bit(s->unread, i)) {
			f.kind = FOUND_UNREAD;
			break;
		}
		f.bytes = s->bytes + (size_t)i * PP_CELL_BYTES;
		switch (pp_cell_check(f.bytes, &f.cell)) {
		case PP_CELL_VALID: f.kind = FOUND_VALID; break;
		case PP_CELL_ZERO: f.kind = FOUND_ZERO; break;
		case PP_CELL_FF: f.kind = FOUND_FF; break;
		case PP_CELL_DAMAGED: f.kind = FOUND_DAMAGED; break;
		}
		break;
	case PP_SLOT_GONE:
		f.kind = FOUND_GONE;
		break;
	case PP_SLOT_ABSENT:
	case PP_SLOT_KINDS:
		break;
	}
	return f;
}

/* ---- first pass: does the evidence hold together, and what is D --------------------------- */

static uint64_t bound_of(const struct oracle *o, uint32_t lane)
{
	uint64_t bound = o->in->acked[lane] + pp_layout_window(o->in->layout);
	uint64_t most = pp_layout_seq_max(o->in->layout);

	return bound < most ? bound : most;
}

static bool is_ours(const struct oracle *o, const struct found *f)
{
	return f->kind == FOUND_VALID && pp_run_id_equal(&f->cell.record.run, &o->in->run);
}

/* True where the cell's own offset says that it belongs at byte offset + index * 512. */
static bool in_place(const struct pp_cell *cell, uint32_t index, uint64_t offset)
{
	return cell->record.offset + (uint64_t)cell->index * PP_CELL_BYTES ==
		offset + (uint64_t)index * PP_CELL_BYTES;
}

/* A valid cell of this run, wherever found: could the writer have made it? (M4.6) */
static int check_ours(struct oracle *o, const struct pp_cell *cell)
{
	const struct pp_layout *l = o->in->layout;
	const struct pp_record *r = &cell->record;

	if (r->lane >= l->lanes)
		return pp_fail(o->err, PP_ERR_EVIDENCE, "a record of this run names lane %u, but the "
			"run had %u", r->lane, l->lanes);
	if (r->seq < 1 || r->seq > bound_of(o, r->lane))
		return pp_fail(o->err, PP_ERR_EVIDENCE, "lane %u holds record %" PRIu64 ", but the "
			"writer may not have gone beyond %" PRIu64 " (acked %" PRIu64 " + window %u)",
			r->lane, r->seq, bound_of(o, r->lane), o->in->acked[r->lane],
			pp_layout_window(l));
	if (r->durable >= r->seq)
		return pp_fail(o->err, PP_ERR_EVIDENCE, "record %" PRIu64 " of lane %u says that %"
			PRIu64 " was durable before it was issued", r->seq, r->lane, r->durable);
	if (r->cells != o->cells || r->seq > pp_layout_seq_max(l) || r->offset !=
		pp_layout_offset(l, r->lane, pp_layout_slot(l, r->lane, r->seq)))
		return pp_fail(o->err, PP_ERR_EVIDENCE, "record %" PRIu64 " of lane %u claims bytes at %"
			PRIu64 ", a place where the writer never puts it", r->seq, r->lane, r->offset);
	return 0;
}

static struct version version_of(const struct pp_record *r)
{
	return (struct version){ .lane = r->lane, .flags = r->flags, .seq = r->seq,
		.durable = r->durable, .issued_ns = r->issued_ns };
}

static bool version_equal(const struct version *a, const struct version *b)
{
	return a->lane == b->lane && a->flags == b->flags && a->seq == b->seq &&
		a->durable == b->durable && a->issued_ns == b->issued_ns;
}

static int note_version(struct oracle *o, const struct pp_record *r)
{
	struct version v = version_of(r), *grown;
	size_t room = o->version_room ? 2 * o->version_room : 64;

	if (o->versions && version_equal(&o->version[o->versions - 1], &v))
		return 0;
	if (o->versions == o->version_room) {
		grown = realloc(o->version, room * sizeof(*grown));
		if (!grown)
			return pp_fail_os(o->err, ENOMEM, "cannot compare records");
		o->version = grown;
		o->version_room = room;
	}
	o->version[o->versions++] = v;
	return 0;
}

/* Every cell of this run in one slot. later: a re-read, which contradicts or doesn't, but does not
 * move D: what it would convict anew has not been read again itself. */
static int survey_slot(struct oracle *o, const struct pp_scan *scan, uint32_t lane, uint64_t slot,
	const struct pp_scan_slot *s, bool later)
{
	uint64_t offset = pp_layout_offset(o->in->layout, lane, slot);
	bool home = slot < o->in->layout->slots; /* not a temporary file, which vouches for D alone */
	uint32_t i, n = s->kind == PP_SLOT_RAW ? o->cells : s->kind == PP_SLOT_INTACT ? 1 : 0;

	for (i = 0; i < n; i++) {
		struct found f = cell_at(scan, s, i, offset);
		const struct pp_record *r = &f.cell.record;
		bool whole = s->kind == PP_SLOT_INTACT && r->lane == lane;

		if (!is_ours(o, &f))
			continue;
		if (check_ours(o, &f.cell) != 0)
			return -1;
		if ((!whole || later || !home) && note_version(o, r) != 0)
			return -1;
		if (later)
			continue;
		if (r->durable > o->out->lane[r->lane].durable)
			o->out->lane[r->lane].durable = r->durable;
		if (whole && home && r->seq > o->out->lane[lane].newest)
			o->out->lane[lane].newest = r->seq;
	}
	return 0;
}

static int survey_reread(struct oracle *o, const struct pp_scan *again)
{
	uint32_t lane;
	uint64_t slot;
	size_t i;

	for (i = 0; i < again->sparse_count; i++)
		if (survey_slot(o, again, again->sparse_slots[i].lane, again->sparse_slots[i].index,
			&again->sparse_slots[i].slot, true) != 0)
			return -1;
	for (lane = 0; lane < again->lanes && !again->sparse; lane++)
		for (slot = 0; slot < again->lane[lane].slots; slot++)
			if (survey_slot(o, again, lane, slot, &again->lane[lane].slot[slot], true) != 0)
				return -1;
	return 0;
}

static int compare_versions(const void *a, const void *b)
{
	const struct version *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* A sequence is issued once. Two that differ were not written by one writer of one run (M4.6). */
static int check_versions(struct oracle *o)
{
	const struct pp_layout *l = o->in->layout;
	size_t i;

	if (o->versions)
		qsort(o->version, o->versions, sizeof(*o->version), compare_versions);
	for (i = 0; i < o->versions; i++) {
		const struct version *v = &o->version[i];
		uint64_t slot = pp_layout_slot(l, v->lane, v->seq);
		const struct pp_scan_slot *home = slot_of(o->in->scan, v->lane, slot);
		struct found f = cell_at(o->in->scan, home, 0, pp_layout_offset(l, v->lane, slot));
		struct version at_home = version_of(&f.cell.record);
		bool twice = i > 0 && compare_versions(v - 1, v) == 0 && !version_equal(v - 1, v);

		if (home->kind == PP_SLOT_INTACT && is_ours(o, &f) &&
			compare_versions(&at_home, v) == 0 && !version_equal(&at_home, v))
			twice = true;
		if (twice)
			return pp_fail(o->err, PP_ERR_EVIDENCE, "record %" PRIu64 " of lane %u exists "
				"in two versions, but a writer issues each once", v->seq, v->lane);
	}
	return 0;
}

static int survey(struct oracle *o)
{
	uint32_t lane;
	uint64_t slot;
	size_t k;

	for (lane = 0; lane < o->in->layout->lanes; lane++)
		o->out->lane[lane].acked = o->out->lane[lane].durable = o->in->acked[lane];
	for (lane = 0; lane < o->in->layout->lanes; lane++) {
		const struct pp_scan_lane *l = &o->in->scan->lane[lane];

		for (slot = 0; slot < l->slots; slot++)
			if (survey_slot(o, o->in->scan, lane, slot, &l->slot[slot], false) != 0)
				return -1;
	}
	for (k = 0; k < o->in->rereads; k++)
		if (survey_reread(o, o->in->reread[k]) != 0)
			return -1;
	if (check_versions(o) != 0)
		return -1;
	for (lane = 0; lane < o->in->layout->lanes; lane++)
		o->out->records_durable += o->out->lane[lane].durable;
	return 0;
}

/* ---- second pass: cells, slots, classes --------------------------------------------------- */

/* True where this cell is what the base scan found in this very place. */
static bool equals_base(const struct oracle *o, const struct place *p, uint32_t i,
	const struct found *f)
{
	const struct pp_scan_slot *base = slot_of(o->in->base, p->lane, p->slot);
	struct found b = cell_at(o->in->base, base, i, p->offset);

	/* A file that ended inside this slot and has grown since reads as zeros in between. */
	if (b.kind == FOUND_ABSENT && base->kind == PP_SLOT_RAW && f->kind == FOUND_ZERO)
		return true;
	if (b.kind != f->kind)
		return false;
	switch (b.kind) {
	case FOUND_VALID:
		return pp_run_id_equal(&b.cell.record.run, &f->cell.record.run) &&
			b.cell.record.lane == f->cell.record.lane && b.cell.index == f->cell.index &&
			b.cell.record.cells == f->cell.record.cells &&
			b.cell.record.flags == f->cell.record.flags &&
			b.cell.record.seq == f->cell.record.seq &&
			b.cell.record.offset == f->cell.record.offset &&
			b.cell.record.issued_ns == f->cell.record.issued_ns &&
			b.cell.record.durable == f->cell.record.durable;
	case FOUND_DAMAGED:
		return memcmp(b.bytes, f->bytes, PP_CELL_BYTES) == 0;
	case FOUND_ZERO:
	case FOUND_FF:
	case FOUND_ABSENT:
	case FOUND_GONE:
		return true;
	case FOUND_UNREAD:
		break;
	}
	return false;
}

/* What could not be read before, or was the part of a cell that the file ended in, was not known:
 * it cannot be lost now (but the file can have become too short to hold it). */
static bool base_unknown(const struct oracle *o, const struct place *p, uint32_t i,
	const struct found *f)
{
	const struct pp_scan_slot *base = slot_of(o->in->base, p->lane, p->slot);
	uint64_t base_end = o->in->base->lane[p->lane].file_bytes;
	bool cut;

	if (p->expected != 0 || base->kind != PP_SLOT_RAW || f->kind == FOUND_ABSENT || f->kind == FOUND_GONE ||
		is_ours(o, f))
		return false;
	cut = bit(base->absent, i) && p->offset + (uint64_t)i * PP_CELL_BYTES < base_end;
	return cut || bit(base->unread, i);
}

static enum cell_class class_ours(const struct place *p, uint32_t i, const struct pp_cell *cell)
{
	if (cell->record.lane != p->lane || !in_place(cell, i, p->offset))
		return CELL_FOREIGN;
	if (cell->record.seq == p->flight)
		return CELL_NEW;
	return cell->record.seq == p->expected ? CELL_OK : CELL_OLD;
}

static enum cell_class class_valid(const struct oracle *o, const struct place *p, uint32_t i,
	const struct found *f)
{
	const struct pp_cell *cell = &f->cell;

	if (is_ours(o, f))
		return class_ours(p, i, cell);
	if (equals_base(o, p, i, f))
		return p->expected == 0 ? CELL_OK : CELL_OLD;
	/* Into a hole nothing older was ever written; a block that shows there was another's. */
	if (!in_place(cell, i, p->offset) || p->hole)
		return CELL_FOREIGN;
	/* Files of lanes have the same offsets: there the lane is part of the place. */
	if (pp_workload_own_files(o->in->layout->workload) && cell->record.lane != p->lane)
		return CELL_FOREIGN;
	return CELL_OLD;
}

static enum cell_class class_cell(const struct oracle *o, const struct place *p, uint32_t i,
	const struct found *f)
{
	if (base_unknown(o, p, i, f))
		return CELL_OK;
	switch (f->kind) {
	case FOUND_VALID:
		return class_valid(o, p, i, f);
	case FOUND_UNREAD:
		return CELL_UNREAD;
	case FOUND_DAMAGED:
		if (!equals_base(o, p, i, f))
			return CELL_DAMAGED;
		return p->expected == 0 ? CELL_OK : CELL_OLD;
	case FOUND_ZERO:
	case FOUND_FF:
	case FOUND_ABSENT:
	case FOUND_GONE:
		if (p->expected == 0 && equals_base(o, p, i, f))
			return CELL_OK;
		return CELL_BLANK;
	}
	return CELL_DAMAGED;
}

/* What a slot's cells came to. */
struct tally {
	uint32_t of[CELL_CLASSES];
	uint32_t absent, gone;
	uint64_t old_seq;       /* the one old record; mixed_old where there are several */
	struct pp_run_id old_run;
	bool mixed_old;
	uint32_t old_base;      /* how many of the old ones are the base's own */
};

static void tally_old(struct tally *t, const struct found *f)
{
	if (f->kind != FOUND_VALID)
		t->mixed_old |= t->of[CELL_OLD] > 1;
	else if (t->of[CELL_OLD] == 1) {
		t->old_seq = f->cell.record.seq;
		t->old_run = f->cell.record.run;
	} else if (t->old_seq != f->cell.record.seq ||
		!pp_run_id_equal(&t->old_run, &f->cell.record.run))
		t->mixed_old = true;
}

static void tally_slot(const struct oracle *o, const struct place *p, const struct pp_scan *scan,
	const struct pp_scan_slot *s, struct tally *t)
{
	uint32_t i;

	memset(t, 0, sizeof(*t));
	for (i = 0; i < o->cells; i++) {
		struct found f = cell_at(scan, s, i, p->offset);
		enum cell_class class = class_cell(o, p, i, &f);

		t->of[class]++;
		t->absent += f.kind == FOUND_ABSENT && class == CELL_BLANK;
		t->gone += f.kind == FOUND_GONE && class == CELL_BLANK;
		if (class != CELL_OLD)
			continue;
		tally_old(t, &f);
		t->old_base += equals_base(o, p, i, &f);
	}
}

/* The cells that the rules do not allow here (M4.2, M4.3). */
static void strike_allowed(const struct oracle *o, const struct place *p, struct tally *t)
{
	if (!p->flight)
		return;
	/* The name is a witness: under it the one or the other, whole (M4.5). */
	if (p->replaced) {
		if (t->of[CELL_NEW] == o->cells)
			t->of[CELL_NEW] = 0;
		return;
	}
	t->of[CELL_NEW] = 0;
	t->of[CELL_DAMAGED] = 0;
	t->of[CELL_UNREAD] = 0;
	if (!p->hole)
		return;
	t->of[CELL_BLANK] = 0;
	t->absent = t->gone = 0;
	if (o->in->kind == PP_TARGET_FILE)
		t->of[CELL_FOREIGN] = 0;
}

/* The slot's class by its worst cell; false where all is allowed (M4.4). */
static bool loss_class(const struct oracle *o, const struct place *p, const struct tally *found,
	enum pp_loss_class *class)
{
	struct tally t = *found;

	strike_allowed(o, p, &t);
	if (t.of[CELL_DAMAGED])
		*class = PP_LOSS_CORRUPT;
	else if (t.of[CELL_UNREAD])
		*class = PP_LOSS_UNREADABLE;
	else if (t.of[CELL_FOREIGN])
		*class = PP_LOSS_MISDIRECTED;
	else if (t.gone)
		*class = PP_LOSS_FILE_GONE;
	else if (t.absent)
		*class = PP_LOSS_FILE_SHORT;
	else if (t.of[CELL_BLANK])
		*class = t.of[CELL_BLANK] == o->cells ? PP_LOSS_BLANK : PP_LOSS_TORN;
	else if (t.of[CELL_OLD])
		*class = t.of[CELL_OLD] == o->cells && (!t.mixed_old || t.old_base == o->cells)
			? PP_LOSS_STALE : PP_LOSS_TORN;
	else if (t.of[CELL_NEW])
		*class = PP_LOSS_TORN;
	else
		return false;
	return true;
}

static int add_loss(struct oracle *o, const struct place *p, enum pp_loss_class class)
{
	struct pp_oracle_result *out = o->out;
	struct pp_loss *loss;

	if (out->losses == o->loss_room) {
		size_t room = o->loss_room ? 2 * o->loss_room : 64;

		loss = realloc(out->loss, room * sizeof(*loss));
		if (!loss)
			return pp_fail_os(o->err, ENOMEM, "cannot list losses");
		out->loss = loss;
		o->loss_room = room;
	}
	loss = &out->loss[out->losses++];
	*loss = (struct pp_loss){ .lane = p->lane, .slot = p->slot, .offset = p->offset,
		.seq = p->expected, .class = class,
		.by_ack = p->expected && p->expected <= o->in->acked[p->lane],
		.unserializable = p->expected && out->lane[p->lane].newest > p->expected };
	return 0;
}

/* What of a cell arrived. */
enum arrival { ARRIVED_NOT, ARRIVED_PARTLY, ARRIVED };

static enum arrival arrival_of(const struct oracle *o, const struct place *p,
	const struct pp_scan_slot *s, uint32_t i)
{
	struct found f = cell_at(o->in->scan, s, i, p->offset);

	switch (class_cell(o, p, i, &f)) {
	case CELL_NEW: return ARRIVED;
	case CELL_DAMAGED:
	case CELL_UNREAD: return ARRIVED_PARTLY;
	default: return ARRIVED_NOT;
	}
}

/*
 * M4.8: in which sizes of blocks, each on a multiple of its size and wholly inside the record, did a
 * block arrive in part? A drive that writes 4096 bytes as one tears none of 4096 or less.
 */
static void note_tears(struct oracle *o, const struct place *p, const struct pp_scan_slot *s)
{
	uint32_t first = (uint32_t)(p->offset / PP_CELL_BYTES % (1U << (PP_TEAR_UNITS - 1)));
	uint32_t k, at, i;

	for (k = 0; k < PP_TEAR_UNITS && 1U << k <= o->cells; k++) {
		uint32_t block = 1U << k;
		bool torn = false;

		for (at = (block - first % block) % block; at + block <= o->cells && !torn; at += block) {
			uint32_t whole = 0, some = 0;

			for (i = at; i < at + block; i++) {
				enum arrival a = arrival_of(o, p, s, i);

				whole += a == ARRIVED;
				some += a != ARRIVED_NOT;
			}
			torn = some && whole < block;
		}
		o->out->torn_at[k] += torn;
	}
}

static void note_flight(struct oracle *o, const struct place *p, const struct tally *t)
{
	uint32_t touched = t->of[CELL_NEW] + t->of[CELL_DAMAGED] + t->of[CELL_UNREAD];

	if (!p->flight)
		return;
	if (p->hole && o->in->kind == PP_TARGET_FILE && t->of[CELL_FOREIGN])
		o->out->exposed_stale = true;
	if (!touched)
		return;
	o->out->in_flight_seen++;
	if (t->of[CELL_NEW] != o->cells) {
		o->out->in_flight_torn++;
		note_tears(o, p, slot_of(o->in->scan, p->lane, p->slot));
	}
	if (t->of[CELL_UNREAD])
		o->out->in_flight_unreadable++;
}

static struct place place_of(const struct oracle *o, uint32_t lane, uint64_t slot)
{
	const struct pp_layout *l = o->in->layout;
	uint64_t durable = o->out->lane[lane].durable, newest;
	struct place p = { .lane = lane, .slot = slot,
		.offset = pp_layout_offset(l, lane, slot) };
	uint8_t base = slot_of(o->in->base, lane, slot)->kind;
	uint8_t hole = l->workload == PP_FALLOCATED ? PP_SLOT_ZERO
		: pp_workload_record_files(l->workload) ? PP_SLOT_GONE : PP_SLOT_ABSENT;

	p.expected = pp_layout_newest(l, lane, slot, durable);
	newest = pp_layout_newest(l, lane, slot, bound_of(o, lane));
	p.flight = newest > durable ? newest : 0;
	p.hole = p.expected == 0 && base == hole && pp_workload_grows(l->workload);
	p.replaced = pp_workload_renames(l->workload);
	return p;
}

/*
 * M2.5: with records smaller than the unit, damage to a neighbour in the same unit as a record in
 * flight is collateral: reported, not clean, no broken promise.
 */
static bool is_collateral(const struct oracle *o, const struct place *p, const struct tally *t)
{
	const struct pp_layout *l = o->in->layout;
	uint64_t begin = p->slot * l->record_bytes, end = begin + l->record_bytes, slot;

	if (!l->sub_block || l->record_bytes >= l->unit_bytes ||
		pp_workload_record_files(l->workload) ||
		!(t->of[CELL_DAMAGED] || t->of[CELL_UNREAD]) || t->of[CELL_OLD] || t->of[CELL_BLANK] ||
		t->of[CELL_FOREIGN])
		return false;
	/* Regions start on whole units; a record need not divide one. */
	begin = begin / l->unit_bytes * l->unit_bytes;
	end = (end + l->unit_bytes - 1) / l->unit_bytes * l->unit_bytes;
	for (slot = begin / l->record_bytes; slot < l->slots && slot * l->record_bytes < end; slot++)
		if (slot != p->slot && place_of(o, p->lane, slot).flight)
			return true;
	return false;
}

static uint64_t slots_to_check(const struct oracle *o, uint32_t lane)
{
	const struct pp_layout *l = o->in->layout;
	uint64_t most = l->slots, durable = o->out->lane[lane].durable;

	if (l->workload != PP_APPEND)
		return most;
	most = o->in->base->lane[lane].slots;
	if (durable && pp_layout_slot(l, lane, durable) + 1 > most)
		most = pp_layout_slot(l, lane, durable) + 1;
	return o->in->scan->lane[lane].slots > most ? o->in->scan->lane[lane].slots : most;
}

static int judge_lane(struct oracle *o, uint32_t lane)
{
	bool gone = o->in->scan->lane[lane].file_state == PP_FILE_GONE;
	uint64_t slot, slots = slots_to_check(o, lane);
	enum pp_loss_class class;
	struct tally t;

	for (slot = 0; slot < slots; slot++) {
		struct place p = place_of(o, lane, slot);

		o->out->slots_checked++;
		tally_slot(o, &p, o->in->scan, slot_of(o->in->scan, lane, slot), &t);
		note_flight(o, &p, &t);
		if (!loss_class(o, &p, &t, &class))
			continue;
		if (is_collateral(o, &p, &t)) {
			o->out->collateral++;
			continue;
		}
		if (add_loss(o, &p, gone ? PP_LOSS_FILE_GONE : class) != 0)
			return -1;
	}
	/* A file that is gone is a loss even where nothing was acked into it: the base had it. */
	if (gone && o->in->base->lane[lane].file_state == PP_FILE_PRESENT && slots == 0) {
		struct place p = { .lane = lane };

		return add_loss(o, &p, PP_LOSS_FILE_GONE);
	}
	return 0;
}

/* ---- third pass: one read does not convict (M4.7) ------------------------------------------ */

static bool reread_lost(const struct oracle *o, const struct pp_loss *loss, const struct pp_scan *again)
{
	struct place p = place_of(o, loss->lane, loss->slot);
	const struct pp_scan_slot *s = pp_scan_slot(again, loss->lane, loss->slot);
	enum pp_loss_class class;
	struct tally t;

	if (loss->class == PP_LOSS_FILE_GONE && again->lane[loss->lane].file_state == PP_FILE_GONE)
		return true;
	if (!s)
		return true; /* not asked for: says nothing in its favour */
	tally_slot(o, &p, again, s, &t);
	return loss_class(o, &p, &t, &class);
}

static void hear_rereads(struct oracle *o)
{
	size_t i, k;

	for (i = 0; i < o->out->losses; i++)
		for (k = 0; k < o->in->rereads; k++)
			if (!reread_lost(o, &o->out->loss[i], o->in->reread[k]))
				o->out->loss[i].unstable = true;
}

static void sum_up(struct oracle *o)
{
	struct pp_oracle_result *out = o->out;
	size_t i;

	for (i = 0; i < out->losses; i++) {
		const struct pp_loss *loss = &out->loss[i];

		if (loss->unstable) {
			out->unstable++;
			continue;
		}
		out->lost[loss->class]++;
		out->lost_total++;
		out->unserializable |= loss->unserializable;
		if (loss->seq == 0)
			out->lost_base++;
		else if (loss->by_ack)
			out->lost_acked++;
		else
			out->lost_by_order++;
	}
}

static bool run_known(const struct oracle *o, const struct pp_run_id *id)
{
	size_t i;

	if (pp_run_id_equal(id, &o->in->run))
		return true;
	for (i = 0; i < o->in->base->run_count; i++)
		if (pp_run_id_equal(id, &o->in->base->runs[i]))
			return true;
	return false;
}

static void list_unknown_runs(struct oracle *o)
{
	size_t i;

	for (i = 0; i < o->in->scan->run_count; i++) {
		if (run_known(o, &o->in->scan->runs[i]))
			continue;
		if (o->out->unknown_runs < 16)
			o->out->unknown_run[o->out->unknown_runs] = o->in->scan->runs[i];
		o->out->unknown_runs++;
	}
}

/* A scan with slots left out would make losses, or holes, of them. */
static int check_slots(const struct oracle *o, uint32_t lane)
{
	const struct pp_layout *l = o->in->layout;
	uint64_t scan = o->in->scan->lane[lane].slots, base = o->in->base->lane[lane].slots;
	uint64_t want = pp_layout_scan_slots(l), slot;

	if (o->in->acked[lane] > pp_layout_seq_max(l) || o->in->acked[lane] > INT64_MAX)
		return pp_fail(o->err, PP_ERR_EVIDENCE, "lane %u has %" PRIu64 " records acked, but room "
			"for %" PRIu64, lane, o->in->acked[lane], pp_layout_seq_max(l));
	if (l->workload != PP_APPEND && (scan != want || base != want))
		return pp_fail(o->err, PP_ERR_EVIDENCE, "lane %u has %" PRIu64 " slots, but its scans "
			"have %" PRIu64 " before and %" PRIu64 " after", lane, want, base, scan);
	/* An append begins behind what was there, or on the slot that the file's end was in. */
	if (l->workload == PP_APPEND && base != l->base_slots[lane] &&
		base != l->base_slots[lane] + 1)
		return pp_fail(o->err, PP_ERR_EVIDENCE, "lane %u was to append behind slot %" PRIu64
			", but the scan before has %" PRIu64, lane, l->base_slots[lane], base);
	/* Where slots are taken once, what this run was to take must have been free. */
	for (slot = l->base_slots[lane]; l->workload != PP_APPEND && pp_workload_grows(l->workload) &&
		slot < base; slot++)
		if (!place_of(o, lane, slot).hole)
			return pp_fail(o->err, PP_ERR_EVIDENCE, "lane %u was to begin at slot %" PRIu64
				", but slot %" PRIu64 " was taken before", lane, l->base_slots[lane], slot);
	return 0;
}

static int check_shapes(const struct oracle *o)
{
	const struct pp_oracle_input *in = o->in;
	const struct pp_layout *l = in->layout;
	uint32_t lane;
	size_t k;

	if (in->scan->record_bytes != l->record_bytes || in->base->record_bytes != l->record_bytes ||
		in->scan->lanes != l->lanes || in->base->lanes != l->lanes || in->scan->sparse ||
		in->base->sparse)
		return pp_fail(o->err, PP_ERR_EVIDENCE, "scan, base and run are not of one shape");
	for (k = 0; k < in->rereads; k++)
		if (in->reread[k]->record_bytes != l->record_bytes || in->reread[k]->lanes != l->lanes)
			return pp_fail(o->err, PP_ERR_EVIDENCE, "re-read %zu is of another shape", k + 1);
	for (k = 0; k < in->base->run_count; k++)
		if (pp_run_id_equal(&in->base->runs[k], &in->run))
			return pp_fail(o->err, PP_ERR_EVIDENCE, "the scan before the run already has "
				"records of it");
	for (lane = 0; lane < l->lanes; lane++)
		if (check_slots(o, lane) != 0)
			return -1;
	return 0;
}

static int judge_all(struct oracle *o)
{
	uint32_t lane;

	if (check_shapes(o) != 0 || survey(o) != 0)
		return -1;
	for (lane = 0; lane < o->in->layout->lanes; lane++)
		if (judge_lane(o, lane) != 0)
			return -1;
	hear_rereads(o);
	sum_up(o);
	list_unknown_runs(o);
	return 0;
}

int pp_oracle_judge(const struct pp_oracle_input *input, struct pp_oracle_result *result,
	struct pp_error *err)
{
	struct oracle o = { .in = input, .out = result, .err = err,
		.cells = input->layout->record_bytes / PP_CELL_BYTES };
	int rc;

	assert(input->rereads <= PP_REREADS_MAX);
	memset(result, 0, sizeof(*result));
	rc = judge_all(&o);
	free(o.version);
	if (rc != 0)
		pp_oracle_release(result);
	return rc;
}

void pp_oracle_release(struct pp_oracle_result *result)
{
	free(result->loss);
	memset(result, 0, sizeof(*result));
}

size_t pp_oracle_ranges(const struct pp_oracle_result *result, struct pp_scan_range **ranges)
{
	struct pp_scan_range *list;
	size_t i, n = 0;

	*ranges = NULL;
	if (result->losses == 0)
		return 0;
	list = calloc(result->losses, sizeof(*list));
	if (!list)
		return 0;
	for (i = 0; i < result->losses; i++) {
		const struct pp_loss *loss = &result->loss[i];

		if (n && list[n - 1].lane == loss->lane && list[n - 1].last + 1 == loss->slot)
			list[n - 1].last = loss->slot;
		else
			list[n++] = (struct pp_scan_range){ loss->lane, loss->slot, loss->slot };
	}
	*ranges = list;
	return n;
}
