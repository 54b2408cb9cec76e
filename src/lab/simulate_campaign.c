/* SPDX-License-Identifier: MIT
 *
 * A whole campaign in memory, in the order of a real one (M1.4): controls, the arm until it has its
 * clean cuts or a loss, controls again, and a few more of `direct` where the rig was too blind. The
 * verdict is the product's own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "simulate.h"
#include "verifier/pace.h"
#include "verifier/verdict.h"

/* As a plan has them unless told otherwise. */
#define DIRECT_FIRST 4
#define DIRECT_MOST  12
#define TRIALS_MOST  4096
#define POWER_NEEDED 0.95 /* M7.3 */

struct campaign {
	struct pp_sim_rig *rig;
	const struct pp_criterion *criterion;
	struct pp_trial *trials;
	size_t count;
	uint32_t direct_cuts, direct_lost;
	uint32_t arm_cuts, arm_lost, arm_clean;
	const struct pp_method *method;
	bool paced;
	bool over; /* the drive takes no more cuts */
};

static int one_cut(struct campaign *c, const struct pp_method *method, struct pp_error *err)
{
	struct pp_sim_outcome outcome;
	bool lost;

	if (c->over)
		return 0;
	if (c->count == TRIALS_MOST)
		return pp_fail(err, PP_ERR_SYSTEM, "simulated campaign does not come to an end");
	if (pp_sim_rig_cut(c->rig, method, &outcome, err) != 0)
		return -1;
	c->over = outcome.spent;
	lost = outcome.trial.outcome == PP_TRIAL_LOSS;
	c->trials[c->count++] = outcome.trial;
	if (strcmp(method->name, "direct") == 0) {
		c->direct_cuts++;
		c->direct_lost += lost;
	} else if (!method->control) {
		c->arm_cuts++;
		c->arm_lost += lost;
		c->arm_clean += outcome.trial.outcome == PP_TRIAL_CLEAN && outcome.trial.exposed;
	}
	return 0;
}

/* What the controller holds `direct` to, once the arm has been cut (campaign/pace.c). */
static uint32_t pace_of_arm(const struct campaign *c)
{
	uint64_t acked[TRIALS_MOST], pace[PP_WITHIN];
	size_t i, n = 0, w;

	for (w = 0; w < PP_WITHIN; w++) {
		for (i = n = 0; c->paced && i < c->count; i++)
			if (c->trials[i].outcome == PP_TRIAL_CLEAN &&
				strcmp(c->trials[i].key.method, c->method->name) == 0)
				acked[n++] = c->trials[i].acked_within[w];
		pace[w] = pp_pace_median(acked, n);
	}
	return n ? (uint32_t)pp_pace_per_s(pace) : 0;
}

static int some_cuts(struct campaign *c, const char *method, uint32_t n, struct pp_error *err)
{
	for (; n; n--) {
		pp_sim_rig_pace(c->rig, strcmp(method, "direct") == 0 ? pace_of_arm(c) : 0);
		if (one_cut(c, pp_method_find(method), err) != 0)
			return -1;
	}
	pp_sim_rig_pace(c->rig, 0);
	return 0;
}

static int judge(const struct campaign *c, enum pp_arm_verdict *verdict, double *power,
	struct pp_error *err)
{
	struct pp_verdict_input in = { .trials = c->trials, .count = c->count,
		.criterion = *c->criterion };
	struct pp_verdict v;
	size_t i;
	int rc = pp_verdict_judge(&in, &v, err);

	for (i = 0; rc == 0 && i < v.arm_count; i++)
		if (strcmp(v.arms[i].key.method, c->method->name) == 0) {
			*verdict = v.arms[i].verdict;
			*power = v.arms[i].detection_power;
		}
	pp_verdict_release(&v);
	return rc;
}

static int run(struct campaign *c, uint32_t clean, struct pp_error *err)
{
	enum pp_arm_verdict verdict;
	double power = 0;

	if (some_cuts(c, "write", 1, err) != 0 || some_cuts(c, "direct", 1, err) != 0 ||
		one_cut(c, c->method, err) != 0 || some_cuts(c, "direct", DIRECT_FIRST - 1, err) != 0)
		return -1;
	while (c->arm_clean < clean && !c->arm_lost && !c->over)
		if (one_cut(c, c->method, err) != 0)
			return -1;
	if (some_cuts(c, "write", 1, err) != 0 || some_cuts(c, "direct", 1, err) != 0)
		return -1;
	while (!c->arm_lost && !c->over && c->direct_lost && c->direct_cuts < DIRECT_MOST) {
		if (judge(c, &verdict, &power, err) != 0)
			return -1;
		if (power >= POWER_NEEDED)
			break;
		if (some_cuts(c, "direct", 1, err) != 0)
			return -1;
	}
	return 0;
}

static int one_campaign(const struct pp_sim_plan *plan, const struct pp_criterion *criterion,
	uint64_t seed, struct pp_trial *trials, struct pp_sim_campaigns *r, struct pp_error *err)
{
	struct campaign c = { .criterion = criterion, .trials = trials, .paced = plan->paced_control };
	enum pp_arm_verdict verdict = PP_ARM_INCONCLUSIVE;
	struct pp_sim_setup setup;
	double power = 0;
	int rc = -1;

	pp_sim_draw(plan, seed, &setup, &c.method);
	setup.io_error_pct = 0; /* void trials only make it longer */
	c.rig = pp_sim_rig_new(&setup, err);
	if (c.rig && run(&c, r->clean_needed, err) == 0)
		rc = judge(&c, &verdict, &power, err);
	pp_sim_rig_free(c.rig);
	r->campaigns++;
	r->safe += verdict == PP_ARM_SAFE;
	r->unsafe += verdict == PP_ARM_UNSAFE;
	r->inconclusive += verdict != PP_ARM_SAFE && verdict != PP_ARM_UNSAFE;
	r->blind += verdict != PP_ARM_SAFE && !c.arm_lost && power < POWER_NEEDED;
	r->cuts += c.count;
	r->arm_cuts += c.arm_cuts;
	r->arm_lost += c.arm_lost;
	r->direct_cuts += c.direct_cuts;
	r->direct_lost += c.direct_lost;
	return rc;
}

int pp_sim_campaign(const struct pp_sim_plan *plan, const struct pp_criterion *criterion,
	uint64_t seed, uint64_t campaigns, struct pp_sim_campaigns *result, struct pp_error *err)
{
	struct pp_trial *trials = calloc(TRIALS_MOST, sizeof(*trials));
	uint64_t i;
	int rc = 0;

	memset(result, 0, sizeof(*result));
	result->clean_needed = pp_criterion_clean_cuts(criterion);
	if (!trials)
		return pp_fail_os(err, ENOMEM, "cannot simulate campaigns");
	for (i = 0; i < campaigns && rc == 0; i++)
		rc = one_campaign(plan, criterion, seed + i, trials, result, err);
	free(trials);
	return rc;
}
