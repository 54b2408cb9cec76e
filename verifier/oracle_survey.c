/* SPDX-License-Identifier: MIT
 *
 * Method: first whether scans, base and run are of one shape; then every cell of the scan once: no
 * record may contradict the ledger, nor another one of its sequence (M4.6), and the largest `durable`
 * of each lane is its D.
 */
#include "oracle_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What one record says of itself; every cell of it must say the same. */
struct version {
	uint32_t lane, flags;
	uint64_t seq, durable;
	int64_t issued_ns;
};

const struct pp_scan_slot *pp_oracle_slot(const struct pp_scan *scan, uint32_t lane, uint64_t slot)
{
	static const struct pp_scan_slot absent = { .kind = PP_SLOT_ABSENT };
	const struct pp_scan_slot *s = pp_scan_slot(scan, lane, slot);

	return s ? s : &absent;
}

struct found pp_oracle_cell(const struct pp_scan *scan, const struct pp_scan_slot *s, uint32_t i,
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
		if (pp_oracle_bit(s->absent, i)) {
			f.kind = FOUND_ABSENT;
			break;
		}
		if (pp_oracle_bit(s->unread, i)) {
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

uint64_t pp_oracle_bound(const struct oracle *o, uint32_t lane)
{
	uint64_t bound = o->in->acked[lane] + pp_layout_window(o->in->layout);
	uint64_t most = pp_layout_seq_max(o->in->layout);

	return bound < most ? bound : most;
}

bool pp_oracle_is_ours(const struct oracle *o, const struct found *f)
{
	return f->kind == FOUND_VALID && pp_run_id_equal(&f->cell.record.run, &o->in->run);
}

bool pp_oracle_in_place(const struct pp_cell *cell, uint32_t index, uint64_t offset)
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
	if (r->seq < 1 || r->seq > pp_oracle_bound(o, r->lane))
		return pp_fail(o->err, PP_ERR_EVIDENCE, "lane %u holds record %" PRIu64 ", but the "
			"writer may not have gone beyond %" PRIu64 " (acked %" PRIu64 " + window %u)",
			r->lane, r->seq, pp_oracle_bound(o, r->lane), o->in->acked[r->lane],
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
		struct found f = pp_oracle_cell(scan, s, i, offset);
		const struct pp_record *r = &f.cell.record;
		bool whole = s->kind == PP_SLOT_INTACT && r->lane == lane;

		if (!pp_oracle_is_ours(o, &f))
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
		const struct pp_scan_slot *home = pp_oracle_slot(o->in->scan, v->lane, slot);
		struct found f = pp_oracle_cell(o->in->scan, home, 0, pp_layout_offset(l, v->lane, slot));
		struct version at_home = version_of(&f.cell.record);
		bool twice = i > 0 && compare_versions(v - 1, v) == 0 && !version_equal(v - 1, v);

		if (home->kind == PP_SLOT_INTACT && pp_oracle_is_ours(o, &f) &&
			compare_versions(&at_home, v) == 0 && !version_equal(&at_home, v))
			twice = true;
		if (twice)
			return pp_fail(o->err, PP_ERR_EVIDENCE, "record %" PRIu64 " of lane %u exists "
				"in two versions, but a writer issues each once", v->seq, v->lane);
	}
	return 0;
}

static int survey_all(struct oracle *o)
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

/* ---- shapes ------------------------------------------------------------------------------- */

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
		if (!pp_oracle_place(o, lane, slot).hole)
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

int pp_oracle_survey(struct oracle *o)
{
	return check_shapes(o) != 0 || survey_all(o) != 0 ? -1 : 0;
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

void pp_oracle_list_unknown_runs(struct oracle *o)
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
