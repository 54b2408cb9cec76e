/* SPDX-License-Identifier: MIT
 *
 * Asking a physical drive on Windows. Each question is a small function that fills its members of the
 * facts and leaves the error; none stops the others.
 */
#include "win_identify.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "le.h"
#include "policy.h"
#include "text.h"

#define NODE_PREFIX "\\\\.\\PhysicalDrive"
#define NVME_SERIAL 4
#define NVME_MODEL  24
#define NVME_FIRMWARE 64
#define NVME_VWC    525
#define NVME_LOG_SMART   2
#define NVME_FEATURE_VWC 6
#define ATA_IDENTIFY 0xec
#define ATA_SMART    0xb0
#define ATA_SMART_READ_DATA 0xd0
#define ATA_TIMEOUT_S 10
#define SMART_TABLE  2   /* then 12 bytes a row */
#define SMART_ROW    12

/* What one ask shares. */
struct ask {
	const struct pp_win_storage *s;
	void *device;
	bool may_pass;  /* opened for writing: pass-through is possible */
	struct pp_win_facts *f;
};

/* 0 only if all of the structure came back. */
static uint32_t control(const struct ask *a, uint32_t code, const void *in, uint32_t in_bytes,
	void *out, uint32_t out_bytes, uint32_t wanted_bytes)
{
	uint32_t got = 0, error = a->s->control(a->s->ctx, a->device, code, in, in_bytes, out, out_bytes,
		&got);

	return error ? error : got < wanted_bytes ? PP_WIN_SHORT_ANSWER : 0;
}

static uint32_t query(const struct ask *a, enum pp_win_property property, void *out,
	uint32_t out_bytes, uint32_t wanted_bytes)
{
	struct pp_win_query q = {.property = property};

	memset(out, 0, out_bytes);
	return control(a, PP_WIN_QUERY_PROPERTY, &q, sizeof(q), out, out_bytes, wanted_bytes);
}

/* Trimmed; bytes that are no text end it, since it will stand in reports. */
static void copy_text(char *to, size_t to_bytes, const uint8_t *from, size_t bytes)
{
	size_t n = 0;

	while (bytes && isspace(*from)) {
		from++;
		bytes--;
	}
	for (; n + 1 < to_bytes && n < bytes && from[n] >= 0x20 && from[n] < 0x7f; n++)
		to[n] = (char)from[n];
	while (n && isspace((unsigned char)to[n - 1]))
		n--;
	to[n] = '\0';
}

/* ---- identity ----------------------------------------------------------------------------- */

static void ask_descriptor(const struct ask *a)
{
	union {
		struct pp_win_device_descriptor d;
		uint8_t bytes[1024];
	} reply;
	struct {
		uint32_t at;
		char *to;
		size_t bytes;
	} texts[4];

	a->f->descriptor_error = query(a, PP_WIN_PROPERTY_DEVICE, &reply, sizeof(reply), sizeof(reply.d));
	if (a->f->descriptor_error)
		return;
	a->f->bus = reply.d.bus_type;
	a->f->removable = reply.d.removable_media;
	texts[0].at = reply.d.vendor_offset, texts[0].to = a->f->vendor;
	texts[0].bytes = sizeof(a->f->vendor);
	texts[1].at = reply.d.product_offset, texts[1].to = a->f->product;
	texts[1].bytes = sizeof(a->f->product);
	texts[2].at = reply.d.revision_offset, texts[2].to = a->f->revision;
	texts[2].bytes = sizeof(a->f->revision);
	texts[3].at = reply.d.serial_offset, texts[3].to = a->f->serial;
	texts[3].bytes = sizeof(a->f->serial);
	/* 0 and, from some drivers, -1 stand for none. */
	for (size_t i = 0; i < 4; i++)
		if (texts[i].at >= sizeof(reply.d) && texts[i].at < sizeof(reply.bytes))
			copy_text(texts[i].to, texts[i].bytes, reply.bytes + texts[i].at,
				strnlen((char *)reply.bytes + texts[i].at, sizeof(reply.bytes) - texts[i].at));
}

