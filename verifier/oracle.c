/* SPDX-License-Identifier: MIT
 *
 * Method. First pass (oracle_survey.c): check that no record contradicts the ledger (M4.6) and find
 * each lane's D. Second pass: judge each cell of each slot against e and F, take
 * the slot's worst, and map it to a class. Third: hear the re-reads.
 */
#include "oracle_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What one cell is, worst last (M4.1). */
enum cell_class { CELL_OK, CELL_NEW, CELL_OLD, CELL_BLANK, CELL_FOREIGN, CELL_UNREAD, CELL_DAMAGED,
	CELL_CLASSES };

/* ---- second pass: cells, slots, classes --------------------------------------------------- */

/* True where this cell is what the base scan found in this very place. */
static bool equals_base(const struct oracle *o, const struct place *p, uint32_t i,
	const struct found *f)
{
	const struct pp_scan_slot *base = pp_oracle_slot(o->in->base, p->lane, p->slot);
	struct found b = pp_oracle_cell(o->in->base, base, i, p->offset);

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
	const struct pp_scan_slot *base = pp_oracle_slot(o->in->base, p->lane, p->slot);
	uint64_t base_end = o->in->base->lane[p->lane].file_bytes;
	bool cut;

	if (p->expected != 0 || base->kind != PP_SLOT_RAW || f->kind == FOUND_ABSENT || f->kind == FOUND_GONE ||
		pp_oracle_is_ours(o, f))
		return false;
	cut = pp_oracle_bit(base->absent, i) && p->offset + (uint64_t)i * PP_CELL_BYTES < base_end;
	return cut || pp_oracle_bit(base->unread, i);
}

static enum cell_class class_ours(const struct place *p, uint32_t i, const struct pp_cell *cell)
{
	if (cell->record.lane != p->lane || !pp_oracle_in_place(cell, i, p->offset))
		return CELL_FOREIGN;
	if (cell->record.seq == p->flight)
		return CELL_NEW;
	return cell->record.seq == p->expected ? CELL_OK : CELL_OLD;
}

static enum cell_class class_valid(const struct oracle *o, const struct place *p, uint32_t i,
	const struct found *f)
{
	const struct pp_cell *cell = &f->cell;

	if (pp_oracle_is_ours(o, f))
		return class_ours(p, i, cell);
	if (equals_base(o, p, i, f))
		return p->expected == 0 ? CELL_OK : CELL_OLD;
	/* Into a hole nothing older was ever written; a block that shows there was another's. */
	if (!pp_oracle_in_place(cell, i, p->offset) || p->hole)
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
		struct found f = pp_oracle_cell(scan, s, i, p->offset);
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

/* Something of the record in flight arrived. */
static bool arrived(const struct place *p, const struct tally *t)
{
	return p->flight && t->of[CELL_NEW] + t->of[CELL_DAMAGED] + t->of[CELL_UNREAD] > 0;
}

/* M4.5: a method that promises `untorn` writes each record as one unit, or the kernel refuses it. */
static bool breaks_untorn(const struct oracle *o, const struct place *p, const struct tally *t)
{
	return o->in->untorn && !p->replaced && arrived(p, t) && t->of[CELL_NEW] != o->cells;
}

/* The cells that the rules do not allow here (M4.2, M4.3). */
static void strike_allowed(const struct oracle *o, const struct place *p, struct tally *t)
{
	bool untorn = breaks_untorn(o, p, t);

	if (!p->flight)
		return;
	/* The name is a witness: under it the one or the other, whole (M4.5). */
	if (p->replaced) {
		if (t->of[CELL_NEW] == o->cells)
			t->of[CELL_NEW] = 0;
		return;
	}
	t->of[CELL_NEW] = untorn;
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

/* Whether the loss is none but that a write which had to be whole arrived in part. */
static bool tears_only(const struct oracle *o, const struct place *p, const struct tally *t)
{
	struct tally left = *t;

	if (!breaks_untorn(o, p, t))
		return false;
	strike_allowed(o, p, &left);
	return !left.of[CELL_OLD] && !left.of[CELL_BLANK] && !left.of[CELL_FOREIGN];
}

static int add_loss(struct oracle *o, const struct place *p, enum pp_loss_class class, bool untorn)
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
		.seq = p->expected, .class = class, .untorn = untorn,
		.by_ack = p->expected && p->expected <= o->in->acked[p->lane],
		.unserializable = p->expected && out->lane[p->lane].newest > p->expected };
	if (untorn) {
		loss->seq = p->flight;
		loss->by_ack = loss->unserializable = false;
	}
	return 0;
}

