/* SPDX-License-Identifier: MIT
 *
 * A folder cannot be synced as on Linux: NTFS logs a rename, and MOVEFILE_WRITE_THROUGH returns when
 * it is on the disk. That is for small files of ours, never for what a verdict rests on.
 */
#include "file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptor.h"
#include "handle_win.h"

int pp_write_all(int fd, const void *data, size_t bytes)
{
	const char *at = data;

	while (bytes) {
		int n = write(fd, at, bytes > INT_MAX ? INT_MAX : (unsigned)bytes);

		if (n <= 0)
			return -1;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

int pp_file_sync_parent(const char *path, struct pp_error *err)
{
	(void)path;
	(void)err;
	return 0; /* the rename was written through */
}

static int write_tmp(const char *tmp, const void *data, size_t bytes, struct pp_error *err)
{
	int fd, rc = 0;

	if (pp_open_win(tmp, O_WRONLY | O_CREAT | O_TRUNC, &fd, err) != 0)
		return -1;
	if (pp_write_all(fd, data, bytes) != 0)
		rc = pp_fail_os(err, errno, "cannot write '%s'", tmp);
	else if (!FlushFileBuffers(pp_handle_of(fd)))
		rc = pp_fail_win(err, GetLastError(), "cannot sync '%s'", tmp);
	if (close(fd) != 0 && rc == 0)
		rc = pp_fail_os(err, errno, "cannot close '%s'", tmp);
	return rc;
}

int pp_file_write(const char *path, const void *data, size_t bytes, mode_t mode,
	struct pp_error *err)
{
	char *tmp = malloc(strlen(path) + 5);
	wchar_t *from = NULL, *to = NULL;
	int rc = -1;

	(void)mode; /* inherited from the folder */
	if (!tmp)
		return pp_fail(err, PP_ERR_SYSTEM, "no memory for a path");
	sprintf(tmp, "%s.tmp", path);
	from = pp_wide_path(tmp, err);
	to = from ? pp_wide_path(path, err) : NULL;
	if (to && write_tmp(tmp, data, bytes, err) == 0) {
		rc = MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) ? 0
			: pp_fail_win(err, GetLastError(), "cannot rename '%s' to '%s'", tmp, path);
	}
	if (rc != 0 && from)
		DeleteFileW(from);
	free(from);
	free(to);
	free(tmp);
	return rc;
}

int pp_file_read(const char *path, struct pp_buf *buf, struct pp_error *err)
{
	char chunk[65536];
	int fd, n, code;

	if (pp_open_win(path, O_RDONLY, &fd, err) != 0)
		return -1;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
		pp_buf_add(buf, chunk, (size_t)n);
		if (buf->failed) {
			close(fd);
			return pp_fail(err, PP_ERR_EVIDENCE, "'%s' is larger than %zu bytes", path,
				buf->max_bytes);
		}
	}
	code = errno;
	close(fd);
	return n < 0 ? pp_fail_os(err, code, "cannot read '%s'", path) : 0;
}

static int make_one(const char *path, struct pp_error *err)
{
	wchar_t *wide = pp_wide_path(path, err);
	DWORD code = ERROR_SUCCESS;

	if (!wide)
		return -1;
	if (!CreateDirectoryW(wide, NULL))
		code = GetLastError();
	free(wide);
	return code == ERROR_SUCCESS || code == ERROR_ALREADY_EXISTS ? 0
		: pp_fail_win(err, code, "cannot make folder '%s'", path);
}

int pp_mkdirs(const char *path, struct pp_error *err)
{
	char *part = strdup(path), *p;
	int rc = 0;

	if (!part)
		return pp_fail(err, PP_ERR_SYSTEM, "no memory for a path");
	for (p = part + (path[0] ? strlen(path) > 2 && path[1] == ':' ? 3 : 1 : 0); *p && rc == 0; p++) {
		char was = *p;

		if (was != '/' && was != '\\')
			continue;
		*p = '\0';
		if (part[0] && part[strlen(part) - 1] != ':')
			rc = make_one(part, err);
		*p = was;
	}
	free(part);
	return rc == 0 ? make_one(path, err) : rc;
}

/* ---- paths --------------------------------------------------------------------------------- */

static bool is_stroke(char c)
{
	return c == '/' || c == '\\';
}

bool pp_path_absolute(const char *path)
{
	return (isalpha((unsigned char)path[0]) && path[1] == ':' && is_stroke(path[2])) ||
		(is_stroke(path[0]) && is_stroke(path[1]));
}

bool pp_path_is_root(const char *path)
{
	int parts = 0;

	if (path[0] && path[1] == ':')
		return strspn(path + 2, "/\\") == strlen(path + 2);
	if (!is_stroke(path[0]))
		return false;
	for (path += strspn(path, "/\\"); *path; path += strspn(path, "/\\")) {
		parts++;
		path += strcspn(path, "/\\");
	}
	return parts <= 2; /* \\server\share */
}

bool pp_path_real(const char *path, char *out, size_t out_bytes)
{
	wchar_t *wide = pp_wide_path(path, NULL);
	HANDLE handle = wide ? CreateFileW(wide, FILE_READ_ATTRIBUTES, FILE_SHARE_READ |
		FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL)
		: INVALID_HANDLE_VALUE;
	int fd, rc = -1;

	free(wide);
	if (handle == INVALID_HANDLE_VALUE)
		return false;
	fd = pp_fd_of_handle(handle, O_RDONLY, NULL);
	if (fd >= 0) {
		rc = pp_fd_path(fd, out, out_bytes, NULL);
		close(fd);
	}
	return rc == 0;
}

bool pp_path_is_device(const char *path)
{
	return is_stroke(path[0]) && is_stroke(path[1]) && (path[2] == '.' || path[2] == '?') &&
		is_stroke(path[3]);
}
