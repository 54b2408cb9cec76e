/* SPDX-License-Identifier: MIT
 *
 * Shared by matrix*.c only, and by the test that puts a drive of its own in their place.
 *
 *	matrix_run.c           what is asked for, the row of tests
 *	matrix_row.c           one row: its threads, the disk's counters before and after
 *	matrix_file.c          the file and its disk
 *	matrix_op.c            one operation, and the room it needs
 *	matrix_throughput.c    rows that move a lot of data
 *	disk_*.c         what these three ask of a system
 */
#ifndef PP_WRITER_MATRIX_PARTS_H
#define PP_WRITER_MATRIX_PARTS_H

#include "matrix.h"
#include "disk.h"
#include "src/core/disk_counters.h"
#include "src/core/disk_trace.h"
#include "src/core/histogram.h"
#include "src/core/method_io.h"

#define MATRIX_ALIGN_BYTES 65536
/* Of what grows, by each thread, before it begins anew outside the clock. */
#define MATRIX_GROW_BYTES  (32U << 20)
#define MATRIX_GROW_FILES  1024

enum matrix_shape {
	SYNC_LOOP,         /* open once; write, sync */
	WRITE_SYNC_CLOSE,  /* open, write, fsync, close; open, close */
	WRITE_CLOSE_SYNC,  /* open, write, close; open, fsync, close */
	NOT_HERE,          /* what only another system has */
};

struct matrix_test {
	const char *section, *label, *method;
	enum matrix_shape shape;
	uint32_t writes, write_bytes;
	uint32_t threads;  /* 0: 1 */
	enum pp_workload workload;
};

struct matrix_bench {
	const struct pp_matrix_config *config;
	const struct pp_matrix_calls *calls;
	enum pp_system system; /* whose methods, and whose rows of pg_test_fsync */
	struct pp_matrix *matrix;
	struct pp_disk_source disk;
	struct pp_disk_trace trace;
	uint8_t *buf;      /* PP_RECORD_BYTES_MAX, aligned */
	uint64_t at;       /* bytes, of the first write */
	bool created;
	/* What others did while no test ran: of all rows so far, since one look is short. */
	double idle_s;
	struct pp_disk_counters idle;
};

/* Why an operation failed: which call, and the system's code (0: a short write). */
struct matrix_op_error {
	const char *call;
	int64_t code;
	struct pp_error why; /* of a set-up that failed or cannot be had here */
};

struct matrix_op;

/* What a system does for the matrix. Of a row's threads each calls for an operation of its own. */
struct pp_matrix_calls {
	enum pp_system system;   /* that it stands in for; PP_SYSTEM_ANY: this one */
	/*
	 * Makes the file of PP_MATRIX_FILE_BYTES (or claims the device), which must be new, written and
	 * synced; sets created where there is something to remove.
	 */
	int (*make)(struct matrix_bench *b, struct pp_error *err);
	int (*remove)(struct matrix_bench *b, struct pp_error *err);
	/* Opens counters and trace, says in the matrix whose they are or why there are none; what direct
	 * I/O is like here. */
	void (*look)(struct matrix_bench *b);
	enum disk_code (*code)(int64_t os_code);
	/* Opens what thread number `thread` works on; after failure too, end it. */
	int (*op_begin)(struct matrix_op *op, const struct matrix_bench *b,
		const struct matrix_test *test, uint32_t thread);
	/* Makes room outside the clock, where op_full says so. */
	bool (*op_full)(const struct matrix_op *op);
	int (*op_make_room)(struct matrix_op *op);
	int (*op_do)(struct matrix_op *op);
	/* What a test without a sync left in RAM goes to the disk; files of its own are removed. */
	int (*op_end)(struct matrix_op *op);
	int (*throughput)(struct matrix_bench *b, struct pp_error *err); /* those rows */
	int64_t (*now_ns)(void);
	void (*sleep_ms)(int64_t ms);
};

/* ---- operations ------------------------------------------------------------------------------ */

struct matrix_op {
	const struct pp_matrix_config *config;
	const struct matrix_test *test;
	const struct pp_method *method;
	struct pp_method_io io;
	int fd;            /* of the file, device or folder */
	uint8_t *buf;
	uint64_t at;       /* of the next write */
	uint64_t room_end; /* what grows: where it begins anew */
	uint64_t number;
	uint64_t files;    /* create: that exist */
	char name[4096];   /* of a file or folder of this thread's own; empty if it has none */
	struct matrix_op_error e;
};

/* matrix_op.c: as in struct pp_matrix_calls. */
int matrix_op_begin(struct matrix_op *op, const struct matrix_bench *b,
	const struct matrix_test *test, uint32_t thread);
bool matrix_op_full(const struct matrix_op *op);
int matrix_op_make_room(struct matrix_op *op);
int matrix_op_do(struct matrix_op *op);
int matrix_op_end(struct matrix_op *op);

/* Says which call failed; returns -1. */
int matrix_op_fail(struct matrix_op_error *e, const char *call, int64_t code);

/* ---- matrix_row.c ---------------------------------------------------------------------------- */

bool matrix_stopped(const struct matrix_bench *b);
/* Looks at the idle disk for a moment. */
void matrix_look_idle(struct matrix_bench *b);
bool matrix_read_disk(const struct matrix_bench *b, struct pp_disk_counters *counters);
/* What the disk counted between two readings, for a row whose ops and elapsed_ns are set. */
void matrix_fill_counters(const struct matrix_bench *b, const struct pp_disk_counters *before,
	const struct pp_disk_counters *after, bool reads, struct pp_matrix_row *row);
void matrix_fill_speed(const struct pp_histogram *latency, struct pp_matrix_row *row);
void matrix_na(struct pp_matrix_row *row, const char *reason);
/* Fills a row that has its names. 0 too where it is n/a. */
int matrix_measure(struct matrix_bench *b, const struct matrix_test *test,
	struct pp_matrix_row *row, struct pp_error *err);

/* ---- matrix_run.c ---------------------------------------------------------------------------- */

/* The next row, named by the test; *row is NULL when there is no more room. */
struct pp_matrix_row *matrix_row_begin(struct matrix_bench *b, const struct matrix_test *test);
void matrix_row_done(struct matrix_bench *b);
/* The most that stands on the disk at once. */
uint64_t matrix_bytes_needed(const struct pp_matrix_config *config);

/* ---- matrix_throughput.c --------------------------------------------------------------------- */

int matrix_throughput(struct matrix_bench *b, struct pp_error *err);

#endif
