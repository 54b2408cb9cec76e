/* SPDX-License-Identifier: MIT
 *
 * Goal: identify tells the drives beneath and warns of every trap it can see, in JSON and in 80
 * columns of text; and of none that is not there. Method: the command runs on recorded machines, its
 * standard output in a file. Each row lists all that must be said; over all rows each trap of the
 * table is said somewhere and left unsaid elsewhere.
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
#include "src/cli/identify_parts.h"
#include "sysroot_tree.h"

#define OUT_BYTES 262144
#define WORDS_MAX 12

static char out[OUT_BYTES];

/* Runs the command with these words (NULL ends) on a machine; returns its exit status. */
static int run_words(const char *machine, const char *const *words)
{
	char root[64], path[] = "/tmp/plugpull-identify.XXXXXX";
	char name[] = "identify", sysroot[] = "--sysroot";
	char *argv[WORDS_MAX] = {name, sysroot, root, NULL};
	int fd = mkstemp(path), saved = dup(STDOUT_FILENO), status, argc = 3;
	ssize_t n;

	assert_true(fd >= 0 && saved >= 0);
	unlink(path);
	assert_int_equal(tree_unpack(machine, root), 0);
	for (; *words && argc + 1 < WORDS_MAX; words++)
		argv[argc++] = (char *)(uintptr_t)*words;
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	status = pp_cmd_identify(argc, argv);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	tree_remove(root);
	n = pread(fd, out, sizeof(out) - 1, 0);
	close(fd);
	assert_true(n >= 0 && (size_t)n < sizeof(out) - 1);
	out[n] = '\0';
	return status;
}

static int run(const char *machine, const char *target, bool as_json)
{
	const char *const words[] = {"--smart", target, as_json ? "--json" : NULL, NULL};

	return run_words(machine, words);
}

static void add_ids(json_t *warnings, char *ids)
{
	json_t *row;
	size_t i;

	json_array_foreach(warnings, i, row)
		sprintf(ids + strlen(ids), "%s%s", ids[0] ? " " : "",
			json_string_value(json_object_get(row, "id")));
}

