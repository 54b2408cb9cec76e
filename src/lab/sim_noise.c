/* SPDX-License-Identifier: MIT */
#include "sim_noise.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "draw.h"
#include "sim_scan.h"
#include "src/core/record.h"

#define RECORD 4096
#define SLOTS  512

uint64_t pp_sim_noise_bytes(void)
{
	return (uint64_t)SLOTS * RECORD;
}

int pp_sim_noise_init(struct pp_sim_noise *n, struct pp_sim_disk *disk, struct pp_sim_drive *drive,
	uint64_t area, uint64_t seed, struct pp_error *err)
{
	n->disk = disk;
	n->drive = drive;
	n->area = area;
	n->random = seed;
	if (pp_layout_init(&n->layout, PP_OVERWRITE, 1, 1, RECORD, RECORD, false, 0,
		pp_sim_noise_bytes(), err) != 0)
		return -1;
	n->buf = aligned_alloc(PP_CELL_BYTES, RECORD);
	n->before = calloc(n->layout.slots, sizeof(*n->before));
	if (n->buf && n->before)
		return 0;
	return pp_fail_os(err, ENOMEM, "cannot make simulated noise");
}

void pp_sim_noise_release(struct pp_sim_noise *n)
{
	pp_scan_free(n->base);
	pp_sim_net_release(&n->net);
	free(n->buf);
	free(n->print);
	free(n->before);
}

static uint8_t *slot_at(const struct pp_sim_noise *n, uint64_t slot)
{
	return n->disk->data + n->area + slot * RECORD;
}

static void draw_id(struct pp_sim_noise *n, struct pp_run_id *id)
{
	uint64_t half[2] = { draw(&n->random), draw(&n->random) };

	memcpy(id->bytes, half, sizeof(id->bytes));
}

static int source_size(void *ctx, uint32_t file, uint64_t *bytes, int32_t *os_code)
{
	(void)ctx;
	(void)file;
	*os_code = 0;
	*bytes = pp_sim_noise_bytes();
	return 0;
}

static int source_read(void *ctx, uint32_t file, uint64_t offset, void *buf, size_t bytes,
	int32_t *os_code)
{
	struct pp_sim_noise *n = ctx;

	(void)file;
	*os_code = EIO;
	return pp_sim_drive_read(n->drive, n->now_ns, buf, bytes, n->area + offset);
}

struct pp_scan *pp_sim_noise_scan(struct pp_sim_noise *n, const struct pp_scan_range *ranges,
	size_t count, struct pp_error *err)
{
	struct pp_scan_source source = { .ctx = n, .size = source_size, .read = source_read,
		.align_bytes = PP_CELL_BYTES };

	return pp_sim_scan_source(&n->layout, &source, ranges, count, err);
}

int pp_sim_noise_build(struct pp_sim_noise *n, struct pp_error *err)
{
	struct pp_record r = { .cells = RECORD / PP_CELL_BYTES };
	uint64_t slot;

	draw_id(n, &r.run);
	for (slot = 0; slot < n->layout.slots; slot++) {
		r.offset = pp_layout_offset(&n->layout, 0, slot);
		pp_record_fill(slot_at(n, slot), &r);
	}
	pp_sim_noise_base(n, pp_sim_noise_scan(n, NULL, 0, err));
	return n->base ? 0 : -1;
}

void pp_sim_noise_base(struct pp_sim_noise *n, struct pp_scan *scan)
{
	pp_scan_free(n->base);
	n->base = scan;
}

/* ---- the run ------------------------------------------------------------------------------------ */

static void keep_print(struct pp_sim_noise *n, const void *buf)
{
	if (n->count == n->room) {
		uint64_t room = n->room ? 2 * n->room : 256;
		uint64_t *grown = realloc(n->print, room * sizeof(*grown));

		n->ok &= grown != NULL;
		if (!grown)
			return;
		n->print = grown;
		n->room = room;
	}
	n->print[n->count++] = XXH3_64bits(buf, RECORD);
}

