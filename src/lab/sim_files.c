/* SPDX-License-Identifier: MIT */
#include "sim_kernel_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/core/le.h"

#define READS 6 /* of a commit record */

/* ---- places ---------------------------------------------------------------------------------- */

uint64_t pp_sim_slot_entry(const struct pp_sim_kernel *k, uint32_t lane, uint64_t slot)
{
	return lane * k->layout->slots + slot;
}

static uint64_t area_bytes(const struct pp_layout *l)
{
	uint64_t bytes = l->lanes * l->slots * l->record_bytes;

	return l->region_offset + (pp_workload_record_files(l->workload) ? 2 * bytes : bytes);
}

uint64_t pp_sim_kernel_disk_bytes(const struct pp_layout *layout)
{
	return PP_SIM_AREA_OFFSET + (area_bytes(layout) + 4095) / 4096 * 4096;
}

uint64_t pp_sim_place_at(const struct pp_sim_kernel *k, uint32_t lane, uint64_t slot, uint8_t place)
{
	const struct pp_layout *l = k->layout;

	if (k->files)
		return PP_SIM_AREA_OFFSET +
			(2 * pp_sim_slot_entry(k, lane, slot) + place - 1) * l->record_bytes;
	if (pp_workload_own_files(l->workload))
		return PP_SIM_AREA_OFFSET + pp_sim_slot_entry(k, lane, slot) * l->record_bytes;
	return PP_SIM_AREA_OFFSET + pp_layout_offset(l, lane, slot);
}

uint64_t pp_sim_kernel_home(const struct pp_sim_kernel *k, uint32_t lane, uint64_t slot)
{
	return pp_sim_place_at(k, lane, slot, 1);
}

/* ---- metadata -------------------------------------------------------------------------------- */

int pp_sim_meta_init(struct meta *m, uint64_t entries)
{
	m->name = entries ? calloc(4, entries) : NULL;
	m->temporary = m->name + entries;
	m->full = m->name + 2 * entries;
	return entries && !m->name ? -1 : 0;
}

static void meta_copy(struct meta *to, const struct meta *from, const struct pp_sim_kernel *k)
{
	to->number = from->number;
	memcpy(to->bytes, from->bytes, k->layout->lanes * sizeof(to->bytes[0]));
	if (k->entries)
		memcpy(to->name, from->name, 4 * k->entries);
}

void pp_sim_put_commit(uint8_t record[SECTOR], uint64_t number)
{
	memset(record, 0, SECTOR);
	memcpy(record, "SIMJRNL1", 8);
	le64_put(record + 8, number);
	le64_put(record + SECTOR - 8, XXH3_64bits(record, SECTOR - 8));
}

/* Its number, 0 where it is none. */
static uint64_t get_commit(const uint8_t record[SECTOR])
{
	if (memcmp(record, "SIMJRNL1", 8) != 0 ||
		le64_get(record + SECTOR - 8) != XXH3_64bits(record, SECTOR - 8))
		return 0;
	return le64_get(record + 8);
}

void pp_sim_begin_commit(struct pp_sim_kernel *k)
{
	k->now.number = ++k->committed;
	meta_copy(&k->snapshot[k->committed % SNAPSHOTS], &k->now, k);
}

void pp_sim_kernel_format(struct pp_sim_kernel *k)
{
	memset(k->now.bytes, 0, sizeof(k->now.bytes));
	if (k->entries)
		memset(k->now.name, 0, 4 * k->entries);
	/* A rename's target holds whole records from the beginning. */
	if (pp_workload_renames(k->layout->workload)) {
		uint64_t i;

		memset(k->now.name, 1, k->entries);
		for (i = 0; i < k->entries; i++)
			k->now.full[2 * i] = 1;
	}
	if (!k->journal)
		return;
	pp_sim_begin_commit(k);
	meta_copy(&k->first, &k->now, k);
	memset(k->disk->data, 0, PP_SIM_AREA_OFFSET);
	pp_sim_put_commit(k->disk->data + k->committed % 2 * COMMIT_STEP, k->committed);
}

bool pp_sim_kernel_mount(struct pp_sim_kernel *k)
{
	uint8_t record[SECTOR];
	uint64_t best = 0, number;
	unsigned i, tries;

	k->mounted = true;
	if (!k->journal)
		return true;
	for (i = 0; i < 2; i++) {
		/* One failed read is no lost file system (M6.3). */
		for (tries = 0; tries < READS && pp_sim_drive_read(k->drive, k->now_ns, record, SECTOR,
			     i * COMMIT_STEP) != 0; tries++)
			;
		if (tries == READS)
			continue;
		number = get_commit(record);
		best = number > best ? number : best;
	}
	if (best && k->snapshot[best % SNAPSHOTS].number == best)
		meta_copy(&k->now, &k->snapshot[best % SNAPSHOTS], k);
	else if (best && k->first.number == best)
		meta_copy(&k->now, &k->first, k);
	else
		k->mounted = false;
	if (!k->mounted)
		return false;
	meta_copy(&k->first, &k->now, k);
	/* The next record must not go where the good one is. */
	k->committed = k->committed + (k->committed % 2 != best % 2);
	return true;
}

