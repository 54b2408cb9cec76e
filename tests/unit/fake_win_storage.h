/* SPDX-License-Identifier: MIT
 *
 * A made-up Windows storage stack with the behaviour that Microsoft publishes of its class driver
 * (Windows driver samples, storage/class/disk):
 *   a write-through write carries FUA only with the write cache on, not power-protected, FUA not refused;
 *   a flush is completed at once when power-protected, else sent as SYNCHRONIZE CACHE;
 *   a drive that refuses FUA gets the write again without it, and no FUA ever after; unless the user
 *   forced the cache on, its write cache is then switched off;
 *   UserWriteCacheSetting is stored even where the drive refused the change; at the start of the drive
 *   both registry values are put in force; a hot-plug drive starts with its cache off by default;
 *   the write-cache property's query sends a real SYNCHRONIZE CACHE.
 * Beneath it a drive with a volatile cache, which fake_cut() empties. Lies and errors are set by hand.
 */
#ifndef TESTS_UNIT_FAKE_WIN_STORAGE_H
#define TESTS_UNIT_FAKE_WIN_STORAGE_H

#include <stdio.h>
#include <string.h>

#include "src/core/win_storage.h"

#define FAKE_DRIVES  4
#define FAKE_VOLUMES 6
#define FAKE_ERRORS  8
#define FAKE_ABSENT  (-1000)
#define FAKE_BLOCKS  16

struct fake_drive {
	bool there;
	uint32_t bus;
	const char *vendor, *product, *revision, *serial; /* of the descriptor */
	const char *own_serial;      /* of NVMe's or ATA's Identify page; NULL: serial */
	uint32_t physical_bytes;
	bool rotates, hotplug;
	/* the drive itself */
	bool has_cache, cache;
	bool takes_fua, honours_fua, honours_flush;
	bool obeys;                  /* does what MODE SELECT says */
	bool refuses_change;         /* MODE SELECT fails */
	bool asked_directly;         /* NVMe and ATA commands are passed on */
	uint8_t medium[FAKE_BLOCKS], volatile_copy[FAKE_BLOCKS];
	bool dirty[FAKE_BLOCKS];
	/* the class driver */
	bool write_cache, power_protected, no_fua;
	bool events;                 /* IO_WARNING_WRITE_FUA_PROBLEM was logged */
	/* the registry */
	bool no_key;                 /* the device instance cannot be found */
	int user_setting, protected_setting;
	/* lies: -1 says the truth */
	int property_enabled, property_protection, info_enabled;
	unsigned power_cycles, unsafe_shutdowns;
	/* what it was sent */
	unsigned flushes, fua_writes, plain_writes, property_queries, changes;
};

struct fake_error {
	uint32_t code;     /* a control code, or 0: any */
	int property;      /* of a property query; -1: any */
	int disk;          /* -1: any */
	uint32_t error;    /* PP_WIN_SHORT_ANSWER: success, with less than the structure */
};

struct fake_volume {
	const char *path;  /* the beginning of paths on it */
	struct pp_win_volume volume;
	unsigned disks[4];
	unsigned disk_count;
};

struct fake_win {
	struct fake_drive drives[FAKE_DRIVES];
	struct fake_volume volumes[FAKE_VOLUMES];
	struct fake_error errors[FAKE_ERRORS];
	enum pp_win_access most;  /* what open grants at most */
	unsigned open;            /* handles */
	bool registry_read_only;
	int fail_at, calls;       /* the fail_at'th change fails with error 5 */
};

struct fake_handle {
	struct fake_win *win;
	int disk, volume;         /* one of them is -1 */
	enum pp_win_access access;
};

static struct fake_handle fake_handles[16];

static bool fake_refuse(struct fake_win *win)
{
	return ++win->calls == win->fail_at;
}

/* ---- the drive and its class driver ------------------------------------------------------- */

