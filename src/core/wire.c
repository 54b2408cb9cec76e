/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <assert.h>
#include <string.h>

#include "le.h"

static const char magic[8] = { 'p', 'l', 'u', 'g', 'p', 'u', 'l', 'l' };

enum { AT_VERSION = 8, AT_STATUS = 12, AT_NONCE = 16, AT_PROOF2 = 48, AT_PROOF3 = 8 };

/* Labels keep the four uses of the shared key apart: 16 bytes each, zero padded. */
static const char label_control[16] = "proof: control";
static const char label_agent[16] = "proof: agent";
static const char label_to_control[16] = "to control";
static const char label_to_agent[16] = "to agent";

const char *pp_frame_type_name(unsigned type)
{
	static const char *const names[PP_FRAME_TYPES] = {
		[PP_FRAME_HELLO] = "hello", [PP_FRAME_REQUEST] = "request",
		[PP_FRAME_RESPONSE] = "response", [PP_FRAME_DATA] = "data", [PP_FRAME_NOTE] = "note",
		[PP_FRAME_ACK] = "ack", [PP_FRAME_ECHO] = "echo", [PP_FRAME_BEAT] = "beat",
		[PP_FRAME_BYE] = "bye",
	};

	return type < PP_FRAME_TYPES && names[type] ? names[type] : "unknown";
}

/* ---- one direction ------------------------------------------------------------------------ */
void pp_wire_release(struct pp_wire *wire)
{
	pp_mac_release(&wire->mac);
	wire->counter = 0;
}

static void frame_mac(struct pp_wire *wire, const uint8_t *header, const void *a, size_t a_bytes,
	const void *b, size_t b_bytes, uint8_t mac[PP_WIRE_MAC_BYTES])
{
	uint8_t head[8 + PP_WIRE_HEADER_BYTES];

	le64_put(head, wire->counter++);
	memcpy(head + 8, header, PP_WIRE_HEADER_BYTES);
	pp_mac_update(&wire->mac, head, sizeof(head));
	pp_mac_update(&wire->mac, a, a_bytes);
	pp_mac_update(&wire->mac, b, b_bytes);
	pp_mac_digest(&wire->mac, mac, PP_WIRE_MAC_BYTES);
}

void pp_wire_seal(struct pp_wire *wire, uint16_t type, const void *a, size_t a_bytes, const void *b,
	size_t b_bytes, uint8_t header[PP_WIRE_HEADER_BYTES], uint8_t mac[PP_WIRE_MAC_BYTES])
{
	assert(a_bytes <= PP_WIRE_PAYLOAD_MAX && b_bytes <= PP_WIRE_PAYLOAD_MAX - a_bytes);
	le32_put(header, (uint32_t)(a_bytes + b_bytes));
	le16_put(header + 4, type);
	le16_put(header + 6, 0);
	frame_mac(wire, header, a, a_bytes, b, b_bytes, mac);
}

size_t pp_wire_pack(struct pp_wire *wire, uint16_t type, const void *payload, size_t bytes,
	uint8_t *out)
{
	if (bytes)
		memcpy(out + PP_WIRE_HEADER_BYTES, payload, bytes);
	pp_wire_seal(wire, type, payload, bytes, NULL, 0, out, out + PP_WIRE_HEADER_BYTES + bytes);
	return PP_WIRE_OVERHEAD_BYTES + bytes;
}

