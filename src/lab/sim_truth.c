/* SPDX-License-Identifier: MIT
 *
 * Method: every run keeps, lane by lane, the fingerprints of its records' cells, where each went
 * and what the lane had said to be durable when it was written. After a cut each cell of the target
 * is named by its fingerprint: as one of this run's records of this very place (a short list), as
 * what the base had, or, for the rare rest, by a table of all fingerprints of the rig's life.
 */
#include "sim_truth.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define CELL 512

enum seen_kind { SEEN_RECORD, SEEN_ZERO, SEEN_FF, SEEN_OTHER, SEEN_UNREAD, SEEN_ABSENT, SEEN_GONE };

/* One cell of the target as it stands there. */
struct seen {
	uint64_t print;     /* of its bytes */
	uint8_t kind;       /* enum seen_kind */
	bool home;          /* RECORD: in the place that it was written for */
	uint32_t run, lane;
	uint64_t seq;
};

struct words {
	uint64_t count, room;
	uint64_t *durable, *slot, *before; /* of record i + 1; before: of its slot, 0 none */
	uint64_t *print;                   /* cells of them each */
	uint64_t *newest;                  /* a slot: its newest record, 0 none */
};

struct run {
	bool setup;
	struct words lane[PP_LANES_MAX];
};

struct heard {
	uint64_t seq;
	int64_t t_ns;
};

/* Where a fingerprint comes from: the table's entry. */
struct origin {
	uint64_t print;
	uint32_t run, lane; /* run + 1; 0: free */
	uint64_t index;     /* record * cells + cell */
};

struct pp_sim_truth {
	const struct pp_sim_kernel *kernel;
	const struct pp_layout *layout;
	uint32_t cells;
	uint64_t scan_slots, lane_cells; /* cells of a lane, temporary files included */
	uint64_t zero_print, ff_print;
	struct run *runs;
	uint32_t run_count, run_room;
	struct seen *now, *base;
	struct origin *table;
	uint64_t table_size, table_used;
	uint32_t table_runs;             /* runs that are in the table */
	uint64_t word[PP_LANES_MAX], acked[PP_LANES_MAX];
	struct heard *heard[PP_LANES_MAX];
	size_t heard_count[PP_LANES_MAX], heard_room[PP_LANES_MAX];
	uint64_t *flight;                /* a slot: record of D+1 .. A+W that belongs there, 0 none */
	struct pp_sim_lost *lost;
	size_t lost_room;
	bool untorn;                     /* the run's method promises it */
	bool no_memory;
};

struct pp_sim_truth *pp_sim_truth_new(const struct pp_sim_kernel *kernel,
	const struct pp_layout *layout, struct pp_error *err)
{
	struct pp_sim_truth *t = calloc(1, sizeof(*t));
	uint8_t cell[CELL];

	if (!t)
		goto no_memory;
	t->kernel = kernel;
	t->layout = layout;
	t->cells = layout->record_bytes / CELL;
	t->scan_slots = pp_workload_renames(layout->workload) ? 2 * layout->slots : layout->slots;
	t->lane_cells = t->scan_slots * t->cells;
	memset(cell, 0, CELL);
	t->zero_print = XXH3_64bits(cell, CELL);
	memset(cell, 0xff, CELL);
	t->ff_print = XXH3_64bits(cell, CELL);
	t->now = calloc(layout->lanes * t->lane_cells, sizeof(*t->now));
	t->base = calloc(layout->lanes * t->lane_cells, sizeof(*t->base));
	t->flight = calloc(layout->slots, sizeof(*t->flight));
	if (t->now && t->base && t->flight)
		return t;
no_memory:
	pp_sim_truth_free(t);
	pp_fail_os(err, ENOMEM, "cannot keep the truth");
	return NULL;
}

static void release_words(struct words *w)
{
	free(w->durable);
	free(w->slot);
	free(w->before);
	free(w->print);
	free(w->newest);
}

