/* SPDX-License-Identifier: MIT
 *
 * Goal: what the listener calls received was received, and what it echoed is in the ledger; how a
 * connection ended is told as it was; nobody without the key, and no damaged frame, gets anywhere.
 * Method: real agents (src/core/client.h) over loopback, and raw sockets that break the protocol in
 * one way each. Waits end by events, not by the clock; WAIT_MS only bounds a hang.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/client.h"
#include "src/core/clock.h"
#include "src/core/le.h"
#include "tests/janitor.h"
#include "verifier/listener.h"

#define WAIT_MS 20000

static char dir[] = "/tmp/pp-listener-XXXXXX";
static char path[64];
static const struct pp_run_id run = { { 7 } };
static const struct pp_key key = { { 1, 2, 3 } };
static struct pp_error err;
static struct pp_listener *l;

static int set_up(void **state)
{
	(void)state;
	if (!janitor_mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/acks.ledger", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static int begin(void **state)
{
	(void)state;
	unlink(path);
	l = pp_listener_open("127.0.0.1", 0, &key, &err);
	return l ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	pp_listener_close(l);
	l = NULL;
	return 0;
}

/* ---- helpers -------------------------------------------------------------------------------- */
static struct pp_event next_event(void)
{
	struct pp_event ev;

	if (pp_listener_wait(l, pp_clock_mono_ns() + WAIT_MS * PP_NS_PER_MS, &ev, &err) != 1)
		fail_msg("no event came");
	return ev;
}

static struct pp_event expect(enum pp_event_type type)
{
	struct pp_event ev = next_event();

	if (ev.type != type)
		fail_msg("event %d instead of %d: %s", ev.type, type, ev.error.text);
	return ev;
}

static void expect_closed(uint64_t session, enum pp_close how)
{
	struct pp_event ev = expect(PP_EVENT_CLOSED);

	assert_int_equal(ev.session, session);
	if (ev.how != how)
		fail_msg("closed by %s, expected %s: %s", pp_close_name(ev.how), pp_close_name(how),
			ev.error.text);
	pp_event_release(&ev);
}

static struct pp_client *connect_agent(uint64_t *session)
{
	static const char hello[] = "agent=test\n";
	struct pp_client *c = pp_client_connect("127.0.0.1", pp_listener_port(l), &key, WAIT_MS, &err);
	struct pp_event ev;

	if (!c)
		fail_msg("%s", err.text);
	assert_int_equal(pp_client_send(c, PP_FRAME_HELLO, hello, strlen(hello), &err), 0);
	ev = expect(PP_EVENT_CONNECTED);
	assert_string_equal(ev.data, hello);
	*session = ev.session;
	pp_event_release(&ev);
	return c;
}

static struct pp_ledger *new_ledger(uint32_t lanes)
{
	struct pp_ledger *ledger = pp_ledger_create(path, &run, lanes, &err);

	assert_non_null(ledger);
	return ledger;
}

static uint64_t await_echo(struct pp_client *c, uint32_t run_index, uint32_t lane, uint64_t last)
{
	struct pp_echo echo = { 0 };
	struct pp_frame frame;

	do {
		if (pp_client_recv(c, &frame, WAIT_MS, &err) != 1)
			fail_msg("no echo: %s", err.text);
		assert_int_equal(frame.type, PP_FRAME_ECHO);
		assert_int_equal(pp_echo_parse(&frame, &echo, &err), 0);
	} while (echo.run_index != run_index || echo.lane != lane || echo.last < last);
	return echo.last;
}

/* A socket of our own making, for wrong behaviour. */
struct raw {
	int fd;
	struct pp_wire send, receive;
};

