/* SPDX-License-Identifier: MIT
 *
 * After the cut (docs/method.md, M4.7, M6): what is left on each drive, read as often as it takes
 * to convict, and what that makes of the trial. Trouble here is never void: it may be the drive's
 * worst failure; and what could not be looked at is open, never clean.
 */
#include "parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/text.h"

#define QUICK_MS 30000
#define LONG_MS  600000

struct look {
	bool wanted;        /* look (again) at this drive */
	bool present;       /* proven, open under its index */
	bool counted;       /* its counters are read */
	uint32_t fs_damaged_boots;
	uint32_t gone_cycles;
	char text[512];     /* what was said last */
};

static void settle(struct pp_stand *s, struct look *look, enum pp_aftermath after, const char *why)
{
	s->run.aftermath = after;
	pp_text_copy(s->run.aftermath_reason, sizeof(s->run.aftermath_reason), why);
	look->wanted = false;
}

static void note_damage(struct pp_stand *s, const char *text)
{
	if (!text[0])
		return;
	s->run.fs_damaged = true;
	if (!s->run.fs_damaged_text[0])
		pp_text_copy(s->run.fs_damaged_text, sizeof(s->run.fs_damaged_text), text);
}

static int scan_stand(struct pp_campaign *c, struct pp_stand *s, struct look *look,
	struct pp_error *err)
{
	char relative[256];

	pp_text_format(relative, sizeof(relative), "cuts/%04u/%s/scan.bin", c->cut.number, s->folder);
	pp_say(c, "scanning drive %s", s->plan->name);
	if (pp_stand_scan(c, s, &s->area[s->now->set], NULL, 0, relative, err) != 0)
		return -1;
	if (s->run.noise) {
		pp_text_format(relative, sizeof(relative), "cuts/%04u/%s/noise.bin", c->cut.number,
			s->folder);
		if (pp_stand_scan(c, s, &s->noise, NULL, 0, relative, err) != 0)
			return -1;
		s->run.noise_run.scanned = true;
	}
	settle(s, look, PP_AFTER_SCANNED, "");
	return 0;
}

/* What proving the target came to (M6.1, M6.3); the names say which trouble speaks against the drive. */
static int hear_proof(struct pp_campaign *c, struct pp_stand *s, struct look *look,
	const struct pp_proof *proof, struct pp_error *err)
{
	pp_text_copy(look->text, sizeof(look->text), proof->error);
	switch (proof->state) {
	case PP_TARGET_OK:
		look->present = true;
		if (s->now->setting)
			pp_policy_after_boot(c, s);
		else
			pp_text_copy(s->run.policy_after, sizeof(s->run.policy_after), proof->drive.policy);
		if (s->run.policy_after[0] && strcmp(s->run.policy, s->run.policy_after) != 0)
			pp_say(c, "drive %s: cache policy was '%s' and came back as '%s'", s->plan->name,
				s->run.policy, s->run.policy_after);
		note_damage(s, proof->complaints);
		return scan_stand(c, s, look, err);
	case PP_TARGET_DRIVE_GONE:
	case PP_TARGET_DRIVE_CHANGED:
		if (++look->gone_cycles < PP_POWER_CYCLES_MAX)
			return 0;
		settle(s, look, PP_AFTER_DEVICE_GONE, proof->error);
		s->gone = true;
		return 0;
	case PP_TARGET_FS_DAMAGED:
		if (++look->fs_damaged_boots < 2)
			return 0;
		settle(s, look, PP_AFTER_FS_GONE, proof->error);
		return 0;
	case PP_TARGET_DRIVE_UNREADABLE:
		if (++look->gone_cycles < PP_POWER_CYCLES_MAX)
			return 0;
		settle(s, look, PP_AFTER_OPEN, "the drive is there but answers no read");
		return 0;
	case PP_TARGET_FS_UNAVAILABLE:
	case PP_TARGET_REFUSED:
	case PP_TARGET_FAILED:
		settle(s, look, PP_AFTER_OPEN, proof->error);
		return 0;
	}
	return 0;
}

/*
 * In the first boot in which the drive answers, whatever became of its content: a file system that is
 * gone, or a scan that fails, takes nothing from the drive's own word that it lost its power (M7.5).
 */