static void fake_sync_cache(struct fake_drive *d)
{
	d->flushes++;
	for (int i = 0; d->honours_flush && i < FAKE_BLOCKS; i++)
		if (d->dirty[i]) {
			d->medium[i] = d->volatile_copy[i];
			d->dirty[i] = false;
		}
}

/* MODE SELECT of page 08h; a cache that is switched off is emptied. */
static bool fake_mode_select(struct fake_drive *d, bool on)
{
	d->changes++;
	if (d->refuses_change)
		return false;
	if (!d->obeys)
		return true;
	for (int i = 0; !on && i < FAKE_BLOCKS; i++)
		if (d->dirty[i]) {
			d->medium[i] = d->volatile_copy[i];
			d->dirty[i] = false;
		}
	d->cache = on && d->has_cache;
	return true;
}

static inline bool fake_fua(const struct fake_drive *d)
{
	return d->write_cache && !d->power_protected && !d->no_fua;
}

/* One write through the class driver. */
static inline void fake_write(struct fake_drive *d, unsigned block, uint8_t value, bool through)
{
	bool fua = through && fake_fua(d);

	if (fua && !d->takes_fua) {
		d->no_fua = true;
		fua = false;
		if (d->user_setting == 1)
			d->events = true;
		else if (fake_mode_select(d, false))
			d->write_cache = false;
	}
	if (fua)
		d->fua_writes++;
	else
		d->plain_writes++;
	d->volatile_copy[block] = value;
	d->dirty[block] = true;
	if (!d->cache || (fua && d->honours_fua)) {
		d->medium[block] = value;
		d->dirty[block] = false;
	}
}

/* IRP_MJ_FLUSH_BUFFERS */
static inline void fake_flush(struct fake_drive *d)
{
	if (!d->power_protected)
		fake_sync_cache(d);
}

static inline void fake_cut(struct fake_drive *d)
{
	memset(d->dirty, 0, sizeof(d->dirty));
	memcpy(d->volatile_copy, d->medium, sizeof(d->medium));
	d->power_cycles++;
	d->unsafe_shutdowns++;
}

/* DiskStartFdo */
static inline void fake_start(struct fake_drive *d)
{
	int wanted = d->user_setting == FAKE_ABSENT || d->user_setting == -1 ? !d->hotplug :
		d->user_setting;

	d->write_cache = d->cache;
	if (d->cache != (wanted != 0) && fake_mode_select(d, wanted != 0))
		d->write_cache = wanted != 0;
	d->power_protected = d->protected_setting == 1;
	d->no_fua = false;
}

static void fake_drive_init(struct fake_drive *d, uint32_t bus, const char *product,
	const char *serial)
{
	memset(d, 0, sizeof(*d));
	d->there = true;
	d->bus = bus;
	d->vendor = "";
	d->product = product;
	d->revision = "1.00";
	d->serial = serial;
	d->physical_bytes = 4096;
	d->has_cache = d->cache = d->write_cache = true;
	d->takes_fua = d->honours_fua = d->honours_flush = d->obeys = d->asked_directly = true;
	d->user_setting = d->protected_setting = FAKE_ABSENT;
	d->property_enabled = d->property_protection = d->info_enabled = -1;
	d->power_cycles = 41;
	d->unsafe_shutdowns = 7;
}

/* ---- the calls ---------------------------------------------------------------------------- */

static uint32_t fake_open(void *ctx, const char *path, enum pp_win_access access, void **device)
{
	struct fake_win *win = ctx;
	struct fake_handle *h = NULL;
	unsigned disk;
	int n = 0;

	for (size_t i = 0; i < sizeof(fake_handles) / sizeof(fake_handles[0]) && !h; i++)
		h = fake_handles[i].win ? NULL : &fake_handles[i];
	if (!h)
		return 4; /* too many open files: somebody leaks */
	*h = (struct fake_handle){.win = NULL, .disk = -1, .volume = -1, .access = access};
	if (sscanf(path, "\\\\.\\PhysicalDrive%u%n", &disk, &n) == 1 && !path[n]) {
		if (disk >= FAKE_DRIVES || !win->drives[disk].there)
			return PP_WIN_NOT_FOUND;
		h->disk = (int)disk;
	}
	for (int i = 0; i < FAKE_VOLUMES; i++)
		if (win->volumes[i].path && strcmp(path, win->volumes[i].volume.device) == 0)
			h->volume = i;
	if (h->disk < 0 && h->volume < 0)
		return PP_WIN_NOT_FOUND;
	if (access > win->most)
		return PP_WIN_ACCESS_DENIED;
	h->win = win;
	win->open++;
	*device = h;
	return 0;
}

