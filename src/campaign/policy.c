/* SPDX-License-Identifier: MIT
 *
 * The cache policy as a factor of the arms (docs/method.md, M1.5). What was found is in the evidence
 * before anything is changed; each policy is made and read back from the drive itself before every run,
 * read again after the boot that ends it, and what was found is put back at the end, however the
 * campaign ends. A policy that cannot be had on a drive makes its arms N/A at the start, not after a day
 * of cuts.
 */
#include "parts.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "src/core/clock.h"
#include "src/core/file.h"
#include "src/core/text.h"

#define QUICK_MS       60000 /* a drive may write a full cache down before it switches it off */
#define RESTORE_WAIT_S 120   /* for a machine that is booting when the campaign ends */

static size_t setting_index(const struct pp_policy_setting *setting)
{
	return (size_t)(setting - pp_policy_settings);
}

bool pp_stand_has_policies(const struct pp_stand *s)
{
	return s->arms && s->arm[0].setting;
}

static bool uses(const struct pp_stand *s, const struct pp_policy_setting *setting)
{
	uint32_t i;

	for (i = 0; i < s->arms; i++)
		if (s->arm[i].setting == setting && !s->arm[i].na_reason[0])
			return true;
	return false;
}

static int order(struct pp_campaign *c, struct pp_stand *s, struct pp_order *o,
	struct pp_policy_answer *answer, struct pp_error *err)
{
	struct pp_kv kv;
	int rc;

	o->index = s->index;
	o->spec = s->spec;
	if (pp_machine_order(&c->machine, o, &kv, QUICK_MS, NULL, NULL, err) != 0)
		return pp_fail_within(err, "drive '%s'", s->plan->name);
	rc = pp_policy_answer_get(&kv, answer, err);
	pp_kv_release(&kv);
	return rc;
}

int pp_stand_policy(struct pp_campaign *c, struct pp_stand *s, struct pp_policy_answer *answer,
	struct pp_error *err)
{
	struct pp_order o;

	pp_order_init(&o, PP_ORDER_POLICY);
	return order(c, s, &o, answer, err);
}

static int set(struct pp_campaign *c, struct pp_stand *s, const struct pp_policy_setting *setting,
	struct pp_policy_answer *answer, struct pp_error *err)
{
	struct pp_order o;
	int rc;

	pp_order_init(&o, PP_ORDER_POLICY_SET);
	o.setting = setting;
	rc = order(c, s, &o, answer, err);
	/* What was refused was not begun; of what got no answer nobody knows. */
	s->policy_touched |= rc != 0 || answer->state != PP_POLICY_REFUSED;
	if (rc == 0 && answer->state == PP_POLICY_REFUSED)
		return pp_fail(err, PP_ERR_REFUSED, "drive '%s', policy %s: %s", s->plan->name, setting->name,
			answer->error);
	return rc;
}

/* Some systems take it up at their next start only. */
static int restart_for(struct pp_campaign *c, struct pp_stand *s, struct pp_policy_answer *answer,
	struct pp_error *err)
{
	int rc;

	pp_say(c, "drive %s: its cache policy holds after a restart only", s->plan->name);
	rc = pp_power_orderly_cycle(c, err);
	if (rc < 0)
		return -1;
	if (rc != PP_BACK_BOOTED)
		return pp_fail(err, PP_ERR_PEER, "the machine did not come back from the restart that its "
			"cache policy needs");
	return pp_stand_policy(c, s, answer, err);
}

/*
 * 1: the drive has it, by its own word, and *answer tells how. 0: it cannot be had, *why says why. What
 * the set answers is not enough: it is read again.
 */
static int make(struct pp_campaign *c, struct pp_stand *s, const struct pp_policy_setting *setting,
	struct pp_policy_answer *answer, char *why, size_t why_bytes, struct pp_error *err)
{
	char text[PP_TEXT_SHORT];

