/* SPDX-License-Identifier: MIT
 *
 * What lies beneath: a walk down sysfs. A partition's folder lies in its disk's; dm, md and bcache
 * name what they stand on in slaves/; loop names a file, and the walk goes on beneath that file;
 * the devices of a btrfs stand in /sys/fs/btrfs/UUID/devices/.
 */
#include "drive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "drive_sysfs.h"

#define DEPTH_MAX 12

static void walk_device(const struct pp_sysroot *sys, const char *name, unsigned depth,
	struct pp_stack *stack);
static void walk_path(const struct pp_sysroot *sys, const char *path, unsigned depth,
	struct pp_stack *stack);

static void __attribute__((format(printf, 2, 3)))
give_up(struct pp_stack *stack, const char *fmt, ...)
{
	va_list ap;

	if (stack->incomplete)
		return;
	stack->incomplete = true;
	va_start(ap, fmt);
	vsnprintf(stack->incomplete_text, sizeof(stack->incomplete_text), fmt, ap);
	va_end(ap);
}

/* False if this device has been walked already. */
static bool add_layer(struct pp_stack *stack, const char *name, const char *kind, unsigned depth,
	bool whole)
{
	struct pp_stack_layer *layer;

	for (size_t i = 0; i < stack->layer_count; i++)
		if (strcmp(stack->layers[i].name, name) == 0 && whole == stack->layers[i].whole)
			return false;
	if (stack->layer_count == PP_STACK_MAX || depth > DEPTH_MAX) {
		give_up(stack, "more layers beneath than can be followed");
		return false;
	}
	layer = &stack->layers[stack->layer_count++];
	snprintf(layer->name, sizeof(layer->name), "%s", name);
	layer->kind = kind;
	layer->depth = depth;
	layer->whole = whole;
	return true;
}

static void add_disk(struct pp_stack *stack, const char *name)
{
	if (stack->disk_count < PP_STACK_MAX)
		snprintf(stack->disks[stack->disk_count++], sizeof(stack->disks[0]), "%s", name);
}

static void walk_loop(const struct pp_sysroot *sys, const char *dir, const char *name,
	unsigned depth, struct pp_stack *stack)
{
	char file[PATH_MAX];

	if (!pp_sys_text(sys, file, sizeof(file), "%s/loop/backing_file", dir))
		give_up(stack, "'%s' has no backing file", name);
	else
		walk_path(sys, file, depth + 1, stack);
}

/* The disk that a partition's folder lies in. */
static void walk_partition(const struct pp_sysroot *sys, char *dir, const char *name,
	unsigned depth, struct pp_stack *stack)
{
	char *slash = strrchr(dir, '/');

	if (!add_layer(stack, name, "partition", depth, false))
		return;
	*slash = '\0';
	slash = strrchr(dir, '/');
	if (slash)
		walk_device(sys, slash + 1, depth + 1, stack);
}

static void walk_device(const struct pp_sysroot *sys, const char *name, unsigned depth,
	struct pp_stack *stack)
{
	char (*slaves)[PP_DRIVE_NAME_BYTES];
	char dir[PATH_MAX];
	const char *kind;
	size_t count;

	if (!pp_sys_block_dir(sys, name, dir)) {
		give_up(stack, "'%s' is no block device of this kernel", name);
		return;
	}
	if (pp_sys_exists(sys, "%s/partition", dir)) {
		walk_partition(sys, dir, name, depth, stack);
		return;
	}
	count = pp_sys_names(sys, &slaves, "%s/slaves", dir);
	kind = pp_sys_exists(sys, "%s/dm", dir) ? "dm" :
		pp_sys_exists(sys, "%s/md", dir) ? "md" :
		pp_sys_exists(sys, "%s/loop", dir) ? "loop" : count ? "stack" : "disk";
	if (add_layer(stack, name, kind, depth, true)) {
		for (size_t i = 0; i < count; i++)
			walk_device(sys, slaves[i], depth + 1, stack);
		if (strcmp(kind, "loop") == 0)
			walk_loop(sys, dir, name, depth, stack);
		else if (!count)
			add_disk(stack, name);
	}
	free(slaves);
}

/* All devices of the btrfs that this one belongs to; false if sysfs does not know it. */
static bool walk_btrfs(const struct pp_sysroot *sys, const char *member, unsigned depth,
	struct pp_stack *stack)
{
	char (*fs)[PP_DRIVE_NAME_BYTES];
	size_t fs_count = pp_sys_names(sys, &fs, "/sys/fs/btrfs");
	bool found = false;

