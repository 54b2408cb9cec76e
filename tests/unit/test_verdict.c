/* SPDX-License-Identifier: MIT
 *
 * Goal: no false SAFE, no false accusation, and every rule of M6.5, M7, M8 and M9.3 both ways.
 * Method: each row is a small campaign in words, the arm that is looked at, and what must be said
 * of it. "fdatasync 29; direct 3 loss; write 1 loss" are 29 clean trials of fdatasync, 3 lost ones
 * of direct and 1 of write, all on drive S1, raw, mains. The words are the table below, the rows
 * are in verdict_rows.h. Each names its rule; where two differ in one word, that word decides.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verdict_rows.h"
#include "verifier/verdict.h"

/* ---- campaigns in words ------------------------------------------------------------------- */

#define TRIALS_MAX 4000

struct campaign {
	struct pp_trial *trials;
	size_t count;
	uint32_t cut;
};

static void set_loss(struct pp_trial *t)
{
	t->outcome = PP_TRIAL_LOSS;
	t->lost_acked = true;
	t->records_lost = 2;
	t->lost[PP_LOSS_STALE] = 2;
	t->lost_age_ns_min = 1000000;
	t->lost_age_ns_max = 5000000;
}

static void set_class(struct pp_trial *t, enum pp_loss_class class)
{
	set_loss(t);
	t->lost[PP_LOSS_STALE] = 0;
	t->lost[class] = 2;
}

static void set_file(struct pp_trial *t, const char *fs, const char *options)
{
	snprintf(t->key.target, sizeof(t->key.target), "file");
	snprintf(t->key.fs, sizeof(t->key.fs), "%s", fs);
	snprintf(t->key.mount_options, sizeof(t->key.mount_options), "%s", options);
}

#define SET(field, ...) snprintf(t->field, sizeof(t->field), __VA_ARGS__)
#define WORD(name, ...) \
	static void word_##name(struct pp_trial *t) { __VA_ARGS__; }

WORD(loss, set_loss(t))
WORD(gone, set_class(t, PP_LOSS_DEVICE_GONE))
WORD(gone_and_stale, set_class(t, PP_LOSS_DEVICE_GONE); t->lost[PP_LOSS_STALE] = 1)
WORD(corrupt, set_class(t, PP_LOSS_CORRUPT))
WORD(short_file, set_class(t, PP_LOSS_FILE_SHORT))
WORD(bare_loss, t->outcome = PP_TRIAL_LOSS)
WORD(void, t->outcome = PP_TRIAL_VOID; t->proven = false; SET(reason, "died before the cut"))
WORD(io_error, t->outcome = PP_TRIAL_VOID; SET(reason, "I/O error"))
WORD(open, t->outcome = PP_TRIAL_OPEN; SET(reason, "no-boot"))
WORD(missing, t->lost_acked = true)
WORD(unproven, t->proven = false)
WORD(unexposed, t->exposed = false; SET(unexposed_reason, "last ack too old"))
WORD(foreign, t->exposed = false; SET(unexposed_reason, "foreign flushes"))
WORD(collateral, t->collateral = true)
WORD(resolved, SET(resolution, "cable pulled by hand"))
WORD(swapped, SET(resolution, "swapped: sent back"); t->swapped = true)
WORD(blank_resolution, SET(resolution, " \t "))
WORD(powered, t->drive_lost_power = true)
WORD(nocache, t->no_volatile_cache = true)
WORD(notasked, t->asked = PP_ASKED_NOT; t->flushes_per_sync = 0)
WORD(nobodyknows, t->asked = PP_ASKED_UNKNOWN; t->flushes_per_sync = 0)
WORD(tears, t->outcome = PP_TRIAL_LOSS; t->lost[PP_LOSS_TORN] = t->records_lost = t->untorn_broken = 1)
WORD(viaflush, t->via_flush = true)
WORD(quick, t->acked_within[PP_WITHIN_100_MS] = 100)
WORD(stalled, t->acked_within[PP_WITHIN_1_S] = 4000)
WORD(brisk, t->acked_within[PP_WITHIN_100_MS] = 60)
WORD(sluggish, t->acked_within[PP_WITHIN_1_S] = 5)
WORD(forty, t->acked_within[PP_WITHIN_100_MS] = 4; t->acked_within[PP_WITHIN_1_S] = 40)
WORD(slow, t->acked_within[PP_WITHIN_100_MS] = 20)
WORD(noacks, t->records_acked = 0)
WORD(noiselost, t->noise_lost = true; t->drive_lost_power = true)
WORD(damaged_fs, t->fs_damaged = true)
WORD(noise, t->key.noise = true)
WORD(shuffled, SET(key.pattern, "random"))
WORD(S2, SET(key.serial, "S2"))
WORD(fw2, SET(key.firmware, "2"))
WORD(model2, SET(key.model, "m2"))
WORD(wt, SET(key.policy, "write through"))
WORD(nofua, SET(key.policy, "write back"))
WORD(on, SET(key.setting, "cache-on"); SET(key.policy, "drive cache on, buffer flushing on, FUA sent"))
WORD(off, SET(key.setting, "cache-off"); SET(key.policy, "drive cache off, buffer flushing on, no FUA"))
WORD(dropped, SET(key.setting, "flushing-off");
	SET(key.policy, "drive cache on, buffer flushing off, no FUA"))
