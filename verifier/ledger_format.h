/* SPDX-License-Identifier: MIT
 *
 * The bytes of a ledger, for its writer (ledger.c) and its reader (ledger_read.c) alone. The
 * format is told in ledger.h.
 */
#ifndef PP_VERIFIER_LEDGER_FORMAT_H
#define PP_VERIFIER_LEDGER_FORMAT_H

#include "ledger.h"

#define PP_LEDGER_HEADER_BYTES 64
#define PP_LEDGER_ENTRY_BYTES  40

uint64_t pp_ledger_seed(const struct pp_run_id *run);
void pp_ledger_header_put(const struct pp_run_id *run, uint32_t lanes,
	uint8_t out[PP_LEDGER_HEADER_BYTES]);
int pp_ledger_header_get(const uint8_t in[PP_LEDGER_HEADER_BYTES], struct pp_run_id *run,
	uint32_t *lanes, struct pp_error *err);

/* number counts entries from 0. */
void pp_ledger_entry_put(const struct pp_ledger_entry *e, uint64_t seed, uint64_t number,
	uint8_t out[PP_LEDGER_ENTRY_BYTES]);
bool pp_ledger_entry_get(const uint8_t in[PP_LEDGER_ENTRY_BYTES], uint64_t seed, uint64_t number,
	struct pp_ledger_entry *e);

/* Whether these records may be acked next in this lane; changes nothing. */
int pp_ledger_ack_check(const uint64_t *acked, uint32_t lanes, uint32_t lane, uint64_t first,
	uint64_t last, struct pp_error *err);

#endif
