/* SPDX-License-Identifier: MIT
 *
 * Goal: every rule of M4 both ways: what is a loss is found, under its class; its allowed neighbour
 * passes. A false SAFE or a false UNSAFE would come from here.
 * Method: a target in memory (oracle_world.h). A row puts one slot into one situation, with a letter
 * for each of its four cells, and names what must come of it. What rows cannot say (several lanes,
 * re-reads, contradictions, files) has a test each.
 */
#include "oracle_world.h"

#define NO_LOSS (-1)

/* ---- rows: one slot, four cells ------------------------------------------------------------- */

/*
 * Where the slot stands. 256 slots, group 1, W = 64.
 * OVERWRITE: e is of this run (lap 1), F empty.      LAP: e is of lap 2, the slot had a lap 1.
 * FLIGHT: e of lap 1, F is of lap 2.                 LAP_FLIGHT: the same a lap later.
 * BASE: only the base belongs; F empty.              BASE_FLIGHT: base, and F.
 * A_...: the same in an append file.                 A_HOLE: F over a hole.
 * A_BEYOND: a hole that F does not reach.            P_...: in allocated space.
 * C_...: the same with a file for each slot.         M_...: the same with files that are renamed.
 * RND_...: overwrite in a random order; the slot is found by its sequence.
 */
enum situation { OVERWRITE, LAP, FLIGHT, LAP_FLIGHT, BASE, BASE_FLIGHT, A_DURABLE, A_HOLE, A_BEYOND, A_BASE,
	P_DURABLE, P_HOLE, P_BEYOND, P_BASE, C_DURABLE, C_HOLE, C_BEYOND, C_BASE, M_DURABLE, M_FLIGHT,
	M_BASE, M_BASE_FLIGHT, RND_LAP, RND_FLIGHT };

static const struct {
	enum pp_workload workload;
	uint64_t acked, slot, expected, flight, older; /* older: a sequence of this run, 0: the base */
} situations[] = {
	[OVERWRITE]   = { PP_OVERWRITE, 100, 50, 51, 0, 0 },
	[LAP]         = { PP_OVERWRITE, 300, 10, 267, 0, 11 },
	[FLIGHT]      = { PP_OVERWRITE, 300, 50, 51, 307, 0 },
	[LAP_FLIGHT]  = { PP_OVERWRITE, 540, 50, 307, 563, 51 },
	[BASE]        = { PP_OVERWRITE, 100, 200, 0, 0, 0 },
	[BASE_FLIGHT] = { PP_OVERWRITE, 100, 110, 0, 111, 0 },
	[A_DURABLE]   = { PP_APPEND, 50, 23, 21, 0, 0 },
	[A_HOLE]      = { PP_APPEND, 50, 60, 0, 58, 0 },
	[A_BEYOND]    = { PP_APPEND, 50, 120, 0, 0, 0 },
	[A_BASE]      = { PP_APPEND, 50, 1, 0, 0, 0 },
	[P_DURABLE]   = { PP_FALLOCATED, 50, 23, 21, 0, 0 },
	[P_HOLE]      = { PP_FALLOCATED, 50, 60, 0, 58, 0 },
	[P_BEYOND]    = { PP_FALLOCATED, 50, 120, 0, 0, 0 },
	[P_BASE]      = { PP_FALLOCATED, 50, 1, 0, 0, 0 },
	[C_DURABLE]   = { PP_CREATE, 50, 23, 21, 0, 0 },
	[C_HOLE]      = { PP_CREATE, 50, 60, 0, 58, 0 },
	[C_BEYOND]    = { PP_CREATE, 50, 120, 0, 0, 0 },
	[C_BASE]      = { PP_CREATE, 50, 1, 0, 0, 0 },
	[M_DURABLE]   = { PP_RENAME, 300, 10, 267, 0, 11 },
	[M_FLIGHT]    = { PP_RENAME, 300, 50, 51, 307, 0 },
	[M_BASE]      = { PP_RENAME, 100, 200, 0, 0, 0 },
	[M_BASE_FLIGHT] = { PP_RENAME, 100, 110, 0, 111, 0 },
	[RND_LAP]     = { PP_OVERWRITE, 300, 0, 267, 0, 11 },
	[RND_FLIGHT]  = { PP_OVERWRITE, 300, 0, 51, 307, 0 },
};
#define SHUFFLE 0x5eed
#define APPEND_BASE_SLOTS 3

/*
 * Cells: e the expected one, n of F, o an older one, b the base, z zeros, f FFs, d damaged, r read
 * error, x of this run but of another place, X the same of an old run, i of an old run in the right
 * place, l of the right place but another lane's (append). Where every slot is a file: a: it ends
 * before this cell; g: it is not there.
 */
struct row {
	enum situation where;
	enum pp_target_kind kind;
	const char *cells;
	int expect; /* class of the loss or NO_LOSS */
};

#define F PP_TARGET_FILE
#define R PP_TARGET_RAW

