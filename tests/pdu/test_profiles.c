/* SPDX-License-Identifier: MIT
 *
 * Goal: each profile turns its device off and on, with and without a password, and each device's own
 * way to refuse (often a 200) is never taken for an off.
 * Method: the same table of faults against every dialect of the mock, which was written from the
 * vendors' documents.
 */
#define MOCK_PDU_EMBEDDED
#include "mock_pdu.c"
#include "rig.h"

static const struct {
	const char *name, *outlet;
	int relay;
	bool identity, label, pending;
} profiles[] = {
	{ "shelly-gen2", "2", 1, true, true, false },
	{ "shelly-gen1", "2", 1, true, false, false },
	{ "tasmota", "2", 1, true, false, false },
	{ "dli-rest", "2", 1, true, true, false },
	{ "netio-json", "2", 1, true, true, false },
	{ "gude", "2", 1, false, true, false },
	{ "raritan-jsonrpc", "2", 1, true, true, true },
	{ "servertech-jaws", "AA2", 1, false, true, true },
	{ "redfish-outlet", "A2", 1, true, true, true },
	{ "redfish-system", "2", 1, true, false, true },
	{ "home-assistant", "switch.dut_2", 1, false, true, true },
	{ "esphome", "dut", 0, false, false, false },
	{ "mystrom", "1", 0, true, false, false },
	{ "pikvm", "1", 0, false, false, true },
	{ "devantech-eth008", "2", 1, false, false, false },
	{ "tinycontrol", "2", 1, false, false, false },
	{ "generic-rest", "1", 0, false, false, false },
};

#define PROFILES (sizeof(profiles) / sizeof(profiles[0]))

static void start(struct rig *rig, size_t i)
{
	rig_start(rig, profiles[i].name);
	rig->config.outlets[0] = profiles[i].outlet;
	rig->config.request_timeout_ms = 400;
	rig->config.verify_timeout_ms = 300;
}

static void a_cycle_with_a_password(void **state)
{
	(void)state;
	for (size_t i = 0; i < PROFILES; i++) {
		struct pp_pdu_identity identity;
		struct pp_pdu_times times;
		struct pp_error err = { 0 };
		struct pp_pdu *pdu;
		struct rig rig;

		start(&rig, i);
		rig_credentials(&rig, RIG_PASSWORD);
		rig.mock.password = RIG_PASSWORD;
		pdu = pp_pdu_open(&rig.config, &err);
		if (!pdu || pp_pdu_identify(pdu, &identity, &err) != 0)
			fail_msg("%s: %s", profiles[i].name, err.text);
		if (profiles[i].identity)
			assert_string_equal(identity.id, rig.mock.device_id);
		if (profiles[i].label)
			assert_string_equal(identity.label[0], profiles[i].relay ? "dut-1" : "dut-0");
		if (pp_pdu_off(pdu, &times, &err) != 0 || rig.mock.relay[profiles[i].relay])
			fail_msg("%s: off: %s\n%s", profiles[i].name, err.text, rig.records.data);
		assert_false(times.ambiguous);
		for (int n = 0; n < MOCK_OUTLETS; n++)
			assert_int_equal(rig.mock.relay[n], n != profiles[i].relay);
		if (pp_pdu_on(pdu, &times, &err) != 0 || !rig.mock.relay[profiles[i].relay])
			fail_msg("%s: on: %s", profiles[i].name, err.text);
		assert_null(strstr(rig.records.data, RIG_PASSWORD));
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

static void wrong_password_switches_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < PROFILES; i++) {
		struct pp_pdu_times times;
		struct pp_error err = { 0 };
		struct pp_pdu *pdu;
		struct rig rig;

		start(&rig, i);
		if (rig.mock.dialect->auth != MOCK_AUTH_NONE) {
			rig_credentials(&rig, "a-wrong-one");
			rig.mock.password = RIG_PASSWORD;
			pdu = pp_pdu_open(&rig.config, &err);
			assert_int_equal(pp_pdu_off(pdu, &times, &err), -1);
			assert_int_equal(times.t_sent_ns, 0);
			assert_int_equal(rig.mock.sets[0], 0);
			pp_pdu_close(pdu);
		}
		rig_stop(&rig);
	}
}

static const struct {
	enum mock_fault fault;
	int kinds;
} faults[] = {
	{ FAULT_ERROR_IN_BODY, KIND_OFF }, { FAULT_UNCHANGED, KIND_OFF }, { FAULT_FLAP, KIND_STATUS },
	{ FAULT_REDIRECT, KIND_OFF },      { FAULT_500, KIND_OFF },       { FAULT_403, KIND_OFF },
	{ FAULT_GARBAGE, KIND_STATUS },    { FAULT_HTML, KIND_STATUS },   { FAULT_EMPTY, KIND_STATUS },
	{ FAULT_HALF, KIND_STATUS },       { FAULT_REDIRECT, KIND_STATUS },
	{ FAULT_RESET_BEFORE, KIND_OFF },  { FAULT_HTML, KIND_OFF },
};

