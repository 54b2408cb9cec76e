/* SPDX-License-Identifier: MIT
 *
 * Off, on, and watching in between.
 *
 * What makes an off proven, and why each part is there:
 *  - read as on before: an outlet that was off already cuts nothing;
 *  - the journal is on disk first: whoever finds it knows what to restore;
 *  - the set was accepted, or its answer got lost: a refusal that is followed by "off" was
 *    somebody else's doing, and proves nothing about when;
 *  - read back off on two polls in a row: a relay that bounces or a status that flaps is not off;
 *  - no watts against it: a welded relay reads "off" and feeds the machine.
 * Everything else ends with the power on again.
 */
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "limits.h"
#include "src/core/clock.h"

#define STREAK 2 /* reads in a row that make a state believed */

enum sent { SENT_ACCEPTED, SENT_AMBIGUOUS, SENT_REFUSED, SENT_NOT, SENT_FENCED };

/* How each outlet has been reading. */
struct reads {
	enum pp_pdu_state last[PP_PDU_OUTLETS_MAX];
	int streak[PP_PDU_OUTLETS_MAX];
	int64_t t_first_ns[PP_PDU_OUTLETS_MAX]; /* of the streak */
};

static int64_t deadline_in(struct pp_pdu *pdu, int64_t ms)
{
	return pp_pdu_now_ns(pdu) + ms * PP_NS_PER_MS;
}

static enum sent send_set(struct pp_pdu *pdu, const struct pp_profile_request *request,
	const char *what, int outlet, int64_t time_ms, bool fenced, struct pp_pdu_times *times,
	struct pp_error *err)
{
	struct pp_ask ask = { request, what, outlet, time_ms, .fenced = fenced };
	struct pp_error why = { 0 };
	int rc = pp_pdu_ask(pdu, &ask, NULL, &why);

	if (ask.t_sent_ns && !times->t_sent_ns)
		times->t_sent_ns = ask.t_sent_ns;
	if (rc == 0) {
		times->t_answered_ns = ask.t_done_ns;
		return SENT_ACCEPTED;
	}
	if (err)
		*err = why;
	if (ask.answered)
		return SENT_REFUSED;
	if (ask.maybe_executed)
		return SENT_AMBIGUOUS;
	return why.class == PP_ERR_REFUSED ? SENT_FENCED : SENT_NOT;
}

/* One round over all outlets. A failed read breaks the streak: what was not read is not known. */
static bool read_round(struct pp_pdu *pdu, struct reads *reads, enum pp_pdu_state wanted,
	struct pp_error *err)
{
	bool all = true;

	for (int i = 0; i < pdu->config.outlet_count; i++) {
		bool has_watts;
		double watts;
		int64_t t_ns = 0;

		if (pp_pdu_read_outlet(pdu, i, &reads->last[i], &has_watts, &watts, &t_ns,
		    err) != 0 || reads->last[i] != wanted) {
			reads->streak[i] = 0;
		} else if (reads->streak[i]++ == 0) {
			reads->t_first_ns[i] = t_ns;
		}
		all = all && reads->streak[i] >= STREAK;
	}
	return all;
}

static bool poll_until(struct pp_pdu *pdu, struct reads *reads, enum pp_pdu_state wanted,
	int64_t deadline_ns, struct pp_pdu_times *times, struct pp_error *err)
{
	memset(reads, 0, sizeof(*reads));
	for (;;) {
		if (read_round(pdu, reads, wanted, err))
			break;
		if (pp_pdu_now_ns(pdu) >= deadline_ns)
			return false;
		pp_pdu_sleep_ms(pdu, pdu->config.poll_ms);
	}
	times->t_second_ns = pp_pdu_now_ns(pdu);
	times->t_read_ns = 0;
	for (int i = 0; i < pdu->config.outlet_count; i++)
		if (reads->t_first_ns[i] > times->t_read_ns)
			times->t_read_ns = reads->t_first_ns[i];
	return true;
}

