/* SPDX-License-Identifier: MIT */
#include "simulate.h"

#include <string.h>

#include "draw.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define PICK(x, list) ((list)[below((x), COUNT(list))])

static const struct pp_method *draw_method(uint64_t *x, enum pp_target_kind kind,
	uint32_t record_bytes)
{
	bool direct_only = record_bytes % 4096 != 0, power = !(record_bytes & (record_bytes - 1));
	const struct pp_method *m;

	/* The kernel takes an atomic write only where its length is a power of 2. */
	do
		m = pp_method_of(PP_SYSTEM_LINUX, below(x, pp_method_count_of(PP_SYSTEM_LINUX)));
	while (pp_method_promise(m, kind) != PP_PROMISE_MEDIA || (direct_only && !m->direct) ||
		(m->untorn && !power));
	return m;
}

static enum pp_target_kind draw_kind(const struct pp_sim_plan *plan, enum pp_workload workload,
	uint64_t *x)
{
	enum pp_target_kind kind = below(x, 2) ? PP_TARGET_RAW : PP_TARGET_FILE;

	if (plan->kind >= 0)
		kind = (enum pp_target_kind)plan->kind;
	return pp_workload_own_files(workload) ? PP_TARGET_FILE : kind;
}

/* Every draw is made whether it is wanted or not, so that fixing one thing leaves the rest. */
void pp_sim_draw(const struct pp_sim_plan *plan, uint64_t seed, struct pp_sim_setup *s,
	const struct pp_method **method)
{
	static const uint32_t lanes[] = { 1, 1, 1, 1, 1, 2, 2, 3, 4, 8 };
	static const uint32_t groups[] = { 1, 1, 1, 1, 2, 4, 8, 16, 33, 64 };
	static const uint32_t sizes[] = { 4096, 4096, 4096, 4096, 4096, 8192, 8192, 16384, 512, 1536 };
	static const uint64_t caches[] = { 64 << 10, 256 << 10, 1 << 20, 8 << 20 };
	static const uint64_t rates[] = { 0, 4 << 20, 20 << 20, 100 << 20 };
	static const int64_t delays_ns[] = { 0, 50000, 300000, 2000000 };
	static const int64_t losses_ns[] = { 0, 2000000, 20000000 };
	static const enum pp_workload workloads[] = { PP_OVERWRITE, PP_OVERWRITE, PP_OVERWRITE,
		PP_APPEND, PP_FALLOCATED, PP_CREATE, PP_RENAME };
	uint64_t x = seed;

	memset(s, 0, sizeof(*s));
	s->behaviour = plan->behaviour;
	s->records = plan->records;
	s->run_ns = (int64_t)plan->run_ms * 1000000;
	s->barriers = plan->barriers;
	s->noise = plan->noise;
	s->io_error_pct = plan->io_error_pct;
	s->seed = draw(&x);
	s->workload = PICK(&x, workloads);
	if (plan->workload != PP_WORKLOADS)
		s->workload = plan->workload;
	s->kind = draw_kind(plan, s->workload, &x);
	s->lanes = PICK(&x, lanes);
	s->group = PICK(&x, groups);
	s->record_bytes = PICK(&x, sizes);
	s->random_order = below(&x, 3) == 0;
	s->fua = below(&x, 2);
	s->sub_block = below(&x, 2) || (plan->behaviour->flags & PP_DRIVE_UNREADABLE &&
		plan->behaviour->amount);
	s->cache_bytes = PICK(&x, caches);
	s->destage_bytes_per_s = PICK(&x, rates);
	s->order = below(&x, 2) ? PP_DRIVE_RANDOM : PP_DRIVE_OLDEST_FIRST;
	s->net_delay_ns = PICK(&x, delays_ns);
	s->net_loss_ns = PICK(&x, losses_ns);
	s->lanes = plan->lanes ? plan->lanes : s->lanes;
	s->group = plan->group ? plan->group : s->group;
	s->record_bytes = plan->record_bytes ? plan->record_bytes : s->record_bytes;
	if (plan->cache_bytes) {
		s->cache_bytes = plan->cache_bytes;
		s->destage_bytes_per_s = plan->destage_bytes_per_s;
	}
	s->net_delay_ns = plan->net_delay_ns >= 0 ? plan->net_delay_ns : s->net_delay_ns;
	s->net_loss_ns = plan->net_loss_ns >= 0 ? plan->net_loss_ns : s->net_loss_ns;
	s->survive_pct = plan->survive_pct;
	if (plan->behaviour->flags & PP_DRIVE_REORDERS)
		s->survive_pct = 50;
	/* Records below a page go only where no page is between: to a device, directly (M2.5). */
	if (s->record_bytes % 4096 != 0 && !plan->record_bytes &&
		(s->kind != PP_TARGET_RAW || (plan->method && !plan->method->direct)))
		s->record_bytes = 4096;
	*method = draw_method(&x, s->kind, s->record_bytes);
	if (plan->method)
		*method = plan->method;
}

