/* SPDX-License-Identifier: MIT
 *
 * The power switch in a campaign's hands. The guard is armed before every off and disarmed only
 * after an on that was read back, so that no death of this process leaves a machine dark.
 */
#include "parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pdu/prove.h"
#include "src/core/clock.h"
#include "src/core/file.h"
#include "src/core/text.h"

#define GUARD_SLACK_NS (120 * PP_NS_PER_S)
#define LOAD_WATTS     1.0

static void record(void *arg, const char *json_line)
{
	struct pp_campaign *c = arg;

	if (c->pdu_log < 0)
		return;
	if (pp_write_all(c->pdu_log, json_line, strlen(json_line)) != 0 ||
		pp_write_all(c->pdu_log, "\n", 1) != 0)
		pp_say(c, "cannot write the power switch's record: %s", strerror(errno));
}

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

/* Of a plan that says nothing (-1), nothing (0) or a time; of the switch, 0 is the profile's. */
static int64_t of_plan(int64_t ms)
{
	return ms < 0 ? 0 : ms == 0 ? -1 : ms;
}

void pp_power_config(const struct pp_plan *p, struct pp_pdu_config *cfg)
{
	uint32_t i;

	memset(cfg, 0, sizeof(*cfg));
	cfg->profile = p->pdu_profile;
	cfg->url = or_null(p->pdu_url);
	cfg->parameters = or_null(p->pdu_parameters);
	for (i = 0; i < p->outlets; i++)
		cfg->outlets[i] = p->outlet[i];
	cfg->outlet_count = (int)p->outlets;
	cfg->identity = or_null(p->pdu_identity);
	cfg->label = or_null(p->pdu_label);
	cfg->credentials_file = or_null(p->pdu_credentials);
	cfg->ca_file = or_null(p->pdu_ca);
	cfg->pin = or_null(p->pdu_pin);
	cfg->insecure = p->pdu_insecure;
	cfg->state_dir = or_null(p->pdu_state_dir);
	cfg->min_off_ms = p->min_off_ms ? p->min_off_ms : -1;
	cfg->min_on_ms = p->min_on_ms ? p->min_on_ms : -1;
	cfg->cycles_per_hour_max = p->cycles_per_hour ? p->cycles_per_hour : -1;
	cfg->cycles_total_max = (int)p->cycles_max;
	cfg->dut_host = or_null(p->machine_address);
	cfg->wake = or_null(p->pdu_wake);
	cfg->device_restore_ms = p->device_restore_ms;
	cfg->verify_timeout_ms = of_plan(p->verify_ms);
	cfg->poll_ms = p->poll_ms;
	cfg->stagger_ms = of_plan(p->stagger_ms);
	cfg->watts_stale_ms = of_plan(p->watts_stale_ms);
}

static void complain(void *arg, const char *complaint)
{
	pp_say(arg, "power switch: %s", complaint);
}

int64_t pp_power_allowed_in_ms(struct pp_campaign *c)
{
	return c->pdu ? pp_pdu_off_allowed_in_ms(c->pdu) : 0;
}

bool pp_power_forbidden(struct pp_campaign *c)
{
	struct pp_error why;

	if (!c->pdu || pp_pdu_off_permitted(c->pdu, &why) == 0)
		return false;
	pp_text_format(c->pause, sizeof(c->pause), "no more cuts: %s", why.text);
	return true;
}