/* VPD page 83h: the device's own NAA or EUI-64, as Linux names them. */
static void ask_id(const struct ask *a)
{
	union {
		struct pp_win_id_descriptor d;
		uint8_t bytes[1024];
	} reply;
	size_t at = sizeof(reply.d);

	a->f->id_error = query(a, PP_WIN_PROPERTY_DEVICE_ID, &reply, sizeof(reply), sizeof(reply.d));
	for (uint32_t i = 0; !a->f->id_error && i < reply.d.count && i < 16; i++) {
		struct pp_win_identifier id;
		size_t n;

		if (at + sizeof(id) > sizeof(reply.bytes))
			return;
		memcpy(&id, reply.bytes + at, sizeof(id));
		if (at + sizeof(id) + id.bytes > sizeof(reply.bytes))
			return;
		if (id.association == 0 && id.code_set == 1 && (id.type == 2 || id.type == 3) &&
			id.bytes >= 8 && id.bytes <= 16) {
			n = (size_t)snprintf(a->f->wwn, sizeof(a->f->wwn), "%s", id.type == 3 ? "naa." : "eui.");
			for (uint16_t k = 0; k < id.bytes; k++)
				n += (size_t)snprintf(a->f->wwn + n, sizeof(a->f->wwn) - n, "%02x",
					reply.bytes[at + sizeof(id) + k]);
			return;
		}
		if (!id.next_offset)
			return;
		at += id.next_offset;
	}
}

static void ask_sizes(const struct ask *a)
{
	struct pp_win_geometry geometry = {0};
	struct pp_win_alignment alignment;
	struct pp_win_seek_penalty seek;
	struct pp_win_hotplug hotplug = {0};
	struct pp_win_facts *f = a->f;

	f->geometry_error = control(a, PP_WIN_GET_GEOMETRY_EX, NULL, 0, &geometry, sizeof(geometry),
		sizeof(geometry));
	if (!f->geometry_error) {
		f->size_bytes = (uint64_t)geometry.size_bytes;
		f->sector_bytes = geometry.bytes_per_sector;
	}
	f->alignment_error = query(a, PP_WIN_PROPERTY_ALIGNMENT, &alignment, sizeof(alignment),
		sizeof(alignment));
	if (!f->alignment_error) {
		f->logical_bytes = alignment.logical_bytes;
		f->physical_bytes = alignment.physical_bytes;
	}
	f->seek_error = query(a, PP_WIN_PROPERTY_SEEK_PENALTY, &seek, sizeof(seek), 9);
	f->seek_penalty = !f->seek_error && seek.incurs;
	f->hotplug_error = control(a, PP_WIN_GET_HOTPLUG_INFO, NULL, 0, &hotplug, sizeof(hotplug),
		sizeof(hotplug));
	f->hotplug = !f->hotplug_error && (hotplug.media_hotplug || hotplug.device_hotplug);
}

/* ---- cache -------------------------------------------------------------------------------- */

static void ask_cache(const struct ask *a, bool may_flush)
{
	struct pp_win_facts *f = a->f;

	f->info_error = control(a, PP_WIN_GET_CACHE_INFO, NULL, 0, &f->info, sizeof(f->info),
		sizeof(f->info));
	f->setting_error = control(a, PP_WIN_GET_CACHE_SETTING, NULL, 0, &f->setting, sizeof(f->setting),
		sizeof(f->setting));
	f->property_error = PP_WIN_NOT_ASKED;
	if (may_flush)
		f->property_error = query(a, PP_WIN_PROPERTY_WRITE_CACHE, &f->property, sizeof(f->property),
			27); /* up to NVCacheEnabled */
}

static void ask_registry(const struct ask *a)
{
	struct pp_win_facts *f = a->f;

	f->instance_error = a->s->instance(a->s->ctx, f->disk, f->instance, sizeof(f->instance));
	f->user_cache_error = f->protected_error = f->instance_error;
	if (f->instance_error)
		return;
	f->user_cache_error = a->s->registry_get(a->s->ctx, f->instance, PP_WIN_USER_WRITE_CACHE,
		&f->user_cache);
	f->protected_error = a->s->registry_get(a->s->ctx, f->instance, PP_WIN_CACHE_IS_PROTECTED,
		&f->protected_value);
}

/* ---- NVMe --------------------------------------------------------------------------------- */

