/* SPDX-License-Identifier: MIT
 *
 * Which arm comes next on each drive (docs/method.md, M1.4): controls first, then all arms round
 * robin, controls again at the end, so that a stop at any time leaves every arm with nearly the same
 * number of trials. All of it is counted from the evidence, so that a resumed campaign goes on where
 * it was.
 */
#include "parts.h"

#include <string.h>

#include "src/core/text.h"

static uint32_t wanted_clean(const struct pp_campaign *c)
{
	return c->plan.cuts ? c->plan.cuts : pp_criterion_clean_cuts(&c->plan.criterion);
}

static uint32_t tried_max(const struct pp_campaign *c)
{
	return c->plan.cuts ? c->plan.cuts : 2 * wanted_clean(c) + 10;
}

static void add_arm(const struct pp_campaign *c, struct pp_stand *s, uint32_t set,
	const struct pp_method *method, const struct pp_policy_setting *setting, bool optional)
{
	struct pp_arm_state *arm = &s->arm[s->arms];
	enum pp_workload workload = c->plan.arms[set].workload;
	const char *why;

	if (s->arms == PP_ARMS_A_DRIVE)
		return;
	s->arms++;
	memset(arm, 0, sizeof(*arm));
	arm->set = set;
	arm->method = method;
	arm->setting = setting;
	arm->optional = optional || method->control;
	if (pp_workload_promise(workload, method, s->spec.kind, &why) == PP_PROMISE_NA)
		pp_text_copy(arm->na_reason, sizeof(arm->na_reason), why);
}

/* What a control must share with the arms that it speaks for (M7.3). */
struct condition {
	const struct pp_policy_setting *setting;
	bool noise, random;
};

static bool is_under(const struct pp_campaign *c, const struct pp_arm_state *arm,
	const struct condition *under)
{
	const struct pp_plan_arms *a = &c->plan.arms[arm->set];

	return arm->setting == under->setting && a->noise == under->noise && a->random == under->random;
}

bool pp_arm_speaks_for(const struct pp_campaign *c, const struct pp_arm_state *control,
	const struct pp_arm_state *arm)
{
	const struct pp_plan_arms *a = &c->plan.arms[arm->set];

	return is_under(c, control, &(struct condition){ arm->setting, a->noise, a->random });
}

static bool has_control(const struct pp_campaign *c, const struct pp_stand *s,
	const struct pp_method *method, const struct condition *under)
{
	uint32_t i;

	for (i = 0; i < s->arms; i++)
		if (s->arm[i].method == method && is_under(c, &s->arm[i], under) &&
			c->plan.arms[s->arm[i].set].workload == PP_OVERWRITE)
			return true;
	return false;
}

/* Whether these arms are run under the setting; NULL is the policy as it is found. */
static bool has_setting(const struct pp_plan_arms *a, const struct pp_policy_setting *setting)
{
	uint32_t i;

	for (i = 0; i < a->policies; i++)
		if (a->policy[i] == setting)
			return true;
	return !setting && !a->policies;
}

/* A set of arms of our own, for controls where no set of the plan has a place for them. */
static uint32_t new_set(struct pp_campaign *c, const struct condition *under)
{
	const struct pp_policy_setting *setting = under->setting;
	struct pp_plan_arms *a;
	uint32_t set;

	for (set = c->planned_sets; set < c->plan.arm_sets; set++) {
		a = &c->plan.arms[set];
		if (a->noise == under->noise && a->random == under->random && setting && a->policies &&
			a->policies < PP_PLAN_POLICIES_MAX) {
			a->policy[a->policies++] = setting;
			return set;
		}
	}
	if (set == PP_PLAN_ARMS_MAX)
		return set;
	a = &c->plan.arms[set];
	memset(a, 0, sizeof(*a));
	strcpy(a->name, "controls");
	a->noise = under->noise;
	a->random = under->random;
	a->lanes = a->group = 1;
	a->record_bytes = 8192;
	a->workload = PP_OVERWRITE;
	if (setting)
		a->policy[a->policies++] = setting;
	c->plan.arm_sets++;
	return set;
}

