/* SPDX-License-Identifier: MIT
 *
 * The parts of the program for Windows that no other test reaches: paths, codes, command lines, waits,
 * files, authentication. For Windows only; test_parts.py runs it under Wine.
 *
 *	parts FOLDER        in an empty folder; exit 0 if all of it holds, 1 with what does not
 *	parts --echo WORD...   prints its words, a line each: the other end of a command line
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "src/core/auth.h"
#include "src/core/buf.h"
#include "src/core/clock.h"
#include "src/core/console.h"
#include "src/core/descriptor.h"
#include "src/core/file.h"
#include "src/core/handle_win.h"
#include "src/core/host_win.h"
#include "src/core/subprocess.h"
#include "src/core/thread.h"
#include "src/core/tree.h"
#include "src/core/volume_win.h"

static int failed;
static struct pp_error err;

#define CHECK(what) do { \
	if (!(what)) { \
		printf("parts_win.c:%d: %s (%s)\n", __LINE__, #what, err.text); \
		failed = 1; \
	} \
} while (0)

/* ---- paths --------------------------------------------------------------------------------- */

static void becomes(const char *path, const wchar_t *want, int line)
{
	wchar_t *wide = pp_wide_path(path, &err);

	if (!wide || wcscmp(wide, want) != 0) {
		printf("parts_win.c:%d: '%s' becomes '%ls'\n", line, path, wide ? wide : L"(nothing)");
		failed = 1;
	}
	free(wide);
}

static void test_wide_paths(void)
{
	char longer[1200] = "C:/";
	wchar_t *wide;
	int i;

	becomes("C:/a/b", L"\\\\?\\C:\\a\\b", __LINE__);
	becomes("C:\\a\\..\\b", L"\\\\?\\C:\\b", __LINE__);
	becomes("//server/share/x", L"\\\\?\\UNC\\server\\share\\x", __LINE__);
	becomes("\\\\.\\PhysicalDrive0", L"\\\\.\\PhysicalDrive0", __LINE__);
	becomes("//./PhysicalDrive0", L"\\\\.\\PhysicalDrive0", __LINE__);
	becomes("C:/\xc3\xbc", L"\\\\?\\C:\\\u00fc", __LINE__);
	for (i = 0; i < 100; i++)
		strcat(longer, "0123456789/");
	wide = pp_wide_path(longer, &err);
	CHECK(wide && wcslen(wide) == strlen(longer) + 4);
	free(wide);
	CHECK(!pp_wide_path("C:/\xff", &err));
}

