/* SPDX-License-Identifier: MIT
 *
 * Goal: a drive on Windows is the drive that was meant, under the name that it has on every system (M2.7),
 * and each question has its answer or "not reported", never a made-up one. Method: a made-up storage
 * stack (fake_win_storage.h); every question refused in turn with errors 1, 5 and 50 and cut short.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fake_win_storage.h"
#include "src/core/policy.h"
#include "src/core/win_identify.h"

static struct fake_win win;
static struct pp_win_storage stack;

static void begin(void)
{
	fake_win_init(&win);
	stack = fake_win_storage(&win);
}

/* ---- identity ----------------------------------------------------------------------------- */

static const struct {
	const char *name, *serial, *wwn, *model, *transport, *policy, *raid;
	bool removable, rotational;
} identities[] = {
	/* stornvme's serial is an EUI-64: the drive's own page has the name that Linux knows */
	{"PhysicalDrive0", "S5GXNF0R111111", "naa.5001020304050607", "Fast SSD 1TB", "nvme",
		"write back, fua", "", false, false},
	{"PhysicalDrive1", "S3Z9NB0K123456A", "naa.5001020304050607", "Old SSD 500GB", "sata",
		"write back, fua", "", false, true},
	{"PhysicalDrive2", "575833314138", "", "WD Elements", "usb", "write back, fua", "", true, false},
	{"PhysicalDrive3", "00AA11", "naa.5001020304050607", "LOGICAL VOLUME", "scsi", "write back, fua",
		"RAID", false, false},
};

static void test_identity(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(identities) / sizeof(identities[0]); i++) {
		struct pp_drive_info info;
		struct pp_error err;
		char policy[96];

		begin();
		win.drives[1].rotates = true;
		win.drives[2].vendor = "WD";
		assert_int_equal(pp_win_drive_read(&stack, identities[i].name, &info, &err), 0);
		assert_int_equal(win.open, 0);
		assert_string_equal(info.name, identities[i].name);
		assert_string_equal(info.serial, identities[i].serial);
		assert_string_equal(info.wwn, identities[i].wwn);
		assert_string_equal(info.model, identities[i].model);
		assert_string_equal(info.firmware, "1.00");
		assert_string_equal(pp_transport_name(info.transport), identities[i].transport);
		assert_string_equal(info.raid_controller, identities[i].raid);
		assert_int_equal(info.removable, identities[i].removable);
		assert_int_equal(info.rotational, identities[i].rotational);
		assert_int_equal(info.size_bytes, 1000204886016);
		assert_int_equal(info.logical_block_bytes, 512);
		assert_int_equal(info.physical_block_bytes, 4096);
		pp_drive_policy(&info, policy, sizeof(policy));
		assert_string_equal(policy, identities[i].policy);
		/* An agent asks so at any time: nothing may flush. */
		assert_int_equal(win.drives[i].flushes, 0);
		assert_int_equal(win.drives[i].property_queries, 0);
	}
}

/* The arm's policy (M1.3) tells the boxes apart. */
static void test_policy_of_the_arm(void **state)
{
	static const struct {
		bool cache, protected, no_fua, direct, refused;
		const char *policy;
	} rows[] = {
		{true, false, false, true, false, "write back, fua"},
		{true, false, true, true, false, "write back, no fua"},
		{true, true, false, true, false, "write back, flushing off, drive cache on"},
		{false, false, false, true, false, "write through"},
		{false, true, false, true, false, "write through, flushing off"},
		{true, false, false, false, true, "unknown"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_drive_info info;
		struct pp_error err;
		char policy[96];

		begin();
		win.drives[0].cache = win.drives[0].write_cache = rows[i].cache;
		win.drives[0].power_protected = rows[i].protected;
		win.drives[0].no_fua = rows[i].no_fua;
		win.drives[0].asked_directly = rows[i].direct;
		if (rows[i].refused)
			win.errors[0] = (struct fake_error){PP_WIN_GET_CACHE_INFO, -1, -1, PP_WIN_NOT_SUPPORTED};
		assert_int_equal(pp_win_drive_read(&stack, "PhysicalDrive0", &info, &err), 0);
		pp_drive_policy(&info, policy, sizeof(policy));
		assert_string_equal(policy, rows[i].policy);
	}
}

static void test_names(void **state)
{
	static const char *const no[] = {"", "PhysicalDrive", "PhysicalDrive1x", "PhysicalDrive9", "C:",
		"\\\\.\\C:", "physicaldrive0", "sda", "PhysicalDrive-1"};
	struct pp_drive_info info;
	struct pp_error err;

	(void)state;
	begin();
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		assert_int_equal(pp_win_drive_read(&stack, no[i], &info, &err), -1);
		assert_int_equal(err.class, PP_ERR_UNSUPPORTED);
	}
	assert_int_equal(pp_win_drive_read(&stack, "\\\\.\\PhysicalDrive0", &info, &err), 0);
	assert_string_equal(info.name, "PhysicalDrive0");
}

