/* SPDX-License-Identifier: MIT */
#include "descriptor.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int pp_fd_open_in(int folder, const char *name, int flags, int *fd, struct pp_error *err)
{
	*fd = openat(folder, name, flags);
	return *fd >= 0 ? 0 : pp_fail_os(err, errno, "cannot open '%s'", name);
}

int pp_fd_dup(int fd, int *copy, struct pp_error *err)
{
	*copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return *copy >= 0 ? 0 : pp_fail_os(err, errno, "cannot copy a descriptor");
}

ssize_t pp_fd_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
	return pread(fd, buf, bytes, (off_t)offset);
}

int pp_fd_path(int fd, char *out, size_t out_bytes, struct pp_error *err)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return pp_fail_os(err, errno, "cannot read '%s'", link);
	path[n] = '\0';
	if ((size_t)n >= out_bytes)
		return pp_fail(err, PP_ERR_REFUSED, "path is too long: '%s'", path);
	memcpy(out, path, (size_t)n + 1);
	return 0;
}

int pp_fd_facts(int fd, struct pp_fd_facts *facts, struct pp_error *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return pp_fail_os(err, errno, "cannot stat");
	facts->is_file = S_ISREG(st.st_mode);
	facts->is_folder = S_ISDIR(st.st_mode);
	facts->names = st.st_nlink;
	facts->size_bytes = (uint64_t)st.st_size;
	return 0;
}
