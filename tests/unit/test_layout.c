/* SPDX-License-Identifier: MIT
 *
 * Goal: every record has one place, every place knows its newest record (M2.4, M2.5, M4), and sizes
 * that would break the oracle are refused with a reason.
 * Method: small layouts walked exhaustively against a plain array that is written as a lane would.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/core/layout.h"

#define REC 512U

static struct pp_layout make(enum pp_workload workload, uint32_t lanes, uint32_t group,
	uint64_t slots, uint64_t region)
{
	struct pp_layout layout;
	struct pp_error err = { 0 };

	if (pp_layout_init(&layout, workload, lanes, group, REC, REC, false, region,
		region + lanes * slots * REC, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(layout.slots, slots);
	return layout;
}

/* After `limit` records, what newest() says of each slot is what the last write left there. */
static void check_model(const struct pp_layout *layout, uint32_t lane, uint64_t limit)
{
	uint64_t *model = calloc(layout->slots, sizeof(*model)), seq, slot;

	for (seq = 0; seq <= limit; seq++) {
		if (seq > 0) {
			slot = pp_layout_slot(layout, lane, seq);
			assert_true(slot < layout->slots);
			model[slot] = seq;
		}
		/* All slots at every sequence is quadratic; the neighbours and a sample do. */
		for (slot = 0; slot < layout->slots; slot += seq % 61 == 0 || seq == limit ? 1 : 17)
			assert_int_equal(pp_layout_newest(layout, lane, slot, seq), model[slot]);
	}
	free(model);
}

static void test_newest_is_inverse(void **state)
{
	static const uint32_t groups[] = { 1, 2, 3, 7, 64 };
	size_t g;

	(void)state;
	for (g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
		uint32_t window = 2 * groups[g] > 64 ? 2 * groups[g] : 64;
		uint64_t slots = (4 * window + groups[g] - 1) / groups[g] * groups[g];
		struct pp_layout l = make(PP_OVERWRITE, 3, groups[g], slots, 0);
		uint32_t lane;

		assert_int_equal(pp_layout_window(&l), window);
		assert_true(pp_layout_seq_max(&l) == UINT64_MAX);
		for (lane = 0; lane < 3; lane++)
			check_model(&l, lane, 3 * slots + 5);
	}
}

/* A random order is a permutation, its own in every lane, the same in every lap: so a slot's two
 * writes are `slots` records apart, and no two of one window overlap (M2.5). */
static void test_random_order(void **state)
{
	static const uint64_t sizes[] = { 256, 257, 1000, 1024, 4097 }, keys[] = { 1, 77, INT64_MAX };
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct pp_layout l = make(PP_OVERWRITE, 2, 1, sizes[i], 0);
		uint64_t seq, in_order[2] = { 0 }, other_lane = 0;
		uint32_t lane;

		for (k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
			l.shuffle = keys[k];
			assert_string_equal(pp_layout_pattern_name(&l), "random");
			for (lane = 0; lane < 2; lane++) {
				check_model(&l, lane, 2 * sizes[i] + 3);
				for (seq = 1; seq <= sizes[i]; seq++) {
					uint64_t slot = pp_layout_slot(&l, lane, seq);

					assert_int_equal(pp_layout_newest(&l, lane, slot, sizes[i]), seq);
					assert_int_equal(pp_layout_slot(&l, lane, seq + sizes[i]), slot);
					in_order[lane] += slot == pp_layout_slot(&l, lane, seq + 1) - 1;
					other_lane += slot == pp_layout_slot(&l, 1 - lane, seq);
				}
			}
		}
		assert_true(in_order[0] < sizes[i] / 10 && in_order[1] < sizes[i] / 10);
		assert_true(other_lane < sizes[i] / 10);
		l.shuffle = 0;
		assert_string_equal(pp_layout_pattern_name(&l), "sequential");
	}
}

