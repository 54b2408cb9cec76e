/* SPDX-License-Identifier: MIT
 *
 * The controller's side of the listener: everything that is called from outside its thread.
 */
#include "listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "listener_priv.h"
#include "src/core/clock.h"
#include "src/core/le.h"

/* ---- opening and closing -------------------------------------------------------------------- */
static int set_address(const char *address, uint16_t port, struct sockaddr_storage *to,
	socklen_t *bytes, struct pp_error *err)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)to;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;

	memset(to, 0, sizeof(*to));
	if (!address) {
		v6->sin6_addr = in6addr_any;
	} else if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		*bytes = sizeof(*v4);
		return 0;
	} else if (inet_pton(AF_INET6, address, &v6->sin6_addr) != 1) {
		return pp_fail(err, PP_ERR_USAGE, "'%s' is not a numeric address", address);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	*bytes = sizeof(*v6);
	return 0;
}

static int open_socket(const char *address, struct sockaddr_storage *to, socklen_t *bytes,
	struct pp_error *err)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;
	struct sockaddr_in *v4 = (struct sockaddr_in *)to;
	int fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), off = 0;

	if (fd >= 0 && to->ss_family == AF_INET6 && !address)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (fd < 0 && errno == EAFNOSUPPORT && !address) {
		/* a kernel without IPv6 */
		in_port_t port = v6->sin6_port;

		memset(to, 0, sizeof(*to));
		v4->sin_family = AF_INET;
		v4->sin_port = port;
		*bytes = sizeof(*v4);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	}
	if (fd < 0)
		return pp_fail_os(err, errno, "cannot make a socket");
	return fd;
}

static int start_listening(struct pp_listener *l, const char *address, uint16_t port,
	struct pp_error *err)
{
	struct sockaddr_storage to;
	socklen_t bytes = 0;
	int on = 1;

	if (set_address(address, port, &to, &bytes, err) != 0)
		return -1;
	l->listen_fd = open_socket(address, &to, &bytes, err);
	if (l->listen_fd < 0)
		return -1;
	setsockopt(l->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(l->listen_fd, (struct sockaddr *)&to, bytes) != 0 ||
		listen(l->listen_fd, SOMAXCONN) != 0) {
		if (errno == EADDRINUSE)
			return pp_fail_os(err, errno, "cannot listen on port %u: another program has it (a "
				"second plugpull?); stop it or choose another port", port);
		return pp_fail_os(err, errno, "cannot listen on %s port %u", address ? address : "any "
			"address", port);
	}
	bytes = sizeof(to);
	if (getsockname(l->listen_fd, (struct sockaddr *)&to, &bytes) != 0)
		return pp_fail_os(err, errno, "cannot learn the port");
	l->port = ntohs(to.ss_family == AF_INET ? ((struct sockaddr_in *)&to)->sin_port :
		((struct sockaddr_in6 *)&to)->sin6_port);
	return 0;
}

static int start_epoll(struct pp_listener *l, struct pp_error *err)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = ID_LISTEN };

	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (l->epoll_fd < 0 || l->wake_fd < 0 || l->spare_fd < 0)
		return pp_fail_os(err, errno, "cannot open the listener's descriptors");
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->listen_fd, &e) != 0)
		return pp_fail_os(err, errno, "cannot watch the port");
	e.data.u64 = ID_WAKE;
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->wake_fd, &e) != 0)
		return pp_fail_os(err, errno, "cannot watch the listener's own descriptor");
	return 0;
}

/* The thread takes no signals: they belong to the program. */
static int start_thread(struct pp_listener *l, struct pp_error *err)
{
	sigset_t all, before;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	code = pthread_create(&l->thread, NULL, listener_main, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (code)
		return pp_fail_os(err, code, "cannot start the listener's thread");
	return 0;
}

static void queue_init(struct event_queue *q)
{
	q->first = NULL;
	q->end = &q->first;
}

static void listener_release(struct pp_listener *l)
{
	listener_queue_release(&l->queue);
	if (l->listen_fd >= 0)
		close(l->listen_fd);
	if (l->epoll_fd >= 0)
		close(l->epoll_fd);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	if (l->spare_fd >= 0)
		close(l->spare_fd);
	pthread_cond_destroy(&l->news);
	pthread_mutex_destroy(&l->lock);
	explicit_bzero(&l->key, sizeof(l->key));
	free(l);
}

struct pp_listener *pp_listener_open(const char *address, uint16_t port, const struct pp_key *key,
	struct pp_error *err)
{
	struct pp_listener *l = calloc(1, sizeof(*l));
	pthread_condattr_t monotonic;
	struct rlimit files;

	if (!l) {
		pp_fail(err, PP_ERR_SYSTEM, "out of memory for the listener");
		return NULL;
	}
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files); /* else: fewer agents, and each refusal is said */
	}
	l->listen_fd = l->epoll_fd = l->wake_fd = l->spare_fd = -1;
	l->key = *key;
	queue_init(&l->queue);
	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&l->news, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (start_listening(l, address, port, err) != 0 || start_epoll(l, err) != 0 ||
		start_thread(l, err) != 0) {
		listener_release(l);
		return NULL;
	}
	return l;
}

