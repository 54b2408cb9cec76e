/* SPDX-License-Identifier: MIT
 *
 * The proof (docs/method.md, M2.7). Order matters: drive, then whether it reads, then file system,
 * then mount, then the proof on the descriptor that will be used.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "drive_sysfs.h"
#include "file.h"
#include "target_parts.h"

#define RELEASE_TIMEOUT_MS 10000

/* ---- raw ---------------------------------------------------------------------------------- */

static int check_signatures(const struct pp_target_spec *spec, const char *node,
	enum pp_target_state *state, struct pp_error *err)
{
	struct pp_error why;
	char found[256];

	if (pp_target_signatures(node, found, sizeof(found), &why) != 0)
		return pp_target_fail(state, PP_TARGET_DRIVE_UNREADABLE, err, "%s", why.text);
	if (found[0] && !spec->force)
		return pp_target_fail(state, PP_TARGET_REFUSED, err,
			"'%s' holds data (%s): if it may be destroyed, use --force", node, found);
	return 0;
}

static int prove_raw(const struct pp_target_spec *spec, struct pp_target *t, struct pp_error *err)
{
	uint64_t size_bytes;
	struct stat st;

	if (t->drive.read_only)
		return pp_target_fail(&t->state, PP_TARGET_REFUSED, err, "'%s' is read-only",
			t->drive.node);
	if (pp_target_claim(t->drive.name, O_RDWR, &t->fd, &t->state, err) != 0)
		return -1;
	if (fstat(t->fd, &st) != 0 || !S_ISBLK(st.st_mode) ||
		major(st.st_rdev) != t->drive.dev_major || minor(st.st_rdev) != t->drive.dev_minor)
		return pp_target_fail(&t->state, PP_TARGET_FAILED, err,
			"'%s' is not the device %u:%u that the kernel calls by that name", t->drive.node,
			t->drive.dev_major, t->drive.dev_minor);
	if (ioctl(t->fd, BLKGETSIZE64, &size_bytes) != 0)
		return pp_target_fail(&t->state, PP_TARGET_FAILED, err, "cannot ask the size of '%s': %s",
			t->drive.node, strerror(errno));
	if (size_bytes < spec->size_bytes || size_bytes < spec->drive_size_bytes)
		return pp_target_fail(&t->state, PP_TARGET_DRIVE_CHANGED, err,
			"'%s' has %llu bytes, less than planned", t->drive.node,
			(unsigned long long)size_bytes);
	if (check_signatures(spec, t->drive.node, &t->state, err) != 0)
		return -1;
	t->dev = st.st_rdev;
	t->size_bytes = size_bytes;
	snprintf(t->path, sizeof(t->path), "%s", t->drive.node);
	return 0;
}

/* ---- file --------------------------------------------------------------------------------- */

/*
 * All that is beneath the stack must be beneath the named drive: a record that may land on another
 * disk of a set proves nothing about this one. An array is named by its own UUID.
 */
static int check_stack(const struct pp_stack *stack, const struct pp_target *t, const char *path,
	enum pp_target_state *state, struct pp_error *err)
{
	struct pp_stack own;

	if (!pp_stack_has(stack, t->drive.name))
		return pp_target_fail(state, PP_TARGET_FS_UNAVAILABLE, err,
			"'%s' is on a %s of '%s', not on drive '%s' (%s)", path,
			stack->fs_type[0] ? stack->fs_type : "device", stack->fs_source, t->drive.serial,
			t->drive.node);
	if (pp_drive_of_name(NULL, t->drive.name, &own, err) != 0) {
		*state = PP_TARGET_FAILED;
		return -1;
	}
	if (stack->disk_count > own.disk_count)
		return pp_target_fail(state, PP_TARGET_REFUSED, err,
			"'%s' is on %zu drives, not on '%s' alone: name the array", path,
			stack->disk_count, t->drive.serial);
	return 0;
}

