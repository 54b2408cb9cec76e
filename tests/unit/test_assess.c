/* SPDX-License-Identifier: MIT
 *
 * Goal: the rules of suspicion fire where they must and stay silent where they must, and no form of
 * input is read by half (M10.2). Method: published results in pg_test_fsync's layout, as a Windows
 * system prints it; rows by hand on both sides of each limit; recorded sysfs trees for links.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/core/assess.h"
#include "src/core/file.h"
#include "tests/janitor.h"

static struct pp_assess_input input;
static struct pp_assess_finding findings[64];

static size_t assess(const char *text)
{
	struct pp_error err = { 0 };

	if (pp_assess_read(text, strlen(text), &input, &err) != 0)
		fail_msg("%s", err.text);
	return pp_assess(&input, findings, 64);
}

/* How often a rule fired on this label. */
static unsigned fired(size_t count, const char *rule, const char *label)
{
	unsigned n = 0;
	size_t i;

	for (i = 0; i < count; i++)
		n += strcmp(findings[i].rule, rule) == 0 &&
			(!label || strcmp(findings[i].row->label, label) == 0);
	return n;
}

/* What pg_test_fsync prints: rates of open_datasync, fdatasync, fsync, open_sync; 0 is n/a. */
static const char *pg_text(const double rate[4], const char *end)
{
	static const char *const labels[] = { "open_datasync", "fdatasync", "fsync",
		"fsync_writethrough", "open_sync" };
	static const int of[] = { 0, 1, 2, -1, 3 };
	static char text[4096];
	int n = snprintf(text, sizeof(text), "5 seconds per test%s"
		"O_DIRECT supported on this platform for open_datasync and open_sync.%s%s"
		"Compare file sync methods using one 8kB write:%s"
		"(in wal_sync_method preference order, except fdatasync is Linux's default)%s", end,
		end, end, end, end);
	int i;

	for (i = 0; i < 5; i++) {
		double r = of[i] < 0 ? 0 : rate[of[i]];

		n += r > 0 ? snprintf(text + n, sizeof(text) - (size_t)n, "        %-30s%13.3f ops/sec  "
			"%6.0f usecs/op%s", labels[i], r, 1e6 / r, end)
			: snprintf(text + n, sizeof(text) - (size_t)n, "        %-30s%21s%s", labels[i],
			"n/a", end);
	}
	snprintf(text + n, sizeof(text) - (size_t)n, "%sNon-sync'ed 8kB writes:%s        %-30s%13.3f "
		"ops/sec  %6.0f usecs/op%s", end, end, "write", 400000.0, 2.5, end);
	return text;
}

