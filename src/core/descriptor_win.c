/* SPDX-License-Identifier: MIT */
#include "descriptor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "handle_win.h"
#include <winternl.h>
#include <winioctl.h>

/* Resolved by the folder's handle, not by its path, so that nobody can put another one in its place. */
int pp_fd_open_in(int folder, const char *name, int flags, int *fd, struct pp_error *err)
{
	typedef NTSTATUS NTAPI create_fn(HANDLE *, ACCESS_MASK, OBJECT_ATTRIBUTES *, IO_STATUS_BLOCK *,
		LARGE_INTEGER *, ULONG, ULONG, ULONG, ULONG, void *, ULONG);
	create_fn *create = (create_fn *)(void *)pp_win_proc("ntdll.dll", "NtCreateFile");
	wchar_t *wide = pp_wide(name);
	UNICODE_STRING text;
	OBJECT_ATTRIBUTES attributes;
	IO_STATUS_BLOCK status_block;
	FILE_ATTRIBUTE_TAG_INFO info = { 0 };
	HANDLE handle = NULL;
	NTSTATUS status;

	*fd = -1;
	if (!create || !wide) {
		free(wide);
		return pp_fail(err, PP_ERR_SYSTEM, "cannot open '%s'", name);
	}
	text.Buffer = wide;
	text.Length = (USHORT)(wcslen(wide) * sizeof(*wide));
	text.MaximumLength = text.Length;
	InitializeObjectAttributes(&attributes, &text, OBJ_CASE_INSENSITIVE, pp_handle_of(folder), NULL);
	status = create(&handle, pp_win_access(flags) | SYNCHRONIZE, &attributes, &status_block, NULL,
		FILE_ATTRIBUTE_NORMAL, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, FILE_OPEN,
		FILE_SYNCHRONOUS_IO_NONALERT | (flags & O_DIRECT ? FILE_NO_INTERMEDIATE_BUFFERING : 0) |
		(flags & O_DSYNC ? FILE_WRITE_THROUGH : 0) |
		(flags & O_NOFOLLOW ? FILE_OPEN_REPARSE_POINT : 0) |
		(flags & O_DIRECTORY ? FILE_DIRECTORY_FILE : FILE_NON_DIRECTORY_FILE), NULL, 0);
	free(wide);
	if (status < 0)
		return pp_fail_win(err, RtlNtStatusToDosError(status), "cannot open '%s'", name);
	if ((flags & O_NOFOLLOW) && (!GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &info,
		sizeof(info)) || (info.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT))) {
		CloseHandle(handle);
		return pp_fail_os(err, ELOOP, "cannot open '%s'", name);
	}
	*fd = pp_fd_of_handle(handle, flags, err);
	return *fd < 0 ? -1 : 0;
}

int pp_fd_dup(int fd, int *copy, struct pp_error *err)
{
	HANDLE self = GetCurrentProcess(), handle;

	*copy = -1;
	if (!DuplicateHandle(self, pp_handle_of(fd), self, &handle, 0, FALSE, DUPLICATE_SAME_ACCESS))
		return pp_fail_win(err, GetLastError(), "cannot copy a descriptor");
	*copy = pp_fd_of_handle(handle, O_RDONLY, err);
	return *copy < 0 ? -1 : 0;
}

ssize_t pp_fd_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
	OVERLAPPED at = { .Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32) };
	DWORD got = 0, want = bytes > (1U << 30) ? 1U << 30 : (DWORD)bytes;

	if (ReadFile(pp_handle_of(fd), buf, want, &got, &at))
		return (ssize_t)got;
	if (GetLastError() == ERROR_HANDLE_EOF)
		return 0;
	errno = pp_os_errno(pp_win_code(GetLastError()));
	return -1;
}

int pp_fd_path(int fd, char *out, size_t out_bytes, struct pp_error *err)
{
	wchar_t wide[4096];
	DWORD n = GetFinalPathNameByHandleW(pp_handle_of(fd), wide, 4096, VOLUME_NAME_DOS);
	char *utf8, *at, *path;
	bool fits;

	if (n == 0 || n >= 4096)
		return pp_fail_win(err, n ? ERROR_FILENAME_EXCED_RANGE : GetLastError(),
			"cannot tell the path of an open file");
	utf8 = pp_utf8(wide);
	if (!utf8)
		return pp_fail(err, PP_ERR_SYSTEM, "no memory for a path");
	for (at = utf8; *at; at++)
		if (*at == '\\')
			*at = '/';
	path = strncmp(utf8, "//?/UNC/", 8) == 0 ? utf8 + 6 : strncmp(utf8, "//?/", 4) == 0 ? utf8 + 4
		: utf8;
	if (path == utf8 + 6)
		path[0] = '/'; /* "C/server" to "//server" is this one and the stroke after it */
	fits = strlen(path) < out_bytes;
	if (fits)
		memcpy(out, path, strlen(path) + 1);
	else
		pp_fail(err, PP_ERR_REFUSED, "path is too long: '%s'", path);
	free(utf8);
	return fits ? 0 : -1;
}

int pp_fd_facts(int fd, struct pp_fd_facts *facts, struct pp_error *err)
{
	BY_HANDLE_FILE_INFORMATION info;
	GET_LENGTH_INFORMATION length;
	HANDLE handle = pp_handle_of(fd);

	memset(facts, 0, sizeof(*facts));
	if (!GetFileInformationByHandle(handle, &info)) {
		DWORD code = GetLastError(), n;

		/* A disk has a length and nothing else of a file. */
		if (!DeviceIoControl(handle, IOCTL_DISK_GET_LENGTH_INFO, NULL, 0, &length, sizeof(length), &n,
			NULL))
			return pp_fail_win(err, code, "cannot examine an open file");
		facts->names = 1;
		facts->size_bytes = (uint64_t)length.Length.QuadPart;
		return 0;
	}
	facts->is_folder = (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
	facts->is_file = !facts->is_folder && GetFileType(handle) == FILE_TYPE_DISK &&
		!(info.dwFileAttributes & (FILE_ATTRIBUTE_DEVICE | FILE_ATTRIBUTE_REPARSE_POINT));
	facts->names = info.nNumberOfLinks;
	facts->size_bytes = (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow;
	return 0;
}
