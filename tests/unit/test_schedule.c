/* SPDX-License-Identifier: MIT
 *
 * Goal: trials come in the order of M1.4, as many as the criterion needs and no more. Method: a plan
 * in words; a schedule is asked for the next arm again and again and told, by a rule of the row,
 * what became of it. A campaign is written as a line of letters: w and d for the controls `write`
 * and `direct`, a, b for the plan's arms; what must hold of that line is asked of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/campaign/parts.h"

#define TRIALS 1000

static struct pp_campaign c;
static struct pp_stand stands[2];
static struct pp_trial trials[TRIALS];
static char line[TRIALS + 1];

typedef enum pp_trial_outcome outcome_fn(char arm, int nth);

static void begin(const char *campaign_keys)
{
	char text[1024];
	struct pp_error err = { 0 };

	memset(&c, 0, sizeof(c));
	memset(stands, 0, sizeof(stands));
	snprintf(text, sizeof(text), "[campaign]\ncriterion = 95/50\n%s[drive x]\nserial = S1\nformat = "
		"ext4\ndestroy = S1\n[arms]\nmethods = fdatasync, fsync\n", campaign_keys);
	assert_int_equal(pp_plan_parse(&c.plan, text, "t", &err), 0);
	c.stand = stands;
	stands[0].plan = &c.plan.drive[0];
	strcpy(stands[0].drive.info.serial, "S1");
	c.evidence.trials = trials;
	pp_schedule_init(&c);
}

static char letter(const struct pp_method *method)
{
	if (method->control)
		return method->direct ? 'd' : 'w';
	return strcmp(method->name, "fdatasync") == 0 ? 'a' : 'b';
}

static void add_trial(const struct pp_arm_state *arm, enum pp_trial_outcome outcome)
{
	const struct pp_plan_arms *a = &c.plan.arms[arm->set];
	struct pp_trial *t = &trials[c.evidence.trial_count++];

	memset(t, 0, sizeof(*t));
	strcpy(t->key.serial, "S1");
	strcpy(t->key.method, arm->method->name);
	strcpy(t->key.workload, pp_workload_name(a->workload));
	strcpy(t->key.pattern, a->random ? "random" : "sequential");
	strcpy(t->key.setting, arm->setting ? arm->setting->name : "");
	t->key.lanes = a->lanes;
	t->key.group = a->group;
	t->key.record_bytes = a->record_bytes;
	t->outcome = outcome;
	t->proven = outcome != PP_TRIAL_VOID;
	t->exposed = true;
	strcpy(t->reason, outcome == PP_TRIAL_VOID ? "died before the cut" : "");
}

static enum pp_trial_outcome as_policy(const struct pp_arm_state *arm)
{
	bool off = arm->setting->write_cache == PP_TRUTH_NO;

	return arm->method->control && !(arm->method->direct && off) ? PP_TRIAL_LOSS : PP_TRIAL_CLEAN;
}

static int count(char what)
{
	const char *at = line;
	int n = 0;

	while ((at = strchr(at, what))) {
		n++;
		at++;
	}
	return n;
}

/* Runs until nothing is left to do, or the line is full. */
static void run(outcome_fn *outcome)
{
	size_t n = 0;

	memset(line, 0, sizeof(line));
	while (n < TRIALS && pp_schedule_next(&c)) {
		char arm = letter(stands[0].now->method);

		add_trial(stands[0].now, outcome(arm, count(arm)));
		line[n++] = arm;
	}
}

static enum pp_trial_outcome as_it_should(char arm, int nth)
{
	(void)nth;
	return arm == 'w' || arm == 'd' ? PP_TRIAL_LOSS : PP_TRIAL_CLEAN;
}

static enum pp_trial_outcome b_loses_third(char arm, int nth)
{
	return arm == 'b' && nth == 2 ? PP_TRIAL_LOSS : as_it_should(arm, nth);
}

