/* SPDX-License-Identifier: MIT
 *
 * Goal: the drive that a verdict is given to is the drive that was meant, on every kind of machine.
 * Method: recorded machines (data/sysroot) are unpacked and read; ioctls answer from here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/core/drive.h"
#include "sysroot_tree.h"

struct machine {
	char root[64];
	struct pp_sysroot sys;
};

static struct machine open_machine(const char *name)
{
	struct machine m;

	memset(&m, 0, sizeof(m));
	assert_int_equal(tree_unpack(name, m.root), 0);
	m.sys.root = m.root;
	return m;
}

/* Points sys.root at the struct that now holds the name. */
#define OPEN(m, name) struct machine m = open_machine(name); m.sys.root = m.root

/* ---- identity ----------------------------------------------------------------------------- */

struct identity {
	const char *machine, *name, *serial, *wwn, *model, *firmware, *transport, *policy;
	uint64_t size_bytes;
	uint32_t physical_block_bytes;
	bool partitions, bridge;
};

static const struct identity identities[] = {
	{"nvme", "nvme0n1", "S4EWNX0M912345K", "eui.0025385b71b0a1c2", "Samsung SSD 970 EVO Plus 1TB",
		"2B2QEXM7", "nvme", "write back, fua", 1000204886016, 512, true, false},
	{"nvme", "nvme1n1", "PHLJ912300GX3P8EGN", "eui.01000000010000005cd2e4f1a2b35251",
		"INTEL SSDPE2KX038T8", "VDV10131", "nvme", "write through", 3840755982336, 4096, false,
		false},
	{"sata-usb", "sda", "S3Z9NB0K123456A", "naa.5002538e40a1b2c3", "Samsung SSD 860", "4B6Q", "sata",
		"write back, no fua", 500107862016, 512, true, false},
	{"sata-usb", "sdb", "575833314138364A50384C31", "", "Elements 2621", "1026", "usb",
		"write through", 1000204886016, 4096, false, true},
	{"virtual", "vda", "lab-root", "", "virtio", "", "virtio", "write back, no fua", 21474836480,
		4096, false, false},
	{"virtual", "nbd0", "LAB-0001", "", "nbd", "", "nbd", "write back, fua", 536870912, 512, false,
		false},
	{"virtual", "loop0", "/home/a b/disk.img", "", "loop", "", "loop", "write back, no fua",
		134217728, 512, false, false},
	{"stacks", "md0", "5d1c7a62-aaaa-bbbb-cccc-0123456789ab", "", "md raid1", "", "md",
		"write back, fua", 2000263643136, 4096, false, false},
	{"stacks", "dm-1", "LVM-QmB4kfIxBUYRGvxPWl6JxqjA0d8KzU1caaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "",
		"vg-root", "", "dm", "write back, no fua", 107374182400, 512, false, false},
	{"stacks", "sda", "W4600000", "naa.5000c5009c000000", "ST2000NX0433", "NS02", "sas",
		"write back, no fua", 2000398934016, 4096, true, false},
};

static void test_identity(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(identities) / sizeof(identities[0]); i++) {
		const struct identity *want = &identities[i];
		struct pp_drive_info info;
		struct pp_error err;
		char policy[64];
		OPEN(m, want->machine);

		assert_int_equal(pp_drive_read(&m.sys, want->name, &info, &err), 0);
		tree_remove(m.root);
		pp_drive_policy(&info, policy, sizeof(policy));
		assert_string_equal(info.serial, want->serial);
		assert_string_equal(info.wwn, want->wwn);
		assert_string_equal(info.model, want->model);
		assert_string_equal(info.firmware, want->firmware);
		assert_string_equal(pp_transport_name(info.transport), want->transport);
		assert_string_equal(policy, want->policy);
		assert_int_equal(info.size_bytes, want->size_bytes);
		assert_int_equal(info.physical_block_bytes, want->physical_block_bytes);
		assert_int_equal(info.has_partitions, want->partitions);
		assert_int_equal(info.serial_of_bridge, want->bridge);
	}
}

