/* SPDX-License-Identifier: MIT
 *
 * Goal: the policy of an arm is what the drive and the kernel really do (M1.5): the drive's word and the
 * kernel's belief are told apart, what could not be read is unknown, a set is read back, a failed set is
 * put back, and what was saved comes back after a reboot, on the same drive only.
 * Method: recorded machines (data/sysroot) with a drive made up here: it obeys, refuses or lies as told,
 * and the attributes change as the kernel's would. Rows are data; a fault walk fails each command once.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/core/policy_ops_linux.h"
#include "sysroot_tree.h"

/* ---- the made-up drive -------------------------------------------------------------------- */

static struct {
	struct pp_sysroot sys;
	struct pp_policy_host host;
	char root[64];
	bool has_cache, cache;  /* the drive's own */
	bool answers;           /* ATA, NVMe, SCSI: its word can be asked */
	bool stale, copy;       /* the kernel's copy of IDENTIFY is old, and says this */
	bool stubborn;          /* obeys no command, without a word */
	bool bridge;            /* sd's cache_type does not reach the disk */
	bool bridge_cache;      /* what the bridge says in its stead */
	bool old_kernel;        /* queue/write_cache takes any word */
	bool advertised;        /* the kernel knows of a cache (newer kernels: "write back" needs that) */
	int fail_at, calls;     /* the fail_at'th change is refused with EIO */
	int changes;
	char last[128];
} fake;

static bool refuse(void)
{
	return ++fake.calls == fake.fail_at;
}

static void put_word(uint8_t *page, int word, unsigned value)
{
	page[2 * word] = (uint8_t)value;
	page[2 * word + 1] = (uint8_t)(value >> 8);
}

static void fill_identify(uint8_t page[512])
{
	put_word(page, 82, fake.has_cache ? 0x20 : 0);
	put_word(page, 85, fake.has_cache && fake.cache ? 0x20 : 0);
	put_word(page, 87, 0x4000);
}

static int fake_ata_identify(const char *node, uint8_t page[512])
{
	(void)node;
	fill_identify(page);
	if (fake.stale)
		put_word(page, 85, fake.copy ? 0x20 : 0);
	return fake.answers ? 0 : -1;
}

static int fake_sat_identify(const char *node, uint8_t page[512])
{
	(void)node;
	fill_identify(page);
	return fake.answers ? 0 : EIO;
}

static int fake_nvme_identify(const char *node, uint8_t page[4096])
{
	(void)node;
	page[525] = fake.has_cache;
	return fake.answers ? 0 : -1;
}

static int fake_nvme_write_cache(const char *node, bool *on)
{
	(void)node;
	*on = fake.cache;
	return fake.answers ? 0 : -1;
}

static int fake_scsi_write_cache(const char *node, bool *on)
{
	(void)node;
	*on = fake.bridge ? fake.bridge_cache : fake.cache;
	return fake.answers || fake.bridge ? 0 : EIO;
}

static void obey(bool on)
{
	fake.changes++;
	if (!fake.stubborn)
		fake.cache = on;
}

static int fake_set_cache(const char *node, bool on)
{
	(void)node;
	if (refuse())
		return EIO;
	obey(on);
	snprintf(fake.last, sizeof(fake.last), "command %s", on ? "on" : "off");
	return 0;
}

static int put_file(const struct pp_sysroot *sys, const char *path, const char *text)
{
	char full[4096];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", sys->root, path);
	f = fopen(full, "w");
	if (!f)
		return errno;
	fprintf(f, "%s\n", text);
	return fclose(f) ? errno : 0;
}

/* The belief follows sd. Of the disks that have a cache_type only sda is set in these tests. */
static int set_queue(const struct pp_sysroot *sys, const char *attribute, const char *text)
{
	char path[512];
	const char *end = strstr(attribute, "/block/");

	assert_non_null(end);
	snprintf(path, sizeof(path), "%.*s/block/sda/queue/write_cache", (int)(end - attribute), attribute);
	return put_file(sys, path, text);
}

