/* SPDX-License-Identifier: MIT
 *
 * From a path to the whole disk beneath it: its device number, in /sys/dev/block, up from a
 * partition, down through a stack as long as that has one member only. File systems that are on
 * a disk but have a number of their own (btrfs, major 0) are looked up in /proc/self/mountinfo
 * (proc_pid_mountinfo(5)).
 */
#include "disk_counters.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define STACK_DEPTH_MAX 8

static bool path_within(const char *path, const char *mount_point)
{
	size_t n = strlen(mount_point);

	if (strcmp(mount_point, "/") == 0)
		return true;
	return strncmp(path, mount_point, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* The device that the innermost mount around `path` names as its source; 0 if it is no device. */
static dev_t mounted_device(const char *path)
{
	char line[8192], point[4096], source[4096], real[PATH_MAX], *rest;
	size_t best = 0;
	dev_t found = 0;
	struct stat st;
	FILE *f = realpath(path, real) ? fopen("/proc/self/mountinfo", "re") : NULL;

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		rest = strstr(line, " - ");
		if (!rest || sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1 ||
			sscanf(rest, " - %*s %4095s", source) != 1)
			continue;
		if (!path_within(real, point) || strlen(point) < best)
			continue;
		best = strlen(point);
		found = stat(source, &st) == 0 && S_ISBLK(st.st_mode) ? st.st_rdev : 0;
	}
	fclose(f);
	return found;
}

/* The one entry of a folder: 0 and its name, or the number of entries. */
static int only_entry(const char *folder, char name[NAME_MAX + 1])
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int count = 0;

	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
		count++;
	}
	closedir(dir);
	return count;
}

/* sys: the device's folder, resolved. Up from a partition, down a one-member stack. */
static int walk_to_disk(char sys[PATH_MAX], struct pp_error *err)
{
	char probe[PATH_MAX + 16], name[NAME_MAX + 1];
	int depth, members;

	for (depth = 0; depth < STACK_DEPTH_MAX; depth++) {
		snprintf(probe, sizeof(probe), "%s/partition", sys);
		if (access(probe, F_OK) == 0)
			*strrchr(sys, '/') = '\0';
		snprintf(probe, sizeof(probe), "%s/slaves", sys);
		members = only_entry(probe, name);
		if (members == 0)
			return 0;
		if (members > 1)
			return pp_fail(err, PP_ERR_UNSUPPORTED, "'%s' lies on %d disks",
				strrchr(sys, '/') + 1, members);
		snprintf(probe, sizeof(probe), "/sys/class/block/%.*s", NAME_MAX / 2, name);
		if (!realpath(probe, sys))
			return pp_fail_os(err, errno, "cannot resolve '%s'", probe);
	}
	return pp_fail(err, PP_ERR_UNSUPPORTED, "block devices are stacked more than %d deep",
		STACK_DEPTH_MAX);
}

int pp_disk_source_open_name(const char *name, struct pp_disk_source *source, struct pp_error *err)
{
	char path[128];

	source->fd = -1;
	if (snprintf(source->name, sizeof(source->name), "%s", name) >= (int)sizeof(source->name) ||
		strchr(name, '/'))
		return pp_fail(err, PP_ERR_USAGE, "'%s' is not a disk's name", name);
	snprintf(path, sizeof(path), "/sys/block/%s/stat", name);
	source->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (source->fd < 0)
		return pp_fail_os(err, errno, "cannot open '%s'", path);
	return 0;
}

int pp_disk_source_open(const char *path, struct pp_disk_source *source, struct pp_error *err)
{
	char link[64], sys[PATH_MAX];
	struct stat st;
	dev_t dev;

	source->fd = -1;
	source->name[0] = '\0';
	if (stat(path, &st) != 0)
		return pp_fail_os(err, errno, "cannot stat '%s'", path);
	dev = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	if (major(dev) == 0)
		dev = mounted_device(path);
	if (dev == 0)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "'%s' is not on a block device of this machine",
			path);
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(dev), minor(dev));
	if (!realpath(link, sys))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "'%s' is not on a block device of this machine",
			path);
	if (walk_to_disk(sys, err) != 0)
		return -1;
	return pp_disk_source_open_name(strrchr(sys, '/') + 1, source, err);
}

int pp_disk_source_read(const struct pp_disk_source *source, struct pp_disk_counters *counters,
	struct pp_error *err)
{
	char line[512];
	ssize_t n = pread(source->fd, line, sizeof(line) - 1, 0);

	if (n < 0)
		return pp_fail_os(err, errno, "cannot read the counters of '%s'", source->name);
	line[n] = '\0';
	if (!pp_disk_counters_parse(line, counters))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "the counters of '%s' are not as expected",
			source->name);
	return 0;
}

void pp_disk_source_close(struct pp_disk_source *source)
{
	if (source->fd >= 0)
		close(source->fd);
	source->fd = -1;
}
