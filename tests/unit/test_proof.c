/* SPDX-License-Identifier: MIT
 *
 * Goal: a cut counts only when every rule of M5.1 and M5.2 is met, and each rule decides in both
 * ways. Method: one proven cut; each row changes one or two facts of it and names what must come
 * of it. Times are milliseconds after the off was sent. M5.3 (counters of the drive) likewise, as
 * a campaign of cuts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "verifier/proof.h"

#define OFF_NS (1000000LL * 1000 * 100)
#define MS(n)  (OFF_NS + (n) * 1000000LL)

/* Off sent at 0, read back at 500, on sent at 3000, the new boot's hello at 5000, up for 1500. */
static void good(struct pp_cut_facts *cut, struct pp_witness *w)
{
	memset(cut, 0, sizeof(*cut));
	memset(w, 0, sizeof(*w));
	strcpy(cut->boot_before, "A");
	cut->t_run_ns = MS(-4000);
	cut->t_off_sent_ns = MS(0);
	cut->t_off_read_ns = MS(500);
	cut->off_verified = true;
	cut->t_on_sent_ns = MS(3000);
	cut->t_on_read_ns = MS(3500);
	cut->hold_up_ns = 1000 * 1000000LL;
	cut->boots = 1;
	strcpy(cut->boot[0].boot_id, "B");
	cut->boot[0].t_ns = MS(5000);
	cut->boot[0].uptime_ns = 1500 * 1000000LL;
	w->t_last_ns = MS(-5);
}

static void add_boot(struct pp_cut_facts *cut, const char *id, int t_ms, int uptime_ms)
{
	struct pp_boot_seen *b = &cut->boot[cut->boots++];

	snprintf(b->boot_id, sizeof(b->boot_id), "%s", id);
	b->t_ns = MS(t_ms);
	b->uptime_ns = uptime_ms * 1000000LL;
}

struct row {
	const char *rule;
	const char *reason; /* NULL: proven */
	int last_ms;        /* t_last; 1: as it is */
	int closed_ms;      /* FIN or RST; 0: none */
	int uptime_ms;      /* of the new boot; 0: as it is */
	const char *other;  /* id of one more boot ... */
	int other_ms, other_uptime_ms;
	bool unverified, not_read, no_off, no_boot, same_boot, no_last, no_before;
	const char *said;   /* by the controller */
};

static const struct row rows[] = {
	{ .rule = "M5 a proven cut", .last_ms = 1 },
	{ .rule = "M5.1 last frame 50 ms before the off", .last_ms = -50 },
	{ .rule = "M5.1 51 ms before", .last_ms = -51, .reason = "died before the cut" },
	{ .rule = "M5.1 no frame at all", .no_last = true, .last_ms = 1,
		.reason = "died before the cut" },
	{ .rule = "M5.1 last frame as the hold-up ends", .last_ms = 1500 },
	{ .rule = "M5.1 and a millisecond later", .last_ms = 1501, .reason = "lived after the off" },
	{ .rule = "M5.1 FIN before the off", .last_ms = 1, .closed_ms = -1,
		.reason = "died before the cut" },
	{ .rule = "M5.1 FIN between off and read-back", .last_ms = 1, .closed_ms = 499,
		.reason = "connection was closed before the off" },
	{ .rule = "M5.1 RST after the read-back is ignored", .last_ms = 1, .closed_ms = 501 },
	{ .rule = "M5.1 RST of the rebooted kernel", .last_ms = 1, .closed_ms = 5001 },
	{ .rule = "M5.1 not verified", .last_ms = 1, .unverified = true,
		.reason = "off was not read back" },
	{ .rule = "M5.1 verified, and no time of it", .last_ms = 1, .not_read = true,
		.reason = "off was not read back" },
	{ .rule = "M5.1 never sent", .last_ms = 1, .no_off = true, .no_boot = true,
		.reason = "never cut" },
	{ .rule = "M5.2 never sent, and another boot", .last_ms = 1, .no_off = true,
		.reason = "rebooted by itself before the cut" },
	{ .rule = "M5.2 no boot yet disproves nothing (M6.2)", .last_ms = 1, .no_boot = true },
	{ .rule = "M5.2 same boot", .last_ms = 1, .same_boot = true,
		.reason = "the machine did not lose power (same boot)" },
	{ .rule = "M5.2 up exactly since the on", .last_ms = 1, .uptime_ms = 2000 },
	{ .rule = "M5.2 up a millisecond longer", .last_ms = 1, .uptime_ms = 2001,
		.reason = "booted before power was back" },
	{ .rule = "M5.2 another boot before the off", .last_ms = 1, .other = "C", .other_ms = -100,
		.other_uptime_ms = 1, .reason = "rebooted by itself before the cut" },
	{ .rule = "M5.2 a boot while the outlet was off", .last_ms = 1, .other = "C", .other_ms = 2000,
		.other_uptime_ms = 1, .reason = "rebooted again before the scan" },
	{ .rule = "M5.2 two boots after the on", .last_ms = 1, .other = "C", .other_ms = 6000,
		.other_uptime_ms = 1, .reason = "rebooted again before the scan" },
	{ .rule = "M5.2 the new boot connects twice", .last_ms = 1, .other = "B", .other_ms = 6000,
		.other_uptime_ms = 2500 },
	{ .rule = "M5.2 the old boot reconnects before the off", .last_ms = 1, .other = "A",
		.other_ms = -100, .other_uptime_ms = 99999 },
	{ .rule = "M5.2 the old boot is back after the on", .last_ms = 1, .other = "A",
		.other_ms = 6000, .other_uptime_ms = 99999,
		.reason = "the machine did not lose power (same boot)" },
	{ .rule = "M5.2 nobody knows the boot before", .last_ms = 1, .no_before = true,
		.reason = "the boot before the cut is not known" },
	{ .rule = "M5 what the controller knows comes first", .last_ms = 1501, .same_boot = true,
		.said = "off was not read back", .reason = "off was not read back" },
	{ .rule = "M5 in order of time", .last_ms = 1501, .same_boot = true,
		.reason = "lived after the off" },
};

