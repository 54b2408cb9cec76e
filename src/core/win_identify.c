/* SPDX-License-Identifier: MIT
 *
 * What the answers of a physical drive mean, and drive.h's functions on Windows' stack.
 */
#include "win_identify.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* ---- conclusions -------------------------------------------------------------------------- */

enum pp_drive_cache pp_win_drive_cache(const struct pp_win_facts *f)
{
	enum pp_drive_cache direct = PP_CACHE_UNKNOWN, driver = PP_CACHE_UNKNOWN;

	if (!f->nvme_error && !f->nvme_vwc)
		return PP_CACHE_NONE;
	if (!f->nvme_feature_error)
		direct = f->nvme_cache ? PP_CACHE_ON : PP_CACHE_OFF;
	if (!f->ata_error && (pp_win_ata_word(f->ata_identify, 87) & 0xc000) == 0x4000) {
		if (!(pp_win_ata_word(f->ata_identify, 82) & 1 << 5))
			return PP_CACHE_NONE;
		direct = pp_win_ata_word(f->ata_identify, 85) & 1 << 5 ? PP_CACHE_ON : PP_CACHE_OFF;
	}
	if (direct != PP_CACHE_UNKNOWN)
		return direct;
	/* MODE SENSE by the class driver, as port driver or bridge translates it. */
	if (!f->info_error)
		driver = f->info.write_enabled ? PP_CACHE_ON : PP_CACHE_OFF;
	if (f->property_error || !f->property.enabled)
		return driver;
	if (driver == PP_CACHE_UNKNOWN)
		return f->property.enabled == 2 ? PP_CACHE_ON : PP_CACHE_OFF;
	return (driver == PP_CACHE_ON) == (f->property.enabled == 2) ? driver : PP_CACHE_UNKNOWN;
}

int pp_win_protected(const struct pp_win_facts *f)
{
	if (!f->setting_error)
		return f->setting.power_protected != 0;
	if (!f->property_error)
		return f->property.user_protection != 0;
	if (!f->protected_error)
		return f->protected_value == 1;
	return f->protected_error == PP_WIN_NOT_FOUND && !f->instance_error ? 0 : -1;
}

/* ADJUST_FUA_FLAG of the class driver. */
int pp_win_sends_fua(const struct pp_win_facts *f)
{
	enum pp_drive_cache cache = pp_win_drive_cache(f);
	int protected = pp_win_protected(f);

	if (cache == PP_CACHE_OFF || cache == PP_CACHE_NONE || protected == 1)
		return 0;
	if (!f->setting_error && f->setting.state == PP_WIN_CACHE_NO_WRITE_THROUGH)
		return 0;
	if (!f->property_error && f->property.write_through == 1)
		return 0;
	if (cache == PP_CACHE_UNKNOWN || protected < 0)
		return -1;
	if (!f->setting_error || (!f->property_error && f->property.write_through == 2))
		return 1;
	return -1;
}

static const struct {
	uint32_t bus;
	enum pp_transport transport;
	const char *name;
} buses[] = {
	{PP_WIN_BUS_SCSI, PP_TRANSPORT_SCSI, "SCSI"},   {PP_WIN_BUS_ATAPI, PP_TRANSPORT_SATA, "ATAPI"},
	{PP_WIN_BUS_ATA, PP_TRANSPORT_SATA, "ATA"},     {PP_WIN_BUS_FIBRE, PP_TRANSPORT_SCSI, "Fibre Channel"},
	{PP_WIN_BUS_USB, PP_TRANSPORT_USB, "USB"},      {PP_WIN_BUS_RAID, PP_TRANSPORT_SCSI, "RAID"},
	{PP_WIN_BUS_ISCSI, PP_TRANSPORT_ISCSI, "iSCSI"}, {PP_WIN_BUS_SAS, PP_TRANSPORT_SAS, "SAS"},
	{PP_WIN_BUS_SATA, PP_TRANSPORT_SATA, "SATA"},   {PP_WIN_BUS_SD, PP_TRANSPORT_MMC, "SD"},
	{PP_WIN_BUS_MMC, PP_TRANSPORT_MMC, "MMC"},      {PP_WIN_BUS_VIRTUAL, PP_TRANSPORT_OTHER, "virtual"},
	{PP_WIN_BUS_FILE_BACKED, PP_TRANSPORT_LOOP, "virtual, a file"},
	{PP_WIN_BUS_SPACES, PP_TRANSPORT_MD, "Storage Spaces"},
	{PP_WIN_BUS_NVME, PP_TRANSPORT_NVME, "NVMe"},   {PP_WIN_BUS_SCM, PP_TRANSPORT_OTHER, "storage-class memory"},
	{PP_WIN_BUS_UFS, PP_TRANSPORT_OTHER, "UFS"},
};

