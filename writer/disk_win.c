/* SPDX-License-Identifier: MIT
 *
 * A folder's entries are made durable by FlushFileBuffers of the folder, opened so that it may be
 * written; NTFS has nothing else for it. Where that is refused the rows that need it say so.
 */
#include "disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/core/handle_win.h"
#include <winioctl.h>

#define PATH_BYTES 4096

static int64_t result(BOOL ok)
{
	return ok ? 0 : pp_win_code(GetLastError());
}

enum disk_code disk_code_of(int64_t os_code)
{
	if (os_code == pp_win_code(ERROR_INVALID_PARAMETER))
		return DISK_CODE_INVALID;
	if (os_code == pp_win_code(ERROR_NOT_SUPPORTED) ||
		os_code == pp_win_code(ERROR_INVALID_FUNCTION) ||
		os_code == pp_win_code(ERROR_CALL_NOT_IMPLEMENTED))
		return DISK_CODE_UNSUPPORTED;
	return os_code == EEXIST ? DISK_CODE_EXISTS : os_code == ENOENT ? DISK_CODE_MISSING
		: os_code == EBUSY ? DISK_CODE_BUSY
		: DISK_CODE_OTHER;
}

int64_t disk_open(const char *path, int flags, int *fd)
{
	struct pp_error why = { 0 };

	return pp_open_win(path, flags, fd, &why) == 0 ? 0 : why.os_code ? why.os_code : EINVAL;
}

static bool join(const char *folder, const char *name, char path[PATH_BYTES])
{
	return snprintf(path, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES;
}

int64_t disk_open_in(int folder, const char *folder_name, const char *name, int flags,
	int *fd)
{
	char path[PATH_BYTES];

	(void)folder;
	return join(folder_name, name, path) ? disk_open(path, flags, fd) : ENAMETOOLONG;
}

int64_t disk_remove_in(int folder, const char *folder_name, const char *name)
{
	char path[PATH_BYTES];

	(void)folder;
	return join(folder_name, name, path) ? disk_remove(path) : ENAMETOOLONG;
}

int64_t disk_rename_in(int folder, const char *folder_name, const char *from, const char *to)
{
	char old_path[PATH_BYTES], new_path[PATH_BYTES];
	wchar_t *wide_from, *wide_to;
	int64_t code = EINVAL;

	(void)folder;
	if (!join(folder_name, from, old_path) || !join(folder_name, to, new_path))
		return ENAMETOOLONG;
	wide_from = pp_wide_path(old_path, NULL);
	wide_to = pp_wide_path(new_path, NULL);
	if (wide_from && wide_to)
		code = result(MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING));
	free(wide_from);
	free(wide_to);
	return code;
}

/* To be written, since only such a handle can be flushed. */
int64_t disk_open_folder(const char *path, int *fd)
{
	return disk_open(path, O_RDWR | O_DIRECTORY, fd);
}

/* It goes with its handle; one that an earlier cut left is taken. */
int64_t disk_open_nameless(int folder, const char *folder_name, int flags, int *fd)
{
	char path[PATH_BYTES];
	wchar_t *wide;
	HANDLE handle;
	int64_t code;

	(void)folder;
	*fd = -1;
	if (!join(folder_name, "plugpull-probe.tmp", path))
		return ENAMETOOLONG;
	wide = pp_wide_path(path, NULL);
	if (!wide)
		return EINVAL;
	handle = CreateFileW(wide, pp_win_access(O_RDWR) | DELETE, FILE_SHARE_READ | FILE_SHARE_WRITE |
		FILE_SHARE_DELETE, NULL, CREATE_ALWAYS, FILE_FLAG_OPEN_REPARSE_POINT |
		FILE_FLAG_DELETE_ON_CLOSE | pp_win_attributes(flags), NULL);
	code = result(handle != INVALID_HANDLE_VALUE);
	free(wide);
	if (code)
		return code;
	*fd = pp_fd_of_handle(handle, O_RDWR, NULL);
	return *fd >= 0 ? 0 : EMFILE;
}

