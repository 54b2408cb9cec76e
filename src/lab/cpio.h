/* SPDX-License-Identifier: MIT
 *
 * Writes archives that the Linux kernel unpacks as an initramfs: cpio "newc"
 * (Documentation/driver-api/early-userspace/buffer-format.rst). Archives may be joined end to end;
 * later files replace earlier ones.
 */
#ifndef PP_LAB_CPIO_H
#define PP_LAB_CPIO_H

#include <sys/types.h>

#include "core/buf.h"

/* Appends an entry; name without a leading slash. Parent folders must have been added before.
 * Failure to allocate shows in archive->failed. */
void pp_cpio_dir(struct pp_buf *archive, const char *name);
void pp_cpio_file(struct pp_buf *archive, const char *name, mode_t permissions, const void *data,
	size_t bytes);
void pp_cpio_link(struct pp_buf *archive, const char *name, const char *to);
void pp_cpio_char_device(struct pp_buf *archive, const char *name, unsigned major, unsigned minor);
void pp_cpio_end(struct pp_buf *archive);

#endif
