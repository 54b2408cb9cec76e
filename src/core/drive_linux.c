/* SPDX-License-Identifier: MIT */
#include "drive.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "drive_sysfs.h"
#include "subprocess.h"

#define SECTOR_BYTES 512 /* of /sys/block/X/size, whatever the drive's own block */
#define WAIT_SLICE_MS 200
#define SMART_TIMEOUT_MS 30000

/* Cards with a cache of their own above their disks, by the name of their driver. */
static const char *const raid_drivers[] = {
	"megaraid_sas", "megaraid", "hpsa", "smartpqi", "aacraid", "arcmsr", "3w-sas", "3w-9xxx",
	"3w-xxxx", "ips", "pmcraid", "ipr", "hptiop", "mpi3mr",
};

/* Folders of a disk's device path that tell its bus, the innermost first to be asked. */
static const struct {
	const char *part;
	enum pp_transport transport;
} buses[] = {
	{"/usb", PP_TRANSPORT_USB},
	{"/ata", PP_TRANSPORT_SATA},
	{"/end_device-", PP_TRANSPORT_SAS},
	{"/session", PP_TRANSPORT_ISCSI},
	{"/nvme", PP_TRANSPORT_NVME},
	{"/mmc", PP_TRANSPORT_MMC},
	{"/virtio", PP_TRANSPORT_VIRTIO}, /* virtio-scsi too: the hypervisor's all the same */
	{"/host", PP_TRANSPORT_SCSI},
};

/* Virtual devices, by the beginning of their kernel name. */
static const struct {
	const char *prefix;
	enum pp_transport transport;
} virtuals[] = {
	{"nbd", PP_TRANSPORT_NBD},   {"loop", PP_TRANSPORT_LOOP}, {"md", PP_TRANSPORT_MD},
	{"dm-", PP_TRANSPORT_DM},    {"zram", PP_TRANSPORT_RAM},  {"ram", PP_TRANSPORT_RAM},
	{"nvme", PP_TRANSPORT_NVME}, /* multipath: /sys/devices/virtual/nvme-subsystem */
};

static enum pp_transport find_transport(const char *dir, const char *name)
{
	if (strstr(dir, "/devices/virtual/")) {
		for (size_t i = 0; i < sizeof(virtuals) / sizeof(virtuals[0]); i++)
			if (strncmp(name, virtuals[i].prefix, strlen(virtuals[i].prefix)) == 0)
				return virtuals[i].transport;
		return PP_TRANSPORT_OTHER;
	}
	for (size_t i = 0; i < sizeof(buses) / sizeof(buses[0]); i++)
		if (strstr(dir, buses[i].part))
			return buses[i].transport;
	return PP_TRANSPORT_OTHER;
}

static void trim(char *text)
{
	size_t start = 0, end = strlen(text);

	while (end && isspace((unsigned char)text[end - 1]))
		end--;
	while (start < end && isspace((unsigned char)text[start]))
		start++;
	memmove(text, text + start, end - start);
	text[end - start] = '\0';
}

/* Bytes that are no text make no serial; control characters would end in reports. */
static bool printable(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || (unsigned char)*text == 0x7f)
			return false;
	return true;
}

/* SPC-5, 7.7: VPD page 80h, length at byte 2, then the serial. */
static void read_vpd80(const struct pp_sysroot *sys, const char *dir, struct pp_drive_info *info)
{
	uint8_t page[4 + 252] = {0};
	long n = pp_sys_bytes(sys, page, sizeof(page), "%s/device/vpd_pg80", dir);
	size_t bytes;

	if (n < 5 || page[1] != 0x80)
		return;
	bytes = (size_t)(page[2] << 8 | page[3]);
	if (bytes > (size_t)n - 4)
		bytes = (size_t)n - 4;
	memcpy(info->serial, page + 4, bytes);
	info->serial[bytes] = '\0';
	trim(info->serial);
	if (!printable(info->serial))
		info->serial[0] = '\0';
}

/* The nearest folder above that is a USB device has the serial of the stick or enclosure. */
static void read_usb_serial(const struct pp_sysroot *sys, const char *dir,
	struct pp_drive_info *info)
{
	char at[PATH_MAX], *slash;

	snprintf(at, sizeof(at), "%s", dir);
	while ((slash = strrchr(at, '/')) != NULL && slash != at) {
		*slash = '\0';
		if (!pp_sys_exists(sys, "%s/idVendor", at))
			continue;
		if (!info->serial[0])
			pp_sys_text(sys, info->serial, sizeof(info->serial), "%s/serial", at);
		if (!info->model[0])
			pp_sys_text(sys, info->model, sizeof(info->model), "%s/product", at);
		return;
	}
}