static void fake_close(void *ctx, void *device)
{
	struct fake_handle *h = device;

	(void)ctx;
	h->win->open--;
	h->win = NULL;
}

static uint32_t fake_answer(const void *from, uint32_t bytes, void *out, uint32_t out_bytes,
	uint32_t *got)
{
	if (out_bytes < bytes)
		return 122; /* insufficient buffer */
	memcpy(out, from, bytes);
	*got = bytes;
	return 0;
}

static uint32_t fake_descriptor(const struct fake_drive *d, void *out, uint32_t out_bytes,
	uint32_t *got)
{
	union {
		struct pp_win_device_descriptor d;
		char bytes[256];
	} reply;
	const char *texts[4] = {d->vendor, d->product, d->revision, d->serial};
	uint32_t *offsets[4] = {&reply.d.vendor_offset, &reply.d.product_offset,
		&reply.d.revision_offset, &reply.d.serial_offset};
	uint32_t at = sizeof(reply.d);

	memset(&reply, 0, sizeof(reply));
	for (int i = 0; i < 4; i++) {
		if (!texts[i] || !texts[i][0])
			continue;
		*offsets[i] = at;
		at += (uint32_t)snprintf(reply.bytes + at, sizeof(reply.bytes) - at, "%s", texts[i]) + 1;
	}
	reply.d.version = reply.d.size = at;
	reply.d.bus_type = d->bus;
	return fake_answer(&reply, at, out, out_bytes, got);
}

static uint32_t fake_id(const struct fake_drive *d, void *out, uint32_t out_bytes, uint32_t *got)
{
	struct {
		struct pp_win_id_descriptor d;
		struct pp_win_identifier first;
		char name[8];
		struct pp_win_identifier id;
		uint8_t naa[8];
	} reply = {
		.d = {.version = sizeof(reply), .size = sizeof(reply), .count = 2},
		/* a vendor's text first: not a name to be taken */
		.first = {.code_set = 2, .type = 1, .bytes = 8, .next_offset = 24},
		.id = {.code_set = 1, .type = 3, .bytes = 8},
		.naa = {0x50, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07},
	};

	if (d->bus == PP_WIN_BUS_USB)
		return PP_WIN_INVALID_FUNCTION;
	return fake_answer(&reply, sizeof(reply), out, out_bytes, got);
}

static uint32_t fake_property(struct fake_drive *d, void *out, uint32_t out_bytes, uint32_t *got)
{
	struct pp_win_write_cache p = {.version = sizeof(p), .size = sizeof(p)};

	d->property_queries++;
	fake_sync_cache(d);
	if (d->bus == PP_WIN_BUS_RAID || d->bus == PP_WIN_BUS_SD)
		return PP_WIN_NOT_SUPPORTED;
	p.type = d->has_cache ? d->cache ? 2 : 3 : 1;
	p.enabled = d->property_enabled >= 0 ? (uint32_t)d->property_enabled : d->cache ? 2 : 1;
	p.changeable = d->has_cache ? 2 : 1;
	p.write_through = d->no_fua ? 1 : 2;
	p.flush_supported = d->honours_flush;
	p.user_protection = d->property_protection >= 0 ? d->property_protection : d->power_protected;
	return fake_answer(&p, sizeof(p), out, out_bytes, got);
}

