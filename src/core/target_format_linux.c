/* SPDX-License-Identifier: MIT
 *
 * Making and checking file systems, by the file system's own programs. Lazy initialisation is off:
 * its writes and flushes in the background would stand among the run's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "drive_sysfs.h"
#include "subprocess.h"
#include "target_parts.h"

#define FORMAT_TIMEOUT_MS (10 * 60000)
#define CHECK_TIMEOUT_MS (30 * 60000)
#define ARGS_MAX 8

struct fs_tools {
	const char *type;
	const char *make[ARGS_MAX];  /* the device follows */
	const char *check[ARGS_MAX]; /* read-only; the device follows */
	int damaged_mask;            /* bits of the checker's exit status that mean damage */
	const char *dirty;           /* said of a journal not replayed: then it can judge nothing */
};

#define EXT_MAKE(type) \
	{"mke2fs", "-q", "-F", "-t", type, "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"}
#define EXT_CHECK {"e2fsck", "-fn"}
#define EXT_DIRTY "skipping journal recovery"

static const struct fs_tools tools[] = {
	{"ext4", EXT_MAKE("ext4"), EXT_CHECK, 4, EXT_DIRTY},
	{"ext3", EXT_MAKE("ext3"), EXT_CHECK, 4, EXT_DIRTY},
	{"ext2", EXT_MAKE("ext2"), EXT_CHECK, 4, EXT_DIRTY},
	{"xfs", {"mkfs.xfs", "-q", "-f", "-K"}, {"xfs_repair", "-n"}, 1,
		"metadata changes in a log"},
	{"btrfs", {"mkfs.btrfs", "-q", "-f", "-K"}, {"btrfs", "check", "--readonly"}, 1, NULL},
	{"f2fs", {"mkfs.f2fs", "-q", "-f", "-t", "0"}, {"fsck.f2fs", "--dry-run"}, 1, NULL},
	{"vfat", {"mkfs.fat", "-I"}, {"fsck.fat", "-n"}, 1, NULL},
};

static const struct fs_tools *find_tools(const char *type)
{
	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
		if (strcmp(type, tools[i].type) == 0)
			return &tools[i];
	return NULL;
}

/* Runs the program of the row on the device. -1 only if it could not be run at all. */
static int run_tool(const char *const *row, const char *node, int64_t timeout_ms,
	struct pp_buf *out, struct pp_subprocess_result *result, struct pp_error *err)
{
	const char *argv[ARGS_MAX + 2] = {NULL};
	struct pp_subprocess what = {.argv = argv, .timeout_ms = timeout_ms, .out = out};
	size_t n = 0;

	while (n < ARGS_MAX && row[n]) {
		argv[n] = row[n];
		n++;
	}
	argv[n] = node;
	return pp_subprocess_run(&what, result, err);
}

/* ---- format ------------------------------------------------------------------------------- */

/* Everything that must hold before a byte is destroyed. */
static int may_destroy(const struct pp_target_spec *spec, const struct pp_drive_info *drive,
	const char *name, const char *node, enum pp_target_state *state, struct pp_error *err)
{
	struct pp_error why;
	char found[256];

	if (!spec->destroy[0] || !pp_drive_is(drive, spec->destroy) ||
		!pp_drive_is(drive, spec->serial))
		return pp_target_fail(state, PP_TARGET_REFUSED, err,
			"formatting destroys drive '%s' (%s): allow it with --destroy '%s'", spec->serial,
			node, spec->serial);
	if (drive->read_only)
		return pp_target_fail(state, PP_TARGET_REFUSED, err, "'%s' is read-only", node);
	if (pp_target_claim(name, O_RDWR, NULL, state, err) != 0)
		return -1;
	if (pp_target_signatures(node, found, sizeof(found), &why) != 0)
		return pp_target_fail(state, PP_TARGET_DRIVE_UNREADABLE, err, "%s", why.text);
	if (found[0] && !spec->force)
		return pp_target_fail(state, PP_TARGET_REFUSED, err,
			"'%s' holds data (%s): if it may be destroyed, use --force", node, found);
	return 0;
}

static int sync_device(const char *node, struct pp_error *err)
{
	int fd = open(node, O_RDONLY | O_CLOEXEC);
	int rc, code;

	if (fd < 0)
		return pp_fail_os(err, errno, "cannot open '%s'", node);
	rc = fsync(fd);
	code = errno;
	close(fd);
	return rc == 0 ? 0 : pp_fail_os(err, code, "cannot sync '%s'", node);
}

static int make_fs(const struct fs_tools *row, const char *node, enum pp_target_state *state,
	struct pp_error *err)
{
	struct pp_subprocess_result result;
	struct pp_error why;
	struct pp_buf out;
	int rc = 0;