/* ATA strings are big-endian words (ATA8-ACS, 3.3.10). */
static void ata_string(const uint8_t *page, int word, int words, char *out)
{
	for (int i = 0; i < words; i++) {
		out[2 * i] = (char)page[2 * (word + i) + 1];
		out[2 * i + 1] = (char)page[2 * (word + i)];
	}
	out[2 * words] = '\0';
	trim(out);
	if (!printable(out))
		out[0] = '\0';
}

static void read_ata(const struct pp_sysroot *sys, struct pp_drive_info *info)
{
	uint8_t page[512] = {0};
	char text[64];

	if (!pp_ask_ata(sys, info, page))
		return;
	ata_string(page, 10, 10, text);
	if (text[0])
		snprintf(info->serial, sizeof(info->serial), "%s", text);
	ata_string(page, 23, 4, text);
	if (text[0])
		snprintf(info->firmware, sizeof(info->firmware), "%s", text);
	ata_string(page, 27, 20, text);
	if (text[0])
		snprintf(info->model, sizeof(info->model), "%s", text);
	/* Word 87 bits 15:14 = 01b: words 85 to 87 are valid; 82 bit 5 supported, 85 bit 5 enabled. */
	if ((pp_ata_word(page, 87) & 0xc000) != 0x4000)
		return;
	if (!(pp_ata_word(page, 82) & 1 << 5))
		info->drive_cache = PP_CACHE_NONE;
	else
		info->drive_cache = pp_ata_word(page, 85) & 1 << 5 ? PP_CACHE_ON : PP_CACHE_OFF;
}

static void read_scsi(const struct pp_sysroot *sys, const char *dir, struct pp_drive_info *info)
{
	const char *host = strstr(dir, "/host");
	char (*names)[PP_DRIVE_NAME_BYTES];
	char driver[32], cache[64] = "";
	size_t count;

	read_vpd80(sys, dir, info);
	pp_sys_text(sys, info->model, sizeof(info->model), "%s/device/model", dir);
	pp_sys_text(sys, info->firmware, sizeof(info->firmware), "%s/device/rev", dir);
	pp_sys_text(sys, info->wwn, sizeof(info->wwn), "%s/device/wwid", dir);
	count = pp_sys_names(sys, &names, "%s/device/scsi_disk", dir);
	if (count)
		pp_sys_text(sys, cache, sizeof(cache), "%s/device/scsi_disk/%s/cache_type", dir,
			names[0]);
	free(names);
	/* MODE SENSE page 8 as sd read it; "temporary" is the kernel's belief only, as is a guess. */
	if (info->transport == PP_TRANSPORT_SAS && strncmp(cache, "write back", 10) == 0)
		info->drive_cache = PP_CACHE_ON;
	else if (info->transport == PP_TRANSPORT_SAS && strcmp(cache, "write through") == 0)
		info->drive_cache = PP_CACHE_OFF;
	if (host)
		info->scsi_host = (unsigned)strtoul(host + 5, NULL, 10);
	if (!host || !pp_sys_text(sys, driver, sizeof(driver), "/sys/class/scsi_host/host%u/proc_name",
		info->scsi_host))
		return;
	for (size_t i = 0; i < sizeof(raid_drivers) / sizeof(raid_drivers[0]); i++)
		if (strcmp(driver, raid_drivers[i]) == 0)
			snprintf(info->raid_controller, sizeof(info->raid_controller), "%s", driver);
	/* A host adapter that makes volumes itself (mpt3sas's IR firmware) registers them so. */
	if (pp_sys_exists(sys, "%s/device/raid_devices", dir))
		snprintf(info->raid_controller, sizeof(info->raid_controller), "%s", driver);
}

static void read_nvme(const struct pp_sysroot *sys, const char *dir, struct pp_drive_info *info)
{
	uint8_t page[4096] = {0};
	bool on;

	pp_sys_text(sys, info->serial, sizeof(info->serial), "%s/device/serial", dir);
	pp_sys_text(sys, info->model, sizeof(info->model), "%s/device/model", dir);
	pp_sys_text(sys, info->firmware, sizeof(info->firmware), "%s/device/firmware_rev", dir);
	if (!pp_sys_text(sys, info->wwn, sizeof(info->wwn), "%s/wwid", dir))
		pp_sys_text(sys, info->wwn, sizeof(info->wwn), "%s/device/wwid", dir);
	if (!pp_ask_nvme(sys, info, page))
		return;
	if (!(page[525] & 1)) /* VWC: no volatile write cache present */
		info->drive_cache = PP_CACHE_NONE;
	else if (pp_ask_nvme_cache(sys, info, &on))
		info->drive_cache = on ? PP_CACHE_ON : PP_CACHE_OFF;
}