void pp_sim_truth_free(struct pp_sim_truth *t)
{
	uint32_t i, lane;

	if (!t)
		return;
	for (i = 0; i < t->run_count; i++)
		for (lane = 0; lane < t->layout->lanes; lane++)
			release_words(&t->runs[i].lane[lane]);
	for (lane = 0; lane < PP_LANES_MAX; lane++)
		free(t->heard[lane]);
	free(t->runs);
	free(t->now);
	free(t->base);
	free(t->table);
	free(t->flight);
	free(t->lost);
	free(t);
}

/* ---- while the lanes write ------------------------------------------------------------------- */

int pp_sim_truth_begin(struct pp_sim_truth *t, bool setup, bool untorn, struct pp_error *err)
{
	struct run *r;
	uint32_t lane;

	if (t->run_count == t->run_room) {
		uint32_t room = t->run_room ? 2 * t->run_room : 8;
		struct run *grown = realloc(t->runs, room * sizeof(*grown));

		if (!grown)
			return pp_fail_os(err, ENOMEM, "cannot keep the truth");
		t->runs = grown;
		t->run_room = room;
	}
	t->untorn = untorn;
	r = &t->runs[t->run_count++];
	memset(r, 0, sizeof(*r));
	r->setup = setup;
	for (lane = 0; lane < t->layout->lanes; lane++) {
		t->word[lane] = t->acked[lane] = 0;
		t->heard_count[lane] = 0;
		r->lane[lane].newest = calloc(t->layout->slots, sizeof(uint64_t));
		if (!r->lane[lane].newest)
			return pp_fail_os(err, ENOMEM, "cannot keep the truth");
	}
	return 0;
}

static bool grow_words(const struct pp_sim_truth *t, struct words *w)
{
	uint64_t room = w->room ? 2 * w->room : 512;
	uint64_t **list[] = { &w->durable, &w->slot, &w->before };
	uint64_t *grown;
	size_t i;

	for (i = 0; i < 3; i++) {
		grown = realloc(*list[i], room * sizeof(*grown));
		if (!grown)
			return false;
		*list[i] = grown;
	}
	grown = realloc(w->print, room * t->cells * sizeof(*grown));
	if (!grown)
		return false;
	w->print = grown;
	w->room = room;
	return true;
}

static struct words *words_now(const struct pp_sim_truth *t, uint32_t lane)
{
	return &t->runs[t->run_count - 1].lane[lane];
}

void pp_sim_truth_wrote(struct pp_sim_truth *t, uint32_t lane, uint64_t slot, const void *record)
{
	struct words *w = words_now(t, lane);
	uint64_t i = w->count;
	uint32_t cell;

	if (i == w->room && !grow_words(t, w)) {
		t->no_memory = true;
		return;
	}
	w->durable[i] = t->word[lane];
	w->slot[i] = slot;
	w->before[i] = w->newest[slot];
	for (cell = 0; cell < t->cells; cell++)
		w->print[i * t->cells + cell] =
			XXH3_64bits((const uint8_t *)record + (size_t)cell * CELL, CELL);
	w->newest[slot] = ++w->count;
}

void pp_sim_truth_word(struct pp_sim_truth *t, uint32_t lane, uint64_t seq)
{
	t->word[lane] = seq;
}

void pp_sim_truth_heard(struct pp_sim_truth *t, uint32_t lane, uint64_t seq, int64_t t_ns)
{
	if (t->heard_count[lane] == t->heard_room[lane]) {
		size_t room = t->heard_room[lane] ? 2 * t->heard_room[lane] : 256;
		struct heard *grown = realloc(t->heard[lane], room * sizeof(*grown));

		if (!grown) {
			t->no_memory = true;
			return;
		}
		t->heard[lane] = grown;
		t->heard_room[lane] = room;
	}
	t->heard[lane][t->heard_count[lane]++] = (struct heard){ seq, t_ns };
	t->acked[lane] = seq;
}

/* ---- naming what stands there ---------------------------------------------------------------- */

