/* SPDX-License-Identifier: MIT */
#include "lane_file_parts.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk.h"

#define OTHER_FILES 128 /* that the process has open beside those of records */

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

int lane_file_reach(struct pp_lane_file *file, struct pp_error *err)
{
	bool folder = pp_workload_record_files(file->layout->workload);
	int64_t code;

	if (allow_open_files(file->layout, err) != 0)
		return -1;
	/* O_NONBLOCK only keeps open(2) of a FIFO from hanging; files and disks ignore it. */
	code = disk_open(file->name, O_NONBLOCK | (folder ? O_RDONLY | O_NOFOLLOW
		: O_RDWR | pp_method_open_flags(file->method)), &file->fd);
	return code ? pp_fail_os(err, code, "cannot open '%s' for '%s'", file->name,
		file->method->name) : 0;
}

int lane_file_look(const struct pp_lane_file *file, uint64_t *end, struct pp_error *err)
{
	struct stat st;
	off_t at;

	if (fstat(file->fd, &st) != 0)
		return pp_fail_os(err, errno, "cannot stat '%s'", file->name);
	if (pp_workload_record_files(file->layout->workload))
		return S_ISDIR(st.st_mode) ? 0
			: pp_fail(err, PP_ERR_USAGE, "'%s' is no folder", file->name);
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return pp_fail(err, PP_ERR_USAGE, "'%s' is neither a file nor a block device",
			file->name);
	at = lseek(file->fd, 0, SEEK_END);
	if (at < 0)
		return pp_fail_os(err, errno, "cannot find the size of '%s'", file->name);
	*end = (uint64_t)at;
	return 0;
}

/* A file system without O_TMPFILE can have the method yet: the first write will tell. */
int lane_file_try(struct pp_lane_file *file, struct pp_error *err)
{
	bool folder = pp_workload_record_files(file->layout->workload);
	int fd = file->fd, rc;
	int64_t code = 0;

	if (folder)
		code = disk_open_nameless(file->fd, file->name, pp_method_open_flags(file->method), &fd);
	if (code == EINVAL && file->method->direct)
		return pp_fail_os(err, code, "cannot open files in '%s' for '%s'", file->name,
			file->method->name);
	rc = pp_method_io_init(&file->io, file->method, fd, err);
	if (rc != 0)
		pp_fail_within(err, "'%s' cannot be had in '%s'", file->method->name, file->name);
	if (folder && fd >= 0)
		disk_close(fd);
	return rc;
}