static void no_refusal_is_an_off(void **state)
{
	(void)state;
	for (size_t i = 0; i < PROFILES; i++) {
		for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++) {
			struct pp_pdu_times times;
			struct pp_error err = { 0 };
			struct pp_pdu *pdu;
			struct rig rig;

			start(&rig, i);
			rig.mock.fault = faults[f].fault;
			rig.mock.kinds = faults[f].kinds;
			pdu = pp_pdu_open(&rig.config, &err);
			if (pp_pdu_off(pdu, &times, &err) == 0)
				fail_msg("%s: %s on %d counts as off\n%s", profiles[i].name,
					mock_fault_names[faults[f].fault], faults[f].kinds,
					rig.records.data);
			if (times.outcome != PP_PDU_NOT_RESTORED && !rig.mock.relay[profiles[i].relay])
				fail_msg("%s: %s on %d leaves it off", profiles[i].name,
					mock_fault_names[faults[f].fault], faults[f].kinds);
			assert_int_not_equal(times.outcome, PP_PDU_VERIFIED);
			pp_pdu_close(pdu);
			rig_stop(&rig);
		}
	}
}

/* Pending is never off: with a device that stays so beyond the time, the off fails; one that gets
 * there in time is proven only by its later reads. */
static void pending_is_not_off(void **state)
{
	(void)state;
	for (size_t i = 0; i < PROFILES; i++) {
		for (int reads = 4; profiles[i].pending && reads <= 4000; reads *= 1000) {
			struct pp_pdu_times times;
			struct pp_error err = { 0 };
			struct pp_pdu *pdu;
			struct rig rig;

			start(&rig, i);
			rig.mock.fault = FAULT_PENDING;
			rig.mock.kinds = KIND_OFF;
			rig.mock.slow_reads = reads;
			pdu = pp_pdu_open(&rig.config, &err);
			pp_pdu_off(pdu, &times, &err);
			if (times.outcome != (reads == 4 ? PP_PDU_VERIFIED : PP_PDU_STATE_UNKNOWN))
				fail_msg("%s: pending for %d reads: %s: %s", profiles[i].name, reads,
					pp_pdu_outcome_name(times.outcome), err.text);
			if (reads == 4)
				assert_true(rig.mock.status_reads >= 1 + 4 + 1);
			pp_pdu_close(pdu);
			rig_stop(&rig);
		}
	}
}