uint16_t pp_listener_port(const struct pp_listener *l)
{
	return l->port;
}

void pp_listener_close(struct pp_listener *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	listener_poke(l);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->thread, NULL);
	listener_free_sessions(l);
	listener_release(l);
}

/* ---- events --------------------------------------------------------------------------------- */
void pp_event_release(struct pp_event *ev)
{
	free(ev->data);
	ev->data = NULL;
	ev->data_bytes = 0;
}

void listener_queue_release(struct event_queue *q)
{
	while (q->first) {
		struct event_node *node = q->first;

		q->first = node->next;
		pp_event_release(&node->ev);
		free(node);
	}
	queue_init(q);
}

struct session *listener_find(struct pp_listener *l, uint64_t id)
{
	size_t slot = id & ((1u << SLOT_BITS) - 1);
	struct session *s = slot < l->slot_count ? l->slots[slot] : NULL;

	return s && s->id == id ? s : NULL;
}

static struct event_node *node_new(const void *data, size_t bytes)
{
	struct event_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->ev.data = malloc(bytes + 1);
	if (!node->ev.data) {
		free(node);
		return NULL;
	}
	if (bytes)
		memcpy(node->ev.data, data, bytes);
	node->ev.data[bytes] = '\0';
	node->ev.data_bytes = bytes;
	return node;
}

static struct pp_event *push_to(struct pp_listener *l, struct event_queue *q, struct session *s,
	enum pp_event_type type, int64_t t_ns, const void *data, size_t bytes)
{
	struct event_node *node = node_new(data, bytes);
	struct pp_error why;

	if (!node) {
		pp_fail(&why, PP_ERR_SYSTEM, "out of memory for what the agent says");
		listener_want_end(l, s, PP_CLOSE_PROTOCOL, &why);
		return NULL;
	}
	node->ev.type = type;
	node->ev.session = s->id;
	node->ev.t_ns = t_ns;
	s->queued_bytes += bytes + EVENT_COST_BYTES;
	*q->end = node;
	q->end = &node->next;
	pthread_cond_broadcast(&l->news);
	return &node->ev;
}

struct pp_event *listener_push(struct pp_listener *l, struct session *s, enum pp_event_type type,
	int64_t t_ns, const void *data, size_t bytes)
{
	if (type == PP_EVENT_CLOSED)
		pthread_cond_broadcast(&l->news); /* calls notice it themselves */
	return push_to(l, &l->queue, s, type, t_ns, data, bytes);
}

struct pp_event *listener_push_reply(struct pp_listener *l, struct session *s,
	enum pp_event_type type, int64_t t_ns, const struct pp_reply *reply)
{
	struct event_queue *q = &l->queue;
	struct pp_event *ev;
	struct call *call;

	if (reply->id & CALL_BIT) {
		for (call = l->calls; call; call = call->next)
			if (call->session == s->id && call->id == reply->id)
				break;
		if (!call)
			return NULL; /* late: nobody waits any more */
		q = &call->queue;
	}
	ev = push_to(l, q, s, type, t_ns, reply->rest, reply->rest_bytes);
	if (ev) {
		ev->id = reply->id;
		ev->status = reply->status;
	}
	return ev;
}

void listener_refused(struct pp_listener *l, const struct session *s, const struct pp_error *why)
{
	struct event_node *node;

	if (l->refused_queued >= REFUSED_QUEUED_MAX)
		return;
	node = node_new(NULL, 0);
	if (!node)
		return;
	node->ev.type = PP_EVENT_REFUSED;
	node->ev.t_ns = pp_clock_mono_ns();
	node->ev.error = *why;
	if (s)
		pp_fail_within(&node->ev.error, "%s", s->peer);
	*l->queue.end = node;
	l->queue.end = &node->next;
	l->refused_queued++;
	pthread_cond_broadcast(&l->news);
}

