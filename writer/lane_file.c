/* SPDX-License-Identifier: MIT */
#include "lane_file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "disk.h"
#include "lane_file_parts.h"
#include "src/core/clock.h"
#include "writer.h"

static int check_size(const struct pp_lane_file *file, uint64_t end, struct pp_error *err)
{
	const struct pp_layout *layout = file->layout;
	uint64_t base;

	if (pp_workload_record_files(layout->workload))
		return 0;
	if (layout->workload == PP_APPEND) {
		base = pp_layout_offset(layout, file->lane, layout->base_slots[file->lane]);
		if (end > base)
			return pp_fail(err, PP_ERR_EVIDENCE, "'%s' has %" PRIu64 " bytes, more than its base "
				"of %" PRIu64 ": scan it again", file->name, end, base);
		return 0;
	}
	base = pp_workload_own_files(layout->workload)
		? pp_layout_offset(layout, file->lane, layout->slots) : pp_writer_target_bytes(layout);
	if (end < base)
		return pp_fail(err, PP_ERR_EVIDENCE, "'%s' has %" PRIu64 " bytes, but the run needs %"
			PRIu64 ": build the target first", file->name, end, base);
	return 0;
}

int pp_lane_file_open(struct pp_lane_file *file, const struct pp_layout *layout,
	const struct pp_method *method, const struct pp_target *target, const char *path,
	uint32_t lane, struct pp_error *err)
{
	uint64_t end = 0;

	memset(file, 0, sizeof(*file));
	file->fd = -1;
	file->layout = layout;
	file->method = method;
	file->lane = lane;
	/* A name that was cut short may well be another file's. */
	if (strlen(path) > PP_LANE_PATH_MAX)
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", path);
	pp_layout_file_name(layout, path, pp_layout_file_of(layout, lane), file->name,
		sizeof(file->name));
	if (lane_file_reach(file, err) != 0)
		return -1;
	if ((target && pp_target_prove_fd(target, file->fd, err) != 0) ||
		lane_file_look(file, &end, err) != 0 || check_size(file, end, err) != 0 ||
		lane_file_try(file, err) != 0) {
		disk_close(file->fd);
		file->fd = -1;
		return -1;
	}
	return 0;
}

int pp_lane_file_close(struct pp_lane_file *file, struct pp_error *err)
{
	int fd = file->fd;
	int64_t code;

	/* Never synced, never acked: what their close says matters to nobody. */
	while (file->records) {
		file->records--;
		pp_method_io_release(&file->record[file->records].io);
		disk_close(file->record[file->records].io.fd);
	}
	pp_method_io_release(&file->io);
	file->fd = -1;
	code = fd >= 0 ? disk_close(fd) : 0;
	return code ? pp_fail_os(err, code, "cannot close '%s'", file->name) : 0;
}

static int64_t file_write(void *ctx, const void *buf, uint32_t bytes, uint64_t offset,
	int64_t *os_code)
{
	struct pp_lane_file *file = ctx;

	return pp_method_io_write(&file->io, buf, bytes, offset, os_code);
}

static int file_sync(void *ctx, enum pp_sync_call call, int64_t *os_code)
{
	struct pp_lane_file *file = ctx;

	assert(call == file->method->sync);
	return pp_method_io_sync(&file->io, os_code);
}

/* ---- a file for each slot ---------------------------------------------------------------------- */

/* 0, or -1 with the system's code. */
static int done(int64_t code, int64_t *os_code)
{
	if (code)
		*os_code = code;
	return code ? -1 : 0;
}

static void name_of(const struct pp_lane_file *file, uint64_t slot, bool temporary, char *name,
	int bytes)
{
	const struct pp_layout *l = file->layout;

	pp_layout_record_name(l, pp_layout_file_at(l, file->lane, temporary ? slot + l->slots : slot),
		name, bytes);
}

static int64_t record_write(void *ctx, const void *buf, uint32_t bytes, uint64_t offset,
	int64_t *os_code)
{
	struct pp_lane_file *file = ctx;
	bool temporary = pp_workload_renames(file->layout->workload);
	uint64_t slot = offset / file->layout->record_bytes;
	struct pp_method_io io;
	char name[32];
	int64_t n, code;
	int fd;

	name_of(file, slot, temporary, name, sizeof(name));
	/* A new name must be new; a temporary file may have been left by an earlier cut. */
	code = disk_open_in(file->fd, file->name, name, O_RDWR | O_CREAT | (temporary ? O_TRUNC : O_EXCL) |
		O_NOFOLLOW | pp_method_open_flags(file->method), &fd);
	if (code)
		return done(code, os_code);
	pp_method_io_like(&io, &file->io, fd);
	n = pp_method_io_write(&io, buf, bytes, 0, os_code);
	if (n == (int64_t)bytes && !pp_method_sync_in_write(file->method)) {
		file->record[file->records].io = io;
		file->record[file->records++].slot = slot;
		return n;
	}
	pp_method_io_release(&io);
	code = disk_close(fd);
	return code && n >= 0 ? done(code, os_code) : n;
}

static int record_sync(void *ctx, enum pp_sync_call call, uint64_t offset, int64_t *os_code)
{
	struct pp_lane_file *file = ctx;
	uint64_t slot = offset / file->layout->record_bytes;
	struct pp_method_io one;
	int64_t code;
	uint32_t i;
	int rc;

	assert(call == file->method->sync);
	for (i = 0; i < file->records && file->record[i].slot != slot; i++)
		;
	if (i == file->records)
		return done(EBADF, os_code);
	one = file->record[i].io;
	file->record[i] = file->record[--file->records];
	rc = pp_method_io_sync(&one, os_code);
	pp_method_io_release(&one);
	code = disk_close(one.fd);
	return code && rc == 0 ? done(code, os_code) : rc;
}

static int record_rename(void *ctx, uint64_t offset, int64_t *os_code)
{
	const struct pp_lane_file *file = ctx;
	uint64_t slot = offset / file->layout->record_bytes;
	char from[32], to[32];

	name_of(file, slot, true, from, sizeof(from));
	name_of(file, slot, false, to, sizeof(to));
	return done(disk_rename_in(file->fd, file->name, from, to), os_code);
}

static int folder_sync(void *ctx, int64_t *os_code)
{
	const struct pp_lane_file *file = ctx;

	return done(disk_sync_folder(file->fd), os_code);
}

static int64_t file_now_ns(void *ctx)
{
	(void)ctx;
	return pp_clock_mono_ns();
}

void pp_lane_file_io(struct pp_lane_file *file, struct pp_lane_io *io)
{
	*io = (struct pp_lane_io){ .ctx = file, .write = file_write, .sync = file_sync,
		.now_ns = file_now_ns };
	if (!pp_workload_record_files(file->layout->workload))
		return;
	io->write = record_write;
	io->sync_record = record_sync;
	io->rename_record = record_rename;
	io->sync_folder = folder_sync;
}