	for (size_t i = 0; i < fs_count && !found; i++) {
		char (*devices)[PP_DRIVE_NAME_BYTES];
		size_t count;

		if (!pp_sys_exists(sys, "/sys/fs/btrfs/%s/devices/%s", fs[i], member))
			continue;
		found = true;
		count = pp_sys_names(sys, &devices, "/sys/fs/btrfs/%s/devices", fs[i]);
		for (size_t k = 0; k < count; k++)
			walk_device(sys, devices[k], depth, stack);
		free(devices);
	}
	free(fs);
	return found;
}

/* The value of "key=" in a list of mount options. */
static bool option_value(const char *options, const char *key, char *out, size_t out_bytes)
{
	size_t key_bytes = strlen(key);

	for (const char *at = options; *at;) {
		size_t n = strcspn(at, ",");

		if (n > key_bytes && strncmp(at, key, key_bytes) == 0) {
			snprintf(out, out_bytes, "%.*s", (int)(n - key_bytes), at + key_bytes);
			return true;
		}
		at += n + (at[n] == ',');
	}
	return false;
}

/* A journal or log on a device of its own is beneath the file system too. */
static void walk_extra_devices(const struct pp_sysroot *sys, const struct pp_mount *m,
	unsigned depth, struct pp_stack *stack)
{
	static const char *const keys[] = {"logdev=", "rtdev=", "journal_path="};
	char node[256], name[PP_DRIVE_NAME_BYTES];

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (option_value(m->super_options, keys[i], node, sizeof(node)) &&
			pp_sys_name_of_node(sys, node, name))
			walk_device(sys, name, depth, stack);
}

static void walk_mount(const struct pp_sysroot *sys, const struct pp_mount *m, unsigned depth,
	struct pp_stack *stack)
{
	char name[PP_DRIVE_NAME_BYTES], upper[PATH_MAX];

	if (depth)
		add_layer(stack, m->fs_type, "file system", depth++, false);
	if (m->dev_major && pp_sys_name_of_dev(sys, m->dev_major, m->dev_minor, name)) {
		walk_device(sys, name, depth, stack);
	} else if (m->source[0] == '/' && pp_sys_name_of_node(sys, m->source, name)) {
		if (strcmp(m->fs_type, "btrfs") != 0 || !walk_btrfs(sys, name, depth, stack))
			walk_device(sys, name, depth, stack);
	} else if (strcmp(m->fs_type, "overlay") == 0 &&
		option_value(m->super_options, "upperdir=", upper, sizeof(upper))) {
		/* One deeper: the stack's file system stays the overlay, its "volatile" with it. */
		walk_path(sys, upper, depth + 1, stack);
	} else {
		give_up(stack, "no block device of this machine is beneath a %s file system",
			m->fs_type);
	}
	walk_extra_devices(sys, m, depth, stack);
}

/* The mount that an open file is on: proc(5), fdinfo, mnt_id. */
static int mount_id_of_fd(int fd)
{
	char path[64], line[128];
	int id = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (id < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "mnt_id: %d", &id) != 1)
			id = -1;
	fclose(f);
	return id;
}

/* By name alone: the longest mount point that holds the path; the later of two covers the other. */
static const struct pp_mount *mount_of_name(const struct pp_mount *mounts, size_t count,
	const char *path)
{
	const struct pp_mount *best = NULL;
	size_t best_bytes = 0;

	for (size_t i = 0; i < count; i++) {
		size_t n = strlen(mounts[i].mount_point);

		if (n == 1)
			n = 0; /* "/" holds everything */
		if (strncmp(path, mounts[i].mount_point, n) != 0 || (path[n] && path[n] != '/'))
			continue;
		if (!best || n >= best_bytes) {
			best = &mounts[i];
			best_bytes = n;
		}
	}
	return best;
}

static void take_mount(const struct pp_mount *m, struct pp_stack *stack)
{
	const char *super = m->super_options;

	/* Both lists begin with rw; once is enough. */
	if (strncmp(super, "rw,", 3) == 0 && strncmp(m->options, "rw", 2) == 0)
		super += 3;
	snprintf(stack->fs_type, sizeof(stack->fs_type), "%s", m->fs_type);
	snprintf(stack->fs_source, sizeof(stack->fs_source), "%s", m->source);
	snprintf(stack->fs_root, sizeof(stack->fs_root), "%s", m->root);
	snprintf(stack->mount_point, sizeof(stack->mount_point), "%s", m->mount_point);
	if (strcmp(super, "rw") == 0)
		super = "";
	snprintf(stack->mount_options, sizeof(stack->mount_options), "%s%s%s", m->options,
		*super ? "," : "", super);
}