static uint32_t fake_protocol(struct fake_drive *d, void *io, uint32_t out_bytes, uint32_t *got)
{
	struct pp_win_protocol_query *q = io;
	uint32_t bytes = q->protocol.data_bytes;

	if (d->bus != PP_WIN_BUS_NVME || q->protocol.protocol != PP_WIN_PROTOCOL_NVME)
		return PP_WIN_INVALID_FUNCTION;
	if (!d->asked_directly)
		return PP_WIN_INVALID_FUNCTION;
	if (offsetof(struct pp_win_protocol_query, data) + bytes > out_bytes)
		return 122;
	q->property = q->type = 48;
	if (q->protocol.data_type == PP_WIN_NVME_IDENTIFY && q->protocol.value == 1 && bytes == 4096) {
		memset(q->data, ' ', 72);
		memcpy(q->data + 4, d->own_serial ? d->own_serial : d->serial,
			strlen(d->own_serial ? d->own_serial : d->serial));
		memcpy(q->data + 24, d->product, strlen(d->product));
		memcpy(q->data + 64, d->revision, strlen(d->revision));
		q->data[525] = d->has_cache ? 7 : 6;
	} else if (q->protocol.data_type == PP_WIN_NVME_LOG && q->protocol.value == 2 && bytes == 512) {
		q->data[5] = 3;
		q->data[112] = (uint8_t)d->power_cycles;
		q->data[128] = 200;
		q->data[144] = (uint8_t)d->unsafe_shutdowns;
	} else if (q->protocol.data_type == PP_WIN_NVME_FEATURE && q->protocol.value == 6) {
		q->protocol.fixed = d->cache;
	} else {
		return PP_WIN_INVALID_PARAMETER;
	}
	*got = offsetof(struct pp_win_protocol_query, data) + bytes;
	return 0;
}

static void fake_ata_text(uint8_t *page, int word, int words, const char *text)
{
	for (int i = 0; i < 2 * words; i++)
		page[2 * word + (i ^ 1)] = i < (int)strlen(text) ? (uint8_t)text[i] : ' ';
}

static void fake_ata_word(uint8_t *page, int word, unsigned value)
{
	page[2 * word] = (uint8_t)value;
	page[2 * word + 1] = (uint8_t)(value >> 8);
}

static void fake_smart_page(const struct fake_drive *d, uint8_t *page)
{
	memset(page, 0, 512);
	page[2] = 12;
	page[7] = (uint8_t)d->power_cycles;
	page[14] = 174;
	page[19] = (uint8_t)d->unsafe_shutdowns;
}

static uint32_t fake_ata(struct fake_drive *d, void *io, uint32_t out_bytes, uint32_t *got)
{
	struct pp_win_ata_read *r = io;

	if ((d->bus != PP_WIN_BUS_ATA && d->bus != PP_WIN_BUS_SATA) || !d->asked_directly)
		return PP_WIN_INVALID_FUNCTION;
	if (out_bytes < sizeof(*r) || r->ata.length != sizeof(r->ata) ||
		r->ata.data_offset != offsetof(struct pp_win_ata_read, data))
		return PP_WIN_INVALID_PARAMETER;
	if (r->ata.current[6] == 0xec) {
		memset(r->data, 0, 512);
		fake_ata_text(r->data, 10, 10, d->own_serial ? d->own_serial : d->serial);
		fake_ata_text(r->data, 23, 4, d->revision);
		fake_ata_text(r->data, 27, 20, d->product);
		fake_ata_word(r->data, 82, d->has_cache ? 0x20 : 0);
		fake_ata_word(r->data, 84, 0x4000 | (d->takes_fua ? 0x40 : 0));
		fake_ata_word(r->data, 85, d->has_cache && d->cache ? 0x20 : 0);
		fake_ata_word(r->data, 87, 0x4000);
	} else if (r->ata.current[6] == 0xb0 && r->ata.current[0] == 0xd0) {
		fake_smart_page(d, r->data);
	} else {
		r->ata.current[6] = 0x51; /* status: error */
		*got = sizeof(*r);
		return 0;
	}
	r->ata.current[6] = 0x50;
	*got = sizeof(*r);
	return 0;
}

