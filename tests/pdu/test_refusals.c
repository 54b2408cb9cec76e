/* SPDX-License-Identifier: MIT
 *
 * Goal: whatever a Shelly says or fails to say, an off counts as proven only if the relay really
 * went, was read so twice, and nothing contradicts; and each failed off leaves the power on.
 * Guards M5.1 ("every outlet read back off") and the rules of docs/pdu.md.
 * Method: a table of faults against the mock, each fault on the set, on the status, on everything.
 */
#define MOCK_PDU_EMBEDDED
#include "mock_pdu.c"
#include "rig.h"

struct row {
	enum mock_fault fault;
	int kinds;
	enum pp_pdu_outcome outcome;
	bool ambiguous;
	bool on_afterwards; /* the relay really is on when all is over */
};

#define VERIFIED PP_PDU_VERIFIED
#define FAILED PP_PDU_FAILED
#define UNKNOWN PP_PDU_STATE_UNKNOWN
#define REFUSED PP_PDU_REFUSED
#define NOT_RESTORED PP_PDU_NOT_RESTORED

static const struct row rows[] = {
	{ FAULT_NONE, KIND_ANY, VERIFIED, false, false },
	/* The set fails, in all ways; the status works. */
	{ FAULT_ERROR_IN_BODY, KIND_OFF, FAILED, false, true },
	{ FAULT_UNCHANGED, KIND_OFF, FAILED, false, true },
	{ FAULT_SLOW, KIND_OFF, VERIFIED, false, false },
	{ FAULT_RESET_AFTER, KIND_OFF, VERIFIED, true, false },
	{ FAULT_HANG_AFTER, KIND_OFF, VERIFIED, true, false },
	{ FAULT_HALF, KIND_OFF, VERIFIED, true, false },
	{ FAULT_BIG, KIND_OFF, VERIFIED, true, false },
	{ FAULT_NOT_HTTP, KIND_OFF, FAILED, true, true },
	{ FAULT_RESET_BEFORE, KIND_OFF, FAILED, true, true },
	{ FAULT_HANG_BEFORE, KIND_OFF, FAILED, true, true },
	{ FAULT_GARBAGE, KIND_OFF, FAILED, false, true },
	{ FAULT_EMPTY, KIND_OFF, FAILED, false, true },
	{ FAULT_HTML, KIND_OFF, FAILED, false, true },
	{ FAULT_REDIRECT, KIND_OFF, FAILED, false, true },
	{ FAULT_500, KIND_OFF, FAILED, false, true },
	{ FAULT_403, KIND_OFF, FAILED, false, true },
	/* The relay obeys, but what is read back is worth nothing. */
	/* Nor can the on be believed then, and nobody knows where the relay stops. */
	{ FAULT_FLAP, KIND_STATUS, NOT_RESTORED, false, true },
	{ FAULT_WELDED, KIND_ANY, UNKNOWN, false, true },
	/* The status never works: nothing is sent at all. */
	{ FAULT_ERROR_IN_BODY, KIND_STATUS, UNKNOWN, false, true },
	{ FAULT_OTHER_OUTLET, KIND_STATUS, UNKNOWN, false, true },
	{ FAULT_NO_STATE, KIND_STATUS, UNKNOWN, false, true },
	{ FAULT_RESET_BEFORE, KIND_STATUS, UNKNOWN, false, true },
	{ FAULT_HANG_BEFORE, KIND_STATUS, UNKNOWN, false, true },
	{ FAULT_HALF, KIND_STATUS, UNKNOWN, false, true },
	{ FAULT_BIG, KIND_STATUS, UNKNOWN, false, true },
	{ FAULT_GARBAGE, KIND_STATUS, UNKNOWN, false, true },
	{ FAULT_NOT_HTTP, KIND_STATUS, UNKNOWN, false, true },
	{ FAULT_REDIRECT, KIND_STATUS, UNKNOWN, false, true },
	{ FAULT_EMPTY, KIND_STATUS, UNKNOWN, false, true },
	{ FAULT_HTML, KIND_STATUS, UNKNOWN, false, true },
	{ FAULT_403, KIND_STATUS, UNKNOWN, false, true },
};

