/* SPDX-License-Identifier: MIT
 *
 * The policy of a drive on Linux, on any machine: a recorded one, or one that a test made up. policy.h
 * is this on the living one. For policy*_linux.c and its test only.
 */
#ifndef PP_CORE_POLICY_OPS_LINUX_H
#define PP_CORE_POLICY_OPS_LINUX_H

#include "policy.h"

/* In a lab's machine alone: policy_lab_linux.c. */
#define PP_POLICY_LAB_PROGRAM "plugpull-lab-cache"
int pp_policy_lab_cache(const char *node, enum pp_drive_cache *cache);
int pp_policy_lab_set_cache(const char *node, bool on);

/* Each returns 0, or an errno value; a drive that refuses is EIO. NULL is ENOTSUP. */
struct pp_policy_ops {
	/* SCSI MODE SENSE, current values of page 08h: is WCE set? */
	int (*scsi_write_cache)(const char *node, bool *on);
	/* ATA IDENTIFY through SCSI (SAT), for disks behind a bridge */
	int (*sat_identify)(const char *node, uint8_t page[512]);
	/* ATA SET FEATURES 02h or 82h through ATA PASS-THROUGH(16) */
	int (*ata_set_cache)(const char *node, bool on);
	/* NVMe Set Features 06h, not saved */
	int (*nvme_set_cache)(const char *node, bool on);
	/* A lab's drive, behind nbd or a loop device; ENOTSUP where there is no lab */
	int (*lab_cache)(const char *node, enum pp_drive_cache *cache);
	int (*lab_set_cache)(const char *node, bool on);
	/* Writes a sysfs attribute; path begins with "/sys". */
	int (*write_text)(const struct pp_sysroot *sys, const char *path, const char *text);
};

struct pp_policy_host {
	const struct pp_sysroot *sys;
	const struct pp_policy_ops *ops; /* NULL: nothing can be asked or changed */
};

extern const struct pp_policy_ops pp_policy_ops_live;
extern const struct pp_policy_host pp_policy_host_live;

int pp_policy_read_on(const struct pp_policy_host *host, const char *disk, struct pp_policy *policy,
	struct pp_error *err);
int pp_policy_save_on(const struct pp_policy_host *host, const char *disk,
	struct pp_policy_saved *saved, struct pp_error *err);
int pp_policy_set_on(const struct pp_policy_host *host, const char *disk,
	const struct pp_policy_setting *setting, struct pp_policy_saved *saved, struct pp_error *err);
int pp_policy_restore_on(const struct pp_policy_host *host, const char *disk,
	const struct pp_policy_saved *saved, struct pp_error *err);

#endif
