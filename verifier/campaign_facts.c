/* SPDX-License-Identifier: MIT
 *
 * target.json: what the campaign set out to do, so that its folder can be judged without the plan.
 */
#include "evidence.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "src/core/text.h"

static const struct {
	const char *key;
	size_t at;
	int bytes;
} texts[] = {
#define TEXT(m) { #m, offsetof(struct pp_campaign_facts, m), \
	(int)sizeof(((struct pp_campaign_facts *)0)->m) }
	TEXT(name), TEXT(tool_version), TEXT(tool_commit), TEXT(tool_sha256), TEXT(started),
	TEXT(agent_version), TEXT(agent_commit), TEXT(agent_sha256), TEXT(kernel),
	TEXT(power_switch), TEXT(outlets), TEXT(operator), TEXT(note),
#undef TEXT
};
#define TEXTS (sizeof(texts) / sizeof(texts[0]))

static json_t *planned_json(const struct pp_planned_arm *arm)
{
	json_t *o = json_object();

	json_object_set_new(o, "serial", json_string(arm->serial));
	json_object_set_new(o, "method", json_string(arm->method));
	json_object_set_new(o, "workload", json_string(arm->workload));
	json_object_set_new(o, "target", json_string(arm->target));
	json_object_set_new(o, "pattern", json_string(arm->pattern));
	json_object_set_new(o, "setting", json_string(arm->setting));
	json_object_set_new(o, "optional", json_boolean(arm->optional));
	json_object_set_new(o, "na_reason", json_string(arm->na_reason));
	return o;
}

int pp_campaign_facts_save(const struct pp_campaign_facts *facts, const char *folder,
	struct pp_error *err)
{
	json_t *o = json_object(), *list = json_array(), *serials = json_array();
	char path[4352];
	size_t i;

	json_object_set_new(o, "format", json_integer(1));
	for (i = 0; i < TEXTS; i++)
		json_object_set_new(o, texts[i].key,
			json_string((const char *)facts + texts[i].at));
	json_object_set_new(o, "criterion", json_string(facts->criterion.text));
	json_object_set_new(o, "unproven_wiring", json_boolean(facts->unproven_wiring));
	json_object_set_new(o, "simulated", json_boolean(facts->simulated));
	if (facts->stop_known) {
		json_object_set_new(o, "stop_at_first_loss",
			json_boolean(facts->stop_at_first_loss));
		json_object_set_new(o, "cuts_fixed", json_integer(facts->cuts_fixed));
	}
	for (i = 0; i < facts->planned_count; i++)
		json_array_append_new(list, planned_json(&facts->planned[i]));
	json_object_set_new(o, "planned", list);
	for (i = 0; i < facts->protected_count; i++)
		json_array_append_new(serials, json_string(facts->protected_serial[i]));
	json_object_set_new(o, "cache_protected", serials);
	pp_text_format(path, sizeof(path), "%s/target.json", folder);
	return pp_json_save(o, path, err);
}

static void get_planned(struct pp_json_in *in, const json_t *list, struct pp_campaign_facts *facts)
{
	size_t i, n = json_array_size(list);

	facts->planned = calloc(n + 1, sizeof(*facts->planned));
	for (i = 0; in->ok && facts->planned && i < n; i++) {
		struct pp_planned_arm *arm = &facts->planned[i];

		in->object = json_array_get(list, i);
		pp_json_str(in, "serial", arm->serial, sizeof(arm->serial));
		pp_json_str(in, "method", arm->method, sizeof(arm->method));
		pp_json_str(in, "workload", arm->workload, sizeof(arm->workload));
		pp_json_str(in, "target", arm->target, sizeof(arm->target));
		pp_json_str(in, "pattern", arm->pattern, sizeof(arm->pattern));
		if (json_object_get(in->object, "setting")) /* since policy is a factor */
			pp_json_str(in, "setting", arm->setting, sizeof(arm->setting));
		arm->optional = pp_json_bool(in, "optional");
		pp_json_str(in, "na_reason", arm->na_reason, sizeof(arm->na_reason));
		facts->planned_count++;
	}
}

static int get_protected(struct pp_json_in *in, const json_t *list,
	struct pp_campaign_facts *facts)
{
	size_t i, n = json_array_size(list);

	facts->protected_serial = calloc(n + 1, sizeof(*facts->protected_serial));
	for (i = 0; facts->protected_serial && i < n; i++) {
		const char *serial = json_string_value(json_array_get(list, i));

		if (!serial || strlen(serial) >= PP_TEXT_SHORT)
			return pp_fail(in->err, PP_ERR_EVIDENCE, "'%s': bad serial in \"cache_protected\"",
				in->where);
		strcpy(facts->protected_serial[i], serial);
		facts->protected_count++;
	}
	return 0;
}

static int get_all(struct pp_json_in *in, struct pp_campaign_facts *facts)
{
	const json_t *planned, *serials;
	char criterion[64];
	size_t i;

	for (i = 0; i < TEXTS; i++)
		pp_json_str(in, texts[i].key, (char *)facts + texts[i].at, texts[i].bytes);
	pp_json_str(in, "criterion", criterion, sizeof(criterion));
	facts->unproven_wiring = pp_json_bool(in, "unproven_wiring");
	facts->simulated = json_object_get(in->object, "simulated") && pp_json_bool(in, "simulated");
	facts->stop_known = json_object_get(in->object, "stop_at_first_loss") != NULL;
	if (facts->stop_known) {
		facts->stop_at_first_loss = pp_json_bool(in, "stop_at_first_loss");
		facts->cuts_fixed = (uint32_t)pp_json_int(in, "cuts_fixed", 0, 1000000);
	}
	planned = pp_json_array(in, "planned", 65536);
	serials = pp_json_array(in, "cache_protected", 64);
	if (!in->ok)
		return -1;
	if (pp_criterion_parse(criterion, &facts->criterion, in->err) != 0)
		return pp_fail_within(in->err, "'%s'", in->where);
	if (get_protected(in, serials, facts) != 0)
		return -1;
	get_planned(in, planned, facts);
	if (!facts->planned || !facts->protected_serial)
		return pp_fail_os(in->err, ENOMEM, "cannot load '%s'", in->where);
	return in->ok ? 0 : -1;
}

int pp_campaign_facts_load(struct pp_campaign_facts *facts, const char *folder,
	struct pp_error *err)
{
	char path[4352];
	struct pp_json_in in = { .where = path, .err = err, .ok = true };
	json_t *o;
	int rc;

	memset(facts, 0, sizeof(*facts));
	pp_text_format(path, sizeof(path), "%s/target.json", folder);
	o = pp_json_load(path, err);
	if (!o)
		return -1;
	in.object = o;
	rc = get_all(&in, facts);
	json_decref(o);
	if (rc != 0)
		pp_campaign_facts_release(facts);
	return rc;
}

void pp_campaign_facts_release(struct pp_campaign_facts *facts)
{
	free(facts->planned);
	free(facts->protected_serial);
	memset(facts, 0, sizeof(*facts));
}
