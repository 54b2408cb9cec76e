/* SPDX-License-Identifier: MIT
 *
 * Open descriptors, as either system has them. On Windows a descriptor is the C runtime's number of
 * a HANDLE (_open_osfhandle), so that generic code is the same; see handle_win.h.
 *
 * Flags are those of open(2). Those that a system's <fcntl.h> lacks get a value here; each system's
 * own open makes of them what it has for them.
 */
#ifndef PP_CORE_DESCRIPTOR_H
#define PP_CORE_DESCRIPTOR_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "error.h"

#ifndef O_CLOEXEC
#define O_CLOEXEC O_NOINHERIT
#endif
#ifndef O_NONBLOCK
#define O_NONBLOCK 0
#endif
#ifndef O_DIRECT
#define O_DIRECT 0x01000000    /* FILE_FLAG_NO_BUFFERING */
#endif
#ifndef O_DSYNC
#define O_DSYNC 0x02000000     /* FILE_FLAG_WRITE_THROUGH */
#endif
#ifndef O_SYNC
#define O_SYNC O_DSYNC
#endif
#ifndef O_NOFOLLOW
#define O_NOFOLLOW 0x04000000  /* FILE_FLAG_OPEN_REPARSE_POINT, and refused if it is one */
#endif
#ifndef O_DIRECTORY
#define O_DIRECTORY 0x08000000 /* FILE_FLAG_BACKUP_SEMANTICS, and refused if it is none */
#endif

/* openat(2) of a name without a slash in an open folder. */
int pp_fd_open_in(int folder, const char *name, int flags, int *fd, struct pp_error *err);
/* Another descriptor of the same open file, not inherited by other programs. */
int pp_fd_dup(int fd, int *copy, struct pp_error *err);
/* pread(2): -1 with errno. On Windows it moves the position, so one thread uses a descriptor. */
ssize_t pp_fd_pread(int fd, void *buf, size_t bytes, uint64_t offset);
/* Where it really is: absolute, no link or ".." in it. */
int pp_fd_path(int fd, char *out, size_t out_bytes, struct pp_error *err);

struct pp_fd_facts {
	bool is_file, is_folder; /* neither: a device, or something else */
	uint64_t names;          /* hard links */
	uint64_t size_bytes;
};
int pp_fd_facts(int fd, struct pp_fd_facts *facts, struct pp_error *err);

#endif
