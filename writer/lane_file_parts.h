/* SPDX-License-Identifier: MIT
 *
 * Shared by lane_file*.c only: how a lane's file is reached on a system. What the lane then asks of
 * it is in lane_file.c, by the calls of disk.h and method_io.h.
 */
#ifndef PP_WRITER_LANE_FILE_PARTS_H
#define PP_WRITER_LANE_FILE_PARTS_H

#include "lane_file.h"

/* Opens file->name as the method wants it, or the folder, into file->fd. */
int lane_file_reach(struct pp_lane_file *file, struct pp_error *err);
/* Is it what the workload needs? *end: the size of a file or disk. */
int lane_file_look(const struct pp_lane_file *file, uint64_t *end, struct pp_error *err);
/*
 * Sets up file->io. A folder opens whatever the file system can do: what it lacks must show before
 * the run, not as a failed write within it, so a file that leaves nothing behind is asked.
 */
int lane_file_try(struct pp_lane_file *file, struct pp_error *err);

#endif
