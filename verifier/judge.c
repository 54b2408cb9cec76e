/* SPDX-License-Identifier: MIT */
#include "judge.h"

#include <string.h>

#include "src/core/text.h"
#include "verdict.h"

#define MS_NS 1000000LL

static void fill_key(const struct pp_case *c, struct pp_arm_key *key)
{
	const struct pp_run_facts *r = &c->run;

	pp_text_copy(key->serial, sizeof(key->serial), r->serial);
	pp_text_copy(key->model, sizeof(key->model), r->model);
	pp_text_copy(key->firmware, sizeof(key->firmware), r->firmware);
	pp_text_copy(key->method, sizeof(key->method), r->method);
	pp_text_copy(key->workload, sizeof(key->workload), pp_workload_name(r->layout.workload));
	pp_text_copy(key->target, sizeof(key->target), r->kind == PP_TARGET_RAW ? "raw" : "file");
	pp_text_copy(key->fs, sizeof(key->fs), r->fs);
	pp_text_copy(key->mount_options, sizeof(key->mount_options), r->mount_options);
	pp_text_copy(key->policy, sizeof(key->policy), r->policy_wanted);
	pp_text_copy(key->setting, sizeof(key->setting), r->setting);
	pp_text_copy(key->kernel, sizeof(key->kernel), c->cut.kernel);
	pp_text_copy(key->cut_kind, sizeof(key->cut_kind), c->cut.cut_kind);
	pp_text_copy(key->pattern, sizeof(key->pattern), pp_layout_pattern_name(&r->layout));
	key->lanes = r->layout.lanes;
	key->group = r->layout.group;
	key->record_bytes = r->layout.record_bytes;
	key->noise = r->noise;
}

/*
 * True where the lanes send FUA writes and no flush of their own: direct O_DSYNC over pre-written
 * blocks of a file, on a drive with FUA and a cache (facts: iomap's direct path). On a raw device
 * the kernel adds a flush unless the write came by io_uring; without FUA it sends a flush instead; a
 * growing file commits a journal. A command past the block layer is what it says.
 */
static bool pure_fua(const struct pp_run_facts *r, const struct pp_method *method)
{
	if (!method->may_send_fua || method->passthrough)
		return method->may_send_fua;
	return (r->kind == PP_TARGET_FILE || method->write == PP_WRITE_URING) && r->fua &&
		r->layout.workload == PP_OVERWRITE && strcmp(r->fs, "btrfs") != 0;
}

/* Where FUA is not sent as such: Linux sends a flush instead, Windows nothing (verdict.c). */
static bool becomes_flush(const struct pp_case *c, const struct pp_method *method)
{
	return method->may_send_fua && !pure_fua(&c->run, method) &&
		!(strncmp(c->cut.kernel, "Windows ", 8) == 0 && c->run.layout.workload == PP_OVERWRITE);
}

/* ---- flushes: did the kernel ask the drive? (M8.2) ---------------------------------------- */

/*
 * Records acked while the disk's counters were watched: what the flushes are to be compared with. By
 * the order in which the machine sent them, for what comes in one receive has one time.
 */
static uint64_t acked_between(const struct pp_ledger_entry *first, const struct pp_ledger_entry *last)
{
	const struct pp_ledger_entry *e;
	uint64_t records = 0;

	for (e = first; e && e < last; e++)
		if (e->type == PP_LEDGER_ACK)
			records += e->b - e->a + 1;
	return records;
}

/*
 * Lanes that sync at the same time share a flush, and the counter is read every 10 ms: half a flush
 * a sync and lane is asking; a kernel that drops flushes sends next to none. Each lane's first sync
 * in the time may have been flushed just before it began: a run with no more than those was not
 * measured, and neither kernel nor drive is accused by it.
 */
static enum pp_asked asked_by(uint64_t flushes, uint64_t syncs, uint32_t lanes)
{
	uint64_t certain = syncs > lanes ? syncs - lanes : 0;

	if (syncs && 2 * flushes * lanes >= syncs)
		return PP_ASKED;
	return 2 * flushes * lanes < certain ? PP_ASKED_NOT : PP_ASKED_UNKNOWN;
}