static void record_outcome(struct pp_pdu *pdu, const char *event, const struct pp_pdu_times *times,
	const char *why)
{
	json_t *json = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:b, s:b}", "event", event,
		"outcome", pp_pdu_outcome_name(times->outcome), "t_sent_ns",
		(json_int_t)times->t_sent_ns, "t_answered_ns", (json_int_t)times->t_answered_ns,
		"t_read_ns", (json_int_t)times->t_read_ns, "t_restored_ns",
		(json_int_t)times->t_restored_ns, "ambiguous", times->ambiguous, "device_restore",
		times->device_restore);

	if (json && why)
		json_object_set_new(json, "error", pp_pdu_record_text(pdu, why));
	pp_pdu_record(pdu, json);
}

static void history_key(struct pp_pdu *pdu, int outlet, char *out, size_t bytes)
{
	snprintf(out, bytes, "%s_%s", pdu->host_key, pdu->config.outlets[outlet]);
}

static void add_history(struct pp_pdu *pdu, const char *what)
{
	for (int i = 0; !pdu->config.no_journal && i < pdu->config.outlet_count; i++) {
		char key[400];

		history_key(pdu, i, key, sizeof(key));
		pp_history_add(pdu->state_dir, key, what, NULL); /* a limit's memory: may fail */
	}
}

/* ---- on ----------------------------------------------------------------------------------- */

/* A BMC has no queue: an "on" that comes while it still powers off is lost, or worse, answered. So it
 * is given time to be either on or off. */
static void await_rest(struct pp_pdu *pdu, int64_t deadline_ns)
{
	while (pdu->profile->cuts == PP_PDU_CUTS_DC && pp_pdu_can_verify(pdu)) {
		struct pp_pdu_status status;

		if ((pp_pdu_status(pdu, &status, NULL) == 0 && (status.state == PP_PDU_OFF ||
		    status.state == PP_PDU_ON)) || pp_pdu_now_ns(pdu) >= deadline_ns)
			return;
		pp_pdu_sleep_ms(pdu, pdu->config.poll_ms);
	}
}

/* Sends and polls until all read on or the time is up. The set is repeated: it is idempotent, and
 * a device that was busy or rebooting has forgotten the first. */
static int make_on(struct pp_pdu *pdu, struct pp_pdu_times *times, struct pp_error *err)
{
	int64_t deadline_ns = deadline_in(pdu, pdu->config.verify_timeout_ms);
	int64_t again_ms = pdu->config.settle_ms + 4 * pdu->config.poll_ms;
	struct reads reads;

	if (again_ms < pdu->config.verify_timeout_ms / 4)
		again_ms = pdu->config.verify_timeout_ms / 4;
	await_rest(pdu, deadline_ns);
	do {
		for (int i = 0; i < pdu->config.outlet_count; i++) {
			if (i) /* inrush of several supplies at once trips breakers */
				pp_pdu_sleep_ms(pdu, pdu->config.stagger_ms);
			send_set(pdu, &pdu->profile->on, "on", i, -1, false, times, err);
		}
		pp_pdu_sleep_ms(pdu, pdu->config.settle_ms);
		if (!pp_pdu_can_verify(pdu))
			return pp_fail(err, PP_ERR_UNSUPPORTED,
				"profile '%s' cannot read back whether the outlet is on",
				pdu->profile->name);
		if (poll_until(pdu, &reads, PP_PDU_ON, deadline_in(pdu, again_ms), times, err))
			return 0;
	} while (pp_pdu_now_ns(pdu) < deadline_ns);
	if (err && err->text[0])
		return pp_fail_within(err, "the outlet does not read on");
	return pp_fail(err, PP_ERR_PEER, "the outlet does not read on");
}

