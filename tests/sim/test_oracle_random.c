/* SPDX-License-Identifier: MIT
 *
 * Goal: over thousands of cuts the oracle finds exactly what was really lost, slot by slot: on an
 * honest drive never anything, on a liar neither less nor more (M4.1 to M4.6).
 *
 * Method: seeded lanes write, sync and ack onto the simulated drive; acks get lost on the network; a
 * cut falls at any moment, tears what is in progress and, on a liar, drops what was promised. The
 * real scan and oracle judge. Beside them stands the truth: the test has kept every byte that was
 * ever written and every word its writers said, so it compares bytes and needs no checksum, no
 * parsing and no scan. Some trials also hurt the medium after the cut. The next run of the same
 * trial takes the scan as its base.
 *
 * Sectors are counted as their names are: lane, slot, cell, temporary files last. Where they are on
 * the drive is `map`, which a rename changes. What a journal has made durable of names and sizes is
 * kept beside; a cut leaves, for each name, either that or what was current.
 *
 * Replay: test_oracle_random SEED 1, with the seed that the failure names.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/lab/drive_model.h"
#include "verifier/oracle.h"

#define TRIALS_DEFAULT 1500
#define CUTS_A_TRIAL   3
#define LANES_MOST     3
#define CELLS_MOST     4
#define SLOTS          256
#define NAMES_MOST     (LANES_MOST * 2 * SLOTS) /* temporary ones too */
#define NO_FILE        (-1)
#define SEQ_MOST       900
#define NO_SEQ         0

static uint64_t seed_first = 1;
static unsigned trials = TRIALS_DEFAULT;

