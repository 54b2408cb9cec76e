/* SPDX-License-Identifier: MIT
 *
 * The rules M7 and M8, one function a rule, in one table. SAFE is never concluded, it is what
 * remains: an arm that promises media, lost nothing, and against which no rule had an objection.
 * So a rule that is forgotten in an early return cannot happen; each runs, and each says what it
 * misses, because a person wants to hear all of it at once.
 */
#include "verdict_rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pace.h"
#include "src/core/policy.h"

/* M7.3: a drive that ignores the method would have been caught with this probability. */
#define POWER_NEEDED 0.95

/* ---- texts -------------------------------------------------------------------------------- */

static const char *plural(uint32_t n)
{
	return n == 1 ? "" : "s";
}

/* "9.8 %"; a small one keeps two digits. */
static const char *percent(char *out, size_t bytes, double fraction)
{
	double value = fraction * 100.0;

	snprintf(out, bytes, value != 0.0 && value < 0.095 ? "%.2g %%" : "%.1f %%", value);
	return out;
}

/* "cut 3 (no-boot), cut 9 (scan not complete) and 4 more": trials of one standing, by cut. */
static void name_cuts(const struct arm_work *work, enum standing standing, char *out, size_t bytes)
{
	size_t i, used = 0, named = 0, more = 0;

	out[0] = '\0';
	for (i = 0; i < work->count; i++) {
		const struct pp_trial *trial = work->trials[i];

		if (pp_trial_standing(trial) != standing)
			continue;
		if (named == 3) {
			more++;
			continue;
		}
		used += (size_t)snprintf(out + used, bytes - used, "%scut %u (%.40s)",
			named ? ", " : "", trial->cut,
			trial->reason[0] ? trial->reason : pp_trial_outcome_name(trial->outcome));
		named++;
	}
	if (more)
		snprintf(out + used, bytes - used, " and %zu more", more);
}

static const char *text_of(const struct pp_trial *trial, enum standing standing)
{
	const char *text = standing == STANDS_UNEXPOSED ? trial->unexposed_reason : trial->reason;

	if (standing == STANDS_UNEXPOSED && trial->records_acked == 0)
		return "nothing was acked";
	return text[0] ? text : "no reason given";
}

/* "died before the cut (2), I/O error": how often each reason, in the order of the cuts. */
static void tally_reasons(const struct arm_work *work, enum standing standing, char *out,
	size_t bytes)
{
	enum { DISTINCT = 4 };
	const char *texts[DISTINCT];
	uint32_t counts[DISTINCT] = { 0 }, others = 0;
	size_t i, j, known = 0, used = 0;

	for (i = 0; i < work->count; i++) {
		const char *text = text_of(work->trials[i], standing);

		if (pp_trial_standing(work->trials[i]) != standing)
			continue;
		for (j = 0; j < known && strcmp(texts[j], text) != 0; j++)
			;
		if (j == known && known < DISTINCT)
			texts[known++] = text;
		if (j < DISTINCT)
			counts[j]++;
		else
			others++;
	}
	out[0] = '\0';
	for (j = 0; j < known; j++)
		used += (size_t)snprintf(out + used, bytes - used, "%s%.48s (%u)", j ? ", " : "",
			texts[j], counts[j]);
	if (others)
		snprintf(out + used, bytes - used, ", others (%u)", others);
}

/* ---- M8.2 and M8.6: losses ---------------------------------------------------------------- */

/* Whom a loss accuses: the drive only where it was asked. */
static const char *word_of_kernel(const struct arm_work *work)
{
	if (work->losses_asked)
		return "";
	return work->losses_not_asked ? "the kernel did not ask the drive" :
		"not known whether the kernel asked the drive: nothing counts flushes here, or the run was "
		"too short";
}

static void say_untorn(struct arm_work *work)
{
	uint32_t unit = work->arm->key.record_bytes;

	if (work->untorn_broken)
		pp_verdict_reason(work, true, "torn: of %llu write%s in flight a part arrived, though %s "
			"promises each unit of %u bytes whole or not at all",
			(unsigned long long)work->untorn_broken, work->untorn_broken == 1 ? "" : "s",
			work->arm->key.method, unit);
}