static void test_find(void **state)
{
	struct pp_drive_info info, *list;
	struct pp_error err;
	size_t count;

	(void)state;
	begin();
	assert_int_equal(pp_win_drive_list(&stack, &list, &count, &err), 0);
	assert_int_equal(count, 4);
	free(list);
	assert_int_equal(pp_win_drive_find(&stack, "S5GXNF0R111111", &info, &err), 0);
	assert_string_equal(info.name, "PhysicalDrive0");
	/* The part of a name is none, nor is the name that only Windows gives. */
	assert_int_equal(pp_win_drive_find(&stack, "S5GXNF0R", &info, &err), -1);
	assert_int_equal(err.class, PP_ERR_UNSUPPORTED);
	assert_int_equal(pp_win_drive_find(&stack, "0025_38B1_71B0_1234.", &info, &err), -1);
	/* One WWN on several drives (a clone of a virtual disk) is no identity. */
	assert_int_equal(pp_win_drive_find(&stack, "naa.5001020304050607", &info, &err), -1);
	assert_int_equal(err.class, PP_ERR_EVIDENCE);
	win.drives[2].serial = "00AA11";
	assert_int_equal(pp_win_drive_find(&stack, "00AA11", &info, &err), -1);
	assert_int_equal(err.class, PP_ERR_EVIDENCE);
	assert_int_equal(win.open, 0);
}

/* ---- volumes ------------------------------------------------------------------------------ */