int64_t disk_close(int fd)
{
	return close(fd) == 0 ? 0 : errno;
}

static int64_t with_path(const char *path, BOOL (*call)(const wchar_t *wide))
{
	struct pp_error why = { 0 };
	wchar_t *wide = pp_wide_path(path, &why);
	int64_t code = wide ? result(call(wide)) : EINVAL;

	free(wide);
	return code;
}

static BOOL make_folder(const wchar_t *wide)
{
	return CreateDirectoryW(wide, NULL);
}

static BOOL remove_folder(const wchar_t *wide)
{
	return RemoveDirectoryW(wide);
}

static BOOL remove_file(const wchar_t *wide)
{
	return DeleteFileW(wide);
}

int64_t disk_make_folder(const char *path)
{
	return with_path(path, make_folder);
}

int64_t disk_remove_folder(const char *path)
{
	return with_path(path, remove_folder);
}

int64_t disk_remove(const char *path)
{
	return with_path(path, remove_file);
}

int64_t disk_write(int fd, const void *buf, uint32_t bytes, uint64_t offset, uint32_t *n)
{
	OVERLAPPED at = { .Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32) };
	DWORD done = 0;
	BOOL ok = WriteFile(pp_handle_of(fd), buf, bytes, &done, &at);

	*n = done;
	return result(ok);
}

int64_t disk_read(int fd, void *buf, uint32_t bytes, uint64_t offset, uint32_t *n)
{
	OVERLAPPED at = { .Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32) };
	DWORD done = 0;
	BOOL ok = ReadFile(pp_handle_of(fd), buf, bytes, &done, &at);

	*n = done;
	return !ok && GetLastError() == ERROR_HANDLE_EOF ? 0 : result(ok);
}

int64_t disk_set_size(int fd, uint64_t bytes)
{
	FILE_END_OF_FILE_INFO end = { .EndOfFile.QuadPart = (LONGLONG)bytes };

	return result(SetFileInformationByHandle(pp_handle_of(fd), FileEndOfFileInfo, &end,
		sizeof(end)));
}

/* NTFS keeps how much of a file is valid: clusters beyond that are there and unwritten. */
int64_t disk_allocate(int fd, uint64_t bytes)
{
	FILE_ALLOCATION_INFO room = { .AllocationSize.QuadPart = (LONGLONG)bytes };

	if (!SetFileInformationByHandle(pp_handle_of(fd), FileAllocationInfo, &room, sizeof(room)))
		return result(FALSE);
	return disk_set_size(fd, bytes);
}

int64_t disk_sync(int fd)
{
	return result(FlushFileBuffers(pp_handle_of(fd)));
}

int64_t disk_sync_folder(int fd)
{
	return result(FlushFileBuffers(pp_handle_of(fd)));
}

int64_t disk_free_bytes(const char *folder, uint64_t *bytes)
{
	struct pp_error why = { 0 };
	wchar_t *wide = pp_wide_path(folder, &why);
	ULARGE_INTEGER free_bytes;
	int64_t code = wide ? result(GetDiskFreeSpaceExW(wide, &free_bytes, NULL, NULL)) : EINVAL;

	free(wide);
	if (code == 0)
		*bytes = free_bytes.QuadPart;
	return code;
}

/* No call of Windows tells what of a file is in RAM. */
bool disk_drop(int fd, uint64_t from, uint64_t bytes)
{
	(void)fd;
	(void)from;
	(void)bytes;
	return false;
}

void disk_random(int fd)
{
	(void)fd;
}

uint32_t disk_direct_block(const char *path)
{
	FILE_STORAGE_INFO info;
	uint32_t bytes = 0;
	int fd;

	if (disk_open(path, O_RDONLY, &fd) != 0)
		return 0;
	if (GetFileInformationByHandleEx(pp_handle_of(fd), FileStorageInfo, &info, sizeof(info)))
		bytes = info.LogicalBytesPerSector;
	close(fd);
	return bytes;
}
