/* SPDX-License-Identifier: MIT
 *
 * Windows counts reads and writes of a disk (IOCTL_DISK_PERFORMANCE), never flushes: has_flushes stays
 * false. The first such call on a disk switches its counting on, for as long as a handle is open.
 * A disk that does not answer counts nothing, which is said and never taken for zero.
 */
#include "disk_counters.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptor.h"
#include "drive.h"
#include "handle_win.h"
#include "text.h"
#include <winioctl.h>

#define SECTOR_BYTES 512

_Static_assert(IOCTL_DISK_PERFORMANCE == 0x70020, "winioctl.h");

static bool ask(HANDLE handle, DISK_PERFORMANCE *answer)
{
	DWORD n;

	return DeviceIoControl(handle, IOCTL_DISK_PERFORMANCE, NULL, 0, answer,
		sizeof(*answer), &n, NULL);
}

static void init(struct pp_disk_source *source)
{
	memset(source, 0, sizeof(*source));
	source->fd = -1;
}

int pp_disk_source_open_name(const char *name, struct pp_disk_source *source, struct pp_error *err)
{
	DISK_PERFORMANCE answer;
	wchar_t node[PP_DRIVE_NAME_BYTES + 8];
	wchar_t *wide = pp_wide(name);
	HANDLE handle;
	DWORD code;

	init(source);
	if (!wide || wcslen(wide) >= PP_DRIVE_NAME_BYTES) {
		free(wide);
		return pp_fail(err, PP_ERR_USAGE, "'%s' is no disk", name);
	}
	wcscpy(node, L"\\\\.\\");
	wcscat(node, wide);
	free(wide);
	/* Without any access: that is enough to ask, and needs no administrator. */
	handle = CreateFileW(node, 0, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);
	if (handle == INVALID_HANDLE_VALUE)
		return pp_fail_win(err, GetLastError(), "cannot open '%s'", name);
	if (!ask(handle, &answer)) {
		code = GetLastError();
		CloseHandle(handle);
		pp_fail_win(err, code, "Windows does not report what '%s' counts", name);
		if (err)
			err->class = PP_ERR_UNSUPPORTED;
		return -1;
	}
	source->fd = pp_fd_of_handle(handle, O_RDONLY, err);
	pp_text_copy(source->name, sizeof(source->name), name);
	return source->fd < 0 ? -1 : 0;
}

int pp_disk_source_open(const char *path, struct pp_disk_source *source, struct pp_error *err)
{
	static __thread struct pp_stack stack; /* large */
	int fd, rc;

	init(source);
	if (strncmp(path, "\\\\.\\", 4) == 0)
		return pp_disk_source_open_name(path + 4, source, err);
	if (pp_open_win(path, O_RDONLY, &fd, NULL) != 0 &&
		pp_open_win(path, O_RDONLY | O_DIRECTORY, &fd, err) != 0)
		return -1;
	rc = pp_drive_of_fd(fd, path, &stack, err);
	close(fd);
	if (rc != 0)
		return -1;
	if (stack.disk_count != 1)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "'%s' is on %zu disks, not on one", path,
			stack.disk_count);
	return pp_disk_source_open_name(stack.disks[0], source, err);
}

int pp_disk_source_read(const struct pp_disk_source *source, struct pp_disk_counters *counters,
	struct pp_error *err)
{
	DISK_PERFORMANCE now;

	memset(counters, 0, sizeof(*counters));
	if (source->fd < 0 || !ask(pp_handle_of(source->fd), &now))
		return pp_fail_win(err, source->fd < 0 ? ERROR_INVALID_HANDLE : GetLastError(),
			"cannot read what '%s' counts", source->name);
	counters->reads = now.ReadCount;
	counters->writes = now.WriteCount;
	counters->sectors_read = (uint64_t)now.BytesRead.QuadPart / SECTOR_BYTES;
	counters->sectors_written = (uint64_t)now.BytesWritten.QuadPart / SECTOR_BYTES;
	return 0;
}

void pp_disk_source_close(struct pp_disk_source *source)
{
	if (source->fd >= 0)
		close(source->fd);
	source->fd = -1;
}