static enum pp_trial_outcome one_direct_in_four(char arm, int nth)
{
	return arm == 'd' && nth % 4 ? PP_TRIAL_CLEAN : as_it_should(arm, nth);
}

static enum pp_trial_outcome direct_keeps(char arm, int nth)
{
	return arm == 'd' ? PP_TRIAL_CLEAN : as_it_should(arm, nth);
}

static enum pp_trial_outcome every_second_void(char arm, int nth)
{
	static int k;

	(void)nth;
	return k++ % 2 ? PP_TRIAL_VOID : as_it_should(arm, nth);
}

static enum pp_trial_outcome a_stays_open(char arm, int nth)
{
	return arm == 'a' ? PP_TRIAL_OPEN : as_it_should(arm, nth);
}

/* M1.4: controls, all arms round robin, controls again. */
static void test_order(void **state)
{
	size_t i, first, last;
	int a = 0, b = 0;

	(void)state;
	begin("controls = 4\ncontrols_end = 1\n");
	run(as_it_should);
	/* M7.3: `direct` once, and again when a turn of the arms has told their pace. */
	if (strncmp(line, "wdab", 4) != 0 && strncmp(line, "dwab", 4) != 0)
		fail_msg("M1.4: %.80s", line);
	assert_int_equal(strspn(line + 4, "d"), 3);
	begin("controls = 4\ncontrols_end = 1\ncontrol_pace = none\n");
	run(as_it_should);
	first = strcspn(line, "ab");
	last = strlen(line);
	while (last && strchr("wd", line[last - 1]))
		last--;
	if (strcspn(line, "d") >= first || strcspn(line, "w") >= first || last == strlen(line))
		fail_msg("M1.4: %.80s", line);
	assert_int_equal(strcspn(line + first, "wd"), last - first);
	for (i = first; i < last; i++) {
		a += line[i] == 'a';
		b += line[i] == 'b';
		if (abs(a - b) > 1)
			fail_msg("M1.4: not round robin: %.80s", line);
	}
	assert_int_equal(a, 5); /* 95/50 */
	assert_int_equal(b, 5);
	assert_int_equal(count('d'), 5);
}

static void test_cuts(void **state)
{
	(void)state;
	begin("controls = 4\ncontrols_end = 1\n");
	c.plan.cuts = 2;
	run(as_it_should);
	assert_int_equal(count('a'), 2);
	assert_int_equal(count('b'), 2);
	assert_true(count('d') >= 2 && count('d') <= 3 && count('w') >= 1 && count('w') <= 3);
	begin("controls = 0\n");
	run(as_it_should);
	assert_string_equal(line, "ababababab");
}

/* M9.2: an arm ends at its first loss, unless the plan fixed the number. */
static void test_first_loss(void **state)
{
	(void)state;
	begin("controls = 0\n");
	run(b_loses_third);
	assert_int_equal(count('b'), 3);
	assert_int_equal(count('a'), 5);
	begin("controls = 0\nstop_at_first_loss = no\n");
	run(b_loses_third);
	assert_int_equal(count('b'), 6); /* the loss, and five clean ones */
}

/* M7.3: a control that loses too seldom is repeated, up to its limit; one that never does is not. */
static void test_blind_control(void **state)
{
	(void)state;
	begin("controls = 4\ncontrols_end = 0\ncontrols_max = 9\n");
	run(one_direct_in_four);
	assert_int_equal(count('d'), 9);
	assert_int_equal(line[strlen(line) - 1], 'd');
	begin("controls = 4\ncontrols_end = 0\ncontrols_max = 9\n");
	run(direct_keeps);
	assert_int_equal(count('d'), 4);
	begin("controls = 4\ncontrols_end = 0\ncontrols_max = 9\n");
	run(as_it_should);
	assert_int_equal(count('d'), 4);
}

