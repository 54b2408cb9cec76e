/* SPDX-License-Identifier: MIT
 *
 * What the matrix asks of a system beside the methods' own calls (method_io.h): matrix_sys_linux.c,
 * matrix_sys_win.c. Each returns 0, or the system's code as struct pp_error keeps it.
 */
#ifndef PP_WRITER_MATRIX_SYS_H
#define PP_WRITER_MATRIX_SYS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/core/descriptor.h"

/* What a code means, for the reason of an n/a. */
enum matrix_code { MATRIX_CODE_OTHER, MATRIX_CODE_INVALID, MATRIX_CODE_UNSUPPORTED,
	MATRIX_CODE_EXISTS, MATRIX_CODE_MISSING };
enum matrix_code matrix_sys_code(int64_t os_code);

/* Flags as in descriptor.h, with O_CREAT and O_EXCL: a new file is 0600. */
int64_t matrix_sys_open(const char *path, int flags, int *fd);
/* The same of a file in an open folder, whose path is folder_name. */
int64_t matrix_sys_open_in(int folder, const char *folder_name, const char *name, int flags,
	int *fd);
int64_t matrix_sys_remove_in(int folder, const char *folder_name, const char *name);
int64_t matrix_sys_open_folder(const char *path, int *fd);
/* A file in that folder that leaves nothing behind, to ask what its files can do; -1 if there is none. */
int matrix_sys_open_nameless(int folder, const char *folder_name, int flags);
int64_t matrix_sys_close(int fd);
int64_t matrix_sys_make_folder(const char *path);
int64_t matrix_sys_remove_folder(const char *path);
int64_t matrix_sys_remove(const char *path);

/* All of it, or a short count in *n. */
int64_t matrix_sys_write(int fd, const void *buf, uint32_t bytes, uint64_t offset, uint32_t *n);
int64_t matrix_sys_read(int fd, void *buf, uint32_t bytes, uint64_t offset, uint32_t *n);
int64_t matrix_sys_set_size(int fd, uint64_t bytes);
/* Blocks for so many bytes, unwritten; the file is that long. */
int64_t matrix_sys_allocate(int fd, uint64_t bytes);
int64_t matrix_sys_sync(int fd);        /* with all that it takes */
int64_t matrix_sys_sync_folder(int fd);

int64_t matrix_sys_free_bytes(const char *folder, uint64_t *bytes);
/* Drops the file from RAM: true only where it is known that next to nothing of it is left there. */
bool matrix_sys_drop(int fd, uint64_t from, uint64_t bytes);
void matrix_sys_random(int fd);         /* will be read here and there */
/* Least block of direct I/O; 0 where the system does not say. */
uint32_t matrix_sys_direct_block(const char *path);

#endif
