/* SPDX-License-Identifier: MIT
 *
 * Method: sort the trials by arm and cut, so that the order in which they came cannot matter;
 * pool what pp_arm_key_equal says is equal; count; then let verdict_rules.c decide. A trial counts
 * in exactly one way, and where its fields contradict each other in the way that is further from
 * SAFE.
 */
#include "verdict.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/policy.h"
#include "verdict_rules.h"

const char *pp_arm_verdict_name(enum pp_arm_verdict verdict)
{
	static const char *const names[] = {
		[PP_ARM_INCONCLUSIVE] = "INCONCLUSIVE",
		[PP_ARM_SAFE] = "SAFE",
		[PP_ARM_UNSAFE] = "UNSAFE",
		[PP_ARM_NA] = "N/A",
		[PP_ARM_LOSES] = "LOSES",
		[PP_ARM_KEEPS] = "KEEPS",
	};

	return names[verdict];
}

/* ---- one trial ---------------------------------------------------------------------------- */

static bool is_cleared(const struct pp_trial *trial)
{
	const char *at = trial->resolution;

	while (isspace((unsigned char)*at))
		at++;
	return *at != '\0';
}

static bool data_is_missing(const struct pp_trial *trial)
{
	size_t i;

	for (i = 0; i < PP_LOSS_CLASSES; i++)
		if (trial->lost[i])
			return true;
	return trial->lost_acked || trial->records_lost;
}

/* M6.1: a swap that a person records undoes "the drive is gone", and nothing else does. */
static bool swap_undoes(const struct pp_trial *trial)
{
	size_t i;

	if (!trial->swapped)
		return false;
	for (i = 0; i < PP_LOSS_CLASSES; i++)
		if (i != PP_LOSS_DEVICE_GONE && trial->lost[i])
			return false;
	return trial->lost[PP_LOSS_DEVICE_GONE] > 0 &&
		trial->records_lost <= trial->lost[PP_LOSS_DEVICE_GONE];
}

enum standing pp_trial_standing(const struct pp_trial *trial)
{
	bool cleared = is_cleared(trial), missing = data_is_missing(trial);

	switch (trial->outcome) {
	case PP_TRIAL_LOSS:
		if (!trial->proven)
			return cleared ? STANDS_CLEARED : STANDS_VOID_MISSING;
		return cleared && swap_undoes(trial) ? STANDS_CLEARED : STANDS_LOSS;
	case PP_TRIAL_VOID:
		if (!missing)
			return STANDS_VOID;
		return cleared ? STANDS_CLEARED : STANDS_VOID_MISSING;
	case PP_TRIAL_CLEAN:
		if (!trial->proven && !missing)
			return STANDS_VOID;
		if (!trial->proven)
			return cleared ? STANDS_CLEARED : STANDS_VOID_MISSING;
		if (missing)
			break;
		if (trial->collateral)
			return STANDS_COLLATERAL;
		return trial->exposed && trial->records_acked ? STANDS_CLEAN : STANDS_UNEXPOSED;
	case PP_TRIAL_OPEN:
		break;
	}
	/* Open, an outcome that does not exist, or a "clean" trial that lists what it lost. */
	return cleared ? STANDS_CLEARED : STANDS_OPEN;
}

const char *pp_trial_not_clearable(const struct pp_trial *trial, bool swapped)
{
	struct pp_trial bare = *trial;
	enum standing before;

	bare.resolution[0] = '\0';
	bare.swapped = false;
	before = pp_trial_standing(&bare);
	bare.resolution[0] = 'x';
	bare.swapped = true;
	if (pp_trial_standing(&bare) != STANDS_CLEARED) {
		if (before == STANDS_LOSS)
			return "a loss that was confirmed stands, whatever its cause is said to be";
		return before == STANDS_VOID ? "it is void and misses nothing that was acked: it counts "
			"for nothing already" : "it is settled: nothing about it is open";
	}
	if (before == STANDS_LOSS && !swapped)
		return "the drive was gone: only a swap that a person records undoes that (--swapped)";
	if (before != STANDS_LOSS && swapped)
		return "the drive was not found gone, so a swap explains nothing";
	return NULL;
}

