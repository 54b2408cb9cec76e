/* SPDX-License-Identifier: MIT
 *
 * Windows' storage stack, as far as identity and policy need it: a struct of function pointers, and
 * the control codes and structures that go through it. No windows.h here: mingw's headers lack some of
 * these, and the logic above (win_identify.c, win_policy.c) is tested on Linux with a made-up stack.
 * win_storage_win.c is the real one.
 *
 * Every number is pinned by a static assert against the documented one: ntdddisk.h, ntddstor.h,
 * ntddscsi.h, ntddvol.h, winioctl.h of the Windows SDK and WDK. Multi-byte members are little-endian,
 * as this program's hosts are.
 */
#ifndef PP_CORE_WIN_STORAGE_H
#define PP_CORE_WIN_STORAGE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the calls ---------------------------------------------------------------------------- */

enum pp_win_access {
	PP_WIN_QUERY, /* no access: what FILE_ANY_ACCESS codes need */
	PP_WIN_READ,
	PP_WIN_WRITE, /* read and write: pass-through and the codes that set something */
};

/* What a path lies on. */
struct pp_win_volume {
	char mount_point[512]; /* GetVolumePathName: "C:\" */
	char device[128];      /* "\\.\C:" or "\\?\Volume{...}", to be opened; "" for a network share */
	char fs_type[32];      /* GetVolumeInformation: "NTFS"; "" where it does not say */
	uint32_t serial;       /* of the volume */
	bool remote;           /* a network share */
};

/*
 * Every call returns 0 or a Win32 error code. Paths and texts are UTF-8. Strings that do not fit are
 * PP_WIN_MORE_DATA. Safe from any thread.
 */
struct pp_win_storage {
	void *ctx;
	/* path: "\\.\PhysicalDrive0", or a volume's device */
	uint32_t (*open)(void *ctx, const char *path, enum pp_win_access access, void **device);
	/* DeviceIoControl; in may be out */
	uint32_t (*control)(void *ctx, void *device, uint32_t code, const void *in, uint32_t in_bytes,
		void *out, uint32_t out_bytes, uint32_t *got_bytes);
	void (*close)(void *ctx, void *device);
	/* The numbers of the physical drives, ascending; how many there are, at most room. */
	uint32_t (*disks)(void *ctx, unsigned *numbers, size_t room, size_t *count);
	/* The device instance of a physical drive, its key below HKLM\SYSTEM\CurrentControlSet\Enum. */
	uint32_t (*instance)(void *ctx, unsigned disk, char *out, size_t out_bytes);
	/* A DWORD of that key's "Device Parameters\Disk"; PP_WIN_NOT_FOUND where it is absent. */
	uint32_t (*registry_get)(void *ctx, const char *instance, const char *name, uint32_t *value);
	/* NULL deletes it; a value that is absent already is no failure. */
	uint32_t (*registry_set)(void *ctx, const char *instance, const char *name,
		const uint32_t *value);
	uint32_t (*volume)(void *ctx, const char *path, struct pp_win_volume *volume);
	/* The volume that Windows itself runs from. */
	uint32_t (*system_volume)(void *ctx, struct pp_win_volume *volume);
};

/* The living system; on Windows only. */
extern const struct pp_win_storage pp_win_storage_live;

#define PP_WIN_INVALID_FUNCTION 1u
#define PP_WIN_NOT_FOUND        2u
#define PP_WIN_ACCESS_DENIED    5u
#define PP_WIN_NOT_SUPPORTED    50u
#define PP_WIN_INVALID_PARAMETER 87u
#define PP_WIN_MORE_DATA        234u
#define PP_WIN_SHORT_ANSWER     0xfffffffeu /* ours: it answered less than the structure */
#define PP_WIN_NOT_ASKED        0xffffffffu /* ours */

/* "access denied, error 5"; for the codes that matter here in words, else the number. */
const char *pp_win_error_text(uint32_t code, char out[64]);

