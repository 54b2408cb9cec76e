/* SPDX-License-Identifier: MIT
 *
 * One cut: arm the runs, let them write for a drawn time, take the power away, see it gone, give it
 * back. Each step is in the evidence before the next begins, so that a controller that dies can be
 * followed by one that knows what had happened.
 */
#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/clock.h"
#include "src/core/file.h"
#include "src/core/le.h"
#include "src/core/splitmix.h"
#include "src/core/text.h"

#define QUICK_MS     30000
#define FIRST_ACK_NS (30 * PP_NS_PER_S)

int pp_cut_path(const struct pp_campaign *c, const struct pp_stand *s, const char *name, char *out,
	size_t bytes, struct pp_error *err)
{
	bool ok = s ? pp_text_format(out, bytes, "%s/cuts/%04u/%s/%s", c->folder, c->cut.number,
			s->folder, name)
		: pp_text_format(out, bytes, "%s/cuts/%04u/%s", c->folder, c->cut.number, name);

	return ok ? 0 : pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", c->folder);
}

int pp_cut_save(struct pp_campaign *c, const char *state, struct pp_error *err)
{
	char path[4608];

	pp_text_copy(c->cut.state, sizeof(c->cut.state), state);
	if (pp_cut_path(c, NULL, "cut.json", path, sizeof(path), err) != 0 ||
		pp_cut_facts_save(&c->cut, path, err) != 0)
		return -1;
	pp_show(c, state);
	return 0;
}

int pp_run_save(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err)
{
	char path[4608];

	if (pp_cut_path(c, s, "run.json", path, sizeof(path), err) != 0)
		return -1;
	return pp_run_facts_save(&s->run, path, err);
}

/* ---- before ------------------------------------------------------------------------------------ */

static int take_smart(void *ctx, const void *data, size_t bytes, struct pp_error *err)
{
	struct pp_buf *buf = ctx;

	pp_buf_add(buf, data, bytes);
	return buf->failed ? pp_fail(err, PP_ERR_PEER, "the drive's counters are too long") : 0;
}

int pp_counters_save(struct pp_campaign *c, struct pp_stand *s, const char *name,
	struct pp_error *err)
{
	char path[4608];
	struct pp_order order;
	struct pp_buf buf;
	int rc;

	pp_order_init(&order, PP_ORDER_SMART);
	pp_text_copy(order.serial, sizeof(order.serial), s->spec.serial);
	pp_buf_init(&buf, 4U << 20);
	rc = pp_machine_order(&c->machine, &order, NULL, 60000, take_smart, &buf, err);
	if (rc == 0)
		rc = pp_cut_path(c, s, name, path, sizeof(path), err);
	if (rc == 0)
		rc = buf.bytes ? pp_file_write(path, buf.data, buf.bytes, 0644, err)
			: pp_file_write(path, "{}\n", 3, 0644, err);
	pp_buf_release(&buf);
	return rc;
}

static void fill_run(struct pp_campaign *c, struct pp_stand *s, const struct pp_proof *proof)
{
	const struct pp_drive_info *d = &proof->drive.info;
	const struct pp_area *area = &s->area[s->now->set];
	struct pp_run_facts *r = &s->run;

	memset(r, 0, sizeof(*r));
	r->index = s->index;
	pp_text_copy(r->serial, sizeof(r->serial), d->serial);
	pp_text_copy(r->model, sizeof(r->model), d->model);
	pp_text_copy(r->firmware, sizeof(r->firmware), d->firmware);
	pp_text_copy(r->wwn, sizeof(r->wwn), d->wwn);
	pp_text_copy(r->transport, sizeof(r->transport), pp_transport_name(d->transport));
	pp_text_copy(r->method, sizeof(r->method), s->now->method->name);
	r->kind = s->spec.kind;
	r->layout = area->layout;
	pp_text_copy(r->fs, sizeof(r->fs), proof->fs_type);
	pp_text_copy(r->mount_options, sizeof(r->mount_options), proof->mount_options);
	pp_text_copy(r->policy_wanted, sizeof(r->policy_wanted), s->drive.policy);
	pp_text_copy(r->policy, sizeof(r->policy), proof->drive.policy);
	r->fua = d->fua && strcmp(d->write_cache, "write back") == 0;
	r->no_volatile_cache = d->no_volatile_cache;
	r->cache_protected = s->plan->cache_protected;
	r->drive_bytes = d->size_bytes;
	pp_text_copy(r->base, sizeof(r->base), area->base);
	r->pace_per_s = pp_control_pace(c, s, s->now);
	r->noise = c->plan.arms[s->now->set].noise;
	if (r->noise) {
		r->noise_run.layout = s->noise.layout;
		pp_text_copy(r->noise_run.base, sizeof(r->noise_run.base), s->noise.base);
	}
	pp_text_copy(c->cut.kernel, sizeof(c->cut.kernel), c->machine.hello.kernel);
}