/*
 * Without controls nothing can be SAFE (M7): those that the plan leaves out are added, on
 * overwrite, where `direct` stands for the drive's cache. Noise fills that cache, and a policy decides
 * whether there is one; a drive may write it down faster where writes are in order. So arms with
 * noise, arms of each policy and arms in random order have controls of their own.
 */
static void add_controls(struct pp_campaign *c, struct pp_stand *s, const struct condition *under)
{
	bool any = false;
	uint32_t set, place = PP_PLAN_ARMS_MAX, m;

	for (set = 0; set < c->plan.arm_sets; set++) {
		const struct pp_plan_arms *a = &c->plan.arms[set];

		if (!a->on_drive[s->index] || a->noise != under->noise || a->random != under->random ||
			!has_setting(a, under->setting))
			continue;
		any = true;
		if (place == PP_PLAN_ARMS_MAX && a->workload == PP_OVERWRITE)
			place = set;
	}
	if (!any)
		return;
	if (place == PP_PLAN_ARMS_MAX)
		place = new_set(c, under);
	if (place == PP_PLAN_ARMS_MAX)
		return;
	c->plan.arms[place].on_drive[s->index] = true;
	for (m = 0; m < pp_method_count; m++)
		if (pp_methods[m].control && !has_control(c, s, &pp_methods[m], under))
			add_arm(c, s, place, &pp_methods[m], under->setting, true);
}

static void add_set(struct pp_campaign *c, struct pp_stand *s, uint32_t set)
{
	const struct pp_plan_arms *a = &c->plan.arms[set];
	uint32_t m, p;

	for (p = 0; p < a->policies || p == 0; p++)
		for (m = 0; m < a->methods; m++)
			add_arm(c, s, set, a->method[m], a->policies ? a->policy[p] : NULL, a->optional);
}

void pp_schedule_init(struct pp_campaign *c)
{
	uint32_t d, set, kind;
	size_t p;

	c->planned_sets = c->plan.arm_sets;
	for (d = 0; d < c->plan.drives; d++) {
		struct pp_stand *s = &c->stand[d];

		for (set = 0; set < c->planned_sets; set++)
			if (c->plan.arms[set].on_drive[d])
				add_set(c, s, set);
		for (kind = 0; kind < 4 && c->plan.controls; kind++) {
			struct condition under = { NULL, kind & 1, kind & 2 };

			add_controls(c, s, &under);
			for (p = 0; p < pp_policy_setting_count; p++) {
				under.setting = &pp_policy_settings[p];
				add_controls(c, s, &under);
			}
		}
	}
}

/* A person may have mended what made trials void before this controller was started. */
static void count_trial(struct pp_arm_state *arm, const struct pp_trial *t, bool own)
{
	if (t->outcome == PP_TRIAL_VOID) {
		arm->voids++;
		if (!own)
			return;
		arm->voids_in_row = strcmp(arm->last_void, t->reason) == 0 ? arm->voids_in_row + 1 : 1;
		pp_text_copy(arm->last_void, sizeof(arm->last_void), t->reason);
		return;
	}
	arm->tried++;
	arm->voids_in_row = 0;
	arm->last_void[0] = '\0';
	arm->clean += t->outcome == PP_TRIAL_CLEAN && t->exposed && !t->collateral;
	arm->lost += t->outcome == PP_TRIAL_LOSS;
	arm->open += t->outcome == PP_TRIAL_OPEN;
}

static bool main_done(const struct pp_campaign *c, const struct pp_arm_state *arm)
{
	if (arm->na_reason[0])
		return true;
	if (arm->lost && c->plan.stop_at_first_loss)
		return true;
	return arm->clean >= wanted_clean(c) || arm->tried >= tried_max(c);
}

void pp_schedule_count(struct pp_campaign *c)
{
	uint32_t d, i;
	size_t k;

	for (d = 0; d < c->plan.drives; d++) {
		struct pp_stand *s = &c->stand[d];

		for (i = 0; i < s->arms; i++) {
			struct pp_arm_state *arm = &s->arm[i];

			arm->clean = arm->lost = arm->voids = arm->open = arm->tried = 0;
			arm->voids_in_row = 0;
			arm->last_void[0] = '\0';
			for (k = 0; k < c->evidence.trial_count; k++)
				if (pp_arm_owns(c, s, arm, &c->evidence.trials[k]))
					count_trial(arm, &c->evidence.trials[k], k >= c->own_trials);
			arm->done = main_done(c, arm);
		}
	}
}