	if (pp_stand_policy(c, s, answer, err) != 0)
		return -1;
	if (answer->state == PP_POLICY_MADE && pp_policy_matches(&answer->policy, setting))
		return 1;
	/* A cache that is switched off while flushes are dropped is another thing than one that is flushed. */
	if (setting->write_cache == PP_TRUTH_NO && answer->policy.flushing == PP_TRUTH_NO &&
		set(c, s, pp_policy_setting_find("cache-on"), answer, err) != 0)
		return -1;
	if (set(c, s, setting, answer, err) != 0)
		return -1;
	if (answer->state == PP_POLICY_MADE && answer->policy.when == PP_POLICY_REBOOT &&
		restart_for(c, s, answer, err) != 0)
		return -1;
	if (answer->state == PP_POLICY_MADE && pp_policy_matches(&answer->policy, setting))
		return 1;
	pp_policy_text(&answer->policy, text, sizeof(text));
	if (answer->state == PP_POLICY_MADE)
		pp_text_format(why, why_bytes, "the drive did not take it: it has '%s'", text);
	else
		pp_text_format(why, why_bytes, "%s", answer->error);
	return 0;
}

/* ---- what was found --------------------------------------------------------------------------- */

static bool saved_path(const struct pp_campaign *c, const struct pp_stand *s, const char *name,
	char *out, size_t bytes)
{
	return pp_text_format(out, bytes, "%s/policies/%s.%s", c->folder, s->folder, name);
}

static int make_folder(const struct pp_campaign *c, struct pp_error *err)
{
	char folder[4608];

	if (!pp_text_format(folder, sizeof(folder), "%s/policies", c->folder))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", c->folder);
	return pp_mkdirs(folder, err);
}

static int load_saved(struct pp_stand *s, const char *path, struct pp_error *err)
{
	struct pp_buf text;
	struct pp_kv kv;
	int rc;

	pp_buf_init(&text, 1U << 16);
	rc = pp_file_read(path, &text, err);
	if (rc == 0)
		rc = pp_kv_parse(&kv, text.data ? text.data : "", text.bytes, err);
	if (rc == 0) {
		rc = pp_policy_saved_get(&kv, &s->policy_saved, err);
		pp_kv_release(&kv);
	}
	pp_buf_release(&text);
	if (rc == 0)
		s->policy_known = s->policy_touched = true;
	return rc == 0 ? 0 : pp_fail_within(err, "'%s'", path);
}

int pp_policies_recall(struct pp_campaign *c, struct pp_error *err)
{
	char path[4608];
	struct stat st;
	uint32_t i;

	for (i = 0; i < c->plan.drives; i++) {
		struct pp_stand *s = &c->stand[i];

		if (!pp_stand_has_policies(s))
			continue;
		if (!saved_path(c, s, "found", path, sizeof(path)))
			return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", c->folder);
		if (stat(path, &st) == 0 && load_saved(s, path, err) != 0)
			return -1;
	}
	return 0;
}

static int write_policy(const char *path, const struct pp_policy_saved *saved, struct pp_error *err)
{
	struct pp_buf text;
	int rc;

	pp_buf_init(&text, 1U << 16);
	pp_policy_saved_put(&text, saved);
	rc = text.failed ? pp_fail(err, PP_ERR_SYSTEM, "no memory for a policy")
		: pp_file_write(path, text.data, text.bytes, 0644, err);
	pp_buf_release(&text);
	return rc;
}

/*
 * Once a campaign, before the first change; whoever resumes puts back the same (pp_policies_recall). 0:
 * the policy has no word of its own here, *why says why; nothing will be changed. 1, -1.
 */
static int keep_found(struct pp_campaign *c, struct pp_stand *s, char *why, size_t why_bytes,
	struct pp_error *err)
{
	struct pp_policy_answer answer;
	char path[4608], text[PP_TEXT_SHORT];

	if (s->policy_known)
		return 1;
	if (!saved_path(c, s, "found", path, sizeof(path)))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", c->folder);
	if (pp_stand_policy(c, s, &answer, err) != 0)
		return -1;
	pp_text_copy(why, why_bytes, answer.error);
	if (answer.state == PP_POLICY_UNSUPPORTED)
		return 0;
	if (!answer.has_saved)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "the cache policy of drive '%s' cannot be read, so "
			"it cannot be put back, and is not changed: %s", s->plan->name, answer.error[0] ?
			answer.error : "the agent did not say what it was");
	pp_policy_text(&answer.policy, text, sizeof(text));
	pp_say(c, "drive %s: its cache policy is found as '%s'", s->plan->name, text);
	if (make_folder(c, err) != 0 || write_policy(path, &answer.saved, err) != 0)
		return -1;
	s->policy_saved = answer.saved;
	s->policy_known = true;
	return 1;
}

/* ---- before the campaign ---------------------------------------------------------------------- */