/* A partition is no drive: a verdict on it would be a verdict on nothing. */
static void test_partition_is_no_drive(void **state)
{
	static const char *const names[] = {"nvme0n1p1", "absent", "", ".", "../block/nvme0n1", "sda/x"};
	OPEN(m, "nvme");

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct pp_drive_info info;
		struct pp_error err;

		assert_int_equal(pp_drive_read(&m.sys, names[i], &info, &err), -1);
		assert_non_null(strstr(err.text, names[i]));
	}
	tree_remove(m.root);
}

static void test_list(void **state)
{
	struct pp_drive_info *list;
	struct pp_error err;
	size_t count;
	OPEN(m, "virtual");

	(void)state;
	assert_int_equal(pp_drive_list(&m.sys, &list, &count, &err), 0);
	/* nbd1 and loop7 have no size: nothing is attached. */
	assert_int_equal(count, 9);
	assert_string_equal(list[0].name, "loop0");
	for (size_t i = 0; i < count; i++)
		assert_string_not_equal(list[i].name, "nbd1");
	free(list);
	tree_remove(m.root);
}

/* M2.7: whole strings, blanks trimmed; two of one name are an error, no choice. */
static void test_find(void **state)
{
	static const struct {
		const char *machine, *id, *name;
		enum pp_error_class class;
	} rows[] = {
		{"nvme", "S4EWNX0M912345K", "nvme0n1", 0},
		{"nvme", "  S4EWNX0M912345K \n", "nvme0n1", 0},
		{"nvme", "eui.0025385b71b0a1c2", "nvme0n1", 0},
		{"nvme", "S4EWNX0M912345", NULL, PP_ERR_UNSUPPORTED},
		{"nvme", "s4ewnx0m912345k", NULL, PP_ERR_UNSUPPORTED},
		{"nvme", "", NULL, PP_ERR_UNSUPPORTED},
		{"nvme", " ", NULL, PP_ERR_UNSUPPORTED},
		{"sata-usb", "S3Z9NB0K123456A", "sda", 0},
		{"sata-usb", "S3Z9NB0K123456A2", "sdaa", 0},
		{"virtual", "LAB-0001", "nbd0", 0},
		{"virtual", "LAB-00010", "nbd10", 0},
		{"virtual", "LAB-000", NULL, PP_ERR_UNSUPPORTED},
		{"twins", "6000c29f", NULL, PP_ERR_EVIDENCE},
		{"twins", "WAE1XYZ0", "dm-0", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_drive_info info;
		struct pp_error err = {.class = PP_ERR_NONE};
		int rc;
		OPEN(m, rows[i].machine);

		rc = pp_drive_wait(&m.sys, rows[i].id, 0, &info, &err);
		tree_remove(m.root);
		assert_int_equal(rc, rows[i].name ? 0 : -1);
		assert_int_equal(err.class, rows[i].class);
		if (rows[i].name)
			assert_string_equal(info.name, rows[i].name);
	}
}

/* ---- the drive's own word (M1.5, M7.4) ---------------------------------------------------- */

static uint8_t fake_vwc;
static bool fake_on, fake_answers;

static int fake_nvme_identify(const char *node, uint8_t page[4096])
{
	(void)node;
	page[525] = fake_vwc;
	return fake_answers ? 0 : -1;
}

static int fake_nvme_write_cache(const char *node, bool *on)
{
	(void)node;
	*on = fake_on;
	return 0;
}

static unsigned fake_w82, fake_w85, fake_w87;

static void put_word(uint8_t *page, int word, unsigned value)
{
	page[2 * word] = (uint8_t)value;
	page[2 * word + 1] = (uint8_t)(value >> 8);
}

static int fake_ata_identify(const char *node, uint8_t page[512])
{
	static const char model[] = "Samsung SSD 860 EVO 500GB               ";

	(void)node;
	for (int i = 0; i < 40; i++)
		page[54 + (i ^ 1)] = (uint8_t)model[i];
	put_word(page, 82, fake_w82);
	put_word(page, 85, fake_w85);
	put_word(page, 87, fake_w87);
	return 0;
}

static const char *fake_reference; /* NULL: no answer */

static int fake_loop_reference(const char *node, char reference[64])
{
	(void)node;
	if (!fake_reference)
		return -1;
	snprintf(reference, 64, "%s", fake_reference);
	return 0;
}

static const struct pp_drive_ops fake_ops = {
	.ata_identify = fake_ata_identify, .nvme_identify = fake_nvme_identify,
	.nvme_write_cache = fake_nvme_write_cache, .loop_reference = fake_loop_reference,
};

/* A loop device goes by a name that somebody gave it, else by its whole file: what tools fill in by
 * themselves, the name of the file as far as it fits, is none. */
static void test_loop_reference(void **state)
{
	static const struct {
		const char *reference, *serial;
	} rows[] = {
		{"LAB-X", "LAB-X"}, {NULL, "/home/a b/disk.img"}, {"", "/home/a b/disk.img"},
		{"/home/a b/disk.img", "/home/a b/disk.img"}, {"/home/a", "/home/a b/disk.img"},
		{"disk.img", "/home/a b/disk.img"}, {"b/disk.img", "/home/a b/disk.img"},
		{"disk", "disk"}, {"a\tb", "/home/a b/disk.img"},
	};
	struct pp_drive_info info;
	OPEN(m, "virtual");

	(void)state;
	m.sys.ops = &fake_ops;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake_reference = rows[i].reference;
		assert_int_equal(pp_drive_read(&m.sys, "loop0", &info, NULL), 0);
		assert_string_equal(info.serial, rows[i].serial);
		assert_string_equal(info.backing_file, "/home/a b/disk.img");
	}
	tree_remove(m.root);
}

