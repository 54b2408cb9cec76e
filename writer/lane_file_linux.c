/* SPDX-License-Identifier: MIT */
#include "lane_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/clock.h"
#include "writer.h"

#define OTHER_FILES 128 /* that the process has open beside those of records */

static int check_size(const struct pp_lane_file *file, const struct pp_layout *layout, uint32_t lane,
	struct pp_error *err)
{
	off_t end;
	uint64_t base;

	if (pp_workload_record_files(layout->workload))
		return 0;
	end = lseek(file->fd, 0, SEEK_END);
	if (end < 0)
		return pp_fail_os(err, errno, "cannot find the size of '%s'", file->name);
	if (layout->workload == PP_APPEND) {
		base = pp_layout_offset(layout, lane, layout->base_slots[lane]);
		if ((uint64_t)end > base)
			return pp_fail(err, PP_ERR_EVIDENCE, "'%s' has %jd bytes, more than its base of %"
				PRIu64 ": scan it again", file->name, (intmax_t)end, base);
		return 0;
	}
	base = pp_workload_own_files(layout->workload)
		? pp_layout_offset(layout, lane, layout->slots) : pp_writer_target_bytes(layout);
	if ((uint64_t)end < base)
		return pp_fail(err, PP_ERR_EVIDENCE, "'%s' has %jd bytes, but the run needs %" PRIu64
			": build the target first", file->name, (intmax_t)end, base);
	return 0;
}

static int check_kind(const struct pp_lane_file *file, struct pp_error *err)
{
	struct stat st;

	if (fstat(file->fd, &st) != 0)
		return pp_fail_os(err, errno, "cannot stat '%s'", file->name);
	if (pp_workload_record_files(file->layout->workload))
		return S_ISDIR(st.st_mode) ? 0
			: pp_fail(err, PP_ERR_USAGE, "'%s' is no folder", file->name);
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return pp_fail(err, PP_ERR_USAGE, "'%s' is neither a file nor a block device",
			file->name);
	return 0;
}

/* A group of every lane may be open at once. */
static int allow_open_files(const struct pp_layout *layout, struct pp_error *err)
{
	rlim_t need = (rlim_t)layout->lanes * layout->group + OTHER_FILES;
	struct rlimit limit;

	if (!pp_workload_record_files(layout->workload))
		return 0;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return pp_fail_os(err, errno, "cannot find the limit of open files");
	if (limit.rlim_cur >= need)
		return 0;
	limit.rlim_cur = need;
	if (limit.rlim_max < need)
		limit.rlim_max = need;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		return pp_fail_os(err, errno, "%u lanes with groups of %u need %ju open files at once",
			layout->lanes, layout->group, (uintmax_t)need);
	return 0;
}

/* A folder opens whatever the file system can do: what it lacks must show before the run, not as a
 * failed write within it. A file without a name (O_TMPFILE, open(2)) leaves nothing behind. */
static int try_method(struct pp_lane_file *file, struct pp_error *err)
{
	bool folder = pp_workload_record_files(file->layout->workload);
	int fd = file->fd, rc;

	if (folder)
		fd = openat(file->fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC |
			pp_method_open_flags(file->method), 0600);
	if (fd < 0 && errno == EINVAL && file->method->direct)
		return pp_fail_os(err, errno, "cannot open files in '%s' for '%s'", file->name,
			file->method->name);
	rc = pp_method_io_init(&file->io, file->method, fd, err);
	if (rc != 0)
		pp_fail_within(err, "'%s' cannot be had in '%s'", file->method->name, file->name);
	if (folder && fd >= 0)
		close(fd);
	return rc;
}

int pp_lane_file_open(struct pp_lane_file *file, const struct pp_layout *layout,
	const struct pp_method *method, const struct pp_target *target, const char *path,
	uint32_t lane, struct pp_error *err)
{
	bool folder = pp_workload_record_files(layout->workload);

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
	if (allow_open_files(layout, err) != 0)
		return -1;
	/* O_NONBLOCK only keeps open(2) of a FIFO from hanging; files and disks ignore it. */
	file->fd = open(file->name, folder ? O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW
		: O_RDWR | O_CLOEXEC | O_NONBLOCK | pp_method_open_flags(method));
	if (file->fd < 0)
		return pp_fail_os(err, errno, "cannot open '%s' for '%s'", file->name, method->name);
	if ((target && pp_target_prove_fd(target, file->fd, err) != 0) ||
		check_kind(file, err) != 0 || check_size(file, layout, lane, err) != 0 ||
		try_method(file, err) != 0) {
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
	fd = openat(file->fd, name, O_RDWR | O_CREAT | (temporary ? O_TRUNC : O_EXCL) | O_NOFOLLOW |
		O_CLOEXEC | pp_method_open_flags(file->method), 0600);
	if (fd < 0) {
		*os_code = errno;
		return -1;
	}
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
	char from[32], to[32];

	name_of(file, slot, true, from, sizeof(from));
	name_of(file, slot, false, to, sizeof(to));
	if (renameat(file->fd, from, file->fd, to) == 0)
		return 0;
	*os_code = errno;
	return -1;
}

static int folder_sync(void *ctx, int64_t *os_code)
{
	const struct pp_lane_file *file = ctx;

	if (fsync(file->fd) == 0)
		return 0;
	*os_code = errno;
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
