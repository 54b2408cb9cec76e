/* SPDX-License-Identifier: MIT */
#include "lane_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/clock.h"
#include "writer.h"

static int check_size(const struct pp_lane_file *file, const struct pp_layout *layout, uint32_t lane,
	struct pp_error *err)
{
	off_t end = lseek(file->fd, 0, SEEK_END);
	uint64_t base;

	if (end < 0)
		return pp_fail_os(err, errno, "cannot find the size of '%s'", file->name);
	if (layout->workload == PP_APPEND) {
		base = pp_layout_offset(layout, lane, layout->base_slots[lane]);
		if ((uint64_t)end > base)
			return pp_fail(err, PP_ERR_EVIDENCE, "'%s' has %jd bytes, more than its base of %"
				PRIu64 ": scan it again", file->name, (intmax_t)end, base);
		return 0;
	}
	if ((uint64_t)end < pp_writer_target_bytes(layout))
		return pp_fail(err, PP_ERR_EVIDENCE, "'%s' has %jd bytes, but the run needs %" PRIu64
			": build the target first", file->name, (intmax_t)end,
			pp_writer_target_bytes(layout));
	return 0;
}

static int check_kind(const struct pp_lane_file *file, struct pp_error *err)
{
	struct stat st;

	if (fstat(file->fd, &st) != 0)
		return pp_fail_os(err, errno, "cannot stat '%s'", file->name);
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return pp_fail(err, PP_ERR_USAGE, "'%s' is neither a file nor a block device",
			file->name);
	return 0;
}

int pp_lane_file_open(struct pp_lane_file *file, const struct pp_layout *layout,
	const struct pp_method *method, const struct pp_target *target, const char *path,
	uint32_t lane, struct pp_error *err)
{
	file->fd = -1;
	/* A name that was cut short may well be another file's. */
	if (strlen(path) > PP_LANE_PATH_MAX)
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", path);
	pp_layout_file_name(layout, path, pp_layout_file_of(layout, lane), file->name,
		sizeof(file->name));
	/* O_NONBLOCK only keeps open(2) of a FIFO from hanging; files and disks ignore it. */
	file->fd = open(file->name,
		O_RDWR | O_CLOEXEC | O_NONBLOCK | pp_method_open_flags(method));
	if (file->fd < 0)
		return pp_fail_os(err, errno, "cannot open '%s' for '%s'", file->name, method->name);
	if ((target && pp_target_prove_fd(target, file->fd, err) != 0) ||
		check_kind(file, err) != 0 || check_size(file, layout, lane, err) != 0) {
		close(file->fd);
		file->fd = -1;
		return -1;
	}
	return 0;
}

int pp_lane_file_close(struct pp_lane_file *file, struct pp_error *err)
{
	int fd = file->fd;

	file->fd = -1;
	if (fd >= 0 && close(fd) != 0)
		return pp_fail_os(err, errno, "cannot close '%s'", file->name);
	return 0;
}

static int64_t file_write(void *ctx, const void *buf, uint32_t bytes, uint64_t offset,
	int64_t *os_code)
{
	const struct pp_lane_file *file = ctx;
	ssize_t n = pwrite(file->fd, buf, bytes, (off_t)offset);

	if (n < 0)
		*os_code = errno;
	return n;
}

static int file_sync(void *ctx, enum pp_sync_call call, int64_t *os_code)
{
	const struct pp_lane_file *file = ctx;
	int rc = -1;

	/* A call that the table has and this file has not must never pass for one that was made. */
	errno = ENOSYS;
	if (call == PP_SYNC_FDATASYNC)
		rc = fdatasync(file->fd);
	else if (call == PP_SYNC_FSYNC)
		rc = fsync(file->fd);
	if (rc != 0)
		*os_code = errno;
	return rc;
}

static int64_t file_now_ns(void *ctx)
{
	(void)ctx;
	return pp_clock_mono_ns();
}

void pp_lane_file_io(struct pp_lane_file *file, struct pp_lane_io *io)
{
	io->ctx = file;
	io->write = file_write;
	io->sync = file_sync;
	io->now_ns = file_now_ns;
}
