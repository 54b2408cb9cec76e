/* SPDX-License-Identifier: MIT
 *
 * What of a simulated drive outlives its power, as files: the image, and its counters in a text
 * file beside it (IMAGE.counters, lines of `name value`).
 */
#ifndef PP_LAB_DRIVE_FILE_H
#define PP_LAB_DRIVE_FILE_H

#include "drive_model.h"

struct pp_sim_drive_file {
	struct pp_sim_drive_medium medium; /* reads and writes the image; valid until close */
	uint64_t size_bytes;
	char counters_path[4096];
	int fd;
};

/* size_bytes 0: as large as the file is. A new or shorter image is made that long, sparse. */
int pp_sim_drive_file_open(struct pp_sim_drive_file *file, const char *image, uint64_t size_bytes,
	struct pp_error *err);
void pp_sim_drive_file_close(struct pp_sim_drive_file *file);

/* A missing file is a new drive. */
int pp_sim_drive_file_load(const struct pp_sim_drive_file *file,
	struct pp_sim_drive_counters *counters,
	struct pp_error *err);
/* To be called after every power-on and power-off; a process killed in between is a cut. */
int pp_sim_drive_file_save(const struct pp_sim_drive_file *file,
	const struct pp_sim_drive_counters *counters,
	struct pp_error *err);

#endif
