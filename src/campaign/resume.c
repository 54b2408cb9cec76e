/* SPDX-License-Identifier: MIT
 *
 * A controller that died left a cut behind at some state. What had been cut is scanned and judged
 * first, if nothing has written since (docs/method.md, M6.4); what had not is void.
 */
#include "parts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/core/clock.h"
#include "src/core/text.h"

struct restored {
	struct pp_campaign *c;
	int64_t t_on_ns;
};

static void hear_restored(void *arg, const struct pp_pdu_recovered *r)
{
	struct restored *out = arg;
	char boot[PP_BOOT_ID_TEXT];

	pp_clock_boot_id(boot, sizeof(boot));
	pp_say(out->c, "outlet %s of %s had to be on: %s", r->outlet, r->url ? r->url : r->profile,
		r->restored ? "it is on again" : r->busy ? "its guard is at it" : "it is NOT on yet");
	if (r->restored && r->boot_id && strcmp(r->boot_id, boot) == 0 &&
		r->t_on_mono_ns > out->t_on_ns)
		out->t_on_ns = r->t_on_mono_ns;
}

/* The run of this drive in the last cut, if it had one there: its arm and facts. */
static int find_run(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err)
{
	char path[4608];
	struct stat st;
	uint32_t i;

	s->now = NULL;
	if (pp_cut_path(c, s, "run.json", path, sizeof(path), err) != 0)
		return -1;
	if (stat(path, &st) != 0)
		return 0;
	if (pp_run_facts_load(&s->run, path, err) != 0)
		return -1;
	for (i = 0; i < s->arms; i++) {
		const struct pp_plan_arms *a = &c->plan.arms[s->arm[i].set];

		if (strcmp(s->arm[i].method->name, s->run.method) == 0 &&
			strcmp(s->arm[i].setting ? s->arm[i].setting->name : "", s->run.setting) == 0 &&
			a->workload == s->run.layout.workload && a->lanes == s->run.layout.lanes &&
			a->group == s->run.layout.group && a->record_bytes == s->run.layout.record_bytes &&
			a->noise == s->run.noise && a->random == (s->run.layout.shuffle != 0))
			s->now = &s->arm[i];
	}
	if (!s->now)
		return pp_fail(err, PP_ERR_EVIDENCE, "'%s' belongs to no arm of the plan", path);
	s->area[s->now->set].used = true;
	s->area[s->now->set].layout = s->run.layout;
	s->noise.layout = s->run.noise_run.layout;
	strcpy(s->noise.file, PP_NOISE_FILE);
	return 0;
}

/* File names of areas follow from the plan alone, as when they were made. */
static void name_areas(struct pp_campaign *c, struct pp_stand *s)
{
	uint32_t i, k = 0;

	for (i = 0; i < c->plan.arm_sets; i++) {
		if (!c->plan.arms[i].on_drive[s->index])
			continue;
		if (k == 0)
			pp_text_copy(s->area[i].file, sizeof(s->area[i].file), PP_ORDER_FILE);
		else
			pp_text_format(s->area[i].file, sizeof(s->area[i].file), "%s.%u", PP_ORDER_FILE, k);
		k++;
	}
}

/* Trials of the last cut are judged again below: the first judgement of them is taken back. */
static void forget_last(struct pp_campaign *c)
{
	struct pp_evidence *e = &c->evidence;

	while (e->trial_count && e->trials[e->trial_count - 1].cut == c->cut.number)
		e->trial_count--;
}

/* The boot that proves the cut (M5.2), unless the controller before us has seen it. */
static void note_present_boot(struct pp_campaign *c)
{
	struct pp_boot_seen *boot;
	uint32_t i;

	/* Boots after the first are a person's, with the stick perhaps (M6.2): they undo no proof. */
	for (i = 0; i < c->cut.boots; i++)
		if (c->cut.t_on_sent_ns && c->cut.boot[i].t_ns >= c->cut.t_on_sent_ns &&
			strcmp(c->cut.boot[i].boot_id, c->cut.boot_before) != 0)
			return;
	if (c->cut.boots == PP_BOOTS_MAX)
		c->cut.boots--; /* the last place tells of the last of them */
	boot = &c->cut.boot[c->cut.boots++];
	memset(boot, 0, sizeof(*boot));
	boot->t_ns = c->machine.t_hello_ns;
	boot->uptime_ns = (int64_t)c->machine.hello.uptime_ns;
	pp_text_copy(boot->boot_id, sizeof(boot->boot_id), c->machine.hello.boot_id);
}