/* The device of a mounted file system: by number, or for btrfs, which has none, by its source. */
static bool device_of_mount(int fd, const struct pp_stack *stack, char name[PP_DRIVE_NAME_BYTES])
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return false;
	if (pp_sys_name_of_dev(NULL, major(st.st_dev), minor(st.st_dev), name))
		return true;
	return strcmp(stack->fs_type, "btrfs") == 0 &&
		pp_sys_name_of_node(NULL, stack->fs_source, name);
}

/* Proves that the folder open as t->fd lies on the planned file system of the planned drive. */
static int check_folder(const struct pp_target_spec *spec, struct pp_target *t, const char *path,
	struct pp_error *err)
{
	bool any = strcmp(spec->fs_uuid, "auto") == 0 || !spec->fs_uuid[0];
	struct pp_fs_found fs;
	struct pp_stack stack;
	struct statvfs vfs;
	struct stat st;
	char name[PP_DRIVE_NAME_BYTES];
	struct pp_error why;

	if (pp_drive_of_fd(t->fd, path, &stack, &why) != 0)
		return pp_target_fail(&t->state, PP_TARGET_FAILED, err, "%s", why.text);
	if (check_stack(&stack, t, path, &t->state, err) != 0)
		return -1;
	if (!device_of_mount(t->fd, &stack, name) || pp_fs_probe(name, &fs) != 1)
		return pp_target_fail(&t->state, PP_TARGET_FS_UNAVAILABLE, err,
			"cannot tell the UUID of the %s beneath '%s'", stack.fs_type, path);
	if (!any && strcasecmp(fs.uuid, spec->fs_uuid) != 0)
		return pp_target_fail(&t->state, PP_TARGET_FS_UNAVAILABLE, err,
			"'%s' is on the file system %s, not on %s", path, fs.uuid, spec->fs_uuid);
	if (fstat(t->fd, &st) != 0 || fstatvfs(t->fd, &vfs) != 0)
		return pp_target_fail(&t->state, PP_TARGET_FAILED, err, "cannot stat '%s': %s", path,
			strerror(errno));
	t->dev = st.st_dev;
	t->size_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	t->fs_partition = pp_partition_number(t->drive.name, name);
	t->no_barrier = pp_stack_no_barrier(&stack);
	snprintf(t->fs_uuid, sizeof(t->fs_uuid), "%s", fs.uuid);
	snprintf(t->fs_type, sizeof(t->fs_type), "%s", stack.fs_type);
	snprintf(t->fs_node, sizeof(t->fs_node), "%s", fs.node);
	snprintf(t->mount_options, sizeof(t->mount_options), "%s", stack.mount_options);
	snprintf(t->path, sizeof(t->path), "%s", path);
	return 0;
}

static int prove_path(const struct pp_target_spec *spec, struct pp_target *t, struct pp_error *err)
{
	t->fd = open(spec->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->fd < 0)
		return pp_target_fail(&t->state, errno == ENOENT ? PP_TARGET_FS_UNAVAILABLE :
			PP_TARGET_FAILED, err, "cannot open folder '%s': %s", spec->path, strerror(errno));
	return check_folder(spec, t, spec->path, err);
}

/* Opens (and makes) a folder beneath root_fd, never through a symbolic link or upwards. */
static int open_beneath(int root_fd, const char *directory, struct pp_error *err)
{
	int at = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);

	for (const char *p = directory; *p && at >= 0;) {
		size_t n = strcspn(p, "/");
		char part[256];
		int next;

		if (n >= sizeof(part) || (n == 2 && p[0] == '.' && p[1] == '.')) {
			close(at);
			return pp_fail(err, PP_ERR_USAGE, "the target's folder cannot be '%s'", directory);
		}
		snprintf(part, sizeof(part), "%.*s", (int)n, p);
		p += n + (p[n] == '/');
		if (!n)
			continue;
		if (mkdirat(at, part, 0755) == 0 && fsync(at) != 0) {
			int code = errno;

			close(at);
			return pp_fail_os(err, code, "cannot sync the folder above '%s'", part);
		}
		next = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0) {
			int code = errno;

			close(at);
			return pp_fail_os(err, code, "cannot open the target's folder '%s'", directory);
		}
		close(at);
		at = next;
	}
	if (at < 0)
		return pp_fail_os(err, errno, "cannot open the target's folder '%s'", directory);
	return at;
}

