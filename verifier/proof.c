/* SPDX-License-Identifier: MIT */
#include "proof.h"

#include <stdio.h>
#include <string.h>

void pp_witness_add(struct pp_witness *witness, const struct pp_ledger_data *ledger)
{
	int64_t t = pp_ledger_t_last(ledger), closed;
	enum pp_close how = pp_ledger_first_orderly_close(ledger, &closed);

	if (t != PP_LEDGER_NEVER && t > witness->t_last_ns)
		witness->t_last_ns = t;
	if (how != PP_CLOSE_NOT && (!witness->t_closed_ns || closed < witness->t_closed_ns)) {
		witness->t_closed_ns = closed;
		witness->how = how;
	}
}

static void not_proven(struct pp_cut_proof *proof, const char *reason)
{
	proof->proven = false;
	if (!proof->void_reason[0])
		snprintf(proof->void_reason, sizeof(proof->void_reason), "%s", reason);
}

/* M5.2: one boot from the beginning of the run to the off. */
static void prove_one_life(const struct pp_cut_facts *cut, struct pp_cut_proof *proof)
{
	uint32_t i;

	if (!cut->boot_before[0])
		not_proven(proof, "the boot before the cut is not known");
	for (i = 0; i < cut->boots; i++)
		if (strcmp(cut->boot[i].boot_id, cut->boot_before) != 0 &&
			(!cut->t_off_sent_ns || cut->boot[i].t_ns < cut->t_off_sent_ns))
			not_proven(proof, "rebooted by itself before the cut");
}

/* Known before the power came back (M5.1). */
static void prove_off(const struct pp_cut_facts *cut, const struct pp_witness *w,
	struct pp_cut_proof *proof)
{
	if (!cut->t_off_sent_ns) {
		not_proven(proof, "never cut");
		return;
	}
	/* A RST after the read-back is a rebooted kernel answering old frames: it proves nothing. */
	if (w->t_closed_ns && w->t_closed_ns < cut->t_off_sent_ns)
		not_proven(proof, "died before the cut");
	/* M5.5: nobody can read a hand back; the drive itself must vouch for such a cut. */
	if ((!cut->off_verified && !cut->by_hand) || !cut->t_off_read_ns)
		not_proven(proof, "off was not read back");
	if (w->t_closed_ns && w->t_closed_ns < cut->t_off_read_ns)
		not_proven(proof, "connection was closed before the off");
	if (!w->t_last_ns || w->t_last_ns < cut->t_off_sent_ns - PP_LEAD_NS)
		not_proven(proof, "died before the cut");
	if (w->t_last_ns > cut->t_off_read_ns + cut->hold_up_ns)
		not_proven(proof, "lived after the off");
}

/* M5.2: one new boot, younger than the power, and no other up to the scan. */
static void prove_boot(const struct pp_cut_facts *cut, struct pp_cut_proof *proof)
{
	const struct pp_boot_seen *fresh = NULL;
	uint32_t i;

	for (i = 0; i < cut->boots; i++) {
		const struct pp_boot_seen *boot = &cut->boot[i];

		if (strcmp(boot->boot_id, cut->boot_before) == 0) {
			if (cut->t_on_sent_ns && boot->t_ns > cut->t_on_sent_ns)
				not_proven(proof, "the machine did not lose power (same boot)");
			continue;
		}
		if (fresh && strcmp(fresh->boot_id, boot->boot_id) != 0)
			not_proven(proof, "rebooted again before the scan");
		else if (!cut->t_on_sent_ns || boot->t_ns < cut->t_on_sent_ns)
			not_proven(proof, "booted before power was back");
		else if (boot->uptime_ns > boot->t_ns - cut->t_on_sent_ns)
			not_proven(proof, "booted before power was back");
		fresh = boot;
	}
	proof->booted = fresh != NULL;
}

void pp_cut_prove(const struct pp_cut_facts *cut, const struct pp_witness *witness,
	struct pp_cut_proof *proof)
{
	memset(proof, 0, sizeof(*proof));
	proof->proven = true;
	/* The first reason is the one that is told: the controller's own, then in order of time. */
	if (cut->void_reason[0])
		not_proven(proof, cut->void_reason);
	prove_one_life(cut, proof);
	prove_off(cut, witness, proof);
	prove_boot(cut, proof);
	/* No boot yet is no disproof: the aftermath then says no-boot, and the trial is open (M6.2). */
}

enum pp_counter_word pp_cut_counters(struct pp_counter_history *history,
	const struct pp_drive_counters *before, const struct pp_drive_counters *after,
	char reason[PP_TEXT_SHORT])
{
	bool unsafe_rose;

	reason[0] = '\0';
	if (!before->has_power_cycles || !after->has_power_cycles)
		return PP_COUNTERS_NONE;
	if (after->power_cycles <= before->power_cycles) {
		snprintf(reason, PP_TEXT_SHORT, "drive kept its power");
		return PP_COUNTERS_AGAINST;
	}
	if (!before->has_unsafe || !after->has_unsafe)
		return PP_COUNTERS_ROSE;
	unsafe_rose = after->unsafe_shutdowns > before->unsafe_shutdowns;
	if (unsafe_rose)
		history->live = true;
	if (!history->live)
		return PP_COUNTERS_ROSE;
	history->cuts_since_live++;
	history->rises_since_live += after->unsafe_shutdowns - before->unsafe_shutdowns;
	/* Late rises catch up; rises of power cycles that were no cut buy no later shutdown. */
	if (history->rises_since_live > history->cuts_since_live)
		history->rises_since_live = history->cuts_since_live;
	if (!unsafe_rose && history->cuts_since_live > history->rises_since_live + 1) {
		history->cuts_since_live--; /* a void trial is no cut of the count */
		snprintf(reason, PP_TEXT_SHORT, "orderly shutdown");
		return PP_COUNTERS_AGAINST;
	}
	return PP_COUNTERS_ROSE;
}