static int raw_connect(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(pp_listener_port(l)) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void put(int fd, const void *data, size_t bytes)
{
	assert_int_equal(send(fd, data, bytes, MSG_NOSIGNAL), bytes);
}

static void get(int fd, void *data, size_t bytes)
{
	assert_int_equal(recv(fd, data, bytes, MSG_WAITALL), bytes);
}

static void raw_greet(struct raw *r)
{
	uint8_t one[PP_GREET1_BYTES], two[PP_GREET2_BYTES], three[PP_GREET3_BYTES];
	uint8_t four[PP_GREET4_BYTES];
	struct pp_greeting g;
	size_t n;

	r->fd = raw_connect();
	assert_int_equal(pp_greet_agent_first(&g, one, &err), 0);
	put(r->fd, one, 20); /* in pieces */
	put(r->fd, one + 20, sizeof(one) - 20);
	get(r->fd, two, sizeof(two));
	assert_int_equal(pp_greet_agent_second(&g, &key, two, three, &n, &err), 0);
	put(r->fd, three, n);
	get(r->fd, four, sizeof(four));
	assert_int_equal(pp_greet_agent_fourth(&g, &key, four, &r->send, &r->receive, &err), 0);
}

static uint64_t raw_agent(struct raw *r)
{
	uint8_t out[64];
	struct pp_event ev;

	raw_greet(r);
	put(r->fd, out, pp_wire_pack(&r->send, PP_FRAME_HELLO, "a=1\n", 4, out));
	ev = expect(PP_EVENT_CONNECTED);
	pp_event_release(&ev);
	return ev.session;
}

/* ---- acks ----------------------------------------------------------------------------------- */
static void acks_are_written_then_echoed(void **state)
{
	struct pp_session_state st;
	struct pp_ledger_data d;
	struct pp_beat_disk disks[2] = { { 0, 11, 12, 13 }, { 9, 1, 1, 1 } };
	struct pp_ledger *ledger = new_ledger(3);
	uint64_t session, i, lanes[4];
	struct pp_client *c = connect_agent(&session);

	(void)state;
	assert_int_equal(pp_listener_bind(l, session, 0, ledger, &err), 0);
	assert_int_equal(pp_listener_bind(l, session, 0, ledger, &err), -1); /* taken */
	for (i = 1; i <= 500; i++)
		assert_int_equal(pp_client_send_ack(c, 0, i % 3, (i - i % 3) / 3 + (i % 3 ? 1 : 0),
			(i - i % 3) / 3 + (i % 3 ? 1 : 0), &err), 0);
	await_echo(c, 0, 0, 166);
	/* echoed, so it is in the file already (no sync, no close: the listener may die now) */
	assert_int_equal(pp_ledger_load(path, &d, &err), 0);
	assert_int_equal(pp_ledger_data_acked(&d, 0), 166);
	assert_false(d.truncated);
	pp_ledger_data_release(&d);
	assert_int_equal(pp_client_send_beat(c, 5, disks, 2, &err), 0);
	assert_int_equal(pp_client_send_ack(c, 0, 0, 167, 170, &err), 0);
	await_echo(c, 0, 0, 170);
	assert_int_equal(pp_listener_snapshot(l, session, 0, &st, lanes, 4, &err), 0);
	assert_true(st.bound);
	assert_int_equal(st.acks, 504);
	assert_int_equal(lanes[0], 170);
	assert_int_equal(lanes[1], 167);
	assert_int_equal(lanes[2], 167);
	assert_int_equal(lanes[3], 0);
	assert_int_equal(st.flushes, 13);
	assert_int_equal(st.how, PP_CLOSE_NOT);
	assert_true(st.t_last_ack_ns <= st.t_last_frame_ns && st.t_last_ack_ns > st.t_connected_ns);
	/* after unbind nothing is echoed, and nothing is written */
	pp_listener_unbind(l, session, 0);
	assert_int_equal(pp_ledger_close(ledger, &err), 0);
	assert_int_equal(pp_client_send_ack(c, 0, 0, 171, 171, &err), 0);
	assert_int_equal(pp_client_send(c, PP_FRAME_NOTE, "x=1\n", 4, &err), 0);
	pp_event_release(&(struct pp_event){ .data = expect(PP_EVENT_NOTE).data });
	assert_int_equal(pp_listener_snapshot(l, session, 0, &st, NULL, 0, &err), 0);
	assert_int_equal(st.acks_dropped, 1);
	pp_client_close(c);
	expect_closed(session, PP_CLOSE_FIN);
	assert_int_equal(pp_ledger_load(path, &d, &err), 0);
	assert_int_equal(pp_ledger_data_records(&d), 504);
	assert_int_equal(pp_ledger_last_beat(&d)->c, 13);
	pp_ledger_data_release(&d);
}

/* Several drives: several runs in one session, each with a ledger of its own. */
static void runs_do_not_mix(void **state)
{
	char second[80];
	struct pp_ledger *a = new_ledger(1), *b;
	struct pp_ledger_data d;
	uint64_t session;
	struct pp_client *c = connect_agent(&session);

	(void)state;
	snprintf(second, sizeof(second), "%s.2", path);
	b = pp_ledger_create(second, &run, 2, &err);
	assert_int_equal(pp_listener_bind(l, session, 0, a, &err), 0);
	assert_int_equal(pp_listener_bind(l, session, 1, b, &err), 0);
	pp_client_send_ack(c, 0, 0, 1, 5, &err);
	pp_client_send_ack(c, 1, 1, 1, 7, &err);
	await_echo(c, 1, 1, 7);
	pp_client_send(c, PP_FRAME_NOTE, "x=1\n", 4, &err);
	pp_event_release(&(struct pp_event){ .data = expect(PP_EVENT_NOTE).data });
	pp_listener_unbind(l, session, 0);
	pp_listener_unbind(l, session, 1);
	pp_listener_unbind(l, session, 1); /* twice is fine */
	pp_client_close(c);
	expect_closed(session, PP_CLOSE_FIN);
	assert_int_equal(pp_ledger_close(a, &err), 0);
	assert_int_equal(pp_ledger_close(b, &err), 0);
	assert_int_equal(pp_ledger_load(path, &d, &err), 0);
	assert_int_equal(pp_ledger_data_records(&d), 5);
	/* M5.1: the machine's last frame is in the ledger of a drive that had nothing to say */
	assert_true(pp_ledger_t_last(&d) > pp_ledger_t_last_ack(&d));
	assert_int_equal(pp_ledger_last_close(&d, NULL), PP_CLOSE_NOT);
	pp_ledger_data_release(&d);
	assert_int_equal(pp_ledger_load(second, &d, &err), 0);
	assert_int_equal(pp_ledger_data_acked(&d, 1), 7);
	pp_ledger_data_release(&d);
	unlink(second);
}

/* M4.6: acks that no sequential writer could send are an evidence error, not a verdict. */
static void an_ack_gap_ends_the_session(void **state)
{
	static const struct { uint32_t run_index, lane; uint64_t first, last; } bad[] = {
		{ 0, 0, 3, 3 }, { 0, 0, 1, 1 }, { 0, 1, 1, 1 }, { 5, 0, 1, 1 }, { 0, 0, 2, 1 },
	};
	struct pp_ledger_data d;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct pp_ledger *ledger;
		struct pp_client *c;
		struct pp_event ev;
		uint64_t session;

		unlink(path);
		ledger = new_ledger(1);
		c = connect_agent(&session);
		assert_int_equal(pp_listener_bind(l, session, 0, ledger, &err), 0);
		pp_client_send_ack(c, 0, 0, 1, 1, &err);
		pp_client_send_ack(c, bad[i].run_index, bad[i].lane, bad[i].first, bad[i].last, &err);
		ev = expect(PP_EVENT_CLOSED);
		assert_int_equal(ev.how, PP_CLOSE_PROTOCOL);
		assert_int_equal(ev.error.class, PP_ERR_EVIDENCE);
		pp_event_release(&ev);
		pp_client_close(c);
		assert_int_equal(pp_ledger_close(ledger, &err), 0);
		assert_int_equal(pp_ledger_load(path, &d, &err), 0);
		assert_int_equal(pp_ledger_data_records(&d), 1); /* the good one stays */
		assert_int_equal(pp_ledger_last_close(&d, NULL), PP_CLOSE_PROTOCOL);
		pp_ledger_data_release(&d);
	}
}

