/* SPDX-License-Identifier: MIT
 *
 * One lock orders senders, since the MAC counts frames: a frame is sealed and sent whole before the
 * next is sealed.
 */
#include "client.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "le.h"
#include "socket.h"

#define SEND_TIMEOUT_MS 10000
#define RECEIVE_BYTES   65536

struct pp_client {
	pp_socket socket;
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

static int64_t deadline_in(int timeout_ms)
{
	return timeout_ms < 0 ? -1 : pp_clock_mono_ns() + timeout_ms * PP_NS_PER_MS;
}

/* ---- connecting --------------------------------------------------------------------------- */
static int send_bytes(pp_socket s, const void *data, size_t bytes, int64_t deadline_ns,
	struct pp_error *err)
{
	struct pp_part part = { data, bytes };

	return bytes ? pp_socket_send(s, &part, 1, deadline_ns, err) : 0;
}

/* Exactly so many bytes: a greeting has no more to say before our answer. */
static int receive_bytes(pp_socket s, uint8_t *out, size_t bytes, int64_t deadline_ns,
	struct pp_error *err)
{
	size_t got;

	for (; bytes; out += got, bytes -= got) {
		enum pp_received rc = pp_socket_receive(s, out, bytes, &got, deadline_ns, err);

		if (rc == PP_RECEIVED_FAILED)
			return -1;
		if (rc == PP_RECEIVED_LATE)
			return pp_fail(err, PP_ERR_SYSTEM, "control took the connection but does not answer");
		if (rc == PP_RECEIVED_END)
			return pp_fail(err, PP_ERR_SYSTEM, "control hung up during the greeting (is it "
				"plugpull?)");
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
		send_bytes(c->socket, one, sizeof(one), deadline_ns, err) != 0 ||
		receive_bytes(c->socket, two, sizeof(two), deadline_ns, err) != 0)
		return -1;
	rc = pp_greet_agent_second(&g, key, two, three, &bytes, err);
	if (rc != 0) {
		send_bytes(c->socket, three, bytes, deadline_ns, NULL); /* tells control why; best effort */
		return -1;
	}
	if (send_bytes(c->socket, three, bytes, deadline_ns, err) != 0 ||
		receive_bytes(c->socket, four, sizeof(four), deadline_ns, err) != 0)
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
	if (pp_socket_connect(address, port, deadline_ns, &c->socket, err) != 0 ||
		greet(c, key, deadline_ns, err) != 0) {
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
	const struct pp_part parts[PP_PARTS_MAX] = {
		{ header, sizeof(header) }, { a, a_bytes }, { b, b_bytes }, { mac, sizeof(mac) },
	};
	int rc = 0;

	if (a_bytes > PP_WIRE_PAYLOAD_MAX || b_bytes > PP_WIRE_PAYLOAD_MAX - a_bytes)
		return pp_fail(err, PP_ERR_USAGE, "a frame '%s' of %zu bytes is too long",
			pp_frame_type_name(type), a_bytes + b_bytes);
	pthread_mutex_lock(&c->lock);
	if (!c->failed) {
		pp_wire_seal(&c->send, type, a, a_bytes, b, b_bytes, header, mac);
		if (pp_socket_send(c->socket, parts, PP_PARTS_MAX, deadline_in(SEND_TIMEOUT_MS),
			&c->why) != 0)
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
	size_t got;

	switch (pp_socket_receive(c->socket, c->in + c->in_bytes, c->in_capacity - c->in_bytes, &got,
		deadline_ns, err)) {
	case PP_RECEIVED_SOME:
		c->in_bytes += got;
		return 1;
	case PP_RECEIVED_LATE:
		return 0;
	case PP_RECEIVED_END:
		return pp_fail(err, PP_ERR_PEER, "control closed the connection");
	default:
		return -1;
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
	pp_socket_shutdown(c->socket);
}

void pp_client_close(struct pp_client *c)
{
	if (!c)
		return;
	if (c->socket >= 0)
		pp_socket_close(c->socket);
	pp_wire_release(&c->send);
	pp_wire_release(&c->receive);
	pthread_mutex_destroy(&c->lock);
	free(c->in);
	free(c);
}