static int64_t noise_write(void *ctx, const void *buf, uint32_t bytes, uint64_t offset,
	int64_t *os_code)
{
	struct pp_sim_noise *n = ctx;

	*os_code = EIO;
	keep_print(n, buf);
	n->write = (struct pp_sim_drive_write){ .data = buf, .bytes = bytes,
		.offset = n->area + offset };
	if (pp_sim_drive_submit(n->drive, n->now_ns, &n->write) != 0)
		return -1;
	n->busy = true;
	n->end_ns = n->now_ns + (int64_t)between(&n->random, 14000, 55000);
	return bytes;
}

static int64_t noise_now(void *ctx)
{
	return ((struct pp_sim_noise *)ctx)->now_ns;
}

static void noise_ack(void *ctx, uint32_t lane, uint64_t first, uint64_t last)
{
	struct pp_sim_noise *n = ctx;
	struct pp_ledger_entry e = { .type = PP_LEDGER_ACK, .a = first, .b = last, .c = lane };

	pp_sim_net_send(&n->net, n->now_ns, &e);
}

void pp_sim_noise_start(struct pp_sim_noise *n, struct pp_run *run, int64_t now_ns,
	int64_t delay_ns_max)
{
	struct pp_ledger_entry mark = { .type = PP_LEDGER_MARK, .small = PP_MARK_WRITING,
		.t_ns = now_ns };
	struct pp_lane_io io = { .ctx = n, .write = noise_write, .now_ns = noise_now };
	struct pp_lane_peer peer = { .ctx = n, .ack = noise_ack };
	uint64_t slot;

	n->now_ns = now_ns;
	n->busy = false;
	n->ok = true;
	n->count = n->heard = 0;
	for (slot = 0; slot < n->layout.slots; slot++)
		n->before[slot] = XXH3_64bits(slot_at(n, slot), RECORD);
	draw_id(n, &n->run_id);
	pp_sim_net_start(&n->net, draw(&n->random), delay_ns_max);
	pp_sim_net_note(&n->net, &mark);
	pp_lane_init(&n->lane, 0, &n->layout, pp_method_find("direct"), &n->run_id, 0, &io, &peer, run,
		n->buf, NULL);
}

int64_t pp_sim_noise_due_ns(const struct pp_sim_noise *n)
{
	int64_t due_ns = pp_sim_net_due_ns(&n->net);

	return n->busy && n->end_ns < due_ns ? n->end_ns : due_ns;
}

static void hear(struct pp_sim_noise *n)
{
	const struct pp_ledger_entry *e;
	struct pp_error err;

	while ((e = pp_sim_net_hear(&n->net, n->now_ns)))
		n->heard = e->b;
	while ((e = pp_sim_net_echoed(&n->net, n->now_ns)))
		(void)pp_lane_echo(&n->lane, e->b, &err);
}

void pp_sim_noise_advance(struct pp_sim_noise *n, int64_t now_ns)
{
	enum pp_lane_status status = PP_LANE_MORE;

	n->now_ns = now_ns;
	if (n->busy && n->end_ns <= now_ns) {
		n->ok &= pp_sim_drive_complete(n->drive, now_ns, &n->write) == 0;
		n->busy = false;
	}
	hear(n);
	while (status == PP_LANE_MORE && !n->busy)
		status = pp_lane_step(&n->lane);
}

void pp_sim_noise_cut(struct pp_sim_noise *n, int64_t now_ns)
{
	n->busy = false;
	pp_sim_net_cut(&n->net);
	n->now_ns = now_ns;
	hear(n);
}

/* ---- the truth ----------------------------------------------------------------------------------- */

uint64_t pp_sim_noise_lost(const struct pp_sim_noise *n)
{
	uint64_t slot, seq, lost = 0, found;

	for (slot = 0; slot < n->layout.slots; slot++) {
		seq = pp_layout_newest(&n->layout, 0, slot, n->heard);
		if (!seq)
			continue;
		found = XXH3_64bits(slot_at(n, slot), RECORD);
		do
			seq = pp_layout_newest(&n->layout, 0, slot, seq - 1);
		while (seq && n->print[seq - 1] != found);
		lost += seq || found == n->before[slot];
	}
	return lost;
}
