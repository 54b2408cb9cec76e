/* SPDX-License-Identifier: MIT
 *
 * Goal: a cell says exactly what was put into it, and nothing that is not such a cell passes (M3.1):
 * what passes wrongly is a false SAFE, what is refused wrongly a false loss.
 * Method: round trips, then every single-bit flip of a cell, and cells and records that are right
 * in themselves but of another place, lane, run or time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/core/le.h"
#include "src/core/record.h"

#define CELLS 4

static struct pp_record sample(void)
{
	struct pp_record record = {
		.run = { { 0x80, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff } },
		.lane = 0x01020304,
		.cells = CELLS,
		.seq = 0x1122334455667788ULL,
		.offset = 0x0102030405060800ULL,
		.issued_ns = 0x7f00000000000001LL,
		.durable = 0x1122334455667700ULL,
	};

	return record;
}

static void assert_same(const struct pp_record *a, const struct pp_record *b)
{
	assert_true(pp_run_id_equal(&a->run, &b->run));
	assert_int_equal(a->lane, b->lane);
	assert_int_equal(a->cells, b->cells);
	assert_int_equal(a->flags, b->flags);
	assert_true(a->seq == b->seq);
	assert_true(a->offset == b->offset);
	assert_true(a->issued_ns == b->issued_ns);
	assert_true(a->durable == b->durable);
}

/* The format of the header, byte by byte: evidence of today is read by tomorrow's version. */
static void test_format(void **state)
{
	struct pp_record record = sample();
	uint8_t buf[CELLS * PP_CELL_BYTES], *at = buf + 2 * PP_CELL_BYTES;

	(void)state;
	pp_record_fill(buf, &record);
	assert_memory_equal(at, "PPCELL1\n", 8);
	assert_memory_equal(at + 8, record.run.bytes, 16);
	assert_int_equal(le32_get(at + 24), record.lane);
	assert_int_equal(le32_get(at + 28), 2);
	assert_int_equal(le32_get(at + 32), CELLS);
	assert_int_equal(le32_get(at + 36), 0);
	assert_true(le64_get(at + 40) == record.seq);
	assert_true(le64_get(at + 48) == record.offset + 2 * PP_CELL_BYTES);
	assert_true(le64_get(at + 56) == (uint64_t)record.issued_ns);
	assert_true(le64_get(at + 64) == record.durable);
	assert_true(le64_get(at + 504) == XXH3_64bits(at, 504));
}

static void test_round_trip(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 16, PP_RECORD_BYTES_MAX / PP_CELL_BYTES };
	uint8_t *buf = malloc(PP_RECORD_BYTES_MAX);
	size_t s;
	uint32_t flags, i;

	(void)state;
	for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (flags = 0; flags <= PP_RECORD_COMPRESSIBLE; flags++) {
			struct pp_record record = sample(), found;
			struct pp_cell cell;

			record.cells = sizes[s];
			record.flags = flags;
			pp_record_fill(buf, &record);
			assert_true(pp_record_check(buf, record.cells, record.offset, &found));
			assert_same(&found, &record);
			for (i = 0; i < record.cells; i++) {
				assert_int_equal(pp_cell_check(buf + i * PP_CELL_BYTES, &cell),
					PP_CELL_VALID);
				assert_int_equal(cell.index, i);
				assert_same(&cell.record, &record);
			}
		}
	}
	free(buf);
}

