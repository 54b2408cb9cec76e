/* SPDX-License-Identifier: MIT
 *
 * The record writer: all lanes of one run, each in a thread with its own open file description
 * (M2.3), a thread that sends their acks, and the base that a target has before its first run.
 */
#ifndef PP_WRITER_WRITER_H
#define PP_WRITER_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "lane.h"
#include "src/core/target.h"


struct pp_writer_config {
	struct pp_layout layout;
	const struct pp_method *method;
	const struct pp_target *target; /* proven (M2.7); NULL: by nobody, for tests */
	const char *path;           /* base name of the target's files, or the raw device; copied */
	struct pp_run_id run_id;
	bool compressible;
	uint32_t pace_per_s;        /* records of each lane; 0: no limit (M7.3) */
	struct pp_lane_peer peer;   /* ack is called from one thread, which may block */
};

struct pp_writer;

/*
 * Opens the target once a lane, checks that it is what the layout needs (overwrite, fallocated:
 * long enough; append: not longer than its base slots; else: a folder), proves every descriptor to
 * lie on config->target, and starts the threads. Creates and truncates nothing.
 * NULL on failure, and then nothing was written. All signals are blocked in the threads.
 */
struct pp_writer *pp_writer_start(const struct pp_writer_config *config, struct pp_error *err);

/* As pp_lane_echo, and wakes the lane. Any thread. */
int pp_writer_echo(struct pp_writer *writer, uint32_t lane, uint64_t last, struct pp_error *err);

struct pp_writer_progress {
	uint64_t issued, acked, echoed; /* highest sequence of the lane, each; acked: ack has returned */
};
void pp_writer_progress(const struct pp_writer *writer, uint32_t lane,
	struct pp_writer_progress *progress);

enum pp_run_state pp_writer_state(const struct pp_writer *writer);
/* True once every lane has ended by itself (full, failed) and all acks are out. Does not wait. */
bool pp_writer_ended(const struct pp_writer *writer);

/*
 * Ends the run: no ack leaves after this was called (one that is already inside the peer's ack may
 * still be under way), lanes are joined. A write or sync that hangs for longer than
 * timeout_ms (negative: wait for ever) is left behind: -1, err says which lanes. May be called again.
 */
int pp_writer_stop(struct pp_writer *writer, int64_t timeout_ms, struct pp_error *err);

struct pp_writer_result {
	uint64_t records_issued, records_acked;
	uint32_t lanes_full, lanes_left_behind;
	bool failed;
	uint32_t failed_lane;           /* of the first failure */
	struct pp_lane_failure failure;
	struct pp_error error;          /* the failure as text, with the file's name */
	struct pp_histogram latency;    /* all lanes that were joined */
};
/* After pp_writer_stop; large: not for a small stack. */
void pp_writer_result(const struct pp_writer *writer, struct pp_writer_result *result);

/* Stops (at once, leaving behind what hangs: that thread's memory then stays) and frees; NULL is fine. */
void pp_writer_free(struct pp_writer *writer);

/*
 * Makes the base (M2.8, M3.3). overwrite: a record of sequence 0, of the set-up's own run id, in
 * every slot of every lane: really written, not only allocated; a file is created, or made to have
 * exactly the layout's size. append, fallocated: each lane's file is made anew with one such
 * record (fallocated: and blocks allocated for all, fallocate(2)); create: each lane's folder is
 * made, or emptied, with one such file; layout->base_slots is set to 1. rename: a folder with a
 * file in every slot. Then fsync (of many files: syncfs), close, fsync of the folder, each checked.
 * direct writes with O_DIRECT, but not into folders. Too little free space, or too small a device, is said before anything is
 * touched. Every descriptor is proven to lie on `target` before it is
 * written to; where that is NULL the caller has made sure that a raw device may be overwritten.
 */
int pp_writer_prewrite(struct pp_layout *layout, const char *path, const struct pp_run_id *run_id,
	bool compressible, bool direct, const struct pp_target *target, struct pp_error *err);

/* As pp_layout_target_bytes. */
uint64_t pp_writer_target_bytes(const struct pp_layout *layout);

#endif
