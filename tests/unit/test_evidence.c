/* SPDX-License-Identifier: MIT
 *
 * Goal: a campaign's folder is judged as a whole or not at all: no hole, no stranger, no stale seal
 * passes for evidence, and a resolution clears what it names and nothing else (M4.6, M6.5). Method:
 * a folder of one set-up and some cuts is made from case_world.h; a test spoils one thing of it.
 */
#include <sys/stat.h>

#include "case_world.h"
#include "src/core/file.h"
#include "src/core/tree.h"
#include "tests/janitor.h"
#include "verifier/evidence.h"

static char folder[64];
static struct pp_evidence evidence;
static struct pp_error err;

static void in(char *out, const char *name)
{
	snprintf(out, 256, "%s/%s", folder, name);
}

static void save_scan(struct world *w, const struct pp_scan_range *ranges, size_t n, const char *name)
{
	struct world_bytes b = { 0 };
	char path[256];

	in(path, name);
	assert_int_equal(pp_scan_make(&w->layout, &w->source, ranges, n, world_sink, &b, &err), 0);
	assert_int_equal(pp_file_write(path, b.data, b.bytes, 0644, &err), 0);
	free(b.data);
}

static void make_folder(const char *name)
{
	char path[256];

	in(path, name);
	assert_int_equal(pp_mkdirs(path, &err), 0);
}

/* One cut of drive S1; lose: with three re-reads. */
static void make_cut(uint32_t number, bool lose)
{
	char path[256], name[128];
	struct pp_scan_range range = { 0, 0, 0 };
	struct pp_cut_facts cut;
	struct pp_run_facts run;
	struct world w;
	int i;

	case_world(&w, false);
	make_folder("setups/0001/S1");
	if (number == 1) {
		struct world fresh;

		world_init(&fresh, PP_OVERWRITE, 1, 1);
		world_lay(&fresh, fresh.layout.slots);
		save_scan(&fresh, NULL, 0, "setups/0001/S1/scan-0.bin");
		world_release(&fresh);
	}
	world_release(&w);
	case_world(&w, lose);
	snprintf(name, sizeof(name), "cuts/%04u/S1", number);
	make_folder(name);
	case_cut(&cut);
	cut.number = number;
	snprintf(name, sizeof(name), "cuts/%04u/cut.json", number);
	in(path, name);
	assert_int_equal(pp_cut_facts_save(&cut, path, &err), 0);
	case_run(&run, &w);
	run.rereads = lose ? 3 : 0;
	snprintf(name, sizeof(name), "cuts/%04u/S1/run.json", number);
	in(path, name);
	assert_int_equal(pp_run_facts_save(&run, path, &err), 0);
	snprintf(name, sizeof(name), "cuts/%04u/S1/acks.ledger", number);
	in(path, name);
	case_ledger(path, &w, -10, true);
	snprintf(name, sizeof(name), "cuts/%04u/S1/scan.bin", number);
	save_scan(&w, NULL, 0, name);
	range.first = range.last = pp_layout_slot(&w.layout, 0, CASE_LOST);
	for (i = 1; lose && i <= 3; i++) {
		snprintf(name, sizeof(name), "cuts/%04u/S1/reread-%d.bin", number, i);
		save_scan(&w, &range, 1, name);
	}
	world_release(&w);
}

static int set_up(void **state)
{
	struct pp_campaign_facts facts;

	(void)state;
	strcpy(folder, "/tmp/pp-evidence-XXXXXX");
	if (!janitor_mkdtemp(folder))
		return -1;
	memset(&facts, 0, sizeof(facts));
	strcpy(facts.name, "t");
	facts.planned = calloc(1, sizeof(*facts.planned));
	facts.planned_count = 1;
	strcpy(facts.planned[0].serial, "S1");
	strcpy(facts.planned[0].method, "fdatasync");
	strcpy(facts.planned[0].workload, "overwrite");
	strcpy(facts.planned[0].target, "file");
	assert_int_equal(pp_criterion_parse("95/50", &facts.criterion, &err), 0);
	assert_int_equal(pp_campaign_facts_save(&facts, folder, &err), 0);
	pp_campaign_facts_release(&facts);
	make_cut(1, false);
	make_cut(2, true);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return pp_tree_remove(folder, &err);
}