/* What sd, virtio_blk and the block layer do with their attributes. */
static int fake_write_text(const struct pp_sysroot *sys, const char *path, const char *text)
{
	bool temporary = strncmp(text, "temporary ", 10) == 0;
	const char *word = temporary ? text + 10 : text;
	bool back = strncmp(word, "write back", 10) == 0;

	if (refuse())
		return EIO;
	fake.changes++;
	snprintf(fake.last, sizeof(fake.last), "%s <- %s", strrchr(path, '/') + 1, text);
	if (strstr(path, "/queue/write_cache"))
		return back && !fake.old_kernel && !fake.advertised ? 0 : put_file(sys, path, word);
	if (strstr(path, "/device/rescan"))
		return set_queue(sys, path, fake.cache ? "write back" : "write through");
	if (!temporary && !fake.bridge)
		obey(back);
	if (!fake.stubborn || temporary)
		put_file(sys, path, word);
	if (strstr(path, "/scsi_disk/") && !fake.stubborn)
		return set_queue(sys, path, back ? "write back" : "write through");
	return 0;
}

static const struct pp_drive_ops drive_ops = {
	.ata_identify = fake_ata_identify, .nvme_identify = fake_nvme_identify,
	.nvme_write_cache = fake_nvme_write_cache,
};
static const struct pp_policy_ops policy_ops = {
	.scsi_write_cache = fake_scsi_write_cache, .sat_identify = fake_sat_identify,
	.ata_set_cache = fake_set_cache, .nvme_set_cache = fake_set_cache,
	.write_text = fake_write_text,
};

static void open_machine(const char *tree)
{
	memset(&fake, 0, sizeof(fake));
	assert_int_equal(tree_unpack(tree, fake.root), 0);
	fake.sys = (struct pp_sysroot){.root = fake.root, .ops = &drive_ops};
	fake.host = (struct pp_policy_host){.sys = &fake.sys, .ops = &policy_ops};
	fake.has_cache = fake.cache = fake.answers = fake.advertised = true;
}

static void put_at(const char *path, const char *text, unsigned mode)
{
	char full[256];

	assert_int_equal(put_file(&fake.sys, path, text), 0);
	snprintf(full, sizeof(full), "%s%s", fake.root, path);
	assert_int_equal(chmod(full, mode), 0);
}

static const struct pp_policy_setting *named(const char *name)
{
	const struct pp_policy_setting *setting = pp_policy_setting_find(name);

	assert_non_null(setting);
	return setting;
}

static struct pp_policy read_now(const char *disk)
{
	struct pp_policy p;
	struct pp_error err;

	assert_int_equal(pp_policy_read_on(&fake.host, disk, &p, &err), 0);
	return p;
}

#define VIRTIO_TYPE "/sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda/cache_type"
#define VDA_QUEUE "/sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda/queue/write_cache"

/* ---- reading ------------------------------------------------------------------------------ */

