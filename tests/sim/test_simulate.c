/* SPDX-License-Identifier: MIT
 *
 * Goal: over every row of the catalogue the judge says what is true: an honest drive is never
 * accused, and of a liar every cut that destroyed data up to D is called a loss, of the right slots,
 * classes and ages (M4, M5, M8.1); and a campaign's verdict is worth what its criterion says (M7.3).
 * Method: a few thousand simulated cuts with a fresh seed, which is printed; the simulator knows the
 * truth. The rest of the hundreds of thousands are scripts/torture's.
 *
 * Again with a known seed: test_simulate SEED [CUTS OF EACH DRIVE]
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/core/record.h"
#include "src/lab/simulate.h"

static uint64_t seed;
static uint64_t cuts_each = 60;

static struct pp_sim_plan plan_for(const char *behaviour)
{
	struct pp_sim_plan plan = { .behaviour = pp_sim_drive_behaviour_find(behaviour),
		.workload = PP_WORKLOADS, .kind = -1, .records = 300, .net_delay_ns = -1,
		.net_loss_ns = -1, .survive_pct = 101, .barriers = true, .io_error_pct = 4,
		.cuts_a_rig = 12 };

	assert_non_null(plan.behaviour);
	return plan;
}

static bool watch(void *ctx, const struct pp_sim_plan *plan, uint64_t rig_seed,
	const struct pp_sim_outcome *o)
{
	const struct pp_method *method = pp_method_find(o->trial.key.method);

	(void)ctx;
	/* M8.2: no liar is excused by a kernel that did ask. */
	if (plan->barriers && !method->control && strstr(o->trial.key.policy, "write back") &&
		o->trial.asked == PP_ASKED_NOT)
		fail_msg("drive %s, rig with seed %" PRIu64 ", cut %u: %.2f flushes a sync of %s",
			plan->behaviour->name, rig_seed, o->cut, o->trial.flushes_per_sync, method->name);
	if (o->word != PP_SIM_AGREES)
		fail_msg("drive %s, rig with seed %" PRIu64 ", cut %u: %s: %s", plan->behaviour->name,
			rig_seed, o->cut, pp_sim_word_name(o->word), o->difference);
	return true;
}

static struct pp_sim_tally run(const struct pp_sim_plan *plan, uint64_t cuts)
{
	struct pp_sim_tally tally = { 0 };
	struct pp_error err;

	if (pp_simulate(plan, seed, cuts, &tally, watch, NULL, &err) != 0)
		fail_msg("%s", err.text);
	return tally;
}

static void honest_drives_are_never_accused(void **state)
{
	const struct pp_sim_drive_behaviour *b;
	uint64_t failed = 0;
	size_t i;

	(void)state;
	for (i = 0; (b = pp_sim_drive_behaviour_at(i)); i++) {
		struct pp_sim_plan plan = plan_for(b->name);
		struct pp_sim_tally t;

		if (!b->honest)
			continue;
		t = run(&plan, 2 * cuts_each);
		assert_int_equal(t.lost, 0);
		failed += t.io_errors;
		/* What nobody looked at would be no proof. */
		assert_true(t.voids + t.unexposed < t.cuts / 3);
		if (!(b->flags & PP_DRIVE_FLICKERS))
			assert_int_equal(t.opens, 0);
	}
	assert_true(failed > 0); /* M2.3 */
}

static void every_workload_on_honest_drives(void **state)
{
	static const char *const names[] = { "overwrite", "append", "fallocated", "create", "rename" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct pp_sim_plan plan = plan_for("reorders");

		assert_true(pp_workload_find(names[i], &plan.workload));
		assert_int_equal(run(&plan, cuts_each / 2).lost, 0);
	}
}

static bool until_lost(void *ctx, const struct pp_sim_plan *plan, uint64_t rig_seed,
	const struct pp_sim_outcome *o)
{
	return watch(ctx, plan, rig_seed, o) && !o->lost;
}