static int open_ledger(struct pp_campaign *c, struct pp_stand *s, const char *name, uint32_t index,
	const struct pp_run_id *run, uint32_t lanes, struct pp_ledger **ledger, struct pp_error *err)
{
	char path[4608];

	if (pp_cut_path(c, s, name, path, sizeof(path), err) != 0)
		return -1;
	*ledger = pp_ledger_create(path, run, lanes, err);
	return *ledger ? pp_listener_bind(c->machine.listener, c->machine.session, index, *ledger, err)
		: -1;
}

/* The target proven, its facts and a fresh run id on disk before the agent hears of it (M3.2). */
static int prepare_run(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err)
{
	struct pp_proof *proof = malloc(sizeof(*proof));
	char path[4608];
	int rc = -1;

	if (!proof)
		return pp_fail_os(err, ENOMEM, "cannot prepare a run");
	if (pp_cut_path(c, s, "", path, sizeof(path), err) != 0 || pp_mkdirs(path, err) != 0)
		goto out;
	if (pp_counters_save(c, s, "drive-before.json", err) != 0 || pp_stand_prove(c, s, proof, err) != 0)
		goto out;
	if (proof->state != PP_TARGET_OK) {
		pp_fail(err, PP_ERR_PEER, "target on drive '%s' is not usable before the run (%s): %s",
			s->plan->name, pp_target_state_name(proof->state), proof->error);
		goto out;
	}
	fill_run(c, s, proof);
	if (s->now->setting && pp_policy_before_run(c, s, err) != 0)
		goto out;
	if (pp_run_id_draw(&s->run.run_id, err) != 0 ||
		(s->run.noise && pp_run_id_draw(&s->run.noise_run.run_id, err) != 0))
		goto out;
	if (c->plan.arms[s->now->set].random) /* an order of its own, never the sequential one */
		s->run.layout.shuffle = (le64_get(s->run.run_id.bytes) & INT64_MAX) | 1;
	if (pp_run_save(c, s, err) != 0 || open_ledger(c, s, "acks.ledger", s->index, &s->run.run_id,
		s->run.layout.lanes, &s->ledger, err) != 0)
		goto out;
	if (s->run.noise && open_ledger(c, s, "noise.ledger", s->index + PP_NOISE_INDEX,
		&s->run.noise_run.run_id, s->run.noise_run.layout.lanes, &s->noise_ledger, err) != 0)
		goto out;
	rc = 0;
out:
	free(proof);
	return rc;
}

static int start_run(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err)
{
	struct pp_started started;
	struct pp_order order;
	struct pp_kv answer;
	int rc;

	memset(&c->machine.news[s->index], 0, sizeof(c->machine.news[0]));
	pp_order_init(&order, PP_ORDER_RUN);
	order.index = s->index;
	order.layout = s->run.layout;
	order.method = s->now->method;
	order.pace_per_s = s->run.pace_per_s;
	order.run_id = s->run.run_id;
	order.compressible = c->plan.arms[s->now->set].compressible;
	pp_text_copy(order.file, sizeof(order.file), s->area[s->now->set].file);
	if (pp_machine_order(&c->machine, &order, &answer, QUICK_MS, NULL, NULL, err) != 0)
		return -1;
	rc = pp_started_get(&answer, &started, err);
	pp_kv_release(&answer);
	if (rc == 0 && !started.log_watched)
		pp_say(c, "drive %s: the kernel log cannot be watched: %s", s->plan->name,
			started.log_error);
	return rc != 0 ? -1 : pp_ledger_mark(s->ledger, pp_clock_mono_ns(), PP_MARK_WRITING, 0, err);
}

static int start_noise(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err)
{
	struct pp_order order;

	memset(&c->machine.news[s->index + PP_NOISE_INDEX], 0, sizeof(c->machine.news[0]));
	pp_order_init(&order, PP_ORDER_NOISE);
	order.index = s->index;
	order.layout = s->run.noise_run.layout;
	order.run_id = s->run.noise_run.run_id;
	order.compressible = c->plan.arms[s->now->set].compressible;
	pp_text_copy(order.file, sizeof(order.file), s->noise.file);
	if (pp_machine_order(&c->machine, &order, NULL, QUICK_MS, NULL, NULL, err) != 0)
		return -1;
	return pp_ledger_mark(s->noise_ledger, pp_clock_mono_ns(), PP_MARK_WRITING, 0, err);
}