static void test_proof(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct pp_cut_facts cut;
		struct pp_cut_proof proof;
		struct pp_witness w;

		good(&cut, &w);
		if (r->last_ms != 1)
			w.t_last_ns = MS(r->last_ms);
		if (r->no_last)
			w.t_last_ns = 0;
		if (r->closed_ms)
			w.t_closed_ns = MS(r->closed_ms);
		if (r->uptime_ms)
			cut.boot[0].uptime_ns = r->uptime_ms * 1000000LL;
		if (r->other)
			add_boot(&cut, r->other, r->other_ms, r->other_uptime_ms);
		if (r->same_boot)
			strcpy(cut.boot[0].boot_id, "A");
		if (r->no_boot)
			cut.boots = 0;
		if (r->no_before)
			cut.boot_before[0] = '\0';
		cut.off_verified = !r->unverified;
		if (r->not_read)
			cut.t_off_read_ns = 0;
		if (r->no_off)
			cut.t_off_sent_ns = 0;
		if (r->said)
			snprintf(cut.void_reason, sizeof(cut.void_reason), "%s", r->said);
		pp_cut_prove(&cut, &w, &proof);
		if (proof.proven != !r->reason || strcmp(proof.void_reason, r->reason ? r->reason : "") ||
			proof.booted != !(r->no_boot || r->same_boot))
			fail_msg("%s: proven %d, '%s', booted %d", r->rule, proof.proven, proof.void_reason,
				proof.booted);
	}
}

/* ---- M5.3 --------------------------------------------------------------------------------------- */

/*
 * Cuts in words: R both counters rose, S power cycles alone, N neither, 3 three of each, L the
 * unsafe one by two (a late write of the last), - no counters. Expected: r rose, a against, . none.
 */
static const struct {
	const char *rule, *cuts, *expected;
} counted[] = {
	{ "M5.3 both rise", "RRR", "rrr" },
	{ "M5.3 power cycles stay", "RNR", "rar" },
	{ "M5.3 unsafe never rises: not live", "SSSS", "rrrr" },
	{ "M5.3 live, then one cut of lag", "RS", "rr" },
	{ "M5.3 lag is allowed once", "RSS", "rra" },
	{ "M5.3 and not once more after each void", "RSSS", "rraa" },
	{ "M5.3 lag that catches up is no shutdown", "RSLSR", "rrrrr" },
	{ "M5.3 rises beyond the cuts buy nothing", "3SS", "rra" },
	{ "M5.3 a drive without counters", "---", "..." },
	{ "M5.3 counters that vanish prove nothing", "R-R", "r.r" },
};

static void test_counters(void **state)
{
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(counted) / sizeof(counted[0]); i++) {
		struct pp_counter_history history = { .live = false };
		struct pp_drive_counters now = { .has_power_cycles = true, .has_unsafe = true,
			.power_cycles = 10, .unsafe_shutdowns = 4 };

		for (k = 0; counted[i].cuts[k]; k++) {
			struct pp_drive_counters before = now;
			char reason[PP_TEXT_SHORT], c = counted[i].cuts[k], want = counted[i].expected[k];
			enum pp_counter_word word;

			now.power_cycles += c == 'N' ? 0 : c == '3' ? 3 : 1;
			now.unsafe_shutdowns += c == 'R' ? 1 : c == 'L' ? 2 : c == '3' ? 3 : 0;
			if (c == '-')
				before.has_power_cycles = false;
			word = pp_cut_counters(&history, &before, &now, reason);
			if (word != (want == 'r' ? PP_COUNTERS_ROSE : want == 'a' ? PP_COUNTERS_AGAINST
				: PP_COUNTERS_NONE))
				fail_msg("%s: cut %zu: %d '%s'", counted[i].rule, k + 1, word, reason);
			if (want == 'a')
				assert_string_equal(reason, c == 'N' ? "drive kept its power"
					: "orderly shutdown");
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_proof),
		cmocka_unit_test(test_counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