static const struct row rows[] = {
	/* M4.2: F empty, every cell must be e's */
	{ OVERWRITE, F, "eeee", NO_LOSS },
	{ OVERWRITE, F, "bbbb", PP_LOSS_STALE },
	{ OVERWRITE, F, "eeeb", PP_LOSS_TORN },      /* a judge that skips the last cell */
	{ OVERWRITE, F, "beee", PP_LOSS_TORN },      /* one that looks at it only */
	{ OVERWRITE, F, "iiii", PP_LOSS_STALE },     /* trusts a stale run id */
	{ OVERWRITE, F, "eeie", PP_LOSS_TORN },
	{ OVERWRITE, F, "bbii", PP_LOSS_TORN },
	{ OVERWRITE, F, "zzzz", PP_LOSS_BLANK },
	{ OVERWRITE, F, "ffff", PP_LOSS_BLANK },
	{ OVERWRITE, F, "zzff", PP_LOSS_BLANK },
	{ OVERWRITE, F, "eeez", PP_LOSS_TORN },
	{ OVERWRITE, F, "feee", PP_LOSS_TORN },
	{ OVERWRITE, F, "eeed", PP_LOSS_CORRUPT },
	{ OVERWRITE, R, "dddd", PP_LOSS_CORRUPT },
	{ OVERWRITE, F, "eere", PP_LOSS_UNREADABLE }, /* treats unread as fine */
	{ OVERWRITE, R, "rrrr", PP_LOSS_UNREADABLE },
	{ OVERWRITE, F, "xxxx", PP_LOSS_MISDIRECTED },
	{ OVERWRITE, R, "eexe", PP_LOSS_MISDIRECTED },
	{ OVERWRITE, F, "XXXX", PP_LOSS_MISDIRECTED },
	/* the worst cell names the class */
	{ OVERWRITE, F, "bzxr", PP_LOSS_UNREADABLE },
	{ OVERWRITE, F, "bzrd", PP_LOSS_CORRUPT },
	{ OVERWRITE, F, "bzxe", PP_LOSS_MISDIRECTED },
	{ OVERWRITE, F, "bzbz", PP_LOSS_TORN },
	/* laps: e is the newest <= D, the lap before is stale */
	{ LAP, F, "eeee", NO_LOSS },
	{ LAP, F, "oooo", PP_LOSS_STALE },           /* forgets the laps */
	{ LAP, F, "eoee", PP_LOSS_TORN },
	{ LAP, F, "bbbb", PP_LOSS_STALE },
	{ LAP, F, "bbob", PP_LOSS_TORN },
	/* M4.3: F not empty */
	{ FLIGHT, F, "eeee", NO_LOSS },
	{ FLIGHT, F, "nnnn", NO_LOSS },
	{ FLIGHT, F, "enen", NO_LOSS },
	{ FLIGHT, F, "endr", NO_LOSS },
	{ FLIGHT, R, "dddd", NO_LOSS },
	{ FLIGHT, R, "rrrr", NO_LOSS },
	{ FLIGHT, F, "bbbb", PP_LOSS_STALE },
	{ FLIGHT, F, "nnnb", PP_LOSS_TORN },         /* F excuses e's older version */
	{ FLIGHT, F, "eebn", PP_LOSS_TORN },
	{ FLIGHT, F, "zzzz", PP_LOSS_BLANK },        /* blank only in a hole */
	{ FLIGHT, F, "nnnz", PP_LOSS_TORN },
	{ FLIGHT, R, "nnfn", PP_LOSS_TORN },
	{ FLIGHT, F, "xnnn", PP_LOSS_MISDIRECTED },
	{ FLIGHT, F, "nnnX", PP_LOSS_MISDIRECTED },
	{ LAP_FLIGHT, F, "ennn", NO_LOSS },
	{ LAP_FLIGHT, F, "oooo", PP_LOSS_STALE },
	{ LAP_FLIGHT, F, "nnno", PP_LOSS_TORN },     /* of this run is not yet of F */
	/* the base is e */
	{ BASE, F, "bbbb", NO_LOSS },
	{ BASE, F, "bbbd", PP_LOSS_CORRUPT },        /* forgets the base */
	{ BASE, F, "zzzz", PP_LOSS_BLANK },
	{ BASE, F, "iiii", PP_LOSS_STALE },
	{ BASE, F, "bbib", PP_LOSS_TORN },
	{ BASE, R, "brrr", PP_LOSS_UNREADABLE },
	{ BASE, R, "xbbb", PP_LOSS_MISDIRECTED },    /* the victim of a flying write */
	{ BASE_FLIGHT, F, "bbbb", NO_LOSS },
	{ BASE_FLIGHT, F, "nnnn", NO_LOSS },
	{ BASE_FLIGHT, F, "bndr", NO_LOSS },
	{ BASE_FLIGHT, F, "bnin", PP_LOSS_TORN },
	{ BASE_FLIGHT, F, "iiii", PP_LOSS_STALE },
	{ BASE_FLIGHT, F, "nnnz", PP_LOSS_TORN },
	{ BASE_FLIGHT, R, "nnnx", PP_LOSS_MISDIRECTED },
	/* append */
	{ A_DURABLE, F, "eeee", NO_LOSS },
	{ A_DURABLE, F, "zzzz", PP_LOSS_BLANK },
	{ A_DURABLE, F, "eeez", PP_LOSS_TORN },
	{ A_DURABLE, F, "iiii", PP_LOSS_STALE },
	{ A_DURABLE, F, "XXXX", PP_LOSS_MISDIRECTED },
	{ A_DURABLE, F, "llll", PP_LOSS_MISDIRECTED }, /* ignores the lane */
	{ A_HOLE, F, "nnnn", NO_LOSS },
	{ A_HOLE, F, "zzzz", NO_LOSS },
	{ A_HOLE, F, "nnzz", NO_LOSS },
	{ A_HOLE, F, "nfdr", NO_LOSS },
	{ A_HOLE, F, "nnXX", NO_LOSS },              /* stale blocks shown: exposed */
	{ A_HOLE, F, "XXXX", NO_LOSS },
	{ A_HOLE, F, "iiii", NO_LOSS },              /* stale block of a file that stood there before */
	{ A_HOLE, F, "xxxx", NO_LOSS },
	{ A_HOLE, R, "nnXX", PP_LOSS_MISDIRECTED },
	{ A_BEYOND, F, "zzzz", PP_LOSS_BLANK },      /* drops the bound W */
	{ A_BEYOND, F, "dddd", PP_LOSS_CORRUPT },
	{ A_BEYOND, F, "XXXX", PP_LOSS_MISDIRECTED },
	{ A_BASE, F, "bbbb", NO_LOSS },
	{ A_BASE, F, "bbbz", PP_LOSS_TORN },
	{ A_BASE, F, "llll", PP_LOSS_MISDIRECTED },
	/* fallocated: a hole is what the base scan read as zeros; what belongs to nobody may show there
	 * while a write is under way (exposed), and only then */
	{ P_DURABLE, F, "eeee", NO_LOSS },
	{ P_DURABLE, F, "zzzz", PP_LOSS_BLANK },
	{ P_DURABLE, F, "eeez", PP_LOSS_TORN },
	{ P_DURABLE, F, "XXXX", PP_LOSS_MISDIRECTED },
	{ P_HOLE, F, "nnnn", NO_LOSS },
	{ P_HOLE, F, "zzzz", NO_LOSS },
	{ P_HOLE, F, "nzdr", NO_LOSS },
	{ P_HOLE, F, "nfXi", NO_LOSS },
	{ P_HOLE, R, "nnXX", PP_LOSS_MISDIRECTED },
	{ P_BEYOND, F, "zzzz", NO_LOSS },            /* never written, never lost */
	{ P_BEYOND, F, "zzzf", PP_LOSS_TORN },
	{ P_BEYOND, F, "XXXX", PP_LOSS_MISDIRECTED },
	{ P_BEYOND, F, "dzzz", PP_LOSS_CORRUPT },
	{ P_BASE, F, "bbbb", NO_LOSS },
	{ P_BASE, F, "zzzz", PP_LOSS_BLANK },
	/* create: gone and short are of the record's own file */
	{ C_DURABLE, F, "eeee", NO_LOSS },
	{ C_DURABLE, F, "gggg", PP_LOSS_FILE_GONE },
	{ C_DURABLE, F, "aaaa", PP_LOSS_FILE_SHORT },
	{ C_DURABLE, F, "eaaa", PP_LOSS_FILE_SHORT },
	{ C_DURABLE, F, "zzzz", PP_LOSS_BLANK },     /* the size came, the data did not */
	{ C_DURABLE, F, "eeed", PP_LOSS_CORRUPT },
	{ C_DURABLE, F, "xxxx", PP_LOSS_MISDIRECTED }, /* another file's blocks */
	{ C_DURABLE, F, "iiii", PP_LOSS_STALE },
	{ C_DURABLE, F, "rrrr", PP_LOSS_UNREADABLE },
	{ C_HOLE, F, "gggg", NO_LOSS },
	{ C_HOLE, F, "aaaa", NO_LOSS },
	{ C_HOLE, F, "naaa", NO_LOSS },
	{ C_HOLE, F, "nnnn", NO_LOSS },
	{ C_HOLE, F, "nzdr", NO_LOSS },
	{ C_HOLE, F, "nnXx", NO_LOSS },
	{ C_BEYOND, F, "gggg", NO_LOSS },
	{ C_BEYOND, F, "aaaa", PP_LOSS_FILE_SHORT }, /* nobody made it */
	{ C_BEYOND, F, "XXXX", PP_LOSS_MISDIRECTED },
	{ C_BASE, F, "bbbb", NO_LOSS },
	{ C_BASE, F, "gggg", PP_LOSS_FILE_GONE },
	{ C_BASE, F, "bbba", PP_LOSS_FILE_SHORT },
	/* M4.5, rename: the one or the other, whole */
	{ M_DURABLE, F, "eeee", NO_LOSS },
	{ M_DURABLE, F, "oooo", PP_LOSS_STALE },
	{ M_DURABLE, F, "gggg", PP_LOSS_FILE_GONE },
	{ M_DURABLE, F, "aaaa", PP_LOSS_FILE_SHORT },
	{ M_FLIGHT, F, "eeee", NO_LOSS },
	{ M_FLIGHT, F, "nnnn", NO_LOSS },
	{ M_FLIGHT, F, "enen", PP_LOSS_TORN },       /* allowed anywhere else */
	{ M_FLIGHT, F, "nnnz", PP_LOSS_TORN },
	{ M_FLIGHT, F, "nnna", PP_LOSS_FILE_SHORT },
	{ M_FLIGHT, F, "aaaa", PP_LOSS_FILE_SHORT }, /* the empty file of a rename without a sync */
	{ M_FLIGHT, F, "gggg", PP_LOSS_FILE_GONE },
	{ M_FLIGHT, F, "nnnd", PP_LOSS_CORRUPT },
	{ M_FLIGHT, F, "rrrr", PP_LOSS_UNREADABLE },
	{ M_FLIGHT, F, "zzzz", PP_LOSS_BLANK },
	{ M_FLIGHT, F, "bbbb", PP_LOSS_STALE },
	{ M_FLIGHT, F, "xxxx", PP_LOSS_MISDIRECTED },
	{ M_BASE, F, "bbbb", NO_LOSS },
	{ M_BASE, F, "gggg", PP_LOSS_FILE_GONE },
	{ M_BASE_FLIGHT, F, "bbbb", NO_LOSS },
	{ M_BASE_FLIGHT, F, "nnnn", NO_LOSS },
	{ M_BASE_FLIGHT, F, "bnnn", PP_LOSS_TORN },
	{ M_BASE_FLIGHT, F, "dddd", PP_LOSS_CORRUPT },
	/* a random order */
	{ RND_LAP, F, "eeee", NO_LOSS },
	{ RND_LAP, F, "oooo", PP_LOSS_STALE },
	{ RND_LAP, R, "zzzz", PP_LOSS_BLANK },
	{ RND_FLIGHT, F, "enen", NO_LOSS },
	{ RND_FLIGHT, R, "nndr", NO_LOSS },
	{ RND_FLIGHT, F, "bbbb", PP_LOSS_STALE },
};