/* ---- writing ----------------------------------------------------------------------------------- */

/* What a run (or its noise) has acked so far; *begun is cleared where that is nothing. */
static uint64_t acks_of(struct pp_campaign *c, uint32_t index, bool *begun)
{
	struct pp_session_state state;
	struct pp_error ignored;

	if (pp_listener_snapshot(c->machine.listener, c->machine.session, index, &state, NULL, 0,
		&ignored) != 0)
		return 0;
	*begun &= state.acks != 0 || c->machine.news[index].failed;
	return state.acks;
}

static void count_acks(struct pp_campaign *c, bool *all_begun, bool *any_full)
{
	static int64_t last_ns;
	uint64_t acks = 0;
	uint32_t i;
	int64_t now = pp_clock_mono_ns();

	*all_begun = true;
	for (i = 0; i < c->plan.drives; i++) {
		if (!c->stand[i].now)
			continue;
		*any_full |= c->machine.news[i].full;
		acks += acks_of(c, i, all_begun);
		if (c->stand[i].run.noise)
			acks_of(c, i + PP_NOISE_INDEX, all_begun);
	}
	if (c->progress.acks && acks >= c->progress.acks && now > last_ns)
		c->progress.acks_per_s = (double)(acks - c->progress.acks) * 1e9 /
			(double)(now - last_ns);
	c->progress.acks = acks;
	last_ns = now;
	pp_show(c, "writing");
}

/*
 * Writes until the drawn moment. A connection that ends, or an append lane that is full, brings the
 * cut forward: what the evidence then says is the judge's business.
 */
static int let_write(struct pp_campaign *c, struct pp_error *err)
{
	int64_t began = pp_clock_mono_ns(), until = began + FIRST_ACK_NS;
	bool begun = false, all_begun, full = false;
	const char *boot = c->cut.boot_before;

	c->progress.acks = 0;
	c->progress.acks_per_s = 0;
	while (pp_clock_mono_ns() < until) {
		int64_t tick = pp_clock_mono_ns() + 100 * PP_NS_PER_MS;

		if (pp_machine_pump(&c->machine, tick < until ? tick : until, err) < 0)
			return -1;
		if (c->machine.closed != PP_CLOSE_NOT || strcmp(c->machine.hello.boot_id, boot) != 0) {
			pp_say(c, "the machine went away before the cut");
			return 0;
		}
		count_acks(c, &all_begun, &full);
		if (full && begun)
			return 0;
		if (!begun && all_begun) {
			begun = true;
			until = pp_clock_mono_ns() + c->cut.write_ms * PP_NS_PER_MS;
		}
	}
	if (!begun)
		pp_say(c, "no ack within %lld s on at least one drive", FIRST_ACK_NS / PP_NS_PER_S);
	return 0;
}

static void mark_all(struct pp_campaign *c, enum pp_mark mark, int64_t t_ns)
{
	struct pp_error why;
	uint32_t i;

	for (i = 0; i < c->plan.drives; i++) {
		struct pp_stand *s = &c->stand[i];

		if ((s->ledger && pp_ledger_mark(s->ledger, t_ns, mark, 0, &why) != 0) ||
			(s->noise_ledger && pp_ledger_mark(s->noise_ledger, t_ns, mark, 0, &why) != 0))
			pp_say(c, "%s", why.text);
	}
}

/* ---- the cut ----------------------------------------------------------------------------------- */

static void note_off(struct pp_campaign *c, const struct pp_pdu_times *times)
{
	c->cut.t_off_sent_ns = times->t_sent_ns;
	c->cut.t_off_answered_ns = times->t_answered_ns;
	c->cut.t_off_read_ns = times->t_read_ns;
	c->cut.by_hand = pp_by_hand(&c->plan);
	c->cut.off_verified = times->outcome == PP_PDU_VERIFIED && !c->cut.by_hand;
	pp_text_copy(c->cut.off_outcome, sizeof(c->cut.off_outcome),
		pp_pdu_outcome_name(times->outcome));
	if (c->cut.t_off_sent_ns)
		mark_all(c, PP_MARK_OFF_SENT, c->cut.t_off_sent_ns);
	if (c->cut.off_verified)
		mark_all(c, PP_MARK_OFF_READ, c->cut.t_off_read_ns);
}