#define PP_WIN_USER_WRITE_CACHE    "UserWriteCacheSetting"
#define PP_WIN_CACHE_IS_PROTECTED  "CacheIsPowerProtected"

/* ---- control codes ------------------------------------------------------------------------ */

/* CTL_CODE of devioctl.h; every one here is METHOD_BUFFERED (0). */
#define PP_WIN_CODE(type, function, access) \
	((uint32_t)(type) << 16 | (uint32_t)(access) << 14 | (uint32_t)(function) << 2)
#define PP_WIN_ANY_ACCESS  0
#define PP_WIN_READ_ACCESS 1
#define PP_WIN_BOTH_ACCESS 3
#define PP_WIN_TYPE_CONTROLLER 0x04 /* IOCTL_SCSI_BASE */
#define PP_WIN_TYPE_DISK       0x07 /* IOCTL_DISK_BASE */
#define PP_WIN_TYPE_STORAGE    0x2d /* IOCTL_STORAGE_BASE */
#define PP_WIN_TYPE_VOLUME     0x56 /* IOCTL_VOLUME_BASE, 'V' */

#define PP_WIN_GET_GEOMETRY_EX   PP_WIN_CODE(PP_WIN_TYPE_DISK, 0x0028, PP_WIN_ANY_ACCESS)
#define PP_WIN_GET_CACHE_INFO    PP_WIN_CODE(PP_WIN_TYPE_DISK, 0x0035, PP_WIN_READ_ACCESS)
#define PP_WIN_SET_CACHE_INFO    PP_WIN_CODE(PP_WIN_TYPE_DISK, 0x0036, PP_WIN_BOTH_ACCESS)
#define PP_WIN_GET_CACHE_SETTING PP_WIN_CODE(PP_WIN_TYPE_DISK, 0x0038, PP_WIN_READ_ACCESS)
#define PP_WIN_SET_CACHE_SETTING PP_WIN_CODE(PP_WIN_TYPE_DISK, 0x0039, PP_WIN_BOTH_ACCESS)
#define PP_WIN_SMART_RCV         PP_WIN_CODE(PP_WIN_TYPE_DISK, 0x0022, PP_WIN_BOTH_ACCESS)
#define PP_WIN_QUERY_PROPERTY    PP_WIN_CODE(PP_WIN_TYPE_STORAGE, 0x0500, PP_WIN_ANY_ACCESS)
#define PP_WIN_GET_DEVICE_NUMBER PP_WIN_CODE(PP_WIN_TYPE_STORAGE, 0x0420, PP_WIN_ANY_ACCESS)
#define PP_WIN_GET_HOTPLUG_INFO  PP_WIN_CODE(PP_WIN_TYPE_STORAGE, 0x0305, PP_WIN_ANY_ACCESS)
#define PP_WIN_ATA_PASS_THROUGH  PP_WIN_CODE(PP_WIN_TYPE_CONTROLLER, 0x040b, PP_WIN_BOTH_ACCESS)
#define PP_WIN_GET_DISK_EXTENTS  PP_WIN_CODE(PP_WIN_TYPE_VOLUME, 0x0000, PP_WIN_ANY_ACCESS)

static_assert(PP_WIN_GET_GEOMETRY_EX == 0x000700a0, "IOCTL_DISK_GET_DRIVE_GEOMETRY_EX");
static_assert(PP_WIN_GET_CACHE_INFO == 0x000740d4, "IOCTL_DISK_GET_CACHE_INFORMATION");
static_assert(PP_WIN_SET_CACHE_INFO == 0x0007c0d8, "IOCTL_DISK_SET_CACHE_INFORMATION");
static_assert(PP_WIN_GET_CACHE_SETTING == 0x000740e0, "IOCTL_DISK_GET_CACHE_SETTING");
static_assert(PP_WIN_SET_CACHE_SETTING == 0x0007c0e4, "IOCTL_DISK_SET_CACHE_SETTING");
static_assert(PP_WIN_SMART_RCV == 0x0007c088, "SMART_RCV_DRIVE_DATA");
static_assert(PP_WIN_QUERY_PROPERTY == 0x002d1400, "IOCTL_STORAGE_QUERY_PROPERTY");
static_assert(PP_WIN_GET_DEVICE_NUMBER == 0x002d1080, "IOCTL_STORAGE_GET_DEVICE_NUMBER");
static_assert(PP_WIN_GET_HOTPLUG_INFO == 0x002d0c14, "IOCTL_STORAGE_GET_HOTPLUG_INFO");
static_assert(PP_WIN_ATA_PASS_THROUGH == 0x0004d02c, "IOCTL_ATA_PASS_THROUGH");
static_assert(PP_WIN_GET_DISK_EXTENTS == 0x00560000, "IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS");

