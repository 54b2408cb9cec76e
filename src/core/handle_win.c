/* SPDX-License-Identifier: MIT */
#include "handle_win.h"

#include <errno.h>
#include <io.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "descriptor.h"

/* ---- text ---------------------------------------------------------------------------------- */

wchar_t *pp_wide(const char *utf8)
{
	int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, NULL, 0);
	wchar_t *wide = n > 0 ? malloc((size_t)n * sizeof(*wide)) : NULL;

	if (wide)
		MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, wide, n);
	return wide;
}

char *pp_utf8(const wchar_t *wide)
{
	int n = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
	char *utf8 = n > 0 ? malloc((size_t)n) : NULL;

	if (utf8)
		WideCharToMultiByte(CP_UTF8, 0, wide, -1, utf8, n, NULL, NULL);
	return utf8;
}

void pp_utf8_copy(char *out, size_t out_bytes, const wchar_t *wide)
{
	char *utf8 = pp_utf8(wide);
	size_t n = utf8 ? strlen(utf8) : 0;

	if (n >= out_bytes) {
		n = out_bytes - 1;
		while (n > 0 && ((unsigned char)utf8[n] & 0xc0) == 0x80)
			n--;
	}
	if (utf8)
		memcpy(out, utf8, n);
	out[n] = '\0';
	free(utf8);
}

/* ---- paths --------------------------------------------------------------------------------- */

static bool is_device_path(const wchar_t *path)
{
	return wcsncmp(path, L"\\\\.\\", 4) == 0 || wcsncmp(path, L"\\\\?\\", 4) == 0;
}

static wchar_t *full_path(const wchar_t *path, DWORD *code)
{
	DWORD n = GetFullPathNameW(path, 0, NULL, NULL), got;
	wchar_t *full = n ? malloc((n + 8) * sizeof(*full)) : NULL;

	if (!n) {
		*code = GetLastError();
		return NULL;
	}
	*code = ERROR_NOT_ENOUGH_MEMORY;
	if (!full)
		return NULL;
	got = GetFullPathNameW(path, n, full + 6, NULL);
	if (got == 0 || got >= n) {
		*code = got ? ERROR_FILENAME_EXCED_RANGE : GetLastError();
		free(full);
		return NULL;
	}
	return full;
}

wchar_t *pp_wide_path(const char *utf8, struct pp_error *err)
{
	wchar_t *wide = pp_wide(utf8), *full, *at;
	DWORD code;

	if (!wide) {
		pp_fail(err, PP_ERR_USAGE, "path is not UTF-8: '%s'", utf8);
		return NULL;
	}
	for (at = wide; *at; at++)
		if (*at == L'/')
			*at = L'\\';
	if (is_device_path(wide))
		return wide;
	full = full_path(wide, &code); /* leaves six characters free in front */
	free(wide);
	if (!full) {
		pp_fail_win(err, code, "cannot make '%s' absolute", utf8);
		return NULL;
	}
	if (is_device_path(full + 6)) { /* "NUL" and its like */
		memmove(full, full + 6, (wcslen(full + 6) + 1) * sizeof(*full));
	} else if (wcsncmp(full + 6, L"\\\\", 2) == 0) {
		/* \\server\share: its two strokes become the last two of the prefix \\?\UNC\ */
		memcpy(full, L"\\\\?\\UNC", 7 * sizeof(*full));
	} else {
		memcpy(full, L"\\\\?\\", 4 * sizeof(*full));
		memmove(full + 4, full + 6, (wcslen(full + 6) + 1) * sizeof(*full));
	}
	return full;
}

/* ---- handles ------------------------------------------------------------------------------- */

HANDLE pp_handle_of(int fd)
{
	return fd < 0 ? INVALID_HANDLE_VALUE : (HANDLE)_get_osfhandle(fd);
}

int pp_fd_of_handle(HANDLE handle, int flags, struct pp_error *err)
{
	int fd = _open_osfhandle((intptr_t)handle, (flags & O_ACCMODE) | O_BINARY | O_NOINHERIT);

	if (fd >= 0)
		return fd;
	pp_fail_os(err, errno, "cannot keep a handle");
	CloseHandle(handle);
	return -1;
}