static void put_origin(struct pp_sim_truth *t, const struct origin *o)
{
	uint64_t at = o->print & (t->table_size - 1);

	while (t->table[at].run)
		at = (at + 1) & (t->table_size - 1);
	t->table[at] = *o;
	t->table_used++;
}

static bool grow_table(struct pp_sim_truth *t, uint64_t more)
{
	struct origin *old = t->table;
	uint64_t size = t->table_size, want = size ? size : 1024, i;

	while (want < 2 * (t->table_used + more))
		want *= 2;
	if (want == size)
		return true;
	t->table = calloc(want, sizeof(*t->table));
	if (!t->table) {
		t->table = old;
		return false;
	}
	t->table_size = want;
	t->table_used = 0;
	for (i = 0; i < size; i++)
		if (old[i].run)
			put_origin(t, &old[i]);
	free(old);
	return true;
}

/* The table is made only where somebody asks; on an honest drive nobody does. */
static void fill_table(struct pp_sim_truth *t)
{
	uint32_t lane;
	uint64_t i;

	for (; t->table_runs < t->run_count; t->table_runs++) {
		const struct run *r = &t->runs[t->table_runs];

		for (lane = 0; lane < t->layout->lanes; lane++) {
			const struct words *w = &r->lane[lane];

			if (!grow_table(t, w->count * t->cells)) {
				t->no_memory = true;
				return;
			}
			for (i = 0; i < w->count * t->cells; i++)
				put_origin(t, &(struct origin){ w->print[i], t->table_runs + 1, lane, i });
		}
	}
}

static const struct origin *find_origin(struct pp_sim_truth *t, uint64_t print)
{
	uint64_t at;

	fill_table(t);
	if (t->no_memory || !t->table_size)
		return NULL;
	at = print & (t->table_size - 1);
	while (t->table[at].run && t->table[at].print != print)
		at = (at + 1) & (t->table_size - 1);
	return t->table[at].run ? &t->table[at] : NULL;
}

static uint64_t seq_of(const struct pp_sim_truth *t, uint32_t run, uint64_t record)
{
	return t->runs[run].setup ? 0 : record + 1;
}

static void name_cell(struct pp_sim_truth *t, uint32_t lane, uint64_t slot, uint32_t cell,
	struct seen *s)
{
	uint64_t home = slot % t->layout->slots, seq;
	const struct words *w = words_now(t, lane);
	const struct seen *base = &t->base[s - t->now];
	const struct origin *o;

	s->kind = SEEN_RECORD;
	s->home = true;
	s->run = t->run_count - 1;
	s->lane = lane;
	for (seq = w->newest[home]; seq; seq = w->before[seq - 1]) {
		if (w->print[(seq - 1) * t->cells + cell] != s->print)
			continue;
		s->seq = t->runs[s->run].setup ? 0 : seq;
		return;
	}
	if (base->print == s->print && base->kind <= SEEN_OTHER) {
		*s = *base;
		return;
	}
	s->home = false;
	s->seq = 0;
	if (s->print == t->zero_print || s->print == t->ff_print) {
		s->kind = s->print == t->zero_print ? SEEN_ZERO : SEEN_FF;
		return;
	}
	o = find_origin(t, s->print);
	if (!o) {
		s->kind = SEEN_OTHER;
		return;
	}
	s->run = o->run - 1;
	s->lane = o->lane;
	s->seq = seq_of(t, s->run, o->index / t->cells);
	s->home = o->lane == lane && o->index % t->cells == cell &&
		t->runs[s->run].lane[lane].slot[o->index / t->cells] == home;
}

static void look_around(struct pp_sim_truth *t)
{
	struct seen *s = t->now;
	uint32_t lane, cell;
	uint64_t slot;

	for (lane = 0; lane < t->layout->lanes; lane++)
		for (slot = 0; slot < t->scan_slots; slot++)
			for (cell = 0; cell < t->cells; cell++, s++) {
				const uint8_t *bytes = NULL;
				enum pp_sim_look look = pp_sim_kernel_look(t->kernel, lane, slot,
					cell, &bytes);

				*s = (struct seen){ .kind = look == PP_SIM_UNREAD ? SEEN_UNREAD
					: look == PP_SIM_ABSENT ? SEEN_ABSENT : SEEN_GONE };
				if (look != PP_SIM_BYTES)
					continue;
				s->print = XXH3_64bits(bytes, CELL);
				name_cell(t, lane, slot, cell, s);
			}
}

