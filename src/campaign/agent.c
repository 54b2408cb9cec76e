/* SPDX-License-Identifier: MIT
 *
 * Connect, greet, read frames, end, again. What this thread does itself never waits for a drive.
 */
#include "agent.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent_parts.h"
#include "src/core/clock.h"
#include "src/core/le.h"
#include "src/core/thread.h"

#define CONNECT_MS      3000
#define POLL_MS         200   /* how soon *stop is seen */
#define END_WAIT_MS     10000 /* for a session's threads before the next connection */
#define RETRY_MS        100
#define RETRY_MS_MAX    2000
#define REFUSED_MS      30000
#define GONE_MS         10000 /* without a listener: control has ended */
#define POWER_WAIT_MS   120000

enum after { AFTER_BREAK, AFTER_POWEROFF, AFTER_REBOOT };

void agent_say(const struct pp_agent_config *config, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	if (!config->say)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	config->say(config->ctx, text);
}

static bool asked_to_stop(const struct pp_agent_config *config)
{
	return config->stop && *config->stop;
}

static void pause_ms(const struct pp_agent_config *config, int64_t ms)
{
	int64_t until_ns = pp_clock_mono_ns() + ms * PP_NS_PER_MS, left;

	while (!asked_to_stop(config) && (left = until_ns - pp_clock_mono_ns()) > 0)
		pp_clock_sleep_ms(left < POLL_MS * PP_NS_PER_MS ? left / PP_NS_PER_MS + 1 : POLL_MS);
}

/* ---- a session's life ---------------------------------------------------------------------- */

static void slot_init(struct agent_slot *slot, struct agent_session *s, uint32_t index)
{
	slot->session = s;
	slot->index = index;
	pthread_mutex_init(&slot->lock, NULL);
	pthread_cond_init(&slot->changed, NULL);
	pp_target_init(&slot->target);
}

static struct agent_session *session_new(const struct pp_agent_config *config,
	struct pp_client *client)
{
	struct agent_session *s = calloc(1, sizeof(*s));
	uint32_t i;

	if (!s)
		return NULL;
	s->config = config;
	s->client = client;
	s->references = 1;
	atomic_init(&s->ending, false);
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->disks_lock, NULL);
	pp_cond_init(&s->let_go);
	for (i = 0; i < AGENT_SLOTS; i++) {
		s->disks[i].fd = -1;
		slot_init(&s->slots[i], s, i);
	}
	return s;
}

static void session_free(struct agent_session *s)
{
	uint32_t i;

	for (i = 0; i < AGENT_SLOTS; i++) {
		pthread_cond_destroy(&s->slots[i].changed);
		pthread_mutex_destroy(&s->slots[i].lock);
	}
	pthread_cond_destroy(&s->let_go);
	pthread_mutex_destroy(&s->disks_lock);
	pthread_mutex_destroy(&s->lock);
	pp_client_close(s->client);
	free(s);
}

void agent_session_let_go(struct agent_session *s)
{
	bool last;

	pthread_mutex_lock(&s->lock);
	last = --s->references == 0;
	pthread_cond_broadcast(&s->let_go);
	pthread_mutex_unlock(&s->lock);
	if (last)
		session_free(s);
}

void agent_session_break(struct agent_session *s)
{
	pp_client_shutdown(s->client);
}

int agent_thread(struct agent_session *s, void *(*main)(void *), void *arg, struct pp_error *err)
{
	pthread_t thread;
	int code;

	pthread_mutex_lock(&s->lock);
	s->references++;
	pthread_mutex_unlock(&s->lock);
	code = pp_thread_start(&thread, main, arg);
	if (code == 0) {
		pthread_detach(thread);
		return 0;
	}
	agent_session_let_go(s); /* never the last: the reader holds one */
	return pp_fail_os(err, code, "cannot start a thread");
}

