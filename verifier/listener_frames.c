/* SPDX-License-Identifier: MIT
 *
 * The hot path. All frames of one recv(2) are read first; acks only advance counters in memory.
 * Then the ledgers get one entry a lane, each is flushed once, and each lane one echo: so the price
 * of an ack is its MAC, and write(2) and send(2) are shared by all that came together.
 */
#include <stdlib.h>
#include <string.h>

#include "ledger_format.h"
#include "listener_priv.h"

struct binding *session_binding(struct session *s, uint32_t run_index)
{
	size_t i;

	for (i = 0; i < s->binding_count; i++)
		if (s->bindings[i]->run_index == run_index)
			return s->bindings[i];
	return NULL;
}

void binding_free(struct binding *b)
{
	if (!b)
		return;
	free(b->acked);
	free(b->pending_first);
	free(b->dirty);
	free(b);
}

/* The run is void from here on. Nothing of it is echoed any more, so its writer stalls. */
static void ledger_broke(struct pp_listener *l, struct session *s, struct binding *b, int64_t t_ns,
	const struct pp_error *why)
{
	struct pp_event *ev;
	uint32_t i;

	for (i = 0; i < b->dirty_count; i++) {
		uint32_t lane = b->dirty[i];

		b->acks_dropped += b->acked[lane] + 1 - b->pending_first[lane];
		b->acked[lane] = b->pending_first[lane] - 1;
		b->pending_first[lane] = 0;
	}
	b->dirty_count = 0;
	if (b->ledger_failed)
		return;
	b->ledger_failed = true;
	ev = listener_push(l, s, PP_EVENT_LEDGER, t_ns, NULL, 0);
	if (ev) {
		ev->run_index = b->run_index;
		ev->error = *why;
	}
}

static int settle_ledger(struct binding *b, int64_t t_ns, struct pp_error *err)
{
	uint32_t i;

	for (i = 0; i < b->dirty_count; i++) {
		uint32_t lane = b->dirty[i];

		if (pp_ledger_ack(b->ledger, t_ns, lane, b->pending_first[lane], b->acked[lane],
			err) != 0)
			return -1;
	}
	return pp_ledger_flush(b->ledger, err);
}

static void settle_binding(struct pp_listener *l, struct session *s, struct binding *b, int64_t t_ns)
{
	struct pp_error err;
	uint32_t i;

	if (!b->ledger || b->ledger_failed)
		return;
	if (settle_ledger(b, t_ns, &err) != 0) {
		ledger_broke(l, s, b, t_ns, &err);
		return;
	}
	for (i = 0; i < b->dirty_count; i++) {
		uint32_t lane = b->dirty[i];
		struct pp_echo echo = { .run_index = b->run_index, .lane = lane,
			.last = b->acked[lane] };
		uint8_t out[PP_ECHO_BYTES];

		b->acks += b->acked[lane] + 1 - b->pending_first[lane];
		b->pending_first[lane] = 0;
		pp_echo_put(&echo, out);
		session_queue(l, s, PP_FRAME_ECHO, out, sizeof(out), NULL, 0);
	}
	if (b->dirty_count)
		b->t_last_ack_ns = t_ns;
	b->dirty_count = 0;
}

static int take_ack(struct session *s, const struct pp_frame *frame, struct pp_error *err)
{
	struct pp_ack ack;
	struct binding *b;

	if (pp_ack_parse(frame, &ack, err) != 0)
		return -1;
	b = session_binding(s, ack.run_index);
	if (!b)
		return pp_fail(err, PP_ERR_EVIDENCE, "an ack of run %u, which was not ordered",
			ack.run_index);
	if (!b->ledger || b->ledger_failed) {
		b->acks_dropped++;
		return 0;
	}
	if (pp_ledger_ack_check(b->acked, b->lanes, ack.lane, ack.first, ack.last, err) != 0)
		return -1;
	b->acked[ack.lane] = ack.last;
	if (b->pending_first[ack.lane] == 0) {
		b->pending_first[ack.lane] = ack.first;
		b->dirty[b->dirty_count++] = ack.lane;
	}
	return 0;
}

/* A frame that no ledger holds by itself still shows that the machine lived. */
static void note_frame(struct pp_listener *l, struct session *s, int64_t t_ns)
{
	struct pp_error err;
	size_t i;

	for (i = 0; i < s->binding_count; i++) {
		struct binding *b = s->bindings[i];

		if (b->ledger && !b->ledger_failed && !b->beaten &&
			pp_ledger_frame(b->ledger, t_ns, &err) != 0)
			ledger_broke(l, s, b, t_ns, &err);
		b->beaten = false;
	}
}

