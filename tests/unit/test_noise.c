/* SPDX-License-Identifier: MIT
 *
 * Goal: noise that was acked and is missing proves that the cut reached its drive, and nothing else
 * does; it never is a loss of the arm (M7.5, M7.6, and what M5.4 and M5.5 make of it). Method: one
 * good trial with a second run beside it, both from real ledgers and scans; each row changes some.
 */
#include "case_world.h"
#include "tests/janitor.h"
#include "verifier/judge.h"

#define NOISE "lost acked noise"

static const struct row {
	const char *rule;
	char noise;                /* L lost, K kept, U its ledger is not there */
	int rereads, found;        /* the first `found` of them find it */
	const char *kind, *fs;     /* NULL: mains, ext4 */
	bool by_hand, late;        /* late: acked when the machine was heard last, not before */
	char counters;             /* R rose, N stayed, 0 none */
	bool proves;
	enum pp_trial_outcome outcome;
	const char *reason, *witness;
} rows[] = {
	{ "M7.6 lost noise is no loss of the arm", 'L', 3, .proves = true, .witness = NOISE,
		.outcome = PP_TRIAL_CLEAN, .reason = "" },
	{ "M7.6 kept noise says nothing", 'K', .witness = "", .outcome = PP_TRIAL_CLEAN, .reason = "" },
	{ "M4.7 two re-reads are no proof", 'L', 2, .witness = "", .outcome = PP_TRIAL_CLEAN,
		.reason = "" },
	{ "M4.7 one that finds it", 'L', 3, .found = 1, .witness = "", .outcome = PP_TRIAL_CLEAN,
		.reason = "" },
	{ "M7.6 acked no earlier than the last frame", 'L', 3, .late = true, .witness = "",
		.kind = "dc", .outcome = PP_TRIAL_VOID,
		.reason = "no proof that a cut of DC reached this drive" },
	{ "M7.2 btrfs may have forgotten it itself", 'L', 3, .fs = "btrfs", .witness = "",
		.outcome = PP_TRIAL_CLEAN, .reason = "" },
	{ "M1.3 noise that never was", 'U', .witness = "", .outcome = PP_TRIAL_VOID,
		.reason = "the arm's noise was not there" },
	{ "M5.4 DC, lost noise", 'L', 3, .kind = "dc", .proves = true, .witness = NOISE,
		.outcome = PP_TRIAL_CLEAN, .reason = "" },
	{ "M5.4 DC, kept noise", 'K', .kind = "dc", .witness = "", .outcome = PP_TRIAL_VOID,
		.reason = "no proof that a cut of DC reached this drive" },
	{ "M5.5 by hand, lost noise", 'L', 3, .by_hand = true, .proves = true, .witness = NOISE,
		.outcome = PP_TRIAL_CLEAN, .reason = "" },
	{ "M5.5 by hand, kept noise", 'K', .by_hand = true, .witness = "", .outcome = PP_TRIAL_VOID,
		.reason = "cut by hand, and no counter of the drive says so" },
	{ "M7.5 the drive's own counters come first", 'L', 3, .counters = 'R', .proves = true,
		.witness = "its own counters", .outcome = PP_TRIAL_CLEAN, .reason = "" },
	{ "M5.3 power cycles stayed, whatever the noise", 'L', 3, .counters = 'N', .proves = true,
		.witness = NOISE, .outcome = PP_TRIAL_VOID, .reason = "drive kept its power" },
};

static char folder[] = "/tmp/pp-noise-XXXXXX";
static char path[64];

