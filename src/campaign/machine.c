/* SPDX-License-Identifier: MIT */
#include "machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/core/clock.h"
#include "src/core/text.h"

static void say(struct pp_machine *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct pp_machine *m, const char *fmt, ...)
{
	char text[768];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (m->say)
		m->say(m->ctx, text);
}

static void note_boot(struct pp_machine *m, const struct pp_hello *hello, int64_t t_ns)
{
	struct pp_boot_seen *boot;

	if (!m->cut)
		return;
	if (m->cut->boots == PP_BOOTS_MAX) {
		/* More boots than any honest cut has: the last place tells of the last of them. */
		m->cut->boots--;
	}
	boot = &m->cut->boot[m->cut->boots++];
	memset(boot, 0, sizeof(*boot));
	boot->t_ns = t_ns;
	boot->uptime_ns = (int64_t)hello->uptime_ns;
	pp_text_copy(boot->boot_id, sizeof(boot->boot_id), hello->boot_id);
}

static int take_hello(struct pp_machine *m, const struct pp_event *ev)
{
	struct pp_hello hello;
	struct pp_error why;
	struct pp_kv kv;
	int rc;

	if (pp_kv_parse(&kv, ev->data, ev->data_bytes, &why) != 0) {
		say(m, "an agent's hello is not understood: %s", why.text);
		pp_listener_end(m->listener, ev->session, PP_CLOSE_LOCAL, &why);
		return 0;
	}
	rc = pp_hello_get(&kv, &hello, &why);
	pp_kv_release(&kv);
	if (rc != 0 || (m->name[0] && strcmp(m->name, hello.name) != 0)) {
		say(m, rc != 0 ? "an agent's hello is not understood: %s" : "agent '%s' is not the "
			"machine of this plan: sent away", rc != 0 ? why.text : hello.name);
		pp_listener_end(m->listener, ev->session, PP_CLOSE_LOCAL, &why);
		return 0;
	}
	if (m->session && m->closed == PP_CLOSE_NOT)
		pp_listener_end(m->listener, m->session, PP_CLOSE_REPLACED, &why);
	m->session = ev->session;
	m->hello = hello;
	m->t_hello_ns = ev->t_ns;
	m->closed = PP_CLOSE_NOT;
	note_boot(m, &hello, ev->t_ns);
	say(m, "machine '%s' is here, boot %.8s, up %.1f s", hello.name, hello.boot_id,
		(double)hello.uptime_ns / 1e9);
	return 1;
}

static int take_note(struct pp_machine *m, const struct pp_event *ev)
{
	struct pp_run_news *news;
	struct pp_error why;
	struct pp_note note;
	struct pp_kv kv;
	int rc;

	if (ev->session != m->session || pp_kv_parse(&kv, ev->data, ev->data_bytes, &why) != 0)
		return 0;
	rc = pp_note_get(&kv, &note, &why);
	pp_kv_release(&kv);
	if (rc != 0)
		return 0;
	news = &m->news[note.index];
	say(m, "drive %u: %s%s%s", note.index, note.call, note.call[0] ? ": " : "", note.text);
	if (note.event == PP_NOTE_FULL)
		news->full = true;
	if (note.event != PP_NOTE_FAILED || news->failed)
		return 1;
	news->failed = true;
	snprintf(news->text, sizeof(news->text), "%.24s: %.480s", note.call, note.text);
	return 1;
}

static int take_event(struct pp_machine *m, const struct pp_event *ev)
{
	switch (ev->type) {
	case PP_EVENT_CONNECTED:
		return take_hello(m, ev);
	case PP_EVENT_NOTE:
		return take_note(m, ev);
	case PP_EVENT_LEDGER:
		m->news[ev->run_index].failed = true;
		snprintf(m->news[ev->run_index].text, sizeof(m->news[0].text),
			"ledger on the control host: %.460s", ev->error.text);
		say(m, "%s", m->news[ev->run_index].text);
		return 1;
	case PP_EVENT_CLOSED:
		if (ev->session != m->session)
			return 0;
		m->closed = ev->how;
		say(m, "connection to '%s' ended (%s)%s%s", m->hello.name, pp_close_name(ev->how),
			ev->error.text[0] ? ": " : "", ev->error.text);
		return 1;
	case PP_EVENT_REFUSED:
		say(m, "turned away: %s", ev->error.text);
		return 0;
	case PP_EVENT_NONE:
	case PP_EVENT_RESPONSE:
	case PP_EVENT_DATA:
		break;
	}
	return 0;
}

int pp_machine_pump(struct pp_machine *m, int64_t deadline_ns, struct pp_error *err)
{
	for (;;) {
		struct pp_event ev;
		int rc;

		if (m->stop && *m->stop)
			return pp_fail(err, PP_ERR_REFUSED, "interrupted");
		rc = pp_listener_wait(m->listener, deadline_ns, &ev, err);
		if (rc < 0)
			return -1;
		if (rc == 0) {
			if (m->stop && *m->stop)
				return pp_fail(err, PP_ERR_REFUSED, "interrupted");
			return 0;
		}
		rc = take_event(m, &ev);
		pp_event_release(&ev);
		if (rc)
			return 1;
	}
}

int pp_machine_sleep(struct pp_machine *m, int64_t ms, struct pp_error *err)
{
	int64_t until = pp_clock_mono_ns() + ms * PP_NS_PER_MS;
	int rc;

	do
		rc = pp_machine_pump(m, until, err);
	while (rc > 0 && pp_clock_mono_ns() < until);
	return rc < 0 ? -1 : 0;
}

int pp_machine_await(struct pp_machine *m, const char *not_boot, int64_t since_ns,
	int64_t deadline_ns, struct pp_error *err)
{
	for (;;) {
		int rc;

		if (m->session && m->closed == PP_CLOSE_NOT && m->t_hello_ns >= since_ns &&
			(!not_boot[0] || strcmp(m->hello.boot_id, not_boot) != 0))
			return 1;
		rc = pp_machine_pump(m, deadline_ns, err);
		if (rc <= 0)
			return rc;
	}
}

int pp_machine_order(struct pp_machine *m, const struct pp_order *order, struct pp_kv *answer,
	int timeout_ms, pp_listener_data_fn *on_data, void *data_ctx, struct pp_error *err)
{
	struct pp_buf text;
	int rc;

	if (!m->session || m->closed != PP_CLOSE_NOT)
		return pp_fail(err, PP_ERR_PEER, "the machine's agent is not connected");
	pp_buf_init(&text, PP_ORDER_BYTES_MAX);
	rc = pp_order_put(order, &text, err);
	if (rc == 0)
		rc = pp_listener_call(m->listener, m->session, &text, answer, timeout_ms, on_data,
			data_ctx, err);
	pp_buf_release(&text);
	if (rc != 0)
		return pp_fail_within(err, "order '%s'", pp_order_name(order->kind));
	return 0;
}

int pp_machine_simple(struct pp_machine *m, enum pp_order_kind kind, uint32_t index,
	int timeout_ms, struct pp_error *err)
{
	struct pp_order order;

	pp_order_init(&order, kind);
	order.index = index;
	return pp_machine_order(m, &order, NULL, timeout_ms, NULL, NULL, err);
}