/* One cell of a record at one place; from another slot where `home` is not `slot`. */
static void put_cell(struct world *w, const struct pp_run_id *run, uint32_t lane, uint64_t seq,
	uint64_t home, uint64_t slot, uint32_t cell)
{
	struct pp_record r = world_record(w, run, lane, home, seq);
	uint8_t buf[WORLD_CELLS * PP_CELL_BYTES];

	/* One in flight with many before it: by its own word none of those is durable yet. */
	if (run == &w->run && r.durable > w->acked[lane])
		r.durable = w->acked[lane];
	pp_record_fill(buf, &r);
	memcpy(world_slot(w, 0, slot) + cell * PP_CELL_BYTES, buf + cell * PP_CELL_BYTES,
		PP_CELL_BYTES);
}

/* In a random order the slot is where its sequence is. */
static uint64_t slot_of_row(const struct world *w, const struct row *row)
{
	return w->layout.shuffle ? pp_layout_slot(&w->layout, 0, situations[row->where].expected)
		: situations[row->where].slot;
}

static void set_cell(struct world *w, const struct row *row, uint32_t cell)
{
	uint64_t slot = slot_of_row(w, row), seq;
	uint8_t *at = world_slot(w, 0, slot) + cell * PP_CELL_BYTES;

	switch (row->cells[cell]) {
	case 'e': seq = situations[row->where].expected;
		put_cell(w, &w->run, 0, seq, slot, slot, cell); break;
	case 'n': put_cell(w, &w->run, 0, situations[row->where].flight, slot, slot, cell); break;
	case 'o': put_cell(w, &w->run, 0, situations[row->where].older, slot, slot, cell); break;
	case 'b': put_cell(w, &w->before, 0, slot + 1, slot, slot, cell); break;
	case 'i': put_cell(w, &w->other, 0, slot + 1, slot, slot, cell); break;
	case 'x': put_cell(w, &w->run, 0, 5, pp_layout_slot(&w->layout, 0, 5), slot, cell); break;
	case 'X': put_cell(w, &w->before, 0, 3, 2, slot, cell); break;
	case 'l': put_cell(w, &w->before, 1, slot + 1, slot, slot, cell); break;
	case 'z': memset(at, 0, PP_CELL_BYTES); break;
	case 'f': memset(at, 0xff, PP_CELL_BYTES); break;
	case 'd': memset(at, 0x5a, PP_CELL_BYTES); break;
	case 'r': world_set_bad(w, 0, slot, cell, EIO); break;
	case 'a': break; /* see build */
	case 'g': break;
	default: fail_msg("no letter %c", row->cells[cell]);
	}
}

static void build(struct world *w, const struct row *row)
{
	enum pp_workload workload = situations[row->where].workload;
	uint64_t acked = situations[row->where].acked;
	struct world_file *f = &w->file[0];
	uint64_t slot;
	uint32_t cell;

	world_init(w, workload, 1, 1);
	w->layout.shuffle = row->where >= RND_LAP ? SHUFFLE : 0;
	slot = slot_of_row(w, row);
	w->kind = row->kind;
	world_lay(w, pp_workload_grows(workload) ? APPEND_BASE_SLOTS : w->layout.slots);
	world_take_base(w);
	world_write_until(w, 0, acked);
	w->acked[0] = acked;
	if (workload == PP_APPEND && slot >= f->size / w->layout.record_bytes)
		f->size = (slot + 1) * w->layout.record_bytes;
	for (cell = 0; cell < WORLD_CELLS; cell++)
		set_cell(w, row, cell);
	if (f->slot_bytes)
		f->slot_bytes[slot] = row->cells[0] == 'g' ? WORLD_NO_FILE
			: (int32_t)strcspn(row->cells, "a") * PP_CELL_BYTES;
}

static void check_row(struct world *w, const struct row *row, size_t number)
{
	uint64_t slot = slot_of_row(w, row);
	const struct pp_loss *found = NULL;
	size_t i;

	if (world_judge(w) != 0)
		fail_msg("row %zu \"%s\": %s", number, row->cells, w->err.text);
	for (i = 0; i < w->result.losses; i++) {
		if (w->result.loss[i].slot == slot)
			found = &w->result.loss[i];
		else if (row->where != A_BEYOND) /* there the slots before it are blank as well */
			fail_msg("row %zu \"%s\": slot %u is lost too", number, row->cells,
				(unsigned)w->result.loss[i].slot);
	}
	if ((found ? (int)found->class : NO_LOSS) != row->expect)
		fail_msg("row %zu (situation %d, \"%s\"): %s, not %s", number, row->where, row->cells,
			found ? pp_loss_class_name(found->class) : "no loss",
			row->expect == NO_LOSS ? "no loss" : pp_loss_class_name(row->expect));
	if (found)
		assert_int_equal(found->seq, situations[row->where].expected);
}

