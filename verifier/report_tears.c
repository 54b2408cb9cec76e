/* SPDX-License-Identifier: MIT
 *
 * What was seen of atomicity (docs/method.md, M4.8). Not a promise: so it stands under the figures of
 * an arm, in no column.
 */
#include <stdio.h>

#include "report_fields.h"
#include "src/core/stats.h"

static uint32_t clipped(uint64_t n)
{
	return n > PP_STATS_N_MAX ? PP_STATS_N_MAX : (uint32_t)n;
}

/* Both counts made small enough for an exact bound, their ratio kept. */
static double bound_of(uint64_t torn, uint64_t of)
{
	if (of > PP_STATS_N_MAX) {
		torn = (uint64_t)((double)torn / (double)of * PP_STATS_N_MAX + 0.999);
		of = PP_STATS_N_MAX;
	}
	return pp_stats_bound_upper(clipped(torn), clipped(of), 0.95);
}

double pp_report_tears_bound(const struct pp_verdict_arm *arm)
{
	return bound_of(arm->tears_torn, arm->tears_in_flight);
}

static void block_name(char *out, size_t bytes, uint32_t block)
{
	if (block >= 1U << 20)
		snprintf(out, bytes, "%u MiB", block >> 20);
	else if (block >= 1U << 10)
		snprintf(out, bytes, "%u KiB", block >> 10);
	else
		snprintf(out, bytes, "%u bytes", block);
}

bool pp_report_tears(const struct pp_verdict_arm *arm, char *out, size_t bytes)
{
	uint64_t m = arm->tears_in_flight;
	uint32_t smallest, untorn;
	char name[24];
	size_t used;

	if (!m)
		return false;
	pp_verdict_tears(arm, &smallest, &untorn);
	used = (size_t)snprintf(out, bytes, "%llu of %llu writes torn (at most %.1f %%, 95 %%)",
		(unsigned long long)arm->tears_torn, (unsigned long long)m,
		100.0 * pp_report_tears_bound(arm));
	if (smallest && used < bytes) {
		block_name(name, sizeof(name), smallest);
		used += (size_t)snprintf(out + used, bytes - used, "; smallest block seen torn: %s", name);
	}
	if (untorn && used < bytes) {
		block_name(name, sizeof(name), untorn);
		snprintf(out + used, bytes - used, "; none of %s or less (at most %.1f %%)", name,
			100.0 * bound_of(0, m));
	}
	return true;
}