/* Every row of what drive and kernel can say, and the setting that it is (NULL: none). */
static const struct {
	const char *tree, *disk;
	bool answers, has_cache, cache;
	enum pp_drive_cache drive;
	enum pp_truth flushing, fua;
	const char *setting;
	const char *oddity;
} reads[] = {
	{"nvme", "nvme0n1", true, true, true, PP_CACHE_ON, PP_TRUTH_YES, PP_TRUTH_YES, "cache-on", ""},
	{"nvme", "nvme0n1", true, true, false, PP_CACHE_OFF, PP_TRUTH_YES, PP_TRUTH_YES, "cache-off",
		"for nothing"},
	{"nvme", "nvme0n1", true, false, false, PP_CACHE_NONE, PP_TRUTH_YES, PP_TRUTH_YES, "cache-off",
		"for nothing"},
	{"nvme", "nvme0n1", false, true, true, PP_CACHE_UNKNOWN, PP_TRUTH_YES, PP_TRUTH_YES, "cache-on",
		""},
	/* the perfect liar: the kernel believes write through, the drive's cache is on */
	{"nvme", "nvme1n1", true, true, true, PP_CACHE_ON, PP_TRUTH_NO, PP_TRUTH_NO, "flushing-off",
		"believes write through"},
	{"nvme", "nvme1n1", true, true, false, PP_CACHE_OFF, PP_TRUTH_YES, PP_TRUTH_NO, "cache-off", ""},
	{"nvme", "nvme1n1", false, true, true, PP_CACHE_UNKNOWN, PP_TRUTH_NO, PP_TRUTH_NO, "flushing-off",
		""},
	{"sata-ssd", "sda", true, true, true, PP_CACHE_ON, PP_TRUTH_YES, PP_TRUTH_NO, "cache-on", ""},
	{"sata-ssd", "sda", true, true, false, PP_CACHE_OFF, PP_TRUTH_YES, PP_TRUTH_NO, "cache-off",
		"for nothing"},
	{"sata-ssd", "sdb", true, true, true, PP_CACHE_ON, PP_TRUTH_NO, PP_TRUTH_NO, "flushing-off",
		"believes write through"},
	{"sas", "sda", true, true, true, PP_CACHE_ON, PP_TRUTH_YES, PP_TRUTH_YES, "cache-on", ""},
	{"sas", "sda", true, true, false, PP_CACHE_OFF, PP_TRUTH_YES, PP_TRUTH_YES, "cache-off",
		"for nothing"},
	/* the bridge answers nothing, the kernel guesses: flushes are not sent, whatever the disk has */
	{"usb-bridge", "sda", false, true, true, PP_CACHE_UNKNOWN, PP_TRUTH_NO, PP_TRUTH_NO,
		"flushing-off", ""},
	{"usb-bridge", "sda", true, true, true, PP_CACHE_ON, PP_TRUTH_NO, PP_TRUTH_NO, "flushing-off",
		"believes write through"},
	{"virtual", "nbd0", true, true, true, PP_CACHE_UNKNOWN, PP_TRUTH_YES, PP_TRUTH_YES, "cache-on",
		""},
	{"virtual", "loop0", true, true, true, PP_CACHE_UNKNOWN, PP_TRUTH_YES, PP_TRUTH_NO, "cache-on",
		""},
	{"virtual", "vda", true, true, true, PP_CACHE_UNKNOWN, PP_TRUTH_YES, PP_TRUTH_NO, "cache-on", ""},
};

static void test_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
		const struct pp_policy_setting *is;
		struct pp_policy p;

		open_machine(reads[i].tree);
		fake.answers = reads[i].answers;
		fake.has_cache = reads[i].has_cache;
		fake.cache = reads[i].cache;
		p = read_now(reads[i].disk);
		assert_int_equal(p.drive_cache, reads[i].drive);
		assert_int_equal(p.flushing, reads[i].flushing);
		assert_int_equal(p.fua_sent, reads[i].fua);
		assert_int_equal(p.when, PP_POLICY_NOW);
		is = pp_policy_setting_of(&p);
		assert_string_equal(is ? is->name : "", reads[i].setting ? reads[i].setting : "");
		if (reads[i].oddity[0])
			assert_non_null(strstr(p.oddity, reads[i].oddity));
		else
			assert_string_equal(p.oddity, "");
		assert_int_equal(fake.changes, 0); /* reading changes nothing */
	}
}

/* A kernel without the attribute: unknown, and no setting at all. */
static void test_unknown_is_not_off(void **state)
{
	struct pp_policy p;
	char path[256];

	(void)state;
	open_machine("virtual");
	snprintf(path, sizeof(path), "%s%s", fake.root, VDA_QUEUE);
	assert_int_equal(unlink(path), 0);
	p = read_now("vda");
	assert_int_equal(p.system_cache, PP_TRUTH_UNKNOWN);
	assert_int_equal(p.flushing, PP_TRUTH_UNKNOWN);
	assert_int_equal(p.fua_sent, PP_TRUTH_UNKNOWN);
	assert_int_equal(p.drive_cache, PP_CACHE_UNKNOWN);
	for (size_t i = 0; i < pp_policy_setting_count; i++)
		assert_false(pp_policy_matches(&p, &pp_policy_settings[i]));
}