/* The device's own timer: asked for the right time in its own unit, it restores alone. */
static void device_side_restore(void **state)
{
	static const char *const timed[] = { "shelly-gen2", "shelly-gen1", "tasmota", "netio-json", "gude" };
	size_t found = 0;

	(void)state;
	for (size_t i = 0; i < PROFILES; i++) {
		struct pp_pdu_status status;
		struct pp_pdu_times times;
		struct pp_error err = { 0 };
		struct pp_pdu *pdu;
		struct rig rig;
		bool wanted = false;

		for (size_t t = 0; t < sizeof(timed) / sizeof(timed[0]); t++)
			wanted = wanted || strcmp(timed[t], profiles[i].name) == 0;
		start(&rig, i);
		rig.config.device_restore_ms = 29500;
		rig.config.verify_timeout_ms = rig.config.request_timeout_ms = 5000; /* nothing fails here */
		pdu = pp_pdu_open(&rig.config, &err);
		assert_int_equal(pp_pdu_has_device_restore(pdu), wanted);
		if (pp_pdu_off(pdu, &times, &err) != 0)
			fail_msg("%s: %s\n%s", profiles[i].name, err.text, rig.records.data);
		assert_int_equal(times.device_restore, wanted);
		if (wanted && rig.mock.timed_s[profiles[i].relay] != 30 &&
		    rig.mock.timed_s[profiles[i].relay] != 29) /* in s, or finer and cut by the mock */
			fail_msg("%s: %d s", profiles[i].name, rig.mock.timed_s[profiles[i].relay]);
		mock_fire_timers(&rig.mock);
		assert_int_equal(rig.mock.relay[profiles[i].relay], wanted);
		if (wanted) /* and it is seen */
			assert_true(pp_pdu_status(pdu, &status, &err) == 0 && status.state == PP_PDU_ON);
		assert_int_equal(pp_pdu_on(pdu, &times, &err), 0);
		assert_int_equal(rig.mock.timed_s[profiles[i].relay], 0);
		found += wanted;
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
	assert_int_equal(found, sizeof(timed) / sizeof(timed[0]));
}

static int complaints;

static void count(void *arg, const char *text)
{
	(void)arg;
	(void)text;
	complaints++;
}

/* Each [check] passes on a device that is set up, and complains of one that is not. */
static void checks_of_settings(void **state)
{
	static const struct {
		const char *name;
		int checks;
	} rows[] = {
		{ "shelly-gen2", 2 }, { "shelly-gen1", 2 }, { "tasmota", 2 }, { "dli-rest", 2 },
		{ "raritan-jsonrpc", 1 }, { "redfish-outlet", 3 }, { "redfish-system", 1 },
	};

	(void)state;
	for (size_t i = 0; i < PROFILES; i++) {
		struct pp_error err = { 0 };
		struct pp_pdu *pdu;
		struct rig rig;
		int wanted = 0;

		for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
			if (strcmp(rows[r].name, profiles[i].name) == 0)
				wanted = rows[r].checks;
		start(&rig, i);
		pdu = pp_pdu_open(&rig.config, &err);
		complaints = 0;
		if (pp_pdu_preflight(pdu, count, NULL, &err) != 0)
			fail_msg("%s complains of a good device: %s", profiles[i].name, err.text);
		rig.mock.misconfigured = true;
		if (pp_pdu_preflight(pdu, count, NULL, &err) != wanted || complaints != wanted)
			fail_msg("%s: %d complaints, not %d", profiles[i].name, complaints, wanted);
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

static void assumed_state_proves_nothing(void **state)
{
	struct pp_pdu_times times;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start(&rig, "home-assistant");
	rig.config.outlets[0] = "switch.dut_1";
	rig.mock.fault = FAULT_ERROR_IN_BODY;
	rig.mock.kinds = KIND_STATUS;
	pdu = pp_pdu_open(&rig.config, &err);
	assert_int_equal(pp_pdu_off(pdu, &times, &err), -1);
	assert_int_equal(rig.mock.sets[0], 0);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

static void one_relay_tasmota(void **state)
{
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start(&rig, "tasmota");
	rig.mock.device_id = "one-relay";
	pdu = pp_pdu_open(&rig.config, &err);
	assert_int_equal(pp_pdu_off(pdu, NULL, &err), 0);
	assert_int_equal(pp_pdu_on(pdu, NULL, &err), 0);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

/* Outlets of another collection than RackPDUs/1; a parameter that the profile has not, or a value that
 * is more than a path, switches nothing. */
static void redfish_elsewhere(void **state)
{
	static const char *const bad[] = { "pdu=RackPDUs/1?x", "rack=/a", "pdu", "pdu=/a/../b" };
	struct pp_pdu_times times;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start(&rig, "redfish-outlet");
	rig.config.outlets[0] = "A2";
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		rig.config.parameters = bad[i];
		assert_null(pp_pdu_open(&rig.config, &err));
	}
	rig.config.parameters = "pdu=/redfish/v1/PowerEquipment/FloorPDUs/7";
	rig.config.identity = rig.mock.device_id;
	pdu = pp_pdu_open(&rig.config, &err);
	if (!pdu || pp_pdu_off(pdu, &times, &err) != 0)
		fail_msg("%s\n%s", err.text, rig.records.data);
	assert_false(rig.mock.relay[1]);
	assert_non_null(strstr(rig.records.data, "/redfish/v1/PowerEquipment/FloorPDUs/7/Outlets/A2"));
	assert_null(strstr(rig.records.data, "/RackPDUs/1/Outlets/A2\""));
	pp_pdu_close(pdu);
	/* Who restores must ask at the same place: the journal knows it. */
	assert_int_equal(rig_journal_entries(&rig), 1);
	rig.config.parameters = NULL;
	pdu = pp_pdu_open(&rig.config, &err);
	assert_int_equal(pp_pdu_on(pdu, NULL, &err), 0);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

static void pdudaemon_never_proves(void **state)
{
	struct pp_pdu_times times;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start(&rig, "generic-rest");
	rig.config.profile = "pdudaemon";
	pdu = pp_pdu_open(&rig.config, &err);
	assert_non_null(pdu);
	assert_false(pp_pdu_can_verify(pdu));
	assert_int_equal(pp_pdu_off(pdu, &times, &err), -1);
	assert_int_equal(times.outcome, PP_PDU_REFUSED);
	assert_int_equal(rig.mock.requests, 0);
	pp_pdu_close(pdu);
	/* The words of its README: hostname, port, no delay. */
	rig.config.parameters = "hostname=rack-7.lab";
	pdu = pp_pdu_open(&rig.config, &err);
	assert_int_equal(pp_pdu_on(pdu, &times, &err), -1);
	assert_int_equal(times.outcome, PP_PDU_STATE_UNKNOWN);
	assert_non_null(strstr(rig.records.data,
		"/power/control/on?hostname=rack-7.lab&port=1&delay=0"));
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cycle_with_a_password),
		cmocka_unit_test(wrong_password_switches_nothing),
		cmocka_unit_test(no_refusal_is_an_off),
		cmocka_unit_test(pending_is_not_off),
		cmocka_unit_test(device_side_restore),
		cmocka_unit_test(checks_of_settings),
		cmocka_unit_test(assumed_state_proves_nothing),
		cmocka_unit_test(one_relay_tasmota),
		cmocka_unit_test(redfish_elsewhere),
		cmocka_unit_test(pdudaemon_never_proves),
	};
	int rc = rig_main(argc, argv);

	return rc >= 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
