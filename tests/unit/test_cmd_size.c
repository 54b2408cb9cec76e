/* SPDX-License-Identifier: MIT
 *
 * Goal: `plugpull size` says the sample sizes of M8.3 and M9.1 and refuses what it cannot read.
 * Method: call it with stdout and stderr going to files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/cmd_size.h"

#define WORDS_MAX 8

/* Runs the command; what it wrote to fd (1 or 2) is in out. */
static int run(char *const *words, int fd, char *out, size_t bytes)
{
	char *argv[WORDS_MAX + 2] = { (char *)"size" };
	FILE *file = tmpfile();
	int argc = 1, other = 3 - fd, saved = dup(fd), muted = dup(other), status;
	int null = open("/dev/null", O_WRONLY);
	size_t got;

	assert_non_null(file);
	for (; *words; words++)
		argv[argc++] = *words;
	fflush(NULL);
	assert_true(dup2(fileno(file), fd) >= 0);
	assert_true(null >= 0 && dup2(null, other) >= 0);
	status = pp_cmd_size(argc, argv);
	fflush(NULL);
	dup2(saved, fd);
	dup2(muted, other);
	close(saved);
	close(muted);
	close(null);
	rewind(file);
	got = fread(out, 1, bytes - 1, file);
	out[got] = '\0';
	fclose(file);
	return status;
}

static void test_figures(void **state)
{
	static const struct { const char *words[WORDS_MAX]; const char *says; } rows[] = {
		{ { NULL }, "criterion 95/90: 29 clean cuts an arm\n" },
		{ { NULL }, "cuts:  29 x 1 arm + 8 for controls = 37\nhours: 1.2 at 120 s a cut" },
		{ { NULL }, "`direct` must lose in 2 of 2 cuts" },
		{ { NULL }, "none lost in 29: at most 9.8 % of cuts lose" },
		{ { "--criterion", "95/99" }, "criterion 95/99: 299 clean cuts an arm\n" },
		{ { "--criterion", "95/99" }, "`direct` must lose in 1 of 1 cuts" },
		{ { "--criterion", "95/50" }, "`direct` must lose in 4 of 4 cuts" },
		{ { "--criterion=99/90", "--arms=4", "--controls=10", "--cycle-s=100" },
			"cuts:  44 x 4 arms + 10 for controls = 186\nhours: 5.2 at 100 s a cut" },
		{ { "--controls", "0", "--json" }, "{\"format\": 1, \"criterion\": \"95/90\", "
			"\"clean_cuts_per_arm\": 29, \"direct_cuts_min\": 2, \"arms\": 1, "
			"\"control_cuts\": 0, \"cuts\": 29, \"cycle_s\": 120, \"duration_s\": 3480}\n" },
		{ { "--help" }, "Usage: plugpull size" },
	};
	char out[4096];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(run((char *const *)rows[i].words, 1, out, sizeof(out)), 0);
		if (!strstr(out, rows[i].says))
			fail_msg("row %zu: %s", i, out);
	}
}

static void test_refusals(void **state)
{
	static const struct { const char *words[WORDS_MAX]; const char *says; } rows[] = {
		{ { "--criterion", "95" }, "'95' is not a criterion" },
		{ { "--criterion", "95/99.9999" }, "needs more than 1000000 clean cuts" },
		{ { "--arms", "0" }, "'0' is not a whole number from 1 to 100000" },
		{ { "--arms", "-1" }, "'-1' is not a whole number" },
		{ { "--arms", "99999999999999999999999" }, "is not a whole number" },
		{ { "--controls", "3x" }, "'3x' is not a whole number" },
		{ { "--cycle-s", "" }, "'' is not a whole number" },
		{ { "extra" }, "unexpected 'extra'" },
		{ { "--no-such" }, "try 'plugpull size --help'" },
	};
	char out[4096];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(run((char *const *)rows[i].words, 2, out, sizeof(out)), 2);
		if (!strstr(out, rows[i].says))
			fail_msg("row %zu: %s", i, out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