static void read_counters(struct pp_campaign *c, struct pp_stand *s, struct look *look)
{
	struct pp_error why;

	if (look->counted)
		return;
	look->counted = pp_counters_save(c, s, "drive-after.json", &why) == 0;
	if (!look->counted && look->present)
		pp_say(c, "drive %s: counters: %s", s->plan->name, why.text);
}

static int look_at(struct pp_campaign *c, struct pp_stand *s, struct look *look,
	struct pp_error *err)
{
	struct pp_proof *proof = malloc(sizeof(*proof));
	int rc;

	if (!proof)
		return pp_fail_os(err, ENOMEM, "cannot look at a drive");
	rc = pp_stand_prove(c, s, proof, err);
	if (rc == 0)
		rc = hear_proof(c, s, look, proof, err);
	if (rc == 0)
		read_counters(c, s, look);
	if (rc == 0 && look->wanted)
		pp_say(c, "drive %s: %s: %s; looking again after another boot", s->plan->name,
			pp_target_state_name(proof->state), proof->error);
	free(proof);
	return rc;
}

static bool any_wanted(const struct pp_campaign *c, const struct look *looks)
{
	uint32_t i;

	for (i = 0; i < c->plan.drives; i++)
		if (looks[i].wanted)
			return true;
	return false;
}

static void release_present(struct pp_campaign *c, struct look *looks)
{
	struct pp_error why;
	uint32_t i;

	for (i = 0; i < c->plan.drives; i++) {
		if (looks[i].present && pp_stand_release(c, &c->stand[i], &why) != 0)
			pp_say(c, "drive %s: %s", c->stand[i].plan->name, why.text);
		looks[i].present = false;
	}
}

/*
 * A drive is looked for through PP_POWER_CYCLES_MAX boots before it counts as gone, and a file
 * system must be refused in two: each time the machine goes down in order and its power is cycled.
 */
static int look_at_all(struct pp_campaign *c, struct look *looks, struct pp_error *err)
{
	uint32_t i;
	int rc;

	for (;;) {
		for (i = 0; i < c->plan.drives; i++)
			if (looks[i].wanted && look_at(c, &c->stand[i], &looks[i], err) != 0)
				return -1;
		/* The proof of the cut ends with the first scan: later boots are ours. */
		c->machine.cut = NULL;
		if (!any_wanted(c, looks))
			break;
		release_present(c, looks);
		rc = pp_power_orderly_cycle(c, err);
		if (rc < 0)
			return -1;
		if (rc != PP_BACK_BOOTED)
			return pp_fail(err, PP_ERR_PEER, "the machine did not come back while a drive was "
				"looked for");
	}
	return 0;
}

/* ---- one read does not convict (M4.7) --------------------------------------------------------- */

/* Noise that looks lost is read again just so: it must prove that the cut reached the drive (M7.6). */
static int find_lost_noise(struct pp_campaign *c, struct pp_stand *s, bool resumed,
	struct pp_error *err)
{
	size_t unknown = 0;

	if (!s->run.noise || !s->run.noise_run.scanned)
		return 0;
	if (pp_evidence_noise_losses(c->folder, c->cut.number, s->folder, &s->noise_ranges,
		&s->noise_range_count, &unknown, err) != 0)
		return -1;
	if (resumed && unknown) { /* something wrote there since: it proves nothing */
		s->noise_range_count = 0;
		s->run.noise_run.scanned = false;
	}
	return 0;
}

static int find_losses(struct pp_campaign *c, struct pp_stand *s, bool resumed,
	struct pp_error *err)
{
	size_t unknown = 0;

	free(s->ranges);
	s->ranges = NULL;
	s->range_count = 0;
	/* Those of the trial before: a drive whose file system is gone now has nothing to read again. */
	free(s->noise_ranges);
	s->noise_ranges = NULL;
	s->noise_range_count = 0;
	if (s->run.aftermath != PP_AFTER_SCANNED)
		return 0;
	if (pp_run_save(c, s, err) != 0 || pp_evidence_would_be_losses(c->folder, c->cut.number,
		s->folder, &s->ranges, &s->range_count, &unknown, err) != 0)
		return -1;
	if (resumed && unknown) {
		s->run.aftermath = PP_AFTER_OPEN;
		pp_text_copy(s->run.aftermath_reason, sizeof(s->run.aftermath_reason),
			"something wrote to the target after the cut");
		s->range_count = 0;
	}
	if (s->range_count)
		pp_say(c, "drive %s: %zu range%s of slots look lost: reading them again",
			s->plan->name, s->range_count, s->range_count == 1 ? "" : "s");
	return find_lost_noise(c, s, resumed, err);
}

