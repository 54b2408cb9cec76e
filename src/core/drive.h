/* SPDX-License-Identifier: MIT
 *
 * Which drive is this? Identity, sizes and cache policy of a block device, and what lies beneath a
 * path: partitions, dm, md, loop, down to whole disks.
 *
 * Everything is read through a sysroot (sysfs and procfs below a prefix), so that a recorded
 * machine can be replayed; what needs an ioctl goes through struct pp_drive_ops.
 * Rests on: Documentation/ABI/{stable/sysfs-block,testing/sysfs-block-dm}, proc(5), ATA/ATAPI
 * Command Set (IDENTIFY DEVICE), NVMe Base Specification (Identify Controller, feature 06h).
 *
 * A *drive* here is any whole block device that has an identity: a disk by its serial or WWN, an
 * nbd device by its backend identifier, a loop device by its reference (losetup --loop-ref) or else
 * by its backing file, md and dm by their UUID.
 * Nothing here writes to a device. All functions are safe from any thread.
 */
#ifndef PP_CORE_DRIVE_H
#define PP_CORE_DRIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "error.h"

#define PP_DRIVE_NAME_BYTES   64
#define PP_DRIVE_NODE_BYTES   96
#define PP_DRIVE_SERIAL_BYTES 256
#define PP_STACK_MAX          32

enum pp_transport {
	PP_TRANSPORT_OTHER,
	PP_TRANSPORT_NVME,
	PP_TRANSPORT_SATA,
	PP_TRANSPORT_SAS,
	PP_TRANSPORT_SCSI, /* a SCSI disk whose bus sysfs does not name; hypervisors' too */
	PP_TRANSPORT_USB,
	PP_TRANSPORT_VIRTIO,
	PP_TRANSPORT_MMC,
	PP_TRANSPORT_ISCSI,
	PP_TRANSPORT_NBD,
	PP_TRANSPORT_LOOP,
	PP_TRANSPORT_MD,
	PP_TRANSPORT_DM,
	PP_TRANSPORT_RAM, /* zram, brd, pmem of RAM */
};

const char *pp_transport_name(enum pp_transport transport);
/* True for drives that a power cut of this machine need not reach: nbd, iscsi, virtio, loop. */
bool pp_transport_remote(enum pp_transport transport);
/* True for md, dm and loop: a layer over other devices, not a disk. */
bool pp_transport_layer(enum pp_transport transport);

/* What the drive itself says of its volatile write cache, as far as it could be asked. */
enum pp_drive_cache {
	PP_CACHE_UNKNOWN, /* not asked, or no answer */
	PP_CACHE_NONE,    /* declares to have none (NVMe VWC 0; ATA without the feature) */
	PP_CACHE_OFF,
	PP_CACHE_ON,
};

struct pp_drive_info {
	char name[PP_DRIVE_NAME_BYTES];     /* the kernel's: "nvme0n1" */
	char node[PP_DRIVE_NODE_BYTES];     /* "/dev/nvme0n1" */
	unsigned dev_major, dev_minor;
	char serial[PP_DRIVE_SERIAL_BYTES]; /* trimmed; "" where there is none */
	bool serial_of_bridge;              /* the USB device's serial: perhaps of the enclosure only */
	char wwn[128];                      /* "eui.…", "naa.…", "uuid.…", or "" */
	char model[128];
	char firmware[64];
	enum pp_transport transport;
	uint64_t size_bytes;
	uint32_t logical_block_bytes;
	uint32_t physical_block_bytes;
	char write_cache[32];               /* the kernel's belief: "write back", "write through" */
	bool fua;                           /* the kernel will pass FUA down */
	enum pp_drive_cache drive_cache;    /* the drive's own word */
	bool rotational;
	bool removable;
	bool read_only;
	bool has_partitions;
	uint32_t stripe_bytes;              /* data bytes of a full stripe of a parity md; else 0 */
	bool no_volatile_cache;             /* the drive declares none: M7.4 */
	char raid_controller[32];           /* driver of a RAID card above the disk, or "" */
	unsigned scsi_host;                 /* of SCSI and ATA disks; the controller they share */
	char backing_file[PP_DRIVE_SERIAL_BYTES]; /* loop only */
};

/* Questions that only an ioctl answers. A NULL pointer, or -1, means: no answer. */
struct pp_drive_ops {
	int (*ata_identify)(const char *node, uint8_t page[512]);
	int (*nvme_identify)(const char *node, uint8_t page[4096]);
	int (*nvme_identify_ns)(const char *node, uint8_t page[4096]);
	int (*nvme_write_cache)(const char *node, bool *on); /* feature 06h, current value */
	int (*loop_reference)(const char *node, char reference[64]); /* loop(4): lo_file_name */
};

struct pp_sysroot {
	const char *root;                /* "" is the living system; else a folder that holds sys, proc */
	const struct pp_drive_ops *ops;  /* NULL asks nothing by ioctl */
};

/* The living system. Every function takes NULL for it. */
extern const struct pp_sysroot pp_sysroot_live;

/* Reads the whole block device of this kernel name ("sda", never "sda1"). */
int pp_drive_read(const struct pp_sysroot *sys, const char *name, struct pp_drive_info *info,
	struct pp_error *err);