/* A policy that cannot be had any more, as a resume may find, takes its control with it. */
static void test_blind_control_na(void **state)
{
	uint32_t i;

	(void)state;
	begin("controls = 4\ncontrols_end = 0\ncontrols_max = 9\n");
	run(one_direct_in_four);
	c.plan.controls_max = 20;
	assert_true(pp_schedule_next(&c));
	assert_int_equal(letter(stands[0].now->method), 'd');
	for (i = 0; i < stands[0].arms; i++)
		strcpy(stands[0].arm[i].na_reason, "cannot be had");
	assert_false(pp_schedule_next(&c));
}

/* M5.6: void trials count for nothing, open ones do not go on for ever. */
static void test_void_and_open(void **state)
{
	(void)state;
	begin("controls = 0\n");
	run(every_second_void);
	assert_int_equal(stands[0].arm[0].clean, 5);
	assert_int_equal(stands[0].arm[1].clean, 5);
	assert_int_equal(stands[0].arm[0].voids + stands[0].arm[1].voids, c.evidence.trial_count - 10);
	begin("controls = 0\n");
	run(a_stays_open);
	assert_int_equal(count('a'), 20); /* 2 n + 10 */
}

/* M5.6: in a row, for one reason, and since this controller began. */
static void test_voids_in_row(void **state)
{
	struct pp_arm_state *a = &stands[0].arm[0];
	int i;

	(void)state;
	begin("controls = 0\n");
	for (i = 0; i < 3; i++)
		add_trial(a, PP_TRIAL_VOID);
	pp_schedule_count(&c);
	assert_int_equal(a->voids_in_row, 3);
	strcpy(trials[1].reason, "lived after the off");
	pp_schedule_count(&c);
	assert_int_equal(a->voids_in_row, 1);
	strcpy(trials[1].reason, trials[0].reason);
	trials[1].outcome = PP_TRIAL_CLEAN;
	pp_schedule_count(&c);
	assert_int_equal(a->voids_in_row, 1);
	trials[1].outcome = PP_TRIAL_VOID;
	c.own_trials = 3;
	pp_schedule_count(&c);
	assert_int_equal(a->voids_in_row, 0);
	assert_int_equal(a->voids, 3);
}

/* M6.1: nothing more can be had from a drive that is gone; unexposed trials are not clean. */
static void test_gone(void **state)
{
	(void)state;
	begin("controls = 0\n");
	add_trial(&stands[0].arm[0], PP_TRIAL_CLEAN);
	trials[0].exposed = false;
	pp_schedule_count(&c);
	assert_int_equal(stands[0].arm[0].clean, 0);
	assert_true(pp_schedule_next(&c));
	stands[0].gone = true;
	assert_false(pp_schedule_next(&c));
}