static void judges_every_row_of_m4(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w;

		build(&w, &rows[i]);
		check_row(&w, &rows[i], i);
		world_release(&w);
	}
}

/* ---- D, window, evidence -------------------------------------------------------------------- */

static void start(struct world *w, uint32_t lanes, uint32_t group, uint64_t acked)
{
	world_init(w, PP_OVERWRITE, lanes, group);
	world_lay(w, w->layout.slots);
	world_take_base(w);
	world_write_until(w, 0, acked);
	w->acked[0] = acked;
}

/* M4: a surviving record's `durable` raises D beyond the acks, also when it is out of place. */
static void survivor_witnesses_by_order(void **state)
{
	struct world w;
	struct pp_record r;

	(void)state;
	start(&w, 1, 1, 100);
	world_put(&w, 0, 110); /* says 109 is durable: 101 ... 109 show the base */
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.lane[0].acked, 100);
	assert_int_equal(w.result.lane[0].durable, 109);
	assert_int_equal(w.result.losses, 9);
	assert_int_equal(w.result.lost_by_order, 9);
	assert_int_equal(w.result.lost_acked, 0);
	assert_false(w.result.loss[0].by_ack);
	assert_true(w.result.loss[0].unserializable);
	assert_true(w.result.unserializable);
	assert_int_equal(w.result.lost[PP_LOSS_STALE], 9);
	world_release(&w);

	/* one cell is enough, in a slot that is otherwise torn, and in a place that is not its own */
	start(&w, 1, 1, 100);
	r = world_record(&w, &w.run, 0, 109, 110);
	world_write_cells(&w, &r, 0, 109, 2, 1);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.lane[0].durable, 109);
	assert_int_equal(w.result.lost_by_order, 9);
	assert_false(w.result.unserializable); /* nothing later survived whole */
	world_release(&w);

	/* by the group: a record of the second group vouches for the first only */
	start(&w, 1, 8, 96);
	world_put(&w, 0, 106); /* durable 104 */
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.lane[0].durable, 104);
	assert_int_equal(w.result.lost_by_order, 8);
	world_release(&w);
}

/* An older record is a witness as well; but D comes from this run alone. */
static void other_runs_witness_nothing(void **state)
{
	struct world w;
	struct pp_record r;

	(void)state;
	start(&w, 1, 1, 100);
	r = world_record(&w, &w.other, 0, 150, 151);
	r.durable = 150;
	world_write_cells(&w, &r, 0, 150, 0, 4);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.lane[0].durable, 100);
	assert_int_equal(w.result.losses, 1); /* the base of that slot */
	assert_int_equal(w.result.lost_base, 1);
	assert_int_equal(w.result.unknown_runs, 1);
	assert_true(pp_run_id_equal(&w.result.unknown_run[0], &w.other));
	world_release(&w);
}

/* M3.2: an unknown run is listed also where its only cell stands in a torn slot. */
static void lists_unknown_runs_in_torn_slots(void **state)
{
	struct world w;
	struct pp_record r;

	(void)state;
	start(&w, 1, 1, 100);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.unknown_runs, 0);
	r = world_record(&w, &w.other, 0, 150, 151);
	world_write_cells(&w, &r, 0, 150, 3, 1);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.unknown_runs, 1);
	world_release(&w);
}

/* M2.4, M4.6: A+W may be there; A+W+1 cannot. */
static void window_bounds_what_may_exist(void **state)
{
	struct world w;

	(void)state;
	start(&w, 1, 64, 64); /* W = 128 */
	world_put(&w, 0, 64 + 128);
	assert_int_equal(world_judge(&w), 0);
	world_release(&w);

	start(&w, 1, 64, 64);
	world_put(&w, 0, 64 + 128 + 1);
	assert_int_equal(world_judge(&w), -1);
	assert_int_equal(w.err.class, PP_ERR_EVIDENCE);
	assert_null(w.result.loss);
	world_release(&w);

	start(&w, 1, 1, 100);
	world_write_until(&w, 0, 164);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 0);
	world_put(&w, 0, 165);
	assert_int_equal(world_judge(&w), -1);
	assert_int_equal(w.err.class, PP_ERR_EVIDENCE);
	world_release(&w);
}

/* A slot right behind the window has no F: damage there is a loss, one slot before it is not. */
static void window_bounds_what_may_be_torn(void **state)
{
	struct world w;

	(void)state;
	start(&w, 1, 1, 100);
	memset(world_slot(&w, 0, 163) + 512, 0x5a, 512); /* 164 = A+W */
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 0);
	assert_int_equal(w.result.in_flight_seen, 1);
	assert_int_equal(w.result.in_flight_torn, 1);
	memset(world_slot(&w, 0, 164) + 512, 0x5a, 512);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 1);
	assert_int_equal(w.result.loss[0].class, PP_LOSS_CORRUPT);
	assert_int_equal(w.result.loss[0].seq, 0);
	assert_int_equal(w.result.lost_base, 1);
	world_release(&w);

	start(&w, 1, 1, 100); /* and the first slot of F is the one behind A, not A's */
	memset(world_slot(&w, 0, 100) + 512, 0x5a, 512);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 0);
	memset(world_slot(&w, 0, 99) + 512, 0x5a, 512);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 1);
	assert_true(w.result.loss[0].by_ack);
	assert_int_equal(w.result.loss[0].seq, 100);
	world_release(&w);
}

/* The window wraps round the end of the region. */
static void window_wraps(void **state)
{
	struct world w;

	(void)state;
	start(&w, 1, 1, 240);
	world_put(&w, 0, 241);
	memset(world_slot(&w, 0, 250), 0x5a, 512);  /* 251 */
	memset(world_slot(&w, 0, 47), 0x5a, 512);   /* 304 = A+W */
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 0);
	memset(world_slot(&w, 0, 48), 0x5a, 512);   /* 305 */
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 1);
	assert_int_equal(w.result.loss[0].seq, 49);
	world_release(&w);
}

/* Nothing acked, nothing written: the base must stand. Then with the first record in flight. */
static void nothing_acked(void **state)
{
	struct world w;

	(void)state;
	start(&w, 1, 1, 0);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 0);
	assert_int_equal(w.result.in_flight_seen, 0);
	world_put(&w, 0, 1);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.in_flight_seen, 1);
	assert_int_equal(w.result.in_flight_torn, 0);
	assert_int_equal(w.result.lane[0].newest, 1);
	world_release(&w);
}

static void start_append(struct world *w, uint32_t lanes, uint64_t acked)
{
	world_init(w, PP_APPEND, lanes, 1);
	world_lay(w, APPEND_BASE_SLOTS);
	world_take_base(w);
	world_write_until(w, 0, acked);
	w->acked[0] = acked;
}

/* ---- contradictions (M4.6): exit 2, never a verdict ------------------------------------------ */

