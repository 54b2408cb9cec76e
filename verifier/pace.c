/* SPDX-License-Identifier: MIT */
#include "pace.h"

#include <stdlib.h>

#define PACE_MAX   2
#define PACE_SLACK 4

static int compare_counts(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t pp_pace_median(uint64_t *counts, size_t count)
{
	if (!count)
		return UINT64_MAX;
	qsort(counts, count, sizeof(*counts), compare_counts);
	return counts[(count - 1) / 2];
}

bool pp_pace_speaks_for(uint64_t control_acked, uint32_t control_record_bytes, uint64_t arm_acked,
	uint32_t arm_record_bytes)
{
	/* Far above what can be written in 100 ms, far below what would overflow. */
	static const uint64_t most = UINT64_MAX >> 32;
	uint64_t arm = arm_acked < most ? arm_acked : most;

	if (arm_acked == UINT64_MAX)
		return true;
	return control_acked <= PACE_MAX * arm + PACE_SLACK &&
		control_acked < most && control_acked * control_record_bytes <=
			PACE_MAX * arm * arm_record_bytes + (uint64_t)PACE_SLACK * control_record_bytes;
}