/* After all outlets were read back on at t_on_ns. */
static void settle_journal(struct pp_pdu *pdu, int64_t t_on_ns)
{
	for (int i = 0; !pdu->config.no_journal && i < pdu->config.outlet_count; i++) {
		struct pp_journal_entry entry;

		/* Never another process's entry, nor the trace of a guard's restoration. */
		if (pp_journal_read(pdu->state_dir, pdu->host_key, pdu->config.outlets[i],
		    pp_journal_me(), &entry, NULL) != 0)
			continue;
		if (entry.state == PP_JOURNAL_MINE)
			pp_journal_clear(pdu->state_dir, pdu->host_key, pdu->config.outlets[i],
				NULL);
		else if (entry.state == PP_JOURNAL_ORPHAN)
			pp_journal_restored(pdu->state_dir, pdu->host_key, pdu->config.outlets[i],
				"on", t_on_ns, NULL);
		pp_journal_release(&entry);
	}
}

int pp_pdu_on(struct pp_pdu *pdu, struct pp_pdu_times *times, struct pp_error *err)
{
	struct pp_error why = { 0 };
	struct pp_pdu_times here;
	int64_t wait_ms;

	if (!times)
		times = &here;
	memset(times, 0, sizeof(*times));
	times->outcome = PP_PDU_NOT_RESTORED;
	/* A device that cannot be asked may still obey; one that is another must not. */
	if (!pdu->identified && (pdu->config.identity || pdu->config.label) &&
	    pp_pdu_identify(pdu, NULL, &why) != 0 && why.class == PP_ERR_REFUSED) {
		record_outcome(pdu, "on", times, why.text);
		if (err)
			*err = why;
		return -1;
	}
	if (pdu->t_off_read_ns && pdu->config.min_off_ms > 0) {
		wait_ms = pdu->config.min_off_ms -
			(pp_pdu_now_ns(pdu) - pdu->t_off_read_ns) / PP_NS_PER_MS;
		pp_pdu_sleep_ms(pdu, wait_ms);
	}
	if (pp_pdu_fetch_targets(pdu, &why) != 0 || make_on(pdu, times, &why) != 0) {
		if (!pp_pdu_can_verify(pdu))
			times->outcome = PP_PDU_STATE_UNKNOWN;
		record_outcome(pdu, "on", times, why.text);
		if (err)
			*err = why;
		return -1;
	}
	times->outcome = PP_PDU_VERIFIED;
	pdu->t_off_read_ns = 0;
	add_history(pdu, "on");
	settle_journal(pdu, times->t_read_ns);
	record_outcome(pdu, "on", times, NULL);
	if (pdu->config.wake && pp_wake_send(pdu->config.wake, &why) != 0)
		record_outcome(pdu, "wake", times, why.text);
	return 0;
}

/* ---- off ---------------------------------------------------------------------------------- */

int64_t pp_pdu_off_allowed_in_ms(struct pp_pdu *pdu)
{
	int64_t now_ns = pp_clock_boot_ns(), wait_ms = 0;

	for (int i = 0; !pdu->config.no_journal && i < pdu->config.outlet_count; i++) {
		struct pp_history history;
		char key[400];
		int64_t ms;

		history_key(pdu, i, key, sizeof(key));
		if (pp_history_read(pdu->state_dir, key, &history, NULL) != 0)
			continue;
		ms = pdu->config.min_on_ms - (now_ns - history.last_on_ns) / PP_NS_PER_MS;
		if (history.last_on_ns && pdu->config.min_on_ms > 0 && ms > wait_ms)
			wait_ms = ms;
		ms = 3600000 - (now_ns - history.oldest_off_ns) / PP_NS_PER_MS + 1;
		if (pdu->config.cycles_per_hour_max > 0 &&
		    history.offs_last_hour >= pdu->config.cycles_per_hour_max && ms > wait_ms)
			wait_ms = ms;
	}
	return wait_ms;
}