enum lie { WRONG_LANE, WRONG_PLACE, DURABLE_TOO_HIGH, WRONG_CELLS, SEQ_ZERO, OTHER_TIME, OTHER_DURABLE,
	OTHER_FLAGS, BASE_OF_THIS_RUN, HONEST };

/* A record of this run that its writer cannot have made, one cell of it, in a slot in flight. */
static void contradictions_are_errors(void **state)
{
	int lie;

	(void)state;
	for (lie = WRONG_LANE; lie <= HONEST; lie++) {
		struct world w;
		struct pp_record r;
		uint8_t buf[WORLD_CELLS * PP_CELL_BYTES * 2];
		int rc;

		start(&w, 2, 1, 100);
		r = world_record(&w, &w.run, 0, 100, 101);
		switch ((enum lie)lie) {
		case WRONG_LANE: r.lane = 2; break;
		case WRONG_PLACE: r.offset += PP_CELL_BYTES; break;
		case DURABLE_TOO_HIGH: r.durable = 101; break;
		case WRONG_CELLS: r.cells = 5; break;
		case SEQ_ZERO: r.seq = 0; break;
		/* with another version of 101 in the same slot: below */
		case OTHER_TIME: case OTHER_DURABLE: case OTHER_FLAGS: case HONEST: break;
		case BASE_OF_THIS_RUN:
			world_put(&w, 0, 7);
			world_take_base(&w);
			break;
		}
		pp_record_fill(buf, &r);
		memcpy(world_slot(&w, 0, 100), buf, PP_CELL_BYTES);
		if (lie == OTHER_TIME)
			r.issued_ns++;
		if (lie == OTHER_DURABLE)
			r.durable--;
		if (lie == OTHER_FLAGS)
			r.flags = PP_RECORD_COMPRESSIBLE;
		pp_record_fill(buf, &r);
		if (lie >= OTHER_TIME)
			memcpy(world_slot(&w, 0, 100) + 1024, buf + 1024, PP_CELL_BYTES);
		rc = world_judge(&w);
		if (rc != (lie == HONEST ? 0 : -1))
			fail_msg("lie %d: %d %s", lie, rc, rc ? w.err.text : "");
		if (rc != 0)
			assert_int_equal(w.err.class, PP_ERR_EVIDENCE);
		world_release(&w);
	}
}

/* Two versions of one record: one whole at home, one flown elsewhere. And the same one twice is not
 * a contradiction but a misdirected write. */
static void two_versions_far_apart(void **state)
{
	struct world w;
	struct pp_record r;
	uint8_t buf[WORLD_CELLS * PP_CELL_BYTES];

	(void)state;
	start(&w, 1, 1, 100);
	r = world_record(&w, &w.run, 0, 50, 51);
	pp_record_fill(buf, &r);
	memcpy(world_slot(&w, 0, 200), buf, sizeof(buf));
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 1);
	assert_int_equal(w.result.loss[0].class, PP_LOSS_MISDIRECTED);
	assert_int_equal(w.result.loss[0].slot, 200);
	r.issued_ns += 5;
	pp_record_fill(buf, &r);
	memcpy(world_slot(&w, 0, 200), buf, sizeof(buf));
	assert_int_equal(world_judge(&w), -1);
	assert_int_equal(w.err.class, PP_ERR_EVIDENCE);
	world_release(&w);
}

/* A re-read that shows the impossible is a contradiction too. */
static void contradiction_in_reread(void **state)
{
	struct world w;

	(void)state;
	start(&w, 1, 1, 100);
	memset(world_slot(&w, 0, 50), 0x5a, 512);
	assert_int_equal(world_judge(&w), 0);
	put_cell(&w, &w.run, 0, 256 + 51, 50, 50, 0); /* 307 > 164 */
	world_reread(&w);
	assert_int_equal(world_judge_again(&w), -1);
	assert_int_equal(w.err.class, PP_ERR_EVIDENCE);
	world_release(&w);
}

/* Evidence of another shape: slots left out must not turn into losses or into holes. */
static void shapes_must_agree(void **state)
{
	struct world w;
	uint64_t slots;

	(void)state;
	start(&w, 1, 1, 100);
	w.scan = world_take_scan(&w, NULL, 0);
	assert_int_equal(world_judge_again(&w), 0);
	slots = w.layout.slots;
	w.scan->lane[0].slots = slots - 1;
	assert_int_equal(world_judge_again(&w), -1);
	assert_int_equal(w.err.class, PP_ERR_EVIDENCE);
	w.scan->lane[0].slots = slots;
	w.base->lane[0].slots = slots - 1;
	assert_int_equal(world_judge_again(&w), -1);
	w.base->lane[0].slots = slots;
	w.scan->record_bytes = 512;
	assert_int_equal(world_judge_again(&w), -1);
	world_release(&w);

	start_append(&w, 1, 10);
	w.acked[0] = w.layout.slots; /* the base takes some of them */
	assert_int_equal(world_judge(&w), -1);
	assert_int_equal(w.err.class, PP_ERR_EVIDENCE);
	w.acked[0] = 10;
	w.layout.base_slots[0] = 1; /* an append that overwrites what was there */
	assert_int_equal(world_judge(&w), -1);
	assert_int_equal(w.err.class, PP_ERR_EVIDENCE);
	world_release(&w);
}

/* ---- bases that are not whole ---------------------------------------------------------------- */

/* The base is what the last scan found, whatever that was; it must still be there. */
static void any_base_is_compared(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, PP_OVERWRITE, 1, 1);
	world_lay(&w, w.layout.slots);
	memset(world_slot(&w, 0, 200), 0, 2048);
	memset(world_slot(&w, 0, 201), 0xff, 2048);
	memset(world_slot(&w, 0, 202), 0x5a, 2048);
	memset(world_slot(&w, 0, 203) + 512, 0x5a, 512);
	world_take_base(&w);
	w.acked[0] = 10;
	world_write_until(&w, 0, 10);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 0);
	memset(world_slot(&w, 0, 200), 0xff, 2048);
	memset(world_slot(&w, 0, 201), 0, 2048);
	world_slot(&w, 0, 202)[0] ^= 1;
	put_cell(&w, &w.before, 0, 204, 203, 203, 1);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 4);
	assert_int_equal(w.result.loss[0].class, PP_LOSS_BLANK);
	assert_int_equal(w.result.loss[1].class, PP_LOSS_BLANK);
	assert_int_equal(w.result.loss[2].class, PP_LOSS_CORRUPT);
	/* a whole record where damage had been: changed without being written. */
	assert_int_equal(w.result.loss[3].class, PP_LOSS_TORN);
	assert_int_equal(w.result.lost_base, 4);
	world_release(&w);
}

/* A slot that rolled back to a torn base rolled back whole: stale, not torn. */
static void rolled_back_to_torn_base_is_stale(void **state)
{
	struct world w;
	uint8_t keep[2048];

	(void)state;
	world_init(&w, PP_OVERWRITE, 1, 1);
	world_lay(&w, w.layout.slots);
	memset(world_slot(&w, 0, 5), 0x5a, 512);
	put_cell(&w, &w.other, 0, 6, 5, 5, 1);
	memcpy(keep, world_slot(&w, 0, 5), sizeof(keep));
	world_take_base(&w);
	w.acked[0] = 10;
	world_write_until(&w, 0, 10);
	memcpy(world_slot(&w, 0, 5), keep, sizeof(keep));
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 1);
	assert_int_equal(w.result.loss[0].class, PP_LOSS_STALE);
	world_release(&w);
}

