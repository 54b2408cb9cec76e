/* SPDX-License-Identifier: MIT
 *
 * What pdu.c (asking) and switch.c (off, on, watch) share; nobody else includes it.
 */
#ifndef PP_PDU_INTERNAL_H
#define PP_PDU_INTERNAL_H

#include "answer.h"
#include "credentials.h"
#include "journal.h"
#include "pdu.h"
#include "profile.h"
#include "transport.h"

struct pp_pdu {
	struct pp_pdu_config config; /* defaults filled in, strings ours */
	struct pp_profile *profile;
	struct pp_credentials credentials;
	const struct pp_pdu_transport *transport;
	void *self;
	char host_key[256], host[256];
	char state_dir[4096];
	int lock_fd, identity_lock_fd;
	char *target[PP_PDU_OUTLETS_MAX];
	bool identified;       /* the device has said who it is, and it is who it should be */
	int64_t t_set_ns;      /* the last command; 0: none */
	int64_t t_fresh_ns;    /* the last watts sample that counted as fresh */
	int64_t t_off_read_ns; /* of the last verified off; 0: none since */
	double load_before;    /* watts read while on, before the last off; 0: none seen */
};

struct pp_ask {
	const struct pp_profile_request *request;
	const char *what;
	int outlet;       /* index, -1: none */
	int64_t time_ms;  /* -1: none */
	bool fenced;      /* not unless the journal still has our entry (under the device's lock) */
	/* out */
	bool maybe_executed; /* the device may have seen it, also when it failed */
	bool answered;
	int64_t t_sent_ns, t_done_ns;
};

int64_t pp_pdu_now_ns(struct pp_pdu *pdu);
void pp_pdu_sleep_ms(struct pp_pdu *pdu, int64_t ms);

/* One request and its checks. *answer (if not NULL) is the caller's, also on failure, if there is one. */
int pp_pdu_ask(struct pp_pdu *pdu, struct pp_ask *ask, struct pp_answer **answer,
	struct pp_error *err);

/* One outlet's state and, where there are any, watts. */
int pp_pdu_read_outlet(struct pp_pdu *pdu, int outlet, enum pp_pdu_state *state, bool *has_watts,
	double *watts, int64_t *t_ns, struct pp_error *err);

/* Fetches {target} for each outlet, if the profile has one. */
int pp_pdu_fetch_targets(struct pp_pdu *pdu, struct pp_error *err);

/* {"event": ..., more of fmt as json_pack} to the record callback. json may be NULL. */
void pp_pdu_record(struct pp_pdu *pdu, json_t *json);
/* A text as JSON: redacted, printable, not too long. */
json_t *pp_pdu_record_text(struct pp_pdu *pdu, const char *text);

#endif