static void count_flushes(const struct pp_case *c, const struct pp_method *method,
	struct pp_judgement *j)
{
	const struct pp_ledger_entry *first = pp_ledger_first_beat(&c->ledger);
	const struct pp_ledger_entry *last = pp_ledger_last_beat(&c->ledger);
	uint64_t records = acked_between(first, last);
	struct pp_trial *t = &j->trial;

	j->syncs = pp_method_sync_in_write(method) ? records : records / c->run.layout.group;
	j->flushes = first && last && last->c > first->c ? last->c - first->c : 0;
	t->flushes_per_sync = j->syncs ? (double)j->flushes / (double)j->syncs : 0;
	t->asked = method->passthrough || pure_fua(&c->run, method) ? PP_ASKED
		: asked_by(j->flushes, j->syncs, c->run.layout.lanes);
	t->via_flush = becomes_flush(c, method);
}

/* ---- exposure (M8.1) ------------------------------------------------------------------------ */

static int64_t exposure_limit(const struct pp_ledger_data *ledger)
{
	int64_t median = pp_ledger_median_ack_interval_ns(ledger), limit;

	if (median == PP_LEDGER_NEVER)
		median = 0;
	limit = 3 * median > 50 * MS_NS ? 3 * median : 50 * MS_NS;
	if (limit > 1000 * MS_NS)
		limit = median > 1000 * MS_NS ? median : 1000 * MS_NS;
	return limit;
}

/*
 * The effective exposure: how many records the drive had confirmed so lately that its cache may
 * still have held them. A cut of an idle machine proves nothing, however many records it wrote.
 */
static void count_within(const struct pp_ledger_data *ledger, int64_t t_last_ns,
	uint64_t within[PP_WITHIN])
{
	size_t i, k;

	for (i = 0; i < ledger->count; i++) {
		const struct pp_ledger_entry *e = &ledger->entries[i];

		for (k = 0; k < PP_WITHIN && e->type == PP_LEDGER_ACK; k++)
			if (e->t_ns >= t_last_ns - pp_within_ms[k] * MS_NS)
				within[k] += e->b - e->a + 1;
	}
}

static void judge_exposure(const struct pp_case *c, const struct pp_method *method,
	const struct pp_witness *w, struct pp_judgement *j)
{
	int64_t t_ack = pp_ledger_t_last_ack(&c->ledger);
	int64_t t_flush = pp_ledger_t_flush_rose(&c->ledger);
	struct pp_trial *t = &j->trial;

	j->t_last_ns = w->t_last_ns;
	j->t_last_ack_ns = t_ack == PP_LEDGER_NEVER ? 0 : t_ack;
	j->exposure_limit_ns = exposure_limit(&c->ledger);
	count_within(&c->ledger, w->t_last_ns, t->acked_within);
	if (t_ack == PP_LEDGER_NEVER)
		pp_text_copy(t->unexposed_reason, sizeof(t->unexposed_reason), "nothing was acked");
	else if (w->t_last_ns - t_ack > j->exposure_limit_ns)
		pp_text_copy(t->unexposed_reason, sizeof(t->unexposed_reason), "last ack too old");
	else if (pure_fua(&c->run, method) && t_flush != PP_LEDGER_NEVER && t_ack <= t_flush)
		pp_text_copy(t->unexposed_reason, sizeof(t->unexposed_reason), "foreign flushes");
	else
		t->exposed = true;
}

/* ---- losses --------------------------------------------------------------------------------- */

static void note_age(struct pp_trial *t, int64_t age)
{
	if (t->lost_age_ns_min < 0 || age < t->lost_age_ns_min)
		t->lost_age_ns_min = age;
	if (age > t->lost_age_ns_max)
		t->lost_age_ns_max = age;
}

/* The whole target is gone: everything acked is (M6.1, M6.3), each as old as its ack (M4.9). */
static void lose_everything(const struct pp_case *c, const struct pp_witness *w,
	enum pp_loss_class class, struct pp_trial *t)
{
	size_t i;

	t->records_acked = pp_ledger_data_records(&c->ledger);
	t->records_lost = t->records_acked;
	/* A drive that is gone before the first ack is gone all the same. */
	t->lost[class] = t->records_acked ? t->records_acked : 1;
	t->lost_acked = t->records_acked != 0;
	for (i = 0; i < c->ledger.count; i++)
		if (c->ledger.entries[i].type == PP_LEDGER_ACK)
			note_age(t, w->t_last_ns - c->ledger.entries[i].t_ns);
}

