/* SPDX-License-Identifier: MIT
 *
 * Goal: what the builder writes the parser reads, and nothing that is not exactly the format is
 * understood by half. Method: rows of texts, good and bad.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "src/core/kv.h"

#define KEY64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void parses_all_or_nothing(void **state)
{
	static const struct { const char *text; size_t bytes; int count; } rows[] = {
		{ "", 0, 0 }, { "a=\n", 3, 1 }, { "a=1\nb=2\n", 8, 2 }, { "a==\n", 4, 1 },
		{ "x.y-z_9=1\n", 10, 1 }, { "a=\\n\\\\\n", 7, 1 }, { "a=\r\t\x80\n", 6, 1 },
		{ KEY64 "=1\n", 67, 1 }, { "a" KEY64 "=1\n", 68, -1 },
		{ "a=1", 3, -1 }, { "\n", 1, -1 }, { "a\n", 2, -1 }, { "=1\n", 3, -1 },
		{ "A=1\n", 4, -1 }, { "a =1\n", 5, -1 }, { " a=1\n", 5, -1 }, { "a=1\n\n", 5, -1 },
		{ "a=1\na=1\n", 8, -1 }, { "a=1\nb=1\na=2\n", 12, -1 }, { "a=\\x\n", 5, -1 },
		{ "a=\\\n", 4, -1 }, { "a=\0\n", 4, -1 }, { "a=1\nb", 5, -1 }, { "a=1\nb\n", 6, -1 },
	};
	struct pp_error err;
	struct pp_kv kv;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int rc = pp_kv_parse(&kv, rows[i].text, rows[i].bytes, &err);

		if (rc != (rows[i].count < 0 ? -1 : 0))
			fail_msg("row %zu", i);
		assert_int_equal(kv.count, rows[i].count < 0 ? 0 : rows[i].count);
		if (rc != 0)
			assert_int_equal(err.class, PP_ERR_PEER);
		pp_kv_release(&kv);
	}
}

static void round_trip(void **state)
{
	static const char *const values[] = { "", "plain", "a=b", "two\nlines\n", "\\", "\\n", "\\\\n\n",
		"/dev/disk/by-id/x y", "\xff\x01" };
	char key[16];
	struct pp_error err;
	struct pp_buf buf;
	struct pp_kv kv;
	size_t i, n = sizeof(values) / sizeof(values[0]);

	(void)state;
	pp_buf_init(&buf, PP_KV_BYTES_MAX);
	for (i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "k%zu", i);
		pp_kv_add(&buf, key, values[i]);
	}
	pp_kv_addf(&buf, "long", "%0600d", 7);
	assert_false(buf.failed);
	assert_int_equal(pp_kv_parse(&kv, buf.data, buf.bytes, &err), 0);
	for (i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "k%zu", i);
		assert_string_equal(pp_kv_find(&kv, key), values[i]);
	}
	assert_int_equal(strlen(pp_kv_find(&kv, "long")), 600);
	assert_null(pp_kv_find(&kv, "k"));   /* names match whole */
	assert_null(pp_kv_find(&kv, "k11"));
	pp_kv_release(&kv);
	pp_buf_release(&buf);
}

static void bounds(void **state)
{
	struct pp_error err;
	struct pp_buf buf;
	struct pp_kv kv;
	char key[16];
	int i;

	(void)state;
	pp_buf_init(&buf, 2 * PP_KV_BYTES_MAX);
	for (i = 0; i < PP_KV_PAIRS_MAX; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		pp_kv_add(&buf, key, "");
	}
	assert_int_equal(pp_kv_parse(&kv, buf.data, buf.bytes, &err), 0);
	pp_kv_release(&kv);
	pp_kv_add(&buf, "more", "");
	assert_int_equal(pp_kv_parse(&kv, buf.data, buf.bytes, &err), -1);
	pp_buf_clear(&buf);
	pp_kv_addf(&buf, "a", "%0*d", (int)PP_KV_BYTES_MAX, 1);
	assert_int_equal(pp_kv_parse(&kv, buf.data, buf.bytes, &err), -1);
	pp_buf_release(&buf);
}