static int save_ledgers(struct pp_campaign *c, struct pp_error *err)
{
	uint32_t i;

	for (i = 0; i < c->plan.drives; i++) {
		struct pp_stand *s = &c->stand[i];

		if ((s->ledger && pp_ledger_sync(s->ledger, err) != 0) ||
			(s->noise_ledger && pp_ledger_sync(s->noise_ledger, err) != 0))
			return -1;
	}
	return 0;
}

/*
 * From here to the power being back no error and no interrupt ends the function early: the machine
 * is dark.
 */
static int take_power(struct pp_campaign *c, struct pp_error *err)
{
	struct pp_pdu_times off, on;
	struct pp_pdu_watts watts = { .stayed_off = false };
	struct pp_error why;

	if (pp_cut_save(c, "off-sent", err) != 0)
		return -1;
	if (pp_power_off(c, &off, &why) != 0) {
		pp_say(c, "the cut failed (%s): %s", pp_pdu_outcome_name(off.outcome), why.text);
		note_off(c, &off);
		snprintf(c->cut.void_reason, sizeof(c->cut.void_reason), "off was not read back");
	} else {
		note_off(c, &off);
		if (pp_cut_save(c, "off-read", &why) != 0)
			pp_say(c, "%s", why.text);
		pp_power_hold(c, &watts, &why);
		if (!watts.stayed_off)
			pp_say(c, "the outlet did not read off all the time");
		if (!watts.stayed_off)
			snprintf(c->cut.void_reason, sizeof(c->cut.void_reason), "outlet did not stay off");
	}
	c->cut.watts_known = watts.has_watts;
	c->cut.watts_zero = watts.zero_proven;
	c->cut.off_ns = c->plan.off_ms * PP_NS_PER_MS;
	c->cut.t_on_sent_ns = pp_clock_mono_ns();
	/* Who resumes from here on knows from the ledgers that the machine was heard, and silent. */
	if (save_ledgers(c, &why) != 0 || pp_cut_save(c, "on-sent", &why) != 0)
		pp_say(c, "%s", why.text);
	if (pp_power_on(c, &on, err) != 0)
		return -1;
	/* t_on is when the on was sent: waiting for the least off-time comes before that. */
	if (on.t_sent_ns > c->cut.t_on_sent_ns)
		c->cut.t_on_sent_ns = on.t_sent_ns;
	c->cut.t_on_read_ns = on.t_read_ns;
	mark_all(c, PP_MARK_ON_SENT, c->cut.t_on_sent_ns);
	if (save_ledgers(c, err) != 0)
		return -1;
	return pp_cut_save(c, "booting", err);
}

static void close_ledger(struct pp_campaign *c, uint64_t session, uint32_t index,
	struct pp_ledger **ledger)
{
	struct pp_error why;

	if (!*ledger)
		return;
	pp_listener_unbind(c->machine.listener, session, index);
	if (pp_ledger_close(*ledger, &why) != 0)
		pp_say(c, "%s", why.text);
	*ledger = NULL;
}

/* After the machine is back (or is not): nothing of the old session is wanted any more. */
static void close_ledgers(struct pp_campaign *c, uint64_t session)
{
	uint32_t i;

	for (i = 0; i < c->plan.drives; i++) {
		close_ledger(c, session, i, &c->stand[i].ledger);
		close_ledger(c, session, i + PP_NOISE_INDEX, &c->stand[i].noise_ledger);
	}
}

static void take_news(struct pp_campaign *c, struct pp_error *err)
{
	uint32_t i;

	for (i = 0; i < c->plan.drives; i++) {
		struct pp_stand *s = &c->stand[i];
		const struct pp_run_news *news = &c->machine.news[i];

		if (!s->now)
			continue;
		s->run.full = news->full;
		if (s->run.noise && !news->failed)
			news += PP_NOISE_INDEX; /* its failure is the drive's as well (M2.3) */
		s->run.failed = news->failed;
		pp_text_copy(s->run.failed_text, sizeof(s->run.failed_text), news->text);
		if (pp_run_save(c, s, err) != 0)
			pp_say(c, "%s", err->text);
	}
}

