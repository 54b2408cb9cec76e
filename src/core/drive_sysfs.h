/* SPDX-License-Identifier: MIT
 *
 * Reading sysfs and procfs below a sysroot: for drive_*_linux.c and target_*_linux.c only.
 * Attributes come trimmed of surrounding blanks. Each function returns false where the attribute is
 * missing or too long.
 */
#ifndef PP_CORE_DRIVE_SYSFS_H
#define PP_CORE_DRIVE_SYSFS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drive.h"

/* NULL becomes the living system. */
const struct pp_sysroot *pp_sys(const struct pp_sysroot *sys);
bool pp_sys_living(const struct pp_sysroot *sys);

bool pp_sys_text(const struct pp_sysroot *sys, char *out, size_t out_bytes, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
bool pp_sys_u64(const struct pp_sysroot *sys, uint64_t *value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Up to bytes of a binary attribute; how many were read, or -1. */
long pp_sys_bytes(const struct pp_sysroot *sys, void *out, size_t bytes, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
bool pp_sys_exists(const struct pp_sysroot *sys, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Names in a folder, sorted, without dot files: malloc'ed rows, NULL and 0 where there is no such
 * folder or nothing in it.
 */
size_t pp_sys_names(const struct pp_sysroot *sys, char (**names)[PP_DRIVE_NAME_BYTES],
	const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The folder of a disk or partition, the sysroot cut off: "/sys/devices/…/block/sda". */
bool pp_sys_block_dir(const struct pp_sysroot *sys, const char *name, char out[PATH_MAX]);

/* One row of /proc/self/mountinfo (proc(5)), octal escapes undone. */
struct pp_mount {
	int id;
	unsigned dev_major, dev_minor;
	char root[512];
	char mount_point[512];
	char options[512];
	char fs_type[32];
	char source[256];
	char super_options[1024];
};

/* All rows in the kernel's order; malloc'ed. */
int pp_mounts_read(const struct pp_sysroot *sys, struct pp_mount **mounts, size_t *count,
	struct pp_error *err);
/* The row with this id; NULL if none. */
const struct pp_mount *pp_mounts_by_id(const struct pp_mount *mounts, size_t count, int id);

/* Kernel name of the block device with this number. */
bool pp_sys_name_of_dev(const struct pp_sysroot *sys, unsigned dev_major, unsigned dev_minor,
	char name[PP_DRIVE_NAME_BYTES]);

/* Kernel name of a device node ("/dev/sda1", "/dev/mapper/x", "/dev/disk/by-id/…"). */
bool pp_sys_name_of_node(const struct pp_sysroot *sys, const char *node,
	char name[PP_DRIVE_NAME_BYTES]);

/* "/dev/" and the kernel's name, '!' turned into '/'. */
void pp_sys_node(const char *name, char node[PP_DRIVE_NODE_BYTES]);

/* The drive's own pages, by ioctl or from a recorded machine's folder `asked`. False: no answer. */
bool pp_ask_ata(const struct pp_sysroot *sys, const struct pp_drive_info *info, uint8_t page[512]);
bool pp_ask_nvme(const struct pp_sysroot *sys, const struct pp_drive_info *info,
	uint8_t page[4096]);
bool pp_ask_nvme_ns(const struct pp_sysroot *sys, const struct pp_drive_info *info,
	uint8_t page[4096]);
bool pp_ask_nvme_cache(const struct pp_sysroot *sys, const struct pp_drive_info *info, bool *on);

/* Little-endian words, as ATA's IDENTIFY has them. */
unsigned pp_ata_word(const uint8_t *page, int word);

#endif
