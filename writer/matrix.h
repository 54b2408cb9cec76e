/* SPDX-License-Identifier: MIT
 *
 * The speed matrix: how many times a second each way to make a write durable works here, with
 * percentiles, and how many flushes and writes the disk counted for each operation. Two sets of
 * tests: ours (one row a method) and the set of pg_test_fsync, same file, same order.
 *
 * Every test overwrites the start of one 16 MB file that was written and synced first, as
 * pg_test_fsync does, so that rows differ in the method alone. Time is CLOCK_MONOTONIC's; every
 * result is checked; what the system or target refuses is a row that says n/a and why.
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
#include "src/core/method.h"
#include "src/core/target.h"

#define PP_MATRIX_FILE_BYTES  (16U << 20)
#define PP_MATRIX_BLOCK_BYTES 8192U
#define PP_MATRIX_ROWS_MAX    64

enum pp_matrix_status {
	PP_MATRIX_OK,
	PP_MATRIX_NA,   /* not on this system or target: see reason */
};

struct pp_matrix_row {
	char section[16];          /* "methods", or pg: "one", "two", "sizes", "reopen", "none" */
	char label[40];            /* the method's name, or pg_test_fsync's label */
	char method[32];           /* of the methods table; empty where a row is not one of it */
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
	bool counted;              /* the disk's counters could be read */
	double flushes_per_op, writes_per_op; /* as the disk counted; -1 where it does not */
	bool foreign_traffic;      /* others wrote to this disk while it should have been idle */
};

struct pp_matrix_config {
	const char *path;          /* a file, which must not exist yet and is removed; or a raw device */
	const struct pp_target *target; /* proven, and holding the device; NULL: proven by nobody */
	bool raw;                  /* path is a device whose first 16 MB are overwritten */
	uint64_t raw_offset;       /* bytes into the device; a multiple of 4096 */
	bool pg;                   /* pg_test_fsync's set of tests */
	const char *const *only;   /* our set: methods by name; NULL: all */
	size_t only_count;
	uint32_t block_bytes;      /* 0: PP_MATRIX_BLOCK_BYTES; our set only */
	double seconds;            /* per test */
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
#define PP_MATRIX_ROWS_A_TEXT 32
void pp_matrix_row_put(struct pp_buf *buf, const char *prefix, const struct pp_matrix_row *row);
int pp_matrix_row_get(const struct pp_kv *kv, const char *prefix, struct pp_matrix_row *row,
	struct pp_error *err);

/*
 * What these figures alone should make a person wonder about: NULL, or a sentence (static text).
 * Never a verdict (M10.2).
 */
const char *pp_matrix_row_warning(const struct pp_matrix_row *row);

#endif