/* fd -1: by path alone. depth 0 also fills the file system's part of the stack. */
static int walk_file(const struct pp_sysroot *sys, int fd, const char *path, unsigned depth,
	struct pp_stack *stack, struct pp_error *err)
{
	const struct pp_mount *m;
	struct pp_mount *mounts;
	size_t count;

	if (pp_mounts_read(sys, &mounts, &count, err) != 0)
		return -1;
	m = fd >= 0 ? pp_mounts_by_id(mounts, count, mount_id_of_fd(fd)) :
		mount_of_name(mounts, count, path);
	if (!m) {
		free(mounts);
		return pp_fail(err, PP_ERR_SYSTEM, "no mount of this process holds '%s'", path);
	}
	if (!depth)
		take_mount(m, stack);
	/* In a container the upper folder's path is one of the host: here it leads to itself. */
	if (depth && strcmp(m->fs_type, "overlay") == 0 && strcmp(stack->fs_type, "overlay") == 0 &&
		strcmp(m->mount_point, stack->mount_point) == 0)
		give_up(stack, "the overlay's upper folder '%s' is outside this container", path);
	else
		walk_mount(sys, m, depth, stack);
	free(mounts);
	return 0;
}

static int walk_fd(int fd, const char *path, unsigned depth, struct pp_stack *stack,
	struct pp_error *err)
{
	char name[PP_DRIVE_NAME_BYTES];
	struct stat st;

	if (fstat(fd, &st) != 0)
		return pp_fail_os(err, errno, "cannot stat '%s'", path);
	if (!S_ISBLK(st.st_mode))
		return walk_file(&pp_sysroot_live, fd, path, depth, stack, err);
	if (!pp_sys_name_of_dev(NULL, major(st.st_rdev), minor(st.st_rdev), name))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "the kernel has no device for '%s'", path);
	walk_device(&pp_sysroot_live, name, depth, stack);
	return 0;
}

/* Beneath a backing file or an overlay's upper folder. */
static void walk_path(const struct pp_sysroot *sys, const char *path, unsigned depth,
	struct pp_stack *stack)
{
	struct pp_error why;
	int rc, fd = -1;

	if (depth > DEPTH_MAX) {
		give_up(stack, "more layers beneath than can be followed");
		return;
	}
	if (pp_sys_living(sys)) {
		fd = open(path, O_PATH | O_CLOEXEC);
		if (fd < 0) {
			give_up(stack, "'%s' beneath cannot be opened from here", path);
			return;
		}
		rc = walk_fd(fd, path, depth, stack, &why);
		close(fd);
	} else {
		rc = walk_file(sys, -1, path, depth, stack, &why);
	}
	if (rc != 0)
		give_up(stack, "%s", why.text);
}

int pp_drive_of_fd(int fd, const char *path, struct pp_stack *stack, struct pp_error *err)
{
	memset(stack, 0, sizeof(*stack));
	return walk_fd(fd, path, 0, stack, err);
}

int pp_drive_of_name(const struct pp_sysroot *sys, const char *name, struct pp_stack *stack,
	struct pp_error *err)
{
	memset(stack, 0, sizeof(*stack));
	sys = pp_sys(sys);
	walk_device(sys, name, 0, stack);
	if (!stack->layer_count)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "there is no block device '%s'", name);
	return 0;
}

int pp_drive_of_path(const struct pp_sysroot *sys, const char *path, struct pp_stack *stack,
	struct pp_error *err)
{
	char name[PP_DRIVE_NAME_BYTES];
	int fd, rc;

	memset(stack, 0, sizeof(*stack));
	sys = pp_sys(sys);
	if (!pp_sys_living(sys)) {
		if (pp_sys_name_of_node(sys, path, name))
			return pp_drive_of_name(sys, name, stack, err);
		return walk_file(sys, -1, path, 0, stack, err);
	}
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return pp_fail_os(err, errno, "cannot open '%s'", path);
	rc = walk_fd(fd, path, 0, stack, err);
	close(fd);
	return rc;
}

