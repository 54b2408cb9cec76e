/* SPDX-License-Identifier: MIT
 *
 * Budget: a matrix row reaches 0.98 of the operations a second that pg_test_fsync reports, same
 * file, same disk, with histograms on.
 * Method: pairs of one whole pg_test_fsync and one whole matrix in its layout, the order swapped
 * from pair to pair, so that a disk that drifts favours neither. Per row the median of the pairs'
 * ratios and their spread. `bench_matrix PG_TEST_FSYNC [FOLDER [PAIRS [SECONDS]]]`.
 * Prints; judges nothing: the disk is a shared one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "writer/matrix.h"

#define PAIRS_MAX 99

struct rates {
	double ops_per_s[PP_MATRIX_ROWS_MAX];
	size_t count;
};

/* Lines that carry a rate, in order; n/a counts as 0. */
static int run_pg(const char *program, const char *file, int seconds, struct rates *rates)
{
	char command[8192], line[512];
	FILE *f;

	snprintf(command, sizeof(command), "'%s' -f '%s' -s %d 2>&1", program, file, seconds);
	f = popen(command, "r");
	if (!f)
		return -1;
	rates->count = 0;
	while (fgets(line, sizeof(line), f) && rates->count < PP_MATRIX_ROWS_MAX) {
		char *unit = strstr(line, " ops/sec"), *at = unit;

		if (!unit && !strstr(line, "n/a"))
			continue;
		while (at && at > line && at[-1] != ' ')
			at--;
		rates->ops_per_s[rates->count++] = at ? strtod(at, NULL) : 0;
	}
	return pclose(f);
}

static int run_matrix(const char *file, int seconds, struct pp_matrix *matrix)
{
	struct pp_matrix_config config = { .path = file, .pg = true, .seconds = seconds };
	struct pp_error err = { 0 };

	if (pp_matrix_run(&config, matrix, &err) == 0)
		return 0;
	fprintf(stderr, "bench_matrix: %s\n", err.text);
	return -1;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static struct pp_matrix matrix;
	static double ratios[PP_MATRIX_ROWS_MAX][PAIRS_MAX];
	const char *program = argc > 1 ? argv[1] : "pg_test_fsync";
	int pairs = argc > 3 ? atoi(argv[3]) : 5, seconds = argc > 4 ? atoi(argv[4]) : 1, i;
	struct rates pg = { .count = 0 };
	char file[4096];
	size_t row;

	if (pairs < 1 || pairs > PAIRS_MAX || seconds < 1)
		return 2;
	snprintf(file, sizeof(file), "%s/bench_matrix.%ld.tmp", argc > 2 ? argv[2] : ".",
		(long)getpid());
	for (i = 0; i < pairs; i++) {
		if ((i % 2 == 0 && run_pg(program, file, seconds, &pg) != 0) ||
			run_matrix(file, seconds, &matrix) != 0 ||
			(i % 2 == 1 && run_pg(program, file, seconds, &pg) != 0) ||
			pg.count != matrix.row_count) {
			printf("bench_matrix: skipped: '%s' does not run here, or prints other rows\n",
				program);
			return 0;
		}
		for (row = 0; row < pg.count; row++)
			ratios[row][i] = pg.ops_per_s[row] > 0
				? matrix.rows[row].ops_per_s / pg.ops_per_s[row] : 0;
	}
	printf("matrix / pg_test_fsync, %d pairs of %d s a test: median (least ... most)\n", pairs,
		seconds);
	for (row = 0; row < matrix.row_count; row++) {
		if (matrix.rows[row].status != PP_MATRIX_OK)
			continue;
		qsort(ratios[row], (size_t)pairs, sizeof(double), by_value);
		printf("%-7s %-28s %.3f (%.3f ... %.3f)\n", matrix.rows[row].section,
			matrix.rows[row].label, ratios[row][pairs / 2], ratios[row][0],
			ratios[row][pairs - 1]);
	}
	return 0;
}
