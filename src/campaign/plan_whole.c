/* SPDX-License-Identifier: MIT
 *
 * What no key can say alone: the plan as a whole, once all of it has been read.
 */
#include "plan_whole.h"

#include <ctype.h>
#include <string.h>

struct whole {
	struct pp_plan *plan;
	const char *file;
	const char (*drives_named)[PP_PLAN_DRIVES_TEXT];
	struct pp_error *err;
};

static bool name_in_list(const char *list, const char *name)
{
	size_t want = strlen(name);

	for (;;) {
		size_t n = strcspn(list, ",");
		size_t from = 0, to = n;

		while (from < to && isspace((unsigned char)list[from]))
			from++;
		while (to > from && isspace((unsigned char)list[to - 1]))
			to--;
		if (to - from == want && strncmp(list + from, name, want) == 0)
			return true;
		if (!list[n])
			return false;
		list += n + 1;
	}
}

static int resolve_drives(const struct whole *r)
{
	uint32_t a, d, commas, matched;

	for (a = 0; a < r->plan->arm_sets; a++) {
		const char *list = r->drives_named[a], *c;

		matched = 0;
		for (d = 0; d < r->plan->drives; d++) {
			r->plan->arms[a].on_drive[d] = !list[0] || name_in_list(list, r->plan->drive[d].name);
			matched += r->plan->arms[a].on_drive[d];
		}
		for (commas = 0, c = list; *c; c++)
			commas += *c == ',';
		if (list[0] && matched != commas + 1)
			return pp_fail(r->err, PP_ERR_USAGE, "%s: [arms %s] names a drive that has no "
				"section, or one twice: '%s'", r->file, r->plan->arms[a].name, list);
	}
	return 0;
}

/* "As it is found" beside a policy by name: the one would find what the other had made of it. */
static int check_policies(const struct whole *r)
{
	const struct pp_plan *plan = r->plan;
	uint32_t a, d;

	for (d = 0; d < plan->drives; d++) {
		bool named = false, unnamed = false;

		for (a = 0; a < plan->arm_sets; a++)
			*(plan->arms[a].policies ? &named : &unnamed) |= plan->arms[a].on_drive[d];
		if (named && unnamed)
			return pp_fail(r->err, PP_ERR_USAGE, "%s: drive '%s' has arms with a policy and arms "
				"without: name one in each [arms], such as policy = cache-on", r->file,
				plan->drive[d].name);
	}
	return 0;
}

static int check_drive(const struct whole *r, const struct pp_plan_drive *d)
{
	bool destroys = d->kind == PP_TARGET_RAW || d->format[0];

	if (!d->serial[0])
		return pp_fail(r->err, PP_ERR_USAGE, "%s: [drive %s] has no serial", r->file, d->name);
	if (destroys && strcmp(d->destroy, d->serial) != 0)
		return pp_fail(r->err, PP_ERR_USAGE, "%s: [drive %s] would lose all its data: say so with "
			"destroy = %s", r->file, d->name, d->serial);
	if (d->kind == PP_TARGET_RAW && (d->format[0] || d->uuid[0] || d->path[0] ||
		d->directory[0] || d->mount_options[0]))
		return pp_fail(r->err, PP_ERR_USAGE, "%s: [drive %s] is raw: format, uuid, path, directory "
			"and mount_options are for target = file", r->file, d->name);
	if (d->kind == PP_TARGET_FILE && !d->format[0] + !d->uuid[0] + !d->path[0] != 2)
		return pp_fail(r->err, PP_ERR_USAGE, "%s: [drive %s] needs one of format = FS (makes a new "
			"file system), uuid = UUID (uses one that is there) or path = FOLDER", r->file, d->name);
	return 0;
}

static int check_whole(const struct whole *r)
{
	const struct pp_plan *plan = r->plan;
	uint32_t i, k;

	if (plan->drives == 0 || plan->arm_sets == 0)
		return pp_fail(r->err, PP_ERR_USAGE, "%s: a plan needs at least one [drive NAME] and one "
			"[arms]", r->file);
	if (plan->write_min_ms > plan->write_max_ms)
		return pp_fail(r->err, PP_ERR_USAGE, "%s: write_min_ms is above write_max_ms", r->file);
	for (i = 0; i < plan->drives; i++) {
		if (check_drive(r, &plan->drive[i]) != 0)
			return -1;
		for (k = 0; k < i; k++)
			if (strcmp(plan->drive[i].serial, plan->drive[k].serial) == 0)
				return pp_fail(r->err, PP_ERR_USAGE, "%s: drives '%s' and '%s' have one serial: "
					"one method per drive and cut", r->file, plan->drive[k].name,
					plan->drive[i].name);
	}
	for (i = 0; i < plan->arm_sets; i++) {
		if (plan->arms[i].methods == 0)
			return pp_fail(r->err, PP_ERR_USAGE, "%s: [arms%s%s] names no methods", r->file,
				plan->arms[i].name[0] ? " " : "", plan->arms[i].name);
		if (plan->arms[i].random && plan->arms[i].workload != PP_OVERWRITE)
			return pp_fail(r->err, PP_ERR_USAGE, "%s: [arms%s%s]: pattern = random is for "
				"workload = overwrite", r->file, plan->arms[i].name[0] ? " " : "",
				plan->arms[i].name);
	}
	return resolve_drives(r) == 0 ? check_policies(r) : -1;
}

int pp_plan_whole(struct pp_plan *plan, const char *file,
	const char (*drives_named)[PP_PLAN_DRIVES_TEXT], struct pp_error *err)
{
	const struct whole whole = { .plan = plan, .file = file, .drives_named = drives_named,
		.err = err };

	return check_whole(&whole);
}

int pp_plan_check(const struct pp_plan *plan, struct pp_error *err)
{
	if (!plan->key_file[0])
		return pp_fail(err, PP_ERR_USAGE, "the plan has no [machine] key = FILE; make one with "
			"'plugpull key FILE' and give it to the agent too");
	if (strcmp(plan->pdu_profile, PP_BY_HAND) == 0)
		return 0;
	if (!plan->pdu_profile[0] || plan->outlets == 0)
		return pp_fail(err, PP_ERR_USAGE, "the plan has no [pdu] with profile and outlets: without "
			"a power switch that can be read back no cut is proven (profile = by-hand asks a person, "
			"and needs a drive that counts its power cycles)");
	return 0;
}
