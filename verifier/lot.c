/* SPDX-License-Identifier: MIT
 *
 * Method: sort all arms by key without the serial, then by serial; neighbours that are equal are one
 * lot, and within it one drive.
 */
#include "lot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_fields.h"

struct entry {
	struct pp_arm_key key;            /* without the serial */
	const struct pp_verdict_arm *arm;
	size_t place;                     /* a stable order */
};

static int by_lot(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	const struct pp_arm_key *k = &x->key, *l = &y->key;
	const struct { const char *a, *b; } texts[] = {
		{ k->method, l->method }, { k->workload, l->workload }, { k->pattern, l->pattern }, { k->target, l->target }, { k->fs, l->fs },
		{ k->mount_options, l->mount_options }, { k->policy, l->policy }, { k->setting, l->setting },
		{ k->kernel, l->kernel }, { k->cut_kind, l->cut_kind } };
	const struct { uint32_t a, b; } numbers[] = { { k->lanes, l->lanes }, { k->group, l->group },
		{ k->record_bytes, l->record_bytes }, { k->noise, l->noise } };
	bool apart = x->arm->promise != PP_PROMISE_MEDIA;
	size_t i;
	int order;

	order = strcmp(k->model, l->model);
	if (order == 0)
		order = strcmp(k->firmware, l->firmware);
	if (order)
		return order;
	if (apart != (y->arm->promise != PP_PROMISE_MEDIA))
		return apart ? 1 : -1;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		order = strcmp(texts[i].a, texts[i].b);
		if (order)
			return order;
	}
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].a != numbers[i].b)
			return numbers[i].a < numbers[i].b ? -1 : 1;
	order = strcmp(x->arm->key.serial, y->arm->key.serial);
	return order ? order : (x->place > y->place) - (x->place < y->place);
}

static bool has_trials(const struct pp_verdict_arm *arm)
{
	return arm->verdict != PP_ARM_NA && arm->cuts_clean + arm->cuts_loss + arm->cuts_void +
		arm->cuts_open + arm->cuts_unexposed + arm->cuts_collateral > 0;
}

static void count(struct pp_lot_counts *cuts, const struct pp_verdict_arm *arm)
{
	uint32_t lost;

	cuts->clean += arm->cuts_clean;
	cuts->loss += arm->cuts_loss;
	cuts->open += arm->cuts_open + arm->cuts_void_missing;
	cuts->voids += arm->cuts_void - arm->cuts_void_missing;
	lost = cuts->loss + cuts->open;
	cuts->loss_bound_95 = pp_stats_bound_upper(lost, lost + cuts->clean, 0.95);
}

static enum pp_arm_verdict worse(enum pp_arm_verdict a, enum pp_arm_verdict b)
{
	static const int rank[] = { [PP_ARM_NA] = 0, [PP_ARM_KEEPS] = 1, [PP_ARM_SAFE] = 2,
		[PP_ARM_INCONCLUSIVE] = 3, [PP_ARM_LOSES] = 4, [PP_ARM_UNSAFE] = 5 };

	return rank[a] >= rank[b] ? a : b;
}

/* The entries of one lot, which stand together. */
static int make_lot(struct pp_lot *lot, const struct entry *entries, size_t n)
{
	size_t i;

	memset(lot, 0, sizeof(*lot));
	lot->key = entries[0].key;
	lot->promise = entries[0].arm->promise;
	lot->control = entries[0].arm->control;
	lot->drives = calloc(n, sizeof(*lot->drives));
	if (!lot->drives)
		return -1;
	for (i = 0; i < n; i++) {
		const struct pp_verdict_arm *arm = entries[i].arm;
		struct pp_lot_drive *drive = &lot->drives[lot->drive_count];

		if (i == 0 || strcmp(arm->key.serial, entries[i - 1].arm->key.serial) != 0) {
			memcpy(drive->serial, arm->key.serial, sizeof(drive->serial));
			drive->verdict = arm->verdict;
			lot->drive_count++;
		} else {
			drive--;
		}
		drive->verdict = worse(drive->verdict, arm->verdict);
		drive->campaigns++;
		lot->campaigns++;
		count(&drive->cuts, arm);
		count(&lot->cuts, arm);
	}
	for (i = 0; i < lot->drive_count; i++)
		lot->drives_lost += lot->drives[i].cuts.loss > 0;
	lot->drive_bound_95 = pp_stats_bound_upper((uint32_t)lot->drives_lost,
		(uint32_t)lot->drive_count, 0.95);
	return 0;
}