/* What could not be read before (in flight at the last cut) accuses nobody now; what is written over
 * it and acked must be there. */
static void unread_base_accuses_nobody(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, PP_OVERWRITE, 1, 1);
	world_lay(&w, w.layout.slots);
	world_set_bad(&w, 0, 200, 1, EIO);
	world_set_bad(&w, 0, 201, 1, EIO);
	world_set_bad(&w, 0, 5, 1, EIO);
	world_take_base(&w);
	world_set_bad(&w, 0, 201, 1, 0);
	memset(world_slot(&w, 0, 201) + 512, 0x5a, 512);
	w.acked[0] = 10;
	world_write_until(&w, 0, 10);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 1); /* slot 5 is acked and cannot be read */
	assert_int_equal(w.result.loss[0].slot, 5);
	assert_int_equal(w.result.loss[0].class, PP_LOSS_UNREADABLE);
	/* a cell of this run that flew there is still seen */
	put_cell(&w, &w.run, 0, 3, 2, 201, 1);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 2);
	assert_int_equal(w.result.loss[1].class, PP_LOSS_MISDIRECTED);
	world_release(&w);
}

/* ---- files ------------------------------------------------------------------------------------ */

static void file_that_ends_early(void **state)
{
	struct world w;

	(void)state;
	start_append(&w, 1, 50);
	world_put(&w, 0, 51);
	w.file[0].size = (APPEND_BASE_SLOTS + 50) * 2048; /* 51 was in flight: may be missing */
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 0);
	w.file[0].size += 700; /* or in part */
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 0);
	assert_int_equal(w.result.in_flight_torn, 1);
	w.file[0].size = (APPEND_BASE_SLOTS + 50) * 2048 - 1; /* one byte of 50 is gone */
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 1);
	assert_int_equal(w.result.loss[0].class, PP_LOSS_FILE_SHORT);
	assert_int_equal(w.result.loss[0].seq, 50);
	assert_true(w.result.loss[0].by_ack);
	w.file[0].size = (APPEND_BASE_SLOTS + 48) * 2048;
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.lost[PP_LOSS_FILE_SHORT], 2);
	w.file[0].size = 2 * 2048; /* the base too */
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.lost[PP_LOSS_FILE_SHORT], 51);
	assert_int_equal(w.result.lost_base, 1);
	world_release(&w);
}

static void file_that_is_gone(void **state)
{
	struct world w;

	(void)state;
	start_append(&w, 2, 50);
	w.file[0].gone = true;
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.lost[PP_LOSS_FILE_GONE], 53);
	assert_int_equal(w.result.lost_total, 53);
	world_release(&w);

	world_init(&w, PP_APPEND, 1, 1); /* an empty file, nothing acked: its name is lost */
	world_take_base(&w);
	w.file[0].gone = true;
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.lost[PP_LOSS_FILE_GONE], 1);
	world_reread(&w);
	assert_int_equal(world_judge_again(&w), 0);
	assert_int_equal(w.result.unstable, 0);
	w.file[0].gone = false; /* it was only not mounted */
	world_reread(&w);
	assert_int_equal(world_judge_again(&w), 0);
	assert_int_equal(w.result.lost_total, 0);
	assert_int_equal(w.result.unstable, 1);
	world_release(&w);

	world_init(&w, PP_OVERWRITE, 1, 1);
	world_lay(&w, w.layout.slots);
	world_take_base(&w);
	w.file[0].gone = true;
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.lost[PP_LOSS_FILE_GONE], w.layout.slots);
	world_release(&w);
}

/* A file that ended inside a slot: what the next run appends behind it makes the rest read as zeros,
 * and that is no loss. */
static void partial_tail_of_the_base(void **state)
{
	struct world w;

	(void)state;
	start_append(&w, 1, 0);
	w.file[0].size = 2 * 2048 + 1100;
	world_take_base(&w);
	assert_int_equal(w.base->lane[0].slots, 3);
	memset(world_slot(&w, 0, 2) + 1024, 0, 1024);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 0); /* as it was */
	world_write_until(&w, 0, 10);
	w.acked[0] = 10;
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 0);
	/* of the cell that the end was in nobody knows the bytes */
	memset(world_slot(&w, 0, 2) + 1024, 0x5a, 76);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 0);
	memset(world_slot(&w, 0, 2) + 1536, 0x5a, 76); /* the one behind it reads as zeros */
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 1);
	memset(world_slot(&w, 0, 2) + 1536, 0, 76);
	world_slot(&w, 0, 2)[3] ^= 1; /* its bytes must stand, though */
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.lost[PP_LOSS_CORRUPT], 1);
	world_release(&w);
}

/* M4.3: `exposed` is noted for files only, and only where stale blocks were shown. */
static void exposed_is_noted(void **state)
{
	static const struct { const char *cells; bool exposed; } cases[] = {
		{ "nnnn", false }, { "zzzz", false }, { "nnnX", true }, { "XXXX", true }, { "iiii", true },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct row row = { A_HOLE, PP_TARGET_FILE, cases[i].cells, NO_LOSS };
		struct world w;

		build(&w, &row);
		assert_int_equal(world_judge(&w), 0);
		assert_int_equal(w.result.losses, 0);
		assert_int_equal(w.result.exposed_stale, cases[i].exposed);
		world_release(&w);
	}
}

/* ---- lanes, re-reads, collateral -------------------------------------------------------------- */

static void lanes_have_their_own_acks(void **state)
{
	struct world w;
	uint32_t lane;

	(void)state;
	start(&w, 4, 1, 0);
	for (lane = 0; lane < 4; lane++) {
		w.acked[lane] = 20 * (lane + 1);
		world_write_until(&w, lane, 20 * (lane + 1));
	}
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 0);
	assert_int_equal(w.result.records_durable, 200);
	assert_int_equal(w.result.slots_checked, 4 * w.layout.slots);
	memset(world_slot(&w, 3, 70), 0x5a, 512); /* 71 <= 80 in lane 3 */
	memset(world_slot(&w, 0, 70), 0x5a, 512); /* 71 in flight in lane 0 */
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 1);
	assert_int_equal(w.result.loss[0].lane, 3);
	assert_int_equal(w.result.loss[0].offset, (3 * w.layout.slots + 70) * 2048);
	world_release(&w);
}

/* A write that flew from one lane's file into another's: the same offset, the wrong lane. */
static void flown_between_files(void **state)
{
	struct world w;
	struct pp_record r;

	(void)state;
	start_append(&w, 2, 50);
	world_write_until(&w, 1, 50);
	w.acked[1] = 50;
	r = world_record(&w, &w.run, 1, 23, 21);
	world_write_cells(&w, &r, 0, 23, 0, 4);
	memset(world_slot(&w, 1, 23), 0, 2048); /* and its victim: never arrived at home */
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 2);
	assert_int_equal(w.result.loss[0].class, PP_LOSS_MISDIRECTED);
	assert_int_equal(w.result.loss[0].lane, 0);
	assert_int_equal(w.result.loss[1].class, PP_LOSS_BLANK);
	assert_int_equal(w.result.loss[1].lane, 1);
	world_release(&w);
}

