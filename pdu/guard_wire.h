/* SPDX-License-Identifier: MIT
 *
 * Between the controller and its guard: one JSON object a packet.
 *
 *   {"order": "start", "config": {...}, "pid": N, "pid_start": N}
 *   {"order": "arm"|"extend"|"disarm"|"stop", "deadline_ns": N}
 *   {"ok": true, "fired": false, "t_on_ns": 0}  or  {"ok": false, "error": "...", "fired": ...}
 */
#ifndef PP_PDU_GUARD_WIRE_H
#define PP_PDU_GUARD_WIRE_H

#include "pdu.h"

#define PP_GUARD_PACKET_BYTES 32768

/* The guard answers at once unless a restoration's request is under way. */
#define PP_GUARD_ANSWER_MS 60000

/* The config of an open pdu with its defaults filled in and names made absolute. Its strings are the
 * pdu's. */
void pp_pdu_effective_config(const struct pp_pdu *pdu, struct pp_pdu_config *config);

#endif
