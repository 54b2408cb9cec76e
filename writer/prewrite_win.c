/* SPDX-License-Identifier: MIT
 *
 * Folders are flushed like files; a file system that refuses that has no base for workloads that
 * need it.
 */
#include "writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "disk.h"
#include "lane_file.h"
#include "prewrite.h"
#include "src/core/file.h"
#include "src/core/handle_win.h"
#include "src/core/text.h"
#include "src/core/thread.h"

#include <winioctl.h>

/* ---- looking ----------------------------------------------------------------------------------- */

/* What stands on the disk of it already; nothing where there is no such file. */
static uint64_t held_bytes(const char *name)
{
	FILE_STANDARD_INFO info;
	uint64_t bytes = 0;
	int fd;

	if (disk_open(name, O_RDONLY, &fd) != 0)
		return 0;
	if (GetFileInformationByHandleEx(pp_handle_of(fd), FileStandardInfo, &info, sizeof(info)))
		bytes = (uint64_t)info.AllocationSize.QuadPart;
	disk_close(fd);
	return bytes;
}

static int check_device_size(const char *name, uint64_t need_bytes, struct pp_error *err)
{
	GET_LENGTH_INFORMATION length = { .Length.QuadPart = 0 };
	DWORD n;
	int fd;

	if (pp_open_win(name, O_RDONLY, &fd, err) != 0)
		return -1;
	DeviceIoControl(pp_handle_of(fd), IOCTL_DISK_GET_LENGTH_INFO, NULL, 0, &length,
		sizeof(length), &n, NULL);
	close(fd);
	if ((uint64_t)length.Length.QuadPart < need_bytes)
		return pp_fail(err, PP_ERR_USAGE, "'%s' has %" PRIu64 " bytes, but the run needs %" PRIu64,
			name, (uint64_t)length.Length.QuadPart, need_bytes);
	return 0;
}

/* Everything that can be known to be wrong before the first byte is written. */
static int look_at_all(const struct pp_layout *layout, const char *path, struct pp_error *err)
{
	uint64_t need_bytes = pp_layout_target_bytes(layout), held = 0;
	char name[4096];
	uint32_t file;

	if (strlen(path) > PP_LANE_PATH_MAX)
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", path);
	if (pp_path_is_device(path))
		return pp_workload_own_files(layout->workload) ? pp_fail(err, PP_ERR_USAGE, "'%s' is a "
			"device: workload %s needs files", path, pp_workload_name(layout->workload))
			: check_device_size(path, need_bytes, err);
	for (file = 0; !pp_workload_record_files(layout->workload) && file < pp_layout_files(layout);
		file++) {
		pp_layout_file_name(layout, path, file, name, sizeof(name));
		held += held_bytes(name);
	}
	return pp_prewrite_check_space(path, need_bytes, held, err);
}

/* ---- files ------------------------------------------------------------------------------------- */

static int open_and_write(struct pp_prewriting *p, uint32_t file, bool raw, bool direct,
	struct pp_error *err)
{
	int flags = O_RDWR | (direct ? O_DIRECT : 0) | (raw ? 0 : O_CREAT | O_NOFOLLOW), rc;
	struct pp_fd_facts facts;
	int64_t code;

	if (pp_open_win(p->name, flags, &p->fd, err) != 0)
		return -1;
	rc = p->target ? pp_target_prove_fd(p->target, p->fd, err) : 0;
	if (rc == 0 && !raw && (pp_fd_facts(p->fd, &facts, err) != 0 || !facts.is_file))
		rc = pp_fail(err, PP_ERR_USAGE, "'%s' is no file", p->name);
	if (rc == 0)
		rc = pp_prewrite_file(p, file, raw, err);
	code = disk_close(p->fd);
	return code && rc == 0 ? pp_fail_os(err, code, "cannot close '%s'", p->name) : rc;
}

/* ---- folders ----------------------------------------------------------------------------------- */

int pp_prewrite_folder_held(const char *name, uint64_t *held, struct pp_error *err)
{
	(void)name;
	(void)err;
	*held = 0; /* counted as if it were not there: more room is asked for than is needed */
	return 0;
}

static int empty_folder(const char *name, struct pp_error *err)
{
	char path[4096];
	wchar_t *wide;
	WIN32_FIND_DATAW found;
	HANDLE find;
	int rc = 0;

	snprintf(path, sizeof(path), "%s/*", name);
	wide = pp_wide_path(path, err);
	if (!wide)
		return -1;
	find = FindFirstFileW(wide, &found);
	free(wide);
	if (find == INVALID_HANDLE_VALUE)
		return GetLastError() == ERROR_FILE_NOT_FOUND ? 0
			: pp_fail_win(err, GetLastError(), "cannot look into '%s'", name);
	do {
		char one[512];
		int64_t code;

		pp_utf8_copy(one, sizeof(one), found.cFileName);
		if (strcmp(one, ".") == 0 || strcmp(one, "..") == 0)
			continue;
		code = disk_remove_in(-1, name, one);
		if (code)
			rc = pp_fail_os(err, code, "cannot empty '%s'", name);
	} while (rc == 0 && FindNextFileW(find, &found));
	FindClose(find);
	return rc;
}