/* The network broke, the machine did not: the new session goes on where the ledger is. */
static void acks_go_on_in_a_new_session(void **state)
{
	struct pp_ledger *ledger = new_ledger(1);
	struct pp_ledger_data d;
	uint64_t one, two;
	struct pp_client *c = connect_agent(&one), *again;

	(void)state;
	assert_int_equal(pp_listener_bind(l, one, 0, ledger, &err), 0);
	pp_client_send_ack(c, 0, 0, 1, 10, &err);
	await_echo(c, 0, 0, 10);
	again = connect_agent(&two);
	assert_true(two != one);
	assert_int_equal(pp_listener_end(l, one, PP_CLOSE_REPLACED, &err), 0);
	expect_closed(one, PP_CLOSE_REPLACED);
	assert_int_equal(pp_listener_bind(l, two, 0, ledger, &err), 0);
	pp_client_send_ack(again, 0, 0, 11, 12, &err);
	await_echo(again, 0, 0, 12);
	pp_listener_unbind(l, two, 0);
	assert_int_equal(pp_ledger_close(ledger, &err), 0);
	assert_int_equal(pp_ledger_load(path, &d, &err), 0);
	assert_int_equal(pp_ledger_data_records(&d), 12);
	assert_int_equal(pp_ledger_last_close(&d, NULL), PP_CLOSE_REPLACED);
	pp_ledger_data_release(&d);
	pp_client_close(c);
	pp_client_close(again);
}

