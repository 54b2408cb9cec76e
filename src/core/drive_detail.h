/* SPDX-License-Identifier: MIT
 *
 * What a person wants to know of a drive and of the machine around it before a purchase, beyond
 * what a run needs (drive.h): atomic write units, the drive's own words of cache and FUA, the bridge
 * or controller above it, what a layer is and holds, whether the machine is real.
 *
 * Rests on: Documentation/ABI/stable/sysfs-block (atomic_write_*), NVMe Base Specification (Identify
 * Controller bytes 525 to 529, Identify Namespace 24 to 37), ATA ACS (IDENTIFY words 82 to 87),
 * SPC (VPD, caching mode page as sd(4) shows it), SMBIOS by /sys/class/dmi, libblkid(3).
 *
 * A recorded machine holds the answers that are not in sysfs in a folder `asked`:
 *   asked/NAME/{ata-identify,nvme-identify,nvme-identify-ns} pages, cut short where the rest is zero
 *   asked/NAME/nvme-cache      feature 06h: 0 or 1
 *   asked/NAME/blkid           TYPE and UUID of what stands on the device
 *   asked/NAME/smartctl.json   as `smartctl -j -x` prints it
 *   asked/dmesg                the kernel's log
 * Nothing here writes. All functions are safe from any thread.
 */
#ifndef PP_CORE_DRIVE_DETAIL_H
#define PP_CORE_DRIVE_DETAIL_H

#include "drive.h"

/* A question that only one system knows, with its answer or "not reported (why)". */
struct pp_drive_said {
	char label[20];
	char text[128];
};
#define PP_DRIVE_SAID_MAX 32

/* Numbers and truths are -1 where nothing is known; texts are "". */
struct pp_drive_detail {
	/* the kernel's, of the request queue; 0: atomic writes are not supported */
	int64_t atomic_unit_min_bytes, atomic_unit_max_bytes, atomic_max_bytes, atomic_boundary_bytes;
	/* NVMe: the drive's own words */
	int nvme_vwc;                /* a volatile write cache is present */
	int64_t nvme_awupf_bytes;    /* never torn by a power cut, any namespace */
	int64_t nvme_nawupf_bytes;   /* the same, of this namespace */
	char fabric[16];             /* "tcp", "rdma", "fc": the drive is on a network */
	/* ATA: IDENTIFY DEVICE */
	int ata_cache_supported, ata_cache_enabled, ata_fua, ata_flush_ext;
	/* SCSI, and what libata and USB translate to it */
	char scsi_cache_type[48];    /* sd's: "write back", "write through", ... */
	int scsi_fua;                /* DPOFUA */
	int assumed_write_through;   /* 1: sd's log line says that the drive did not tell; 0: no such line */
	char vendor[64];             /* of the SCSI INQUIRY */
	/* what is between the disk and the machine */
	char usb_bridge[96];         /* "152d:0578 JMicron" */
	char usb_driver[32];         /* "uas", "usb-storage" */
	char controller_driver[32];  /* "ahci", "mpt3sas", "nvme" */
	int64_t paths;               /* ways to this drive; more than 1 is multipath */
	/* the drive's own counters, where the system asks for them itself (Windows) */
	int64_t power_cycles, unsafe_shutdowns, media_errors, power_on_hours, used_percent;
	int64_t critical_warning;
	struct pp_drive_said said[PP_DRIVE_SAID_MAX];
	size_t said_count;
};

void pp_drive_detail_read(const struct pp_sysroot *sys, const struct pp_drive_info *info,
	struct pp_drive_detail *detail);

/* One layer of a stack (a kernel name, not a file system's). */
struct pp_layer_detail {
	char what[160];     /* "LUKS2 luks-root", "LVM vg-root", "RAID1 of 2, clean" */
	char content[32];   /* libblkid's TYPE of what stands on it: "crypto_LUKS", "ext4" */
	char uuid[64];      /* and its UUID */
	char file[PP_DRIVE_SERIAL_BYTES]; /* loop: the backing file */
};

void pp_layer_detail_read(const struct pp_sysroot *sys, const char *name,
	struct pp_layer_detail *detail);

struct pp_machine {
	char vendor[96], product[96];
	char hypervisor[96]; /* who says so; "" where nothing says that the machine is virtual */
	bool container;      /* this process sees a container's file systems */
	char battery[64];    /* name of a battery or UPS that feeds the machine */
};

void pp_machine_read(const struct pp_sysroot *sys, struct pp_machine *machine);

/* smartctl's JSON, of the drive or of the recorded machine; empty where nobody can tell. */
int pp_drive_smart(const struct pp_sysroot *sys, const struct pp_drive_info *info,
	struct pp_buf *json, struct pp_error *err);

#endif