static void test_nvme_cache(void **state)
{
	static const struct {
		bool answers;
		uint8_t vwc;
		bool on;
		enum pp_drive_cache cache;
		const char *policy;
	} rows[] = {
		{true, 7, true, PP_CACHE_ON, "write back, fua"},
		{true, 7, false, PP_CACHE_OFF, "write back, fua, drive cache off"},
		{true, 6, true, PP_CACHE_NONE, "write back, fua, drive cache off"},
		{false, 7, true, PP_CACHE_UNKNOWN, "write back, fua"},
	};
	OPEN(m, "nvme");

	(void)state;
	m.sys.ops = &fake_ops;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_drive_info info;
		char policy[64];

		fake_answers = rows[i].answers;
		fake_vwc = rows[i].vwc;
		fake_on = rows[i].on;
		assert_int_equal(pp_drive_read(&m.sys, "nvme0n1", &info, NULL), 0);
		assert_int_equal(info.drive_cache, rows[i].cache);
		assert_int_equal(info.no_volatile_cache, rows[i].cache == PP_CACHE_NONE);
		pp_drive_policy(&info, policy, sizeof(policy));
		assert_string_equal(policy, rows[i].policy);
	}
	tree_remove(m.root);
}

/* A kernel that was told write through, over a drive whose cache is on: the perfect liar. */
static void test_write_through_over_write_back(void **state)
{
	struct pp_drive_info info;
	char policy[64];
	OPEN(m, "nvme");

	(void)state;
	m.sys.ops = &fake_ops;
	fake_answers = fake_on = true;
	fake_vwc = 7;
	assert_int_equal(pp_drive_read(&m.sys, "nvme1n1", &info, NULL), 0);
	pp_drive_policy(&info, policy, sizeof(policy));
	assert_string_equal(policy, "write through, drive cache on");
	tree_remove(m.root);
}

static void test_ata_cache(void **state)
{
	static const struct {
		unsigned w82, w85, w87;
		enum pp_drive_cache cache;
	} rows[] = {
		{0x20, 0x20, 0x4000, PP_CACHE_ON},
		{0x20, 0x00, 0x4000, PP_CACHE_OFF},
		{0x00, 0x00, 0x4000, PP_CACHE_NONE},
		{0x20, 0x20, 0x0000, PP_CACHE_UNKNOWN}, /* words not valid */
		{0x20, 0x20, 0xc000, PP_CACHE_UNKNOWN},
	};
	OPEN(m, "sata-usb");

	(void)state;
	m.sys.ops = &fake_ops;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_drive_info info;

		fake_w82 = rows[i].w82;
		fake_w85 = rows[i].w85;
		fake_w87 = rows[i].w87;
		assert_int_equal(pp_drive_read(&m.sys, "sda", &info, NULL), 0);
		assert_int_equal(info.drive_cache, rows[i].cache);
		assert_string_equal(info.model, "Samsung SSD 860 EVO 500GB");
	}
	tree_remove(m.root);
}

