/* SPDX-License-Identifier: MIT
 *
 * What Windows tells of a physical drive, each answer beside the error that came in its place. Portable:
 * drive_win.c calls it with the living stack, the tests with a made-up one.
 *
 * Serial numbers: stornvme gives an EUI-64 where other systems give the drive's serial, so an NVMe or
 * ATA drive's own Identify page goes before the descriptor; a drive has one name on every system.
 */
#ifndef PP_CORE_WIN_IDENTIFY_H
#define PP_CORE_WIN_IDENTIFY_H

#include "buf.h"
#include "drive.h"
#include "error.h"
#include "win_storage.h"

#define PP_WIN_DISKS_MAX 64
#define PP_WIN_SMART_ATTRIBUTES 30

/* One row of the ATA SMART table. */
struct pp_win_attribute {
	uint8_t id;
	uint64_t raw;
};

/* An error member is 0 where the answer beside it is valid, else a Win32 code or PP_WIN_NOT_ASKED. */
struct pp_win_facts {
	unsigned disk;
	char node[PP_DRIVE_NODE_BYTES];   /* "\\.\PhysicalDrive0" */
	uint32_t open_error;              /* 0: at least PP_WIN_QUERY */
	uint32_t write_error;             /* of opening it for pass-through */

	uint32_t descriptor_error;
	uint32_t bus;
	bool removable;
	char vendor[64], product[128], revision[64], serial[PP_DRIVE_SERIAL_BYTES];
	uint32_t id_error;
	char wwn[128];
	uint32_t geometry_error;
	uint64_t size_bytes;
	uint32_t sector_bytes;
	uint32_t alignment_error;
	uint32_t logical_bytes, physical_bytes;
	uint32_t seek_error;
	bool seek_penalty;
	uint32_t hotplug_error;
	bool hotplug;                     /* Windows' default is then write cache off */

	uint32_t info_error;
	struct pp_win_cache_info info;
	uint32_t setting_error;
	struct pp_win_cache_setting setting;
	uint32_t property_error;          /* the query that flushes */
	struct pp_win_write_cache property;

	uint32_t instance_error;
	char instance[256];
	uint32_t user_cache_error;        /* PP_WIN_NOT_FOUND: absent, the default */
	uint32_t user_cache;              /* 0 off, 1 on, 0xffffffff default */
	uint32_t protected_error;
	uint32_t protected_value;         /* 1: the box is ticked */

	uint32_t nvme_error;              /* Identify Controller */
	bool nvme_vwc;
	uint32_t nvme_feature_error;      /* feature 06h */
	bool nvme_cache;
	uint32_t nvme_log_error;          /* SMART log 02h */
	uint64_t power_cycles, unsafe_shutdowns, media_errors, power_on_hours;
	uint8_t critical_warning, used_percent;
	uint32_t ata_error;               /* IDENTIFY DEVICE */
	uint8_t ata_identify[512];
	uint32_t ata_smart_error;
	struct pp_win_attribute attributes[PP_WIN_SMART_ATTRIBUTES];
	size_t attribute_count;
};

enum pp_win_questions {
	PP_WIN_ASK_QUIETLY,  /* identity and cache; nothing that flushes: pp_drive_read */
	PP_WIN_ASK_COUNTERS, /* also SMART */
	PP_WIN_ASK_ALL,      /* also the query that flushes, but not while the disk is in a run */
};

/* Asks everything; single refusals are in the facts. -1: there is no such drive, or no way to open it. */
int pp_win_ask(const struct pp_win_storage *s, unsigned disk, enum pp_win_questions questions,
	struct pp_win_facts *facts, struct pp_error *err);

/* Little-endian words, as ATA's IDENTIFY has them. */
static inline unsigned pp_win_ata_word(const uint8_t *page, int word)
{
	return page[2 * word] | (unsigned)page[2 * word + 1] << 8;
}

static inline bool pp_win_bus_is_ata(uint32_t bus)
{
	return bus == PP_WIN_BUS_ATA || bus == PP_WIN_BUS_SATA;
}

/* "NVMe", "USB"; or its number, in the array. */
const char *pp_win_bus_name(uint32_t bus, char number[32]);

/* The drive's own word: NVMe and ATA asked directly, else its driver's; PP_CACHE_UNKNOWN where the
 * driver's two answers contradict each other. */
enum pp_drive_cache pp_win_drive_cache(const struct pp_win_facts *facts);
/* Is DEV_POWER_PROTECTED in force? 1 yes, 0 no, -1 unknown. */
int pp_win_protected(const struct pp_win_facts *facts);
/* Would a write-through write carry FUA? 1, 0, -1; by disk.sys' rule. */
int pp_win_sends_fua(const struct pp_win_facts *facts);

void pp_win_fill_info(const struct pp_win_facts *facts, struct pp_drive_info *info);

/* drive.h's functions on this stack; name is "PhysicalDrive0". */
int pp_win_drive_read(const struct pp_win_storage *s, const char *name, struct pp_drive_info *info,
	struct pp_error *err);
int pp_win_drive_list(const struct pp_win_storage *s, struct pp_drive_info **infos, size_t *count,
	struct pp_error *err);
int pp_win_drive_find(const struct pp_win_storage *s, const char *id, struct pp_drive_info *info,
	struct pp_error *err);
int pp_win_drive_of_path(const struct pp_win_storage *s, const char *path, struct pp_stack *stack,
	struct pp_error *err);
/* Looks at the volumes that have a letter. */
int pp_win_drives_share(const struct pp_win_storage *s, const char *a, const char *b, char *why,
	size_t why_bytes, struct pp_error *err);
/* By the volume of Windows itself. */
int pp_win_drive_carries_system(const struct pp_win_storage *s, const char *name, char *why,
	size_t why_bytes, struct pp_error *err);
/* The number in "PhysicalDrive12" or "\\.\PhysicalDrive12", whole; false otherwise. */
bool pp_win_disk_number(const char *name, unsigned *disk);
/* The physical drives beneath a volume. */
uint32_t pp_win_disks_of(const struct pp_win_storage *s, const struct pp_win_volume *volume,
	unsigned *disks, size_t room, size_t *count);

/* The counters in the shape of smartctl's JSON; empty where none answered. */
void pp_win_smart_json(const struct pp_win_facts *facts, struct pp_buf *json);

/* Every question with its answer, "not reported (why)" where there was none: label, text. */
typedef void pp_win_row_fn(void *ctx, const char *label, const char *text);
void pp_win_tell(const struct pp_win_facts *facts, pp_win_row_fn *row, void *ctx);

#endif