static int write_record(int folder, const char *name, const char *record, const void *buf,
	size_t bytes, struct pp_error *err)
{
	int fd, rc;
	int64_t code = disk_open_in(folder, name, record, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, &fd);

	if (code)
		return pp_fail_os(err, code, "cannot create '%s' in '%s'", record, name);
	rc = pp_prewrite_whole(fd, record, buf, bytes, 0, err);
	code = rc == 0 ? disk_sync(fd) : 0; /* there is no syncfs */
	if (code)
		rc = pp_fail_os(err, code, "cannot sync '%s'", record);
	code = disk_close(fd);
	return code && rc == 0 ? pp_fail_os(err, code, "cannot close '%s'", record) : rc;
}

int pp_prewrite_folder(const struct pp_layout *layout, const struct pp_run_id *run_id,
	uint32_t flags, const struct pp_target *target, const char *name, uint32_t lane,
	uint64_t slots, void *buf, struct pp_error *err)
{
	int64_t code = disk_make_folder(name);
	char record[32];
	uint64_t slot;
	int fd, rc = -1;

	if (code && disk_code_of(code) != DISK_CODE_EXISTS)
		return pp_fail_os(err, code, "cannot make the folder '%s'", name);
	if (pp_open_win(name, O_RDWR | O_DIRECTORY | O_NOFOLLOW, &fd, err) != 0)
		return -1;
	if ((target && pp_target_prove_fd(target, fd, err) != 0) || empty_folder(name, err) != 0)
		goto out;
	for (slot = 0; slot < slots; slot++) {
		pp_prewrite_fill(layout, run_id, flags, lane, slot, buf);
		pp_layout_record_name(layout, pp_layout_file_at(layout, lane, slot), record,
			sizeof(record));
		if (write_record(fd, name, record, buf, layout->record_bytes, err) != 0)
			goto out;
	}
	code = disk_sync_folder(fd);
	rc = code == 0 ? 0 : pp_fail_os(err, code, "a folder cannot be flushed here: '%s'", name);
	if (code && err && disk_code_of(code) != DISK_CODE_OTHER)
		err->class = PP_ERR_UNSUPPORTED;
out:
	disk_close(fd);
	return rc;
}

/* The names of what was made, in the folder above; where that cannot be flushed, the scan before the
 * first run is what tells (M2.8). */
static void sync_above(const char *path)
{
	char folder[4096];
	char *slash;
	int fd;

	pp_text_copy(folder, sizeof(folder), path);
	slash = strrchr(folder, '/');
	if (!slash || pp_path_is_device(path))
		return;
	slash[1] = '\0';
	if (disk_open_folder(folder, &fd) != 0)
		return;
	disk_sync_folder(fd);
	disk_close(fd);
}

int pp_writer_prewrite(struct pp_layout *layout, const char *path, const struct pp_run_id *run_id,
	bool compressible, bool direct, const struct pp_target *target, struct pp_error *err)
{
	struct pp_prewriting p = { .layout = layout, .run_id = run_id, .target = target,
		.flags = compressible ? PP_RECORD_COMPRESSIBLE : 0 };
	bool raw = pp_path_is_device(path);
	char name[4096];
	uint32_t file;
	int rc = 0;

	if (look_at_all(layout, path, err) != 0)
		return -1;
	p.chunk_slots = PP_PREWRITE_CHUNK_BYTES / layout->record_bytes;
	p.chunk = pp_aligned_alloc(PP_LANE_ALIGN_BYTES, PP_PREWRITE_CHUNK_BYTES);
	if (!p.chunk)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	p.name = name;
	for (file = 0; rc == 0 && file < pp_layout_files(layout); file++) {
		pp_layout_file_name(layout, path, file, name, sizeof(name));
		rc = pp_workload_record_files(layout->workload)
			? pp_prewrite_folder(layout, run_id, p.flags, target, name, file,
				pp_workload_grows(layout->workload) ? 1 : layout->slots, p.chunk, err)
			: open_and_write(&p, file, raw, direct || raw, err);
	}
	pp_aligned_free(p.chunk);
	sync_above(path);
	if (rc == 0 && pp_workload_grows(layout->workload))
		for (file = 0; file < layout->lanes; file++)
			layout->base_slots[file] = 1;
	return rc;
}
