/* SPDX-License-Identifier: MIT
 *
 * Method: what the controller would have written into its evidence is filled in from the rig's own
 * times, then the product's judge decides, first without re-reads, then, as in a campaign, with
 * three of what looked lost. Only afterwards is the truth asked and compared, slot by slot.
 */
#include "sim_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/text.h"

const char *pp_sim_word_name(enum pp_sim_word word)
{
	static const char *const names[PP_SIM_WORDS] = {
		[PP_SIM_AGREES] = "agrees",
		[PP_SIM_INEXACT] = "inexact",
		[PP_SIM_MISSED] = "missed",
		[PP_SIM_FALSE] = "false",
		[PP_SIM_CONTRADICTS] = "contradicts",
	};

	return names[word];
}

/* ---- evidence -------------------------------------------------------------------------------- */

static void fill_boot(struct pp_cut_facts *f, int64_t t_ns, int64_t uptime_ns, uint32_t number)
{
	struct pp_boot_seen *boot = &f->boot[f->boots++];

	boot->t_ns = t_ns;
	boot->uptime_ns = uptime_ns;
	snprintf(boot->boot_id, sizeof(boot->boot_id), "boot-%u", number);
}

static void fill_cut(const struct pp_sim_rig *rig, struct pp_cut_facts *f)
{
	const struct pp_sim_times *t = &rig->times;

	f->number = rig->cuts;
	pp_text_copy(f->state, sizeof(f->state), "done");
	pp_text_copy(f->cut_kind, sizeof(f->cut_kind), "mains");
	pp_text_copy(f->kernel, sizeof(f->kernel), "simulated");
	snprintf(f->boot_before, sizeof(f->boot_before), "boot-%u", rig->cuts);
	f->t_run_ns = t->run_ns;
	f->t_off_sent_ns = t->off_sent_ns;
	f->t_off_answered_ns = f->t_off_read_ns = t->off_read_ns;
	f->t_on_sent_ns = f->t_on_read_ns = t->on_ns;
	f->hold_up_ns = 5000 * PP_SIM_MS;
	f->off_ns = t->on_ns - t->off_read_ns;
	f->off_verified = true;
	pp_text_copy(f->off_outcome, sizeof(f->off_outcome), "verified");
	f->power_cycles = 1;
	fill_boot(f, t->run_ns - PP_SIM_MS, 60000 * PP_SIM_MS, rig->cuts);
	fill_boot(f, t->boot_ns, t->boot_ns - t->on_ns - PP_SIM_MS, rig->cuts + 1);
}

static void fill_run(const struct pp_sim_rig *rig, struct pp_run_facts *f)
{
	const struct pp_sim_setup *s = &rig->setup;
	bool cache = pp_sim_drive_has_cache(rig->drive);

	f->run_id = rig->run_id;
	pp_text_copy(f->serial, sizeof(f->serial), "SIMULATED");
	pp_text_copy(f->model, sizeof(f->model), "simulated");
	pp_text_copy(f->firmware, sizeof(f->firmware), "1");
	pp_text_copy(f->transport, sizeof(f->transport), "nvme");
	pp_text_copy(f->method, sizeof(f->method), rig->method->name);
	f->kind = s->kind;
	f->pace_per_s = rig->pace_per_s / rig->layout.lanes;
	f->layout = rig->layout;
	if (s->kind == PP_TARGET_FILE) {
		pp_text_copy(f->fs, sizeof(f->fs), "ext4");
		pp_text_copy(f->mount_options, sizeof(f->mount_options),
			s->barriers ? "rw,relatime" : "rw,relatime,nobarrier");
	}
	pp_text_copy(f->policy, sizeof(f->policy),
		!cache ? "write through" : s->fua ? "write back, fua" : "write back");
	pp_text_copy(f->policy_after, sizeof(f->policy_after), f->policy);
	pp_text_copy(f->policy_wanted, sizeof(f->policy_wanted), f->policy);
	f->fua = cache && s->fua;
	f->no_volatile_cache = !cache;
	f->drive_bytes = rig->disk.bytes;
	f->noise = s->noise;
	f->noise_run.run_id = rig->noise.run_id;
	f->noise_run.layout = rig->noise.layout;
	f->aftermath = rig->after;
	f->failed = atomic_load(&rig->run.state) == PP_RUN_FAILED;
}