WORD(named_on, SET(key.setting, "cache-on"))
WORD(named_off, SET(key.setting, "cache-off"))
WORD(came_back, t->policy_lost = true; SET(policy_after, "drive cache on"))
WORD(k2, SET(key.kernel, "7.0"))
WORD(windows, SET(key.kernel, "Windows 10.0.19045"); SET(key.policy, "drive cache on, no FUA"))
WORD(dc, SET(key.cut_kind, "dc"))
WORD(lanes4, t->key.lanes = 4)
WORD(group8, t->key.group = 8)
WORD(small, t->key.record_bytes = 4096)
WORD(big, t->key.record_bytes = 1 << 20)
WORD(append, SET(key.workload, "append"))
WORD(ext4, set_file(t, "ext4", "rw,relatime"))
WORD(ext4_nobarrier, set_file(t, "ext4", "rw,nobarrier"))
WORD(ext4_journal, set_file(t, "ext4", "rw,data=journal"))
WORD(btrfs, set_file(t, "btrfs", "rw,space_cache=v2"))
WORD(btrfs_nodatacow, set_file(t, "btrfs", "rw,nodatacow"))
WORD(zfs, set_file(t, "zfs", "rw,nodatacow"))
WORD(unknown_fs, set_file(t, "newfs", "rw"))
WORD(odd_target, SET(key.target, "raw2"))

static const struct { const char *word; void (*set)(struct pp_trial *); } words[] = {
#define ROW(name) { #name, word_##name }
	ROW(loss), ROW(gone), ROW(gone_and_stale), ROW(corrupt), ROW(short_file), ROW(bare_loss),
	ROW(void), ROW(io_error), ROW(open), ROW(missing), ROW(unproven), ROW(unexposed),
	ROW(foreign), ROW(collateral), ROW(resolved), ROW(swapped), ROW(blank_resolution), ROW(powered),
	ROW(nocache), ROW(notasked), ROW(nobodyknows), ROW(tears), ROW(viaflush), ROW(quick), ROW(stalled),
	ROW(brisk), ROW(sluggish), ROW(forty),
	ROW(slow), ROW(big), ROW(noacks), ROW(noiselost), ROW(damaged_fs),
	ROW(noise), ROW(shuffled), ROW(S2), ROW(fw2), ROW(model2), ROW(wt), ROW(nofua), ROW(k2), ROW(windows), ROW(dc),
	ROW(lanes4), ROW(group8), ROW(small), ROW(append), ROW(ext4), ROW(ext4_nobarrier),
	ROW(ext4_journal), ROW(btrfs), ROW(btrfs_nodatacow), ROW(zfs), ROW(unknown_fs),
	ROW(odd_target), ROW(on), ROW(off), ROW(dropped), ROW(came_back), ROW(named_on),
	ROW(named_off),
};

