/* SPDX-License-Identifier: MIT
 *
 * How a request reaches a device and its answer comes back: by HTTP (http.h), by a program
 * (exec.h), by SNMP (snmp.h), or by whatever a test or simulator puts here. Time goes through here too, so that a
 * simulated switch can run on simulated time.
 */
#ifndef PP_PDU_TRANSPORT_H
#define PP_PDU_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "src/core/buf.h"
#include "src/core/error.h"

#define PP_PDU_REPLY_BYTES_MAX 65536
#define PP_PDU_WORDS_MAX       48

/* Rendered: no substitution is left. Owned by who made it. */
struct pp_pdu_request {
	const char *what;   /* "off", "on", "status", ...: for records and messages */
	const char *outlet; /* as the person wrote it, or NULL */
	char *method, *path, *body; /* SNMP: path is the OID, body the integer to set */
	char *header[PP_PDU_WORDS_MAX];
	int header_count;
	char *argv[PP_PDU_WORDS_MAX + 1]; /* exec; NULL after the last */
	int argv_count;
	char *input;
};

struct pp_pdu_reply {
	int status;         /* HTTP status; exec: 200 for exit 0, else 1000 + exit status */
	struct pp_buf body; /* initialized by the caller, at most PP_PDU_REPLY_BYTES_MAX */
	bool maybe_executed;/* on failure: the device may have seen the request */
};

struct pp_pdu_transport {
	/* 0: a whole answer, whatever its status. -1: none; maybe_executed says what is known. */
	int (*request)(void *self, const struct pp_pdu_request *request, struct pp_pdu_reply *reply,
		struct pp_error *err);
	void (*close)(void *self); /* may be NULL */
	int64_t (*now_ns)(void *self); /* NULL: pp_clock_mono_ns */
	void (*sleep_ms)(void *self, int64_t ms);
};

#endif
