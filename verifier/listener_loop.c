/* SPDX-License-Identifier: MIT
 *
 * The listener's thread: accepts, greets, reads, closes. epoll is level-triggered, so a socket is
 * read once a round and no agent can starve the others.
 *
 * How a connection ended is evidence (M5.1), so it is told apart with care: recv(2) gives 0 for a
 * FIN and ECONNRESET for a reset, but a send that came first may have taken the socket's error, after
 * which recv gives 0 too. What send saw is therefore kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "listener_priv.h"
#include "src/core/clock.h"

#define ROUND_EVENTS 256
#define ROUND_ACCEPTS 256

/* ---- wishes of other threads ---------------------------------------------------------------- */
void listener_poke(struct pp_listener *l)
{
	uint64_t one = 1;

	/* can only fail when the counter is full, and then the thread wakes anyway */
	while (write(l->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void want_attention(struct pp_listener *l, struct session *s)
{
	if (s->attention)
		return;
	s->attention = true;
	s->next_attention = l->attention;
	l->attention = s;
	listener_poke(l);
}

void listener_want_end(struct pp_listener *l, struct session *s, enum pp_close how,
	const struct pp_error *why)
{
	if (s->end || s->stage == STAGE_CLOSED)
		return;
	s->end = true;
	s->end_how = how;
	s->end_why = *why;
	want_attention(l, s);
}

void listener_want_resume(struct pp_listener *l, struct session *s)
{
	s->resume = true;
	want_attention(l, s);
}

/* ---- sending -------------------------------------------------------------------------------- */
static void set_interest(struct pp_listener *l, struct session *s)
{
	struct epoll_event e = { .data.u64 = s->id };

	e.events = (s->paused ? 0 : EPOLLIN) | (s->out.bytes > s->out_sent ? EPOLLOUT : 0);
	if (e.events == s->interest)
		return;
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, s->fd, &e) == 0)
		s->interest = e.events;
}

void session_queue(struct pp_listener *l, struct session *s, uint16_t type, const void *a,
	size_t a_bytes, const void *b, size_t b_bytes)
{
	uint8_t header[PP_WIRE_HEADER_BYTES], mac[PP_WIRE_MAC_BYTES];
	struct pp_error why;

	if (s->out.failed)
		return;
	pp_wire_seal(&s->send, type, a, a_bytes, b, b_bytes, header, mac);
	pp_buf_add(&s->out, header, sizeof(header));
	pp_buf_add(&s->out, a, a_bytes);
	pp_buf_add(&s->out, b, b_bytes);
	pp_buf_add(&s->out, mac, sizeof(mac));
	if (s->out.failed) {
		pp_fail(&why, PP_ERR_PEER, "the agent does not read what it is sent");
		listener_want_end(l, s, PP_CLOSE_PROTOCOL, &why);
	}
}

void session_flush(struct pp_listener *l, struct session *s)
{
	while (s->out_sent < s->out.bytes && !s->send_errno) {
		ssize_t n = send(s->fd, s->out.data + s->out_sent, s->out.bytes - s->out_sent,
			MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		if (n < 0)
			s->send_errno = errno;
		else
			s->out_sent += (size_t)n;
	}
	if (s->send_errno || s->out_sent == s->out.bytes) {
		bool failed = s->out.failed;

		pp_buf_clear(&s->out);
		s->out.failed = failed;
		s->out_sent = 0;
		if (s->out.capacity_bytes > SCRATCH_BYTES && !failed)
			pp_buf_release(&s->out);
	} else if (s->out_sent > OUT_BYTES_MAX / 4) {
		pp_buf_consume(&s->out, s->out_sent);
		s->out_sent = 0;
	}
	set_interest(l, s);
}

/* ---- the table of sessions ------------------------------------------------------------------ */
static int take_slot(struct pp_listener *l, struct session *s)
{
	size_t i, grown = l->slot_count ? 2 * l->slot_count : 64;
	struct session **slots;

	for (i = 0; i < l->slot_count; i++) {
		size_t slot = (l->slot_hint + i) % l->slot_count;

		if (!l->slots[slot]) {
			l->slots[slot] = s;
			l->slot_hint = slot + 1;
			s->id = ++l->serial << SLOT_BITS | slot;
			return 0;
		}
	}
	if (grown > 1u << SLOT_BITS)
		return -1;
	slots = realloc(l->slots, grown * sizeof(*slots));
	if (!slots)
		return -1;
	memset(slots + l->slot_count, 0, (grown - l->slot_count) * sizeof(*slots));
	l->slots = slots;
	l->slot_hint = l->slot_count;
	l->slot_count = grown;
	return take_slot(l, s);
}

static void pending_add(struct pp_listener *l, struct session *s)
{
	s->pending_before = l->pending_last;
	if (l->pending_last)
		l->pending_last->pending_after = s;
	else
		l->pending_first = s;
	l->pending_last = s;
	l->pending_count++;
}

static void pending_remove(struct pp_listener *l, struct session *s)
{
	*(s->pending_before ? &s->pending_before->pending_after : &l->pending_first) =
		s->pending_after;
	*(s->pending_after ? &s->pending_after->pending_before : &l->pending_last) =
		s->pending_before;
	s->pending_before = s->pending_after = NULL;
	l->pending_count--;
}

/* Frees what only an open session needs. */
static void session_strip(struct session *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	free(s->in);
	s->in = NULL;
	pp_buf_release(&s->out);
	pp_wire_release(&s->send);
	pp_wire_release(&s->receive);
}

static void session_free(struct pp_listener *l, struct session *s)
{
	struct session **at;
	size_t i;

	for (at = &l->attention; *at; at = &(*at)->next_attention) {
		if (*at == s) {
			*at = s->next_attention;
			break;
		}
	}
	l->slots[s->id & ((1u << SLOT_BITS) - 1)] = NULL;
	session_strip(s);
	for (i = 0; i < s->binding_count; i++)
		binding_free(s->bindings[i]);
	free(s->bindings);
	free(s);
}

void listener_free_sessions(struct pp_listener *l)
{
	size_t i, k;

	for (i = 0; i < l->slot_count; i++) {
		struct session *s = l->slots[i];

		if (!s)
			continue;
		for (k = 0; k < s->binding_count; k++)
			binding_let_go(s, s->bindings[k], PP_CLOSE_LOCAL, pp_clock_mono_ns());
		session_free(l, s);
	}
	free(l->slots);
	l->slots = NULL;
	l->slot_count = 0;
}

/* ---- closing -------------------------------------------------------------------------------- */
static void session_close(struct pp_listener *l, struct session *s, enum pp_close how,
	const struct pp_error *why)
{
	int64_t t_ns = pp_clock_mono_ns();
	struct session *old;
	struct pp_event *ev;
	size_t i;

	if (s->stage != STAGE_OPEN) {
		listener_refused(l, s, why);
		pending_remove(l, s);
		session_free(l, s);
		return;
	}
	for (i = 0; i < s->binding_count; i++)
		binding_let_go(s, s->bindings[i], how, t_ns);
	s->stage = STAGE_CLOSED;
	s->how = how;
	s->why = *why;
	s->t_closed_ns = t_ns;
	session_strip(s);
	l->open_count--;
	ev = listener_push(l, s, PP_EVENT_CLOSED, t_ns, NULL, 0);
	if (ev) {
		ev->how = how;
		ev->error = *why;
	}
	old = listener_find(l, l->closed_ids[l->closed_next]);
	if (old)
		session_free(l, old);
	l->closed_ids[l->closed_next] = s->id;
	l->closed_next = (l->closed_next + 1) % CLOSED_KEPT_MAX;
}

/* recv gave 0 (code 0) or an error. */
static enum pp_close closed_how(const struct session *s, int code, struct pp_error *why)
{
	if (s->send_errno && s->send_errno != EPIPE && (code == 0 || code == EPIPE))
		code = s->send_errno;
	if (code == 0 || code == EPIPE) {
		pp_fail(why, PP_ERR_PEER, "the agent closed the connection");
		return PP_CLOSE_FIN;
	}
	if (code == ECONNRESET) {
		pp_fail(why, PP_ERR_PEER, "the connection was reset (the agent was killed, or its machine "
			"has restarted)");
		return PP_CLOSE_RST;
	}
	pp_fail_os(why, code, "the agent is out of reach");
	return PP_CLOSE_TIMEOUT;
}

/* ---- accepting ------------------------------------------------------------------------------ */
static void format_peer(const struct sockaddr_storage *from, char *out, size_t bytes)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
	char text[INET6_ADDRSTRLEN] = "?";

	if (from->ss_family == AF_INET) {
		inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
		snprintf(out, bytes, "%s:%u", text, ntohs(v4->sin_port));
	} else if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
		inet_ntop(AF_INET, v6->sin6_addr.s6_addr + 12, text, sizeof(text));
		snprintf(out, bytes, "%s:%u", text, ntohs(v6->sin6_port));
	} else {
		inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
		snprintf(out, bytes, "[%s]:%u", text, ntohs(v6->sin6_port));
	}
}