static struct pp_drive_counters as_smart(const struct pp_sim_drive_counters *c)
{
	return (struct pp_drive_counters){ .has_power_cycles = true, .has_unsafe = true,
		.power_cycles = c->power_cycles, .unsafe_shutdowns = c->unsafe_shutdowns };
}

/* ---- judging --------------------------------------------------------------------------------- */

/* M4.7: what looks lost is read three times more, and so is what the noise seems to have lost. */
static int read_again(struct pp_sim_rig *rig, struct pp_case *c, const struct pp_judgement *j,
	struct pp_error *err)
{
	struct pp_scan_range *ranges, *of_noise;
	size_t n = pp_oracle_ranges(&j->oracle, &ranges), m = pp_oracle_ranges(&j->noise, &of_noise), i;
	bool ok = true;

	for (i = 0; ok && i < PP_REREADS_MAX; i++) {
		if (n) {
			c->reread[i] = pp_sim_scan(rig, ranges, n, err);
			ok = c->reread[i] != NULL;
			c->run.rereads += ok;
		}
		if (ok && m) {
			c->noise_reread[i] = pp_sim_noise_scan(&rig->noise, of_noise, m, err);
			ok = c->noise_reread[i] != NULL;
			c->run.noise_run.rereads += ok;
		}
	}
	free(ranges);
	free(of_noise);
	return ok ? 0 : -1;
}

static int judge_twice(struct pp_sim_rig *rig, struct pp_case *c, const struct pp_witness *w,
	struct pp_judgement *j, struct pp_error *err)
{
	struct pp_counter_history first = rig->history;

	if (pp_judge_case(c, w, &first, j, err) != 0)
		return -1;
	if (!j->oracle.losses && !j->noise.losses) {
		rig->history = first;
		return 0;
	}
	if (read_again(rig, c, j, err) != 0)
		return -1;
	pp_judgement_release(j);
	return pp_judge_case(c, w, &rig->history, j, err);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void differ(struct pp_sim_outcome *out, enum pp_sim_word word, const char *what)
{
	if (out->word == PP_SIM_AGREES)
		pp_text_copy(out->difference, sizeof(out->difference), what);
	if (word > out->word)
		out->word = word;
}

static void compare_slots(const struct pp_oracle_result *o, const struct pp_sim_facts *f,
	struct pp_sim_outcome *out)
{
	char what[200];
	size_t i = 0, k = 0;