static void test_published(void **state)
{
	static const struct {
		const char *what;
		double rate[4];
		bool footgun;
	} rows[] = {
		{ "NVMe, Windows 11, cache on", { 27306, 3065, 2577, 0 }, true },
		{ "the same drive, cache off", { 3477, 3263, 1641, 0 }, false },
		{ "SATA, Windows 8.1", { 19934, 231, 240, 0 }, true },
		{ "virtual SATA disk, Windows 10", { 7914, 650, 512, 0 }, true },
		{ "Optane", { 33658, 32739, 30190, 30939 }, false },
		{ "consumer SSD, Linux", { 2288, 2217, 1904, 1900 }, false },
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (k = 0; k < 2; k++) {
			size_t count = assess(pg_text(rows[i].rate, k ? "\r\n" : "\n"));

			assert_string_equal(input.format, "pg_test_fsync");
			assert_int_equal(input.count, rows[i].rate[3] > 0 ? 5 : 4);
			if (fired(count, "footgun", "open_datasync") != rows[i].footgun ||
				count != rows[i].footgun)
				fail_msg("%s: %zu findings, %s: %s", rows[i].what, count,
					count ? findings[0].rule : "", count ? findings[0].text : "");
		}
	assess(pg_text(rows[0].rate, "\n"));
	assert_true(findings[0].figure > 8.90 && findings[0].figure < 8.92);
	assert_true(findings[0].limit == 5);
	assert_non_null(strstr(findings[0].text, "27306"));
	assert_non_null(strstr(findings[0].text, "3065"));
}

static void test_rules(void **state)
{
	static const struct { const char *text, *rule, *label; } rows[] = {
		/* A read of 2.79 GB/s from a slot of 2.0 GB/s. */
		{ "link: PCIe 2.0 x4\nread: 2.79 GB/s\n", "link", "read" },
		{ "link: PCIe 2.0 x4\nread: 1.99 GB/s\n", NULL, NULL },
		{ "link: PCIe 3.0 x4\nread: 2.79 GB/s\n", NULL, NULL },
		{ "read: 2.79 GB/s\n", NULL, NULL },
		{ "link: 2000 MB/s\nsequential write (direct): 2001 MB/s\n", "link",
			"sequential write (direct)" },
		/* Into RAM is no matter of the link. */
		{ "link: SATA 3\nwrite: 900 MB/s\n", NULL, NULL },
		{ "rpm: 7200\nfsync: 323/s\n", "rotation", "fsync" },
		{ "rpm: 7200\nfsync: 119/s\n", NULL, NULL },
		{ "rpm: 7200\ndirect: 323/s\n", NULL, NULL },
		{ "fsync: 323/s\n", NULL, NULL },
		{ "open_datasync: 5000\nfdatasync: 1000\n", "footgun", "open_datasync" },
		{ "open_datasync: 4999\nfdatasync: 1000\n", NULL, NULL },
		/* The fastest flush counts. */
		{ "open_datasync: 4999\nfdatasync: 1000\nfsync: 10\n", NULL, NULL },
		{ "RWF_DSYNC (direct): 5001\nfsync: 1000\n", "footgun", "RWF_DSYNC (direct)" },
		/* sync_file_range flushes nothing, write-through need not be like it. */
		{ "open_datasync: 5000\nsync_file_range: 20\n", NULL, NULL },
		{ "direct: 5000\nfdatasync: 1000\n", NULL, NULL },
		{ "cache: on\ndirect: 1000\nfdatasync: 800\n", "like-direct", "fdatasync" },
		{ "cache: on\ndirect: 1000\nfdatasync: 799\n", NULL, NULL },
		{ "cache: off\ndirect: 1000\nfdatasync: 1000\n", NULL, NULL },
		{ "cache: protected\ndirect: 1000\nfdatasync: 1000\n", NULL, NULL },
		{ "direct: 1000\nfdatasync: 1000\n", NULL, NULL },
		{ "fdatasync: 4.9 us # faster than a command\n", "round-trip", "fdatasync" },
		{ "fdatasync: 5.1 us\n", NULL, NULL },
		{ "write: 0.8 us\ndirect: 4 us\n", NULL, NULL },
		{ " fdatasync = 300 ops/sec \n\n# nothing\n", NULL, NULL },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t count = assess(rows[i].text);

		assert_string_equal(input.format, "list");
		if (count != (rows[i].rule != NULL) ||
			(rows[i].rule && fired(count, rows[i].rule, rows[i].label) != 1))
			fail_msg("%s: %zu findings, %s", rows[i].text, count, count ? findings[0].text : "");
	}
}

/* A row of our JSON with one member replaced. */
static const char *json_text(const char *change)
{
	static char text[2048];

	snprintf(text, sizeof(text), "{\"format\": 1, \"drive\": {\"link\": \"PCIe 2.0 x1\", \"cache\": "
		"\"on\", \"rotational\": false}, \"rows\": [{\"section\": \"methods\", \"label\": "
		"\"fsync\", \"method\": \"fsync\", \"workload\": \"overwrite\", \"threads\": 1, "
		"\"promise\": \"media\", \"writes\": 1, \"write_bytes\": 8192, \"status\": \"ok\", "
		"\"ops\": 1000, \"ops_per_s\": 1000.0, \"bytes_per_s\": 8192000.0, \"latency_ns_p50\": "
		"900000, \"counted\": true, \"disk_bytes\": 8192000, \"flushes_per_op\": 1.0, "
		"\"fua_per_op\": 0.0, \"foreign_per_s\": 0.0, \"foreign_traffic\": false}%s]}", change);
	return text;
}

#define ROW(rest) ", {\"section\": \"methods\", \"workload\": \"overwrite\", \"threads\": 1, " \
	"\"writes\": 1, \"write_bytes\": 8192, \"status\": \"ok\", \"counted\": true, " rest "}"

static void test_json(void **state)
{
	static const struct { const char *row, *rule; } rows[] = {
		{ "", NULL },
		{ ROW("\"label\": \"fdatasync\", \"method\": \"fdatasync\", \"promise\": \"media\", "
			"\"flushes_per_op\": 0.49, \"fua_per_op\": 0.0"), "no-flush" },
		{ ROW("\"label\": \"fdatasync\", \"method\": \"fdatasync\", \"promise\": \"media\", "
			"\"flushes_per_op\": 0.51"), NULL },
		{ ROW("\"label\": \"fdatasync\", \"method\": \"fdatasync\", \"promise\": \"media\", "
			"\"flushes_per_op\": -1"), NULL },
		{ ROW("\"label\": \"direct\", \"method\": \"direct\", \"promise\": \"none\", "
			"\"flushes_per_op\": 0.0"), NULL },
		{ ROW("\"label\": \"sync_file_range\", \"method\": \"sync_file_range\", \"promise\": "
			"\"device\", \"flushes_per_op\": 0.0"), NULL },
		{ ROW("\"label\": \"x\", \"method\": \"open_datasync (direct)\", \"promise\": \"media\", "
			"\"flushes_per_op\": 0.0, \"fua_per_op\": -1"), NULL },
		{ ROW("\"label\": \"x\", \"method\": \"open_datasync (direct)\", \"promise\": \"media\", "
			"\"flushes_per_op\": 0.0, \"fua_per_op\": 1.0"), NULL },
		{ ROW("\"label\": \"x\", \"method\": \"open_datasync (direct)\", \"promise\": \"media\", "
			"\"flushes_per_op\": 0.0, \"fua_per_op\": 0.0"), "no-flush" },
		{ ROW("\"label\": \"x\", \"method\": \"NVMe flush\", \"promise\": \"media\", "
			"\"flushes_per_op\": 0.0, \"fua_per_op\": 0.0"), NULL },
		{ ROW("\"label\": \"x\", \"method\": \"fsync\", \"promise\": \"media\", "
			"\"flushes_per_op\": 1.0, \"foreign_traffic\": true, \"foreign_per_s\": 70.0"),
			"foreign" },
		/* A busy disk's counts accuse nobody. */
		{ ROW("\"label\": \"x\", \"method\": \"fsync\", \"promise\": \"media\", "
			"\"flushes_per_op\": 0.0, \"foreign_traffic\": true, \"foreign_per_s\": 70.0"),
			"foreign" },
		{ ROW("\"label\": \"sequential read\", \"method\": \"\", \"ops\": 1000, \"promise\": "
			"\"n/a\", \"disk_bytes\": 7300000, \"bytes_per_s\": 1e8"), "unseen-read" },
		{ ROW("\"label\": \"sequential read\", \"method\": \"\", \"ops\": 1000, \"promise\": "
			"\"n/a\", \"disk_bytes\": 8100000, \"bytes_per_s\": 1e8"), NULL },
		{ ROW("\"label\": \"sequential read\", \"method\": \"\", \"ops\": 1000, \"promise\": "
			"\"n/a\", \"disk_bytes\": 8192000, \"bytes_per_s\": 5.01e8"), "link" },
		/* Another group is no neighbour. */
		{ ", {\"section\": \"methods\", \"workload\": \"append\", \"threads\": 1, \"writes\": 1, "
			"\"write_bytes\": 8192, \"status\": \"ok\", \"label\": \"x\", \"method\": "
			"\"open_datasync\", \"promise\": \"media\", \"ops_per_s\": 9000.0}", NULL },
		{ ROW("\"label\": \"x\", \"method\": \"open_datasync\", \"promise\": \"media\", "
			"\"ops_per_s\": 9000.0, \"flushes_per_op\": 1.0"), "footgun" },
		{ ", {\"label\": \"x\", \"status\": \"n/a\"}", NULL },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t count = assess(json_text(rows[i].row));

		assert_string_equal(input.format, "json");
		if (count != (rows[i].rule != NULL) || (rows[i].rule &&
			strcmp(findings[0].rule, rows[i].rule) != 0))
			fail_msg("row %zu: %zu findings, %s", i, count, count ? findings[0].text : "");
	}
}

static void test_refused(void **state)
{
	static const struct { const char *text, *why; } rows[] = {
		{ "", "no figure" },
		{ "hello", "line 1: expected NAME" },
		{ "fdatasync: 300\nfdatasink: 300\n", "line 2: there is no method 'fdatasink'" },
		{ "fdatasync: fast", "no figure such as" },
		{ "fdatasync: 0 ops/s", "no figure such as" },
		{ "fdatasync: -3 ops/s", "no figure such as" },
		{ "fdatasync: nan", "no figure such as" },
		{ "fdatasync: 3 parsecs", "no figure such as" },
		{ "cache: maybe", "expected on, off or protected" },
		{ "rpm: 10", "expected 1000" },
		{ "link: PCIe 9.0 x4", "expected the like of" },
		{ "link: PCIe 3.0 x4 more", "expected the like of" },
		{ "cache: on", "no figure" },
		{ "{", "line 1:" },
		{ "{}", "no result of" },
		{ "{\"format\": 2, \"rows\": []}", "no result of" },
		{ "{\"format\": 1, \"rows\": []}", "no figure" },
		{ "{\"format\": 1, \"rows\": [{\"status\": \"ok\"}]}", "no 'label'" },
		{ "5 seconds per test\n  x  3 ops/sec 4 usecs/op\n", "no row of pg_test_fsync" },
		{ "5 seconds per test\n        fdatasync                           none ops/sec  4 usecs/op\n",
			"no row of pg_test_fsync" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_error err = { 0 };

		if (pp_assess_read(rows[i].text, strlen(rows[i].text), &input, &err) == 0)
			fail_msg("'%s' was read", rows[i].text);
		if (!strstr(err.text, rows[i].why))
			fail_msg("'%s': %s", rows[i].text, err.text);
	}
}

static void test_link_text(void **state)
{
	static const struct { const char *text; double mb_per_s; } rows[] = {
		{ "PCIe 1.0 x1", 250 }, { "PCIe 2.0 x4", 2000 }, { "PCIe gen3 x4", 3938.46 },
		{ "PCIe 4.0 x4", 7876.9 }, { "PCIe 5.0 x4", 15753.8 }, { "8.0 GT/s x2", 1969.2 },
		{ "SATA 3", 600 }, { "SATA 2", 300 }, { "SATA 6.0 Gbps", 600 }, { "SATA 3.0 Gb/s", 300 },
		{ "SATA 1.5 Gbps", 150 }, { "USB 480 Mbps", 60 }, { "USB 5000 Mbps", 500 },
		{ "USB 10000 Mbps", 1212.1 }, { "2000 MB/s", 2000 }, { "1 GiB/s", 1073.7 },
		{ "PCIe 0.0 x4", 0 }, { "PCIe 3.0 x0", 0 }, { "PCIe 3.0", 0 }, { "PCIe 3.0 x44", 0 },
		{ "SATA", 0 }, { "SATA fast", 0 }, { "SATA 5.0 Gbps", 0 }, { "USB 3", 0 }, { "USB", 0 },
		{ "9.0 GT/s x1", 0 }, { "", 0 }, { "-1 MB/s", 0 }, { "5", 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_link link = { "", 0 };
		bool known = pp_link_parse(rows[i].text, &link);
		double off = link.bytes_per_s / 1e6 - rows[i].mb_per_s;

		if (known != (rows[i].mb_per_s > 0) || off > 0.1 || off < -0.1)
			fail_msg("'%s': %f", rows[i].text, link.bytes_per_s);
	}
}

/* ---- links in sysfs -------------------------------------------------------------------------- */

static char root[] = "/tmp/plugpull-test-XXXXXX";

static void put(const char *path, const char *text)
{
	char whole[512], *slash;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	slash = strrchr(whole, '/');
	*slash = '\0';
	assert_int_equal(pp_mkdirs(whole, NULL), 0);
	*slash = '/';
	assert_int_equal(pp_file_write(whole, text, strlen(text), 0600, NULL), 0);
}

static void put_disk(const char *name, const char *dir)
{
	char link[512], to[512], path[512];

	snprintf(path, sizeof(path), "%s/size", dir);
	put(path, "1000\n");
	snprintf(link, sizeof(link), "%s/sys/block", root);
	pp_mkdirs(link, NULL);
	snprintf(link, sizeof(link), "%s/sys/class/block", root);
	pp_mkdirs(link, NULL);
	snprintf(link, sizeof(link), "%s/sys/class/block/%s", root, name);
	snprintf(to, sizeof(to), "../..%s", dir + 4);
	assert_int_equal(symlink(to, link), 0);
	snprintf(link, sizeof(link), "%s/sys/block/%s", root, name);
	snprintf(to, sizeof(to), "..%s", dir + 4);
	assert_int_equal(symlink(to, link), 0);
}

static void test_link_of_disk(void **state)
{
	static const struct { const char *disk, *text; } rows[] = {
		{ "nvme0n1", "PCIe 2.0 x4" }, /* the bridge is the slower of the two */
		{ "sda", "SATA 3.0 Gbps" },
		{ "sdb", "USB 480 Mbps" },
	};
	struct pp_sysroot sys = { .root = root };
	struct pp_link link;
	char command[64];
	size_t i;

	(void)state;
	assert_non_null(janitor_mkdtemp(root));
	put("/sys/devices/pci0000:00/0000:00:01.0/current_link_speed", "5.0 GT/s PCIe\n");
	put("/sys/devices/pci0000:00/0000:00:01.0/current_link_width", "4\n");
	put("/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/current_link_speed", "8.0 GT/s PCIe\n");
	put("/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/current_link_width", "4\n");
	put_disk("nvme0n1", "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1");
	put("/sys/class/ata_link/link3/sata_spd", "3.0 Gbps\n");
	put_disk("sda", "/sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda");
	put("/sys/devices/pci0000:00/0000:00:14.0/usb2/speed", "10000\n");
	put("/sys/devices/pci0000:00/0000:00:14.0/usb2/idVendor", "1d6b\n");
	put("/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/speed", "480\n");
	put("/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/idVendor", "152d\n");
	put_disk("sdb", "/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/host6/block/sdb");
	put_disk("vda", "/sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda");
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!pp_link_of_disk(&sys, rows[i].disk, &link))
			fail_msg("no link of '%s'", rows[i].disk);
		assert_string_equal(link.text, rows[i].text);
	}
	assert_false(pp_link_of_disk(&sys, "vda", &link));
	assert_false(pp_link_of_disk(&sys, "sdz", &link));
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_link_text),
		cmocka_unit_test(test_link_of_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