/* Takes the first event and gives its session the room back. */
static bool pop(struct pp_listener *l, struct event_queue *q, struct pp_event *ev)
{
	struct event_node *node = q->first;
	struct session *s;

	if (!node)
		return false;
	q->first = node->next;
	if (!q->first)
		q->end = &q->first;
	*ev = node->ev;
	free(node);
	if (ev->type == PP_EVENT_REFUSED)
		l->refused_queued--;
	s = listener_find(l, ev->session);
	if (!s)
		return true;
	s->queued_bytes -= ev->data_bytes + EVENT_COST_BYTES;
	if (s->paused && !s->resume && s->queued_bytes < QUEUED_BYTES_MAX / 2)
		listener_want_resume(l, s);
	return true;
}

/* Waits for news; false when the deadline has passed. */
static bool wait_news(struct pp_listener *l, int64_t deadline_ns)
{
	struct timespec at;

	if (deadline_ns <= pp_clock_mono_ns())
		return false;
	at.tv_sec = deadline_ns / PP_NS_PER_S;
	at.tv_nsec = deadline_ns % PP_NS_PER_S;
	return pthread_cond_timedwait(&l->news, &l->lock, &at) != ETIMEDOUT;
}

int pp_listener_wait(struct pp_listener *l, int64_t deadline_ns, struct pp_event *ev,
	struct pp_error *err)
{
	int rc = 0;

	memset(ev, 0, sizeof(*ev));
	pthread_mutex_lock(&l->lock);
	for (;;) {
		if (pop(l, &l->queue, ev)) {
			rc = 1;
			break;
		}
		if (l->failed) {
			if (err)
				*err = l->why;
			rc = -1;
			break;
		}
		if (l->woken || !wait_news(l, deadline_ns)) {
			rc = pop(l, &l->queue, ev);
			break;
		}
	}
	pthread_mutex_unlock(&l->lock);
	return rc;
}

static void set_woken(struct pp_listener *l, bool woken)
{
	pthread_mutex_lock(&l->lock);
	l->woken = woken;
	pthread_cond_broadcast(&l->news);
	pthread_mutex_unlock(&l->lock);
}

void pp_listener_wake(struct pp_listener *l)
{
	set_woken(l, true);
}

void pp_listener_wake_clear(struct pp_listener *l)
{
	set_woken(l, false);
}

/* ---- sending -------------------------------------------------------------------------------- */
/* An open session, or NULL with the reason. */
static struct session *find_open(struct pp_listener *l, uint64_t id, struct pp_error *err)
{
	struct session *s = listener_find(l, id);

	if (s && s->stage == STAGE_OPEN && !s->end)
		return s;
	if (s && s->stage == STAGE_CLOSED) {
		pp_fail(err, PP_ERR_PEER, "the connection to the agent has ended (%s): %s",
			pp_close_name(s->how), s->why.text);
		return NULL;
	}
	pp_fail(err, PP_ERR_PEER, "there is no such connection to an agent");
	return NULL;
}

static int send_parts(struct pp_listener *l, uint64_t session, uint16_t type, const void *a,
	size_t a_bytes, const void *b, size_t b_bytes, struct pp_error *err)
{
	struct session *s;

	if (a_bytes > PP_WIRE_PAYLOAD_MAX || b_bytes > PP_WIRE_PAYLOAD_MAX - a_bytes)
		return pp_fail(err, PP_ERR_USAGE, "a frame '%s' of %zu bytes is too long",
			pp_frame_type_name(type), a_bytes + b_bytes);
	s = find_open(l, session, err);
	if (!s)
		return -1;
	session_queue(l, s, type, a, a_bytes, b, b_bytes);
	session_flush(l, s);
	return s->out.failed ? pp_fail(err, PP_ERR_PEER, "the agent does not read what it is sent") : 0;
}

