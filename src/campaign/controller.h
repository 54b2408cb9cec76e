/* SPDX-License-Identifier: MIT
 *
 * The controller: drives a whole campaign, unattended. It knows a plan, a power switch and an agent;
 * whether a lab or a rack stands behind them it neither knows nor asks.
 */
#ifndef PP_CAMPAIGN_CONTROLLER_H
#define PP_CAMPAIGN_CONTROLLER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "plan.h"
#include "src/core/error.h"
#include "verifier/listener.h"
#include "verifier/verdict.h"

/* What a progress line shows. */
struct pp_progress {
	uint32_t cut;              /* the one in work, from 1 */
	uint32_t cuts_left;        /* estimate: trials still wanted of the drive that needs most */
	char state[24];            /* "writing", "off", "booting", "scanning", ... */
	char arms[160];            /* method of each drive, short */
	uint64_t acks;             /* of the run so far, all drives */
	double acks_per_s;
	int64_t left_s;            /* estimate; -1: not yet known */
};

struct pp_campaign_config {
	const struct pp_plan *plan;
	const char *plan_path;     /* copied into the evidence as given */
	const char *out;           /* the evidence folder; must not exist unless resume */
	bool resume;
	uint32_t cuts;             /* overrides the plan's; 0: the plan's */
	const char *guard_exe;     /* NULL: this program */
	const char *tool_sha256;   /* may be NULL */
	const volatile sig_atomic_t *stop;
	/* Called once the listener is open, for the end of waits: pp_listener_wake. */
	void (*listening)(void *ctx, struct pp_listener *listener, uint16_t port);
	void (*say)(void *ctx, const char *text);     /* one line for a person, an event each */
	void (*progress)(void *ctx, const struct pp_progress *progress); /* often; may be NULL */
	void *ctx;
};

enum pp_campaign_end {
	PP_CAMPAIGN_DONE,        /* every arm has what it needs, or can get no more */
	PP_CAMPAIGN_INTERRUPTED, /* by a person: evidence whole, outlet on, --resume goes on */
	PP_CAMPAIGN_PAUSED,      /* an open trial, or voids in a row: a person is needed */
};

struct pp_campaign_result {
	enum pp_campaign_end end;
	char why[768];           /* of a pause: what happened and what to do */
	bool outlet_on;          /* read back on at the end */
	char outlet[160];        /* in words */
	char outlet_state[32];   /* "on", ... */
	char policy[1024];       /* cache policies: put back, or not and how to; "" where none was changed */
};

/*
 * Runs the campaign and seals its evidence. -1: it could not run, or not go on (err says what to
 * do); what had been written stays, and the outlet is on if that was in our power: result->outlet_on.
 */
int pp_campaign_run(const struct pp_campaign_config *config, struct pp_campaign_result *result,
	struct pp_error *err);

#endif