int pp_wire_open(struct pp_wire *wire, const uint8_t *data, size_t bytes, struct pp_frame *frame,
	size_t *used, size_t *need, struct pp_error *err)
{
	uint8_t mac[PP_WIRE_MAC_BYTES];
	uint32_t payload = 0;
	size_t whole = PP_WIRE_HEADER_BYTES;

	*used = 0;
	if (bytes >= PP_WIRE_HEADER_BYTES) {
		payload = le32_get(data);
		if (payload > PP_WIRE_PAYLOAD_MAX)
			return pp_fail(err, PP_ERR_PEER, "a frame says it has %u bytes, more than the %u "
				"allowed", payload, PP_WIRE_PAYLOAD_MAX);
		if (le16_get(data + 6) != 0)
			return pp_fail(err, PP_ERR_PEER, "a frame's reserved field is not 0");
		whole = PP_WIRE_OVERHEAD_BYTES + payload;
	}
	if (need)
		*need = whole;
	if (bytes < whole)
		return 0;
	frame->type = le16_get(data + 4);
	frame->bytes = payload;
	frame->payload = data + PP_WIRE_HEADER_BYTES;
	frame_mac(wire, data, frame->payload, payload, NULL, 0, mac);
	if (!pp_mac_equal(mac, data + whole - PP_WIRE_MAC_BYTES, PP_WIRE_MAC_BYTES))
		return pp_fail(err, PP_ERR_PEER, "a frame was forged, altered, replayed or lost on the "
			"way (its code does not verify)");
	*used = whole;
	return 1;
}

/* ---- greeting ----------------------------------------------------------------------------- */
static void keyed(const struct pp_key *key, const char label[16], const struct pp_greeting *g,
	uint8_t out[PP_MAC_BYTES])
{
	struct pp_mac mac;

	pp_mac_init(&mac, key->bytes, sizeof(key->bytes));
	pp_mac_update(&mac, label, 16);
	pp_mac_update(&mac, g->transcript, sizeof(g->transcript));
	pp_mac_digest(&mac, out, PP_MAC_BYTES);
	pp_mac_release(&mac);
}

static void derive(const struct pp_key *key, const char label[16], const struct pp_greeting *g,
	struct pp_wire *wire)
{
	uint8_t direction[PP_MAC_BYTES];

	keyed(key, label, g, direction);
	pp_mac_init(&wire->mac, direction, sizeof(direction));
	wire->counter = 0;
	pp_wipe(direction, sizeof(direction));
}

static void put_head(uint8_t *out, uint32_t status)
{
	memcpy(out, magic, sizeof(magic));
	le32_put(out + AT_VERSION, PP_WIRE_VERSION);
	le32_put(out + AT_STATUS, status);
}

static int wrong_version(uint32_t theirs, const char *who, struct pp_error *err)
{
	return pp_fail(err, PP_ERR_PEER, "%s speaks version %u of the protocol, this one speaks %u: use "
		"plugpull and plugpull-dut of one release", who, theirs, PP_WIRE_VERSION);
}

int pp_greet_agent_first(struct pp_greeting *g, uint8_t out[PP_GREET1_BYTES], struct pp_error *err)
{
	put_head(out, 0);
	if (pp_random_bytes(out + AT_NONCE, 32, err) != 0)
		return -1;
	memcpy(g->transcript, out, PP_GREET1_BYTES);
	return 0;
}

static int agent_refuses(uint8_t out[PP_GREET3_BYTES], size_t *send_bytes, uint32_t status)
{
	le32_put(out, status);
	*send_bytes = PP_GREET3_BYTES;
	return -1;
}

int pp_greet_agent_second(struct pp_greeting *g, const struct pp_key *key,
	const uint8_t in[PP_GREET2_BYTES], uint8_t out[PP_GREET3_BYTES], size_t *send_bytes,
	struct pp_error *err)
{
	uint8_t proof[PP_MAC_BYTES];

	memset(out, 0, PP_GREET3_BYTES);
	*send_bytes = 0;
	if (memcmp(in, magic, sizeof(magic)) != 0)
		return pp_fail(err, PP_ERR_PEER, "what answers there is not plugpull");
	if (le32_get(in + AT_STATUS) == PP_GREET_BUSY)
		return pp_fail(err, PP_ERR_PEER, "control has too many connections");
	if (le32_get(in + AT_VERSION) != PP_WIRE_VERSION ||
		le32_get(in + AT_STATUS) == PP_GREET_WRONG_VERSION) {
		wrong_version(le32_get(in + AT_VERSION), "control", err);
		return agent_refuses(out, send_bytes, PP_GREET_WRONG_VERSION);
	}
	if (le32_get(in + AT_STATUS) != PP_GREET_OK)
		return pp_fail(err, PP_ERR_PEER, "control refused for a reason unknown here (%u)",
			le32_get(in + AT_STATUS));
	memcpy(g->transcript + PP_GREET1_BYTES, in, 48);
	keyed(key, label_control, g, proof);
	if (!pp_mac_equal(proof, in + AT_PROOF2, sizeof(proof))) {
		pp_fail(err, PP_ERR_PEER, "wrong key: control has another key than this agent");
		return agent_refuses(out, send_bytes, PP_GREET_WRONG_KEY);
	}
	keyed(key, label_agent, g, out + AT_PROOF3);
	*send_bytes = PP_GREET3_BYTES;
	return 0;
}