static void test_bridge_that_makes_up(void **state)
{
	struct pp_policy p;

	(void)state;
	open_machine("usb-bridge");
	fake.bridge = true;
	fake.bridge_cache = false;
	p = read_now("sda");
	assert_int_equal(p.drive_cache, PP_CACHE_ON);
	assert_non_null(strstr(p.oddity, "the bridge says"));
}

/* virtio's cache_type is the host's word only where the guest may change it. */
static void test_virtio(void **state)
{
	struct pp_policy p;
	struct pp_error err;

	(void)state;
	open_machine("virtual");
	put_at(VIRTIO_TYPE, "write back", 0444);
	p = read_now("vda");
	assert_int_equal(p.drive_cache, PP_CACHE_UNKNOWN);
	assert_int_equal(p.cache_changeable, PP_TRUTH_NO);
	assert_int_equal(pp_policy_set_on(&fake.host, "vda", named("cache-off"), NULL, &err), -1);
	assert_int_equal(err.class, PP_ERR_UNSUPPORTED);
	assert_int_equal(fake.changes, 0);
	put_at(VIRTIO_TYPE, "write back", 0644);
	p = read_now("vda");
	assert_int_equal(p.drive_cache, PP_CACHE_ON);
	assert_int_equal(pp_policy_set_on(&fake.host, "vda", named("cache-off"), NULL, &err), 0);
	assert_int_equal(read_now("vda").drive_cache, PP_CACHE_OFF);
}

/* ---- names and words ---------------------------------------------------------------------- */

static void test_names_match_whole(void **state)
{
	static const char *const no[] = {"", "cache", "cache-onx", "cache-of", "Cache-on", "flushing"};

	(void)state;
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		assert_null(pp_policy_setting_find(no[i]));
	for (size_t i = 0; i < pp_policy_setting_count; i++)
		assert_ptr_equal(pp_policy_setting_find(pp_policy_settings[i].name), &pp_policy_settings[i]);
}

/* No policy is two settings, and each combination is explained in some words, for both systems. */
static void test_each_combination(void **state)
{
	static const char *const systems[] = {"linux", "windows"};

	(void)state;
	for (int i = 0; i < 2 * 4 * 3 * 3 * 3; i++) {
		struct pp_policy p = {
			.drive_cache = (enum pp_drive_cache)(i / 2 % 4),
			.system_cache = (enum pp_truth)(i / 8 % 3),
			.flushing = (enum pp_truth)(i / 24 % 3),
			.fua_sent = (enum pp_truth)(i / 72 % 3),
		};
		const char *system = systems[i % 2];
		struct pp_buf out;
		int settings = 0;

		snprintf(p.system, sizeof(p.system), "%s", system);
		for (size_t k = 0; k < pp_policy_setting_count; k++)
			settings += pp_policy_matches(&p, &pp_policy_settings[k]);
		assert_true(settings <= 1);
		if (p.flushing == PP_TRUTH_UNKNOWN)
			assert_int_equal(settings, 0);
		p.when = PP_POLICY_REBOOT;
		for (size_t k = 0; k < pp_policy_setting_count; k++)
			assert_false(pp_policy_matches(&p, &pp_policy_settings[k]));
		p.when = PP_POLICY_NOW;
		pp_buf_init(&out, 8192);
		pp_policy_explain(&p, &out);
		assert_false(out.failed);
		assert_non_null(out.data);
		assert_int_equal(strstr(out.data, "Box \"") != NULL, i % 2);
		/* Dropped flushes over a cache that is on are never told as harmless. */
		if (p.drive_cache == PP_CACHE_ON && p.flushing != PP_TRUTH_YES)
			assert_non_null(strstr(out.data, "break every method"));
		if (p.drive_cache == PP_CACHE_UNKNOWN)
			assert_null(strstr(out.data, "is off"));
		pp_buf_release(&out);
	}
}