/* Wakes everybody, so that lanes end and targets are released; waits, but not for what hangs. */
static void session_end(struct agent_session *s)
{
	int64_t until_ns = pp_clock_mono_ns() + END_WAIT_MS * PP_NS_PER_MS;
	uint32_t i;
	int rc = 0;

	s->ending_signal = 1;
	atomic_store(&s->ending, true);
	pp_client_shutdown(s->client);
	for (i = 0; i < AGENT_SLOTS; i++) {
		pthread_mutex_lock(&s->slots[i].lock);
		pthread_cond_broadcast(&s->slots[i].changed);
		pthread_mutex_unlock(&s->slots[i].lock);
	}
	pthread_mutex_lock(&s->lock);
	while (s->references > 1 && rc == 0)
		rc = pp_cond_wait_until(&s->let_go, &s->lock, until_ns);
	if (s->references > 1)
		agent_say(s->config, "%u tasks of the last connection hang and are left behind",
			s->references - 1);
	pthread_mutex_unlock(&s->lock);
	agent_session_let_go(s);
}

/* ---- frames -------------------------------------------------------------------------------- */

static int send_hello(struct agent_session *s, struct pp_error *err)
{
	struct pp_hello hello;
	struct pp_buf buf;
	size_t i, used = 0;
	int rc;

	memset(&hello, 0, sizeof(hello));
	if (s->config->name[0])
		snprintf(hello.name, sizeof(hello.name), "%s", s->config->name);
	for (i = 0; i < s->config->allow.count && used < sizeof(hello.allow); i++)
		used += (size_t)snprintf(hello.allow + used, sizeof(hello.allow) - used, "%s%s",
			i ? "\n" : "", s->config->allow.text[i]);
	if (agent_host_hello(&hello, err) != 0)
		return -1;
	pp_buf_init(&buf, PP_KV_BYTES_MAX);
	pp_hello_put(&buf, &hello);
	rc = buf.failed ? pp_fail(err, PP_ERR_SYSTEM, "no memory for the greeting")
		: pp_client_send(s->client, PP_FRAME_HELLO, buf.data, buf.bytes, err);
	pp_buf_release(&buf);
	return rc;
}

/* Queues an order, or does what needs no drive. True: the session is over, *after says why. */
static bool take_order(struct agent_session *s, uint32_t id, const struct pp_frame *frame,
	enum after *after)
{
	struct agent_request *r = calloc(1, sizeof(*r));
	struct pp_error why = { 0 };
	enum pp_order_kind kind;
	uint32_t slot;
	int rc;

	rc = r ? pp_order_parse(&r->order, frame->payload + 4, frame->bytes - 4, &why)
		: pp_fail(&why, PP_ERR_SYSTEM, "no memory for an order");
	if (rc != 0) {
		if (r)
			why.class = PP_ERR_REFUSED;
		free(r);
		agent_answer_error(s, id, &why);
		return false;
	}
	r->id = id;
	kind = r->order.kind;
	if (kind != PP_ORDER_PING && kind != PP_ORDER_POWEROFF && kind != PP_ORDER_REBOOT) {
		slot = pp_order_has_index(kind) ? r->order.index : AGENT_GENERAL;
		if (agent_slot_queue(&s->slots[slot], r, &why) != 0) {
			agent_answer_error(s, id, &why);
			pp_order_release(&r->order);
			free(r);
		}
		return false;
	}
	pp_order_release(&r->order);
	free(r);
	agent_answer(s, id, NULL);
	if (kind == PP_ORDER_PING)
		return false;
	*after = kind == PP_ORDER_POWEROFF ? AFTER_POWEROFF : AFTER_REBOOT;
	return true;
}

/* 1: the session is over in good order, 0: go on, -1: the peer is not to be trusted any more. */
static int take_frame(struct agent_session *s, const struct pp_frame *frame, enum after *after,
	struct pp_error *err)
{
	struct pp_echo echo;