/* Traps of the drives in their order, then of the target, then of the machine. */
static const struct {
	const char *machine, *target, *drives, *warnings;
} rows[] = {
	/* NVMe: consumer, protected, on a network, with two ports */
	{"nvme-consumer", "/home/x", "nvme0n1", "system-drive"},
	{"nvme-consumer", "S6Z1NF0W104882T", "nvme0n1", "system-drive"},
	{"nvme-consumer", "/tmp/x", "", "memory-fs"},
	{"nvme-plp", "/db", "nvme0n1", "no-volatile-cache record-size"},
	{"nvme-plp", "nvme1n1", "nvme1n1", "no-volatile-cache protection-failed record-size"},
	{"nvme-plp", "nvme2n1", "nvme2n1", "remote-drive"},
	{"nvme-plp", "nvme3n1", "nvme3n1", "multipath"},
	{"nvme", "/home/x", "nvme0n1", "system-drive"},
	{"nvme", "/srv/my data", "nvme1n1", "write-through-unasked record-size no-barrier"},
	/* SATA */
	{"sata-ssd", "/mnt/a", "sda", ""},
	{"sata-ssd", "sdb", "sdb", "write-through-over-write-back"},
	{"sata-ssd", "sdc", "sdc", ""},
	{"sata-ssd", "/mnt/d", "sdd", "no-barrier copy-on-write"},
	{"sata-usb", "/mnt/a", "sda", "no-barrier"},
	{"hdd", "/mnt/j", "sda", "record-size data-journal battery"},
	{"hdd", "/", "sdb", "system-drive battery"},
	/* SAS, Fibre Channel, RAID cards */
	{"sas", "sda", "sda", "record-size"},
	{"sas", "dm-0", "dm-0 sdb sdc", "multipath multipath multipath"},
	{"sas", "sdd", "sdd", "remote-drive"},
	{"sas", "sde", "sde", "write-through-unasked raid-card"},
	{"sas", "sdf", "sdf", "write-through-unasked raid-card"},
	{"sas", "sdg", "sdg", "raid-card"},
	{"sas", "sdh", "sdh", "write-through-over-write-back"},
	{"stacks", "sdj", "sdj", "raid-card record-size"},
	/* USB */
	{"usb-bridge", "sda", "sda", "write-through-guessed bridge-serial"},
	{"usb-bridge", "sdb", "sdb", "bridge-serial"},
	{"usb-bridge", "/media/stick", "sdc", "write-through-guessed removable bridge-serial"},
	{"sata-usb", "sdb", "sdb", "write-through-guessed bridge-serial record-size"},
	/* machines that are none */
	{"kvm", "/x", "vda", "virtual-disk system-drive hypervisor"},
	{"kvm", "sda", "sda", "virtual-disk hypervisor"},
	{"kvm", "ram0", "ram0", "memory-disk no-serial hypervisor"},
	{"kvm", "/nfs/x", "", "network-fs hypervisor"},
	{"kvm", "/host/x", "", "network-fs hypervisor"},
	{"xen", "/", "xvda", "virtual-disk no-serial system-drive hypervisor"},
	{"virtual", "vdb", "vdb", "virtual-disk no-serial"},
	/* layers */
	{"md-raid1", "/srv/x", "md127 sda sdb", "no-barrier several-drives"},
	{"stacks", "/mnt/r", "md1 sdc sdd sde",
		"no-serial record-size record-size record-size several-drives"},
	{"stacks", "/boot", "md0 sda sdb",
		"system-drive record-size system-drive record-size several-drives"},
	{"lvm-luks", "/etc/x", "dm-1 dm-0 nvme0n1", "system-drive copy-on-write"},
	{"lvm-luks", "/db/x", "dm-3 dm-0 nvme0n1", "system-drive"},
	{"loop", "/mnt/l/x", "loop0 sda", "loop-device system-drive"},
	{"loop", "loop1", "loop1", "loop-device no-drive"},
	{"virtual", "/mnt/lab", "loop1", "loop-device no-drive"},
	/* networks */
	{"network", "/mnt/n", "nbd0", "remote-drive"},
	{"network", "sda", "sda", "remote-drive"},
	{"network", "/mnt/c", "", "network-fs"},
	{"network", "/mnt/s", "", "network-fs"},
	{"network", "/mnt/f", "", "no-drive"},
	/* containers */
	{"container", "/tmp/x", "", "no-drive overlay container"},
	{"container", "/var/lib/postgresql/data", "nvme0n1", "container"},
	{"container", "/build/x", "nvme0n1", "overlay-volatile overlay container"},
	{"container", "/dev/shm", "", "memory-fs container"},
	{"virtual", "/merged", "vda",
		"virtual-disk system-drive record-size overlay-volatile overlay"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void test_traps(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		char drives[256] = "", ids[512] = "";
		json_t *whole, *target, *drive;
		size_t k;

		assert_int_equal(run(rows[i].machine, rows[i].target, true), 0);
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
		add_ids(json_object_get(json_object_get(whole, "machine"), "warnings"), ids);
		json_decref(whole);
		assert_string_equal(drives, rows[i].drives);
		assert_string_equal(ids, rows[i].warnings);
	}
}

static bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = words; (at = strstr(at, word)) != NULL; at++)
		if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
			return true;
	return false;
}

/* Windows' second box (win_identify.c writes these words): no recorded machine here has it. */
static void test_flushing_off(void **state)
{
	static const struct {
		const char *write_cache;
		enum pp_drive_cache cache;
		bool fires;
	} cases[] = {
		{"write back, flushing off", PP_CACHE_ON, true},
		{"flushing off", PP_CACHE_UNKNOWN, true},
		{"write through, flushing off", PP_CACHE_OFF, false},
		{"write through, flushing off", PP_CACHE_NONE, false},
		{"write back", PP_CACHE_ON, false},
		{"", PP_CACHE_UNKNOWN, false},
	};
	size_t at = 0;

	(void)state;
	while (at < identify_trap_count && strcmp(identify_traps[at].id, "flushing-off") != 0)
		at++;
	assert_true(at < identify_trap_count);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct identify_subject s = {.drive = {.drive_cache = cases[i].cache}};
		struct identify_why why;

		snprintf(s.drive.write_cache, sizeof(s.drive.write_cache), "%s", cases[i].write_cache);
		assert_int_equal(identify_traps[at].applies(&s, &why), cases[i].fires);
	}
}