const char *pp_win_bus_name(uint32_t bus, char number[32])
{
	for (size_t i = 0; i < sizeof(buses) / sizeof(buses[0]); i++)
		if (buses[i].bus == bus)
			return buses[i].name;
	snprintf(number, 32, "bus type %u", (unsigned)bus);
	return number;
}

static enum pp_transport transport_of(const struct pp_win_facts *f)
{
	for (size_t i = 0; !f->descriptor_error && i < sizeof(buses) / sizeof(buses[0]); i++)
		if (buses[i].bus == f->bus)
			return buses[i].transport;
	return PP_TRANSPORT_OTHER;
}

/* drive.h's word for the kernel's belief, in the ways that Windows has. */
static const char *belief(const struct pp_win_facts *f)
{
	switch (pp_win_drive_cache(f)) {
	case PP_CACHE_ON:
		return pp_win_protected(f) == 1 ? "write back, flushing off" : "write back";
	case PP_CACHE_OFF:
	case PP_CACHE_NONE:
		return pp_win_protected(f) == 1 ? "write through, flushing off" : "write through";
	default:
		return pp_win_protected(f) == 1 ? "flushing off" : "";
	}
}

void pp_win_fill_info(const struct pp_win_facts *f, struct pp_drive_info *info)
{
	memset(info, 0, sizeof(*info));
	snprintf(info->name, sizeof(info->name), "PhysicalDrive%u", f->disk);
	pp_text_copy(info->node, sizeof(info->node), f->node);
	info->dev_minor = f->disk;
	pp_text_copy(info->serial, sizeof(info->serial), f->serial);
	info->transport = transport_of(f);
	info->serial_of_bridge = info->transport == PP_TRANSPORT_USB;
	pp_text_copy(info->wwn, sizeof(info->wwn), f->wwn);
	snprintf(info->model, sizeof(info->model), "%.60s%s%.60s", f->vendor,
		f->vendor[0] && f->product[0] ? " " : "", f->product);
	pp_text_copy(info->firmware, sizeof(info->firmware), f->revision);
	info->size_bytes = f->size_bytes;
	info->logical_block_bytes = !f->alignment_error ? f->logical_bytes : f->sector_bytes;
	info->physical_block_bytes = !f->alignment_error ? f->physical_bytes : f->sector_bytes;
	pp_text_copy(info->write_cache, sizeof(info->write_cache), belief(f));
	info->fua = pp_win_sends_fua(f) == 1;
	info->drive_cache = pp_win_drive_cache(f);
	info->rotational = f->seek_penalty;
	info->removable = f->removable || f->hotplug;
	info->no_volatile_cache = info->drive_cache == PP_CACHE_NONE;
	if (!f->descriptor_error && f->bus == PP_WIN_BUS_RAID)
		snprintf(info->raid_controller, sizeof(info->raid_controller), "RAID");
}

/* ---- drive.h on this stack ---------------------------------------------------------------- */

bool pp_win_disk_number(const char *name, unsigned *disk)
{
	const char *word = "PhysicalDrive";
	char *end;

	if (strncmp(name, "\\\\.\\", 4) == 0)
		name += 4;
	if (strncmp(name, word, strlen(word)) != 0 || !isdigit((unsigned char)name[strlen(word)]))
		return false;
	*disk = (unsigned)strtoul(name + strlen(word), &end, 10);
	return *end == '\0';
}

int pp_win_drive_read(const struct pp_win_storage *s, const char *name, struct pp_drive_info *info,
	struct pp_error *err)
{
	struct pp_win_facts facts;
	unsigned disk;

	memset(info, 0, sizeof(*info));
	if (!pp_win_disk_number(name, &disk))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "there is no physical drive '%s'", name);
	if (pp_win_ask(s, disk, PP_WIN_ASK_QUIETLY, &facts, err) != 0)
		return -1;
	pp_win_fill_info(&facts, info);
	return 0;
}