int pp_pdu_off_permitted(struct pp_pdu *pdu, struct pp_error *err)
{
	const struct pp_pdu_config *config = &pdu->config;

	if (config->dut_host && pdu->host[0] &&
	    pp_same_host_check(pdu->host, config->dut_host, err) != 0)
		return -1;
	for (int i = 0; !config->no_journal && i < config->outlet_count; i++) {
		struct pp_history history;
		char key[400];

		if (pp_deny_check(pdu->state_dir, pdu->host_key, config->outlets[i], err) != 0)
			return -1;
		history_key(pdu, i, key, sizeof(key));
		if (config->cycles_total_max > 0 &&
		    pp_history_read(pdu->state_dir, key, &history, NULL) == 0 &&
		    history.offs_total >= config->cycles_total_max)
			return pp_fail(err, PP_ERR_REFUSED, "outlet '%s' has been cut %lld times; %d "
				"are allowed", config->outlets[i], history.offs_total,
				config->cycles_total_max);
	}
	return 0;
}

/* All that must hold before anything is sent. Sets the outcome if it does not. */
static int may_cut(struct pp_pdu *pdu, struct pp_pdu_times *times, struct pp_error *err)
{
	struct pp_pdu_status status;
	int64_t wait_ms;

	times->outcome = PP_PDU_REFUSED;
	if (!pp_pdu_can_verify(pdu))
		return pp_fail(err, PP_ERR_REFUSED, "profile '%s' cannot read a state back, so it can "
			"never prove an off", pdu->profile->name);
	if (pp_pdu_off_permitted(pdu, err) != 0)
		return -1;
	wait_ms = pp_pdu_off_allowed_in_ms(pdu);
	if (wait_ms > 0)
		return pp_fail(err, PP_ERR_REFUSED, "limits on switching: wait %lld s",
			(long long)(wait_ms + 999) / 1000);
	if ((pdu->config.identity || pdu->config.label) && pp_pdu_identify(pdu, NULL, err) != 0)
		return -1;
	if (pp_pdu_fetch_targets(pdu, err) != 0)
		return -1;
	times->outcome = PP_PDU_STATE_UNKNOWN;
	if (pp_pdu_status(pdu, &status, err) != 0)
		return -1;
	if (status.state == PP_PDU_UNKNOWN)
		return pp_fail(err, PP_ERR_PEER,
			"the state of the outlet is not known: nothing is switched");
	times->outcome = PP_PDU_REFUSED;
	if (status.state != PP_PDU_ON)
		return pp_fail(err, PP_ERR_REFUSED, "the outlet reads %s, not on: nothing to cut",
			pp_pdu_state_name(status.state));
	times->has_watts_before = status.has_watts;
	times->watts_before = status.watts;
	pdu->load_before = status.has_watts && status.watts > pdu->config.watts_off_max ?
		status.watts : 0;
	return 0;
}

static int write_journal(struct pp_pdu *pdu, struct pp_error *err)
{
	for (int i = 0; !pdu->config.no_journal && i < pdu->config.outlet_count; i++) {
		if (pp_journal_begin(pdu->state_dir, pdu->host_key, pdu->config.outlets[i],
		    &pdu->config, err) == 0)
			continue;
		while (--i >= 0)
			pp_journal_clear(pdu->state_dir, pdu->host_key, pdu->config.outlets[i],
				NULL);
		return -1;
	}
	return 0;
}

/* Turns all outlets off at once (both supplies of a machine must go together). Stops at the first
 * that is not accepted. */
static enum sent send_offs(struct pp_pdu *pdu, struct pp_pdu_times *times, struct pp_error *err)
{
	const struct pp_profile_request *request = &pdu->profile->off;
	int64_t time_ms = -1;
	enum sent worst = SENT_ACCEPTED;

