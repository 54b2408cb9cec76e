/* SPDX-License-Identifier: MIT
 *
 * The base of a target. Every slot is written for real: a block that was only allocated is a
 * metadata change at its first write, and the drive would be tested on another path than the arm's
 * name says (fallocate(2); ext4 and xfs keep such extents `unwritten`, NTFS keeps how far
 * a file is valid).
 */
#include "prewrite.h"

#include <inttypes.h>
#include <string.h>

#include "disk.h"
#include "src/core/text.h"
#include "writer.h"

uint64_t pp_writer_target_bytes(const struct pp_layout *layout)
{
	return pp_layout_target_bytes(layout);
}

void pp_prewrite_fill(const struct pp_layout *layout, const struct pp_run_id *run_id,
	uint32_t flags, uint32_t lane, uint64_t slot, void *buf)
{
	struct pp_record record = {
		.run = *run_id,
		.lane = lane,
		.cells = layout->record_bytes / PP_CELL_BYTES,
		.flags = flags,
		.offset = pp_layout_offset(layout, lane, slot),
	};

	pp_record_fill(buf, &record);
}

int pp_prewrite_check_space(const char *path, uint64_t need_bytes, uint64_t held_bytes,
	struct pp_error *err)
{
	char folder[4096];
	uint64_t free_bytes;
	int64_t code;
	char *slash;

	/* Not dirname(3): mingw's takes the text for one of the ANSI code page. */
	pp_text_copy(folder, sizeof(folder), path);
	slash = strrchr(folder, '/');
	if (slash)
		slash[1] = '\0';
	else
		pp_text_copy(folder, sizeof(folder), ".");
	code = disk_free_bytes(folder, &free_bytes);
	if (code)
		return pp_fail_os(err, code, "cannot find the free space of '%s'", folder);
	free_bytes += held_bytes;
	if (free_bytes < need_bytes)
		return pp_fail(err, PP_ERR_USAGE, "'%s' has %" PRIu64 " MB free, but the target needs %"
			PRIu64 " MB: make room or write less", folder, free_bytes >> 20,
			(need_bytes >> 20) + 1);
	return 0;
}

/* ---- a file ------------------------------------------------------------------------------------ */

int pp_prewrite_whole(int fd, const char *name, const void *buf, size_t bytes, uint64_t offset,
	struct pp_error *err)
{
	uint32_t n = 0;
	int64_t code = disk_write(fd, buf, (uint32_t)bytes, offset, &n);

	if (code)
		return pp_fail_os(err, code, "cannot write '%s'", name);
	return n == bytes ? 0 : pp_fail(err, PP_ERR_SYSTEM, "short write to '%s': %" PRIu32
		" of %zu bytes", name, n, bytes);
}

static int write_lane(const struct pp_prewriting *p, uint32_t lane, uint64_t slots,
	struct pp_error *err)
{
	uint32_t record_bytes = p->layout->record_bytes, i;
	uint64_t slot = 0;

	while (slot < slots) {
		uint64_t left = slots - slot;
		uint32_t now = left < p->chunk_slots ? (uint32_t)left : p->chunk_slots;

		for (i = 0; i < now; i++)
			pp_prewrite_fill(p->layout, p->run_id, p->flags, lane, slot + i,
				p->chunk + (size_t)i * record_bytes);
		if (pp_prewrite_whole(p->fd, p->name, p->chunk, (size_t)now * record_bytes,
			pp_layout_offset(p->layout, lane, slot), err) != 0)
			return -1;
		slot += now;
	}
	return 0;
}

/* Not posix_fallocate(3), which writes where the file system cannot allocate: that would be another
 * workload. */
static int allocate(const struct pp_prewriting *p, struct pp_error *err)
{
	uint64_t bytes = p->layout->slots * p->layout->record_bytes;
	int64_t code = disk_allocate(p->fd, bytes);

	if (disk_code_of(code) == DISK_CODE_UNSUPPORTED)
		return pp_fail_os(err, code, "this file system cannot allocate blocks for '%s': workload "
			"fallocated is n/a here", p->name);
	return code ? pp_fail_os(err, code, "cannot allocate %" PRIu64 " bytes for '%s'", bytes,
		p->name) : 0;
}

int pp_prewrite_file(const struct pp_prewriting *p, uint32_t file, bool raw, struct pp_error *err)
{
	bool grows = pp_workload_grows(p->layout->workload);
	int64_t code = grows ? disk_set_size(p->fd, 0) : 0;
	uint32_t lane;

	if (code)
		return pp_fail_os(err, code, "cannot empty '%s'", p->name);
	if (p->layout->workload == PP_FALLOCATED && allocate(p, err) != 0)
		return -1;
	for (lane = 0; lane < p->layout->lanes; lane++)
		if (pp_layout_file_of(p->layout, lane) == file &&
			write_lane(p, lane, grows ? 1 : p->layout->slots, err) != 0)
			return -1;
	if (!raw && !grows)
		code = disk_set_size(p->fd, pp_writer_target_bytes(p->layout));
	if (code)
		return pp_fail_os(err, code, "cannot set the size of '%s'", p->name);
	code = disk_sync(p->fd);
	return code ? pp_fail_os(err, code, "cannot sync '%s'", p->name) : 0;
}