static void test_path_words(void)
{
	static const struct { const char *path; bool absolute, root, device; } rows[] = {
		{ "C:/x", true, false, false }, { "c:\\x", true, false, false }, { "C:/", true, true, false },
		{ "C:", false, true, false }, { "C:x", false, false, false }, { "x", false, false, false },
		{ "/x", false, true, false }, { "\\\\server\\share", true, true, false },
		{ "//server/share/", true, true, false }, { "//server/share/x", true, false, false },
		{ "\\\\.\\PhysicalDrive0", true, true, true }, { "//?/C:/x", true, false, true },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (pp_path_absolute(rows[i].path) != rows[i].absolute ||
			pp_path_is_root(rows[i].path) != rows[i].root ||
			pp_path_is_device(rows[i].path) != rows[i].device) {
			printf("parts_win.c: '%s' is misunderstood\n", rows[i].path);
			failed = 1;
		}
}

/* ---- codes --------------------------------------------------------------------------------- */

static void test_codes(void)
{
	char text[200];

	CHECK(pp_win_code(ERROR_FILE_NOT_FOUND) == ENOENT && pp_win_code(ERROR_PATH_NOT_FOUND) == ENOENT);
	CHECK(pp_win_code(ERROR_ALREADY_EXISTS) == EEXIST);
	CHECK(pp_win_code(ERROR_ACCESS_DENIED) == 0x80070005LL); /* errno 5 is another thing */
	CHECK(pp_nt_code((LONG)0xC0000010) == 0xC0000010LL);
	CHECK(pp_os_errno(0x80070005LL) == EACCES && pp_os_errno(ENOENT) == ENOENT);
	CHECK(pp_os_errno(0xC0000010LL) == EIO);
	pp_os_text(0x80070005LL, text, sizeof(text));
	CHECK(strstr(text, "error 5") && !strchr(text, '\n'));
	pp_os_text(0xC0000010LL, text, sizeof(text));
	CHECK(strstr(text, "0xC0000010"));
	pp_os_text(ENOENT, text, sizeof(text));
	CHECK(strcmp(text, strerror(ENOENT)) == 0);
	CHECK(pp_fail_win(&err, ERROR_ACCESS_DENIED, "cannot %s", "x") == -1 &&
		err.os_code == 0x80070005LL && strncmp(err.text, "cannot x: ", 10) == 0);
}

/* ---- files --------------------------------------------------------------------------------- */

static void test_files(const char *folder)
{
	char path[2048], deep[2048], real[4096];
	struct pp_fd_facts facts;
	struct pp_buf buf;
	int fd, copy, dir, i;

	snprintf(deep, sizeof(deep), "%s/\xd1\x84", folder);
	for (i = 0; i < 40; i++)
		strcat(deep, "/0123456789");
	CHECK(pp_mkdirs(deep, &err) == 0 && pp_mkdirs(deep, &err) == 0);
	snprintf(path, sizeof(path), "%s/file", deep);
	CHECK(pp_file_write(path, "one", 3, 0600, &err) == 0);
	CHECK(pp_file_write(path, "two\n", 4, 0600, &err) == 0);
	pp_buf_init(&buf, 100);
	CHECK(pp_file_read(path, &buf, &err) == 0 && buf.bytes == 4 && memcmp(buf.data, "two\n", 4) == 0);
	pp_buf_release(&buf);
	pp_buf_init(&buf, 3);
	CHECK(pp_file_read(path, &buf, &err) == -1 && err.class == PP_ERR_EVIDENCE);
	pp_buf_release(&buf);
	/* Wine's GetFinalPathNameByHandle knows no long paths, so a short one, by a detour. */
	snprintf(real, sizeof(real), "%s/\xd1\x84/../\xd1\x84/0123456789", folder);
	CHECK(pp_path_real(real, real, sizeof(real)) && strstr(real, "/\xd1\x84/0123456789") &&
		!strstr(real, "..") && !strchr(real, '\\'));
	CHECK(!pp_path_real("C:/no/such", real, sizeof(real)));

	CHECK(pp_open_win(path, O_RDWR, &fd, &err) == 0);
	CHECK(pp_fd_facts(fd, &facts, &err) == 0 && facts.is_file && !facts.is_folder &&
		facts.names == 1 && facts.size_bytes == 4);
	CHECK(pp_fd_dup(fd, &copy, &err) == 0 && copy != fd);
	close(fd);
	CHECK(pp_fd_pread(copy, real, 2, 1) == 2 && memcmp(real, "wo", 2) == 0);
	CHECK(pp_fd_pread(copy, real, 2, 100) == 0);
	close(copy);
	CHECK(pp_open_win(path, O_RDONLY | O_DIRECTORY, &fd, &err) == -1);
	CHECK(pp_open_win(deep, O_RDONLY, &fd, &err) == -1);
	CHECK(pp_open_win(deep, O_RDONLY | O_DIRECTORY, &dir, &err) == 0);
	CHECK(pp_fd_facts(dir, &facts, &err) == 0 && facts.is_folder);
	CHECK(pp_fd_open_in(dir, "file", O_RDONLY | O_NOFOLLOW, &fd, &err) == 0);
	close(fd);
	CHECK(pp_fd_open_in(dir, "none", O_RDONLY, &fd, &err) == -1 && err.os_code == ENOENT);
	close(dir);
	snprintf(path, sizeof(path), "%s/\xd1\x84", folder);
	CHECK(pp_tree_remove(path, &err) == 0 && pp_tree_remove(path, &err) == 0);
	CHECK(pp_open_win(path, O_RDONLY | O_DIRECTORY, &fd, &err) == -1 && err.os_code == ENOENT);
}

/* ---- programs ------------------------------------------------------------------------------ */

static void test_command_line(const char *self)
{
	static const char *const words[] = { "plain", "two words", "", "q\"uote", "back\\slash\\",
		"\\\\\"", "a\\\\ b\\\\", "\xc3\xbc" };
	const char *argv[12] = { self, "--echo" };
	struct pp_subprocess what = { .argv = argv, .timeout_ms = 30000 };
	struct pp_subprocess_result result;
	struct pp_buf out, want;
	size_t i;

	pp_buf_init(&out, 4096);
	pp_buf_init(&want, 4096);
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		argv[2 + i] = words[i];
		pp_buf_addf(&want, "%s\n", words[i]);
	}
	what.out = &out;
	CHECK(pp_subprocess_run(&what, &result, &err) == 0 && result.exit_status == 7);
	CHECK(out.bytes == want.bytes && memcmp(out.data, want.data, want.bytes) == 0);
	argv[1] = "--sleep";
	argv[2] = NULL;
	what.timeout_ms = 200;
	CHECK(pp_subprocess_run(&what, &result, &err) == 0 && result.timed_out);
	argv[0] = "no-such-program";
	CHECK(pp_subprocess_run(&what, &result, &err) == -1 && err.class == PP_ERR_UNSUPPORTED);
	pp_buf_release(&out);
	pp_buf_release(&want);
}