static bool wants_reread(const struct pp_stand *s)
{
	return s->now && (s->range_count || s->noise_range_count);
}

static int reread_part(struct pp_campaign *c, struct pp_stand *s, const struct pp_area *area,
	const struct pp_scan_range *ranges, size_t count, const char *name, uint32_t round,
	uint32_t *rereads, struct pp_error *err)
{
	char relative[256];

	if (!count)
		return 0;
	pp_text_format(relative, sizeof(relative), "cuts/%04u/%s/%s-%u.bin", c->cut.number, s->folder,
		name, round);
	if (pp_stand_scan(c, s, area, ranges, count, relative, err) != 0)
		return -1;
	*rereads = round;
	return 0;
}

static int reread_once(struct pp_campaign *c, uint32_t round, struct pp_error *err)
{
	uint32_t i;

	if (pp_machine_sleep(&c->machine, 1000, err) != 0)
		return -1;
	for (i = 0; i < c->plan.drives; i++) {
		struct pp_stand *s = &c->stand[i];

		if (!wants_reread(s))
			continue;
		if (reread_part(c, s, &s->area[s->now->set], s->ranges, s->range_count, "reread", round,
			&s->run.rereads, err) != 0 ||
			reread_part(c, s, &s->noise, s->noise_ranges, s->noise_range_count, "noise-reread",
			round, &s->run.noise_run.rereads, err) != 0 || pp_run_save(c, s, err) != 0)
			return -1;
	}
	return 0;
}

/*
 * Opens the targets that are to be read again and are not open: a boot since the scan, for this or for
 * another drive's sake, has closed them.
 */
static int open_for_reread(struct pp_campaign *c, struct look *looks, struct pp_error *err)
{
	struct pp_proof *proof = malloc(sizeof(*proof));
	uint32_t i;
	int rc = 0;

	if (!proof)
		return pp_fail_os(err, ENOMEM, "cannot read again");
	for (i = 0; i < c->plan.drives && rc == 0; i++) {
		struct pp_stand *s = &c->stand[i];

		if (!wants_reread(s) || looks[i].present)
			continue;
		rc = pp_stand_prove(c, s, proof, err);
		if (rc == 0 && proof->state != PP_TARGET_OK)
			rc = pp_fail(err, PP_ERR_PEER, "drive '%s' is not usable for being read again (%s): "
				"%s", s->plan->name, pp_target_state_name(proof->state), proof->error);
		looks[i].present = rc == 0;
		s->run.reread_other_boot = rc == 0;
	}
	free(proof);
	return rc;
}

/* Another boot, and the targets of those drives open again. */
static int boot_for_reread(struct pp_campaign *c, struct look *looks, struct pp_error *err)
{
	int rc;

	release_present(c, looks);
	rc = pp_power_orderly_cycle(c, err);
	if (rc < 0)
		return -1;
	if (rc != PP_BACK_BOOTED)
		return pp_fail(err, PP_ERR_PEER, "the machine did not come back for the last re-read");
	return open_for_reread(c, looks, err);
}

/* The last re-read is after another boot where a promise is at stake; a control's loss accuses nobody. */
static int read_again(struct pp_campaign *c, struct look *looks, struct pp_error *err)
{
	bool any = false, promised = false;
	uint32_t i;

	for (i = 0; i < c->plan.drives; i++) {
		struct pp_stand *s = &c->stand[i];

		if (!wants_reread(s))
			continue;
		any = true;
		promised |= s->range_count && pp_workload_promise(c->plan.arms[s->now->set].workload,
			s->now->method, s->spec.kind, NULL) == PP_PROMISE_MEDIA;
	}
	if (!any)
		return 0;
	if (pp_cut_save(c, "re-reading", err) != 0 || open_for_reread(c, looks, err) != 0 ||
		reread_once(c, 1, err) != 0 || reread_once(c, 2, err) != 0)
		return -1;
	if (c->plan.confirm_boot && promised && boot_for_reread(c, looks, err) != 0)
		return -1;
	return reread_once(c, 3, err);
}

