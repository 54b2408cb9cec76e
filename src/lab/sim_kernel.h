/* SPDX-License-Identifier: MIT
 *
 * The kernel between the simulator's lanes and its drive: page cache, block layer, and a file system
 * just real enough to be lied to.
 *
 * A call of a lane returns at once and becomes a row of stages that take simulated time: data to
 * the drive, a flush, a journal commit. Until the last stage has ended the lane is busy and must not
 * be stepped, so what its call returned cannot be seen early; a cut in between finds the
 * stage's writes in progress.
 *
 *	write, buffered        into the page cache
 *	write, direct          one write; on a file that grows its size changes when the data is in
 *	O_DSYNC, direct        pre-written file: one FUA write, or write and flush without FUA;
 *	                       device: FUA write and flush (the kernel's direct path does both)
 *	O_DSYNC, O_SYNC        write, flush
 *	fdatasync, fsync       the file's dirty pages, then a flush
 *	... where metadata changed (sizes, names): dirty pages, flush, commit record with FUA
 *
 * The file system keeps its metadata by a journal of two commit records that alternate. What a
 * commit says is kept in memory under its number; whether it counts after a cut is decided by which
 * record the drive still has. Metadata is ordered: a size is committed only once its data is written.
 */
#ifndef PP_LAB_SIM_KERNEL_H
#define PP_LAB_SIM_KERNEL_H

#include "sim_disk.h"
#include "src/core/layout.h"
#include "src/core/method.h"
#include "verifier/scan.h"
#include "writer/lane.h"

#define PP_SIM_AREA_OFFSET 8192 /* of the target on the disk; before it lies the journal */
#define PP_SIM_NEVER INT64_MAX

struct pp_sim_kernel;

/* What a cell of the target shows to a reader. */
enum pp_sim_look { PP_SIM_BYTES, PP_SIM_UNREAD, PP_SIM_ABSENT, PP_SIM_GONE };

/* Bytes of disk that a target of this layout needs. */
uint64_t pp_sim_kernel_disk_bytes(const struct pp_layout *layout);

/* Drive, disk and layout must outlive it; the layout's base_slots may change between runs.
 * barriers: false for a file system that was mounted to send no flushes. */
struct pp_sim_kernel *pp_sim_kernel_new(struct pp_sim_drive *drive, struct pp_sim_disk *disk,
	const struct pp_layout *layout, enum pp_target_kind kind, bool fua, bool barriers,
	struct pp_error *err);
void pp_sim_kernel_free(struct pp_sim_kernel *kernel);

/* Where on the disk a slot's record lies after a format, for who writes a target there. */
uint64_t pp_sim_kernel_home(const struct pp_sim_kernel *kernel, uint32_t lane, uint64_t slot);
/* A new file system straight on the disk: no files, or those that a pre-written target has. */
void pp_sim_kernel_format(struct pp_sim_kernel *kernel);
/* After power-on: reads the journal. False where it cannot be read: the file system is gone. */
bool pp_sim_kernel_mount(struct pp_sim_kernel *kernel);
/* The machine lost its power: page cache, everything in progress. */
void pp_sim_kernel_stop(struct pp_sim_kernel *kernel);

/* Slots of lane's file that hold something, for the layout's base_slots. */
uint64_t pp_sim_kernel_slots_taken(const struct pp_sim_kernel *kernel, uint32_t lane);

/* A run: what the lanes call, with what method, and the draws of times. */
void pp_sim_kernel_start(struct pp_sim_kernel *kernel, const struct pp_method *method,
	int64_t now_ns, uint64_t seed);
/* The calls-th write, sync or rename from now on fails: EIO, or a write is short. 0: none does. */
void pp_sim_kernel_fail(struct pp_sim_kernel *kernel, uint64_t calls);
/* ctx of io is this kernel's for that lane. now_ns is the caller's. */
void pp_sim_kernel_io(struct pp_sim_kernel *kernel, uint32_t lane, struct pp_lane_io *io);
/* Time of the next stage's end; PP_SIM_NEVER without one. */
int64_t pp_sim_kernel_due_ns(const struct pp_sim_kernel *kernel);
/* Ends the stages that are due by now_ns and begins what follows. */
void pp_sim_kernel_advance(struct pp_sim_kernel *kernel, int64_t now_ns);
bool pp_sim_kernel_lane_busy(const struct pp_sim_kernel *kernel, uint32_t lane);
/* False once the drive refused something: the machine's I/O has failed. */
bool pp_sim_kernel_ok(const struct pp_sim_kernel *kernel);

/* Files as a scan sees them (after mount). */
void pp_sim_kernel_source(struct pp_sim_kernel *kernel, struct pp_scan_source *source);
/* The same cell past drive and scan; bytes for PP_SIM_BYTES. */
enum pp_sim_look pp_sim_kernel_look(const struct pp_sim_kernel *kernel, uint32_t lane, uint64_t slot,
	uint32_t cell, const uint8_t **bytes);

#endif
