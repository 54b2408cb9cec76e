/* SPDX-License-Identifier: MIT
 *
 * The parts of a base: a file or device, and lanes whose every slot is a file of its own. Private to
 * the writer.
 */
#ifndef PP_WRITER_PREWRITE_H
#define PP_WRITER_PREWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/layout.h"
#include "src/core/record.h"
#include "src/core/target.h"

/* A record of sequence 0 for this slot: record_bytes at buf. */
void pp_prewrite_fill(const struct pp_layout *layout, const struct pp_run_id *run_id,
	uint32_t flags, uint32_t lane, uint64_t slot, void *buf);

#define PP_PREWRITE_CHUNK_BYTES PP_RECORD_BYTES_MAX

struct pp_prewriting {
	const struct pp_layout *layout;
	const struct pp_run_id *run_id;
	const struct pp_target *target;
	uint32_t flags;
	uint8_t *chunk; /* of PP_PREWRITE_CHUNK_BYTES, aligned for direct I/O */
	uint32_t chunk_slots;
	int fd;
	const char *name;
};

/* Where files grow too: the room that the run will grow into must be there before it starts. */
int pp_prewrite_check_space(const char *path, uint64_t need_bytes, uint64_t held_bytes,
	struct pp_error *err);

/* All of it in one call, or an error. */
int pp_prewrite_whole(int fd, const char *name, const void *buf, size_t bytes, uint64_t offset,
	struct pp_error *err);

/* Writes and syncs the open file number `file`, with all lanes in it. */
int pp_prewrite_file(const struct pp_prewriting *p, uint32_t file, bool raw, struct pp_error *err);

/*
 * Makes the folder of a lane, or empties the one that is there, and writes a file for each of the
 * slots 0 ... slots - 1. buf has room for a record. Everything is durable when it returns 0: the
 * files by syncfs(2), the folder and its own name by fsync(2).
 */
int pp_prewrite_folder(const struct pp_layout *layout, const struct pp_run_id *run_id,
	uint32_t flags, const struct pp_target *target, const char *name, uint32_t lane,
	uint64_t slots, void *buf, struct pp_error *err);

/* Bytes that the files in a folder hold on the disk; one that is missing holds nothing. Fails for
 * what is no folder. */
int pp_prewrite_folder_held(const char *name, uint64_t *held_bytes, struct pp_error *err);

#endif
