/* SPDX-License-Identifier: MIT
 *
 * Goal: a target is proven to be the planned one, or refused for the right reason: M2.7, M6.1,
 * M6.3, and the rules of danger. Method: loop devices on sparse files, as root; the backing file's
 * path is the serial. The loop devices clear themselves (autoclear) should this program die.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/core/clock.h"
#include "src/core/kmsg.h"
#include "src/core/subprocess.h"
#include "src/core/target.h"
#include "tests/janitor.h"

#define MB (1024 * 1024)

static char folder[] = "/tmp/plugpull-target.XXXXXX";
static char image[64], mount_dir[64], other_dir[64], node[32];
static int loop_fd = -1;
static const char *why_skip;

/* ---- the drive ---------------------------------------------------------------------------- */

static void clean_up(void)
{
	umount2(mount_dir, MNT_DETACH);
	umount2(other_dir, MNT_DETACH);
	if (loop_fd >= 0)
		close(loop_fd);
	loop_fd = -1;
	unlink(image);
	rmdir(mount_dir);
	rmdir(other_dir);
}

static void on_signal(int number)
{
	clean_up();
	rmdir(folder);
	_exit(128 + number);
}

/* Another program may take the free one first. */
static int attach_once(int control, int file)
{
	struct loop_config config = {.fd = (uint32_t)file, .block_size = 512};
	int n = ioctl(control, LOOP_CTL_GET_FREE);

	if (n < 0)
		return -1;
	snprintf(node, sizeof(node), "/dev/loop%d", n);
	loop_fd = open(node, O_RDWR | O_CLOEXEC);
	if (loop_fd < 0)
		return -1;
	config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_PARTSCAN;
	if (ioctl(loop_fd, LOOP_CONFIGURE, &config) == 0)
		return 0;
	close(loop_fd);
	loop_fd = -1;
	return -1;
}

static int attach(uint64_t bytes)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int file = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int rc = -1;

	if (control >= 0 && file >= 0 && ftruncate(file, (off_t)bytes) == 0)
		for (int i = 0; i < 20 && rc != 0; i++)
			rc = attach_once(control, file);
	close(control);
	close(file);
	return rc;
}

static int set_up_bytes(uint64_t bytes)
{
	if (why_skip)
		return 0;
	mkdir(mount_dir, 0700);
	mkdir(other_dir, 0700);
	return attach(bytes);
}

static int set_up(void **state)
{
	(void)state;
	return set_up_bytes(64 * MB);
}

static int set_up_large(void **state)
{
	(void)state;
	return set_up_bytes(384 * (uint64_t)MB);
}

static int tear_down(void **state)
{
	(void)state;
	clean_up();
	return 0;
}

#define NEEDS_LOOP() \
	do { \
		if (why_skip) { \
			print_message("skipped: %s\n", why_skip); \
			skip(); \
		} \
	} while (0)

static bool installed(const char *program)
{
	char path[256];

	if (pp_subprocess_find(program, path, sizeof(path)))
		return true;
	print_message("skipped: '%s' is not installed\n", program);
	return false;
}

static struct pp_target_spec raw_spec(void)
{
	struct pp_target_spec spec;

	pp_target_spec_init(&spec);
	spec.kind = PP_TARGET_RAW;
	spec.wait_ms = 0;
	snprintf(spec.serial, sizeof(spec.serial), "%s", image);
	return spec;
}

static struct pp_target_spec file_spec(const char *fs_type)
{
	struct pp_target_spec spec = raw_spec();

	spec.kind = PP_TARGET_FILE;
	snprintf(spec.fs_type, sizeof(spec.fs_type), "%s", fs_type);
	snprintf(spec.mount_dir, sizeof(spec.mount_dir), "%s", mount_dir);
	snprintf(spec.directory, sizeof(spec.directory), "plugpull/run");
	return spec;
}

/* Formats the drive; the spec then has UUID, place and size on record. */
static struct pp_target_spec formatted(const char *fs_type)
{
	struct pp_target_spec spec = file_spec(fs_type);
	enum pp_target_state state;
	struct pp_error err = {.text = ""};

