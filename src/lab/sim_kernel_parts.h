/* SPDX-License-Identifier: MIT
 *
 * The inside of the simulated kernel, for sim_kernel.c (calls and what they make the drive do) and
 * sim_files.c (where things lie, metadata and journal, what a reader sees).
 */
#ifndef PP_LAB_SIM_KERNEL_PARTS_H
#define PP_LAB_SIM_KERNEL_PARTS_H

#include "sim_kernel.h"

#define SECTOR       PP_DRIVE_SECTOR_BYTES
#define STAGES_MAX   8
#define SNAPSHOTS    256   /* commits that a liar may bring back */
#define COMMIT_STEP  4096  /* the two commit records lie so far apart */

enum stage {
	STAGE_TIME,    /* the call itself */
	STAGE_RECORD,  /* a direct write */
	STAGE_FUA,     /* the same with FUA */
	STAGE_DATA,    /* dirty pages of the actor's file */
	STAGE_OWN,     /* the record that was just written, from the page cache */
	STAGE_FLUSH,
	STAGE_JOURNAL, /* waits for the journal, then a flush */
	STAGE_COMMIT,  /* the commit record; frees the journal */
	STAGE_SETTLED, /* frees the journal after the flush that stands in for FUA */
};

struct extent {
	uint64_t at;       /* on the disk */
	uint32_t lane;
	uint64_t slot;
	uint32_t file;
	uint8_t place;     /* where every slot is a file: 1 or 2 */
};

/* What the file system's metadata say. */
struct meta {
	uint64_t number;             /* of the commit */
	uint64_t bytes[PP_LANES_MAX]; /* own files: size, or what of the allocated is written */
	/* Where every slot is a file, one byte a slot: which place the name (the temporary name) points
	 * to, 0 none; and for each of the two places whether it holds a record. */
	uint8_t *name, *temporary, *full;
};

/* Who has something going on: a lane, or the flusher of the page cache. */
struct actor {
	struct pp_sim_kernel *kernel;
	uint32_t number;
	enum stage stage[STAGES_MAX];
	unsigned stages, at;
	bool begun;
	int64_t end_ns;              /* of the stage that has begun */
	uint32_t file;               /* of STAGE_DATA: ALL_FILES or one */
	const void *data;            /* of STAGE_RECORD */
	struct extent own;           /* the record of the last write */
	struct extent *extent;       /* in progress */
	struct pp_sim_drive_write *write;
	uint32_t writes, room;
	uint64_t flush_mark;
};

struct pp_sim_kernel {
	struct pp_sim_drive *drive;
	struct pp_sim_disk *disk;
	const struct pp_layout *layout;
	enum pp_target_kind kind;
	bool fua, barriers, cache;   /* cache: the drive says that it has a volatile one */
	bool files, grows, journal;  /* every slot a file; takes slots once; has metadata to commit */
	bool ok, mounted;
	const struct pp_method *method;
	uint64_t random;
	uint64_t fails_in;           /* calls until one fails; 0: none will */
	int64_t now_ns;
	uint64_t entries;            /* slots of all lanes, where every slot is a file */

	uint8_t *page;               /* the page cache, as large as the disk */
	uint8_t *dirty_map;          /* one a sector: first sectors of dirty records */
	struct extent *dirty;
	uint32_t dirty_count, dirty_room;

	struct meta now, disk_meta;  /* in memory; as the mount found it */
	struct meta snapshot[SNAPSHOTS], first;
	uint64_t committed;          /* number of the last commit begun */
	bool journal_busy;
	uint8_t commit_record[SECTOR];
	struct pp_sim_drive_write commit_write;

	int64_t flusher_ns;          /* period; 0: none */
	struct actor actor[PP_LANES_MAX + 1];
};

/* Where a record lies on the disk; place is 1 or 2 where every slot is a file. */
uint64_t pp_sim_place_at(const struct pp_sim_kernel *k, uint32_t lane, uint64_t slot, uint8_t place);
/* Number of a slot over all lanes. */
uint64_t pp_sim_slot_entry(const struct pp_sim_kernel *k, uint32_t lane, uint64_t slot);
/* Data of this extent is on the drive: sizes may be committed. */
void pp_sim_written(struct pp_sim_kernel *k, const struct extent *e);

int pp_sim_meta_init(struct meta *m, uint64_t entries);
/* What the metadata say now is what the next commit record will stand for. */
void pp_sim_begin_commit(struct pp_sim_kernel *k);
void pp_sim_put_commit(uint8_t record[SECTOR], uint64_t number);

#endif
