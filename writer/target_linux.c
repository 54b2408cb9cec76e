/* SPDX-License-Identifier: MIT */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/clock.h"
#include "writer.h"

static int check_size(const struct pp_target *target, const struct pp_layout *layout, uint32_t lane,
	struct pp_error *err)
{
	off_t end = lseek(target->fd, 0, SEEK_END);
	uint64_t base;

	if (end < 0)
		return pp_fail_os(err, errno, "cannot find the size of '%s'", target->name);
	if (layout->workload == PP_APPEND) {
		base = pp_layout_offset(layout, lane, layout->base_slots[lane]);
		if ((uint64_t)end > base)
			return pp_fail(err, PP_ERR_EVIDENCE, "'%s' has %jd bytes, more than its base of %"
				PRIu64 ": scan it again", target->name, (intmax_t)end, base);
		return 0;
	}
	if ((uint64_t)end < pp_writer_target_bytes(layout))
		return pp_fail(err, PP_ERR_EVIDENCE, "'%s' has %jd bytes, but the run needs %" PRIu64
			": build the target first", target->name, (intmax_t)end,
			pp_writer_target_bytes(layout));
	return 0;
}

static int check_kind(const struct pp_target *target, struct pp_error *err)
{
	struct stat st;

	if (fstat(target->fd, &st) != 0)
		return pp_fail_os(err, errno, "cannot stat '%s'", target->name);
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return pp_fail(err, PP_ERR_USAGE, "'%s' is neither a file nor a block device",
			target->name);
	return 0;
}

int pp_target_open(struct pp_target *target, const struct pp_layout *layout,
	const struct pp_method *method, const char *path, uint32_t lane, struct pp_error *err)
{
	target->fd = -1;
	/* A name that was cut short may well be another file's. */
	if (strlen(path) > PP_TARGET_PATH_MAX)
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", path);
	pp_layout_file_name(layout, path, pp_layout_file_of(layout, lane), target->name,
		sizeof(target->name));
	/* O_NONBLOCK only keeps open(2) of a FIFO from hanging; files and disks ignore it. */
	target->fd = open(target->name,
		O_RDWR | O_CLOEXEC | O_NONBLOCK | pp_method_open_flags(method));
	if (target->fd < 0)
		return pp_fail_os(err, errno, "cannot open '%s' for '%s'", target->name, method->name);
	if (check_kind(target, err) != 0 || check_size(target, layout, lane, err) != 0) {
		close(target->fd);
		target->fd = -1;
		return -1;
	}
	return 0;
}

int pp_target_close(struct pp_target *target, struct pp_error *err)
{
	int fd = target->fd;

	target->fd = -1;
	if (fd >= 0 && close(fd) != 0)
		return pp_fail_os(err, errno, "cannot close '%s'", target->name);
	return 0;
}

static int64_t target_write(void *ctx, const void *buf, uint32_t bytes, uint64_t offset,
	int64_t *os_code)
{
	const struct pp_target *target = ctx;
	ssize_t n = pwrite(target->fd, buf, bytes, (off_t)offset);

	if (n < 0)
		*os_code = errno;
	return n;
}

static int target_sync(void *ctx, enum pp_sync_call call, int64_t *os_code)
{
	const struct pp_target *target = ctx;
	int rc = call == PP_SYNC_FDATASYNC ? fdatasync(target->fd) : fsync(target->fd);

	if (rc != 0)
		*os_code = errno;
	return rc;
}

static int64_t target_now_ns(void *ctx)
{
	(void)ctx;
	return pp_clock_mono_ns();
}

void pp_target_io(struct pp_target *target, struct pp_lane_io *io)
{
	io->ctx = target;
	io->write = target_write;
	io->sync = target_sync;
	io->now_ns = target_now_ns;
}