static void rule_loss(const struct verdict_work *all, struct arm_work *work)
{
	struct pp_verdict_arm *arm = work->arm;
	bool promised = arm->promise == PP_PROMISE_MEDIA;
	char low[24], text[128];

	(void)all;
	if (arm->cuts_loss == 0)
		return;
	/* Every proven cut stands in the denominator, also those that could not have shown one. */
	snprintf(text, sizeof(text), "%u of %u cut%s (at least %s a cut, 95 %%)", arm->cuts_loss,
		work->proven, plural(work->proven), percent(low, sizeof(low),
			pp_stats_bound_lower(arm->cuts_loss, work->proven, 0.95)));
	pp_verdict_reason(work, promised, "%s%s",
		arm->promise == PP_PROMISE_DEVICE ? "not promised: " : "", text);
	if (promised)
		say_untorn(work);
	if (!promised || work->losses_asked)
		return;
	arm->kernel_did_not_ask = work->losses_not_asked > 0;
	pp_verdict_reason(work, true, "%s", word_of_kernel(work));
}

/* ---- M8.3: counts ------------------------------------------------------------------------- */

static void rule_clean_cuts(const struct verdict_work *all, struct arm_work *work)
{
	uint32_t needed = all->verdict->clean_cuts_needed, clean = work->arm->cuts_clean;

	if (clean < needed)
		pp_verdict_reason(work, true, "%u of %u clean cuts: %u missing", clean, needed,
			needed - clean);
}

static void rule_open(const struct verdict_work *all, struct arm_work *work)
{
	char cuts[256];

	(void)all;
	if (work->arm->cuts_open == 0)
		return;
	name_cuts(work, STANDS_OPEN, cuts, sizeof(cuts));
	pp_verdict_reason(work, true, "open, to be scanned or resolved: %s", cuts);
}

static void rule_void_missing(const struct verdict_work *all, struct arm_work *work)
{
	char cuts[256];

	(void)all;
	if (work->arm->cuts_void_missing == 0)
		return;
	name_cuts(work, STANDS_VOID_MISSING, cuts, sizeof(cuts));
	pp_verdict_reason(work, true, "void, yet acked data is missing: %s", cuts);
}

static void rule_foreign_flushes(const struct verdict_work *all, struct arm_work *work)
{
	uint32_t foreign = work->arm->cuts_foreign;

	(void)all;
	if ((uint64_t)foreign * 10 > work->proven)
		pp_verdict_reason(work, true,
			"foreign flushes: in %u of %u cuts others flushed after the last ack",
			foreign, work->proven);
}

static const struct pp_policy_setting *setting_of(const struct arm_work *work)
{
	return pp_policy_setting_find(work->arm->key.setting);
}

static bool direct_lost(const struct verdict_work *all, const struct arm_work *work);

/*
 * A policy is part of the arm. What a command came to under another setting says nothing where it was
 * not asked for there, or is not what this arm rests on: with the cache off there is nothing to flush.
 * That the cache is off is believed as long as `direct` loses nothing.
 */
static bool settings_apart(const struct verdict_work *all, const struct arm_work *work,
	const struct arm_work *other)
{
	const struct pp_policy_setting *a = setting_of(work), *b = setting_of(other);

	if (!a || !b || a == b)
		return false;
	/* Where nothing counts what is sent, as on Windows, the setting itself says that nothing is; else
	 * it is known of each loss, or of none. */
	if (!other->losses_asked && (other->losses_not_asked == other->arm->cuts_loss ||
		b->flushing == PP_TRUTH_NO))
		return true;
	return a->write_cache == PP_TRUTH_NO && !direct_lost(all, work);
}

/* The commands of an arm that failed in another: a torn write breaks the word that it comes whole, and
 * says nothing of flush and FUA; a lost one the reverse. */
static unsigned failed_in(const struct arm_work *other, const struct arm_work *work)
{
	unsigned shared = other->rests_on & work->rests_on;

	return (other->losses_of_durable ? shared & ~(unsigned)RESTS_ON_UNTORN : 0) |
		(other->untorn_broken ? shared & RESTS_ON_UNTORN : 0);
}

