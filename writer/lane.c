/* SPDX-License-Identifier: MIT
 *
 * Why one thing a step: between a write and its sync, and between a sync and its ack, another lane
 * may flush, fail or be cut off. A simulator that steps lanes in any order then reaches every
 * interleaving that threads could.
 */
#include "lane.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { NEXT_WRITE, NEXT_SYNC, NEXT_RENAME, NEXT_FOLDER, NEXT_ACK };

void pp_lane_init(struct pp_lane *lane, uint32_t number, const struct pp_layout *layout,
	const struct pp_method *method, const struct pp_run_id *run_id, uint32_t record_flags,
	const struct pp_lane_io *io, const struct pp_lane_peer *peer, struct pp_run *run, void *buf,
	struct pp_histogram *latency)
{
	assert(number < layout->lanes);
	/* A group may not span a lap (M2.5), nor need more room than the window has. */
	assert(layout->slots % layout->group == 0);
	assert(pp_layout_window(layout) >= 2 * layout->group);
	assert(!pp_workload_record_files(layout->workload) ||
		(io->sync_record && io->rename_record && io->sync_folder));
	/* One sync a group and file is enough only if it covers all that the group wrote there. */
	assert(method->sync == PP_SYNC_NONE || method->coverage >= PP_COVERS_RANGE);

	memset(lane, 0, sizeof(*lane));
	lane->layout = layout;
	lane->method = method;
	lane->io = *io;
	lane->peer = *peer;
	lane->run = run;
	lane->run_id = *run_id;
	lane->flags = record_flags;
	lane->lane = number;
	lane->buf = buf;
	lane->latency = latency;
	lane->next_seq = 1;
	lane->group_first = 1;
	lane->window = pp_layout_window(layout);
	lane->seq_max = pp_layout_seq_max(layout);
	lane->next = NEXT_WRITE;
	lane->status = PP_LANE_MORE;
}

static uint64_t offset_of(const struct pp_lane *lane, uint64_t seq)
{
	return pp_layout_offset(lane->layout, lane->lane, pp_layout_slot(lane->layout, lane->lane, seq));
}

static bool record_files(const struct pp_lane *lane)
{
	return pp_workload_record_files(lane->layout->workload);
}

/* What follows the last sync of a group's data: only then are the group's records durable. */
static void after_data(struct pp_lane *lane)
{
	if (lane->next < NEXT_RENAME && pp_workload_renames(lane->layout->workload)) {
		lane->next = NEXT_RENAME;
		lane->file_seq = lane->group_first;
	} else if (lane->next < NEXT_FOLDER && pp_workload_syncs_folder(lane->layout->workload) &&
		lane->method->coverage != PP_COVERS_NOTHING) {
		lane->next = NEXT_FOLDER;
	} else {
		lane->durable = lane->next_seq - 1;
		lane->next = NEXT_ACK;
	}
}

static bool running(const struct pp_lane *lane)
{
	return atomic_load(&lane->run->state) == PP_RUN_RUNNING;
}

/* Nothing is retried (M2.3): after a failed fsync the kernel may have dropped the very pages. */
static void fail(struct pp_lane *lane, uint64_t seq, const char *call, int64_t os_code, int64_t bytes)
{
	int expected = PP_RUN_RUNNING;

	lane->failure.seq = seq;
	lane->failure.call = call;
	lane->failure.os_code = os_code;
	lane->failure.bytes = bytes;
	lane->failure.first =
		atomic_compare_exchange_strong(&lane->run->state, &expected, PP_RUN_FAILED);
	lane->status = PP_LANE_FAILED;
}

/* A pause is not made good by a burst: only what was late by less than one group's time is. */
static void begin_group(struct pp_lane *lane, int64_t now_ns)
{
	lane->group_began_ns = now_ns;
	if (!lane->pace_ns)
		return;
	if (!lane->due_ns || now_ns - lane->due_ns > lane->pace_ns)
		lane->due_ns = now_ns;
	lane->due_ns += lane->pace_ns;
}

static bool is_early(const struct pp_lane *lane)
{
	return lane->pace_ns && lane->next_seq == lane->group_first && lane->due_ns &&
		lane->io.now_ns(lane->io.ctx) < lane->due_ns;
}

static void step_write(struct pp_lane *lane)
{
	const struct pp_layout *layout = lane->layout;
	uint64_t seq = lane->next_seq;
	int64_t os_code = 0, written;
	struct pp_record record = {
		.run = lane->run_id,
		.lane = lane->lane,
		.cells = layout->record_bytes / PP_CELL_BYTES,
		.flags = lane->flags,
		.seq = seq,
		.offset = offset_of(lane, seq),
		.issued_ns = lane->io.now_ns(lane->io.ctx),
		.durable = lane->durable,
	};

	assert(lane->durable < seq);
	if (seq == lane->group_first)
		begin_group(lane, record.issued_ns);
	pp_record_fill(lane->buf, &record);
	atomic_store(&lane->issued, seq);
	written = lane->io.write(lane->io.ctx, lane->buf, layout->record_bytes, record.offset, &os_code);
	if (written != (int64_t)layout->record_bytes) {
		fail(lane, seq, record_files(lane) ? "create" : "write", written < 0 ? os_code : 0,
			written);
		return;
	}
	lane->next_seq = seq + 1;
	if (pp_method_sync_in_write(lane->method)) {
		after_data(lane);
	} else if (seq - lane->group_first + 1 == layout->group) {
		lane->next = NEXT_SYNC;
		lane->file_seq = lane->group_first;
	}
}

