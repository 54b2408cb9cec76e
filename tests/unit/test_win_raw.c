/* SPDX-License-Identifier: MIT
 *
 * Goal: a physical drive of Windows is a raw target only where nothing of Windows writes to it
 * (design.md, section 7; M2.7), and what could not be asked is a refusal, never a yes.
 * Method: rows of what Windows answers, through a fake of its two questions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "src/core/win_raw.h"

#define VOLUMES 3

struct answers {
	const char *what;
	uint32_t attributes_code;
	uint64_t attributes;
	struct { uint32_t code; bool no_disk; size_t disks; unsigned disk[3]; } volume[VOLUMES];
	size_t volumes;
	uint32_t list_code; /* in place of the end of the list */
	bool may;
	const char *says;
};

static const struct answers rows[] = {
	{ .what = "no volume at all", .may = true },
	{ .what = "volumes of other drives", .volumes = 2, .volume = { { .disks = 1, .disk = { 0 } },
		{ .disks = 2, .disk = { 0, 3 } } }, .may = true },
	{ .what = "a volume on it", .volumes = 2, .volume = { { .disks = 1, .disk = { 0 } },
		{ .disks = 1, .disk = { 2 } } }, .says = "has the volume 'volume 1'" },
	{ .what = "a spanned volume that reaches it", .volumes = 1,
		.volume = { { .disks = 3, .disk = { 0, 1, 2 } } }, .says = "offline disk" },
	{ .what = "the same, but offline", .attributes = PP_WIN_ATTRIBUTE_OFFLINE, .volumes = 1,
		.volume = { { .disks = 1, .disk = { 2 } } }, .may = true },
	{ .what = "offline and read-only", .attributes = PP_WIN_ATTRIBUTE_OFFLINE |
		PP_WIN_ATTRIBUTE_READ_ONLY, .says = "attributes disk clear readonly" },
	{ .what = "read-only", .attributes = PP_WIN_ATTRIBUTE_READ_ONLY, .says = "read-only" },
	{ .what = "attributes are not told, no volume", .attributes_code = 1, .may = true },
	{ .what = "attributes are not told, whatever they say", .attributes_code = 50,
		.attributes = PP_WIN_ATTRIBUTE_OFFLINE, .volumes = 1,
		.volume = { { .disks = 1, .disk = { 2 } } }, .says = "has the volume" },
	{ .what = "a volume that may not be asked", .volumes = 1, .volume = { { .code = 5 } },
		.says = "cannot tell whether the volume 'volume 0' is on" },
	{ .what = "more disks than fit, none of the first", .volumes = 1,
		.volume = { { .code = 234, .disks = 2, .disk = { 0, 1 } } }, .says = "cannot tell" },
	{ .what = "more disks than fit, one is it", .volumes = 1,
		.volume = { { .code = 234, .disks = 2, .disk = { 0, 2 } } }, .says = "has the volume" },
	{ .what = "a CD drive", .volumes = 2, .volume = { { .code = 1, .no_disk = true },
		{ .disks = 1, .disk = { 0 } } }, .may = true },
	{ .what = "the list breaks off", .volumes = 1, .volume = { { .disks = 1, .disk = { 0 } } },
		.list_code = 5, .says = "cannot list the volumes" },
	{ .what = "a volume that may not be asked, offline", .attributes = PP_WIN_ATTRIBUTE_OFFLINE,
		.volumes = 1, .volume = { { .code = 5 } }, .may = true },
};

static uint32_t fake_attributes(void *ctx, uint64_t *attributes)
{
	const struct answers *a = ctx;

	*attributes = a->attributes;
	return a->attributes_code;
}

static uint32_t fake_volume(void *ctx, size_t i, struct pp_win_volume_place *place)
{
	const struct answers *a = ctx;

	if (i >= a->volumes)
		return a->list_code ? a->list_code : PP_WIN_NO_MORE;
	snprintf(place->name, sizeof(place->name), "volume %zu", i);
	place->code = a->volume[i].code;
	place->no_disk = a->volume[i].no_disk;
	place->disks = a->volume[i].disks;
	memcpy(place->disk, a->volume[i].disk, sizeof(a->volume[i].disk));
	return 0;
}

static void test_unused(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_win_raw_calls calls = { (void *)&rows[i], fake_attributes, fake_volume };
		enum pp_target_state is = PP_TARGET_OK;
		struct pp_error err = { 0 };
		int rc = pp_win_raw_unused(&calls, "\\\\.\\PhysicalDrive2", 2, &is, &err);

		if ((rc == 0) != rows[i].may || (rc != 0 && (is != PP_TARGET_REFUSED ||
			!strstr(err.text, rows[i].says) || !strstr(err.text, "PhysicalDrive2"))))
			fail_msg("%s: %d, %s", rows[i].what, rc, err.text);
	}
}

static void test_number(void **state)
{
	static const struct { const char *node; int number; } names[] = {
		{ "\\\\.\\PhysicalDrive0", 0 }, { "\\\\.\\PhysicalDrive12", 12 },
		{ "\\\\.\\PhysicalDrive", -1 }, { "\\\\.\\PhysicalDrive1x", -1 },
		{ "\\\\.\\PhysicalDrive1\\x", -1 }, { "\\\\.\\PhysicalDrive99999999999", -1 },
		{ "PhysicalDrive1", -1 }, { "\\\\.\\D:", -1 }, { "", -1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(pp_win_raw_number(names[i].node), names[i].number);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unused),
		cmocka_unit_test(test_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