/* M2.6: a file for every slot: each has its own name, and every name its slot. */
static void test_record_files(void **state)
{
	static const enum pp_workload rows[] = { PP_CREATE, PP_CREATE_NODIR, PP_RENAME };
	char name[64], before[64];
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		struct pp_layout l = make(rows[i], 3, 4, 300, 0);
		uint64_t slots = rows[i] == PP_RENAME ? 600 : 300, slot;
		uint32_t lane, file = 0;

		assert_true(pp_workload_record_files(rows[i]));
		assert_int_equal(pp_layout_scan_slots(&l), slots);
		for (lane = 0; lane < 3; lane++) {
			for (slot = 0; slot < slots; slot++, file++) {
				assert_int_equal(pp_layout_file_at(&l, lane, slot), file);
				assert_int_equal(pp_layout_record_name(&l, file, name, sizeof(name)), lane);
				assert_int_equal(strtoul(name, NULL, 10), slot % 300);
				assert_int_equal(strstr(name, ".tmp") != NULL, slot >= 300);
				assert_string_not_equal(name, slot ? before : "");
				strcpy(before, name);
				assert_int_equal(pp_layout_file_offset(&l, lane, slot), 0);
				/* What the cells name tells the files of a folder apart. */
				assert_int_equal(pp_layout_offset(&l, lane, slot), slot % 300 * REC);
			}
		}
		pp_layout_file_name(&l, "t", 2, name, sizeof(name));
		assert_true(strncmp(name, "t.", 2) == 0 && strcmp(name + strlen(name) - 2, ".2") == 0);
	}
}

/* Folders are bounded, and their files take whole blocks. */
static void test_folders_are_bounded(void **state)
{
	struct pp_error err = { 0 };
	struct pp_layout l;

	(void)state;
	assert_int_equal(pp_layout_init(&l, PP_CREATE, 1, 3, 512, 4096, true, 0, 1ULL << 40, &err), 0);
	assert_int_equal(l.slots, 65536 / 3 * 3);
	assert_int_equal(pp_layout_target_bytes(&l), l.slots * 4096);
	assert_int_equal(pp_layout_init(&l, PP_RENAME, 2, 64, 512, 1 << 20, true, 0, 1ULL << 40, &err), 0);
	assert_int_equal(l.slots, 1024);
	assert_int_equal(pp_layout_target_bytes(&l), 2ULL * 1024 << 20);
	assert_int_equal(pp_layout_init(&l, PP_CREATE, 1, 1, 512, 4096, true, 0, 255 * 4096, &err), -1);
	assert_int_equal(pp_layout_init(&l, PP_CREATE, 1, 1, 512, 4096, true, 0, 256 * 4096, &err), 0);
}

/* M2.1, M2.6: what a method promises for a workload. */
static void test_promises(void **state)
{
	static const struct {
		enum pp_workload workload;
		const char *method;
		enum pp_target_kind kind;
		enum pp_promise promise;
	} rows[] = {
		{ PP_OVERWRITE, "fdatasync", PP_TARGET_RAW, PP_PROMISE_MEDIA },
		{ PP_OVERWRITE, "direct", PP_TARGET_RAW, PP_PROMISE_NONE },
		{ PP_APPEND, "fdatasync", PP_TARGET_RAW, PP_PROMISE_NA },
		{ PP_FALLOCATED, "open_datasync (direct)", PP_TARGET_FILE, PP_PROMISE_MEDIA },
		{ PP_FALLOCATED, "write", PP_TARGET_RAW, PP_PROMISE_NA },
		{ PP_CREATE, "fsync", PP_TARGET_FILE, PP_PROMISE_MEDIA },
		{ PP_CREATE, "fsync", PP_TARGET_RAW, PP_PROMISE_NA },
		{ PP_CREATE, "write", PP_TARGET_FILE, PP_PROMISE_NONE },
		{ PP_CREATE_NODIR, "fsync", PP_TARGET_FILE, PP_PROMISE_NONE },
		{ PP_CREATE_NODIR, "fsync", PP_TARGET_RAW, PP_PROMISE_NA },
		{ PP_RENAME, "fsync (direct)", PP_TARGET_FILE, PP_PROMISE_MEDIA },
		{ PP_RENAME, "fsync", PP_TARGET_RAW, PP_PROMISE_NA },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *why = "unset";

		assert_int_equal(pp_workload_promise(rows[i].workload, pp_method_find(rows[i].method),
			rows[i].kind, &why), rows[i].promise);
		assert_int_equal(why != NULL, rows[i].promise == PP_PROMISE_NA);
	}
}

