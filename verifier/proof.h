/* SPDX-License-Identifier: MIT
 *
 * Was the cut a cut? (docs/method.md, M5.) The machine's part is shared by all drives of the cut;
 * the drive's own counters can still contradict it for one of them. What is not proven is void.
 */
#ifndef PP_VERIFIER_PROOF_H
#define PP_VERIFIER_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "counters.h"
#include "facts.h"
#include "ledger.h"

#define PP_LEAD_NS (50 * 1000000LL) /* M5.1: a heartbeat may be this much older than the off */

struct pp_cut_proof {
	bool proven;
	bool booted;                     /* a new boot was seen: the aftermath can be looked at */
	char void_reason[PP_TEXT_SHORT]; /* where not proven */
};

/* What the ledgers of one cut saw of the machine, the latest and the first over all drives. */
struct pp_witness {
	int64_t t_last_ns;               /* M4.9: last frame; 0 where none came */
	int64_t t_closed_ns;             /* first FIN or RST; 0 where none came */
	enum pp_close how;
};
void pp_witness_add(struct pp_witness *witness, const struct pp_ledger_data *ledger);

/* M5.1 and M5.2. */
void pp_cut_prove(const struct pp_cut_facts *cut, const struct pp_witness *witness,
	struct pp_cut_proof *proof);

/*
 * M5.3, carried through a campaign, one for each drive. The unsafe-shutdown counter is live once it
 * has risen; over the campaign one cut may be missing from it (it may be written late).
 */
struct pp_counter_history {
	bool live;
	uint64_t cuts_since_live, rises_since_live;
};

enum pp_counter_word { PP_COUNTERS_NONE, PP_COUNTERS_ROSE, PP_COUNTERS_AGAINST };

/*
 * What the drive's counters say of this cut; reason is filled for AGAINST. NONE: the drive keeps
 * none, or they could not be read on both sides of the cut.
 */
enum pp_counter_word pp_cut_counters(struct pp_counter_history *history,
	const struct pp_drive_counters *before, const struct pp_drive_counters *after,
	char reason[PP_TEXT_SHORT]);

#endif