static int begin_cut(struct pp_campaign *c, struct pp_error *err)
{
	struct pp_cut_facts *cut = &c->cut;
	char path[4608], kind[sizeof(cut->cut_kind)];
	uint32_t number = c->evidence.cuts + 1, i;

	strcpy(kind, cut->cut_kind);
	memset(cut, 0, sizeof(*cut));
	strcpy(cut->cut_kind, kind);
	cut->number = number;
	pp_text_copy(cut->boot_before, sizeof(cut->boot_before), c->machine.hello.boot_id);
	pp_text_copy(cut->kernel, sizeof(cut->kernel), c->machine.hello.kernel);
	cut->hold_up_ns = c->plan.hold_up_ms * PP_NS_PER_MS;
	cut->battery = c->plan.battery;
	for (i = 0; i < c->plan.drives; i++)
		cut->runs += c->stand[i].now != NULL;
	cut->write_ms = c->plan.write_min_ms +
		(int64_t)(pp_splitmix_next(&c->random) % (c->plan.write_max_ms - c->plan.write_min_ms + 1));
	pp_clock_boot_id(cut->host_boot_id, sizeof(cut->host_boot_id));
	if (pp_cut_path(c, NULL, "", path, sizeof(path), err) != 0 || pp_mkdirs(path, err) != 0)
		return -1;
	if (pp_cut_path(c, NULL, "pdu.jsonl", path, sizeof(path), err) != 0)
		return -1;
	c->pdu_log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (c->pdu_log < 0)
		return pp_fail_os(err, errno, "cannot create '%s'", path);
	c->progress.cut = number;
	return pp_cut_save(c, "preparing", err);
}

static int run_until_off(struct pp_campaign *c, struct pp_error *err)
{
	uint32_t i;

	c->machine.cut = &c->cut;
	for (i = 0; i < c->plan.drives; i++)
		if (c->stand[i].now && prepare_run(c, &c->stand[i], err) != 0)
			return -1;
	/* Waiting for the switch's own limits comes before the writing, not after. */
	if (pp_machine_sleep(&c->machine, pp_power_allowed_in_ms(c), err) != 0)
		return -1;
	c->cut.t_run_ns = pp_clock_mono_ns();
	if (pp_cut_save(c, "writing", err) != 0)
		return -1;
	for (i = 0; i < c->plan.drives; i++) {
		struct pp_stand *s = &c->stand[i];

		if (s->now && (start_run(c, s, err) != 0 || (s->run.noise && start_noise(c, s, err) != 0)))
			return -1;
	}
	return let_write(c, err);
}

/* A cut that did not come to its off: said so in the evidence, and never a trial of anything. */
static void abandon(struct pp_campaign *c, const char *why, uint64_t session)
{
	struct pp_error ignored;
	uint32_t i;

	pp_text_copy(c->cut.void_reason, sizeof(c->cut.void_reason), why);
	mark_all(c, PP_MARK_ABANDONED, pp_clock_mono_ns());
	for (i = 0; i < c->plan.drives; i++) {
		if (!c->stand[i].now)
			continue;
		pp_machine_simple(&c->machine, PP_ORDER_STOP, i, 10000, &ignored);
		c->stand[i].needs_build = true;
	}
	close_ledgers(c, session);
	for (i = 0; i < c->plan.drives; i++)
		if (c->stand[i].now)
			pp_stand_release(c, &c->stand[i], &ignored);
	pp_cut_save(c, "abandoned", &ignored);
}

int pp_cut_run(struct pp_campaign *c, struct pp_error *err)
{
	int64_t began = pp_clock_mono_ns();
	struct pp_error why;
	uint64_t session = c->machine.session;
	int rc = begin_cut(c, err);

	if (rc == 0 && run_until_off(c, err) != 0) {
		abandon(c, c->config->stop && *c->config->stop ? "interrupted by a person"
			: "the run could not begin", session);
		rc = -1;
	} else if (rc == 0) {
		rc = take_power(c, err);
		/* The old session is heard until a new boot speaks: what it says after the off counts. */
		if (rc == 0)
			rc = pp_power_await_boot(c, c->cut.boot_before,
				c->cut.off_verified ? c->cut.t_on_sent_ns : 0, c->cut.t_on_read_ns,
				&c->cut.power_cycles, err);
		close_ledgers(c, session);
		take_news(c, &why);
		if (rc >= 0)
			rc = pp_aftermath(c, (enum pp_back)rc, err);
	}
	c->machine.cut = NULL;
	if (c->pdu_log >= 0)
		close(c->pdu_log);
	c->pdu_log = -1;
	c->cycle_ns = pp_clock_mono_ns() - began;
	return rc;
}