static size_t same_lot(const struct entry *entries, size_t n)
{
	size_t i = 1;

	while (i < n && pp_arm_key_equal(&entries[0].key, &entries[i].key))
		i++;
	return i;
}

int pp_lots_make(struct pp_lots *lots, const struct pp_verdict *const *verdicts, size_t count,
	struct pp_error *err)
{
	struct entry *entries;
	size_t i, k, n = 0;
	int rc = 0;

	memset(lots, 0, sizeof(*lots));
	for (i = 0; i < count; i++)
		n += verdicts[i]->arm_count;
	entries = calloc(n + 1, sizeof(*entries));
	lots->list = calloc(n + 1, sizeof(*lots->list));
	for (i = 0, n = 0; entries && i < count; i++)
		for (k = 0; k < verdicts[i]->arm_count; k++) {
			struct entry *e = &entries[n];

			if (!has_trials(&verdicts[i]->arms[k]))
				continue;
			e->arm = &verdicts[i]->arms[k];
			e->key = e->arm->key;
			memset(e->key.serial, 0, sizeof(e->key.serial));
			e->place = n++;
		}
	if (!entries || !lots->list)
		rc = -1;
	else
		qsort(entries, n, sizeof(*entries), by_lot);
	for (i = 0; rc == 0 && i < n; i += k) {
		k = same_lot(entries + i, n - i);
		if (k > 1)
			rc = make_lot(&lots->list[lots->count++], entries + i, k);
	}
	free(entries);
	return rc == 0 ? 0 : pp_fail(err, PP_ERR_SYSTEM, "out of memory for the lots");
}

void pp_lots_release(struct pp_lots *lots)
{
	size_t i;

	for (i = 0; lots->list && i < lots->count; i++)
		free(lots->list[i].drives);
	free(lots->list);
	memset(lots, 0, sizeof(*lots));
}

/* ---- words -------------------------------------------------------------------------------- */

void pp_lot_sentence(const struct pp_lot *lot, char *out, size_t bytes)
{
	const struct pp_lot_counts *c = &lot->cuts;
	char share[16], open[64] = "";

	pp_report_share(share, sizeof(share), c->loss_bound_95);
	if (c->open)
		snprintf(open, sizeof(open), ", %u open and counted as lost", c->open);
	snprintf(out, bytes, "%zu drive%s, %zu with a loss; lost in %u of %u cuts%s: at most %s of cuts "
		"lose (95 %%), which assumes that the drives are alike%s", lot->drive_count,
		lot->drive_count == 1 ? "" : "s", lot->drives_lost, c->loss, c->loss + c->clean + c->open,
		open, share, lot->drives_lost && lot->drives_lost < lot->drive_count ?
		"; some lost and some did not, so this may be true of none of them" : "");
}

void pp_lot_drives_sentence(const struct pp_lot *lot, char *out, size_t bytes)
{
	char share[16];

	pp_report_share(share, sizeof(share), lot->drive_bound_95);
	snprintf(out, bytes, "of drives: at most %s of such drives lose at all in as many cuts (95 %%), "
		"if these were drawn at random", share);
}

