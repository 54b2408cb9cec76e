/* SPDX-License-Identifier: MIT
 *
 * The network of the simulator and the witness at its end: one ordered stream of acks and heartbeats
 * to the control host, echoes back, each with a delay; at the cut the tail of what was under way is
 * lost. What arrives is written into a ledger, in memory, in the ledger's own format.
 */
#ifndef PP_LAB_SIM_NET_H
#define PP_LAB_SIM_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verifier/ledger.h"

struct pp_sim_message {
	int64_t sent_ns, due_ns;
	struct pp_ledger_entry entry; /* ACK or BEAT; its time is filled on arrival */
};

struct pp_sim_net {
	uint64_t random;
	int64_t delay_ns_max;         /* of one message, each way */
	int64_t dark_ns;              /* messages sent from then on are lost */
	struct pp_sim_message *sent;  /* those that have arrived, then those under way */
	size_t count, room, arrived;
	struct pp_sim_message *echo;
	size_t echoes, echo_room, echoed;
	struct pp_ledger_entry *ledger;
	size_t entries, entry_room;
	bool failed;                  /* out of memory */
};

void pp_sim_net_start(struct pp_sim_net *net, uint64_t seed, int64_t delay_ns_max);
void pp_sim_net_release(struct pp_sim_net *net);

void pp_sim_net_send(struct pp_sim_net *net, int64_t now_ns, const struct pp_ledger_entry *entry);
/* Of the next arrival, ack or echo; INT64_MAX without one. */
int64_t pp_sim_net_due_ns(const struct pp_sim_net *net);
/* The next message that has arrived at the witness by now_ns; it is in the ledger, an ack also on
 * its way back. NULL: none. */
const struct pp_ledger_entry *pp_sim_net_hear(struct pp_sim_net *net, int64_t now_ns);
/* The next echo that has arrived at the lanes by now_ns. */
const struct pp_ledger_entry *pp_sim_net_echoed(struct pp_sim_net *net, int64_t now_ns);
/* The machine is off: some of what is under way still arrives, the rest does not. */
void pp_sim_net_cut(struct pp_sim_net *net);

/* An entry of the witness's own (a mark). */
void pp_sim_net_note(struct pp_sim_net *net, const struct pp_ledger_entry *entry);
/* The ledger as the judge reads it; release data. */
int pp_sim_net_ledger(const struct pp_sim_net *net, const struct pp_run_id *run, uint32_t lanes,
	struct pp_ledger_data *data, struct pp_error *err);

#endif