/* What of a cell arrived. */
enum arrival { ARRIVED_NOT, ARRIVED_PARTLY, ARRIVED };

static enum arrival arrival_of(const struct oracle *o, const struct place *p,
	const struct pp_scan_slot *s, uint32_t i)
{
	struct found f = pp_oracle_cell(o->in->scan, s, i, p->offset);

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
	if (!p->flight)
		return;
	if (p->hole && o->in->kind == PP_TARGET_FILE && t->of[CELL_FOREIGN])
		o->out->exposed_stale = true;
	if (!arrived(p, t))
		return;
	o->out->in_flight_seen++;
	if (t->of[CELL_NEW] != o->cells) {
		o->out->in_flight_torn++;
		note_tears(o, p, pp_oracle_slot(o->in->scan, p->lane, p->slot));
	}
	if (t->of[CELL_UNREAD])
		o->out->in_flight_unreadable++;
}

struct place pp_oracle_place(const struct oracle *o, uint32_t lane, uint64_t slot)
{
	const struct pp_layout *l = o->in->layout;
	uint64_t durable = o->out->lane[lane].durable, newest;
	struct place p = { .lane = lane, .slot = slot,
		.offset = pp_layout_offset(l, lane, slot) };
	uint8_t base = pp_oracle_slot(o->in->base, lane, slot)->kind;
	uint8_t hole = l->workload == PP_FALLOCATED ? PP_SLOT_ZERO
		: pp_workload_record_files(l->workload) ? PP_SLOT_GONE : PP_SLOT_ABSENT;

	p.expected = pp_layout_newest(l, lane, slot, durable);
	newest = pp_layout_newest(l, lane, slot, pp_oracle_bound(o, lane));
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
		if (slot != p->slot && pp_oracle_place(o, p->lane, slot).flight)
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
		struct place p = pp_oracle_place(o, lane, slot);

		o->out->slots_checked++;
		tally_slot(o, &p, o->in->scan, pp_oracle_slot(o->in->scan, lane, slot), &t);
		note_flight(o, &p, &t);
		if (!loss_class(o, &p, &t, &class))
			continue;
		if (is_collateral(o, &p, &t)) {
			o->out->collateral++;
			continue;
		}
		if (add_loss(o, &p, gone ? PP_LOSS_FILE_GONE : class, tears_only(o, &p, &t)) != 0)
			return -1;
	}
	/* A file that is gone is a loss even where nothing was acked into it: the base had it. */
	if (gone && o->in->base->lane[lane].file_state == PP_FILE_PRESENT && slots == 0) {
		struct place p = { .lane = lane };

		return add_loss(o, &p, PP_LOSS_FILE_GONE, false);
	}
	return 0;
}

/* ---- third pass: one read does not convict (M4.7) ------------------------------------------ */

static bool reread_lost(const struct oracle *o, const struct pp_loss *loss, const struct pp_scan *again)
{
	struct place p = pp_oracle_place(o, loss->lane, loss->slot);
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
		if (loss->untorn)
			out->lost_untorn++;
		else if (loss->seq == 0)
			out->lost_base++;
		else if (loss->by_ack)
			out->lost_acked++;
		else
			out->lost_by_order++;
	}
}

static int judge_all(struct oracle *o)
{
	uint32_t lane;

	if (pp_oracle_survey(o) != 0)
		return -1;
	for (lane = 0; lane < o->in->layout->lanes; lane++)
		if (judge_lane(o, lane) != 0)
			return -1;
	hear_rereads(o);
	sum_up(o);
	pp_oracle_list_unknown_runs(o);
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