/* Until it has shown itself: a lie that this never sees would be a lie that it cannot see. */
static void every_lie_is_caught(void **state)
{
	const struct pp_sim_drive_behaviour *b;
	struct pp_error err;
	size_t i;

	(void)state;
	for (i = 0; (b = pp_sim_drive_behaviour_at(i)); i++) {
		struct pp_sim_plan plan = plan_for(b->name);
		struct pp_sim_tally t;

		if (b->honest)
			continue;
		plan.records = 150;
		if (b->flags & PP_DRIVE_TEARS_ATOMIC)
			plan.method = pp_method_find("RWF_ATOMIC+RWF_DSYNC (direct)");
		t = run(&plan, cuts_each / 2);
		if (t.lost == 0)
			assert_int_equal(pp_simulate(&plan, seed + 1000, 6000, &t, until_lost, NULL,
				&err), 0);
		if (t.lost == 0)
			fail_msg("drive %s lost nothing in %" PRIu64 " cuts from seed %" PRIu64, b->name,
				t.cuts, seed);
	}
}

/* Each lie of the cut itself shows as the class that its physics makes (M4.4). */
static void classes_are_those_of_the_physics(void **state)
{
	static const struct {
		const char *drive;
		enum pp_loss_class class;
	} rows[] = {
		{ "ignores-flush", PP_LOSS_STALE }, { "shorn", PP_LOSS_TORN },
		{ "tears-sector", PP_LOSS_CORRUPT }, { "rots", PP_LOSS_CORRUPT },
		{ "flies", PP_LOSS_MISDIRECTED }, { "rolls-back", PP_LOSS_STALE },
		{ "old-epoch", PP_LOSS_STALE }, { "paired-pages", PP_LOSS_UNREADABLE },
		{ "third-gone", PP_LOSS_UNREADABLE }, { "third-blank", PP_LOSS_BLANK },
		{ "dies", PP_LOSS_DEVICE_GONE },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_sim_plan plan = plan_for(rows[i].drive);
		struct pp_sim_tally t;

		plan.workload = PP_OVERWRITE;
		plan.method = pp_method_find("fdatasync");
		plan.record_bytes = 8192;
		/* A capacious cache behind a slow medium, nothing of which survives. */
		plan.cache_bytes = 8 << 20;
		plan.survive_pct = 0;
		plan.records = 200;
		t = run(&plan, cuts_each / 2 < 24 ? 24 : cuts_each / 2);
		if (!t.of[rows[i].class])
			fail_msg("drive %s never lost a record as %s", rows[i].drive,
				pp_loss_class_name(rows[i].class));
	}
}

/* The controls lose on an honest drive, and what they lose is told exactly (M7). */
static void controls_lose(void **state)
{
	static const char *const names[] = { "write", "direct" };
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct pp_sim_plan plan = plan_for("honest");
		struct pp_sim_tally t;

		plan.method = pp_method_find(names[i]);
		plan.record_bytes = 4096;
		t = run(&plan, 2 * cuts_each);
		assert_true(t.lost > t.cuts / 10);
	}
}

/* M2.5: what a small write takes along in its block is collateral, and no loss. */
static void blocks_are_shared(void **state)
{
	struct pp_sim_plan plan = plan_for("spoils-block");
	struct pp_sim_tally t;

	(void)state;
	plan.method = pp_method_find("open_datasync (direct)");
	plan.workload = PP_OVERWRITE;
	plan.kind = PP_TARGET_RAW;
	plan.record_bytes = 512;
	t = run(&plan, 2 * cuts_each);
	assert_int_equal(t.lost, 0);
	assert_true(t.collateral > 0);
	plan.record_bytes = 1536; /* which straddles blocks */
	assert_int_equal(run(&plan, cuts_each).lost, 0);
}

