/* SPDX-License-Identifier: MIT
 *
 * Goal: frames are byte for byte what wire.h says (a program of another system must interoperate),
 * and whatever is not the next frame of this connection is refused.
 * Method: golden bytes computed outside this code base; every single flipped bit; replay, reorder,
 * splice, reflection; the greeting with right and wrong keys and versions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "src/core/le.h"
#include "src/core/wire.h"

static struct pp_key key;
static struct pp_wire agent_send, agent_receive, control_send, control_receive;

static void greet_all(void)
{
	uint8_t one[PP_GREET1_BYTES], two[PP_GREET2_BYTES], three[PP_GREET3_BYTES];
	uint8_t four[PP_GREET4_BYTES];
	struct pp_greeting agent, control;
	struct pp_error err;
	size_t n;

	assert_int_equal(pp_greet_agent_first(&agent, one, &err), 0);
	assert_int_equal(pp_greet_control_first(&control, &key, one, two, &n, &err), 0);
	assert_int_equal(n, PP_GREET2_BYTES);
	assert_int_equal(pp_greet_agent_second(&agent, &key, two, three, &n, &err), 0);
	assert_int_equal(n, PP_GREET3_BYTES);
	assert_int_equal(pp_greet_control_third(&control, &key, three, four, &control_send,
		&control_receive, &err), 0);
	assert_int_equal(pp_greet_agent_fourth(&agent, &key, four, &agent_send, &agent_receive, &err),
		0);
}

/* The MACs and proofs were computed with Python's hmac module from the text of wire.h alone. */
#include "wire_golden.h"

static void golden_frames(void **state)
{
	struct pp_wire wire;
	uint8_t out[256];
	size_t i, n;

	(void)state;
	pp_mac_init(&wire.mac, golden_key, sizeof(golden_key));
	wire.counter = 0;
	for (i = 0; i < sizeof(golden_frame) / sizeof(golden_frame[0]); i++) {
		n = pp_wire_pack(&wire, golden_frame[i].type, golden_frame[i].payload,
			golden_frame[i].payload_bytes, out);
		assert_int_equal(n, golden_frame[i].bytes);
		assert_memory_equal(out, golden_frame[i].frame, n);
	}
}

static void golden_payloads(void **state)
{
	struct pp_beat_disk disk = { .run_index = 2, .writes = 3, .sectors_written = 4, .flushes = 5 };
	struct pp_ack ack = { .run_index = 1, .lane = 2, .first = 0x0102030405060708, .last = 9 };
	struct pp_echo echo = { .run_index = 1, .lane = 2, .last = 0xff };
	uint8_t out[PP_BEAT_HEAD_BYTES + PP_BEAT_DISK_BYTES];

	(void)state;
	pp_ack_put(&ack, out);
	assert_memory_equal(out, golden_frame[0].payload, PP_ACK_BYTES);
	pp_echo_put(&echo, out);
	assert_memory_equal(out, golden_frame[1].payload, PP_ECHO_BYTES);
	assert_int_equal(pp_beat_put(0x1122, &disk, 1, out), sizeof(out));
	assert_memory_equal(out, golden_frame[2].payload, sizeof(out));
}

static void golden_greeting(void **state)
{
	struct pp_greeting g;
	struct pp_wire send, receive;
	struct pp_error err;
	struct pp_key k;
	uint8_t three[PP_GREET3_BYTES], four[PP_GREET4_BYTES] = { 0 }, out[64];
	size_t n;

	(void)state;
	memcpy(k.bytes, golden_key, sizeof(k.bytes));
	memcpy(g.transcript, golden_greet1, PP_GREET1_BYTES);
	assert_int_equal(pp_greet_agent_second(&g, &k, golden_greet2, three, &n, &err), 0);
	assert_memory_equal(three, golden_greet3, PP_GREET3_BYTES);
	assert_int_equal(pp_greet_agent_fourth(&g, &k, four, &send, &receive, &err), 0);
	pp_wire_pack(&send, PP_FRAME_BYE, NULL, 0, out);
	assert_memory_equal(out, golden_bye_to_control, sizeof(golden_bye_to_control));
	pp_wire_pack(&receive, PP_FRAME_BYE, NULL, 0, out);
	assert_memory_equal(out, golden_bye_to_agent, sizeof(golden_bye_to_agent));
}

static void frames_travel(void **state)
{
	uint8_t payload[100], out[4096];
	struct pp_frame frame;
	struct pp_error err;
	size_t n = 0, used, i, at = 0;

	(void)state;
	greet_all();
	for (i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)i;
	for (i = 0; i < 20; i++)
		n += pp_wire_pack(&agent_send, PP_FRAME_DATA, payload, i * 5, out + n);
	for (i = 0; i < 20; i++) {
		assert_int_equal(pp_wire_open(&control_receive, out + at, n - at, &frame, &used, NULL,
			&err), 1);
		assert_int_equal(frame.type, PP_FRAME_DATA);
		assert_int_equal(frame.bytes, i * 5);
		assert_memory_equal(frame.payload, payload, i * 5);
		at += used;
	}
	assert_int_equal(at, n);
}