static void test_append(void **state)
{
	struct pp_layout l = make(PP_APPEND, 2, 4, 512, 0);
	uint64_t base;

	(void)state;
	for (base = 0; base <= 512; base++) {
		l.base_slots[0] = base;
		l.base_slots[1] = base / 2;
		/* The same for all lanes, whole groups, never past the last slot. */
		assert_int_equal(pp_layout_seq_max(&l), (512 - base) / 4 * 4);
		if (pp_layout_seq_max(&l) == 0)
			continue;
		assert_int_equal(pp_layout_slot(&l, 0, 1), base);
		assert_true(pp_layout_slot(&l, 0, pp_layout_seq_max(&l)) < 512);
		if (base % 100 == 1)
			check_model(&l, 0, pp_layout_seq_max(&l));
	}
	l.base_slots[0] = 600;
	assert_int_equal(pp_layout_seq_max(&l), 0);
	/* What stood there before the run belongs to the base alone. */
	l.base_slots[0] = 10;
	assert_int_equal(pp_layout_newest(&l, 0, 9, 100), 0);
	assert_int_equal(pp_layout_newest(&l, 0, 10, 100), 1);
	assert_int_equal(pp_layout_newest(&l, 0, 10, 0), 0);
	assert_int_equal(pp_layout_newest(&l, 0, 109, 100), 100);
	assert_int_equal(pp_layout_newest(&l, 0, 110, 100), 0);
	assert_int_equal(pp_layout_newest(&l, 0, 511, UINT64_MAX), 502);
}

/* M2.5: a lane owns its region: no byte of the target belongs to two lanes, none lies outside. */
static void test_regions(void **state)
{
	struct pp_layout l = make(PP_OVERWRITE, 5, 3, 258, 4096);
	uint64_t end = 4096, slot;
	uint32_t lane;

	(void)state;
	for (lane = 0; lane < 5; lane++)
		for (slot = 0; slot < l.slots; slot++, end += REC)
			assert_int_equal(pp_layout_offset(&l, lane, slot), end);
	/* A group never spans a lap. */
	for (slot = 1; slot < 3 * l.slots; slot += l.group)
		assert_int_equal(pp_layout_slot(&l, 0, slot) + l.group - 1,
			pp_layout_slot(&l, 0, slot + l.group - 1));
	l = make(PP_APPEND, 5, 3, 258, 0);
	assert_int_equal(pp_layout_offset(&l, 4, 0), 0);
	assert_int_equal(pp_layout_offset(&l, 4, 7), 7 * REC);
}

/* M2.4: what is in flight can never lap itself: at least 4 W slots. */
static void test_four_windows(void **state)
{
	uint32_t group;

	(void)state;
	for (group = 1; group <= PP_GROUP_MAX; group++) {
		uint64_t window = 2 * group > 64 ? 2 * group : 64, least = 4 * window, fits;
		struct pp_layout l;

		least = (least + group - 1) / group * group;
		for (fits = 0; fits < 2; fits++) {
			struct pp_error err = { 0 };
			uint64_t bytes = 2 * (least - 1 + fits) * REC;

			assert_int_equal(pp_layout_init(&l, PP_OVERWRITE, 2, group, REC, REC, false, 0,
				bytes, &err), fits ? 0 : -1);
			if (!fits) {
				assert_int_equal(err.class, PP_ERR_USAGE);
				assert_non_null(strstr(err.text, "too small"));
				continue;
			}
			assert_true(l.slots >= 4 * window);
			assert_int_equal(l.slots % group, 0);
		}
	}
}