static void read_mmc(const struct pp_sysroot *sys, const char *dir, struct pp_drive_info *info)
{
	pp_sys_text(sys, info->serial, sizeof(info->serial), "%s/device/serial", dir);
	pp_sys_text(sys, info->wwn, sizeof(info->wwn), "%s/device/cid", dir);
	pp_sys_text(sys, info->model, sizeof(info->model), "%s/device/name", dir);
	pp_sys_text(sys, info->firmware, sizeof(info->firmware), "%s/device/fwrev", dir);
}

/* A full stripe of a parity array: a write below it rewrites its neighbours (M2.5). */
static void read_md(const struct pp_sysroot *sys, const char *dir, struct pp_drive_info *info)
{
	static const struct {
		const char *level;
		unsigned parity_disks;
	} levels[] = {{"raid4", 1}, {"raid5", 1}, {"raid6", 2}};
	uint64_t chunk = 0, disks = 0;
	char level[32], text[32];

	pp_sys_text(sys, info->serial, sizeof(info->serial), "%s/md/uuid", dir);
	if (!pp_sys_text(sys, level, sizeof(level), "%s/md/level", dir))
		return;
	snprintf(info->model, sizeof(info->model), "md %s", level);
	pp_sys_u64(sys, &chunk, "%s/md/chunk_size", dir);
	/* "4", or "4 (3)" while it reshapes. */
	if (pp_sys_text(sys, text, sizeof(text), "%s/md/raid_disks", dir))
		disks = strtoull(text, NULL, 10);
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (strcmp(level, levels[i].level) == 0 && disks > levels[i].parity_disks)
			info->stripe_bytes = (uint32_t)(chunk * (disks - levels[i].parity_disks));
}

static void read_dm(const struct pp_sysroot *sys, const char *dir, struct pp_drive_info *info)
{
	pp_sys_text(sys, info->serial, sizeof(info->serial), "%s/dm/uuid", dir);
	pp_sys_text(sys, info->model, sizeof(info->model), "%s/dm/name", dir);
}

/* losetup(8), and the kernel's own users of loop, fill the reference in with the name of the file, as
 * far as it fits: that is no name of its own. */
static bool own_reference(const char *reference, const char *file)
{
	size_t n = strlen(reference), file_bytes = strlen(file);

	if (!n || reference[0] == '/' || !printable(reference))
		return false;
	return n > file_bytes || strcmp(reference, file + file_bytes - n) != 0;
}

static void read_loop(const struct pp_sysroot *sys, const char *dir, struct pp_drive_info *info)
{
	char name[64];

	pp_sys_text(sys, info->backing_file, sizeof(info->backing_file), "%s/loop/backing_file", dir);
	snprintf(info->serial, sizeof(info->serial), "%s", info->backing_file);
	if (sys->ops && sys->ops->loop_reference && sys->ops->loop_reference(info->node, name) == 0 &&
		own_reference(name, info->backing_file))
		snprintf(info->serial, sizeof(info->serial), "%s", name);
	snprintf(info->model, sizeof(info->model), "loop");
}

static void read_nbd(const struct pp_sysroot *sys, const char *dir, struct pp_drive_info *info)
{
	pp_sys_text(sys, info->serial, sizeof(info->serial), "%s/backend", dir);
	snprintf(info->model, sizeof(info->model), "nbd");
}

static void read_sata(const struct pp_sysroot *sys, const char *dir, struct pp_drive_info *info)
{
	read_scsi(sys, dir, info);
	read_ata(sys, info);
}

static void read_usb(const struct pp_sysroot *sys, const char *dir, struct pp_drive_info *info)
{
	read_scsi(sys, dir, info);
	read_usb_serial(sys, dir, info);
	info->serial_of_bridge = true;
}

/* virtio-blk has a serial of its own; a disk of virtio-scsi is a SCSI disk. */
static void read_virtio(const struct pp_sysroot *sys, const char *dir, struct pp_drive_info *info)
{
	if (pp_sys_exists(sys, "%s/device/model", dir))
		read_scsi(sys, dir, info);
	else
		pp_sys_text(sys, info->serial, sizeof(info->serial), "%s/serial", dir);
	if (!info->model[0])
		snprintf(info->model, sizeof(info->model), "virtio");
}

