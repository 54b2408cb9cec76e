/* SPDX-License-Identifier: MIT
 *
 * The speed matrix: how many times a second each way to make a write durable works here, with
 * percentiles, and how many flushes and writes the disk counted for each operation. Two sets of
 * tests: ours (one row a method) and the set of pg_test_fsync, same file, same order.
 *
 * Every test overwrites the start of one 16 MB file that was written and synced first, as
 * pg_test_fsync does, so that rows differ in the method alone. Our set may also go along axes: other
 * workloads (fallocated, append, create), block sizes, threads that sync at the same time. Time is
 * CLOCK_MONOTONIC's; every result is checked; what the system or target refuses is a row that says
 * n/a and why. There is no alarm and no timer thread: whoever works looks at the clock.
 *
 * Throughput rows move a lot of data with one sync at the end, whose time counts. Data is fresh and
 * does not compress (unless asked for); reads are direct, or of a file that was proven to have left
 * the page cache, so that nothing comes from RAM.
 */
#ifndef PP_WRITER_MATRIX_H
#define PP_WRITER_MATRIX_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/buf.h"
#include "src/core/error.h"
#include "src/core/kv.h"
#include "src/core/layout.h"
#include "src/core/method.h"
#include "src/core/target.h"

#define PP_MATRIX_FILE_BYTES  (16U << 20)
#define PP_MATRIX_BLOCK_BYTES 8192U
#define PP_MATRIX_ROWS_MAX    1024
#define PP_MATRIX_AXIS_MAX    8
#define PP_MATRIX_THREADS_MAX 64
#define PP_MATRIX_AUTO_SECONDS_MAX 30
#define PP_MATRIX_THROUGHPUT_BYTES (256U << 20)

enum pp_matrix_status {
	PP_MATRIX_OK,
	PP_MATRIX_NA,   /* not on this system or target: see reason */
};

struct pp_matrix_row {
	char section[16];          /* "methods", "throughput", or pg: "one", "two", "sizes", ... */
	char label[40];            /* the method's name, or pg_test_fsync's label */
	char method[32];           /* of the methods table; empty where a row is not one of it */
	char workload[16];         /* "overwrite", ... (src/core/layout.h); throughput: "write", "read" */
	uint32_t threads;
	enum pp_promise promise;
	uint32_t writes;           /* write calls an operation */
	uint32_t write_bytes;      /* each */
	enum pp_matrix_status status;
	char reason[128];          /* of n/a */

	uint64_t ops;
	int64_t elapsed_ns;
	double ops_per_s;
	int64_t latency_ns_p50, latency_ns_p90, latency_ns_p99, latency_ns_p999, latency_ns_max;
	double latency_ns_mean;
	double latency_variation;  /* standard deviation / mean */
	double slice_variation;    /* the same of the operations in equal slices of the run's time */
	bool settled;              /* ended before its time, since the median no longer moved */
	double bytes_per_s;        /* of what was asked to be written or read */

	bool counted;              /* the disk's counters could be read */
	uint64_t disk_writes, disk_flushes, disk_bytes; /* as counted while the row ran; reads: read */
	double foreign_per_s;      /* requests of others, seen while idle; taken off what follows */
	/* As the disk counted; -1 where it does not. The kernel counts an empty flush as a write too. */
	double flushes_per_op, writes_per_op, bytes_per_op;
	bool foreign_traffic;      /* so many that the figures are not of this test alone */
	/* Traced in a few operations of their own (src/core/disk_trace.h); -1 where it cannot be. */
	double fua_per_op, preflushes_per_op;
};

/* Rows are one for each combination, in this order: workload, block, threads, then method. */
struct pp_matrix_axes {
	enum pp_workload workload[PP_MATRIX_AXIS_MAX];
	uint32_t block_bytes[PP_MATRIX_AXIS_MAX];
	uint32_t threads[PP_MATRIX_AXIS_MAX];
	size_t workloads, blocks, thread_counts; /* 0: the default alone */
};

