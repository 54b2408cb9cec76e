/* SPDX-License-Identifier: MIT */
#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/file.h"
#include "lane_file.h"
#include "prewrite.h"

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

static int open_and_write(struct pp_prewriting *p, uint32_t file, bool raw, bool direct,
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
		rc = pp_prewrite_file(p, file, raw, err);
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
	return pp_prewrite_check_space(path, need_bytes, held_bytes, err);
}

int pp_writer_prewrite(struct pp_layout *layout, const char *path, const struct pp_run_id *run_id,
	bool compressible, bool direct, const struct pp_target *target, struct pp_error *err)
{
	struct pp_prewriting p = { .layout = layout, .run_id = run_id, .target = target,
		.flags = compressible ? PP_RECORD_COMPRESSIBLE : 0 };
	char name[4096];
	bool raw;
	uint32_t file;
	int rc = 0;

	if (look_at_all(layout, path, &raw, err) != 0)
		return -1;
	p.chunk_slots = PP_PREWRITE_CHUNK_BYTES / layout->record_bytes;
	p.chunk = aligned_alloc(PP_LANE_ALIGN_BYTES, PP_PREWRITE_CHUNK_BYTES);
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