bool pp_standing_counts(enum standing standing)
{
	return standing == STANDS_CLEAN || standing == STANDS_UNEXPOSED ||
		standing == STANDS_COLLATERAL || standing == STANDS_LOSS || standing == STANDS_OPEN;
}

bool pp_list_has(const char *list, const char *word)
{
	size_t bytes = strlen(word);

	while (*list) {
		size_t length;

		list += strspn(list, ", ");
		length = strcspn(list, ",");
		if (length == bytes && memcmp(list, word, bytes) == 0)
			return true;
		list += length;
	}
	return false;
}

/* ---- order -------------------------------------------------------------------------------- */

static int method_rank(const char *name)
{
	const struct pp_method *method = pp_method_find(name);

	return method ? (int)(method - pp_methods) : (int)pp_method_count;
}

/* In the order in which the settings are known. */
static int setting_rank(const char *name)
{
	const struct pp_policy_setting *setting = pp_policy_setting_find(name);

	return setting ? (int)(setting - pp_policy_settings) + 1 : name[0] != '\0' ? 99 : 0;
}

static int compare_u32(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

#define STEP(expression)                \
	do {                            \
		int c_ = (expression);  \
		if (c_)                 \
			return c_;      \
	} while (0)

/* A total order over every field that pp_arm_key_equal compares. */
static int compare_keys(const struct pp_arm_key *a, const struct pp_arm_key *b)
{
	STEP(strcmp(a->serial, b->serial));
	STEP(strcmp(a->model, b->model));
	STEP(strcmp(a->firmware, b->firmware));
	STEP(method_rank(a->method) - method_rank(b->method));
	STEP(strcmp(a->method, b->method));
	STEP(strcmp(a->workload, b->workload));
	STEP(strcmp(a->pattern, b->pattern));
	STEP(strcmp(a->target, b->target));
	STEP(strcmp(a->fs, b->fs));
	STEP(strcmp(a->mount_options, b->mount_options));
	STEP(setting_rank(a->setting) - setting_rank(b->setting));
	STEP(strcmp(a->setting, b->setting));
	STEP(strcmp(a->policy, b->policy));
	STEP(strcmp(a->kernel, b->kernel));
	STEP(strcmp(a->cut_kind, b->cut_kind));
	STEP(compare_u32(a->lanes, b->lanes));
	STEP(compare_u32(a->group, b->group));
	STEP(compare_u32(a->record_bytes, b->record_bytes));
	return a->noise - b->noise;
}

static int by_arm(const void *a, const void *b)
{
	const struct pp_trial *x = *(const struct pp_trial *const *)a;
	const struct pp_trial *y = *(const struct pp_trial *const *)b;

	STEP(compare_keys(&x->key, &y->key));
	return compare_u32(x->cut, y->cut);
}

static int by_drive_and_cut(const void *a, const void *b)
{
	const struct pp_trial *x = *(const struct pp_trial *const *)a;
	const struct pp_trial *y = *(const struct pp_trial *const *)b;

	STEP(strcmp(x->key.serial, y->key.serial));
	return compare_u32(x->cut, y->cut);
}

static int by_key(const void *a, const void *b)
{
	const struct arm_work *x = a, *y = b;

	return compare_keys(&x->arm->key, &y->arm->key);
}

/* The same evidence given twice would count each clean cut twice. */
static int check_unique(const struct pp_trial **sorted, size_t count, struct pp_error *err)
{
	size_t i;

	qsort(sorted, count, sizeof(*sorted), by_drive_and_cut);
	for (i = 1; i < count; i++)
		if (by_drive_and_cut(&sorted[i - 1], &sorted[i]) == 0)
			return pp_fail(err, PP_ERR_EVIDENCE, "two trials of drive '%s' claim cut "
				"%u: is a campaign given twice?", sorted[i]->key.serial,
				sorted[i]->cut);
	return 0;
}

/* ---- counting ----------------------------------------------------------------------------- */

static void count_loss(struct arm_work *work, const struct pp_trial *trial)
{
	struct pp_verdict_arm *arm = work->arm;
	uint64_t cache = trial->lost[PP_LOSS_STALE] + trial->lost[PP_LOSS_BLANK] +
		trial->lost[PP_LOSS_TORN];
	size_t i;

	arm->records_lost += trial->records_lost;
	for (i = 0; i < PP_LOSS_CLASSES; i++)
		arm->lost[i] += trial->lost[i];
	if (trial->lost_age_ns_min >= 0 &&
		(arm->lost_age_ns_min < 0 || trial->lost_age_ns_min < arm->lost_age_ns_min))
		arm->lost_age_ns_min = trial->lost_age_ns_min;
	if (trial->lost_age_ns_max > arm->lost_age_ns_max)
		arm->lost_age_ns_max = trial->lost_age_ns_max;
	/* A drive that died, or rotten bytes, do not show that a cache was lost. */
	work->cache_losses += cache > 0;
	work->ram_losses += cache + trial->lost[PP_LOSS_FILE_GONE] +
		trial->lost[PP_LOSS_FILE_SHORT] > 0;
	work->untorn_broken += trial->untorn_broken;
	work->losses_of_durable += trial->records_lost > trial->untorn_broken || !trial->untorn_broken;
	/* Whole or not at all needs no flush: a write that was torn was asked for. */
	work->losses_asked += trial->asked == PP_ASKED || trial->untorn_broken;
	work->losses_not_asked += trial->asked == PP_ASKED_NOT;
	if (trial->lost[PP_LOSS_DEVICE_GONE] && !work->device_gone_cut)
		work->device_gone_cut = trial->cut;
}

static void count_tears(struct pp_verdict_arm *arm, const struct pp_trial *trial)
{
	size_t i;

	if (!trial->tears_in_flight)
		return;
	arm->tears_in_flight += trial->tears_in_flight;
	arm->tears_torn += trial->torn_in_flight;
	for (i = 0; i < PP_TEAR_UNITS; i++)
		arm->torn_at[i] += trial->torn_at[i];
}

void pp_verdict_tears(const struct pp_verdict_arm *arm, uint32_t *smallest_bytes,
	uint32_t *untorn_bytes)
{
	uint32_t i;

	*smallest_bytes = *untorn_bytes = 0;
	for (i = 0; arm->tears_in_flight && i < PP_TEAR_UNITS; i++) {
		uint32_t block = 512U << i;

		if (block > arm->key.record_bytes)
			return;
		if (arm->torn_at[i]) {
			*smallest_bytes = block;
			return;
		}
		*untorn_bytes = block;
	}
}

static void count_trial(struct arm_work *work, const struct pp_trial *trial)
{
	struct pp_verdict_arm *arm = work->arm;
	enum standing standing = pp_trial_standing(trial);
	size_t i;

	switch (standing) {
	case STANDS_CLEAN:
		arm->cuts_clean++;
		work->clean_powered += trial->drive_lost_power;
		work->clean_no_cache += trial->no_volatile_cache;
		break;
	case STANDS_UNEXPOSED:
		arm->cuts_unexposed++;
		arm->cuts_foreign += strcmp(trial->unexposed_reason, "foreign flushes") == 0;
		break;
	case STANDS_COLLATERAL:
		arm->cuts_collateral++;
		break;
	case STANDS_LOSS:
		arm->cuts_loss++;
		count_loss(work, trial);
		break;
	case STANDS_OPEN:
		arm->cuts_open++;
		break;
	case STANDS_VOID_MISSING:
		arm->cuts_void_missing++;
		arm->cuts_void++;
		break;
	case STANDS_VOID:
	case STANDS_CLEARED:
		arm->cuts_void++;
		break;
	}
	if (!pp_standing_counts(standing))
		return;
	work->proven++;
	work->noise_losses += trial->proven && trial->noise_lost;
	arm->records_acked += trial->records_acked;
	count_tears(arm, trial);
	for (i = 0; i < PP_WITHIN; i++)
		arm->acked_within[i] += trial->acked_within[i];
	arm->via_flush |= trial->via_flush;
	work->rests_on |= trial->via_flush ? RESTS_ON_FLUSH : RESTS_ON_FUA;
}

static void count_earlier(struct arm_work *work)
{
	size_t i;

	for (i = 0; i < work->input->earlier_count; i++) {
		const struct pp_trial *trial = &work->input->earlier[i];
		enum standing standing = pp_trial_standing(trial);

		if (!pp_arm_key_equal(&trial->key, &work->arm->key)) {
			work->earlier_elsewhere += standing == STANDS_LOSS &&
				strcmp(trial->key.serial, work->arm->key.serial) == 0 &&
				strcmp(trial->key.method, work->arm->key.method) == 0;
			continue;
		}
		work->earlier_cuts += pp_standing_counts(standing);
		work->earlier_lost += standing == STANDS_LOSS;
		work->earlier_unsettled += standing == STANDS_OPEN ||
			standing == STANDS_VOID_MISSING;
	}
}

/* Windows passes FILE_FLAG_WRITE_THROUGH on as FUA, or as nothing where its class driver has FUA off;
 * it never sends a flush in its place (Windows driver samples, disk and classpnp). */
static bool is_windows_write_through(const struct arm_work *work)
{
	return work->method && work->method->o_dsync && work->method->write == PP_WRITE_PWRITE &&
		strncmp(work->arm->key.kernel, "Windows ", 8) == 0;
}

/* What the arm asks of the drive. A method whose writes may go as FUA does so trial by trial. */
static void settle_commands(struct arm_work *work)
{
	const struct pp_arm_key *key = &work->arm->key;
	bool own_flushes = strcmp(key->workload, pp_workload_name(PP_OVERWRITE)) != 0;

	if (is_windows_write_through(work) && !own_flushes) {
		work->rests_on = RESTS_ON_FUA;
		return;
	}
	if (!work->method || !work->method->may_send_fua) {
		work->rests_on = RESTS_ON_FLUSH;
		return;
	}
	work->arm->via_flush |= own_flushes;
	if (own_flushes)
		work->rests_on = RESTS_ON_FLUSH;
	if (work->rests_on == 0)
		work->rests_on = RESTS_ON_FUA;
	/* Without FUA the kernel sends a flush instead (writeback_cache_control.rst). */
	if (!pp_list_has(key->policy, "fua") && !pp_list_has(key->policy, "FUA sent"))
		work->rests_on |= RESTS_ON_FLUSH;
}

/*
 * M9.1. The upper bound takes as cuts only those that could have shown a loss, and what is not
 * settled as lost (M6.5), earlier losses too (M9.3).
 */
static double loss_bound(const struct arm_work *work)
{
	const struct pp_verdict_arm *arm = work->arm;
	uint32_t lost = arm->cuts_loss + arm->cuts_open + arm->cuts_void_missing +
		work->earlier_lost + work->earlier_unsettled;

	return pp_stats_bound_upper(lost, lost + arm->cuts_clean, 0.95);
}

static bool plan_means(const struct pp_planned_arm *planned, const struct pp_arm_key *key)
{
	return strcmp(planned->serial, key->serial) == 0 &&
		strcmp(planned->method, key->method) == 0 &&
		strcmp(planned->workload, key->workload) == 0 &&
		strcmp(planned->pattern, key->pattern) == 0 &&
		strcmp(planned->setting, key->setting) == 0 &&
		strcmp(planned->target, key->target) == 0;
}

static void settle_promise(struct arm_work *work)
{
	struct pp_verdict_arm *arm = work->arm;
	bool raw = strcmp(arm->key.target, "raw") == 0;
	enum pp_workload workload = PP_OVERWRITE;
	size_t i;

	for (i = 0; i < work->input->planned_count && !work->planned; i++)
		if (plan_means(&work->input->planned[i], &arm->key))
			work->planned = &work->input->planned[i];
	work->method = pp_method_find(arm->key.method);
	if (!raw && strcmp(arm->key.target, "file") != 0)
		work->method = NULL;
	if (!pp_workload_find(arm->key.workload, &workload))
		work->method = NULL;
	arm->promise = PP_PROMISE_NONE;
	arm->required = true;
	if (work->method) {
		arm->promise = pp_workload_promise(workload, work->method,
			raw ? PP_TARGET_RAW : PP_TARGET_FILE, NULL);
		/* What ran is not n/a, and its losses are not hidden by the word. */
		if (arm->promise == PP_PROMISE_NA && work->count)
			arm->promise = pp_method_promise(work->method,
				raw ? PP_TARGET_RAW : PP_TARGET_FILE);
		arm->control = work->method->control;
		arm->required = arm->promise == PP_PROMISE_MEDIA;
	}
	if (work->planned && work->planned->optional)
		arm->required = false;
}

static void count_arm(struct arm_work *work)
{
	size_t i;

	work->arm->lost_age_ns_min = work->arm->lost_age_ns_max = -1;
	settle_promise(work);
	for (i = 0; i < work->count; i++)
		count_trial(work, work->trials[i]);
	count_earlier(work);
	settle_commands(work);
	if (work->method && work->method->untorn)
		work->rests_on |= RESTS_ON_UNTORN;
	work->arm->loss_bound_95 = loss_bound(work);
}

/* ---- arms --------------------------------------------------------------------------------- */

static struct arm_work *new_arm(struct verdict_work *all, const struct pp_verdict_input *input,
	const struct pp_arm_key *key)
{
	struct pp_verdict *verdict = all->verdict;
	struct arm_work *work = &all->arms[verdict->arm_count];

	work->input = input;
	work->arm = &verdict->arms[verdict->arm_count++];
	work->arm->key = *key;
	return work;
}

static void pool(struct verdict_work *all, const struct pp_verdict_input *input,
	const struct pp_trial **sorted)
{
	struct arm_work *work = NULL;
	size_t i;

	qsort(sorted, input->count, sizeof(*sorted), by_arm);
	for (i = 0; i < input->count; i++) {
		if (!work || !pp_arm_key_equal(&work->arm->key, &sorted[i]->key)) {
			work = new_arm(all, input, &sorted[i]->key);
			work->trials = &sorted[i];
		}
		work->count++;
	}
}

/* Of a drive that was seen in any trial: one drive must not be two in the report. */
static void name_drive(struct pp_arm_key *key, const struct pp_verdict_input *input)
{
	size_t i;

	for (i = 0; i < input->count; i++) {
		const struct pp_arm_key *seen = &input->trials[i].key;

		if (strcmp(seen->serial, key->serial) != 0)
			continue;
		memcpy(key->model, seen->model, sizeof(key->model));
		memcpy(key->firmware, seen->firmware, sizeof(key->firmware));
		return;
	}
}

static void add_planned(struct verdict_work *all, const struct pp_verdict_input *input)
{
	size_t i, j;

	for (i = 0; i < input->planned_count; i++) {
		const struct pp_planned_arm *planned = &input->planned[i];
		struct pp_arm_key key = { 0 };

		for (j = 0; j < all->verdict->arm_count; j++)
			if (plan_means(planned, &all->verdict->arms[j].key))
				break;
		if (j < all->verdict->arm_count)
			continue;
		memcpy(key.serial, planned->serial, sizeof(key.serial));
		memcpy(key.method, planned->method, sizeof(key.method));
		memcpy(key.workload, planned->workload, sizeof(key.workload));
		memcpy(key.target, planned->target, sizeof(key.target));
		memcpy(key.pattern, planned->pattern, sizeof(key.pattern));
		memcpy(key.setting, planned->setting, sizeof(key.setting));
		name_drive(&key, input);
		new_arm(all, input, &key);
	}
}

/* Puts arms in the order of the report; planned ones came last. */
static int sort_arms(struct verdict_work *all)
{
	struct pp_verdict *verdict = all->verdict;
	struct pp_verdict_arm *sorted = calloc(verdict->arm_count + 1, sizeof(*sorted));
	size_t i;

	if (!sorted)
		return -1;
	qsort(all->arms, verdict->arm_count, sizeof(*all->arms), by_key);
	for (i = 0; i < verdict->arm_count; i++) {
		sorted[i] = *all->arms[i].arm;
		all->arms[i].arm = &sorted[i];
		/* compare_keys knows every field that pp_arm_key_equal does, or an arm is split. */
		assert(i == 0 || !pp_arm_key_equal(&sorted[i - 1].key, &sorted[i].key));
	}
	free(verdict->arms);
	verdict->arms = sorted;
	return 0;
}

static int judge_arms(struct verdict_work *all, const struct pp_verdict_input *input,
	const struct pp_trial **sorted, struct pp_error *err)
{
	size_t i;

	for (i = 0; i < input->count; i++)
		sorted[i] = &input->trials[i];
	if (check_unique(sorted, input->count, err) != 0)
		return -1;
	pool(all, input, sorted);
	add_planned(all, input);
	if (sort_arms(all) != 0)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory for the verdict");
	for (i = 0; i < all->verdict->arm_count; i++)
		count_arm(&all->arms[i]);
	for (i = 0; i < all->verdict->arm_count; i++) {
		pp_verdict_rule(all, i);
		if (all->arms[i].failed)
			return pp_fail(err, PP_ERR_SYSTEM, "out of memory for the verdict");
	}
	return 0;
}

int pp_verdict_judge(const struct pp_verdict_input *input, struct pp_verdict *verdict,
	struct pp_error *err)
{
	size_t most = input->count + input->planned_count;
	const struct pp_trial **sorted = calloc(input->count + 1, sizeof(*sorted));
	struct verdict_work all = { .verdict = verdict };
	int result = -1;

	memset(verdict, 0, sizeof(*verdict));
	verdict->criterion = input->criterion;
	verdict->arms = calloc(most + 1, sizeof(*verdict->arms));
	all.arms = calloc(most + 1, sizeof(*all.arms));
	if (!sorted || !verdict->arms || !all.arms) {
		pp_fail(err, PP_ERR_SYSTEM, "out of memory for %zu trials", input->count);
		goto done;
	}
	if (input->criterion.confidence_ppm == 0 || input->criterion.reliability_ppm == 0) {
		pp_fail(err, PP_ERR_USAGE, "a verdict needs a criterion");
		goto done;
	}
	verdict->clean_cuts_needed = pp_criterion_clean_cuts(&input->criterion);
	result = judge_arms(&all, input, sorted, err);
done:
	free(sorted);
	free(all.arms);
	return result;
}

void pp_verdict_release(struct pp_verdict *verdict)
{
	size_t i;

	for (i = 0; verdict->arms && i < verdict->arm_count; i++)
		free(verdict->arms[i].reasons);
	free(verdict->arms);
	memset(verdict, 0, sizeof(*verdict));
}

void pp_verdict_reason(struct arm_work *work, bool blocks, const char *fmt, ...)
{
	struct pp_verdict_arm *arm = work->arm;
	struct pp_verdict_reason *grown, *row;
	va_list ap;

	grown = realloc(arm->reasons, (arm->reason_count + 1) * sizeof(*grown));
	if (!grown) {
		work->failed = true;
		return;
	}
	arm->reasons = grown;
	row = &grown[arm->reason_count++];
	row->blocks = blocks;
	va_start(ap, fmt);
	vsnprintf(row->text, sizeof(row->text), fmt, ap);
	va_end(ap);
}

int pp_verdict_exit(const struct pp_verdict *verdict)
{
	size_t i, required = 0, safe = 0;

	for (i = 0; i < verdict->arm_count; i++) {
		const struct pp_verdict_arm *arm = &verdict->arms[i];

		if (arm->verdict == PP_ARM_UNSAFE)
			return 1;
		required += arm->required;
		safe += arm->required && arm->verdict == PP_ARM_SAFE;
	}
	return required > 0 && safe == required ? 0 : 2;
}
