/* SPDX-License-Identifier: MIT
 *
 * Two things that the switch alone cannot say. Witness: that the machine lost its power, by its meter
 * or by the machine itself. Proof: that this outlet, and it alone, feeds this machine. The proof is
 * made once for a rig, with somebody watching: on, the machine lives, off, it does not, nothing else
 * changed, on, it lives. It is a file; it holds as long as profile (its bytes), switch, outlets and
 * identity are the same.
 */
#ifndef PP_PDU_PROVE_H
#define PP_PDU_PROVE_H

#include "alive.h"
#include "guard.h"
#include "pdu.h"

struct pp_off_witness {
	bool lost;          /* the machine fell silent, twice in a row */
	int64_t t_lost_ns;  /* the first of the two was asked */
	bool has_watts;
	bool watts_low;     /* fresh samples below the limit, for the dwell, none above */
	double watts;       /* the last one */
};

struct pp_off_witness_config {
	struct pp_alive *alive; /* NULL: the meter alone */
	bool need_watts;        /* the meter too, where there is one */
	int64_t timeout_ms;     /* a supply may hold up for seconds [20 s] */
	int64_t dwell_ms;       /* [3 s] */
	int64_t ask_ms;         /* for one question to the machine [1 s] */
};

/* After a verified off. 0: witnessed. -1 (PP_ERR_PEER): contradicted, or not within the time.
 * -1 (PP_ERR_UNSUPPORTED): neither meter nor alive, so nothing was witnessed. */
int pp_pdu_witness(struct pp_pdu *pdu, const struct pp_off_witness_config *config,
	struct pp_off_witness *witness, struct pp_error *err);

/* Waits until the machine lives. -1: not within the time. */
int pp_pdu_await_life(struct pp_alive *alive, int64_t timeout_ms, struct pp_error *err);

struct pp_prove_config {
	const struct pp_pdu_config *pdu; /* of the outlet to be proven */
	const char *guard_exe;           /* [this program] */
	struct pp_alive *alive;          /* must be given */
	const char *others[64];          /* outlets that must not change [found by counting] */
	int others_count;
	int64_t off_ms, back_ms;         /* how long off [10 s]; until it lives again [600 s] */
	struct pp_off_witness_config witness;
	void (*say)(void *arg, const char *step); /* may be NULL */
	void *say_arg;
	const char *path;                /* also written here; NULL: only into the state folder */
};

/* 0: proven and written. -1: not; *outcome says what became of the power. */
int pp_prove(const struct pp_prove_config *config, enum pp_pdu_outcome *outcome,
	struct pp_error *err);

/* Whether a proof of exactly this switch, profile and outlets is there, by the identity that the
 * device says now. -1 (PP_ERR_REFUSED) and what to do. path NULL: the state folder's. */
int pp_proof_check(struct pp_pdu *pdu, const char *path, struct pp_error *err);

#endif