/* ---- structures --------------------------------------------------------------------------- */

/* STORAGE_PROPERTY_ID */
enum pp_win_property {
	PP_WIN_PROPERTY_DEVICE = 0,
	PP_WIN_PROPERTY_DEVICE_ID = 2,
	PP_WIN_PROPERTY_WRITE_CACHE = 4,   /* flushes the drive: never during a run */
	PP_WIN_PROPERTY_ALIGNMENT = 6,
	PP_WIN_PROPERTY_SEEK_PENALTY = 7,
	PP_WIN_PROPERTY_DEVICE_PROTOCOL = 50,
};

struct pp_win_query { /* STORAGE_PROPERTY_QUERY; PropertyStandardQuery is 0 */
	uint32_t property;
	uint32_t type;
	uint8_t parameters[4];
};
static_assert(sizeof(struct pp_win_query) == 12, "STORAGE_PROPERTY_QUERY");

struct pp_win_device_descriptor { /* STORAGE_DEVICE_DESCRIPTOR; offsets are from its start, 0: none */
	uint32_t version, size;
	uint8_t device_type, device_type_modifier, removable_media, command_queueing;
	uint32_t vendor_offset, product_offset, revision_offset, serial_offset;
	uint32_t bus_type;
	uint32_t raw_bytes;
};
static_assert(offsetof(struct pp_win_device_descriptor, removable_media) == 10, "RemovableMedia");
static_assert(offsetof(struct pp_win_device_descriptor, serial_offset) == 24, "SerialNumberOffset");
static_assert(offsetof(struct pp_win_device_descriptor, bus_type) == 28, "BusType");
static_assert(sizeof(struct pp_win_device_descriptor) == 36, "RawDeviceProperties");

enum pp_win_bus { /* STORAGE_BUS_TYPE */
	PP_WIN_BUS_SCSI = 1, PP_WIN_BUS_ATAPI = 2, PP_WIN_BUS_ATA = 3, PP_WIN_BUS_FIBRE = 6,
	PP_WIN_BUS_USB = 7, PP_WIN_BUS_RAID = 8, PP_WIN_BUS_ISCSI = 9, PP_WIN_BUS_SAS = 10,
	PP_WIN_BUS_SATA = 11, PP_WIN_BUS_SD = 12, PP_WIN_BUS_MMC = 13, PP_WIN_BUS_VIRTUAL = 14,
	PP_WIN_BUS_FILE_BACKED = 15, PP_WIN_BUS_SPACES = 16, PP_WIN_BUS_NVME = 17, PP_WIN_BUS_SCM = 18,
	PP_WIN_BUS_UFS = 19,
};

struct pp_win_id_descriptor { /* STORAGE_DEVICE_ID_DESCRIPTOR, then STORAGE_IDENTIFIERs */
	uint32_t version, size, count;
};
struct pp_win_identifier { /* STORAGE_IDENTIFIER: VPD page 83h's */
	uint32_t code_set;  /* 1 binary, 2 ASCII, 3 UTF-8 */
	uint32_t type;      /* 2 EUI-64, 3 NAA */
	uint16_t bytes, next_offset;
	uint32_t association; /* 0: the device itself */
};
static_assert(sizeof(struct pp_win_id_descriptor) == 12, "STORAGE_DEVICE_ID_DESCRIPTOR");
static_assert(offsetof(struct pp_win_identifier, next_offset) == 10, "NextOffset");
static_assert(sizeof(struct pp_win_identifier) == 16, "Identifier");