static int settle_na(struct pp_campaign *c, struct pp_stand *s,
	const struct pp_policy_setting *setting, const char *why, struct pp_error *err)
{
	struct pp_campaign_facts *facts = &c->evidence.facts;
	char reason[PP_TEXT_SHORT];
	uint32_t i;
	size_t k;

	pp_text_copy(reason, sizeof(reason), why);
	pp_say(c, "drive %s: policy %s cannot be had, its arms are n/a: %s", s->plan->name,
		setting->name, why);
	for (i = 0; i < s->arms; i++)
		if (s->arm[i].setting == setting && !s->arm[i].na_reason[0])
			pp_text_copy(s->arm[i].na_reason, sizeof(s->arm[i].na_reason), reason);
	for (k = 0; k < facts->planned_count; k++)
		if (strcmp(facts->planned[k].serial, s->drive.info.serial) == 0 &&
			strcmp(facts->planned[k].setting, setting->name) == 0 &&
			!facts->planned[k].na_reason[0])
			pp_text_copy(facts->planned[k].na_reason, sizeof(facts->planned[k].na_reason), reason);
	return facts->planned_count ? pp_campaign_facts_save(facts, c->folder, err) : 0;
}

static int try_each(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err)
{
	struct pp_policy_answer answer;
	char why[512];
	int known = keep_found(c, s, why, sizeof(why), err);
	size_t k;

	if (known < 0)
		return -1;

	for (k = 0; k < pp_policy_setting_count; k++) {
		const struct pp_policy_setting *setting = &pp_policy_settings[k];
		int rc;

		if (!uses(s, setting))
			continue;
		rc = known ? make(c, s, setting, &answer, why, sizeof(why), err) : 0;
		if (rc < 0 || (rc == 0 && settle_na(c, s, setting, why, err) != 0))
			return -1;
		if (rc == 0)
			continue;
		pp_policy_text(&answer.policy, s->policy_wanted[k], sizeof(s->policy_wanted[k]));
		pp_say(c, "drive %s: policy %s is '%s'", s->plan->name, setting->name,
			s->policy_wanted[k]);
	}
	return 0;
}

int pp_policies_begin(struct pp_campaign *c, struct pp_error *err)
{
	uint32_t i;

	for (i = 0; i < c->plan.drives; i++) {
		struct pp_stand *s = &c->stand[i];

		if (!pp_stand_has_policies(s) || s->gone)
			continue;
		pp_show(c, "cache policies");
		if (try_each(c, s, err) != 0)
			return -1;
	}
	return 0;
}

/*
 * Set-up must reach the medium (M2.8), and where a policy lasts over a restart the one of the last run
 * may be that which drops every flush. So a target is built with flushes sent, whatever the plan names.
 */
int pp_policy_for_build(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err)
{
	static const char *const names[] = { "cache-on", "cache-off" };
	struct pp_policy_answer answer;
	char why[512];
	size_t i;
	int rc = 0;

	if (!s->policy_known)
		return 0;
	for (i = 0; i < 2 && rc == 0; i++)
		rc = make(c, s, pp_policy_setting_find(names[i]), &answer, why, sizeof(why), err);
	return rc < 0 ? -1 : 0;
}

/* ---- around a run ------------------------------------------------------------------------------- */

int pp_policy_for(struct pp_campaign *c, struct pp_stand *s, const struct pp_policy_setting *setting,
	struct pp_error *err)
{
	struct pp_policy_answer answer;
	char why[512];
	int rc = make(c, s, setting, &answer, why, sizeof(why), err);

	if (rc == 0)
		return pp_fail(err, PP_ERR_PEER, "policy %s could be had on drive '%s' before, and now it "
			"cannot: %s", setting->name, s->plan->name, why);
	return rc < 0 ? -1 : 0;
}

int pp_policies_ready(struct pp_campaign *c, struct pp_error *err)
{
	uint32_t i;

	for (i = 0; i < c->plan.drives; i++) {
		struct pp_stand *s = &c->stand[i];

		if (s->now && s->now->setting && pp_policy_for(c, s, s->now->setting, err) != 0)
			return -1;
	}
	return 0;
}