static uint32_t fake_query(struct fake_drive *d, const struct pp_win_query *q, void *out,
	uint32_t out_bytes, uint32_t *got)
{
	struct pp_win_alignment alignment = {.version = 28, .size = 28, .logical_bytes = 512,
		.physical_bytes = d->physical_bytes};
	struct pp_win_seek_penalty seek = {.version = 12, .size = 12, .incurs = d->rotates};

	switch ((enum pp_win_property)q->property) {
	case PP_WIN_PROPERTY_DEVICE:
		return fake_descriptor(d, out, out_bytes, got);
	case PP_WIN_PROPERTY_DEVICE_ID:
		return fake_id(d, out, out_bytes, got);
	case PP_WIN_PROPERTY_WRITE_CACHE:
		return fake_property(d, out, out_bytes, got);
	case PP_WIN_PROPERTY_ALIGNMENT:
		return fake_answer(&alignment, sizeof(alignment), out, out_bytes, got);
	case PP_WIN_PROPERTY_SEEK_PENALTY:
		return fake_answer(&seek, sizeof(seek), out, out_bytes, got);
	case PP_WIN_PROPERTY_DEVICE_PROTOCOL:
		return fake_protocol(d, out, out_bytes, got);
	}
	return PP_WIN_INVALID_FUNCTION;
}

static uint32_t fake_set(struct fake_win *win, struct fake_drive *d, uint32_t code, const void *in)
{
	struct pp_win_cache_setting setting;
	struct pp_win_cache_info info;
	bool ok;

	if (fake_refuse(win))
		return PP_WIN_ACCESS_DENIED;
	if (code == PP_WIN_SET_CACHE_INFO) {
		memcpy(&info, in, sizeof(info));
		ok = fake_mode_select(d, info.write_enabled);
		if (ok)
			d->write_cache = info.write_enabled;
		d->user_setting = info.write_enabled; /* stored also where the drive refused */
		return ok ? 0 : PP_WIN_INVALID_FUNCTION;
	}
	memcpy(&setting, in, sizeof(setting));
	if (setting.version != sizeof(setting))
		return PP_WIN_INVALID_PARAMETER;
	d->changes++;
	d->power_protected = setting.power_protected;
	d->protected_setting = setting.power_protected;
	return 0;
}

static uint32_t fake_disk_control(struct fake_win *win, struct fake_drive *d, uint32_t code,
	const void *in, void *out, uint32_t out_bytes, uint32_t *got)
{
	struct pp_win_geometry geometry = {.bytes_per_sector = 512, .size_bytes = 1000204886016};
	struct pp_win_hotplug hotplug = {.size = 8, .device_hotplug = d->hotplug};
	struct pp_win_cache_info info = {.read_enabled = 1,
		.write_enabled = d->info_enabled >= 0 ? d->info_enabled : d->cache};
	struct pp_win_cache_setting setting = {.version = 12, .power_protected = d->power_protected,
		.state = d->no_fua ? PP_WIN_CACHE_NO_WRITE_THROUGH : PP_WIN_CACHE_NORMAL};
	uint8_t smart[16 + 512] = {0};

	switch (code) {
	case PP_WIN_QUERY_PROPERTY:
		return fake_query(d, in, out, out_bytes, got);
	case PP_WIN_GET_GEOMETRY_EX:
		return fake_answer(&geometry, sizeof(geometry), out, out_bytes, got);
	case PP_WIN_GET_HOTPLUG_INFO:
		return fake_answer(&hotplug, sizeof(hotplug), out, out_bytes, got);
	case PP_WIN_GET_CACHE_INFO:
		return fake_answer(&info, sizeof(info), out, out_bytes, got);
	case PP_WIN_GET_CACHE_SETTING:
		return fake_answer(&setting, sizeof(setting), out, out_bytes, got);
	case PP_WIN_SET_CACHE_INFO:
	case PP_WIN_SET_CACHE_SETTING:
		return fake_set(win, d, code, in);
	case PP_WIN_ATA_PASS_THROUGH:
		return fake_ata(d, out, out_bytes, got);
	case PP_WIN_SMART_RCV:
		if (d->bus != PP_WIN_BUS_ATA && d->bus != PP_WIN_BUS_SATA)
			return PP_WIN_INVALID_FUNCTION;
		fake_smart_page(d, smart + 16);
		return fake_answer(smart, sizeof(smart), out, out_bytes, got);
	default:
		return PP_WIN_INVALID_FUNCTION;
	}
}

