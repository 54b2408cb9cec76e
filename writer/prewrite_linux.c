/* SPDX-License-Identifier: MIT
 *
 * The base of a target. Every slot is written for real: a block that was only allocated is a
 * metadata change at its first write, and the drive would be tested on another path than the arm's
 * name says (fallocate(2); ext4 and xfs keep such extents `unwritten`).
 */
#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/core/file.h"
#include "lane_file.h"
#include "prewrite.h"

#define CHUNK_BYTES PP_RECORD_BYTES_MAX

struct prewriting {
	const struct pp_layout *layout;
	const struct pp_run_id *run_id;
	const struct pp_target *target;
	uint32_t flags;
	uint8_t *chunk;
	uint32_t chunk_slots;
	int fd;
	const char *name;
};

/* One that is not there yet is a file that holds nothing. */
static int look_at(const char *name, bool *raw, uint64_t *held_bytes, struct pp_error *err)
{
	struct stat st;

	*raw = false;
	*held_bytes = 0;
	if (lstat(name, &st) != 0) {
		if (errno == ENOENT)
			return 0;
		return pp_fail_os(err, errno, "cannot stat '%s'", name);
	}
	if (S_ISLNK(st.st_mode) && stat(name, &st) != 0)
		return pp_fail_os(err, errno, "cannot stat '%s'", name);
	*raw = S_ISBLK(st.st_mode);
	if (!*raw && !S_ISREG(st.st_mode))
		return pp_fail(err, PP_ERR_USAGE, "'%s' is neither a file nor a block device", name);
	*held_bytes = (uint64_t)st.st_blocks * 512;
	return 0;
}

static int check_device_size(const char *name, uint64_t need_bytes, struct pp_error *err)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	off_t end;

	if (fd < 0)
		return pp_fail_os(err, errno, "cannot open '%s'", name);
	end = lseek(fd, 0, SEEK_END);
	close(fd);
	if (end < 0 || (uint64_t)end < need_bytes)
		return pp_fail(err, PP_ERR_USAGE, "'%s' has %jd bytes, but the run needs %" PRIu64, name,
			(intmax_t)end, need_bytes);
	return 0;
}

/* Where files grow too: the room that the run will grow into must be there before it starts. */
static int check_space(const char *path, uint64_t need_bytes, uint64_t held_bytes,
	struct pp_error *err)
{
	char copy[4096];
	const char *folder;
	struct statvfs fs;
	uint64_t free_bytes;

	snprintf(copy, sizeof(copy), "%s", path);
	folder = dirname(copy);
	if (statvfs(folder, &fs) != 0)
		return pp_fail_os(err, errno, "cannot find the free space of '%s'", folder);
	free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize + held_bytes;
	if (free_bytes < need_bytes)
		return pp_fail(err, PP_ERR_USAGE, "'%s' has %" PRIu64 " MB free, but the target needs %"
			PRIu64 " MB: make room or write less", folder, free_bytes >> 20,
			(need_bytes >> 20) + 1);
	return 0;
}

static int write_base(const struct prewriting *p, uint32_t lane, uint64_t slot, uint32_t slots,
	struct pp_error *err)
{
	uint32_t record_bytes = p->layout->record_bytes, i;
	uint64_t at = pp_layout_offset(p->layout, lane, slot);
	size_t bytes = (size_t)slots * record_bytes;
	ssize_t n;

	for (i = 0; i < slots; i++)
		pp_prewrite_fill(p->layout, p->run_id, p->flags, lane, slot + i,
			p->chunk + (size_t)i * record_bytes);
	n = pwrite(p->fd, p->chunk, bytes, (off_t)at);
	if (n < 0)
		return pp_fail_os(err, errno, "cannot write '%s'", p->name);
	if ((size_t)n != bytes)
		return pp_fail(err, PP_ERR_SYSTEM, "short write to '%s': %zd of %zu bytes", p->name, n,
			bytes);
	return 0;
}

static int write_lane(const struct prewriting *p, uint32_t lane, uint64_t slots,
	struct pp_error *err)
{
	uint64_t slot = 0;

	while (slot < slots) {
		uint64_t left = slots - slot;
		uint32_t now = left < p->chunk_slots ? (uint32_t)left : p->chunk_slots;

		if (write_base(p, lane, slot, now, err) != 0)
			return -1;
		slot += now;
	}
	return 0;
}

/* Not posix_fallocate(3), which writes where the file system cannot allocate: that would be another
 * workload. */
static int allocate(const struct prewriting *p, struct pp_error *err)
{
	uint64_t bytes = p->layout->slots * p->layout->record_bytes;

	if (fallocate(p->fd, 0, 0, (off_t)bytes) == 0)
		return 0;
	if (errno == EOPNOTSUPP)
		return pp_fail_os(err, errno, "this file system cannot allocate blocks for '%s': workload "
			"fallocated is n/a here", p->name);
	return pp_fail_os(err, errno, "cannot allocate %" PRIu64 " bytes for '%s'", bytes, p->name);
}

