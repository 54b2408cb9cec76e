/* SPDX-License-Identifier: MIT
 *
 * Goal: no bytes, read as cut.json, run.json, target.json or smartctl's JSON, crash the judge; facts
 * that are taken hold only what the oracle may compute with (M4.6). Files are in memory: the loaders
 * take a path, and /proc/self/fd has one.
 */
#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_main.h"
#include "verifier/counters.h"
#include "verifier/facts.h"
#include "verifier/proof.h"

static int file = -1;
static char path[32];

static int open_file(void)
{
	if (file < 0) {
		file = memfd_create("facts", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	}
	return file;
}

static size_t make_sample(uint64_t choice, uint8_t *out)
{
	static const char smart[] = "{\"rotation_rate\": 0, \"ata_smart_attributes\": {\"table\": ["
		"{\"id\": 12, \"raw\": {\"value\": 4}}, {\"id\": 174, \"raw\": {\"value\": 2}}]}, "
		"\"nvme_smart_health_information_log\": {\"power_cycles\": 1}}";
	struct pp_cut_facts cut = { .number = 1, .state = "judged", .boot_before = "A", .boots = 1 };
	struct pp_run_facts run = { .serial = "S1", .method = "fsync", .aftermath = PP_AFTER_SCANNED };
	struct pp_error err;
	ssize_t n;

	open_file();
	strcpy(cut.boot[0].boot_id, "B");
	pp_layout_init(&run.layout, PP_OVERWRITE, 2, 1, 4096, 4096, false, 0, 8 << 20, &err);
	if (choice % 3 == 2) {
		memcpy(out, smart, sizeof(smart) - 1);
		return sizeof(smart) - 1;
	}
	/* The savers rename; a folder of their own is needed once. */
	{
		char dir[] = "/tmp/pp-fuzz-XXXXXX", name[64];
		FILE *f;

		if (!mkdtemp(dir))
			return 0;
		snprintf(name, sizeof(name), "%s/f", dir);
		if ((choice % 3 ? pp_run_facts_save(&run, name, &err)
			: pp_cut_facts_save(&cut, name, &err)) != 0)
			abort();
		f = fopen(name, "re");
		n = f ? (ssize_t)fread(out, 1, FUZZ_BYTES_MAX, f) : 0;
		if (f)
			fclose(f);
		unlink(name);
		rmdir(dir);
	}
	return n > 0 ? (size_t)n : 0;
}

static size_t fuzz_sample(uint64_t choice, uint8_t *out)
{
	static uint8_t made[3][FUZZ_BYTES_MAX];
	static size_t bytes[3];
	uint64_t k = choice % 3;

	if (!bytes[k])
		bytes[k] = make_sample(k, made[k]);
	memcpy(out, made[k], bytes[k]);
	return bytes[k];
}

static void check_run(const struct pp_run_facts *run)
{
	uint32_t lane;

	assert(pp_method_find(run->method));
	assert(run->layout.lanes >= 1 && run->layout.lanes <= PP_LANES_MAX);
	assert(run->layout.slots >= 4ULL * pp_layout_window(&run->layout));
	for (lane = 0; lane < run->layout.lanes; lane++)
		assert(run->layout.base_slots[lane] <= run->layout.slots);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct pp_witness witness = { .t_last_ns = 1 };
	struct pp_error err = { 0 };
	struct pp_drive_counters counters;
	struct pp_cut_proof proof;
	struct pp_cut_facts cut;
	struct pp_run_facts run;

	if (open_file() < 0 || ftruncate(file, 0) != 0 ||
		pwrite(file, data, bytes, 0) != (ssize_t)bytes)
		abort();
	if (pp_cut_facts_load(&cut, path, &err) == 0) {
		assert(cut.boots <= PP_BOOTS_MAX);
		pp_cut_prove(&cut, &witness, &proof);
		assert(proof.proven == !proof.void_reason[0]);
	}
	if (pp_run_facts_load(&run, path, &err) == 0)
		check_run(&run);
	pp_drive_counters_parse((const char *)data, bytes, &counters);
	assert(!counters.has_power_cycles || counters.power_cycles > 0);
	return 0;
}