/* M4.7: all reads lost: a loss. One that found it whole: unstable, which is neither. */
static void one_read_does_not_convict(void **state)
{
	struct world w;

	(void)state;
	start(&w, 1, 1, 100);
	world_set_bad(&w, 0, 50, 1, EIO);
	world_set_bad(&w, 0, 51, 1, EIO);
	world_set_bad(&w, 0, 60, 1, EIO);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 3);
	world_reread(&w);
	world_set_bad(&w, 0, 51, 1, 0);
	world_reread(&w);
	world_set_bad(&w, 0, 51, 1, EIO);
	world_reread(&w);
	assert_int_equal(w.reread[0]->sparse_count, 3);
	assert_int_equal(world_judge_again(&w), 0);
	assert_int_equal(w.result.losses, 3);
	assert_false(w.result.loss[0].unstable);
	assert_true(w.result.loss[1].unstable);
	assert_false(w.result.loss[2].unstable);
	assert_int_equal(w.result.unstable, 1);
	assert_int_equal(w.result.lost_total, 2);
	assert_int_equal(w.result.lost_acked, 2);
	assert_int_equal(w.result.lost[PP_LOSS_UNREADABLE], 2);
	world_release(&w);
}

/* A re-read that differs from the first but is a loss as well does not acquit. */
static void other_damage_does_not_acquit(void **state)
{
	struct world w;

	(void)state;
	start(&w, 1, 1, 100);
	memset(world_slot(&w, 0, 50), 0x5a, 512);
	assert_int_equal(world_judge(&w), 0);
	put_cell(&w, &w.before, 0, 51, 50, 50, 0);
	world_reread(&w);
	assert_int_equal(world_judge_again(&w), 0);
	assert_int_equal(w.result.lost_total, 1);
	assert_int_equal(w.result.unstable, 0);
	world_release(&w);
}

static void ranges_join_neighbours(void **state)
{
	struct world w;
	struct pp_scan_range *ranges;
	size_t n;

	(void)state;
	start(&w, 2, 1, 100);
	memset(world_slot(&w, 0, 50), 0, 2 * 2048);
	memset(world_slot(&w, 0, 55), 0, 2048);
	memset(world_slot(&w, 0, w.layout.slots - 1), 0, 2 * 2048); /* and slot 0 of lane 1 */
	assert_int_equal(world_judge(&w), 0);
	n = pp_oracle_ranges(&w.result, &ranges);
	assert_int_equal(n, 4);
	assert_int_equal(ranges[0].first, 50);
	assert_int_equal(ranges[0].last, 51);
	assert_int_equal(ranges[1].first, 55);
	assert_int_equal(ranges[3].lane, 1);
	assert_int_equal(ranges[3].first, 0);
	free(ranges);
	world_release(&w);
}

/* M2.5: damage to a neighbour in the unit of one in flight, with sub_block only. */
static void collateral_with_sub_block(void **state)
{
	struct world w;
	bool sub;
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		sub = i == 1;
		world_init_sized(&w, PP_OVERWRITE, 1, 1, 1024, sub ? 4096 : 512, sub, 256);
		world_lay(&w, w.layout.slots);
		world_take_base(&w);
		world_write_until(&w, 0, 98); /* units are slots 96 ... 99: 99 and 100 in flight */
		w.acked[0] = 98;
		memset(world_slot(&w, 0, 97), 0x5a, 512);
		assert_int_equal(world_judge(&w), 0);
		assert_int_equal(w.result.losses, sub ? 0 : 1);
		assert_int_equal(w.result.collateral, sub ? 1 : 0);
		memset(world_slot(&w, 0, 95), 0x5a, 512); /* the unit before has none in flight */
		assert_int_equal(world_judge(&w), 0);
		assert_int_equal(w.result.losses, sub ? 1 : 2);
		world_release(&w);
	}
	/* blank is no damage: a loss, whatever the unit, also beside damage */
	world_init_sized(&w, PP_OVERWRITE, 1, 1, 1024, 4096, true, 256);
	world_lay(&w, w.layout.slots);
	world_take_base(&w);
	world_write_until(&w, 0, 98);
	w.acked[0] = 98;
	memset(world_slot(&w, 0, 97), 0, 1024);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 1);
	assert_int_equal(w.result.collateral, 0);
	memset(world_slot(&w, 0, 97), 0x5a, 512);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 1);
	assert_int_equal(w.result.collateral, 0);
	world_release(&w);
}

/* M4.8: in which sizes of blocks a record in flight is torn: blocks lie on multiples of their size. */
static void tears_by_size(void **state)
{
	static const struct { const char *cells; unsigned seen, torn, at[4]; } tears[] = {
		{ "nnnn", 1, 0, { 0, 0, 0, 0 } }, { "eeee", 0, 0, { 0, 0, 0, 0 } },
		{ "nnee", 1, 1, { 0, 0, 1, 0 } }, { "eenn", 1, 1, { 0, 0, 1, 0 } },
		{ "neee", 1, 1, { 0, 1, 1, 0 } }, { "enne", 1, 1, { 0, 1, 1, 0 } },
		{ "nnnd", 1, 1, { 1, 1, 1, 0 } }, { "reee", 1, 1, { 1, 1, 1, 0 } },
	};
	size_t i;
	int k;

	(void)state;
	for (i = 0; i < sizeof(tears) / sizeof(tears[0]); i++) {
		struct row row = { FLIGHT, F, tears[i].cells, NO_LOSS };
		struct world w;

		build(&w, &row);
		assert_int_equal(world_judge(&w), 0);
		assert_int_equal(w.result.in_flight_seen, tears[i].seen);
		assert_int_equal(w.result.in_flight_torn, tears[i].torn);
		for (k = 0; k < 4; k++)
			if (w.result.torn_at[k] != tears[i].at[k])
				fail_msg("\"%s\": %u torn at %d bytes", tears[i].cells,
					(unsigned)w.result.torn_at[k], 512 << k);
		world_release(&w);
	}
}

/*
 * M4.5: a write that is promised whole or not at all. What arrived in part is torn, and not e's loss;
 * where e, too, is not what it was, that is the loss.
 */
