/* SPDX-License-Identifier: MIT
 *
 * The bytes that one system's program hands to the other's: frames and messages of the wire, records on
 * a target, a scan of them. Built for this host and for Windows; test_golden.py compares what both make
 * with each other and with what is checked in under data/.
 *
 *	golden frames OUT           a greeting's answer, a frame of each type with a payload of real use
 *	golden target FOLDER        writes FOLDER/golden.target: records, holes, and damage of every kind
 *	golden scan FOLDER OUT      scans that file as the agent does
 *
 * Nothing here is drawn: keys, nonces, run ids and times are fixed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/campaign/orders.h"
#include "src/core/console.h"
#include "src/core/file.h"
#include "src/core/wire.h"
#include "verifier/scan_source.h"

#define LANES        2
#define RECORD_BYTES 1024
#define TARGET_BYTES (600u * RECORD_BYTES)
#define OUT_BYTES    (16u << 20)

static struct pp_error err;

/* ---- frames -------------------------------------------------------------------------------- */

static void add_frame(struct pp_wire *wire, struct pp_buf *out, uint16_t type, const void *payload,
	size_t bytes)
{
	uint8_t *frame = malloc(PP_WIRE_OVERHEAD_BYTES + bytes);

	if (frame)
		pp_buf_add(out, frame, pp_wire_pack(wire, type, payload, bytes, frame));
	else
		out->failed = true;
	free(frame);
}

static void fill_hello(struct pp_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	hello->protocol = PP_WIRE_VERSION;
	strcpy(hello->version, "0.1.0");
	strcpy(hello->commit, "abcdef012345");
	strcpy(hello->name, "Pr\xc3\xbc" "fling");
	strcpy(hello->boot_id, "6f1d2c3b-0000-8000-8000-000000000001");
	hello->uptime_ns = 123456789012345ULL;
	hello->agent_ns = 0xffffffffffULL;
	strcpy(hello->kernel, "Windows 10.0.19045");
	strcpy(hello->os, "windows");
	strcpy(hello->machine, "x86_64");
	memset(hello->sha256, 'a', 64);
	strcpy(hello->allow, "D:\\plugpull\nvolume.1A2B3C4D");
}

static int make_layout(struct pp_layout *layout)
{
	return pp_layout_init(layout, PP_OVERWRITE, LANES, 1, RECORD_BYTES, 512, false, 0, TARGET_BYTES,
		&err);
}

static void put_order(struct pp_buf *buf)
{
	struct pp_order order;

	pp_order_init(&order, PP_ORDER_RUN);
	order.index = 3;
	order.method = pp_method_find("fsync");
	memset(order.run_id.bytes, 0x5a, sizeof(order.run_id.bytes));
	if (make_layout(&order.layout) != 0 || pp_order_put(&order, buf, &err) != 0)
		buf->failed = true;
}

static void put_texts(struct pp_wire *wire, struct pp_buf *out)
{
	struct pp_note note = { .event = PP_NOTE_FAILED, .index = 3, .lane = 1, .seq = 77,
		.os_code = 0x80070005, .call = "write", .text = "cannot write 'D:/x': Access is denied" };
	struct pp_stopped stopped = { .issued = 1000, .acked = 999, .lanes_full = 1,
		.latency_count = 999, .latency_ns_p50 = 120000, .latency_ns_p99 = 450000,
		.latency_ns_max = 99999999 };
	static struct pp_hello hello;
	struct pp_buf text;

	pp_buf_init(&text, PP_KV_BYTES_MAX);
	fill_hello(&hello);
	pp_hello_put(&text, &hello);
	add_frame(wire, out, PP_FRAME_HELLO, text.data, text.bytes);
	pp_buf_clear(&text);
	put_order(&text);
	add_frame(wire, out, PP_FRAME_REQUEST, text.data, text.bytes);
	pp_buf_clear(&text);
	pp_stopped_put(&text, &stopped);
	add_frame(wire, out, PP_FRAME_RESPONSE, text.data, text.bytes);
	pp_buf_clear(&text);
	pp_note_put(&text, &note);
	add_frame(wire, out, PP_FRAME_NOTE, text.data, text.bytes);
	out->failed |= text.failed;
	pp_buf_release(&text);
}

