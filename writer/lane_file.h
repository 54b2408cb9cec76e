/* SPDX-License-Identifier: MIT
 *
 * One open file description on a run's target: what a lane writes to. Each lane opens its own, since
 * a failed sync is reported once per open file (fsync(2); docs/method.md, M2.3).
 */
#ifndef PP_WRITER_LANE_FILE_H
#define PP_WRITER_LANE_FILE_H

#include "lane.h"
#include "src/core/method_io.h"
#include "src/core/target.h"

#define PP_LANE_ALIGN_BYTES 4096 /* of buffers for direct I/O */
#define PP_LANE_PATH_MAX    4000 /* characters; leaves room for what pp_layout_file_name adds */

struct pp_lane_file {
	int fd;          /* the file or device; the lane's folder where every slot is a file */
	char name[4096];
	const struct pp_layout *layout;
	const struct pp_method *method;
	uint32_t lane;
	struct pp_method_io io;
	/* Where every slot is a file: those of the group in work that are not yet synced. */
	struct { struct pp_method_io io; uint64_t slot; } record[PP_GROUP_MAX];
	uint32_t records;
};

/*
 * Opens the file of `lane`, or the device, with the method's flags, or the lane's folder. Creates
 * and truncates nothing. Fails if it is neither a regular file nor a block device (a folder), too
 * short for the lane's region, or (append) longer than the lane's base slots: then a record would
 * overwrite instead of append; or, unless target is NULL, not on the proven drive (M2.7); or, with
 * PP_ERR_UNSUPPORTED, if the method cannot be had there. layout and method are kept. Raises this
 * process's limit of open files where a run needs more (setrlimit(2)).
 */
int pp_lane_file_open(struct pp_lane_file *file, const struct pp_layout *layout,
	const struct pp_method *method, const struct pp_target *target, const char *path,
	uint32_t lane, struct pp_error *err);
int pp_lane_file_close(struct pp_lane_file *file, struct pp_error *err);

/* Calls on this target; it must outlive the lane. */
void pp_lane_file_io(struct pp_lane_file *file, struct pp_lane_io *io);

#endif