/* The mount failed. Only damage on a drive that reads speaks against the drive (M6.3). */
static int judge_mount(struct pp_target *t, const struct pp_fs_found *fs, int code,
	struct pp_error *err)
{
	struct pp_error why;

	if (code == ENOPROTOOPT)
		return pp_target_fail(&t->state, PP_TARGET_FAILED, err,
			"'%s' mounts, but not with these options: correct mount_options", fs->node);
	if (!pp_mount_errno_is_damage(code))
		return pp_target_fail(&t->state, PP_TARGET_FS_UNAVAILABLE, err,
			"cannot mount '%s' (%s): %s%s", fs->node, fs->type, strerror(code),
			code == ENODEV ? ": this kernel has no such file system, load its module" : "");
	if (pp_target_readable(t->drive.node, t->drive.size_bytes, &why) != 0)
		return pp_target_fail(&t->state, PP_TARGET_DRIVE_UNREADABLE, err, "%s", why.text);
	return pp_target_fail(&t->state, PP_TARGET_FS_DAMAGED, err, "cannot mount '%s' (%s): %s%s%s",
		fs->node, fs->type, strerror(code), t->complaints[0] ? ": " : "", t->complaints);
}

static int mount_private(const struct pp_target_spec *spec, struct pp_target *t,
	const struct pp_fs_found *fs, struct pp_error *err)
{
	char folder[PP_DRIVE_SERIAL_BYTES];
	struct pp_error why;
	int code;

	pp_drive_folder_name(spec->serial, folder, sizeof(folder));
	if (spec->mount_dir[0])
		snprintf(t->mount_dir, sizeof(t->mount_dir), "%s", spec->mount_dir);
	else
		snprintf(t->mount_dir, sizeof(t->mount_dir), "%s/%s", PP_TARGET_MOUNT_ROOT, folder);
	if (pp_mkdirs(t->mount_dir, &why) != 0)
		return pp_target_fail(&t->state, PP_TARGET_FAILED, err, "%s", why.text);
	code = pp_mount_fs(fs, t->drive.name, t->mount_dir, spec->mount_options, t->complaints,
		sizeof(t->complaints));
	if (code)
		return judge_mount(t, fs, code, err);
	t->mounted_by_us = true;
	return 0;
}

/*
 * No such UUID on a drive that reads. Where place and type are on record the kernel has the last
 * word: its refusal for damage is what M6.3 asks for.
 */
static int judge_missing(const struct pp_target_spec *spec, struct pp_target *t,
	struct pp_error *err)
{
	struct pp_fs_found fs = {.partition = spec->fs_partition};
	char name[PP_DRIVE_NAME_BYTES], text[128];
	struct pp_target_spec as_recorded = *spec;
	bool lazy;

	if (t->state != PP_TARGET_FS_UNAVAILABLE || spec->fs_partition == PP_PARTITION_UNKNOWN ||
		!spec->fs_type[0] || strcmp(spec->fs_uuid, "auto") == 0 || !spec->fs_uuid[0] ||
		!pp_partition_name(t->drive.name, spec->fs_partition, name))
		return -1;
	snprintf(fs.name, sizeof(fs.name), "%s", name);
	pp_sys_node(name, fs.node);
	snprintf(fs.type, sizeof(fs.type), "%s", spec->fs_type);
	/* Only to see what the kernel says: read-only. */
	snprintf(as_recorded.mount_options, sizeof(as_recorded.mount_options), "ro");
	snprintf(text, sizeof(text), "%s", spec->fs_uuid);
	if (mount_private(&as_recorded, t, &fs, err) != 0)
		return -1;
	pp_umount_fs(t->mount_dir, RELEASE_TIMEOUT_MS, &lazy);
	t->mounted_by_us = false;
	return pp_target_fail(&t->state, PP_TARGET_FS_UNAVAILABLE, err,
		"'%s' holds another %s than the recorded %s", fs.node, fs.type, text);
}