int pp_policy_before_run(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err)
{
	struct pp_run_facts *r = &s->run;
	struct pp_policy_answer answer;
	const struct pp_policy *p = &answer.policy;

	if (pp_stand_policy(c, s, &answer, err) != 0)
		return -1;
	pp_text_copy(r->setting, sizeof(r->setting), s->now->setting->name);
	pp_text_copy(r->policy_wanted, sizeof(r->policy_wanted),
		s->policy_wanted[setting_index(s->now->setting)]);
	pp_policy_text(p, r->policy, sizeof(r->policy));
	r->fua = p->fua_sent == PP_TRUTH_YES;
	/* M7.4: a cache that is off by the drive's own word is no volatile cache. */
	r->no_volatile_cache |= p->drive_cache == PP_CACHE_OFF || p->drive_cache == PP_CACHE_NONE;
	return 0;
}

void pp_policy_after_boot(struct pp_campaign *c, struct pp_stand *s)
{
	struct pp_error why = { .class = PP_ERR_NONE };
	struct pp_policy_answer answer;

	if (pp_stand_policy(c, s, &answer, &why) != 0 || answer.state != PP_POLICY_MADE)
		pp_say(c, "drive %s: the cache policy after the boot is not known: %s", s->plan->name,
			why.text[0] ? why.text : answer.error);
	else
		pp_policy_text(&answer.policy, s->run.policy_after, sizeof(s->run.policy_after));
}

/* ---- the end ------------------------------------------------------------------------------------ */

static bool wait_for_machine(struct pp_campaign *c, struct pp_error *err)
{
	uint32_t wait_s = c->plan.boot_deadline_s < RESTORE_WAIT_S ? c->plan.boot_deadline_s
		: RESTORE_WAIT_S;

	/* A machine whose power was taken has a session that looks open for as long as it is silent. */
	bool dark = c->cut.t_off_sent_ns && strcmp(c->cut.state, "judged") != 0 &&
		strcmp(c->machine.hello.boot_id, c->cut.boot_before) == 0;

	if (c->machine.session && c->machine.closed == PP_CLOSE_NOT && !dark)
		return true;
	pp_say(c, "waiting for the machine, to put its cache policy back; another interrupt leaves it");
	if (pp_machine_await(&c->machine, dark ? c->cut.boot_before : "", 0, pp_clock_mono_ns() + wait_s * PP_NS_PER_S, err) == 1)
		return true;
	pp_fail(err, PP_ERR_PEER, "the machine is not there");
	return false;
}

static int put_back(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err)
{
	struct pp_policy_answer answer;
	struct pp_order o;

	pp_order_init(&o, PP_ORDER_POLICY_RESTORE);
	o.saved = s->policy_saved;
	if (order(c, s, &o, &answer, err) != 0)
		return -1;
	if (answer.state != PP_POLICY_MADE)
		return pp_fail(err, PP_ERR_PEER, "%s", answer.error);
	s->policy_touched = false;
	return 0;
}

/* The interrupt that ended the campaign may reach the listener late, and end the first try. */
static int try_again(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err)
{
	pp_listener_wake_clear(c->machine.listener);
	return put_back(c, s, err);
}

bool pp_policies_restore(struct pp_campaign *c, char *words, size_t bytes)
{
	const volatile sig_atomic_t *stop = c->machine.stop;
	char path[4608];
	struct pp_error why = { .class = PP_ERR_NONE };
	bool there = true, asked = false, all = true;
	uint32_t i;

	words[0] = '\0';
	/* A person's interrupt ends the campaign, not this. */
	c->machine.stop = NULL;
	for (i = 0; c->stand && i < c->plan.drives; i++) {
		struct pp_stand *s = &c->stand[i];
		size_t used = strlen(words);

		if (!s->policy_known || !s->policy_touched)
			continue;
		if (!asked) {
			pp_listener_wake_clear(c->machine.listener);
			there = wait_for_machine(c, &why);
		}
		asked = true;
		if (there && (put_back(c, s, &why) == 0 || try_again(c, s, &why) == 0)) {
			pp_text_format(words + used, bytes - used, "%sdrive %s: put back as it was found",
				used ? "; " : "", s->plan->name);
			continue;
		}
		all = false;
		if (!saved_path(c, s, "found", path, sizeof(path)))
			pp_text_copy(path, sizeof(path), "policies");
		pp_text_format(words + used, bytes - used, "%sdrive %s: NOT put back (%s); on the machine: "
			"'plugpull-dut policy restore --state FILE %s', with FILE a copy of %s", used ? "; " : "",
			s->plan->name, why.text, s->spec.serial, path);
	}
	c->machine.stop = stop;
	if (words[0])
		pp_say(c, "cache policy: %s", words);
	return all;
}