DWORD pp_win_access(int flags)
{
	switch (flags & O_ACCMODE) {
	case O_WRONLY:
		return GENERIC_WRITE | FILE_READ_ATTRIBUTES;
	case O_RDWR:
		return GENERIC_READ | GENERIC_WRITE;
	default:
		return GENERIC_READ;
	}
}

DWORD pp_win_attributes(int flags)
{
	return (flags & O_DIRECT ? FILE_FLAG_NO_BUFFERING : 0) |
		(flags & O_DSYNC ? FILE_FLAG_WRITE_THROUGH : 0) |
		(flags & O_NOFOLLOW ? FILE_FLAG_OPEN_REPARSE_POINT : 0) |
		(flags & O_DIRECTORY ? FILE_FLAG_BACKUP_SEMANTICS : 0);
}

/* What was opened is what was asked for: no link where none may be, a folder where one must be. */
static int check_opened(HANDLE handle, int flags, const char *path, struct pp_error *err)
{
	FILE_ATTRIBUTE_TAG_INFO info = { 0 };

	if (!(flags & (O_NOFOLLOW | O_DIRECTORY)))
		return 0;
	if (!GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &info, sizeof(info)))
		return pp_fail_win(err, GetLastError(), "cannot examine '%s'", path);
	if ((flags & O_NOFOLLOW) && (info.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT))
		return pp_fail_os(err, ELOOP, "cannot open '%s'", path);
	if ((flags & O_DIRECTORY) && !(info.FileAttributes & FILE_ATTRIBUTE_DIRECTORY))
		return pp_fail_os(err, ENOTDIR, "cannot open '%s'", path);
	return 0;
}

static DWORD disposition(int flags)
{
	if (flags & O_CREAT)
		return flags & O_EXCL ? CREATE_NEW : flags & O_TRUNC ? CREATE_ALWAYS : OPEN_ALWAYS;
	return flags & O_TRUNC ? TRUNCATE_EXISTING : OPEN_EXISTING;
}

int pp_open_win(const char *path, int flags, int *fd, struct pp_error *err)
{
	wchar_t *wide = pp_wide_path(path, err);
	HANDLE handle;
	DWORD code;

	*fd = -1;
	if (!wide)
		return -1;
	handle = CreateFileW(wide, pp_win_access(flags), FILE_SHARE_READ | FILE_SHARE_WRITE |
		FILE_SHARE_DELETE, NULL, disposition(flags), FILE_ATTRIBUTE_NORMAL |
		pp_win_attributes(flags), NULL);
	code = GetLastError();
	free(wide);
	if (handle == INVALID_HANDLE_VALUE)
		return pp_fail_win(err, code, flags & O_CREAT ? "cannot create '%s'" : "cannot open '%s'",
			path);
	if (check_opened(handle, flags, path, err) != 0) {
		CloseHandle(handle);
		return -1;
	}
	*fd = pp_fd_of_handle(handle, flags, err);
	return *fd < 0 ? -1 : 0;
}

/* ---- codes --------------------------------------------------------------------------------- */

int64_t pp_win_code(DWORD code)
{
	switch (code) {
	case ERROR_FILE_NOT_FOUND:
	case ERROR_PATH_NOT_FOUND:
		return ENOENT;
	case ERROR_FILE_EXISTS:
	case ERROR_ALREADY_EXISTS:
		return EEXIST;
	default:
		return 0x80070000LL | (code & 0xffff);
	}
}

int64_t pp_nt_code(LONG status)
{
	return (uint32_t)status;
}

int pp_fail_win(struct pp_error *err, DWORD code, const char *fmt, ...)
{
	char text[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return pp_fail_os(err, pp_win_code(code), "%s", text);
}

/* ---- what this Windows has ------------------------------------------------------------------- */

FARPROC pp_win_proc(const char *library, const char *name)
{
	HMODULE module = GetModuleHandleA(library);

	/* From the system's own folder alone: no library beside the program takes its place. */
	if (!module)
		module = LoadLibraryExA(library, NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
	return module ? GetProcAddress(module, name) : NULL;
}

bool pp_win_is_wine(void)
{
	return pp_win_proc("ntdll.dll", "wine_get_version") != NULL;
}