struct pp_win_write_cache { /* STORAGE_WRITE_CACHE_PROPERTY */
	uint32_t version, size;
	uint32_t type;           /* 0 unknown, 1 none, 2 write back, 3 write through */
	uint32_t enabled;        /* 0 unknown, 1 disabled, 2 enabled */
	uint32_t changeable;     /* 0 unknown, 1 no, 2 yes */
	uint32_t write_through;  /* supported: 0 unknown, 1 no, 2 yes */
	uint8_t flush_supported, user_protection, nv_enabled, unused;
};
static_assert(offsetof(struct pp_win_write_cache, enabled) == 12, "WriteCacheEnabled");
static_assert(offsetof(struct pp_win_write_cache, write_through) == 20, "WriteThroughSupported");
static_assert(offsetof(struct pp_win_write_cache, user_protection) == 25,
	"UserDefinedPowerProtection");
static_assert(sizeof(struct pp_win_write_cache) == 28, "STORAGE_WRITE_CACHE_PROPERTY");

struct pp_win_cache_info { /* DISK_CACHE_INFORMATION */
	uint8_t savable, read_enabled, write_enabled, unused;
	uint32_t read_retention, write_retention;
	uint16_t disable_prefetch_length;
	uint8_t prefetch_scalar, unused2;
	uint16_t prefetch[3];
	uint16_t unused3;
};
static_assert(offsetof(struct pp_win_cache_info, write_enabled) == 2, "WriteCacheEnabled");
static_assert(offsetof(struct pp_win_cache_info, read_retention) == 4, "ReadRetentionPriority");
static_assert(offsetof(struct pp_win_cache_info, prefetch) == 16, "ScalarPrefetch");
static_assert(sizeof(struct pp_win_cache_info) == 24, "DISK_CACHE_INFORMATION");

enum pp_win_cache_state { /* DISK_CACHE_STATE */
	PP_WIN_CACHE_NORMAL = 0,
	PP_WIN_CACHE_NO_WRITE_THROUGH = 1,
	PP_WIN_CACHE_NOT_MODIFIED = 2,
};

struct pp_win_cache_setting { /* DISK_CACHE_SETTING; version is its size */
	uint32_t version, state;
	uint8_t power_protected, unused[3];
};
static_assert(offsetof(struct pp_win_cache_setting, power_protected) == 8, "IsPowerProtected");
static_assert(sizeof(struct pp_win_cache_setting) == 12, "DISK_CACHE_SETTING");

struct pp_win_geometry { /* DISK_GEOMETRY_EX */
	int64_t cylinders;
	uint32_t media_type, tracks_per_cylinder, sectors_per_track, bytes_per_sector;
	int64_t size_bytes;
};
static_assert(offsetof(struct pp_win_geometry, size_bytes) == 24, "DiskSize");
static_assert(sizeof(struct pp_win_geometry) == 32, "DISK_GEOMETRY_EX");

struct pp_win_alignment { /* STORAGE_ACCESS_ALIGNMENT_DESCRIPTOR */
	uint32_t version, size, cache_line_bytes, cache_offset_bytes;
	uint32_t logical_bytes, physical_bytes, physical_offset_bytes;
};
static_assert(offsetof(struct pp_win_alignment, physical_bytes) == 20, "BytesPerPhysicalSector");
static_assert(sizeof(struct pp_win_alignment) == 28, "STORAGE_ACCESS_ALIGNMENT_DESCRIPTOR");

struct pp_win_seek_penalty { /* DEVICE_SEEK_PENALTY_DESCRIPTOR */
	uint32_t version, size;
	uint8_t incurs, unused[3];
};
static_assert(sizeof(struct pp_win_seek_penalty) == 12, "DEVICE_SEEK_PENALTY_DESCRIPTOR");