static const char *command_name(unsigned commands)
{
	return commands & RESTS_ON_FLUSH ? "flush" : commands & RESTS_ON_FUA ? "FUA" : "untorn write";
}

static void rule_same_command(const struct verdict_work *all, struct arm_work *work)
{
	size_t i;

	for (i = 0; i < all->verdict->arm_count; i++) {
		const struct arm_work *other = &all->arms[i];
		unsigned failed = failed_in(other, work);

		if (other == work || strcmp(other->arm->key.serial, work->arm->key.serial) != 0 ||
			other->arm->promise != PP_PROMISE_MEDIA || !failed)
			continue;
		/* No cache policy makes a torn write whole. */
		pp_verdict_reason(work, failed & RESTS_ON_UNTORN || !settings_apart(all, work, other),
			"same command failed in %s, %s%s%s (%s%s%s)",
			other->arm->key.method, other->arm->key.workload,
			other->arm->key.setting[0] ? ", " : "", other->arm->key.setting,
			command_name(failed),
			other->losses_asked ? "" : "; there ", word_of_kernel(other));
	}
}

/* A dead drive lost what every other arm had made durable on it, after a control's cut too. */
static void rule_device_gone(const struct verdict_work *all, struct arm_work *work)
{
	size_t i;

	for (i = 0; i < all->verdict->arm_count; i++) {
		const struct arm_work *other = &all->arms[i];

		if (other != work && other->device_gone_cut &&
			strcmp(other->arm->key.serial, work->arm->key.serial) == 0)
			pp_verdict_reason(work, true, "the drive was gone after cut %u (%s, %s)",
				other->device_gone_cut, other->arm->key.method,
				other->arm->key.workload);
	}
}

static void rule_earlier(const struct verdict_work *all, struct arm_work *work)
{
	(void)all;
	if (work->earlier_lost)
		pp_verdict_reason(work, true,
			"loss in earlier evidence of this arm: %u of %u cut%s", work->earlier_lost,
			work->earlier_cuts, plural(work->earlier_cuts));
	if (work->earlier_unsettled)
		pp_verdict_reason(work, true, "earlier evidence of this arm has %u unsettled cut%s",
			work->earlier_unsettled, plural(work->earlier_unsettled));
	if (work->earlier_elsewhere)
		pp_verdict_reason(work, false,
			"earlier evidence of this drive: %u cut%s lost by this "
			"method under other conditions",
			work->earlier_elsewhere, plural(work->earlier_elsewhere));
	if (!work->earlier_lost && !work->earlier_unsettled && work->earlier_cuts)
		pp_verdict_reason(work, false, "earlier evidence of this arm: %u cut%s, none lost",
			work->earlier_cuts, plural(work->earlier_cuts));
}

static void rule_known_method(const struct verdict_work *all, struct arm_work *work)
{
	(void)all;
	if (!work->method)
		pp_verdict_reason(work, true, "method '%s' on target '%s' is not known here",
			work->arm->key.method, work->arm->key.target);
	else if (work->planned && work->planned->na_reason[0])
		pp_verdict_reason(work, true, "called n/a (%s), yet there are trials",
			work->planned->na_reason);
}

/* An arm that promises nothing is neither LOSES nor KEEPS before it was cut once. */
static void rule_any_cut(const struct verdict_work *all, struct arm_work *work)
{
	(void)all;
	if (work->proven == 0 && work->arm->promise != PP_PROMISE_MEDIA)
		pp_verdict_reason(work, true, "no proven cut");
}

/* An arm without a trial shows nothing: what its zeros would fail is no finding. */
static void rule_begun(const struct verdict_work *all, struct arm_work *work)
{
	(void)all;
	if (work->count == 0)
		pp_verdict_reason(work, true, "not begun: no cut with it yet");
}

