/* SPDX-License-Identifier: MIT
 *
 * How fast the control `direct` may write (docs/method.md, M7.3): not faster than the slowest arm that
 * it has to speak for, since what it puts at risk by being quicker says nothing about that arm. An
 * arm's own trials say how fast it is under the conditions of a cut; before there are any, the
 * speed matrix does; without that the control is not held back, and the judge counts what suits.
 */
#include "parts.h"

#include <stdlib.h>
#include <string.h>

bool pp_arm_owns(const struct pp_campaign *c, const struct pp_stand *s,
	const struct pp_arm_state *arm, const struct pp_trial *t)
{
	const struct pp_plan_arms *a = &c->plan.arms[arm->set];

	return strcmp(t->key.serial, s->drive.info.serial) == 0 &&
		strcmp(t->key.method, arm->method->name) == 0 &&
		strcmp(t->key.setting, arm->setting ? arm->setting->name : "") == 0 &&
		strcmp(t->key.workload, pp_workload_name(a->workload)) == 0 &&
		strcmp(t->key.pattern, a->random ? "random" : "sequential") == 0 &&
		t->key.lanes == a->lanes && t->key.group == a->group &&
		t->key.record_bytes == a->record_bytes && t->key.noise == a->noise;
}

void pp_arm_pace(const struct pp_campaign *c, const struct pp_stand *s,
	const struct pp_arm_state *arm, uint64_t pace[PP_WITHIN])
{
	const struct pp_evidence *e = &c->evidence;
	uint64_t *acked = malloc((e->trial_count + 1) * sizeof(*acked));
	size_t k, n, w;

	for (w = 0; w < PP_WITHIN; w++) {
		for (k = n = 0; acked && k < e->trial_count; k++)
			if (e->trials[k].outcome == PP_TRIAL_CLEAN && pp_arm_owns(c, s, arm, &e->trials[k]))
				acked[n++] = e->trials[k].acked_within[w];
		pace[w] = pp_pace_median(acked, acked ? n : 0);
	}
	free(acked);
}

/* Of the arm, all lanes together; 0: not known. */
static double records_per_s(const struct pp_campaign *c, const struct pp_stand *s,
	const struct pp_arm_state *arm)
{
	uint64_t pace[PP_WITHIN];
	size_t i;

	pp_arm_pace(c, s, arm, pace);
	if (pace[PP_WITHIN_100_MS] != UINT64_MAX)
		return (double)pp_pace_per_s(pace);
	for (i = 0; i < c->evidence.speed_count; i++)
		if (strcmp(c->evidence.speed[i].serial, s->drive.info.serial) == 0 &&
			strcmp(c->evidence.speed[i].method, arm->method->name) == 0 &&
			strcmp(c->evidence.speed[i].setting, arm->setting ? arm->setting->name : "") == 0)
			return c->evidence.speed[i].ops_per_s;
	return 0;
}

uint32_t pp_control_pace(const struct pp_campaign *c, const struct pp_stand *s,
	const struct pp_arm_state *control)
{
	const struct pp_plan_arms *own = &c->plan.arms[control->set];
	double least = 0;
	uint32_t i;

	if (!control->method->control || !control->method->direct || c->plan.control_pace == PP_PACE_NONE)
		return 0;
	if (c->plan.control_pace != PP_PACE_AUTO)
		return c->plan.control_pace;
	for (i = 0; i < s->arms; i++) {
		const struct pp_arm_state *arm = &s->arm[i];
		const struct pp_plan_arms *a = &c->plan.arms[arm->set];
		double rate;

		/* A broken promise needs no control. */
		if (arm->method->control || arm->na_reason[0] || arm->lost ||
			!pp_arm_speaks_for(c, control, arm))
			continue;
		rate = records_per_s(c, s, arm);
		/* Neither more records nor more bytes than the arm. */
		if (a->record_bytes < own->record_bytes)
			rate = rate * a->record_bytes / own->record_bytes;
		if (rate > 0 && (least == 0 || rate < least))
			least = rate;
	}
	least /= own->lanes;
	return least == 0 ? 0 : least < 1 ? 1 : least > PP_ORDER_PACE_MAX ? 0 : (uint32_t)least;
}