/* Each trap fires in some row and is silent in another; three have tests of their own. */
static void test_each_trap_has_both_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < identify_trap_count; i++) {
		const char *id = identify_traps[i].id;
		size_t fires = 0;

		if (strcmp(id, "other-drive") == 0 || strcmp(id, "missing-drive") == 0 ||
			strcmp(id, "flushing-off") == 0)
			continue;
		for (size_t k = 0; k < ROWS; k++)
			fires += has_word(rows[k].warnings, id);
		if (!fires || fires == ROWS)
			fail_msg("no row for '%s'", id);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(identify_traps[k].id, id);
	}
}

static void test_text_fits(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		char *save = NULL;
		bool warns = false;

		assert_int_equal(run(rows[i].machine, rows[i].target, false), 0);
		for (char *line = strtok_r(out, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
			assert_true(strlen(line) <= 80);
			warns |= strstr(line, "  WARNING") || strstr(line, "  note ");
		}
		assert_int_equal(warns, rows[i].warnings[0] != '\0');
	}
}

/* ---- fields ------------------------------------------------------------------------------- */

/* What one field of the first drive must be, as JSON text. */
static const struct {
	const char *machine, *target, *key, *value;
} field_rows[] = {
	{"nvme-consumer", "nvme0n1", "nvme_vwc", "true"},
	{"nvme-consumer", "nvme0n1", "drive_cache", "\"on\""},
	{"nvme-consumer", "nvme0n1", "nvme_awupf_bytes", "512"},
	{"nvme-consumer", "nvme0n1", "nvme_nawupf_bytes", "null"},
	{"nvme-consumer", "nvme0n1", "atomic_write_unit_max_bytes", "512"},
	{"nvme-consumer", "nvme0n1", "link", "\"PCIe 4.0 x4\""},
	{"nvme-consumer", "nvme0n1", "power_cycles", "212"},
	{"nvme-consumer", "nvme0n1", "unsafe_shutdowns", "37"},
	{"nvme-consumer", "nvme0n1", "media_errors", "0"},
	{"nvme-consumer", "nvme0n1", "power_on_hours", "3120"},
	{"nvme-consumer", "nvme0n1", "used_percent", "3"},
	{"nvme-plp", "nvme0n1", "nvme_vwc", "false"},
	{"nvme-plp", "nvme0n1", "drive_cache", "\"none\""},
	{"nvme-plp", "nvme0n1", "nvme_awupf_bytes", "4096"},
	{"nvme-plp", "nvme0n1", "nvme_nawupf_bytes", "16384"},
	{"nvme-plp", "nvme0n1", "atomic_write_unit_max_bytes", "16384"},
	{"nvme-plp", "nvme2n1", "fabric", "\"tcp\""},
	{"nvme-plp", "nvme3n1", "paths", "2"},
	{"nvme", "nvme0n1", "nvme_vwc", "null"},
	{"nvme", "nvme0n1", "atomic_write_unit_max_bytes", "null"},
	{"sata-ssd", "sda", "ata_write_cache_enabled", "true"},
	{"sata-ssd", "sda", "ata_fua", "true"},
	{"sata-ssd", "sda", "ata_flush_ext", "true"},
	{"sata-ssd", "sda", "fua", "false"},
	{"sata-ssd", "sda", "unsafe_shutdowns", "9"},
	{"sata-ssd", "sda", "controller_driver", "\"ahci\""},
	{"sata-ssd", "sdc", "ata_write_cache_enabled", "false"},
	{"sata-ssd", "sdc", "drive_cache", "\"off\""},
	{"sata-ssd", "sdd", "ata_fua", "false"},
	{"sata-usb", "sda", "ata_fua", "null"},
	{"hdd", "sda", "rotational", "true"},
	{"hdd", "sda", "physical_block_bytes", "4096"},
	{"hdd", "sda", "unsafe_shutdowns", "null"}, /* 192 of a hard disk counts head retracts */
	{"sas", "sda", "scsi_dpofua", "true"},
	{"sas", "sda", "logical_block_bytes", "4096"},
	{"sas", "sda", "scsi_cache_type", "\"write back\""},
	{"sas", "sdb", "paths", "2"},
	{"sas", "sda", "paths", "1"},
	{"sas", "sde", "raid_controller", "\"mpt3sas\""},
	{"sas", "sda", "raid_controller", "null"},
	{"sas", "sdd", "fabric", "\"fc\""},
	{"usb-bridge", "sda", "usb_bridge", "\"152d:0578 JMicron\""},
	{"usb-bridge", "sda", "usb_driver", "\"usb-storage\""},
	{"usb-bridge", "sda", "write_through_assumed", "true"},
	{"usb-bridge", "sdb", "write_through_assumed", "false"},
	{"usb-bridge", "sdb", "link", "\"USB 5000 Mbps\""},
	{"sata-usb", "sdb", "write_through_assumed", "null"},
	{"loop", "loop0", "backing_file", "\"/home/images/disk.img\""},
	{"network", "nbd0", "serial", "\"EXPORT-1\""},
};

