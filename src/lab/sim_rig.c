/* SPDX-License-Identifier: MIT
 *
 * Method: one loop over simulated time. The next thing to happen is the end of a stage in the
 * kernel, the arrival of a message, a heartbeat, or the cut; after each, every lane that is not busy
 * is stepped until it is.
 */
#include "sim_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "sim_scan.h"
#include "src/core/record.h"

#define BEAT_NS   (10 * PP_SIM_MS)
#define RUN_NS    (60000 * PP_SIM_MS) /* a run that acks nothing is cut all the same */
#define OFF_NS    (12000 * PP_SIM_MS)
#define BOOT_NS   (30000 * PP_SIM_MS)

void pp_sim_say(struct pp_sim_rig *rig, const char *fmt, ...)
{
	char line[256];
	va_list ap;
	int n;

	if (!rig->trace)
		return;
	n = snprintf(line, sizeof(line), "%14.6f ms  ", (double)rig->now_ns / 1e6);
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	rig->trace(rig->trace_ctx, line);
}

void pp_sim_rig_trace(struct pp_sim_rig *rig, pp_sim_trace trace, void *ctx)
{
	rig->trace = trace;
	rig->trace_ctx = ctx;
}

void pp_sim_rig_pace(struct pp_sim_rig *rig, uint32_t records_per_s)
{
	rig->pace_per_s = records_per_s;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static int lay_out(struct pp_sim_rig *rig, struct pp_error *err)
{
	const struct pp_sim_setup *s = &rig->setup;
	bool small = s->record_bytes % 4096 != 0, sub_block = small && s->sub_block;
	uint32_t unit = small && !sub_block ? PP_CELL_BYTES : 4096;
	uint64_t window = 2 * s->group > 64 ? 2 * s->group : 64, slots = 4 * window;
	uint64_t lane_records = 2 * (s->records / s->lanes + window);

	/* Laps where slots are used again; room for a few runs where they are taken once. */
	if (pp_workload_grows(s->workload) && slots < 3 * lane_records)
		slots = 3 * lane_records;
	slots += below(&rig->random, window);
	if (sub_block)
		slots += unit / PP_CELL_BYTES; /* what the regions' borders on whole units cost */
	slots = (slots + s->group - 1) / s->group * s->group + (sub_block ? s->group : 0);
	if (pp_layout_init(&rig->layout, s->workload, s->lanes, s->group, s->record_bytes, unit,
		sub_block, 0, s->lanes * slots * s->record_bytes, err) != 0)
		return -1;
	if (s->random_order && s->workload == PP_OVERWRITE)
		rig->layout.shuffle = 1 + draw(&rig->random) / 2;
	return 0;
}

static int make_drive(struct pp_sim_rig *rig, struct pp_error *err)
{
	const struct pp_sim_setup *s = &rig->setup;
	uint64_t target_bytes = pp_sim_kernel_disk_bytes(&rig->layout);
	struct pp_sim_drive_medium medium;
	struct pp_sim_drive_config config = { .behaviour = s->behaviour,
		.size_bytes = target_bytes + (s->noise ? pp_sim_noise_bytes() : 0), .cache_bytes = s->cache_bytes,
		.destage_bytes_per_s = s->destage_bytes_per_s, .order = s->order,
		.seed = draw(&rig->random) };
	/* It has been switched on before: a drive with 0 counts nothing. */
	struct pp_sim_drive_counters used = { .power_cycles = 7, .went_down_in_order = true };

	if (pp_sim_disk_init(&rig->disk, config.size_bytes, err) != 0)
		return -1;
	pp_sim_disk_medium(&rig->disk, &medium);
	rig->drive = pp_sim_drive_new(&config, &medium, &used, err);
	if (!rig->drive)
		return -1;
	pp_sim_drive_power_on(rig->drive, rig->now_ns);
	return s->noise ? pp_sim_noise_init(&rig->noise, &rig->disk, rig->drive, target_bytes,
		draw(&rig->random), err) : 0;
}

struct pp_sim_rig *pp_sim_rig_new(const struct pp_sim_setup *setup, struct pp_error *err)
{
	struct pp_sim_rig *rig = calloc(1, sizeof(*rig));
	uint32_t i;

	if (!rig) {
		pp_fail_os(err, ENOMEM, "cannot make a simulated rig");
		return NULL;
	}
	rig->setup = *setup;
	rig->random = setup->seed;
	rig->now_ns = 1000 * PP_SIM_MS;
	if (lay_out(rig, err) != 0 || make_drive(rig, err) != 0)
		goto fail;
	rig->kernel = pp_sim_kernel_new(rig->drive, &rig->disk, &rig->layout, setup->kind, setup->fua,
		setup->barriers, err);
	if (!rig->kernel)
		goto fail;
	rig->truth = pp_sim_truth_new(rig->kernel, &rig->layout, err);
	if (!rig->truth)
		goto fail;
	for (i = 0; i < rig->layout.lanes; i++) {
		rig->lane[i].rig = rig;
		rig->lane[i].buf = aligned_alloc(PP_CELL_BYTES, setup->record_bytes);
		if (rig->lane[i].buf)
			continue;
		pp_fail_os(err, ENOMEM, "cannot make a simulated rig");
		goto fail;
	}
	return rig;
fail:
	pp_sim_rig_free(rig);
	return NULL;
}

void pp_sim_rig_free(struct pp_sim_rig *rig)
{
	uint32_t i;

	if (!rig)
		return;
	for (i = 0; i < PP_LANES_MAX; i++)
		free(rig->lane[i].buf);
	pp_scan_free(rig->base);
	pp_sim_net_release(&rig->net);
	pp_sim_noise_release(&rig->noise);
	pp_sim_truth_free(rig->truth);
	pp_sim_kernel_free(rig->kernel);
	pp_sim_drive_free(rig->drive);
	pp_sim_disk_release(&rig->disk);
	free(rig);
}

struct pp_scan *pp_sim_scan(struct pp_sim_rig *rig, const struct pp_scan_range *ranges, size_t count,
	struct pp_error *err)
{
	struct pp_scan_source source;

	pp_sim_kernel_source(rig->kernel, &source);
	return pp_sim_scan_source(&rig->layout, &source, ranges, count, err);
}

static void draw_id(struct pp_sim_rig *rig, struct pp_run_id *id)
{
	uint64_t half[2] = { draw(&rig->random), draw(&rig->random) };

	memcpy(id->bytes, half, sizeof(id->bytes));
}

static void prewrite(struct pp_sim_rig *rig)
{
	const struct pp_layout *l = &rig->layout;
	struct pp_record r = { .cells = l->record_bytes / PP_CELL_BYTES };
	uint64_t slot;

	draw_id(rig, &r.run);
	for (r.lane = 0; r.lane < l->lanes; r.lane++)
		for (slot = 0; slot < l->slots; slot++) {
			uint8_t *at = rig->disk.data +
				pp_sim_kernel_home(rig->kernel, r.lane, slot);

			r.offset = pp_layout_offset(l, r.lane, slot);
			pp_record_fill(at, &r);
			pp_sim_truth_wrote(rig->truth, r.lane, slot, at);
		}
}

static bool has_raw(const struct pp_sim_rig *rig, const struct pp_scan *scan)
{
	uint32_t lane;
	uint64_t slot;

	for (lane = 0; lane < rig->layout.lanes; lane++)
		for (slot = 0; slot < scan->lane[lane].slots; slot++)
			if (scan->lane[lane].slot[slot].kind == PP_SLOT_RAW)
				return true;
	return false;
}

/* Only a base that was found whole is used (M2.8). */
static int scan_base(struct pp_sim_rig *rig, struct pp_error *err)
{
	unsigned tries;

	for (tries = 0; tries < 8; tries++) {
		pp_scan_free(rig->base);
		rig->base = pp_sim_scan(rig, NULL, 0, err);
		if (!rig->base)
			return -1;
		if (!has_raw(rig, rig->base))
			return 0;
	}
	return pp_fail(err, PP_ERR_SYSTEM, "simulator: a new target is not whole");
}

/* M2.8: builds the target and scans it. Straight on the medium: the drive has nothing to do with
 * what a set-up left, which an orderly power cycle has made safe. */
static int build(struct pp_sim_rig *rig, struct pp_error *err)
{
	struct pp_layout *l = &rig->layout;

	pp_sim_say(rig, "set-up: the target is built");
	memset(l->base_slots, 0, sizeof(l->base_slots));
	memset(rig->disk.bad, 0, rig->disk.bytes / PP_DRIVE_SECTOR_BYTES);
	rig->disk.bad_count = 0;
	if (pp_sim_truth_begin(rig->truth, true, false, err) != 0)
		return -1;
	if (!pp_workload_grows(l->workload))
		prewrite(rig);
	pp_sim_kernel_format(rig->kernel);
	if (!pp_sim_kernel_mount(rig->kernel))
		return pp_fail(err, PP_ERR_SYSTEM, "simulator: a new file system does not mount");
	if (scan_base(rig, err) != 0)
		return -1;
	pp_sim_truth_base(rig->truth);
	rig->noise.now_ns = rig->now_ns;
	if (rig->setup.noise && pp_sim_noise_build(&rig->noise, err) != 0)
		return -1;
	rig->whole = true;
	return 0;
}

/* ---- the run --------------------------------------------------------------------------------- */

static int64_t lane_write(void *ctx, const void *buf, uint32_t bytes, uint64_t offset,
	int64_t *os_code)
{
	struct sim_lane *sl = ctx;
	struct pp_sim_rig *rig = sl->rig;
	uint64_t slot = (offset - pp_layout_offset(&rig->layout, sl->lane.lane, 0)) / bytes;

	sl->written++;
	pp_sim_truth_wrote(rig->truth, sl->lane.lane, slot, buf);
	pp_sim_say(rig, "lane %u writes record %llu into slot %llu", sl->lane.lane,
		(unsigned long long)sl->written, (unsigned long long)slot);
	return sl->kernel_io.write(sl->kernel_io.ctx, buf, bytes, offset, os_code);
}

static int lane_sync(void *ctx, enum pp_sync_call call, int64_t *os_code)
{
	struct sim_lane *sl = ctx;

	pp_sim_say(sl->rig, "lane %u calls %s", sl->lane.lane, pp_sync_call_name(call));
	return sl->kernel_io.sync(sl->kernel_io.ctx, call, os_code);
}

static int lane_sync_record(void *ctx, enum pp_sync_call call, uint64_t offset, int64_t *os_code)
{
	struct sim_lane *sl = ctx;

	return sl->kernel_io.sync_record(sl->kernel_io.ctx, call, offset, os_code);
}

static int lane_rename(void *ctx, uint64_t offset, int64_t *os_code)
{
	struct sim_lane *sl = ctx;

	return sl->kernel_io.rename_record(sl->kernel_io.ctx, offset, os_code);
}

static int lane_sync_folder(void *ctx, int64_t *os_code)
{
	struct sim_lane *sl = ctx;

	return sl->kernel_io.sync_folder(sl->kernel_io.ctx, os_code);
}

static int64_t lane_now(void *ctx)
{
	return ((struct sim_lane *)ctx)->rig->now_ns;
}

static void lane_ack(void *ctx, uint32_t lane, uint64_t first, uint64_t last)
{
	struct pp_sim_rig *rig = ctx;
	struct pp_ledger_entry e = { .type = PP_LEDGER_ACK, .a = first, .b = last, .c = lane };

	pp_sim_truth_word(rig->truth, lane, last);
	pp_sim_net_send(&rig->net, rig->now_ns, &e);
	pp_sim_say(rig, "lane %u acks records %llu to %llu", lane, (unsigned long long)first,
		(unsigned long long)last);
}

static void beat(struct pp_sim_rig *rig)
{
	struct pp_sim_drive_counters c = pp_sim_drive_counters_of(rig->drive, true);
	struct pp_ledger_entry e = { .type = PP_LEDGER_BEAT, .a = c.writes,
		.b = c.writes * rig->layout.record_bytes / 512, .c = c.flushes };

	pp_sim_net_send(&rig->net, rig->now_ns, &e);
}

static void begin_run(struct pp_sim_rig *rig, const struct pp_method *method)
{
	struct pp_ledger_entry mark = { .type = PP_LEDGER_MARK, .small = PP_MARK_WRITING,
		.t_ns = rig->now_ns };
	struct pp_lane_peer peer = { .ctx = rig, .ack = lane_ack };
	uint32_t i;

	draw_id(rig, &rig->run_id);
	rig->method = method;
	rig->times = (struct pp_sim_times){ .run_ns = rig->now_ns, .cut_ns = INT64_MAX };
	rig->before = pp_sim_drive_counters_of(rig->drive, false);
	rig->heard = 0;
	/* Mostly in the middle of things; sometimes before anything was acked. */
	rig->wanted = below(&rig->random, 16) ? between(&rig->random, rig->setup.records / 2,
		rig->setup.records + rig->setup.records / 2) : below(&rig->random, 4);
	rig->wanted_ns = INT64_MAX;
	if (rig->setup.run_ns) {
		rig->wanted = UINT64_MAX;
		rig->wanted_ns = rig->now_ns + (int64_t)between(&rig->random,
			(uint64_t)rig->setup.run_ns / 2, (uint64_t)rig->setup.run_ns * 3 / 2);
	}
	atomic_store(&rig->run.state, PP_RUN_RUNNING);
	pp_sim_net_start(&rig->net, draw(&rig->random), rig->setup.net_delay_ns);
	pp_sim_net_note(&rig->net, &mark);
	pp_sim_kernel_start(rig->kernel, method, rig->now_ns, draw(&rig->random));
	if (rig->setup.noise)
		pp_sim_noise_start(&rig->noise, &rig->run, rig->now_ns, rig->setup.net_delay_ns);
	if (below(&rig->random, 100) < rig->setup.io_error_pct)
		pp_sim_kernel_fail(rig->kernel, 1 + below(&rig->random, rig->setup.records));
	for (i = 0; i < rig->layout.lanes; i++) {
		struct sim_lane *sl = &rig->lane[i];
		struct pp_lane_io io = { .ctx = sl, .write = lane_write, .sync = lane_sync,
			.now_ns = lane_now, .sync_record = lane_sync_record,
			.rename_record = lane_rename, .sync_folder = lane_sync_folder };

		sl->written = 0;
		pp_sim_kernel_io(rig->kernel, i, &sl->kernel_io);
		pp_lane_init(&sl->lane, i, &rig->layout, method, &rig->run_id, 0, &io, &peer,
			&rig->run, sl->buf, NULL);
		if (rig->pace_per_s)
			sl->lane.pace_ns = 1000 * PP_SIM_MS * rig->layout.group * rig->layout.lanes /
				rig->pace_per_s;
	}
}

/* The moment is drawn so that it falls anywhere in a call, and sometimes after a silence of the
 * network: what was acked in it, nobody heard. */
static void set_cut(struct pp_sim_rig *rig)
{
	uint64_t tail_ns = below(&rig->random, 4) ? 1 * PP_SIM_MS : (uint64_t)rig->setup.net_loss_ns;

	rig->times.cut_ns = rig->now_ns + 1 + (int64_t)below(&rig->random, tail_ns + 1);
	if (below(&rig->random, 2))
		rig->net.dark_ns = rig->now_ns +
			(int64_t)below(&rig->random, (uint64_t)(rig->times.cut_ns - rig->now_ns));
	rig->noise.net.dark_ns = rig->net.dark_ns;
}

static void hear(struct pp_sim_rig *rig)
{
	const struct pp_ledger_entry *e;
	struct pp_error err;

	while ((e = pp_sim_net_hear(&rig->net, rig->now_ns))) {
		if (e->type != PP_LEDGER_ACK)
			continue;
		pp_sim_truth_heard(rig->truth, (uint32_t)e->c, e->b, e->t_ns);
		rig->heard += e->b - e->a + 1;
	}
	while ((e = pp_sim_net_echoed(&rig->net, rig->now_ns)))
		(void)pp_lane_echo(&rig->lane[e->c].lane, e->b, &err);
}

static bool step_lanes(struct pp_sim_rig *rig)
{
	bool alive = false;
	uint32_t i;

	for (i = 0; i < rig->layout.lanes; i++) {
		struct sim_lane *sl = &rig->lane[i];
		enum pp_lane_status status = PP_LANE_MORE;

		while (status == PP_LANE_MORE && !pp_sim_kernel_lane_busy(rig->kernel, i))
			status = pp_lane_step(&sl->lane);
		alive |= status <= PP_LANE_BLOCKED;
	}
	return alive;
}

/* When a lane that is held to a pace may write again. */
static int64_t pace_due_ns(const struct pp_sim_rig *rig)
{
	int64_t due_ns = INT64_MAX;
	uint32_t i;

	for (i = 0; rig->pace_per_s && i < rig->layout.lanes; i++)
		if (rig->lane[i].lane.status == PP_LANE_EARLY && rig->lane[i].lane.due_ns < due_ns)
			due_ns = rig->lane[i].lane.due_ns;
	return due_ns;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int write_until_cut(struct pp_sim_rig *rig, struct pp_error *err)
{
	int64_t beat_ns = rig->now_ns, end_ns = rig->now_ns + RUN_NS;

	for (;;) {
		int64_t next_ns = earlier(earlier(pp_sim_kernel_due_ns(rig->kernel),
			pp_sim_net_due_ns(&rig->net)), earlier(beat_ns, earlier(rig->wanted_ns,
			pace_due_ns(rig))));

		if (rig->setup.noise)
			next_ns = earlier(next_ns, pp_sim_noise_due_ns(&rig->noise));
		if (next_ns >= rig->times.cut_ns)
			break;
		rig->now_ns = next_ns;
		pp_sim_kernel_advance(rig->kernel, next_ns);
		hear(rig);
		if (rig->setup.noise)
			pp_sim_noise_advance(&rig->noise, next_ns);
		if (next_ns == beat_ns) {
			beat(rig);
			beat_ns += BEAT_NS;
		}
		if ((!step_lanes(rig) || rig->heard >= rig->wanted ||
			next_ns >= rig->wanted_ns || next_ns > end_ns) &&
			rig->times.cut_ns == INT64_MAX)
			set_cut(rig);
		if (next_ns >= rig->wanted_ns)
			rig->wanted_ns = INT64_MAX;
		if (!pp_sim_kernel_ok(rig->kernel) || rig->net.failed ||
			(rig->setup.noise && (!rig->noise.ok || rig->noise.net.failed)))
			return pp_fail(err, PP_ERR_SYSTEM, "simulator: no memory, or a drive that fails");
	}
	rig->now_ns = rig->times.cut_ns;
	return 0;
}

/* ---- the cut --------------------------------------------------------------------------------- */

static unsigned survivors(struct pp_sim_rig *rig)
{
	unsigned pct = (unsigned)below(&rig->random, 101);

	if (rig->setup.survive_pct <= 100)
		return rig->setup.survive_pct;
	switch (below(&rig->random, 4)) {
	case 0: return 0;
	case 1: return 50;
	case 2: return 100;
	default: return pct;
	}
}

static void power_back(struct pp_sim_rig *rig)
{
	struct pp_sim_times *t = &rig->times;

	t->off_sent_ns = t->cut_ns - (int64_t)between(&rig->random, 0, 8 * PP_SIM_MS);
	t->off_read_ns = t->cut_ns + (int64_t)between(&rig->random, PP_SIM_MS, 900 * PP_SIM_MS);
	t->on_ns = t->off_read_ns + OFF_NS;
	t->boot_ns = t->on_ns + BOOT_NS;
	rig->now_ns = t->boot_ns + PP_SIM_MS;
	pp_sim_drive_power_on(rig->drive, rig->now_ns);
	pp_sim_kernel_advance(rig->kernel, rig->now_ns);
	rig->after = pp_sim_drive_is_dead(rig->drive) ? PP_AFTER_DEVICE_GONE
		: pp_sim_kernel_mount(rig->kernel) ? PP_AFTER_SCANNED : PP_AFTER_FS_GONE;
	pp_sim_say(rig, "power is back: %s", pp_aftermath_name(rig->after));
}

static int cut(struct pp_sim_rig *rig, struct pp_error *err)
{
	unsigned pct = survivors(rig);

	pp_sim_say(rig, "CUT; of the volatile cache (%llu bytes) %u %% survive",
		(unsigned long long)pp_sim_drive_dirty_bytes(rig->drive), pct);
	if (pp_sim_drive_cut(rig->drive, rig->now_ns, pct, draw(&rig->random)) != 0)
		return pp_fail(err, PP_ERR_SYSTEM, "simulator: the medium failed at the cut");
	pp_sim_kernel_stop(rig->kernel);
	pp_sim_net_cut(&rig->net);
	rig->now_ns += rig->setup.net_delay_ns;
	hear(rig);
	if (rig->setup.noise)
		pp_sim_noise_cut(&rig->noise, rig->now_ns);
	rig->cuts++;
	power_back(rig);
	return 0;
}

/* Where slots are taken once: enough of them left for a run? */
static bool has_room(struct pp_sim_rig *rig)
{
	struct pp_layout *l = &rig->layout;
	uint32_t i;

	if (!pp_workload_grows(l->workload))
		return true;
	for (i = 0; i < l->lanes; i++)
		l->base_slots[i] = pp_sim_kernel_slots_taken(rig->kernel, i);
	return pp_layout_seq_max(l) >= rig->setup.records / l->lanes + 2 * pp_layout_window(l);
}

int pp_sim_rig_cut(struct pp_sim_rig *rig, const struct pp_method *method,
	struct pp_sim_outcome *out, struct pp_error *err)
{
	struct pp_scan *scan = NULL, *noise = NULL;
	uint32_t i;

	memset(out, 0, sizeof(*out));
	if (pp_sim_drive_is_dead(rig->drive))
		return pp_fail(err, PP_ERR_USAGE, "the simulated drive is dead");
	if ((!rig->whole || !has_room(rig)) && build(rig, err) != 0)
		return -1;
	if (pp_sim_truth_begin(rig->truth, false, method->untorn, err) != 0)
		return -1;
	begin_run(rig, method);
	if (write_until_cut(rig, err) != 0 || cut(rig, err) != 0 ||
		pp_sim_judge(rig, out, &scan, &noise, err) != 0)
		return -1;
	for (i = 0; i < rig->layout.lanes; i++)
		out->records += rig->lane[i].written;
	out->simulated_ns = rig->times.cut_ns - rig->times.run_ns;
	out->io_error = atomic_load(&rig->run.state) == PP_RUN_FAILED;
	out->spent = pp_sim_drive_is_dead(rig->drive);
	/* After any loss or damage the target is rebuilt (M2.8). */
	rig->whole = scan && out->lost == 0 && out->trial.outcome == PP_TRIAL_CLEAN && !out->veiled &&
		!out->collateral;
	/* What noise lost broke no promise: what stands there now is known (M7.6). */
	if (rig->whole) {
		pp_scan_free(rig->base);
		rig->base = scan;
		pp_sim_truth_base(rig->truth);
		pp_sim_noise_base(&rig->noise, noise);
	} else {
		pp_scan_free(scan);
		pp_scan_free(noise);
	}
	return 0;
}