/* ---- the rules -------------------------------------------------------------------------------- */

/* The acks that were heard, and the words in all that survived, wherever it lies (M4.1). */
static void settle_durable(const struct pp_sim_truth *t, uint64_t durable[PP_LANES_MAX])
{
	uint64_t i, cells = t->layout->lanes * t->lane_cells;

	memcpy(durable, t->acked, sizeof(t->acked));
	for (i = 0; i < cells; i++) {
		const struct seen *s = &t->now[i];
		uint64_t word;

		if (s->kind != SEEN_RECORD || s->run != t->run_count - 1 || !s->seq)
			continue;
		word = t->runs[s->run].lane[s->lane].durable[s->seq - 1];
		if (word > durable[s->lane])
			durable[s->lane] = word;
	}
}

static void settle_flight(struct pp_sim_truth *t, uint32_t lane, uint64_t durable)
{
	const struct pp_layout *l = t->layout;
	uint64_t window = 2 * l->group > 64 ? 2 * l->group : 64;
	uint64_t seq, last = t->acked[lane] + window;

	if (pp_workload_grows(l->workload) && last > pp_layout_seq_max(l))
		last = pp_layout_seq_max(l);
	memset(t->flight, 0, l->slots * sizeof(*t->flight));
	for (seq = durable + 1; seq <= last; seq++)
		t->flight[pp_layout_slot(l, lane, seq)] = seq;
}

enum rule { RULE_OK, RULE_NEW, RULE_OLD, RULE_BLANK, RULE_FOREIGN, RULE_UNREAD, RULE_DAMAGED, RULES };

struct spot {
	uint32_t lane;
	uint64_t slot, expected, flight;
	bool hole;
	const struct seen *now, *base; /* its cells */
};

static bool is_blank(const struct seen *s)
{
	return s->kind == SEEN_ZERO || s->kind == SEEN_FF || s->kind == SEEN_ABSENT ||
		s->kind == SEEN_GONE;
}

static enum rule rule_cell(const struct pp_sim_truth *t, const struct spot *p, uint32_t cell)
{
	const struct seen *s = &p->now[cell], *b = &p->base[cell];
	bool ours = s->kind == SEEN_RECORD && s->run == t->run_count - 1;
	bool as_base = s->kind == b->kind && s->print == b->print && s->kind != SEEN_UNREAD;

	/* Nobody knew what was there. */
	if (b->kind == SEEN_UNREAD && !p->expected && !ours && s->kind != SEEN_ABSENT &&
		s->kind != SEEN_GONE)
		return RULE_OK;
	if (ours) {
		if (!s->home)
			return RULE_FOREIGN;
		return s->seq == p->flight ? RULE_NEW : s->seq == p->expected ? RULE_OK : RULE_OLD;
	}
	if (s->kind == SEEN_UNREAD)
		return RULE_UNREAD;
	if (as_base && !p->expected)
		return RULE_OK;
	if (is_blank(s))
		return RULE_BLANK;
	if (as_base)
		return RULE_OLD;
	if (s->kind == SEEN_OTHER)
		return RULE_DAMAGED;
	return s->home && !p->hole ? RULE_OLD : RULE_FOREIGN;
}

/* All old cells of one record, or all as the base had them: the slot went back as a whole. */
static bool one_old(const struct pp_sim_truth *t, const struct spot *p)
{
	bool one = true, base = true;
	uint32_t cell;

	for (cell = 0; cell < t->cells; cell++) {
		const struct seen *s = &p->now[cell];

		one &= s->kind == SEEN_RECORD && s->run == p->now->run && s->seq == p->now->seq;
		base &= s->print == p->base[cell].print && s->kind == p->base[cell].kind;
	}
	/* One cell alone is one whatever it holds. */
	return one || base || t->cells == 1;
}