/* Whether any trial of this method is there: on this drive, or (serial NULL) on any. */
static bool begun(const struct verdict_work *all, const char *method, const char *serial)
{
	size_t i;

	for (i = 0; i < all->verdict->arm_count; i++) {
		const struct pp_arm_key *key = &all->arms[i].arm->key;

		if (all->arms[i].count && strcmp(key->method, method) == 0 &&
			(!serial || strcmp(key->serial, serial) == 0))
			return true;
	}
	return false;
}

/* ---- M7: the rig's power to see ----------------------------------------------------------- */

static void rule_ram(const struct verdict_work *all, struct arm_work *work)
{
	size_t i;

	for (i = 0; i < all->verdict->arm_count; i++) {
		const struct arm_work *other = &all->arms[i];

		/* A slot's power cut says nothing about the machine's memory, nor the reverse. */
		if (strcmp(other->arm->key.cut_kind, work->arm->key.cut_kind) != 0)
			continue;
		if (other->noise_losses ||
			(strcmp(other->arm->key.method, "write") == 0 && other->ram_losses))
			return;
	}
	pp_verdict_reason(work, true, "no sign that the machine lost power: %s",
		begun(all, "write", NULL) ? "`write` lost nothing" : "no control `write` was cut yet");
}

/* File systems that write a pre-written block where it stands (M7.2), and on what condition. */
static const struct {
	const char *fs;
	const char *only_with; /* mount option; NULL: always */
} in_place[] = {
	{ "ext2", NULL }, { "ext3", NULL }, { "ext4", NULL }, { "xfs", NULL }, { "jfs", NULL },
	{ "vfat", NULL }, { "msdos", NULL }, { "exfat", NULL }, { "ntfs3", NULL }, { "ntfs", NULL },
	{ "NTFS", NULL }, { "FAT32", NULL }, { "exFAT", NULL },
	{ "btrfs", "nodatacow" }, { "bcachefs", "nocow" },
};

bool pp_verdict_shows_cache(const struct pp_arm_key *key)
{
	size_t i;

	if (strcmp(key->target, "raw") == 0)
		return true;
	if (strcmp(key->target, "file") != 0 ||
		strcmp(key->workload, pp_workload_name(PP_OVERWRITE)) != 0 ||
		pp_list_has(key->mount_options, "data=journal"))
		return false;
	for (i = 0; i < sizeof(in_place) / sizeof(in_place[0]); i++)
		if (strcmp(in_place[i].fs, key->fs) == 0)
			return !in_place[i].only_with ||
				pp_list_has(key->mount_options, in_place[i].only_with);
	return false;
}

/* Records that the arm acks so shortly before a cut (pace.h). */
static uint64_t pace_of(const struct arm_work *work, size_t within)
{
	uint64_t *counts = calloc(work->count + 1, sizeof(*counts)), median;
	size_t i, n = 0;

	if (!counts)
		return 0; /* no control is slow enough for that: never SAFE for want of memory */
	for (i = 0; i < work->count; i++)
		if (pp_trial_standing(work->trials[i]) == STANDS_CLEAN)
			counts[n++] = work->trials[i]->acked_within[within];
	median = pp_pace_median(counts, n);
	free(counts);
	return median;
}

/* Losses of a control that speak for an arm of this pace. */
static uint32_t losses_at_pace(const struct arm_work *control, const uint64_t pace[PP_WITHIN],
	uint32_t record_bytes)
{
	uint32_t quick = 0;
	size_t i;

	for (i = 0; i < control->count; i++)
		if (pp_trial_standing(control->trials[i]) == STANDS_LOSS &&
			!pp_pace_speaks_for(control->trials[i], pace, record_bytes))
			quick++;
	return quick < control->cache_losses ? control->cache_losses - quick : 0;
}

/* What was measured with `direct` under the conditions of one arm. */
struct sight {
	const struct arm_work *weakest; /* least lower bound; NULL: no trial in a valid place */
	const struct arm_work *longest; /* most clean trials */
	uint32_t weakest_lost, weakest_cuts; /* of its trials, those that speak for this arm */
	double q;                       /* of the weakest */
	uint32_t too_quick;             /* and its losses that do not */
	bool lost;                      /* in any on this drive in this state, in whatever order */
	bool lost_otherwise;            /* in any of them that does not speak for this arm, or earlier */
	bool unsettled;                 /* in any that speaks for this arm */
	bool noise_lost;                /* on this drive */
};

