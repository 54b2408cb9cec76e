/* SPDX-License-Identifier: MIT
 *
 * Goal: another program can neither hang nor flood us, and its end is told as it was.
 * Method: sh(1) plays the programs.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/core/subprocess.h"

static struct pp_subprocess_result run(const char *script, size_t max_bytes, int64_t timeout_ms,
	char *out, size_t out_bytes)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	const char *const env[] = {"PP_TEST=from us", NULL};
	struct pp_subprocess_result result;
	struct pp_error err;
	struct pp_buf buf;
	struct pp_subprocess what = {argv, env, timeout_ms, &buf, NULL};

	pp_buf_init(&buf, max_bytes);
	assert_int_equal(pp_subprocess_run(&what, &result, &err), 0);
	snprintf(out, out_bytes, "%s", buf.data ? buf.data : "");
	assert_false(buf.failed);
	pp_buf_release(&buf);
	return result;
}

static void test_ends(void **state)
{
	static const struct {
		const char *script, *out;
		int exit_status, signal;
	} rows[] = {
		{"echo a; echo b >&2; exit 0", "a\nb\n", 0, 0},
		{"exit 7", "", 7, 0},
		{"kill -SEGV $$", "", -1, SIGSEGV},
		{"echo $PP_TEST; echo $LC_ALL", "from us\nC\n", 0, 0},
		{"cat; echo end", "end\n", 0, 0}, /* standard input is empty */
		{"exec >&- 2>&-; sleep 0.1; exit 3", "", 3, 0}, /* closes its output, lives on */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char out[256];
		struct pp_subprocess_result r = run(rows[i].script, 4096, 60000, out, sizeof(out));

		assert_string_equal(out, rows[i].out);
		assert_int_equal(r.exit_status, rows[i].exit_status);
		assert_int_equal(r.signal, rows[i].signal);
		assert_false(r.timed_out);
		assert_false(r.truncated);
	}
}

static void test_flood(void **state)
{
	char out[256];
	struct pp_subprocess_result r = run("yes 0123456 | head -c 300000; exit 4", 16, 60000, out,
		sizeof(out));

	(void)state;
	assert_string_equal(out, "0123456\n0123456\n");
	assert_true(r.truncated);
	assert_int_equal(r.exit_status, 4);
}

/* The whole group ends, and what was said before is kept. */
static void test_timeout(void **state)
{
	char out[256];
	struct pp_subprocess_result r = run("sleep 600 & echo $!; wait", 4096, 300, out, sizeof(out));
	pid_t child = (pid_t)atoi(out);

	(void)state;
	assert_true(r.timed_out);
	assert_int_equal(r.signal, SIGKILL);
	assert_true(child > 1);
	/* Killed with its group; init may take a moment to reap it. */
	for (int i = 0; i < 500 && kill(child, 0) == 0; i++) {
		char path[64], state_text[256] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/stat", (int)child);
		f = fopen(path, "r");
		if (!f)
			break;
		if (!fgets(state_text, sizeof(state_text), f))
			state_text[0] = '\0';
		fclose(f);
		if (strstr(state_text, ") Z "))
			break;
		usleep(10000);
		assert_int_not_equal(i, 499);
	}
}

/* A daemon that keeps the pipe open is not waited for. */
static void test_daemon_left_behind(void **state)
{
	char out[256];
	struct pp_subprocess_result r = run("sleep 5 & echo started", 4096, 60000, out, sizeof(out));

	(void)state;
	assert_string_equal(out, "started\n");
	assert_int_equal(r.exit_status, 0);
	assert_false(r.timed_out);
}

static void test_separate_errors(void **state)
{
	const char *const argv[] = {"sh", "-c", "echo o; echo e >&2", NULL};
	struct pp_subprocess_result result;
	struct pp_buf out, errs;
	struct pp_error err;
	struct pp_subprocess what = {.argv = argv, .out = &out, .err_out = &errs};

	(void)state;
	pp_buf_init(&out, 64);
	pp_buf_init(&errs, 64);
	assert_int_equal(pp_subprocess_run(&what, &result, &err), 0);
	assert_string_equal(out.data, "o\n");
	assert_string_equal(errs.data, "e\n");
	pp_buf_release(&out);
	pp_buf_release(&errs);
}

static void test_absent(void **state)
{
	const char *const argv[] = {"plugpull-no-such-program", NULL};
	const char *const no_exec[] = {"/etc/passwd", NULL};
	struct pp_subprocess what = {.argv = argv};
	struct pp_subprocess_result result;
	struct pp_error err;

	(void)state;
	assert_int_equal(pp_subprocess_run(&what, &result, &err), -1);
	assert_int_equal(err.class, PP_ERR_UNSUPPORTED);
	what.argv = no_exec;
	assert_int_equal(pp_subprocess_run(&what, &result, &err), -1);
}

/* Nothing leaks: neither into the child nor here. */
static void test_descriptors(void **state)
{
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char out[256];
	int after;

	(void)state;
	run("ls /proc/self/fd | wc -l", 4096, 60000, out, sizeof(out));
	assert_int_equal(atoi(out), 4); /* 0, 1, 2 and the folder itself */
	after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(after, before + 1);
	close(after);
	close(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_daemon_left_behind),
		cmocka_unit_test(test_separate_errors),
		cmocka_unit_test(test_absent),
		cmocka_unit_test(test_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
