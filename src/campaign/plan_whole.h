/* SPDX-License-Identifier: MIT
 *
 * The second half of reading a plan (plan.c): its sections against each other. Private to src/campaign.
 */
#ifndef PP_CAMPAIGN_PLAN_WHOLE_H
#define PP_CAMPAIGN_PLAN_WHOLE_H

#include "plan.h"

#define PP_PLAN_DRIVES_TEXT 512

/* drives_named: for each set of arms, its key "drives" as written; "" means all. Fills on_drive. */
int pp_plan_whole(struct pp_plan *plan, const char *file,
	const char (*drives_named)[PP_PLAN_DRIVES_TEXT], struct pp_error *err);

#endif