/* One drive, whose cache is in one state: what is lost from it there is protected from nothing. */
static bool same_state(const struct pp_arm_key *a, const struct pp_arm_key *b)
{
	return strcmp(a->serial, b->serial) == 0 && strcmp(a->model, b->model) == 0 &&
		strcmp(a->firmware, b->firmware) == 0 && strcmp(a->policy, b->policy) == 0 &&
		strcmp(a->setting, b->setting) == 0;
}

/*
 * The control speaks for an arm only where the drive's cache was in the same state, and was filled in
 * the same order: what is in order may be written down faster than what is not.
 */
static bool same_cache(const struct pp_arm_key *a, const struct pp_arm_key *b)
{
	return same_state(a, b) && strcmp(a->pattern, b->pattern) == 0 &&
		strcmp(a->kernel, b->kernel) == 0 && strcmp(a->cut_kind, b->cut_kind) == 0 &&
		a->noise == b->noise;
}

/* M9.3: what earlier evidence says of the cache is not undone by trying again. */
static bool direct_lost_earlier(const struct arm_work *work)
{
	size_t i;

	for (i = 0; i < work->input->earlier_count; i++) {
		const struct pp_trial *trial = &work->input->earlier[i];

		if (strcmp(trial->key.method, "direct") == 0 && pp_verdict_shows_cache(&trial->key) &&
			same_state(&trial->key, &work->arm->key) &&
			pp_trial_standing(trial) == STANDS_LOSS)
			return true;
	}
	return false;
}

static struct sight look_for_sight(const struct verdict_work *all, const struct arm_work *work)
{
	struct sight sight = { 0 };
	uint64_t pace[PP_WITHIN];
	uint32_t lost, cuts;
	size_t i;

	for (i = 0; i < PP_WITHIN; i++)
		pace[i] = pace_of(work, i);
	for (i = 0; i < all->verdict->arm_count; i++) {
		const struct arm_work *other = &all->arms[i];
		const struct pp_arm_key *key = &other->arm->key;
		double q;

		if (other->noise_losses && strcmp(key->serial, work->arm->key.serial) == 0)
			sight.noise_lost = true;
		if (strcmp(key->method, "direct") != 0 || !other->proven ||
			!pp_verdict_shows_cache(key) || !same_state(key, &work->arm->key))
			continue;
		/* Also of those that do not speak for this arm: "protected" is a word on the cache. */
		sight.lost |= other->arm->cuts_loss > 0;
		if (!same_cache(key, &work->arm->key)) {
			sight.lost_otherwise |= other->arm->cuts_loss > 0;
			continue;
		}
		sight.unsettled |= other->arm->cuts_open > 0;
		/* Several control arms: choosing the best would be choosing by result. */
		/* What was lost faster than the arm writes is no trial at all; what was kept is one. */
		lost = losses_at_pace(other, pace, work->arm->key.record_bytes);
		cuts = other->proven - (other->cache_losses - lost);
		q = pp_stats_bound_lower(lost, cuts, 0.95);
		if (!sight.weakest || q < sight.q) {
			sight.weakest = other;
			sight.weakest_lost = lost;
			sight.weakest_cuts = cuts;
			sight.too_quick = other->cache_losses - lost;
			sight.q = q;
		}
		if (!sight.longest || other->arm->cuts_clean > sight.longest->arm->cuts_clean)
			sight.longest = other;
	}
	sight.lost_otherwise |= direct_lost_earlier(work);
	sight.lost |= sight.lost_otherwise;
	return sight;
}

static bool direct_lost(const struct verdict_work *all, const struct arm_work *work)
{
	return look_for_sight(all, work).lost;
}

/* How many more control trials it takes at least, that is, if each of them loses. */
static uint32_t controls_missing(uint32_t lost, uint32_t cuts, uint32_t clean)
{
	uint32_t low = 0, high = PP_STATS_N_MAX;

	while (high - low > 1) {
		uint32_t more = low + (high - low) / 2;
		double q = pp_stats_bound_lower(lost + more, cuts + more, 0.95);

		if (pp_stats_detection_power(q, clean) >= POWER_NEEDED)
			high = more;
		else
			low = more;
	}
	return high;
}