static void flip_all(uint32_t flags)
{
	struct pp_record record = sample(), found;
	uint8_t buf[CELLS * PP_CELL_BYTES], *at = buf + PP_CELL_BYTES;
	struct pp_cell cell;
	int bit;

	record.flags = flags;
	pp_record_fill(buf, &record);
	for (bit = 0; bit < PP_CELL_BYTES * 8; bit++) {
		at[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(pp_cell_check(at, &cell), PP_CELL_DAMAGED);
		assert_false(pp_record_check(buf, CELLS, record.offset, &found));
		at[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_true(pp_record_check(buf, CELLS, record.offset, &found));
}

static void test_every_bit(void **state)
{
	(void)state;
	flip_all(0);
	flip_all(PP_RECORD_COMPRESSIBLE);
}

/* A wrong payload under a right checksum: compared whole, not by its sum alone. */
static void test_payload_is_compared(void **state)
{
	struct pp_record record = sample();
	uint8_t buf[CELLS * PP_CELL_BYTES];
	struct pp_cell cell;
	int at;

	(void)state;
	for (at = 72; at < 504; at++) {
		pp_record_fill(buf, &record);
		buf[at] ^= 1;
		le64_put(buf + 504, XXH3_64bits(buf, 504));
		assert_int_equal(pp_cell_check(buf, &cell), PP_CELL_DAMAGED);
	}
}

/* Values that no writer writes, again under a right checksum. */
static void test_impossible_headers(void **state)
{
	static const struct { int at; uint32_t value; } rows[] = {
		{ 28, CELLS }, { 28, UINT32_MAX }, { 32, 0 }, { 32, 2049 }, { 32, 1 }, { 36, 2 },
		{ 36, UINT32_MAX },
	};
	struct pp_record record = sample();
	uint8_t buf[CELLS * PP_CELL_BYTES], *at = buf + 2 * PP_CELL_BYTES;
	struct pp_cell cell;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pp_record_fill(buf, &record);
		le32_put(at + rows[i].at, rows[i].value);
		le64_put(at + 504, XXH3_64bits(at, 504));
		assert_int_equal(pp_cell_check(at, &cell), PP_CELL_DAMAGED);
	}
	/* An offset before the record's own first cell. */
	pp_record_fill(buf, &record);
	le64_put(at + 48, PP_CELL_BYTES);
	le64_put(at + 504, XXH3_64bits(at, 504));
	assert_int_equal(pp_cell_check(at, &cell), PP_CELL_DAMAGED);
}

static void test_blank(void **state)
{
	uint8_t buf[PP_CELL_BYTES];
	struct pp_cell cell;
	int i;

	(void)state;
	memset(buf, 0, sizeof(buf));
	assert_int_equal(pp_cell_check(buf, &cell), PP_CELL_ZERO);
	memset(buf, 0xff, sizeof(buf));
	assert_int_equal(pp_cell_check(buf, &cell), PP_CELL_FF);
	for (i = 0; i < PP_CELL_BYTES; i++) {
		memset(buf, 0, sizeof(buf));
		buf[i] = 1;
		assert_int_equal(pp_cell_check(buf, &cell), PP_CELL_DAMAGED);
		assert_false(pp_bytes_all(buf, sizeof(buf), 0));
		memset(buf, 0xff, sizeof(buf));
		buf[i] = 0xfe;
		assert_int_equal(pp_cell_check(buf, &cell), PP_CELL_DAMAGED);
		assert_false(pp_bytes_all(buf, sizeof(buf), 0xff));
	}
	memset(buf, 0x5a, sizeof(buf));
	assert_true(pp_bytes_all(buf, sizeof(buf), 0x5a));
}

/* One record of one time, or none: each row makes cell 2 another record's in one respect. */
static void test_mixed_records(void **state)
{
	struct pp_record base = sample(), other, found;
	uint8_t buf[CELLS * PP_CELL_BYTES], foreign[CELLS * PP_CELL_BYTES];
	int row;

	(void)state;
	for (row = 0; row < 9; row++) {
		uint32_t from = 2;

		other = base;
		switch (row) {
		case 0: other.run.bytes[15] ^= 1; break;
		case 1: other.lane++; break;
		case 2: other.seq++; break;
		case 3: other.issued_ns++; break;
		case 4: other.durable--; break;
		case 5: other.flags = PP_RECORD_COMPRESSIBLE; break;
		case 6: other.offset += PP_CELL_BYTES; break;
		case 7: other.cells--; break;
		case 8: from = 1; break; /* the same record's cell in another one's place */
		}
		pp_record_fill(buf, &base);
		pp_record_fill(foreign, &other);
		memcpy(buf + 2 * PP_CELL_BYTES, foreign + from * PP_CELL_BYTES, PP_CELL_BYTES);
		assert_false(pp_record_check(buf, CELLS, base.offset, &found));
	}
	pp_record_fill(buf, &base);
	assert_false(pp_record_check(buf, CELLS, base.offset + PP_CELL_BYTES, &found));
	assert_false(pp_record_check(buf, CELLS - 1, base.offset, &found));
	assert_false(pp_record_check(buf + PP_CELL_BYTES, CELLS - 1, base.offset + PP_CELL_BYTES, &found));
	assert_true(pp_record_check(buf, CELLS, base.offset, &found));
}

/* No two cells may carry one payload, or misplaced bytes could pass for the right ones. */
static void test_payloads_differ(void **state)
{
	struct pp_record a = sample(), b;
	uint8_t one[CELLS * PP_CELL_BYTES], two[CELLS * PP_CELL_BYTES];
	int row, i, j;

	(void)state;
	pp_record_fill(one, &a);
	for (row = 0; row < 4; row++) {
		b = a;
		switch (row) {
		case 0: b.seq++; break;
		case 1: b.lane++; break;
		case 2: b.run.bytes[0] ^= 1; break;
		case 3: b.run.bytes[8] ^= 1; break;
		}
		pp_record_fill(two, &b);
		for (i = 0; i < CELLS; i++)
			for (j = 0; j < CELLS; j++)
				assert_memory_not_equal(one + i * PP_CELL_BYTES + 72,
					two + j * PP_CELL_BYTES + 72, 432);
	}
}

static int distinct_words(uint32_t flags)
{
	struct pp_record record = sample();
	uint8_t buf[CELLS * PP_CELL_BYTES];
	int i, j, distinct = 0;

	record.flags = flags;
	pp_record_fill(buf, &record);
	for (i = 0; i < 54; i++) {
		for (j = 0; j < i; j++)
			if (le64_get(buf + 72 + 8 * i) == le64_get(buf + 72 + 8 * j))
				break;
		distinct += j == i;
	}
	return distinct;
}

static void test_compressible(void **state)
{
	(void)state;
	assert_int_equal(distinct_words(0), 54);
	assert_int_equal(distinct_words(PP_RECORD_COMPRESSIBLE), 7);
}

static void test_run_id(void **state)
{
	static const char *const bad[] = { "", "00", "000102030405060708090a0b0c0d0e0f0",
		"000102030405060708090a0b0c0d0e0", "000102030405060708090A0b0c0d0e0f",
		"g00102030405060708090a0b0c0d0e0f", " 00102030405060708090a0b0c0d0e0f" };
	const char *good = "000102030405060708090a0b0c0d0eff";
	struct pp_run_id id, other;
	char text[PP_RUN_ID_TEXT_BYTES];
	size_t i;

	(void)state;
	assert_true(pp_run_id_parse(good, &id));
	pp_run_id_format(&id, text);
	assert_string_equal(text, good);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(pp_run_id_parse(bad[i], &id));
	assert_int_equal(pp_run_id_draw(&id, NULL), 0);
	assert_int_equal(pp_run_id_draw(&other, NULL), 0);
	assert_false(pp_run_id_equal(&id, &other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_every_bit),
		cmocka_unit_test(test_payload_is_compared),
		cmocka_unit_test(test_impossible_headers),
		cmocka_unit_test(test_blank),
		cmocka_unit_test(test_mixed_records),
		cmocka_unit_test(test_payloads_differ),
		cmocka_unit_test(test_compressible),
		cmocka_unit_test(test_run_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
