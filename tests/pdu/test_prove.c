/* SPDX-License-Identifier: MIT
 *
 * Goal: an outlet is proven to feed a machine only if all that should go dark does, all else stays, and
 * the power comes back; a proof holds for exactly what it was made of; an off that the machine itself
 * contradicts is no off.
 * Method: the mock switch; the machine is a command that looks at files: "dut" is its heartbeat, which
 * the test ties to one relay or another. Nothing here waits for a clock but the dwell of the meter.
 */
#define MOCK_PDU_EMBEDDED
#include "mock_pdu.c"
#include "rig.h"

#include "pdu/alive.h"
#include "pdu/profile.h"
#include "pdu/prove.h"

struct machine {
	struct rig *rig;
	int relay;      /* the one that really feeds it; -1: another power source */
	bool dies_for_good, blind;
	bool was_off;
	const char *boot, *boot_after;
};

static const char *boot_of_machine(void *arg)
{
	struct machine *machine = arg;

	return machine->was_off ? machine->boot_after : machine->boot;
}

static enum pp_alive_answer ask_machine(void *arg, int64_t timeout_ms)
{
	struct machine *machine = arg;
	bool on = machine->relay < 0 || machine->rig->mock.relay[machine->relay];

	(void)timeout_ms;
	machine->was_off = machine->was_off || !on;
	if (machine->blind)
		return PP_ALIVE_UNKNOWN;
	return on && !(machine->was_off && machine->dies_for_good) ? PP_ALIVE_LIVES : PP_ALIVE_SILENT;
}

enum trouble { NONE, WIRED_ELSEWHERE, SECOND_SUPPLY, NOT_BACK, BLIND, SIBLING_GOES, NO_OFF, METER_STUCK,
	NO_LOAD, SAME_BOOT, NO_BOOT };

static const struct {
	enum trouble trouble;
	bool proven;
	const char *says;
} rows[] = {
	{ NONE, true, NULL },
	{ NO_LOAD, true, NULL }, /* the machine's own silence is enough */
	{ WIRED_ELSEWHERE, false, "did not fall silent" },
	{ SECOND_SUPPLY, false, "did not fall silent" },
	{ BLIND, false, "did not fall silent" },
	{ NOT_BACK, false, "after the power came back" },
	{ SIBLING_GOES, false, "changed too" },
	{ NO_OFF, false, "off" },
	{ METER_STUCK, false, "flow through it" },
	{ SAME_BOOT, false, "ran on" },
	{ NO_BOOT, true, NULL }, /* an agent whose boot is not known, before or after */
};

static void prepare(struct rig *rig, struct machine *machine, enum trouble trouble)
{
	*machine = (struct machine){ .rig = rig, .relay = 0, .boot = "b1", .boot_after = "b2" };
	if (trouble == SAME_BOOT)
		machine->boot_after = machine->boot;
	if (trouble == NO_BOOT)
		machine->boot = machine->boot_after = "";
	if (trouble == WIRED_ELSEWHERE)
		machine->relay = 2;
	if (trouble == SECOND_SUPPLY)
		machine->relay = -1;
	if (trouble == NO_LOAD)
		rig->mock.load_w = 0;
	machine->dies_for_good = trouble == NOT_BACK;
	if (trouble == NO_OFF || trouble == METER_STUCK) {
		rig->mock.fault = trouble == NO_OFF ? FAULT_UNCHANGED : FAULT_WELDED;
		rig->mock.kinds = KIND_OFF;
	}
	if (trouble == SIBLING_GOES)
		rig->mock.gang = 1 << 2;
}

static struct pp_prove_config config_of(struct rig *rig, struct pp_alive *alive)
{
	return (struct pp_prove_config){ .pdu = &rig->config, .alive = alive, .off_ms = 1,
		.back_ms = 300, .witness = { .timeout_ms = 400, .dwell_ms = 20, .ask_ms = 50 } };
}