static struct session *session_new(struct pp_listener *l, int fd,
	const struct sockaddr_storage *from)
{
	struct session *s = calloc(1, sizeof(*s));
	struct epoll_event e = { .events = EPOLLIN };
	int on = 1;

	if (!s)
		return NULL;
	s->fd = fd;
	s->t_accepted_ns = pp_clock_mono_ns();
	s->t_connected_ns = s->t_last_ns = s->t_closed_ns = PP_LEDGER_NEVER;
	pp_buf_init(&s->out, OUT_BYTES_MAX);
	format_peer(from, s->peer, sizeof(s->peer));
	if (take_slot(l, s) != 0) {
		free(s);
		return NULL;
	}
	e.data.u64 = s->id;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &e) != 0) {
		s->fd = -1;
		session_free(l, s);
		return NULL;
	}
	s->interest = EPOLLIN;
	pending_add(l, s);
	return s;
}

static void turn_away(int fd)
{
	uint8_t busy[PP_GREET2_BYTES];

	pp_greet_control_busy(busy);
	/* best effort: the close alone turns it away */
	(void)!send(fd, busy, sizeof(busy), MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

/* Out of descriptors the queue would stay readable for ever: the spare one takes each away. */
static void shed(struct pp_listener *l, int code)
{
	struct pp_error why;
	int fd;

	pp_fail_os(&why, code, "cannot take another connection");
	listener_refused(l, NULL, &why);
	if (l->spare_fd >= 0)
		close(l->spare_fd);
	fd = accept4(l->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		turn_away(fd);
	l->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void accept_some(struct pp_listener *l)
{
	int i;

	for (i = 0; i < ROUND_ACCEPTS; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t bytes = sizeof(from);
		int fd = accept4(l->listen_fd, (struct sockaddr *)&from, &bytes,
			SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE)
				shed(l, errno);
			return; /* EAGAIN, or a connection that died meanwhile: the next round */
		}
		if (l->pending_count >= PENDING_MAX || !session_new(l, fd, &from))
			turn_away(fd);
	}
}

/* ---- greeting ------------------------------------------------------------------------------- */
static int greet1(struct pp_listener *l, struct session *s, struct pp_error *err)
{
	uint8_t out[PP_GREET2_BYTES];
	size_t bytes;
	int rc = pp_greet_control_first(&s->greeting, &l->key, s->greet_in, out, &bytes, err);

	/* a fresh socket takes 80 bytes; if not, the agent will not answer and time out */
	if (bytes)
		(void)!send(s->fd, out, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
	s->stage = STAGE_GREET3;
	return rc;
}

static int greet3(struct pp_listener *l, struct session *s, struct pp_error *err)
{
	uint8_t out[PP_GREET4_BYTES];
	int rc = pp_greet_control_third(&s->greeting, &l->key, s->greet_in, out, &s->send, &s->receive,
		err);

	(void)!send(s->fd, out, sizeof(out), MSG_DONTWAIT | MSG_NOSIGNAL);
	s->stage = STAGE_HELLO;
	return rc;
}

/* Reads no further than the message that is due, so that nothing has to be kept. */
static void read_greeting(struct pp_listener *l, struct session *s)
{
	size_t want = s->stage == STAGE_GREET1 ? PP_GREET1_BYTES : PP_GREET3_BYTES;
	ssize_t n = recv(s->fd, s->greet_in + s->greet_bytes, want - s->greet_bytes, MSG_DONTWAIT);
	struct pp_error why;
	int rc;

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return;
	if (n <= 0) {
		enum pp_close how = closed_how(s, n < 0 ? errno : 0, &why);

		session_close(l, s, how, &why);
		return;
	}
	s->greet_bytes += (size_t)n;
	if (s->greet_bytes < want)
		return;
	s->greet_bytes = 0;
	rc = s->stage == STAGE_GREET1 ? greet1(l, s, &why) : greet3(l, s, &why);
	if (rc != 0)
		session_close(l, s, PP_CLOSE_PROTOCOL, &why);
}

static void expire_greetings(struct pp_listener *l)
{
	int64_t limit_ns = pp_clock_mono_ns() - GREETING_NS;
	struct pp_error why;

	pp_fail(&why, PP_ERR_PEER, "did not say who it is within 10 s");
	while (l->pending_first && l->pending_first->t_accepted_ns <= limit_ns)
		session_close(l, l->pending_first, PP_CLOSE_PROTOCOL, &why);
}

/* ---- reading -------------------------------------------------------------------------------- */
/* Keeps the beginning of a frame. A large one gets memory for the whole of it at once. inside: rest
 * lies in s->in already. */
static int keep_rest(struct session *s, const uint8_t *rest, size_t bytes, size_t need,
	bool inside, struct pp_error *err)
{
	size_t want = bytes > SMALL_REST_BYTES ? need : SMALL_REST_BYTES;
	uint8_t *grown;

	if (bytes == 0) {
		free(s->in);
		s->in = NULL;
		s->in_bytes = s->in_capacity = 0;
		return 0;
	}
	if (inside)
		memmove(s->in, rest, bytes);
	if (want > s->in_capacity) {
		grown = realloc(s->in, want);
		if (!grown)
			return pp_fail(err, PP_ERR_SYSTEM, "out of memory for a frame");
		s->in = grown;
		s->in_capacity = want;
	}
	if (!inside)
		memcpy(s->in, rest, bytes);
	s->in_bytes = bytes;
	return 0;
}

static void after_frames(struct pp_listener *l, struct session *s)
{
	if (!s->paused && s->queued_bytes > QUEUED_BYTES_MAX) {
		s->paused = true;
		set_interest(l, s);
	}
}

/* Called without the lock: receiving is the longest part, and nobody else touches `in`. */
static ssize_t receive(struct pp_listener *l, struct session *s, const uint8_t **data, size_t *bytes)
{
	ssize_t n;

	if (s->in_bytes > SMALL_REST_BYTES) {
		*data = s->in;
		*bytes = s->in_bytes;
		n = recv(s->fd, s->in + s->in_bytes, s->in_capacity - s->in_bytes, MSG_DONTWAIT);
	} else {
		*data = l->scratch;
		*bytes = s->in_bytes;
		if (s->in_bytes)
			memcpy(l->scratch, s->in, s->in_bytes);
		n = recv(s->fd, l->scratch + s->in_bytes, SCRATCH_BYTES - s->in_bytes, MSG_DONTWAIT);
	}
	if (n > 0)
		*bytes += (size_t)n;
	return n;
}

static void read_session(struct pp_listener *l, struct session *s)
{
	const uint8_t *data;
	size_t bytes, used, need;
	struct pp_error why;
	bool was_pending = s->stage == STAGE_HELLO;
	int64_t t_ns;
	ssize_t n;
	int code;

	pthread_mutex_unlock(&l->lock);
	n = receive(l, s, &data, &bytes);
	code = n < 0 ? errno : 0;
	t_ns = pp_clock_mono_ns();
	pthread_mutex_lock(&l->lock);
	if (code == EAGAIN || code == EWOULDBLOCK || code == EINTR)
		return;
	if (n <= 0) {
		enum pp_close how = closed_how(s, code, &why);

		session_close(l, s, how, &why);
		return;
	}
	code = session_frames(l, s, data, bytes, t_ns, &used, &need, &why);
	if (was_pending && s->stage == STAGE_OPEN)
		pending_remove(l, s);
	if (code == 0)
		code = keep_rest(s, data + used, bytes - used, need, data == s->in, &why);
	if (code != 0)
		session_close(l, s, PP_CLOSE_PROTOCOL, &why);
	else
		after_frames(l, s);
}

static void serve(struct pp_listener *l, struct session *s, uint32_t events)
{
	if (events & EPOLLOUT)
		session_flush(l, s);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	if (s->stage < STAGE_HELLO)
		read_greeting(l, s);
	else
		read_session(l, s);
}

/* ---- the loop ------------------------------------------------------------------------------- */
static void attend(struct pp_listener *l)
{
	uint64_t count;
	struct session *s;

	(void)!read(l->wake_fd, &count, sizeof(count));
	while ((s = l->attention) != NULL) {
		l->attention = s->next_attention;
		s->attention = false;
		if (s->stage == STAGE_CLOSED)
			continue;
		if (s->resume) {
			s->resume = s->paused = false;
			set_interest(l, s);
		}
		if (s->end)
			session_close(l, s, s->end_how, &s->end_why);
	}
}

static void one_event(struct pp_listener *l, const struct epoll_event *e)
{
	struct session *s;

	if (e->data.u64 == ID_LISTEN) {
		accept_some(l);
	} else if (e->data.u64 == ID_WAKE) {
		attend(l);
	} else {
		s = listener_find(l, e->data.u64);
		if (s && s->stage != STAGE_CLOSED)
			serve(l, s, e->events);
	}
}

void *listener_main(void *listener)
{
	struct pp_listener *l = listener;
	struct epoll_event events[ROUND_EVENTS];
	int n, i, wait_ms = -1;

	for (;;) {
		n = epoll_wait(l->epoll_fd, events, ROUND_EVENTS, wait_ms);
		if (n < 0 && errno != EINTR)
			break;
		for (i = 0; i < n; i++) {
			pthread_mutex_lock(&l->lock);
			one_event(l, &events[i]);
			pthread_mutex_unlock(&l->lock);
		}
		pthread_mutex_lock(&l->lock);
		expire_greetings(l);
		wait_ms = l->pending_count ? 250 : -1;
		i = l->stop;
		pthread_mutex_unlock(&l->lock);
		if (i)
			return NULL;
	}
	pthread_mutex_lock(&l->lock);
	pp_fail_os(&l->why, errno, "the listener cannot wait for agents");
	l->failed = true;
	pthread_cond_broadcast(&l->news);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}
