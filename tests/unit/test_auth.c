/* SPDX-License-Identifier: MIT
 *
 * Goal: MACs are the standard's, a key file that is not exactly a private key is refused.
 * Method: RFC 4231 vectors; key files of every wrong kind in a folder of our own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/auth.h"
#include "src/core/file.h"
#include "tests/janitor.h"

static char dir[] = "/tmp/pp-auth-XXXXXX";
static char path[64];

static int set_up(void **state)
{
	(void)state;
	if (!janitor_mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/key", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static void mac_is_hmac_sha256(void **state)
{
	/* RFC 4231, test cases 1, 2 and 6 (a key longer than a block) */
	static const struct { uint8_t fill; const char *key; size_t key_bytes; const char *data;
		uint8_t mac[8]; } rows[] = {
		{ 0x0b, NULL, 20, "Hi There", { 0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53 } },
		{ 0, "Jefe", 4, "what do ya want for nothing?",
			{ 0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e } },
		{ 0xaa, NULL, 131, "Test Using Larger Than Block-Size Key - Hash Key First",
			{ 0x60, 0xe4, 0x31, 0x59, 0x1e, 0xe0, 0xb6, 0x7f } },
	};
	struct pp_mac mac;
	uint8_t key[131], out[PP_MAC_BYTES];
	size_t i, n;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(key, rows[i].fill, sizeof(key));
		if (rows[i].key)
			memcpy(key, rows[i].key, rows[i].key_bytes);
		n = strlen(rows[i].data);
		pp_mac_init(&mac, key, rows[i].key_bytes);
		pp_mac_update(&mac, rows[i].data, n);
		pp_mac_digest(&mac, out, sizeof(out));
		assert_memory_equal(out, rows[i].mac, sizeof(rows[i].mac));
		/* again, in two parts, without touching the key */
		pp_mac_update(&mac, rows[i].data, 3);
		pp_mac_update(&mac, rows[i].data + 3, n - 3);
		pp_mac_digest(&mac, out, 8);
		assert_memory_equal(out, rows[i].mac, sizeof(rows[i].mac));
		pp_mac_release(&mac);
	}
}

static void equal_looks_at_every_byte(void **state)
{
	uint8_t a[16] = { 0 }, b[16] = { 0 };
	size_t i;

	(void)state;
	assert_true(pp_mac_equal(a, b, sizeof(a)));
	for (i = 0; i < sizeof(a); i++) {
		b[i] = 1;
		assert_false(pp_mac_equal(a, b, sizeof(a)));
		b[i] = 0;
	}
}

static void generated_key_loads(void **state)
{
	struct pp_error err;
	struct pp_key one, two;
	struct stat st;

	(void)state;
	unlink(path);
	umask(0);
	assert_int_equal(pp_key_generate(path, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(pp_key_load(path, &one, &err), 0);
	/* never overwritten */
	assert_int_equal(pp_key_generate(path, &err), -1);
	assert_int_equal(err.class, PP_ERR_REFUSED);
	assert_int_equal(pp_key_load(path, &two, &err), 0);
	assert_memory_equal(&one, &two, sizeof(one));
	unlink(path);
	assert_int_equal(pp_key_generate(path, &err), 0);
	assert_int_equal(pp_key_load(path, &two, &err), 0);
	assert_memory_not_equal(&one, &two, sizeof(one));
}

static void wide_modes_are_refused(void **state)
{
	static const mode_t modes[] = { 0640, 0604, 0620, 0602, 0601, 0660, 0644 };
	struct pp_error err;
	struct pp_key key;
	size_t i;

	(void)state;
	unlink(path);
	assert_int_equal(pp_key_generate(path, &err), 0);
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		assert_int_equal(chmod(path, modes[i]), 0);
		assert_int_equal(pp_key_load(path, &key, &err), -1);
		assert_int_equal(err.class, PP_ERR_REFUSED);
		assert_non_null(strstr(err.text, "chmod 600"));
	}
	assert_int_equal(chmod(path, 0400), 0);
	assert_int_equal(pp_key_load(path, &key, &err), 0);
}

#define HEX62 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd"

static void only_a_key_is_a_key(void **state)
{
	static const struct { const char *text; bool good; } rows[] = {
		{ HEX62 "ef\n", true }, { HEX62 "ef", true }, { HEX62 "ef\n\n", false },
		{ HEX62 "ef ", false }, { HEX62 "e", false }, { HEX62 "e\n", false },
		{ HEX62 "EF\n", false }, { HEX62 "eg\n", false }, { " " HEX62 "e\n", false },
		{ HEX62 "ef0\n", false }, { "", false }, { "\n", false },
	};
	struct pp_error err;
	struct pp_key key;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(pp_key_parse(rows[i].text, strlen(rows[i].text), &key), rows[i].good);
		assert_int_equal(pp_file_write(path, rows[i].text, strlen(rows[i].text), 0600, &err), 0);
		assert_int_equal(pp_key_load(path, &key, &err), rows[i].good ? 0 : -1);
	}
	assert_int_equal(key.bytes[0], 0x01);
	assert_int_equal(key.bytes[31], 0xef);
	assert_int_equal(pp_key_load(dir, &key, &err), -1);
	unlink(path);
	assert_int_equal(pp_key_load(path, &key, &err), -1);
	assert_non_null(strstr(err.text, "plugpull key FILE"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mac_is_hmac_sha256),
		cmocka_unit_test(equal_looks_at_every_byte),
		cmocka_unit_test(generated_key_loads),
		cmocka_unit_test(wide_modes_are_refused),
		cmocka_unit_test(only_a_key_is_a_key),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
