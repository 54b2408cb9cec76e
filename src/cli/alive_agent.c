/* SPDX-License-Identifier: MIT */
#include "alive_agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/campaign/orders.h"
#include "src/core/auth.h"
#include "src/core/clock.h"
#include "verifier/listener.h"

struct pp_alive_agent {
	struct pp_listener *listener;
	uint64_t session; /* the last that connected; 0: none yet */
	struct pp_hello hello;
};

struct pp_alive_agent *pp_alive_agent_open(const char *what, struct pp_error *err)
{
	struct pp_alive_agent *agent = calloc(1, sizeof(*agent));
	char file[1024], address[64] = "";
	const char *at = strrchr(what, '@'), *colon = at ? strrchr(at, ':') : NULL;
	long port = 7333;
	struct pp_key key;

	if (!agent) {
		pp_fail(err, PP_ERR_SYSTEM, "out of memory");
		return NULL;
	}
	snprintf(file, sizeof(file), "%.*s", (int)(at ? (size_t)(at - what) : strlen(what)), what);
	if (at)
		port = strtol((colon ? colon : at) + 1, NULL, 10);
	if (colon)
		snprintf(address, sizeof(address), "%.*s", (int)(colon - at - 1), at + 1);
	if (!file[0] || port < 0 || port > 65535) {
		pp_fail(err, PP_ERR_USAGE, "'agent:%s' is not agent:KEYFILE[@[ADDRESS:]PORT]", what);
		goto undo;
	}
	if (pp_key_load(file, &key, err) != 0)
		goto undo;
	agent->listener = pp_listener_open(address[0] ? address : NULL, (uint16_t)port, &key, err);
	explicit_bzero(&key, sizeof(key));
	if (!agent->listener)
		goto undo;
	return agent;
undo:
	free(agent);
	return NULL;
}

void pp_alive_agent_close(struct pp_alive_agent *agent)
{
	if (!agent)
		return;
	pp_listener_close(agent->listener);
	free(agent);
}

static void take_hello(struct pp_alive_agent *agent, const struct pp_event *ev)
{
	struct pp_kv kv;

	agent->session = ev->session;
	memset(&agent->hello, 0, sizeof(agent->hello));
	if (pp_kv_parse(&kv, ev->data, ev->data_bytes, NULL) != 0)
		return;
	if (pp_hello_get(&kv, &agent->hello, NULL) != 0)
		agent->hello.boot_id[0] = '\0';
	pp_kv_release(&kv);
}

/* Who is connected now: what has come so far, and where that is nobody, who comes before the deadline. */
static void meet(struct pp_alive_agent *agent, int64_t deadline_ns)
{
	struct pp_event ev;

	while (pp_listener_wait(agent->listener, agent->session ? 0 : deadline_ns, &ev, NULL) == 1) {
		if (ev.type == PP_EVENT_CONNECTED)
			take_hello(agent, &ev);
		pp_event_release(&ev);
	}
}

/* An agent without orders says nothing by itself (heartbeats begin with a run), so it is asked. */
static bool answers(struct pp_alive_agent *agent, int64_t deadline_ns)
{
	int64_t left_ms = (deadline_ns - pp_clock_mono_ns()) / PP_NS_PER_MS + 1;
	struct pp_order order;
	struct pp_buf text;
	bool yes;

	pp_order_init(&order, PP_ORDER_PING);
	pp_buf_init(&text, PP_ORDER_BYTES_MAX);
	yes = pp_order_put(&order, &text, NULL) == 0 && pp_listener_call(agent->listener,
		agent->session, &text, NULL, left_ms > 0 ? (int)left_ms : 1, NULL, NULL, NULL) == 0;
	pp_buf_release(&text);
	return yes;
}

enum pp_alive_answer pp_alive_agent_ask(void *arg, int64_t timeout_ms)
{
	struct pp_alive_agent *agent = arg;
	int64_t asked_ns = pp_clock_mono_ns(), deadline_ns = asked_ns + timeout_ms * PP_NS_PER_MS;
	struct pp_session_state state = { .how = PP_CLOSE_NOT };

	meet(agent, deadline_ns);
	if (agent->session) {
		if (answers(agent, deadline_ns))
			return PP_ALIVE_LIVES;
		if (pp_listener_snapshot(agent->listener, agent->session, 0, &state, NULL, 0, NULL) != 0)
			return PP_ALIVE_UNKNOWN;
		if (state.t_last_frame_ns > asked_ns)
			return PP_ALIVE_LIVES;
	}
	if (state.how != PP_CLOSE_NOT && state.how != PP_CLOSE_TIMEOUT)
		return PP_ALIVE_REFUSES;
	/* Whoever did not wait for an answer cannot say that none came. */
	return state.how == PP_CLOSE_TIMEOUT || pp_clock_mono_ns() >= deadline_ns ? PP_ALIVE_SILENT :
		PP_ALIVE_UNKNOWN;
}

const char *pp_alive_agent_boot(void *arg)
{
	struct pp_alive_agent *agent = arg;

	return agent->hello.boot_id;
}
