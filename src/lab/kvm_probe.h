/* SPDX-License-Identifier: MIT
 *
 * Whether a guest runs under KVM here. /dev/kvm that opens proves nothing, and neither does a
 * virtual CPU that executes HLT: on a nested host both worked, and a Linux kernel never got to its
 * first message. So the lab's own kernel and initramfs are booted once.
 */
#ifndef PP_LAB_KVM_PROBE_H
#define PP_LAB_KVM_PROBE_H

#include <stdbool.h>

#include "core/buf.h"

/* Boots vmlinuz with image (an initramfs without its trailer) until its init speaks; work_dir is
 * for the files of that boot. The answer is remembered in memo_dir until this host reboots. */
bool pp_kvm_works(const char *vmlinuz, const struct pp_buf *image, const char *work_dir,
	const char *memo_dir);

#endif
