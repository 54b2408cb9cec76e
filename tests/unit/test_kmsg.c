/* SPDX-License-Identifier: MIT
 *
 * Goal: an I/O error of this disk in the kernel log ends the acks (M2.3); another disk's does not.
 * Method: recorded lines are replayed through a source of our own.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "src/core/kmsg.h"

#define NONE (-1)

struct row {
	const char *disk, *text;
	int class;
};

static const struct row rows[] = {
	{"nbd0", "I/O error, dev nbd0, sector 2048 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2",
		PP_KMSG_IO_ERROR},
	{"nbd1", "I/O error, dev nbd10, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2", NONE},
	{"nbd10", "I/O error, dev nbd1, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2", NONE},
	{"sda", "blk_update_request: I/O error, dev sda, sector 0", PP_KMSG_IO_ERROR},
	{"sda", "blk_update_request: I/O error, dev sdaa, sector 0", NONE},
	{"sda", "print_req_error: critical medium error, dev sda, sector 9", PP_KMSG_IO_ERROR},
	{"sda", "critical space allocation error, dev sda, sector 9 op 0x1", PP_KMSG_IO_ERROR},
	{"sda", "timeout error, dev sdb, sector 9", NONE},
	{"sda", "Buffer I/O error on dev sda1, logical block 5, lost async page write", PP_KMSG_IO_ERROR},
	{"sda", "Buffer I/O error on dev sdaa1, logical block 5, lost async page write", NONE},
	{"loop1", "Buffer I/O error on dev loop1p2, logical block 0, async page read", PP_KMSG_IO_ERROR},
	{"loop1", "Buffer I/O error on dev loop12, logical block 0, async page read", NONE},
	{"nvme0n1", "Buffer I/O error on dev nvme0n12, logical block 0, async page read", NONE},
	{"nvme0n1", "nvme0n1: I/O Cmd(0x1) @ LBA 2048, 8 blocks, I/O Error (sct 0x2 / sc 0x80) error",
		PP_KMSG_IO_ERROR},
	{"sda", "sd 0:0:0:0: [sda] tag#3 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK",
		PP_KMSG_IO_ERROR},
	{"sda", "sd 0:0:0:0: [sdaa] tag#3 FAILED Result: hostbyte=DID_OK", NONE},
	{"sda", "sd 0:0:0:0: [sda] tag#3 Sense Key : Medium Error [current]", PP_KMSG_IO_ERROR},
	{"sda", "sd 0:0:0:0: [sda] Write cache: enabled, read cache: enabled", NONE},
	{"nbd0", "EXT4-fs error (device nbd0): ext4_lookup:1785: inode #2: comm ls: bad",
		PP_KMSG_FS_ERROR},
	{"nbd1", "EXT4-fs error (device nbd10): ext4_lookup:1785: inode #2: comm ls: bad", NONE},
	{"nbd0", "EXT4-fs (nbd0): mounted filesystem with ordered data mode. Opts: errors=remount-ro",
		NONE},
	{"nbd0", "EXT4-fs (nbd0): recovery complete", NONE},
	{"nbd0", "EXT4-fs (nbd0): warning: mounting fs with errors, running e2fsck is recommended",
		PP_KMSG_FS_ERROR},
	{"nbd0", "EXT4-fs (nbd0): Remounting filesystem read-only", PP_KMSG_FS_ERROR},
	{"nbd0", "EXT4-fs (nbd0): I/O error while writing superblock", PP_KMSG_IO_ERROR},
	{"nbd0", "Aborting journal on device nbd0-8.", PP_KMSG_FS_ERROR},
	{"sda", "Aborting journal on device sda1-8.", PP_KMSG_FS_ERROR},
	{"nbd0", "XFS (nbd0): log I/O error -5", PP_KMSG_IO_ERROR},
	{"nbd0", "XFS (nbd0): metadata I/O error in \"xfs_buf_ioend\" at daddr 0x2 len 1 error 5",
		PP_KMSG_IO_ERROR},
	{"nbd0", "XFS (nbd0): Corruption of in-memory data detected.  Shutting down filesystem",
		PP_KMSG_FS_ERROR},
	{"nbd0", "XFS (nbd0): Mounting V5 Filesystem", NONE},
	{"nbd0", "XFS (nbd0): Ending clean mount", NONE},
	{"nbd0", "BTRFS error (device nbd0 state E): remounting read-only after error", PP_KMSG_FS_ERROR},
	{"nbd0", "BTRFS error (device nbd0): parent transid verify failed on 30408704 wanted 9 found 7",
		PP_KMSG_FS_ERROR},
	{"nbd1", "BTRFS error (device nbd10): parent transid verify failed", NONE},
	{"nbd0", "BTRFS info (device nbd0): using crc32c (crc32c-intel) checksum algorithm", NONE},
	{"nbd0", "block nbd0: Other side returned error (5)", PP_KMSG_IO_ERROR},
	{"nbd0", "block nbd0: Connection timed out", PP_KMSG_LINK},
	{"nbd0", "nbd0: detected capacity change from 1048576 to 0", PP_KMSG_LINK},
	{"nbd0", "nbd0: detected capacity change from 0 to 1048576", NONE},
	{"nbd0", "random text about nbd0", NONE},
	{"nbd0", "", NONE},
};

static void test_match(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum pp_kmsg_class class = PP_KMSG_MISSED;
		struct pp_kmsg watch;
		bool hit;

		pp_kmsg_open_source(&watch, rows[i].disk, (struct pp_kmsg_source){NULL, NULL});
		hit = pp_kmsg_match(&watch, rows[i].text, &class);
		if (hit != (rows[i].class != NONE))
			print_error("disk %s: %s\n", rows[i].disk, rows[i].text);
		assert_int_equal(hit, rows[i].class != NONE);
		if (hit)
			assert_int_equal(class, rows[i].class);
	}
}

static void test_more_names(void **state)
{
	enum pp_kmsg_class class;
	struct pp_kmsg watch;

	(void)state;
	pp_kmsg_open_source(&watch, "nvme0n1", (struct pp_kmsg_source){NULL, NULL});
	assert_false(pp_kmsg_match(&watch, "EXT4-fs error (device dm-0): x", &class));
	assert_true(pp_kmsg_add_name(&watch, "dm-0"));
	assert_true(pp_kmsg_add_name(&watch, "nvme0"));
	assert_true(pp_kmsg_match(&watch, "EXT4-fs error (device dm-0): x", &class));
	assert_false(pp_kmsg_match(&watch, "EXT4-fs error (device dm-01): x", &class));
	assert_true(pp_kmsg_match(&watch, "nvme nvme0: I/O tag 12 QID 1 timeout, aborting", &class));
	assert_int_equal(class, PP_KMSG_LINK);
	assert_false(pp_kmsg_add_name(&watch, ""));
	while (watch.name_count < PP_KMSG_NAMES_MAX)
		assert_true(pp_kmsg_add_name(&watch, "x"));
	assert_false(pp_kmsg_add_name(&watch, "y"));
}

struct script {
	const char *records[8]; /* NULL: EAGAIN; "EPIPE", "EINTR", "EIO": that errno */
	size_t at;
};