/* ---- upwards ------------------------------------------------------------------------------ */

struct name_list {
	char (*names)[PP_DRIVE_NAME_BYTES];
	size_t count;
};

/* False if it is there already, or memory ran out (then names is NULL). */
static bool add_name(struct name_list *list, const char *name)
{
	void *grown;

	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->names[i], name) == 0)
			return false;
	grown = realloc(list->names, (list->count + 1) * sizeof(*list->names));
	if (!grown) {
		free(list->names);
		*list = (struct name_list){NULL, 0};
		return false;
	}
	list->names = grown;
	snprintf(list->names[list->count++], sizeof(*list->names), "%s", name);
	return true;
}

static void climb(const struct pp_sysroot *sys, const char *name, unsigned depth,
	struct name_list *list)
{
	char (*names)[PP_DRIVE_NAME_BYTES];
	char dir[PATH_MAX];
	size_t count;

	if (depth > DEPTH_MAX || !pp_sys_block_dir(sys, name, dir) || !add_name(list, name))
		return;
	count = pp_sys_names(sys, &names, "%s", dir);
	for (size_t i = 0; i < count; i++)
		if (pp_sys_exists(sys, "%s/%s/partition", dir, names[i]))
			climb(sys, names[i], depth + 1, list);
	free(names);
	count = pp_sys_names(sys, &names, "%s/holders", dir);
	for (size_t i = 0; i < count; i++)
		climb(sys, names[i], depth + 1, list);
	free(names);
}

int pp_drive_descendants(const struct pp_sysroot *sys, const char *name,
	char (**names)[PP_DRIVE_NAME_BYTES], size_t *count, struct pp_error *err)
{
	struct name_list list = {NULL, 0};

	climb(pp_sys(sys), name, 0, &list);
	*names = list.names;
	*count = list.count;
	if (!list.count)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "there is no block device '%s'", name);
	return 0;
}

static bool listed(const struct name_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->names[i], name) == 0)
			return true;
	return false;
}

/* dm/uuid of LVM is "LVM-", 32 characters of the group, 32 of the volume. */
static bool volume_group(const struct pp_sysroot *sys, const char *name, char group[33])
{
	char uuid[256];

	if (!pp_sys_text(sys, uuid, sizeof(uuid), "/sys/class/block/%s/dm/uuid", name) ||
		strncmp(uuid, "LVM-", 4) != 0 || strlen(uuid) < 4 + 32)
		return false;
	snprintf(group, 33, "%.32s", uuid + 4);
	return true;
}

static bool share_group(const struct pp_sysroot *sys, const struct name_list *a,
	const struct name_list *b)
{
	for (size_t i = 0; i < a->count; i++) {
		char group_a[33], group_b[33];

		if (!volume_group(sys, a->names[i], group_a))
			continue;
		for (size_t k = 0; k < b->count; k++)
			if (volume_group(sys, b->names[k], group_b) && strcmp(group_a, group_b) == 0)
				return true;
	}
	return false;
}

static bool share_btrfs(const struct pp_sysroot *sys, const struct name_list *a,
	const struct name_list *b)
{
	char (*fs)[PP_DRIVE_NAME_BYTES];
	size_t fs_count = pp_sys_names(sys, &fs, "/sys/fs/btrfs");
	bool shared = false;

	for (size_t i = 0; i < fs_count && !shared; i++) {
		char (*devices)[PP_DRIVE_NAME_BYTES];
		size_t count = pp_sys_names(sys, &devices, "/sys/fs/btrfs/%s/devices", fs[i]);
		bool in_a = false, in_b = false;

		for (size_t k = 0; k < count; k++) {
			in_a |= listed(a, devices[k]);
			in_b |= listed(b, devices[k]);
		}
		free(devices);
		shared = in_a && in_b;
	}
	free(fs);
	return shared;
}

/* Two loop devices, say, whose files lie on one disk: a flush of one reaches the other. */
static bool share_disk(const struct pp_sysroot *sys, const char *a, const char *b, char *disk,
	size_t disk_bytes)
{
	struct pp_stack below_a, below_b;

	if (pp_drive_of_name(sys, a, &below_a, NULL) != 0 ||
		pp_drive_of_name(sys, b, &below_b, NULL) != 0)
		return false;
	for (size_t i = 0; i < below_a.disk_count; i++)
		for (size_t k = 0; k < below_b.disk_count; k++)
			if (strcmp(below_a.disks[i], below_b.disks[k]) == 0) {
				snprintf(disk, disk_bytes, "%s", below_a.disks[i]);
				return true;
			}
	return false;
}

