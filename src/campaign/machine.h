/* SPDX-License-Identifier: MIT
 *
 * The machine under test as the controller knows it: the session of its agent, what that says
 * unasked (notes of runs, the end of the connection), and orders to it. One thread.
 */
#ifndef PP_CAMPAIGN_MACHINE_H
#define PP_CAMPAIGN_MACHINE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "orders.h"
#include "verifier/facts.h"
#include "verifier/listener.h"

/* What the agent said of the run of one drive. */
struct pp_run_news {
	bool failed, full;
	char text[512];
};

struct pp_machine {
	struct pp_listener *listener;
	char name[96];                   /* "": any agent with the key */
	uint64_t session;                /* 0: none */
	struct pp_hello hello;           /* of the session */
	int64_t t_hello_ns;
	enum pp_close closed;            /* how the session ended; NOT while it is open */
	struct pp_run_news news[PP_RUN_INDEX_MAX + 1];
	struct pp_cut_facts *cut;        /* hellos are noted there; NULL: nobody wants to know */
	const volatile sig_atomic_t *stop; /* a person wants to end it */
	void (*say)(void *ctx, const char *text);
	void *ctx;
};

/*
 * Takes events until deadline_ns (CLOCK_MONOTONIC). Returns 1 after each event that changed
 * something here, 0 when the time is over, -1 when the listener failed or *stop is set.
 */
int pp_machine_pump(struct pp_machine *m, int64_t deadline_ns, struct pp_error *err);

/* Pumps for a while; -1 as above. A connection that ends does not end the wait. */
int pp_machine_sleep(struct pp_machine *m, int64_t ms, struct pp_error *err);

/*
 * Waits for an agent of another boot than not_boot ("": any) that said hello after since_ns: what
 * came before the power did is the session of a machine that is dark by now. 1: it is there; 0: the
 * time is over; -1 as above. An older session is ended when it comes.
 */
int pp_machine_await(struct pp_machine *m, const char *not_boot, int64_t since_ns,
	int64_t deadline_ns, struct pp_error *err);

/* One order and its answer (may be NULL). timeout_ms restarts with each piece of data. */
int pp_machine_order(struct pp_machine *m, const struct pp_order *order, struct pp_kv *answer,
	int timeout_ms, pp_listener_data_fn *on_data, void *data_ctx, struct pp_error *err);

/* The same where only success counts: DATA and answer are dropped. */
int pp_machine_simple(struct pp_machine *m, enum pp_order_kind kind, uint32_t index,
	int timeout_ms, struct pp_error *err);

#endif
