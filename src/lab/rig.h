/* SPDX-License-Identifier: MIT
 *
 * A rig: a machine with drives whose power can be cut, in a network namespace of its own
 * (netns.h). Two kinds:
 *
 * `vm`    QEMU boots a real Linux kernel; the drives are nbdkit processes that the guest's own nbd
 *         client attaches, so FLUSH and FUA arrive as the kernel sent them.
 * `loop`  no VM: the machine is a set of namespaces (processes, mounts, time, network) on this
 *         kernel, with a boot identity and an uptime of its own; the drives are FUSE files
 *         (fuse_drive.h) beneath loop devices. Under a second a cycle. FLUSH only, no FUA.
 *
 * A cut pulls the cable, takes the drives' power (what is in their caches is lost by a seeded
 * draw), then kills the machine: in this order, because a dying machine closes its sockets and
 * flushes its drives. A machine that powers itself off leaves its drives in order, as firmware
 * does that tells a drive before its power goes; the outlet is still on then.
 *
 * Every function may be called from any thread.
 */
#ifndef PP_LAB_RIG_H
#define PP_LAB_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/error.h"
#include "drive_host.h"

#define PP_RIG_DRIVES_MAX 16

struct pp_rig_config {
	const char *kind;          /* "vm" or "loop" */
	const struct pp_lab_drive *drives;
	int drive_count;
	uint64_t seed;
	const char *image_dir;     /* drive images and logs; NULL: in the run folder, gone at the end */
	const char *guest_tool;    /* plugpull-lab-guest */
	const char *plugin;        /* plugpull-drive.so; vm only */
	const char *drive_tool;    /* plugpull-lab-drive; loop only */
	const char *dut;           /* NULL: a machine without an agent */
	const char *kernel_dir;    /* NULL: Debian's cloud kernel, see guest_image.h; vm only */
	const char *accel;         /* "kvm", "tcg"; NULL: what works; vm only */
	unsigned memory_mb;        /* 0: 256; vm only */
	void (*talk)(const char *text);
};

struct pp_rig;

/* A rig of this name exists. */
bool pp_rig_kind_exists(const char *kind);

/* All but power. NULL on failure. */
struct pp_rig *pp_rig_open(const struct pp_rig_config *config, struct pp_error *err);
/* Power off as it is, and everything removed. NULL is fine. */
void pp_rig_close(struct pp_rig *rig);

/* Where the agent reaches this host; known before the first power-on. */
const char *pp_rig_host_address(const struct pp_rig *rig);
const char *pp_rig_run_dir(const struct pp_rig *rig);
/* What runs the machine: "kvm", "tcg", "none". */
const char *pp_rig_accel(const struct pp_rig *rig);
/* Where plugpull-dut and the key lie, as the machine sees them. */
const char *pp_rig_dut_path(const struct pp_rig *rig);
const char *pp_rig_key_path(const struct pp_rig *rig);

/* From the next boot on: the agent's command line, NULL-terminated, and a key file for it. */
int pp_rig_set_agent(struct pp_rig *rig, const char *const words[], const void *key,
	size_t key_bytes, struct pp_error *err);

int pp_rig_power_on(struct pp_rig *rig, struct pp_error *err);
int pp_rig_cut(struct pp_rig *rig, struct pp_error *err);
/* Warm reboot: the drives keep their power. */
int pp_rig_reset(struct pp_rig *rig, struct pp_error *err);
/* The machine dies but nothing loses power, and its sockets are closed: not a cut. */
int pp_rig_kill_machine(struct pp_rig *rig, struct pp_error *err);
/* A line of sh that kills the agent, for pp_rig_guest. */
const char *pp_rig_kill_agent_line(const struct pp_rig *rig);

bool pp_rig_has_power(struct pp_rig *rig);
double pp_rig_watts(struct pp_rig *rig);

/* Runs a line of sh in the machine, waiting for it to be up first. Its output goes to out. */
int pp_rig_guest(struct pp_rig *rig, const char *line, int64_t timeout_ms, struct pp_buf *out,
	int *status, struct pp_error *err);

/* A command of the drive's process (drive_daemon.h) to a drive with power. */
int pp_rig_drive_command(struct pp_rig *rig, const char *serial, const char *command,
	struct pp_buf *out, struct pp_error *err);
/* From the next power-on: another drive in this one's place, or none (replacement NULL). */
int pp_rig_swap(struct pp_rig *rig, const char *serial, const struct pp_lab_drive *replacement,
	struct pp_error *err);
/* From the next power-on: the machine does not boot. */
void pp_rig_set_no_boot(struct pp_rig *rig, bool no_boot);
/* One JSON object. */
void pp_rig_say_state(struct pp_rig *rig, struct pp_buf *out);

#endif
