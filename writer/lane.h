/* SPDX-License-Identifier: MIT
 *
 * One lane: a strictly sequential writer (docs/method.md, M2.2 to M2.6, M3.1). It writes a group of
 * records, calls its sync once for every file of the group, gives new files their names, syncs the
 * folder, checks every result, acks. A method whose sync is in the write (or nowhere) acks each
 * record as its write returns, or, where files are made, once the folder is synced. A method that
 * syncs nothing leaves the folder alone too.
 *
 * The lane never blocks by itself, never allocates and has no thread: pp_lane_step does one thing
 * (one write, one sync, one rename or one ack) and says what comes next. The writer runs it in a thread; a
 * simulator or a fault walk steps it by hand, so that what is tested is what writes.
 */
#ifndef PP_WRITER_LANE_H
#define PP_WRITER_LANE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/core/error.h"
#include "src/core/histogram.h"
#include "src/core/layout.h"
#include "src/core/method.h"
#include "src/core/record.h"

/*
 * The target as the lane sees it. write returns the bytes written or -1, the others 0 or -1; a
 * failure puts the system's own code into *os_code. None is called again after a failure or a short
 * write. offset is pp_layout_offset of the record's slot. The last three are asked for only where
 * the workload has a file for each slot, may be NULL elsewhere, and then sync is never called:
 * write makes the slot's file (renames: its temporary file), sync_record syncs it, rename_record
 * gives it its name, sync_folder syncs the lane's folder.
 */
struct pp_lane_io {
	void *ctx;
	int64_t (*write)(void *ctx, const void *buf, uint32_t bytes, uint64_t offset, int64_t *os_code);
	int (*sync)(void *ctx, enum pp_sync_call call, int64_t *os_code);
	int64_t (*now_ns)(void *ctx);
	int (*sync_record)(void *ctx, enum pp_sync_call call, uint64_t offset, int64_t *os_code);
	int (*rename_record)(void *ctx, uint64_t offset, int64_t *os_code);
	int (*sync_folder)(void *ctx, int64_t *os_code);
};

/* Who hears of it: records first ... last of this lane are durable by the writer's word. */
struct pp_lane_peer {
	void *ctx;
	void (*ack)(void *ctx, uint32_t lane, uint64_t first, uint64_t last);
};

/*
 * What the lanes of one run share. Anything but RUNNING ends every lane at its next step, and no ack
 * leaves after that was set (M2.3). The first failure wins; later ones are not recorded.
 */
enum pp_run_state { PP_RUN_RUNNING, PP_RUN_STOPPING, PP_RUN_FAILED };

struct pp_run {
	_Atomic int state; /* enum pp_run_state */
};

enum pp_lane_status {
	PP_LANE_MORE,    /* did something; step again */
	PP_LANE_EARLY,   /* its pace allows the next group at due_ns: wait for then, or the end */
	PP_LANE_BLOCKED, /* W records beyond the last echoed ack: wait for pp_lane_echo or the end */
	PP_LANE_FULL,    /* slots taken once: pp_layout_seq_max reached, everything acked */
	PP_LANE_STOPPED, /* the run ended */
	PP_LANE_FAILED,  /* this lane's call failed: see failure */
};

struct pp_lane_failure {
	uint64_t seq;      /* the record, or the last of the group that the sync was for */
	const char *call;  /* "write", "fdatasync", ...; NULL if there was no failure */
	int64_t os_code;   /* 0 for a short write */
	int64_t bytes;     /* what a short write wrote; -1 otherwise */
	bool first;        /* this one ended the run */
};

/* Read-only for others, except through the functions below; the two atomics from any thread. */
struct pp_lane {
	const struct pp_layout *layout;
	const struct pp_method *method;
	struct pp_lane_io io;
	struct pp_lane_peer peer;
	struct pp_run *run;
	struct pp_run_id run_id;
	uint32_t flags;                /* of its records */
	uint32_t lane;
	void *buf;                     /* record_bytes, aligned for direct I/O; the caller's */
	struct pp_histogram *latency;  /* may be NULL: first write of a group to its sync's return */

	uint64_t next_seq;
	uint64_t group_first;          /* first record written but not yet acked */
	uint64_t file_seq;             /* of the group: whose file is synced or renamed next */
	uint64_t durable;              /* highest sequence whose sync returned success */
	int64_t group_began_ns;
	uint32_t window;
	uint64_t seq_max;
	/*
	 * Least time from the first write of a group to that of the next, set before the first step; 0:
	 * none. A control that writes no faster than the arms that it stands for has no more at risk
	 * than they have (M7.3).
	 */
	int64_t pace_ns;
	int64_t due_ns;                /* of the next group, by io.now_ns; 0: at once */
	int next;                      /* what the next step does; private */
	enum pp_lane_status status;
	struct pp_lane_failure failure;
	_Atomic uint64_t issued, acked; /* highest so far */
	_Atomic uint64_t echoed;
};

/*
 * Ready for sequence 1. All pointers must outlive the lane; latency may be NULL. The layout must
 * have come from pp_layout_init, and method must promise something other than n/a on the target.
 */
void pp_lane_init(struct pp_lane *lane, uint32_t number, const struct pp_layout *layout,
	const struct pp_method *method, const struct pp_run_id *run_id, uint32_t record_flags,
	const struct pp_lane_io *io, const struct pp_lane_peer *peer, struct pp_run *run, void *buf,
	struct pp_histogram *latency);

/*
 * One write, one sync, one rename or one ack; EARLY and BLOCKED did nothing. After FULL, STOPPED or
 * FAILED it returns the same again.
 */
enum pp_lane_status pp_lane_step(struct pp_lane *lane);

/*
 * The listener has echoed everything up to `last` (M2.4). Any thread. An echo that goes back is
 * ignored; one beyond what was acked is the peer's fault: -1, and the window stays as it was.
 */
int pp_lane_echo(struct pp_lane *lane, uint64_t last, struct pp_error *err);

/* Room for one more record, or nothing to wait for (the run ended). */
bool pp_lane_may_go_on(const struct pp_lane *lane);

/* What failed as a person reads it: -1 with err filled, 0 if nothing did. */
int pp_lane_failure_error(const struct pp_lane *lane, struct pp_error *err);

#endif