static void step_sync(struct pp_lane *lane)
{
	uint64_t last = record_files(lane) ? lane->file_seq : lane->next_seq - 1;
	int64_t os_code = 0;
	int rc = record_files(lane)
		? lane->io.sync_record(lane->io.ctx, lane->method->sync, offset_of(lane, last), &os_code)
		: lane->io.sync(lane->io.ctx, lane->method->sync, &os_code);

	if (rc != 0) {
		fail(lane, last, pp_sync_call_name(lane->method->sync), os_code, -1);
		return;
	}
	/* M2.2: a call for every file of the group: another file's sync covers none of this one. */
	lane->file_seq = last + 1;
	if (lane->file_seq == lane->next_seq)
		after_data(lane);
}

static void step_rename(struct pp_lane *lane)
{
	int64_t os_code = 0;

	if (lane->io.rename_record(lane->io.ctx, offset_of(lane, lane->file_seq), &os_code) != 0) {
		fail(lane, lane->file_seq, "rename", os_code, -1);
		return;
	}
	if (++lane->file_seq == lane->next_seq)
		after_data(lane);
}

static void step_folder(struct pp_lane *lane)
{
	int64_t os_code = 0;

	if (lane->io.sync_folder(lane->io.ctx, &os_code) != 0) {
		fail(lane, lane->next_seq - 1, "fsync of the folder", os_code, -1);
		return;
	}
	after_data(lane);
}

static void step_ack(struct pp_lane *lane)
{
	uint64_t first = lane->group_first, last = lane->next_seq - 1;

	assert(first <= last && last == lane->durable);
	if (lane->latency)
		pp_histogram_add(lane->latency,
			lane->io.now_ns(lane->io.ctx) - lane->group_began_ns);
	lane->group_first = last + 1;
	lane->next = NEXT_WRITE;
	/* First the number, then the word: its echo may be here before ack returns. */
	atomic_store(&lane->acked, last);
	lane->peer.ack(lane->peer.ctx, lane->lane, first, last);
}

enum pp_lane_status pp_lane_step(struct pp_lane *lane)
{
	if (lane->status > PP_LANE_BLOCKED)
		return lane->status;
	lane->status = PP_LANE_MORE;
	if (!running(lane))
		lane->status = PP_LANE_STOPPED;
	else if (lane->next == NEXT_ACK)
		step_ack(lane);
	else if (lane->next == NEXT_SYNC)
		step_sync(lane);
	else if (lane->next == NEXT_RENAME)
		step_rename(lane);
	else if (lane->next == NEXT_FOLDER)
		step_folder(lane);
	else if (lane->next_seq > lane->seq_max)
		lane->status = PP_LANE_FULL;
	else if (!pp_lane_may_go_on(lane))
		lane->status = PP_LANE_BLOCKED;
	else if (is_early(lane))
		lane->status = PP_LANE_EARLY;
	else
		step_write(lane);
	return lane->status;
}

bool pp_lane_may_go_on(const struct pp_lane *lane)
{
	return lane->next_seq <= atomic_load(&lane->echoed) + lane->window || !running(lane);
}

int pp_lane_echo(struct pp_lane *lane, uint64_t last, struct pp_error *err)
{
	uint64_t acked = atomic_load(&lane->acked), old = atomic_load(&lane->echoed);

	if (last > acked)
		return pp_fail(err, PP_ERR_PEER, "listener echoed record %" PRIu64 " of lane %" PRIu32
			", but only %" PRIu64 " was acked", last, lane->lane, acked);
	while (last > old && !atomic_compare_exchange_weak(&lane->echoed, &old, last))
		;
	return 0;
}

int pp_lane_failure_error(const struct pp_lane *lane, struct pp_error *err)
{
	const struct pp_lane_failure *f = &lane->failure;

	if (!f->call)
		return 0;
	if (f->bytes >= 0)
		return pp_fail(err, PP_ERR_SYSTEM, "short %s of record %" PRIu64 " in lane %" PRIu32
			": %" PRId64 " of %" PRIu32 " bytes", f->call, f->seq, lane->lane, f->bytes,
			lane->layout->record_bytes);
	return pp_fail_os(err, f->os_code, "%s failed at record %" PRIu64 " in lane %" PRIu32, f->call,
		f->seq, lane->lane);
}