static void load(void)
{
	if (pp_evidence_load(&evidence, folder, false, &err) != 0)
		fail_msg("%s", err.text);
}

static void refused(const char *what, const char *text)
{
	memset(&err, 0, sizeof(err));
	if (pp_evidence_load(&evidence, folder, false, &err) == 0 || !strstr(err.text, text))
		fail_msg("%s: '%s'", what, err.text);
}

static void test_whole(void **state)
{
	struct pp_verdict verdict;

	(void)state;
	load();
	assert_int_equal(evidence.trial_count, 2);
	assert_int_equal(evidence.cuts, 2);
	assert_int_equal(evidence.trials[0].outcome, PP_TRIAL_CLEAN);
	assert_int_equal(evidence.trials[1].outcome, PP_TRIAL_LOSS);
	assert_int_equal(pp_evidence_verdict(&evidence, NULL, 0, &verdict, &err), 0);
	assert_int_equal(pp_verdict_exit(&verdict), 1);
	pp_verdict_release(&verdict);
	pp_evidence_release(&evidence);
}

/* What is written at the first judgement is what a later one would write. */
static void test_add_cut(void **state)
{
	char path[256];

	(void)state;
	load();
	make_cut(3, false);
	assert_int_equal(pp_evidence_add_cut(&evidence, 3, true, &err), 0);
	assert_int_equal(evidence.trial_count, 3);
	assert_int_equal(evidence.cuts, 3);
	in(path, "cuts/0003/S1/judgement.json");
	assert_int_equal(access(path, F_OK), 0);
	pp_evidence_release(&evidence);
	load();
	assert_int_equal(evidence.trial_count, 3);
	pp_evidence_release(&evidence);
}

static const struct {
	const char *name, *text; /* taken away; what must be said, NULL: still judged */
} holes[] = {
	{ "cuts/0001/S1/run.json", "run.json is missing" },
	{ "cuts/0001/S1/scan.bin", "scan.bin" },
	{ "cuts/0002/S1/reread-2.bin", "reread-2.bin" },
	{ "cuts/0001/cut.json", "cut.json" },
	{ "setups/0001/S1/scan-0.bin", "scan-0.bin" },
	{ "target.json", "target.json" },
};

static void test_holes(void **state)
{
	char path[256], away[280];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(holes) / sizeof(holes[0]); i++) {
		in(path, holes[i].name);
		snprintf(away, sizeof(away), "%s.away", path);
		assert_int_equal(rename(path, away), 0);
		refused(holes[i].name, holes[i].text);
		assert_int_equal(rename(away, path), 0);
	}
	in(path, "cuts/0001");
	in(away, "away");
	assert_int_equal(rename(path, away), 0);
	refused("cut 1", "cut 1 is missing");
}

/* A cut that never came to its runs is none; a void one without a ledger is void. */
static void test_never_begun(void **state)
{
	struct pp_cut_facts cut;
	char path[256];

	(void)state;
	make_folder("cuts/0003");
	load();
	pp_evidence_release(&evidence);
	make_folder("cuts/0003/S1");
	refused("cut 3", "cut.json");
	case_cut(&cut);
	cut.number = 3;
	strcpy(cut.state, "preparing");
	in(path, "cuts/0003/cut.json");
	assert_int_equal(pp_cut_facts_save(&cut, path, &err), 0);
	load();
	assert_int_equal(evidence.trial_count, 2);
	pp_evidence_release(&evidence);
	strcpy(cut.state, "writing");
	assert_int_equal(pp_cut_facts_save(&cut, path, &err), 0);
	refused("cut 3", "run.json is missing");
}

/* M4.6: files of another run. */
static void test_strangers(void **state)
{
	struct pp_run_facts run;
	struct pp_cut_facts cut;
	char path[256];

	(void)state;
	in(path, "cuts/0001/cut.json");
	assert_int_equal(pp_cut_facts_load(&cut, path, &err), 0);
	cut.number = 2;
	assert_int_equal(pp_cut_facts_save(&cut, path, &err), 0);
	refused("cut.json", "says that it is cut 2");
	cut.number = 1;
	assert_int_equal(pp_cut_facts_save(&cut, path, &err), 0);
	in(path, "cuts/0001/S1/run.json");
	assert_int_equal(pp_run_facts_load(&run, path, &err), 0);
	run.run_id.bytes[0] ^= 1;
	assert_int_equal(pp_run_facts_save(&run, path, &err), 0);
	refused("ledger", "ledger of another run");
	run.run_id.bytes[0] ^= 1;
	strcpy(run.base, "../../etc/passwd");
	assert_int_equal(pp_run_facts_save(&run, path, &err), 0);
	refused("base", "outside the evidence");
	strcpy(run.base, "setups/0001/S1/scan-0.bin");
	run.rereads = 4;
	assert_int_equal(pp_run_facts_save(&run, path, &err), 0);
	refused("re-reads", "claims 4 re-reads");
}