/* Methods whose names have a blank. */
static const char *full_method(const char *word)
{
	if (strcmp(word, "dsync-direct") == 0)
		return "open_datasync (direct)";
	if (strcmp(word, "atomic") == 0)
		return "RWF_ATOMIC+RWF_DSYNC (direct)";
	return strcmp(word, "fdatasync-direct") == 0 ? "fdatasync (direct)" : word;
}

static void base_trial(struct pp_trial *t, const char *method)
{
	memset(t, 0, sizeof(*t));
	SET(key.serial, "S1");
	SET(key.model, "m");
	SET(key.firmware, "1");
	SET(key.method, "%s", full_method(method));
	SET(key.workload, "overwrite");
	SET(key.target, "raw");
	SET(key.policy, "write back, fua");
	SET(key.kernel, "6.18");
	SET(key.cut_kind, "mains");
	t->key.lanes = t->key.group = 1;
	t->key.record_bytes = 8192;
	t->proven = t->exposed = true;
	t->asked = PP_ASKED;
	t->records_acked = 100;
	t->lost_age_ns_min = t->lost_age_ns_max = -1;
	t->flushes_per_sync = 1.0;
}

static void apply_word(struct pp_trial *t, const char *word)
{
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].word, word) == 0) {
			words[i].set(t);
			return;
		}
	fail_msg("no word '%s'", word);
}

/* One group: METHOD COUNT WORD... */
static void add_group(struct campaign *c, char *group)
{
	char *save, *method = strtok_r(group, " ", &save), *number, *word;
	struct pp_trial trial;
	int n;

	if (!method)
		return;
	number = strtok_r(NULL, " ", &save);
	assert_non_null(number);
	base_trial(&trial, method);
	while ((word = strtok_r(NULL, " ", &save)))
		apply_word(&trial, word);
	for (n = atoi(number); n > 0; n--) {
		assert_true(c->count < TRIALS_MAX);
		trial.cut = ++c->cut;
		c->trials[c->count++] = trial;
	}
}

static void campaign_init(struct campaign *c, const char *text)
{
	char copy[1024], *save, *group;

	memset(c, 0, sizeof(*c));
	c->trials = calloc(TRIALS_MAX, sizeof(*c->trials));
	assert_non_null(c->trials);
	assert_true(strlen(text) < sizeof(copy));
	snprintf(copy, sizeof(copy), "%s", text);
	/* The groups end at ';'; strtok_r of the inner level has its own state. */
	for (group = strtok_r(copy, ";", &save); group; group = strtok_r(NULL, ";", &save))
		add_group(c, group);
}

/* ---- checks ------------------------------------------------------------------------------- */

/* The arm of that method on S1, the one with the most cuts if there are several. */
static struct pp_verdict_arm *find_arm(struct pp_verdict *verdict, const char *spec)
{
	char method[64], workload[32] = "";
	struct pp_verdict_arm *found = NULL;
	uint32_t cuts, most = 0;
	size_t i;

	snprintf(method, sizeof(method), "%s", spec ? spec : "fdatasync");
	if (strchr(method, '@')) {
		snprintf(workload, sizeof(workload), "%s", strchr(method, '@') + 1);
		*strchr(method, '@') = '\0';
	}
	for (i = 0; i < verdict->arm_count; i++) {
		struct pp_verdict_arm *arm = &verdict->arms[i];

		if (strcmp(arm->key.serial, "S1") != 0 ||
			strcmp(arm->key.method, full_method(method)) != 0 ||
			(workload[0] && strcmp(arm->key.workload, workload) != 0))
			continue;
		cuts = arm->cuts_clean + arm->cuts_loss + arm->cuts_unexposed;
		if (!found || cuts > most) {
			found = arm;
			most = cuts;
		}
	}
	return found;
}

