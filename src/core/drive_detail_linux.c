/* SPDX-License-Identifier: MIT */
#include "drive_detail.h"

#include <blkid/blkid.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>

#include "drive_sysfs.h"
#include "file.h"

#define NVME_VWC       525
#define NVME_AWUPF     528
#define NVME_NS_NSFEAT 24
#define NVME_NS_NAWUPF 36
#define SYSLOG_READ_ALL 3
#define LOG_BYTES_MAX (4 << 20)

/* ---- the drive's own pages ---------------------------------------------------------------- */

/* A recorded page may be cut short: the rest is zero. */
static bool recorded(const struct pp_sysroot *sys, const struct pp_drive_info *info,
	const char *what, void *page, size_t bytes)
{
	memset(page, 0, bytes);
	return !pp_sys_living(sys) && pp_sys_bytes(sys, page, bytes, "/asked/%s/%s", info->name, what) > 0;
}

bool pp_ask_ata(const struct pp_sysroot *sys, const struct pp_drive_info *info, uint8_t page[512])
{
	if (sys->ops)
		return sys->ops->ata_identify && sys->ops->ata_identify(info->node, page) == 0;
	return recorded(sys, info, "ata-identify", page, 512);
}

bool pp_ask_nvme(const struct pp_sysroot *sys, const struct pp_drive_info *info, uint8_t page[4096])
{
	if (sys->ops)
		return sys->ops->nvme_identify && sys->ops->nvme_identify(info->node, page) == 0;
	return recorded(sys, info, "nvme-identify", page, 4096);
}

bool pp_ask_nvme_ns(const struct pp_sysroot *sys, const struct pp_drive_info *info,
	uint8_t page[4096])
{
	if (sys->ops)
		return sys->ops->nvme_identify_ns && sys->ops->nvme_identify_ns(info->node, page) == 0;
	return recorded(sys, info, "nvme-identify-ns", page, 4096);
}

bool pp_ask_nvme_cache(const struct pp_sysroot *sys, const struct pp_drive_info *info, bool *on)
{
	uint64_t value;

	if (sys->ops)
		return sys->ops->nvme_write_cache && sys->ops->nvme_write_cache(info->node, on) == 0;
	if (pp_sys_living(sys) || !pp_sys_u64(sys, &value, "/asked/%s/nvme-cache", info->name))
		return false;
	*on = value != 0;
	return true;
}

unsigned pp_ata_word(const uint8_t *page, int word)
{
	return page[2 * word] | (unsigned)page[2 * word + 1] << 8;
}

int pp_drive_smart(const struct pp_sysroot *sys, const struct pp_drive_info *info,
	struct pp_buf *json, struct pp_error *err)
{
	char path[PATH_MAX];

	sys = pp_sys(sys);
	if (pp_sys_living(sys))
		return pp_drive_smart_raw(info, json, err);
	if (!pp_sys_exists(sys, "/asked/%s/smartctl.json", info->name))
		return 0;
	snprintf(path, sizeof(path), "%s/asked/%s/smartctl.json", sys->root, info->name);
	return pp_file_read(path, json, err);
}

/* ---- the drive ---------------------------------------------------------------------------- */

static void read_atomic(const struct pp_sysroot *sys, const char *dir, struct pp_drive_detail *d)
{
	const struct {
		const char *name;
		int64_t *to;
	} rows[] = {
		{"atomic_write_unit_min_bytes", &d->atomic_unit_min_bytes},
		{"atomic_write_unit_max_bytes", &d->atomic_unit_max_bytes},
		{"atomic_write_max_bytes", &d->atomic_max_bytes},
		{"atomic_write_boundary_bytes", &d->atomic_boundary_bytes},
	};
	uint64_t value;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		*rows[i].to = pp_sys_u64(sys, &value, "%s/queue/%s", dir, rows[i].name) ?
			(int64_t)value : -1;
}

