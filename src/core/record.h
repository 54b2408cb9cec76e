/* SPDX-License-Identifier: MIT
 *
 * Records (docs/method.md, M3). A record is one write: a whole number of 512-byte cells. Every cell
 * identifies itself, so that after a cut each 512 bytes found on the target can say whose they are,
 * where they were meant to be and what their writer already knew to be durable.
 *
 * Cell, little-endian, 512 bytes:
 *	  0  u64  magic "PPCELL1\n"
 *	  8  u8   run id [16]
 *	 24  u32  lane
 *	 28  u32  cell index within the record
 *	 32  u32  cells of the record
 *	 36  u32  flags: bit 0 compressible payload
 *	 40  u64  sequence of the record in its lane (first is 1)
 *	 48  u64  byte offset of this cell on the target (file or device)
 *	 56  i64  issue time, nanoseconds on the writer's monotonic clock
 *	 64  u64  durable: highest sequence of the lane whose sync had returned when this was issued
 *	 72  u8   payload [432], regenerated from (run, lane, sequence, cell index)
 *	504  u64  XXH3-64 of bytes 0 ... 503
 */
#ifndef PP_CORE_RECORD_H
#define PP_CORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

#define PP_CELL_BYTES         512
#define PP_CELL_PAYLOAD_BYTES 432
#define PP_RECORD_BYTES_MAX   (1U << 20)
#define PP_RUN_ID_TEXT_BYTES  33

struct pp_run_id {
	uint8_t bytes[16];
};

/* What the cells of one record share. */
struct pp_record {
	struct pp_run_id run;
	uint32_t lane;
	uint32_t cells;     /* record size / 512 */
	uint32_t flags;     /* PP_RECORD_COMPRESSIBLE or 0 */
	uint64_t seq;       /* 1 is the first; 0 only in records that a set-up wrote */
	uint64_t offset;    /* bytes, of the record's first cell */
	int64_t issued_ns;
	uint64_t durable;
};
#define PP_RECORD_COMPRESSIBLE 1U

enum pp_cell_kind {
	PP_CELL_VALID,   /* magic, checksum and the whole payload are right */
	PP_CELL_ZERO,    /* 512 bytes of 00 */
	PP_CELL_FF,      /* 512 bytes of FF */
	PP_CELL_DAMAGED, /* anything else */
};

struct pp_cell {
	struct pp_record record; /* record.offset is the record's, not the cell's */
	uint32_t index;
};

/* Draws 128 bits by pp_random_bytes. */
int pp_run_id_draw(struct pp_run_id *id, struct pp_error *err);
bool pp_run_id_equal(const struct pp_run_id *a, const struct pp_run_id *b);
void pp_run_id_format(const struct pp_run_id *id, char text[PP_RUN_ID_TEXT_BYTES]);
/* 32 lower-case hex digits, nothing else; false otherwise. */
bool pp_run_id_parse(const char *text, struct pp_run_id *id);

/* Fills record->cells * 512 bytes at buf. */
void pp_record_fill(void *buf, const struct pp_record *record);

/* Judges 512 bytes by themselves. *cell is filled only for PP_CELL_VALID. */
enum pp_cell_kind pp_cell_check(const void *cell512, struct pp_cell *cell);

/*
 * Judges a whole record: true if every one of `cells` cells at buf is valid, all of one record
 * (same run, lane, sequence, issue time, durable), in order, and meant for `offset`.
 * Then *record is that record.
 */
bool pp_record_check(const void *buf, uint32_t cells, uint64_t offset, struct pp_record *record);

/* One whole-buffer test each; bytes is a multiple of 8. */
bool pp_bytes_all(const void *buf, size_t bytes, uint8_t value);

#endif