static void each_fault_has_its_outcome(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		struct pp_pdu_times times;
		struct pp_error err = { 0 };
		struct pp_pdu *pdu;
		struct rig rig;
		int rc;

		rig_start(&rig, "shelly-gen2");
		rig.mock.fault = row->fault;
		rig.mock.kinds = row->kinds;
		pdu = pp_pdu_open(&rig.config, &err);
		if (!pdu)
			fail_msg("%s", err.text);
		rc = pp_pdu_off(pdu, &times, &err);
		if (times.outcome != row->outcome || times.ambiguous != row->ambiguous ||
		    (rig.mock.relay[0] != row->on_afterwards && row->outcome != NOT_RESTORED) ||
		    (rc == 0) != (row->outcome == PP_PDU_VERIFIED))
			fail_msg("%s on %d: outcome %s%s, relay %s: %s\n%s",
				mock_fault_names[row->fault], row->kinds,
				pp_pdu_outcome_name(times.outcome),
				times.ambiguous ? " ambiguous" : "", rig.mock.relay[0] ? "on" : "off",
				err.text, rig.records.data);
		if (row->outcome == PP_PDU_VERIFIED) {
			assert_true(times.t_sent_ns > 0 && times.t_read_ns > times.t_sent_ns);
			assert_true(times.t_second_ns > times.t_read_ns);
			assert_int_equal(times.t_answered_ns == 0, row->ambiguous);
			assert_int_equal(rig_journal_entries(&rig), 1);
			rig.mock.fault = FAULT_NONE;
			assert_int_equal(pp_pdu_on(pdu, &times, &err), 0);
			assert_true(rig.mock.relay[0]);
		} else {
			assert_true(err.text[0] != '\0');
		}
		/* M5.1: power is back in every case, and the journal knows. */
		assert_int_equal(rig_journal_entries(&rig), row->outcome == NOT_RESTORED);
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

/* The status stops working once the off is out: unknown, and power comes back all the same, or the
 * loudest outcome of all. */
static void lost_after_the_off(void **state)
{
	struct pp_pdu_times times;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start(&rig, "shelly-gen2");
	rig.mock.fault = FAULT_HANG_BEFORE;
	rig.mock.kinds = KIND_ANY;
	rig.mock.fault_first = 3; /* status, off, then nothing any more */
	pdu = pp_pdu_open(&rig.config, &err);
	assert_int_equal(pp_pdu_off(pdu, &times, &err), -1);
	assert_int_equal(times.outcome, PP_PDU_NOT_RESTORED);
	assert_non_null(strstr(err.text, "NOT RESTORED"));
	assert_int_equal(rig_journal_entries(&rig), 1);
	rig.mock.fault = FAULT_NONE;
	assert_int_equal(pp_pdu_on(pdu, &times, &err), 0);
	assert_true(rig.mock.relay[0]);
	assert_int_equal(rig_journal_entries(&rig), 0);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

/* A lost off that the device obeys later must not leave the machine dark. */
static void late_off_is_undone(void **state)
{
	struct pp_pdu_times times;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start(&rig, "shelly-gen2");
	rig.mock.fault = FAULT_LATE;
	rig.mock.kinds = KIND_OFF;
	pdu = pp_pdu_open(&rig.config, &err);
	pp_pdu_off(pdu, &times, &err);
	if (times.outcome != PP_PDU_VERIFIED) /* seen in time: then it is a proven, ambiguous off */
		assert_true(rig.mock.relay[0]);
	else
		assert_true(times.ambiguous);
	assert_int_equal(pp_pdu_on(pdu, &times, &err), 0);
	assert_true(rig.mock.relay[0]);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

static void refuses_what_is_off_already(void **state)
{
	struct pp_pdu_times times;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start(&rig, "shelly-gen2");
	rig.mock.relay[0] = false;
	pdu = pp_pdu_open(&rig.config, &err);
	assert_int_equal(pp_pdu_off(pdu, &times, &err), -1);
	assert_int_equal(times.outcome, PP_PDU_REFUSED);
	assert_int_equal(times.t_sent_ns, 0);
	assert_int_equal(rig.mock.sets[0] + rig.mock.sets[1], 0);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

static void refuses_another_device_or_label(void **state)
{
	static const struct {
		const char *identity, *label;
		enum pp_pdu_outcome outcome;
	} cases[] = {
		{ "mock-device-0001", NULL, PP_PDU_VERIFIED },
		{ "MOCK-DEVICE-0001", "dut-0", PP_PDU_VERIFIED },
		{ "mock-device-0002", NULL, PP_PDU_REFUSED },
		{ "mock-device-000", NULL, PP_PDU_REFUSED },
		{ NULL, "dut-1", PP_PDU_REFUSED },
		{ NULL, "dut", PP_PDU_REFUSED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pp_pdu_times times;
		struct pp_error err = { 0 };
		struct pp_pdu *pdu;
		struct rig rig;

		rig_start(&rig, "shelly-gen2");
		rig.config.identity = cases[i].identity;
		rig.config.label = cases[i].label;
		pdu = pp_pdu_open(&rig.config, &err);
		pp_pdu_off(pdu, &times, &err);
		assert_int_equal(times.outcome, cases[i].outcome);
		assert_int_equal(rig.mock.sets[0], cases[i].outcome == PP_PDU_VERIFIED);
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

static void digest_passwords(void **state)
{
	static const struct {
		const char *ours, *theirs;
		enum pp_pdu_outcome outcome;
	} cases[] = {
		{ RIG_PASSWORD, RIG_PASSWORD, PP_PDU_VERIFIED },
		{ "wrong-password", RIG_PASSWORD, PP_PDU_STATE_UNKNOWN },
		{ NULL, RIG_PASSWORD, PP_PDU_STATE_UNKNOWN },
		/* The trap: a digest client must not send an empty POST to an open device. */
		{ RIG_PASSWORD, NULL, PP_PDU_VERIFIED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pp_pdu_times times;
		struct pp_error err = { 0 };
		struct pp_pdu *pdu;
		struct rig rig;

		rig_start(&rig, "shelly-gen2");
		if (cases[i].ours)
			rig_credentials(&rig, cases[i].ours);
		rig.mock.password = cases[i].theirs;
		pdu = pp_pdu_open(&rig.config, &err);
		assert_non_null(pdu);
		pp_pdu_off(pdu, &times, &err);
		if (times.outcome != cases[i].outcome)
			fail_msg("case %zu: %s: %s", i, pp_pdu_outcome_name(times.outcome), err.text);
		assert_int_equal(rig.mock.empty_posts, 0);
		if (rig.records.data) {
			assert_null(strstr(rig.records.data, RIG_PASSWORD));
			assert_null(strstr(rig.records.data, "wrong-password"));
		}
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

/* A nonce that the device has forgotten looks like a wrong password; it is not one. */
static void stale_nonce_is_retried_once(void **state)
{
	struct pp_pdu_times times;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	for (int first = 2; first <= 4; first++) {
		rig_start(&rig, "shelly-gen2");
		rig_credentials(&rig, RIG_PASSWORD);
		rig.mock.password = RIG_PASSWORD;
		rig.mock.fault = FAULT_401;
		rig.mock.fault_first = first;
		pdu = pp_pdu_open(&rig.config, &err);
		if (pp_pdu_off(pdu, &times, &err) != 0)
			fail_msg("%s\n%s", err.text, rig.records.data);
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

static void two_supplies_go_together(void **state)
{
	struct pp_pdu_times times;
	struct pp_pdu_status status;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start(&rig, "shelly-gen2");
	rig.config.outlets[1] = "3";
	rig.config.outlet_count = 2;
	pdu = pp_pdu_open(&rig.config, &err);
	assert_int_equal(pp_pdu_off(pdu, &times, &err), 0);
	assert_false(rig.mock.relay[0] || rig.mock.relay[2]);
	assert_true(rig.mock.relay[1] && rig.mock.relay[3]);
	assert_int_equal(rig_journal_entries(&rig), 2);
	rig.mock.relay[2] = true; /* they disagree now */
	assert_int_equal(pp_pdu_status(pdu, &status, &err), 0);
	assert_int_equal(status.state, PP_PDU_UNKNOWN);
	assert_int_equal(pp_pdu_on(pdu, &times, &err), 0);
	assert_true(rig.mock.relay[0] && rig.mock.relay[2]);
	assert_int_equal(rig_journal_entries(&rig), 0);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

/* The second supply does not obey: that is no cut, and the first comes back. */
static void one_of_two_is_no_off(void **state)
{
	struct pp_pdu_times times;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start(&rig, "shelly-gen2");
	rig.config.outlets[1] = "3";
	rig.config.outlet_count = 2;
	rig.mock.fault = FAULT_UNCHANGED;
	rig.mock.fault_first = 4; /* two status reads, off, this off */
	rig.mock.fault_count = 1;
	pdu = pp_pdu_open(&rig.config, &err);
	assert_int_equal(pp_pdu_off(pdu, &times, &err), -1);
	assert_int_not_equal(times.outcome, PP_PDU_VERIFIED);
	assert_int_not_equal(times.outcome, PP_PDU_NOT_RESTORED);
	assert_true(rig.mock.relay[0] && rig.mock.relay[2]);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

static void limits_refuse(void **state)
{
	struct pp_pdu_times times;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start(&rig, "shelly-gen2");
	rig.config.cycles_per_hour_max = 2;
	for (int i = 0; i < 3; i++) { /* the memory is the folder's, not the process's */
		pdu = pp_pdu_open(&rig.config, &err);
		pp_pdu_off(pdu, &times, &err);
		assert_int_equal(times.outcome, i < 2 ? PP_PDU_VERIFIED : PP_PDU_REFUSED);
		assert_true(pp_pdu_off_allowed_in_ms(pdu) > 0 || i < 1);
		if (i < 2)
			assert_int_equal(pp_pdu_on(pdu, &times, &err), 0);
		pp_pdu_close(pdu);
	}
	rig.config.cycles_per_hour_max = -1;
	rig.config.min_on_ms = 3600000;
	pdu = pp_pdu_open(&rig.config, &err);
	pp_pdu_off(pdu, &times, &err);
	assert_int_equal(times.outcome, PP_PDU_REFUSED);
	assert_true(pp_pdu_off_allowed_in_ms(pdu) > 1000000);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

static void device_restores_itself_too(void **state)
{
	struct pp_pdu_times times;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start(&rig, "shelly-gen2");
	rig.config.device_restore_ms = 30001;
	pdu = pp_pdu_open(&rig.config, &err);
	assert_true(pp_pdu_has_device_restore(pdu));
	assert_int_equal(pp_pdu_off(pdu, &times, &err), 0);
	assert_true(times.device_restore);
	assert_non_null(strstr(rig.records.data, "toggle_after\\\":31"));
	assert_int_equal(pp_pdu_on(pdu, &times, &err), 0);
	pp_pdu_close(pdu);
	rig.config.device_restore_ms = 100000000; /* beyond what the device can */
	assert_null(pp_pdu_open(&rig.config, &err));
	rig_stop(&rig);
}

/* M7.5: zero watts proves a loss of power only with a load before, and as long as nothing flows. */
static void watts_in_the_off_phase(void **state)
{
	static const struct {
		double load_w;
		bool relapse, proven_but_for_time;
	} cases[] = { { 42, false, true }, { 0, false, false }, { 42, true, false } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pp_pdu_watts watts;
		struct pp_error err = { 0 };
		struct pp_pdu *pdu;
		struct rig rig;

		rig_start(&rig, "shelly-gen2");
		rig.mock.load_w = cases[i].load_w;
		pdu = pp_pdu_open(&rig.config, &err);
		assert_int_equal(pp_pdu_off(pdu, NULL, &err), 0);
		if (cases[i].relapse)
			rig.mock.fault = FAULT_WELDED;
		/* Long enough for three samples on a busy host too. */
		assert_int_equal(pp_pdu_watch_off(pdu, pp_clock_mono_ns() + 1500 * PP_NS_PER_MS, &watts,
			&err), 0);
		assert_true(watts.stayed_off && watts.has_watts);
		assert_false(watts.zero_proven); /* not off for 10 s */
		assert_int_equal(watts.samples_fresh >= 3, !cases[i].relapse);
		if (cases[i].relapse)
			assert_true(watts.watts_max > 41);
		rig.mock.relay[0] = true;
		assert_int_equal(pp_pdu_watch_off(pdu, 0, &watts, &err), 0);
		assert_false(watts.stayed_off);
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

static int complaints;

static void count_complaint(void *arg, const char *text)
{
	(void)arg;
	assert_non_null(text);
	complaints++;
}

static void preflight_complains(void **state)
{
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start(&rig, "shelly-gen2");
	pdu = pp_pdu_open(&rig.config, &err);
	complaints = 0;
	assert_int_equal(pp_pdu_preflight(pdu, count_complaint, NULL, &err), 0);
	rig.mock.fault = FAULT_ERROR_IN_BODY;
	rig.mock.kinds = KIND_OTHER;
	assert_int_equal(pp_pdu_preflight(pdu, count_complaint, NULL, &err), 2);
	assert_int_equal(complaints, 2);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

static void a_journal_entry_of_the_dead_blocks(void **state)
{
	struct pp_pdu_times times;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;
	pid_t pid;

	(void)state;
	rig_start(&rig, "shelly-gen2");
	pid = fork();
	if (pid == 0) { /* turns off and dies */
		pdu = pp_pdu_open(&rig.config, &err);
		_exit(pp_pdu_off(pdu, &times, &err) == 0 ? 0 : 9);
	}
	waitpid(pid, NULL, 0);
	assert_false(rig.mock.relay[0]);
	assert_int_equal(rig_journal_entries(&rig), 1);
	rig.mock.relay[0] = true; /* as if somebody had pressed the button */
	pdu = pp_pdu_open(&rig.config, &err);
	assert_int_equal(pp_pdu_off(pdu, &times, &err), -1);
	assert_int_equal(times.outcome, PP_PDU_REFUSED);
	assert_non_null(strstr(err.text, "recover"));
	rig.mock.relay[0] = false;
	assert_int_equal(pp_pdu_recover(rig.state, 2000, NULL, NULL, &err), 0);
	assert_true(rig.mock.relay[0]);
	assert_int_equal(rig_journal_entries(&rig), 1); /* marked, for a resume to read */
	assert_int_equal(pp_pdu_recover_clear(rig.state, &err), 0);
	assert_int_equal(rig_journal_entries(&rig), 0);
	assert_int_equal(pp_pdu_off(pdu, &times, &err), 0);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

/* Fault walk: request number k of a cycle fails, once and for good. Whatever happens: an off is
 * called proven only if it was one, and power is on at the end or is said not to be. */
static void fault_walk(void **state)
{
	static const enum mock_fault faults[] = {
		FAULT_RESET_BEFORE, FAULT_RESET_AFTER, FAULT_500, FAULT_GARBAGE, FAULT_UNCHANGED,
	};

	(void)state;
	for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++) {
		for (int k = 1; k <= 12; k++) {
			for (int count = 0; count <= 1; count++) {
				struct pp_pdu_times off, on;
				struct pp_error err = { 0 };
				struct pp_pdu *pdu;
				struct rig rig;
				int rc;

				rig_start(&rig, "shelly-gen2");
				rig.config.verify_timeout_ms = 60;
				rig.mock.fault = faults[f];
				rig.mock.fault_first = k;
				rig.mock.fault_count = count;
				pdu = pp_pdu_open(&rig.config, &err);
				rc = pp_pdu_off(pdu, &off, &err);
				if (rc == 0)
					assert_false(rig.mock.relay[0]);
				else if (off.outcome != PP_PDU_NOT_RESTORED)
					assert_true(rig.mock.relay[0]);
				else
					assert_int_equal(rig_journal_entries(&rig), 1);
				rc = pp_pdu_on(pdu, &on, &err);
				if (rc == 0)
					assert_true(rig.mock.relay[0]);
				else
					assert_int_equal(count, 0); /* once is survived */
				rig.mock.fault = FAULT_NONE;
				assert_int_equal(pp_pdu_on(pdu, &on, &err), 0);
				assert_int_equal(rig_journal_entries(&rig), 0);
				pp_pdu_close(pdu);
				rig_stop(&rig);
			}
		}
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_fault_has_its_outcome),
		cmocka_unit_test(lost_after_the_off),
		cmocka_unit_test(late_off_is_undone),
		cmocka_unit_test(refuses_what_is_off_already),
		cmocka_unit_test(refuses_another_device_or_label),
		cmocka_unit_test(digest_passwords),
		cmocka_unit_test(stale_nonce_is_retried_once),
		cmocka_unit_test(two_supplies_go_together),
		cmocka_unit_test(one_of_two_is_no_off),
		cmocka_unit_test(limits_refuse),
		cmocka_unit_test(device_restores_itself_too),
		cmocka_unit_test(watts_in_the_off_phase),
		cmocka_unit_test(preflight_complains),
		cmocka_unit_test(a_journal_entry_of_the_dead_blocks),
		cmocka_unit_test(fault_walk),
	};
	int rc = rig_main(argc, argv);

	return rc >= 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