static int resolve(uint32_t cut, const char *drive, const char *cause, bool swapped)
{
	struct pp_resolution r = { .cause = cause, .who = "me", .swapped = swapped };

	return pp_resolution_save(folder, cut, drive, &r, &err);
}

/* Cut 2 as the controller leaves it that died before its re-reads: open. */
static void reopen(void)
{
	struct pp_run_facts run;
	char path[256];

	in(path, "cuts/0002/S1/run.json");
	assert_int_equal(pp_run_facts_load(&run, path, &err), 0);
	run.rereads = 0;
	assert_int_equal(pp_run_facts_save(&run, path, &err), 0);
}

static void check_refusal(uint32_t cut, const char *drive, const char *cause, bool swapped,
	const char *says)
{
	assert_int_equal(resolve(cut, drive, cause, swapped), -1);
	if (!strstr(err.text, says))
		fail_msg("'%s' is not in: %s", says, err.text);
}

/* M6.5: a person clears what is open, once, with a cause; nothing else, and never with silence. */
static void test_resolution(void **state)
{
	static const char *const blank[] = { "", " ", " \t\r\n" };
	char long_cause[201], path[256];
	struct stat st;
	size_t i;

	(void)state;
	check_refusal(2, "S1", "the cat", false, "a loss that was confirmed stands");
	check_refusal(2, "S1", "the cat", true, "a loss that was confirmed stands");
	reopen();
	memset(long_cause, 'x', 200);
	long_cause[200] = '\0';
	for (i = 0; i < 3; i++)
		check_refusal(2, "S1", blank[i], false, "names a cause");
	check_refusal(2, "S1", long_cause, false, "names a cause");
	check_refusal(2, "S1", "\xff\xfe", false, "UTF-8");
	check_refusal(2, "S1", "drive exchanged", true, "was not found gone");
	check_refusal(9, "S1", "x", false, "no trial");
	check_refusal(1, "../S1", "x", false, "no drive's folder");
	check_refusal(1, "S1", "x", false, "it is settled");
	in(path, "resolutions/0002-S1.json");
	assert_int_equal(stat(path, &st), -1);
	assert_int_equal(resolve(2, "S1", "cable was loose", false), 0);
	assert_int_equal(pp_evidence_check_seal(folder, &err), 0);
	load();
	assert_string_equal(evidence.trials[0].resolution, "");
	assert_string_equal(evidence.trials[1].resolution, "cable was loose (me)");
	pp_evidence_release(&evidence);
	check_refusal(2, "S1", "another cause", false, "has a resolution already");
}

/* A resolution that was altered is no resolution, and not silence either. */
static void test_damaged_resolution(void **state)
{
	static const struct { const char *text, *says; } rows[] = {
		{ "", "is not JSON" }, { "{\"format\": 2}", "no \"format\": 1" },
		{ "{\"format\": 1, \"who\": \"me\"}", "\"cause\" is missing" },
		{ "{\"format\": 1, \"who\": \"me\", \"cause\": \" \", \"serial\": \"S1\", \"cut\": 2}",
			"names no cause" },
		{ "{\"format\": 1, \"who\": \"me\", \"cause\": \"x\", \"serial\": \"S2\", \"cut\": 2}",
			"of another trial" },
		{ "{\"format\": 1, \"who\": \"me\", \"cause\": \"x\", \"serial\": \"S1\", \"cut\": 1}",
			"of another trial" },
		{ "{\"format\": 1, \"who\": \"me\", \"cause\": \"x\", \"serial\": \"S1\", \"cut\": 2, "
			"\"swapped\": 1}", "\"swapped\" is missing or not" },
	};
	char path[256];
	size_t i;

	(void)state;
	make_folder("resolutions");
	in(path, "resolutions/0002-S1.json");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(pp_file_write(path, rows[i].text, strlen(rows[i].text), 0644, &err), 0);
		refused("resolution", rows[i].says);
	}
}

