/* SPDX-License-Identifier: MIT
 *
 * For *_win.c only: text, paths, handles and error codes between this program, which speaks UTF-8,
 * '/' and descriptors, and Windows, which speaks UTF-16, '\\' and HANDLEs.
 *
 * A descriptor is the C runtime's number of a HANDLE (_open_osfhandle); close(2) closes both.
 * Paths are absolute inside the program where it matters; every call here makes them so, and gives
 * them the prefix \\?\ that lifts the limit of 260 characters ("Maximum Path Length Limitation").
 */
#ifndef PP_CORE_HANDLE_WIN_H
#define PP_CORE_HANDLE_WIN_H

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "os.h"

/* malloc'ed; NULL: no memory, or not UTF-8. */
wchar_t *pp_wide(const char *utf8);
char *pp_utf8(const wchar_t *wide);
/* As pp_utf8 into an array, cut at a whole character. */
void pp_utf8_copy(char *out, size_t out_bytes, const wchar_t *wide);
/* For the W calls: absolute, \\?\C:\x or \\?\UNC\server\share\x; \\.\PhysicalDrive0 stays as it is.
 * malloc'ed; NULL with *err. */
wchar_t *pp_wide_path(const char *utf8, struct pp_error *err);

/* INVALID_HANDLE_VALUE for -1. */
HANDLE pp_handle_of(int fd);
/* Takes the handle over: -1 closes it. flags: O_RDONLY, O_WRONLY or O_RDWR. */
int pp_fd_of_handle(HANDLE handle, int flags, struct pp_error *err);

/*
 * open(2) by CreateFileW: the O_ flags of descriptor.h, O_CREAT, O_EXCL and O_TRUNC. Others may read,
 * write and rename meanwhile, as on Linux. A folder opens with O_DIRECTORY only.
 */
int pp_open_win(const char *path, int flags, int *fd, struct pp_error *err);
/* The same for CreateFileW's own arguments. */
DWORD pp_win_access(int flags);
DWORD pp_win_attributes(int flags);

/* How codes travel in struct pp_error: ENOENT and EEXIST as such, since callers ask for them; other
 * Win32 codes as HRESULTs (0x8007....), so that they are not taken for errnos; NTSTATUS as it is. */
int64_t pp_win_code(DWORD code);
int64_t pp_nt_code(LONG status);
/* pp_fail_os with GetLastError()'s code. */
int pp_fail_win(struct pp_error *err, DWORD code, const char *fmt, ...)
	__attribute__((format(PP_FORMAT, 3, 4)));

/* argv as one command line for CreateProcessW, which CommandLineToArgvW takes apart the same way;
 * terminated. In subprocess_win.c. */
struct pp_buf;
void pp_command_line(struct pp_buf *line, const char *const *argv);

/* ntdll's or another system library's function, or NULL: what not every version has is asked for. */
FARPROC pp_win_proc(const char *library, const char *name);
/* True under Wine, where the kernel beneath is another's. */
bool pp_win_is_wine(void);

#endif