/* Both units are counts of logical blocks, from 0 (NVM Command Set Specification, 2.1.4). */
static void read_nvme(const struct pp_sysroot *sys, const char *dir,
	const struct pp_drive_info *info, struct pp_drive_detail *d)
{
	int64_t block = info->logical_block_bytes;
	uint8_t page[4096] = {0};
	char transport[32];

	snprintf(d->controller_driver, sizeof(d->controller_driver), "nvme");
	if (pp_sys_text(sys, transport, sizeof(transport), "%s/device/transport", dir) &&
		strcmp(transport, "pcie") != 0 && strcmp(transport, "apple-nvme") != 0)
		snprintf(d->fabric, sizeof(d->fabric), "%.15s", transport);
	if (!pp_ask_nvme(sys, info, page))
		return;
	d->nvme_vwc = page[NVME_VWC] & 1;
	d->nvme_awupf_bytes = (page[NVME_AWUPF] + 256 * page[NVME_AWUPF + 1] + 1) * block;
	memset(page, 0, sizeof(page));
	/* NSFEAT bit 1: the namespace has units of its own. */
	if (pp_ask_nvme_ns(sys, info, page) && page[NVME_NS_NSFEAT] & 2)
		d->nvme_nawupf_bytes = (page[NVME_NS_NAWUPF] + 256 * page[NVME_NS_NAWUPF + 1] + 1) * block;
}

static void read_ata(const struct pp_sysroot *sys, const struct pp_drive_info *info,
	struct pp_drive_detail *d)
{
	uint8_t page[512] = {0};

	if (!pp_ask_ata(sys, info, page))
		return;
	if ((pp_ata_word(page, 83) & 0xc000) == 0x4000) {
		d->ata_cache_supported = (pp_ata_word(page, 82) & 1 << 5) != 0;
		d->ata_flush_ext = (pp_ata_word(page, 83) & 1 << 13) != 0;
	}
	if ((pp_ata_word(page, 84) & 0xc000) == 0x4000)
		d->ata_fua = (pp_ata_word(page, 84) & 1 << 6) != 0;
	if ((pp_ata_word(page, 87) & 0xc000) == 0x4000)
		d->ata_cache_enabled = (pp_ata_word(page, 85) & 1 << 5) != 0;
}

static char *read_log(const struct pp_sysroot *sys)
{
	struct pp_buf text;
	char path[PATH_MAX], *log;
	int n;

	if (pp_sys_living(sys)) {
		log = calloc(1, LOG_BYTES_MAX + 1);
		n = log ? klogctl(SYSLOG_READ_ALL, log, LOG_BYTES_MAX) : -1;
		if (n <= 0) {
			free(log);
			return NULL;
		}
		return log;
	}
	snprintf(path, sizeof(path), "%s/asked/dmesg", sys->root);
	pp_buf_init(&text, LOG_BYTES_MAX);
	log = pp_file_read(path, &text, NULL) == 0 && text.bytes ? strndup(text.data, text.bytes) : NULL;
	pp_buf_release(&text);
	return log;
}

/* drivers/scsi/sd.c, sd_read_cache_type(): the drive did not answer MODE SENSE for page 08h. */
static int find_assumption(const struct pp_sysroot *sys, const char *name)
{
	char line[PP_DRIVE_NAME_BYTES + 64], *log = read_log(sys);
	int found;

	if (!log)
		return -1;
	snprintf(line, sizeof(line), "[%s] Assuming drive cache: write through", name);
	found = strstr(log, line) != NULL;
	free(log);
	return found;
}

static void read_scsi(const struct pp_sysroot *sys, const char *dir,
	const struct pp_drive_info *info, struct pp_drive_detail *d)
{
	char (*names)[PP_DRIVE_NAME_BYTES];
	uint64_t value;
	size_t count = pp_sys_names(sys, &names, "%s/device/scsi_disk", dir);

	if (count) {
		pp_sys_text(sys, d->scsi_cache_type, sizeof(d->scsi_cache_type),
			"%s/device/scsi_disk/%s/cache_type", dir, names[0]);
		if (pp_sys_u64(sys, &value, "%s/device/scsi_disk/%s/FUA", dir, names[0]))
			d->scsi_fua = value != 0;
		d->assumed_write_through = find_assumption(sys, info->name);
	}
	free(names);
	pp_sys_text(sys, d->vendor, sizeof(d->vendor), "%s/device/vendor", dir);
	if (strstr(dir, "/host"))
		pp_sys_text(sys, d->controller_driver, sizeof(d->controller_driver),
			"/sys/class/scsi_host/host%u/proc_name", info->scsi_host);
	if (strstr(dir, "/rport-"))
		snprintf(d->fabric, sizeof(d->fabric), "fc");
}

