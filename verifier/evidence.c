/* SPDX-License-Identifier: MIT */
#include "evidence.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "json.h"
#include "src/core/file.h"
#include "src/core/text.h"

#define TRIALS_MAX   1000000
#define NOISE_RANGES 16 /* of lost noise that are read again, */
#define NOISE_SLOTS  64 /* so many slots of each */

struct loader {
	struct pp_evidence *out;
	bool write;
	struct pp_error *err;
};

static struct pp_counter_history *history_of(struct loader *l, const char *serial)
{
	struct pp_drive_history *grown;
	size_t i;

	for (i = 0; i < l->out->histories; i++)
		if (strcmp(l->out->history[i].serial, serial) == 0)
			return &l->out->history[i].counters;
	grown = realloc(l->out->history, (l->out->histories + 1) * sizeof(*grown));
	if (!grown) {
		pp_fail_os(l->err, ENOMEM, "cannot load evidence");
		return NULL;
	}
	l->out->history = grown;
	memset(&l->out->history[l->out->histories], 0, sizeof(*grown));
	pp_text_copy(l->out->history[l->out->histories].serial, PP_TEXT_SHORT, serial);
	return &l->out->history[l->out->histories++].counters;
}

static struct pp_trial *add_trial(struct loader *l)
{
	struct pp_trial *grown;

	if (l->out->trial_count == l->out->trial_room) {
		size_t room = l->out->trial_room ? 2 * l->out->trial_room : 64;

		grown = room <= TRIALS_MAX ? realloc(l->out->trials, room * sizeof(*grown)) : NULL;
		if (!grown) {
			pp_fail_os(l->err, ENOMEM, "cannot load evidence");
			return NULL;
		}
		l->out->trials = grown;
		l->out->trial_room = room;
	}
	return &l->out->trials[l->out->trial_count++];
}

