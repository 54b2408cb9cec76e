/* SPDX-License-Identifier: MIT
 *
 * A power switch behind a program (ipmitool, kasa, usbrelay, powerman, a lab's own script). No
 * shell: an argument vector. A time limit, after which the whole process group is killed. Exit 0 is
 * status 200; what the program printed is the answer. Credentials reach it by the environment
 * (PLUGPULL_PDU_USER, PLUGPULL_PDU_PASSWORD, PLUGPULL_PDU_TOKEN, and the names that ipmitool and
 * python-kasa know) or in the lines of its standard input, never by argv.
 */
#ifndef PP_PDU_EXEC_H
#define PP_PDU_EXEC_H

#include "credentials.h"
#include "transport.h"

extern const struct pp_pdu_transport pp_exec_transport;

void *pp_exec_open(int64_t timeout_ms, const struct pp_credentials *credentials,
	struct pp_error *err);

#endif