struct pp_win_hotplug { /* STORAGE_HOTPLUG_INFO */
	uint32_t size;
	uint8_t media_removable, media_hotplug, device_hotplug, write_cache_override;
};
static_assert(sizeof(struct pp_win_hotplug) == 8, "STORAGE_HOTPLUG_INFO");

struct pp_win_protocol { /* STORAGE_PROTOCOL_SPECIFIC_DATA */
	uint32_t protocol;      /* 3: NVMe */
	uint32_t data_type;     /* 1 Identify, 2 log page, 3 feature */
	uint32_t value;         /* CNS, log page or feature */
	uint32_t sub_value;     /* namespace */
	uint32_t data_offset;   /* from the start of this structure */
	uint32_t data_bytes;
	uint32_t fixed;         /* dword 0 of the completion */
	uint32_t sub_values[3];
};
static_assert(offsetof(struct pp_win_protocol, fixed) == 24, "FixedProtocolReturnData");
static_assert(sizeof(struct pp_win_protocol) == 40, "STORAGE_PROTOCOL_SPECIFIC_DATA");
#define PP_WIN_PROTOCOL_NVME 3
enum pp_win_nvme_data { PP_WIN_NVME_IDENTIFY = 1, PP_WIN_NVME_LOG = 2, PP_WIN_NVME_FEATURE = 3 };

/* The query's parameters begin where the answer's structure does: both are at byte 8. */
struct pp_win_protocol_query { /* STORAGE_PROPERTY_QUERY, then the protocol's; answered in place */
	uint32_t property, type; /* of the answer: Version, Size */
	struct pp_win_protocol protocol;
	uint8_t data[4096];
};
static_assert(offsetof(struct pp_win_protocol_query, protocol) == offsetof(struct pp_win_query,
	parameters), "AdditionalParameters");
static_assert(offsetof(struct pp_win_protocol_query, data) == 48, "STORAGE_PROTOCOL_DATA_DESCRIPTOR");

struct pp_win_ata { /* ATA_PASS_THROUGH_EX of a 64-bit process; task file: features, count, LBA low,
	mid, high, device, command */
	uint16_t length, flags;
	uint8_t path, target, lun, unused;
	uint32_t data_bytes, timeout_s, unused2, unused3;
	uint64_t data_offset;
	uint8_t previous[8], current[8];
};
static_assert(offsetof(struct pp_win_ata, data_offset) == 24, "DataBufferOffset");
static_assert(offsetof(struct pp_win_ata, current) == 40, "CurrentTaskFile");
static_assert(sizeof(struct pp_win_ata) == 48, "ATA_PASS_THROUGH_EX");
#define PP_WIN_ATA_DRDY    1 /* ATA_FLAGS_DRDY_REQUIRED */
#define PP_WIN_ATA_DATA_IN 2 /* ATA_FLAGS_DATA_IN */

struct pp_win_ata_read {
	struct pp_win_ata ata;
	uint8_t data[512];
};

/* SENDCMDINPARAMS and SENDCMDOUTPARAMS are packed: by offsets. */
#define PP_WIN_SMART_IN_BYTES   33
#define PP_WIN_SMART_REGISTERS  4  /* features, count, LBA low, mid, high, device, command */
#define PP_WIN_SMART_OUT_HEADER 16

struct pp_win_extent { /* DISK_EXTENT */
	uint32_t disk, unused;
	int64_t start_bytes, length_bytes;
};
struct pp_win_extents { /* VOLUME_DISK_EXTENTS */
	uint32_t count, unused;
	struct pp_win_extent extent[32];
};
static_assert(sizeof(struct pp_win_extent) == 24, "DISK_EXTENT");
static_assert(offsetof(struct pp_win_extents, extent) == 8, "Extents");

struct pp_win_device_number { /* STORAGE_DEVICE_NUMBER */
	uint32_t device_type, number, partition;
};
static_assert(sizeof(struct pp_win_device_number) == 12, "STORAGE_DEVICE_NUMBER");

#endif
