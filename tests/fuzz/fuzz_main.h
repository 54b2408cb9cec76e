/* SPDX-License-Identifier: MIT
 *
 * Lets a harness run without libFuzzer: with files as arguments each is one input; without, inputs
 * are mutations of the harness's own samples, from a seed that is printed (FUZZ_SEED repeats it,
 * FUZZ_RUNS says how many). With clang: -fsanitize=fuzzer -DPP_LIBFUZZER, and this is empty.
 */
#ifndef PP_FUZZ_MAIN_H
#define PP_FUZZ_MAIN_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#ifndef PP_LIBFUZZER
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FUZZ_BYTES_MAX 8192

/* Fills out with a good input of the harness's choice; returns its size. */
static size_t fuzz_sample(uint64_t choice, uint8_t *out);

static uint64_t fuzz_next(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static size_t fuzz_mutate(uint64_t *seed, uint8_t *data, size_t bytes)
{
	uint64_t steps = fuzz_next(seed) % 6;

	while (steps-- && bytes) {
		size_t at = fuzz_next(seed) % bytes, n = fuzz_next(seed) % 64;

		n = n > bytes - at ? bytes - at : n;
		switch (fuzz_next(seed) % 5) {
		case 0:
			data[at] ^= (uint8_t)(1u << fuzz_next(seed) % 8);
			break;
		case 1:
			data[at] = (uint8_t)fuzz_next(seed);
			break;
		case 2:
			memset(data + at, (int)(fuzz_next(seed) & 1) * 0xff, n);
			break;
		case 3:
			memmove(data + at, data + at + n, bytes - at - n);
			bytes -= n;
			break;
		default:
			bytes = at;
		}
	}
	return bytes;
}

static int fuzz_file(const char *path)
{
	static uint8_t data[1 << 20];
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f) {
		perror(path);
		return 2;
	}
	n = fread(data, 1, sizeof(data), f);
	fclose(f);
	return LLVMFuzzerTestOneInput(data, n);
}

int main(int argc, char **argv)
{
	const char *text = getenv("FUZZ_SEED"), *many = getenv("FUZZ_RUNS");
	uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
	uint64_t runs = many ? strtoull(many, NULL, 0) : 200000, i;
	static uint8_t data[FUZZ_BYTES_MAX];
	int a;

	for (a = 1; a < argc; a++)
		if (fuzz_file(argv[a]) != 0)
			return 2;
	if (argc > 1)
		return 0;
	printf("FUZZ_SEED=%" PRIu64 " FUZZ_RUNS=%" PRIu64 "\n", seed, runs);
	fflush(stdout);
	for (i = 0; i < runs; i++) {
		size_t n = fuzz_sample(fuzz_next(&seed), data);

		n = fuzz_mutate(&seed, data, n);
		LLVMFuzzerTestOneInput(data, n);
	}
	return 0;
}
#endif
#endif