	switch (frame->type) {
	case PP_FRAME_ECHO:
		if (pp_echo_parse(frame, &echo, err) != 0)
			return -1;
		if (echo.run_index <= PP_RUN_INDEX_MAX && echo.lane < PP_LANES_MAX)
			agent_echo(&s->slots[echo.run_index], echo.lane, echo.last);
		return 0;
	case PP_FRAME_REQUEST:
		if (frame->bytes < 4)
			return pp_fail(err, PP_ERR_PEER, "control sent an order of %u bytes", frame->bytes);
		return take_order(s, le32_get(frame->payload), frame, after);
	case PP_FRAME_BYE:
		pp_fail(err, PP_ERR_PEER, "control said good-bye");
		return 1;
	default:
		return pp_fail(err, PP_ERR_PEER, "control sent a frame '%s', which is not its to send",
			pp_frame_type_name(frame->type));
	}
}

static enum after serve(struct agent_session *s, struct pp_error *err)
{
	enum after after = AFTER_BREAK;
	struct pp_frame frame;
	int rc;

	for (;;) {
		if (asked_to_stop(s->config)) {
			pp_client_send(s->client, PP_FRAME_BYE, NULL, 0, NULL);
			pp_fail(err, PP_ERR_NONE, "asked to stop");
			return AFTER_BREAK;
		}
		rc = pp_client_recv(s->client, &frame, POLL_MS, err);
		if (rc == 0)
			continue;
		if (rc < 0 || take_frame(s, &frame, &after, err) != 0)
			return after;
	}
}

/* ---- the loop ------------------------------------------------------------------------------ */

static void power(const struct pp_agent_config *config, bool restart)
{
	struct pp_error err = { 0 };
	int rc;

	agent_say(config, "control orders this machine to %s", restart ? "restart" : "power off");
	rc = config->power ? config->power(config->ctx, restart, &err)
		: pp_agent_power(config->ctx, restart, &err);
	if (rc != 0)
		agent_say(config, "%s", err.text);
	else
		pause_ms(config, POWER_WAIT_MS);
}

/* One connection from the first word to the last. */
static void serve_once(const struct pp_agent_config *config, struct pp_client *client)
{
	struct agent_session *s = session_new(config, client);
	struct pp_error err = { 0 };
	enum after after = AFTER_BREAK;

	if (!s) {
		pp_client_close(client);
		agent_say(config, "no memory for a connection");
		return;
	}
	agent_say(config, "connected to control at %s port %u", config->address, config->port);
	if (send_hello(s, &err) == 0)
		after = serve(s, &err);
	if (after == AFTER_BREAK)
		agent_say(config, "connection is over: %s", err.text);
	session_end(s);
	if (after != AFTER_BREAK)
		power(config, after == AFTER_REBOOT);
}

int pp_agent_run(const struct pp_agent_config *config, struct pp_error *err)
{
	uint32_t first_ms = config->retry_ms ? config->retry_ms : RETRY_MS, wait_ms = first_ms;
	uint32_t refused_ms = config->retry_refused_ms ? config->retry_refused_ms : REFUSED_MS;
	int64_t gone_ns = INT64_MAX;
	char said[512] = "";

	while (!asked_to_stop(config)) {
		struct pp_error why = { 0 };
		struct pp_client *client = pp_client_connect(config->address, config->port, &config->key,
			CONNECT_MS, &why);

		if (client) {
			said[0] = '\0';
			wait_ms = first_ms;
			serve_once(config, client);
			gone_ns = pp_clock_mono_ns() + GONE_MS * PP_NS_PER_MS;
			pause_ms(config, wait_ms);
			continue;
		}
		if (why.class == PP_ERR_USAGE) {
			if (err)
				*err = why;
			return -1;
		}
		if (config->once && pp_clock_mono_ns() >= gone_ns) {
			agent_say(config, "control listens no more: this is the end");
			return 0;
		}
		/* Once for each reason: a control that is away for a night fills no log. */
		if (strcmp(said, why.text) != 0)
			agent_say(config, "%s%s; trying again", why.class == PP_ERR_PEER ? "REFUSED: " : "",
				why.text);
		snprintf(said, sizeof(said), "%s", why.text);
		pause_ms(config, why.class == PP_ERR_PEER ? refused_ms : wait_ms);
		wait_ms = wait_ms * 2 < RETRY_MS_MAX ? wait_ms * 2 : RETRY_MS_MAX;
	}
	return 0;
}
