/* SPDX-License-Identifier: MIT
 *
 * Goal: what proof, counters, oracle and aftermath say of a trial makes the right outcome, and no
 * trouble after a proven cut is ever void (M5.3 to M5.6, M6, M8.1). Method: one good trial, from
 * real ledgers and scans; each row changes some of it.
 */
#include "case_world.h"
#include "tests/janitor.h"
#include "verifier/judge.h"

struct row {
	const char *rule;
	enum pp_trial_outcome outcome;
	const char *reason;
	bool lose;                 /* a record of the target */
	int rereads;               /* of what looks lost; the first `found` of them find it */
	int found;
	enum pp_aftermath after;   /* PENDING stands for SCANNED unless pending is set */
	bool pending;
	bool failed, unproven, no_boot, no_ledger, cut_short, no_flush;
	const char *kind;          /* of the cut; NULL mains */
	char counters;             /* R rose, N power cycles stayed, 0 none */
	int last_ack_ms;           /* 0: -10 */
	const char *method;
	bool unexposed, lost_acked;
	bool torn;                 /* a record in flight */
	bool untorn_broken;        /* that must be said */
	int asked;                 /* enum pp_asked + 1; 0: whatever */
	bool raw, windows;
	int via;                   /* flush: 1 it must say so, -1 it must not, 0 whatever */
	size_t beats;              /* only so many of the last heartbeats; 0: all */
};