static void take_oracle(const struct pp_case *c, const struct pp_witness *w, struct pp_judgement *j)
{
	const struct pp_oracle_result *o = &j->oracle;
	struct pp_trial *t = &j->trial;
	size_t i;

	t->records_acked = o->records_durable;
	t->records_lost = o->lost_total;
	memcpy(t->lost, o->lost, sizeof(t->lost));
	t->lost_acked = o->lost_total > o->lost_untorn;
	t->untorn_broken = o->lost_untorn;
	t->collateral = o->collateral != 0;
	t->unserializable = o->unserializable;
	t->in_flight = o->in_flight_seen;
	t->torn_in_flight = o->in_flight_torn;
	for (i = 0; i < o->losses; i++) {
		int64_t at;

		if (!o->loss[i].by_ack || o->loss[i].unstable)
			continue;
		at = pp_ledger_t_acked(&c->ledger, o->loss[i].lane, o->loss[i].seq);
		if (at != PP_LEDGER_NEVER)
			note_age(t, w->t_last_ns - at);
	}
}

/* M4.8: only direct I/O writes a record as the drive is given it; a name's record is never torn. */
static void take_tears(const struct pp_case *c, const struct pp_method *method,
	struct pp_judgement *j)
{
	if (!method->direct || pp_workload_renames(c->run.layout.workload))
		return;
	j->trial.tears_in_flight = j->oracle.in_flight_seen;
	memcpy(j->trial.torn_at, j->oracle.torn_at, sizeof(j->trial.torn_at));
}

static int ask_oracle(const struct pp_case *c, const struct pp_witness *w, struct pp_judgement *j,
	struct pp_error *err)
{
	struct pp_oracle_input in = { .layout = &c->run.layout, .run = c->run.run_id, .base = c->base,
		.scan = c->scan, .rereads = c->run.rereads, .kind = c->run.kind,
		.untorn = pp_method_find(c->run.method)->untorn };
	uint32_t lane;

	for (lane = 0; lane < c->run.layout.lanes; lane++)
		in.acked[lane] = pp_ledger_data_acked(&c->ledger, lane);
	memcpy(in.reread, c->reread, sizeof(in.reread));
	if (pp_oracle_judge(&in, &j->oracle, err) != 0)
		return pp_fail_within(err, "'%s' contradicts itself", c->path);
	take_oracle(c, w, j);
	take_tears(c, pp_method_find(c->run.method), j);
	return 0;
}

/* ---- noise (M7.6) --------------------------------------------------------------------------- */

/* What was acked while the machine lived, and is an older record in every read since. */
static bool noise_is_lost(const struct pp_case *c, const struct pp_witness *w,
	const struct pp_loss *loss)
{
	int64_t at;
	uint32_t k;

	if (loss->class != PP_LOSS_STALE || !loss->by_ack || !loss->seq || loss->unstable)
		return false;
	for (k = 0; k < c->run.noise_run.rereads; k++)
		if (!pp_scan_slot(c->noise_reread[k], loss->lane, loss->slot))
			return false;
	at = pp_ledger_t_acked(&c->noise_ledger, loss->lane, loss->seq);
	return at != PP_LEDGER_NEVER && at < w->t_last_ns;
}

/*
 * Noise witnesses that the cut reached the drive, and nothing else: nobody promised to keep it. It
 * does so only where a block is overwritten in place (M7.2): elsewhere the file system can lose it.
 */
static int judge_noise(const struct pp_case *c, const struct pp_witness *w, struct pp_judgement *j,
	struct pp_error *err)
{
	const struct pp_noise_facts *n = &c->run.noise_run;
	struct pp_oracle_input in = { .layout = &n->layout, .run = n->run_id, .base = c->noise_base,
		.scan = c->noise_scan, .rereads = n->rereads, .kind = c->run.kind };
	struct pp_arm_key key = j->trial.key;
	uint32_t lane;
	size_t i;