	snprintf(spec.destroy, sizeof(spec.destroy), "%s", image);
	if (pp_target_format(&spec, &state, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(state, PP_TARGET_OK);
	assert_int_not_equal(strlen(spec.fs_uuid), 0);
	assert_int_not_equal(spec.drive_size_bytes, 0);
	return spec;
}

static void expect_state(const struct pp_target_spec *spec, enum pp_target_state want,
	const char *text)
{
	struct pp_error err = {.text = ""};
	struct pp_target target;
	int rc = pp_target_prove(spec, &target, &err);

	if (target.state != want)
		print_error("%s: %s\n", pp_target_state_name(target.state), err.text);
	pp_target_release(&target);
	assert_int_equal(target.state, want);
	assert_int_equal(rc, want == PP_TARGET_OK ? 0 : -1);
	if (text && !strstr(err.text, text))
		fail_msg("'%s' does not say '%s'", err.text, text);
}

static void overwrite(uint64_t offset, int byte, size_t bytes)
{
	char *block = malloc(bytes);
	int fd = open(node, O_WRONLY | O_CLOEXEC);

	assert_non_null(block);
	memset(block, byte, bytes);
	assert_int_equal(pwrite(fd, block, bytes, (off_t)offset), bytes);
	assert_int_equal(fsync(fd), 0);
	close(fd);
	free(block);
}

/* ---- raw ---------------------------------------------------------------------------------- */

static void test_raw(void **state)
{
	struct pp_target_spec spec = raw_spec();
	struct pp_target target;
	struct pp_error err = {.text = ""};
	int fd;

	(void)state;
	NEEDS_LOOP();
	assert_int_equal(pp_target_prove(&spec, &target, &err), 0);
	assert_int_equal(target.state, PP_TARGET_OK);
	assert_string_equal(target.path, node);
	assert_int_equal(target.size_bytes, 64 * MB);
	assert_int_equal(target.unit_bytes % sysconf(_SC_PAGESIZE), 0);
	/* A lane opens the device itself, and proves what it has opened. */
	assert_int_equal(pp_target_open(&target, NULL, O_RDWR | O_DIRECT, 0, &fd, &err), 0);
	close(fd);
	/* It is ours alone: nobody mounts or claims it meanwhile. */
	expect_state(&spec, PP_TARGET_REFUSED, "in use");
	/* The careless writer: a regular file, and another device, are not the target. */
	fd = open(image, O_RDONLY | O_CLOEXEC);
	assert_int_equal(pp_target_prove_fd(&target, fd, &err), -1);
	assert_int_equal(err.class, PP_ERR_REFUSED);
	close(fd);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(pp_target_prove_fd(&target, fd, &err), -1);
	close(fd);
	assert_int_equal(pp_target_probe(&target, &err), 0);
	pp_target_release(&target);
	assert_int_equal(target.fd, -1);
	expect_state(&spec, PP_TARGET_OK, NULL);
}

static void test_raw_signature(void **state)
{
	struct pp_target_spec spec;

	(void)state;
	NEEDS_LOOP();
	if (!installed("mke2fs"))
		skip();
	formatted("ext4");
	spec = raw_spec();
	expect_state(&spec, PP_TARGET_REFUSED, "ext4");
	spec.force = true;
	expect_state(&spec, PP_TARGET_OK, NULL);
}

static void test_drive_states(void **state)
{
	struct pp_target_spec spec = raw_spec();

	(void)state;
	NEEDS_LOOP();
	snprintf(spec.serial, sizeof(spec.serial), "%s.", image);
	expect_state(&spec, PP_TARGET_DRIVE_GONE, spec.serial);
	spec.serial[0] = '\0';
	expect_state(&spec, PP_TARGET_FAILED, "names no drive");
	spec = raw_spec();
	spec.drive_size_bytes = 64 * MB + 512;
	expect_state(&spec, PP_TARGET_DRIVE_CHANGED, "bytes");
	spec = raw_spec();
	spec.size_bytes = 65 * MB;
	expect_state(&spec, PP_TARGET_DRIVE_CHANGED, "less than planned");
}

/* M6.1: after the cut the drive is gone, or is another. */
static void test_drive_vanishes(void **state)
{
	struct pp_target_spec spec = raw_spec();
	struct pp_target target;
	struct pp_error err = {.text = ""};

	(void)state;
	NEEDS_LOOP();
	assert_int_equal(pp_target_prove(&spec, &target, &err), 0);
	snprintf(target.drive.serial, sizeof(target.drive.serial), "another");
	assert_int_equal(pp_target_probe(&target, &err), -1);
	assert_int_equal(target.state, PP_TARGET_DRIVE_CHANGED);
	pp_target_release(&target);
	close(loop_fd); /* the last user: autoclear */
	loop_fd = -1;
	snprintf(target.drive.serial, sizeof(target.drive.serial), "%s", image);
	assert_int_equal(pp_target_probe(&target, &err), -1);
	assert_true(target.state == PP_TARGET_DRIVE_GONE || target.state == PP_TARGET_DRIVE_CHANGED);
	expect_state(&spec, PP_TARGET_DRIVE_GONE, NULL);
}

/* Counts the I/O errors of one disk that the real kernel log has told since the watch was opened. */
static int count_io_errors(struct pp_kmsg *watch)
{
	struct pp_kmsg_event event;
	int count = 0;

	while (pp_kmsg_poll(watch, &event, NULL) == 1)
		count += event.class == PP_KMSG_IO_ERROR;
	return count;
}

/*
 * A drive that is there and does not read is no file system's damage. The loop driver fails reads
 * beyond the end of a file that has shrunk beneath it, and the kernel says so in its log.
 */
static void test_unreadable(void **state)
{
	struct pp_target_spec spec;
	struct pp_kmsg watch, other;
	struct pp_error err = {.text = ""};
	int tries, errors;
	bool watching;

	(void)state;
	NEEDS_LOOP();
	spec = installed("mke2fs") ? formatted("ext4") : raw_spec();
	watching = pp_kmsg_open(&watch, node + 5, &err) == 0 &&
		pp_kmsg_open(&other, "loop99", &err) == 0;
	assert_int_equal(truncate(image, 32 * MB), 0);
	expect_state(&spec, PP_TARGET_DRIVE_UNREADABLE, "does not read");
	if (!watching) {
		print_message("skipped: %s\n", err.text);
		skip();
	}
	/* The kernel says only so many errors in 5 s, of all disks together: others may have had them. */
	for (tries = 0; (errors = count_io_errors(&watch)) == 0 && tries < 20; tries++) {
		pp_clock_sleep_ms(1000);
		expect_state(&spec, PP_TARGET_DRIVE_UNREADABLE, "does not read");
	}
	assert_int_not_equal(errors, 0);
	assert_int_equal(count_io_errors(&other), 0);
	pp_kmsg_close(&watch);
	pp_kmsg_close(&other);
}

/* The drive of the running system. Nothing is opened for writing here. */
static void test_boot_drive(void **state)
{
	struct pp_target_spec spec = raw_spec();
	struct pp_drive_info info;
	struct pp_stack stack;
	struct pp_error err;

	(void)state;
	if (pp_drive_of_path(NULL, "/", &stack, &err) != 0 || stack.disk_count != 1 ||
		pp_drive_read(NULL, stack.disks[0], &info, &err) != 0 || !info.serial[0]) {
		print_message("skipped: / is on no single drive with a serial\n");
		skip();
	}
	snprintf(spec.serial, sizeof(spec.serial), "%s", info.serial);
	expect_state(&spec, PP_TARGET_REFUSED, "--boot-drive");
}

/* ---- file --------------------------------------------------------------------------------- */

static void write_something(const struct pp_target *target)
{
	struct pp_error err = {.text = ""};
	int fd;

	assert_int_equal(pp_target_open(target, "f", O_RDWR | O_CREAT, 0600, &fd, &err), 0);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(close(fd), 0);
	fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	assert_int_equal(pp_target_prove_fd(target, fd, &err), -1);
	close(fd);
}

static void full_round(const char *fs_type, const char *checker)
{
	struct pp_target_spec spec = formatted(fs_type);
	struct pp_target_check check;
	struct pp_target target;
	struct pp_error err = {.text = ""};
	char path[128];
	bool lazy;

	for (int round = 0; round < 2; round++) {
		if (pp_target_prove(&spec, &target, &err) != 0)
			fail_msg("%s", err.text);
		assert_string_equal(target.fs_type, fs_type);
		assert_string_equal(target.fs_uuid, spec.fs_uuid);
		assert_string_equal(target.fs_node, node);
		assert_int_equal(target.fs_partition, 0);
		assert_string_equal(target.complaints, "");
		assert_false(target.no_barrier);
		assert_int_equal(target.unit_bytes % 4096, 0);
		assert_non_null(strstr(target.mount_options, "rw"));
		snprintf(path, sizeof(path), "%s/plugpull/run", mount_dir);
		assert_string_equal(target.path, path);
		write_something(&target);
		/* A mounted file system is not checked. */
		assert_int_equal(pp_target_check(&spec, &check, &err), 0);
		assert_int_equal(check.result, PP_CHECK_UNAVAILABLE);
		assert_int_equal(pp_target_unmount(&target, 10000, &lazy, &err), 0);
		assert_false(lazy);
	}
	if (!installed(checker))
		return;
	assert_int_equal(pp_target_check(&spec, &check, &err), 0);
	if (check.result != PP_CHECK_CLEAN)
		fail_msg("%s: %s", check.program, check.text);
}

static void test_ext4(void **state)
{
	(void)state;
	NEEDS_LOOP();
	if (!installed("mke2fs"))
		skip();
	full_round("ext4", "e2fsck");
}

static bool kernel_has(const char *fs_type)
{
	char line[128];
	bool found = false;
	FILE *f = fopen("/proc/filesystems", "r");

	while (f && !found && fgets(line, sizeof(line), f))
		found = line[0] == '\t' && strncmp(line + 1, fs_type, strlen(fs_type)) == 0;
	if (f)
		fclose(f);
	if (!found)
		print_message("skipped: this kernel has no %s\n", fs_type);
	return found;
}

static void test_xfs(void **state)
{
	(void)state;
	NEEDS_LOOP();
	if (!installed("mkfs.xfs") || !kernel_has("xfs"))
		skip();
	full_round("xfs", "xfs_repair");
}

static void test_btrfs(void **state)
{
	(void)state;
	NEEDS_LOOP();
	if (!installed("mkfs.btrfs") || !kernel_has("btrfs"))
		skip();
	full_round("btrfs", "btrfs");
}

static void test_format_refuses(void **state)
{
	struct pp_target_spec spec = file_spec("ext4");
	enum pp_target_state is;
	struct pp_error err = {.text = ""};

	(void)state;
	NEEDS_LOOP();
	assert_int_equal(pp_target_format(&spec, &is, &err), -1);
	assert_int_equal(is, PP_TARGET_REFUSED);
	snprintf(spec.destroy, sizeof(spec.destroy), "%.*s", (int)strlen(image) - 1, image);
	assert_int_equal(pp_target_format(&spec, &is, &err), -1);
	assert_int_equal(is, PP_TARGET_REFUSED);
	snprintf(spec.destroy, sizeof(spec.destroy), "%s", image);
	snprintf(spec.fs_type, sizeof(spec.fs_type), "ext");
	assert_int_equal(pp_target_format(&spec, &is, &err), -1);
	assert_int_equal(is, PP_TARGET_FAILED);
	if (!installed("mke2fs"))
		skip();
	formatted("ext4");
	/* A second time it holds data. */
	snprintf(spec.fs_type, sizeof(spec.fs_type), "ext4");
	assert_int_equal(pp_target_format(&spec, &is, &err), -1);
	assert_int_equal(is, PP_TARGET_REFUSED);
	assert_non_null(strstr(err.text, "--force"));
	spec.force = true;
	assert_int_equal(pp_target_format(&spec, &is, &err), 0);
}

static void test_uuid(void **state)
{
	struct pp_target_spec spec;

	(void)state;
	NEEDS_LOOP();
	if (!installed("mke2fs"))
		skip();
	spec = formatted("ext4");
	/* Another file system stands where the recorded one was: open, never a loss by itself. */
	spec.fs_uuid[0] = spec.fs_uuid[0] == '0' ? '1' : '0';
	expect_state(&spec, PP_TARGET_FS_UNAVAILABLE, "another");
	spec.fs_partition = PP_PARTITION_UNKNOWN;
	expect_state(&spec, PP_TARGET_FS_UNAVAILABLE, spec.fs_uuid);
	snprintf(spec.fs_uuid, sizeof(spec.fs_uuid), "auto");
	expect_state(&spec, PP_TARGET_OK, NULL);
	snprintf(spec.directory, sizeof(spec.directory), "../etc");
	expect_state(&spec, PP_TARGET_FAILED, "folder");
}

static void test_mounted_elsewhere(void **state)
{
	struct pp_target_spec spec, raw = raw_spec();

	(void)state;
	NEEDS_LOOP();
	if (!installed("mke2fs"))
		skip();
	spec = formatted("ext4");
	raw.force = true;
	assert_int_equal(mount(node, other_dir, "ext4", 0, NULL), 0);
	expect_state(&spec, PP_TARGET_FS_UNAVAILABLE, other_dir);
	expect_state(&raw, PP_TARGET_REFUSED, other_dir);
	assert_int_equal(umount2(other_dir, 0), 0);
	expect_state(&spec, PP_TARGET_OK, NULL);
}

static void test_path_mode(void **state)
{
	struct pp_target_spec spec;
	struct pp_target target;
	struct pp_error err = {.text = ""};

	(void)state;
	NEEDS_LOOP();
	if (!installed("mke2fs"))
		skip();
	spec = formatted("ext4");
	snprintf(spec.path, sizeof(spec.path), "%s", other_dir);
	/* The mount failed, the folder is there: this is how a writer fills the initramfs. */
	expect_state(&spec, PP_TARGET_FS_UNAVAILABLE, "not on drive");
	assert_int_equal(mount(node, other_dir, "ext4", 0, NULL), 0);
	assert_int_equal(pp_target_prove(&spec, &target, &err), 0);
	write_something(&target);
	pp_target_release(&target);
	/* Not ours to unmount. */
	assert_int_equal(umount2(other_dir, 0), 0);
	spec.fs_uuid[0] = spec.fs_uuid[0] == '0' ? '1' : '0';
	assert_int_equal(mount(node, other_dir, "ext4", 0, NULL), 0);
	expect_state(&spec, PP_TARGET_FS_UNAVAILABLE, spec.fs_uuid);
	snprintf(spec.path, sizeof(spec.path), "%s/none", other_dir);
	expect_state(&spec, PP_TARGET_FS_UNAVAILABLE, "none");
}

/* M6.3: what the kernel calls damaged, on a drive that reads. */
static void test_damage(void **state)
{
	struct pp_target_spec spec;
	struct pp_target_check check;
	struct pp_error err = {.text = ""};

	(void)state;
	NEEDS_LOOP();
	if (!installed("mke2fs") || !installed("e2fsck"))
		skip();
	spec = formatted("ext4");
	expect_state(&spec, PP_TARGET_OK, NULL);
	/* Group descriptors (1 KiB blocks: block 2; 4 KiB blocks: block 1). */
	overwrite(2048, 0xa5, 6144);
	expect_state(&spec, PP_TARGET_FS_DAMAGED, "cannot mount");
	assert_int_equal(pp_target_check(&spec, &check, &err), 0);
	assert_int_equal(check.result, PP_CHECK_DAMAGED);
	assert_string_equal(check.program, "e2fsck");
	/* No superblock at all: damage only where the recorded place and type are known. */
	overwrite(0, 0, 4096);
	expect_state(&spec, PP_TARGET_FS_DAMAGED, "cannot mount");
	spec.fs_partition = PP_PARTITION_UNKNOWN;
	expect_state(&spec, PP_TARGET_FS_UNAVAILABLE, NULL);
}

static void test_options(void **state)
{
	struct pp_target_spec spec;
	struct pp_target target;
	struct pp_error err = {.text = ""};

	(void)state;
	NEEDS_LOOP();
	if (!installed("mke2fs"))
		skip();
	spec = formatted("ext4");
	snprintf(spec.mount_options, sizeof(spec.mount_options), "noatime,no-such-option");
	expect_state(&spec, PP_TARGET_FAILED, "mount_options");
	/* M8.2: a mount that never asks the drive is seen. */
	snprintf(spec.mount_options, sizeof(spec.mount_options), "noatime,barrier=0");
	assert_int_equal(pp_target_prove(&spec, &target, &err), 0);
	assert_true(target.no_barrier);
	assert_non_null(strstr(target.mount_options, "noatime"));
	pp_target_release(&target);
	/* A kernel without that file system is nobody's loss. */
	spec.mount_options[0] = '\0';
	spec.fs_uuid[0] = spec.fs_uuid[0] == '0' ? '1' : '0';
	snprintf(spec.fs_type, sizeof(spec.fs_type), "no-such-fs");
	expect_state(&spec, PP_TARGET_FS_UNAVAILABLE, "module");
}

static void test_lazy_unmount(void **state)
{
	struct pp_target_spec spec;
	struct pp_target target;
	struct pp_error err = {.text = ""};
	bool lazy;
	int fd;

	(void)state;
	NEEDS_LOOP();
	if (!installed("mke2fs"))
		skip();
	spec = formatted("ext4");
	assert_int_equal(pp_target_prove(&spec, &target, &err), 0);
	fd = open(target.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(pp_target_unmount(&target, 100, &lazy, &err), 0);
	assert_true(lazy);
	close(fd);
}

/* Tells the kernel of partition 1 itself: it may know no partition tables. */
static bool add_partition(uint64_t start_bytes, uint64_t bytes)
{
	struct blkpg_partition p = {.start = (long long)start_bytes, .length = (long long)bytes,
		.pno = 1};
	struct blkpg_ioctl_arg arg = {BLKPG_ADD_PARTITION, 0, sizeof(p), &p};

	return ioctl(loop_fd, BLKRRPART, 0) == 0 &&
		(ioctl(loop_fd, BLKPG, &arg) == 0 || errno == EBUSY); /* EBUSY: it is there */
}

/* A file system on a partition; one MBR entry of type 83h from sector 2048 on. */
static void test_partition(void **state)
{
	static const uint8_t table[66] = {
		0, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0xf0, 1, 0, [64] = 0x55, [65] = 0xaa,
	};
	struct pp_target_spec spec = file_spec("ext4"), raw = raw_spec();
	enum pp_target_state is;
	struct pp_target target;
	struct pp_error err = {.text = ""};
	char part[64];

	(void)state;
	NEEDS_LOOP();
	if (!installed("mke2fs"))
		skip();
	assert_int_equal(pwrite(loop_fd, table, sizeof(table), 446), sizeof(table));
	assert_int_equal(fsync(loop_fd), 0);
	snprintf(part, sizeof(part), "%sp1", node);
	if (!add_partition(2048 * 512, 0x1f000 * 512) || access(part, F_OK) != 0) {
		print_message("skipped: this kernel shows no partitions of loop devices\n");
		skip();
	}
	spec.fs_partition = 1;
	snprintf(spec.destroy, sizeof(spec.destroy), "%s", image);
	if (pp_target_format(&spec, &is, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(pp_target_prove(&spec, &target, &err), 0);
	assert_string_equal(target.fs_node, part);
	assert_int_equal(target.fs_partition, 1);
	write_something(&target);
	raw.force = true;
	/* The whole drive beneath a mounted partition is not free. */
	expect_state(&raw, PP_TARGET_REFUSED, mount_dir);
	pp_target_release(&target);
	raw.force = false;
	expect_state(&raw, PP_TARGET_REFUSED, "dos");
}

static void test_state_names(void **unused)
{
	(void)unused;
	for (int i = PP_TARGET_OK; i <= PP_TARGET_FAILED; i++) {
		enum pp_target_state state;

		assert_true(pp_target_state_find(pp_target_state_name((enum pp_target_state)i), &state));
		assert_int_equal(state, i);
	}
}

#define ON_LOOP(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define ON_LARGE(test) cmocka_unit_test_setup_teardown(test, set_up_large, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_LOOP(test_raw),
		ON_LOOP(test_raw_signature),
		ON_LOOP(test_drive_states),
		ON_LOOP(test_drive_vanishes),
		ON_LOOP(test_unreadable),
		cmocka_unit_test(test_boot_drive),
		ON_LOOP(test_ext4),
		ON_LARGE(test_xfs),
		ON_LARGE(test_btrfs),
		ON_LOOP(test_format_refuses),
		ON_LOOP(test_uuid),
		ON_LOOP(test_mounted_elsewhere),
		ON_LOOP(test_path_mode),
		ON_LOOP(test_damage),
		ON_LOOP(test_options),
		ON_LOOP(test_lazy_unmount),
		ON_LOOP(test_partition),
		cmocka_unit_test(test_state_names),
	};
	int rc;

	if (!janitor_mkdtemp(folder))
		return 99;
	snprintf(image, sizeof(image), "%s/disk", folder);
	snprintf(mount_dir, sizeof(mount_dir), "%s/mnt", folder);
	snprintf(other_dir, sizeof(other_dir), "%s/other", folder);
	if (geteuid() != 0)
		why_skip = "mounting and loop devices need root";
	else if (access("/dev/loop-control", R_OK | W_OK) != 0)
		why_skip = "there is no /dev/loop-control";
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	clean_up();
	rmdir(folder);
	return rc;
}