/* ---- the file system, unmounted (M2.8) --------------------------------------------------------- */

static void check_file_system(struct pp_campaign *c, struct pp_stand *s)
{
	struct pp_checked checked;
	struct pp_order order;
	struct pp_error why;
	struct pp_kv answer;

	if (s->spec.kind != PP_TARGET_FILE || s->spec.path[0] || s->gone ||
		s->run.aftermath != PP_AFTER_SCANNED)
		return;
	pp_order_init(&order, PP_ORDER_CHECK);
	order.index = s->index;
	order.spec = s->spec;
	if (pp_machine_order(&c->machine, &order, &answer, LONG_MS, NULL, NULL, &why) != 0) {
		pp_say(c, "drive %s: file system check: %s", s->plan->name, why.text);
		return;
	}
	if (pp_checked_get(&answer, &checked, &why) == 0 &&
		checked.check.result == PP_CHECK_DAMAGED) {
		note_damage(s, checked.check.text);
		pp_say(c, "drive %s: the file system is damaged: %.200s", s->plan->name,
			checked.check.text);
	}
	pp_kv_release(&answer);
}

/* ---- what it comes to --------------------------------------------------------------------------- */

/* The scan becomes the base of the next run, if it can vouch for every byte (M2.8, M3.3). */
static void take_base(struct pp_campaign *c, struct pp_stand *s, struct pp_area *area,
	const char *name)
{
	char path[4608], relative[256];
	struct pp_error why;
	struct pp_scan *scan;
	uint32_t lane;
	uint64_t i, k, taken;

	pp_text_format(relative, sizeof(relative), "cuts/%04u/%s/%s", c->cut.number, s->folder, name);
	pp_text_format(path, sizeof(path), "%s/%s", c->folder, relative);
	scan = pp_scan_load(path, &why);
	if (!scan) {
		s->needs_build = true;
		return;
	}
	for (lane = 0; lane < scan->lanes; lane++) {
		const struct pp_scan_lane *l = &scan->lane[lane];

		for (i = 0; i < l->slots; i++)
			for (k = 0; l->slot[i].kind == PP_SLOT_RAW &&
				k < (scan->record_bytes / PP_CELL_BYTES + 7) / 8; k++)
				s->needs_build |= l->slot[i].unread[k] != 0;
		if (!pp_workload_grows(area->layout.workload))
			continue;
		taken = pp_scan_taken(scan, &area->layout, lane);
		area->layout.base_slots[lane] = taken;
		/* Where slots are taken once there must be room for the next run, or all starts anew. */
		s->needs_build |= taken + area->layout.slots / 2 > area->layout.slots;
	}
	pp_text_copy(area->base, sizeof(area->base), relative);
	s->last_cut = c->cut.number;
	pp_scan_free(scan);
}

/* A cut that had nothing to lose is not called clean: it counts for nothing (M8.1). */
static void name_outcome(const struct pp_trial *t, char *out, size_t bytes)
{
	const char *why = t->reason;

	if (t->outcome == PP_TRIAL_CLEAN && t->collateral)
		pp_text_format(out, bytes, "kept, with collateral damage");
	else if (t->outcome == PP_TRIAL_CLEAN && (!t->exposed || !t->records_acked))
		pp_text_format(out, bytes, "kept, not exposed: %s", t->unexposed_reason);
	else
		pp_text_format(out, bytes, "%s%s%s", pp_trial_outcome_name(t->outcome),
			why[0] ? ": " : "", why);
}

static void conclude(struct pp_campaign *c, struct pp_stand *s, const struct pp_trial *t)
{
	char outcome[400];

	name_outcome(t, outcome, sizeof(outcome));
	pp_say(c, "cut %u, drive %s, %s on %s: %s, %llu acked, %llu lost", t->cut, s->plan->name,
		t->key.method, t->key.workload, outcome, (unsigned long long)t->records_acked,
		(unsigned long long)t->records_lost);
	if (t->outcome == PP_TRIAL_LOSS || t->outcome == PP_TRIAL_OPEN || t->lost_acked ||
		t->collateral || s->run.fs_damaged || s->run.aftermath != PP_AFTER_SCANNED)
		s->needs_build = true;
	else
		take_base(c, s, &s->area[s->now->set], "scan.bin");
	/* Lost noise breaks no promise: what stands there now is known, and is the next base. */
	if (s->run.noise && !s->needs_build)
		take_base(c, s, &s->noise, "noise.bin");
}