static int set_up(void **state)
{
	(void)state;
	if (!janitor_mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/l", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return rmdir(folder);
}

static void load_ledger(const struct world *w, bool flushes, struct pp_ledger_data *ledger)
{
	struct pp_error err = { 0 };

	case_ledger(path, w, -10, flushes);
	assert_int_equal(pp_ledger_load(path, ledger, &err), 0);
	unlink(path);
}

/* A second world beside the first, whose record CASE_LOST a drive has forgotten. */
static void build_noise(const struct row *r, struct pp_case *c, struct world *w)
{
	int i;

	case_world(w, r->noise == 'L');
	c->run.noise = c->run.noise_run.scanned = true;
	c->run.noise_run.run_id = w->run;
	c->run.noise_run.layout = w->layout;
	c->run.noise_run.rereads = (uint32_t)r->rereads;
	load_ledger(w, false, &c->noise_ledger);
	c->has_noise_ledger = r->noise != 'U';
	c->noise_base = w->base;
	assert_int_equal(world_judge(w), 0);
	c->noise_scan = w->scan;
	for (i = 0; i < r->rereads; i++) {
		if (i == r->rereads - r->found)
			world_put(w, 0, CASE_LOST);
		world_reread(w);
		c->noise_reread[i] = w->reread[i];
	}
}

static void build(const struct row *r, struct pp_case *c, struct world *w)
{
	memset(c, 0, sizeof(*c));
	case_world(w, false);
	case_cut(&c->cut);
	case_run(&c->run, w);
	load_ledger(w, true, &c->ledger);
	c->has_ledger = true;
	c->cut.by_hand = r->by_hand;
	c->cut.off_verified = !r->by_hand;
	if (r->kind)
		strcpy(c->cut.cut_kind, r->kind);
	if (r->fs)
		strcpy(c->run.fs, r->fs);
	if (r->counters) {
		c->before.has_power_cycles = c->after.has_power_cycles = true;
		c->before.power_cycles = 5;
		c->after.power_cycles = r->counters == 'R' ? 6 : 5;
	}
	c->base = w->base;
	assert_int_equal(world_judge(w), 0);
	c->scan = w->scan;
}

/* The ack of the lost record and the machine's last frame are one. */
static void ack_late(struct pp_case *c, int64_t t_last_ns)
{
	size_t i;

	for (i = 0; i < c->noise_ledger.count; i++)
		if (c->noise_ledger.entries[i].type == PP_LEDGER_ACK &&
			c->noise_ledger.entries[i].a == CASE_LOST)
			c->noise_ledger.entries[i].t_ns = t_last_ns;
}

static void test_rows(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct pp_counter_history history = { .live = false };
		struct pp_witness witness = { .t_last_ns = 0 };
		struct pp_case *c = malloc(sizeof(*c));
		struct world *w = calloc(2, sizeof(*w));
		struct pp_error err = { 0 };
		struct pp_judgement j;

		build(r, c, &w[0]);
		build_noise(r, c, &w[1]);
		pp_witness_add(&witness, &c->ledger);
		if (r->late)
			ack_late(c, witness.t_last_ns);
		if (pp_judge_case(c, &witness, &history, &j, &err) != 0)
			fail_msg("%s: %s", r->rule, err.text);
		if (j.trial.outcome != r->outcome || strcmp(j.trial.reason, r->reason) != 0 ||
			j.trial.noise_lost != r->proves || j.trial.lost_acked || j.trial.records_lost ||
			j.trial.drive_lost_power != (r->witness[0] != '\0') ||
			strcmp(j.trial.drive_power_witness, r->witness) != 0 || !j.trial.key.noise)
			fail_msg("%s: %s '%s', noise lost %d, lost %d, power by '%s'", r->rule,
				pp_trial_outcome_name(j.trial.outcome), j.trial.reason, j.trial.noise_lost,
				j.trial.lost_acked, j.trial.drive_power_witness);
		pp_judgement_release(&j);
		pp_ledger_data_release(&c->ledger);
		pp_ledger_data_release(&c->noise_ledger);
		world_release(&w[0]);
		world_release(&w[1]);
		free(w);
		free(c);
	}
}

/* run.json carries the noise's run, and is not taken with a hole in it. */
static void test_facts(void **state)
{
	struct pp_error err = { 0 };
	struct pp_run_facts run, back;
	struct world *w = calloc(1, sizeof(*w));

	(void)state;
	case_world(w, false);
	case_run(&run, w);
	run.noise = run.noise_run.scanned = true;
	run.noise_run.rereads = 3;
	run.noise_run.run_id = w->before;
	run.noise_run.layout = w->layout;
	strcpy(run.noise_run.base, "setups/0001/S1/scan-noise.bin");
	assert_int_equal(pp_run_facts_save(&run, path, &err), 0);
	assert_int_equal(pp_run_facts_load(&back, path, &err), 0);
	assert_memory_equal(&run, &back, sizeof(run));
	run.noise_run.layout.slots = 1;
	assert_int_equal(pp_run_facts_save(&run, path, &err), 0);
	assert_int_equal(pp_run_facts_load(&back, path, &err), -1);
	assert_non_null(strstr(err.text, "impossible layout"));
	unlink(path);
	world_release(w);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows), cmocka_unit_test(test_facts) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
