/* SPDX-License-Identifier: MIT */
#include "ledger_format.h"

#include <inttypes.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/core/le.h"

#define FORMAT 1

static const char magic[8] = { 'P', 'P', 'L', 'E', 'D', 'G', 'E', 'R' };

uint64_t pp_ledger_seed(const struct pp_run_id *run)
{
	return XXH3_64bits(run->bytes, sizeof(run->bytes));
}

void pp_ledger_header_put(const struct pp_run_id *run, uint32_t lanes,
	uint8_t out[PP_LEDGER_HEADER_BYTES])
{
	memset(out, 0, PP_LEDGER_HEADER_BYTES);
	memcpy(out, magic, sizeof(magic));
	le32_put(out + 8, FORMAT);
	le32_put(out + 12, lanes);
	le32_put(out + 16, PP_LEDGER_ENTRY_BYTES);
	memcpy(out + 24, run->bytes, sizeof(run->bytes));
	le64_put(out + 56, XXH3_64bits(out, 56));
}

int pp_ledger_header_get(const uint8_t in[PP_LEDGER_HEADER_BYTES], struct pp_run_id *run,
	uint32_t *lanes, struct pp_error *err)
{
	if (memcmp(in, magic, sizeof(magic)) != 0)
		return pp_fail(err, PP_ERR_EVIDENCE, "not a ledger");
	if (le64_get(in + 56) != XXH3_64bits(in, 56))
		return pp_fail(err, PP_ERR_EVIDENCE, "the ledger's header is damaged");
	if (le32_get(in + 8) != FORMAT || le32_get(in + 16) != PP_LEDGER_ENTRY_BYTES)
		return pp_fail(err, PP_ERR_EVIDENCE, "a ledger of format %u; this program reads format %u",
			le32_get(in + 8), FORMAT);
	*lanes = le32_get(in + 12);
	if (*lanes == 0 || *lanes > PP_LEDGER_LANES_MAX)
		return pp_fail(err, PP_ERR_EVIDENCE, "a ledger of %u lanes", *lanes);
	memcpy(run->bytes, in + 24, sizeof(run->bytes));
	return 0;
}

static uint32_t entry_check(const uint8_t *entry, uint64_t seed, uint64_t number)
{
	/* spread the number over the word, so that neighbouring positions share no seed bits */
	return (uint32_t)XXH3_64bits_withSeed(entry + 4, PP_LEDGER_ENTRY_BYTES - 4,
		seed ^ (number + 1) * 0x9e3779b97f4a7c15ULL);
}

void pp_ledger_entry_put(const struct pp_ledger_entry *e, uint64_t seed, uint64_t number,
	uint8_t out[PP_LEDGER_ENTRY_BYTES])
{
	le16_put(out + 4, (uint16_t)e->type);
	le16_put(out + 6, e->small);
	le64_put(out + 8, (uint64_t)e->t_ns);
	le64_put(out + 16, e->a);
	le64_put(out + 24, e->b);
	le64_put(out + 32, e->c);
	le32_put(out, entry_check(out, seed, number));
}

bool pp_ledger_entry_get(const uint8_t in[PP_LEDGER_ENTRY_BYTES], uint64_t seed, uint64_t number,
	struct pp_ledger_entry *e)
{
	if (le32_get(in) != entry_check(in, seed, number))
		return false;
	e->type = (enum pp_ledger_type)le16_get(in + 4);
	e->small = le16_get(in + 6);
	e->t_ns = (int64_t)le64_get(in + 8);
	e->a = le64_get(in + 16);
	e->b = le64_get(in + 24);
	e->c = le64_get(in + 32);
	return true;
}

int pp_ledger_ack_check(const uint64_t *acked, uint32_t lanes, uint32_t lane, uint64_t first,
	uint64_t last, struct pp_error *err)
{
	if (lane >= lanes)
		return pp_fail(err, PP_ERR_EVIDENCE, "an ack of lane %u in a run of %u lanes", lane,
			lanes);
	if (first != acked[lane] + 1)
		return pp_fail(err, PP_ERR_EVIDENCE, "an ack of lane %u begins at record %" PRIu64
			", expected %" PRIu64, lane, first, acked[lane] + 1);
	if (last < first || last == UINT64_MAX)
		return pp_fail(err, PP_ERR_EVIDENCE, "an ack of lane %u runs from record %" PRIu64 " to %"
			PRIu64, lane, first, last);
	return 0;
}
