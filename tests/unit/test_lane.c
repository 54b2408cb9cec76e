/* SPDX-License-Identifier: MIT
 *
 * Goal: a lane acks only what its sync has covered, never runs past its window and stops for good at
 * the first failure (M2.2 to M2.6, M3.1).
 * Method: lanes on a scripted target that checks every call against what came before it; each lane
 * is stepped by hand. The fault walk fails call 1, 2, 3, ... until a run sees no failure, for each
 * kind of failure and method. What the header promises is asserted inside the fake, so every test
 * checks all of it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "writer/lane.h"

#define LANES     2
#define REC_BYTES 1024U
#define SLOTS     512

enum fault { FAULT_NONE, FAULT_ERROR, FAULT_SHORT };

/* One target shared by the lanes, and the witness. */
struct fake {
	struct pp_layout layout;
	const struct pp_method *method;
	struct pp_run run;
	struct fake_lane {
		struct fake *fake;
		struct pp_lane lane;
		uint64_t written;  /* highest sequence whose write returned whole */
		uint64_t synced;   /* highest sequence of which all that belongs to its sync has returned */
		uint64_t file_synced, renamed; /* where every slot is a file: highest of each */
		uint64_t acked, acks;
		uint64_t syncs;
		bool failed;       /* a call of this lane has failed */
		uint8_t buf[REC_BYTES];
	} lanes[LANES];
	struct pp_histogram latency;
	int64_t now_ns;
	uint64_t calls, fail_at;
	enum fault fault;
	bool any_failed;
	bool echo_at_once;
};

static bool in_write(const struct fake *fake)
{
	return fake->method->sync == PP_SYNC_NONE;
}

static bool folder_too(const struct fake *fake)
{
	return pp_workload_syncs_folder(fake->layout.workload) &&
		fake->method->coverage != PP_COVERS_NOTHING;
}

/* What follows what (M2.2): data, its sync, names, the folder. */
enum stage { STAGE_WRITE, STAGE_SYNC, STAGE_RENAME, STAGE_FOLDER };

static void reached(struct fake_lane *fl, enum stage stage)
{
	const struct fake *fake = fl->fake;
	enum stage last = folder_too(fake) ? STAGE_FOLDER
		: pp_workload_renames(fake->layout.workload) ? STAGE_RENAME
		: in_write(fake) ? STAGE_WRITE : STAGE_SYNC;

	if (stage == last)
		fl->synced = stage == STAGE_SYNC && pp_workload_record_files(fake->layout.workload)
			? fl->file_synced : stage == STAGE_RENAME ? fl->renamed : fl->written;
}

static bool fails_now(struct fake_lane *fl, int64_t *os_code)
{
	struct fake *fake = fl->fake;

	assert_false(fl->failed);
	assert_false(fake->any_failed);
	if (++fake->calls != fake->fail_at || fake->fault == FAULT_NONE)
		return false;
	fl->failed = fake->any_failed = true;
	*os_code = ENOSPC;
	return true;
}

static void check_record(struct fake_lane *fl, const void *buf, uint32_t bytes, uint64_t offset)
{
	const struct fake *fake = fl->fake;
	struct pp_record record;
	uint64_t seq = fl->written + 1;

	assert_int_equal(bytes, REC_BYTES);
	assert_true(pp_record_check(buf, bytes / PP_CELL_BYTES, offset, &record));
	assert_int_equal(record.seq, seq);
	assert_int_equal(record.lane, fl->lane.lane);
	/* M3.1: durable says what a sync has returned for, no more and (so that D is sharp) no less. */
	assert_int_equal(record.durable, fl->synced);
	assert_int_equal(offset, pp_layout_offset(&fake->layout, fl->lane.lane,
		pp_layout_slot(&fake->layout, fl->lane.lane, seq)));
	/* M2.4 */
	assert_true(seq <= atomic_load(&fl->lane.echoed) + pp_layout_window(&fake->layout));
}

static int64_t fake_write(void *ctx, const void *buf, uint32_t bytes, uint64_t offset,
	int64_t *os_code)
{
	struct fake_lane *fl = ctx;
	struct fake *fake = fl->fake;

	assert_false(fl->failed); /* nothing is retried */
	assert_false(fake->any_failed);
	check_record(fl, buf, bytes, offset);
	if (++fake->calls == fake->fail_at && fake->fault != FAULT_NONE) {
		fl->failed = fake->any_failed = true;
		if (fake->fault == FAULT_SHORT)
			return REC_BYTES / 2;
		*os_code = EIO;
		return -1;
	}
	fl->written++;
	reached(fl, STAGE_WRITE);
	return bytes;
}