	for (;; i++, k++) {
		const struct pp_loss *said;
		const struct pp_sim_lost *truly = i < f->count ? &f->lost[i] : NULL;

		/* What only the first read missed is no loss, and nobody says so (M4.7). */
		while (k < o->losses && o->loss[k].unstable)
			k++;
		said = k < o->losses ? &o->loss[k] : NULL;
		if (!said && !truly)
			return;
		if (said && truly && said->lane == truly->lane && said->slot == truly->slot &&
			said->seq == truly->seq && said->class == truly->class)
			continue;
		snprintf(what, sizeof(what), "truly lane %u slot %llu record %llu %s, said lane %u "
			"slot %llu record %llu %s", truly ? truly->lane : 0,
			truly ? (unsigned long long)truly->slot : 0,
			truly ? (unsigned long long)truly->seq : 0,
			truly ? pp_loss_class_name(truly->class) : "none", said ? said->lane : 0,
			said ? (unsigned long long)said->slot : 0,
			said ? (unsigned long long)said->seq : 0,
			said ? pp_loss_class_name(said->class) : "none");
		differ(out, PP_SIM_INEXACT, what);
		return;
	}
}

static void compare(const struct pp_sim_rig *rig, const struct pp_judgement *j,
	const struct pp_sim_facts *f, struct pp_sim_outcome *out)
{
	const struct pp_trial *t = &j->trial;
	bool said = t->records_lost != 0;
	char what[160];
	uint32_t lane;

	if (t->outcome == PP_TRIAL_LOSS && !f->total && rig->after == PP_AFTER_SCANNED)
		differ(out, PP_SIM_FALSE, "a loss was called");
	if (t->proven && f->total && t->outcome != PP_TRIAL_LOSS)
		differ(out, PP_SIM_MISSED, "no loss was called");
	/* M2.3, M5.6: void, and what was acked before the failure is judged all the same. */
	if (atomic_load(&rig->run.state) == PP_RUN_FAILED && t->outcome != PP_TRIAL_VOID)
		differ(out, PP_SIM_FALSE, "a run that failed is not void");
	if (t->outcome == PP_TRIAL_VOID && t->lost_acked != (f->total > f->torn_only))
		differ(out, PP_SIM_MISSED, "a void trial is wrong about acked data");
	if (said && !f->total)
		differ(out, PP_SIM_FALSE, "records are called lost");
	if (!said && f->total)
		differ(out, PP_SIM_MISSED, "no record is called lost");
	/* A first read that failed stands in the scan: a loss is then one, but called unreadable. */
	if (rig->setup.behaviour->flags & PP_DRIVE_FLICKERS)
		return;
	if (rig->after == PP_AFTER_SCANNED)
		compare_slots(&j->oracle, f, out);
	for (lane = 0; rig->after == PP_AFTER_SCANNED && lane < rig->layout.lanes; lane++)
		if (j->oracle.lane[lane].durable != f->durable[lane]) {
			snprintf(what, sizeof(what), "D of lane %u is %llu, said %llu", lane,
				(unsigned long long)f->durable[lane],
				(unsigned long long)j->oracle.lane[lane].durable);
			differ(out, PP_SIM_INEXACT, what);
		}
	if (j->oracle.collateral != f->collateral) {
		snprintf(what, sizeof(what), "%llu slots of collateral damage, said %llu",
			(unsigned long long)f->collateral, (unsigned long long)j->oracle.collateral);
		differ(out, PP_SIM_INEXACT, what);
	}
	if (t->records_lost != f->total)
		differ(out, PP_SIM_INEXACT, "another number of records");
	if (t->lost_age_ns_min != f->age_ns_min || t->lost_age_ns_max != f->age_ns_max) {
		snprintf(what, sizeof(what), "ages %lld to %lld ns, said %lld to %lld",
			(long long)f->age_ns_min, (long long)f->age_ns_max,
			(long long)t->lost_age_ns_min, (long long)t->lost_age_ns_max);
		differ(out, PP_SIM_INEXACT, what);
	}
}

/* M7.6: noise may prove a cut only where something of it is truly gone. */
static void compare_noise(const struct pp_sim_rig *rig, const struct pp_judgement *j,
	struct pp_sim_outcome *out)
{
	if (!rig->setup.noise || rig->after != PP_AFTER_SCANNED)
		return;
	out->noise_lost = pp_sim_noise_lost(&rig->noise);
	if (j->noise_lost > out->noise_lost)
		differ(out, PP_SIM_FALSE, "noise is called lost that is not");
	if ((rig->setup.behaviour->flags & PP_DRIVE_PROTECTED) && j->trial.noise_lost)
		differ(out, PP_SIM_FALSE, "a protected drive is said to have lost noise");
}

static void say_losses(struct pp_sim_rig *rig, const struct pp_sim_facts *f,
	const struct pp_judgement *j)
{
	size_t i;

	for (i = 0; rig->trace && i < f->count; i++)
		pp_sim_say(rig, "truly lost: lane %u slot %llu record %llu, %s", f->lost[i].lane,
			(unsigned long long)f->lost[i].slot, (unsigned long long)f->lost[i].seq,
			pp_loss_class_name(f->lost[i].class));
	for (i = 0; rig->trace && i < j->oracle.losses; i++)
		pp_sim_say(rig, "called lost: lane %u slot %llu record %llu, %s",
			j->oracle.loss[i].lane, (unsigned long long)j->oracle.loss[i].slot,
			(unsigned long long)j->oracle.loss[i].seq,
			pp_loss_class_name(j->oracle.loss[i].class));
	pp_sim_say(rig, "judged: %s%s%s, %llu records durable, %llu lost",
		pp_trial_outcome_name(j->trial.outcome), j->trial.reason[0] ? ": " : "",
		j->trial.reason, (unsigned long long)j->trial.records_acked,
		(unsigned long long)j->trial.records_lost);
}

static int take_noise(struct pp_sim_rig *rig, struct pp_case *c, struct pp_witness *witness,
	struct pp_scan **scan, struct pp_error *err)
{
	if (pp_sim_net_ledger(&rig->noise.net, &rig->noise.run_id, 1, &c->noise_ledger, err) != 0)
		return -1;
	c->has_noise_ledger = true;
	pp_witness_add(witness, &c->noise_ledger);
	c->noise_base = rig->noise.base;
	rig->noise.now_ns = rig->now_ns;
	if (rig->after != PP_AFTER_SCANNED)
		return 0;
	c->noise_scan = *scan = pp_sim_noise_scan(&rig->noise, NULL, 0, err);
	c->run.noise_run.scanned = *scan != NULL;
	return *scan ? 0 : -1;
}

int pp_sim_judge(struct pp_sim_rig *rig, struct pp_sim_outcome *out, struct pp_scan **scan,
	struct pp_scan **noise, struct pp_error *err)
{
	struct pp_sim_drive_counters after = pp_sim_drive_counters_of(rig->drive, false);
	struct pp_case c = { .has_ledger = true, .base = rig->base };
	struct pp_judgement j = { 0 };
	struct pp_witness witness = { 0 };
	struct pp_sim_facts facts;
	struct pp_error judging;
	int rc = -1;
	size_t i;

