/* SPDX-License-Identifier: MIT
 *
 * What kinds of request the kernel sends to a disk: FUA writes, flushes, metadata, which the plain
 * counters (disk_counters.h) do not tell apart. From the tracepoint block:block_rq_issue in a
 * tracefs instance of our own, which disturbs no other tracing and is removed again
 * (Documentation/trace/ftrace.rst, "Instances"; letters: kernel/trace/blktrace.c). Needs root and a
 * mounted tracefs; elsewhere there is none, with the reason.
 *
 * Tracing costs time: count a few operations of their own, never those that are timed.
 */
#ifndef PP_CORE_DISK_TRACE_H
#define PP_CORE_DISK_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

struct pp_disk_trace_counts {
	uint64_t requests;
	uint64_t writes, fua_writes, write_bytes;
	uint64_t flushes;        /* empty ones: what a drive gets as its flush command */
	uint64_t preflushes;     /* writes that carry a flush before them: for a drive that takes those */
	uint64_t metadata;       /* writes that a file system marked as its own */
	uint64_t others;         /* reads, discards, what is unknown */
};

struct pp_disk_trace {
	char folder[256];        /* of the instance; empty: none */
	unsigned dev_major, dev_minor;
};

/* disk: the kernel's name, "nvme0n1". PP_ERR_UNSUPPORTED where there is no tracefs to be used. */
int pp_disk_trace_open(struct pp_disk_trace *trace, const char *disk, struct pp_error *err);
/* From now on. */
int pp_disk_trace_start(struct pp_disk_trace *trace, struct pp_error *err);
/* What was sent since start. Fails if the kernel's buffer was too small for all of it. */
int pp_disk_trace_stop(struct pp_disk_trace *trace, struct pp_disk_trace_counts *counts,
	struct pp_error *err);
/* Removes the instance; for every way out, and idempotent. */
void pp_disk_trace_close(struct pp_disk_trace *trace);

/*
 * Adds one line of a trace to counts; false for a line that is no request of this disk (comments,
 * other devices). For recorded traces too.
 */
bool pp_disk_trace_line(const char *line, unsigned dev_major, unsigned dev_minor,
	struct pp_disk_trace_counts *counts);

#endif