static void test_volumes(void **state)
{
	static const struct {
		const char *path, *fs, *disks;
		bool incomplete;
	} rows[] = {
		{"C:\\data\\x", "NTFS", "PhysicalDrive0", false},
		{"D:\\", "ReFS", "PhysicalDrive1", false},
		{"E:\\a b", "exFAT", "PhysicalDrive2", false},
		{"F:\\x", "NTFS", "PhysicalDrive1 PhysicalDrive2", false},
		{"\\\\server\\share\\x", "NTFS", "", false},
		{"PhysicalDrive3", "", "PhysicalDrive3", false},
		{"\\\\.\\PhysicalDrive3", "", "PhysicalDrive3", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_stack beneath;
		struct pp_error err;
		char disks[256] = "";

		begin();
		assert_int_equal(pp_win_drive_of_path(&stack, rows[i].path, &beneath, &err), 0);
		for (size_t k = 0; k < beneath.disk_count; k++)
			sprintf(disks + strlen(disks), "%s%s", k ? " " : "", beneath.disks[k]);
		assert_string_equal(disks, rows[i].disks);
		assert_string_equal(beneath.fs_type, rows[i].fs);
		assert_int_equal(beneath.incomplete, rows[i].incomplete);
	}
	{
		struct pp_stack beneath;
		struct pp_error err;

		assert_int_equal(pp_win_drive_of_path(&stack, "X:\\nothing", &beneath, &err), -1);
		win.errors[0] = (struct fake_error){PP_WIN_GET_DISK_EXTENTS, -1, -1, PP_WIN_INVALID_FUNCTION};
		assert_int_equal(pp_win_drive_of_path(&stack, "C:\\x", &beneath, &err), 0);
		assert_int_equal(beneath.disk_count, 0);
		assert_true(beneath.incomplete);
		assert_non_null(strstr(beneath.incomplete_text, "not reported"));
	}
}

/* M1.2, and the drive that Windows runs from. */
static void test_share_and_system(void **state)
{
	struct pp_error err;
	char why[256];

	(void)state;
	begin();
	assert_int_equal(pp_win_drives_share(&stack, "PhysicalDrive0", "PhysicalDrive1", why, sizeof(why),
		&err), 0);
	assert_int_equal(pp_win_drives_share(&stack, "PhysicalDrive1", "PhysicalDrive2", why, sizeof(why),
		&err), 1);
	assert_non_null(strstr(why, "F:"));
	assert_int_equal(pp_win_drives_share(&stack, "PhysicalDrive1", "PhysicalDrive1", why, sizeof(why),
		&err), 1);
	win.drives[2].bus = PP_WIN_BUS_RAID;
	assert_int_equal(pp_win_drives_share(&stack, "PhysicalDrive2", "PhysicalDrive3", why, sizeof(why),
		&err), 1);
	assert_int_equal(pp_win_drives_share(&stack, "PhysicalDrive0", "PhysicalDrive9", why, sizeof(why),
		&err), -1);
	assert_int_equal(pp_win_drive_carries_system(&stack, "PhysicalDrive0", why, sizeof(why), &err), 1);
	assert_int_equal(pp_win_drive_carries_system(&stack, "PhysicalDrive1", why, sizeof(why), &err), 0);
	/* What cannot be told is not "no". */
	win.errors[0] = (struct fake_error){PP_WIN_GET_DISK_EXTENTS, -1, -1, PP_WIN_ACCESS_DENIED};
	assert_int_equal(pp_win_drive_carries_system(&stack, "PhysicalDrive1", why, sizeof(why), &err), -1);
}

/* ---- what is told ------------------------------------------------------------------------- */

static char told[8192];

static void take_row(void *ctx, const char *label, const char *text)
{
	size_t n = strlen(told);

	(void)ctx;
	assert_true(strlen(label) < 20);
	assert_true(strlen(text) < 128);
	snprintf(told + n, sizeof(told) - n, "%s=%s\n", label, text);
}

static void tell(unsigned disk)
{
	struct pp_win_facts facts;
	struct pp_error err;

	assert_int_equal(pp_win_ask(&stack, disk, PP_WIN_ASK_ALL, &facts, &err), 0);
	assert_int_equal(win.open, 0);
	told[0] = '\0';
	pp_win_tell(&facts, take_row, NULL);
}

/* Every row, answered: on which drive, what it says; and the question whose refusal takes it away. */
static const struct {
	unsigned disk;
	const char *row, *label;
	uint32_t code;
	int property;
} questions[] = {
	{0, "bus type=NVMe", "bus type", PP_WIN_QUERY_PROPERTY, PP_WIN_PROPERTY_DEVICE},
	{1, "bus type=SATA", "bus type", PP_WIN_QUERY_PROPERTY, PP_WIN_PROPERTY_DEVICE},
	{0, "sectors=512 bytes logical, 4096 physical", "sectors", PP_WIN_QUERY_PROPERTY,
		PP_WIN_PROPERTY_ALIGNMENT},
	{0, "medium=does not rotate", "medium", PP_WIN_QUERY_PROPERTY, PP_WIN_PROPERTY_SEEK_PENALTY},
	{2, "hot-plug=yes", "hot-plug", PP_WIN_GET_HOTPLUG_INFO, -1},
	{0, "write cache=on", "write cache", PP_WIN_GET_CACHE_INFO, -1},
	{0, "cache setting=normal, power protected: no", "cache setting", PP_WIN_GET_CACHE_SETTING, -1},
	{0, "cache property=write back", "cache property", PP_WIN_QUERY_PROPERTY,
		PP_WIN_PROPERTY_WRITE_CACHE},
	{0, "  user protection=no", "cache property", PP_WIN_QUERY_PROPERTY, PP_WIN_PROPERTY_WRITE_CACHE},
	{0, "NVMe VWC=present", "NVMe VWC", PP_WIN_QUERY_PROPERTY, PP_WIN_PROPERTY_DEVICE_PROTOCOL},
	{0, "NVMe feature 06h=on", "NVMe feature 06h", PP_WIN_QUERY_PROPERTY,
		PP_WIN_PROPERTY_DEVICE_PROTOCOL},
	{0, "NVMe SMART log=power cycles 41, unsafe shutdowns 7", "NVMe SMART log", PP_WIN_QUERY_PROPERTY,
		PP_WIN_PROPERTY_DEVICE_PROTOCOL},
	{1, "ATA write cache=on", "ATA write cache", PP_WIN_ATA_PASS_THROUGH, -1},
	{1, "ATA FUA=yes", "ATA FUA", PP_WIN_ATA_PASS_THROUGH, -1},
	{1, "  power cycles=41 (attribute 12)", NULL, 0, -1},
	{1, "  power losses=7 (attribute 174)", NULL, 0, -1},
	{0, "registry=UserWriteCacheSetting absent", NULL, 0, -1},
	{0, "registry=CacheIsPowerProtected absent: not ticked", NULL, 0, -1},
};

static void test_each_question(void **state)
{
	static const uint32_t errors[] = {PP_WIN_INVALID_FUNCTION, PP_WIN_ACCESS_DENIED,
		PP_WIN_NOT_SUPPORTED};

	(void)state;
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		begin();
		tell(questions[i].disk);
		if (!strstr(told, questions[i].row))
			fail_msg("no '%s' in\n%s", questions[i].row, told);
		for (size_t k = 0; questions[i].label && k < 3; k++) {
			char refused[160];

			begin();
			win.errors[0] = (struct fake_error){questions[i].code, questions[i].property, -1, errors[k]};
			/* The older way to SMART is another question. */
			tell(questions[i].disk);
			snprintf(refused, sizeof(refused), "%s=not reported (", questions[i].label);
			if (!strstr(told, refused))
				fail_msg("no '%s' in\n%s", refused, told);
			snprintf(refused, sizeof(refused), "error %u)", (unsigned)errors[k]);
			assert_non_null(strstr(told, refused));
			assert_null(strstr(told, questions[i].row));
		}
	}
}

