/* SPDX-License-Identifier: MIT
 *
 * What writer and matrix ask of a system beside the methods' own calls (method_io.h): disk_linux.c,
 * disk_win.c. Each returns 0, or the system's code as struct pp_error keeps it.
 */
#ifndef PP_WRITER_DISK_H
#define PP_WRITER_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "src/core/descriptor.h"

/* What a code means, for the reason of an n/a. */
enum disk_code { DISK_CODE_OTHER, DISK_CODE_INVALID, DISK_CODE_UNSUPPORTED,
	DISK_CODE_EXISTS, DISK_CODE_MISSING, DISK_CODE_BUSY };
enum disk_code disk_code_of(int64_t os_code);

/* Flags as in descriptor.h, with O_CREAT and O_EXCL: a new file is 0600. */
int64_t disk_open(const char *path, int flags, int *fd);
/* The same of a file in an open folder, whose path is folder_name. */
int64_t disk_open_in(int folder, const char *folder_name, const char *name, int flags,
	int *fd);
int64_t disk_remove_in(int folder, const char *folder_name, const char *name);
/* Over an older file of that name. */
int64_t disk_rename_in(int folder, const char *folder_name, const char *from, const char *to);
int64_t disk_open_folder(const char *path, int *fd);
/* A file in that folder that leaves nothing behind, to ask what its files can do; *fd is -1 if there
 * is none. */
int64_t disk_open_nameless(int folder, const char *folder_name, int flags, int *fd);
int64_t disk_close(int fd);
int64_t disk_make_folder(const char *path);
int64_t disk_remove_folder(const char *path);
int64_t disk_remove(const char *path);

/* All of it, or a short count in *n. */
int64_t disk_write(int fd, const void *buf, uint32_t bytes, uint64_t offset, uint32_t *n);
int64_t disk_read(int fd, void *buf, uint32_t bytes, uint64_t offset, uint32_t *n);
int64_t disk_set_size(int fd, uint64_t bytes);
/* Blocks for so many bytes, unwritten; the file is that long. */
int64_t disk_allocate(int fd, uint64_t bytes);
int64_t disk_sync(int fd);        /* with all that it takes */
int64_t disk_sync_folder(int fd);

int64_t disk_free_bytes(const char *folder, uint64_t *bytes);
/* Drops the file from RAM: true only where it is known that next to nothing of it is left there. */
bool disk_drop(int fd, uint64_t from, uint64_t bytes);
void disk_random(int fd);         /* will be read here and there */
/* Least block of direct I/O; 0 where the system does not say. */
uint32_t disk_direct_block(const char *path);

#endif