static const char *find_reason(const struct pp_verdict_arm *arm, const char *part)
{
	size_t i;

	for (i = 0; i < arm->reason_count; i++)
		if (strstr(arm->reasons[i].text, part))
			return arm->reasons[i].text;
	return NULL;
}

static void judge(const struct row *row, const struct campaign *now, const struct campaign *before,
	struct pp_verdict *verdict)
{
	const char *const protected_serials[] = { row->protected_serial };
	struct pp_verdict_input input = { .trials = now->trials, .count = now->count,
		.earlier = before->trials, .earlier_count = before->count,
		.protected_serials = protected_serials,
		.protected_count = row->protected_serial ? 1 : 0 };
	struct pp_error err = { 0 };

	assert_int_equal(pp_criterion_parse(row->criterion ? row->criterion : "95/90",
		&input.criterion, &err), 0);
	if (pp_verdict_judge(&input, verdict, &err) != 0)
		fail_msg("%s: %s", row->trials, err.text);
}

static void complain(const struct row *row, const struct pp_verdict_arm *arm, const char *what)
{
	size_t i;

	print_message("%s  %s\n", row->rule, row->trials);
	for (i = 0; i < arm->reason_count; i++)
		print_message("    %c %s\n", arm->reasons[i].blocks ? '!' : '-', arm->reasons[i].text);
	fail_msg("%s: %s (verdict %s)", row->rule, what, pp_arm_verdict_name(arm->verdict));
}

/* SAFE has no objection, and every trial stands in exactly one column. */
static void check_arm(const struct row *row, const struct pp_verdict_arm *arm,
	const struct campaign *now)
{
	uint32_t trials = 0;
	size_t i;

	for (i = 0; i < arm->reason_count; i++)
		if (arm->verdict == PP_ARM_SAFE && arm->reasons[i].blocks)
			complain(row, arm, "SAFE with an objection");
	if (arm->verdict == PP_ARM_INCONCLUSIVE && (!arm->reason_count || !arm->reasons[0].blocks))
		complain(row, arm, "INCONCLUSIVE does not say what is missing");
	for (i = 0; i < now->count; i++)
		trials += pp_arm_key_equal(&now->trials[i].key, &arm->key);
	if (trials != arm->cuts_clean + arm->cuts_loss + arm->cuts_void + arm->cuts_open +
		arm->cuts_unexposed + arm->cuts_collateral)
		complain(row, arm, "the columns do not add up");
}

static void test_rows(void **state)
{
	size_t i, j;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		struct campaign now, before;
		struct pp_verdict verdict;
		struct pp_verdict_arm *arm;

		campaign_init(&now, row->trials);
		campaign_init(&before, row->earlier ? row->earlier : "");
		judge(row, &now, &before, &verdict);
		arm = find_arm(&verdict, row->arm);
		if (!arm)
			fail_msg("%s: no such arm in '%s'", row->rule, row->trials);
		for (j = 0; j < verdict.arm_count; j++)
			check_arm(row, &verdict.arms[j], &now);
		if (arm->verdict != row->verdict)
			complain(row, arm, "another verdict");
		if (row->says && !find_reason(arm, row->says))
			complain(row, arm, row->says);
		if (row->says_not && find_reason(arm, row->says_not))
			complain(row, arm, row->says_not);
		if (pp_verdict_exit(&verdict) != row->exit)
			complain(row, arm, "another exit status");
		pp_verdict_release(&verdict);
		free(now.trials);
		free(before.trials);
	}
}

