/* SPDX-License-Identifier: MIT */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int pp_write_all(int fd, const void *data, size_t bytes)
{
	const char *at = data;

	while (bytes) {
		ssize_t n = write(fd, at, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

int pp_file_sync_parent(const char *path, struct pp_error *err)
{
	char dir[PATH_MAX];
	char *slash;
	int fd, rc, code;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (!slash)
		strcpy(dir, ".");
	else if (slash == dir)
		strcpy(dir, "/");
	else
		*slash = '\0';
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return pp_fail_os(err, errno, "cannot open folder '%s'", dir);
	rc = fsync(fd);
	code = errno;
	close(fd);
	if (rc != 0)
		return pp_fail_os(err, code, "cannot sync folder '%s'", dir);
	return 0;
}

int pp_file_write(const char *path, const void *data, size_t bytes, mode_t mode,
	struct pp_error *err)
{
	char tmp[PATH_MAX];
	int fd, code;

	if (snprintf(tmp, sizeof(tmp), "%s.tmp", path) >= (int)sizeof(tmp))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", path);
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	if (fd < 0)
		return pp_fail_os(err, errno, "cannot create '%s'", tmp);
	if (pp_write_all(fd, data, bytes) != 0) {
		code = errno;
		pp_fail_os(err, code, "cannot write '%s'", tmp);
		goto undo;
	}
	if (fsync(fd) != 0) {
		code = errno;
		pp_fail_os(err, code, "cannot sync '%s'", tmp);
		goto undo;
	}
	if (close(fd) != 0) {
		fd = -1;
		pp_fail_os(err, errno, "cannot close '%s'", tmp);
		goto undo;
	}
	fd = -1;
	if (rename(tmp, path) != 0) {
		pp_fail_os(err, errno, "cannot rename '%s' to '%s'", tmp, path);
		goto undo;
	}
	return pp_file_sync_parent(path, err);
undo:
	if (fd >= 0)
		close(fd);
	unlink(tmp);
	return -1;
}

int pp_file_read(const char *path, struct pp_buf *buf, struct pp_error *err)
{
	char chunk[65536];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return pp_fail_os(err, errno, "cannot open '%s'", path);
	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int code = errno;

			close(fd);
			return pp_fail_os(err, code, "cannot read '%s'", path);
		}
		if (n == 0)
			break;
		pp_buf_add(buf, chunk, (size_t)n);
		if (buf->failed) {
			close(fd);
			return pp_fail(err, PP_ERR_EVIDENCE, "'%s' is larger than %zu bytes", path,
				buf->max_bytes);
		}
	}
	close(fd);
	return 0;
}

int pp_mkdirs(const char *path, struct pp_error *err)
{
	char part[PATH_MAX];
	char *p;

	if (snprintf(part, sizeof(part), "%s", path) >= (int)sizeof(part))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", path);
	for (p = part + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(part, 0755) != 0 && errno != EEXIST)
			return pp_fail_os(err, errno, "cannot make folder '%s'", part);
		*p = '/';
	}
	if (mkdir(part, 0755) != 0 && errno != EEXIST)
		return pp_fail_os(err, errno, "cannot make folder '%s'", part);
	return 0;
}

bool pp_path_absolute(const char *path)
{
	return path[0] == '/';
}

bool pp_path_is_root(const char *path)
{
	return path[0] == '/' && strspn(path, "/") == strlen(path);
}

bool pp_path_real(const char *path, char *out, size_t out_bytes)
{
	char real[PATH_MAX];

	if (!realpath(path, real) || strlen(real) >= out_bytes)
		return false;
	memcpy(out, real, strlen(real) + 1);
	return true;
}

bool pp_path_is_device(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode));
}