static void only_the_right_wiring_is_proven(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_prove_config config;
		enum pp_pdu_outcome outcome;
		struct machine machine;
		struct pp_error err = { 0 };
		struct pp_alive *alive;
		struct pp_pdu *pdu;
		struct rig rig;
		int rc;

		rig_start(&rig, "shelly-gen2");
		rig.config.watts_stale_ms = -1;
		prepare(&rig, &machine, rows[i].trouble);
		alive = pp_alive_of("machine", ask_machine, boot_of_machine, &machine, &err);
		config = config_of(&rig, alive);
		if (rows[i].trouble == BLIND) { /* alive at first, then the network goes */
			rig.mock.blind = &machine.blind;
		}
		rc = pp_prove(&config, &outcome, &err);
		if ((rc == 0) != rows[i].proven || (rows[i].says && !strstr(err.text, rows[i].says)))
			fail_msg("row %zu: %d (%s): %s", i, rc, pp_pdu_outcome_name(outcome), err.text);
		assert_int_equal(outcome == PP_PDU_VERIFIED, rc == 0);
		assert_true(rig.mock.relay[0]); /* whatever happened */
		assert_int_equal(rig_journal_entries(&rig), 0);
		pdu = pp_pdu_open(&rig.config, &err);
		assert_int_equal(pp_proof_check(pdu, NULL, &err), rows[i].proven ? 0 : -1);
		pp_pdu_close(pdu);
		pp_alive_free(alive);
		rig_stop(&rig);
	}
}

static int check_with(struct rig *rig, const char *path, char *says, size_t bytes)
{
	struct pp_error err = { 0 };
	struct pp_pdu *pdu = pp_pdu_open(&rig->config, &err);
	int rc = pdu ? pp_proof_check(pdu, path, &err) : -1;

	snprintf(says, bytes, "%s", err.text);
	pp_pdu_close(pdu);
	return rc;
}