	if (!c->run.noise || !c->has_noise_ledger)
		return 0;
	j->noise_acked = pp_ledger_data_records(&c->noise_ledger);
	if (c->run.aftermath != PP_AFTER_SCANNED || !c->noise_scan)
		return 0;
	for (lane = 0; lane < n->layout.lanes; lane++)
		in.acked[lane] = pp_ledger_data_acked(&c->noise_ledger, lane);
	memcpy(in.reread, c->noise_reread, sizeof(in.reread));
	if (pp_oracle_judge(&in, &j->noise, err) != 0)
		return pp_fail_within(err, "noise of '%s' contradicts itself", c->path);
	pp_text_copy(key.workload, sizeof(key.workload), pp_workload_name(n->layout.workload));
	for (i = 0; i < j->noise.losses; i++)
		j->noise_lost += noise_is_lost(c, w, &j->noise.loss[i]);
	j->trial.noise_lost = j->noise_lost && n->rereads == PP_REREADS_MAX &&
		pp_verdict_shows_cache(&key);
	return 0;
}

static void set_open(struct pp_trial *t, const char *reason)
{
	t->outcome = PP_TRIAL_OPEN;
	pp_text_copy(t->reason, sizeof(t->reason), reason);
}

/*
 * What the aftermath makes of a proven trial (M6). A loss that is confirmed stands whatever else is
 * unclear; what could not be looked at is open, and never clean.
 */
static void settle(const struct pp_case *c, struct pp_judgement *j)
{
	struct pp_trial *t = &j->trial;

	t->outcome = PP_TRIAL_CLEAN;
	if (c->run.aftermath == PP_AFTER_PENDING)
		set_open(t, j->proof.booted ? "not scanned" : "no-boot");
	else if (c->run.aftermath == PP_AFTER_OPEN)
		set_open(t, c->run.aftermath_reason);
	else if (t->records_lost)
		t->outcome = PP_TRIAL_LOSS;
	else if (c->run.aftermath != PP_AFTER_SCANNED)
		t->outcome = PP_TRIAL_LOSS; /* gone, even though nothing had been acked yet */
	else if (j->oracle.unstable)
		set_open(t, "unstable: a re-read found what the first read missed");
	else if (c->ledger.truncated)
		set_open(t, "ledger was cut short: acks may be missing from it");
	if (t->outcome == PP_TRIAL_LOSS && c->run.aftermath == PP_AFTER_SCANNED && c->run.rereads < 3)
		set_open(t, "losses were not read again three times");
}

static void settle_void(const char *reason, struct pp_trial *t)
{
	t->outcome = PP_TRIAL_VOID;
	t->proven = false;
	pp_text_copy(t->reason, sizeof(t->reason), reason);
}

static void judge_power(const struct pp_case *c, struct pp_judgement *j)
{
	struct pp_trial *t = &j->trial;
	static const char *const own_bus[] = { "nvme", "sata", "sas" };
	size_t i;

	t->no_volatile_cache = c->run.no_volatile_cache;
	if (j->counters == PP_COUNTERS_ROSE) {
		t->drive_lost_power = true;
		pp_text_copy(t->drive_power_witness, sizeof(t->drive_power_witness), "its own counters");
	} else if (t->noise_lost) {
		t->drive_lost_power = true;
		pp_text_copy(t->drive_power_witness, sizeof(t->drive_power_witness), "lost acked noise");
	}
	for (i = 0; i < 3 && !t->drive_lost_power; i++) {
		if (!c->cut.watts_known || !c->cut.watts_zero || c->cut.battery ||
			strcmp(c->run.transport, own_bus[i]) != 0)
			continue;
		t->drive_lost_power = true;
		pp_text_copy(t->drive_power_witness, sizeof(t->drive_power_witness), "0 W at the outlet");
	}
}

/*
 * M6: trouble after a proven cut is never void. A drive that is no longer what it was, but still
 * counts, may say that it lost its power; that it did not is no word to be taken from it.
 */
static void count_of_the_gone(const struct pp_case *c, struct pp_counter_history *history,
	struct pp_judgement *j)
{
	struct pp_counter_history seen = *history;

	j->counters = pp_cut_counters(&seen, &c->before, &c->after, j->counters_reason);
	j->counters_reason[0] = '\0';
	if (j->counters == PP_COUNTERS_ROSE)
		*history = seen;
	else
		j->counters = PP_COUNTERS_NONE;
}