/*
 * All whole block devices of size > 0, sorted by name; *infos is malloc'ed, the caller frees it.
 * A device that vanishes meanwhile is left out.
 */
int pp_drive_list(const struct pp_sysroot *sys, struct pp_drive_info **infos, size_t *count,
	struct pp_error *err);

/* True if id is the whole serial or the whole WWN of this drive, but for surrounding blanks. */
bool pp_drive_is(const struct pp_drive_info *info, const char *id);

/*
 * The drive whose serial or WWN is id. Paths of a multipath device are one drive: the dm that holds
 * them all. Two drives of one id: PP_ERR_EVIDENCE. None: PP_ERR_UNSUPPORTED.
 */
int pp_drive_find(const struct pp_sysroot *sys, const char *id, struct pp_drive_info *info,
	struct pp_error *err);

/* pp_drive_find, asked again until it is there or timeout_ms are over (0 asks once). */
int pp_drive_wait(const struct pp_sysroot *sys, const char *id, int64_t timeout_ms,
	struct pp_drive_info *info, struct pp_error *err);

/* The policy of the arm key (M1.5): "write back, fua", "write back, no fua", "write through";
 * followed by ", drive cache off" or ", drive cache on" where the drive's own word contradicts. */
void pp_drive_policy(const struct pp_drive_info *info, char *out, size_t out_bytes);

/* An id as a folder name: every byte that is not a letter, digit, '.', '_' or '-' becomes '_'. */
void pp_drive_folder_name(const char *id, char *out, size_t out_bytes);

/* ---- what is beneath ---------------------------------------------------------------------- */

struct pp_stack_layer {
	char name[PP_DRIVE_NAME_BYTES]; /* kernel name: "dm-0", "sda2"; or a file system type */
	const char *kind;               /* "partition", "dm", "md", "loop", "disk", "file system" */
	unsigned depth;                 /* 0 is what the path lies on */
	bool whole;                     /* a whole block device, not a partition */
};

struct pp_stack {
	char fs_type[32];          /* of the file system that the path is on; "" for a block device */
	char fs_source[256];       /* as /proc/self/mountinfo has it */
	char fs_root[512];         /* mountinfo: what of the file system is mounted */
	char mount_point[512];
	char mount_options[1600];  /* effective: per mount, then per superblock, comma separated */
	struct pp_stack_layer layers[PP_STACK_MAX];
	size_t layer_count;        /* in the order of a walk downwards; a device is listed once */
	char disks[PP_STACK_MAX][PP_DRIVE_NAME_BYTES];
	size_t disk_count;         /* 0: no drive beneath (tmpfs, overlay, network, FUSE) */
	bool incomplete;           /* something beneath could not be followed; text says what */
	char incomplete_text[256];
};

/* What lies beneath an open file, folder or block device; path names it in messages. */
int pp_drive_of_fd(int fd, const char *path, struct pp_stack *stack, struct pp_error *err);
/* The same for a path; in a recorded sysroot found by /proc/self/mountinfo or /dev/NAME alone. */
int pp_drive_of_path(const struct pp_sysroot *sys, const char *path, struct pp_stack *stack,
	struct pp_error *err);
/* What lies beneath the block device of this kernel name ("sda1", "dm-0"). */
int pp_drive_of_name(const struct pp_sysroot *sys, const char *name, struct pp_stack *stack,
	struct pp_error *err);

/* True if the stack passes through the whole device of this kernel name. */
bool pp_stack_has(const struct pp_stack *stack, const char *name);
/* True if the mount options switch barriers off: the kernel then never asks the drive. */
bool pp_stack_no_barrier(const struct pp_stack *stack);

/* True if this word stands whole among the mount options. */
bool pp_stack_option(const struct pp_stack *stack, const char *option);

/*
 * M1.2: 1 if drives a and b (kernel names) share a RAID set, a volume group, a multi-device file
 * system or a RAID card's cache, with the reason in why; 0 if they do not; -1 on failure.
 */
int pp_drives_share(const struct pp_sysroot *sys, const char *a, const char *b, char *why,
	size_t why_bytes, struct pp_error *err);

/*
 * 1 if /, /boot, /boot/efi, /efi, /usr, /var or swap of this machine lies on the whole device
 * `name`, however deep beneath, with the reason in why; 0 if none does; -1 on failure.
 */
int pp_drive_carries_system(const struct pp_sysroot *sys, const char *name, char *why,
	size_t why_bytes, struct pp_error *err);

/* Block devices on this drive that may hold a file system: itself, its partitions, and what stands
 * on those (dm, md), each once. names is malloc'ed, the caller frees it. */
int pp_drive_descendants(const struct pp_sysroot *sys, const char *name,
	char (**names)[PP_DRIVE_NAME_BYTES], size_t *count, struct pp_error *err);

/*
 * The raw JSON text of `smartctl -j -x NODE` into json; nothing is parsed here. Where smartctl is
 * not installed json stays empty and that is no failure.
 */
int pp_drive_smart_raw(const struct pp_drive_info *info, struct pp_buf *json, struct pp_error *err);

#endif