/* M2.5: a record of the same unit may have been in flight, and units are written as one. */
static bool shares_unit(const struct pp_sim_truth *t, uint64_t slot)
{
	const struct pp_layout *l = t->layout;
	uint64_t first = slot * l->record_bytes / l->unit_bytes;
	uint64_t last = ((slot + 1) * l->record_bytes - 1) / l->unit_bytes, i;

	for (i = 0; l->sub_block && i < l->slots; i++)
		if (i != slot && t->flight[i] && i * l->record_bytes / l->unit_bytes <= last &&
			((i + 1) * l->record_bytes - 1) / l->unit_bytes >= first)
			return true;
	return false;
}

struct ruling {
	enum pp_loss_class class;
	bool veiled;      /* no loss: destroyed where that was allowed */
	bool collateral;  /* no loss: by a neighbour in the same unit */
	bool torn_only;   /* all of the loss is that the record in flight is torn (M4.5) */
};

/* What the rules of M4.2 to M4.5 make of one slot. */
static bool rule_slot(const struct pp_sim_truth *t, const struct spot *p, struct ruling *r)
{
	bool renames = pp_workload_renames(t->layout->workload);
	bool torn_is_fine = p->flight && !renames, hole_is_fine = torn_is_fine && p->hole;
	uint32_t of[RULES] = { 0 }, absent = 0, gone = 0, cell, came;
	enum pp_loss_class *class = &r->class;

	for (cell = 0; cell < t->cells; cell++) {
		of[rule_cell(t, p, cell)]++;
		absent += p->now[cell].kind == SEEN_ABSENT;
		gone += p->now[cell].kind == SEEN_GONE;
	}
	came = of[RULE_NEW] + of[RULE_DAMAGED] + of[RULE_UNREAD];
	*r = (struct ruling){ .veiled = torn_is_fine && !p->hole &&
		(of[RULE_DAMAGED] || of[RULE_UNREAD]) };
	r->collateral = !torn_is_fine && (of[RULE_DAMAGED] || of[RULE_UNREAD]) && !of[RULE_FOREIGN] &&
		!of[RULE_BLANK] && !of[RULE_OLD] && shares_unit(t, p->slot);
	if (r->collateral)
		return false;
	if (of[RULE_DAMAGED] && !torn_is_fine)
		*class = PP_LOSS_CORRUPT;
	else if (of[RULE_UNREAD] && !torn_is_fine)
		*class = PP_LOSS_UNREADABLE;
	else if (of[RULE_FOREIGN] && !hole_is_fine)
		*class = PP_LOSS_MISDIRECTED;
	else if (of[RULE_BLANK] && !hole_is_fine)
		*class = gone ? PP_LOSS_FILE_GONE : absent ? PP_LOSS_FILE_SHORT :
			of[RULE_BLANK] == t->cells ? PP_LOSS_BLANK : PP_LOSS_TORN;
	else if (of[RULE_OLD])
		*class = of[RULE_OLD] == t->cells && one_old(t, p) ? PP_LOSS_STALE : PP_LOSS_TORN;
	else if (of[RULE_NEW] && renames && of[RULE_NEW] != t->cells)
		*class = PP_LOSS_TORN; /* the name was given to less than a whole record */
	else if (t->untorn && torn_is_fine && came && of[RULE_NEW] != t->cells)
		*class = PP_LOSS_TORN, r->torn_only = true;
	else
		return false;
	return true;
}

static struct spot spot_of(const struct pp_sim_truth *t, uint32_t lane, uint64_t slot,
	uint64_t durable)
{
	enum pp_workload workload = t->layout->workload;
	const struct words *w = words_now(t, lane);
	uint8_t nothing = workload == PP_FALLOCATED ? SEEN_ZERO
		: pp_workload_record_files(workload) ? SEEN_GONE : SEEN_ABSENT;
	uint64_t first = lane * t->lane_cells + slot * t->cells, seq = w->newest[slot];
	struct spot p = { .lane = lane, .slot = slot, .flight = t->flight[slot],
		.now = &t->now[first], .base = &t->base[first] };
	uint32_t cell;

	while (seq > durable)
		seq = w->before[seq - 1];
	p.expected = seq;
	p.hole = !seq && pp_workload_grows(workload);
	for (cell = 0; cell < t->cells; cell++)
		p.hole &= p.base[cell].kind == nothing;
	return p;
}