static void put_numbers(struct pp_wire *wire, struct pp_buf *out)
{
	struct pp_beat_disk disks[2] = { { 0, 1, 8, 2 }, { 3, 0x1122334455667788ULL, 9, 0 } };
	struct pp_ack ack = { .run_index = 3, .lane = 1, .first = 5, .last = 0x0102030405060708ULL };
	struct pp_echo echo = { .run_index = 3, .lane = 1, .last = 6 };
	uint8_t bytes[PP_BEAT_HEAD_BYTES + 2 * PP_BEAT_DISK_BYTES];

	pp_ack_put(&ack, bytes);
	add_frame(wire, out, PP_FRAME_ACK, bytes, PP_ACK_BYTES);
	pp_echo_put(&echo, bytes);
	add_frame(wire, out, PP_FRAME_ECHO, bytes, PP_ECHO_BYTES);
	add_frame(wire, out, PP_FRAME_BEAT, bytes, pp_beat_put(0x1234567890ULL, disks, 2, bytes));
	add_frame(wire, out, PP_FRAME_DATA, "\0\n\r\xff", 4);
	add_frame(wire, out, PP_FRAME_BYE, NULL, 0);
}

/* The agent's answer to a control whose nonce is fixed; its own is the transcript's. */
static int put_greeting(struct pp_buf *out, const struct pp_key *key)
{
	uint8_t one[PP_GREET1_BYTES], two[PP_GREET2_BYTES], three[PP_GREET3_BYTES];
	uint8_t four[PP_GREET4_BYTES] = { 0 };
	struct pp_wire send, receive;
	struct pp_greeting g;
	size_t bytes;
	int rc;

	memset(&g, 0x33, sizeof(g));
	if (pp_greet_agent_first(&g, one, &err) != 0)
		return -1;
	memset(g.transcript + 16, 0x44, 32); /* the nonce that was drawn */
	memcpy(two, one, 8);
	memset(two + 8, 0, sizeof(two) - 8);
	two[8] = PP_WIRE_VERSION;
	memset(two + 16, 0x55, 32);
	/* A proof of zeros is a wrong one: the answer says so. */
	rc = pp_greet_agent_second(&g, key, two, three, &bytes, &err);
	if (rc == 0)
		return pp_fail(&err, PP_ERR_PEER, "a wrong proof was taken for a right one");
	pp_buf_add(out, three, bytes);
	if (pp_greet_agent_fourth(&g, key, four, &send, &receive, &err) != 0)
		return -1;
	put_texts(&send, out);
	put_numbers(&receive, out);
	pp_wire_release(&send);
	pp_wire_release(&receive);
	return 0;
}

static int save(const struct pp_buf *out, const char *path)
{
	if (out->failed)
		return pp_fail(&err, PP_ERR_SYSTEM, "no memory, or: %s", err.text);
	return pp_file_write(path, out->data, out->bytes, 0644, &err);
}

static int frames(const char *path)
{
	struct pp_key key;
	struct pp_buf out;
	size_t i;
	int rc;

	for (i = 0; i < sizeof(key.bytes); i++)
		key.bytes[i] = (uint8_t)(3 * i + 1);
	pp_buf_init(&out, OUT_BYTES);
	rc = put_greeting(&out, &key);
	if (rc == 0)
		rc = save(&out, path);
	pp_buf_release(&out);
	return rc;
}

/* ---- target and scan ------------------------------------------------------------------------- */