static void numbers(void **state)
{
	static const struct { const char *value; bool u64, i64; uint64_t u; int64_t i; } rows[] = {
		{ "0", true, true, 0, 0 }, { "7", true, true, 7, 7 }, { "-7", false, true, 0, -7 },
		{ "18446744073709551615", true, false, UINT64_MAX, 0 },
		{ "18446744073709551616", false, false, 0, 0 },
		{ "9223372036854775807", true, true, INT64_MAX, INT64_MAX },
		{ "-9223372036854775808", false, true, 0, INT64_MIN },
		{ "-9223372036854775809", false, false, 0, 0 },
		{ "", false, false, 0, 0 }, { " 1", false, false, 0, 0 }, { "1 ", false, false, 0, 0 },
		{ "+1", false, false, 0, 0 }, { "0x1", false, false, 0, 0 }, { "-", false, false, 0, 0 },
		{ "1.5", false, false, 0, 0 }, { "--1", false, false, 0, 0 },
	};
	struct pp_kv_pair pair = { "n", NULL };
	struct pp_kv kv = { .pairs = &pair, .count = 1 };
	struct pp_error err;
	size_t k;

	(void)state;
	for (k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		uint64_t u = 1;
		int64_t i = 1;

		pair.value = rows[k].value;
		assert_int_equal(pp_kv_u64(&kv, "n", 0, UINT64_MAX, &u, &err), rows[k].u64 ? 0 : -1);
		assert_true(!rows[k].u64 || u == rows[k].u);
		assert_int_equal(pp_kv_i64(&kv, "n", INT64_MIN, INT64_MAX, &i, &err),
			rows[k].i64 ? 0 : -1);
		assert_true(!rows[k].i64 || i == rows[k].i);
	}
}

static void getters(void **state)
{
	static const char text[] = "lanes=many\nn=9\nyes=yes\nno=no\nmaybe=Yes\n";
	struct pp_error err;
	struct pp_kv kv;
	const char *s;
	uint64_t u;
	int64_t i;
	bool b;

	(void)state;
	assert_int_equal(pp_kv_parse(&kv, text, strlen(text), &err), 0);
	assert_int_equal(pp_kv_u64(&kv, "lanes", 1, 64, &u, &err), -1);
	assert_string_equal(err.text, "'lanes' is 'many', expected a number from 1 to 64");
	assert_int_equal(pp_kv_u64_or(&kv, "lanes", 3, 1, 64, &u, &err), -1); /* there, but wrong */
	assert_int_equal(pp_kv_u64(&kv, "gone", 1, 64, &u, &err), -1);
	assert_string_equal(err.text, "missing 'gone'");
	assert_int_equal(pp_kv_u64_or(&kv, "gone", 3, 1, 64, &u, &err), 0);
	assert_int_equal(u, 3);
	assert_int_equal(pp_kv_u64(&kv, "n", 1, 8, &u, &err), -1);
	assert_int_equal(pp_kv_u64(&kv, "n", 10, 20, &u, &err), -1);
	assert_int_equal(pp_kv_u64(&kv, "n", 9, 9, &u, &err), 0);
	assert_int_equal(pp_kv_i64_or(&kv, "gone", -3, -5, 5, &i, &err), 0);
	assert_int_equal(i, -3);
	assert_int_equal(pp_kv_bool(&kv, "yes", &b, &err), 0);
	assert_true(b);
	assert_int_equal(pp_kv_bool(&kv, "no", &b, &err), 0);
	assert_false(b);
	assert_int_equal(pp_kv_bool(&kv, "maybe", &b, &err), -1);
	assert_int_equal(pp_kv_bool_or(&kv, "maybe", true, &b, &err), -1);
	assert_int_equal(pp_kv_bool_or(&kv, "gone", true, &b, &err), 0);
	assert_true(b);
	assert_int_equal(pp_kv_str(&kv, "gone", &s, &err), -1);
	assert_string_equal(pp_kv_str_or(&kv, "gone", "x"), "x");
	assert_string_equal(pp_kv_str_or(&kv, "n", "x"), "9");
	pp_kv_release(&kv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_all_or_nothing), cmocka_unit_test(round_trip),
		cmocka_unit_test(bounds), cmocka_unit_test(numbers), cmocka_unit_test(getters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
