/* SPDX-License-Identifier: MIT
 *
 * Finding: the drive, whether it reads, who else has it, which file systems libblkid sees. Its
 * low-level probe is used on each device by itself; libblkid's cache and udev's are never believed,
 * since they remember what stood there before the cut.
 */
#include "target_parts.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "clock.h"
#include "drive_sysfs.h"

#define FS_WAIT_MS 10000 /* for partitions and layers that come up after their drive */
#define FS_SLICE_MS 200
#define READ_BYTES 4096

int pp_target_readable(const char *node, uint64_t size_bytes, struct pp_error *err)
{
	uint64_t last = size_bytes / READ_BYTES ? size_bytes / READ_BYTES - 1 : 0;
	uint64_t blocks[3] = {0, last / 2, last};
	int fd = open(node, O_RDONLY | O_DIRECT | O_CLOEXEC);
	int code = 0;
	void *buf;

	/* A device that cannot do direct reads is read the ordinary way. */
	if (fd < 0 && errno == EINVAL)
		fd = open(node, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return pp_fail_os(err, errno, "cannot open '%s'", node);
	if (posix_memalign(&buf, READ_BYTES, READ_BYTES) != 0) {
		close(fd);
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	}
	for (int i = 0; i < 3 && !code; i++) {
		ssize_t n = pread(fd, buf, READ_BYTES, (off_t)(blocks[i] * READ_BYTES));

		if (n != READ_BYTES)
			code = n < 0 ? errno : EIO;
	}
	free(buf);
	close(fd);
	if (code)
		return pp_fail_os(err, code, "drive '%s' does not read", node);
	return 0;
}

static bool stands_on(const char *name, const char *device)
{
	struct pp_stack stack;

	if (pp_drive_of_name(NULL, name, &stack, NULL) != 0)
		return false;
	for (size_t i = 0; i < stack.layer_count; i++)
		if (strcmp(stack.layers[i].name, device) == 0)
			return true;
	return false;
}

/* The mount point of any file system on this device or above it. */
static bool find_mount(const char *device, char *point, size_t point_bytes)
{
	struct pp_mount *mounts;
	size_t count;
	bool found = false;

	if (pp_mounts_read(NULL, &mounts, &count, NULL) != 0)
		return false;
	for (size_t i = 0; i < count && !found; i++) {
		const struct pp_mount *m = &mounts[i];
		char name[PP_DRIVE_NAME_BYTES];

		found = ((m->dev_major &&
			pp_sys_name_of_dev(NULL, m->dev_major, m->dev_minor, name)) ||
			(m->source[0] == '/' && pp_sys_name_of_node(NULL, m->source, name))) &&
			stands_on(name, device);
		if (found)
			snprintf(point, point_bytes, "%s", m->mount_point);
	}
	free(mounts);
	return found;
}

int pp_target_claim(const char *name, int flags, int *fd, enum pp_target_state *state,
	struct pp_error *err)
{
	char point[PP_TARGET_PATH_BYTES], node[PP_DRIVE_NODE_BYTES];
	int claimed;

	pp_sys_node(name, node);
	if (find_mount(name, point, sizeof(point)))
		return pp_target_fail(state, PP_TARGET_REFUSED, err,
			"'%s' is mounted on '%s': unmount it first", node, point);
	/* open(2): O_EXCL without O_CREAT on a block device fails with EBUSY while the system uses it. */
	claimed = open(node, flags | O_EXCL | O_CLOEXEC);
	if (claimed < 0 && errno == EBUSY)
		return pp_target_fail(state, PP_TARGET_REFUSED, err,
			"'%s' is in use (swap, RAID, volume group, or a mount elsewhere)", node);
	if (claimed < 0)
		return pp_target_fail(state, errno == ENXIO || errno == ENOMEDIUM || errno == EIO ?
			PP_TARGET_DRIVE_UNREADABLE : PP_TARGET_FAILED, err, "cannot open '%s': %s", node,
			strerror(errno));
	if (fd)
		*fd = claimed;
	else
		close(claimed);
	return 0;
}

/* ---- libblkid ----------------------------------------------------------------------------- */

static void take_value(blkid_probe probe, const char *key, char *out, size_t out_bytes)
{
	const char *value;

	out[0] = '\0';
	if (blkid_probe_lookup_value(probe, key, &value, NULL) == 0)
		snprintf(out, out_bytes, "%s", value);
}

int pp_fs_probe(const char *name, struct pp_fs_found *found)
{
	char usage[32];
	blkid_probe probe;
	int rc;

	memset(found, 0, sizeof(*found));
	snprintf(found->name, sizeof(found->name), "%s", name);
	pp_sys_node(name, found->node);
	found->partition = PP_PARTITION_UNKNOWN;
	probe = blkid_new_probe_from_filename(found->node);
	if (!probe)
		return errno == ENOMEDIUM || errno == EBUSY ? 0 : -1;
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe,
		BLKID_SUBLKS_TYPE | BLKID_SUBLKS_UUID | BLKID_SUBLKS_USAGE);
	rc = blkid_do_safeprobe(probe);
	if (rc == 0) {
		take_value(probe, "USAGE", usage, sizeof(usage));
		take_value(probe, "UUID", found->uuid, sizeof(found->uuid));
		take_value(probe, "TYPE", found->type, sizeof(found->type));
		rc = strcmp(usage, "filesystem") == 0 ? 1 : 0;
	} else {
		rc = rc == -1 ? -1 : 0; /* 1: nothing; -2: more than one answer, which is none */
	}
	blkid_free_probe(probe);
	return rc;
}