/* The bound: 0 of 29 and so on; what is open, or void with data missing, counts as lost (M6.5). */
static void test_bounds(void **state)
{
	static const struct { const char *trials, *earlier; double bound; uint32_t k, n; } bounds[] = {
		{ "fdatasync 29", "", 0.0981, 0, 29 },
		{ "fdatasync 24", "", 0.1173, 0, 24 },
		{ "fdatasync 5", "", 0.4507, 0, 5 },
		{ "fdatasync 29; fdatasync 9 unexposed", "", 0.0981, 0, 29 },
		{ "fdatasync 29; fdatasync 9 void", "", 0.0981, 0, 29 },
		{ "fdatasync 28; fdatasync 1 loss", "", 0, 1, 29 },
		{ "fdatasync 28; fdatasync 1 open", "", 0, 1, 29 },
		{ "fdatasync 28; fdatasync 1 void missing", "", 0, 1, 29 },
		{ "fdatasync 28; fdatasync 1 loss; fdatasync 1 open", "", 0, 2, 30 },
		{ "fdatasync 28; fdatasync 1 open resolved", "", 0, 0, 28 },
		{ "fdatasync 28", "fdatasync 1 loss; fdatasync 50", 0, 1, 29 },
		{ "fdatasync 2 void", "", 1.0, 0, 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		struct row row = { .rule = "M6.5", .trials = bounds[i].trials };
		struct campaign now, before;
		struct pp_verdict verdict;
		struct pp_verdict_arm *arm;

		campaign_init(&now, bounds[i].trials);
		campaign_init(&before, bounds[i].earlier);
		judge(&row, &now, &before, &verdict);
		arm = find_arm(&verdict, NULL);
		if (bounds[i].bound > 0)
			assert_in_range((int)(arm->loss_bound_95 * 1e4 + 0.5),
				(int)(bounds[i].bound * 1e4 + 0.5), (int)(bounds[i].bound * 1e4 + 0.5));
		assert_true(arm->loss_bound_95 ==
			pp_stats_bound_upper(bounds[i].k, bounds[i].n, 0.95));
		pp_verdict_release(&verdict);
		free(now.trials);
		free(before.trials);
	}
}

static void test_counts_and_classes(void **state)
{
	static const struct row row = { .rule = "M4.4" };
	struct campaign now, before;
	struct pp_verdict verdict;
	struct pp_verdict_arm *arm;

	(void)state;
	campaign_init(&before, "");
	campaign_init(&now, "fdatasync 3; fdatasync 2 loss; fdatasync 1 corrupt; fdatasync 2 open; "
		"fdatasync 4 void; fdatasync 1 void missing; fdatasync 1 foreign; "
		"fdatasync 1 collateral; fdatasync 1 open resolved");
	now.trials[4].lost_age_ns_min = -1;
	now.trials[4].lost_age_ns_max = -1;
	now.trials[5].lost_age_ns_min = 77;
	now.trials[5].lost_age_ns_max = 9000000;
	judge(&row, &now, &before, &verdict);
	assert_int_equal(verdict.arm_count, 1);
	arm = &verdict.arms[0];
	assert_int_equal(arm->cuts_clean, 3);
	assert_int_equal(arm->cuts_loss, 3);
	assert_int_equal(arm->cuts_open, 2);
	assert_int_equal(arm->cuts_void, 6);
	assert_int_equal(arm->cuts_void_missing, 1);
	assert_int_equal(arm->cuts_unexposed, 1);
	assert_int_equal(arm->cuts_foreign, 1);
	assert_int_equal(arm->cuts_collateral, 1);
	assert_int_equal(arm->records_acked, 1000);
	assert_int_equal(arm->records_lost, 6);
	assert_int_equal(arm->lost[PP_LOSS_STALE], 4);
	assert_int_equal(arm->lost[PP_LOSS_CORRUPT], 2);
	assert_int_equal(arm->lost_age_ns_min, 77);
	assert_int_equal(arm->lost_age_ns_max, 9000000);
	pp_verdict_release(&verdict);
	free(now.trials);
	free(before.trials);
}

static int same_verdicts(const struct pp_verdict *a, const struct pp_verdict *b)
{
	size_t i, j;

	if (a->arm_count != b->arm_count)
		return 0;
	for (i = 0; i < a->arm_count; i++) {
		const struct pp_verdict_arm *x = &a->arms[i], *y = &b->arms[i];

		if (!pp_arm_key_equal(&x->key, &y->key) || x->verdict != y->verdict ||
			x->reason_count != y->reason_count || x->cuts_clean != y->cuts_clean)
			return 0;
		for (j = 0; j < x->reason_count; j++)
			if (strcmp(x->reasons[j].text, y->reasons[j].text) != 0)
				return 0;
	}
	return 1;
}

/* The order in which trials are given changes nothing, not even the words. */
static void test_order_does_not_matter(void **state)
{
	static const struct row row = { .rule = "M1.3" };
	struct campaign now, before;
	struct pp_verdict first, again;
	uint32_t seed = 1;
	int round;

	(void)state;
	campaign_init(&before, "fdatasync 3 loss");
	campaign_init(&now, "fdatasync 9; fdatasync 5 open; fsync 30; fsync 1 loss; direct 3 loss; "
		"direct 2; write 3 loss; fdatasync 9 S2; dsync-direct 4 foreign; fdatasync 3 void; "
		"fdatasync 2 io_error missing; fdatasync 4 lanes4; fdatasync 2 fw2; direct 2 ext4");
	judge(&row, &now, &before, &first);
	for (round = 0; round < 50; round++) {
		size_t i;

		for (i = now.count - 1; i > 0; i--) {
			struct pp_trial swap = now.trials[i];
			size_t with = (seed = seed * 1664525u + 1013904223u) % (i + 1);

			now.trials[i] = now.trials[with];
			now.trials[with] = swap;
		}
		judge(&row, &now, &before, &again);
		assert_true(same_verdicts(&first, &again));
		pp_verdict_release(&again);
	}
	pp_verdict_release(&first);
	free(now.trials);
	free(before.trials);
}

/* M1.1: one drive has one trial a cut; evidence given twice must not count twice. */
static void test_doubled_evidence_is_refused(void **state)
{
	struct campaign now;
	struct pp_verdict verdict;
	struct pp_verdict_input input = { 0 };
	struct pp_error err = { 0 };

	(void)state;
	campaign_init(&now, "fdatasync 15; " SEEN);
	memcpy(now.trials + now.count, now.trials, now.count * sizeof(*now.trials));
	input.trials = now.trials;
	input.count = now.count * 2;
	assert_int_equal(pp_criterion_parse("95/90", &input.criterion, &err), 0);
	assert_int_equal(pp_verdict_judge(&input, &verdict, &err), -1);
	assert_int_equal(err.class, PP_ERR_EVIDENCE);
	assert_non_null(strstr(err.text, "two trials of drive 'S1' claim cut 1"));
	pp_verdict_release(&verdict);
	/* The same cut of another drive is another trial. */
	strcpy(now.trials[0].key.serial, "S2");
	now.trials[0].cut = now.trials[1].cut;
	input.count = now.count;
	assert_int_equal(pp_verdict_judge(&input, &verdict, &err), 0);
	pp_verdict_release(&verdict);
	free(now.trials);
}

static struct pp_planned_arm plan_of(const char *method, const char *na, bool optional)
{
	struct pp_planned_arm planned = { .serial = "S1", .workload = "overwrite", .target = "raw",
		.optional = optional };

	snprintf(planned.method, sizeof(planned.method), "%s", full_method(method));
	snprintf(planned.na_reason, sizeof(planned.na_reason), "%s", na);
	return planned;
}

/* M8.5, M8.7: an arm that was planned and never ran is not forgotten. */
static void test_planned_arms(void **state)
{
	static const struct {
		const char *trials;
		const char *method, *na;
		bool optional;
		enum pp_arm_verdict verdict;
		int exit;
		const char *says;
	} plans[] = {
		{ HELD SEEN, "fdatasync", "", false, PP_ARM_SAFE, 0, NULL },
		{ HELD SEEN, "fsync", "", false, PP_ARM_INCONCLUSIVE, 2, "not begun: no cut with it yet" },
		{ HELD SEEN, "fsync", "", true, PP_ARM_INCONCLUSIVE, 0, "not begun" },
		{ HELD SEEN, "fsync", "no such call here", true, PP_ARM_NA, 0, "no such call here" },
		{ HELD SEEN, "fsync", "no such call here", false, PP_ARM_NA, 2, "no such call here" },
		{ HELD SEEN, "fdatasync", "no such call", false, PP_ARM_INCONCLUSIVE, 2,
			"called n/a (no such call), yet there are trials" },
		{ HELD "fdatasync 1 loss; " SEEN, "fdatasync", "", true, PP_ARM_UNSAFE, 1, "1 of 30 cuts" },
		{ "", "write", "", false, PP_ARM_INCONCLUSIVE, 2, "not begun" },
		{ HELD SEEN, "magic", "", false, PP_ARM_INCONCLUSIVE, 2, "not known" },
		{ HELD SEEN, "fdatasync", "", true, PP_ARM_SAFE, 2, NULL },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		struct pp_planned_arm planned = plan_of(plans[i].method, plans[i].na,
			plans[i].optional);
		struct pp_verdict_input input = { .planned = &planned, .planned_count = 1 };
		struct row row = { .rule = "M8.5", .trials = plans[i].trials };
		struct campaign now;
		struct pp_verdict verdict;
		struct pp_verdict_arm *arm;

		campaign_init(&now, plans[i].trials);
		input.trials = now.trials;
		input.count = now.count;
		assert_int_equal(pp_criterion_parse("95/90", &input.criterion, NULL), 0);
		assert_int_equal(pp_verdict_judge(&input, &verdict, NULL), 0);
		arm = find_arm(&verdict, plans[i].method);
		assert_non_null(arm);
		if (arm->verdict != plans[i].verdict)
			complain(&row, arm, "another verdict");
		if (plans[i].says && !find_reason(arm, plans[i].says))
			complain(&row, arm, plans[i].says);
		/* What is not begun has found nothing, and is no other drive. */
		if (find_reason(arm, "not begun") && (arm->reason_count > 1 + !!find_reason(arm, "not known") ||
			(now.count && strcmp(arm->key.model, now.trials[0].key.model) != 0)))
			complain(&row, arm, "more than that it is not begun");
		if (pp_verdict_exit(&verdict) != plans[i].exit)
			complain(&row, arm, "another exit status");
		pp_verdict_release(&verdict);
		free(now.trials);
	}
}

/* M8.7: a campaign of nothing held nothing. */
static void test_nothing_is_not_safe(void **state)
{
	struct pp_verdict_input input = { 0 };
	struct pp_verdict verdict;
	struct pp_error err = { 0 };

	(void)state;
	assert_int_equal(pp_verdict_judge(&input, &verdict, &err), -1);
	assert_int_equal(err.class, PP_ERR_USAGE);
	pp_verdict_release(&verdict);
	assert_int_equal(pp_criterion_parse("95/90", &input.criterion, &err), 0);
	assert_int_equal(pp_verdict_judge(&input, &verdict, &err), 0);
	assert_int_equal(verdict.arm_count, 0);
	assert_int_equal(pp_verdict_exit(&verdict), 2);
	pp_verdict_release(&verdict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_counts_and_classes),
		cmocka_unit_test(test_order_does_not_matter),
		cmocka_unit_test(test_doubled_evidence_is_refused),
		cmocka_unit_test(test_planned_arms),
		cmocka_unit_test(test_nothing_is_not_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