/* ---- setting ------------------------------------------------------------------------------ */

static const struct {
	const char *tree, *disk, *setting;
	bool answers, cache; /* before */
	int rc;
	enum pp_error_class class;
	bool cache_after;
	const char *belief_after; /* NULL: not looked at */
} sets[] = {
	{"nvme", "nvme0n1", "cache-on", true, true, 0, 0, true, "write back"},
	{"nvme", "nvme0n1", "cache-off", true, true, 0, 0, false, NULL},
	{"nvme", "nvme0n1", "cache-on", true, false, 0, 0, true, "write back"},
	{"nvme", "nvme0n1", "flushing-off", true, true, 0, 0, true, "write through"},
	{"nvme", "nvme0n1", "flushing-off", true, false, 0, 0, true, "write through"},
	{"nvme", "nvme1n1", "cache-on", true, true, 0, 0, true, "write back"},
	{"nvme", "nvme1n1", "cache-off", true, true, 0, 0, false, NULL},
	{"sata-ssd", "sda", "cache-off", true, true, 0, 0, false, "write through"},
	{"sata-ssd", "sda", "cache-on", true, false, 0, 0, true, "write back"},
	{"sata-ssd", "sda", "flushing-off", true, true, 0, 0, true, "write through"},
	{"sas", "sda", "cache-off", true, true, 0, 0, false, "write through"},
	{"sas", "sda", "cache-on", true, false, 0, 0, true, "write back"},
	{"virtual", "nbd0", "cache-on", true, true, 0, 0, true, "write back"},
	{"virtual", "nbd0", "flushing-off", true, true, 0, 0, true, "write through"},
	/* a loop device would keep it for whoever has it next */
	{"virtual", "loop0", "flushing-off", true, true, -1, PP_ERR_UNSUPPORTED, true, "write back"},
	{"virtual", "nbd0", "cache-off", true, true, -1, PP_ERR_UNSUPPORTED, true, "write back"},
	{"virtual", "loop0", "cache-off", true, true, -1, PP_ERR_UNSUPPORTED, true, "write back"},
	/* a drive whose word cannot be read back cannot be switched off for certain */
	{"nvme", "nvme0n1", "cache-off", false, true, -1, PP_ERR_UNSUPPORTED, true, "write back"},
};

static void belief_of(const char *disk, char out[32])
{
	struct pp_drive_info info;

	assert_int_equal(pp_drive_read(&fake.sys, disk, &info, NULL), 0);
	snprintf(out, 32, "%s", info.write_cache);
}

static void test_set_and_restore(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		struct pp_policy_saved saved;
		char before[32], belief[32];
		struct pp_error err;

		open_machine(sets[i].tree);
		fake.old_kernel = true;
		fake.answers = sets[i].answers;
		fake.cache = sets[i].cache;
		belief_of(sets[i].disk, before);
		assert_int_equal(pp_policy_set_on(&fake.host, sets[i].disk, named(sets[i].setting), &saved,
			&err), sets[i].rc);
		belief_of(sets[i].disk, belief);
		assert_int_equal(fake.cache, sets[i].cache_after);
		if (sets[i].belief_after)
			assert_string_equal(belief, sets[i].belief_after);
		assert_string_equal(saved.queue_write_cache, before);
		assert_string_equal(saved.wanted, sets[i].setting);
		if (sets[i].rc != 0) {
			assert_int_equal(err.class, sets[i].class);
			assert_int_equal(fake.changes, 0);
			continue;
		}
		{
			struct pp_policy now = read_now(sets[i].disk);
			assert_true(pp_policy_matches(&now, named(sets[i].setting)));
		}
		assert_int_equal(pp_policy_restore_on(&fake.host, sets[i].disk, &saved, &err), 0);
		belief_of(sets[i].disk, belief);
		assert_int_equal(fake.cache, sets[i].cache);
		assert_string_equal(belief, before);
		/* Nothing is written where all is as it was. */
		fake.changes = 0;
		assert_int_equal(pp_policy_restore_on(&fake.host, sets[i].disk, &saved, &err), 0);
		assert_int_equal(fake.changes, 0);
	}
}