/* M4.5: torn where untorn is promised is a loss; the honest drive writes its units whole. */
static void atomic_units_are_whole(void **state)
{
	static const char *const names[] = { "honest", "reorders", "unreadable-in-flight",
		"tears-atomic" };
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		struct pp_sim_plan plan = plan_for(names[i]);
		struct pp_sim_tally t;

		plan.method = pp_method_find("RWF_ATOMIC+RWF_DSYNC (direct)");
		plan.workload = PP_OVERWRITE;
		plan.record_bytes = 8192;
		plan.records = 100;
		plan.survive_pct = 50;
		t = run(&plan, cuts_each < 60 ? 60 : cuts_each);
		assert_true((t.lost > 0) == (i == 3));
		assert_int_equal(t.torn_only, t.lost);
	}
}

/* M7.6: lost noise proves the cut of an honest drive, costs no arm anything, and is never imagined. */
static void noise_proves_the_cut(void **state)
{
	static const char *const names[] = { "honest", "protected", "ignores-both" };
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		struct pp_sim_plan plan = plan_for(names[i]);
		struct pp_sim_tally t;

		plan.noise = true;
		plan.records = 100;
		plan.survive_pct = 0;
		t = run(&plan, cuts_each / 2 < 24 ? 24 : cuts_each / 2);
		assert_true((t.lost > 0) == (i == 2));
		assert_true((t.noise_seen > 0) == (i != 1));
		assert_true((t.noise_lost > 0) == (i != 1));
	}
}

/* An honest drive that is not asked loses, and is not the one to blame (M8.2). */
static bool not_asked(void *ctx, const struct pp_sim_plan *plan, uint64_t rig_seed,
	const struct pp_sim_outcome *o)
{
	uint64_t *seen = ctx;

	if (o->trial.outcome == PP_TRIAL_LOSS)
		assert_int_not_equal(o->trial.asked, PP_ASKED);
	*seen += o->trial.outcome == PP_TRIAL_LOSS && o->trial.asked == PP_ASKED_NOT;
	return watch(ctx, plan, rig_seed, o);
}

static void no_barriers(void **state)
{
	struct pp_sim_plan plan = plan_for("honest");
	struct pp_sim_tally t = { 0 };
	struct pp_error err;
	uint64_t seen = 0;

	(void)state;
	plan.barriers = false;
	plan.records = 1000;
	plan.cuts_a_rig = 4;
	plan.kind = PP_TARGET_FILE;
	plan.method = pp_method_find("fdatasync");
	plan.cache_bytes = 8 << 20;
	plan.survive_pct = 0;
	assert_int_equal(pp_simulate(&plan, seed, cuts_each, &t, not_asked, &seen, &err), 0);
	assert_true(t.lost > t.cuts / 4);
	/* Runs of a heartbeat or two cannot tell; the others must. */
	assert_true(seen > t.lost / 4);
}

/*
 * M7.3: a control that is held to the arm's pace writes as fast as the arm; and its losses speak for
 * the arm, which those of a quicker one do not.
 */
static void controls_keep_pace(void **state)
{
	struct pp_sim_plan plan = plan_for("honest");
	struct pp_sim_campaigns paced, quick;
	struct pp_criterion criterion;
	struct pp_sim_tally t = { 0 };
	struct pp_error err;

	(void)state;
	assert_int_equal(pp_criterion_parse("95/90", &criterion, &err), 0);
	plan.method = pp_method_find("fdatasync");
	plan.workload = PP_OVERWRITE;
	plan.kind = PP_TARGET_RAW;
	plan.record_bytes = 4096;
	plan.lanes = plan.group = 1;
	plan.cache_bytes = 8 << 20;
	plan.survive_pct = 0;
	plan.run_ms = 120;
	assert_int_equal(pp_sim_campaign(&plan, &criterion, seed, 3, &quick, &err), 0);
	plan.paced_control = true;
	assert_int_equal(pp_sim_campaign(&plan, &criterion, seed, 3, &paced, &err), 0);
	assert_int_equal(paced.safe, 3);
	assert_int_equal(quick.safe, 0);
	assert_int_equal(quick.blind, 3);
	plan.io_error_pct = 0;
	plan.method = pp_method_find("direct");
	plan.pace_per_s = 2000;
	assert_int_equal(pp_simulate(&plan, seed, 4, &t, watch, NULL, &err), 0);
	assert_true((double)t.records / (double)t.simulated_ns * 1e9 < 2100);
	assert_true((double)t.records / (double)t.simulated_ns * 1e9 > 1700);
}