static void read_usb(const struct pp_sysroot *sys, const char *dir, struct pp_drive_detail *d)
{
	char at[PATH_MAX], vendor[8], product[8], maker[64], *slash;

	snprintf(d->usb_driver, sizeof(d->usb_driver), "%s", d->controller_driver);
	snprintf(at, sizeof(at), "%s", dir);
	while ((slash = strrchr(at, '/')) != NULL && slash != at) {
		*slash = '\0';
		if (!pp_sys_text(sys, vendor, sizeof(vendor), "%s/idVendor", at))
			continue;
		pp_sys_text(sys, product, sizeof(product), "%s/idProduct", at);
		pp_sys_text(sys, maker, sizeof(maker), "%s/manufacturer", at);
		snprintf(d->usb_bridge, sizeof(d->usb_bridge), "%s:%s%s%s", vendor,
			product[0] ? product : "?", maker[0] ? " " : "", maker);
		return;
	}
}

/* dm-multipath's slaves, or the controllers of an NVMe subsystem with one shared node. */
static int64_t count_paths(const struct pp_sysroot *sys, const char *dir)
{
	char (*names)[PP_DRIVE_NAME_BYTES];
	char above[PATH_MAX], uuid[256], *slash;
	size_t count;
	int64_t paths = 0;

	if (pp_sys_text(sys, uuid, sizeof(uuid), "%s/dm/uuid", dir) && strncmp(uuid, "mpath-", 6) == 0) {
		count = pp_sys_names(sys, &names, "%s/slaves", dir);
		free(names);
		return (int64_t)count;
	}
	if (!strstr(dir, "/nvme-subsystem/"))
		return 1;
	snprintf(above, sizeof(above), "%s", dir);
	slash = strrchr(above, '/');
	*slash = '\0';
	count = pp_sys_names(sys, &names, "%s", above);
	for (size_t i = 0; i < count; i++)
		paths += strncmp(names[i], "nvme", 4) == 0 && isdigit((unsigned char)names[i][4]) &&
			strspn(names[i] + 4, "0123456789") == strlen(names[i] + 4);
	free(names);
	return paths ? paths : 1;
}

/* A disk beneath a multipath device has as many ways to it as that device. */
static int64_t count_paths_above(const struct pp_sysroot *sys, const char *dir)
{
	char (*holders)[PP_DRIVE_NAME_BYTES];
	char above[PATH_MAX];
	size_t count = pp_sys_names(sys, &holders, "%s/holders", dir);
	int64_t most = count_paths(sys, dir);

	for (size_t i = 0; i < count; i++) {
		int64_t paths = pp_sys_block_dir(sys, holders[i], above) ? count_paths(sys, above) : 1;

		most = paths > most ? paths : most;
	}
	free(holders);
	return most;
}

void pp_drive_detail_read(const struct pp_sysroot *sys, const struct pp_drive_info *info,
	struct pp_drive_detail *detail)
{
	char dir[PATH_MAX];

	sys = pp_sys(sys);
	memset(detail, 0, sizeof(*detail));
	detail->atomic_unit_min_bytes = detail->atomic_unit_max_bytes = -1;
	detail->atomic_max_bytes = detail->atomic_boundary_bytes = -1;
	detail->nvme_vwc = detail->scsi_fua = detail->assumed_write_through = -1;
	detail->nvme_awupf_bytes = detail->nvme_nawupf_bytes = -1;
	detail->ata_cache_supported = detail->ata_cache_enabled = -1;
	detail->ata_fua = detail->ata_flush_ext = -1;
	detail->paths = -1;
	detail->power_cycles = detail->unsafe_shutdowns = detail->media_errors = -1;
	detail->power_on_hours = detail->used_percent = detail->critical_warning = -1;
	if (!pp_sys_block_dir(sys, info->name, dir))
		return;
	read_atomic(sys, dir, detail);
	if (info->transport == PP_TRANSPORT_NVME)
		read_nvme(sys, dir, info, detail);
	else if (pp_sys_exists(sys, "%s/device/scsi_disk", dir) ||
		pp_sys_exists(sys, "%s/device/vendor", dir))
		read_scsi(sys, dir, info, detail);
	if (info->transport == PP_TRANSPORT_SATA)
		read_ata(sys, info, detail);
	if (info->transport == PP_TRANSPORT_USB)
		read_usb(sys, dir, detail);
	detail->paths = count_paths_above(sys, dir);
}

/* ---- layers ------------------------------------------------------------------------------- */

