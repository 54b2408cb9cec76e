/* SPDX-License-Identifier: MIT
 *
 * What scan_source.c asks of a system: scan_disk_linux.c, scan_disk_win.c. -1 with errno.
 */
#ifndef PP_VERIFIER_SCAN_DISK_H
#define PP_VERIFIER_SCAN_DISK_H

#include <stdint.h>

int scan_disk_open(const char *path, int flags); /* as descriptor.h has them */
int scan_disk_size(int fd, uint64_t *bytes);     /* of a file or device */
uint32_t scan_disk_block(int fd);                /* logical block beneath; 0 where it is not told */
/* Drops these bytes from RAM as far as the system does that: dirty or mapped pages stay. */
void scan_disk_forget(int fd, uint64_t from, uint64_t bytes);

#endif
