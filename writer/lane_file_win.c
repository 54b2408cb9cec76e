/* SPDX-License-Identifier: MIT
 *
 * As lane_file_linux.c, by handles. What differs: a folder's entries are made durable by
 * FlushFileBuffers of the folder, opened so that it may be written; where that is refused, workloads
 * that need it are n/a. A rename is MoveFileEx over the older file, and the folder is flushed after it.
 */
#include "lane_file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/clock.h"
#include "src/core/descriptor.h"
#include "src/core/file.h"
#include "src/core/handle_win.h"
#include "writer.h"

#define PROBE_NAME "plugpull-probe.tmp"

static int check_size(const struct pp_lane_file *file, const struct pp_layout *layout, uint32_t lane,
	uint64_t end, struct pp_error *err)
{
	uint64_t base;

	if (layout->workload == PP_APPEND) {
		base = pp_layout_offset(layout, lane, layout->base_slots[lane]);
		if (end > base)
			return pp_fail(err, PP_ERR_EVIDENCE, "'%s' has %" PRIu64 " bytes, more than its base "
				"of %" PRIu64 ": scan it again", file->name, end, base);
		return 0;
	}
	base = pp_workload_own_files(layout->workload)
		? pp_layout_offset(layout, lane, layout->slots) : pp_writer_target_bytes(layout);
	if (end < base)
		return pp_fail(err, PP_ERR_EVIDENCE, "'%s' has %" PRIu64 " bytes, but the run needs %"
			PRIu64 ": build the target first", file->name, end, base);
	return 0;
}

/* A file, or a disk; or a folder that can be flushed. */
static int check_kind(const struct pp_lane_file *file, uint32_t lane, struct pp_error *err)
{
	struct pp_fd_facts facts;

	if (pp_workload_record_files(file->layout->workload)) {
		if (pp_fd_facts(file->fd, &facts, err) != 0)
			return -1;
		if (!facts.is_folder)
			return pp_fail(err, PP_ERR_USAGE, "'%s' is no folder", file->name);
		if (pp_workload_syncs_folder(file->layout->workload) && !FlushFileBuffers(pp_handle_of(file->fd))) {
			pp_fail_win(err, GetLastError(), "a folder cannot be flushed here: workload %s is n/a",
				pp_workload_name(file->layout->workload));
			if (err)
				err->class = PP_ERR_UNSUPPORTED;
			return -1;
		}
		return 0;
	}
	if (pp_fd_facts(file->fd, &facts, err) != 0)
		return -1;
	return facts.is_folder ? pp_fail(err, PP_ERR_USAGE, "'%s' is neither a file nor a disk",
		file->name) : check_size(file, file->layout, lane, facts.size_bytes, err);
}

static int64_t open_in_folder(const struct pp_lane_file *file, const char *name, DWORD disposition,
	DWORD more, int *fd)
{
	char path[sizeof(file->name) + 64];
	struct pp_error why = { 0 };
	wchar_t *wide;
	HANDLE handle;
	DWORD code;

	*fd = -1;
	snprintf(path, sizeof(path), "%s/%s", file->name, name);
	wide = pp_wide_path(path, &why);
	if (!wide)
		return EINVAL;
	handle = CreateFileW(wide, GENERIC_READ | GENERIC_WRITE | (more & FILE_FLAG_DELETE_ON_CLOSE
		? DELETE : 0), FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, disposition,
		FILE_ATTRIBUTE_NORMAL | FILE_FLAG_OPEN_REPARSE_POINT | more |
		pp_win_attributes(pp_method_open_flags(file->method)), NULL);
	code = GetLastError();
	free(wide);
	if (handle == INVALID_HANDLE_VALUE)
		return pp_win_code(code);
	*fd = pp_fd_of_handle(handle, O_RDWR, &why);
	return *fd >= 0 ? 0 : why.os_code ? why.os_code : EMFILE;
}

/* What the file system lacks must show before the run: a file that goes with its handle is asked. */
static int try_method(struct pp_lane_file *file, struct pp_error *err)
{
	bool folder = pp_workload_record_files(file->layout->workload);
	int fd = file->fd, rc;
	int64_t code = 0;

	if (folder)
		code = open_in_folder(file, PROBE_NAME, CREATE_ALWAYS, FILE_FLAG_DELETE_ON_CLOSE, &fd);
	if (code)
		return pp_fail_os(err, code, "cannot make files in '%s' for '%s'", file->name,
			file->method->name);
	rc = pp_method_io_init(&file->io, file->method, fd, err);
	if (rc != 0)
		pp_fail_within(err, "'%s' cannot be had in '%s'", file->method->name, file->name);
	if (folder)
		close(fd);
	return rc;
}