/* Prefixes of dm/uuid, by the tool that made the device. */
static const struct {
	const char *prefix, *what;
} dm_kinds[] = {
	{"CRYPT-LUKS1-", "LUKS1"}, {"CRYPT-LUKS2-", "LUKS2"}, {"CRYPT-", "dm-crypt"}, {"LVM-", "LVM"},
	{"mpath-", "multipath"},   {"part", "partition"},     {"DMRAID-", "dmraid"},
	{"VDO-", "VDO"},           {"stratis", "stratis"},
};

static void describe_md(const struct pp_sysroot *sys, const char *name, struct pp_layer_detail *d)
{
	char level[32], disks[32], state[32];

	if (!pp_sys_text(sys, level, sizeof(level), "/sys/class/block/%s/md/level", name))
		return;
	if (strncmp(level, "raid", 4) == 0)
		memcpy(level, "RAID", 4);
	pp_sys_text(sys, disks, sizeof(disks), "/sys/class/block/%s/md/raid_disks", name);
	pp_sys_text(sys, state, sizeof(state), "/sys/class/block/%s/md/array_state", name);
	snprintf(d->what, sizeof(d->what), "%s of %s%s%s", level, disks[0] ? disks : "?",
		state[0] ? ", " : "", state);
}

static void describe_dm(const struct pp_sysroot *sys, const char *name, struct pp_layer_detail *d)
{
	char mapper[96], uuid[256];
	const char *what = "device mapper";

	if (!pp_sys_text(sys, mapper, sizeof(mapper), "/sys/class/block/%s/dm/name", name))
		return;
	pp_sys_text(sys, uuid, sizeof(uuid), "/sys/class/block/%s/dm/uuid", name);
	for (size_t i = 0; i < sizeof(dm_kinds) / sizeof(dm_kinds[0]); i++)
		if (strncmp(uuid, dm_kinds[i].prefix, strlen(dm_kinds[i].prefix)) == 0) {
			what = dm_kinds[i].what;
			break;
		}
	snprintf(d->what, sizeof(d->what), "%s %s", what, mapper);
}

static void take_value(blkid_probe probe, const char *key, char *out, size_t out_bytes)
{
	const char *value;

	if (blkid_probe_lookup_value(probe, key, &value, NULL) == 0)
		snprintf(out, out_bytes, "%s", value);
}

/* What the device itself holds, not what a cache remembers. */
static void probe_content(const char *name, struct pp_layer_detail *d)
{
	char node[PP_DRIVE_NODE_BYTES];
	blkid_probe probe;

	pp_sys_node(name, node);
	probe = blkid_new_probe_from_filename(node);
	if (!probe)
		return;
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_UUID);
	if (blkid_do_safeprobe(probe) == 0) {
		take_value(probe, "TYPE", d->content, sizeof(d->content));
		take_value(probe, "UUID", d->uuid, sizeof(d->uuid));
	}
	blkid_free_probe(probe);
}

void pp_layer_detail_read(const struct pp_sysroot *sys, const char *name,
	struct pp_layer_detail *detail)
{
	char text[128];

	sys = pp_sys(sys);
	memset(detail, 0, sizeof(*detail));
	describe_md(sys, name, detail);
	describe_dm(sys, name, detail);
	pp_sys_text(sys, detail->file, sizeof(detail->file), "/sys/class/block/%s/loop/backing_file",
		name);
	if (pp_sys_living(sys))
		probe_content(name, detail);
	else if (pp_sys_text(sys, text, sizeof(text), "/asked/%s/blkid", name))
		sscanf(text, "%31s %63s", detail->content, detail->uuid);
}

/* ---- the machine -------------------------------------------------------------------------- */

/* SMBIOS words that only virtual machines have; NULL matches any. Beginnings. */
static const struct {
	const char *vendor, *product;
} virtual_machines[] = {
	{"QEMU", NULL},          {NULL, "KVM"},               {"VMware", NULL},
	{NULL, "VMware"},        {"innotek GmbH", NULL},      {"Oracle Corporation", "VirtualBox"},
	{"Microsoft Corporation", "Virtual Machine"},         {"Google", "Google Compute Engine"},
	{"Xen", NULL},           {"Parallels", NULL},         {"OpenStack", NULL},
	{NULL, "OpenStack"},     {"DigitalOcean", NULL},      {"Bochs", NULL},
	{"Hetzner", "vServer"},  {"Alibaba Cloud", NULL},     {"Apple Inc.", "Apple Virtualization"},
	{"Nutanix", "AHV"},      {"Red Hat", "RHEV"},         {"oVirt", NULL},
};

