/* SPDX-License-Identifier: MIT */
#include "scan_disk.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

int scan_disk_open(const char *path, int flags)
{
	return open(path, flags);
}

int scan_disk_size(int fd, uint64_t *bytes)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return -1;
	if (S_ISBLK(st.st_mode))
		return ioctl(fd, BLKGETSIZE64, bytes);
	*bytes = (uint64_t)st.st_size;
	return 0;
}

/* The logical block under a file, from sysfs; 0 where the file system hides its device. */
static uint32_t block_under(dev_t dev)
{
	static const char *const where[] = { "queue", "../queue" };
	char name[96];
	unsigned value = 0;
	size_t i;
	FILE *f;

	for (i = 0; i < 2 && value == 0; i++) {
		snprintf(name, sizeof(name), "/sys/dev/block/%u:%u/%s/logical_block_size", major(dev),
			minor(dev), where[i]);
		f = fopen(name, "re");
		if (!f)
			continue;
		if (fscanf(f, "%u", &value) != 1)
			value = 0;
		fclose(f);
	}
	return value;
}

uint32_t scan_disk_block(int fd)
{
	struct stat st;
	int value = 0;

	if (fstat(fd, &st) != 0)
		return 0;
	if (!S_ISBLK(st.st_mode))
		return block_under(st.st_dev);
	return ioctl(fd, BLKSSZGET, &value) == 0 ? (uint32_t)value : 0;
}

void scan_disk_forget(int fd, uint64_t from, uint64_t bytes)
{
	posix_fadvise(fd, (off_t)from, (off_t)bytes, POSIX_FADV_DONTNEED);
}