static void a_partial_frame_is_never_guessed(void **state)
{
	uint8_t out[64];
	struct pp_frame frame;
	struct pp_error err;
	size_t n, used, need, i;

	(void)state;
	greet_all();
	n = pp_wire_pack(&agent_send, PP_FRAME_ACK, "0123456789abcdefghijklmn", 24, out);
	for (i = 0; i < n; i++) {
		assert_int_equal(pp_wire_open(&control_receive, out, i, &frame, &used, &need, &err), 0);
		assert_int_equal(used, 0);
		assert_int_equal(need, i < 8 ? 8 : n);
	}
	assert_int_equal(pp_wire_open(&control_receive, out, n, &frame, &used, &need, &err), 1);
}

static void every_flipped_bit_is_seen(void **state)
{
	uint8_t out[64];
	struct pp_frame frame;
	struct pp_error err;
	size_t n, used, bit;

	(void)state;
	greet_all();
	n = pp_wire_pack(&agent_send, PP_FRAME_ACK, "0123456789abcdefghijklmn", 24, out);
	for (bit = 0; bit < 8 * n; bit++) {
		struct pp_wire fresh = control_receive;

		out[bit / 8] ^= (uint8_t)(1u << bit % 8);
		/* a longer length only waits for more; it can never be taken for a frame */
		assert_int_not_equal(pp_wire_open(&fresh, out, n, &frame, &used, NULL, &err), 1);
		out[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(pp_wire_open(&control_receive, out, n, &frame, &used, NULL, &err), 1);
}

static void replay_reorder_splice_reflection(void **state)
{
	uint8_t one[64], two[64], other[64];
	struct pp_frame frame;
	struct pp_error err;
	struct pp_wire w;
	size_t n, used;

	(void)state;
	greet_all();
	pp_wire_pack(&agent_send, PP_FRAME_NOTE, "a", 1, other); /* another connection's first */
	greet_all();
	n = pp_wire_pack(&agent_send, PP_FRAME_NOTE, "a", 1, one);
	pp_wire_pack(&agent_send, PP_FRAME_NOTE, "a", 1, two);
	w = control_receive;
	assert_int_equal(pp_wire_open(&w, two, n, &frame, &used, NULL, &err), -1); /* dropped one */
	w = control_receive;
	assert_int_equal(pp_wire_open(&w, other, n, &frame, &used, NULL, &err), -1);
	w = agent_receive;
	assert_int_equal(pp_wire_open(&w, one, n, &frame, &used, NULL, &err), -1); /* own words */
	assert_int_equal(pp_wire_open(&control_receive, one, n, &frame, &used, NULL, &err), 1);
	w = control_receive;
	assert_int_equal(pp_wire_open(&w, one, n, &frame, &used, NULL, &err), -1); /* replay */
	assert_int_equal(err.class, PP_ERR_PEER);
	assert_int_equal(pp_wire_open(&control_receive, two, n, &frame, &used, NULL, &err), 1);
}

static void absurd_headers_are_refused_at_once(void **state)
{
	uint8_t header[8] = { 0 };
	struct pp_frame frame;
	struct pp_error err;
	size_t used;

	(void)state;
	greet_all();
	le32_put(header, PP_WIRE_PAYLOAD_MAX);
	assert_int_equal(pp_wire_open(&control_receive, header, 8, &frame, &used, NULL, &err), 0);
	le32_put(header, PP_WIRE_PAYLOAD_MAX + 1);
	assert_int_equal(pp_wire_open(&control_receive, header, 8, &frame, &used, NULL, &err), -1);
	le32_put(header, UINT32_MAX);
	assert_int_equal(pp_wire_open(&control_receive, header, 8, &frame, &used, NULL, &err), -1);
	le32_put(header, 0);
	header[7] = 1;
	assert_int_equal(pp_wire_open(&control_receive, header, 8, &frame, &used, NULL, &err), -1);
}

static void wrong_key_is_said_on_both_sides(void **state)
{
	uint8_t one[PP_GREET1_BYTES], two[PP_GREET2_BYTES], three[PP_GREET3_BYTES];
	uint8_t four[PP_GREET4_BYTES];
	struct pp_key wrong = { { 1 } };
	struct pp_greeting agent, control;
	struct pp_error err;
	struct pp_wire s, r;
	size_t n;

	(void)state;
	pp_greet_agent_first(&agent, one, &err);
	assert_int_equal(pp_greet_control_first(&control, &key, one, two, &n, &err), 0);
	assert_int_equal(pp_greet_agent_second(&agent, &wrong, two, three, &n, &err), -1);
	assert_non_null(strstr(err.text, "wrong key"));
	assert_int_equal(n, PP_GREET3_BYTES); /* so that control hears of it */
	assert_int_equal(pp_greet_control_third(&control, &key, three, four, &s, &r, &err), -1);
	assert_non_null(strstr(err.text, "wrong key"));
	/* an agent that does not check control first is refused as well, and told so */
	memset(three, 0, sizeof(three));
	assert_int_equal(pp_greet_control_third(&control, &key, three, four, &s, &r, &err), -1);
	assert_non_null(strstr(err.text, "wrong key"));
	assert_int_equal(pp_greet_agent_fourth(&agent, &wrong, four, &s, &r, &err), -1);
	assert_non_null(strstr(err.text, "wrong key"));
	/* control's own proof is not the agent's */
	memcpy(three + 8, two + 48, 32);
	assert_int_equal(pp_greet_control_third(&control, &key, three, four, &s, &r, &err), -1);
}

static void wrong_version_and_strangers(void **state)
{
	uint8_t one[PP_GREET1_BYTES], two[PP_GREET2_BYTES], three[PP_GREET3_BYTES];
	struct pp_greeting agent, control;
	struct pp_error err;
	size_t n;

	(void)state;
	pp_greet_agent_first(&agent, one, &err);
	le32_put(one + 8, 2);
	assert_int_equal(pp_greet_control_first(&control, &key, one, two, &n, &err), -1);
	assert_non_null(strstr(err.text, "version 2"));
	assert_int_equal(n, PP_GREET2_BYTES);
	assert_int_equal(pp_greet_agent_second(&agent, &key, two, three, &n, &err), -1);
	assert_non_null(strstr(err.text, "version"));
	pp_greet_control_busy(two);
	assert_int_equal(pp_greet_agent_second(&agent, &key, two, three, &n, &err), -1);
	assert_non_null(strstr(err.text, "too many"));
	memcpy(one, "GET / HT", 8);
	assert_int_equal(pp_greet_control_first(&control, &key, one, two, &n, &err), -1);
	assert_int_equal(n, 0);
	memcpy(two, "HTTP/1.1", 8);
	assert_int_equal(pp_greet_agent_second(&agent, &key, two, three, &n, &err), -1);
	assert_non_null(strstr(err.text, "not plugpull"));
}

static void payload_sizes_are_exact(void **state)
{
	uint8_t bytes[64] = { 0 };
	struct pp_frame frame = { .payload = bytes };
	struct pp_reply reply;
	struct pp_error err;
	struct pp_echo echo;
	struct pp_beat beat;
	struct pp_ack ack;
	uint32_t n;

	(void)state;
	for (n = 0; n < 64; n++) {
		frame.bytes = n;
		frame.type = PP_FRAME_ACK;
		assert_int_equal(pp_ack_parse(&frame, &ack, &err), n == PP_ACK_BYTES ? 0 : -1);
		assert_int_equal(pp_echo_parse(&frame, &echo, &err), n == PP_ECHO_BYTES ? 0 : -1);
		le32_put(bytes + 8, 1);
		assert_int_equal(pp_beat_parse(&frame, &beat, &err), n == 40 ? 0 : -1);
		le32_put(bytes + 8, 0);
		assert_int_equal(pp_beat_parse(&frame, &beat, &err), n == 12 ? 0 : -1);
		le32_put(bytes + 8, 0x80000001u);
		assert_int_equal(pp_beat_parse(&frame, &beat, &err), -1);
		frame.type = PP_FRAME_RESPONSE;
		assert_int_equal(pp_reply_parse(&frame, &reply, &err), n >= 5 ? 0 : -1);
		frame.type = PP_FRAME_DATA;
		assert_int_equal(pp_reply_parse(&frame, &reply, &err), n >= 4 ? 0 : -1);
	}
	assert_string_equal(pp_frame_type_name(PP_FRAME_ACK), "ack");
	assert_string_equal(pp_frame_type_name(0), "unknown");
	assert_string_equal(pp_frame_type_name(99), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_frames), cmocka_unit_test(golden_payloads),
		cmocka_unit_test(golden_greeting), cmocka_unit_test(frames_travel),
		cmocka_unit_test(a_partial_frame_is_never_guessed),
		cmocka_unit_test(every_flipped_bit_is_seen),
		cmocka_unit_test(replay_reorder_splice_reflection),
		cmocka_unit_test(absurd_headers_are_refused_at_once),
		cmocka_unit_test(wrong_key_is_said_on_both_sides),
		cmocka_unit_test(wrong_version_and_strangers),
		cmocka_unit_test(payload_sizes_are_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
