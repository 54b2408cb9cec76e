/* SPDX-License-Identifier: MIT
 *
 * What must not be cut, whoever asks: an outlet on the deny list of the state folder, and the power
 * switch itself. STATE_DIR/deny has a line an outlet, "HOST[:PORT] OUTLET [why]", OUTLET may be *; a
 * line that is not understood refuses everything, for a list that cannot be read protects nothing.
 */
#ifndef PP_PDU_LIMITS_H
#define PP_PDU_LIMITS_H

#include "pdu.h"

/* host_key is "host:port"; without a port in the list, any port of the host is meant. */
int pp_deny_check(const char *state_dir, const char *host_key, const char *outlet,
	struct pp_error *err);

/* Fails (PP_ERR_REFUSED) if both names lead to one address. A name that leads nowhere is no match. */
int pp_same_host_check(const char *pdu_host, const char *dut_host, struct pp_error *err);

/* "MAC" or "MAC@ADDRESS[:PORT]": a Wake-on-LAN packet, three times, by broadcast to port 9. */
int pp_wake_check(const char *wake, struct pp_error *err);
int pp_wake_send(const char *wake, struct pp_error *err);

#endif