	if (pdu->config.device_restore_ms > 0 && pdu->profile->timed_off.given) {
		request = &pdu->profile->timed_off;
		time_ms = pdu->config.device_restore_ms;
		times->device_restore = true;
	}
	for (int i = 0; i < pdu->config.outlet_count; i++) {
		enum sent sent = send_set(pdu, request, "off", i, time_ms,
			!pdu->config.no_journal, times, err);

		if (sent == SENT_NOT) { /* nothing has reached the device: once more is harmless */
			if (i == 0)
				times->t_sent_ns = 0;
			pp_pdu_sleep_ms(pdu, pdu->config.poll_ms);
			sent = send_set(pdu, request, "off", i, time_ms,
				!pdu->config.no_journal, times, err);
		}
		if (sent == SENT_AMBIGUOUS) {
			times->ambiguous = true;
			worst = SENT_AMBIGUOUS;
		} else if (sent != SENT_ACCEPTED) {
			return sent;
		}
	}
	if (times->ambiguous)
		times->t_answered_ns = 0;
	return worst;
}

/* The meter lags behind the relay, so it has time to come down; if it does not, current flows. */
static int check_watts(struct pp_pdu *pdu, struct pp_error *err)
{
	int64_t deadline_ns = deadline_in(pdu, pdu->config.verify_timeout_ms);
	struct pp_pdu_status status;

	if (!pp_pdu_has_watts(pdu))
		return 0;
	for (;;) {
		if (pp_pdu_status(pdu, &status, err) == 0) {
			if (status.state != PP_PDU_OFF)
				return pp_fail(err, PP_ERR_PEER, "the outlet did not stay off: it reads %s",
					pp_pdu_state_name(status.state));
			if (!status.has_watts || status.watts <= pdu->config.watts_off_max)
				return 0;
			pp_fail(err, PP_ERR_PEER, "the outlet reads off, but %.1f W flow through it "
				"(welded relay, or another outlet's meter)", status.watts);
		}
		if (pp_pdu_now_ns(pdu) >= deadline_ns)
			return -1;
		pp_pdu_sleep_ms(pdu, pdu->config.poll_ms);
	}
}

/* After a failed off. An off request that got lost may still be executed late, so the on is
 * watched for as long as a request can be under way. */
static void restore(struct pp_pdu *pdu, struct pp_pdu_times *times, struct pp_error *why)
{
	struct pp_pdu_times on = { 0 };
	struct pp_error trouble = { 0 };
	int64_t deadline_ns = deadline_in(pdu, times->ambiguous ? pdu->config.request_timeout_ms : 0);
	struct pp_pdu_status status;

	for (;;) {
		if (make_on(pdu, &on, &trouble) != 0) {
			times->outcome = PP_PDU_NOT_RESTORED;
			pp_fail_within(why, "POWER NOT RESTORED (%.150s) after", trouble.text);
			return;
		}
		for (;;) {
			if (pp_pdu_now_ns(pdu) >= deadline_ns) {
				times->t_restored_ns = on.t_read_ns;
				add_history(pdu, "on");
				settle_journal(pdu, on.t_read_ns);
				return;
			}
			pp_pdu_sleep_ms(pdu, pdu->config.poll_ms);
			if (pp_pdu_status(pdu, &status, NULL) == 0 && status.state != PP_PDU_ON)
				break;
		}
	}
}

static enum pp_pdu_outcome failure_of(struct pp_pdu *pdu, const struct reads *reads)
{
	for (int i = 0; i < pdu->config.outlet_count; i++)
		if (reads->last[i] != PP_PDU_ON)
			return PP_PDU_STATE_UNKNOWN;
	return PP_PDU_FAILED;
}

