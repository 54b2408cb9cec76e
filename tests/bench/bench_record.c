/* SPDX-License-Identifier: MIT
 *
 * Budget: a core checks 4 GB/s of records from memory (docs, `scan and check`).
 * Method: fill and check the same buffer, larger than the last-level cache of most machines, and one
 * that fits the first; the best of several rounds, since a disturbed round says nothing of the code.
 */
#include <stdio.h>
#include <stdlib.h>

#include "src/core/clock.h"
#include "src/core/record.h"

#define ROUNDS 7

static double gb_per_s(uint64_t bytes, int64_t ns)
{
	return (double)bytes / (double)ns;
}

static int measure(uint8_t *buf, uint64_t buf_bytes, uint32_t record_bytes, uint64_t passes)
{
	struct pp_record record = { .cells = record_bytes / PP_CELL_BYTES }, found;
	double fill = 0, check = 0, cells = 0, rate;
	struct pp_cell cell;
	uint64_t at, pass;
	int64_t began;
	int round;

	if (pp_run_id_draw(&record.run, NULL) != 0)
		return -1;
	for (round = 0; round < ROUNDS; round++) {
		began = pp_clock_mono_ns();
		for (pass = 0; pass < passes; pass++) {
			for (at = 0; at < buf_bytes; at += record_bytes) {
				record.seq++;
				record.offset = at;
				pp_record_fill(buf + at, &record);
			}
		}
		rate = gb_per_s(passes * buf_bytes, pp_clock_mono_ns() - began);
		fill = rate > fill ? rate : fill;
		began = pp_clock_mono_ns();
		for (pass = 0; pass < passes; pass++)
			for (at = 0; at < buf_bytes; at += record_bytes)
				if (!pp_record_check(buf + at, record.cells, at, &found))
					return -1;
		rate = gb_per_s(passes * buf_bytes, pp_clock_mono_ns() - began);
		check = rate > check ? rate : check;
		began = pp_clock_mono_ns();
		for (pass = 0; pass < passes; pass++)
			for (at = 0; at < buf_bytes; at += PP_CELL_BYTES)
				if (pp_cell_check(buf + at, &cell) != PP_CELL_VALID)
					return -1;
		rate = gb_per_s(passes * buf_bytes, pp_clock_mono_ns() - began);
		cells = rate > cells ? rate : cells;
	}
	printf("%5u kB records, %6llu kB buffer: fill %.2f GB/s, check %.2f GB/s, by cells %.2f GB/s\n",
		record_bytes >> 10, (unsigned long long)buf_bytes >> 10, fill, check, cells);
	return 0;
}

int main(void)
{
	uint64_t large = 64U << 20;
	uint8_t *buf = aligned_alloc(4096, large);
	int rc = 0;

	if (!buf)
		return 2;
	rc |= measure(buf, 16384, 8192, 4096);
	rc |= measure(buf, large, 8192, 1);
	rc |= measure(buf, large, 1U << 20, 1);
	free(buf);
	if (rc != 0)
		fprintf(stderr, "bench_record: a record that was filled is not valid\n");
	return rc ? 2 : 0;
}