int pp_listener_send(struct pp_listener *l, uint64_t session, uint16_t type, const void *payload,
	size_t bytes, struct pp_error *err)
{
	int rc;

	pthread_mutex_lock(&l->lock);
	rc = send_parts(l, session, type, payload, bytes, NULL, 0, err);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

static int request(struct pp_listener *l, uint64_t session, const struct pp_buf *kv, uint32_t id,
	struct pp_error *err)
{
	uint8_t head[4];

	if (kv->failed)
		return pp_fail(err, PP_ERR_USAGE, "a request is too long");
	le32_put(head, id);
	return send_parts(l, session, PP_FRAME_REQUEST, head, sizeof(head), kv->data, kv->bytes, err);
}

int pp_listener_request(struct pp_listener *l, uint64_t session, const struct pp_buf *kv,
	uint32_t *id, struct pp_error *err)
{
	int rc;

	pthread_mutex_lock(&l->lock);
	*id = ++l->next_id & ~CALL_BIT;
	rc = request(l, session, kv, *id, err);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

/* ---- calls ---------------------------------------------------------------------------------- */
static int take_response(struct pp_event *ev, struct pp_kv *response, struct pp_error *err)
{
	struct pp_kv kv;
	int rc = pp_kv_parse(&kv, ev->data, ev->data_bytes, err);

	if (rc != 0)
		return pp_fail_within(err, "cannot understand the agent's answer");
	if (ev->status != 0)
		rc = pp_fail(err, PP_ERR_PEER, "%s", pp_kv_str_or(&kv, "error", "the agent refused and "
			"gave no reason"));
	if (rc == 0 && response)
		*response = kv;
	else
		pp_kv_release(&kv);
	return rc;
}

/* With the lock held; 1: an event of this call, -1. */
static int call_wait(struct pp_listener *l, struct call *call, int timeout_ms, struct pp_event *ev,
	struct pp_error *err)
{
	int64_t deadline_ns = pp_clock_mono_ns() + timeout_ms * PP_NS_PER_MS;
	bool in_time = true;

	for (;;) {
		if (pop(l, &call->queue, ev))
			return 1;
		if (!find_open(l, call->session, err))
			return -1;
		if (l->failed)
			return pp_fail(err, PP_ERR_SYSTEM, "%s", l->why.text);
		if (l->woken)
			return pp_fail(err, PP_ERR_PEER, "interrupted while waiting for the agent");
		if (!in_time)
			return pp_fail(err, PP_ERR_PEER, "the agent did not answer within %d ms",
				timeout_ms);
		in_time = wait_news(l, deadline_ns);
	}
}

/* With the lock held, released around the callback. */
static int call_answer(struct pp_listener *l, struct call *call, struct pp_kv *response,
	int timeout_ms, pp_listener_data_fn *on_data, void *context, struct pp_error *err)
{
	struct pp_event ev;
	int rc;

	for (;;) {
		if (call_wait(l, call, timeout_ms, &ev, err) != 1)
			return -1;
		pthread_mutex_unlock(&l->lock);
		if (ev.type == PP_EVENT_RESPONSE)
			rc = take_response(&ev, response, err);
		else
			rc = on_data ? on_data(context, ev.data, ev.data_bytes, err) : 0;
		pp_event_release(&ev);
		pthread_mutex_lock(&l->lock);
		if (rc != 0 || ev.type == PP_EVENT_RESPONSE)
			return rc;
	}
}

int pp_listener_call(struct pp_listener *l, uint64_t session, const struct pp_buf *kv,
	struct pp_kv *response, int timeout_ms, pp_listener_data_fn *on_data, void *context,
	struct pp_error *err)
{
	struct call call = { .session = session }, **at;
	struct pp_event left;
	int rc;

	if (response)
		memset(response, 0, sizeof(*response));
	queue_init(&call.queue);
	pthread_mutex_lock(&l->lock);
	call.id = ++l->next_id | CALL_BIT;
	call.next = l->calls;
	l->calls = &call;
	rc = request(l, session, kv, call.id, err);
	if (rc == 0)
		rc = call_answer(l, &call, response, timeout_ms, on_data, context, err);
	for (at = &l->calls; *at != &call; at = &(*at)->next)
		;
	*at = call.next;
	while (pop(l, &call.queue, &left))
		pp_event_release(&left);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

int pp_listener_end(struct pp_listener *l, uint64_t session, enum pp_close how, struct pp_error *err)
{
	struct pp_error why;
	struct session *s;
	int rc = 0;

	pp_fail(&why, PP_ERR_PEER, how == PP_CLOSE_REPLACED ? "a newer connection took its place" :
		"control closed the connection");
	pthread_mutex_lock(&l->lock);
	s = listener_find(l, session);
	if (!s || s->stage < STAGE_OPEN)
		rc = pp_fail(err, PP_ERR_PEER, "there is no such connection to an agent");
	else
		listener_want_end(l, s, how, &why);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

/* ---- bindings and state --------------------------------------------------------------------- */
static struct binding *binding_new(uint32_t run_index, struct pp_ledger *ledger)
{
	struct binding *b = calloc(1, sizeof(*b));
	uint32_t lane;

	if (!b)
		return NULL;
	b->run_index = run_index;
	b->ledger = ledger;
	b->lanes = pp_ledger_lanes(ledger);
	b->t_last_ack_ns = b->t_last_beat_ns = PP_LEDGER_NEVER;
	b->acked = calloc(b->lanes, sizeof(*b->acked));
	b->pending_first = calloc(b->lanes, sizeof(*b->pending_first));
	b->dirty = calloc(b->lanes, sizeof(*b->dirty));
	if (!b->acked || !b->pending_first || !b->dirty) {
		binding_free(b);
		return NULL;
	}
	for (lane = 0; lane < b->lanes; lane++)
		b->acked[lane] = pp_ledger_acked(ledger, lane);
	return b;
}

/* Takes the place of an earlier binding of the same run_index, else a new one. */
static int add_binding(struct session *s, struct binding *b, struct pp_error *err)
{
	struct binding **grown;
	size_t i;

	for (i = 0; i < s->binding_count; i++) {
		if (s->bindings[i]->run_index != b->run_index)
			continue;
		if (s->bindings[i]->ledger)
			return pp_fail(err, PP_ERR_USAGE, "run %u of this connection has a ledger already",
				b->run_index);
		binding_free(s->bindings[i]);
		s->bindings[i] = b;
		return 0;
	}
	grown = realloc(s->bindings, (s->binding_count + 1) * sizeof(struct binding *));
	if (!grown)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory for a run");
	s->bindings = grown;
	s->bindings[s->binding_count++] = b;
	return 0;
}

int pp_listener_bind(struct pp_listener *l, uint64_t session, uint32_t run_index,
	struct pp_ledger *ledger, struct pp_error *err)
{
	struct binding *b = binding_new(run_index, ledger);
	struct session *s;
	int rc = -1;

	if (!b)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory for a run");
	pthread_mutex_lock(&l->lock);
	s = find_open(l, session, err);
	if (s)
		rc = add_binding(s, b, err);
	pthread_mutex_unlock(&l->lock);
	if (rc != 0)
		binding_free(b);
	return rc;
}

void pp_listener_unbind(struct pp_listener *l, uint64_t session, uint32_t run_index)
{
	struct binding *b = NULL;
	struct session *s;

	pthread_mutex_lock(&l->lock);
	s = listener_find(l, session);
	if (s)
		b = session_binding(s, run_index);
	if (b)
		binding_let_go(s, b, PP_CLOSE_NOT, 0);
	pthread_mutex_unlock(&l->lock);
}

static void copy_binding(const struct binding *b, struct pp_session_state *out, uint64_t *lanes,
	size_t lane_count)
{
	uint32_t i;

	out->bound = true;
	out->ledger_failed = b->ledger_failed;
	out->acks = b->acks;
	out->acks_dropped = b->acks_dropped;
	out->t_last_ack_ns = b->t_last_ack_ns;
	out->t_last_beat_ns = b->t_last_beat_ns;
	out->writes = b->writes;
	out->sectors_written = b->sectors_written;
	out->flushes = b->flushes;
	for (i = 0; lanes && i < b->lanes && i < lane_count; i++)
		lanes[i] = b->acked[i];
}

int pp_listener_snapshot(struct pp_listener *l, uint64_t session, uint32_t run_index,
	struct pp_session_state *out, uint64_t *lanes, size_t lane_count, struct pp_error *err)
{
	struct binding *b;
	struct session *s;
	int rc = 0;

	memset(out, 0, sizeof(*out));
	if (lanes)
		memset(lanes, 0, lane_count * sizeof(*lanes));
	out->t_last_ack_ns = out->t_last_beat_ns = PP_LEDGER_NEVER;
	pthread_mutex_lock(&l->lock);
	s = listener_find(l, session);
	if (!s || s->stage < STAGE_OPEN) {
		rc = pp_fail(err, PP_ERR_PEER, "there is no such connection to an agent");
		goto out;
	}
	out->t_connected_ns = s->t_connected_ns;
	out->t_last_frame_ns = s->t_last_ns;
	out->how = s->how;
	out->t_closed_ns = s->t_closed_ns;
	memcpy(out->peer, s->peer, sizeof(out->peer));
	b = session_binding(s, run_index);
	if (b)
		copy_binding(b, out, lanes, lane_count);
out:
	pthread_mutex_unlock(&l->lock);
	return rc;
}

size_t pp_listener_sessions(struct pp_listener *l)
{
	size_t n;

	pthread_mutex_lock(&l->lock);
	n = l->open_count;
	pthread_mutex_unlock(&l->lock);
	return n;
}

int64_t pp_listener_cpu_ns(struct pp_listener *l)
{
	struct timespec t;
	clockid_t clock;

	if (pthread_getcpuclockid(l->thread, &clock) != 0 || clock_gettime(clock, &t) != 0)
		return 0;
	return t.tv_sec * PP_NS_PER_S + t.tv_nsec;
}
