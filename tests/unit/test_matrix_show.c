/* SPDX-License-Identifier: MIT
 *
 * Goal: the matrix's own table stays within 80 columns and its columns do not slip, whatever a method is
 * called and a reason says; many findings of one kind are one line. Method: made rows, standard output
 * into a file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/matrix_show.h"

#define ROWS 8

static struct pp_matrix_row rows[ROWS];
static char text[16384];

static struct pp_matrix_row *add(size_t i, const char *label, const char *method)
{
	struct pp_matrix_row *row = &rows[i];

	snprintf(row->section, sizeof(row->section), "methods");
	snprintf(row->label, sizeof(row->label), "%s", label);
	snprintf(row->method, sizeof(row->method), "%s", method);
	snprintf(row->workload, sizeof(row->workload), "overwrite");
	row->status = PP_MATRIX_OK;
	row->promise = PP_PROMISE_MEDIA;
	row->threads = row->writes = 1;
	row->write_bytes = 8192;
	row->ops = 1000;
	row->ops_per_s = 1234567.8;
	row->latency_ns_p50 = row->latency_ns_p99 = 99990000;
	row->counted = true;
	row->flushes_per_op = 1;
	row->fua_per_op = -1;
	return row;
}

/* The whole table, as a person sees it. */
static void show(size_t count)
{
	static volatile sig_atomic_t stop;
	struct pp_matrix_printer printer = { .stop = &stop };
	static struct pp_matrix matrix;
	struct pp_error err;
	FILE *file = tmpfile();
	int kept = dup(STDOUT_FILENO);
	size_t i, bytes;

	assert_non_null(file);
	memcpy(matrix.rows, rows, count * sizeof(rows[0]));
	matrix.row_count = count;
	snprintf(matrix.disk, sizeof(matrix.disk), "none0");
	snprintf(matrix.no_trace_reason, sizeof(matrix.no_trace_reason), "no tracefs here, nor anything "
		"of the kind, and that needs a second line");
	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	for (i = 0; i < count; i++) {
		pp_matrix_table_began(&printer, &rows[i]);
		pp_matrix_table_done(&printer, &rows[i]);
	}
	assert_int_equal(pp_matrix_table_end(&matrix, &err), 0);
	fflush(stdout);
	dup2(kept, STDOUT_FILENO);
	close(kept);
	rewind(file);
	bytes = fread(text, 1, sizeof(text) - 1, file);
	text[bytes] = '\0';
	fclose(file);
}

static int count_of(const char *what)
{
	const char *at = text;
	int n = 0;

	for (; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

static void test_columns(void **state)
{
	struct pp_matrix_row *row;
	const char *at;

	(void)state;
	add(0, "fsync", "fsync");
	add(1, "a_method_with_a_name_of_38_characters_", "fsync")->settled = true;
	row = add(2, "another_method_with_a_name_much_longer", "fsync");
	row->status = PP_MATRIX_NA;
	snprintf(row->reason, sizeof(row->reason), "this is not to be had here for a reason that takes "
		"more than one line to be told");
	show(3);
	for (at = text; *at; at += strcspn(at, "\n") + 1)
		if (strcspn(at, "\n") > 80)
			fail_msg("%zu columns: %.*s", strcspn(at, "\n"), (int)strcspn(at, "\n"), at);
	assert_int_equal(count_of("                              media    1234567.8  "), 1);
	assert_non_null(strstr(text, "\na_method_with_a_name_of_38_characters_\n          "));
	assert_non_null(strstr(text, "\n                               settled after "));
}

static void test_findings(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ROWS; i++) {
		struct pp_matrix_row *row = add(i, "fsync", "fsync");

		snprintf(row->label, sizeof(row->label), "row-%zu", i);
		row->settled = false;
		row->foreign_traffic = true;
		row->foreign_per_s = i == 5 ? 900 : 70;
		row->flushes_per_op = 0; /* accuses nobody on a busy disk */
	}
	show(ROWS);
	assert_int_equal(count_of("warning: "), 1);
	assert_non_null(strstr(text, "warning: 8 rows, row-5 among them: others sent 900 requests a second"));
	assert_null(strstr(text, "did not ask"));
	/* A few are told one by one. */
	show(3);
	assert_int_equal(count_of("warning: row-"), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns), cmocka_unit_test(test_findings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