static int judge_all(struct pp_campaign *c, struct pp_error *err)
{
	size_t first = c->evidence.trial_count, k;
	uint32_t i;

	for (i = 0; i < c->plan.drives; i++)
		if (c->stand[i].now && pp_run_save(c, &c->stand[i], err) != 0)
			return -1;
	if (pp_cut_save(c, "judged", err) != 0 ||
		pp_evidence_add_cut(&c->evidence, c->cut.number, true, err) != 0)
		return -1;
	for (k = first; k < c->evidence.trial_count; k++)
		for (i = 0; i < c->plan.drives; i++)
			if (c->stand[i].now && strcmp(c->stand[i].run.serial,
				c->evidence.trials[k].key.serial) == 0)
				conclude(c, &c->stand[i], &c->evidence.trials[k]);
	return 0;
}

static void pause_for(struct pp_campaign *c, const char *what)
{
	pp_text_format(c->pause, sizeof(c->pause), "%s; the outlet is on. Once the machine is up and its agent "
		"runs (repair its boot if it is not), 'plugpull campaign PLAN --out DIR --resume' scans and "
		"judges this cut first", what);
}

static int no_boot(struct pp_campaign *c, struct pp_error *err)
{
	uint32_t i;

	for (i = 0; i < c->plan.drives; i++) {
		if (!c->stand[i].now)
			continue;
		c->stand[i].run.aftermath = PP_AFTER_PENDING;
		c->stand[i].needs_build = true;
		if (pp_run_save(c, &c->stand[i], err) != 0)
			return -1;
	}
	if (pp_cut_save(c, "no-boot", err) != 0 ||
		pp_evidence_add_cut(&c->evidence, c->cut.number, true, err) != 0)
		return -1;
	pause_for(c, "the machine did not come back after three power cycles (no-boot)");
	return 0;
}

/* The machine never lost power: its writers are still at it. */
static void stop_writers(struct pp_campaign *c)
{
	struct pp_error why;
	uint32_t i;

	for (i = 0; i < c->plan.drives; i++) {
		if (!c->stand[i].now)
			continue;
		if (pp_machine_simple(&c->machine, PP_ORDER_STOP, i, QUICK_MS, &why) != 0 ||
			pp_stand_release(c, &c->stand[i], &why) != 0)
			pp_say(c, "drive %s: %s", c->stand[i].plan->name, why.text);
	}
}

static int settle_all(struct pp_campaign *c, struct look *looks, struct pp_error *err)
{
	uint32_t i;

	if (look_at_all(c, looks, err) != 0)
		return -1;
	for (i = 0; i < c->plan.drives; i++)
		if (c->stand[i].now && find_losses(c, &c->stand[i], c->resuming, err) != 0)
			return -1;
	if (read_again(c, looks, err) != 0)
		return -1;
	release_present(c, looks);
	for (i = 0; i < c->plan.drives; i++)
		if (c->stand[i].now)
			check_file_system(c, &c->stand[i]);
	return 0;
}

int pp_aftermath(struct pp_campaign *c, enum pp_back back, struct pp_error *err)
{
	struct look looks[PP_PLAN_DRIVES_MAX];
	uint32_t i;

	if (back == PP_BACK_NOT)
		return no_boot(c, err);
	if (back == PP_BACK_LIVED)
		stop_writers(c);
	memset(looks, 0, sizeof(looks));
	for (i = 0; i < c->plan.drives; i++)
		looks[i].wanted = c->stand[i].now != NULL;
	if (pp_cut_save(c, "scanning", err) != 0)
		return -1;
	if (settle_all(c, looks, err) == 0)
		return judge_all(c, err);
	/* An interrupt or a lost machine leaves the rest pending: --resume goes on from the files. */
	if (err->class == PP_ERR_EVIDENCE)
		return -1;
	pause_for(c, err->text);
	return c->config->stop && *c->config->stop ? -1 : 0;
}
