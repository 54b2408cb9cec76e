/* SPDX-License-Identifier: MIT
 *
 * A simulated PDU: an HTTP server on 127.0.0.1 that speaks the dialect of a Shelly plug of the
 * second generation (shelly-api-docs.shelly.cloud, Gen2: Switch, RPC over HTTP, digest SHA-256 for
 * the user `admin`), one outlet with the id 0. What hangs on the outlet is the caller's.
 *
 * The power has gone when the answer to an `off` is sent, as with a real relay, unless a flaw is
 * set. Flaws are what real ones do to people: see the table in sim_pdu.c.
 */
#ifndef PP_LAB_SIM_PDU_H
#define PP_LAB_SIM_PDU_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

/* Called from the PDU's threads, one at a time. */
struct pp_sim_outlet {
	void *ctx;
	int (*off)(void *ctx, struct pp_error *err);
	int (*on)(void *ctx, struct pp_error *err);
	double (*watts)(void *ctx);
};

struct pp_sim_pdu_config {
	struct pp_sim_outlet outlet;
	const char *password; /* NULL: no authentication, as delivered */
	bool starts_on;       /* how the relay stands at the start; nothing is called */
};

struct pp_sim_pdu;

/* NULL on failure. */
struct pp_sim_pdu *pp_sim_pdu_start(const struct pp_sim_pdu_config *config, struct pp_error *err);
/* Calls neither on nor off. NULL is fine. */
void pp_sim_pdu_stop(struct pp_sim_pdu *pdu);

/* "http://127.0.0.1:PORT" */
const char *pp_sim_pdu_url(const struct pp_sim_pdu *pdu);
const char *pp_sim_pdu_id(const struct pp_sim_pdu *pdu);

/* delay_ms is for `slow`. -1 for a name that the table does not have. */
int pp_sim_pdu_set_flaw(struct pp_sim_pdu *pdu, const char *name, int64_t delay_ms,
	struct pp_error *err);

#endif