/* Everything refused: nothing reads as off, none, no. */
static void test_nothing_told(void **state)
{
	struct pp_drive_info info;
	struct pp_error err;

	(void)state;
	begin();
	win.errors[0] = (struct fake_error){0, -1, -1, PP_WIN_NOT_SUPPORTED};
	win.drives[0].no_key = true;
	tell(0);
	for (char *line = strtok(told, "\n"); line; line = strtok(NULL, "\n"))
		if (!strstr(line, "=not reported (not supported, error 50)") &&
			!strstr(line, "registry=not reported (not found, error 2)"))
			fail_msg("%s", line);
	assert_int_equal(pp_win_drive_read(&stack, "PhysicalDrive0", &info, &err), 0);
	assert_string_equal(info.write_cache, "");
	assert_int_equal(info.drive_cache, PP_CACHE_UNKNOWN);
	assert_false(info.no_volatile_cache);
	assert_false(info.fua);
}

/* A driver that answers with less than the structure has not answered. */
static void test_short_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		char refused[160];

		if (!questions[i].label || questions[i].property == PP_WIN_PROPERTY_DEVICE)
			continue; /* of the descriptor the beginning is enough */
		begin();
		win.errors[0] = (struct fake_error){questions[i].code, questions[i].property, -1,
			PP_WIN_SHORT_ANSWER};
		tell(questions[i].disk);
		snprintf(refused, sizeof(refused), "%s=not reported (too short an answer)", questions[i].label);
		/* Its last bytes are padding. */
		if (questions[i].property != PP_WIN_PROPERTY_SEEK_PENALTY && !strstr(told, refused))
			fail_msg("no '%s' in\n%s", refused, told);
	}
	{
		struct pp_win_facts facts;
		struct pp_error err;
		struct pp_stack beneath;

		begin();
		win.errors[0] = (struct fake_error){PP_WIN_GET_DISK_EXTENTS, -1, -1, PP_WIN_SHORT_ANSWER};
		assert_int_equal(pp_win_drive_of_path(&stack, "F:\\x", &beneath, &err), 0);
		assert_true(beneath.incomplete);
		assert_int_equal(pp_win_ask(&stack, 1, PP_WIN_ASK_ALL, &facts, &err), 0);
	}
}

/* ---- garbage ------------------------------------------------------------------------------ */

static uint64_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

/* What was answered, with some bytes turned into others, and perhaps cut. */
static uint32_t garbled(void *ctx, void *device, uint32_t code, const void *in, uint32_t in_bytes,
	void *out, uint32_t out_bytes, uint32_t *got)
{
	uint32_t error = fake_control(ctx, device, code, in, in_bytes, out, out_bytes, got);

	for (uint32_t i = draw(4) ? draw(6) : 0; !error && *got && i; i--)
		((uint8_t *)out)[draw(draw(2) && *got > 48 ? 48 : *got)] = (uint8_t)draw(256);
	if (!error && *got && !draw(8))
		*got = draw(*got);
	return error;
}

