/* SPDX-License-Identifier: MIT
 *
 * What the lab's virtual machine boots: a kernel and an initramfs.
 *
 * The kernel is Debian's cloud kernel, downloaded with apt-get and unpacked into the user's cache
 * folder, never installed; or a folder of the user's own, laid out alike:
 *   DIR/vmlinuz  DIR/lib/modules/RELEASE/...
 * The initramfs is made anew at each start of a lab: it is a few MB that have to be read anyway to
 * know whether they changed.
 */
#ifndef PP_LAB_GUEST_IMAGE_H
#define PP_LAB_GUEST_IMAGE_H

#include "core/buf.h"
#include "core/error.h"

struct pp_guest_kernel {
	char vmlinuz[4096];
	char root[4096];    /* holds lib/modules/RELEASE */
	char release[128];
};

/* dir NULL: the cached kernel, downloaded first where there is none. Says what it does through
 * talk (may be NULL), since a download takes a while. */
int pp_guest_kernel_find(struct pp_guest_kernel *kernel, const char *dir,
	void (*talk)(const char *text), struct pp_error *err);

/* The boot-independent part of the initramfs, appended to archive without its trailer: init and
 * friends, busybox, file system tools that this host has, kernel modules, and dut (may be NULL) as
 * /bin/plugpull-dut. */
int pp_guest_image_build(struct pp_buf *archive, const struct pp_guest_kernel *kernel,
	const char *guest_tool, const char *dut, struct pp_error *err);

#endif
