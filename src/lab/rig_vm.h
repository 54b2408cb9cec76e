/* SPDX-License-Identifier: MIT
 *
 * Rig `vm`: a machine with drives whose power can be cut. QEMU boots a real Linux kernel, the
 * drives are nbdkit processes that the guest's own nbd client attaches, so FLUSH and FUA arrive as
 * the kernel sent them. All of it lives in a network namespace (netns.h).
 *
 * A cut pulls the cable, takes the drives' power (what is in their caches is lost by a seeded
 * draw), then kills the machine: in this order, because a dying QEMU closes its sockets and
 * flushes its drives. A guest that powers itself off leaves its drives in order, as firmware does
 * that tells a drive before its power goes; the outlet is still on then.
 *
 * Every function may be called from any thread.
 */
#ifndef PP_LAB_RIG_VM_H
#define PP_LAB_RIG_VM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/error.h"
#include "drive_host.h"

#define PP_RIG_DRIVES_MAX 16

struct pp_rig_vm_config {
	const struct pp_lab_drive *drives;
	int drive_count;
	uint64_t seed;
	const char *image_dir;     /* drive images and logs; NULL: in the run folder, gone at the end */
	const char *guest_tool, *plugin;
	const char *dut;           /* NULL: a machine without an agent */
	const char *kernel_dir;    /* NULL: Debian's cloud kernel, see guest_image.h */
	const char *accel;         /* "kvm", "tcg"; NULL: what works */
	unsigned memory_mb;        /* 0: 256 */
	void (*talk)(const char *text);
};

struct pp_rig_vm;

/* Network, kernel and initramfs; nothing has power yet. NULL on failure. */
struct pp_rig_vm *pp_rig_vm_open(const struct pp_rig_vm_config *config, struct pp_error *err);
/* Power off as it is, and everything removed. NULL is fine. */
void pp_rig_vm_close(struct pp_rig_vm *rig);

/* Where the agent reaches this host; known before the first power-on. */
const char *pp_rig_vm_host_address(const struct pp_rig_vm *rig);
const char *pp_rig_vm_run_dir(const struct pp_rig_vm *rig);
const char *pp_rig_vm_accel(const struct pp_rig_vm *rig);

/* From the next boot on: the agent's command line, NULL-terminated, and a key file for it. */
int pp_rig_vm_set_agent(struct pp_rig_vm *rig, const char *const words[], const void *key,
	size_t key_bytes, struct pp_error *err);

int pp_rig_vm_power_on(struct pp_rig_vm *rig, struct pp_error *err);
int pp_rig_vm_cut(struct pp_rig_vm *rig, struct pp_error *err);
/* Warm reboot: the drives keep their power, the cable stays in. */
int pp_rig_vm_reset(struct pp_rig_vm *rig, struct pp_error *err);
/* The machine dies but nothing loses power, and its sockets are closed: not a cut. */
int pp_rig_vm_kill_machine(struct pp_rig_vm *rig, struct pp_error *err);

bool pp_rig_vm_has_power(struct pp_rig_vm *rig);
double pp_rig_vm_watts(struct pp_rig_vm *rig);

/* Runs a line of sh in the guest, waiting for the guest to be up first. Its output goes to out. */
int pp_rig_vm_guest(struct pp_rig_vm *rig, const char *line, int64_t timeout_ms,
	struct pp_buf *out, int *status, struct pp_error *err);

/* A command of the plugin to a drive with power. */
int pp_rig_vm_drive_command(struct pp_rig_vm *rig, const char *serial, const char *command,
	struct pp_buf *out, struct pp_error *err);
/* From the next power-on: another drive in this one's place, or none (replacement NULL). */
int pp_rig_vm_swap(struct pp_rig_vm *rig, const char *serial,
	const struct pp_lab_drive *replacement, struct pp_error *err);
/* From the next power-on: the machine does not boot. */
void pp_rig_vm_set_no_boot(struct pp_rig_vm *rig, bool no_boot);
/* One JSON object. */
void pp_rig_vm_say_state(struct pp_rig_vm *rig, struct pp_buf *out);

#endif