int pp_greet_agent_fourth(const struct pp_greeting *g, const struct pp_key *key,
	const uint8_t in[PP_GREET4_BYTES], struct pp_wire *send, struct pp_wire *receive,
	struct pp_error *err)
{
	if (le32_get(in) == PP_GREET_WRONG_KEY)
		return pp_fail(err, PP_ERR_PEER, "wrong key: control does not accept this agent's key");
	if (le32_get(in) != PP_GREET_OK)
		return pp_fail(err, PP_ERR_PEER, "control refused for a reason unknown here (%u)",
			le32_get(in));
	derive(key, label_to_control, g, send);
	derive(key, label_to_agent, g, receive);
	return 0;
}

void pp_greet_control_busy(uint8_t out[PP_GREET2_BYTES])
{
	memset(out, 0, PP_GREET2_BYTES);
	put_head(out, PP_GREET_BUSY);
}

int pp_greet_control_first(struct pp_greeting *g, const struct pp_key *key,
	const uint8_t in[PP_GREET1_BYTES], uint8_t out[PP_GREET2_BYTES], size_t *send_bytes,
	struct pp_error *err)
{
	memset(out, 0, PP_GREET2_BYTES);
	*send_bytes = 0;
	if (memcmp(in, magic, sizeof(magic)) != 0)
		return pp_fail(err, PP_ERR_PEER, "what connected is not a plugpull agent");
	*send_bytes = PP_GREET2_BYTES;
	if (le32_get(in + AT_VERSION) != PP_WIRE_VERSION) {
		put_head(out, PP_GREET_WRONG_VERSION);
		return wrong_version(le32_get(in + AT_VERSION), "the agent", err);
	}
	put_head(out, PP_GREET_OK);
	if (pp_random_bytes(out + AT_NONCE, 32, err) != 0) {
		*send_bytes = 0;
		return -1;
	}
	memcpy(g->transcript, in, PP_GREET1_BYTES);
	memcpy(g->transcript + PP_GREET1_BYTES, out, 48);
	keyed(key, label_control, g, out + AT_PROOF2);
	return 0;
}

int pp_greet_control_third(const struct pp_greeting *g, const struct pp_key *key,
	const uint8_t in[PP_GREET3_BYTES], uint8_t out[PP_GREET4_BYTES], struct pp_wire *send,
	struct pp_wire *receive, struct pp_error *err)
{
	uint8_t proof[PP_MAC_BYTES];

	memset(out, 0, PP_GREET4_BYTES);
	le32_put(out, PP_GREET_WRONG_KEY);
	if (le32_get(in) == PP_GREET_WRONG_KEY)
		return pp_fail(err, PP_ERR_PEER, "wrong key: the agent says it has another key than "
			"control");
	if (le32_get(in) != PP_GREET_OK)
		return pp_fail(err, PP_ERR_PEER, "the agent refused (%u)", le32_get(in));
	keyed(key, label_agent, g, proof);
	if (!pp_mac_equal(proof, in + AT_PROOF3, sizeof(proof)))
		return pp_fail(err, PP_ERR_PEER, "wrong key: the agent has another key than control");
	le32_put(out, PP_GREET_OK);
	derive(key, label_to_control, g, receive);
	derive(key, label_to_agent, g, send);
	return 0;
}

