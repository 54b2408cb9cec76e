/* SPDX-License-Identifier: MIT
 *
 * Goal: no ledger, however damaged, crashes the reader or is read differently from what it holds.
 * Method: two doors. The input as a file; and the input as a list of entries that are given good
 * checks, so that the fuzzer gets behind them. What loads must answer every question consistently.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_main.h"
#include "src/core/le.h"
#include "verifier/ledger_format.h"

static const struct pp_run_id run = { { 1, 2, 3, 4 } };

static void ask(const struct pp_ledger_data *d)
{
	uint64_t records = 0;
	uint32_t lane;
	int64_t t;

	for (lane = 0; lane < d->lanes; lane++) {
		uint64_t acked = pp_ledger_data_acked(d, lane);

		records += acked;
		assert(d->lane_at[lane] <= d->lane_at[lane + 1]);
		if (acked) {
			assert(pp_ledger_t_acked(d, lane, 1) >= 0);
			assert(pp_ledger_t_acked(d, lane, acked) >= 0);
			assert(pp_ledger_t_acked(d, lane, acked) <= pp_ledger_t_last_ack(d));
		}
		assert(pp_ledger_t_acked(d, lane, acked + 1) == PP_LEDGER_NEVER);
		assert(pp_ledger_t_acked(d, lane, 0) == PP_LEDGER_NEVER);
	}
	assert(records == pp_ledger_data_records(d));
	assert(pp_ledger_t_last_ack(d) <= pp_ledger_t_last(d));
	assert(pp_ledger_median_ack_interval_ns(d) >= PP_LEDGER_NEVER);
	t = pp_ledger_t_flush_rose(d);
	assert(t == PP_LEDGER_NEVER || pp_ledger_last_beat(d) != pp_ledger_first_beat(d));
	pp_ledger_last_close(d, &t);
	pp_ledger_first_orderly_close(d, &t);
	pp_close_name(pp_ledger_last_close(d, NULL));
	pp_ledger_t_mark(d, PP_MARK_OFF_SENT);
}

static void load(const uint8_t *data, size_t bytes)
{
	struct pp_ledger_data d;
	struct pp_error err;

	if (pp_ledger_read(data, bytes, &d, &err) != 0) {
		assert(err.class == PP_ERR_EVIDENCE && !d.entries && !d.acks && !d.lane_at);
		return;
	}
	assert(64 + d.count * PP_LEDGER_ENTRY_BYTES + d.dropped_bytes == bytes);
	assert(d.truncated == (d.dropped_bytes != 0));
	ask(&d);
	pp_ledger_data_release(&d);
}

/* 8 bytes an entry: type, small, lane, time, first (2), length (2). */
static size_t build(const uint8_t *data, size_t bytes, uint8_t *out)
{
	uint64_t seed = pp_ledger_seed(&run), next[4] = { 1, 1, 1, 1 }, number = 0;

	pp_ledger_header_put(&run, 4, out);
	for (; bytes >= 8 && number < 200; data += 8, bytes -= 8, number++) {
		struct pp_ledger_entry e = { .type = (enum pp_ledger_type)(data[0] & 7), .small = data[1],
			.c = data[2] & 7, .t_ns = data[3] };

		/* mostly in order, so that long ledgers load too */
		e.a = next[e.c & 3] + (data[4] == 0xff ? data[5] : 0);
		e.b = e.a + data[6] - (data[7] == 0xff ? 300 : 0);
		if (e.type == PP_LEDGER_ACK)
			next[e.c & 3] = e.b + 1;
		pp_ledger_entry_put(&e, seed, number,
			out + PP_LEDGER_HEADER_BYTES + number * PP_LEDGER_ENTRY_BYTES);
	}
	return PP_LEDGER_HEADER_BYTES + number * PP_LEDGER_ENTRY_BYTES;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static uint8_t file[PP_LEDGER_HEADER_BYTES + 200 * PP_LEDGER_ENTRY_BYTES];

	if (bytes == 0)
		return 0;
	if (data[0] & 1)
		load(data + 1, bytes - 1);
	else
		load(file, build(data + 1, bytes - 1, file));
	return 0;
}

#ifndef PP_LIBFUZZER
static size_t fuzz_sample(uint64_t choice, uint8_t *out)
{
	uint8_t entries[8 * 20];
	uint64_t seed = choice;
	size_t i;

	for (i = 0; i < sizeof(entries); i += 8) {
		le64_put(entries + i, fuzz_next(&seed) & 0x00ff00ff0f030307ULL);
		entries[i] = (uint8_t)(1 + entries[i] % 5);
	}
	out[0] = (uint8_t)choice;
	if (choice & 1)
		return 1 + build(entries, sizeof(entries), out + 1);
	memcpy(out + 1, entries, sizeof(entries));
	return 1 + sizeof(entries);
}
#endif
