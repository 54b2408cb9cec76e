/* SPDX-License-Identifier: MIT
 *
 * Method: the campaign's own code on an empty campaign, so that a dry run cannot believe what the
 * campaign would not.
 */
#include "dry_run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "src/core/auth.h"

struct dry {
	struct pp_campaign *c;
	struct pp_dry_run *out;
	void (*say)(void *ctx, bool problem, const char *text);
	void *ctx;
};

static void tell(struct dry *d, bool problem, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void tell(struct dry *d, bool problem, const char *fmt, ...)
{
	char text[700];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	d->out->problems += problem;
	d->say(d->ctx, problem, text);
}

static void try_switch(struct dry *d)
{
	const struct pp_plan *plan = &d->c->plan;
	struct pp_pdu_config config;
	struct pp_error err;
	struct pp_pdu *pdu;

	if (plan->has_lab || pp_by_hand(plan))
		return;
	pp_power_config(plan, &config);
	config.no_journal = true; /* no folder, no lock: nothing is touched */
	pdu = pp_pdu_open(&config, &err);
	if (!pdu) {
		tell(d, true, "[pdu]: %s", err.text);
		return;
	}
	if (!pp_pdu_can_verify(pdu))
		tell(d, true, "[pdu]: profile '%s' cannot read an outlet back: no cut with it could be "
			"proven", pp_pdu_profile_name(pdu));
	if (config.device_restore_ms && !pp_pdu_has_device_restore(pdu))
		tell(d, true, "[pdu]: profile '%s' has no timed restore for device_restore_s",
			pp_pdu_profile_name(pdu));
	if (pp_pdu_cuts(pdu) != PP_PDU_CUTS_MAINS)
		tell(d, false, "[pdu]: profile '%s' cuts %s, not the mains", pp_pdu_profile_name(pdu),
			pp_pdu_cuts_name(pp_pdu_cuts(pdu)));
	pp_pdu_close(pdu);
}

static void try_key(struct dry *d)
{
	struct pp_error err;
	struct pp_key key;

	if (!d->c->plan.has_lab && pp_key_load(d->c->plan.key_file, &key, &err) != 0)
		tell(d, true, "[machine]: %s", err.text);
}

/* With blocks of 512 bytes, the smallest there are; then with the usual ones. */
static void try_sizes(struct dry *d, struct pp_stand *s)
{
	struct pp_proof *proof = calloc(1, sizeof(*proof));
	struct pp_error err;

	if (!proof)
		return;
	proof->size_bytes = UINT64_MAX;
	proof->unit_bytes = 512;
	if (pp_setup_areas(d->c, s, proof, &err) != 0) {
		tell(d, true, "%s", err.text);
	} else {
		proof->unit_bytes = 4096;
		if (pp_setup_areas(d->c, s, proof, &err) != 0)
			tell(d, false, "if its blocks have 4096 bytes: %s", err.text);
	}
	free(proof);
}

static void try_arms(struct dry *d, const struct pp_stand *s)
{
	uint32_t i, promising = 0;

	for (i = 0; i < s->arms; i++) {
		const struct pp_arm_state *arm = &s->arm[i];
		const struct pp_plan_arms *a = &d->c->plan.arms[arm->set];

		if (arm->na_reason[0])
			tell(d, false, "drive '%s': %s on %s is n/a: %s", s->plan->name, arm->method->name,
				pp_workload_name(a->workload), arm->na_reason);
		promising += !arm->na_reason[0] && !arm->method->control && pp_workload_promise(a->workload,
			arm->method, s->spec.kind, NULL) == PP_PROMISE_MEDIA;
	}
	if (!promising)
		tell(d, true, "drive '%s': no arm promises to survive a cut: none could become SAFE",
			s->plan->name);
}

static void try_counts(struct dry *d)
{
	const struct pp_plan *plan = &d->c->plan;
	uint32_t needed = pp_criterion_clean_cuts(&plan->criterion);

	if (plan->cuts && plan->cuts < needed)
		tell(d, true, "cuts = %u, but criterion %s needs %u clean cuts of an arm: none could become "
			"SAFE", plan->cuts, plan->criterion.text, needed);
	if (!plan->controls)
		tell(d, false, "controls = 0: without `write` and `direct` in [arms] none could become SAFE");
	if (plan->cycles_max && plan->cycles_max < d->out->cuts)
		tell(d, true, "cycles_max = %u, but about %u cuts are needed", plan->cycles_max,
			d->out->cuts);
	if (!plan->has_lab && plan->cycles_per_hour && (uint32_t)plan->cycles_per_hour < d->out->cuts)
		tell(d, false, "cycles_per_hour = %d: at least %.1f hours", plan->cycles_per_hour,
			(double)d->out->cuts / plan->cycles_per_hour);
}

void pp_plan_dry_run(const struct pp_plan *plan, uint32_t cuts,
	void (*say)(void *ctx, bool problem, const char *text), void *ctx, struct pp_dry_run *out)
{
	struct pp_campaign *c = calloc(1, sizeof(*c));
	struct dry d = { .c = c, .out = out, .say = say, .ctx = ctx };
	uint32_t i;

	memset(out, 0, sizeof(*out));
	if (c)
		c->stand = calloc(plan->drives, sizeof(*c->stand));
	if (!c || !c->stand) {
		tell(&d, true, "out of memory");
		free(c);
		return;
	}
	c->plan = *plan;
	if (cuts)
		c->plan.cuts = cuts;
	for (i = 0; i < plan->drives; i++) {
		c->stand[i].plan = &c->plan.drive[i];
		c->stand[i].index = i;
		c->stand[i].spec.kind = plan->drive[i].kind;
	}
	pp_schedule_init(c);
	pp_schedule_next(c);
	out->cuts = c->progress.cuts_left;
	try_key(&d);
	try_switch(&d);
	for (i = 0; i < plan->drives; i++) {
		try_sizes(&d, &c->stand[i]);
		try_arms(&d, &c->stand[i]);
	}
	try_counts(&d);
	free(c->stand);
	free(c);
}