	*scan = *noise = NULL;
	out->cut = rig->cuts;
	fill_cut(rig, &c.cut);
	fill_run(rig, &c.run);
	c.before = as_smart(&rig->before);
	if (rig->after != PP_AFTER_DEVICE_GONE)
		c.after = as_smart(&after);
	if (pp_sim_net_ledger(&rig->net, &rig->run_id, rig->layout.lanes, &c.ledger, err) != 0)
		return -1;
	pp_witness_add(&witness, &c.ledger);
	if (rig->setup.noise && take_noise(rig, &c, &witness, noise, err) != 0)
		goto out;
	if (rig->after == PP_AFTER_SCANNED && !(c.scan = *scan = pp_sim_scan(rig, NULL, 0, err)))
		goto out;
	if (!pp_sim_truth_settle(rig->truth, rig->after, witness.t_last_ns, &facts)) {
		pp_fail(err, PP_ERR_SYSTEM, "simulator: no memory for the truth");
		goto out;
	}
	out->lost = facts.total;
	out->veiled = facts.veiled;
	out->collateral = facts.collateral;
	out->torn_only = facts.torn_only;
	memcpy(out->lost_of, facts.of, sizeof(out->lost_of));
	rc = 0;
	if (judge_twice(rig, &c, &witness, &j, &judging) != 0) {
		differ(out, PP_SIM_CONTRADICTS, judging.text);
		pp_sim_say(rig, "judged: %s", judging.text);
		goto out;
	}
	out->trial = j.trial;
	compare(rig, &j, &facts, out);
	compare_noise(rig, &j, out);
	say_losses(rig, &facts, &j);
out:
	pp_judgement_release(&j);
	for (i = 0; i < PP_REREADS_MAX; i++) {
		pp_scan_free(c.reread[i]);
		pp_scan_free(c.noise_reread[i]);
	}
	pp_ledger_data_release(&c.ledger);
	if (c.has_noise_ledger)
		pp_ledger_data_release(&c.noise_ledger);
	return rc;
}
