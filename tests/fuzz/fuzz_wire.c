/* SPDX-License-Identifier: MIT
 *
 * Goal: no bytes from the network crash a parser, and none but the sealed ones pass.
 * Method: the first byte of an input chooses the door: a stream of frames as received, a stream of
 * payloads sealed by us (so that the fuzzer gets behind the MAC), a greeting, a kv text.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_main.h"
#include "src/core/kv.h"
#include "src/core/le.h"
#include "src/core/wire.h"

static const struct pp_key key = { { 1, 2, 3 } };

static void check_kv(const uint8_t *data, size_t bytes)
{
	struct pp_error err;
	struct pp_kv kv, again;
	struct pp_buf buf;
	size_t i;
	uint64_t u;
	int64_t n;
	bool b;

	if (pp_kv_parse(&kv, data, bytes, &err) != 0) {
		assert(kv.count == 0 && kv.text == NULL && err.text[0]);
		return;
	}
	pp_buf_init(&buf, 2 * PP_KV_BYTES_MAX);
	for (i = 0; i < kv.count; i++) {
		pp_kv_add(&buf, kv.pairs[i].key, kv.pairs[i].value);
		pp_kv_u64(&kv, kv.pairs[i].key, 0, UINT64_MAX, &u, &err);
		pp_kv_i64(&kv, kv.pairs[i].key, INT64_MIN, INT64_MAX, &n, &err);
		pp_kv_bool(&kv, kv.pairs[i].key, &b, &err);
	}
	/* what was understood is exactly what was said */
	assert(buf.bytes == bytes && (bytes == 0 || memcmp(buf.data, data, bytes) == 0));
	assert(pp_kv_parse(&again, buf.data, buf.bytes, &err) == 0 && again.count == kv.count);
	pp_kv_release(&again);
	pp_kv_release(&kv);
	pp_buf_release(&buf);
}

static void parse_all(const struct pp_frame *f)
{
	struct pp_beat_disk disk;
	struct pp_reply reply;
	struct pp_error err;
	struct pp_beat beat;
	struct pp_echo echo;
	struct pp_ack ack;
	uint32_t i;

	pp_ack_parse(f, &ack, &err);
	pp_echo_parse(f, &echo, &err);
	if (pp_reply_parse(f, &reply, &err) == 0)
		check_kv(reply.rest, reply.rest_bytes);
	if (pp_beat_parse(f, &beat, &err) == 0)
		for (i = 0; i < beat.disks; i++)
			pp_beat_disk(&beat, i, &disk);
	check_kv(f->payload, f->bytes);
}

static void as_received(const uint8_t *data, size_t bytes)
{
	struct pp_wire wire = { .counter = 0 };
	struct pp_frame frame;
	struct pp_error err;
	size_t used, need;

	pp_mac_init(&wire.mac, key.bytes, sizeof(key.bytes));
	while (pp_wire_open(&wire, data, bytes, &frame, &used, &need, &err) == 1) {
		assert(used == PP_WIRE_OVERHEAD_BYTES + frame.bytes && used <= bytes);
		parse_all(&frame);
		data += used;
		bytes -= used;
	}
}

/* Pieces of the input, each behind a type and a length, sealed and opened again. */
static void sealed(const uint8_t *data, size_t bytes)
{
	struct pp_wire send = { .counter = 0 }, receive;
	uint8_t *out = malloc(PP_WIRE_OVERHEAD_BYTES + 65536);
	struct pp_frame frame;
	struct pp_error err;
	size_t used, n;

	pp_mac_init(&send.mac, key.bytes, sizeof(key.bytes));
	receive = send;
	while (bytes >= 3) {
		n = le16_get(data + 1);
		n = n > bytes - 3 ? bytes - 3 : n;
		n = pp_wire_pack(&send, data[0], data + 3, n, out);
		assert(pp_wire_open(&receive, out, n, &frame, &used, NULL, &err) == 1 && used == n);
		assert(frame.type == data[0] && memcmp(frame.payload, data + 3, frame.bytes) == 0);
		parse_all(&frame);
		data += 3 + frame.bytes;
		bytes -= 3 + frame.bytes;
	}
	free(out);
}

static void greeting(const uint8_t *data, size_t bytes)
{
	uint8_t in[128] = { 0 }, out[128];
	struct pp_greeting g = { { 0 } };
	struct pp_wire a, b;
	struct pp_error err;
	size_t n;

	memcpy(in, data, bytes < sizeof(in) ? bytes : sizeof(in));
	pp_greet_control_first(&g, &key, in, out, &n, &err);
	/* nobody proves a key that they don't have */
	assert(pp_greet_control_third(&g, &key, in, out, &a, &b, &err) == -1);
	assert(pp_greet_agent_first(&g, out, &err) == 0);
	assert(pp_greet_agent_second(&g, &key, in, out, &n, &err) == -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static void (*const doors[])(const uint8_t *, size_t) = { as_received, sealed, greeting,
		check_kv };

	if (bytes)
		doors[data[0] % 4](data + 1, bytes - 1);
	return 0;
}

#ifndef PP_LIBFUZZER
static size_t fuzz_sample(uint64_t choice, uint8_t *out)
{
	static const char text[] = "method=fdatasync\npath=/dev/sda\nnote=a\\nb\\\\c\nlanes=4\nok=yes\n";
	struct pp_wire wire = { .counter = 0 };
	uint8_t beat[PP_BEAT_HEAD_BYTES + 2 * PP_BEAT_DISK_BYTES];
	struct pp_beat_disk disks[2] = { { 0, 1, 2, 3 }, { 1, 4, 5, 6 } };
	size_t n = pp_beat_put(choice, disks, 2, beat);

	out[0] = (uint8_t)(choice % 4);
	if (choice % 4 == 0) {
		pp_mac_init(&wire.mac, key.bytes, sizeof(key.bytes));
		n = pp_wire_pack(&wire, PP_FRAME_BEAT, beat, n, out + 1);
		return 1 + n + pp_wire_pack(&wire, PP_FRAME_NOTE, text, sizeof(text) - 1, out + 1 + n);
	}
	if (choice % 4 == 1) {
		out[1] = PP_FRAME_BEAT;
		le16_put(out + 2, (uint16_t)n);
		memcpy(out + 4, beat, n);
		return 4 + n;
	}
	if (choice % 4 == 2) {
		memset(out + 1, 0, 80);
		memcpy(out + 1, "plugpull\1", 9);
		return 81;
	}
	memcpy(out + 1, text, sizeof(text) - 1);
	return sizeof(text);
}
#endif
