/* SPDX-License-Identifier: MIT
 *
 * Goal: a plan is read as written, or refused with file, line and what would be right; nothing is
 * guessed (design.md, sections 6 and 7). Rows of one line each, put into a plan that is good; what
 * the command says of bad plans is in tests/cli/test_campaign_input.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "src/campaign/plan.h"

#define GOOD_MACHINE "[machine]\nlisten = 127.0.0.1:0\nkey = /k\n"
#define GOOD_PDU     "[pdu]\nprofile = exec\noutlets = 1, 2\n"
#define GOOD_DRIVE   "[drive a]\nserial = S1\nformat = ext4\ndestroy = S1\n"
#define GOOD_ARMS    "[arms]\nmethods = fdatasync, fsync (direct)\n"

static struct pp_plan plan;

/* NULL: a good plan with that line at its end. */
static const struct {
	const char *line, *error;
} lines[] = {
	{ "", NULL },
	{ "; a comment\n# another\n", NULL },
	{ "lanes = 4\ngroup = 2\nrecord_bytes = 4096\n", NULL },
	{ "[arms two]\nmethods = all\nworkload = append\noptional = yes\n", NULL },
	{ "[arms two]\nmethods = all windows\n", NULL },
	{ "workload = create-nodir\n", NULL },
	{ "workload = rename\npattern = sequential\n", NULL },
	{ "pattern = random\nworkload = overwrite\n", NULL },
	{ "pattern = random\nworkload = rename\n", "pattern = random is for workload = overwrite" },
	{ "pattern = randomly\n", "pattern is 'randomly', expected sequential or random" },
	{ "[drive b]\nserial = S2\ntarget = raw\ndestroy = S2\n", NULL },
	{ "[drive b]\nserial = S2\nuuid = 1234\n", NULL },
	{ "[drive b]\nserial = S2\npath = /srv/x\n", NULL },
	{ "[lab]\nrig = vm\nbehaviour.a = honest\n", NULL },
	{ "noise = yes\n", NULL },
	{ "[campaign]\ncontrol_pace = auto\n", NULL },
	{ "[campaign]\ncontrol_pace = none\n", NULL },
	{ "[campaign]\ncontrol_pace = 250\n", NULL },
	{ "[campaign]\ncontrol_pace = 0\n", "control_pace is '0', expected auto, none, or 1 to" },
	{ "[campaign]\ncontrol_pace = fast\n", "control_pace is 'fast', expected auto, none" },
	{ "policy = cache-on\n", NULL },
	{ "policy = cache-on, cache-off , flushing-off\n", NULL },
	{ "policy =\n", "policy has an empty" },
	{ "policy = cache-on,\n", "policy has an empty" },
	{ "policy = cache-on, cache-on\n", "policy 'cache-on' is named twice" },
	{ "policy = cache\n", "no policy 'cache'; there are cache-on, cache-off and flushing-off" },
	{ "policy = Cache-on\n", "no policy 'Cache-on'" },
	{ "policy = cache-on\n[arms x]\nmethods = fsync\n", "has arms with a policy and arms without" },
	{ "policy = cache-on\n[arms x]\nmethods = fsync\npolicy = cache-off\n", NULL },
	{ "noise = 1\n", "noise is '1', expected yes or no" },
	{ "lanes = 4\nlanes = 4\n", "t:14: lanes is given twice" },
	{ "lanes = 65\n", "t:13: lanes is '65'" },
	{ "lanes = 4 \n", NULL },
	{ "lanes = +4\n", "lanes is '+4'" },
	{ "lanes = 0x4\n", "lanes is '0x4'" },
	{ "lanes =\n", "lanes is ''" },
	{ "lanes = 99999999999999999999\n", "lanes is '99999999999999999999'" },
	{ "Lanes = 4\n", "[arms] has no key 'Lanes'" },
	{ "lane = 4\n", "[arms] has no key 'lane'" },
	{ "methods = fsync\n", "given twice" },
	{ "workload = overwrit\n", "no workload 'overwrit'" },
	{ "[arms x]\nmethods = fdatasyn\n", "no method 'fdatasyn'" },
	{ "[arms x]\n", "[arms x] names no methods" },
	{ "[arms x]\nmethods = all, fdatasync\n", "methods = all stands alone" },
	{ "[arms x]\nmethods = fdatasync, all\n", "methods = all stands alone" },
	{ "[arms x]\nmethods = fdatasync, all windows\n", "methods = all stands alone" },
	{ "[arms x]\nmethods = all linux\n", "no method 'all linux'" },
	{ "[arm]\n", "no section [arm]" },
	{ "[ARMS]\n", "no section [ARMS]" },
	{ "[drive]\nserial = S2\n", "a drive needs a name" },
	{ "[drive b]\nserial = S2\nformat = ext4\n", "would lose all its data" },
	{ "[drive b]\nserial = S2\ntarget = raw\n", "would lose all its data" },
	{ "[drive b]\nserial = S2\ntarget = raw\ndestroy = S1\n", "destroy = S2" },
	{ "[drive b]\nserial = S2\nuuid = 1\npath = /x\n", "needs one of" },
	{ "[drive b]\nserial = S2\n", "needs one of" },
	{ "[drive b]\nserial = S1\nuuid = 1\n", "have one serial" },
	{ "[drive b]\nserial = S2\npath = /x\nmy_secret = 1\n", "no secrets" },
	{ "[lab]\npassword = x\n", "no secrets" },
	{ "[lab]\nrig = vm\nrig = vm\n", "given twice" },
	{ "[campaign]\nearlier = a, b\n", NULL },
	{ "[campaign]\nnote = http://u:p@h/\n", "holds a user or password" },
	{ "[campaign]\nnote = http://h/a@b\n", NULL },
	{ "[campaign]\nwrite_min_ms = 10\nwrite_max_ms = 9\n", "above write_max_ms" },
	{ "no equals sign\n", "expected 'key = value'" },
	{ "[arms x\n", "']'" },
};

