/* SPDX-License-Identifier: MIT
 *
 * Method by policy: where the arms of a drive differ in the policy of its write cache, one look shows
 * which policy breaks which method. A row is what is equal but for the policy.
 */
#include <stdio.h>
#include <string.h>

#include "report_fields.h"
#include "src/core/policy.h"

size_t pp_report_policies(const struct report_line *lines, size_t count, const char **names,
	size_t most)
{
	size_t i, k, used = 0;

	for (k = 0; k < pp_policy_setting_count && used < most; k++)
		for (i = 0; i < count; i++)
			if (strcmp(lines[i].row.arm->key.setting, pp_policy_settings[k].name) == 0) {
				names[used++] = pp_policy_settings[k].name;
				break;
			}
	return used > 1 ? used : 0;
}

static bool same_but_policy(const struct report_line *a, const struct report_line *b)
{
	const struct pp_arm_key *x = &a->row.arm->key, *y = &b->row.arm->key;

	return strcmp(x->method, y->method) == 0 && strcmp(x->workload, y->workload) == 0 &&
		strcmp(x->pattern, y->pattern) == 0 && strcmp(x->target, y->target) == 0 &&
		/* An arm without a single trial (n/a) does not know its layout. */
		(!x->lanes || !y->lanes || (x->lanes == y->lanes && x->group == y->group &&
		x->record_bytes == y->record_bytes && x->noise == y->noise));
}

bool pp_report_policy_row(const struct report_line *lines, size_t at)
{
	size_t i;

	for (i = 0; i < at; i++)
		if (same_but_policy(&lines[i], &lines[at]))
			return false;
	return true;
}

/* The word that must not be overlooked wins a cell that two arms share. */
static int weight(enum pp_arm_verdict verdict)
{
	static const int weights[] = {
		[PP_ARM_NA] = 1, [PP_ARM_SAFE] = 2, [PP_ARM_KEEPS] = 2, [PP_ARM_LOSES] = 3,
		[PP_ARM_INCONCLUSIVE] = 4, [PP_ARM_UNSAFE] = 5,
	};

	return weights[verdict];
}

const struct report_line *pp_report_policy_cell(const struct report_line *lines, size_t count,
	size_t row, const char *setting)
{
	const struct report_line *found = NULL;
	size_t i;

	for (i = 0; i < count; i++)
		if (strcmp(lines[i].row.arm->key.setting, setting) == 0 &&
			same_but_policy(&lines[i], &lines[row]) && (!found ||
			weight(lines[i].row.arm->verdict) > weight(found->row.arm->verdict)))
			found = &lines[i];
	return found;
}

void pp_report_policy_label(const struct report_line *lines, size_t count, size_t row, char *out,
	size_t bytes)
{
	const struct pp_arm_key *key = &lines[row].row.arm->key;
	bool workloads = false, layouts = false;
	size_t i, used;

	for (i = 0; i < count; i++) {
		const struct pp_arm_key *other = &lines[i].row.arm->key;

		workloads |= strcmp(other->workload, key->workload) != 0;
		layouts |= i != row && strcmp(other->method, key->method) == 0 &&
			strcmp(other->workload, key->workload) == 0 &&
			!same_but_policy(&lines[i], &lines[row]);
	}
	snprintf(out, bytes, "%s%s%s", key->method, workloads ? ", " : "", workloads ? key->workload : "");
	used = strlen(out);
	if (layouts && used < bytes)
		snprintf(out + used, bytes - used, ", %s, %u lane%s of %u, %u bytes%s", key->pattern,
			key->lanes, key->lanes == 1 ? "" : "s", key->group, key->record_bytes,
			key->noise ? ", noise" : "");
}