static bool is_protected(const struct arm_work *work)
{
	size_t i;

	for (i = 0; i < work->input->protected_count; i++)
		if (strcmp(work->input->protected_serials[i], work->arm->key.serial) == 0)
			return true;
	return false;
}

/* M7.4: `direct` kept everything. Returns with notes if that is explained, else with objections. */
static void judge_protection(struct arm_work *work, const struct sight *sight, uint32_t needed)
{
	const struct arm_work *control = sight->longest;
	struct pp_verdict_arm *arm = work->arm;
	uint32_t kept = control->arm->cuts_clean;
	bool none_declared = arm->cuts_clean && kept && work->clean_no_cache == arm->cuts_clean &&
		control->clean_no_cache == kept;
	size_t before = arm->reason_count;

	if (kept < needed)
		pp_verdict_reason(work, true, "nothing was at risk: `direct` kept everything in %u "
			"exposed cut%s, %u more needed", kept, plural(kept), needed - kept);
	if (work->clean_powered < needed || control->clean_powered < needed)
		pp_verdict_reason(work, true,
			"nothing was at risk: `direct` kept everything, and the "
			"drive provably lost power in %u clean cuts of this arm and %u of "
			"`direct` (%u of each needed)",
			work->clean_powered, control->clean_powered, needed);
	if (!is_protected(work) && !none_declared)
		pp_verdict_reason(work, true,
			"nothing was at risk: `direct` kept everything, the "
			"drive declares a volatile cache and the plan does not say cache = "
			"protected");
	if (sight->noise_lost)
		pp_verdict_reason(work, true, "nothing was at risk: `direct` kept everything, but "
			"acked noise was lost, so the cache is not protected");
	if (sight->unsettled)
		pp_verdict_reason(work, true, "nothing was at risk: `direct` has open cuts");
	if (arm->reason_count == before) {
		arm->rests_on_protection = true;
		pp_verdict_reason(work, false, setting_of(work) &&
			setting_of(work)->write_cache == PP_TRUTH_NO
			? "rests on the write cache being off, by the drive's own word; flush not tested"
			: "rests on protection; flush not tested");
	}
}

static void rule_sight(const struct verdict_work *all, struct arm_work *work)
{
	struct sight sight = look_for_sight(all, work);
	struct pp_verdict_arm *arm = work->arm;
	uint32_t needed = all->verdict->clean_cuts_needed;
	/* SAFE needs that many anyway: ask for no controls that more clean cuts make needless. */
	uint32_t clean = arm->cuts_clean > needed ? arm->cuts_clean : needed;
	uint32_t missing;
	char chance[24], quick[96] = "";

	if (!sight.weakest) {
		missing = controls_missing(0, 0, clean);
		pp_verdict_reason(work, true, "rig too blind: %s; at least %u cut%s missing",
			!begun(all, "direct", arm->key.serial) ? "no control `direct` was cut yet" :
			"no control `direct` showed this drive's cache (raw or pre-written, same policy)",
			missing, plural(missing));
		return;
	}
	arm->control_lost = sight.weakest_lost;
	arm->control_cuts = sight.weakest_cuts;
	arm->detection_power = pp_stats_detection_power(sight.q, clean);
	/* Rounded down: 94.96 is not enough and shall not read as if it were. */
	percent(chance, sizeof(chance), floor(arm->detection_power * 1000.0) / 1000.0);
	if (arm->detection_power >= POWER_NEEDED) {
		pp_verdict_reason(work, false,
			"`direct` lost in %u of %u cuts: a drive that ignores "
			"this method would be caught (%s)",
			arm->control_lost, arm->control_cuts, chance);
	} else if (!sight.lost && (is_protected(work) ||
		(sight.longest->clean_no_cache && work->clean_no_cache) ||
		sight.longest->arm->cuts_clean >= needed)) {
		judge_protection(work, &sight, needed);
	} else {
		missing = controls_missing(arm->control_lost, arm->control_cuts, clean);
		if (sight.too_quick)
			snprintf(quick, sizeof(quick), " (%u that lost wrote more than twice as fast as "
				"this arm, or had stopped)", sight.too_quick);
		pp_verdict_reason(work, true,
			"rig too blind: `direct` lost in %u of %u cut%s%s (%s); "
			"at least %u more control cut%s missing%s",
			arm->control_lost, arm->control_cuts, plural(arm->control_cuts),
			sight.too_quick ? " at this arm's pace" : "", chance, missing, plural(missing),
			quick);
		if (sight.lost_otherwise)
			pp_verdict_reason(work, false, "the cache is not protected: `direct` lost from it in "
				"another order, with noise, or in earlier evidence");
	}
}