static int prove_file(const struct pp_target_spec *spec, struct pp_target *t, struct pp_error *err)
{
	char path[2 * PP_TARGET_PATH_BYTES];
	struct pp_fs_found fs;
	struct pp_error why;
	int root_fd;

	if (pp_fs_find(spec, &t->drive, &fs, &t->state, err) != 0)
		return judge_missing(spec, t, err);
	if (pp_target_claim(fs.name, O_RDONLY, NULL, &t->state, err) != 0) {
		/* In use is not the drive's fault, nor a danger: the trial stays open. */
		if (t->state == PP_TARGET_REFUSED)
			t->state = PP_TARGET_FS_UNAVAILABLE;
		return -1;
	}
	if (mount_private(spec, t, &fs, err) != 0)
		return -1;
	root_fd = open(t->mount_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return pp_target_fail(&t->state, PP_TARGET_FS_DAMAGED, err, "cannot open '%s': %s",
			t->mount_dir, strerror(errno));
	/* The mount itself first: before anything is made in what may be another file system. */
	t->fd = root_fd;
	if (check_folder(spec, t, t->mount_dir, err) != 0)
		return -1;
	t->fd = open_beneath(root_fd, spec->directory, &why);
	close(root_fd);
	if (t->fd < 0)
		return pp_target_fail(&t->state, PP_TARGET_FAILED, err, "%s", why.text);
	snprintf(path, sizeof(path), "%s%s%s", t->mount_dir, spec->directory[0] ? "/" : "",
		spec->directory);
	if (strlen(path) >= sizeof(t->path))
		return pp_target_fail(&t->state, PP_TARGET_FAILED, err, "path is too long: '%s'", path);
	return check_folder(spec, t, path, err);
}

/* ---- both --------------------------------------------------------------------------------- */

static int prove(const struct pp_target_spec *spec, struct pp_target *t, struct pp_error *err)
{
	struct pp_error why;
	int rc;

	if (pp_target_find_drive(spec, &t->drive, &t->state, err) != 0)
		return -1;
	if (pp_target_readable(t->drive.node, t->drive.size_bytes, &why) != 0)
		return pp_target_fail(&t->state, why.os_code == EACCES || why.os_code == EPERM ||
			why.os_code == ENOENT ? PP_TARGET_FAILED : PP_TARGET_DRIVE_UNREADABLE, err, "%s",
			why.text);
	if (spec->kind == PP_TARGET_RAW)
		rc = prove_raw(spec, t, err);
	else if (spec->path[0])
		rc = prove_path(spec, t, err);
	else
		rc = prove_file(spec, t, err);
	if (rc != 0)
		return -1;
	if (pp_target_unit_bytes(&t->drive, t->fd, &t->unit_bytes, &why) != 0)
		return pp_target_fail(&t->state, PP_TARGET_FAILED, err, "%s", why.text);
	return 0;
}

int pp_target_prove(const struct pp_target_spec *spec, struct pp_target *target,
	struct pp_error *err)
{
	enum pp_target_state state;

	pp_target_init(target);
	target->kind = spec->kind;
	if (prove(spec, target, err) == 0)
		return 0;
	state = target->state;
	pp_target_release(target);
	target->state = state;
	return -1;
}

int pp_target_prove_fd(const struct pp_target *target, int fd, struct pp_error *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return pp_fail_os(err, errno, "cannot stat the open target");
	if (target->kind == PP_TARGET_RAW && S_ISBLK(st.st_mode) && st.st_rdev == target->dev)
		return 0;
	if (target->kind == PP_TARGET_FILE && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) &&
		st.st_dev == target->dev)
		return 0;
	return pp_fail(err, PP_ERR_REFUSED, "what was opened is not on the proven target '%s'",
		target->path);
}