/* The error that was set for this question; 0: none. */
static uint32_t fake_error_of(const struct fake_win *win, int disk, uint32_t code, uint32_t property)
{
	for (int i = 0; i < FAKE_ERRORS; i++) {
		const struct fake_error *e = &win->errors[i];

		if (e->error && (!e->code || e->code == code) && (e->disk < 0 || e->disk == disk) &&
			(e->property < 0 || (code == PP_WIN_QUERY_PROPERTY && e->property == (int)property)))
			return e->error;
	}
	return 0;
}

static uint32_t fake_extents(const struct fake_volume *v, void *out, uint32_t out_bytes, uint32_t *got)
{
	struct pp_win_extents extents = {.count = v->disk_count};

	for (uint32_t i = 0; i < extents.count; i++)
		extents.extent[i].disk = v->disks[i];
	return fake_answer(&extents, 8 + 24 * extents.count, out, out_bytes, got);
}

static uint32_t fake_control(void *ctx, void *device, uint32_t code, const void *in,
	uint32_t in_bytes, void *out, uint32_t out_bytes, uint32_t *got)
{
	static const uint8_t needs[4] = {PP_WIN_QUERY, PP_WIN_READ, PP_WIN_WRITE, PP_WIN_WRITE};
	const struct pp_win_query *q = in;
	struct fake_handle *h = device;
	struct fake_win *win = ctx;
	uint32_t error, set;

	*got = 0;
	if (h->access < (enum pp_win_access)needs[code >> 14 & 3])
		return PP_WIN_ACCESS_DENIED;
	set = fake_error_of(win, h->disk, code, in_bytes >= sizeof(q->property) && q ? q->property : 0);
	if (set && set != PP_WIN_SHORT_ANSWER)
		return set;
	if (h->volume < 0)
		error = fake_disk_control(win, &win->drives[h->disk], code, in, out, out_bytes, got);
	else if (code == PP_WIN_GET_DISK_EXTENTS)
		error = fake_extents(&win->volumes[h->volume], out, out_bytes, got);
	else
		error = PP_WIN_INVALID_FUNCTION;
	if (set && *got > 1)
		*got -= 2; /* an older structure, or a driver that stops short */
	return error;
}

static uint32_t fake_disks(void *ctx, unsigned *numbers, size_t room, size_t *count)
{
	struct fake_win *win = ctx;

	*count = 0;
	for (unsigned i = 0; i < FAKE_DRIVES && *count < room; i++)
		if (win->drives[i].there)
			numbers[(*count)++] = i;
	return 0;
}

static uint32_t fake_instance(void *ctx, unsigned disk, char *out, size_t out_bytes)
{
	struct fake_win *win = ctx;

	if (disk >= FAKE_DRIVES || !win->drives[disk].there || win->drives[disk].no_key)
		return PP_WIN_NOT_FOUND;
	snprintf(out, out_bytes, "SCSI\\DISK&VEN_FAKE\\%u", disk);
	return 0;
}

static int *fake_value(struct fake_win *win, const char *instance, const char *name)
{
	unsigned disk = 0;

	sscanf(instance, "SCSI\\DISK&VEN_FAKE\\%u", &disk);
	if (strcmp(name, PP_WIN_USER_WRITE_CACHE) == 0)
		return &win->drives[disk].user_setting;
	return &win->drives[disk].protected_setting;
}