/* ---- notes -------------------------------------------------------------------------------- */

static void note_not_counted(const struct verdict_work *all, struct arm_work *work)
{
	const struct pp_verdict_arm *arm = work->arm;
	char text[256];

	(void)all;
	if (arm->cuts_unexposed) {
		tally_reasons(work, STANDS_UNEXPOSED, text, sizeof(text));
		pp_verdict_reason(work, false, "%u not exposed: %s", arm->cuts_unexposed, text);
	}
	if (arm->cuts_collateral)
		pp_verdict_reason(work, false, "%u with collateral damage: not clean, no broken "
			"promise", arm->cuts_collateral);
	tally_reasons(work, STANDS_VOID, text, sizeof(text));
	if (text[0])
		pp_verdict_reason(work, false, "void: %s", text);
}

static void note_resolutions(const struct verdict_work *all, struct arm_work *work)
{
	size_t i;

	(void)all;
	for (i = 0; i < work->count; i++) {
		const struct pp_trial *trial = work->trials[i];

		if (trial->resolution[strspn(trial->resolution, " \t\r\n")] == '\0')
			continue;
		pp_verdict_reason(work, false, "cut %u %s: %s", trial->cut,
			pp_trial_standing(trial) == STANDS_CLEARED ? "cleared by a person" :
				"not cleared by the words", trial->resolution);
	}
}

static void note_flags(const struct verdict_work *all, struct arm_work *work)
{
	uint32_t damaged = 0, unserializable = 0, not_asked = 0, policy_lost = 0;
	const struct pp_trial *first = NULL; /* that came back with another policy */
	size_t i;

	(void)all;
	for (i = 0; i < work->count; i++) {
		const struct pp_trial *trial = work->trials[i];
		enum standing standing = pp_trial_standing(trial);

		if (trial->policy_lost && !first)
			first = trial;
		policy_lost += trial->policy_lost;
		if (!pp_standing_counts(standing))
			continue;
		damaged += trial->fs_damaged;
		unserializable += trial->unserializable;
		not_asked += standing == STANDS_CLEAN && trial->asked == PP_ASKED_NOT;
	}
	if (policy_lost)
		pp_verdict_reason(work, false, "the drive's cache policy did not survive power-up in %u "
			"cut%s (cut %u: it came back as '%s')", policy_lost, plural(policy_lost), first->cut,
			first->policy_after);
	if (damaged)
		pp_verdict_reason(work, false, "fs-damaged in %u cut%s", damaged, plural(damaged));
	if (unserializable)
		pp_verdict_reason(work, false,
			"unserializable in %u cut%s: a later record survived", unserializable,
			plural(unserializable));
	if (not_asked && work->arm->promise == PP_PROMISE_MEDIA)
		pp_verdict_reason(work, false, "the kernel did not ask the drive in %u clean cut%s",
			not_asked, plural(not_asked));
	if (work->arm->via_flush)
		pp_verdict_reason(work, false, "via flush: says nothing about FUA");
}

static void note_control_place(const struct verdict_work *all, struct arm_work *work)
{
	const struct pp_arm_key *key = &work->arm->key;

	(void)all;
	if (strcmp(key->method, "direct") == 0 && !pp_verdict_shows_cache(key))
		pp_verdict_reason(
			work, false, "shows RAM only: not a place that is written in place");
}

