/* SPDX-License-Identifier: MIT
 *
 * The inside of the oracle, for oracle.c (what is a loss) and oracle_survey.c (does the evidence hold
 * together, and what is D); nobody else includes this.
 */
#ifndef PP_VERIFIER_ORACLE_PARTS_H
#define PP_VERIFIER_ORACLE_PARTS_H

#include "oracle.h"

/* A cell as found, whatever form the scan kept it in. */
struct found {
	enum { FOUND_VALID, FOUND_ZERO, FOUND_FF, FOUND_DAMAGED, FOUND_UNREAD, FOUND_ABSENT,
		FOUND_GONE } kind;
	struct pp_cell cell;    /* FOUND_VALID */
	const uint8_t *bytes;   /* raw bytes where the scan kept them, else NULL */
};

struct version;

struct oracle {
	const struct pp_oracle_input *in;
	struct pp_oracle_result *out;
	uint32_t cells;
	size_t loss_room;
	struct version *version; /* of records found torn or out of place; free it */
	size_t versions, version_room;
	struct pp_error *err;
};

struct place {
	uint32_t lane;
	uint64_t slot, offset;
	uint64_t expected;      /* e; 0: the base */
	uint64_t flight;        /* the one of F; 0: none */
	bool hole;              /* e is a base that never held anything */
	bool replaced;          /* M4.5: what stands here came there whole, by its name */
};

/* The slot as scanned; one that is not in the scan is absent. */
const struct pp_scan_slot *pp_oracle_slot(const struct pp_scan *scan, uint32_t lane, uint64_t slot);
/* Cell i of a slot whose record lies at offset. */
struct found pp_oracle_cell(const struct pp_scan *scan, const struct pp_scan_slot *s, uint32_t i,
	uint64_t offset);
static inline bool pp_oracle_bit(const uint8_t *map, uint32_t i)
{
	return map[i / 8] >> i % 8 & 1;
}

/* A + W, or the last record that there is room for. */
uint64_t pp_oracle_bound(const struct oracle *o, uint32_t lane);
bool pp_oracle_is_ours(const struct oracle *o, const struct found *f);
/* True where the cell's own offset says that it belongs at byte offset + index * 512. */
bool pp_oracle_in_place(const struct pp_cell *cell, uint32_t index, uint64_t offset);
/* What belongs into a slot: needs D. */
struct place pp_oracle_place(const struct oracle *o, uint32_t lane, uint64_t slot);

/* First pass: whether scans, base and run fit together, then D of each lane. -1 with o->err where the
 * evidence contradicts itself (M4.6). */
int pp_oracle_survey(struct oracle *o);
/* Ids in the scan that nobody ordered (M3.2). */
void pp_oracle_list_unknown_runs(struct oracle *o);

#endif