static int fake_sync(void *ctx, enum pp_sync_call call, int64_t *os_code)
{
	struct fake_lane *fl = ctx;
	struct fake *fake = fl->fake;

	assert_false(fl->failed);
	assert_false(fake->any_failed);
	assert_int_equal(call, fake->method->sync);
	assert_int_not_equal(call, PP_SYNC_NONE);
	assert_false(pp_workload_record_files(fake->layout.workload));
	/* M2.2, M2.5: once a group, after the whole of it, and a group never spans a lap. */
	assert_int_equal(fl->written % fake->layout.group, 0);
	assert_int_equal(fl->written - fl->synced, fake->layout.group);
	fl->syncs++;
	if (++fake->calls == fake->fail_at && fake->fault != FAULT_NONE) {
		fl->failed = fake->any_failed = true;
		*os_code = ENOSPC;
		return -1;
	}
	fl->synced = fl->written;
	return 0;
}

static uint64_t offset_of(const struct fake_lane *fl, uint64_t seq)
{
	const struct pp_layout *l = &fl->fake->layout;

	return pp_layout_offset(l, fl->lane.lane, pp_layout_slot(l, fl->lane.lane, seq));
}

/* M2.2: once for every file of the group, and only after the whole group is written. */
static int fake_sync_record(void *ctx, enum pp_sync_call call, uint64_t offset, int64_t *os_code)
{
	struct fake_lane *fl = ctx;
	uint64_t seq = fl->file_synced + 1;

	assert_true(pp_workload_record_files(fl->fake->layout.workload));
	assert_int_equal(call, fl->fake->method->sync);
	assert_int_not_equal(call, PP_SYNC_NONE);
	assert_int_equal(fl->written % fl->fake->layout.group, 0);
	assert_true(seq <= fl->written);
	assert_int_equal(offset, offset_of(fl, seq));
	if (fails_now(fl, os_code))
		return -1;
	fl->file_synced = seq;
	fl->syncs += seq == fl->written;
	reached(fl, STAGE_SYNC);
	return 0;
}

/* M4.5: a name is given only to what has been synced, if the method syncs. */
static int fake_rename(void *ctx, uint64_t offset, int64_t *os_code)
{
	struct fake_lane *fl = ctx;
	uint64_t seq = fl->renamed + 1;

	assert_true(pp_workload_renames(fl->fake->layout.workload));
	assert_true(seq <= fl->written);
	if (!in_write(fl->fake))
		assert_int_equal(fl->file_synced, fl->written);
	assert_int_equal(offset, offset_of(fl, seq));
	if (fails_now(fl, os_code))
		return -1;
	fl->renamed = seq;
	reached(fl, STAGE_RENAME);
	return 0;
}

/* The folder last, once a group, and never for a workload or a method that leaves it alone. */
static int fake_folder(void *ctx, int64_t *os_code)
{
	struct fake_lane *fl = ctx;

	assert_true(folder_too(fl->fake));
	if (!in_write(fl->fake))
		assert_int_equal(fl->file_synced, fl->written);
	if (pp_workload_renames(fl->fake->layout.workload))
		assert_int_equal(fl->renamed, fl->written);
	assert_true(fl->synced < fl->written);
	if (fails_now(fl, os_code))
		return -1;
	reached(fl, STAGE_FOLDER);
	return 0;
}

static int64_t fake_now(void *ctx)
{
	return ((struct fake_lane *)ctx)->fake->now_ns += 1000;
}

static void fake_ack(void *ctx, uint32_t lane, uint64_t first, uint64_t last)
{
	struct fake *fake = ctx;
	struct fake_lane *fl = &fake->lanes[lane];

	assert_false(fake->any_failed);                 /* M2.3, in any lane */
	assert_int_equal(atomic_load(&fake->run.state), PP_RUN_RUNNING);
	assert_true(last <= fl->synced);                /* never ahead of a sync that returned */
	assert_int_equal(first, fl->acked + 1);         /* no gap, no repetition */
	assert_int_equal(last - first + 1, in_write(fake) ? 1 : fake->layout.group);
	fl->acked = last;
	fl->acks++;
	/* The echo of a fast listener: inside the ack. */
	if (fake->echo_at_once)
		assert_int_equal(pp_lane_echo(&fl->lane, last, NULL), 0);
}