int pp_target_open(const struct pp_target *target, const char *name, int flags, mode_t mode,
	int *fd, struct pp_error *err)
{
	const char *what = name ? name : target->path;

	*fd = name ? openat(target->fd, name, flags | O_CLOEXEC | O_NOFOLLOW, mode) :
		open(target->path, flags | O_CLOEXEC);
	if (*fd < 0)
		return pp_fail_os(err, errno, "cannot open '%s' on the target '%s'", what, target->path);
	if (pp_target_prove_fd(target, *fd, err) == 0)
		return 0;
	close(*fd);
	*fd = -1;
	return -1;
}

int pp_target_probe(struct pp_target *target, struct pp_error *err)
{
	struct pp_drive_info now;
	struct pp_error why;

	if (pp_drive_read(NULL, target->drive.name, &now, &why) != 0 || !now.size_bytes)
		return pp_target_fail(&target->state, PP_TARGET_DRIVE_GONE, err,
			"drive '%s' (%s) is gone", target->drive.serial, target->drive.node);
	if (strcmp(now.serial, target->drive.serial) != 0 || strcmp(now.wwn, target->drive.wwn) != 0 ||
		now.size_bytes < target->drive.size_bytes)
		return pp_target_fail(&target->state, PP_TARGET_DRIVE_CHANGED, err,
			"'%s' is no longer the drive '%s' of %llu bytes", now.node, target->drive.serial,
			(unsigned long long)target->drive.size_bytes);
	if (pp_target_readable(now.node, now.size_bytes, &why) != 0)
		return pp_target_fail(&target->state, PP_TARGET_DRIVE_UNREADABLE, err, "%s", why.text);
	target->state = PP_TARGET_OK;
	return 0;
}

int pp_target_unmount(struct pp_target *target, int64_t timeout_ms, bool *lazy,
	struct pp_error *err)
{
	int code;

	*lazy = false;
	if (target->fd >= 0)
		close(target->fd);
	target->fd = -1;
	if (!target->mounted_by_us)
		return 0;
	code = pp_umount_fs(target->mount_dir, timeout_ms, lazy);
	if (code)
		return pp_fail_os(err, code, "cannot unmount '%s'", target->mount_dir);
	target->mounted_by_us = false;
	rmdir(target->mount_dir); /* ours if it was made here; a folder in use stays */
	return 0;
}

void pp_target_release(struct pp_target *target)
{
	bool lazy;

	pp_target_unmount(target, RELEASE_TIMEOUT_MS, &lazy, NULL);
}

/* ---- unit --------------------------------------------------------------------------------- */

int pp_target_unit_bytes(const struct pp_drive_info *drive, int fd, uint32_t *unit_bytes,
	struct pp_error *err)
{
	uint64_t unit = (uint64_t)sysconf(_SC_PAGESIZE);
	struct pp_stack stack;
	struct statvfs vfs;

	if (drive)
		unit = pp_common_multiple(pp_common_multiple(unit, drive->physical_block_bytes),
			drive->stripe_bytes);
	if (pp_drive_of_fd(fd, "target", &stack, err) != 0)
		return -1;
	for (size_t i = 0; i < stack.layer_count; i++) {
		struct pp_drive_info layer;

		if (!stack.layers[i].whole || pp_drive_read(NULL, stack.layers[i].name, &layer, NULL) != 0)
			continue;
		unit = pp_common_multiple(pp_common_multiple(unit, layer.physical_block_bytes),
			layer.stripe_bytes);
	}
	if (stack.fs_type[0]) {
		if (fstatvfs(fd, &vfs) != 0)
			return pp_fail_os(err, errno, "cannot ask the block size of the target");
		unit = pp_common_multiple(unit, vfs.f_bsize);
	}
	if (unit > UINT32_MAX)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "the target's blocks have no common multiple");
	*unit_bytes = (uint32_t)unit;
	return 0;
}