	pp_buf_init(&out, 4096);
	if (run_tool(row->make, node, FORMAT_TIMEOUT_MS, &out, &result, &why) != 0)
		rc = pp_target_fail(state, PP_TARGET_FAILED, err, "cannot make a %s: %s", row->type,
			why.text);
	else if (result.timed_out || result.exit_status != 0)
		rc = pp_target_fail(state, PP_TARGET_FAILED, err, "%s on '%s' %s: %.300s", row->make[0],
			node, result.timed_out ? "did not end" : "failed", out.data ? out.data : "");
	else if (sync_device(node, &why) != 0)
		rc = pp_target_fail(state, PP_TARGET_FAILED, err, "%s", why.text);
	pp_buf_release(&out);
	return rc;
}

int pp_target_format(struct pp_target_spec *spec, enum pp_target_state *state,
	struct pp_error *err)
{
	int partition = spec->fs_partition == PP_PARTITION_UNKNOWN ? 0 : spec->fs_partition;
	const struct fs_tools *row = find_tools(spec->fs_type);
	char name[PP_DRIVE_NAME_BYTES], node[PP_DRIVE_NODE_BYTES];
	struct pp_drive_info drive;
	struct pp_fs_found fs;

	if (!row)
		return pp_target_fail(state, PP_TARGET_FAILED, err,
			"no program is known that makes a file system '%s'", spec->fs_type);
	if (pp_target_find_drive(spec, &drive, state, err) != 0)
		return -1;
	if (!pp_partition_name(drive.name, partition, name))
		return pp_target_fail(state, PP_TARGET_FAILED, err, "drive '%s' has no partition %d",
			spec->serial, partition);
	pp_sys_node(name, node);
	if (may_destroy(spec, &drive, name, node, state, err) != 0)
		return -1;
	if (make_fs(row, node, state, err) != 0)
		return -1;
	if (pp_fs_probe(name, &fs) != 1 || strcmp(fs.type, spec->fs_type) != 0)
		return pp_target_fail(state, PP_TARGET_FAILED, err,
			"%s has ended well, but '%s' holds no %s: does the drive keep what is written?",
			row->make[0], node, spec->fs_type);
	snprintf(spec->fs_uuid, sizeof(spec->fs_uuid), "%s", fs.uuid);
	spec->fs_partition = partition;
	spec->drive_size_bytes = drive.size_bytes;
	*state = PP_TARGET_OK;
	return 0;
}

/* ---- check -------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3)))
unavailable(struct pp_target_check *check, const char *fmt, ...)
{
	va_list ap;

	check->result = PP_CHECK_UNAVAILABLE;
	va_start(ap, fmt);
	vsnprintf(check->text, sizeof(check->text), fmt, ap);
	va_end(ap);
}

static void run_check(const struct fs_tools *row, const char *node, struct pp_target_check *check)
{
	struct pp_subprocess_result result;
	struct pp_error why;
	struct pp_buf out;

	snprintf(check->program, sizeof(check->program), "%s", row->check[0]);
	pp_buf_init(&out, 1 << 16);
	if (run_tool(row->check, node, CHECK_TIMEOUT_MS, &out, &result, &why) != 0) {
		unavailable(check, "%s", why.text);
	} else if (result.timed_out || result.signal) {
		unavailable(check, "%s %s", row->check[0],
			result.timed_out ? "did not end in time" : "was killed");
	} else if (row->dirty && out.data && strstr(out.data, row->dirty)) {
		/* Mount and unmount replay the journal; before that a checker sees half a change. */
		unavailable(check, "the journal has not been replayed: mount and unmount first");
	} else {
		snprintf(check->text, sizeof(check->text), "%s", out.data ? out.data : "");
		check->result = result.exit_status == 0 ? PP_CHECK_CLEAN :
			result.exit_status & row->damaged_mask ? PP_CHECK_DAMAGED : PP_CHECK_UNAVAILABLE;
	}
	pp_buf_release(&out);
}

int pp_target_check(const struct pp_target_spec *spec, struct pp_target_check *check,
	struct pp_error *err)
{
	enum pp_target_state state = PP_TARGET_OK;
	const struct fs_tools *row;
	struct pp_drive_info drive;
	struct pp_fs_found fs;
	struct pp_error why;

	memset(check, 0, sizeof(*check));
	check->result = PP_CHECK_UNAVAILABLE;
	if (pp_target_find_drive(spec, &drive, &state, err) != 0 ||
		pp_fs_find(spec, &drive, &fs, &state, err) != 0)
		return -1;
	row = find_tools(fs.type);
	if (!row)
		unavailable(check, "no program is known that checks a file system '%s'", fs.type);
	else if (pp_target_claim(fs.name, O_RDONLY, NULL, &state, &why) != 0)
		unavailable(check, "%s", why.text);
	else
		run_check(row, fs.node, check);
	return 0;
}