static void fake_init(struct fake *fake, const char *method, enum pp_workload workload,
	uint32_t group)
{
	static const struct pp_run_id id = { "lane test run id" };
	struct pp_lane_peer peer = { fake, fake_ack };
	uint32_t i;

	memset(fake, 0, sizeof(*fake));
	fake->method = pp_method_find(method);
	assert_non_null(fake->method);
	assert_int_equal(pp_layout_init(&fake->layout, workload, LANES, group, REC_BYTES, 512, false, 0,
		(uint64_t)LANES * SLOTS * REC_BYTES, NULL), 0);
	pp_histogram_init(&fake->latency);
	fake->echo_at_once = true;
	for (i = 0; i < LANES; i++) {
		fake->lanes[i].fake = fake;
		fake->layout.base_slots[i] = pp_workload_grows(workload) ? 3 : 0;
	}
	for (i = 0; i < LANES; i++) {
		struct pp_lane_io io = { .ctx = &fake->lanes[i], .write = fake_write,
			.sync = fake_sync, .now_ns = fake_now, .sync_record = fake_sync_record,
			.rename_record = fake_rename, .sync_folder = fake_folder };

		pp_lane_init(&fake->lanes[i].lane, i, &fake->layout, fake->method, &id, 0, &io, &peer,
			&fake->run, fake->lanes[i].buf, &fake->latency);
	}
}

/* Steps the lanes in turn until all have ended or made `steps` steps. */
static void run_all(struct fake *fake, int steps)
{
	int i, lane;

	for (i = 0; i < steps; i++)
		for (lane = 0; lane < LANES; lane++)
			pp_lane_step(&fake->lanes[lane].lane);
}

static void check_message(const struct fake_lane *fl, enum fault fault)
{
	struct pp_error err = { 0 };
	const struct pp_lane_failure *f = &fl->lane.failure;
	const char *call = f->call;
	bool writes;

	assert_non_null(call);
	writes = strcmp(call, "write") == 0 || strcmp(call, "create") == 0;
	assert_int_equal(pp_lane_failure_error(&fl->lane, &err), -1);
	assert_int_equal(err.class, PP_ERR_SYSTEM);
	assert_non_null(strstr(err.text, call));
	if (writes && fault == FAULT_SHORT) {
		assert_int_equal(f->bytes, REC_BYTES / 2);
		assert_non_null(strstr(err.text, "short "));
		assert_non_null(strstr(err.text, "512 of 1024 bytes"));
	} else {
		assert_int_equal(err.os_code, writes ? EIO : ENOSPC);
		assert_non_null(strstr(err.text, strerror((int)err.os_code)));
	}
	if (strcmp(call, "rename") == 0)
		assert_int_equal(f->seq, fl->renamed + 1);
	else if (writes)
		assert_int_equal(f->seq, fl->written + 1);
	else if (pp_workload_record_files(fl->fake->layout.workload) &&
		strcmp(call, "fsync of the folder") != 0)
		assert_int_equal(f->seq, fl->file_synced + 1);
	else
		assert_int_equal(f->seq, fl->written);
}

/* Returns false once the run made no call numbered fail_at. */
static bool fault_case(const char *method, enum pp_workload workload, uint32_t group,
	enum fault fault, uint64_t fail_at)
{
	struct fake *fake = malloc(sizeof(*fake));
	uint64_t acks[LANES];
	int lane, failed = 0, steps = (int)(3 * SLOTS);
	bool hit;

	fake_init(fake, method, workload, group);
	fake->fault = fault;
	fake->fail_at = fail_at;
	run_all(fake, steps);
	hit = fake->any_failed;
	for (lane = 0; hit && lane < LANES; lane++) {
		struct fake_lane *fl = &fake->lanes[lane];

		acks[lane] = fl->acks;
		assert_int_equal(fl->lane.status, fl->failed ? PP_LANE_FAILED : PP_LANE_STOPPED);
		if (fl->failed) {
			failed++;
			assert_true(fl->lane.failure.first);
			check_message(fl, fault);
		} else {
			assert_int_equal(pp_lane_failure_error(&fl->lane, NULL), 0);
		}
	}
	/* Ended is ended: more steps do nothing, in the failing lane and in its sibling. */
	run_all(fake, 4);
	for (lane = 0; hit && lane < LANES; lane++)
		assert_int_equal(fake->lanes[lane].acks, acks[lane]);
	assert_int_equal(failed, hit);
	assert_int_equal(atomic_load(&fake->run.state), hit ? PP_RUN_FAILED : PP_RUN_RUNNING);
	free(fake);
	return hit;
}