static uint32_t fake_get(void *ctx, const char *instance, const char *name, uint32_t *value)
{
	int *at = fake_value(ctx, instance, name);

	if (*at == FAKE_ABSENT)
		return PP_WIN_NOT_FOUND;
	*value = (uint32_t)*at;
	return 0;
}

static uint32_t fake_put(void *ctx, const char *instance, const char *name, const uint32_t *value)
{
	struct fake_win *win = ctx;

	if (win->registry_read_only || fake_refuse(win))
		return PP_WIN_ACCESS_DENIED;
	*fake_value(win, instance, name) = value ? (int)*value : FAKE_ABSENT;
	return 0;
}

static uint32_t fake_volume_of(void *ctx, const char *path, struct pp_win_volume *volume)
{
	struct fake_win *win = ctx;

	for (int i = 0; i < FAKE_VOLUMES; i++)
		if (win->volumes[i].path && strncmp(path, win->volumes[i].path,
			strlen(win->volumes[i].path)) == 0) {
			*volume = win->volumes[i].volume;
			return 0;
		}
	return PP_WIN_NOT_FOUND;
}

static uint32_t fake_system(void *ctx, struct pp_win_volume *volume)
{
	return fake_volume_of(ctx, "C:\\", volume);
}

static void fake_add_volume(struct fake_win *win, int at, const char *mount, const char *device,
	const char *fs, unsigned first, unsigned count)
{
	struct fake_volume *v = &win->volumes[at];

	v->path = mount;
	snprintf(v->volume.mount_point, sizeof(v->volume.mount_point), "%s", mount);
	snprintf(v->volume.device, sizeof(v->volume.device), "%s", device);
	snprintf(v->volume.fs_type, sizeof(v->volume.fs_type), "%s", fs);
	v->volume.remote = !device[0];
	v->disk_count = count;
	for (unsigned i = 0; i < count; i++)
		v->disks[i] = first + i;
}

/* Disk 0 NVMe with C:, disk 1 SATA with D:, disk 2 USB with E:, disk 3 RAID; F: on 1 and 2; a share. */
static void fake_win_init(struct fake_win *win)
{
	memset(win, 0, sizeof(*win));
	memset(fake_handles, 0, sizeof(fake_handles));
	win->most = PP_WIN_WRITE;
	fake_drive_init(&win->drives[0], PP_WIN_BUS_NVME, "Fast SSD 1TB", "0025_38B1_71B0_1234.");
	win->drives[0].vendor = "NVMe";
	win->drives[0].own_serial = "S5GXNF0R111111";
	fake_drive_init(&win->drives[1], PP_WIN_BUS_SATA, "Old SSD 500GB", "  S3Z9NB0K123456A ");
	win->drives[1].own_serial = "S3Z9NB0K123456A";
	fake_drive_init(&win->drives[2], PP_WIN_BUS_USB, "Elements", "575833314138");
	win->drives[2].hotplug = true;
	fake_drive_init(&win->drives[3], PP_WIN_BUS_RAID, "LOGICAL VOLUME", "00AA11");
	fake_add_volume(win, 0, "C:\\", "\\\\.\\C:", "NTFS", 0, 1);
	fake_add_volume(win, 1, "D:\\", "\\\\.\\D:", "ReFS", 1, 1);
	fake_add_volume(win, 2, "E:\\", "\\\\.\\E:", "exFAT", 2, 1);
	fake_add_volume(win, 3, "F:\\", "\\\\.\\F:", "NTFS", 1, 2);
	fake_add_volume(win, 4, "\\\\server\\share", "", "NTFS", 0, 0);
}

static inline struct pp_win_storage fake_win_storage(struct fake_win *win)
{
	return (struct pp_win_storage){
		.ctx = win, .open = fake_open, .control = fake_control, .close = fake_close,
		.disks = fake_disks, .instance = fake_instance, .registry_get = fake_get,
		.registry_set = fake_put, .volume = fake_volume_of, .system_volume = fake_system,
	};
}

#endif
