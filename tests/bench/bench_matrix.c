/* SPDX-License-Identifier: MIT
 *
 * Budget: a matrix row reaches 0.98 of the operations a second that pg_test_fsync reports, same
 * file, same disk, with histograms on.
 * Method: pairs, the order swapped from pair to pair, so that a disk that drifts favours neither;
 * per row the median of the pairs' ratios and the spread.
 * `bench_matrix` alone: short pairs of a row and of the barest loop (write, sync, until an alarm; no
 * histogram, no clock), which a noisy disk disturbs least. `bench_matrix PG_TEST_FSYNC [FOLDER
 * [PAIRS [SECONDS]]]`: pairs of the whole program and the whole matrix, for a quiet machine.
 * On a file system in RAM (/dev/shm) the same pairs say what an operation of the matrix costs beyond
 * the bare loop's, in nanoseconds: there is no disk behind which it could hide.
 * Prints; judges nothing: the disk is a shared one.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "src/core/clock.h"
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

static volatile sig_atomic_t alarmed;

static void on_alarm(int number)
{
	(void)number;
	alarmed = 1;
}

/* The barest loop of a method on a file made as the matrix makes it; operations a second. */
static double run_bare(const char *file, const struct pp_method *method, int ms)
{
	static uint8_t block[PP_MATRIX_BLOCK_BYTES] __attribute__((aligned(65536)));
	struct itimerval timer = { .it_value = { ms / 1000, ms % 1000 * 1000 } };
	uint64_t ops = 0;
	int64_t began, ended;
	int fd = open(file, O_RDWR | O_CREAT | O_EXCL, 0600), rc = fd < 0 ? -1 : 0;
	size_t at;

	for (at = 0; at < sizeof(block); at++)
		block[at] = (uint8_t)(rand() >> 7);
	for (at = 0; rc == 0 && at < PP_MATRIX_FILE_BYTES; at += sizeof(block))
		rc = pwrite(fd, block, sizeof(block), (off_t)at) == (ssize_t)sizeof(block) ? 0 : -1;
	if (rc != 0 || fsync(fd) != 0 || close(fd) != 0)
		return -1;
	fd = open(file, O_RDWR | pp_method_open_flags(method));
	alarmed = 0;
	signal(SIGALRM, on_alarm);
	pp_clock_sleep_ms(50); /* as the matrix looks at the idle disk */
	setitimer(ITIMER_REAL, &timer, NULL);
	began = pp_clock_mono_ns();
	while (!alarmed && rc == 0) {
		rc = pwrite(fd, block, sizeof(block), 0) == (ssize_t)sizeof(block) ? 0 : -1;
		if (rc == 0 && method->sync == PP_SYNC_FDATASYNC)
			rc = fdatasync(fd);
		else if (rc == 0 && method->sync == PP_SYNC_FSYNC)
			rc = fsync(fd);
		ops++;
	}
	ended = pp_clock_mono_ns();
	close(fd);
	unlink(file);
	return rc == 0 ? (double)ops * 1e9 / (double)(ended - began) : -1;
}

static double run_row(const char *file, const struct pp_method *method, int ms)
{
	static struct pp_matrix matrix;
	struct pp_matrix_config config = { .path = file, .only = &method->name, .only_count = 1,
		.seconds = ms / 1e3 };
	struct pp_error err = { 0 };

	if (pp_matrix_run(&config, &matrix, &err) == 0)
		return matrix.rows[0].ops_per_s;
	fprintf(stderr, "bench_matrix: %s\n", err.text);
	return -1;
}

/* in_ns: the difference an operation, else the ratio of rates. */
static int bench_loop(const char *file, const char *name, int pairs, int ms, bool in_ns)
{
	const struct pp_method *method = pp_method_find(name);
	static double ratios[PAIRS_MAX];
	int i;

	for (i = 0; i < pairs; i++) {
		double ours = i % 2 ? run_row(file, method, ms) : 0;
		double bare = run_bare(file, method, ms);

		if (i % 2 == 0)
			ours = run_row(file, method, ms);
		if (ours <= 0 || bare <= 0)
			return -1;
		ratios[i] = in_ns ? 1e9 / ours - 1e9 / bare : ours / bare;
	}
	qsort(ratios, (size_t)pairs, sizeof(double), by_value);
	printf("%-28s %.*f (%.*f ... %.*f)\n", name, in_ns ? 0 : 3, ratios[pairs / 2],
		in_ns ? 0 : 3, ratios[pairs / 4], in_ns ? 0 : 3, ratios[pairs * 3 / 4]);
	fflush(stdout);
	return 0;
}

static int bench_loops(const char *file)
{
	static const char *const names[] = { "write", "direct", "open_datasync (direct)", "fdatasync",
		"fsync" };
	size_t i;

	printf("matrix / bare loop, 25 pairs of 150 ms: median (quartiles)\n");
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (bench_loop(file, names[i], 25, 150, false) != 0)
			return 2;
	return 0;
}

static int bench_in_ram(void)
{
	static const char *const names[] = { "write", "fdatasync", "fsync", "open_datasync" };
	char file[64];
	size_t i;

	snprintf(file, sizeof(file), "/dev/shm/bench_matrix.%ld.tmp", (long)getpid());
	if (access("/dev/shm", W_OK) != 0) {
		printf("no /dev/shm: no overhead in RAM\n");
		return 0;
	}
	printf("matrix - bare loop in RAM, ns an operation, 25 pairs of 100 ms: median (quartiles)\n");
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (bench_loop(file, names[i], 25, 100, true) != 0)
			return 2;
	return 0;
}

int main(int argc, char **argv)
{
	static struct pp_matrix matrix;
	static double ratios[PP_MATRIX_ROWS_MAX][PAIRS_MAX];
	const char *program = argc > 1 ? argv[1] : NULL;
	int pairs = argc > 3 ? atoi(argv[3]) : 5, seconds = argc > 4 ? atoi(argv[4]) : 1, i;
	struct rates pg = { .count = 0 };
	char file[4096];
	size_t row;

	if (pairs < 1 || pairs > PAIRS_MAX || seconds < 1)
		return 2;
	snprintf(file, sizeof(file), "%s/bench_matrix.%ld.tmp", argc > 2 ? argv[2] : ".",
		(long)getpid());
	if (!program)
		return bench_loops(file) != 0 ? 2 : bench_in_ram();
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
