/* SPDX-License-Identifier: MIT
 *
 * The campaign as a whole: open what it needs, set up, cut by cut until nothing is left to do, seal
 * the evidence. The outlet is on at every way out that this process survives; for the others there
 * is the guard.
 */
#include "controller.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "parts.h"
#include "src/core/clock.h"
#include "src/core/file.h"
#include "src/core/splitmix.h"
#include "src/core/text.h"
#include "src/core/tree.h"
#include "version.h"

/* What a person can do about trials that keep coming out void (M5.6); "" is for all others. */
static const struct {
	const char *reason, *remedy;
} remedies[] = {
	{ "died before the cut", "look at the machine's console: its agent or kernel died while writing" },
	{ "lived after the off", "does the outlet really feed this machine, and all its supplies? A UPS "
		"or battery behind the outlet? Or raise hold_up_ms" },
	{ "off was not read back", "'plugpull pdu status' and 'plugpull pdu off' by hand: does the switch "
		"do what it is told?" },
	{ "the machine did not lose power (same boot)", "the wrong outlet, or a second supply: try "
		"'plugpull pdu cycle' and watch the machine" },
	{ "drive kept its power", "the machine went dark but the drive did not: it has a supply of its own" },
	{ "orderly shutdown", "something told the machine to shut down before the cut: a power button "
		"daemon, a UPS agent, a switch that signals first?" },
	{ "rebooted by itself before the cut", "a watchdog, a panic or too little power" },
	{ "the drive's cache policy is not the arm's", "the write cache came back another way than the "
		"campaign began with: set it at every boot, or begin a campaign under what it is now" },
	{ "I/O error", "the drive or its cable fails without any cut: see the kernel's log" },
	{ "", "see the reason in the trial's judgement.json" },
};

void pp_say(struct pp_campaign *c, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (c->config->say)
		c->config->say(c->config->ctx, text);
}

void pp_show(struct pp_campaign *c, const char *state)
{
	pp_text_copy(c->progress.state, sizeof(c->progress.state), state);
	c->progress.left_s = c->cycle_ns
		? (int64_t)c->progress.cuts_left * c->cycle_ns / PP_NS_PER_S : -1;
	if (c->config->progress)
		c->config->progress(c->config->ctx, &c->progress);
}

static void machine_says(void *ctx, const char *text)
{
	pp_say(ctx, "%s", text);
}

/* ---- opening ----------------------------------------------------------------------------------- */

static void fill_stand(struct pp_campaign *c, uint32_t i)
{
	const struct pp_plan_drive *d = &c->plan.drive[i];
	struct pp_stand *s = &c->stand[i];
	struct pp_target_spec *spec = &s->spec;

	s->plan = d;
	s->index = i;
	s->needs_build = true;
	pp_drive_folder_name(d->serial, s->folder, sizeof(s->folder));
	pp_target_spec_init(spec);
	spec->kind = d->kind;
	pp_text_copy(spec->serial, sizeof(spec->serial), d->serial);
	pp_text_copy(spec->fs_uuid, sizeof(spec->fs_uuid), d->uuid);
	pp_text_copy(spec->mount_options, sizeof(spec->mount_options), d->mount_options);
	pp_text_copy(spec->directory, sizeof(spec->directory), d->directory);
	pp_text_copy(spec->path, sizeof(spec->path), d->path);
	pp_text_copy(spec->destroy, sizeof(spec->destroy), d->destroy);
	spec->size_bytes = d->size_bytes;
	spec->force = d->force;
	spec->boot_drive = d->boot_drive;
	spec->wait_ms = (int64_t)c->plan.drive_wait_s * 1000;
}

static int plan_to_evidence(struct pp_campaign *c, struct pp_error *err)
{
	char path[4608];
	struct pp_buf text;
	int rc;

	pp_text_format(path, sizeof(path), "%s/plan.ini", c->folder);
	pp_buf_init(&text, 1U << 20);
	rc = pp_file_read(c->config->plan_path, &text, err);
	if (rc == 0)
		rc = pp_file_write(path, text.data ? text.data : "", text.bytes, 0644, err);
	pp_buf_release(&text);
	return rc;
}

static int new_folder(struct pp_campaign *c, struct pp_error *err)
{
	char path[4608];
	struct stat st;

	if (stat(c->folder, &st) == 0)
		return pp_fail(err, PP_ERR_USAGE, "'%s' is there already; say --resume to go on with it, "
			"or name another folder with --out", c->folder);
	pp_text_format(path, sizeof(path), "%s/cuts", c->folder);
	if (pp_mkdirs(path, err) != 0)
		return -1;
	c->made_folder = true;
	pp_text_copy(c->evidence.folder, sizeof(c->evidence.folder), c->folder);
	return plan_to_evidence(c, err);
}

