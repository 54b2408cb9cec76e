/* SPDX-License-Identifier: MIT
 *
 * What can be said of a plan without touching machine, drives or power switch.
 */
#ifndef PP_CAMPAIGN_DRY_RUN_H
#define PP_CAMPAIGN_DRY_RUN_H

#include "plan.h"

struct pp_dry_run {
	uint32_t problems; /* that would stop the campaign, or any SAFE */
	uint32_t cuts;     /* about so many, of the drive that needs most */
};

/*
 * Opens the switch's profile with its outlets and credentials (no request is sent), reads the key, lays
 * out every target, and counts cuts. cuts: as struct pp_campaign_config. Each finding is a call of say,
 * problem false for a note. A plan with a [lab] has its switch and key from there: they are not asked.
 */
void pp_plan_dry_run(const struct pp_plan *plan, uint32_t cuts,
	void (*say)(void *ctx, bool problem, const char *text), void *ctx, struct pp_dry_run *out);

#endif
