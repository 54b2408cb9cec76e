/* SPDX-License-Identifier: MIT
 *
 * judgement.json: what was found, with the first losses named so that a person can go and look.
 */
#include "judge.h"

#include <stdio.h>

#include "json.h"

#define LOSSES_LISTED 64

static json_t *losses_of(const struct pp_oracle_result *oracle)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < oracle->losses && i < LOSSES_LISTED; i++) {
		const struct pp_loss *loss = &oracle->loss[i];
		json_t *row = json_object();

		json_object_set_new(row, "lane", json_integer(loss->lane));
		json_object_set_new(row, "slot", json_integer((int64_t)loss->slot));
		json_object_set_new(row, "offset_bytes", json_integer((int64_t)loss->offset));
		json_object_set_new(row, "seq", json_integer((int64_t)loss->seq));
		json_object_set_new(row, "class", json_string(pp_loss_class_name(loss->class)));
		json_object_set_new(row, "witness", json_string(loss->seq == 0 ? "base"
			: loss->by_ack ? "by ack" : "by order"));
		json_object_set_new(row, "unserializable", json_boolean(loss->unserializable));
		json_object_set_new(row, "unstable", json_boolean(loss->unstable));
		json_array_append_new(list, row);
	}
	return list;
}

static json_t *classes_of(const struct pp_trial *trial)
{
	json_t *object = json_object();
	int i;

	for (i = 0; i < PP_LOSS_CLASSES; i++)
		if (trial->lost[i])
			json_object_set_new(object, pp_loss_class_name((enum pp_loss_class)i),
				json_integer((int64_t)trial->lost[i]));
	return object;
}

static json_t *unknown_runs_of(const struct pp_oracle_result *oracle)
{
	char text[PP_RUN_ID_TEXT_BYTES];
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < oracle->unknown_runs && i < 16; i++) {
		pp_run_id_format(&oracle->unknown_run[i], text);
		json_array_append_new(list, json_string(text));
	}
	return list;
}

static json_t *within_of(const struct pp_trial *trial)
{
	json_t *object = json_object();
	char key[16];
	int i;

	for (i = 0; i < PP_WITHIN; i++) {
		snprintf(key, sizeof(key), "%u", pp_within_ms[i]);
		json_object_set_new(object, key, json_integer((int64_t)trial->acked_within[i]));
	}
	return object;
}

/* M4.8: records in flight that arrived at all, and of those the torn, by the size of the block. */
static json_t *tears_of(const struct pp_trial *t)
{
	json_t *object = json_object();
	char key[16];
	int i;

	json_object_set_new(object, "in_flight", json_integer((int64_t)t->tears_in_flight));
	for (i = 0; i < PP_TEAR_UNITS; i++) {
		if (!t->torn_at[i])
			continue;
		snprintf(key, sizeof(key), "%d", 512 << i);
		json_object_set_new(object, key, json_integer((int64_t)t->torn_at[i]));
	}
	return object;
}

static void put_trial(json_t *o, const struct pp_trial *t)
{
	json_object_set_new(o, "cut", json_integer(t->cut));
	json_object_set_new(o, "serial", json_string(t->key.serial));
	json_object_set_new(o, "method", json_string(t->key.method));
	json_object_set_new(o, "workload", json_string(t->key.workload));
	json_object_set_new(o, "policy_setting", json_string(t->key.setting));
	json_object_set_new(o, "outcome", json_string(pp_trial_outcome_name(t->outcome)));
	json_object_set_new(o, "reason", json_string(t->reason));
	json_object_set_new(o, "resolution", json_string(t->resolution));
	json_object_set_new(o, "swapped", json_boolean(t->swapped));
	json_object_set_new(o, "proven", json_boolean(t->proven));
	json_object_set_new(o, "exposed", json_boolean(t->exposed));
	json_object_set_new(o, "unexposed_reason", json_string(t->unexposed_reason));
	json_object_set_new(o, "records_acked", json_integer((int64_t)t->records_acked));
	json_object_set_new(o, "records_acked_within_ms", within_of(t));
	json_object_set_new(o, "records_lost", json_integer((int64_t)t->records_lost));
	json_object_set_new(o, "lost_by_class", classes_of(t));
	json_object_set_new(o, "lost_age_ns_min", json_integer(t->lost_age_ns_min));
	json_object_set_new(o, "lost_age_ns_max", json_integer(t->lost_age_ns_max));
	json_object_set_new(o, "unserializable", json_boolean(t->unserializable));
	json_object_set_new(o, "collateral", json_boolean(t->collateral));
	json_object_set_new(o, "fs_damaged", json_boolean(t->fs_damaged));
	json_object_set_new(o, "policy_lost", json_boolean(t->policy_lost));
	json_object_set_new(o, "drive_lost_power", json_boolean(t->drive_lost_power));
	json_object_set_new(o, "drive_power_witness", json_string(t->drive_power_witness));
	json_object_set_new(o, "noise_lost", json_boolean(t->noise_lost));
	json_object_set_new(o, "kernel_asked", t->asked == PP_ASKED_UNKNOWN ? json_null()
		: json_boolean(t->asked == PP_ASKED));
	json_object_set_new(o, "via_flush", json_boolean(t->via_flush));
	json_object_set_new(o, "tears_by_block_bytes", tears_of(t));
}

static void put_oracle(json_t *o, const struct pp_oracle_result *r)
{
	json_object_set_new(o, "slots_checked", json_integer((int64_t)r->slots_checked));
	json_object_set_new(o, "lost_by_ack", json_integer((int64_t)r->lost_acked));
	json_object_set_new(o, "lost_by_order", json_integer((int64_t)r->lost_by_order));
	json_object_set_new(o, "lost_of_base", json_integer((int64_t)r->lost_base));
	json_object_set_new(o, "torn_though_untorn_promised", json_integer((int64_t)r->lost_untorn));
	json_object_set_new(o, "unstable", json_integer((int64_t)r->unstable));
	json_object_set_new(o, "in_flight_seen", json_integer((int64_t)r->in_flight_seen));
	json_object_set_new(o, "in_flight_torn", json_integer((int64_t)r->in_flight_torn));
	json_object_set_new(o, "in_flight_unreadable",
		json_integer((int64_t)r->in_flight_unreadable));
	json_object_set_new(o, "exposed_stale_blocks", json_boolean(r->exposed_stale));
	json_object_set_new(o, "unknown_runs", unknown_runs_of(r));
	json_object_set_new(o, "losses", losses_of(r));
}

int pp_judgement_save(const struct pp_judgement *j, const char *path, struct pp_error *err)
{
	json_t *o = json_object();

	json_object_set_new(o, "format", json_integer(1));
	put_trial(o, &j->trial);
	json_object_set_new(o, "t_last_ns", json_integer(j->t_last_ns));
	json_object_set_new(o, "t_last_ack_ns", json_integer(j->t_last_ack_ns));
	json_object_set_new(o, "exposure_limit_ns", json_integer(j->exposure_limit_ns));
	json_object_set_new(o, "syncs", json_integer((int64_t)j->syncs));
	json_object_set_new(o, "flushes", json_integer((int64_t)j->flushes));
	json_object_set_new(o, "noise_records_acked", json_integer((int64_t)j->noise_acked));
	json_object_set_new(o, "noise_records_lost", json_integer((int64_t)j->noise_lost));
	put_oracle(o, &j->oracle);
	return pp_json_save(o, path, err);
}