int pp_power_open(struct pp_campaign *c, struct pp_error *err)
{
	struct pp_pdu_identity identity;
	struct pp_pdu_status status;

	if (pp_by_hand(&c->plan)) {
		pp_text_copy(c->cut.cut_kind, sizeof(c->cut.cut_kind), pp_pdu_cuts_name(PP_PDU_CUTS_MAINS));
		pp_say(c, "no power switch: you will be asked to pull the plug");
		return 0;
	}
	pp_power_config(&c->plan, &c->pdu_config);
	c->pdu_config.record = record;
	c->pdu_config.record_arg = c;
	c->pdu = pp_pdu_open(&c->pdu_config, err);
	if (!c->pdu)
		return pp_fail_within(err, "power switch");
	if (!pp_pdu_can_verify(c->pdu))
		return pp_fail(err, PP_ERR_REFUSED, "profile '%s' cannot read an outlet back: no cut with it "
			"could be proven", pp_pdu_profile_name(c->pdu));
	if (pp_pdu_off_permitted(c->pdu, err) != 0 || pp_pdu_identify(c->pdu, &identity, err) != 0 ||
		pp_pdu_status(c->pdu, &status, err) != 0)
		return pp_fail_within(err, "power switch");
	/* A plan that says "unproven" takes the risk; the evidence says that it did. */
	if (!c->plan.unproven && pp_proof_check(c->pdu, or_null(c->plan.pdu_proof), err) != 0)
		return pp_fail_within(err, "wiring (or say 'unproven = yes' in the plan)");
	if (pp_pdu_preflight(c->pdu, complain, c, err) < 0)
		return pp_fail_within(err, "settings of the power switch");
	c->guard = pp_guard_start(&c->pdu_config, c->config->guard_exe, err);
	if (!c->guard)
		return pp_fail_within(err, "guard of the power switch");
	pp_text_copy(c->cut.cut_kind, sizeof(c->cut.cut_kind), pp_pdu_cuts_name(pp_pdu_cuts(c->pdu)));
	pp_say(c, "power switch %s%s%s: outlet %s%s is %s", identity.model[0] ? identity.model
		: pp_pdu_profile_name(c->pdu), identity.id[0] ? " " : "", identity.id,
		c->plan.outlet[0], c->plan.outlets > 1 ? " (and more)" : "",
		pp_pdu_state_name(status.state));
	if (status.state == PP_PDU_OFF) {
		struct pp_pdu_times times;

		pp_say(c, "turning it on");
		if (pp_power_on(c, &times, err) != 0)
			return -1;
	}
	return 0;
}

void pp_power_close(struct pp_campaign *c, struct pp_campaign_result *result)
{
	struct pp_pdu_status status;
	struct pp_error why;

	result->outlet_on = false;
	pp_text_copy(result->outlet_state, sizeof(result->outlet_state), "unknown");
	if (pp_by_hand(&c->plan)) {
		pp_text_copy(result->outlet, sizeof(result->outlet), "the machine's plug");
		pp_text_copy(result->outlet_state, sizeof(result->outlet_state), "in your hands");
	}
	if (c->guard && pp_guard_stop(c->guard, &why) != 0)
		pp_say(c, "guard: %s", why.text);
	c->guard = NULL;
	if (!c->pdu)
		return; /* nobody asked it, so there is nothing to say of it */
	snprintf(result->outlet, sizeof(result->outlet), "outlet %.64s%s of %.64s", c->plan.outlet[0],
		c->plan.outlets > 1 ? " (and its siblings)" : "",
		c->plan.pdu_url[0] ? c->plan.pdu_url : c->plan.pdu_profile);
	if (pp_pdu_status(c->pdu, &status, &why) == 0) {
		result->outlet_on = status.state == PP_PDU_ON;
		pp_text_copy(result->outlet_state, sizeof(result->outlet_state),
			pp_pdu_state_name(status.state));
	}
	pp_pdu_close(c->pdu);
	c->pdu = NULL;
}

int pp_power_off(struct pp_campaign *c, struct pp_pdu_times *times, struct pp_error *err)
{
	int64_t deadline = pp_clock_mono_ns() + c->plan.off_ms * PP_NS_PER_MS + GUARD_SLACK_NS;

	if (pp_by_hand(&c->plan))
		return pp_by_hand_off(c, times, err);
	memset(times, 0, sizeof(*times));
	times->outcome = PP_PDU_REFUSED;
	if (pp_guard_arm(c->guard, deadline, err) != 0)
		return pp_fail_within(err, "guard of the power switch");
	return pp_pdu_off(c->pdu, times, err);
}

