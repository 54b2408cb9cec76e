/* SPDX-License-Identifier: MIT
 *
 * Orders on the write-cache policy of a drive (src/core/policy.h): what it is, another one, and back. A
 * policy holds for the whole drive, so to change it takes an allow entry for the drive, or one for its
 * policy alone.
 */
#include <stdio.h>
#include <string.h>

#include "agent_parts.h"
#include "src/core/policy.h"

/* The drive is there, no run is on it and, for a change, it is one that may be changed. */
static int find(struct agent_slot *slot, const struct pp_order *order, bool change,
	struct pp_drive_info *info, struct pp_error *err)
{
	char text[256];
	bool running;
	int rc;

	pthread_mutex_lock(&slot->lock);
	running = slot->writer != NULL;
	pthread_mutex_unlock(&slot->lock);
	if (running)
		return pp_fail(err, PP_ERR_REFUSED, "a run is on drive %u: stop it first", slot->index);
	if (change && pp_allow_policy(&slot->session->config->allow, order->spec.serial, err) != 0)
		return -1;
	if (pp_drive_find(NULL, order->spec.serial, info, err) != 0)
		return -1;
	if (!change || order->spec.boot_drive)
		return 0;
	rc = pp_drive_carries_system(NULL, info->name, text, sizeof(text), err);
	if (rc > 0)
		return pp_fail(err, PP_ERR_REFUSED, "%s: its policy is changed only with boot_drive = yes "
			"in the plan", text);
	return rc;
}

enum step { STEP_READ, STEP_SET, STEP_RESTORE };

static int take_step(const struct pp_drive_info *info, enum step step, const struct pp_order *order,
	struct pp_policy_answer *answer, struct pp_error *err)
{
	int rc = 0;

	if (step == STEP_SET)
		rc = pp_policy_set(info->name, order->setting, NULL, err);
	else if (step == STEP_RESTORE)
		rc = pp_policy_restore(info->name, &order->saved, err);
	else
		rc = pp_policy_save(info->name, &answer->saved, err);
	answer->has_saved = step == STEP_READ && rc == 0;
	/* Also after a step that failed: it says what there is now. */
	if (rc != 0) {
		if (pp_policy_read(info->name, &answer->policy, NULL) != 0)
			memset(&answer->policy, 0, sizeof(answer->policy));
		return -1;
	}
	return pp_policy_read(info->name, &answer->policy, err);
}

/* What a step came to is an answer: the campaign goes on without a policy that cannot be had. */
static int do_step(struct agent_slot *slot, const struct agent_request *r, enum step step,
	struct pp_buf *kv)
{
	struct pp_error why = { .class = PP_ERR_NONE };
	struct pp_policy_answer answer;
	struct pp_drive_info info;
	int rc;

	memset(&answer, 0, sizeof(answer));
	rc = find(slot, &r->order, step != STEP_READ, &info, &why);
	if (rc == 0)
		rc = take_step(&info, step, &r->order, &answer, &why);
	if (rc != 0) {
		answer.state = why.class == PP_ERR_REFUSED ? PP_POLICY_REFUSED
			: why.class == PP_ERR_UNSUPPORTED ? PP_POLICY_UNSUPPORTED : PP_POLICY_FAILED;
		snprintf(answer.error, sizeof(answer.error), "%s", why.text);
	}
	pp_policy_answer_put(kv, &answer);
	return 0;
}

int agent_policy(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	(void)err;
	return do_step(slot, r, STEP_READ, kv);
}

int agent_policy_set(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	(void)err;
	return do_step(slot, r, STEP_SET, kv);
}

int agent_policy_restore(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	(void)err;
	return do_step(slot, r, STEP_RESTORE, kv);
}