typedef void identity_fn(const struct pp_sysroot *, const char *dir, struct pp_drive_info *);

static identity_fn *const identities[] = {
	[PP_TRANSPORT_OTHER] = read_scsi,  [PP_TRANSPORT_NVME] = read_nvme,
	[PP_TRANSPORT_SATA] = read_sata,   [PP_TRANSPORT_SAS] = read_scsi,
	[PP_TRANSPORT_SCSI] = read_scsi,   [PP_TRANSPORT_USB] = read_usb,
	[PP_TRANSPORT_VIRTIO] = read_virtio, [PP_TRANSPORT_MMC] = read_mmc,
	[PP_TRANSPORT_ISCSI] = read_scsi,  [PP_TRANSPORT_NBD] = read_nbd,
	[PP_TRANSPORT_LOOP] = read_loop,   [PP_TRANSPORT_MD] = read_md,
	[PP_TRANSPORT_DM] = read_dm,       [PP_TRANSPORT_RAM] = NULL,
};

static void read_queue(const struct pp_sysroot *sys, const char *dir, struct pp_drive_info *info)
{
	uint64_t value;

	if (pp_sys_u64(sys, &value, "%s/queue/logical_block_size", dir))
		info->logical_block_bytes = (uint32_t)value;
	if (pp_sys_u64(sys, &value, "%s/queue/physical_block_size", dir))
		info->physical_block_bytes = (uint32_t)value;
	pp_sys_text(sys, info->write_cache, sizeof(info->write_cache), "%s/queue/write_cache", dir);
	info->fua = pp_sys_u64(sys, &value, "%s/queue/fua", dir) && value;
	info->rotational = pp_sys_u64(sys, &value, "%s/queue/rotational", dir) && value;
	info->removable = pp_sys_u64(sys, &value, "%s/removable", dir) && value;
	info->read_only = pp_sys_u64(sys, &value, "%s/ro", dir) && value;
}

static bool has_partitions(const struct pp_sysroot *sys, const char *dir, const char *name)
{
	char (*names)[PP_DRIVE_NAME_BYTES];
	size_t count = pp_sys_names(sys, &names, "%s", dir);
	bool found = false;

	for (size_t i = 0; i < count && !found; i++)
		found = strncmp(names[i], name, strlen(name)) == 0 &&
			pp_sys_exists(sys, "%s/%s/partition", dir, names[i]);
	free(names);
	return found;
}

int pp_drive_read(const struct pp_sysroot *sys, const char *name, struct pp_drive_info *info,
	struct pp_error *err)
{
	char dir[PATH_MAX], text[32];
	uint64_t sectors;

	sys = pp_sys(sys);
	memset(info, 0, sizeof(*info));
	if (strlen(name) >= sizeof(info->name) || !pp_sys_block_dir(sys, name, dir))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "there is no block device '%s'", name);
	if (pp_sys_exists(sys, "%s/partition", dir))
		return pp_fail(err, PP_ERR_USAGE, "'%s' is a partition, not a drive", name);
	snprintf(info->name, sizeof(info->name), "%s", name);
	pp_sys_node(name, info->node);
	if (!pp_sys_u64(sys, &sectors, "%s/size", dir))
		return pp_fail(err, PP_ERR_SYSTEM, "the kernel tells no size of '%s'", name);
	info->size_bytes = sectors * SECTOR_BYTES;
	if (pp_sys_text(sys, text, sizeof(text), "%s/dev", dir))
		sscanf(text, "%u:%u", &info->dev_major, &info->dev_minor);
	info->transport = find_transport(dir, name);
	read_queue(sys, dir, info);
	if (identities[info->transport])
		identities[info->transport](sys, dir, info);
	info->no_volatile_cache = info->drive_cache == PP_CACHE_NONE;
	info->has_partitions = has_partitions(sys, dir, name);
	return 0;
}

int pp_drive_list(const struct pp_sysroot *sys, struct pp_drive_info **infos, size_t *count,
	struct pp_error *err)
{
	char (*names)[PP_DRIVE_NAME_BYTES];
	size_t n = pp_sys_names(sys, &names, "/sys/block");
	struct pp_drive_info *list = calloc(n ? n : 1, sizeof(*list));
	size_t used = 0;

	*infos = NULL;
	*count = 0;
	if (!list) {
		free(names);
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t hidden = 0;

		/* One path of an NVMe multipath device: no node of its own. */
		if (pp_sys_u64(sys, &hidden, "/sys/block/%s/hidden", names[i]) && hidden)
			continue;
		if (pp_drive_read(sys, names[i], &list[used], NULL) == 0 && list[used].size_bytes)
			used++;
	}
	free(names);
	*infos = list;
	*count = used;
	return 0;
}

