/* SPDX-License-Identifier: MIT
 *
 * What a whole disk has counted: reads, writes and flushes, as the kernel's block layer saw them
 * (Linux: Documentation/block/stat.rst, fields 1, 3, 5, 7, 16; the flush fields exist since 5.5).
 * Flushes are counted per whole disk only, never per partition, and a FUA write is not one.
 */
#ifndef PP_CORE_DISK_COUNTERS_H
#define PP_CORE_DISK_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "error.h"

struct pp_disk_counters {
	uint64_t reads, sectors_read, writes, sectors_written; /* sectors of 512 bytes */
	uint64_t flushes;
	bool has_flushes;
};

/* An open source of counters: one pread(2) a reading, so cheap enough for every heartbeat. */
struct pp_disk_source {
	int fd;           /* -1: none */
	char name[64];    /* "nvme0n1" */
};

/*
 * Finds the whole disk beneath a file, folder or block device (through partitions and single-disk
 * device-mapper and md stacks) and opens its counters. PP_ERR_UNSUPPORTED where there is no one
 * disk (tmpfs, network, several members); source->fd is -1 then.
 */
int pp_disk_source_open(const char *path, struct pp_disk_source *source, struct pp_error *err);
/* By the disk's name in /sys/block. */
int pp_disk_source_open_name(const char *name, struct pp_disk_source *source, struct pp_error *err);
int pp_disk_source_read(const struct pp_disk_source *source, struct pp_disk_counters *counters,
	struct pp_error *err);
void pp_disk_source_close(struct pp_disk_source *source);

/* The line of a `stat` file; false if it is none. Separate for recorded trees. */
bool pp_disk_counters_parse(const char *line, struct pp_disk_counters *counters);

#endif