/* The system's part of it: files, clock, disk (matrix_parts.h). */
struct pp_matrix_calls;
extern const struct pp_matrix_calls pp_matrix_calls_live;

struct pp_matrix_config {
	const struct pp_matrix_calls *calls; /* NULL: this system's */
	const char *path;          /* a file, which must not exist yet and is removed; or a raw device */
	const struct pp_target *target; /* proven, and holding the device; NULL: proven by nobody */
	bool raw;                  /* path is a device whose first 16 MB are overwritten */
	uint64_t raw_offset;       /* bytes into the device; a multiple of 4096 */
	bool pg;                   /* pg_test_fsync's set of tests */
	const char *const *only;   /* our set: methods by name; NULL: all */
	size_t only_count;
	uint32_t block_bytes;      /* 0: PP_MATRIX_BLOCK_BYTES; our set only, where axes has none */
	struct pp_matrix_axes axes; /* our set only */
	bool no_methods, throughput; /* our set: without the methods; with the throughput rows */
	uint64_t throughput_bytes; /* size of their file; 0: PP_MATRIX_THROUGHPUT_BYTES */
	unsigned compressible;     /* per cent of their data that is zeros */
	bool no_trace;             /* count no FUA writes */
	double seconds;            /* per test */
	bool settle;               /* end a test sooner, once its median is stable */
	double warm_up_seconds;    /* before each test, not counted; pg: 0 */
	volatile sig_atomic_t *stop; /* may be NULL: nonzero ends it soon */
	/* Before and after each row; may be NULL. In `began` only the row's names are set. */
	void (*began)(void *ctx, const struct pp_matrix_row *row);
	void (*done)(void *ctx, const struct pp_matrix_row *row);
	void *ctx;
};

struct pp_matrix {
	struct pp_matrix_row rows[PP_MATRIX_ROWS_MAX];
	size_t row_count;
	char disk[64];             /* whose counters were read, "nvme0n1"; empty if none */
	char no_disk_reason[128];  /* why not */
	bool no_flushes;           /* there are counters, but none of flushes */
	char no_trace_reason[128]; /* why no FUA writes were counted; empty if they were */
	bool direct_works;
	uint32_t logical_block_bytes; /* of direct I/O here; 0 if unknown */
	bool stopped;              /* ended by *stop: rows are incomplete */
};

/*
 * Measures. The file is always removed again, also on failure and on stop. -1: could not measure at
 * all (err), rows so far are in *matrix; nothing was touched if the file could not be created or
 * there is too little room for it.
 */
int pp_matrix_run(const struct pp_matrix_config *config, struct pp_matrix *matrix,
	struct pp_error *err);

/* The fields of a row, once for the agent's text, JSON and whoever prints: key, kind, place. */
enum pp_matrix_kind {
	PP_MATRIX_TEXT, PP_MATRIX_U32, PP_MATRIX_U64, PP_MATRIX_DOUBLE, PP_MATRIX_BOOL,
	PP_MATRIX_PROMISE, PP_MATRIX_STATUS,
};
struct pp_matrix_field {
	const char *key;
	enum pp_matrix_kind kind;
	size_t at, bytes; /* in struct pp_matrix_row */
};
extern const struct pp_matrix_field pp_matrix_fields[];
extern const size_t pp_matrix_field_count;
const char *pp_matrix_status_name(enum pp_matrix_status status);

/*
 * A row as kv text (src/core/kv.h), prefix before every key, so that a text may hold several rows:
 * at most PP_MATRIX_ROWS_A_TEXT. The agent ships them so; unknown keys are skipped.
 */
#define PP_MATRIX_ROWS_A_TEXT 16
void pp_matrix_row_put(struct pp_buf *buf, const char *prefix, const struct pp_matrix_row *row);
int pp_matrix_row_get(const struct pp_kv *kv, const char *prefix, struct pp_matrix_row *row,
	struct pp_error *err);

/*
 * What these figures alone should make a person wonder about: NULL, or a sentence (static text).
 * Never a verdict (M10.2).
 */
const char *pp_matrix_row_warning(const struct pp_matrix_row *row);

#endif