struct digest {
	XXH3_state_t *state;
	uint64_t lines;
};

static void add_line(void *ctx, const char *line)
{
	struct digest *d = ctx;

	XXH3_64bits_update(d->state, line, strlen(line));
	d->lines++;
}

static uint64_t digest_of(uint64_t rig_seed)
{
	struct pp_sim_plan plan = plan_for("old-epoch");
	struct digest d = { XXH3_createState(), 0 };
	struct pp_error err;
	uint64_t sum;

	XXH3_64bits_reset(d.state);
	assert_int_equal(pp_sim_replay(&plan, rig_seed, add_line, &d, &err), 0);
	assert_true(d.lines > 100);
	sum = XXH3_64bits_digest(d.state);
	XXH3_freeState(d.state);
	return sum;
}

static void a_seed_gives_the_same_bytes(void **state)
{
	(void)state;
	assert_int_equal(digest_of(seed), digest_of(seed));
	assert_int_not_equal(digest_of(seed), digest_of(seed + 1));
}

/* M7.3, M8.3: honest drives pass, drives that ignore the method do not. */
static void campaigns(void **state)
{
	struct pp_sim_plan plan = plan_for("honest");
	struct pp_sim_campaigns r;
	struct pp_criterion criterion;
	struct pp_error err;
	uint64_t n = cuts_each / 5;

	(void)state;
	assert_int_equal(pp_criterion_parse("95/90", &criterion, &err), 0);
	plan.method = pp_method_find("fdatasync");
	plan.workload = PP_OVERWRITE;
	plan.record_bytes = 4096;
	plan.cache_bytes = 8 << 20;
	plan.survive_pct = 0;
	plan.records = 100;
	assert_int_equal(pp_sim_campaign(&plan, &criterion, seed, n, &r, &err), 0);
	assert_true(r.safe * 6 >= n * 5);
	assert_int_equal(r.unsafe, 0);
	plan.behaviour = pp_sim_drive_behaviour_find("ignores-flush");
	assert_int_equal(pp_sim_campaign(&plan, &criterion, seed, n, &r, &err), 0);
	assert_int_equal(r.safe, 0);
	assert_int_equal(r.unsafe, n);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(honest_drives_are_never_accused),
		cmocka_unit_test(every_workload_on_honest_drives),
		cmocka_unit_test(every_lie_is_caught),
		cmocka_unit_test(classes_are_those_of_the_physics),
		cmocka_unit_test(controls_lose),
		cmocka_unit_test(blocks_are_shared),
		cmocka_unit_test(atomic_units_are_whole),
		cmocka_unit_test(noise_proves_the_cut),
		cmocka_unit_test(no_barriers),
		cmocka_unit_test(a_seed_gives_the_same_bytes),
		cmocka_unit_test(campaigns),
		cmocka_unit_test(controls_keep_pace),
	};
	struct pp_run_id id;

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	else if (pp_run_id_draw(&id, NULL) == 0)
		seed = (uint64_t)id.bytes[0] << 24 | id.bytes[1] << 16 | id.bytes[2] << 8 | id.bytes[3];
	if (argc > 2)
		cuts_each = strtoull(argv[2], NULL, 10);
	fprintf(stderr, "seed %" PRIu64 "\n", seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