static void count(struct pp_sim_tally *tally, const struct pp_sim_outcome *o)
{
	size_t i;

	tally->cuts++;
	tally->records += o->records;
	tally->lost += o->lost != 0;
	tally->word[o->word]++;
	tally->voids += o->trial.outcome == PP_TRIAL_VOID;
	tally->opens += o->trial.outcome == PP_TRIAL_OPEN;
	tally->unexposed += o->trial.outcome == PP_TRIAL_CLEAN && !o->trial.exposed;
	tally->io_errors += o->io_error;
	tally->noise_lost += o->noise_lost != 0;
	tally->noise_seen += o->trial.noise_lost;
	tally->collateral += !o->lost && o->collateral;
	tally->torn_only += o->lost && o->lost == o->torn_only;
	tally->veiled += !o->lost && o->veiled;
	for (i = 0; i < PP_LOSS_CLASSES; i++)
		tally->of[i] += o->lost_of[i];
	tally->simulated_ns += o->simulated_ns;
}

/* One rig's cuts. Returns -1 for a fault; *stop where the watcher wants no more. */
static int run_rig(const struct pp_sim_plan *plan, uint64_t seed, uint64_t cuts,
	struct pp_sim_tally *tally, pp_sim_watch watch, void *ctx, bool *stop, struct pp_error *err)
{
	const struct pp_method *method;
	struct pp_sim_outcome outcome = { 0 };
	struct pp_sim_setup setup;
	struct pp_sim_rig *rig;
	uint64_t i;
	int rc = 0;

	pp_sim_draw(plan, seed, &setup, &method);
	rig = pp_sim_rig_new(&setup, err);
	if (!rig)
		return -1;
	pp_sim_rig_pace(rig, plan->pace_per_s);
	for (i = 0; i < cuts && !outcome.spent && !*stop; i++) {
		rc = pp_sim_rig_cut(rig, method, &outcome, err);
		if (rc != 0)
			break;
		count(tally, &outcome);
		*stop = watch && !watch(ctx, plan, seed, &outcome);
	}
	pp_sim_rig_free(rig);
	return rc;
}

int pp_simulate(const struct pp_sim_plan *plan, uint64_t seed, uint64_t cuts,
	struct pp_sim_tally *tally, pp_sim_watch watch, void *ctx, struct pp_error *err)
{
	uint64_t goal = tally->cuts + cuts;
	bool stop = false;

	for (; tally->cuts < goal && !stop; seed++) {
		uint64_t left = goal - tally->cuts;

		if (run_rig(plan, seed, left < plan->cuts_a_rig ? left : plan->cuts_a_rig, tally, watch,
			ctx, &stop, err) != 0)
			return pp_fail_within(err, "rig with seed %llu", (unsigned long long)seed);
	}
	return 0;
}

int pp_sim_replay(const struct pp_sim_plan *plan, uint64_t seed, pp_sim_trace trace, void *ctx,
	struct pp_error *err)
{
	const struct pp_method *method;
	struct pp_sim_outcome outcome = { 0 };
	struct pp_sim_setup setup;
	struct pp_sim_rig *rig;
	uint32_t i;
	int rc = 0;

	pp_sim_draw(plan, seed, &setup, &method);
	rig = pp_sim_rig_new(&setup, err);
	if (!rig)
		return -1;
	pp_sim_rig_trace(rig, trace, ctx);
	for (i = 0; i < plan->cuts_a_rig && rc == 0 && !outcome.spent; i++)
		rc = pp_sim_rig_cut(rig, method, &outcome, err);
	pp_sim_rig_free(rig);
	return rc;
}