static int fake_lab_cache(const char *node, enum pp_drive_cache *cache)
{
	(void)node;
	*cache = fake.cache ? PP_CACHE_ON : PP_CACHE_OFF;
	return fake.answers ? 0 : ENOTSUP;
}

/* In a lab's machine, and there alone, the drives behind nbd and loop devices have a word of their own. */
static void test_lab(void **state)
{
	static const char *const disks[] = {"nbd0", "loop0"};
	struct pp_policy_ops ops = policy_ops;
	struct pp_policy_saved saved;
	struct pp_policy now;
	struct pp_error err;
	size_t i;

	(void)state;
	ops.lab_cache = fake_lab_cache;
	ops.lab_set_cache = fake_set_cache;
	for (i = 0; i < 2; i++) {
		open_machine("virtual");
		fake.host.ops = &ops;
		fake.answers = false;
		now = read_now(disks[i]);
		assert_int_equal(now.drive_cache, PP_CACHE_UNKNOWN);
		assert_int_equal(pp_policy_set_on(&fake.host, disks[i], named("cache-off"), NULL, &err), -1);
		assert_int_equal(err.class, PP_ERR_UNSUPPORTED);
		fake.answers = true;
		now = read_now(disks[i]);
		assert_true(now.drive_cache == PP_CACHE_ON && now.cache_changeable == PP_TRUTH_YES);
		assert_int_equal(pp_policy_set_on(&fake.host, disks[i], named("cache-off"), &saved, &err), 0);
		now = read_now(disks[i]);
		assert_true(!fake.cache && pp_policy_matches(&now, named("cache-off")));
		assert_int_equal(pp_policy_restore_on(&fake.host, disks[i], &saved, &err), 0);
		assert_true(fake.cache);
	}
}

/* But what another one left there is put right. */
static void test_loop_that_inherited(void **state)
{
	struct pp_error err;
	char belief[32];

	(void)state;
	open_machine("virtual");
	put_at("/sys/devices/virtual/block/loop0/queue/write_cache", "write through", 0644);
	assert_int_equal(pp_policy_set_on(&fake.host, "loop0", named("cache-on"), NULL, &err), 0);
	belief_of("loop0", belief);
	assert_string_equal(belief, "write back");
}

