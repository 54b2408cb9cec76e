/* SPDX-License-Identifier: MIT
 *
 * A person is the power switch (docs/method.md, M5.5). They are told when to pull the plug and when to
 * put it back; what they say they did is not believed. The moment of the cut is that at which the
 * machine fell silent; the proof that it lost its power is the drive's own counters.
 */
#include "parts.h"

#include <string.h>

#include "src/core/clock.h"

#define SILENCE_NS  (3 * PP_NS_PER_S)
#define TICK_NS     (100 * PP_NS_PER_MS)
#define REMIND_NS   (30 * PP_NS_PER_S)

bool pp_by_hand(const struct pp_plan *plan)
{
	return strcmp(plan->pdu_profile, PP_BY_HAND) == 0;
}

/* The last frame of the session; 0 once it is known to have ended in good order. */
static int64_t last_heard(struct pp_campaign *c, int64_t otherwise)
{
	struct pp_session_state state;
	struct pp_error ignored;

	if (pp_listener_snapshot(c->machine.listener, c->machine.session, 0, &state, NULL, 0,
		&ignored) != 0 || state.t_last_frame_ns == PP_LEDGER_NEVER)
		return otherwise;
	return state.t_last_frame_ns;
}

int pp_by_hand_off(struct pp_campaign *c, struct pp_pdu_times *times, struct pp_error *err)
{
	int64_t told = pp_clock_mono_ns(), last = told, remind = told + REMIND_NS;

	memset(times, 0, sizeof(*times));
	times->outcome = PP_PDU_REFUSED;
	pp_say(c, "NOW: pull the machine's plug (all of its plugs; not its power button)");
	/* Silence, or a connection that was closed: the ledger has both, and they are not the same. */
	while (c->machine.closed == PP_CLOSE_NOT && pp_clock_mono_ns() - last < SILENCE_NS) {
		int64_t now = pp_clock_mono_ns();

		if (pp_machine_pump(&c->machine, now + TICK_NS, err) < 0)
			return -1;
		last = last_heard(c, last);
		if (now > remind) {
			pp_say(c, "still hearing the machine: pull its plug now");
			remind = now + REMIND_NS;
		}
	}
	times->outcome = PP_PDU_VERIFIED; /* of the silence; the cut's proof asks for more */
	times->t_sent_ns = times->t_answered_ns = last;
	times->t_read_ns = times->t_second_ns = last + 1;
	pp_say(c, "the machine is silent; leave it without power");
	return 0;
}

int pp_by_hand_on(struct pp_campaign *c, struct pp_pdu_times *times, struct pp_error *err)
{
	(void)err;
	memset(times, 0, sizeof(*times));
	pp_say(c, "NOW: plug the machine in again and switch it on");
	times->outcome = PP_PDU_VERIFIED;
	times->t_sent_ns = times->t_answered_ns = times->t_read_ns = pp_clock_mono_ns();
	return 0;
}

int64_t pp_by_hand_remind(struct pp_campaign *c, int64_t next_ns)
{
	int64_t now = pp_clock_mono_ns();

	if (!pp_by_hand(&c->plan) || now < next_ns)
		return next_ns;
	if (next_ns) /* the first time there is nothing to say yet */
		pp_say(c, "still no agent: is the machine on (else pull its plug, put it back), and does "
			"'plugpull-dut verify', or agent, run on it?");
	return now + REMIND_NS;
}