int pp_lane_file_open(struct pp_lane_file *file, const struct pp_layout *layout,
	const struct pp_method *method, const struct pp_target *target, const char *path,
	uint32_t lane, struct pp_error *err)
{
	bool folder = pp_workload_record_files(layout->workload);
	int flags = O_RDWR | (folder ? O_DIRECTORY : pp_method_open_flags(method));

	memset(file, 0, sizeof(*file));
	file->fd = -1;
	file->layout = layout;
	file->method = method;
	file->lane = lane;
	if (strlen(path) > PP_LANE_PATH_MAX)
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", path);
	pp_layout_file_name(layout, path, pp_layout_file_of(layout, lane), file->name,
		sizeof(file->name));
	/* A disk has no attributes to tell a link by. */
	if (pp_open_win(file->name, flags | (pp_path_is_device(path) ? 0 : O_NOFOLLOW), &file->fd,
		err) != 0)
		return pp_fail_within(err, "'%s'", method->name);
	if ((target && pp_target_prove_fd(target, file->fd, err) != 0) ||
		check_kind(file, lane, err) != 0 || try_method(file, err) != 0) {
		close(file->fd);
		file->fd = -1;
		return -1;
	}
	return 0;
}

int pp_lane_file_close(struct pp_lane_file *file, struct pp_error *err)
{
	int fd = file->fd;

	/* Never synced, never acked: what their close says matters to nobody. */
	while (file->records) {
		file->records--;
		pp_method_io_release(&file->record[file->records].io);
		close(file->record[file->records].io.fd);
	}
	pp_method_io_release(&file->io);
	file->fd = -1;
	if (fd >= 0 && close(fd) != 0)
		return pp_fail_os(err, errno, "cannot close '%s'", file->name);
	return 0;
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
	int64_t n;
	int fd;

	name_of(file, slot, temporary, name, sizeof(name));
	/* A new name must be new; a temporary file may have been left by an earlier cut. */
	*os_code = open_in_folder(file, name, temporary ? CREATE_ALWAYS : CREATE_NEW, 0, &fd);
	if (*os_code)
		return -1;
	pp_method_io_like(&io, &file->io, fd);
	n = pp_method_io_write(&io, buf, bytes, 0, os_code);
	if (n == (int64_t)bytes && !pp_method_sync_in_write(file->method)) {
		file->record[file->records].io = io;
		file->record[file->records++].slot = slot;
		return n;
	}
	pp_method_io_release(&io);
	if (close(fd) != 0 && n >= 0) {
		*os_code = errno;
		return -1;
	}
	return n;
}

static int record_sync(void *ctx, enum pp_sync_call call, uint64_t offset, int64_t *os_code)
{
	struct pp_lane_file *file = ctx;
	uint64_t slot = offset / file->layout->record_bytes;
	struct pp_method_io one;
	uint32_t i;
	int rc;

	assert(call == file->method->sync);
	for (i = 0; i < file->records && file->record[i].slot != slot; i++)
		;
	if (i == file->records) {
		*os_code = EBADF;
		return -1;
	}
	one = file->record[i].io;
	file->record[i] = file->record[--file->records];
	rc = pp_method_io_sync(&one, os_code);
	pp_method_io_release(&one);
	if (close(one.fd) != 0 && rc == 0) {
		*os_code = errno;
		rc = -1;
	}
	return rc;
}

static int record_rename(void *ctx, uint64_t offset, int64_t *os_code)
{
	const struct pp_lane_file *file = ctx;
	uint64_t slot = offset / file->layout->record_bytes;
	char from[sizeof(file->name) + 64], to[sizeof(file->name) + 64], name[32];
	wchar_t *wide_from, *wide_to;
	int rc = -1;

	name_of(file, slot, true, name, sizeof(name));
	snprintf(from, sizeof(from), "%s/%s", file->name, name);
	name_of(file, slot, false, name, sizeof(name));
	snprintf(to, sizeof(to), "%s/%s", file->name, name);
	wide_from = pp_wide_path(from, NULL);
	wide_to = pp_wide_path(to, NULL);
	*os_code = ENOMEM;
	if (wide_from && wide_to) {
		rc = MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING) ? 0 : -1;
		*os_code = rc == 0 ? 0 : pp_win_code(GetLastError());
	}
	free(wide_from);
	free(wide_to);
	return rc;
}

static int folder_sync(void *ctx, int64_t *os_code)
{
	const struct pp_lane_file *file = ctx;

	if (FlushFileBuffers(pp_handle_of(file->fd)))
		return 0;
	*os_code = pp_win_code(GetLastError());
	return -1;
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