/* Folders of the drives of one cut, sorted. */
static int drives_of(const char *path, char (*names)[256], size_t max, struct pp_error *err)
{
	struct dirent **list;
	int n = scandir(path, &list, NULL, alphasort), i, count = 0;

	if (n < 0)
		return pp_fail_os(err, errno, "cannot read folder '%s'", path);
	for (i = 0; i < n; i++) {
		char sub[4608];
		struct stat st;

		pp_text_format(sub, sizeof(sub), "%s/%s/run.json", path, list[i]->d_name);
		if (list[i]->d_name[0] != '.' && stat(sub, &st) == 0 && (size_t)count < max)
			pp_text_copy(names[count++], 256, list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return count;
}

static int judge_one(struct loader *l, struct pp_case *c, const char *name,
	const struct pp_witness *witness)
{
	struct pp_counter_history *history = history_of(l, c->run.serial);
	struct pp_judgement j;
	struct pp_trial *trial;
	char path[4352];
	int rc = 0;

	if (!history)
		return -1;
	if (pp_resolution_load(l->out->folder, c->cut.number, name, &c->run, l->err) != 0)
		return -1;
	if (pp_judge_case(c, witness, history, &j, l->err) != 0)
		return -1;
	pp_text_format(path, sizeof(path), "%s/judgement.json", c->path);
	if (l->write)
		rc = pp_judgement_save(&j, path, l->err);
	trial = add_trial(l);
	if (trial)
		*trial = j.trial;
	pp_judgement_release(&j);
	return trial ? rc : -1;
}

/* All drives of a cut share what their ledgers saw of the machine. */
static int witness_cut(struct loader *l, uint32_t cut, char (*names)[256], int drives,
	struct pp_witness *witness)
{
	static const char *const ledgers[] = { "acks.ledger", "noise.ledger" };
	int i;

	memset(witness, 0, sizeof(*witness));
	for (i = 0; i < 2 * drives; i++) {
		char path[4608];
		struct pp_ledger_data ledger;
		struct stat st;

		pp_text_format(path, sizeof(path), "%s/cuts/%04u/%s/%s", l->out->folder, cut, names[i / 2],
			ledgers[i % 2]);
		if (stat(path, &st) != 0)
			continue;
		if (pp_ledger_load(path, &ledger, l->err) != 0)
			return -1;
		pp_witness_add(witness, &ledger);
		pp_ledger_data_release(&ledger);
	}
	return 0;
}

/*
 * A run that was ordered has its run.json. Only a cut that never came to its runs may have drives'
 * folders without one: what was taken away must not be forgotten.
 */
static int check_runs(struct loader *l, uint32_t cut, const char *path, int drives)
{
	struct pp_cut_facts facts;
	char sub[4608];
	struct dirent **list;
	struct stat st;
	int n, i, folders = 0;

	n = scandir(path, &list, NULL, NULL);
	if (n < 0)
		return pp_fail_os(l->err, errno, "cannot read folder '%s'", path);
	for (i = 0; i < n; i++) {
		pp_text_format(sub, sizeof(sub), "%s/%s", path, list[i]->d_name);
		folders += list[i]->d_name[0] != '.' && stat(sub, &st) == 0 && S_ISDIR(st.st_mode);
		free(list[i]);
	}
	free(list);
	pp_text_format(sub, sizeof(sub), "%s/cut.json", path);
	if (stat(sub, &st) != 0 && drives == 0 && folders == 0)
		return 0; /* the folder was made, and nothing more */
	if (pp_cut_facts_load(&facts, sub, l->err) != 0)
		return -1;
	if (folders == drives && drives > 0 && (!facts.runs || !facts.t_run_ns ||
		(uint32_t)drives == facts.runs))
		return 0;
	if (strcmp(facts.state, "preparing") == 0 || strcmp(facts.state, "abandoned") == 0)
		return 0;
	return pp_fail(l->err, PP_ERR_EVIDENCE, "cut %u came to '%s', but a trial or its run.json is "
		"missing from '%s': evidence with holes is not judged", cut, facts.state, path);
}

static int load_cut(struct loader *l, uint32_t cut)
{
	char path[4352], names[64][256];
	struct pp_witness witness;
	int drives, i;

	pp_text_format(path, sizeof(path), "%s/cuts/%04u", l->out->folder, cut);
	drives = drives_of(path, names, 64, l->err);
	if (drives < 0 || check_runs(l, cut, path, drives) != 0 ||
		witness_cut(l, cut, names, drives, &witness) != 0)
		return -1;
	for (i = 0; i < drives; i++) {
		struct pp_case *c = malloc(sizeof(*c));
		int rc;

		if (!c)
			return pp_fail_os(l->err, ENOMEM, "cannot load evidence");
		rc = pp_case_load(c, l->out->folder, cut, names[i], l->err);
		if (rc == 0)
			rc = judge_one(l, c, names[i], &witness);
		pp_case_release(c);
		free(c);
		if (rc != 0)
			return -1;
	}
	return 0;
}

static int count_cuts(struct loader *l)
{
	char path[4352];
	struct dirent *entry;
	DIR *dir;

	pp_text_format(path, sizeof(path), "%s/cuts", l->out->folder);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : pp_fail_os(l->err, errno, "cannot read folder '%s'", path);
	while ((entry = readdir(dir))) {
		char *end;
		unsigned long n = strtoul(entry->d_name, &end, 10);

		if (entry->d_name[0] != '.' && *end == '\0' && n > l->out->cuts && n <= 999999)
			l->out->cuts = (uint32_t)n;
	}
	closedir(dir);
	return 0;
}

/*
 * A cut that left no run behind was never begun and is no trial; a hole in the numbers is a folder
 * that somebody took away, and what it held must not be forgotten.
 */
static int load_cuts(struct loader *l)
{
	uint32_t cut;

	if (count_cuts(l) != 0)
		return -1;
	for (cut = 1; cut <= l->out->cuts; cut++) {
		char path[4352];
		struct stat st;

		pp_text_format(path, sizeof(path), "%s/cuts/%04u", l->out->folder, cut);
		if (stat(path, &st) != 0)
			return pp_fail(l->err, PP_ERR_EVIDENCE, "cut %u is missing from '%s': evidence with "
				"holes is not judged", cut, l->out->folder);
		if (load_cut(l, cut) != 0)
			return -1;
	}
	return 0;
}

static int load_speed(struct loader *l)
{
	char path[4352];
	struct pp_json_in in = { .where = path, .err = l->err, .ok = true };
	const json_t *rows;
	struct stat st;
	json_t *o;
	size_t i;

	pp_text_format(path, sizeof(path), "%s/matrix.json", l->out->folder);
	if (stat(path, &st) != 0)
		return 0;
	o = pp_json_load(path, l->err);
	if (!o)
		return -1;
	in.object = o;
	rows = pp_json_array(&in, "rows", 4096);
	l->out->speed = calloc(json_array_size(rows) + 1, sizeof(*l->out->speed));
	for (i = 0; in.ok && l->out->speed && i < json_array_size(rows); i++) {
		struct pp_speed_row *row = &l->out->speed[i];

		in.object = json_array_get(rows, i);
		pp_json_str(&in, "serial", row->serial, sizeof(row->serial));
		pp_json_str(&in, "method", row->method, sizeof(row->method));
		pp_json_str(&in, "workload", row->workload, sizeof(row->workload));
		if (json_object_get(in.object, "setting")) /* since policy is a factor */
			pp_json_str(&in, "setting", row->setting, sizeof(row->setting));
		row->ops_per_s = json_number_value(json_object_get(in.object, "ops_per_s"));
		row->latency_ns_p50 = pp_json_int(&in, "latency_ns_p50", 0, INT64_MAX);
		row->latency_ns_p99 = pp_json_int(&in, "latency_ns_p99", 0, INT64_MAX);
		row->flushes_per_op = json_number_value(json_object_get(in.object, "flushes_per_op"));
		l->out->speed_count++;
	}
	json_decref(o);
	return in.ok ? 0 : -1;
}

int pp_speed_save(const struct pp_speed_row *rows, size_t count, const char *folder,
	struct pp_error *err)
{
	json_t *o = json_object(), *list = json_array();
	char path[4352];
	size_t i;

	for (i = 0; i < count; i++) {
		json_t *row = json_object();

		json_object_set_new(row, "serial", json_string(rows[i].serial));
		json_object_set_new(row, "method", json_string(rows[i].method));
		json_object_set_new(row, "workload", json_string(rows[i].workload));
		json_object_set_new(row, "setting", json_string(rows[i].setting));
		json_object_set_new(row, "ops_per_s", json_real(rows[i].ops_per_s));
		json_object_set_new(row, "latency_ns_p50", json_integer(rows[i].latency_ns_p50));
		json_object_set_new(row, "latency_ns_p99", json_integer(rows[i].latency_ns_p99));
		json_object_set_new(row, "flushes_per_op", json_real(rows[i].flushes_per_op));
		json_array_append_new(list, row);
	}
	json_object_set_new(o, "format", json_integer(1));
	json_object_set_new(o, "rows", list);
	pp_text_format(path, sizeof(path), "%s/matrix.json", folder);
	return pp_json_save(o, path, err);
}

int pp_evidence_load(struct pp_evidence *evidence, const char *folder, bool write,
	struct pp_error *err)
{
	struct loader l = { .out = evidence, .write = write, .err = err };
	int rc;

	memset(evidence, 0, sizeof(*evidence));
	if (strlen(folder) >= sizeof(evidence->folder) - 600)
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", folder);
	strcpy(evidence->folder, folder);
	rc = pp_campaign_facts_load(&evidence->facts, folder, err);
	if (rc == 0)
		rc = load_speed(&l);
	if (rc == 0)
		rc = load_cuts(&l);
	if (rc != 0)
		pp_evidence_release(evidence);
	return rc;
}

void pp_evidence_release(struct pp_evidence *evidence)
{
	pp_campaign_facts_release(&evidence->facts);
	free(evidence->speed);
	free(evidence->trials);
	free(evidence->history);
	memset(evidence, 0, sizeof(*evidence));
}

int pp_evidence_add_cut(struct pp_evidence *evidence, uint32_t cut, bool write,
	struct pp_error *err)
{
	struct loader l = { .out = evidence, .write = write, .err = err };

	if (load_cut(&l, cut) != 0)
		return -1;
	if (cut > evidence->cuts)
		evidence->cuts = cut;
	return 0;
}

static int losses_of(const char *folder, uint32_t cut, const char *serial_folder, bool of_noise,
	struct pp_scan_range **ranges, size_t *count, size_t *unknown_runs, struct pp_error *err)
{
	const struct pp_oracle_result *o;
	struct pp_counter_history history = { .live = false };
	struct pp_witness witness = { .t_last_ns = 0 };
	struct pp_judgement j;
	struct pp_case *c = malloc(sizeof(*c));
	int rc;

	*ranges = NULL;
	*count = 0;
	if (!c)
		return pp_fail_os(err, ENOMEM, "cannot judge");
	rc = pp_case_load(c, folder, cut, serial_folder, err);
	if (rc == 0 && c->has_ledger)
		pp_witness_add(&witness, &c->ledger);
	if (rc == 0)
		rc = pp_judge_case(c, &witness, &history, &j, err);
	if (rc == 0) {
		o = of_noise ? &j.noise : &j.oracle;
		*count = pp_oracle_ranges(o, ranges);
		if (*count == 0 && o->losses)
			rc = pp_fail_os(err, ENOMEM, "cannot list what looks lost");
		*unknown_runs = o->unknown_runs;
		pp_judgement_release(&j);
	}
	pp_case_release(c);
	free(c);
	return rc;
}

int pp_evidence_would_be_losses(const char *folder, uint32_t cut, const char *serial_folder,
	struct pp_scan_range **ranges, size_t *count, size_t *unknown_runs, struct pp_error *err)
{
	return losses_of(folder, cut, serial_folder, false, ranges, count, unknown_runs, err);
}

int pp_evidence_noise_losses(const char *folder, uint32_t cut, const char *serial_folder,
	struct pp_scan_range **ranges, size_t *count, size_t *unknown_runs, struct pp_error *err)
{
	size_t i;

	if (losses_of(folder, cut, serial_folder, true, ranges, count, unknown_runs, err) != 0)
		return -1;
	if (*count > NOISE_RANGES)
		*count = NOISE_RANGES;
	for (i = 0; i < *count; i++)
		if ((*ranges)[i].last - (*ranges)[i].first >= NOISE_SLOTS)
			(*ranges)[i].last = (*ranges)[i].first + NOISE_SLOTS - 1;
	return 0;
}

int pp_evidence_verdict(const struct pp_evidence *evidence, const struct pp_evidence *earlier,
	size_t earlier_count, struct pp_verdict *verdict, struct pp_error *err)
{
	const char *protected_serials[64];
	struct pp_verdict_input in = { .trials = evidence->trials, .count = evidence->trial_count,
		.criterion = evidence->facts.criterion, .planned = evidence->facts.planned,
		.planned_count = evidence->facts.planned_count,
		.protected_serials = protected_serials,
		.protected_count = evidence->facts.protected_count };
	struct pp_trial *all = NULL;
	size_t i, n = 0;
	int rc;

	for (i = 0; i < in.protected_count; i++)
		protected_serials[i] = evidence->facts.protected_serial[i];
	for (i = 0; i < earlier_count; i++)
		n += earlier[i].trial_count;
	if (n) {
		all = calloc(n, sizeof(*all));
		if (!all)
			return pp_fail_os(err, ENOMEM, "cannot judge");
		n = 0;
		for (i = 0; i < earlier_count; i++) {
			memcpy(all + n, earlier[i].trials, earlier[i].trial_count * sizeof(*all));
			n += earlier[i].trial_count;
		}
	}
	in.earlier = all;
	in.earlier_count = n;
	rc = pp_verdict_judge(&in, verdict, err);
	free(all);
	return rc;
}

bool pp_evidence_same_campaign(const struct pp_evidence *a, const struct pp_evidence *b)
{
	return a == b || (a->trial_count && b->trial_count &&
		pp_run_id_equal(&a->trials[0].run_id, &b->trials[0].run_id));
}

int pp_evidence_write_result(const char *folder, struct pp_error *err)
{
	struct pp_report_source source = { .sealed = true };
	struct pp_report_input in;
	struct pp_evidence evidence;
	struct pp_verdict verdict;
	struct pp_buf json;
	char path[4608];
	int rc;

	if (pp_evidence_load(&evidence, folder, true, err) != 0)
		return -1;
	pp_buf_init(&json, 64U << 20);
	rc = pp_evidence_verdict(&evidence, NULL, 0, &verdict, err);
	source.simulated = evidence.facts.simulated;
	source.unproven_wiring = evidence.facts.unproven_wiring;
	in = (struct pp_report_input){ .verdict = &verdict, .source = &source, .speed = evidence.speed,
		.speed_count = evidence.speed_count };
	if (rc == 0)
		rc = pp_report_json(&in, &json, err);
	pp_text_format(path, sizeof(path), "%s/campaign.json", folder);
	if (rc == 0)
		rc = pp_file_write(path, json.data, json.bytes, 0644, err);
	pp_verdict_release(&verdict);
	pp_evidence_release(&evidence);
	pp_buf_release(&json);
	return rc;
}
