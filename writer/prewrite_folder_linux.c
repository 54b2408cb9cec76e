/* SPDX-License-Identifier: MIT */
#include "prewrite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/file.h"

/* Calls each for every name but "." and ".."; each returns 0 or errno. */
static int for_names(int folder, int (*each)(int folder, const char *name, void *ctx), void *ctx)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), code = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		code = errno;
		if (fd >= 0)
			close(fd);
		return code;
	}
	for (errno = 0; code == 0 && (entry = readdir(dir)); errno = 0)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			code = each(folder, entry->d_name, ctx);
	if (code == 0)
		code = errno;
	closedir(dir);
	return code;
}

static int add_held(int folder, const char *name, void *ctx)
{
	uint64_t *held = ctx;
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno;
	*held += (uint64_t)st.st_blocks * 512;
	return 0;
}

static int remove_name(int folder, const char *name, void *ctx)
{
	(void)ctx;
	return unlinkat(folder, name, 0) == 0 ? 0 : errno;
}

static int open_folder(const char *name)
{
	return open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int pp_prewrite_folder_held(const char *name, uint64_t *held_bytes, struct pp_error *err)
{
	int fd = open_folder(name), code;

	*held_bytes = 0;
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return pp_fail_os(err, errno, "cannot open the folder '%s'", name);
	code = for_names(fd, add_held, held_bytes);
	close(fd);
	return code == 0 ? 0 : pp_fail_os(err, code, "cannot look into '%s'", name);
}

static int write_record(int folder, const char *name, const void *buf, size_t bytes,
	struct pp_error *err)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc = 0;
	ssize_t n;

	if (fd < 0)
		return pp_fail_os(err, errno, "cannot create '%s'", name);
	n = pwrite(fd, buf, bytes, 0);
	if (n < 0)
		rc = pp_fail_os(err, errno, "cannot write '%s'", name);
	else if ((size_t)n != bytes)
		rc = pp_fail(err, PP_ERR_SYSTEM, "short write to '%s': %zd of %zu bytes", name, n, bytes);
	if (close(fd) != 0 && rc == 0)
		rc = pp_fail_os(err, errno, "cannot close '%s'", name);
	return rc;
}

int pp_prewrite_folder(const struct pp_layout *layout, const struct pp_run_id *run_id,
	uint32_t flags, const struct pp_target *target, const char *name, uint32_t lane,
	uint64_t slots, void *buf, struct pp_error *err)
{
	char record[32];
	uint64_t slot;
	int fd, code, rc = -1;

	if (mkdir(name, 0700) != 0 && errno != EEXIST)
		return pp_fail_os(err, errno, "cannot make the folder '%s'", name);
	fd = open_folder(name);
	if (fd < 0)
		return pp_fail_os(err, errno, "cannot open the folder '%s'", name);
	if (target && pp_target_prove_fd(target, fd, err) != 0)
		goto out;
	code = for_names(fd, remove_name, NULL);
	if (code != 0) {
		pp_fail_os(err, code, "cannot empty '%s'", name);
		goto out;
	}
	for (slot = 0; slot < slots; slot++) {
		pp_prewrite_fill(layout, run_id, flags, lane, slot, buf);
		pp_layout_record_name(layout, pp_layout_file_at(layout, lane, slot), record,
			sizeof(record));
		if (write_record(fd, record, buf, layout->record_bytes, err) != 0) {
			pp_fail_within(err, "'%s'", name);
			goto out;
		}
	}
	if (syncfs(fd) != 0 || fsync(fd) != 0)
		pp_fail_os(err, errno, "cannot sync '%s'", name);
	else
		rc = pp_file_sync_parent(name, err);
out:
	close(fd);
	return rc;
}