static void test_fields(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(field_rows) / sizeof(field_rows[0]); i++) {
		json_t *whole, *drive, *value;
		char *text;

		assert_int_equal(run(field_rows[i].machine, field_rows[i].target, true), 0);
		whole = json_loads(out, 0, NULL);
		drive = json_array_get(json_object_get(json_array_get(json_object_get(whole, "targets"), 0),
			"drives"), 0);
		value = json_object_get(drive, field_rows[i].key);
		assert_non_null(value);
		text = json_dumps(value, JSON_ENCODE_ANY);
		if (strcmp(text, field_rows[i].value) != 0)
			fail_msg("%s %s %s: %s, expected %s", field_rows[i].machine, field_rows[i].target,
				field_rows[i].key, text, field_rows[i].value);
		free(text);
		json_decref(whole);
	}
}

/* Each layer: what it is, what libblkid finds on it. */
static void test_layers(void **state)
{
	static const struct {
		const char *machine, *target, *layers;
	} wanted[] = {
		{"lvm-luks", "/etc/x", "dm-1 LVM vg0-root btrfs|dm-0 LUKS2 luks-0a0a LVM2_member|"
			"nvme0n1p3 partition crypto_LUKS|nvme0n1 disk -|"},
		{"md-raid1", "/srv", "md127 RAID1 of 2, clean ext4|sda1 partition linux_raid_member|"
			"sda disk -|sdb1 partition linux_raid_member|sdb disk -|"},
		{"sas", "dm-0", "dm-0 multipath mpatha -|sdb disk -|sdc disk -|"},
		{"loop", "/mnt/l", "loop0 loop -|ext4 file system -|sda disk -|"},
		{"container", "/var/lib/postgresql/data/f", "nvme0n1p3 partition -|nvme0n1 disk -|"},
		{"container", "/build/x", "ext4 file system -|nvme0n1p3 partition -|nvme0n1 disk -|"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		char text[512] = "";
		json_t *whole, *row;
		size_t k;

		assert_int_equal(run(wanted[i].machine, wanted[i].target, true), 0);
		whole = json_loads(out, 0, NULL);
		json_array_foreach(json_object_get(json_array_get(json_object_get(whole, "targets"), 0),
			"layers"), k, row) {
			const char *what = json_string_value(json_object_get(row, "what"));
			const char *content = json_string_value(json_object_get(row, "content"));

			sprintf(text + strlen(text), "%s %s %s|", json_string_value(json_object_get(row, "name")),
				what ? what : json_string_value(json_object_get(row, "kind")),
				content ? content : "-");
		}
		json_decref(whole);
		assert_string_equal(text, wanted[i].layers);
	}
}

/* ---- the drive that was meant ------------------------------------------------------------- */

static const char plan[] =
	"[campaign]\nname = p\n[machine]\nkey = k\n[pdu]\nprofile = by-hand\n"
	"[drive a]\nserial = %s\ntarget = raw\ndestroy = %s\n[arms]\nmethods = fdatasync\n";

static void test_expect(void **state)
{
	static const struct {
		const char *words[6];
		const char *trap; /* NULL: none */
		int status;
	} wanted[] = {
		{{"sda", "--expect", "2027E4A00000"}, NULL, 0},
		{{"sda", "--expect", "naa.500a0751e4a00000"}, NULL, 0},
		{{"/mnt/a", "--expect", " 2027E4A00000"}, NULL, 0},
		{{"sda", "--expect", "2027E4A0000"}, "other-drive", 2},
		{{"sdb", "--expect", "2027E4A00000"}, "other-drive", 2},
		{{"--all", "--expect", "2027E4A00000"}, NULL, 0},
		{{"--all", "--expect", "2027E4A09999"}, "missing-drive", 2},
		{{"sda", "--plan", "PLAN:2027E4A00000"}, NULL, 0},
		{{"sdb", "--plan", "PLAN:2027E4A00000"}, "other-drive", 2},
		{{"--all", "--plan", "PLAN:2027E4A00000"}, NULL, 0},
		{{"--all", "--plan", "PLAN:GONE"}, "missing-drive", 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const char *words[8] = {"--json", wanted[i].words[0], wanted[i].words[1],
			wanted[i].words[2], NULL};
		char path[] = "/tmp/plugpull-plan.XXXXXX";
		bool other, missing;
		int status;

		if (strncmp(words[3], "PLAN:", 5) == 0) {
			int fd = mkstemp(path);

			assert_true(fd >= 0);
			dprintf(fd, plan, words[3] + 5, words[3] + 5);
			close(fd);
			words[3] = path;
		}
		status = run_words("sata-ssd", words);
		if (words[3] == path)
			unlink(path);
		assert_int_equal(status, wanted[i].status);
		other = strstr(out, "\"other-drive\"") != NULL;
		missing = strstr(out, "\"missing-drive\"") != NULL;
		assert_int_equal(other, wanted[i].trap && strcmp(wanted[i].trap, "other-drive") == 0);
		assert_int_equal(missing, wanted[i].trap && strcmp(wanted[i].trap, "missing-drive") == 0);
	}
}

/* The overlay of a container: its upper folder is a path of the host. */
static void test_container_says_why(void **state)
{
	(void)state;
	assert_int_equal(run("container", "/etc/x", true), 0);
	assert_non_null(strstr(out, "is outside this container"));
}

static void test_all(void **state)
{
	json_t *whole;

	(void)state;
	assert_int_equal(run("virtual", "--all", true), 0);
	whole = json_loads(out, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(whole, "targets")), 9);
	json_decref(whole);
	assert_int_equal(run("sas", "--all", false), 0);
	assert_non_null(strstr(out, "multipath mpatha"));
}

static void test_unknown(void **state)
{
	static const char *const rows_of_words[][4] = {
		{"--no-such-option"}, {"a", "b"}, {NULL}, {"--all", "a"}, {"sda", "--plan"},
		{"sda", "--plan", "/no/such/plan"},
	};

	(void)state;
	assert_int_equal(run("nvme", "S4EWNX0M912345", true), 2);
	assert_string_equal(out, "");
	assert_int_equal(run("twins", "6000c29f", true), 2);
	for (size_t i = 0; i < sizeof(rows_of_words) / sizeof(rows_of_words[0]); i++) {
		assert_int_equal(run_words("nvme", rows_of_words[i]), 2);
		assert_string_equal(out, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_traps),
		cmocka_unit_test(test_flushing_off),
		cmocka_unit_test(test_each_trap_has_both_rows),
		cmocka_unit_test(test_text_fits),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_expect),
		cmocka_unit_test(test_container_says_why),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, tree_remove_all);
}
