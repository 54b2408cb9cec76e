/* SPDX-License-Identifier: MIT
 *
 * Are these figures plausible? (docs/method.md, M10.2) Reads the results of a speed matrix: our
 * JSON, what pg_test_fsync printed on any system, or a list by hand, and holds each figure against
 * what physics and the disk's own counters allow. A finding is a warning with figure and limit;
 * only a power cut gives a verdict.
 *
 * By hand, a line each, '#' begins a comment:
 *
 *	link: PCIe 2.0 x4
 *	rpm: 7200
 *	cache: on
 *	fdatasync: 3065 ops/s
 *	open_datasync (direct): 37 us
 *	sequential read: 2.79 GB/s
 */
#ifndef PP_CORE_ASSESS_H
#define PP_CORE_ASSESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "link.h"
#include "method.h"

#define PP_ASSESS_ROWS_MAX     1024
#define PP_ASSESS_BYTES_MAX    (16U << 20)

enum pp_assess_kind {
	PP_ASSESS_OTHER,         /* compared with nothing */
	PP_ASSESS_UNSYNCED,      /* writes into RAM */
	PP_ASSESS_DIRECT,        /* direct writes, no sync */
	PP_ASSESS_WRITE_THROUGH, /* the write is its own sync */
	PP_ASSESS_FLUSH,         /* a sync call after it */
	PP_ASSESS_READ,
	PP_ASSESS_WRITE,         /* throughput */
};

struct pp_assess_row {
	char label[48];
	char group[64];          /* rows of one group differ in the method alone */
	enum pp_assess_kind kind;
	bool in_place;           /* the same blocks again and again; true where nothing is said */
	bool media;              /* promises to survive a cut */
	bool may_send_fua, passthrough;
	uint32_t threads;
	double ops_per_s, bytes_per_s, latency_ns_p50; /* 0: not known */
	double bytes_asked;      /* of the whole row; 0: not known */
	double flushes_per_op, fua_per_op, foreign_per_s; /* -1: not known */
	double disk_bytes;       /* -1: not known */
	bool foreign;
};

enum pp_assess_cache { PP_ASSESS_CACHE_UNKNOWN, PP_ASSESS_CACHE_OFF, PP_ASSESS_CACHE_ON,
	PP_ASSESS_CACHE_PROTECTED };

/* What is known of the drive beside its figures. */
struct pp_assess_facts {
	struct pp_link link;     /* bytes_per_s 0: not known */
	bool rotational;
	double rpm;              /* 0: not known */
	enum pp_assess_cache cache;
};

struct pp_assess_input {
	const char *format;      /* "json", "pg_test_fsync", "list" */
	struct pp_assess_facts facts;
	struct pp_assess_row rows[PP_ASSESS_ROWS_MAX];
	size_t count;
};

/* The format is found out. What cannot be read names its line; nothing is skipped in silence. */
int pp_assess_read(const char *text, size_t bytes, struct pp_assess_input *input,
	struct pp_error *err);
/* A row of this label, with what its name alone says; and what a method of our table says. */
void pp_assess_row_init(struct pp_assess_row *row, const char *label);
void pp_assess_row_method(struct pp_assess_row *row, const struct pp_method *method);
/* One fact as a list has it: "link", "rpm", "cache". */
int pp_assess_fact(const char *name, const char *value, struct pp_assess_facts *facts,
	struct pp_error *err);

struct pp_assess_finding {
	const char *rule;        /* "link", "rotation", ... */
	const struct pp_assess_row *row;
	double figure, limit;    /* figure stands on the wrong side of limit */
	char text[256];          /* a sentence with both, and what it may mean */
};

struct pp_assess_rule {
	const char *name;
	const char *summary;     /* for manuals and --help */
	/* Fills figure, limit and text if the row offends. */
	bool (*offends)(const struct pp_assess_input *input, const struct pp_assess_row *row,
		struct pp_assess_finding *finding);
};
extern const struct pp_assess_rule pp_assess_rules[];
extern const size_t pp_assess_rule_count;

/* Up to max findings, rule by rule; how many there are. input must outlive them. */
size_t pp_assess(const struct pp_assess_input *input, struct pp_assess_finding *findings, size_t max);

#endif