/* M2.5: a full stripe of a parity array, nothing for a mirror. */
static void test_stripe(void **state)
{
	struct pp_drive_info info;
	OPEN(m, "stacks");

	(void)state;
	assert_int_equal(pp_drive_read(&m.sys, "md1", &info, NULL), 0);
	assert_int_equal(info.stripe_bytes, 2 * 65536);
	assert_int_equal(pp_drive_read(&m.sys, "md0", &info, NULL), 0);
	assert_int_equal(info.stripe_bytes, 0);
	tree_remove(m.root);
}

/* ---- stacks ------------------------------------------------------------------------------- */

static void test_stacks(void **state)
{
	static const struct {
		const char *machine, *path, *disks, *layers;
		bool incomplete, no_barrier;
	} rows[] = {
		{"nvme", "/etc/passwd", "nvme0n1", "nvme0n1p3 nvme0n1", false, false},
		{"nvme", "/boot/efi", "nvme0n1", "nvme0n1p1 nvme0n1", false, false},
		{"nvme", "/boot/efix", "nvme0n1", "nvme0n1p3 nvme0n1", false, false},
		{"nvme", "/srv/my data/x", "nvme1n1", "nvme1n1", false, true},
		{"nvme", "/tmp/x", "", "", true, false},
		{"nvme", "/dev/nvme0n1p2", "nvme0n1", "nvme0n1p2 nvme0n1", false, false},
		{"sata-usb", "/mnt/a/f", "sda", "sda1 sda", false, true},
		{"virtual", "/dev/loop0", "vda", "loop0 ext4 vda", false, false},
		{"virtual", "/mnt/lab/f", "", "loop1 fuse.plugpull-drive", true, false},
		{"virtual", "/dev/loop2", "vda", "loop2 ext4 vda", false, false},
		{"virtual", "/merged/f", "vda", "ext4 vda", false, true},
		{"virtual", "/nfs/f", "", "", true, false},
		{"stacks", "/x", "sdf", "dm-1 dm-0 sdf1 sdf", false, false},
		{"stacks", "/boot/x", "sda sdb", "md0 sda1 sda sdb1 sdb", false, false},
		{"stacks", "/mnt/b/x", "sdh sdi", "sdh sdi", false, true},
		{"stacks", "/mnt/d/x", "sdg sdl", "dm-2 sdg sdl", false, false},
		{"stacks", "/mnt/r/x", "sdc sdd sde", "md1 sdc sdd sde", false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char layers[512] = "", disks[512] = "";
		struct pp_stack stack;
		struct pp_error err;
		OPEN(m, rows[i].machine);

		assert_int_equal(pp_drive_of_path(&m.sys, rows[i].path, &stack, &err), 0);
		tree_remove(m.root);
		for (size_t k = 0; k < stack.layer_count; k++)
			sprintf(layers + strlen(layers), "%s%s", k ? " " : "", stack.layers[k].name);
		for (size_t k = 0; k < stack.disk_count; k++)
			sprintf(disks + strlen(disks), "%s%s", k ? " " : "", stack.disks[k]);
		assert_string_equal(layers, rows[i].layers);
		assert_string_equal(disks, rows[i].disks);
		assert_int_equal(stack.incomplete, rows[i].incomplete);
		assert_int_equal(pp_stack_no_barrier(&stack), rows[i].no_barrier);
	}
}

/* M1.2 */
static void test_share(void **state)
{
	static const struct {
		const char *machine, *a, *b, *why; /* why NULL: they do not share */
	} rows[] = {
		{"stacks", "sda", "sdb", "md0"},
		{"stacks", "sdc", "sde", "md1"},
		{"stacks", "sdf", "sdg", "volume group"},
		{"stacks", "sdg", "sdl", NULL}, /* two groups */
		{"stacks", "sdh", "sdi", "btrfs"},
		{"stacks", "sdj", "sdk", "RAID card"},
		{"stacks", "sda", "sdc", NULL}, /* one HBA, no cache of its own */
		{"stacks", "sda", "sda", "sda"},
		{"stacks", "sda", "md0", "md0"},
		{"virtual", "loop0", "loop3", "vda"},
		{"virtual", "loop0", "vda", "vda"},
		{"virtual", "loop0", "loop1", NULL},
		{"virtual", "nbd0", "nbd10", NULL},
		{"nvme", "nvme0n1", "nvme1n1", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_error err;
		char why[256];
		int rc;
		OPEN(m, rows[i].machine);

		rc = pp_drives_share(&m.sys, rows[i].a, rows[i].b, why, sizeof(why), &err);
		tree_remove(m.root);
		assert_int_equal(rc, rows[i].why ? 1 : 0);
		if (rows[i].why)
			assert_non_null(strstr(why, rows[i].why));
	}
}

/* The drive beneath the running system, through all layers. */
static void test_carries_system(void **state)
{
	static const struct {
		const char *machine, *name;
		int carries;
	} rows[] = {
		{"nvme", "nvme0n1", 1}, {"nvme", "nvme1n1", 0},  {"stacks", "sdf", 1}, /* / on LVM on LUKS */
		{"stacks", "sda", 1},   {"stacks", "sdb", 1}, /* /boot on RAID1 */
		{"stacks", "sdc", 0},   {"stacks", "sdg", 0},    {"virtual", "vda", 1},
		{"virtual", "loop0", 0}, {"virtual", "nbd0", 0}, {"sata-usb", "sda", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_error err;
		char why[256];
		OPEN(m, rows[i].machine);

		assert_int_equal(pp_drive_carries_system(&m.sys, rows[i].name, why, sizeof(why), &err),
			rows[i].carries);
		tree_remove(m.root);
	}
}

static void test_swap(void **state)
{
	struct pp_error err;
	char why[256], path[128];
	FILE *f;
	OPEN(m, "sata-usb");

	(void)state;
	assert_int_equal(pp_drive_carries_system(&m.sys, "sda", why, sizeof(why), &err), 0);
	snprintf(path, sizeof(path), "%s/proc/swaps", m.root);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "Filename\t\tType\n/mnt/a/swapfile file 1 0 -2\n");
	fclose(f);
	assert_int_equal(pp_drive_carries_system(&m.sys, "sda", why, sizeof(why), &err), 1);
	assert_non_null(strstr(why, "swap"));
	assert_int_equal(pp_drive_carries_system(&m.sys, "sdaa", why, sizeof(why), &err), 0);
	tree_remove(m.root);
}

static void test_descendants(void **state)
{
	char (*names)[PP_DRIVE_NAME_BYTES];
	struct pp_error err;
	size_t count;
	OPEN(m, "stacks");

	(void)state;
	assert_int_equal(pp_drive_descendants(&m.sys, "sdf", &names, &count, &err), 0);
	assert_int_equal(count, 4);
	assert_string_equal(names[1], "sdf1");
	assert_string_equal(names[3], "dm-1");
	free(names);
	assert_int_equal(pp_drive_descendants(&m.sys, "sdz", &names, &count, &err), -1);
	tree_remove(m.root);
}

static void test_folder_name(void **state)
{
	static const char *const rows[][2] = {
		{"S4EWNX0M912345K", "S4EWNX0M912345K"}, {"/tmp/a b/disk", "_tmp_a_b_disk"},
		{"..", "_."}, {".hidden", "_hidden"}, {"naa.5002", "naa.5002"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char out[64];

		pp_drive_folder_name(rows[i][0], out, sizeof(out));
		assert_string_equal(out, rows[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_partition_is_no_drive),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_loop_reference),
		cmocka_unit_test(test_nvme_cache),
		cmocka_unit_test(test_write_through_over_write_back),
		cmocka_unit_test(test_ata_cache),
		cmocka_unit_test(test_stripe),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_carries_system),
		cmocka_unit_test(test_swap),
		cmocka_unit_test(test_descendants),
		cmocka_unit_test(test_folder_name),
	};

	return cmocka_run_group_tests(tests, NULL, tree_remove_all);
}