static uint32_t ask_nvme(const struct ask *a, enum pp_win_nvme_data type, uint32_t value,
	uint32_t sub_value, uint32_t bytes, struct pp_win_protocol_query *q)
{
	uint32_t error;

	memset(q, 0, sizeof(*q));
	q->property = PP_WIN_PROPERTY_DEVICE_PROTOCOL;
	q->protocol.protocol = PP_WIN_PROTOCOL_NVME;
	q->protocol.data_type = type;
	q->protocol.value = value;
	q->protocol.sub_value = sub_value;
	q->protocol.data_offset = bytes ? sizeof(q->protocol) : 0;
	q->protocol.data_bytes = bytes;
	error = control(a, PP_WIN_QUERY_PROPERTY, q, sizeof(*q), q, sizeof(*q),
		offsetof(struct pp_win_protocol_query, data) + bytes);
	if (!error && bytes && (q->protocol.data_offset != sizeof(q->protocol) ||
		q->protocol.data_bytes < bytes))
		return PP_WIN_SHORT_ANSWER;
	return error;
}

static void ask_nvme_pages(const struct ask *a, bool log)
{
	struct pp_win_facts *f = a->f;
	struct pp_win_protocol_query *q = malloc(sizeof(*q));

	f->nvme_error = f->nvme_feature_error = f->nvme_log_error = PP_WIN_NOT_ASKED;
	if (!q)
		return;
	f->nvme_error = ask_nvme(a, PP_WIN_NVME_IDENTIFY, 1, 0, 4096, q);
	if (!f->nvme_error) {
		f->nvme_vwc = q->data[NVME_VWC] & 1;
		copy_text(f->serial, sizeof(f->serial), q->data + NVME_SERIAL, 20);
		copy_text(f->product, sizeof(f->product), q->data + NVME_MODEL, 40);
		copy_text(f->revision, sizeof(f->revision), q->data + NVME_FIRMWARE, 8);
		f->vendor[0] = '\0'; /* "NVMe", of the descriptor */
	}
	f->nvme_feature_error = ask_nvme(a, PP_WIN_NVME_FEATURE, NVME_FEATURE_VWC, 0, 0, q);
	f->nvme_cache = !f->nvme_feature_error && q->protocol.fixed & 1;
	if (log)
		f->nvme_log_error = ask_nvme(a, PP_WIN_NVME_LOG, NVME_LOG_SMART, 0, 512, q);
	/* 16-byte counters; their upper halves stay 0 in any drive's life. */
	if (!f->nvme_log_error) {
		f->critical_warning = q->data[0];
		f->used_percent = q->data[5];
		f->power_cycles = le64_get(q->data + 112);
		f->power_on_hours = le64_get(q->data + 128);
		f->unsafe_shutdowns = le64_get(q->data + 144);
		f->media_errors = le64_get(q->data + 160);
	}
	free(q);
}

/* ---- ATA ---------------------------------------------------------------------------------- */

/* ATA strings are big-endian words. */
static void ata_text(const uint8_t *page, int word, int words, char *out, size_t out_bytes)
{
	uint8_t text[64];

	for (int i = 0; i < words; i++) {
		text[2 * i] = page[2 * (word + i) + 1];
		text[2 * i + 1] = page[2 * (word + i)];
	}
	copy_text(out, out_bytes, text, (size_t)words * 2);
}

static uint32_t pass_ata(const struct ask *a, uint8_t command, uint8_t feature, uint8_t mid,
	uint8_t high, uint8_t page[512])
{
	struct pp_win_ata_read io = {
		.ata = {
			.length = sizeof(struct pp_win_ata), .flags = PP_WIN_ATA_DRDY | PP_WIN_ATA_DATA_IN,
			.data_bytes = 512, .timeout_s = ATA_TIMEOUT_S,
			.data_offset = offsetof(struct pp_win_ata_read, data),
			.current = {feature, 1, 0, mid, high, 0xa0, command},
		},
	};
	uint32_t error;

	if (!a->may_pass)
		return a->f->write_error ? a->f->write_error : PP_WIN_NOT_ASKED;
	error = control(a, PP_WIN_ATA_PASS_THROUGH, &io, sizeof(io), &io, sizeof(io), sizeof(io));
	/* Afterwards the task file holds the status register in the command's place: bit 0 is an error. */
	if (!error && io.ata.current[6] & 1)
		return PP_WIN_NOT_SUPPORTED;
	memcpy(page, io.data, 512);
	return error;
}

