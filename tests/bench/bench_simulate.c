/* SPDX-License-Identifier: MIT
 *
 * Budgets: a core simulates 10,000 cuts of a 1000-record run a minute; a scan checks 4 GB/s a core
 * from memory. Method: honest and lying drives, the cut, scan and judgement included; a scan whose
 * source copies records from memory and whose sink throws away. Processor time, best of several
 * rounds: a disturbed round says nothing of the code.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/lab/simulate.h"

#define ROUNDS 5

static double cpu_s(clock_t from)
{
	return (double)(clock() - from) / CLOCKS_PER_SEC;
}

static int simulate(const char *behaviour, const char *method)
{
	struct pp_sim_plan plan = { .behaviour = pp_sim_drive_behaviour_find(behaviour),
		.method = pp_method_find(method), .workload = PP_OVERWRITE, .kind = PP_TARGET_RAW,
		.lanes = 1, .group = 1, .record_bytes = 4096, .records = 1000, .net_delay_ns = -1,
		.net_loss_ns = -1, .survive_pct = 101, .barriers = true, .cuts_a_rig = 12 };
	double best = 0, rate;
	struct pp_sim_tally t;
	struct pp_error err;
	clock_t began;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		memset(&t, 0, sizeof(t));
		began = clock();
		if (pp_simulate(&plan, 1, 120, &t, NULL, NULL, &err) != 0) {
			fprintf(stderr, "bench_simulate: %s\n", err.text);
			return -1;
		}
		rate = (double)t.cuts * 60.0 / cpu_s(began);
		best = rate > best ? rate : best;
	}
	printf("%-14s %-24s %llu records a cut: %.0f cuts a minute\n", behaviour, method,
		(unsigned long long)(t.records / t.cuts), best);
	return 0;
}

struct target {
	uint8_t *data;
	uint64_t bytes;
};

static int target_size(void *ctx, uint32_t file, uint64_t *bytes, int32_t *os_code)
{
	(void)file;
	*os_code = 0;
	*bytes = ((struct target *)ctx)->bytes;
	return 0;
}

static int target_read(void *ctx, uint32_t file, uint64_t offset, void *buf, size_t bytes,
	int32_t *os_code)
{
	(void)file;
	(void)os_code;
	memcpy(buf, ((struct target *)ctx)->data + offset, bytes);
	return 0;
}

static int nowhere(void *ctx, const void *data, size_t bytes, struct pp_error *err)
{
	(void)data;
	(void)err;
	*(size_t *)ctx += bytes;
	return 0;
}

static int scan(uint32_t record_bytes)
{
	struct target target = { .bytes = 64 << 20 };
	struct pp_scan_source source = { .ctx = &target, .size = target_size, .read = target_read,
		.align_bytes = 512 };
	struct pp_record r = { .cells = record_bytes / PP_CELL_BYTES };
	struct pp_layout layout;
	struct pp_error err;
	double best = 0, rate;
	size_t written = 0;
	clock_t began;
	int round, rc = -1;

	target.data = malloc(target.bytes);
	if (!target.data || pp_run_id_draw(&r.run, &err) != 0 || pp_layout_init(&layout, PP_OVERWRITE,
		1, 1, record_bytes, 4096, false, 0, target.bytes, &err) != 0)
		goto out;
	for (r.offset = 0; r.offset < target.bytes; r.offset += record_bytes) {
		r.seq++;
		pp_record_fill(target.data + r.offset, &r);
	}
	for (round = 0; round < ROUNDS; round++) {
		began = clock();
		if (pp_scan_make(&layout, &source, NULL, 0, nowhere, &written, &err) != 0)
			goto out;
		rate = (double)target.bytes / 1e9 / cpu_s(began);
		best = rate > best ? rate : best;
	}
	/* One line a slot, not the bytes: everything was found whole. */
	rc = written > target.bytes / 8 ? -1 : 0;
	printf("scan of %u kB records from memory: %.1f GB/s\n", record_bytes >> 10, best);
out:
	free(target.data);
	return rc;
}

int main(void)
{
	if (simulate("honest", "fdatasync") != 0 || simulate("honest", "open_datasync (direct)") != 0 ||
		simulate("ignores-flush", "fdatasync") != 0 || scan(4096) != 0 || scan(65536) != 0)
		return 2;
	return 0;
}