void pp_sim_written(struct pp_sim_kernel *k, const struct extent *e)
{
	uint64_t end = (e->slot + 1) * k->layout->record_bytes;

	if (k->files)
		k->now.full[2 * pp_sim_slot_entry(k, e->lane, e->slot) + e->place - 1] = 1;
	else if (k->grows && end > k->now.bytes[e->lane])
		k->now.bytes[e->lane] = end;
}

uint64_t pp_sim_kernel_slots_taken(const struct pp_sim_kernel *k, uint32_t lane)
{
	uint64_t slot, taken = 0;

	if (!k->files)
		return (k->now.bytes[lane] + k->layout->record_bytes - 1) / k->layout->record_bytes;
	for (slot = 0; slot < k->layout->slots; slot++)
		if (k->now.name[pp_sim_slot_entry(k, lane, slot)])
			taken = slot + 1;
	return taken;
}

/* ---- what a reader sees ---------------------------------------------------------------------- */

static enum pp_sim_look look_files(const struct pp_sim_kernel *k, uint32_t lane, uint64_t slot,
	uint64_t *at)
{
	bool temporary = slot >= k->layout->slots;
	uint64_t entry = pp_sim_slot_entry(k, lane, temporary ? slot - k->layout->slots : slot);
	uint8_t place = temporary ? k->now.temporary[entry] : k->now.name[entry];

	if (!place)
		return PP_SIM_GONE;
	if (!k->now.full[2 * entry + place - 1])
		return PP_SIM_ABSENT;
	*at = PP_SIM_AREA_OFFSET + (2 * entry + place - 1) * k->layout->record_bytes;
	return PP_SIM_BYTES;
}

enum pp_sim_look pp_sim_kernel_look(const struct pp_sim_kernel *k, uint32_t lane, uint64_t slot,
	uint32_t cell, const uint8_t **bytes)
{
	static const uint8_t zeros[SECTOR];
	uint64_t at, end = (slot + 1) * k->layout->record_bytes;

	if (!k->mounted)
		return PP_SIM_GONE;
	if (k->files) {
		enum pp_sim_look look = look_files(k, lane, slot, &at);

		if (look != PP_SIM_BYTES)
			return look;
	} else {
		at = pp_sim_place_at(k, lane, slot, 0);
		if (k->grows && end > k->now.bytes[lane]) {
			*bytes = zeros;
			return k->layout->workload == PP_FALLOCATED ? PP_SIM_BYTES : PP_SIM_ABSENT;
		}
	}
	at += (uint64_t)cell * SECTOR;
	if (k->disk->bad[at / SECTOR])
		return PP_SIM_UNREAD;
	*bytes = k->disk->data + at;
	return PP_SIM_BYTES;
}

static int source_size(void *ctx, uint32_t file, uint64_t *bytes, int32_t *os_code)
{
	const struct pp_sim_kernel *k = ctx;
	uint64_t each = pp_layout_scan_slots(k->layout), at;
	enum pp_sim_look look = PP_SIM_BYTES;

	*os_code = 0;
	if (k->files) {
		look = look_files(k, (uint32_t)(file / each), file % each, &at);
		*bytes = look == PP_SIM_BYTES ? k->layout->record_bytes : 0;
	} else if (k->layout->workload == PP_APPEND) {
		*bytes = k->now.bytes[file];
	} else if (k->grows) {
		*bytes = k->layout->slots * k->layout->record_bytes;
	} else {
		*bytes = area_bytes(k->layout);
	}
	if (k->mounted && look != PP_SIM_GONE)
		return 0;
	*os_code = ENOENT;
	return -1;
}

/* A record file's bytes, or nothing. */
static int read_files(const struct pp_sim_kernel *k, uint32_t file, uint64_t offset, void *buf,
	size_t bytes)
{
	uint64_t each = pp_layout_scan_slots(k->layout), at;

	if (look_files(k, (uint32_t)(file / each), file % each, &at) != PP_SIM_BYTES)
		return -1;
	return pp_sim_drive_read(k->drive, k->now_ns, buf, bytes, at + offset);
}

static int source_read(void *ctx, uint32_t file, uint64_t offset, void *buf, size_t bytes,
	int32_t *os_code)
{
	struct pp_sim_kernel *k = ctx;
	uint64_t at = PP_SIM_AREA_OFFSET + offset, good;

	*os_code = EIO;
	if (k->files)
		return read_files(k, file, offset, buf, bytes);
	if (!k->grows)
		return pp_sim_drive_read(k->drive, k->now_ns, buf, bytes, at);
	/* Behind what was written an allocated file reads as zeros. */
	good = k->now.bytes[file] > offset ? k->now.bytes[file] - offset : 0;
	good = good < bytes ? good : bytes;
	memset((uint8_t *)buf + good, 0, bytes - good);
	at += file * k->layout->slots * k->layout->record_bytes;
	return good ? pp_sim_drive_read(k->drive, k->now_ns, buf, good, at) : 0;
}

void pp_sim_kernel_source(struct pp_sim_kernel *k, struct pp_scan_source *source)
{
	*source = (struct pp_scan_source){ .ctx = k, .size = source_size, .read = source_read,
		.align_bytes = SECTOR };
}