static ssize_t play(void *arg, char *record, size_t bytes)
{
	struct script *s = arg;
	const char *text = s->records[s->at];

	errno = EAGAIN;
	if (!text)
		return -1;
	s->at++;
	errno = strcmp(text, "EPIPE") == 0 ? EPIPE : strcmp(text, "EINTR") == 0 ? EINTR :
		strcmp(text, "EIO") == 0 ? EIO : 0;
	if (errno)
		return -1;
	return snprintf(record, bytes, "%s", text);
}

static void test_poll(void **state)
{
	struct script script = {.records = {
		"6,100,5000001,-;usb 1-1: new device\n SUBSYSTEM=usb\n",
		"EINTR",
		"3,101,5000002,-;I/O error, dev nbd0, sector 8 op 0x1:(WRITE)\n SUBSYSTEM=block\n",
		"12,102,5000003,-;I/O error, dev nbd0, sector 8, said by a program of root's\n",
		"no record at all: I/O error, dev nbd0, sector 1",
		"EPIPE",
		"3,105,5000004,c;EXT4-fs error (device nbd0): x\n",
	}};
	struct pp_kmsg_event event;
	struct pp_kmsg watch;
	struct pp_error err;

	(void)state;
	pp_kmsg_open_source(&watch, "nbd0", (struct pp_kmsg_source){play, &script});
	assert_int_equal(pp_kmsg_poll(&watch, &event, &err), 1);
	assert_int_equal(event.class, PP_KMSG_IO_ERROR);
	assert_int_equal(event.log_us, 5000002);
	assert_string_equal(event.text, "I/O error, dev nbd0, sector 8 op 0x1:(WRITE)");
	/* The user's line and the broken one are passed over; lost lines are told. */
	assert_int_equal(pp_kmsg_poll(&watch, &event, &err), 1);
	assert_int_equal(event.class, PP_KMSG_MISSED);
	assert_int_equal(pp_kmsg_poll(&watch, &event, &err), 1);
	assert_int_equal(event.class, PP_KMSG_FS_ERROR);
	assert_int_equal(pp_kmsg_poll(&watch, &event, &err), 0);
	assert_int_equal(pp_kmsg_poll(&watch, &event, &err), 0);
	pp_kmsg_close(&watch);
}

static void test_poll_fails(void **state)
{
	struct script script = {.records = {"EIO"}};
	struct pp_kmsg_event event;
	struct pp_kmsg watch;
	struct pp_error err;

	(void)state;
	pp_kmsg_open_source(&watch, "nbd0", (struct pp_kmsg_source){play, &script});
	assert_int_equal(pp_kmsg_poll(&watch, &event, &err), -1);
	assert_int_equal(err.os_code, EIO);
	pp_kmsg_open_source(&watch, "nbd0", (struct pp_kmsg_source){NULL, NULL});
	assert_int_equal(pp_kmsg_poll(&watch, &event, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_match),
		cmocka_unit_test(test_more_names),
		cmocka_unit_test(test_poll),
		cmocka_unit_test(test_poll_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