/* From the request to the proof. */
static int cut(struct pp_pdu *pdu, struct pp_pdu_times *times, struct pp_error *err)
{
	enum sent sent = send_offs(pdu, times, err);
	struct reads reads;

	times->outcome = sent == SENT_FENCED && !times->t_sent_ns ? PP_PDU_REFUSED : PP_PDU_FAILED;
	if (sent != SENT_ACCEPTED && sent != SENT_AMBIGUOUS)
		return -1;
	pp_pdu_sleep_ms(pdu, pdu->config.settle_ms);
	if (!poll_until(pdu, &reads, PP_PDU_OFF, deadline_in(pdu, pdu->config.verify_timeout_ms),
	    times, err)) {
		times->outcome = failure_of(pdu, &reads);
		if (!err->text[0])
			pp_fail(err, PP_ERR_PEER, "the outlet reads %s after the off",
				pp_pdu_state_name(reads.last[0]));
		return -1;
	}
	pdu->t_fresh_ns = times->t_second_ns; /* a sample from before the off is not fresh */
	times->outcome = PP_PDU_STATE_UNKNOWN;
	if (check_watts(pdu, err) != 0)
		return -1;
	times->outcome = PP_PDU_VERIFIED;
	return 0;
}

int pp_pdu_off(struct pp_pdu *pdu, struct pp_pdu_times *times, struct pp_error *err)
{
	struct pp_error why = { 0 };
	struct pp_pdu_times here;

	if (!times)
		times = &here;
	memset(times, 0, sizeof(*times));
	if (may_cut(pdu, times, &why) != 0)
		goto out;
	times->outcome = PP_PDU_REFUSED;
	if (write_journal(pdu, &why) != 0)
		goto out;
	add_history(pdu, "off");
	if (cut(pdu, times, &why) == 0) {
		pdu->t_off_read_ns = times->t_read_ns;
		record_outcome(pdu, "off", times, NULL);
		return 0;
	}
	restore(pdu, times, &why);
out:
	record_outcome(pdu, "off", times, why.text);
	if (err)
		*err = why;
	return -1;
}

int pp_pdu_leave_off(struct pp_pdu *pdu, struct pp_error *err)
{
	for (int i = 0; !pdu->config.no_journal && i < pdu->config.outlet_count; i++)
		if (pp_journal_clear(pdu->state_dir, pdu->host_key, pdu->config.outlets[i], err) != 0)
			return -1;
	return 0;
}

/* ---- the off phase ------------------------------------------------------------------------ */

int pp_pdu_watch_off(struct pp_pdu *pdu, int64_t until_ns, struct pp_pdu_watts *watts,
	struct pp_error *err)
{
	/* A board that never draws a watt must not pass for one without power. */
	double limit = pdu->load_before / 10 < pdu->config.watts_off_max ? pdu->load_before / 10 :
		pdu->config.watts_off_max;
	bool above = false, last_good = false, asked = false;

	memset(watts, 0, sizeof(*watts));
	watts->stayed_off = watts->has_watts = true;
	for (;;) {
		int64_t left_ms = (until_ns - pp_pdu_now_ns(pdu)) / PP_NS_PER_MS;
		bool last = left_ms <= 0;
		struct pp_pdu_status status;

		last_good = pp_pdu_status(pdu, &status, err) == 0;
		if (last_good) {
			asked = true;
			watts->t_last_ns = status.t_ns;
			watts->stayed_off = watts->stayed_off && status.state == PP_PDU_OFF;
			watts->has_watts = watts->has_watts && status.has_watts;
			above = above || (status.has_watts && status.watts > limit);
			if (status.watts_fresh && status.watts > watts->watts_max)
				watts->watts_max = status.watts;
			if (status.watts_fresh && !above)
				watts->samples_fresh++;
		} else {
			watts->has_watts = false; /* a gap in the watch proves nothing */
		}
		if (last)
			break;
		pp_pdu_sleep_ms(pdu, left_ms < pdu->config.poll_ms ? left_ms :
			pdu->config.poll_ms);
	}
	if (!asked) {
		watts->stayed_off = watts->has_watts = false;
		return -1;
	}
	watts->zero_proven = last_good && watts->stayed_off && watts->has_watts && !above &&
		pdu->load_before > 0 && watts->samples_fresh >= 3 && pdu->t_off_read_ns &&
		watts->t_last_ns - pdu->t_off_read_ns >= 10 * PP_NS_PER_S;
	return 0;
}
