/* SPDX-License-Identifier: MIT */
#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Of the file in RAM after it was dropped; more than that and a read would say nothing. */
#define RESIDENT_SHARE 0.01

static int64_t result(int rc)
{
	return rc == 0 ? 0 : errno;
}

enum disk_code disk_code_of(int64_t os_code)
{
	switch (os_code) {
	case EINVAL:
		return DISK_CODE_INVALID;
	case EOPNOTSUPP:
		return DISK_CODE_UNSUPPORTED;
	case EEXIST:
		return DISK_CODE_EXISTS;
	case ENOENT:
		return DISK_CODE_MISSING;
	case EBUSY:
		return DISK_CODE_BUSY;
	default:
		return DISK_CODE_OTHER;
	}
}

int64_t disk_open(const char *path, int flags, int *fd)
{
	*fd = open(path, flags | O_CLOEXEC, 0600);
	return *fd >= 0 ? 0 : errno;
}

int64_t disk_open_in(int folder, const char *folder_name, const char *name, int flags,
	int *fd)
{
	(void)folder_name;
	*fd = openat(folder, name, flags | O_CLOEXEC, 0600);
	return *fd >= 0 ? 0 : errno;
}

int64_t disk_remove_in(int folder, const char *folder_name, const char *name)
{
	(void)folder_name;
	return result(unlinkat(folder, name, 0));
}

int64_t disk_rename_in(int folder, const char *folder_name, const char *from, const char *to)
{
	(void)folder_name;
	return result(renameat(folder, from, folder, to));
}

int64_t disk_open_folder(const char *path, int *fd)
{
	return disk_open(path, O_RDONLY | O_DIRECTORY, fd);
}

/* O_TMPFILE, open(2). */
int64_t disk_open_nameless(int folder, const char *folder_name, int flags, int *fd)
{
	return disk_open_in(folder, folder_name, ".", O_TMPFILE | O_RDWR | flags, fd);
}

int64_t disk_close(int fd)
{
	return result(close(fd));
}

int64_t disk_make_folder(const char *path)
{
	return result(mkdir(path, 0700));
}

int64_t disk_remove_folder(const char *path)
{
	return result(rmdir(path));
}

int64_t disk_remove(const char *path)
{
	return result(unlink(path));
}

int64_t disk_write(int fd, const void *buf, uint32_t bytes, uint64_t offset, uint32_t *n)
{
	ssize_t written = pwrite(fd, buf, bytes, (off_t)offset);

	*n = written < 0 ? 0 : (uint32_t)written;
	return written < 0 ? errno : 0;
}

int64_t disk_read(int fd, void *buf, uint32_t bytes, uint64_t offset, uint32_t *n)
{
	ssize_t got = pread(fd, buf, bytes, (off_t)offset);

	*n = got < 0 ? 0 : (uint32_t)got;
	return got < 0 ? errno : 0;
}

int64_t disk_set_size(int fd, uint64_t bytes)
{
	return result(ftruncate(fd, (off_t)bytes));
}

int64_t disk_allocate(int fd, uint64_t bytes)
{
	int64_t code;

	do
		code = result(fallocate(fd, 0, 0, (off_t)bytes));
	while (code == EINTR);
	return code;
}

int64_t disk_sync(int fd)
{
	return result(fsync(fd));
}

int64_t disk_sync_folder(int fd)
{
	return result(fsync(fd));
}

int64_t disk_free_bytes(const char *folder, uint64_t *bytes)
{
	struct statvfs fs;

	if (statvfs(folder, &fs) != 0)
		return errno;
	*bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	return 0;
}

/* As mincore(2) says, after the pages were dropped. */
bool disk_drop(int fd, uint64_t from, uint64_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = bytes / page, i, resident = pages;
	unsigned char *in_ram = malloc(pages);
	void *map = MAP_FAILED;

	if (in_ram && fsync(fd) == 0 &&
		posix_fadvise(fd, (off_t)from, (off_t)bytes, POSIX_FADV_DONTNEED) == 0)
		map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)from);
	if (map != MAP_FAILED && mincore(map, bytes, in_ram) == 0)
		for (resident = i = 0; i < pages; i++)
			resident += in_ram[i] & 1;
	if (map != MAP_FAILED)
		munmap(map, bytes);
	free(in_ram);
	return (double)resident <= RESIDENT_SHARE * (double)pages;
}

void disk_random(int fd)
{
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
}

uint32_t disk_direct_block(const char *path)
{
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (statx(AT_FDCWD, path, 0, STATX_DIOALIGN, &stx) == 0 && stx.stx_mask & STATX_DIOALIGN)
		return stx.stx_dio_offset_align;
#else
	(void)path;
#endif
	return 0;
}