/* The plan of a resumed campaign must be the one it began with: its arms are in the evidence. */
static int same_plan(struct pp_campaign *c, struct pp_error *err)
{
	char path[4608];
	struct pp_buf a, b;
	int rc;

	pp_text_format(path, sizeof(path), "%s/plan.ini", c->folder);
	pp_buf_init(&a, 1U << 20);
	pp_buf_init(&b, 1U << 20);
	rc = pp_file_read(path, &a, err);
	if (rc == 0)
		rc = pp_file_read(c->config->plan_path, &b, err);
	if (rc == 0 && (a.bytes != b.bytes || (a.bytes && memcmp(a.data, b.data, a.bytes) != 0)))
		rc = pp_fail(err, PP_ERR_USAGE, "'%s' is not the plan that '%s' began with; resume with its "
			"own plan.ini, or begin another campaign", c->config->plan_path, c->folder);
	pp_buf_release(&a);
	pp_buf_release(&b);
	return rc;
}

static int open_listener(struct pp_campaign *c, struct pp_error *err)
{
	if (pp_key_load(c->plan.key_file, &c->key, err) != 0)
		return -1;
	c->machine.listener = pp_listener_open(c->plan.listen_address, c->plan.listen_port, &c->key, err);
	if (!c->machine.listener)
		return -1;
	pp_text_copy(c->machine.name, sizeof(c->machine.name), c->plan.machine_name);
	c->machine.stop = c->config->stop;
	c->machine.say = machine_says;
	c->machine.ctx = c;
	if (c->config->listening)
		c->config->listening(c->config->ctx, c->machine.listener,
			pp_listener_port(c->machine.listener));
	pp_say(c, "listening on %s:%u for the machine's agent", c->plan.listen_address,
		pp_listener_port(c->machine.listener));
	return 0;
}

static int open_all(struct pp_campaign *c, struct pp_error *err)
{
	uint32_t i;

	c->plan = *c->config->plan;
	if (c->config->cuts)
		c->plan.cuts = c->config->cuts;
	if (!pp_text_format(c->folder, sizeof(c->folder) - 700, "%s", c->config->out))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", c->config->out);
	if (pp_plan_check(&c->plan, err) != 0)
		return -1;
	c->stand = calloc(c->plan.drives, sizeof(*c->stand));
	if (!c->stand)
		return pp_fail_os(err, ENOMEM, "cannot begin");
	for (i = 0; i < c->plan.drives; i++)
		fill_stand(c, i);
	pp_schedule_init(c);
	c->random = c->plan.seed;
	if (!c->plan.has_seed) {
		struct pp_run_id id;

		if (pp_run_id_draw(&id, err) != 0)
			return -1;
		memcpy(&c->random, id.bytes, sizeof(c->random));
	}
	if (c->config->resume) {
		if (same_plan(c, err) != 0 || pp_evidence_load(&c->evidence, c->folder, false, err) != 0)
			return -1;
		pp_splitmix_skip(&c->random, c->evidence.cuts);
		c->own_trials = c->evidence.trial_count;
	} else if (new_folder(c, err) != 0) {
		return -1;
	}
	if (open_listener(c, err) != 0)
		return -1;
	return pp_power_open(c, err);
}

/* ---- the facts of the campaign ----------------------------------------------------------------- */

static int plan_arms(struct pp_campaign *c, struct pp_campaign_facts *f, struct pp_error *err)
{
	uint32_t d, i, n = 0;

	for (d = 0; d < c->plan.drives; d++)
		n += c->stand[d].arms;
	f->planned = calloc(n + 1, sizeof(*f->planned));
	f->protected_serial = calloc(c->plan.drives + 1, sizeof(*f->protected_serial));
	if (!f->planned || !f->protected_serial)
		return pp_fail_os(err, ENOMEM, "cannot begin");
	for (d = 0; d < c->plan.drives; d++) {
		const struct pp_stand *s = &c->stand[d];

		if (s->plan->cache_protected)
			pp_text_copy(f->protected_serial[f->protected_count++], PP_TEXT_SHORT,
				s->drive.info.serial);
		for (i = 0; i < s->arms; i++) {
			struct pp_planned_arm *arm = &f->planned[f->planned_count++];

			pp_text_copy(arm->serial, sizeof(arm->serial), s->drive.info.serial);
			pp_text_copy(arm->method, sizeof(arm->method), s->arm[i].method->name);
			pp_text_copy(arm->workload, sizeof(arm->workload),
				pp_workload_name(c->plan.arms[s->arm[i].set].workload));
			pp_text_copy(arm->target, sizeof(arm->target),
				s->spec.kind == PP_TARGET_RAW ? "raw" : "file");
			pp_text_copy(arm->pattern, sizeof(arm->pattern),
				c->plan.arms[s->arm[i].set].random ? "random" : "sequential");
			if (s->arm[i].setting)
				pp_text_copy(arm->setting, sizeof(arm->setting), s->arm[i].setting->name);
			arm->optional = s->arm[i].optional;
			pp_text_copy(arm->na_reason, sizeof(arm->na_reason), s->arm[i].na_reason);
		}
	}
	return 0;
}