static const struct row rows[] = {
	{ .rule = "M8.1 clean", .outcome = PP_TRIAL_CLEAN, .reason = "" },
	{ .rule = "M8.2 loss", .lose = true, .rereads = 3, .outcome = PP_TRIAL_LOSS, .reason = "",
		.lost_acked = true },
	{ .rule = "M4.7 two re-reads do not convict", .lose = true, .rereads = 2,
		.outcome = PP_TRIAL_OPEN, .reason = "losses were not read again three times",
		.lost_acked = true },
	{ .rule = "M4.7 no re-read does not", .lose = true, .outcome = PP_TRIAL_OPEN,
		.reason = "losses were not read again three times", .lost_acked = true },
	{ .rule = "M4.7 one that finds it", .lose = true, .rereads = 3, .found = 1,
		.outcome = PP_TRIAL_OPEN,
		.reason = "unstable: a re-read found what the first read missed" },
	{ .rule = "M5 not proven", .unproven = true, .outcome = PP_TRIAL_VOID,
		.reason = "off was not read back" },
	{ .rule = "M5.6 not proven, and data is missing", .unproven = true, .lose = true, .rereads = 3,
		.outcome = PP_TRIAL_VOID, .reason = "off was not read back", .lost_acked = true },
	{ .rule = "M5.2 a scan, and no boot", .no_boot = true, .outcome = PP_TRIAL_VOID,
		.reason = "no new boot was seen" },
	{ .rule = "M5.3 power cycles rose", .counters = 'R', .outcome = PP_TRIAL_CLEAN, .reason = "" },
	{ .rule = "M5.3 power cycles stayed", .counters = 'N', .outcome = PP_TRIAL_VOID,
		.reason = "drive kept its power" },
	{ .rule = "M5.3 they stayed, and data is missing", .counters = 'N', .lose = true, .rereads = 3,
		.outcome = PP_TRIAL_VOID, .reason = "drive kept its power", .lost_acked = true },
	{ .rule = "M5.4 DC, no counters", .kind = "dc", .outcome = PP_TRIAL_VOID,
		.reason = "no proof that a cut of DC reached this drive" },
	{ .rule = "M5.4 DC, counters rose", .kind = "dc", .counters = 'R', .outcome = PP_TRIAL_CLEAN,
		.reason = "" },
	{ .rule = "M5.4 slot, no counters", .kind = "slot", .outcome = PP_TRIAL_VOID,
		.reason = "no proof that a cut of DC reached this drive" },
	{ .rule = "M2.3 I/O error", .failed = true, .outcome = PP_TRIAL_VOID, .reason = "I/O error" },
	{ .rule = "M2.3 acks from before it are judged", .failed = true, .lose = true, .rereads = 3,
		.outcome = PP_TRIAL_VOID, .reason = "I/O error", .lost_acked = true },
	{ .rule = "M6.1 gone", .after = PP_AFTER_DEVICE_GONE, .outcome = PP_TRIAL_LOSS, .reason = "",
		.lost_acked = true },
	{ .rule = "M6.1 gone, and it counted the cut", .after = PP_AFTER_DEVICE_GONE, .counters = 'R',
		.outcome = PP_TRIAL_LOSS, .reason = "", .lost_acked = true },
	{ .rule = "M6.1 gone, and it counts nothing any more", .after = PP_AFTER_DEVICE_GONE,
		.counters = 'N', .outcome = PP_TRIAL_LOSS, .reason = "", .lost_acked = true },
	{ .rule = "M7.5 the file system is gone, and the drive counted the cut",
		.after = PP_AFTER_FS_GONE, .counters = 'R', .outcome = PP_TRIAL_LOSS, .reason = "",
		.lost_acked = true },
	{ .rule = "M5.3 the file system is gone, and the drive kept its power",
		.after = PP_AFTER_FS_GONE, .counters = 'N', .outcome = PP_TRIAL_VOID,
		.reason = "drive kept its power", .lost_acked = true },
	{ .rule = "M6.1 gone after a cut of DC", .kind = "dc", .after = PP_AFTER_DEVICE_GONE,
		.outcome = PP_TRIAL_LOSS, .reason = "", .lost_acked = true },
	{ .rule = "M6.3 file system gone", .after = PP_AFTER_FS_GONE, .outcome = PP_TRIAL_LOSS,
		.reason = "", .lost_acked = true },
	{ .rule = "M6.1 gone, the cut not proven", .after = PP_AFTER_DEVICE_GONE, .unproven = true,
		.outcome = PP_TRIAL_VOID, .reason = "off was not read back", .lost_acked = true },
	{ .rule = "M6.2 not scanned", .pending = true, .outcome = PP_TRIAL_OPEN,
		.reason = "not scanned" },
	{ .rule = "M6.2 no boot", .pending = true, .no_boot = true, .outcome = PP_TRIAL_OPEN,
		.reason = "no-boot" },
	{ .rule = "M6.3 open", .after = PP_AFTER_OPEN, .outcome = PP_TRIAL_OPEN, .reason = "why" },
	{ .rule = "no ledger", .no_ledger = true, .outcome = PP_TRIAL_VOID, .reason = "no ledger",
		.unexposed = true },
	{ .rule = "a ledger cut short is never clean", .cut_short = true, .outcome = PP_TRIAL_OPEN,
		.reason = "ledger was cut short: acks may be missing from it", .last_ack_ms = -5 },
	{ .rule = "M8.1 last ack 50 ms before the last frame", .last_ack_ms = -55,
		.outcome = PP_TRIAL_CLEAN, .reason = "" },
	{ .rule = "M8.1 and 51 ms before", .last_ack_ms = -56, .outcome = PP_TRIAL_CLEAN, .reason = "",
		.unexposed = true },
	{ .rule = "M8.4 Linux flushes after FUA to a raw device", .method = "open_datasync (direct)",
		.raw = true, .outcome = PP_TRIAL_CLEAN, .reason = "", .via = 1 },
	{ .rule = "M8.4 Windows does not", .method = "open_datasync (direct)", .raw = true,
		.windows = true, .outcome = PP_TRIAL_CLEAN, .reason = "", .via = -1 },
	{ .rule = "M8.1 pure FUA, others flushed since", .method = "open_datasync (direct)",
		.last_ack_ms = -16, .outcome = PP_TRIAL_CLEAN, .reason = "", .unexposed = true },
	{ .rule = "M8.1 pure FUA, nobody flushed", .method = "open_datasync (direct)",
		.last_ack_ms = -16, .no_flush = true, .outcome = PP_TRIAL_CLEAN, .reason = "" },
	{ .rule = "M4.3 torn in flight is allowed", .torn = true, .outcome = PP_TRIAL_CLEAN,
		.reason = "" },
	{ .rule = "M4.5 but not where untorn is promised", .torn = true, .rereads = 3,
		.method = "RWF_ATOMIC+RWF_DSYNC (direct)", .no_flush = true, .outcome = PP_TRIAL_LOSS,
		.reason = "", .untorn_broken = true },
	{ .rule = "M4.7 nor does one read of what is torn convict", .torn = true,
		.method = "RWF_ATOMIC+RWF_DSYNC (direct)", .no_flush = true, .outcome = PP_TRIAL_OPEN,
		.reason = "losses were not read again three times", .untorn_broken = true },
	{ .rule = "M4.5 torn, and an acked one is lost", .torn = true, .lose = true, .rereads = 3,
		.method = "RWF_ATOMIC+RWF_DSYNC (direct)", .no_flush = true, .outcome = PP_TRIAL_LOSS,
		.reason = "", .untorn_broken = true, .lost_acked = true },
	{ .rule = "M4.5 whole where untorn is promised", .method = "RWF_ATOMIC+RWF_DSYNC (direct)",
		.no_flush = true, .outcome = PP_TRIAL_CLEAN, .reason = "" },
	{ .rule = "M8.2 past the block layer nothing is counted", .method = "NVMe flush",
		.no_flush = true, .outcome = PP_TRIAL_CLEAN, .reason = "", .asked = PP_ASKED + 1 },
	{ .rule = "M8.2 the kernel did not ask by RWF_DSYNC", .method = "RWF_DSYNC", .no_flush = true,
		.outcome = PP_TRIAL_CLEAN, .reason = "", .asked = PP_ASKED_NOT + 1 },
	{ .rule = "M8.2 RWF_DSYNC (direct) may send FUA", .method = "RWF_DSYNC (direct)",
		.no_flush = true, .outcome = PP_TRIAL_CLEAN, .reason = "", .asked = PP_ASKED + 1 },
	{ .rule = "M8.2 the kernel did not ask", .no_flush = true, .lose = true, .rereads = 3,
		.outcome = PP_TRIAL_LOSS, .reason = "", .lost_acked = true, .asked = PP_ASKED_NOT + 1 },
	/* The counters' first and last reading have these syncs between them: none, one that may have
	 * been flushed before, two of which one cannot. One came in the first reading's receive. */
	{ .rule = "M8.2 no two readings", .no_flush = true, .beats = 1, .lose = true, .rereads = 3,
		.outcome = PP_TRIAL_LOSS, .reason = "", .lost_acked = true,
		.asked = PP_ASKED_UNKNOWN + 1 },
	{ .rule = "M8.2 one sync between them", .no_flush = true, .beats = 2, .last_ack_ms = -14,
		.outcome = PP_TRIAL_CLEAN, .reason = "", .asked = PP_ASKED_UNKNOWN + 1 },
	{ .rule = "M8.2 two syncs between them", .no_flush = true, .beats = 2, .last_ack_ms = -13,
		.outcome = PP_TRIAL_CLEAN, .reason = "", .asked = PP_ASKED_NOT + 1 },
	{ .rule = "M8.2 flushed", .beats = 2, .outcome = PP_TRIAL_CLEAN, .reason = "",
		.asked = PP_ASKED + 1 },
};