static void fill(const struct pp_layout *layout, uint8_t *file, uint32_t lane, uint64_t seq,
	uint32_t flags)
{
	uint64_t offset = pp_layout_offset(layout, lane, pp_layout_slot(layout, lane, seq));
	struct pp_record record = { .lane = lane, .cells = RECORD_BYTES / PP_CELL_BYTES, .flags = flags,
		.seq = seq, .offset = offset, .issued_ns = (int64_t)(1000000 * seq + lane),
		.durable = seq ? seq - 1 : 0 };

	memset(record.run.bytes, seq % 7 == 0 ? 0x77 : 0x5a, sizeof(record.run.bytes));
	pp_record_fill(file + offset, &record);
}

static uint8_t *slot(const struct pp_layout *layout, uint8_t *file, uint32_t lane, uint64_t index)
{
	return file + pp_layout_offset(layout, lane, index);
}

/* A lap and a half of records; a slot torn, one of zeros, one of FFs, one misplaced, one with a bit off. */
static int target(const char *folder)
{
	uint8_t *file = calloc(1, TARGET_BYTES);
	struct pp_layout layout;
	char path[512];
	uint64_t seq;
	uint32_t lane;
	int rc;

	if (!file || make_layout(&layout) != 0) {
		free(file);
		return -1;
	}
	for (lane = 0; lane < LANES; lane++)
		for (seq = 1; seq <= layout.slots * 3 / 2; seq++)
			fill(&layout, file, lane, seq, seq & 8 ? PP_RECORD_COMPRESSIBLE : 0);
	memcpy(slot(&layout, file, 0, 3) + 512, slot(&layout, file, 0, 4) + 512, 512);
	memset(slot(&layout, file, 0, 9), 0, RECORD_BYTES);
	memset(slot(&layout, file, 1, 9), 0xff, RECORD_BYTES);
	memcpy(slot(&layout, file, 1, 20), slot(&layout, file, 0, 20), RECORD_BYTES);
	slot(&layout, file, 1, 30)[700] ^= 0x10;
	snprintf(path, sizeof(path), "%s/golden.target", folder);
	rc = pp_file_write(path, file, TARGET_BYTES - 512, 0644, &err); /* the last slot half absent */
	free(file);
	return rc;
}

static int take(void *ctx, const void *data, size_t bytes, struct pp_error *e)
{
	struct pp_buf *out = ctx;

	pp_buf_add(out, data, bytes);
	return out->failed ? pp_fail(e, PP_ERR_SYSTEM, "no memory for a scan") : 0;
}

static int scan(const char *folder, const char *out_path)
{
	struct pp_scan_source_options options = { .align_bytes = 512 };
	struct pp_scan_source source;
	struct pp_layout layout;
	const char *paths[1];
	struct pp_buf out;
	char path[512];
	int rc;

	snprintf(path, sizeof(path), "%s/golden.target", folder);
	paths[0] = path;
	if (make_layout(&layout) != 0 ||
		pp_scan_source_open(&layout, paths, 1, &options, &source, &err) != 0)
		return -1;
	pp_buf_init(&out, OUT_BYTES);
	rc = pp_scan_make(&layout, &source, NULL, 0, take, &out, &err);
	if (rc == 0)
		rc = save(&out, out_path);
	pp_scan_source_close(&source);
	pp_buf_release(&out);
	return rc;
}

int main(int argc, char **argv)
{
	int rc = -1;

	pp_console_begin(&argc, &argv);
	pp_fail(&err, PP_ERR_USAGE, "golden frames OUT | target FOLDER | scan FOLDER OUT");
	if (argc == 3 && strcmp(argv[1], "frames") == 0)
		rc = frames(argv[2]);
	else if (argc == 3 && strcmp(argv[1], "target") == 0)
		rc = target(argv[2]);
	else if (argc == 4 && strcmp(argv[1], "scan") == 0)
		rc = scan(argv[2], argv[3]);
	if (rc != 0)
		fprintf(stderr, "golden: %s\n", err.text);
	return rc == 0 ? 0 : 2;
}