int pp_power_on(struct pp_campaign *c, struct pp_pdu_times *times, struct pp_error *err)
{
	struct pp_guard_restored restored;
	struct pp_error why;
	int tries = 0;

	if (pp_by_hand(&c->plan))
		return pp_by_hand_on(c, times, err);
	/* Nothing is worth more now than power: a few tries here, and the guard never gives up. */
	while (pp_pdu_on(c->pdu, times, err) != 0) {
		pp_say(c, "cannot turn the outlet on: %s", err->text);
		if (++tries == 5)
			return pp_fail_within(err, "outlet may be off; the guard goes on trying, "
				"'plugpull pdu recover' helps");
		pp_clock_sleep_ms(1000);
	}
	if (pp_guard_disarm(c->guard, &restored, &why) != 0)
		pp_say(c, "guard: %s", why.text);
	return 0;
}

int pp_power_hold(struct pp_campaign *c, struct pp_pdu_watts *watts, struct pp_error *err)
{
	int64_t until = pp_clock_mono_ns() + c->plan.off_ms * PP_NS_PER_MS;
	struct pp_error why;

	memset(watts, 0, sizeof(*watts));
	/* The listener has a thread of its own, so nothing the machine still says is missed. */
	if (!c->pdu)
		watts->stayed_off = true; /* nobody can read it; M5.5 asks the drive */
	else if (pp_pdu_watch_off(c->pdu, until, watts, &why) != 0)
		pp_say(c, "cannot watch the outlet: %s", why.text);
	while (pp_clock_mono_ns() < until) {
		int rc = pp_machine_pump(&c->machine, until, err);

		/* An interrupt waits until the power is back. */
		if (rc < 0)
			pp_clock_sleep_ms(20);
	}
	return 0;
}

static int cycle_once(struct pp_campaign *c, int64_t *t_on_ns, struct pp_error *err)
{
	struct pp_pdu_times times;
	struct pp_pdu_watts watts;

	if (pp_machine_sleep(&c->machine, pp_power_allowed_in_ms(c), err) != 0)
		return -1;
	if (pp_power_off(c, &times, err) == 0)
		pp_power_hold(c, &watts, err);
	else if (times.outcome != PP_PDU_REFUSED && times.outcome != PP_PDU_NOT_RESTORED)
		return -1;
	if (pp_power_on(c, &times, err) != 0)
		return -1;
	*t_on_ns = times.t_sent_ns;
	return 0;
}

/* Does the boot that should be over still send? A second after the power came back is no echo. */
static bool still_talks(struct pp_campaign *c, const char *not_boot, int64_t after_ns)
{
	struct pp_session_state state;
	struct pp_error ignored;

	if (!after_ns || !c->machine.session || c->machine.closed != PP_CLOSE_NOT ||
		strcmp(c->machine.hello.boot_id, not_boot) != 0)
		return false;
	return pp_listener_snapshot(c->machine.listener, c->machine.session, 0, &state, NULL, 0,
		&ignored) == 0 && state.t_last_frame_ns > after_ns + PP_NS_PER_S;
}

static void note_alive(struct pp_campaign *c)
{
	struct pp_boot_seen *boot;

	if (!c->machine.cut || c->machine.cut->boots == PP_BOOTS_MAX)
		return;
	boot = &c->machine.cut->boot[c->machine.cut->boots++];
	memset(boot, 0, sizeof(*boot));
	boot->t_ns = pp_clock_mono_ns();
	boot->uptime_ns = (int64_t)c->machine.hello.uptime_ns + boot->t_ns - c->machine.t_hello_ns;
	pp_text_copy(boot->boot_id, sizeof(boot->boot_id), c->machine.hello.boot_id);
}

int pp_power_await_boot(struct pp_campaign *c, const char *not_boot, int64_t since_ns,
	int64_t alive_after_ns, uint32_t *cycles, struct pp_error *err)
{
	int64_t remind;
	uint32_t n;

	for (n = 1;; n++) {
		int64_t deadline = pp_clock_mono_ns() + c->plan.boot_deadline_s * PP_NS_PER_S;

		*cycles = n;
		remind = 0;
		while (pp_clock_mono_ns() < deadline) {
			int64_t tick = pp_clock_mono_ns() + 200 * PP_NS_PER_MS;
			int rc = pp_machine_await(&c->machine, not_boot, since_ns,
				tick < deadline ? tick : deadline, err);

			remind = pp_by_hand_remind(c, remind);
			if (rc != 0)
				return rc < 0 ? -1 : PP_BACK_BOOTED;
			if (still_talks(c, not_boot, alive_after_ns)) {
				note_alive(c);
				return PP_BACK_LIVED;
			}
		}
		if (n == PP_POWER_CYCLES_MAX)
			return PP_BACK_NOT;
		pp_say(c, "the machine has not come back within %u s: cycling its power again",
			c->plan.boot_deadline_s);
		if (cycle_once(c, &since_ns, err) != 0)
			return -1;
	}
}