static int write_file(struct prewriting *p, uint32_t file, bool raw, struct pp_error *err)
{
	bool grows = pp_workload_grows(p->layout->workload);
	uint32_t lane;
	int rc = 0;

	if (grows && ftruncate(p->fd, 0) != 0)
		return pp_fail_os(err, errno, "cannot empty '%s'", p->name);
	if (p->layout->workload == PP_FALLOCATED && allocate(p, err) != 0)
		return -1;
	for (lane = 0; rc == 0 && lane < p->layout->lanes; lane++)
		if (pp_layout_file_of(p->layout, lane) == file)
			rc = write_lane(p, lane, grows ? 1 : p->layout->slots, err);
	if (rc == 0 && !raw && !grows &&
		ftruncate(p->fd, (off_t)pp_writer_target_bytes(p->layout)) != 0)
		rc = pp_fail_os(err, errno, "cannot set the size of '%s'", p->name);
	if (rc == 0 && fsync(p->fd) != 0)
		rc = pp_fail_os(err, errno, "cannot sync '%s'", p->name);
	return rc;
}

static int open_and_write(struct prewriting *p, uint32_t file, bool raw, bool direct,
	struct pp_error *err)
{
	int flags = O_RDWR | O_CLOEXEC | (direct ? O_DIRECT : 0), rc;

	if (!raw)
		flags |= O_CREAT;
	p->fd = open(p->name, flags, 0600);
	if (p->fd < 0)
		return pp_fail_os(err, errno, "cannot open '%s'", p->name);
	rc = p->target ? pp_target_prove_fd(p->target, p->fd, err) : 0;
	if (rc == 0)
		rc = write_file(p, file, raw, err);
	if (close(p->fd) != 0 && rc == 0)
		rc = pp_fail_os(err, errno, "cannot close '%s'", p->name);
	if (rc == 0 && !raw)
		rc = pp_file_sync_parent(p->name, err);
	return rc;
}

/* Everything that can be known to be wrong before the first byte is written. */
static int look_at_all(const struct pp_layout *layout, const char *path, bool *raw,
	struct pp_error *err)
{
	uint64_t need_bytes = pp_writer_target_bytes(layout), held_bytes = 0, held;
	uint32_t file;
	char name[4096];

	*raw = false;
	if (strlen(path) > PP_LANE_PATH_MAX)
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", path);
	if (pp_workload_own_files(layout->workload) && look_at(path, raw, &held, NULL) == 0 && *raw)
		return pp_fail(err, PP_ERR_USAGE, "'%s' is a device: workload %s needs files", path,
			pp_workload_name(layout->workload));
	for (file = 0; file < pp_layout_files(layout); file++) {
		pp_layout_file_name(layout, path, file, name, sizeof(name));
		if (pp_workload_record_files(layout->workload)
			? pp_prewrite_folder_held(name, &held, err) != 0
			: look_at(name, raw, &held, err) != 0)
			return -1;
		held_bytes += held;
	}
	if (*raw)
		return check_device_size(path, need_bytes, err);
	return check_space(path, need_bytes, held_bytes, err);
}

int pp_writer_prewrite(struct pp_layout *layout, const char *path, const struct pp_run_id *run_id,
	bool compressible, bool direct, const struct pp_target *target, struct pp_error *err)
{
	struct prewriting p = { .layout = layout, .run_id = run_id, .target = target,
		.flags = compressible ? PP_RECORD_COMPRESSIBLE : 0 };
	char name[4096];
	bool raw;
	uint32_t file;
	int rc = 0;

	if (look_at_all(layout, path, &raw, err) != 0)
		return -1;
	p.chunk_slots = CHUNK_BYTES / layout->record_bytes;
	p.chunk = aligned_alloc(PP_LANE_ALIGN_BYTES, CHUNK_BYTES);
	if (!p.chunk)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	p.name = name;
	for (file = 0; rc == 0 && file < pp_layout_files(layout); file++) {
		pp_layout_file_name(layout, path, file, name, sizeof(name));
		rc = pp_workload_record_files(layout->workload)
			? pp_prewrite_folder(layout, run_id, p.flags, target, name, file,
				pp_workload_grows(layout->workload) ? 1 : layout->slots, p.chunk, err)
			: open_and_write(&p, file, raw, direct, err);
	}
	free(p.chunk);
	if (rc == 0 && pp_workload_grows(layout->workload))
		for (file = 0; file < layout->lanes; file++)
			layout->base_slots[file] = 1;
	return rc;
}
