/* SPDX-License-Identifier: MIT */
#include "pace.h"

#include <stdlib.h>

#define PACE_MAX   2
#define PACE_SLACK 4
#define PACE_FEW   5  /* records in 100 ms, fewer of which are no measure of a pace */

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

static bool keeps_pace(uint64_t control_acked, uint32_t control_record_bytes, uint64_t arm_acked,
	uint32_t arm_record_bytes)
{
	/* Far above what can be written in a second, far below what would overflow. */
	static const uint64_t most = UINT64_MAX >> 32;
	uint64_t arm = arm_acked < most ? arm_acked : most;

	if (arm_acked == UINT64_MAX)
		return true;
	return control_acked <= PACE_MAX * arm + PACE_SLACK &&
		control_acked < most && control_acked * control_record_bytes <=
			PACE_MAX * arm * arm_record_bytes + (uint64_t)PACE_SLACK * control_record_bytes;
}

bool pp_pace_speaks_for(const struct pp_trial *control, const uint64_t arm_acked[PP_WITHIN],
	uint32_t arm_record_bytes)
{
	size_t k;

	for (k = PP_WITHIN_100_MS; k < PP_WITHIN; k++)
		if (!keeps_pace(control->acked_within[k], control->key.record_bytes, arm_acked[k],
			arm_record_bytes))
			return false;
	return control->exposed;
}

uint64_t pp_pace_per_s(const uint64_t arm_acked[PP_WITHIN])
{
	uint64_t second = arm_acked[PP_WITHIN_1_S];

	if (arm_acked[PP_WITHIN_100_MS] >= PACE_FEW)
		return 10 * arm_acked[PP_WITHIN_100_MS];
	return second ? second : 1;
}