static bool is_text(const char *text, size_t room)
{
	size_t n = strnlen(text, room);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] >= 0x7f)
			return false;
	return n < room;
}

/* A driver that answers anything overruns nothing (sanitizers watch), and its texts are texts. */
static void test_garbage(void **state)
{
	const char *env = getenv("PP_GARBAGE_RUNS");
	long runs = env ? atol(env) : 3000;

	(void)state;
	for (long i = 0; i < runs; i++) {
		struct pp_drive_info info;
		struct pp_win_facts facts;
		struct pp_stack beneath;
		struct pp_buf json;

		begin();
		stack.control = garbled;
		pp_win_ask(&stack, (unsigned)i % FAKE_DRIVES, PP_WIN_ASK_ALL, &facts, NULL);
		assert_int_equal(win.open, 0);
		pp_win_fill_info(&facts, &info);
		if (!is_text(info.serial, sizeof(info.serial)) || !is_text(info.model, sizeof(info.model)) ||
			!is_text(info.firmware, sizeof(info.firmware)) || !is_text(info.wwn, sizeof(info.wwn)))
			fail_msg("run %ld: '%s' '%s' '%s'", i, info.serial, info.model, info.firmware);
		told[0] = '\0';
		pp_win_tell(&facts, take_row, NULL);
		pp_buf_init(&json, 65536);
		pp_win_smart_json(&facts, &json);
		assert_false(json.failed);
		pp_buf_release(&json);
		if (pp_win_drive_of_path(&stack, "F:\\x", &beneath, NULL) == 0)
			assert_true(beneath.disk_count < PP_STACK_MAX);
	}
}

/* ---- counters ----------------------------------------------------------------------------- */

static void test_smart_json(void **state)
{
	struct pp_win_facts facts;
	struct pp_error err;
	struct pp_buf json;

	(void)state;
	begin();
	pp_buf_init(&json, 65536);
	fake_cut(&win.drives[0]);
	assert_int_equal(pp_win_ask(&stack, 0, PP_WIN_ASK_COUNTERS, &facts, &err), 0);
	pp_win_smart_json(&facts, &json);
	assert_non_null(strstr(json.data, "\"power_cycle_count\":42"));
	assert_non_null(strstr(json.data, "\"unsafe_shutdowns\":8"));
	pp_buf_clear(&json);
	assert_int_equal(pp_win_ask(&stack, 1, PP_WIN_ASK_COUNTERS, &facts, &err), 0);
	pp_win_smart_json(&facts, &json);
	assert_string_equal(json.data, "{\"power_cycle_count\":41,\"ata_smart_attributes\":{\"table\":["
		"{\"id\":12,\"raw\":{\"value\":41}},{\"id\":174,\"raw\":{\"value\":7}}]}}\n");
	/* By the older code where pass-through is refused. */
	pp_buf_clear(&json);
	win.errors[0] = (struct fake_error){PP_WIN_ATA_PASS_THROUGH, -1, -1, PP_WIN_NOT_SUPPORTED};
	assert_int_equal(pp_win_ask(&stack, 1, PP_WIN_ASK_COUNTERS, &facts, &err), 0);
	pp_win_smart_json(&facts, &json);
	assert_non_null(strstr(json.data, "\"power_cycle_count\":41"));
	/* A drive that keeps none says nothing. */
	pp_buf_clear(&json);
	assert_int_equal(pp_win_ask(&stack, 2, PP_WIN_ASK_COUNTERS, &facts, &err), 0);
	pp_win_smart_json(&facts, &json);
	assert_int_equal(json.bytes, 0);
	pp_buf_release(&json);
	for (int i = 0; i < FAKE_DRIVES; i++)
		assert_int_equal(win.drives[i].flushes, 0); /* counters are read after a boot, before a scan */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_policy_of_the_arm),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_volumes),
		cmocka_unit_test(test_share_and_system),
		cmocka_unit_test(test_each_question),
		cmocka_unit_test(test_nothing_told),
		cmocka_unit_test(test_short_answers),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_smart_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