/* The older way, which drivers that refuse pass-through still know. */
static uint32_t read_smart_old(const struct ask *a, uint8_t page[512])
{
	uint8_t in[PP_WIN_SMART_IN_BYTES] = {0}, out[PP_WIN_SMART_OUT_HEADER + 512] = {0};
	const uint8_t registers[7] = {ATA_SMART_READ_DATA, 1, 1, 0x4f, 0xc2, 0xa0, ATA_SMART};
	uint32_t error;

	if (!a->may_pass)
		return a->f->write_error ? a->f->write_error : PP_WIN_NOT_ASKED;
	in[1] = 2; /* cBufferSize: 512 */
	memcpy(in + PP_WIN_SMART_REGISTERS, registers, sizeof(registers));
	error = control(a, PP_WIN_SMART_RCV, in, sizeof(in), out, sizeof(out), sizeof(out));
	if (!error)
		memcpy(page, out + PP_WIN_SMART_OUT_HEADER, 512);
	return error;
}

static void ask_ata(const struct ask *a, bool smart)
{
	struct pp_win_facts *f = a->f;
	uint8_t page[512] = {0};
	char text[64];

	f->ata_smart_error = PP_WIN_NOT_ASKED;
	f->ata_error = pass_ata(a, ATA_IDENTIFY, 0, 0, 0, f->ata_identify);
	if (!f->ata_error) {
		ata_text(f->ata_identify, 10, 10, text, sizeof(text));
		if (text[0])
			pp_text_copy(f->serial, sizeof(f->serial), text);
		ata_text(f->ata_identify, 23, 4, text, sizeof(text));
		if (text[0])
			pp_text_copy(f->revision, sizeof(f->revision), text);
		ata_text(f->ata_identify, 27, 20, text, sizeof(text));
		if (text[0]) {
			pp_text_copy(f->product, sizeof(f->product), text);
			f->vendor[0] = '\0';
		}
	}
	if (!smart)
		return;
	f->ata_smart_error = pass_ata(a, ATA_SMART, ATA_SMART_READ_DATA, 0x4f, 0xc2, page);
	if (f->ata_smart_error)
		f->ata_smart_error = read_smart_old(a, page);
	for (size_t i = 0; !f->ata_smart_error && i < PP_WIN_SMART_ATTRIBUTES; i++) {
		const uint8_t *row = page + SMART_TABLE + SMART_ROW * i;

		if (!row[0])
			continue;
		f->attributes[f->attribute_count].id = row[0];
		f->attributes[f->attribute_count++].raw = le64_get(row + 5) & 0xffffffffffff;
	}
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* The most that is granted: pass-through wants writing, some queries reading, most neither. */
static uint32_t open_disk(struct ask *a)
{
	static const enum pp_win_access ways[] = {PP_WIN_WRITE, PP_WIN_READ, PP_WIN_QUERY};
	uint32_t error = 0;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		error = a->s->open(a->s->ctx, a->f->node, ways[i], &a->device);
		if (i == 0)
			a->f->write_error = error;
		a->may_pass = !error && i == 0;
		if (!error || error == PP_WIN_NOT_FOUND)
			break;
	}
	return error;
}

int pp_win_ask(const struct pp_win_storage *s, unsigned disk, enum pp_win_questions questions,
	struct pp_win_facts *facts, struct pp_error *err)
{
	struct ask a = {.s = s, .f = facts};
	bool all = questions == PP_WIN_ASK_ALL, counters = questions != PP_WIN_ASK_QUIETLY;
	char name[PP_DRIVE_NAME_BYTES], why[64];

	memset(facts, 0, sizeof(*facts));
	facts->disk = disk;
	snprintf(name, sizeof(name), "PhysicalDrive%u", disk);
	snprintf(facts->node, sizeof(facts->node), NODE_PREFIX "%u", disk);
	facts->open_error = open_disk(&a);
	if (facts->open_error == PP_WIN_NOT_FOUND)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "there is no physical drive '%s'", name);
	if (facts->open_error)
		return pp_fail(err, PP_ERR_SYSTEM, "cannot open '%s': %s", facts->node,
			pp_win_error_text(facts->open_error, why));
	ask_descriptor(&a);
	ask_id(&a);
	ask_sizes(&a);
	ask_cache(&a, all && !pp_policy_in_run(name));
	ask_registry(&a);
	facts->nvme_error = facts->nvme_feature_error = facts->nvme_log_error = PP_WIN_NOT_ASKED;
	facts->ata_error = facts->ata_smart_error = PP_WIN_NOT_ASKED;
	if (!facts->descriptor_error && facts->bus == PP_WIN_BUS_NVME)
		ask_nvme_pages(&a, counters);
	if (!facts->descriptor_error && pp_win_bus_is_ata(facts->bus))
		ask_ata(&a, counters);
	s->close(s->ctx, a.device);
	return 0;
}
