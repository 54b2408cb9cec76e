/* SPDX-License-Identifier: MIT */
#include "sim_disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR PP_DRIVE_SECTOR_BYTES

static int read_disk(void *ctx, void *data, size_t bytes, uint64_t offset)
{
	const struct pp_sim_disk *disk = ctx;

	if (disk->bad_count && memchr(disk->bad + offset / SECTOR, 1, bytes / SECTOR)) {
		errno = EIO;
		return -1;
	}
	memcpy(data, disk->data + offset, bytes);
	return 0;
}

static int write_disk(void *ctx, const void *data, size_t bytes, uint64_t offset)
{
	struct pp_sim_disk *disk = ctx;
	uint64_t sector;

	memcpy(disk->data + offset, data, bytes);
	for (sector = offset / SECTOR; disk->bad_count && sector * SECTOR < offset + bytes; sector++) {
		disk->bad_count -= disk->bad[sector];
		disk->bad[sector] = 0;
	}
	return 0;
}

static void spoil_disk(void *ctx, uint64_t offset)
{
	struct pp_sim_disk *disk = ctx;

	disk->bad_count += !disk->bad[offset / SECTOR];
	disk->bad[offset / SECTOR] = 1;
}

int pp_sim_disk_init(struct pp_sim_disk *disk, uint64_t bytes, struct pp_error *err)
{
	*disk = (struct pp_sim_disk){ .bytes = bytes };
	disk->data = calloc(1, bytes);
	disk->bad = calloc(1, bytes / SECTOR);
	if (disk->data && disk->bad)
		return 0;
	pp_sim_disk_release(disk);
	return pp_fail_os(err, ENOMEM, "cannot make a disk of %llu bytes", (unsigned long long)bytes);
}

void pp_sim_disk_release(struct pp_sim_disk *disk)
{
	free(disk->data);
	free(disk->bad);
	*disk = (struct pp_sim_disk){ 0 };
}

void pp_sim_disk_medium(struct pp_sim_disk *disk, struct pp_sim_drive_medium *medium)
{
	*medium = (struct pp_sim_drive_medium){ .ctx = disk, .read = read_disk, .write = write_disk,
		.spoil = spoil_disk };
}
