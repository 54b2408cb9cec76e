/* SPDX-License-Identifier: MIT
 *
 * The socket never blocks by itself; poll(2) waits, with a deadline. One lock orders senders, since
 * the MAC counts frames: a frame is sealed and sent whole before the next is sealed.
 */
#include "client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"
#include "le.h"

#define SEND_TIMEOUT_MS 10000
#define GIVE_UP_MS      10000
#define RECEIVE_BYTES   65536

struct pp_client {
	int fd;
	pthread_mutex_t lock; /* sending, and failed/why */
	struct pp_wire send;
	bool failed;
	struct pp_error why;
	struct pp_wire receive;
	uint8_t *in;
	size_t in_capacity, in_bytes, in_used; /* in_used: of the frame handed out last */
};

static int remember(struct pp_client *c, const struct pp_error *why, struct pp_error *err)
{
	pthread_mutex_lock(&c->lock);
	if (!c->failed) {
		c->failed = true;
		c->why = *why;
	}
	if (err)
		*err = c->why;
	pthread_mutex_unlock(&c->lock);
	return -1;
}

/* 1: ready, 0: the deadline (-1: none) passed, -1 with errno. */
static int wait_for(int fd, short events, int64_t deadline_ns)
{
	struct pollfd p = { .fd = fd, .events = events };

	for (;;) {
		int64_t left = deadline_ns < 0 ? -1 : deadline_ns - pp_clock_mono_ns();
		int ms = deadline_ns < 0 ? -1 : left <= 0 ? 0 : (int)((left + 999999) / 1000000);
		int n = poll(&p, 1, ms);

		if (n < 0 && errno == EINTR)
			continue;
		return n < 0 ? -1 : n > 0;
	}
}

static int64_t deadline_in(int timeout_ms)
{
	return timeout_ms < 0 ? -1 : pp_clock_mono_ns() + timeout_ms * PP_NS_PER_MS;
}

/* ---- connecting --------------------------------------------------------------------------- */
static int parse_address(const char *address, uint16_t port, struct sockaddr_storage *out,
	socklen_t *bytes, struct pp_error *err)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		*bytes = sizeof(*v4);
		return 0;
	}
	if (inet_pton(AF_INET6, address, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		*bytes = sizeof(*v6);
		return 0;
	}
	return pp_fail(err, PP_ERR_USAGE, "'%s' is not a numeric address (names are not looked up "
		"here: the machine under test may have no name service)", address);
}

static void set_options(int fd)
{
	int on = 1, idle_s = 3, probe_s = 2, probes = 3;
	unsigned give_up_ms = GIVE_UP_MS;

	/* each only makes a dead control noticed sooner; none is needed for correctness */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe_s, sizeof(probe_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up_ms, sizeof(give_up_ms));
}

static int connect_by(const char *address, uint16_t port, int64_t deadline_ns, struct pp_error *err)
{
	struct sockaddr_storage to;
	socklen_t bytes = 0, size = sizeof(int);
	int fd, code = 0, ready;

	if (parse_address(address, port, &to, &bytes, err) != 0)
		return -1;
	fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return pp_fail_os(err, errno, "cannot make a socket");
	set_options(fd);
	if (connect(fd, (struct sockaddr *)&to, bytes) != 0) {
		if (errno != EINPROGRESS) {
			code = errno;
			goto refused;
		}
		ready = wait_for(fd, POLLOUT, deadline_ns);
		if (ready == 0)
			code = ETIMEDOUT;
		else if (ready < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) != 0)
			code = errno;
		if (code)
			goto refused;
	}
	return fd;
refused:
	close(fd);
	return pp_fail_os(err, code, "cannot connect to control at %s port %u", address, port);
}

static int send_all(int fd, struct iovec *iov, int parts, int64_t deadline_ns, struct pp_error *err)
{
	while (parts) {
		struct msghdr msg = { .msg_iov = iov, .msg_iovlen = (size_t)parts };
		ssize_t n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			int ready = wait_for(fd, POLLOUT, deadline_ns);

			if (ready == 0)
				return pp_fail_os(err, ETIMEDOUT, "cannot send to control");
			if (ready < 0)
				return pp_fail_os(err, errno, "cannot wait for control");
			continue;
		}
		if (n < 0)
			return pp_fail_os(err, errno, "cannot send to control");
		for (; parts && (size_t)n >= iov->iov_len; iov++, parts--)
			n -= (ssize_t)iov->iov_len;
		if (parts) {
			iov->iov_base = (char *)iov->iov_base + n;
			iov->iov_len -= (size_t)n;
		}
	}
	return 0;
}