static int64_t heard_ns(const struct pp_sim_truth *t, uint32_t lane, uint64_t seq)
{
	size_t low = 0, high = t->heard_count[lane];

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (t->heard[lane][middle].seq < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return t->heard[lane][low].t_ns;
}

static void note_age(struct pp_sim_facts *f, int64_t age_ns)
{
	if (f->age_ns_min < 0 || age_ns < f->age_ns_min)
		f->age_ns_min = age_ns;
	if (age_ns > f->age_ns_max)
		f->age_ns_max = age_ns;
}

static void add_lost(struct pp_sim_truth *t, struct pp_sim_facts *f, const struct spot *p,
	const struct ruling *r, int64_t t_last_ns)
{
	if (f->count == t->lost_room) {
		size_t room = t->lost_room ? 2 * t->lost_room : 256;
		struct pp_sim_lost *grown = realloc(t->lost, room * sizeof(*grown));

		if (!grown) {
			t->no_memory = true;
			return;
		}
		t->lost = grown;
		t->lost_room = room;
	}
	t->lost[f->count++] = (struct pp_sim_lost){ p->lane, p->slot,
		r->torn_only ? p->flight : p->expected, r->class };
	f->of[r->class]++;
	f->torn_only += r->torn_only;
	if (!r->torn_only && p->expected && p->expected <= t->acked[p->lane])
		note_age(f, t_last_ns - heard_ns(t, p->lane, p->expected));
}

/* The drive or the file system is gone, and with it everything that was acked (M6.1, M6.3). */
static void settle_gone(const struct pp_sim_truth *t, enum pp_loss_class class, int64_t t_last_ns,
	struct pp_sim_facts *f)
{
	uint32_t lane;

	for (lane = 0; lane < t->layout->lanes; lane++) {
		f->total += f->durable[lane] = t->acked[lane];
		if (!t->heard_count[lane])
			continue;
		note_age(f, t_last_ns - t->heard[lane][0].t_ns);
		note_age(f, t_last_ns - t->heard[lane][t->heard_count[lane] - 1].t_ns);
	}
	f->of[class] = f->total;
}

bool pp_sim_truth_settle(struct pp_sim_truth *t, enum pp_aftermath after, int64_t t_last_ns,
	struct pp_sim_facts *f)
{
	struct ruling r;
	uint32_t lane;
	uint64_t slot;

	memset(f, 0, sizeof(*f));
	f->age_ns_min = f->age_ns_max = -1;
	if (after == PP_AFTER_DEVICE_GONE || after == PP_AFTER_FS_GONE) {
		settle_gone(t, after == PP_AFTER_FS_GONE ? PP_LOSS_FS_GONE : PP_LOSS_DEVICE_GONE,
			t_last_ns, f);
		return !t->no_memory;
	}
	look_around(t);
	settle_durable(t, f->durable);
	for (lane = 0; lane < t->layout->lanes; lane++) {
		settle_flight(t, lane, f->durable[lane]);
		for (slot = 0; slot < t->layout->slots; slot++) {
			struct spot p = spot_of(t, lane, slot, f->durable[lane]);

			if (rule_slot(t, &p, &r)) {
				add_lost(t, f, &p, &r, t_last_ns);
			} else {
				f->veiled += r.veiled;
				f->collateral += r.collateral;
			}
		}
	}
	f->lost = t->lost;
	f->total = f->count;
	return !t->no_memory;
}

void pp_sim_truth_base(struct pp_sim_truth *t)
{
	struct seen *old = t->base;

	look_around(t);
	t->base = t->now;
	t->now = old;
}
