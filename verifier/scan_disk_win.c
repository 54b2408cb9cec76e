/* SPDX-License-Identifier: MIT */
#include "scan_disk.h"

#include <errno.h>

#include "src/core/handle_win.h"
#include <winioctl.h>

int scan_disk_open(const char *path, int flags)
{
	struct pp_error why = { 0 };
	int fd;

	if (pp_open_win(path, flags, &fd, &why) == 0)
		return fd;
	errno = why.os_code ? pp_os_errno(why.os_code) : EINVAL;
	return -1;
}

int scan_disk_size(int fd, uint64_t *bytes)
{
	GET_LENGTH_INFORMATION length;
	LARGE_INTEGER size;
	DWORD n;

	if (GetFileSizeEx(pp_handle_of(fd), &size)) {
		*bytes = (uint64_t)size.QuadPart;
		return 0;
	}
	if (DeviceIoControl(pp_handle_of(fd), IOCTL_DISK_GET_LENGTH_INFO, NULL, 0, &length,
		sizeof(length), &n, NULL)) {
		*bytes = (uint64_t)length.Length.QuadPart;
		return 0;
	}
	errno = pp_os_errno(pp_win_code(GetLastError()));
	return -1;
}

uint32_t scan_disk_block(int fd)
{
	FILE_STORAGE_INFO info;
	DISK_GEOMETRY geometry;
	DWORD n;

	if (GetFileInformationByHandleEx(pp_handle_of(fd), FileStorageInfo, &info, sizeof(info)))
		return info.LogicalBytesPerSector;
	return DeviceIoControl(pp_handle_of(fd), IOCTL_DISK_GET_DRIVE_GEOMETRY, NULL, 0, &geometry,
		sizeof(geometry), &n, NULL) ? geometry.BytesPerSector : 0;
}

/* No call of Windows drops a file's pages; a read that is not direct is reported as such. */
void scan_disk_forget(int fd, uint64_t from, uint64_t bytes)
{
	(void)fd;
	(void)from;
	(void)bytes;
}