static void untorn_is_whole_or_not(void **state)
{
	static const struct {
		enum situation where;
		const char *cells;
		int expect;
		bool torn; /* and nothing else */
	} cases[] = {
		{ FLIGHT, "eeee", NO_LOSS, false }, { FLIGHT, "nnnn", NO_LOSS, false },
		{ FLIGHT, "enen", PP_LOSS_TORN, true }, { FLIGHT, "nnne", PP_LOSS_TORN, true },
		{ FLIGHT, "eeed", PP_LOSS_TORN, true }, { FLIGHT, "rnnn", PP_LOSS_TORN, true },
		{ FLIGHT, "dddd", PP_LOSS_TORN, true }, { FLIGHT, "nnnb", PP_LOSS_TORN, false },
		{ FLIGHT, "bbbb", PP_LOSS_STALE, false }, { FLIGHT, "xnnn", PP_LOSS_MISDIRECTED, false },
		{ OVERWRITE, "eeee", NO_LOSS, false }, { OVERWRITE, "eeed", PP_LOSS_CORRUPT, false },
		{ BASE_FLIGHT, "bbbb", NO_LOSS, false }, { BASE_FLIGHT, "bbbn", PP_LOSS_TORN, true },
		{ P_HOLE, "zzzz", NO_LOSS, false }, { P_HOLE, "nnnn", NO_LOSS, false },
		{ P_HOLE, "nnzz", PP_LOSS_TORN, true }, { P_HOLE, "zdzz", PP_LOSS_TORN, true },
		{ LAP_FLIGHT, "nnno", PP_LOSS_TORN, false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct row row = { cases[i].where, F, cases[i].cells, cases[i].expect };
		struct world w;

		build(&w, &row);
		w.untorn = true;
		assert_int_equal(world_judge(&w), 0);
		if (w.result.losses != (cases[i].expect != NO_LOSS) ||
			w.result.lost_untorn != cases[i].torn ||
			(w.result.losses && ((int)w.result.loss[0].class != cases[i].expect ||
			w.result.loss[0].untorn != cases[i].torn)))
			fail_msg("\"%s\": %zu losses, %u torn", cases[i].cells, w.result.losses,
				(unsigned)w.result.lost_untorn);
		/* The record that is torn is the one in flight, which nobody acked. */
		if (cases[i].torn && (w.result.loss[0].by_ack ||
			w.result.loss[0].seq != situations[cases[i].where].flight))
			fail_msg("\"%s\": record %u", cases[i].cells, (unsigned)w.result.loss[0].seq);
		world_release(&w);
	}
}

/* Files share no block with each other, and damage to one is damage. */
static void no_collateral_among_files(void **state)
{
	static const enum pp_workload workloads[] = { PP_CREATE, PP_RENAME };
	struct world w;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		world_init_sized(&w, workloads[i], 1, 1, 512, 512, false, 256);
		w.layout.unit_bytes = 4096;
		w.layout.sub_block = true;
		world_lay(&w, workloads[i] == PP_CREATE ? 3 : w.layout.slots);
		world_take_base(&w);
		world_write_until(&w, 0, 90);
		w.acked[0] = 90;
		memset(world_slot(&w, 0, pp_layout_slot(&w.layout, 0, 90)), 0x5a, 512);
		assert_int_equal(world_judge(&w), 0);
		assert_int_equal(w.result.losses, 1);
		assert_int_equal(w.result.collateral, 0);
		world_release(&w);
	}
}

/* M4.6: where slots are taken once, a run that was to take one that something stands in already was
 * given a base that is not its own. */
static void taken_slots_are_not_taken_again(void **state)
{
	static const enum pp_workload workloads[] = { PP_FALLOCATED, PP_CREATE };
	struct world w;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		world_init(&w, workloads[i], 1, 1);
		world_lay(&w, 5);
		world_take_base(&w);
		assert_int_equal(pp_scan_taken(w.base, &w.layout, 0), 5);
		w.layout.base_slots[0] = 4;
		assert_int_equal(world_judge(&w), -1);
		assert_int_equal(w.err.class, PP_ERR_EVIDENCE);
		assert_non_null(strstr(w.err.text, "slot 4 was taken before"));
		w.layout.base_slots[0] = 9;
		assert_int_equal(world_judge(&w), 0); /* slots may be left out */
		assert_int_equal(w.result.losses, 0);
		world_release(&w);
	}
}

/* M4, D: a temporary file vouches for what its writer knew, and is judged by nobody (M4.5). */
static void temporary_files_are_witnesses(void **state)
{
	struct pp_record r;
	struct world w;

	(void)state;
	world_init(&w, PP_RENAME, 1, 1);
	world_lay(&w, w.layout.slots);
	world_take_base(&w);
	world_write_until(&w, 0, 10);
	w.acked[0] = 5;
	r = world_record(&w, &w.run, 0, 11, 12); /* written beside slot 11, never renamed: 11 was durable */
	world_write_cells(&w, &r, 0, w.layout.slots + 11, 0, WORLD_CELLS);
	memset(world_slot(&w, 0, w.layout.slots + 11), 0x5a, 512); /* torn: allowed there */
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.lane[0].durable, 11);
	assert_int_equal(w.result.losses, 1);      /* slot 10 still holds its base */
	assert_int_equal(w.result.loss[0].slot, 10);
	assert_false(w.result.loss[0].by_ack);
	assert_false(w.result.loss[0].unserializable);
	assert_int_equal(w.result.lane[0].newest, 10);
	world_release(&w);
}

/* A record need not divide the unit: 1536 in 4096. Slot 5 is bytes 7680 ... 9215: units 1 and 2. */
static void collateral_across_units(void **state)
{
	struct world w;

	(void)state;
	world_init_sized(&w, PP_OVERWRITE, 1, 1, 1536, 4096, true, 264);
	world_lay(&w, w.layout.slots);
	world_take_base(&w);
	world_write_until(&w, 0, 6);
	w.acked[0] = 6; /* slot 6 is in flight and shares bytes 8192 ... with slot 5 */
	memset(world_slot(&w, 0, 5), 0x5a, 512);
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.collateral, 1);
	memset(world_slot(&w, 0, 4), 0x5a, 512); /* 6144 ... 7679: unit 1, which slot 6 does not touch */
	assert_int_equal(world_judge(&w), 0);
	assert_int_equal(w.result.losses, 1);
	assert_int_equal(w.result.loss[0].slot, 4);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judges_every_row_of_m4),
		cmocka_unit_test(survivor_witnesses_by_order),
		cmocka_unit_test(other_runs_witness_nothing),
		cmocka_unit_test(lists_unknown_runs_in_torn_slots),
		cmocka_unit_test(window_bounds_what_may_exist),
		cmocka_unit_test(window_bounds_what_may_be_torn),
		cmocka_unit_test(window_wraps),
		cmocka_unit_test(nothing_acked),
		cmocka_unit_test(contradictions_are_errors),
		cmocka_unit_test(two_versions_far_apart),
		cmocka_unit_test(contradiction_in_reread),
		cmocka_unit_test(shapes_must_agree),
		cmocka_unit_test(any_base_is_compared),
		cmocka_unit_test(rolled_back_to_torn_base_is_stale),
		cmocka_unit_test(unread_base_accuses_nobody),
		cmocka_unit_test(file_that_ends_early),
		cmocka_unit_test(file_that_is_gone),
		cmocka_unit_test(partial_tail_of_the_base),
		cmocka_unit_test(exposed_is_noted),
		cmocka_unit_test(lanes_have_their_own_acks),
		cmocka_unit_test(flown_between_files),
		cmocka_unit_test(one_read_does_not_convict),
		cmocka_unit_test(other_damage_does_not_acquit),
		cmocka_unit_test(ranges_join_neighbours),
		cmocka_unit_test(collateral_with_sub_block),
		cmocka_unit_test(tears_by_size),
		cmocka_unit_test(untorn_is_whole_or_not),
		cmocka_unit_test(no_collateral_among_files),
		cmocka_unit_test(taken_slots_are_not_taken_again),
		cmocka_unit_test(temporary_files_are_witnesses),
		cmocka_unit_test(collateral_across_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