/* M7.3: `direct` is held to the slowest arm that it speaks for, by what is known of it. */
static void test_pace(void **state)
{
	struct pp_speed_row speed[] = { { .ops_per_s = 900 }, { .ops_per_s = 4000 } };
	struct pp_arm_state *a = &stands[0].arm[0], *b = &stands[0].arm[1];
	struct pp_arm_state *write = &stands[0].arm[2], *direct = &stands[0].arm[3];

	(void)state;
	begin("");
	assert_string_equal(direct->method->name, "direct");
	assert_int_equal(pp_control_pace(&c, &stands[0], direct), 0);
	strcpy(speed[0].serial, "S1");
	strcpy(speed[1].serial, "S1");
	strcpy(speed[0].method, a->method->name);
	strcpy(speed[1].method, b->method->name);
	c.evidence.speed = speed;
	c.evidence.speed_count = 2;
	assert_int_equal(pp_control_pace(&c, &stands[0], direct), 900);
	assert_int_equal(pp_control_pace(&c, &stands[0], a), 0);
	assert_int_equal(pp_control_pace(&c, &stands[0], write), 0);
	/* Its trials say more than the matrix; void ones and those with a loss say nothing. */
	add_trial(a, PP_TRIAL_CLEAN);
	trials[0].acked_within[PP_WITHIN_100_MS] = 50;
	add_trial(a, PP_TRIAL_VOID);
	add_trial(a, PP_TRIAL_LOSS);
	assert_int_equal(pp_control_pace(&c, &stands[0], direct), 500);
	/* Of a slow arm the last second says more than a tenth of it. */
	trials[0].acked_within[PP_WITHIN_100_MS] = 0;
	trials[0].acked_within[PP_WITHIN_1_S] = 3;
	assert_int_equal(pp_control_pace(&c, &stands[0], direct), 3);
	trials[0].acked_within[PP_WITHIN_1_S] = 0;
	assert_int_equal(pp_control_pace(&c, &stands[0], direct), 1);
	trials[0].acked_within[PP_WITHIN_100_MS] = 50;
	/* Fewer bytes a record: fewer records of the control's size. */
	c.plan.arms[direct->set].record_bytes = 8192;
	assert_int_equal(pp_control_pace(&c, &stands[0], direct), 500);
	c.plan.arm_sets = 2;
	c.plan.arms[1] = c.plan.arms[0];
	c.plan.arms[1].record_bytes = trials[0].key.record_bytes = 2048;
	a->set = 1;
	assert_int_equal(pp_control_pace(&c, &stands[0], direct), 125);
	/* Arms with noise have a control of their own. */
	c.plan.arms[1].noise = trials[0].key.noise = true;
	assert_int_equal(pp_control_pace(&c, &stands[0], direct), 4000);

	begin("control_pace = none\n");
	c.evidence.speed = speed;
	c.evidence.speed_count = 2;
	assert_int_equal(pp_control_pace(&c, &stands[0], direct), 0);
	begin("control_pace = 77\n");
	assert_int_equal(pp_control_pace(&c, &stands[0], direct), 77);
	assert_int_equal(pp_control_pace(&c, &stands[0], a), 0);
}

/* M7.3: arms in random order have controls of their own, in random order. */
static void test_controls_of_patterns(void **state)
{
	static const char text[] = "[campaign]\ncriterion = 95/50\n[drive x]\nserial = S1\nformat = "
		"ext4\ndestroy = S1\n[arms a]\nmethods = fdatasync\npattern = random\n"
		"[arms b]\nmethods = fdatasync\nworkload = append\n";
	uint32_t random[2] = { 0 }, i;
	struct pp_error err = { 0 };

	(void)state;
	memset(&c, 0, sizeof(c));
	memset(stands, 0, sizeof(stands));
	assert_int_equal(pp_plan_parse(&c.plan, text, "t", &err), 0);
	c.stand = stands;
	stands[0].plan = &c.plan.drive[0];
	pp_schedule_init(&c);
	for (i = 0; i < stands[0].arms; i++) {
		const struct pp_arm_state *arm = &stands[0].arm[i];
		const struct pp_plan_arms *a = &c.plan.arms[arm->set];

		if (arm->method->control && arm->method->direct) {
			assert_int_equal(a->workload, PP_OVERWRITE);
			random[a->random]++;
			assert_true(pp_arm_speaks_for(&c, arm, &stands[0].arm[a->random ? 0 : 1]));
			assert_false(pp_arm_speaks_for(&c, arm, &stands[0].arm[a->random ? 1 : 0]));
		}
	}
	assert_int_equal(random[0], 1);
	assert_int_equal(random[1], 1);
}

static enum pp_trial_outcome lost_too_quick(char arm, int nth)
{
	if (c.evidence.trial_count) {
		struct pp_trial *t = &trials[c.evidence.trial_count - 1];

		t->acked_within[PP_WITHIN_100_MS] = strcmp(t->key.method, "direct") == 0
			? (count('d') > 6 ? 20 : 500) : 20;
	}
	return as_it_should(arm, nth);
}

/* M7.3: controls that lost because they wrote faster are no reason to stop trying. */
static void test_control_too_quick(void **state)
{
	(void)state;
	begin("");
	run(as_it_should);
	assert_int_equal(count('d'), 5);
	begin("");
	run(lost_too_quick);
	assert_true(count('d') > 7 && count('d') <= 12);
}