static int send_bytes(int fd, void *data, size_t bytes, int64_t deadline_ns, struct pp_error *err)
{
	struct iovec iov = { .iov_base = data, .iov_len = bytes };

	return bytes ? send_all(fd, &iov, 1, deadline_ns, err) : 0;
}

/* Exactly so many bytes: a greeting has no more to say before our answer. */
static int receive_bytes(int fd, uint8_t *out, size_t bytes, int64_t deadline_ns,
	struct pp_error *err)
{
	while (bytes) {
		ssize_t n = recv(fd, out, bytes, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			int ready = wait_for(fd, POLLIN, deadline_ns);

			if (ready == 0)
				return pp_fail(err, PP_ERR_SYSTEM, "control took the connection but does "
					"not answer");
			if (ready < 0)
				return pp_fail_os(err, errno, "cannot wait for control");
			continue;
		}
		if (n < 0)
			return pp_fail_os(err, errno, "cannot receive from control");
		if (n == 0)
			return pp_fail(err, PP_ERR_SYSTEM, "control hung up during the greeting (is it "
				"plugpull?)");
		out += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int greet(struct pp_client *c, const struct pp_key *key, int64_t deadline_ns,
	struct pp_error *err)
{
	uint8_t one[PP_GREET1_BYTES], two[PP_GREET2_BYTES], three[PP_GREET3_BYTES];
	uint8_t four[PP_GREET4_BYTES];
	struct pp_greeting g;
	size_t bytes;
	int rc;

	if (pp_greet_agent_first(&g, one, err) != 0 ||
		send_bytes(c->fd, one, sizeof(one), deadline_ns, err) != 0 ||
		receive_bytes(c->fd, two, sizeof(two), deadline_ns, err) != 0)
		return -1;
	rc = pp_greet_agent_second(&g, key, two, three, &bytes, err);
	if (rc != 0) {
		send_bytes(c->fd, three, bytes, deadline_ns, NULL); /* tells control why; best effort */
		return -1;
	}
	if (send_bytes(c->fd, three, bytes, deadline_ns, err) != 0 ||
		receive_bytes(c->fd, four, sizeof(four), deadline_ns, err) != 0)
		return -1;
	return pp_greet_agent_fourth(&g, key, four, &c->send, &c->receive, err);
}

struct pp_client *pp_client_connect(const char *address, uint16_t port, const struct pp_key *key,
	int timeout_ms, struct pp_error *err)
{
	int64_t deadline_ns = deadline_in(timeout_ms);
	struct pp_client *c = calloc(1, sizeof(*c));

	if (c)
		c->in = malloc(RECEIVE_BYTES);
	if (!c || !c->in) {
		free(c);
		pp_fail(err, PP_ERR_SYSTEM, "out of memory for a connection");
		return NULL;
	}
	c->in_capacity = RECEIVE_BYTES;
	pthread_mutex_init(&c->lock, NULL);
	c->fd = connect_by(address, port, deadline_ns, err);
	if (c->fd < 0 || greet(c, key, deadline_ns, err) != 0) {
		pp_client_close(c);
		return NULL;
	}
	return c;
}

/* ---- sending ------------------------------------------------------------------------------ */
static int send_parts(struct pp_client *c, uint16_t type, const void *a, size_t a_bytes,
	const void *b, size_t b_bytes, struct pp_error *err)
{
	uint8_t header[PP_WIRE_HEADER_BYTES], mac[PP_WIRE_MAC_BYTES];
	struct iovec iov[4] = {
		{ header, sizeof(header) }, { (void *)(uintptr_t)a, a_bytes },
		{ (void *)(uintptr_t)b, b_bytes }, { mac, sizeof(mac) },
	};
	int rc = 0;

	if (a_bytes > PP_WIRE_PAYLOAD_MAX || b_bytes > PP_WIRE_PAYLOAD_MAX - a_bytes)
		return pp_fail(err, PP_ERR_USAGE, "a frame '%s' of %zu bytes is too long",
			pp_frame_type_name(type), a_bytes + b_bytes);
	pthread_mutex_lock(&c->lock);
	if (!c->failed) {
		pp_wire_seal(&c->send, type, a, a_bytes, b, b_bytes, header, mac);
		if (send_all(c->fd, iov, 4, deadline_in(SEND_TIMEOUT_MS), &c->why) != 0)
			c->failed = true;
	}
	if (c->failed) {
		if (err)
			*err = c->why;
		rc = -1;
	}
	pthread_mutex_unlock(&c->lock);
	return rc;
}

int pp_client_send(struct pp_client *c, uint16_t type, const void *payload, size_t bytes,
	struct pp_error *err)
{
	return send_parts(c, type, payload, bytes, NULL, 0, err);
}

int pp_client_send_ack(struct pp_client *c, uint32_t run_index, uint32_t lane, uint64_t first,
	uint64_t last, struct pp_error *err)
{
	struct pp_ack ack = { .run_index = run_index, .lane = lane, .first = first, .last = last };
	uint8_t out[PP_ACK_BYTES];

	pp_ack_put(&ack, out);
	return send_parts(c, PP_FRAME_ACK, out, sizeof(out), NULL, 0, err);
}

int pp_client_send_beat(struct pp_client *c, uint64_t agent_ns, const struct pp_beat_disk *disks,
	uint32_t count, struct pp_error *err)
{
	uint8_t out[PP_BEAT_HEAD_BYTES + PP_BEAT_DISKS_MAX * PP_BEAT_DISK_BYTES];

	return send_parts(c, PP_FRAME_BEAT, out, pp_beat_put(agent_ns, disks, count, out), NULL, 0,
		err);
}

int pp_client_respond(struct pp_client *c, uint32_t id, uint8_t status, const struct pp_buf *kv,
	struct pp_error *err)
{
	uint8_t head[5];

	if (kv && kv->failed)
		return pp_fail(err, PP_ERR_USAGE, "an answer is too long");
	le32_put(head, id);
	head[4] = status;
	return send_parts(c, PP_FRAME_RESPONSE, head, sizeof(head), kv ? kv->data : NULL,
		kv ? kv->bytes : 0, err);
}

int pp_client_send_data(struct pp_client *c, uint32_t id, const void *data, size_t bytes,
	struct pp_error *err)
{
	uint8_t head[4];

	le32_put(head, id);
	return send_parts(c, PP_FRAME_DATA, head, sizeof(head), data, bytes, err);
}

/* ---- receiving ---------------------------------------------------------------------------- */
static int make_room(struct pp_client *c, size_t need, struct pp_error *err)
{
	uint8_t *grown;

	memmove(c->in, c->in + c->in_used, c->in_bytes - c->in_used);
	c->in_bytes -= c->in_used;
	c->in_used = 0;
	if (need <= c->in_capacity)
		return 0;
	grown = realloc(c->in, need);
	if (!grown)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory for a frame of %zu bytes", need);
	c->in = grown;
	c->in_capacity = need;
	return 0;
}

/* 1: bytes came, 0: the deadline passed, -1. */
static int receive_some(struct pp_client *c, int64_t deadline_ns, struct pp_error *err)
{
	for (;;) {
		ssize_t n = recv(c->fd, c->in + c->in_bytes, c->in_capacity - c->in_bytes, MSG_DONTWAIT);
		int ready;

		if (n > 0) {
			c->in_bytes += (size_t)n;
			return 1;
		}
		if (n == 0)
			return pp_fail(err, PP_ERR_PEER, "control closed the connection");
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			return pp_fail_os(err, errno, "cannot receive from control");
		ready = wait_for(c->fd, POLLIN, deadline_ns);
		if (ready == 0)
			return 0;
		if (ready < 0)
			return pp_fail_os(err, errno, "cannot wait for control");
	}
}

int pp_client_recv(struct pp_client *c, struct pp_frame *frame, int timeout_ms,
	struct pp_error *err)
{
	int64_t deadline_ns = deadline_in(timeout_ms);
	struct pp_error why = { 0 };
	size_t used, need;
	int rc;

	for (;;) {
		rc = pp_wire_open(&c->receive, c->in + c->in_used, c->in_bytes - c->in_used, frame, &used,
			&need, &why);
		if (rc == 1)
			c->in_used += used;
		if (rc != 0)
			break;
		rc = make_room(c, need, &why);
		if (rc == 0)
			rc = receive_some(c, deadline_ns, &why);
		if (rc <= 0)
			break;
	}
	return rc < 0 ? remember(c, &why, err) : rc;
}

void pp_client_shutdown(struct pp_client *c)
{
	shutdown(c->fd, SHUT_RDWR);
}

void pp_client_close(struct pp_client *c)
{
	if (!c)
		return;
	if (c->fd >= 0)
		close(c->fd);
	pp_wire_release(&c->send);
	pp_wire_release(&c->receive);
	pthread_mutex_destroy(&c->lock);
	free(c->in);
	free(c);
}
