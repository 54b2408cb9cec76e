/* SPDX-License-Identifier: MIT
 *
 * Whole small files, safely: a reader sees the old content or the new, never a mixture, also after
 * a crash of this host (write to a temporary name, fsync, rename, fsync the directory).
 */
#ifndef PP_CORE_FILE_H
#define PP_CORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "buf.h"
#include "error.h"

/* Replaces path by these bytes. mode as for open(2). */
int pp_file_write(const char *path, const void *data, size_t bytes, mode_t mode,
	struct pp_error *err);

/* Appends the whole file to buf; refuses one that does not fit under buf->max_bytes. */
int pp_file_read(const char *path, struct pp_buf *buf, struct pp_error *err);

/* write(2) until all is written; -1 with errno set otherwise. */
int pp_write_all(int fd, const void *data, size_t bytes);

/* Makes a directory and its missing parents (0755); one that exists is fine. */
int pp_mkdirs(const char *path, struct pp_error *err);

/* Starts at a root: "/x" here; "C:\\x", "C:/x" or "\\\\server\\share" on Windows. */
bool pp_path_absolute(const char *path);
/* Absolute and nothing but a root: the whole of a machine, drive or share. */
bool pp_path_is_root(const char *path);
/* realpath(3): absolute, '/' between the parts, no link or ".." in it; false where it is not there
 * or does not fit. */
bool pp_path_real(const char *path, char *out, size_t out_bytes);
/* A device, by a name that may mean another drive after the next boot. */
bool pp_path_is_device(const char *path);

/* Makes the directory entry itself durable: fsync(2) of the directory that holds path. */
int pp_file_sync_parent(const char *path, struct pp_error *err);

#endif