int pp_win_drive_list(const struct pp_win_storage *s, struct pp_drive_info **infos, size_t *count,
	struct pp_error *err)
{
	unsigned disks[PP_WIN_DISKS_MAX];
	size_t found = 0;
	uint32_t error = s->disks(s->ctx, disks, PP_WIN_DISKS_MAX, &found);
	char why[64];

	*infos = NULL;
	*count = 0;
	if (error)
		return pp_fail(err, PP_ERR_SYSTEM, "cannot list the physical drives: %s",
			pp_win_error_text(error, why));
	*infos = calloc(found ? found : 1, sizeof(**infos));
	if (!*infos)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	for (size_t i = 0; i < found; i++) {
		struct pp_win_facts facts;

		if (pp_win_ask(s, disks[i], PP_WIN_ASK_QUIETLY, &facts, NULL) == 0)
			pp_win_fill_info(&facts, &(*infos)[(*count)++]);
	}
	return 0;
}

/* MPIO shows the paths of a drive as one disk, so two of one name are two drives. */
int pp_win_drive_find(const struct pp_win_storage *s, const char *id, struct pp_drive_info *info,
	struct pp_error *err)
{
	struct pp_drive_info *list;
	size_t count, found = 0;
	int rc = 0;

	if (pp_win_drive_list(s, &list, &count, err) != 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (!pp_drive_is(&list[i], id))
			continue;
		if (found++)
			rc = pp_fail(err, PP_ERR_EVIDENCE, "two drives are called '%s': %s and %s", id, info->node,
				list[i].node);
		else
			*info = list[i];
	}
	free(list);
	if (!found)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "no drive here has the serial or WWN '%s'", id);
	return rc;
}

uint32_t pp_win_disks_of(const struct pp_win_storage *s, const struct pp_win_volume *volume,
	unsigned *disks, size_t room, size_t *count)
{
	struct pp_win_extents extents = {0};
	uint32_t error, got = 0;
	void *device;

	*count = 0;
	error = s->open(s->ctx, volume->device, PP_WIN_QUERY, &device);
	if (error)
		return error;
	error = s->control(s->ctx, device, PP_WIN_GET_DISK_EXTENTS, NULL, 0, &extents, sizeof(extents),
		&got);
	s->close(s->ctx, device);
	if (error)
		return error;
	if (got < offsetof(struct pp_win_extents, extent) ||
		extents.count > (got - offsetof(struct pp_win_extents, extent)) / sizeof(struct pp_win_extent))
		return PP_WIN_SHORT_ANSWER;
	for (uint32_t i = 0; i < extents.count; i++) {
		bool known = false;

		for (size_t k = 0; k < *count; k++)
			known |= disks[k] == extents.extent[i].disk;
		if (!known && *count == room)
			return PP_WIN_MORE_DATA;
		if (!known)
			disks[(*count)++] = extents.extent[i].disk;
	}
	return 0;
}

static void add_layer(struct pp_stack *stack, const char *name, const char *kind, unsigned depth,
	bool whole)
{
	struct pp_stack_layer *layer = &stack->layers[stack->layer_count++];

	pp_text_copy(layer->name, sizeof(layer->name), name);
	layer->kind = kind;
	layer->depth = depth;
	layer->whole = whole;
}

static void add_disk(struct pp_stack *stack, unsigned disk, unsigned depth)
{
	char name[PP_DRIVE_NAME_BYTES];

	snprintf(name, sizeof(name), "PhysicalDrive%u", disk);
	add_layer(stack, name, "disk", depth, true);
	pp_text_copy(stack->disks[stack->disk_count++], sizeof(stack->disks[0]), name);
}

int pp_win_drive_of_path(const struct pp_win_storage *s, const char *path, struct pp_stack *stack,
	struct pp_error *err)
{
	unsigned disks[PP_STACK_MAX - 1];
	struct pp_win_volume volume;
	size_t count = 0;
	uint32_t error;
	char why[64];
	unsigned disk;

