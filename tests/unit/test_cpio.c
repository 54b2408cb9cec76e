/* SPDX-License-Identifier: MIT
 *
 * Goal: what the lab's initramfs is made of is what the kernel's unpacker reads. Method: a reader
 * written from the format's description (every field, every padding byte), then cpio(1), if it is
 * here, as a second opinion. Without this the virtual machine has no init, or the wrong key.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"
#include "lab/cpio.h"
#include "tests/janitor.h"

#define FIELDS 13

struct seen {
	char name[64];
	unsigned field[FIELDS]; /* inode, mode, uid, gid, links, mtime, bytes, dev x2, rdev x2, name, sum */
	const char *data;
};

static unsigned hex(const char *at)
{
	char text[9] = "";
	char *end;
	unsigned long n;

	memcpy(text, at, 8);
	n = strtoul(text, &end, 16);
	assert_ptr_equal(end, text + 8);
	return (unsigned)n;
}

static size_t padded(const char *data, size_t at)
{
	for (; at % 4; at++)
		assert_int_equal(data[at], 0);
	return at;
}

/* Reads entry by entry; fails on anything that is not as described. Returns how many. */
static int read_all(const struct pp_buf *archive, struct seen *seen, int max)
{
	size_t at = 0;
	int n = 0;

	assert_false(archive->failed);
	while (at < archive->bytes) {
		struct seen *s = &seen[n++];

		assert_true(n <= max);
		assert_memory_equal(archive->data + at, "070701", 6);
		for (int i = 0; i < FIELDS; i++)
			s->field[i] = hex(archive->data + at + 6 + 8 * i);
		at += 6 + 8 * FIELDS;
		assert_true(s->field[11] > 0 && s->field[11] < sizeof(s->name));
		memcpy(s->name, archive->data + at, s->field[11]);
		assert_int_equal(strlen(s->name) + 1, s->field[11]);
		at = padded(archive->data, at + s->field[11]);
		s->data = archive->data + at;
		at = padded(archive->data, at + s->field[6]);
	}
	assert_int_equal(at, archive->bytes);
	return n;
}

static void test_entries(void **state)
{
	struct seen seen[8];
	struct pp_buf archive;

	(void)state;
	pp_buf_init(&archive, 1 << 16);
	pp_cpio_dir(&archive, "etc");
	pp_cpio_file(&archive, "etc/key", 0600, "secret\0!", 8);
	pp_cpio_file(&archive, "empty", 0644, NULL, 0);
	pp_cpio_link(&archive, "bin/sh", "busybox");
	pp_cpio_char_device(&archive, "dev/console", 5, 1);
	pp_cpio_end(&archive);
	assert_int_equal(read_all(&archive, seen, 8), 6);
	assert_string_equal(seen[0].name, "etc");
	assert_int_equal(seen[0].field[1], S_IFDIR | 0755);
	assert_string_equal(seen[1].name, "etc/key");
	assert_int_equal(seen[1].field[1], S_IFREG | 0600);
	assert_int_equal(seen[1].field[6], 8);
	assert_memory_equal(seen[1].data, "secret\0!", 8);
	assert_int_equal(seen[2].field[6], 0);
	assert_int_equal(seen[3].field[1], S_IFLNK | 0777);
	assert_int_equal(seen[3].field[6], 7);
	assert_memory_equal(seen[3].data, "busybox", 7);
	assert_int_equal(seen[4].field[1], S_IFCHR | 0600);
	assert_int_equal(seen[4].field[9], 5);
	assert_int_equal(seen[4].field[10], 1);
	assert_string_equal(seen[5].name, "TRAILER!!!");
	for (int i = 0; i < 6; i++) {
		assert_int_equal(seen[i].field[4], 1); /* links */
		assert_int_equal(seen[i].field[2] | seen[i].field[3], 0); /* root's */
	}
	pp_buf_release(&archive);
}

/* Each name and content of 0 to 9 bytes more: all paddings; and archives joined end to end. */
static void test_padding(void **state)
{
	static const char letters[] = "abcdefghijklmnop";
	struct seen seen[256];
	struct pp_buf archive;
	char name[32];
	int n = 0, got;

	(void)state;
	pp_buf_init(&archive, 1 << 18);
	for (int a = 1; a < 11; a++)
		for (int b = 0; b < 10; b++, n++) {
			snprintf(name, sizeof(name), "%.*s", a, letters);
			pp_cpio_file(&archive, name, 0644, letters, (size_t)b);
		}
	pp_cpio_end(&archive);
	pp_cpio_file(&archive, "second", 0644, "x", 1);
	pp_cpio_end(&archive);
	got = read_all(&archive, seen, 256);
	assert_int_equal(got, n + 3);
	for (int i = 0; i < n; i++) {
		assert_int_equal(strlen(seen[i].name), i / 10 + 1);
		assert_int_equal(seen[i].field[6], i % 10);
		assert_memory_equal(seen[i].data, letters, (size_t)(i % 10));
	}
	assert_string_equal(seen[n + 1].name, "second");
	pp_buf_release(&archive);
}

static void test_a_full_buffer_shows(void **state)
{
	struct pp_buf archive;

	(void)state;
	pp_buf_init(&archive, 150);
	pp_cpio_dir(&archive, "etc");
	assert_false(archive.failed);
	pp_cpio_file(&archive, "etc/large", 0644, "0123456789012345678901234567890123456789", 40);
	assert_true(archive.failed);
	pp_buf_release(&archive);
}

static void test_second_opinion(void **state)
{
	char folder[] = "/tmp/pp-test-cpio.XXXXXX", path[64], command[256];
	struct pp_buf archive, text;

	(void)state;
	if (system("cpio --version >/dev/null 2>&1") != 0) {
		print_message("cpio(1) is not here\n");
		skip();
	}
	assert_non_null(janitor_mkdtemp(folder));
	pp_buf_init(&archive, 1 << 16);
	pp_buf_init(&text, 1 << 16);
	pp_cpio_dir(&archive, "etc");
	pp_cpio_file(&archive, "etc/key", 0600, "secret\n", 7);
	pp_cpio_link(&archive, "etc/link", "key");
	pp_cpio_end(&archive);
	snprintf(path, sizeof(path), "%s/a.cpio", folder);
	assert_int_equal(pp_file_write(path, archive.data, archive.bytes, 0600, NULL), 0);
	snprintf(command, sizeof(command), "cd %s && cpio -i --quiet <a.cpio && [ \"$(cat etc/link)\" = "
		"secret ] && [ \"$(stat -c %%a etc/key)\" = 600 ]; s=$?; rm -rf %s; exit $s", folder, folder);
	assert_int_equal(system(command), 0);
	pp_buf_release(&archive);
	pp_buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_padding),
		cmocka_unit_test(test_a_full_buffer_shows),
		cmocka_unit_test(test_second_opinion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