static bool is_arm(const struct pp_arm_state *arm)
{
	return !arm->method->control;
}

/* M1.4 with policies: still rounds, and a round changes the policy as seldom as it can. */
static void test_policies(void **state)
{
	const struct pp_policy_setting *last = NULL;
	uint32_t i, changes = 0, arms = 0, least, most, controls_after = 0, n = 0;

	(void)state;
	begin("controls = 3\ncontrols_end = 1\ncontrol_pace = none\n");
	memset(stands, 0, sizeof(stands));
	stands[0].plan = &c.plan.drive[0];
	strcpy(stands[0].drive.info.serial, "S1");
	for (i = 0; i < pp_policy_setting_count; i++)
		c.plan.arms[0].policy[c.plan.arms[0].policies++] = &pp_policy_settings[i];
	pp_schedule_init(&c);
	assert_int_equal(stands[0].arms, 3 * (2 + 2)); /* two arms and two controls of each policy */
	while (n < TRIALS && pp_schedule_next(&c)) {
		const struct pp_arm_state *now = stands[0].now;

		if (is_arm(now)) {
			changes += last && last != now->setting;
			last = now->setting;
			arms++;
			assert_int_equal(controls_after, 0);
		} else if (arms) {
			controls_after++;
		}
		add_trial(now, as_policy(now));
		n++;
		pp_schedule_count(&c);
		least = UINT32_MAX;
		most = 0;
		for (i = 0; i < stands[0].arms; i++) {
			if (!is_arm(&stands[0].arm[i]))
				continue;
			least = stands[0].arm[i].tried < least ? stands[0].arm[i].tried : least;
			most = stands[0].arm[i].tried > most ? stands[0].arm[i].tried : most;
		}
		assert_true(most - least <= 1); /* at every moment a stop could come */
	}
	assert_int_equal(arms, 5 * 6);    /* 95/50 */
	assert_int_equal(changes, 5 * 2); /* rounds times policies but one */
	for (i = 0; i < stands[0].arms; i++) {
		const struct pp_arm_state *arm = &stands[0].arm[i];

		if (arm->method->control && arm->method->direct) /* M7.4: kept, and with a reason */
			assert_int_equal(arm->tried, arm->setting->write_cache == PP_TRUTH_NO ? 5 : 4);
	}
	assert_true(n < TRIALS);
}

/* A control of one policy is none of another's. */
static void test_policies_of_two_sets(void **state)
{
	char text[512];
	struct pp_error err = { 0 };
	uint32_t i, controls = 0;

	(void)state;
	memset(&c, 0, sizeof(c));
	memset(stands, 0, sizeof(stands));
	snprintf(text, sizeof(text), "[drive x]\nserial = S1\nformat = ext4\ndestroy = S1\n[arms]\n"
		"methods = fsync\npolicy = cache-on\n[arms grow]\nmethods = fsync\nworkload = append\n"
		"policy = cache-off, flushing-off\n");
	assert_int_equal(pp_plan_parse(&c.plan, text, "t", &err), 0);
	c.stand = stands;
	stands[0].plan = &c.plan.drive[0];
	pp_schedule_init(&c);
	for (i = 0; i < stands[0].arms; i++)
		controls += stands[0].arm[i].method->control;
	assert_int_equal(controls, 6);
	assert_int_equal(c.plan.arm_sets, 3); /* append has no place for a control: one set for both */
	assert_string_equal(c.plan.arms[2].name, "controls");
	assert_int_equal(c.plan.arms[2].policies, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_first_loss),
		cmocka_unit_test(test_blind_control),
		cmocka_unit_test(test_blind_control_na),
		cmocka_unit_test(test_void_and_open),
		cmocka_unit_test(test_voids_in_row),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_pace),
		cmocka_unit_test(test_controls_of_patterns),
		cmocka_unit_test(test_control_too_quick),
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_policies_of_two_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