static uint32_t controls_of(const struct pp_campaign *c, uint32_t planned)
{
	return c->plan.cuts && c->plan.cuts < planned ? c->plan.cuts : planned;
}

/*
 * `write` has to show once that RAM was lost (M7.1); `direct` must show how often the drive's own
 * cache is (M7.3), so it is the one that is repeated.
 */
static uint32_t most_of(const struct pp_arm_state *arm, uint32_t first, uint32_t end)
{
	return (arm->method->direct || first == 0 ? first : 1) + end;
}

/*
 * The least tried arm of a kind that still wants trials; among equals one of the policy that the drive
 * has now. So rounds of all arms stay rounds (no arm is ever more than one trial ahead of another that
 * wants more), and within a round the policy changes once for each policy but the first: a round begins
 * with the one that the round before ended with.
 */
static struct pp_arm_state *least(const struct pp_campaign *c, struct pp_stand *s, bool controls,
	uint32_t first, uint32_t end)
{
	struct pp_arm_state *best = NULL;
	uint32_t i;

	for (i = 0; i < s->arms; i++) {
		struct pp_arm_state *arm = &s->arm[i];

		if (arm->method->control != controls || arm->na_reason[0])
			continue;
		if (controls ? arm->tried >= most_of(arm, first, end) : main_done(c, arm))
			continue;
		if (!best || arm->tried < best->tried ||
			(arm->tried == best->tried && best->setting != s->setting &&
			arm->setting == s->setting))
			best = arm;
	}
	return best;
}

/* Losses of a control that speak for an arm, those at its pace; the others are no trials for it. */
static uint32_t losses_for(const struct pp_campaign *c, const struct pp_stand *s,
	const struct pp_arm_state *control, const struct pp_arm_state *arm)
{
	uint64_t pace[PP_WITHIN];
	uint32_t lost = 0;
	size_t k;

	pp_arm_pace(c, s, arm, pace);
	for (k = 0; k < c->evidence.trial_count; k++) {
		const struct pp_trial *t = &c->evidence.trials[k];

		lost += t->outcome == PP_TRIAL_LOSS && pp_arm_owns(c, s, control, t) &&
			pp_pace_speaks_for(t, pace, c->plan.arms[arm->set].record_bytes);
	}
	return lost;
}

static bool shows_cache(const struct pp_campaign *c, const struct pp_arm_state *arm)
{
	return arm->method->control && arm->method->direct && !arm->na_reason[0] &&
		c->plan.arms[arm->set].workload == PP_OVERWRITE;
}

/*
 * M7.3: some arm has its clean trials, and only the loss rate of its control keeps it from SAFE. More
 * trials of that control help, unless it has never lost.
 */
static struct pp_arm_state *blind_control(struct pp_campaign *c, struct pp_stand *s)
{
	uint32_t i, k, lost;
	double q;

	for (i = 0; i < s->arms && !c->plan.cuts; i++) {
		struct pp_arm_state *arm = &s->arm[i];

		if (arm->method->control || arm->lost || arm->clean < wanted_clean(c))
			continue;
		for (k = 0; k < s->arms; k++) {
			struct pp_arm_state *direct = &s->arm[k];

			if (!shows_cache(c, direct) || !direct->lost ||
				!pp_arm_speaks_for(c, direct, arm) ||
				direct->tried >= c->plan.controls_max)
				continue;
			lost = losses_for(c, s, direct, arm);
			q = pp_stats_bound_lower(lost, direct->tried - (direct->lost - lost), 0.95);
			if (pp_stats_detection_power(q, wanted_clean(c)) < 0.95)
				return direct;
		}
	}
	return NULL;
}