	memset(stack, 0, sizeof(*stack));
	if (pp_win_disk_number(path, &disk)) {
		add_disk(stack, disk, 0);
		return 0;
	}
	error = s->volume(s->ctx, path, &volume);
	if (error)
		return pp_fail(err, error == PP_WIN_NOT_FOUND ? PP_ERR_UNSUPPORTED : PP_ERR_SYSTEM,
			"cannot find the volume of '%s': %s", path, pp_win_error_text(error, why));
	pp_text_copy(stack->fs_type, sizeof(stack->fs_type), volume.fs_type);
	pp_text_copy(stack->fs_source, sizeof(stack->fs_source), volume.device);
	pp_text_copy(stack->mount_point, sizeof(stack->mount_point), volume.mount_point);
	if (volume.remote || !volume.device[0]) {
		pp_text_copy(stack->fs_source, sizeof(stack->fs_source), volume.mount_point);
		return 0;
	}
	add_layer(stack, volume.mount_point, "volume", 0, false);
	error = pp_win_disks_of(s, &volume, disks, PP_STACK_MAX - 1, &count);
	if (error) {
		stack->incomplete = true;
		snprintf(stack->incomplete_text, sizeof(stack->incomplete_text),
			"the physical drives of volume %.100s: not reported (%s)", volume.mount_point,
			pp_win_error_text(error, why));
	}
	for (size_t i = 0; i < count; i++)
		add_disk(stack, disks[i], 1);
	return 0;
}

/* ---- what drives have in common ------------------------------------------------------------ */

static bool holds(const unsigned *disks, size_t count, unsigned disk)
{
	for (size_t i = 0; i < count; i++)
		if (disks[i] == disk)
			return true;
	return false;
}

/* A letter whose volume spans both (a dynamic disk's); volumes without a letter are not looked at. */
static char find_span(const struct pp_win_storage *s, unsigned a, unsigned b)
{
	for (char letter = 'A'; letter <= 'Z'; letter++) {
		char path[4] = {letter, ':', '\\', '\0'};
		unsigned disks[PP_STACK_MAX];
		struct pp_win_volume volume;
		size_t count;

		if (s->volume(s->ctx, path, &volume) == 0 && !volume.remote && volume.device[0] &&
			strcmp(volume.mount_point, path) == 0 &&
			pp_win_disks_of(s, &volume, disks, PP_STACK_MAX, &count) == 0 &&
			holds(disks, count, a) && holds(disks, count, b))
			return letter;
	}
	return '\0';
}

int pp_win_drives_share(const struct pp_win_storage *s, const char *a, const char *b, char *why,
	size_t why_bytes, struct pp_error *err)
{
	struct pp_drive_info drive_a, drive_b;
	unsigned disk_a = 0, disk_b = 0;
	char letter;

	if (pp_win_drive_read(s, a, &drive_a, err) != 0 || pp_win_drive_read(s, b, &drive_b, err) != 0)
		return -1;
	pp_win_disk_number(a, &disk_a);
	pp_win_disk_number(b, &disk_b);
	if (disk_a == disk_b) {
		snprintf(why, why_bytes, "both are %s", drive_a.name);
		return 1;
	}
	if (drive_a.raid_controller[0] && drive_b.raid_controller[0]) {
		snprintf(why, why_bytes, "both hang on a RAID controller, perhaps the same");
		return 1;
	}
	letter = find_span(s, disk_a, disk_b);
	if (letter)
		snprintf(why, why_bytes, "volume %c: lies on both", letter);
	return letter != '\0';
}

int pp_win_drive_carries_system(const struct pp_win_storage *s, const char *name, char *why,
	size_t why_bytes, struct pp_error *err)
{
	unsigned disks[PP_STACK_MAX], disk;
	struct pp_win_volume volume;
	size_t count = 0;
	uint32_t error;
	char text[64];

	if (!pp_win_disk_number(name, &disk))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "there is no physical drive '%s'", name);
	error = s->system_volume(s->ctx, &volume);
	if (!error)
		error = pp_win_disks_of(s, &volume, disks, PP_STACK_MAX, &count);
	if (error)
		return pp_fail(err, PP_ERR_SYSTEM, "cannot tell which drive Windows runs from: %s",
			pp_win_error_text(error, text));
	if (!holds(disks, count, disk))
		return 0;
	snprintf(why, why_bytes, "%.40s, where Windows is, is on it", volume.mount_point);
	return 1;
}
