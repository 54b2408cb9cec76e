/* SPDX-License-Identifier: MIT
 *
 * Goal: identify tells the drives beneath and warns of every trap it can see, in JSON and in 80
 * columns of text. Method: the command runs on recorded machines, its standard output in a file.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>

#include "src/cli/cmd_identify.h"
#include "sysroot_tree.h"

/* Runs the command; returns its exit status, and what it said in out. */
static int run(const char *machine, const char *target, bool as_json, char *out, size_t out_bytes)
{
	char root[64], path[] = "/tmp/plugpull-identify.XXXXXX";
	char name[] = "identify", sysroot[] = "--sysroot", json[] = "--json";
	char *argv[] = {name, sysroot, root, (char *)target, as_json ? json : NULL, NULL};
	int fd = mkstemp(path), saved = dup(STDOUT_FILENO), status;
	ssize_t n;

	assert_true(fd >= 0 && saved >= 0);
	unlink(path);
	assert_int_equal(tree_unpack(machine, root), 0);
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	status = pp_cmd_identify(as_json ? 5 : 4, argv);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	tree_remove(root);
	n = pread(fd, out, out_bytes - 1, 0);
	close(fd);
	assert_true(n >= 0 && (size_t)n < out_bytes - 1);
	out[n] = '\0';
	return status;
}

static void add_ids(json_t *warnings, char *ids)
{
	json_t *row;
	size_t i;

	json_array_foreach(warnings, i, row)
		sprintf(ids + strlen(ids), "%s%s", ids[0] ? " " : "",
			json_string_value(json_object_get(row, "id")));
}

static const struct {
	const char *machine, *target, *drives, *warnings;
} rows[] = {
	{"nvme", "/home/x", "nvme0n1", "system-drive"},
	{"nvme", "S4EWNX0M912345K", "nvme0n1", "system-drive"},
	{"nvme", "/srv/my data", "nvme1n1", "write-through-unasked no-barrier"},
	{"nvme", "/tmp", "", "no-drive"},
	{"sata-usb", "sdb", "sdb", "write-through-guessed bridge-serial"},
	{"sata-usb", "/mnt/a", "sda", "no-barrier"},
	{"virtual", "/dev/nbd0", "nbd0", "remote-drive"},
	{"virtual", "vdb", "vdb", "remote-drive no-serial"},
	{"virtual", "/mnt/lab", "loop1", "remote-drive no-drive"},
	{"virtual", "/merged", "vda", "remote-drive system-drive no-barrier overlay"},
	{"virtual", "/home/a b/disk.img", "loop0 vda", "remote-drive remote-drive system-drive"},
	{"stacks", "sdj", "sdj", "raid-card"},
	{"stacks", "/mnt/r", "md1 sdc sdd sde", "no-serial several-drives"},
	{"stacks", "/boot", "md0 sda sdb", "system-drive system-drive system-drive several-drives"},
};

static void test_json(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char out[32768], drives[256] = "", ids[512] = "";
		json_t *whole, *target, *drive;
		size_t k;

		assert_int_equal(run(rows[i].machine, rows[i].target, true, out, sizeof(out)), 0);
		whole = json_loads(out, 0, NULL);
		assert_non_null(whole);
		assert_int_equal(json_integer_value(json_object_get(whole, "format")), 1);
		target = json_array_get(json_object_get(whole, "targets"), 0);
		json_array_foreach(json_object_get(target, "drives"), k, drive) {
			sprintf(drives + strlen(drives), "%s%s", k ? " " : "",
				json_string_value(json_object_get(drive, "name")));
			add_ids(json_object_get(drive, "warnings"), ids);
		}
		add_ids(json_object_get(target, "warnings"), ids);
		json_decref(whole);
		assert_string_equal(drives, rows[i].drives);
		assert_string_equal(ids, rows[i].warnings);
	}
}

static void test_text_fits(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char out[32768], *save = NULL;

		assert_int_equal(run(rows[i].machine, rows[i].target, false, out, sizeof(out)), 0);
		if (rows[i].warnings[0])
			assert_non_null(strstr(out, "  WARNING"));
		for (char *line = strtok_r(out, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
			assert_true(strlen(line) <= 80);
	}
}

static void test_all(void **state)
{
	char out[65536];
	json_t *whole;

	(void)state;
	assert_int_equal(run("virtual", "--all", true, out, sizeof(out)), 0);
	whole = json_loads(out, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(whole, "targets")), 9);
	json_decref(whole);
}

static void test_unknown(void **state)
{
	char out[256];

	(void)state;
	assert_int_equal(run("nvme", "S4EWNX0M912345", true, out, sizeof(out)), 2);
	assert_string_equal(out, "");
	assert_int_equal(run("twins", "6000c29f", true, out, sizeof(out)), 2);
	assert_int_equal(run("nvme", "--no-such-option", false, out, sizeof(out)), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_text_fits),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, tree_remove_all);
}