/* The size that the message asks for is enough, and a byte less is not. */
static void test_advice_is_right(void **state)
{
	static const struct { uint32_t lanes, group, rec, unit; bool sub; uint64_t region; } rows[] = {
		{ 1, 1, 512, 512, false, 0 }, { 3, 5, 8192, 4096, false, 4096 },
		{ 2, 7, 4096, 4096, false, 1 << 20 }, { 64, 64, 1 << 20, 4096, false, 0 },
		{ 3, 5, 1024, 4096, true, 0 }, { 1, 1, 512, 4096, true, 0 },
		{ 2, 5, 512, 4096, true, 0 }, { 1, 7, 1536, 4096, true, 8192 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_layout l;
		struct pp_error err = { 0 };
		const char *at;
		unsigned long long bytes;

		assert_int_equal(pp_layout_init(&l, PP_OVERWRITE, rows[i].lanes, rows[i].group,
			rows[i].rec, rows[i].unit, rows[i].sub, rows[i].region, 0, &err), -1);
		at = strstr(err.text, "at least ");
		assert_non_null(at);
		bytes = strtoull(at + 9, NULL, 10);
		assert_int_equal(pp_layout_init(&l, PP_OVERWRITE, rows[i].lanes, rows[i].group,
			rows[i].rec, rows[i].unit, rows[i].sub, rows[i].region, bytes, &err), 0);
		assert_int_equal(pp_layout_offset(&l, rows[i].lanes - 1, 0) % rows[i].unit, 0);
		assert_int_equal(pp_layout_init(&l, PP_OVERWRITE, rows[i].lanes, rows[i].group,
			rows[i].rec, rows[i].unit, rows[i].sub, rows[i].region, bytes - 1, &err), -1);
	}
}

static void test_refusals(void **state)
{
	static const struct {
		uint32_t lanes, group, rec, unit;
		bool sub;
		uint64_t region;
		const char *text;
	} rows[] = {
		{ 0, 1, 4096, 4096, false, 0, "lanes must be 1 to 64, not 0" },
		{ 65, 1, 4096, 4096, false, 0, "lanes must be 1 to 64, not 65" },
		{ 1, 0, 4096, 4096, false, 0, "group must be 1 to 64, not 0" },
		{ 1, 65, 4096, 4096, false, 0, "group must be 1 to 64, not 65" },
		{ 1, 1, 0, 512, false, 0, "record size must be a multiple of 512" },
		{ 1, 1, 513, 512, false, 0, "record size must be a multiple of 512" },
		{ 1, 1, (1 << 20) + 512, 512, false, 0, "record size must be a multiple of 512" },
		{ 1, 1, 512, 4096, false, 0, "sub_block = yes" },
		{ 1, 1, 6144, 4096, false, 0, "sub_block = yes" },
		{ 1, 1, 4096, 0, false, 0, "is not a multiple of 512" },
		{ 1, 1, 4096, 100, true, 0, "is not a multiple of 512" },
		{ 1, 1, 4096, 4096, false, 512, "region start" },
		{ 1, 1, 512, 4096, true, 512, "region start" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_error err = { 0 };
		struct pp_layout l;

		assert_int_equal(pp_layout_init(&l, PP_OVERWRITE, rows[i].lanes, rows[i].group,
			rows[i].rec, rows[i].unit, rows[i].sub, rows[i].region, 1ULL << 40, &err), -1);
		assert_int_equal(err.class, PP_ERR_USAGE);
		assert_non_null(strstr(err.text, rows[i].text));
	}
}

static void test_names(void **state)
{
	struct pp_layout over = make(PP_OVERWRITE, 3, 1, 256, 0);
	struct pp_layout append = make(PP_APPEND, 3, 1, 256, 0);
	enum pp_workload workload;
	char name[64];

	(void)state;
	assert_int_equal(pp_layout_files(&over), 1);
	assert_int_equal(pp_layout_file_of(&over, 2), 0);
	pp_layout_file_name(&over, "t", 0, name, sizeof(name));
	assert_string_equal(name, "t");
	assert_int_equal(pp_layout_files(&append), 3); /* M2.6 */
	assert_int_equal(pp_layout_file_of(&append, 2), 2);
	pp_layout_file_name(&append, "t", 2, name, sizeof(name));
	assert_string_equal(name, "t.append.2");

	assert_true(pp_workload_find("append", &workload));
	assert_int_equal(workload, PP_APPEND);
	assert_string_equal(pp_workload_name(PP_OVERWRITE), "overwrite");
	assert_false(pp_workload_find("appen", &workload));
	assert_false(pp_workload_find("append2", &workload));
	assert_false(pp_workload_find("create-nodi", &workload));
	for (workload = PP_OVERWRITE; workload < PP_WORKLOADS; workload++) {
		enum pp_workload found;

		assert_true(pp_workload_find(pp_workload_name(workload), &found));
		assert_int_equal(found, workload);
	}
	assert_false(pp_workload_find("", &workload));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_newest_is_inverse),
		cmocka_unit_test(test_random_order),
		cmocka_unit_test(test_record_files),
		cmocka_unit_test(test_folders_are_bounded),
		cmocka_unit_test(test_promises),
		cmocka_unit_test(test_append),
		cmocka_unit_test(test_regions),
		cmocka_unit_test(test_four_windows),
		cmocka_unit_test(test_advice_is_right),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