static void add_lot(struct pp_buf *out, const struct pp_lot *lot)
{
	char text[1024], cuts[64], share[16];
	size_t i;

	snprintf(text, sizeof(text), "%s, firmware %s: %s", lot->key.model[0] ? lot->key.model :
		"(no model)", lot->key.firmware[0] ? lot->key.firmware : "(none)", lot->key.method);
	pp_report_wrapped(out, "lot ", text);
	pp_report_conditions(&lot->key, text, sizeof(text));
	pp_report_wrapped(out, "", text);
	pp_lot_sentence(lot, text, sizeof(text));
	pp_report_wrapped(out, "  - ", text);
	pp_lot_drives_sentence(lot, text, sizeof(text));
	pp_report_wrapped(out, "  - ", text);
	pp_buf_addf(out, "%-32s %9s %15s %6s %s\n", "drive", "campaigns", "c/l/v/o", "bound",
		lot->promise == PP_PROMISE_MEDIA ? "verdict" : "result");
	for (i = 0; i < lot->drive_count; i++) {
		const struct pp_lot_drive *d = &lot->drives[i];
		char serial[PP_TEXT_SHORT];

		pp_report_ascii(serial, sizeof(serial), d->serial[0] ? d->serial : "(no serial)");
		snprintf(cuts, sizeof(cuts), "%u/%u/%u/%u", d->cuts.clean, d->cuts.loss, d->cuts.voids,
			d->cuts.open);
		pp_report_share(share, sizeof(share), d->cuts.loss_bound_95);
		if (strlen(serial) > 32)
			pp_buf_addf(out, "%s\n%-32s", serial, "");
		else
			pp_buf_addf(out, "%-32s", serial);
		pp_buf_addf(out, " %9u %15s %6s %s\n", d->campaigns, cuts, share,
			pp_arm_verdict_name(d->verdict));
	}
}

int pp_lots_text(const struct pp_lots *lots, struct pp_buf *out, struct pp_error *err)
{
	size_t i;

	for (i = 0; i < lots->count; i++) {
		pp_buf_addf(out, "%s", i ? "\n" : "");
		add_lot(out, &lots->list[i]);
	}
	return out->failed ? pp_fail(err, PP_ERR_SYSTEM, "cannot print the lots: out of memory") : 0;
}

/* ---- JSON --------------------------------------------------------------------------------- */

static json_t *text_value(const char *text)
{
	char ascii[PP_FIGURE_BYTES];

	return json_string(pp_report_ascii(ascii, sizeof(ascii), text));
}

static void put_counts(json_t *o, const struct pp_lot_counts *c)
{
	json_object_set_new(o, "cuts_clean", json_integer(c->clean));
	json_object_set_new(o, "cuts_loss", json_integer(c->loss));
	json_object_set_new(o, "cuts_void", json_integer(c->voids));
	json_object_set_new(o, "cuts_open", json_integer(c->open));
	json_object_set_new(o, "loss_bound_95", json_real(c->loss_bound_95));
}

static json_t *lot_json(const struct pp_lot *lot)
{
	json_t *o = json_object(), *drives = json_array();
	char conditions[1024];
	size_t i;

	for (i = 0; i < lot->drive_count; i++) {
		json_t *d = json_object();

		json_object_set_new(d, "serial", text_value(lot->drives[i].serial));
		json_object_set_new(d, "campaigns", json_integer(lot->drives[i].campaigns));
		put_counts(d, &lot->drives[i].cuts);
		json_object_set_new(d, "verdict",
			json_string(pp_arm_verdict_name(lot->drives[i].verdict)));
		json_array_append_new(drives, d);
	}
	pp_report_conditions(&lot->key, conditions, sizeof(conditions));
	json_object_set_new(o, "model", text_value(lot->key.model));
	json_object_set_new(o, "firmware", text_value(lot->key.firmware));
	json_object_set_new(o, "method", text_value(lot->key.method));
	json_object_set_new(o, "workload", text_value(lot->key.workload));
	json_object_set_new(o, "conditions", text_value(conditions));
	json_object_set_new(o, "promise", json_string(pp_promise_name(lot->promise)));
	json_object_set_new(o, "drives", json_integer((json_int_t)lot->drive_count));
	json_object_set_new(o, "drives_with_loss", json_integer((json_int_t)lot->drives_lost));
	put_counts(o, &lot->cuts);
	json_object_set_new(o, "assumes", json_string("the drives are alike"));
	json_object_set_new(o, "drive_bound_95", json_real(lot->drive_bound_95));
	json_object_set_new(o, "per_drive", drives);
	return o;
}

json_t *pp_lots_json(const struct pp_lots *lots)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; list && i < lots->count; i++)
		if (json_array_append_new(list, lot_json(&lots->list[i])) != 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}