static char folder[] = "/tmp/pp-judge-XXXXXX";
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

static void keep_beats(struct pp_ledger_data *ledger, size_t most)
{
	size_t i, n = 0, kept = 0;

	for (i = 0; i < ledger->count; i++)
		n += ledger->entries[i].type == PP_LEDGER_BEAT;
	for (i = 0; i < ledger->count; i++) {
		if (ledger->entries[i].type == PP_LEDGER_BEAT && n-- > most)
			continue;
		ledger->entries[kept++] = ledger->entries[i];
	}
	ledger->count = kept;
}

static void build(const struct row *r, struct pp_case *c, struct world *w)
{
	struct pp_error err = { 0 };
	int i;

	memset(c, 0, sizeof(*c));
	case_world(w, r->lose);
	if (r->torn) {
		uint64_t slot = pp_layout_slot(&w->layout, 0, CASE_RECORDS + 1);
		struct pp_record next = world_record(w, &w->run, 0, slot, CASE_RECORDS + 1);

		world_write_cells(w, &next, 0, slot, 0, 1);
	}
	case_cut(&c->cut);
	case_run(&c->run, w);
	if (r->method)
		strcpy(c->run.method, r->method);
	if (r->raw)
		c->run.kind = PP_TARGET_RAW;
	if (r->windows)
		strcpy(c->cut.kernel, "Windows 10.0.19045");
	case_ledger(path, w, r->last_ack_ms ? r->last_ack_ms : -10, !r->no_flush);
	if (r->cut_short)
		assert_int_equal(truncate(path, (off_t)(64 + 32 * 100 + 7)), 0);
	assert_int_equal(pp_ledger_load(path, &c->ledger, &err), 0);
	unlink(path);
	if (r->beats)
		keep_beats(&c->ledger, r->beats);
	c->has_ledger = !r->no_ledger;
	c->run.aftermath = r->pending ? PP_AFTER_PENDING : r->after ? r->after : PP_AFTER_SCANNED;
	strcpy(c->run.aftermath_reason, "why");
	c->run.failed = r->failed;
	c->cut.off_verified = !r->unproven;
	c->cut.boots = !r->no_boot;
	if (r->kind)
		strcpy(c->cut.cut_kind, r->kind);
	if (r->counters) {
		c->before.has_power_cycles = c->after.has_power_cycles = true;
		c->before.power_cycles = 5;
		c->after.power_cycles = r->counters == 'R' ? 6 : 5;
	}
	w->untorn = pp_method_find(c->run.method)->untorn;
	c->base = w->base;
	assert_int_equal(world_judge(w), 0);
	c->scan = w->scan;
	for (i = 0; i < r->rereads; i++) {
		if (i == r->rereads - r->found)
			world_put(w, 0, CASE_LOST);
		world_reread(w);
		c->reread[i] = w->reread[i];
	}
	c->run.rereads = (uint32_t)r->rereads;
}

