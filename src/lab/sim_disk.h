/* SPDX-License-Identifier: MIT
 *
 * The medium of a simulated drive in memory: bytes, and which sectors cannot be read. The simulator
 * looks at it directly, past the drive: that is how it knows the truth.
 */
#ifndef PP_LAB_SIM_DISK_H
#define PP_LAB_SIM_DISK_H

#include "drive_model.h"

struct pp_sim_disk {
	uint64_t bytes;
	uint8_t *data;
	uint8_t *bad;       /* one a sector: cannot be read until written */
	uint64_t bad_count; /* how many of them */
};

int pp_sim_disk_init(struct pp_sim_disk *disk, uint64_t bytes, struct pp_error *err);
void pp_sim_disk_release(struct pp_sim_disk *disk);

/* Reads, writes and spoils this disk, which must outlive it. */
void pp_sim_disk_medium(struct pp_sim_disk *disk, struct pp_sim_drive_medium *medium);

#endif