/* A drive that says nothing and does nothing: read back, told, never believed. */
static void test_stubborn(void **state)
{
	static const struct {
		const char *tree, *disk;
	} rows[] = {{"nvme", "nvme0n1"}, {"sata-ssd", "sda"}, {"sas", "sda"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_error err;
		char belief[32];

		open_machine(rows[i].tree);
		fake.old_kernel = true;
		fake.stubborn = true;
		assert_int_equal(pp_policy_set_on(&fake.host, rows[i].disk, named("cache-off"), NULL, &err),
			-1);
		assert_int_equal(err.class, PP_ERR_SYSTEM);
		assert_non_null(strstr(err.text, "drive cache on"));
		belief_of(rows[i].disk, belief);
		assert_string_equal(belief, "write back");
	}
}

/* Newer kernels: "write back" cannot be forced on a device that advertises no cache. */
static void test_kernel_that_will_not(void **state)
{
	struct pp_error err;
	char belief[32];

	(void)state;
	open_machine("nvme");
	fake.advertised = false;
	assert_int_equal(pp_policy_set_on(&fake.host, "nvme1n1", named("cache-on"), NULL, &err), -1);
	assert_non_null(strstr(err.text, "did not become cache-on"));
	belief_of("nvme1n1", belief);
	assert_string_equal(belief, "write through");
	assert_true(fake.cache);
}

/* libata reads its copy of IDENTIFY again when it gets to it: the drive is asked, not the copy. */
static void test_kernels_copy_is_old(void **state)
{
	struct pp_error err;

	(void)state;
	for (int on = 0; on < 2; on++) {
		open_machine("sata-ssd");
		fake.old_kernel = fake.stale = true;
		fake.cache = fake.copy = !on;
		assert_int_equal(pp_policy_set_on(&fake.host, "sda", named(on ? "cache-on" : "cache-off"),
			NULL, &err), 0);
		assert_int_equal(fake.cache, on);
		assert_int_equal(read_now("sda").drive_cache, on ? PP_CACHE_ON : PP_CACHE_OFF);
	}
}

/* sd's word does not reach a disk behind such a bridge: it is told directly. */
static void test_bridge_is_passed(void **state)
{
	struct pp_error err;

	(void)state;
	open_machine("usb-bridge");
	fake.old_kernel = true;
	fake.bridge = true;
	assert_int_equal(pp_policy_set_on(&fake.host, "sda", named("cache-off"), NULL, &err), 0);
	assert_false(fake.cache);
}

/* Each change fails once: the error is told, and all is as it was. */
static void test_fault_walk(void **state)
{
	static const char *const disks[][2] = {{"nvme", "nvme0n1"}, {"sata-ssd", "sda"}, {"sas", "sda"}};

	(void)state;
	for (size_t d = 0; d < 3; d++) {
		for (size_t k = 0; k < pp_policy_setting_count; k++) {
			int at, rc = -1;

			for (at = 1; rc != 0; at++) {
				struct pp_error err = {.class = PP_ERR_NONE};
				struct pp_policy_saved saved;
				char before[32], belief[32];

				assert_true(at < 10);
				open_machine(disks[d][0]);
				fake.old_kernel = true;
				fake.cache = k == 1; /* so that each setting has something to do, or two things */
				belief_of(disks[d][1], before);
				fake.fail_at = at;
				rc = pp_policy_set_on(&fake.host, disks[d][1], &pp_policy_settings[k], &saved, &err);
				if (rc == 0)
					continue;
				assert_int_equal(err.class, PP_ERR_SYSTEM);
				belief_of(disks[d][1], belief);
				assert_string_equal(belief, before);
				assert_int_equal(fake.cache, k == 1);
				assert_string_equal(saved.queue_write_cache, before);
			}
		}
	}
}

/* ---- saved state -------------------------------------------------------------------------- */

static void test_saved_text(void **state)
{
	struct pp_policy_saved saved, back;
	struct pp_policy p, q;
	struct pp_error err;
	struct pp_buf buf;
	struct pp_kv kv;

	(void)state;
	open_machine("sata-ssd");
	assert_int_equal(pp_policy_save_on(&fake.host, "sda", &saved, &err), 0);
	saved.user_write_cache_setting = -1;
	saved.cache_is_power_protected = PP_POLICY_ABSENT;
	pp_buf_init(&buf, 65536);
	pp_policy_saved_put(&buf, &saved);
	assert_false(buf.failed);
	assert_int_equal(pp_kv_parse(&kv, buf.data, buf.bytes, &err), 0);
	assert_int_equal(pp_policy_saved_get(&kv, &back, &err), 0);
	assert_memory_equal(&saved, &back, sizeof(saved));
	pp_kv_release(&kv);
	/* Any line left out is told: a state read by half must not be restored. */
	for (char *line = buf.data; *line;) {
		size_t n = strcspn(line, "\n") + 1, before = (size_t)(line - buf.data);
		char text[65536];

		snprintf(text, sizeof(text), "%.*s%s", (int)before, buf.data, line + n);
		assert_int_equal(pp_kv_parse(&kv, text, strlen(text), &err), 0);
		assert_int_equal(pp_policy_saved_get(&kv, &back, &err), -1);
		pp_kv_release(&kv);
		line += n;
	}
	pp_buf_clear(&buf);
	p = read_now("sda");
	pp_policy_put(&buf, "drive_", &p);
	assert_int_equal(pp_kv_parse(&kv, buf.data, buf.bytes, &err), 0);
	assert_int_equal(pp_policy_get(&kv, "drive_", &q, &err), 0);
	assert_memory_equal(&p, &q, sizeof(p));
	pp_kv_release(&kv);
	pp_buf_release(&buf);
}

static void test_restore_refuses_others(void **state)
{
	struct pp_policy_saved saved;
	struct pp_error err;

	(void)state;
	open_machine("sata-ssd");
	assert_int_equal(pp_policy_save_on(&fake.host, "sda", &saved, &err), 0);
	assert_int_equal(pp_policy_restore_on(&fake.host, "sdb", &saved, &err), -1);
	assert_int_equal(err.class, PP_ERR_REFUSED);
	snprintf(saved.system, sizeof(saved.system), "windows");
	assert_int_equal(pp_policy_restore_on(&fake.host, "sda", &saved, &err), -1);
	assert_int_equal(err.class, PP_ERR_REFUSED);
	assert_int_equal(fake.changes, 0);
}

/* ---- the guard ---------------------------------------------------------------------------- */

static void test_not_during_a_run(void **state)
{
	struct pp_policy_saved saved;
	struct pp_policy p;
	struct pp_error err;

	(void)state;
	open_machine("sata-ssd");
	assert_int_equal(pp_policy_save_on(&fake.host, "sda", &saved, &err), 0);
	pp_policy_run_begin("sda");
	pp_policy_run_begin("sda");
	pp_policy_run_end("sda");
	assert_int_equal(pp_policy_read_on(&fake.host, "sda", &p, &err), -1);
	assert_int_equal(err.class, PP_ERR_REFUSED);
	assert_int_equal(pp_policy_save_on(&fake.host, "sda", &saved, &err), -1);
	assert_int_equal(pp_policy_set_on(&fake.host, "sda", named("cache-off"), NULL, &err), -1);
	assert_int_equal(err.class, PP_ERR_REFUSED);
	assert_int_equal(pp_policy_restore_on(&fake.host, "sda", &saved, &err), -1);
	assert_int_equal(pp_policy_read_on(&fake.host, "sdb", &p, &err), 0);
	pp_policy_run_end("sda");
	assert_int_equal(pp_policy_read_on(&fake.host, "sda", &p, &err), 0);
	assert_int_equal(fake.changes, 0);
	/* More runs than there is room for: all disks are guarded, and free again afterwards. */
	for (int i = 0; i < PP_POLICY_RUNS_MAX + 1; i++)
		pp_policy_run_begin("sda");
	assert_true(pp_policy_in_run("sdb"));
	for (int i = 0; i < PP_POLICY_RUNS_MAX + 1; i++)
		pp_policy_run_end("sda");
	assert_false(pp_policy_in_run("sda"));
	assert_false(pp_policy_in_run("sdb"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_unknown_is_not_off),
		cmocka_unit_test(test_bridge_that_makes_up),
		cmocka_unit_test(test_virtio),
		cmocka_unit_test(test_names_match_whole),
		cmocka_unit_test(test_each_combination),
		cmocka_unit_test(test_set_and_restore),
		cmocka_unit_test(test_lab),
		cmocka_unit_test(test_loop_that_inherited),
		cmocka_unit_test(test_stubborn),
		cmocka_unit_test(test_kernel_that_will_not),
		cmocka_unit_test(test_kernels_copy_is_old),
		cmocka_unit_test(test_bridge_is_passed),
		cmocka_unit_test(test_fault_walk),
		cmocka_unit_test(test_saved_text),
		cmocka_unit_test(test_restore_refuses_others),
		cmocka_unit_test(test_not_during_a_run),
	};

	return cmocka_run_group_tests(tests, NULL, tree_remove_all);
}