static uint64_t draw(uint64_t *x)
{
	uint64_t z = (*x += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint64_t below(uint64_t *x, uint64_t limit)
{
	return draw(x) % limit;
}

/* What a writer did and said, kept beside the drive. */
struct word {
	uint8_t bytes[CELLS_MOST * 512];
	uint64_t durable;
};

struct lane {
	struct word *word;           /* of sequence i at word[i] */
	uint64_t next, group_first;  /* next to write; first not yet durable */
	uint64_t durable, sent, received, echoed; /* by the writer's word; acks on their way */
	struct pp_sim_drive_write write;
	bool writing;
	enum { DATA, NAMES, FOLDER } stage; /* of the group's sync */
};

/* A slot that is a file of its own: its bytes, or NO_FILE, and where on the drive they are. */
struct name {
	int32_t bytes;
	uint32_t at;
};

/* What stands in a sector, as the test knows it. */
enum held_kind { HELD_RECORD, HELD_BASE, HELD_BLANK, HELD_OTHER, HELD_DAMAGED, HELD_ABSENT,
	HELD_GONE };

struct held {
	enum held_kind kind;
	uint32_t lane;     /* RECORD: which; OTHER: whose, if seq is not 0 */
	uint64_t seq;
	bool here;         /* RECORD: belongs to this very cell */
};

struct trial {
	uint64_t seed, x;
	struct pp_layout layout;
	struct pp_run_id run;
	const struct pp_sim_drive_behaviour *behaviour;
	bool fua, hurts;             /* the method; whether the medium is hurt after cuts */
	uint32_t cells;
	struct pp_sim_drive *drive;
	int64_t now_ns;
	struct lane lane[LANES_MOST];
	uint8_t *medium, *base;      /* base: the medium as the last scan found it */
	struct held *held;
	uint64_t size[LANES_MOST], size_durable[LANES_MOST], size_base[LANES_MOST];
	uint64_t file_sectors, sectors;
	uint64_t names;              /* slots a lane, temporary files too */
	struct name name[NAMES_MOST], name_durable[NAMES_MOST], name_base[NAMES_MOST];
	struct pp_scan *base_scan;
	unsigned injuries;
};

static struct { unsigned cuts, losing, lying_cuts, lying_losing, hurt; uint64_t lost, torn; } count;

/* ---- drive and scan ------------------------------------------------------------------------- */

static int medium_read(void *ctx, void *data, size_t bytes, uint64_t offset)
{
	memcpy(data, (uint8_t *)ctx + offset, bytes);
	return 0;
}

static int medium_write(void *ctx, const void *data, size_t bytes, uint64_t offset)
{
	memcpy((uint8_t *)ctx + offset, data, bytes);
	return 0;
}

static bool files(const struct trial *t)
{
	return pp_workload_record_files(t->layout.workload);
}

static int source_size(void *ctx, uint32_t file, uint64_t *bytes, int32_t *os_code)
{
	struct trial *t = ctx;

	*os_code = 0;
	*bytes = files(t) ? (uint64_t)t->name[file].bytes : t->size[file];
	if (!files(t) || t->name[file].bytes != NO_FILE)
		return 0;
	*os_code = ENOENT;
	return -1;
}

static int source_read(void *ctx, uint32_t file, uint64_t offset, void *buf, size_t bytes,
	int32_t *os_code)
{
	struct trial *t = ctx;

	*os_code = EIO;
	if (files(t))
		return pp_sim_drive_read(t->drive, t->now_ns, buf, bytes,
			(uint64_t)t->name[file].at * t->layout.record_bytes + offset);
	return pp_sim_drive_read(t->drive, t->now_ns, buf, bytes, file * t->file_sectors * 512 + offset);
}

struct bytes { uint8_t *data; size_t bytes, room; };

static int sink(void *ctx, const void *data, size_t bytes, struct pp_error *err)
{
	struct bytes *b = ctx;

	(void)err;
	if (b->bytes + bytes > b->room) {
		b->room = 2 * (b->bytes + bytes);
		b->data = realloc(b->data, b->room);
	}
	memcpy(b->data + b->bytes, data, bytes);
	b->bytes += bytes;
	return 0;
}

static struct pp_scan *scan(struct trial *t)
{
	struct pp_scan_source source = { t, source_size, source_read, 512 };
	struct bytes b = { 0 };
	struct pp_error err;
	struct pp_scan *s;

	if (pp_scan_make(&t->layout, &source, NULL, 0, sink, &b, &err) != 0)
		fail_msg("seed %" PRIu64 ": %s", t->seed, err.text);
	s = pp_scan_parse(b.data, b.bytes, &err);
	if (!s)
		fail_msg("seed %" PRIu64 ": %s", t->seed, err.text);
	return s;
}

/* ---- the writers ---------------------------------------------------------------------------- */

static uint64_t name_of(const struct trial *t, uint32_t lane, uint64_t slot)
{
	return lane * t->names + slot;
}

/* Where a slot's bytes are on the drive. */
static uint64_t place_of(const struct trial *t, uint32_t lane, uint64_t slot)
{
	if (files(t))
		return (uint64_t)t->name[name_of(t, lane, slot)].at * t->layout.record_bytes;
	return pp_layout_file_of(&t->layout, lane) * t->file_sectors * 512 +
		pp_layout_offset(&t->layout, lane, slot);
}

static void begin_write(struct trial *t, uint32_t number)
{
	struct lane *l = &t->lane[number];
	struct word *word = &l->word[l->next];
	uint64_t slot = pp_layout_slot(&t->layout, number, l->next), end;
	uint64_t into = slot + (pp_workload_renames(t->layout.workload) ? SLOTS : 0);
	uint32_t file = pp_layout_file_of(&t->layout, number);
	struct pp_record r = { .run = t->run, .lane = number, .cells = t->cells, .seq = l->next,
		.offset = pp_layout_offset(&t->layout, number, slot), .issued_ns = t->now_ns,
		.durable = l->durable };

	pp_record_fill(word->bytes, &r);
	word->durable = l->durable;
	end = r.offset + t->layout.record_bytes;
	if (files(t))
		t->name[name_of(t, number, into)].bytes = (int32_t)t->layout.record_bytes;
	else if (end > t->size[file])
		t->size[file] = end;
	l->write = (struct pp_sim_drive_write){ .data = word->bytes, .bytes = t->layout.record_bytes,
		.offset = place_of(t, number, into), .fua = t->fua };
	assert_int_equal(pp_sim_drive_submit(t->drive, t->now_ns, &l->write), 0);
	l->writing = true;
}

static bool honours(const struct trial *t)
{
	unsigned lie = t->fua ? PP_DRIVE_IGNORES_FUA : PP_DRIVE_IGNORES_FLUSH;

	return !(t->behaviour->flags & lie);
}

/* A journal's commit takes every name along. */
static void commit(struct trial *t)
{
	if (honours(t))
		memcpy(t->name_durable, t->name, sizeof(t->name));
}

static void rename_group(struct trial *t, uint32_t number)
{
	struct lane *l = &t->lane[number];
	uint64_t seq;

	for (seq = l->group_first; seq < l->next; seq++) {
		uint64_t slot = pp_layout_slot(&t->layout, number, seq);
		struct name *to = &t->name[name_of(t, number, slot)];
		struct name *from = &t->name[name_of(t, number, slot + SLOTS)], old = *to;

		*to = *from;
		*from = (struct name){ NO_FILE, old.at };
	}
}

static void made_durable(struct trial *t, uint32_t number)
{
	struct lane *l = &t->lane[number];
	uint32_t file;

	l->durable = l->next - 1;
	l->group_first = l->next;
	l->stage = DATA;
	if (!honours(t))
		return;
	/* A flush takes every file's size along, a FUA write (with its journal) its own. */
	for (file = 0; file < pp_layout_files(&t->layout); file++)
		if (!t->fua || file == pp_layout_file_of(&t->layout, number))
			t->size_durable[file] = t->size[file];
}

/* One thing that a lane does: begin a write, finish it, sync. */
static void step_lane(struct trial *t, uint32_t number)
{
	struct lane *l = &t->lane[number];
	uint32_t group = t->layout.group;

	if (l->writing) {
		assert_int_equal(pp_sim_drive_complete(t->drive, t->now_ns, &l->write), 0);
		l->writing = false;
		l->next++;
		if (t->fua)
			made_durable(t, number);
	} else if (!t->fua && l->next - l->group_first == group) {
		if (l->stage == NAMES) {
			rename_group(t, number);
			l->stage = FOLDER;
			return;
		}
		assert_int_equal(pp_sim_drive_flush(t->drive, t->now_ns), 0);
		commit(t);
		if (pp_workload_renames(t->layout.workload) && l->stage == DATA)
			l->stage = NAMES;
		else
			made_durable(t, number);
	} else if (l->durable > l->sent) {
		l->sent = l->durable;
	} else if (l->next <= l->echoed + pp_layout_window(&t->layout) &&
		l->next <= pp_layout_seq_max(&t->layout) && l->next < SEQ_MOST) {
		begin_write(t, number);
	}
}

static void run_until_cut(struct trial *t)
{
	uint64_t steps = below(&t->x, below(&t->x, 8) ? 400 : 4000), network = below(&t->x, 8);

	for (; steps; steps--) {
		struct lane *l = &t->lane[below(&t->x, t->layout.lanes)];

		t->now_ns += (int64_t)below(&t->x, 2000);
		if (below(&t->x, 8) <= network)
			step_lane(t, (uint32_t)(l - t->lane));
		else if (l->received < l->sent)
			l->received = below(&t->x, 2) ? l->sent
				: l->received + 1 + below(&t->x, l->sent - l->received);
		else
			l->echoed = l->received;
	}
}

static void start_run(struct trial *t)
{
	uint32_t i;

	for (i = 0; i < 16; i++)
		t->run.bytes[i] = (uint8_t)draw(&t->x);
	for (i = 0; i < t->layout.lanes; i++) {
		struct word *word = t->lane[i].word;

		t->lane[i] = (struct lane){ .word = word, .next = 1, .group_first = 1 };
		if (t->layout.workload == PP_APPEND)
			t->layout.base_slots[i] = (t->size[i] + t->layout.record_bytes - 1) /
				t->layout.record_bytes;
		else if (pp_workload_grows(t->layout.workload))
			t->layout.base_slots[i] = pp_scan_taken(t->base_scan, &t->layout, i);
	}
	if (t->layout.workload == PP_OVERWRITE)
		t->layout.shuffle = below(&t->x, 2) ? draw(&t->x) & INT64_MAX : 0;
	/* A folder's sync is a flush. */
	t->fua = !files(t) && below(&t->x, 2);
}

/* ---- after the cut ---------------------------------------------------------------------------- */

/* A size that was not made durable is any between; what lies behind the end reads as zeros when the
 * file grows over it, at least in the block of the end, elsewhere mostly. */
static void settle_sizes(struct trial *t)
{
	uint32_t file;

	for (file = 0; t->layout.workload == PP_APPEND && file < t->layout.lanes; file++) {
		uint64_t gap = t->size[file] - t->size_durable[file], from, end;

		t->size[file] = t->size_durable[file] + (gap ? below(&t->x, gap + 1) : 0);
		if (below(&t->x, 2))
			t->size[file] -= (t->size[file] - t->size_durable[file]) % t->layout.record_bytes;
		from = t->size[file];
		end = below(&t->x, 2) ? t->file_sectors * 512
			: (from + t->layout.record_bytes - 1) / t->layout.record_bytes *
			t->layout.record_bytes;
		memset(t->medium + file * t->file_sectors * 512 + from, 0, end - from);
		t->size_durable[file] = t->size[file];
	}
}

/* Of a name that was not made durable either state may be what is left; of a new file a part. */
static void settle_names(struct trial *t)
{
	uint64_t i, pair = pp_workload_renames(t->layout.workload) ? SLOTS : 0;

	for (i = 0; files(t) && i < t->layout.lanes * t->names; i++) {
		struct name *now = &t->name[i], *was = &t->name_durable[i];

		if (pair && i % t->names >= SLOTS)
			continue; /* goes with its slot's */
		if (below(&t->x, 2)) {
			*now = *was;
			now[pair] = was[pair];
		}
		now += pair;
		was += pair;
		if (now->bytes > 0 && (was->bytes == NO_FILE || now->at != was->at) && below(&t->x, 2))
			now->bytes = (int32_t)below(&t->x, (uint64_t)now->bytes + 1);
	}
}

static void sector_place(const struct trial *t, uint64_t sector, uint32_t *lane, uint64_t *slot,
	uint32_t *cell)
{
	uint64_t lane_sectors = t->names * t->cells;

	*lane = (uint32_t)(sector / lane_sectors);
	*slot = sector % lane_sectors / t->cells;
	*cell = (uint32_t)(sector % t->cells);
}

static bool is_absent(const struct trial *t, uint64_t sector, const uint64_t *size)
{
	const struct name *name = size == t->size ? t->name : t->name_base;

	if (files(t))
		return (int64_t)(sector % t->cells + 1) * 512 > name[sector / t->cells].bytes;
	return t->layout.workload == PP_APPEND &&
		(sector % t->file_sectors + 1) * 512 > size[sector / t->file_sectors];
}

static uint8_t *sector_at(const struct trial *t, uint64_t sector)
{
	if (files(t))
		return t->medium + ((uint64_t)t->name[sector / t->cells].at * t->cells +
			sector % t->cells) * 512;
	return t->medium + sector * 512;
}

/* Compares bytes with everything that was ever written there in this run, then with the base. */
static struct held look(const struct trial *t, uint64_t sector)
{
	const uint8_t *at = sector_at(t, sector);
	struct held h = { HELD_OTHER, 0, NO_SEQ, false };
	const struct lane *l;
	uint64_t slot, seq, last;
	uint32_t cell;

	sector_place(t, sector, &h.lane, &slot, &cell);
	if (is_absent(t, sector, t->size)) {
		h.kind = files(t) && t->name[sector / t->cells].bytes == NO_FILE ? HELD_GONE : HELD_ABSENT;
		return h;
	}
	slot %= SLOTS; /* a temporary file's record is its slot's */
	l = &t->lane[h.lane];
	last = l->next - 1 + l->writing;
	for (seq = 1; seq <= last; seq++) {
		if (pp_layout_slot(&t->layout, h.lane, seq) != slot)
			continue;
		if (memcmp(at, l->word[seq].bytes + cell * 512, 512) == 0)
			return (struct held){ HELD_RECORD, h.lane, seq, true };
	}
	if (!is_absent(t, sector, t->size_base) && memcmp(at, t->base + sector * 512, 512) == 0)
		h.kind = HELD_BASE;
	else if (pp_bytes_all(at, 512, 0))
		h.kind = HELD_BLANK;
	return h;
}

static void hurt(struct trial *t)
{
	uint64_t sector = below(&t->x, t->sectors), other = below(&t->x, t->sectors);
	uint8_t *at = sector_at(t, sector);
	struct held *h = &t->held[sector];

	if (h->kind == HELD_ABSENT || h->kind == HELD_GONE)
		return;
	t->injuries++;
	if (files(t) && below(&t->x, 4) == 0) { /* the name, and all of it */
		t->name[sector / t->cells].bytes = NO_FILE;
		h -= sector % t->cells;
		for (other = 0; other < t->cells; other++)
			h[other].kind = HELD_GONE;
		return;
	}
	switch (below(&t->x, 4)) {
	case 0:
		at[below(&t->x, 512)] ^= (uint8_t)(1 + below(&t->x, 255));
		h->kind = HELD_DAMAGED;
		break;
	case 1:
		memset(at, 0, 512);
		h->kind = is_absent(t, sector, t->size_base) || !pp_bytes_all(t->base + sector * 512, 512, 0)
			? HELD_BLANK : HELD_BASE;
		break;
	case 2: /* back to the base */
		if (is_absent(t, sector, t->size_base))
			return;
		memcpy(at, t->base + sector * 512, 512);
		h->kind = HELD_BASE;
		break;
	default: /* a sector of another place */
		if (other == sector || t->held[other].kind != HELD_RECORD || !t->held[other].here)
			return;
		memcpy(at, sector_at(t, other), 512);
		*h = t->held[other];
		h->here = false;
	}
}

/* The truth about D: acks that arrived, and the words of all that is still there. */
static void true_durable(const struct trial *t, uint64_t durable[LANES_MOST])
{
	uint64_t sector;
	uint32_t i;

	for (i = 0; i < t->layout.lanes; i++)
		durable[i] = t->lane[i].received;
	for (sector = 0; sector < t->sectors; sector++) {
		const struct held *h = &t->held[sector];
		uint64_t word = h->kind == HELD_RECORD ? t->lane[h->lane].word[h->seq].durable : 0;

		if (word > durable[h->lane])
			durable[h->lane] = word;
	}
}

static bool cell_is_fine(const struct trial *t, uint64_t sector, uint64_t e, uint64_t flight, bool hole,
	bool tail)
{
	const struct held *h = &t->held[sector];
	bool base_absent = is_absent(t, sector, t->size_base);
	bool base_gone = files(t) && t->name_base[sector / t->cells].bytes == NO_FILE;
	/* The file ended inside this sector: nobody knows the base's bytes. */
	bool base_cut = base_absent && !files(t) &&
		sector % t->file_sectors == t->size_base[sector / t->file_sectors] / 512 &&
		t->size_base[sector / t->file_sectors] % 512 != 0;

	if (e == 0 && base_cut && h->kind != HELD_RECORD && h->kind != HELD_ABSENT)
		return true;
	switch (h->kind) {
	case HELD_RECORD:
		if (h->here)
			return h->seq == e || (flight && h->seq == flight);
		return flight && hole;
	case HELD_BASE:
		return e == 0;
	case HELD_ABSENT:
		return e == 0 && ((base_absent && !base_gone) || (flight && hole));
	case HELD_GONE:
		return e == 0 && base_gone;
	case HELD_BLANK:
		return e == 0 && ((flight && hole) || (tail && base_absent));
	case HELD_OTHER: /* stale blocks of earlier runs */
		return e == 0 && flight && hole;
	case HELD_DAMAGED:
		return flight != 0;
	}
	return false;
}

/* Newest sequence up to limit that a lane puts into a slot, counted out. */
static uint64_t newest(const struct trial *t, uint32_t lane, uint64_t slot, uint64_t limit)
{
	uint64_t seq, found = 0;

	for (seq = 1; seq <= limit && seq <= pp_layout_seq_max(&t->layout); seq++)
		if (pp_layout_slot(&t->layout, lane, seq) == slot)
			found = seq;
	return found;
}

/* Nothing was ever written to this slot before the run. */
static bool was_free(const struct trial *t, uint32_t lane, uint64_t slot, uint64_t first)
{
	if (t->layout.workload == PP_APPEND)
		return first % t->file_sectors * 512 >= t->size_base[lane];
	if (t->layout.workload == PP_FALLOCATED)
		return pp_bytes_all(t->base + first * 512, t->layout.record_bytes, 0);
	return t->layout.workload == PP_CREATE &&
		t->name_base[name_of(t, lane, slot)].bytes == NO_FILE;
}

/* M4.5: under a final name one record, whole. */
static bool is_mixed(const struct trial *t, uint64_t first)
{
	uint32_t i;

	for (i = 1; i < t->cells; i++)
		if (t->held[first + i].kind != t->held[first].kind ||
			t->held[first + i].seq != t->held[first].seq)
			return true;
	return false;
}

static bool truly_lost(const struct trial *t, uint32_t lane, uint64_t slot, uint64_t durable)
{
	uint64_t first = name_of(t, lane, slot) * t->cells, e = newest(t, lane, slot, durable);
	uint64_t flight = newest(t, lane, slot, t->lane[lane].received + 64);
	bool was = was_free(t, lane, slot, first);
	uint32_t i;

	if (flight <= durable)
		flight = 0;
	if (pp_workload_renames(t->layout.workload)) {
		if (flight && is_mixed(t, first))
			return true;
		for (i = 0; i < t->cells && flight; i++) /* nor any damage */
			if (t->held[first + i].kind == HELD_DAMAGED)
				return true;
	}
	for (i = 0; i < t->cells; i++)
		if (!cell_is_fine(t, first + i, e, flight, e == 0 && was,
			!was && t->layout.workload == PP_APPEND))
			return true;
	return false;
}

static void compare(struct trial *t, const struct pp_oracle_result *r)
{
	uint64_t durable[LANES_MOST], slot;
	size_t at = 0;
	uint32_t lane;

	true_durable(t, durable);
	for (lane = 0; lane < t->layout.lanes; lane++) {
		if (r->lane[lane].durable != durable[lane])
			fail_msg("seed %" PRIu64 ": lane %u has D %" PRIu64 ", truly %" PRIu64, t->seed,
				lane, r->lane[lane].durable, durable[lane]);
		for (slot = 0; slot < t->layout.slots; slot++) {
			bool lost = truly_lost(t, lane, slot, durable[lane]);
			bool said = at < r->losses && r->loss[at].lane == lane && r->loss[at].slot == slot;

			if (lost != said)
				fail_msg("seed %" PRIu64 ": lane %u slot %" PRIu64 " is %s lost, but the "
					"oracle says %s", t->seed, lane, slot, lost ? "truly" : "not",
					said ? pp_loss_class_name(r->loss[at].class) : "nothing");
			at += said;
		}
	}
	assert_int_equal(at, r->losses);
}

static void judge(struct trial *t)
{
	struct pp_oracle_input in = { .layout = &t->layout, .run = t->run, .base = t->base_scan,
		.scan = scan(t), .kind = PP_TARGET_FILE };
	struct pp_oracle_result r;
	struct pp_error err;
	bool lies = !honours(t);
	uint32_t i;

	for (i = 0; i < t->layout.lanes; i++)
		in.acked[i] = t->lane[i].received;
	if (pp_oracle_judge(&in, &r, &err) != 0)
		fail_msg("seed %" PRIu64 ": %s", t->seed, err.text);
	if (!lies && !t->injuries && r.losses)
		fail_msg("seed %" PRIu64 ": an honest drive lost slot %" PRIu64 " (%s)", t->seed,
			r.loss[0].slot, pp_loss_class_name(r.loss[0].class));
	compare(t, &r);
	count.cuts++;
	count.losing += r.losses != 0;
	count.lying_cuts += lies;
	count.lying_losing += lies && r.losses;
	count.hurt += t->injuries != 0;
	count.lost += r.losses;
	count.torn += r.in_flight_torn;
	pp_oracle_release(&r);
	pp_scan_free(t->base_scan);
	t->base_scan = (struct pp_scan *)in.scan; /* the next run's base */
}

static void cut(struct trial *t)
{
	uint64_t sector, n = t->hurts ? 1 + below(&t->x, 40) : 0;

	assert_int_equal(pp_sim_drive_cut(t->drive, t->now_ns, (unsigned)below(&t->x, 101), draw(&t->x)), 0);
	settle_sizes(t);
	settle_names(t);
	for (sector = 0; sector < t->sectors; sector++)
		t->held[sector] = look(t, sector);
	for (t->injuries = 0; n; n--)
		hurt(t);
	pp_sim_drive_power_on(t->drive, t->now_ns);
	judge(t);
	for (sector = 0; sector < t->sectors; sector++)
		memcpy(t->base + sector * 512, sector_at(t, sector), 512);
	memcpy(t->name_base, t->name, sizeof(t->name));
	memcpy(t->name_durable, t->name, sizeof(t->name));
	memcpy(t->size_base, t->size, sizeof(t->size));
}

/* ---- trials ------------------------------------------------------------------------------------ */

static void set_up(struct trial *t, uint64_t seed)
{
	static const char *const names[] = { "honest", "protected", "ignores-flush", "ignores-fua",
		"ignores-both" };
	static const enum pp_workload workloads[] = { PP_OVERWRITE, PP_APPEND, PP_FALLOCATED, PP_CREATE,
		PP_RENAME };
	struct pp_sim_drive_medium medium;
	struct pp_sim_drive_config config;
	enum pp_workload workload;
	struct pp_error err;
	uint32_t lanes, i;

	memset(t, 0, sizeof(*t));
	t->seed = t->x = seed;
	lanes = 1 + (uint32_t)below(&t->x, LANES_MOST);
	t->cells = 1 + (uint32_t)below(&t->x, CELLS_MOST);
	workload = workloads[below(&t->x, sizeof(workloads) / sizeof(workloads[0]))];
	assert_int_equal(pp_layout_init(&t->layout, workload, lanes, 1U << below(&t->x, 4),
		t->cells * 512, 512, false, 0, lanes * SLOTS * t->cells * 512, &err), 0);
	assert_int_equal(t->layout.slots, SLOTS);
	t->names = pp_workload_renames(workload) ? 2 * SLOTS : SLOTS;
	t->sectors = lanes * t->names * t->cells;
	t->file_sectors = t->sectors / pp_layout_files(&t->layout);
	for (i = 0; i < lanes * t->names; i++)
		t->name[i] = (struct name){ pp_workload_renames(workload) && i % t->names < SLOTS
			? (int32_t)t->layout.record_bytes : NO_FILE, i };
	memcpy(t->name_durable, t->name, sizeof(t->name));
	memcpy(t->name_base, t->name, sizeof(t->name));
	t->behaviour = pp_sim_drive_behaviour_find(names[below(&t->x, 5)]);
	t->hurts = below(&t->x, 3) == 0;
	t->medium = calloc(t->sectors, 512);
	t->base = calloc(t->sectors, 512);
	t->held = calloc(t->sectors, sizeof(*t->held));
	for (i = 0; i < lanes; i++)
		t->lane[i].word = malloc((SEQ_MOST + 1) * sizeof(struct word));
	for (i = 0; !pp_workload_grows(workload) && i < t->sectors * 512; i++)
		t->medium[i] = (uint8_t)(i * 31 + i / 512);
	for (i = 0; workload != PP_APPEND && i < pp_layout_files(&t->layout); i++)
		t->size[i] = t->file_sectors * 512;
	memcpy(t->base, t->medium, t->sectors * 512);
	memcpy(t->size_base, t->size, sizeof(t->size));
	memcpy(t->size_durable, t->size, sizeof(t->size));
	medium = (struct pp_sim_drive_medium){ .ctx = t->medium, .read = medium_read,
		.write = medium_write };
	config = (struct pp_sim_drive_config){ .behaviour = t->behaviour, .size_bytes = t->sectors * 512,
		.cache_bytes = 512ULL << below(&t->x, 13), .order = below(&t->x, 2) ? PP_DRIVE_RANDOM
		: PP_DRIVE_OLDEST_FIRST, .seed = draw(&t->x),
		.destage_bytes_per_s = below(&t->x, 2) ? 0 : below(&t->x, 1U << 30) };
	t->drive = pp_sim_drive_new(&config, &medium, NULL, &err);
	assert_non_null(t->drive);
	pp_sim_drive_power_on(t->drive, 0);
}

static void release(struct trial *t)
{
	uint32_t i;

	pp_sim_drive_free(t->drive);
	pp_scan_free(t->base_scan);
	for (i = 0; i < LANES_MOST; i++)
		free(t->lane[i].word);
	free(t->medium);
	free(t->base);
	free(t->held);
}

static void finds_what_was_lost_and_nothing_else(void **state)
{
	struct trial t;
	unsigned i, k;

	(void)state;
	for (i = 0; i < trials; i++) {
		set_up(&t, seed_first + i);
		t.base_scan = scan(&t);
		for (k = 0; k < CUTS_A_TRIAL; k++) {
			start_run(&t);
			run_until_cut(&t);
			cut(&t);
		}
		release(&t);
	}
	fprintf(stderr, "seeds %" PRIu64 " to %" PRIu64 ": %u cuts, %u on liars (%u with losses), %u hurt; "
		"%" PRIu64 " slots lost, %" PRIu64 " torn in flight\n", seed_first,
		seed_first + trials - 1, count.cuts, count.lying_cuts, count.lying_losing, count.hurt,
		count.lost, count.torn);
	if (trials < 100)
		return;
	/* The test must have seen something itself. */
	assert_true(count.lying_losing > count.lying_cuts / 4);
	assert_true(count.torn > count.cuts / 20);
	assert_true(count.losing < count.cuts);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_was_lost_and_nothing_else),
	};

	if (argc > 1)
		seed_first = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		trials = (unsigned)strtoul(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