/* ---- how a connection ends (M5.1) ------------------------------------------------------------ */
static void fin_rst_and_silence_are_told_apart(void **state)
{
	struct linger reset = { 1, 0 };
	struct pp_session_state st;
	struct pp_event ev;
	struct raw fin, rst, silent;
	uint64_t a, b, c;

	(void)state;
	a = raw_agent(&fin);
	b = raw_agent(&rst);
	c = raw_agent(&silent);
	assert_int_equal(pp_listener_sessions(l), 3);
	close(fin.fd);
	expect_closed(a, PP_CLOSE_FIN);
	setsockopt(rst.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(rst.fd);
	expect_closed(b, PP_CLOSE_RST);
	assert_int_equal(pp_listener_sessions(l), 1);
	assert_int_equal(pp_listener_snapshot(l, a, 0, &st, NULL, 0, &err), 0);
	assert_int_equal(st.how, PP_CLOSE_FIN);
	assert_true(st.t_closed_ns >= st.t_last_frame_ns);
	assert_int_equal(pp_listener_snapshot(l, b, 0, &st, NULL, 0, &err), 0);
	assert_int_equal(st.how, PP_CLOSE_RST);
	assert_int_equal(pp_listener_snapshot(l, c, 0, &st, NULL, 0, &err), 0);
	assert_int_equal(st.how, PP_CLOSE_NOT);
	assert_int_equal(st.t_closed_ns, PP_LEDGER_NEVER);
	assert_int_equal(pp_listener_wait(l, pp_clock_mono_ns() + 50 * PP_NS_PER_MS, &ev, &err), 0);
	close(silent.fd);
	expect_closed(c, PP_CLOSE_FIN);
	assert_int_equal(pp_listener_snapshot(l, 12345, 0, &st, NULL, 0, &err), -1);
}

/* A send that meets the reset first must not turn it into a FIN. */
static void a_reset_met_by_a_send_is_a_reset(void **state)
{
	struct linger reset = { 1, 0 };
	struct pp_event ev;
	int i;

	(void)state;
	for (i = 0; i < 200; i++) {
		struct raw r;
		uint64_t session = raw_agent(&r);

		setsockopt(r.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(r.fd);
		while (pp_listener_send(l, session, PP_FRAME_NOTE, "x", 1, &err) == 0)
			;
		ev = expect(PP_EVENT_CLOSED);
		assert_int_equal(ev.how, PP_CLOSE_RST);
		pp_event_release(&ev);
	}
}

static void ends_are_in_the_ledger(void **state)
{
	struct linger reset = { 1, 0 };
	int how;

	(void)state;
	for (how = PP_CLOSE_FIN; how <= PP_CLOSE_RST; how++) {
		struct pp_ledger *ledger;
		struct pp_ledger_data d;
		struct raw r;
		uint64_t session;
		int64_t t;

		unlink(path);
		ledger = new_ledger(1);
		session = raw_agent(&r);
		assert_int_equal(pp_listener_bind(l, session, 0, ledger, &err), 0);
		if (how == PP_CLOSE_RST)
			setsockopt(r.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(r.fd);
		expect_closed(session, (enum pp_close)how);
		assert_int_equal(pp_ledger_close(ledger, &err), 0);
		assert_int_equal(pp_ledger_load(path, &d, &err), 0);
		assert_int_equal(pp_ledger_first_orderly_close(&d, &t), how);
		assert_true(t >= pp_ledger_t_last(&d));
		pp_ledger_data_release(&d);
	}
}

/* ---- who may speak --------------------------------------------------------------------------- */
static void wrong_key_is_said_on_both_sides(void **state)
{
	struct pp_key wrong = { { 9 } };
	struct pp_event ev;

	(void)state;
	assert_null(pp_client_connect("127.0.0.1", pp_listener_port(l), &wrong, WAIT_MS, &err));
	assert_int_equal(err.class, PP_ERR_PEER);
	assert_non_null(strstr(err.text, "wrong key"));
	ev = expect(PP_EVENT_REFUSED);
	assert_non_null(strstr(ev.error.text, "wrong key"));
	assert_non_null(strstr(ev.error.text, "127.0.0.1:"));
	pp_event_release(&ev);
	assert_int_equal(pp_listener_sessions(l), 0);
}

static void strangers_are_refused(void **state)
{
	struct pp_event ev;
	char byte;
	int fd = raw_connect();

	(void)state;
	put(fd, "GET / HTTP/1.1\r\nHost: here\r\nAccept: */*\r\n\r\n....", 48);
	ev = expect(PP_EVENT_REFUSED);
	assert_non_null(strstr(ev.error.text, "not a plugpull agent"));
	pp_event_release(&ev);
	assert_true(recv(fd, &byte, 1, 0) <= 0);
	close(fd);
	fd = raw_connect(); /* leaves in the middle of its greeting */
	put(fd, "plug", 4);
	close(fd);
	ev = expect(PP_EVENT_REFUSED);
	pp_event_release(&ev);
}

static void a_session_begins_with_hello(void **state)
{
	struct pp_event ev;
	uint8_t out[64];
	struct raw r;

	(void)state;
	raw_greet(&r);
	put(r.fd, out, pp_wire_pack(&r.send, PP_FRAME_NOTE, "a=1\n", 4, out));
	ev = expect(PP_EVENT_REFUSED);
	assert_non_null(strstr(ev.error.text, "hello"));
	pp_event_release(&ev);
	close(r.fd);
}

/* One wrong thing each; the session must end as a protocol error, with nothing taken from it. */
static void broken_frames_end_the_session(void **state)
{
	enum { FLIPPED, REPLAYED, OVERSIZED, RESERVED, SECOND_HELLO, UNKNOWN, REQUEST, SHORT_ACK,
		CASES };
	int i;

	(void)state;
	for (i = 0; i < CASES; i++) {
		static const uint16_t types[] = { [SECOND_HELLO] = PP_FRAME_HELLO, [UNKNOWN] = 77,
			[REQUEST] = PP_FRAME_REQUEST, [SHORT_ACK] = PP_FRAME_ACK, [FLIPPED] = PP_FRAME_BYE,
			[REPLAYED] = PP_FRAME_BYE, [OVERSIZED] = PP_FRAME_BYE, [RESERVED] = PP_FRAME_BYE };
		uint8_t out[64];
		struct raw r;
		uint64_t session = raw_agent(&r);
		size_t n = pp_wire_pack(&r.send, types[i], "a=1\n", 4, out);

		if (i == FLIPPED)
			out[9] ^= 1;
		if (i == OVERSIZED)
			le32_put(out, PP_WIRE_PAYLOAD_MAX + 1);
		if (i == RESERVED)
			out[6] = 1;
		put(r.fd, out, n);
		if (i == REPLAYED)
			put(r.fd, out, n);
		expect_closed(session, PP_CLOSE_PROTOCOL);
		close(r.fd);
	}
}

static void a_partial_frame_is_dropped(void **state)
{
	struct pp_ledger *ledger = new_ledger(1);
	struct pp_ack ack = { 0, 0, 1, 1 };
	uint8_t payload[PP_ACK_BYTES], out[64];
	struct pp_ledger_data d;
	struct raw r;
	uint64_t session = raw_agent(&r);
	size_t n;

	(void)state;
	assert_int_equal(pp_listener_bind(l, session, 0, ledger, &err), 0);
	pp_ack_put(&ack, payload);
	n = pp_wire_pack(&r.send, PP_FRAME_ACK, payload, sizeof(payload), out);
	put(r.fd, out, n - 1);
	close(r.fd);
	expect_closed(session, PP_CLOSE_FIN);
	assert_int_equal(pp_ledger_close(ledger, &err), 0);
	assert_int_equal(pp_ledger_load(path, &d, &err), 0);
	assert_int_equal(pp_ledger_data_records(&d), 0);
	pp_ledger_data_release(&d);
}

/* ---- requests --------------------------------------------------------------------------------- */
struct answering {
	struct pp_client *c;
	size_t data_bytes; /* of each of 5 pieces */
	uint8_t status;
	bool silent;
};

static void *answer_one(void *context)
{
	struct answering *a = context;
	struct pp_frame frame;
	struct pp_reply reply;
	struct pp_error e;
	struct pp_buf kv;
	char *data = calloc(1, a->data_bytes + 1);
	int i;

	if (pp_client_recv(a->c, &frame, WAIT_MS, &e) != 1 || pp_reply_parse(&frame, &reply, &e) != 0)
		goto out;
	for (i = 0; i < 5 && a->data_bytes; i++) {
		memset(data, 'a' + i, a->data_bytes);
		pp_client_send_data(a->c, reply.id, data, a->data_bytes, &e);
	}
	pp_buf_init(&kv, 4096);
	if (a->status)
		pp_kv_add(&kv, "error", "no such drive");
	else
		pp_kv_addf(&kv, "echo", "%.*s", (int)reply.rest_bytes - 1, (const char *)reply.rest);
	if (!a->silent)
		pp_client_respond(a->c, reply.id, a->status, &kv, &e);
	pp_buf_release(&kv);
out:
	free(data);
	return NULL;
}

static int collect(void *context, const void *data, size_t bytes, struct pp_error *e)
{
	(void)e;
	pp_buf_add(context, data, bytes);
	return 0;
}

static int give_up(void *context, const void *data, size_t bytes, struct pp_error *e)
{
	(void)context, (void)data, (void)bytes;
	return pp_fail(e, PP_ERR_REFUSED, "enough");
}

static int call(struct answering *a, uint64_t session, struct pp_kv *response, int timeout_ms,
	pp_listener_data_fn *fn, void *context)
{
	pthread_t thread;
	struct pp_buf kv;
	int rc;

	pp_buf_init(&kv, 4096);
	pp_kv_add(&kv, "do", "identify");
	assert_int_equal(pthread_create(&thread, NULL, answer_one, a), 0);
	rc = pp_listener_call(l, session, &kv, response, timeout_ms, fn, context, &err);
	pthread_join(thread, NULL);
	pp_buf_release(&kv);
	return rc;
}

static void calls(void **state)
{
	struct answering a = { .data_bytes = 300000 };
	struct pp_event ev;
	struct pp_buf got;
	struct pp_kv kv;
	uint64_t session;

	(void)state;
	a.c = connect_agent(&session);
	pp_buf_init(&got, 1 << 22);
	assert_int_equal(call(&a, session, &kv, WAIT_MS, collect, &got), 0);
	assert_string_equal(pp_kv_find(&kv, "echo"), "do=identify");
	assert_int_equal(got.bytes, 5 * 300000);
	assert_int_equal(got.data[0], 'a');
	assert_int_equal(got.data[5 * 300000 - 1], 'e');
	pp_kv_release(&kv);
	pp_buf_release(&got);
	assert_int_equal(call(&a, session, NULL, WAIT_MS, NULL, NULL), 0);
	assert_int_equal(call(&a, session, &kv, WAIT_MS, give_up, NULL), -1);
	assert_string_equal(err.text, "enough");
	a.status = 1;
	a.data_bytes = 0;
	assert_int_equal(call(&a, session, &kv, WAIT_MS, NULL, NULL), -1);
	assert_string_equal(err.text, "no such drive");
	a.silent = true;
	assert_int_equal(call(&a, session, &kv, 30, NULL, NULL), -1);
	assert_non_null(strstr(err.text, "did not answer"));
	/* what came late or was not wanted is nobody's event */
	assert_int_equal(pp_listener_wait(l, 0, &ev, &err), 0);
	pp_client_close(a.c);
	expect_closed(session, PP_CLOSE_FIN);
	{
		struct pp_buf request = { .max_bytes = 100 };

		assert_int_equal(pp_listener_call(l, session, &request, &kv, WAIT_MS, NULL, NULL, &err),
			-1);
		assert_non_null(strstr(err.text, "FIN"));
	}
}

static void *hang_up(void *context)
{
	struct pp_frame frame;
	struct pp_error e;

	pp_client_recv(context, &frame, WAIT_MS, &e);
	pp_client_shutdown(context);
	return NULL;
}

static void a_call_ends_with_its_session(void **state)
{
	struct pp_buf kv = { .max_bytes = 100 };
	pthread_t thread;
	uint64_t session;
	struct pp_client *c = connect_agent(&session);
	uint32_t id;

	(void)state;
	pp_kv_add(&kv, "do", "wait");
	pthread_create(&thread, NULL, hang_up, c);
	assert_int_equal(pp_listener_call(l, session, &kv, NULL, WAIT_MS, NULL, NULL, &err), -1);
	pthread_join(thread, NULL);
	expect_closed(session, PP_CLOSE_FIN);
	assert_int_equal(pp_listener_request(l, session, &kv, &id, &err), -1);
	pp_client_close(c);
	pp_buf_release(&kv);
}

/* More data than the controller takes: the socket waits, nothing is lost, memory is bounded. */
static void a_slow_controller_holds_the_agent_back(void **state)
{
	struct pp_buf kv = { .max_bytes = 100 };
	static uint8_t piece[1 << 20];
	struct pp_client *c;
	struct pp_event ev;
	struct pp_frame frame;
	struct pp_reply reply;
	uint64_t session;
	uint32_t id, i;
	pid_t child;

	(void)state;
	pp_kv_add(&kv, "do", "scan");
	c = connect_agent(&session);
	assert_int_equal(pp_listener_request(l, session, &kv, &id, &err), 0);
	assert_int_equal(pp_client_recv(c, &frame, WAIT_MS, &err), 1);
	assert_int_equal(pp_reply_parse(&frame, &reply, &err), 0);
	assert_int_equal(reply.id, id);
	child = fork();
	if (child == 0) {
		for (i = 0; i < 60; i++) {
			memset(piece, (int)i, sizeof(piece));
			if (pp_client_send_data(c, id, piece, sizeof(piece) - 4, &err) != 0)
				_exit(1);
		}
		_exit(pp_client_respond(c, id, 0, NULL, &err) != 0);
	}
	/* 60 MiB fit neither the 8 MiB of events nor the socket's buffers: it cannot have finished,
	 * however long we sleep */
	pp_clock_sleep_ms(500);
	assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
	for (i = 0; i < 60; i++) {
		ev = expect(PP_EVENT_DATA);
		assert_int_equal(ev.id, id);
		assert_int_equal(ev.data_bytes, sizeof(piece) - 4);
		assert_int_equal((uint8_t)ev.data[12345], i);
		pp_event_release(&ev);
	}
	ev = expect(PP_EVENT_RESPONSE);
	assert_int_equal(ev.id, id);
	pp_event_release(&ev);
	waitpid(child, NULL, 0);
	pp_client_close(c);
	expect_closed(session, PP_CLOSE_FIN);
	pp_buf_release(&kv);
}

static void an_agent_that_does_not_read_is_cut_off(void **state)
{
	static uint8_t piece[1 << 20];
	struct raw r;
	uint64_t session = raw_agent(&r);
	int i;

	(void)state;
	for (i = 0; i < 100; i++)
		if (pp_listener_send(l, session, PP_FRAME_NOTE, piece, sizeof(piece), &err) != 0)
			break;
	assert_true(i < 100);
	expect_closed(session, PP_CLOSE_PROTOCOL);
	close(r.fd);
}

/* ---- trouble on this side --------------------------------------------------------------------- */
/* A file that may not grow stands for a full disk. */
static void a_full_disk_stops_the_echoes(void **state)
{
	struct rlimit before, small = { 64 + 40 * 20, RLIM_INFINITY };
	struct pp_ledger *ledger = new_ledger(1);
	struct pp_session_state st;
	struct pp_ledger_data d;
	struct pp_event ev;
	uint64_t session, i = 0, echoed = 0, lane;
	struct pp_client *c = connect_agent(&session);
	struct pp_frame frame;
	struct pp_echo echo;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(pp_listener_bind(l, session, 0, ledger, &err), 0);
	getrlimit(RLIMIT_FSIZE, &before);
	small.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	for (i = 1; i <= 20; i++) { /* one by one, so that each is an entry */
		assert_int_equal(pp_client_send_ack(c, 0, 0, i, i, &err), 0);
		echoed = await_echo(c, 0, 0, i);
	}
	assert_int_equal(pp_client_send_ack(c, 0, 0, 21, 22, &err), 0);
	ev = expect(PP_EVENT_LEDGER);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(ev.run_index, 0);
	assert_int_equal(ev.error.class, PP_ERR_SYSTEM);
	pp_event_release(&ev);
	assert_int_equal(pp_client_send_ack(c, 0, 0, 23, 23, &err), 0);
	assert_int_equal(pp_client_send(c, PP_FRAME_NOTE, "x=1\n", 4, &err), 0);
	pp_event_release(&(struct pp_event){ .data = expect(PP_EVENT_NOTE).data }); /* once only */
	while (pp_client_recv(c, &frame, 0, &err) == 1)
		if (pp_echo_parse(&frame, &echo, &err) == 0)
			echoed = echo.last;
	assert_int_equal(echoed, 20);
	assert_int_equal(pp_listener_snapshot(l, session, 0, &st, &lane, 1, &err), 0);
	assert_true(st.ledger_failed);
	assert_int_equal(lane, 20);
	assert_int_equal(st.acks, 20);
	pp_client_close(c);
	expect_closed(session, PP_CLOSE_FIN);
	assert_int_equal(pp_ledger_close(ledger, &err), -1);
	assert_int_equal(pp_ledger_load(path, &d, &err), 0);
	assert_int_equal(pp_ledger_data_records(&d), 20);
	pp_ledger_data_release(&d);
}

/* A child that is killed while it listens: every ack that it echoed is in its ledger. */
static void a_killed_listener_leaves_its_ledger(void **state)
{
	struct pp_ledger_data d;
	struct pp_client *c;
	uint64_t i, echoed = 0;
	uint16_t port;
	int pipes[2], status;
	pid_t child;

	(void)state;
	unlink(path);
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (child == 0) {
		struct pp_listener *mine = pp_listener_open("127.0.0.1", 0, &key, &err);
		struct pp_ledger *ledger = pp_ledger_create(path, &run, 1, &err);
		struct pp_event ev;

		port = pp_listener_port(mine);
		if (write(pipes[1], &port, sizeof(port)) != sizeof(port))
			_exit(1);
		if (pp_listener_wait(mine, INT64_MAX, &ev, &err) != 1 ||
			pp_listener_bind(mine, ev.session, 0, ledger, &err) != 0 ||
			write(pipes[1], &port, sizeof(port)) != sizeof(port))
			_exit(2);
		pause();
		_exit(3);
	}
	close(pipes[1]); /* so that a child that failed is noticed */
	assert_int_equal(read(pipes[0], &port, sizeof(port)), sizeof(port));
	c = pp_client_connect("127.0.0.1", port, &key, WAIT_MS, &err);
	assert_non_null(c);
	assert_int_equal(pp_client_send(c, PP_FRAME_HELLO, "", 0, &err), 0);
	assert_int_equal(read(pipes[0], &port, sizeof(port)), sizeof(port));
	for (i = 1; i <= 2000; i++) {
		if (pp_client_send_ack(c, 0, 0, i, i, &err) != 0)
			break;
		if (i % 10 == 0)
			echoed = await_echo(c, 0, 0, i - 5);
		if (i == 1500)
			kill(child, SIGKILL);
		if (i > 1500)
			break;
	}
	waitpid(child, &status, 0);
	assert_true(WIFSIGNALED(status));
	pp_client_close(c);
	assert_int_equal(pp_ledger_load(path, &d, &err), 0);
	assert_true(echoed >= 1495);
	assert_true(pp_ledger_data_acked(&d, 0) >= echoed);
	pp_ledger_data_release(&d);
	close(pipes[0]);
}

static void a_port_in_use_is_said(void **state)
{
	(void)state;
	assert_null(pp_listener_open("127.0.0.1", pp_listener_port(l), &key, &err));
	assert_int_equal(err.os_code, EADDRINUSE);
	assert_non_null(strstr(err.text, "another program has it"));
	assert_null(pp_listener_open("localhost", 0, &key, &err));
	assert_int_equal(err.class, PP_ERR_USAGE);
	assert_null(pp_client_connect("localhost", 1, &key, 100, &err));
	assert_int_equal(err.class, PP_ERR_USAGE);
	assert_null(pp_client_connect("127.0.0.1", 1, &key, WAIT_MS, &err));
	assert_int_equal(err.os_code, ECONNREFUSED);
}

static void a_silent_control_is_noticed(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	getsockname(fd, (struct sockaddr *)&at, &bytes);
	assert_null(pp_client_connect("127.0.0.1", ntohs(at.sin_port), &key, 50, &err));
	assert_int_equal(err.class, PP_ERR_SYSTEM); /* no refusal: the agent tries again soon */
	assert_non_null(strstr(err.text, "does not answer"));
	close(fd);
}

static void waiting_can_be_interrupted(void **state)
{
	struct pp_event ev;

	(void)state;
	pp_listener_wake(l);
	assert_int_equal(pp_listener_wait(l, INT64_MAX, &ev, &err), 0);
	pp_listener_wake_clear(l);
	assert_int_equal(pp_listener_wait(l, 0, &ev, &err), 0);
}

static void every_interface_serves_ipv4(void **state)
{
	struct pp_listener *any = pp_listener_open(NULL, 0, &key, &err);
	struct pp_client *c;

	(void)state;
	assert_non_null(any);
	c = pp_client_connect("127.0.0.1", pp_listener_port(any), &key, WAIT_MS, &err);
	assert_non_null(c);
	pp_client_close(c);
	pp_listener_close(any);
}

/* Lanes of one machine share the connection: frames stay whole and in order. */
struct lane { struct pp_client *c; uint32_t lane; int rc; };

static void *ack_many(void *context)
{
	struct lane *lane = context;
	struct pp_error e;
	uint64_t i;

	for (i = 1; i <= 3000 && lane->rc == 0; i++)
		lane->rc = pp_client_send_ack(lane->c, 0, lane->lane, i, i, &e);
	return NULL;
}

static void many_lanes_at_once(void **state)
{
	struct pp_ledger *ledger = new_ledger(8);
	struct lane lanes[8];
	pthread_t threads[8];
	uint64_t session, acked[8] = { 0 };
	struct pp_client *c = connect_agent(&session);
	struct pp_frame frame;
	struct pp_echo echo;
	int i, done = 0;

	(void)state;
	assert_int_equal(pp_listener_bind(l, session, 0, ledger, &err), 0);
	for (i = 0; i < 8; i++) {
		lanes[i] = (struct lane){ c, (uint32_t)i, 0 };
		pthread_create(&threads[i], NULL, ack_many, &lanes[i]);
	}
	while (done < 8) {
		assert_int_equal(pp_client_recv(c, &frame, WAIT_MS, &err), 1);
		assert_int_equal(pp_echo_parse(&frame, &echo, &err), 0);
		assert_true(echo.last > acked[echo.lane]);
		acked[echo.lane] = echo.last;
		done += echo.last == 3000;
	}
	for (i = 0; i < 8; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(lanes[i].rc, 0);
	}
	pp_listener_unbind(l, session, 0);
	assert_int_equal(pp_ledger_close(ledger, &err), 0);
	pp_client_close(c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(acks_are_written_then_echoed), TEST(runs_do_not_mix),
		TEST(an_ack_gap_ends_the_session), TEST(acks_go_on_in_a_new_session),
		TEST(fin_rst_and_silence_are_told_apart), TEST(a_reset_met_by_a_send_is_a_reset),
		TEST(ends_are_in_the_ledger), TEST(wrong_key_is_said_on_both_sides),
		TEST(strangers_are_refused), TEST(a_session_begins_with_hello),
		TEST(broken_frames_end_the_session), TEST(a_partial_frame_is_dropped), TEST(calls),
		TEST(a_call_ends_with_its_session), TEST(a_slow_controller_holds_the_agent_back),
		TEST(an_agent_that_does_not_read_is_cut_off), TEST(a_full_disk_stops_the_echoes),
		TEST(a_port_in_use_is_said), TEST(a_silent_control_is_noticed),
		TEST(waiting_can_be_interrupted), TEST(every_interface_serves_ipv4),
		TEST(many_lanes_at_once),
		cmocka_unit_test(a_killed_listener_leaves_its_ledger),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