/* M6.1: that the drive is gone is undone by a swap that a person records, by no other words. */
static void test_swap(void **state)
{
	struct pp_run_facts run;
	char path[256];

	(void)state;
	in(path, "cuts/0002/S1/run.json");
	assert_int_equal(pp_run_facts_load(&run, path, &err), 0);
	run.aftermath = PP_AFTER_DEVICE_GONE;
	assert_int_equal(pp_run_facts_save(&run, path, &err), 0);
	load();
	assert_int_equal(evidence.trials[1].outcome, PP_TRIAL_LOSS);
	pp_evidence_release(&evidence);
	check_refusal(2, "S1", "cable was loose", false, "only a swap");
	assert_int_equal(resolve(2, "S1", "taken out for another test", true), 0);
	load();
	assert_string_equal(evidence.trials[1].resolution, "swapped: taken out for another test (me)");
	assert_true(evidence.trials[1].swapped);
	pp_evidence_release(&evidence);
}

/* The effective exposure: the ledger has an ack each ms, the last 5 ms before the last frame. */
static void test_acked_within(void **state)
{
	struct pp_trial *t;

	(void)state;
	load();
	t = &evidence.trials[0];
	assert_int_equal(pp_within_ms[0], 10);
	assert_true(t->acked_within[0] > 0 && t->acked_within[0] <= 11);
	assert_int_equal(t->acked_within[1], t->acked_within[0] + 90);
	assert_int_equal(t->acked_within[2], CASE_RECORDS);
	pp_evidence_release(&evidence);
}

static void test_seal(void **state)
{
	char path[256];

	(void)state;
	assert_int_equal(pp_evidence_check_seal(folder, &err), -1);
	assert_int_equal(pp_evidence_seal(folder, &err), 0);
	assert_int_equal(pp_evidence_check_seal(folder, &err), 0);
	in(path, "cuts/0001/S1/extra");
	assert_int_equal(pp_file_write(path, "x", 1, 0644, &err), 0);
	assert_int_equal(pp_evidence_check_seal(folder, &err), -1);
	assert_non_null(strstr(err.text, "'cuts/0001/S1/extra' was added"));
	assert_int_equal(pp_evidence_seal(folder, &err), 0);
	assert_int_equal(pp_evidence_check_seal(folder, &err), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(pp_evidence_check_seal(folder, &err), -1);
	assert_non_null(strstr(err.text, "'cuts/0001/S1/extra' is missing"));
	assert_int_equal(pp_file_write(path, "y", 1, 0644, &err), 0);
	assert_int_equal(pp_evidence_check_seal(folder, &err), -1);
	assert_non_null(strstr(err.text, "'cuts/0001/S1/extra' was changed"));
	assert_int_equal(unlink(path), 0);
	in(path, "left.tmp"); /* of a writer that died: no part of the evidence */
	assert_int_equal(pp_evidence_seal(folder, &err), 0);
	assert_int_equal(pp_file_write(path, "x", 1, 0644, &err), 0);
	assert_int_equal(pp_evidence_check_seal(folder, &err), 0);
}

/* M4.7: which slots to read again, and M6.4: whether somebody else wrote. */
static void test_would_be_losses(void **state)
{
	struct pp_scan_range *ranges;
	size_t count, unknown;

	(void)state;
	assert_int_equal(pp_evidence_would_be_losses(folder, 1, "S1", &ranges, &count, &unknown, &err),
		0);
	assert_int_equal(count, 0);
	assert_int_equal(unknown, 0);
	free(ranges);
	assert_int_equal(pp_evidence_would_be_losses(folder, 2, "S1", &ranges, &count, &unknown, &err),
		0);
	assert_int_equal(count, 1);
	assert_int_equal(ranges[0].first, CASE_LOST - 1);
	free(ranges);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_whole), T(test_add_cut), T(test_holes), T(test_never_begun), T(test_strangers),
		T(test_resolution), T(test_damaged_resolution), T(test_swap), T(test_acked_within),
		T(test_seal), T(test_would_be_losses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