static void judge_counters(const struct pp_case *c, struct pp_counter_history *history,
	struct pp_judgement *j)
{
	/* Only a cut that the machine's side does not deny is one that the drive can have counted. */
	if (!j->proof.proven || !j->proof.booted)
		return;
	if (c->run.aftermath == PP_AFTER_DEVICE_GONE && !c->cut.by_hand) {
		count_of_the_gone(c, history, j);
		return;
	}
	j->counters = pp_cut_counters(history, &c->before, &c->after, j->counters_reason);
	if (j->counters == PP_COUNTERS_AGAINST)
		return;
	/* M5.4, M5.5, M7.6: what the drive forgot is its own word too. */
	if (j->trial.noise_lost)
		return;
	/* M5.4: a cut of DC is a cut of this drive only by the drive's own word. */
	if (strcmp(c->cut.cut_kind, "mains") != 0 && j->counters == PP_COUNTERS_NONE) {
		j->counters = PP_COUNTERS_AGAINST;
		pp_text_copy(j->counters_reason, sizeof(j->counters_reason),
			"no proof that a cut of DC reached this drive");
	}
	/* M5.5: a person's word alone proves nothing. */
	if (c->cut.by_hand && j->counters == PP_COUNTERS_NONE) {
		j->counters = PP_COUNTERS_AGAINST;
		pp_text_copy(j->counters_reason, sizeof(j->counters_reason),
			"cut by hand, and no counter of the drive says so");
	}
}

int pp_judge_case(const struct pp_case *c, const struct pp_witness *witness,
	struct pp_counter_history *history, struct pp_judgement *out, struct pp_error *err)
{
	const struct pp_method *method = pp_method_find(c->run.method);
	struct pp_trial *t = &out->trial;

	memset(out, 0, sizeof(*out));
	fill_key(c, &t->key);
	t->cut = c->cut.number;
	t->lost_age_ns_min = t->lost_age_ns_max = -1;
	t->fs_damaged = c->run.fs_damaged;
	t->policy_lost = c->run.policy_after[0] && strcmp(c->run.policy, c->run.policy_after) != 0;
	if (t->policy_lost)
		pp_text_copy(t->policy_after, sizeof(t->policy_after), c->run.policy_after);
	pp_text_copy(t->resolution, sizeof(t->resolution), c->run.resolution);
	t->swapped = c->run.swapped;
	t->run_id = c->run.run_id;
	pp_cut_prove(&c->cut, witness, &out->proof);
	if (judge_noise(c, witness, out, err) != 0)
		return -1;
	judge_counters(c, history, out);
	if (!c->has_ledger) {
		settle_void(out->proof.void_reason[0] ? out->proof.void_reason : "no ledger", t);
		return 0;
	}
	t->records_acked = pp_ledger_data_records(&c->ledger);
	count_flushes(c, method, out);
	judge_exposure(c, method, witness, out);
	if (c->run.aftermath == PP_AFTER_SCANNED && ask_oracle(c, witness, out, err) != 0) {
		pp_judgement_release(out);
		return -1;
	}
	if (c->run.aftermath == PP_AFTER_DEVICE_GONE)
		lose_everything(c, witness, PP_LOSS_DEVICE_GONE, t);
	if (c->run.aftermath == PP_AFTER_FS_GONE)
		lose_everything(c, witness, PP_LOSS_FS_GONE, t);
	if (!out->proof.proven) {
		settle_void(out->proof.void_reason, t);
	} else if (!out->proof.booted && c->run.aftermath != PP_AFTER_PENDING) {
		/* M5.2: who looked at the drive, if no boot was seen? */
		settle_void("no new boot was seen", t);
	} else if (out->counters == PP_COUNTERS_AGAINST) {
		settle_void(out->counters_reason, t);
	} else if (strcmp(c->run.policy, c->run.policy_wanted) != 0) {
		settle_void("the drive's cache policy is not the arm's", t); /* M1.5 */
	} else if (c->run.failed) {
		settle_void("I/O error", t);
	} else if (c->run.noise && !out->noise_acked) {
		settle_void("the arm's noise was not there", t); /* M1.3: it ran under other conditions */
	} else {
		t->proven = true;
		settle(c, out);
	}
	judge_power(c, out);
	return 0;
}

void pp_judgement_release(struct pp_judgement *judgement)
{
	pp_oracle_release(&judgement->oracle);
	pp_oracle_release(&judgement->noise);
}