/* ---- the table ---------------------------------------------------------------------------- */

enum { FOR_ALL = 1, FOR_PROMISING = 2, UNLESS_UNSAFE = 4, ONCE_BEGUN = 8 };

static const struct {
	unsigned when;
	void (*apply)(const struct verdict_work *all, struct arm_work *work);
} rules[] = {
	{ FOR_ALL, rule_loss }, /* M8.2 */
	{ FOR_ALL, rule_known_method }, /* M8.4 */
	{ FOR_ALL, rule_begun },
	{ FOR_ALL | ONCE_BEGUN, rule_any_cut }, /* M8.6 */
	{ FOR_ALL, rule_open }, /* M6.2 */
	{ FOR_PROMISING, rule_void_missing }, /* M5.6 */
	{ FOR_PROMISING | UNLESS_UNSAFE, rule_same_command }, /* M8.3 */
	{ FOR_PROMISING | UNLESS_UNSAFE, rule_device_gone }, /* M6.1 */
	{ FOR_PROMISING, rule_earlier }, /* M9.3 */
	{ FOR_PROMISING | UNLESS_UNSAFE | ONCE_BEGUN, rule_clean_cuts }, /* M8.3 */
	{ FOR_PROMISING | UNLESS_UNSAFE, rule_foreign_flushes }, /* M8.4 */
	{ FOR_PROMISING | UNLESS_UNSAFE | ONCE_BEGUN, rule_ram }, /* M7.1 */
	{ FOR_PROMISING | UNLESS_UNSAFE | ONCE_BEGUN, rule_sight }, /* M7.3 */
	{ FOR_ALL, note_not_counted }, /* M8.1 */
	{ FOR_ALL, note_resolutions }, /* M6.5 */
	{ FOR_ALL, note_flags }, /* M6.3 */
	{ FOR_ALL | ONCE_BEGUN, note_control_place }, /* M7.2 */
};

static bool blocking_first(struct arm_work *work)
{
	struct pp_verdict_arm *arm = work->arm;
	struct pp_verdict_reason *sorted = calloc(arm->reason_count + 1, sizeof(*sorted));
	size_t i, used = 0, blocking;

	if (!sorted) {
		work->failed = true;
		return true;
	}
	for (i = 0; i < arm->reason_count; i++)
		if (arm->reasons[i].blocks)
			sorted[used++] = arm->reasons[i];
	blocking = used;
	for (i = 0; i < arm->reason_count; i++)
		if (!arm->reasons[i].blocks)
			sorted[used++] = arm->reasons[i];
	free(arm->reasons);
	arm->reasons = sorted;
	return blocking > 0;
}

static bool not_applicable(struct arm_work *work)
{
	const char *why = work->planned && work->planned->na_reason[0] ? work->planned->na_reason :
		NULL;

	if (!work->method || (work->arm->promise != PP_PROMISE_NA && (!why || work->count)))
		return false;
	work->arm->verdict = PP_ARM_NA;
	pp_verdict_reason(work, true, "%s", why ? why : "does nothing on this kind of target");
	return true;
}

void pp_verdict_rule(const struct verdict_work *all, size_t at)
{
	struct arm_work *work = &all->arms[at];
	struct pp_verdict_arm *arm = work->arm;
	bool promising = arm->promise == PP_PROMISE_MEDIA;
	bool blocked, unsafe = promising && arm->cuts_loss > 0;
	size_t i;

	if (not_applicable(work))
		return;
	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (((rules[i].when & FOR_ALL) || promising) &&
			!(unsafe && (rules[i].when & UNLESS_UNSAFE)) &&
			(work->count || !(rules[i].when & ONCE_BEGUN)))
			rules[i].apply(all, work);
	blocked = blocking_first(work);
	if (unsafe)
		arm->verdict = PP_ARM_UNSAFE;
	else if (promising)
		arm->verdict = blocked ? PP_ARM_INCONCLUSIVE : PP_ARM_SAFE;
	else if (work->method && work->proven > arm->cuts_open)
		arm->verdict = arm->cuts_loss ? PP_ARM_LOSES : PP_ARM_KEEPS;
}