static void append(char *out, size_t out_bytes, const char *text)
{
	size_t used = strlen(out);

	snprintf(out + used, out_bytes - used, "%s%s", used ? ", " : "", text);
}

int pp_target_signatures(const char *node, char *out, size_t out_bytes, struct pp_error *err)
{
	blkid_probe probe = blkid_new_probe_from_filename(node);

	out[0] = '\0';
	if (!probe)
		return pp_fail_os(err, errno, "cannot look for signatures on '%s'", node);
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_BADCSUM);
	blkid_probe_enable_partitions(probe, 1);
	for (;;) {
		char text[64];
		int rc = blkid_do_probe(probe);

		if (rc < 0) {
			blkid_free_probe(probe);
			return pp_fail(err, PP_ERR_SYSTEM, "cannot read the signatures on '%s'", node);
		}
		if (rc > 0)
			break;
		take_value(probe, "TYPE", text, sizeof(text));
		if (!text[0])
			take_value(probe, "PTTYPE", text, sizeof(text));
		append(out, out_bytes, text[0] ? text : "unknown");
		if (strlen(out) + sizeof(text) > out_bytes)
			break;
	}
	blkid_free_probe(probe);
	return 0;
}

bool pp_partition_name(const char *drive, int n, char name[PP_DRIVE_NAME_BYTES])
{
	char (*names)[PP_DRIVE_NAME_BYTES];
	size_t count;
	bool found = n == 0;

	snprintf(name, PP_DRIVE_NAME_BYTES, "%s", drive);
	if (found)
		return true;
	count = pp_sys_names(NULL, &names, "/sys/block/%s", drive);
	for (size_t i = 0; i < count && !found; i++) {
		found = pp_partition_number(drive, names[i]) == n;
		if (found)
			snprintf(name, PP_DRIVE_NAME_BYTES, "%s", names[i]);
	}
	free(names);
	return found;
}

int pp_partition_number(const char *drive, const char *name)
{
	uint64_t n;

	if (strcmp(drive, name) == 0)
		return 0;
	if (!pp_sys_u64(NULL, &n, "/sys/block/%s/%s/partition", drive, name))
		return PP_PARTITION_UNKNOWN;
	return (int)n;
}

/* One look at all that stands on the drive: how many file systems fit the spec. */
static size_t look_for_fs(const struct pp_target_spec *spec, const struct pp_drive_info *drive,
	struct pp_fs_found *found, bool *unreadable)
{
	bool any = strcmp(spec->fs_uuid, "auto") == 0 || !spec->fs_uuid[0];
	char (*names)[PP_DRIVE_NAME_BYTES];
	size_t count, hits = 0;

	*unreadable = false;
	if (pp_drive_descendants(NULL, drive->name, &names, &count, NULL) != 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		struct pp_fs_found one;
		int rc = pp_fs_probe(names[i], &one);

		*unreadable |= rc < 0;
		if (rc != 1 || !(any || strcasecmp(one.uuid, spec->fs_uuid) == 0))
			continue;
		if (any && spec->fs_type[0] && strcmp(one.type, spec->fs_type) != 0)
			continue;
		one.partition = pp_partition_number(drive->name, names[i]);
		*found = one;
		hits++;
	}
	free(names);
	return hits;
}

int pp_fs_find(const struct pp_target_spec *spec, const struct pp_drive_info *drive,
	struct pp_fs_found *found, enum pp_target_state *state, struct pp_error *err)
{
	int64_t wait_ms = spec->wait_ms < 0 || spec->wait_ms > FS_WAIT_MS ? FS_WAIT_MS : spec->wait_ms;
	int64_t deadline_ns = pp_clock_mono_ns() + wait_ms * PP_NS_PER_MS;
	bool unreadable;
	size_t hits;

	while ((hits = look_for_fs(spec, drive, found, &unreadable)) == 0 &&
		pp_clock_mono_ns() < deadline_ns)
		pp_clock_sleep_ms(FS_SLICE_MS);
	if (hits == 1)
		return 0;
	if (hits > 1)
		return pp_target_fail(state, PP_TARGET_REFUSED, err,
			"drive '%s' holds more than one file system %s: name its UUID", drive->serial,
			spec->fs_uuid[0] ? spec->fs_uuid : "auto");
	return pp_target_fail(state, unreadable ? PP_TARGET_DRIVE_UNREADABLE :
		PP_TARGET_FS_UNAVAILABLE, err, "drive '%s' (%s) holds no file system %s%s", drive->serial,
		drive->node, spec->fs_uuid[0] ? spec->fs_uuid : "that can be mounted",
		unreadable ? ", and a device on it does not read" : "");
}
