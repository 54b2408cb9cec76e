/* SPDX-License-Identifier: MIT
 *
 * Goal: no bytes, read as a profile or as a device's answer, crash the parser or read as off without
 * saying so. With libFuzzer or alone: see fuzz_main.h.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_main.h"
#include "pdu/answer.h"
#include "pdu/profile.h"

static const char profile_text[] =
	"[profile]\nname = x\noutlet = ^[0-9]$\n[off]\npath = /off\nexpect = /a 0|1\nforbid = /e\n"
	"[on]\npath = /on\n[status]\npath = /s\nstate = /o/[ID={n}]/s|/a\non = 1\noff = 0\n"
	"pending = 2\npending_if = /p true\nwatts = /w\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct pp_profile *fixed;
	struct pp_values values = { .outlet = "1", .index_base = 1, .time_ms = -1 };
	struct pp_answer *answer;
	struct pp_error err;
	struct pp_buf body;
	double watts;

	if (!fixed)
		fixed = pp_profile_parse("fixed", profile_text, sizeof(profile_text) - 1, &err);
	if (!fixed || bytes > 60000)
		return 0;
	pp_profile_free(pp_profile_parse("fuzz", (const char *)data, bytes, &err));
	pp_buf_init(&body, 65536);
	pp_buf_add(&body, data, bytes);
	answer = pp_answer_parse(&body);
	/* Off needs the character that stands for it. */
	if (pp_answer_state(answer, fixed, &values) == PP_PDU_OFF && !memchr(data, '0', bytes))
		abort();
	pp_answer_check(answer, &fixed->off, 200, &values, &err);
	pp_answer_number(answer, "/w", &values, &watts);
	pp_answer_free(answer);
	pp_buf_release(&body);
	return 0;
}

#ifndef PP_LIBFUZZER
static size_t fuzz_sample(uint64_t choice, uint8_t *out)
{
	static const char *const samples[] = {
		profile_text, "{\"o\":[{\"ID\":1,\"s\":0},{\"ID\":2,\"s\":1}],\"w\":1.5,\"p\":false}",
		"{\"a\":1,\"e\":null}", "[off]\nargv = a 'b c' {id}\n",
	};
	const char *sample = samples[choice % 4];

	memcpy(out, sample, strlen(sample));
	return strlen(sample);
}
#endif
