/* SPDX-License-Identifier: MIT
 *
 * Goal: no bytes, read as a plan, crash the reader, and a plan that is taken is one that the rest may
 * rely on: texts that end, counts inside their arrays, nothing destroyed that was not named.
 */
#include <assert.h>
#include <string.h>

#include "fuzz_main.h"
#include "src/campaign/plan.h"

static const char *const samples[] = {
	"[campaign]\ncriterion = 95/90\ncuts = 3\nwrite_min_ms = 1\nwrite_max_ms = 9\nearlier = a, b\n",
	"[machine]\nlisten = 127.0.0.1:0\nkey = /k\nbattery = no\n[pdu]\nprofile = exec\n"
	"outlets = 1, 2\noff_s = 3\ncycles_per_hour = none\n",
	"[drive a]\nserial = S1\nformat = ext4\ndestroy = S1\nsize_mib = 16\n"
	"[drive b]\nserial = S2\ntarget = raw\ndestroy = S2\n[drive c]\nserial = S3\nuuid = u\n"
	"[arms]\nmethods = fdatasync, fsync (direct)\nlanes = 2\n[arms x]\nmethods = all\n"
	"workload = append\ndrives = a, c\n",
	"[drive a]\nserial = S1\npath = /x\n[arms]\nmethods = all\n[lab]\nrig = vm\nseed = 4\n",
};

static size_t fuzz_sample(uint64_t choice, uint8_t *out)
{
	const char *text = samples[choice % (sizeof(samples) / sizeof(samples[0]))];

	memcpy(out, text, strlen(text));
	return strlen(text);
}

static void check(const struct pp_plan *plan)
{
	uint32_t i, d;

	assert(plan->drives >= 1 && plan->drives <= PP_PLAN_DRIVES_MAX);
	assert(plan->arm_sets >= 1 && plan->arm_sets <= PP_PLAN_ARMS_MAX);
	assert(plan->outlets <= PP_PLAN_OUTLETS_MAX && plan->lab_keys <= PP_PLAN_LAB_MAX);
	assert(plan->write_min_ms <= plan->write_max_ms);
	for (d = 0; d < plan->drives; d++) {
		const struct pp_plan_drive *p = &plan->drive[d];

		assert(p->serial[0] && memchr(p->serial, '\0', sizeof(p->serial)));
		if (p->kind == PP_TARGET_RAW || p->format[0])
			assert(strcmp(p->destroy, p->serial) == 0);
	}
	for (i = 0; i < plan->arm_sets; i++) {
		assert(plan->arms[i].methods >= 1 && plan->arms[i].methods <= PP_PLAN_METHODS_MAX);
		assert(plan->arms[i].lanes >= 1 && plan->arms[i].lanes <= PP_LANES_MAX);
		assert(plan->arms[i].group >= 1 && plan->arms[i].group <= PP_GROUP_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct pp_plan plan;
	static char text[FUZZ_BYTES_MAX + 1];
	struct pp_error err = { 0 };

	if (bytes >= sizeof(text))
		return 0;
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	if (pp_plan_parse(&plan, text, "fuzz", &err) == 0)
		check(&plan);
	else
		assert(err.class != PP_ERR_NONE && err.text[0]);
	return 0;
}