/*
 * A cut that never came to its off is void; one whose off was sent but not read back is void as
 * well, and so is one after which nobody listened whether the machine fell silent (M5.1). They are
 * scanned all the same, as acked data missing after a void trial blocks SAFE (M5.6).
 */
static void name_interruption(struct pp_campaign *c, const struct restored *restored)
{
	char boot[PP_BOOT_ID_TEXT];

	pp_clock_boot_id(boot, sizeof(boot));
	if (strcmp(c->cut.state, "preparing") == 0 || strcmp(c->cut.state, "writing") == 0)
		pp_text_copy(c->cut.void_reason, sizeof(c->cut.void_reason),
			"controller died before the cut");
	else if (strcmp(c->cut.state, "off-sent") == 0)
		pp_text_copy(c->cut.void_reason, sizeof(c->cut.void_reason), "off was not read back");
	else if (strcmp(c->cut.state, "off-read") == 0)
		pp_text_copy(c->cut.void_reason, sizeof(c->cut.void_reason),
			"controller died before it had heard the silence");
	if (strcmp(boot, c->cut.host_boot_id) != 0 && !c->cut.void_reason[0])
		pp_text_copy(c->cut.void_reason, sizeof(c->cut.void_reason),
			"the control host itself restarted: its clock tells nothing");
	if (!c->cut.t_on_sent_ns && restored->t_on_ns)
		c->cut.t_on_sent_ns = c->cut.t_on_read_ns = restored->t_on_ns;
	if (!c->cut.t_on_read_ns && restored->t_on_ns)
		c->cut.t_on_read_ns = restored->t_on_ns;
}

static bool still_open(const struct pp_campaign *c)
{
	return strcmp(c->cut.state, "judged") != 0 && strcmp(c->cut.state, "abandoned") != 0;
}

static int finish_cut(struct pp_campaign *c, struct pp_error *err)
{
	struct restored restored = { .c = c };
	const char *state_dir = c->plan.pdu_state_dir[0] ? c->plan.pdu_state_dir : NULL;
	enum pp_back back = PP_BACK_BOOTED;
	uint32_t i;
	bool any = false;

	for (i = 0; i < c->plan.drives; i++) {
		name_areas(c, &c->stand[i]);
		if (find_run(c, &c->stand[i], err) != 0)
			return -1;
		any |= c->stand[i].now != NULL;
	}
	if (pp_pdu_recover(state_dir, 1000, hear_restored, &restored, err) < 0)
		return -1;
	name_interruption(c, &restored);
	pp_say(c, "cut %u was left at '%s'%s%s", c->cut.number, c->cut.state,
		c->cut.void_reason[0] ? ", void: " : "", c->cut.void_reason);
	forget_last(c);
	if (!any)
		return pp_cut_save(c, "abandoned", err);
	if (strcmp(c->machine.hello.boot_id, c->cut.boot_before) == 0)
		back = PP_BACK_LIVED;
	note_present_boot(c);
	c->resuming = true;
	return pp_aftermath(c, back, err);
}

/* The last cut was judged twice; what is carried from trial to trial (M5.3) must count it once. */
static int reload(struct pp_campaign *c, struct pp_error *err)
{
	struct pp_evidence fresh;

	if (pp_evidence_load(&fresh, c->folder, true, err) != 0)
		return -1;
	pp_evidence_release(&c->evidence);
	c->evidence = fresh;
	c->own_trials = fresh.trial_count;
	return 0;
}

int pp_resume(struct pp_campaign *c, struct pp_error *err)
{
	char path[4608];
	struct stat st;
	int rc;

	if (c->evidence.cuts == 0)
		return 0;
	c->cut.number = c->evidence.cuts;
	if (pp_cut_path(c, NULL, "cut.json", path, sizeof(path), err) != 0)
		return -1;
	if (stat(path, &st) != 0)
		return 0; /* the folder was made, and nothing more */
	{
		char kind[sizeof(c->cut.cut_kind)];

		strcpy(kind, c->cut.cut_kind);
		if (pp_cut_facts_load(&c->cut, path, err) != 0)
			return -1;
		rc = still_open(c) ? finish_cut(c, err) : 0;
		strcpy(c->cut.cut_kind, kind);
	}
	return rc == 0 ? reload(c, err) : rc;
}