/* Whether an arm that `control` speaks for has its clean trials, and lost nothing. */
static bool is_worth(const struct pp_campaign *c, const struct pp_stand *s,
	const struct pp_arm_state *control)
{
	uint32_t i;

	for (i = 0; i < s->arms; i++) {
		const struct pp_arm_state *arm = &s->arm[i];

		if (!arm->method->control && pp_arm_speaks_for(c, control, arm) &&
			arm->clean >= wanted_clean(c) && !arm->lost)
			return true;
	}
	return false;
}

/* M7.4: that `direct` loses nothing has a reason: a cache that is off, or none, or a protected one. */
static bool may_keep(const struct pp_campaign *c, const struct pp_stand *s,
	const struct pp_arm_state *arm)
{
	return shows_cache(c, arm) && !arm->lost && (s->plan->cache_protected ||
		s->drive.info.no_volatile_cache ||
		(arm->setting && arm->setting->write_cache == PP_TRUTH_NO));
}

/* Then it takes as many trials of `direct` as of the arms to make that believed. */
static struct pp_arm_state *kept_control(struct pp_campaign *c, struct pp_stand *s)
{
	uint32_t i;

	for (i = 0; i < s->arms && c->plan.controls; i++) {
		struct pp_arm_state *arm = &s->arm[i];

		if (may_keep(c, s, arm) && arm->clean < wanted_clean(c) && arm->tried < tried_max(c) &&
			is_worth(c, s, arm))
			return arm;
	}
	return NULL;
}

/* Some arm has had no trial yet that says how fast it is. */
static bool pace_unknown(const struct pp_campaign *c, const struct pp_stand *s)
{
	uint32_t i;

	for (i = 0; i < s->arms; i++)
		if (!s->arm[i].method->control && !s->arm[i].tried && !main_done(c, &s->arm[i]))
			return true;
	return false;
}

/*
 * One trial of each control comes before all arms. Where the rest of them keep pace with the arms, they
 * wait for one trial of each: on a busy machine that says more of it than the speed matrix.
 */
static struct pp_arm_state *next_of(struct pp_campaign *c, struct pp_stand *s)
{
	uint32_t first = controls_of(c, c->plan.controls);
	struct pp_arm_state *arm;

	if (s->gone)
		return NULL;
	arm = least(c, s, true, first > 1 && c->plan.control_pace == PP_PACE_AUTO &&
		pace_unknown(c, s) ? 1 : first, 0);
	if (!arm)
		arm = least(c, s, false, 0, 0);
	if (!arm && first)
		arm = least(c, s, true, first, c->plan.controls_end);
	if (!arm)
		arm = blind_control(c, s);
	return arm ? arm : kept_control(c, s);
}

static uint32_t left_of(const struct pp_campaign *c, const struct pp_stand *s)
{
	uint32_t left = 0, i;

	for (i = 0; i < s->arms && !s->gone; i++) {
		const struct pp_arm_state *arm = &s->arm[i];
		uint32_t most = arm->method->control
			? most_of(arm, controls_of(c, c->plan.controls), c->plan.controls_end)
			: wanted_clean(c);

		if (may_keep(c, s, arm) && most < wanted_clean(c))
			most = wanted_clean(c);
		if (arm->na_reason[0])
			continue;
		if (arm->method->control ? arm->tried < most : !main_done(c, arm))
			left += most > arm->clean ? most - (arm->method->control ? arm->tried : arm->clean)
				: 1;
	}
	return left;
}

bool pp_schedule_next(struct pp_campaign *c)
{
	bool any = false;
	uint32_t d, left;

	pp_schedule_count(c);
	c->progress.cuts_left = 0;
	c->progress.arms[0] = '\0';
	for (d = 0; d < c->plan.drives; d++) {
		struct pp_stand *s = &c->stand[d];
		size_t used = strlen(c->progress.arms);

		s->now = next_of(c, s);
		any |= s->now != NULL;
		left = left_of(c, s);
		if (left > c->progress.cuts_left)
			c->progress.cuts_left = left;
		if (s->now)
			pp_text_format(c->progress.arms + used, sizeof(c->progress.arms) - used,
				"%s%s%s%s", used ? ", " : "", s->now->method->name,
				s->now->setting ? " " : "", s->now->setting ? s->now->setting->name : "");
		if (s->now)
			s->setting = s->now->setting;
	}
	return any;
}