static int save_facts(struct pp_campaign *c, struct pp_error *err)
{
	struct pp_campaign_facts *f = &c->evidence.facts;
	const struct pp_hello *h = &c->machine.hello;
	uint32_t i;

	pp_campaign_facts_release(f);
	pp_text_copy(f->name, sizeof(f->name), c->plan.name);
	pp_text_copy(f->tool_version, sizeof(f->tool_version), PP_VERSION);
	pp_text_copy(f->tool_commit, sizeof(f->tool_commit), PP_COMMIT);
	if (c->config->tool_sha256)
		pp_text_copy(f->tool_sha256, sizeof(f->tool_sha256), c->config->tool_sha256);
	pp_clock_wall(f->started, sizeof(f->started));
	pp_text_copy(f->agent_version, sizeof(f->agent_version), h->version);
	pp_text_copy(f->agent_commit, sizeof(f->agent_commit), h->commit);
	pp_text_copy(f->agent_sha256, sizeof(f->agent_sha256), h->sha256);
	pp_text_copy(f->kernel, sizeof(f->kernel), h->kernel);
	pp_text_copy(f->power_switch, sizeof(f->power_switch),
		c->pdu ? pp_pdu_profile_name(c->pdu) : c->plan.pdu_profile);
	for (i = 0; i < c->plan.outlets; i++) {
		size_t used = strlen(f->outlets);

		pp_text_format(f->outlets + used, sizeof(f->outlets) - used, "%s%s", i ? ", " : "",
			c->plan.outlet[i]);
	}
	pp_text_copy(f->operator, sizeof(f->operator), c->plan.operator);
	pp_text_copy(f->note, sizeof(f->note), c->plan.note);
	f->criterion = c->plan.criterion;
	/* A lab's wiring is the lab's own. */
	f->unproven_wiring = c->plan.unproven && !c->plan.has_lab;
	f->simulated = c->plan.has_lab;
	f->stop_known = true;
	f->stop_at_first_loss = c->plan.stop_at_first_loss;
	f->cuts_fixed = c->plan.cuts;
	if (plan_arms(c, f, err) != 0)
		return -1;
	return pp_campaign_facts_save(f, c->folder, err);
}

/* ---- going on ---------------------------------------------------------------------------------- */

static int await_first(struct pp_campaign *c, struct pp_error *err)
{
	uint32_t cycles;
	int rc;

	pp_show(c, "awaiting agent");
	rc = pp_power_await_boot(c, "", 0, 0, &cycles, err);
	if (rc == PP_BACK_NOT)
		return pp_fail(err, PP_ERR_PEER, "no agent has connected within %u s (and after %d power "
			"cycles); start 'plugpull-dut agent --control THIS_HOST:%u --key FILE --allow SERIAL' "
			"on the machine, and see that it starts by itself at every boot",
			c->plan.boot_deadline_s, PP_POWER_CYCLES_MAX, pp_listener_port(c->machine.listener));
	return rc < 0 ? -1 : 0;
}

static void check_voids(struct pp_campaign *c)
{
	uint32_t d, i;
	size_t k;

	for (d = 0; d < c->plan.drives; d++) {
		for (i = 0; i < c->stand[d].arms; i++) {
			const struct pp_arm_state *arm = &c->stand[d].arm[i];

			if (arm->voids_in_row < c->plan.voids_max || c->pause[0])
				continue;
			for (k = 0; remedies[k].reason[0] &&
				strcmp(remedies[k].reason, arm->last_void) != 0; k++)
				;
			pp_text_format(c->pause, sizeof(c->pause), "%u trials in a row were void on drive %s "
				"('%s'): %s", arm->voids_in_row, c->stand[d].plan->name, arm->last_void,
				remedies[k].remedy);
		}
	}
}