static void test_fault_walk(void **state)
{
	static const struct { const char *method; uint32_t group; } rows[] = {
		{ "fdatasync", 1 }, { "fdatasync", 4 }, { "fsync (direct)", 2 },
		{ "open_datasync (direct)", 1 }, { "open_sync", 4 }, { "write", 1 }, { "direct", 2 },
	};
	static const enum fault faults[] = { FAULT_ERROR, FAULT_SHORT };
	size_t i, f;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (f = 0; f < 2; f++) {
			uint64_t n = 1;

			/* An append run ends by itself, so the walk has an end too. */
			while (fault_case(rows[i].method, PP_APPEND, rows[i].group, faults[f], n))
				n += n < 64 || n > 1000 ? 1 : 7;
			assert_true(n > SLOTS);
			for (n = 1; n < 40; n++)
				assert_true(fault_case(rows[i].method, PP_OVERWRITE, rows[i].group,
					faults[f], n));
		}
	}
}

/* The same walk where every slot is a file: no ack before file, name and folder are synced. */
static void test_fault_walk_of_files(void **state)
{
	static const struct { const char *method; enum pp_workload workload; uint32_t group; } rows[] = {
		{ "fdatasync", PP_CREATE, 1 }, { "fsync", PP_CREATE, 4 }, { "write", PP_CREATE, 2 },
		{ "open_datasync (direct)", PP_CREATE, 3 }, { "fsync", PP_CREATE_NODIR, 2 },
		{ "fdatasync", PP_RENAME, 1 }, { "fsync (direct)", PP_RENAME, 4 },
		{ "open_sync", PP_RENAME, 1 }, { "direct", PP_RENAME, 2 },
		{ "fdatasync", PP_FALLOCATED, 2 },
	};
	static const enum fault faults[] = { FAULT_ERROR, FAULT_SHORT };
	size_t i, f;
	uint64_t n;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (f = 0; f < 2; f++)
			for (n = 1; n < 60; n++)
				assert_true(fault_case(rows[i].method, rows[i].workload, rows[i].group,
					faults[f], n));
}

/* M2.2: whose folder is synced: not a control's, not create-nodir's. */
static void test_files_of_a_group(void **state)
{
	static const struct {
		const char *method;
		enum pp_workload workload;
		unsigned steps; /* of a group of 3, its ack included */
	} rows[] = {
		{ "fdatasync", PP_CREATE, 3 + 3 + 1 + 1 }, { "fsync", PP_CREATE_NODIR, 3 + 3 + 1 },
		{ "fdatasync", PP_RENAME, 3 + 3 + 3 + 1 + 1 }, { "fsync", PP_FALLOCATED, 3 + 1 + 1 },
		{ "write", PP_CREATE, 3 * (1 + 1) }, { "write", PP_RENAME, 3 * (1 + 1 + 1) },
		{ "open_sync", PP_CREATE, 3 * (1 + 1 + 1) }, { "open_sync", PP_RENAME, 3 * (1 + 1 + 1 + 1) },
	};
	struct fake *fake = malloc(sizeof(*fake));
	unsigned step;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake_init(fake, rows[i].method, rows[i].workload, 3);
		for (step = 0; step < rows[i].steps; step++) {
			assert_true(fake->lanes[0].acked < 3);
			assert_int_equal(pp_lane_step(&fake->lanes[0].lane), PP_LANE_MORE);
		}
		assert_int_equal(fake->lanes[0].acked, 3);
	}
	free(fake);
}

static void test_groups_and_laps(void **state)
{
	static const uint32_t groups[] = { 1, 3, 7, 64 };
	struct fake *fake = malloc(sizeof(*fake));
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		fake_init(fake, "fdatasync", PP_OVERWRITE, groups[i]);
		run_all(fake, 6 * SLOTS); /* more than one lap */
		assert_true(fake->lanes[0].acked > fake->layout.slots);
		assert_int_equal(fake->lanes[0].syncs, fake->lanes[0].acks + (fake->lanes[0].synced !=
			fake->lanes[0].acked));
		assert_true(fake->latency.count >= fake->lanes[0].acks);
	}
	free(fake);
}

