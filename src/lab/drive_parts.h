/* SPDX-License-Identifier: MIT
 *
 * The inside of a simulated drive, for drive_model.c (requests and cache) and drive_injury.c (what
 * a cut does to data that had reached the medium) alone.
 */
#ifndef PP_LAB_DRIVE_PARTS_H
#define PP_LAB_DRIVE_PARTS_H

#include "draw.h"
#include "drive_model.h"

/* Slot numbers are kept plus one, so that zeroed memory reads "none". */
struct slot {
	uint64_t sector;
	uint32_t chain;          /* next in the hash chain */
	uint32_t older, younger; /* by the time it became dirty */
	uint64_t stamp;          /* counts sectors that became dirty */
	int64_t dirty_ns;        /* when it became dirty ... */
	int64_t arrived_ns;      /* ... and when its newest content came */
	uint64_t group;          /* of an atomic write: its number; 0: none, or it stands alone */
	uint64_t group_first;    /* its first sector ... */
	uint32_t group_sectors;  /* ... and how many it has */
};

/* What stood in a sector before it was written over. */
struct undo {
	uint64_t sector;
	int64_t at_ns;
	unsigned char old[PP_DRIVE_SECTOR_BYTES];
};
#define UNDO_SECTORS 4096

struct pp_sim_drive {
	struct pp_sim_drive_config config;
	struct pp_sim_drive_medium medium;
	struct pp_sim_drive_counters counters, at_power_on;
	bool power, dead;
	bool cache_off;          /* the host switched it off in this power cycle */
	unsigned does;           /* flags in force in this power cycle */

	struct slot *slots;
	unsigned char *data;     /* a sector a slot */
	uint32_t *heads;         /* of the hash chains */
	uint32_t capacity, used, head_mask;
	uint32_t oldest, youngest;
	uint64_t stamp, groups;

	int64_t now_ns;          /* of the latest request */
	int64_t destaged_ns;     /* destaging is accounted up to here */
	uint64_t credit_bytes;   /* earned, less than a sector */
	int64_t rate_from_ns;    /* PP_DRIVE_FAST_LIES: bytes since then, and the last figure */
	uint64_t rate_bytes, rate_bytes_per_s;
	uint64_t random;
	struct pp_sim_drive_write *in_progress;

	struct undo *undo;       /* a ring: the youngest stands before undo_end */
	uint32_t undo_end, undo_count;
	uint64_t flicker_sector; /* PP_DRIVE_FLICKERS: cannot be read so many times more */
	unsigned flicker_left;
	uint64_t epoch_bytes;    /* written since the mapping table was saved */
};

/* Keeps what a sector holds, before it is written over. */
int pp_drive_remember(struct pp_sim_drive *d, uint64_t sector);
/* What the cut does to what was there already; `random` is the cut's. The cache is still whole. */
int pp_drive_injure(struct pp_sim_drive *d, uint64_t *random);
/* What the next power-on finds (a third of the drive gone, ...). */
void pp_drive_age(struct pp_sim_drive *d);

#endif