static void test_lines(void **state)
{
	char text[4096];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct pp_error err = { 0 };
		int rc;

		snprintf(text, sizeof(text), "%s%s%s%s%s", GOOD_MACHINE, GOOD_PDU, GOOD_DRIVE, GOOD_ARMS,
			lines[i].line);
		rc = pp_plan_parse(&plan, text, "t", &err);
		if (rc != (lines[i].error ? -1 : 0) ||
			(lines[i].error && !strstr(err.text, lines[i].error)))
			fail_msg("'%s': %d, '%s'", lines[i].line, rc, err.text);
		if (rc != 0 && err.class != PP_ERR_USAGE)
			fail_msg("'%s': class %d", lines[i].line, (int)err.class);
	}
}

static void test_values(void **state)
{
	struct pp_error err;

	(void)state;
	assert_int_equal(pp_plan_parse(&plan, GOOD_MACHINE GOOD_PDU "off_s = 3\nmin_off_s = 0\n"
		"cycles_per_hour = none\n" GOOD_DRIVE "size_mib = 3\n" GOOD_ARMS, "t", &err), 0);
	assert_int_equal(plan.off_ms, 3000);
	assert_int_equal(plan.min_off_ms, 0);
	assert_int_equal(plan.cycles_per_hour, 0);
	assert_int_equal(plan.outlets, 2);
	assert_string_equal(plan.outlet[1], "2");
	assert_int_equal(plan.drive[0].size_bytes, 3 << 20);
	assert_int_equal(plan.arms[0].methods, 2);
	assert_string_equal(plan.arms[0].method[1]->name, "fsync (direct)");
	assert_true(plan.arms[0].on_drive[0]);
	assert_false(plan.arms[0].noise); /* M7.6 */
	assert_int_equal(plan.voids_max, 3); /* M5.6 */
	assert_true(plan.confirm_boot && plan.stop_at_first_loss);
	assert_int_equal(plan.hold_up_ms, 5000); /* M5.1 */
	assert_int_equal(plan.drive_wait_s, 300); /* M2.7 */
	assert_string_equal(plan.criterion.text, "95/90"); /* M8.3 */
	assert_int_equal(plan.cycles_max, 0);
	assert_true(plan.verify_ms == -1 && plan.stagger_ms == -1 && plan.watts_stale_ms == -1);
	assert_int_equal(pp_plan_parse(&plan, GOOD_MACHINE "address = dut\nboot_deadline_s = 900\n"
		GOOD_PDU "proof = /p.json\nwake = wol 52:54:00:12:34:56@10.0.0.255\ncycles_max = 500\n"
		"verify_s = 120\nstagger_s = 0\nwatts_stale_s = 45\n" GOOD_DRIVE GOOD_ARMS, "t", &err), 0);
	assert_string_equal(plan.machine_address, "dut");
	assert_int_equal(plan.boot_deadline_s, 900);
	assert_string_equal(plan.pdu_proof, "/p.json");
	assert_string_equal(plan.pdu_wake, "52:54:00:12:34:56@10.0.0.255");
	assert_int_equal(plan.cycles_max, 500);
	assert_true(plan.verify_ms == 120000 && plan.stagger_ms == 0 && plan.watts_stale_ms == 45000);
	assert_int_equal(pp_plan_parse(&plan, GOOD_PDU "wake = wol 52:54:00:12:34\n" GOOD_DRIVE GOOD_ARMS,
		"t", &err), -1);
	assert_non_null(strstr(err.text, "t:4: wake is 'wol 52:54:00:12:34', expected wol MAC"));
	assert_int_equal(pp_plan_parse(&plan, GOOD_DRIVE GOOD_ARMS "noise = yes\n", "t", &err), 0);
	assert_true(plan.arms[0].noise);
}

/* A plan without a lab needs key and power switch; whether one is there is asked after. */
static void test_check(void **state)
{
	struct pp_error err;

	(void)state;
	assert_int_equal(pp_plan_parse(&plan, GOOD_DRIVE GOOD_ARMS, "t", &err), 0);
	assert_int_equal(pp_plan_check(&plan, &err), -1);
	assert_non_null(strstr(err.text, "key = FILE"));
	assert_int_equal(pp_plan_parse(&plan, GOOD_MACHINE GOOD_DRIVE GOOD_ARMS, "t", &err), 0);
	assert_int_equal(pp_plan_check(&plan, &err), -1);
	assert_non_null(strstr(err.text, "[pdu]"));
	assert_int_equal(pp_plan_parse(&plan, GOOD_MACHINE GOOD_PDU GOOD_DRIVE GOOD_ARMS, "t", &err),
		0);
	assert_int_equal(pp_plan_check(&plan, &err), 0);
}

/* A file as some editors save it, and a key before any section: neither may crash. */
static void test_beginnings(void **state)
{
	struct pp_error err;

	(void)state;
	assert_int_equal(pp_plan_parse(&plan, "\xef\xbb\xbf" GOOD_MACHINE GOOD_DRIVE GOOD_ARMS, "t",
		&err), 0);
	assert_int_equal(pp_plan_parse(&plan, "\xef\xbb\xbf" "name = x\n", "t", &err), -1);
	assert_int_equal(pp_plan_parse(&plan, "name = x\n", "t", &err), -1);
	assert_non_null(strstr(err.text, "t:1: 'name' stands before the first [section]"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_beginnings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
