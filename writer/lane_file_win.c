/* SPDX-License-Identifier: MIT
 *
 * A folder's entries are made durable by FlushFileBuffers of the folder, opened so that it may be
 * written; where that is refused, workloads that need it are n/a.
 */
#include "lane_file_parts.h"

#include "disk.h"
#include "src/core/descriptor.h"
#include "src/core/file.h"
#include "src/core/handle_win.h"

int lane_file_reach(struct pp_lane_file *file, struct pp_error *err)
{
	int flags = O_RDWR | (pp_workload_record_files(file->layout->workload) ? O_DIRECTORY
		: pp_method_open_flags(file->method));

	/* A disk has no attributes to tell a link by. */
	if (pp_open_win(file->name, flags | (pp_path_is_device(file->name) ? 0 : O_NOFOLLOW), &file->fd,
		err) != 0)
		return pp_fail_within(err, "'%s'", file->method->name);
	return 0;
}

/* A file, or a disk; or a folder that can be flushed. */
int lane_file_look(const struct pp_lane_file *file, uint64_t *end, struct pp_error *err)
{
	enum pp_workload workload = file->layout->workload;
	struct pp_fd_facts facts;
	int64_t code;

	if (pp_fd_facts(file->fd, &facts, err) != 0)
		return -1;
	*end = facts.size_bytes;
	if (!pp_workload_record_files(workload))
		return facts.is_folder ? pp_fail(err, PP_ERR_USAGE, "'%s' is neither a file nor a disk",
			file->name) : 0;
	if (!facts.is_folder)
		return pp_fail(err, PP_ERR_USAGE, "'%s' is no folder", file->name);
	code = pp_workload_syncs_folder(workload) ? disk_sync_folder(file->fd) : 0;
	if (code == 0)
		return 0;
	pp_fail_os(err, code, "a folder cannot be flushed here: workload %s is n/a",
		pp_workload_name(workload));
	if (err)
		err->class = PP_ERR_UNSUPPORTED;
	return -1;
}

int lane_file_try(struct pp_lane_file *file, struct pp_error *err)
{
	bool folder = pp_workload_record_files(file->layout->workload);
	int fd = file->fd, rc;
	int64_t code = 0;

	if (folder)
		code = disk_open_nameless(file->fd, file->name, pp_method_open_flags(file->method), &fd);
	if (code)
		return pp_fail_os(err, code, "cannot make files in '%s' for '%s'", file->name,
			file->method->name);
	rc = pp_method_io_init(&file->io, file->method, fd, err);
	if (rc != 0)
		pp_fail_within(err, "'%s' cannot be had in '%s'", file->method->name, file->name);
	if (folder)
		disk_close(fd);
	return rc;
}