static int take_beat(struct pp_listener *l, struct session *s, const struct pp_frame *frame,
	int64_t t_ns, struct pp_error *err)
{
	struct pp_beat_disk disk;
	struct pp_beat beat;
	struct pp_error broke;
	uint32_t i;

	if (pp_beat_parse(frame, &beat, err) != 0)
		return -1;
	for (i = 0; i < beat.disks; i++) {
		struct binding *b;

		pp_beat_disk(&beat, i, &disk);
		b = session_binding(s, disk.run_index);
		if (!b || !b->ledger || b->ledger_failed)
			continue;
		b->beaten = true;
		b->t_last_beat_ns = t_ns;
		b->writes = disk.writes;
		b->sectors_written = disk.sectors_written;
		b->flushes = disk.flushes;
		if (pp_ledger_beat(b->ledger, t_ns, disk.writes, disk.sectors_written, disk.flushes,
			&broke) != 0)
			ledger_broke(l, s, b, t_ns, &broke);
	}
	note_frame(l, s, t_ns);
	return 0;
}

static int take_reply(struct pp_listener *l, struct session *s, const struct pp_frame *frame,
	int64_t t_ns, struct pp_error *err)
{
	struct pp_reply reply;

	if (pp_reply_parse(frame, &reply, err) != 0)
		return -1;
	listener_push_reply(l, s, frame->type == PP_FRAME_DATA ? PP_EVENT_DATA : PP_EVENT_RESPONSE,
		t_ns, &reply);
	note_frame(l, s, t_ns);
	return 0;
}

static int take_hello(struct pp_listener *l, struct session *s, const struct pp_frame *frame,
	int64_t t_ns, struct pp_error *err)
{
	if (frame->type != PP_FRAME_HELLO)
		return pp_fail(err, PP_ERR_PEER, "the agent's first frame is '%s', expected 'hello'",
			pp_frame_type_name(frame->type));
	s->stage = STAGE_OPEN;
	s->t_connected_ns = t_ns;
	l->open_count++;
	listener_push(l, s, PP_EVENT_CONNECTED, t_ns, frame->payload, frame->bytes);
	return 0;
}

static int take_frame(struct pp_listener *l, struct session *s, const struct pp_frame *frame,
	int64_t t_ns, struct pp_error *err)
{
	s->t_last_ns = t_ns;
	if (s->stage == STAGE_HELLO)
		return take_hello(l, s, frame, t_ns, err);
	switch (frame->type) {
	case PP_FRAME_ACK:
		return take_ack(s, frame, err);
	case PP_FRAME_BEAT:
		return take_beat(l, s, frame, t_ns, err);
	case PP_FRAME_RESPONSE:
	case PP_FRAME_DATA:
		return take_reply(l, s, frame, t_ns, err);
	case PP_FRAME_NOTE:
		listener_push(l, s, PP_EVENT_NOTE, t_ns, frame->payload, frame->bytes);
		note_frame(l, s, t_ns);
		return 0;
	case PP_FRAME_BYE:
		note_frame(l, s, t_ns);
		return 0;
	default:
		return pp_fail(err, PP_ERR_PEER, "an agent does not send frames of type '%s' (%u)",
			pp_frame_type_name(frame->type), frame->type);
	}
}

int session_frames(struct pp_listener *l, struct session *s, const uint8_t *data, size_t bytes,
	int64_t t_ns, size_t *used, size_t *need, struct pp_error *err)
{
	struct pp_frame frame;
	size_t at = 0, one, i;
	int rc;

	for (;;) {
		rc = pp_wire_open(&s->receive, data + at, bytes - at, &frame, &one, need, err);
		if (rc <= 0)
			break;
		at += one;
		rc = take_frame(l, s, &frame, t_ns, err);
		if (rc != 0)
			break;
	}
	for (i = 0; i < s->binding_count; i++)
		settle_binding(l, s, s->bindings[i], t_ns);
	session_flush(l, s);
	*used = at;
	return rc;
}

void binding_let_go(struct session *s, struct binding *b, enum pp_close how, int64_t t_ns)
{
	struct pp_error err;

	if (!b->ledger)
		return;
	/* A ledger that fails here is failed for its owner to see; there is nothing to echo. */
	if (pp_ledger_frame(b->ledger, s->t_last_ns, &err) == 0 && how != PP_CLOSE_NOT)
		pp_ledger_closed(b->ledger, t_ns, how, &err);
	pp_ledger_flush(b->ledger, &err);
	b->ledger = NULL;
}