static bool stopped(const struct pp_campaign *c)
{
	return c->config->stop && *c->config->stop;
}

static int go_on(struct pp_campaign *c, struct pp_error *err)
{
	bool late;

	while (!c->pause[0] && !stopped(c)) {
		pp_schedule_count(c);
		check_voids(c);
		if (c->pause[0] || !pp_schedule_next(c) || pp_power_forbidden(c))
			return 0;
		if (pp_late_check(c, &late, err) != 0)
			return -1;
		if (late)
			continue;
		if (pp_setup_build(c, err) != 0 || pp_policies_ready(c, err) != 0 || pp_cut_run(c, err) != 0)
			return -1;
		c->resuming = false;
	}
	return 0;
}

static int run_all(struct pp_campaign *c, struct pp_error *err)
{
	if (await_first(c, err) != 0 || pp_setup_identify(c, err) != 0)
		return -1;
	if (c->config->resume) {
		if (pp_policies_recall(c, err) != 0 || pp_setup_load(c, err) != 0 || pp_resume(c, err) != 0)
			return -1;
		if (!c->pause[0] && pp_policies_begin(c, err) != 0)
			return -1;
	} else if (pp_policies_begin(c, err) != 0 || save_facts(c, err) != 0) {
		return -1;
	}
	return c->pause[0] ? 0 : go_on(c, err);
}

/* ---- the end ----------------------------------------------------------------------------------- */

/*
 * What there is stands sealed, however the campaign ended. It is judged anew from the folder, as
 * `judge` will: a run that was abandoned, or that nobody could scan yet, is in the files alone.
 */
static int seal(struct pp_campaign *c, struct pp_error *err)
{
	struct stat st;
	char path[4608];

	pp_text_format(path, sizeof(path), "%s/target.json", c->folder);
	if (stat(path, &st) != 0)
		return 0; /* it never came to a campaign */
	if (pp_speed_save(c->evidence.speed, c->evidence.speed_count, c->folder, err) != 0 ||
		pp_evidence_write_result(c->folder, err) != 0)
		return -1;
	return pp_evidence_seal(c->folder, err);
}

/* A start that failed before there was a campaign leaves nothing in the way of the next. */
static void undo_folder(struct pp_campaign *c)
{
	char path[4608];
	struct pp_error why;
	struct stat st;

	pp_text_format(path, sizeof(path), "%s/target.json", c->folder);
	if (c->made_folder && stat(path, &st) != 0 && pp_tree_remove(c->folder, &why) != 0)
		pp_say(c, "%s", why.text);
}

static void close_all(struct pp_campaign *c, struct pp_campaign_result *result)
{
	uint32_t i;

	pp_power_close(c, result);
	/* The hello may still be wanted by nobody: end the listener last. */
	pp_listener_close(c->machine.listener);
	for (i = 0; c->stand && i < c->plan.drives; i++) {
		free(c->stand[i].ranges);
		free(c->stand[i].noise_ranges);
	}
	free(c->stand);
	pp_evidence_release(&c->evidence);
}

int pp_campaign_run(const struct pp_campaign_config *config, struct pp_campaign_result *result,
	struct pp_error *err)
{
	struct pp_campaign *c = calloc(1, sizeof(*c));
	struct pp_error why;
	bool policies_back = true;
	int rc;

	memset(result, 0, sizeof(*result));
	if (!c)
		return pp_fail_os(err, ENOMEM, "cannot begin");
	c->config = config;
	c->pdu_log = -1;
	rc = open_all(c, err);
	if (rc == 0) {
		rc = run_all(c, err);
		policies_back = pp_policies_restore(c, result->policy, sizeof(result->policy));
		if (seal(c, &why) != 0) {
			pp_say(c, "%s", why.text);
			if (rc == 0) {
				*err = why;
				rc = -1;
			}
		}
	}
	if (rc != 0 && stopped(c)) {
		rc = 0;
		result->end = PP_CAMPAIGN_INTERRUPTED;
	} else if (rc == 0 && c->pause[0]) {
		result->end = PP_CAMPAIGN_PAUSED;
		pp_text_copy(result->why, sizeof(result->why), c->pause);
	} else if (rc == 0) {
		result->end = stopped(c) ? PP_CAMPAIGN_INTERRUPTED : PP_CAMPAIGN_DONE;
	}
	if (policies_back) /* else what was found is known from there alone */
		undo_folder(c);
	close_all(c, result);
	free(c);
	return rc;
}