/* The proof is of this profile's bytes, this switch, these outlets, this device and their names. */
static void a_proof_expires(void **state)
{
	struct machine machine;
	struct pp_error err = { 0 };
	enum pp_pdu_outcome outcome;
	struct pp_prove_config config;
	struct pp_alive *alive;
	char copy[96], profile[96], command[4400], says[512];
	struct pp_profile *shipped = pp_profile_load("shelly-gen2", &err);
	struct rig rig;

	(void)state;
	rig_start(&rig, "shelly-gen2");
	rig.config.watts_stale_ms = -1;
	snprintf(copy, sizeof(copy), "%s/proof.json", rig.dir);
	snprintf(profile, sizeof(profile), "%s/shelly-gen2.ini", rig.dir);
	snprintf(command, sizeof(command), "cp '%s' '%s'", shipped->path, profile);
	assert_int_equal(system(command), 0);
	rig.config.profile = profile;
	prepare(&rig, &machine, NONE);
	alive = pp_alive_of("machine", ask_machine, boot_of_machine, &machine, &err);
	config = config_of(&rig, alive);
	config.path = copy;
	if (pp_prove(&config, &outcome, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(check_with(&rig, NULL, says, sizeof(says)), 0);
	assert_int_equal(check_with(&rig, copy, says, sizeof(says)), 0);

	rig.config.outlets[0] = "2";
	assert_int_equal(check_with(&rig, NULL, says, sizeof(says)), -1);
	assert_non_null(strstr(says, "prove"));
	assert_int_equal(check_with(&rig, copy, says, sizeof(says)), -1);
	assert_non_null(strstr(says, "expired"));
	rig.config.outlets[0] = "1";

	rig.mock.device_id = "mock-device-0002"; /* the switch was exchanged */
	assert_int_equal(check_with(&rig, NULL, says, sizeof(says)), -1);
	assert_non_null(strstr(says, "identity"));
	rig.mock.device_id = "mock-device-0001";
	assert_int_equal(check_with(&rig, NULL, says, sizeof(says)), 0);

	snprintf(command, sizeof(command), "echo '; changed' >> %s", profile);
	assert_int_equal(system(command), 0);
	assert_int_equal(check_with(&rig, NULL, says, sizeof(says)), -1);
	assert_non_null(strstr(says, "profile"));
	snprintf(command, sizeof(command), "echo '{' > %s", copy);
	assert_int_equal(system(command), 0);
	assert_int_equal(check_with(&rig, copy, says, sizeof(says)), -1);
	pp_profile_free(shipped);
	pp_alive_free(alive);
	rig_stop(&rig);
}

/* The witness after a plain off: the machine, or the meter, or nobody. */
static void witnesses(void **state)
{
	static const struct {
		const char *dialect;
		bool ask, wired;
		double load_w;
		int rc;
		enum pp_error_class class;
	} cases[] = {
		{ "shelly-gen2", true, true, 42, 0, 0 },
		{ "shelly-gen2", true, false, 42, -1, PP_ERR_PEER },
		{ "shelly-gen2", false, true, 42, 0, 0 },
		{ "shelly-gen2", false, true, 0, -1, PP_ERR_PEER }, /* nothing to see go */
		{ "gude", true, true, 42, 0, 0 },
		{ "gude", false, true, 42, -1, PP_ERR_UNSUPPORTED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pp_off_witness_config config = { .timeout_ms = 200, .dwell_ms = 20 };
		struct pp_off_witness witness;
		struct machine machine;
		struct pp_error err = { 0 };
		struct pp_pdu *pdu;
		struct rig rig;
		int rc;

		rig_start(&rig, cases[i].dialect);
		rig.config.watts_stale_ms = -1;
		rig.mock.load_w = cases[i].load_w;
		machine = (struct machine){ .rig = &rig, .relay = cases[i].wired ? 0 : 3 };
		if (cases[i].ask)
			config.alive = pp_alive_of("machine", ask_machine, boot_of_machine, &machine, &err);
		pdu = pp_pdu_open(&rig.config, &err);
		assert_int_equal(pp_pdu_off(pdu, NULL, &err), 0);
		rc = pp_pdu_witness(pdu, &config, &witness, &err);
		if (rc != cases[i].rc || (rc != 0 && err.class != cases[i].class))
			fail_msg("case %zu: %d: %s", i, rc, err.text);
		assert_int_equal(witness.lost, cases[i].ask && cases[i].wired);
		assert_int_equal(pp_pdu_on(pdu, NULL, &err), 0);
		pp_alive_free(config.alive);
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

/* Within the time in which the meter's figure means nothing, its zero is no witness. */
static void a_stale_zero_is_no_witness(void **state)
{
	struct pp_error err = { 0 };
	struct pp_pdu_status status;
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start(&rig, "shelly-gen2");
	rig.config.watts_stale_ms = 3600000;
	pdu = pp_pdu_open(&rig.config, &err);
	assert_int_equal(pp_pdu_off(pdu, NULL, &err), 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(pp_pdu_status(pdu, &status, &err), 0);
		assert_true(status.has_watts && !status.watts_fresh);
	}
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

static void ways_to_ask(void **state)
{
	static const struct {
		const char *text;
		enum pp_alive_answer answer;
	} cases[] = {
		{ "cmd:true", PP_ALIVE_LIVES },
		{ "cmd:false", PP_ALIVE_SILENT },
		{ "cmd:sh -c 'exit 3'", PP_ALIVE_SILENT },
		{ "cmd:sleep 10", PP_ALIVE_SILENT },
		{ "cmd:no-such-program-here", PP_ALIVE_UNKNOWN },
		{ "cmd:sh -c 'kill -9 $$'", PP_ALIVE_UNKNOWN },
		{ "tcp:127.0.0.1:1", PP_ALIVE_REFUSES },
	};
	static const char *const bad[] = { "", "tcp:", "tcp:host", "tcp:host:", "tcp:host:http", "ping:",
		"ping:-f", "cmd:", "cmd:'open", "http://x" };
	struct pp_error err = { 0 };
	struct pp_alive *alive;
	struct rig rig;
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		alive = pp_alive_parse(cases[i].text, &err);
		if (!alive)
			fail_msg("%s: %s", cases[i].text, err.text);
		if (pp_alive_ask(alive, 100) != cases[i].answer)
			fail_msg("%s", cases[i].text);
		pp_alive_free(alive);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (pp_alive_parse(bad[i], &err))
			fail_msg("'%s' is taken", bad[i]);
	rig_start(&rig, "gude");
	snprintf(text, sizeof(text), "tcp:[127.0.0.1]:%d", rig.mock.port);
	alive = pp_alive_parse(text, &err);
	assert_non_null(alive);
	assert_string_equal(pp_alive_host(alive), "127.0.0.1");
	assert_int_equal(pp_alive_ask(alive, 1000), PP_ALIVE_LIVES);
	pp_alive_free(alive);
	rig_stop(&rig);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_right_wiring_is_proven),
		cmocka_unit_test(a_proof_expires),
		cmocka_unit_test(witnesses),
		cmocka_unit_test(a_stale_zero_is_no_witness),
		cmocka_unit_test(ways_to_ask),
	};
	int rc = rig_main(argc, argv);

	return rc >= 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
