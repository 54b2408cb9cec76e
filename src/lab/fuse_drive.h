/* SPDX-License-Identifier: MIT
 *
 * The simulated drive as a file (libfuse3, fuse_lowlevel.h): FOLDER/disk, for a loop device to
 * stand on. A loop device sends WRITE and FLUSH (fsync), never FUA: it says `write back, fua 0`.
 * What it does is in drive_daemon.h.
 */
#ifndef PP_LAB_FUSE_DRIVE_H
#define PP_LAB_FUSE_DRIVE_H

#include "core/error.h"

#define PP_FUSE_DRIVE_FILE "disk"

/*
 * Mounts on the folder (what an earlier daemon left mounted there is detached), starts the drive's
 * threads and serves; the drive must be powered on. Returns only when it was unmounted or told to
 * end by a signal, or on failure.
 */
int pp_fuse_drive_serve(const char *folder, struct pp_error *err);

#endif