/* The multipath dm that stands on this disk, if there is one. */
static bool find_multipath(const struct pp_sysroot *sys, const char *name,
	char multipath[PP_DRIVE_NAME_BYTES])
{
	char (*holders)[PP_DRIVE_NAME_BYTES];
	size_t count = pp_sys_names(sys, &holders, "/sys/class/block/%s/holders", name);
	bool found = false;

	for (size_t i = 0; i < count && !found; i++) {
		char uuid[256];

		found = pp_sys_text(sys, uuid, sizeof(uuid), "/sys/class/block/%s/dm/uuid", holders[i]) &&
			strncmp(uuid, "mpath-", 6) == 0;
		if (found)
			snprintf(multipath, PP_DRIVE_NAME_BYTES, "%s", holders[i]);
	}
	free(holders);
	return found;
}

/* Two drives of one id are one only if both are paths of the same multipath device. */
static int choose(const struct pp_sysroot *sys, const char *id, const struct pp_drive_info *a,
	const struct pp_drive_info *b, struct pp_drive_info *info, struct pp_error *err)
{
	char over_a[PP_DRIVE_NAME_BYTES], over_b[PP_DRIVE_NAME_BYTES];
	struct pp_drive_info disk = *a;

	if (!find_multipath(sys, a->name, over_a) || !find_multipath(sys, b->name, over_b) ||
		strcmp(over_a, over_b) != 0)
		return pp_fail(err, PP_ERR_EVIDENCE, "two drives are called '%s': %s and %s", id, a->node,
			b->node);
	if (pp_drive_read(sys, over_a, info, err) != 0)
		return -1;
	snprintf(info->serial, sizeof(info->serial), "%s", disk.serial);
	snprintf(info->wwn, sizeof(info->wwn), "%s", disk.wwn);
	snprintf(info->model, sizeof(info->model), "%s", disk.model);
	snprintf(info->firmware, sizeof(info->firmware), "%s", disk.firmware);
	return 0;
}

int pp_drive_find(const struct pp_sysroot *sys, const char *id, struct pp_drive_info *info,
	struct pp_error *err)
{
	const struct pp_drive_info *first = NULL, *other = NULL;
	struct pp_drive_info *list;
	size_t count;
	int rc = 0;

	if (pp_drive_list(sys, &list, &count, err) != 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (!pp_drive_is(&list[i], id))
			continue;
		if (first && !other)
			other = &list[i];
		if (!first)
			first = &list[i];
	}
	if (!first)
		rc = pp_fail(err, PP_ERR_UNSUPPORTED, "no drive here has the serial or WWN '%s'", id);
	else if (other)
		rc = choose(sys, id, first, other, info, err);
	else
		*info = *first;
	free(list);
	return rc;
}

int pp_drive_wait(const struct pp_sysroot *sys, const char *id, int64_t timeout_ms,
	struct pp_drive_info *info, struct pp_error *err)
{
	int64_t deadline_ns = pp_clock_mono_ns() + timeout_ms * PP_NS_PER_MS;
	struct pp_error why = {.class = PP_ERR_NONE};

	for (;;) {
		if (pp_drive_find(sys, id, info, &why) == 0)
			return 0;
		/* Two of one name do not become one by waiting. */
		if (why.class != PP_ERR_UNSUPPORTED || pp_clock_mono_ns() >= deadline_ns)
			break;
		pp_clock_sleep_ms(WAIT_SLICE_MS);
	}
	if (err)
		*err = why;
	return -1;
}

int pp_drive_smart_raw(const struct pp_drive_info *info, struct pp_buf *json, struct pp_error *err)
{
	const char *const argv[] = {"smartctl", "-j", "-x", info->node, NULL};
	struct pp_subprocess what = {.argv = argv, .timeout_ms = SMART_TIMEOUT_MS, .out = json};
	struct pp_subprocess_result result;
	char path[PATH_MAX];

	if (!pp_subprocess_find("smartctl", path, sizeof(path)))
		return 0;
	if (pp_subprocess_run(&what, &result, err) != 0)
		return -1;
	if (result.timed_out || result.truncated) {
		pp_buf_clear(json);
		return pp_fail(err, PP_ERR_SYSTEM, "smartctl on '%s' %s", info->node,
			result.timed_out ? "did not end in time" : "said too much");
	}
	/* Its exit status is a set of findings (smartctl(8)); the JSON holds them, and errors too. */
	return 0;
}