/* ---- time, threads, identity --------------------------------------------------------------- */

static void *wake(void *arg)
{
	pp_clock_sleep_ms(20);
	pthread_cond_broadcast(arg);
	return NULL;
}

static void test_time(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int64_t before = pp_clock_mono_ns(), rc;
	char first[64], second[64];
	pthread_cond_t cond;
	pthread_t thread;
	uint8_t *memory;

	pp_cond_init(&cond);
	pthread_mutex_lock(&lock);
	while ((rc = pp_cond_wait_until(&cond, &lock, before + 50 * PP_NS_PER_MS)) == 0)
		;
	CHECK(rc == ETIMEDOUT && pp_clock_mono_ns() >= before + 50 * PP_NS_PER_MS);
	CHECK(pp_cond_wait_until(&cond, &lock, before) == ETIMEDOUT);
	CHECK(pp_thread_start(&thread, wake, &cond) == 0);
	CHECK(pp_cond_wait_until(&cond, &lock, pp_clock_mono_ns() + 100 * PP_NS_PER_S) == 0);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	before = pp_clock_mono_ns();
	pp_clock_sleep_ms(5);
	CHECK(pp_clock_mono_ns() >= before + 5 * PP_NS_PER_MS);
	pp_clock_sleep_until_ns(0); /* long past */
	pp_clock_wall(first, sizeof(first));
	CHECK(strlen(first) == 20 && first[19] == 'Z');
	pp_clock_boot_id(first, sizeof(first));
	pp_clock_boot_id(second, sizeof(second));
	CHECK(strlen(first) == 36 && strcmp(first, second) == 0);
	memory = pp_aligned_alloc(4096, 8192);
	CHECK(memory && (uintptr_t)memory % 4096 == 0);
	pp_aligned_free(memory);
	pp_aligned_free(NULL);
}

/* FIPS 180-4 and RFC 4231, test case 2: the same numbers as every other implementation's. */
static void test_authentication(const char *folder)
{
	static const uint8_t want[32] = { 0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24,
		0x26, 0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83, 0x9d, 0xec,
		0x58, 0xb9, 0x64, 0xec, 0x38, 0x43 };
	char path[512], hex[65];
	uint8_t out[32], other[32];
	struct pp_mac mac;
	int i;

	pp_mac_init(&mac, "Jefe", 4);
	for (i = 0; i < 2; i++) { /* ready for the next each time */
		pp_mac_update(&mac, "what do ya want ", 16);
		pp_mac_update(&mac, "for nothing?", 12);
		pp_mac_digest(&mac, out, sizeof(out));
		CHECK(memcmp(out, want, sizeof(want)) == 0);
	}
	pp_mac_release(&mac);
	memcpy(other, out, sizeof(out));
	CHECK(pp_mac_equal(out, other, sizeof(out)));
	other[31] ^= 1;
	CHECK(!pp_mac_equal(out, other, sizeof(out)));
	CHECK(pp_random_bytes(out, 32, &err) == 0 && pp_random_bytes(other, 32, &err) == 0 &&
		memcmp(out, other, 32) != 0);
	snprintf(path, sizeof(path), "%s/abc", folder);
	CHECK(pp_file_write(path, "abc", 3, 0600, &err) == 0 && pp_host_sha256_file(path, hex, &err) == 0);
	CHECK(strcmp(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad") == 0);
	unlink(path);
}

static void test_volumes(void)
{
	CHECK(pp_volume_is_id("volume.0123ABCD"));
	CHECK(!pp_volume_is_id("volume.0123abcd") && !pp_volume_is_id("volume.0123ABCDE") &&
		!pp_volume_is_id("volume.0123ABC") && !pp_volume_is_id("Volume.0123ABCD"));
}

static int echo(int argc, char **argv)
{
	int i;

	if (strcmp(argv[1], "--sleep") == 0)
		pp_clock_sleep_ms(60000);
	for (i = 2; i < argc; i++)
		printf("%s\n", argv[i]);
	return 7;
}

int main(int argc, char **argv)
{
	pp_console_begin(&argc, &argv);
	if (argc > 1 && (strcmp(argv[1], "--echo") == 0 || strcmp(argv[1], "--sleep") == 0))
		return echo(argc, argv);
	if (argc != 2)
		return 2;
	test_wide_paths();
	test_path_words();
	test_codes();
	test_files(argv[1]);
	test_command_line(argv[0]);
	test_time();
	test_authentication(argv[1]);
	test_volumes();
	return failed;
}