static int compare_drives(const struct pp_sysroot *sys, const char *a, const char *b,
	const struct name_list *over_a, const struct name_list *over_b, char *why, size_t why_bytes,
	struct pp_error *err)
{
	struct pp_drive_info info_a, info_b;
	char disk[PP_DRIVE_NAME_BYTES];

	for (size_t i = 0; i < over_a->count; i++)
		if (listed(over_b, over_a->names[i])) {
			snprintf(why, why_bytes, "%s and %s are both beneath %s", a, b, over_a->names[i]);
			return 1;
		}
	if (share_group(sys, over_a, over_b)) {
		snprintf(why, why_bytes, "%s and %s belong to one volume group", a, b);
		return 1;
	}
	if (share_btrfs(sys, over_a, over_b)) {
		snprintf(why, why_bytes, "%s and %s carry one btrfs", a, b);
		return 1;
	}
	if (share_disk(sys, a, b, disk, sizeof(disk))) {
		snprintf(why, why_bytes, "%s and %s both lie on %s", a, b, disk);
		return 1;
	}
	if (pp_drive_read(sys, a, &info_a, err) != 0 || pp_drive_read(sys, b, &info_b, err) != 0)
		return -1;
	if (info_a.raid_controller[0] && info_b.raid_controller[0] &&
		info_a.scsi_host == info_b.scsi_host) {
		snprintf(why, why_bytes, "%s and %s share the cache of one RAID card (%s)", a, b,
			info_a.raid_controller);
		return 1;
	}
	return 0;
}

int pp_drives_share(const struct pp_sysroot *sys, const char *a, const char *b, char *why,
	size_t why_bytes, struct pp_error *err)
{
	struct name_list over_a = {NULL, 0}, over_b = {NULL, 0};
	int rc = -1;

	sys = pp_sys(sys);
	why[0] = '\0';
	if (pp_drive_descendants(sys, a, &over_a.names, &over_a.count, err) == 0 &&
		pp_drive_descendants(sys, b, &over_b.names, &over_b.count, err) == 0)
		rc = compare_drives(sys, a, b, &over_a, &over_b, why, why_bytes, err);
	free(over_a.names);
	free(over_b.names);
	return rc;
}

/* ---- the running system ------------------------------------------------------------------- */

static bool system_mount(const char *mount_point)
{
	static const char *const points[] = {"/", "/boot", "/boot/efi", "/efi", "/usr", "/var"};

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		if (strcmp(mount_point, points[i]) == 0)
			return true;
	return false;
}

static bool swap_is_on(const struct pp_sysroot *sys, const char *name, char *why, size_t why_bytes)
{
	char text[4096], *save = NULL, *line;

	if (!pp_sys_text(sys, text, sizeof(text), "/proc/swaps"))
		return false;
	strtok_r(text, "\n", &save); /* the heading */
	while ((line = strtok_r(NULL, "\n", &save)) != NULL) {
		struct pp_stack stack;

		line[strcspn(line, " \t")] = '\0';
		if (pp_drive_of_path(sys, line, &stack, NULL) == 0 && pp_stack_has(&stack, name)) {
			snprintf(why, why_bytes, "%s carries swap (%s)", name, line);
			return true;
		}
	}
	return false;
}

int pp_drive_carries_system(const struct pp_sysroot *sys, const char *name, char *why,
	size_t why_bytes, struct pp_error *err)
{
	struct pp_mount *mounts;
	size_t count;
	int rc = 0;

	sys = pp_sys(sys);
	why[0] = '\0';
	if (pp_mounts_read(sys, &mounts, &count, err) != 0)
		return -1;
	for (size_t i = 0; i < count && !rc; i++) {
		struct pp_stack stack = {.layer_count = 0};

		if (!system_mount(mounts[i].mount_point))
			continue;
		walk_mount(sys, &mounts[i], 0, &stack);
		if (pp_stack_has(&stack, name)) {
			snprintf(why, why_bytes, "%s carries %s of the running system", name,
				mounts[i].mount_point);
			rc = 1;
		}
	}
	free(mounts);
	if (!rc && swap_is_on(sys, name, why, why_bytes))
		rc = 1;
	return rc;
}