/* ---- payloads ----------------------------------------------------------------------------- */
static int wrong_size(const struct pp_frame *frame, struct pp_error *err)
{
	return pp_fail(err, PP_ERR_PEER, "a frame '%s' of %u bytes has the wrong size",
		pp_frame_type_name(frame->type), frame->bytes);
}

void pp_ack_put(const struct pp_ack *ack, uint8_t out[PP_ACK_BYTES])
{
	le32_put(out, ack->run_index);
	le32_put(out + 4, ack->lane);
	le64_put(out + 8, ack->first);
	le64_put(out + 16, ack->last);
}

int pp_ack_parse(const struct pp_frame *frame, struct pp_ack *ack, struct pp_error *err)
{
	if (frame->bytes != PP_ACK_BYTES)
		return wrong_size(frame, err);
	ack->run_index = le32_get(frame->payload);
	ack->lane = le32_get(frame->payload + 4);
	ack->first = le64_get(frame->payload + 8);
	ack->last = le64_get(frame->payload + 16);
	return 0;
}

void pp_echo_put(const struct pp_echo *echo, uint8_t out[PP_ECHO_BYTES])
{
	le32_put(out, echo->run_index);
	le32_put(out + 4, echo->lane);
	le64_put(out + 8, echo->last);
}

int pp_echo_parse(const struct pp_frame *frame, struct pp_echo *echo, struct pp_error *err)
{
	if (frame->bytes != PP_ECHO_BYTES)
		return wrong_size(frame, err);
	echo->run_index = le32_get(frame->payload);
	echo->lane = le32_get(frame->payload + 4);
	echo->last = le64_get(frame->payload + 8);
	return 0;
}

size_t pp_beat_put(uint64_t agent_ns, const struct pp_beat_disk *disks, uint32_t count, uint8_t *out)
{
	uint8_t *at = out + PP_BEAT_HEAD_BYTES;
	uint32_t i;

	assert(count <= PP_BEAT_DISKS_MAX);
	le64_put(out, agent_ns);
	le32_put(out + 8, count);
	for (i = 0; i < count; i++, at += PP_BEAT_DISK_BYTES) {
		le32_put(at, disks[i].run_index);
		le64_put(at + 4, disks[i].writes);
		le64_put(at + 12, disks[i].sectors_written);
		le64_put(at + 20, disks[i].flushes);
	}
	return (size_t)(at - out);
}

int pp_beat_parse(const struct pp_frame *frame, struct pp_beat *beat, struct pp_error *err)
{
	if (frame->bytes < PP_BEAT_HEAD_BYTES)
		return wrong_size(frame, err);
	beat->agent_ns = le64_get(frame->payload);
	beat->disks = le32_get(frame->payload + 8);
	beat->at = frame->payload + PP_BEAT_HEAD_BYTES;
	if (beat->disks > PP_BEAT_DISKS_MAX ||
		frame->bytes != PP_BEAT_HEAD_BYTES + beat->disks * PP_BEAT_DISK_BYTES)
		return wrong_size(frame, err);
	return 0;
}

void pp_beat_disk(const struct pp_beat *beat, uint32_t index, struct pp_beat_disk *out)
{
	const uint8_t *at = beat->at + (size_t)index * PP_BEAT_DISK_BYTES;

	assert(index < beat->disks);
	out->run_index = le32_get(at);
	out->writes = le64_get(at + 4);
	out->sectors_written = le64_get(at + 12);
	out->flushes = le64_get(at + 20);
}

int pp_reply_parse(const struct pp_frame *frame, struct pp_reply *reply, struct pp_error *err)
{
	uint32_t head = frame->type == PP_FRAME_RESPONSE ? 5 : 4;

	if (frame->bytes < head)
		return wrong_size(frame, err);
	reply->id = le32_get(frame->payload);
	reply->status = frame->type == PP_FRAME_RESPONSE ? frame->payload[4] : 0;
	reply->rest = frame->payload + head;
	reply->rest_bytes = frame->bytes - head;
	return 0;
}