static void test_rows(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct pp_counter_history history = { .live = false };
		struct pp_witness witness = { .t_last_ns = 0 };
		struct pp_error err = { 0 };
		struct pp_judgement j;
		struct pp_case *c = malloc(sizeof(*c));
		struct world w;

		build(r, c, &w);
		pp_witness_add(&witness, &c->ledger);
		if (pp_judge_case(c, &witness, &history, &j, &err) != 0)
			fail_msg("%s: %s", r->rule, err.text);
		if (j.trial.outcome != r->outcome || strcmp(j.trial.reason, r->reason) != 0 ||
			j.trial.exposed == r->unexposed || j.trial.lost_acked != r->lost_acked ||
			(j.trial.untorn_broken != 0) != r->untorn_broken ||
			(!r->no_ledger && j.trial.drive_lost_power != (r->counters == 'R')) ||
			j.trial.proven != (r->outcome != PP_TRIAL_VOID) ||
			(r->asked && (int)j.trial.asked != r->asked - 1) ||
			(r->via && j.trial.via_flush != (r->via > 0)))
			fail_msg("%s: %s '%s', exposed %d '%s', lost_acked %d, proven %d, asked %d", r->rule,
				pp_trial_outcome_name(j.trial.outcome), j.trial.reason, j.trial.exposed,
				j.trial.unexposed_reason, j.trial.lost_acked, j.trial.proven,
				(int)j.trial.asked);
		/* M4.9: an age is a loss's; what a re-read found is none. */
		if (r->found && (j.trial.lost_age_ns_min != -1 || j.trial.lost_age_ns_max != -1))
			fail_msg("%s: has an age", r->rule);
		/* M4.9: all that is gone is as old as its acks, of which there was one a ms. */
		if ((r->after == PP_AFTER_DEVICE_GONE || r->after == PP_AFTER_FS_GONE) &&
			(j.trial.lost_age_ns_min != 5000000 ||
			j.trial.lost_age_ns_max != 5000000 + (CASE_RECORDS - 1) * 1000000LL))
			fail_msg("%s: %lld to %lld ns old", r->rule, (long long)j.trial.lost_age_ns_min,
				(long long)j.trial.lost_age_ns_max);
		pp_judgement_release(&j);
		pp_ledger_data_release(&c->ledger);
		world_release(&w);
		free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