/* M2.4: without an echo a lane stops W records on, and goes on by exactly what the echo frees. */
static void test_window(void **state)
{
	static const struct { const char *method; uint32_t group, window; } rows[] = {
		{ "open_datasync", 1, 64 }, { "fdatasync", 1, 64 }, { "fdatasync", 8, 64 },
		{ "fdatasync", 32, 64 }, { "fdatasync", 40, 80 }, { "fdatasync", 64, 128 },
	};
	struct fake *fake = malloc(sizeof(*fake));
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_lane *lane = &fake->lanes[0].lane;
		struct pp_error err = { 0 };

		fake_init(fake, rows[i].method, PP_OVERWRITE, rows[i].group);
		fake->echo_at_once = false;
		run_all(fake, 500);
		assert_int_equal(lane->status, PP_LANE_BLOCKED);
		assert_false(pp_lane_may_go_on(lane));
		assert_int_equal(atomic_load(&lane->issued), rows[i].window);

		assert_int_equal(pp_lane_echo(lane, fake->lanes[0].acked + 1, &err), -1);
		assert_int_equal(err.class, PP_ERR_PEER);
		assert_false(pp_lane_may_go_on(lane));

		assert_int_equal(pp_lane_echo(lane, 1, &err), 0);
		assert_int_equal(pp_lane_echo(lane, 0, &err), 0); /* goes back: ignored */
		assert_true(pp_lane_may_go_on(lane));
		run_all(fake, 500);
		assert_int_equal(atomic_load(&lane->issued), rows[i].window + 1);
		assert_int_equal(lane->status, PP_LANE_BLOCKED);
		/* The end frees whoever waits. */
		atomic_store(&fake->run.state, PP_RUN_STOPPING);
		assert_true(pp_lane_may_go_on(lane));
		assert_int_equal(pp_lane_step(lane), PP_LANE_STOPPED);
	}
	free(fake);
}

/* M7.3: groups begin no sooner than the pace says, a pause is not followed by a burst. */
static void test_pace(void **state)
{
	static const struct { const char *method; uint32_t group; } rows[] = {
		{ "direct", 1 }, { "fdatasync", 8 },
	};
	struct fake *fake = malloc(sizeof(*fake));
	struct pp_lane *lane = &fake->lanes[0].lane;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t began;
		int turn;

		fake_init(fake, rows[i].method, PP_OVERWRITE, rows[i].group);
		lane->pace_ns = 1000000;
		fake->now_ns = began = 5000;
		for (turn = 1; turn <= 20; turn++) {
			while (pp_lane_step(lane) == PP_LANE_MORE)
				;
			assert_int_equal(lane->status, PP_LANE_EARLY);
			assert_int_equal(atomic_load(&lane->acked), turn * rows[i].group);
			assert_in_range(lane->due_ns, began + turn * 1000000, began + turn * 1000000 + 5000);
			fake->now_ns = lane->due_ns - 1001; /* fake_now goes on by 1000 */
			assert_int_equal(pp_lane_step(lane), PP_LANE_EARLY);
			fake->now_ns = lane->due_ns - 1000;
		}
		/* An hour late: one group at once, the next a full time later. */
		fake->now_ns += 3600LL * 1000000000;
		began = fake->now_ns;
		while (pp_lane_step(lane) == PP_LANE_MORE)
			;
		assert_int_equal(atomic_load(&lane->acked), turn * rows[i].group);
		assert_true(lane->due_ns >= began + 1000000);
		/* The end of the run is heard while a lane is early. */
		atomic_store(&fake->run.state, PP_RUN_STOPPING);
		assert_int_equal(pp_lane_step(lane), PP_LANE_STOPPED);
	}
	free(fake);
}

/* A run that ends between a sync and its ack sends no ack. */
static void test_no_ack_after_stop(void **state)
{
	struct fake *fake = malloc(sizeof(*fake));
	struct pp_lane *lane = &fake->lanes[0].lane;

	(void)state;
	fake_init(fake, "fsync", PP_OVERWRITE, 1);
	assert_int_equal(pp_lane_step(lane), PP_LANE_MORE); /* write */
	assert_int_equal(pp_lane_step(lane), PP_LANE_MORE); /* sync */
	assert_int_equal(fake->lanes[0].synced, 1);
	atomic_store(&fake->run.state, PP_RUN_STOPPING);
	assert_int_equal(pp_lane_step(lane), PP_LANE_STOPPED);
	assert_int_equal(fake->lanes[0].acks, 0);
	free(fake);
}

static void test_append_full(void **state)
{
	struct fake *fake = malloc(sizeof(*fake));
	int lane;

	(void)state;
	fake_init(fake, "fdatasync", PP_APPEND, 4);
	run_all(fake, 4 * SLOTS);
	for (lane = 0; lane < LANES; lane++) {
		assert_int_equal(fake->lanes[lane].lane.status, PP_LANE_FULL);
		assert_int_equal(fake->lanes[lane].acked, pp_layout_seq_max(&fake->layout));
		assert_int_equal(fake->lanes[lane].acked, (SLOTS - 3) / 4 * 4);
	}
	assert_int_equal(atomic_load(&fake->run.state), PP_RUN_RUNNING);
	free(fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fault_walk),
		cmocka_unit_test(test_fault_walk_of_files),
		cmocka_unit_test(test_files_of_a_group),
		cmocka_unit_test(test_groups_and_laps),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_pace),
		cmocka_unit_test(test_no_ack_after_stop),
		cmocka_unit_test(test_append_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
