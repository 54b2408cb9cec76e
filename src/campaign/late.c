/* SPDX-License-Identifier: MIT
 *
 * Before each run (docs/method.md, M2.8): the previous scan is the base, and what is found damaged
 * or gone now, without a cut in between, belongs to the previous trial: it came late.
 */
#include "parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/text.h"

#define LONG_MS 600000

enum late { LATE_NOTHING, LATE_DAMAGED, LATE_FS_GONE, LATE_DEVICE_GONE };

/* The trial of s->last_cut is told what came late, and all is judged anew from the files. */
static int tell(struct pp_campaign *c, struct pp_stand *s, enum late late, const char *text,
	struct pp_error *err)
{
	struct pp_run_facts *run = calloc(1, sizeof(*run));
	char path[4608];
	int rc = -1;

	if (!run)
		return pp_fail_os(err, ENOMEM, "cannot look at a drive");
	if (!pp_text_format(path, sizeof(path), "%s/cuts/%04u/%s/run.json", c->folder, s->last_cut,
		s->folder)) {
		pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", c->folder);
		goto out;
	}
	if (pp_run_facts_load(run, path, err) != 0)
		goto out;
	if (late == LATE_DAMAGED) {
		run->fs_damaged = true;
		pp_text_format(run->fs_damaged_text, sizeof(run->fs_damaged_text), "late: %s", text);
	} else {
		run->aftermath = late == LATE_FS_GONE ? PP_AFTER_FS_GONE : PP_AFTER_DEVICE_GONE;
		pp_text_format(run->aftermath_reason, sizeof(run->aftermath_reason), "late: %s", text);
	}
	pp_say(c, "drive %s: found before the next run, so it belongs to cut %u: %s", s->plan->name,
		s->last_cut, text);
	if (pp_run_facts_save(run, path, err) != 0 || pp_speed_save(c->evidence.speed,
		c->evidence.speed_count, c->folder, err) != 0)
		goto out;
	pp_evidence_release(&c->evidence);
	rc = pp_evidence_load(&c->evidence, c->folder, true, err);
out:
	free(run);
	s->needs_build = true;
	s->gone = late == LATE_DEVICE_GONE;
	s->last_cut = 0;
	return rc;
}

/*
 * The target is proven and let go again; trouble is believed after as many boots as M6.1 and M6.3
 * ask for. What speaks neither for nor against the drive ends the campaign as an error.
 */
static int look(struct pp_campaign *c, struct pp_stand *s, enum late *late, char *text,
	size_t text_bytes, struct pp_error *err)
{
	struct pp_proof *proof = malloc(sizeof(*proof));
	uint32_t gone = 0, damaged = 0;
	int rc = -1;

	if (!proof)
		return pp_fail_os(err, ENOMEM, "cannot look at a drive");
	for (;;) {
		if (pp_stand_prove(c, s, proof, err) != 0)
			break;
		pp_text_copy(text, text_bytes, proof->error);
		*late = LATE_NOTHING;
		if (proof->state == PP_TARGET_OK) {
			rc = pp_stand_release(c, s, err);
			break;
		}
		if (proof->state == PP_TARGET_FS_DAMAGED && ++damaged == 2)
			*late = LATE_FS_GONE;
		else if ((proof->state == PP_TARGET_DRIVE_GONE ||
			proof->state == PP_TARGET_DRIVE_CHANGED) && ++gone == PP_POWER_CYCLES_MAX)
			*late = LATE_DEVICE_GONE;
		else if (proof->state != PP_TARGET_FS_DAMAGED && proof->state != PP_TARGET_DRIVE_GONE &&
			proof->state != PP_TARGET_DRIVE_CHANGED) {
			pp_fail(err, PP_ERR_PEER, "target on drive '%s' is not usable before the run (%s): %s",
				s->plan->name, pp_target_state_name(proof->state), proof->error);
			break;
		}
		if (*late != LATE_NOTHING) {
			rc = 0;
			break;
		}
		rc = pp_power_orderly_cycle(c, err);
		if (rc != PP_BACK_BOOTED) {
			if (rc >= 0)
				pp_fail(err, PP_ERR_PEER, "the machine did not come back while drive '%s' was "
					"looked for", s->plan->name);
			rc = -1;
			break;
		}
		rc = -1;
	}
	free(proof);
	return rc;
}

static int check(struct pp_campaign *c, struct pp_stand *s, bool *looked, enum late *late, char *text,
	size_t text_bytes, struct pp_error *err)
{
	struct pp_checked checked;
	struct pp_order order;
	struct pp_error why;
	struct pp_kv answer;
	int rc;

	*looked = false;
	if (s->spec.kind != PP_TARGET_FILE || s->spec.path[0])
		return 0;
	pp_order_init(&order, PP_ORDER_CHECK);
	order.index = s->index;
	order.spec = s->spec;
	/* A drive or file system that the check does not find is for look() to find. */
	if (pp_machine_order(&c->machine, &order, &answer, LONG_MS, NULL, NULL, &why) != 0)
		return 0;
	rc = pp_checked_get(&answer, &checked, err);
	pp_kv_release(&answer);
	if (rc != 0)
		return -1;
	*looked = true;
	if (checked.check.result == PP_CHECK_DAMAGED) {
		*late = LATE_DAMAGED;
		pp_text_copy(text, text_bytes, checked.check.text);
	}
	return 0;
}

int pp_late_check(struct pp_campaign *c, bool *found, struct pp_error *err)
{
	char text[256] = "";
	uint32_t i;

	*found = false;
	for (i = 0; i < c->plan.drives; i++) {
		struct pp_stand *s = &c->stand[i];
		enum late late = LATE_NOTHING;
		bool looked;

		if (!s->now || !s->last_cut || s->needs_build || s->gone)
			continue;
		if (check(c, s, &looked, &late, text, sizeof(text), err) != 0)
			return -1;
		if (!looked && look(c, s, &late, text, sizeof(text), err) != 0)
			return -1;
		if (late == LATE_NOTHING)
			continue;
		*found = true;
		if (tell(c, s, late, text, err) != 0)
			return -1;
	}
	return 0;
}
