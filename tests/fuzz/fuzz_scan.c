/* SPDX-License-Identifier: MIT
 *
 * Goal: no bytes that call themselves scan.bin make the reader, or the judge behind it, crash, hang
 * or read outside them. Method: the input is taken as a scan; a checksum that is wrong is put right
 * first, or nothing would ever get behind it. What parses is judged, as scan and as base.
 *
 * With libFuzzer or alone: see fuzz_main.h.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fuzz_main.h"
#include "src/core/le.h"
#include "verifier/oracle.h"

static struct pp_scan *parse(const uint8_t *data, size_t bytes)
{
	uint8_t *copy = malloc(bytes ? bytes : 1);
	struct pp_error err;

	if (!copy)
		abort();
	memcpy(copy, data, bytes);
	if (bytes >= 9)
		le64_put(copy + bytes - 8, XXH3_64bits(copy, bytes - 9));
	return pp_scan_parse(copy, bytes, &err);
}

/* A layout that this scan could belong to. */
static void layout_of(const struct pp_scan *scan, enum pp_workload workload, struct pp_layout *layout)
{
	uint32_t lane;

	memset(layout, 0, sizeof(*layout));
	layout->workload = workload;
	layout->lanes = scan->lanes;
	layout->group = 1;
	layout->record_bytes = scan->record_bytes;
	layout->unit_bytes = PP_CELL_BYTES;
	layout->slots = workload == PP_APPEND ? 1U << 20
		: scan->lane[0].slots / (pp_workload_renames(workload) ? 2 : 1);
	for (lane = 0; lane < scan->lanes; lane++)
		layout->base_slots[lane] = workload == PP_APPEND ? scan->lane[lane].slots
			: pp_scan_taken(scan, layout, lane);
	pp_scan_base_whole(scan, layout);
}

static void judge(const struct pp_scan *base, const struct pp_scan *scan, const struct pp_scan *again,
	enum pp_workload workload)
{
	struct pp_oracle_result result;
	struct pp_scan_range *ranges;
	struct pp_oracle_input in;
	struct pp_layout layout;
	struct pp_error err;

	layout_of(base, workload, &layout);
	if (layout.slots == 0)
		return;
	memset(&in, 0, sizeof(in));
	in.layout = &layout;
	in.base = base;
	in.scan = scan;
	in.reread[0] = again;
	in.rereads = again ? 1 : 0;
	in.acked[0] = 5;
	if (scan->run_count)
		in.run = scan->runs[scan->run_count - 1];
	if (pp_oracle_judge(&in, &result, &err) != 0)
		return;
	pp_oracle_ranges(&result, &ranges);
	free(ranges);
	pp_oracle_release(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	/* Two scans in one input: the first two bytes say where the second begins. */
	size_t cut = bytes >= 2 ? (size_t)(data[0] | data[1] << 8) : 0;
	struct pp_scan *a, *b;

	if (bytes < 2)
		return 0;
	data += 2;
	bytes -= 2;
	if (cut > bytes)
		cut = bytes;
	a = parse(data, cut);
	b = parse(data + cut, bytes - cut);
	if (a && !b)
		b = parse(data, cut);
	if (a && b && !a->sparse) {
		enum pp_workload workload;

		for (workload = PP_OVERWRITE; workload < PP_WORKLOADS; workload++)
			judge(a, b->sparse ? a : b, b->sparse ? b : NULL, workload);
	}
	pp_scan_free(a);
	pp_scan_free(b);
	return 0;
}

#ifndef PP_LIBFUZZER
struct target { uint8_t bytes[8 * 1024]; uint64_t size; bool gone; };
struct out { uint8_t *at; size_t bytes; };

static int target_size(void *ctx, uint32_t file, uint64_t *bytes, int32_t *os_code)
{
	const struct target *t = ctx;

	(void)file;
	*bytes = t->size;
	*os_code = t->gone ? 2 : 0;
	return t->gone ? -1 : 0;
}

static int target_read(void *ctx, uint32_t file, uint64_t offset, void *buf, size_t bytes,
	int32_t *os_code)
{
	(void)file;
	*os_code = 5;
	if (offset <= 3584 && offset + bytes > 3584)
		return -1;
	memcpy(buf, ((const struct target *)ctx)->bytes + offset, bytes);
	return 0;
}

static int to_out(void *ctx, const void *data, size_t bytes, struct pp_error *err)
{
	struct out *out = ctx;

	if (out->bytes + bytes > FUZZ_BYTES_MAX)
		return pp_fail(err, PP_ERR_SYSTEM, "no room");
	memcpy(out->at + out->bytes, data, bytes);
	out->bytes += bytes;
	return 0;
}

/* base; base and scan; base and re-read; as overwrite and as append */
static size_t fuzz_sample(uint64_t choice, uint8_t *data)
{
	unsigned kind = (unsigned)(choice % 6);
	struct pp_layout layout = { .workload = kind < 3 ? PP_OVERWRITE : PP_APPEND, .lanes = 1,
		.group = 1, .record_bytes = 1024, .unit_bytes = 512, .slots = 8 };
	struct target t = { .size = kind < 3 ? 8192 : 6500 };
	struct pp_scan_source source = { &t, target_size, target_read, PP_CELL_BYTES };
	struct pp_scan_range range = { 0, 2, 4 };
	struct out out = { data, 2 };
	struct pp_error err;
	size_t second;
	uint64_t slot;

	for (slot = 0; slot < 6; slot++) {
		struct pp_record r = { .run = { "a run" }, .cells = 2, .seq = slot + 1,
			.offset = slot * 1024, .durable = slot };

		if (slot % 2)
			r.run.bytes[0] = 'b';
		pp_record_fill(t.bytes + slot * 1024, &r);
	}
	memset(t.bytes + 7168, 0xff, 1024);
	t.bytes[0] ^= 1;
	if (pp_scan_make(&layout, &source, NULL, 0, to_out, &out, &err) != 0)
		return 2;
	second = out.bytes - 2;
	t.bytes[0] ^= 1;
	if (kind % 3 && pp_scan_make(&layout, &source, &range, kind % 3 == 2, to_out, &out, &err) != 0)
		return 2;
	data[0] = (uint8_t)second;
	data[1] = (uint8_t)(second >> 8);
	return out.bytes;
}
#endif