static bool begins(const char *text, const char *with)
{
	return !with || strncmp(text, with, strlen(with)) == 0;
}

/* The flag "hypervisor" of CPUID leaf 1, as a word of its own. */
static bool cpu_says_virtual(const struct pp_sysroot *sys)
{
	struct pp_buf text;
	char path[PATH_MAX];
	bool found = false;

	snprintf(path, sizeof(path), "%s/proc/cpuinfo", sys->root);
	pp_buf_init(&text, LOG_BYTES_MAX);
	if (pp_file_read(path, &text, NULL) == 0 && text.bytes) {
		char *copy = strndup(text.data, text.bytes);
		const char *flag = copy ? strstr(copy, " hypervisor") : NULL;

		found = flag && (flag[11] == ' ' || flag[11] == '\n' || flag[11] == '\0');
		free(copy);
	}
	pp_buf_release(&text);
	return found;
}

static void find_hypervisor(const struct pp_sysroot *sys, struct pp_machine *m)
{
	char type[64];

	for (size_t i = 0; i < sizeof(virtual_machines) / sizeof(virtual_machines[0]); i++)
		if (begins(m->vendor, virtual_machines[i].vendor) &&
			begins(m->product, virtual_machines[i].product)) {
			snprintf(m->hypervisor, sizeof(m->hypervisor), "%.80s",
				m->product[0] && !virtual_machines[i].vendor ? m->product : m->vendor);
			return;
		}
	if (pp_sys_text(sys, type, sizeof(type), "/sys/hypervisor/type") && type[0])
		snprintf(m->hypervisor, sizeof(m->hypervisor), "%s", type);
	else if (pp_sys_text(sys, type, sizeof(type), "/proc/device-tree/hypervisor/compatible"))
		snprintf(m->hypervisor, sizeof(m->hypervisor), "%s", type);
	else if (cpu_says_virtual(sys))
		snprintf(m->hypervisor, sizeof(m->hypervisor), "%s", strcmp(m->vendor, "Amazon EC2") == 0 ?
			m->vendor : "unnamed; the processor has the flag");
}

/* A mouse has a battery too: its scope is "Device" (Documentation/ABI/testing/sysfs-class-power). */
static void find_battery(const struct pp_sysroot *sys, struct pp_machine *m)
{
	char (*names)[PP_DRIVE_NAME_BYTES];
	size_t count = pp_sys_names(sys, &names, "/sys/class/power_supply");

	for (size_t i = 0; i < count && !m->battery[0]; i++) {
		char type[32], scope[32];

		pp_sys_text(sys, type, sizeof(type), "/sys/class/power_supply/%s/type", names[i]);
		pp_sys_text(sys, scope, sizeof(scope), "/sys/class/power_supply/%s/scope", names[i]);
		if ((strcmp(type, "Battery") == 0 || strcmp(type, "UPS") == 0) &&
			strcmp(scope, "Device") != 0)
			snprintf(m->battery, sizeof(m->battery), "%.63s", names[i]);
	}
	free(names);
}

static bool root_is_overlay(const struct pp_sysroot *sys)
{
	struct pp_mount *mounts;
	size_t count;
	bool overlay = false;

	if (pp_mounts_read(sys, &mounts, &count, NULL) != 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (strcmp(mounts[i].mount_point, "/") == 0)
			overlay = strcmp(mounts[i].fs_type, "overlay") == 0;
	free(mounts);
	return overlay;
}

void pp_machine_read(const struct pp_sysroot *sys, struct pp_machine *machine)
{
	sys = pp_sys(sys);
	memset(machine, 0, sizeof(*machine));
	pp_sys_text(sys, machine->vendor, sizeof(machine->vendor), "/sys/class/dmi/id/sys_vendor");
	pp_sys_text(sys, machine->product, sizeof(machine->product), "/sys/class/dmi/id/product_name");
	find_hypervisor(sys, machine);
	find_battery(sys, machine);
	/* A live system (an installer's stick) has an overlay there too, but no such mark. */
	machine->container = pp_sys_exists(sys, "/.dockerenv") ||
		pp_sys_exists(sys, "/run/.containerenv") ||
		(root_is_overlay(sys) && !pp_sys_exists(sys, "/run/initramfs") &&
			!pp_sys_exists(sys, "/run/live"));
}