/* The meter's word on the load: what it draws, or 0 where nobody can say. */
static double load_now(struct pp_campaign *c, bool *fresh)
{
	struct pp_pdu_status status;
	struct pp_error ignored;

	*fresh = false;
	if (!c->pdu || !pp_pdu_has_watts(c->pdu) || pp_pdu_status(c->pdu, &status, &ignored) != 0 ||
		!status.has_watts)
		return 0;
	*fresh = status.watts_fresh;
	return status.watts;
}

/*
 * After the shutdown: the plan's time, or less once the meter has twice seen nothing of a load that it
 * saw before; one that never saw any would see it go at once.
 */
static int await_shut_down(struct pp_campaign *c, double load_before, struct pp_error *err)
{
	int64_t deadline = pp_clock_mono_ns() + c->plan.poweroff_deadline_s * PP_NS_PER_S;
	int64_t settled;
	uint32_t nothing = 0;
	bool fresh;

	while (c->machine.closed == PP_CLOSE_NOT) {
		int rc = pp_machine_pump(&c->machine, deadline, err);

		if (rc < 0)
			return -1;
		if (rc == 0 && pp_clock_mono_ns() < deadline)
			pp_listener_wake_clear(c->machine.listener); /* an interrupt, which waits */
		else if (rc == 0)
			return pp_fail(err, PP_ERR_PEER, "the machine did not shut down within %u s of being "
				"told; look at its console, or raise poweroff_deadline_s",
				c->plan.poweroff_deadline_s);
	}
	settled = pp_clock_mono_ns() + c->plan.poweroff_settle_s * PP_NS_PER_S;
	while (pp_clock_mono_ns() < settled && nothing < 2) {
		double load = load_now(c, &fresh);

		if (load >= LOAD_WATTS)
			nothing = 0;
		else
			nothing += fresh && load_before >= LOAD_WATTS;
		pp_listener_wake_clear(c->machine.listener);
		if (pp_machine_sleep(&c->machine, 250, err) != 0)
			return -1;
	}
	return 0;
}

/*
 * A machine that was told to shut down comes back only by its power. So an interrupt waits from then on
 * until the power was cycled, as it does in a cut; and what the switch's limits ask for is waited for
 * before, while the machine runs. A person who pulls the plug is not held.
 */
int pp_power_orderly_cycle(struct pp_campaign *c, struct pp_error *err)
{
	const volatile sig_atomic_t *stop = c->machine.stop;
	char boot[PP_BOOT_ID_TEXT];
	int64_t t_on_ns = 0;
	uint32_t cycles;
	bool fresh;
	double load = load_now(c, &fresh);
	int rc;

	pp_text_copy(boot, sizeof(boot), c->machine.hello.boot_id);
	if (pp_machine_sleep(&c->machine, pp_power_allowed_in_ms(c), err) != 0)
		return pp_fail_within(err, "orderly power cycle");
	rc = pp_machine_simple(&c->machine, PP_ORDER_POWEROFF, 0, 30000, err);
	if (!pp_by_hand(&c->plan) && (rc == 0 || (stop && *stop))) {
		c->machine.stop = NULL;
		rc = 0;
	}
	if (rc == 0 && (await_shut_down(c, load, err) != 0 || cycle_once(c, &t_on_ns, err) != 0))
		rc = -1;
	c->machine.stop = stop;
	if (rc != 0)
		return pp_fail_within(err, "orderly power cycle");
	return pp_power_await_boot(c, boot, t_on_ns, 0, &cycles, err);
}
