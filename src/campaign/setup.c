/* SPDX-License-Identifier: MIT
 *
 * Before the first cut, and after every loss: who the drives are, and targets whose base is known.
 * Set-up is not the arm's fault (M2.8): what is built survives one orderly power cycle and a scan,
 * or is not used.
 */
#include "parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/core/clock.h"
#include "src/core/file.h"
#include "src/core/text.h"
#include "verifier/json.h"
#include "writer/matrix.h"

#define RAW_START_BYTES  (1ULL << 20) /* leaves the first MiB of a raw drive alone */
#define BUILD_TRIES      2
#define NOISE_SHARE      4            /* noise gets one in so many bytes of the target */
#define NOISE_RECORD     65536        /* fills a cache faster than small ones; less if need be */
#define QUICK_MS         30000
#define LONG_MS          600000

/* ---- proof and scan of one drive's target ---------------------------------------------------- */

static int prove_timeout_ms(const struct pp_campaign *c)
{
	return (int)(c->plan.drive_wait_s * 1000) + 120000;
}

int pp_stand_prove(struct pp_campaign *c, struct pp_stand *s, struct pp_proof *proof,
	struct pp_error *err)
{
	struct pp_order order;
	struct pp_kv answer;
	int rc;

	pp_order_init(&order, PP_ORDER_PROVE);
	order.index = s->index;
	order.spec = s->spec;
	if (pp_machine_order(&c->machine, &order, &answer, prove_timeout_ms(c), NULL, NULL, err) != 0)
		return -1;
	rc = pp_proof_get(&answer, proof, err);
	pp_kv_release(&answer);
	return rc;
}

int pp_stand_release(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err)
{
	return pp_machine_simple(&c->machine, PP_ORDER_RELEASE, s->index, QUICK_MS, err);
}

struct sink {
	FILE *file;
	const char *path;
	uint64_t bytes;
};

static int take_bytes(void *ctx, const void *data, size_t bytes, struct pp_error *err)
{
	struct sink *sink = ctx;

	if (fwrite(data, 1, bytes, sink->file) != bytes)
		return pp_fail_os(err, errno, "cannot write '%s'", sink->path);
	sink->bytes += bytes;
	return 0;
}

/* A file of the evidence that is there whole or not at all. */
static int sink_open(struct sink *sink, const char *tmp, struct pp_error *err)
{
	sink->path = tmp;
	sink->bytes = 0;
	sink->file = fopen(tmp, "we");
	return sink->file ? 0 : pp_fail_os(err, errno, "cannot create '%s'", tmp);
}

static int sink_close(struct sink *sink, const char *path, bool keep, struct pp_error *err)
{
	int rc = 0;

	if (keep && (fflush(sink->file) != 0 || fsync(fileno(sink->file)) != 0))
		rc = pp_fail_os(err, errno, "cannot write '%s'", sink->path);
	if (fclose(sink->file) != 0 && keep && rc == 0)
		rc = pp_fail_os(err, errno, "cannot write '%s'", sink->path);
	if (keep && rc == 0 && rename(sink->path, path) != 0)
		rc = pp_fail_os(err, errno, "cannot rename '%s'", sink->path);
	if (!keep || rc != 0)
		remove(sink->path);
	return rc == 0 && keep ? pp_file_sync_parent(path, err) : rc;
}

int pp_stand_scan(struct pp_campaign *c, struct pp_stand *s, const struct pp_area *area,
	const struct pp_scan_range *ranges, size_t range_count, const char *relative,
	struct pp_error *err)
{
	char path[4608], tmp[4640];
	struct pp_scanned scanned = { .bytes = 0 };
	struct pp_order order;
	struct pp_kv answer;
	struct sink sink;
	int rc;

	if (!pp_text_format(path, sizeof(path), "%s/%s", c->folder, relative) ||
		!pp_text_format(tmp, sizeof(tmp), "%s.tmp", path))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", relative);
	if (sink_open(&sink, tmp, err) != 0)
		return -1;
	pp_order_init(&order, PP_ORDER_SCAN);
	order.index = s->index;
	order.layout = area->layout;
	strcpy(order.file, area->file);
	order.ranges = (struct pp_scan_range *)(uintptr_t)ranges;
	order.range_count = range_count;
	rc = pp_machine_order(&c->machine, &order, &answer, LONG_MS, take_bytes, &sink, err);
	if (rc == 0) {
		rc = pp_scanned_get(&answer, &scanned, err);
		pp_kv_release(&answer);
	}
	if (rc == 0 && scanned.bytes != sink.bytes)
		rc = pp_fail(err, PP_ERR_PEER, "scan is incomplete: %llu of %llu bytes came",
			(unsigned long long)sink.bytes, (unsigned long long)scanned.bytes);
	if (rc != 0) {
		struct pp_error ignored;

		sink_close(&sink, path, false, &ignored);
		return pp_fail_within(err, "scan of '%s'", s->spec.serial);
	}
	return sink_close(&sink, path, true, err);
}

/* ---- identity --------------------------------------------------------------------------------- */

static int identify(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err)
{
	struct pp_order order;
	struct pp_kv answer;
	char prefix[1] = "";
	int rc;

	pp_order_init(&order, PP_ORDER_IDENTIFY);
	pp_text_copy(order.serial, sizeof(order.serial), s->spec.serial);
	if (pp_machine_order(&c->machine, &order, &answer, QUICK_MS, NULL, NULL, err) != 0)
		return -1;
	rc = pp_drive_get(&answer, prefix, &s->drive, err);
	pp_kv_release(&answer);
	if (rc != 0)
		return -1;
	if (s->spec.drive_size_bytes && s->drive.info.size_bytes < s->spec.drive_size_bytes)
		return pp_fail(err, PP_ERR_EVIDENCE, "drive '%s' is smaller than it was", s->spec.serial);
	s->spec.drive_size_bytes = s->drive.info.size_bytes;
	s->identified = true;
	pp_say(c, "drive %s: %s %s, firmware '%s', %llu MiB, cache policy: %s", s->plan->name,
		s->drive.info.model, s->drive.info.serial, s->drive.info.firmware,
		(unsigned long long)(s->drive.info.size_bytes >> 20), s->drive.policy);
	return 0;
}

static int check_apart(struct pp_campaign *c, struct pp_stand *a, struct pp_stand *b,
	struct pp_error *err)
{
	struct pp_share share;
	struct pp_order order;
	struct pp_kv answer;
	int rc;

	pp_order_init(&order, PP_ORDER_SHARE);
	pp_text_copy(order.serial, sizeof(order.serial), a->spec.serial);
	pp_text_copy(order.other, sizeof(order.other), b->spec.serial);
	if (pp_machine_order(&c->machine, &order, &answer, QUICK_MS, NULL, NULL, err) != 0)
		return -1;
	rc = pp_share_get(&answer, &share, err);
	pp_kv_release(&answer);
	if (rc != 0)
		return -1;
	if (share.shared)
		return pp_fail(err, PP_ERR_REFUSED, "drives '%s' and '%s' cannot be in one plan: %s; a "
			"flush for one would make the other's writes durable", a->plan->name, b->plan->name,
			share.why);
	return 0;
}

/* ---- the speed matrix ------------------------------------------------------------------------- */

struct row_sink {
	struct pp_campaign *c;
	struct pp_buf text;
};

static int take_rows(void *ctx, const void *data, size_t bytes, struct pp_error *err)
{
	struct row_sink *sink = ctx;

	pp_buf_add(&sink->text, data, bytes);
	return sink->text.failed ? pp_fail(err, PP_ERR_PEER, "the speed matrix is too long") : 0;
}

static int add_speed(struct pp_campaign *c, const struct pp_stand *s, const char *setting,
	const struct pp_matrix_row *row, struct pp_error *err)
{
	struct pp_evidence *e = &c->evidence;
	struct pp_speed_row *grown = realloc(e->speed, (e->speed_count + 1) * sizeof(*grown));
	struct pp_speed_row *to;

	if (!grown)
		return pp_fail_os(err, ENOMEM, "cannot keep the speed matrix");
	e->speed = grown;
	to = &e->speed[e->speed_count++];
	memset(to, 0, sizeof(*to));
	pp_text_copy(to->serial, sizeof(to->serial), s->drive.info.serial);
	pp_text_copy(to->method, sizeof(to->method), row->label);
	pp_text_copy(to->workload, sizeof(to->workload), pp_workload_name(PP_OVERWRITE));
	pp_text_copy(to->setting, sizeof(to->setting), setting);
	to->ops_per_s = row->ops_per_s;
	to->latency_ns_p50 = row->latency_ns_p50;
	to->latency_ns_p99 = row->latency_ns_p99;
	to->flushes_per_op = row->flushes_per_op;
	return 0;
}

/* Under one policy, or (NULL) under any. */
static void set_na(struct pp_stand *s, const char *method, const char *setting, const char *reason)
{
	uint32_t i;

	for (i = 0; i < s->arms; i++)
		if (strcmp(s->arm[i].method->name, method) == 0 && !s->arm[i].na_reason[0] &&
			(!setting || strcmp(setting, s->arm[i].setting ? s->arm[i].setting->name : "") == 0))
			pp_text_copy(s->arm[i].na_reason, sizeof(s->arm[i].na_reason), reason);
}

/*
 * What cannot be had there is N/A (M8.5), not a run that fails at its first write. It is kept in the
 * evidence, for the judge and for a campaign that goes on.
 */
static int settle_na(struct pp_campaign *c, struct pp_stand *s, const struct pp_matrix_row *row,
	struct pp_error *err)
{
	struct pp_campaign_facts *facts = &c->evidence.facts;
	size_t i;

	set_na(s, row->method, NULL, row->reason);
	for (i = 0; i < facts->planned_count; i++) {
		struct pp_planned_arm *arm = &facts->planned[i];

		if (strcmp(arm->serial, s->drive.info.serial) == 0 &&
			strcmp(arm->method, row->method) == 0 && !arm->na_reason[0])
			pp_text_copy(arm->na_reason, sizeof(arm->na_reason), row->reason);
	}
	return pp_campaign_facts_save(facts, c->folder, err);
}

static void load_na(const struct pp_campaign *c, struct pp_stand *s)
{
	const struct pp_campaign_facts *facts = &c->evidence.facts;
	size_t i;

	for (i = 0; i < facts->planned_count; i++)
		if (facts->planned[i].na_reason[0] &&
			strcmp(facts->planned[i].serial, s->drive.info.serial) == 0 &&
			strcmp(facts->planned[i].workload, pp_workload_name(PP_OVERWRITE)) == 0)
			set_na(s, facts->planned[i].method, facts->planned[i].setting,
				facts->planned[i].na_reason);
}

static int read_rows(struct pp_campaign *c, struct pp_stand *s, const char *setting,
	const struct pp_buf *text, struct pp_error *err)
{
	const char *at = text->data ? text->data : "", *end = at + text->bytes;
	struct pp_matrix_row row;
	struct pp_kv kv;
	int rc;

	while ((rc = pp_block_next(&at, end, &kv, err)) == 1) {
		rc = pp_matrix_row_get(&kv, "", &row, err);
		pp_kv_release(&kv);
		if (rc != 0 || (row.status == PP_MATRIX_OK && add_speed(c, s, setting, &row, err) != 0))
			return -1;
		if (row.status == PP_MATRIX_NA && settle_na(c, s, &row, err) != 0)
			return -1;
	}
	return rc;
}

/* The same clock and target as the verdicts' (M10.1), before anything stands on the target. */
static int measure_one(struct pp_campaign *c, struct pp_stand *s, const char *setting,
	struct pp_error *err)
{
	struct row_sink sink = { .c = c };
	struct pp_order order;
	uint32_t i, k;
	int rc;

	pp_order_init(&order, PP_ORDER_MATRIX);
	order.index = s->index;
	order.seconds_ms = c->plan.matrix_ms;
	order.region_offset = s->spec.kind == PP_TARGET_RAW ? RAW_START_BYTES : 0;
	for (i = 0; i < s->arms; i++) {
		for (k = 0; k < order.method_count && order.methods[k] != s->arm[i].method; k++)
			;
		if (k == order.method_count && k < PP_ORDER_METHODS_MAX)
			order.methods[order.method_count++] = s->arm[i].method;
	}
	pp_buf_init(&sink.text, 1U << 20);
	rc = pp_machine_order(&c->machine, &order, NULL,
		(int)(c->plan.matrix_ms * order.method_count) + 120000, take_rows, &sink, err);
	if (rc == 0)
		rc = read_rows(c, s, setting, &sink.text, err);
	pp_buf_release(&sink.text);
	return rc;
}

static int prove_or_fail(struct pp_campaign *c, struct pp_stand *s, struct pp_proof *proof,
	struct pp_error *err);

/* Under each policy of the plan: a drive is as fast as its cache is allowed to be. */
static int measure_speed(struct pp_campaign *c, struct pp_stand *s, struct pp_proof *proof,
	struct pp_error *err)
{
	uint64_t session;
	size_t k;

	if (!pp_stand_has_policies(s))
		return measure_one(c, s, "", err);
	for (k = 0; k < pp_policy_setting_count; k++) {
		if (!s->policy_wanted[k][0])
			continue;
		session = c->machine.session;
		if (pp_policy_for(c, s, &pp_policy_settings[k], err) != 0 ||
			(session != c->machine.session && prove_or_fail(c, s, proof, err) != 0) ||
			measure_one(c, s, pp_policy_settings[k].name, err) != 0)
			return -1;
	}
	return 0;
}

/* ---- building --------------------------------------------------------------------------------- */

/* One lane in a part of the target's end (M7.6): its records are as large as fit. */
static int plan_noise(struct pp_stand *s, const struct pp_proof *proof, uint64_t start,
	uint64_t bytes, struct pp_error *err)
{
	uint32_t unit = proof->unit_bytes, record;

	strcpy(s->noise.file, PP_NOISE_FILE);
	start += (unit - start % unit) % unit;
	for (record = NOISE_RECORD;; record /= 2) {
		uint32_t whole = record + (unit - record % unit) % unit;

		if (pp_layout_init(&s->noise.layout, PP_OVERWRITE, 1, 1, whole, unit, false, start,
			start + bytes, err) == 0)
			return 0;
		if (record <= unit || record <= PP_CELL_BYTES)
			return pp_fail_within(err, "drive '%s', noise", s->plan->name);
	}
}

/* Cuts the target into areas, one for each set of arms that this drive has. */
int pp_setup_areas(struct pp_campaign *c, struct pp_stand *s, const struct pp_proof *proof,
	struct pp_error *err)
{
	uint32_t i, n = 0, k = 0;
	uint64_t each, room, noise;

	for (i = 0; i < c->plan.arm_sets; i++) {
		n += s->area[i].used = c->plan.arms[i].on_drive[s->index] &&
			!(s->spec.kind == PP_TARGET_RAW && pp_workload_own_files(c->plan.arms[i].workload));
		s->noise.used |= s->area[i].used && c->plan.arms[i].noise;
	}
	room = s->plan->size_bytes;
	if (s->spec.kind == PP_TARGET_RAW && proof->size_bytes < room + RAW_START_BYTES)
		return pp_fail(err, PP_ERR_USAGE, "drive '%s' has %llu bytes: too small for size_mib = %llu",
			s->plan->name, (unsigned long long)proof->size_bytes,
			(unsigned long long)(room >> 20));
	noise = s->noise.used ? room / NOISE_SHARE : 0;
	noise -= noise % proof->unit_bytes;
	room -= noise;
	if (noise && plan_noise(s, proof, s->spec.kind == PP_TARGET_RAW ? RAW_START_BYTES + room : 0,
		noise > proof->unit_bytes ? noise - proof->unit_bytes : noise, err) != 0)
		return -1;
	each = room / (n ? n : 1);
	each -= each % proof->unit_bytes;
	for (i = 0; i < c->plan.arm_sets; i++) {
		const struct pp_plan_arms *a = &c->plan.arms[i];
		struct pp_area *area = &s->area[i];
		uint64_t start = 0;

		if (!area->used)
			continue;
		if (s->spec.kind == PP_TARGET_RAW) {
			start = RAW_START_BYTES + k * each;
			start += (proof->unit_bytes - start % proof->unit_bytes) % proof->unit_bytes;
		}
		if (k == 0)
			pp_text_copy(area->file, sizeof(area->file), PP_ORDER_FILE);
		else
			pp_text_format(area->file, sizeof(area->file), "%s.%u", PP_ORDER_FILE, k);
		k++;
		if (pp_layout_init(&area->layout, a->workload, a->lanes, a->group, a->record_bytes,
			proof->unit_bytes, a->sub_block, start, start + each, err) != 0)
			return pp_fail_within(err, "drive '%s', [arms%s%s]", s->plan->name,
				a->name[0] ? " " : "", a->name);
		area->layout.shuffle = a->random; /* every run has a key of its own */
	}
	s->planned = true;
	return 0;
}

static int save_setup(const struct pp_campaign *c, const struct pp_stand *s, const char *folder,
	struct pp_error *err)
{
	json_t *o = json_object();
	char path[4608];

	json_object_set_new(o, "format", json_integer(1));
	json_object_set_new(o, "serial", json_string(s->spec.serial));
	json_object_set_new(o, "fs_uuid", json_string(s->spec.fs_uuid));
	json_object_set_new(o, "fs_type", json_string(s->spec.fs_type));
	json_object_set_new(o, "fs_partition", json_integer(s->spec.fs_partition));
	json_object_set_new(o, "drive_bytes", json_integer((int64_t)s->spec.drive_size_bytes));
	if (!pp_text_format(path, sizeof(path), "%s/%s/setup.json", c->folder, folder)) {
		json_decref(o);
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", folder);
	}
	return pp_json_save(o, path, err);
}

/* Where the set-up in work keeps what it knows of a drive. */
static int setup_folder(const struct pp_campaign *c, const struct pp_stand *s, uint32_t number,
	char *folder, size_t bytes, struct pp_error *err)
{
	char path[4608];

	if (!pp_text_format(folder, bytes, "setups/%04u/%s", number, s->folder) ||
		!pp_text_format(path, sizeof(path), "%s/%s", c->folder, folder))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", c->folder);
	return pp_mkdirs(path, err);
}

static int format_drive(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err)
{
	struct pp_formatted formatted;
	struct pp_order order;
	struct pp_kv answer;
	char folder[192];
	int rc;

	pp_order_init(&order, PP_ORDER_FORMAT);
	order.index = s->index;
	order.spec = s->spec;
	pp_text_copy(order.spec.fs_type, sizeof(order.spec.fs_type), s->plan->format);
	order.spec.fs_uuid[0] = '\0';
	order.spec.fs_partition = 0;
	order.spec.force = s->formatted || s->plan->force;
	if (pp_machine_order(&c->machine, &order, &answer, LONG_MS, NULL, NULL, err) != 0)
		return -1;
	rc = pp_formatted_get(&answer, &formatted, err);
	pp_kv_release(&answer);
	if (rc != 0)
		return -1;
	if (formatted.state == PP_TARGET_REFUSED)
		return pp_fail(err, PP_ERR_REFUSED, "drive '%s' is not formatted: %s; if all of that may go, "
			"say force = yes in [drive %s] and begin with another --out", s->plan->name,
			formatted.error, s->plan->name);
	if (formatted.state != PP_TARGET_OK)
		return pp_fail(err, PP_ERR_PEER, "cannot format drive '%s' (%s): %s", s->plan->name,
			pp_target_state_name(formatted.state), formatted.error);
	strcpy(s->spec.fs_uuid, formatted.fs_uuid);
	strcpy(s->spec.fs_type, formatted.fs_type);
	s->spec.fs_partition = formatted.fs_partition;
	s->spec.drive_size_bytes = formatted.drive_size_bytes;
	s->formatted = true;
	/* Whoever resumes a set-up that was cut short must know that this file system is our own. */
	if (setup_folder(c, s, c->setups + 1, folder, sizeof(folder), err) != 0)
		return -1;
	return save_setup(c, s, folder, err);
}

static int prove_or_fail(struct pp_campaign *c, struct pp_stand *s, struct pp_proof *proof,
	struct pp_error *err)
{
	if (pp_stand_prove(c, s, proof, err) != 0)
		return -1;
	if (proof->state != PP_TARGET_OK)
		return pp_fail(err, proof->state == PP_TARGET_REFUSED ? PP_ERR_REFUSED : PP_ERR_PEER,
			"target on drive '%s' is not usable (%s): %s", s->plan->name,
			pp_target_state_name(proof->state), proof->error);
	if (proof->fs_uuid[0]) {
		strcpy(s->spec.fs_uuid, proof->fs_uuid);
		strcpy(s->spec.fs_type, proof->fs_type);
		s->spec.fs_partition = proof->fs_partition;
	}
	return 0;
}

static int prewrite(struct pp_campaign *c, struct pp_stand *s, struct pp_area *area,
	struct pp_error *err)
{
	struct pp_order order;
	struct pp_kv answer;
	int rc;

	pp_order_init(&order, PP_ORDER_PREWRITE);
	order.index = s->index;
	order.layout = area->layout;
	strcpy(order.file, area->file);
	if (pp_run_id_draw(&order.run_id, err) != 0)
		return -1;
	if (pp_machine_order(&c->machine, &order, &answer, LONG_MS, NULL, NULL, err) != 0)
		return -1;
	rc = pp_layout_get(&answer, &area->layout, err);
	pp_kv_release(&answer);
	return rc;
}

static int build_one(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err)
{
	struct pp_proof *proof = malloc(sizeof(*proof));
	uint64_t session;
	uint32_t i;
	int rc = -1;

	if (!proof)
		return pp_fail_os(err, ENOMEM, "cannot build a target");
	if (pp_policy_for_build(c, s, err) != 0 || (s->plan->format[0] && format_drive(c, s, err) != 0))
		goto out;
	if (prove_or_fail(c, s, proof, err) != 0 || (!s->planned && pp_setup_areas(c, s, proof, err) != 0))
		goto out;
	if (c->plan.matrix_ms && c->setups == 0 && measure_speed(c, s, proof, err) != 0) {
		/* Speed is a service; its absence is no reason not to judge. */
		pp_say(c, "drive %s: no speed matrix: %s", s->plan->name, err->text);
	}
	session = c->machine.session;
	if (pp_policy_for_build(c, s, err) != 0 ||
		(session != c->machine.session && prove_or_fail(c, s, proof, err) != 0))
		goto out;
	for (i = 0; i < c->plan.arm_sets; i++)
		if (s->area[i].used && prewrite(c, s, &s->area[i], err) != 0)
			goto out;
	if (s->noise.used && prewrite(c, s, &s->noise, err) != 0)
		goto out;
	/* What prewrite left in this folder of a raw drive is our own from now on. */
	s->formatted |= s->spec.kind == PP_TARGET_RAW;
	/* Our own records could look like a signature by chance: what stands there now is ours. */
	s->spec.force |= s->spec.kind == PP_TARGET_RAW;
	rc = pp_stand_release(c, s, err);
out:
	free(proof);
	return rc;
}

/* Every slot whole, or free: only such a base is used. */
static bool base_whole(const struct pp_campaign *c, const struct pp_area *area)
{
	char path[4608];
	struct pp_error why;
	struct pp_scan *scan;
	bool whole;

	pp_text_format(path, sizeof(path), "%s/%s", c->folder, area->base);
	scan = pp_scan_load(path, &why);
	if (!scan)
		return false;
	whole = pp_scan_base_whole(scan, &area->layout);
	pp_scan_free(scan);
	return whole;
}

/* 1: whole; 0: not; -1. */
static int scan_base(struct pp_campaign *c, struct pp_stand *s, struct pp_area *area,
	struct pp_error *err)
{
	if (pp_stand_scan(c, s, area, NULL, 0, area->base, err) != 0)
		return -1;
	return base_whole(c, area);
}

static int scan_bases(struct pp_campaign *c, struct pp_stand *s, struct pp_error *err)
{
	char folder[192];
	struct pp_proof *proof = malloc(sizeof(*proof));
	int rc = -1;
	uint32_t i;

	if (!proof)
		return pp_fail_os(err, ENOMEM, "cannot scan a base");
	if (setup_folder(c, s, c->setups, folder, sizeof(folder), err) != 0 ||
		prove_or_fail(c, s, proof, err) != 0)
		goto out;
	rc = 1;
	for (i = 0; i < c->plan.arm_sets && rc == 1; i++) {
		struct pp_area *area = &s->area[i];

		if (!area->used)
			continue;
		pp_text_format(area->base, sizeof(area->base), "%s/scan-%u.bin", folder, i);
		rc = scan_base(c, s, area, err);
	}
	if (s->noise.used && rc == 1) {
		pp_text_format(s->noise.base, sizeof(s->noise.base), "%s/scan-noise.bin", folder);
		rc = scan_base(c, s, &s->noise, err);
	}
	if (rc >= 0 && (pp_stand_release(c, s, err) != 0 || save_setup(c, s, folder, err) != 0))
		rc = -1;
out:
	free(proof);
	return rc;
}

static bool wants_build(const struct pp_stand *s)
{
	return s->needs_build && !s->gone;
}

static int build_and_cycle(struct pp_campaign *c, bool *whole, struct pp_error *err)
{
	uint32_t i;
	int rc;

	for (i = 0; i < c->plan.drives; i++) {
		if (!wants_build(&c->stand[i]))
			continue;
		pp_say(c, "building the target on drive %s", c->stand[i].plan->name);
		if (build_one(c, &c->stand[i], err) != 0)
			return -1;
	}
	c->setups++;
	rc = pp_power_orderly_cycle(c, err);
	if (rc == PP_BACK_NOT)
		return pp_fail(err, PP_ERR_PEER, "the machine did not come back from an orderly power cycle; "
			"its outlet is on: look at its console");
	if (rc < 0)
		return -1;
	*whole = true;
	for (i = 0; i < c->plan.drives; i++) {
		if (!wants_build(&c->stand[i]))
			continue;
		rc = scan_bases(c, &c->stand[i], err);
		if (rc < 0)
			return -1;
		c->stand[i].last_cut = 0;
		if (rc == 1)
			c->stand[i].needs_build = false;
		else
			*whole = false;
	}
	return 0;
}

int pp_setup_build(struct pp_campaign *c, struct pp_error *err)
{
	bool wanted = false, whole = false;
	uint32_t i;
	int try;

	for (i = 0; i < c->plan.drives; i++)
		wanted |= wants_build(&c->stand[i]);
	if (!wanted)
		return 0;
	pp_show(c, "setting up");
	for (try = 0; try < BUILD_TRIES && !whole; try++)
		if (build_and_cycle(c, &whole, err) != 0)
			return -1;
	for (i = 0; !whole && i < c->plan.drives; i++)
		if (wants_build(&c->stand[i]))
			return pp_fail(err, PP_ERR_EVIDENCE, "drive '%s' does not keep what was written and "
				"synced even through an orderly power cycle: no base to judge from; replace "
				"the drive, or let it rest longer (poweroff_settle_s)", c->stand[i].plan->name);
	return 0;
}

int pp_setup_identify(struct pp_campaign *c, struct pp_error *err)
{
	uint32_t i, k;

	pp_show(c, "identifying");
	for (i = 0; i < c->plan.drives; i++)
		if (identify(c, &c->stand[i], err) != 0)
			return pp_fail_within(err, "drive '%s'", c->plan.drive[i].name);
	for (i = 0; i < c->plan.drives; i++)
		for (k = 0; k < i; k++)
			if (check_apart(c, &c->stand[k], &c->stand[i], err) != 0)
				return -1;
	return 0;
}

int pp_setup_load(struct pp_campaign *c, struct pp_error *err)
{
	char path[4608];
	struct stat st;
	uint32_t i, n;

	for (;; c->setups++) {
		pp_text_format(path, sizeof(path), "%s/setups/%04u", c->folder, c->setups + 1);
		if (stat(path, &st) != 0)
			break;
	}
	for (i = 0; i < c->plan.drives; i++) {
		struct pp_stand *s = &c->stand[i];
		struct pp_json_in in = { .where = path, .err = err, .ok = true };
		json_t *o;

		load_na(c, s);
		for (n = c->setups; n > 0; n--) {
			pp_text_format(path, sizeof(path), "%s/setups/%04u/%s/setup.json", c->folder, n,
				s->folder);
			if (stat(path, &st) == 0)
				break;
		}
		if (n == 0)
			continue;
		o = pp_json_load(path, err);
		if (!o)
			return -1;
		in.object = o;
		pp_json_str(&in, "fs_uuid", s->spec.fs_uuid, sizeof(s->spec.fs_uuid));
		pp_json_str(&in, "fs_type", s->spec.fs_type, sizeof(s->spec.fs_type));
		s->spec.fs_partition = (int)pp_json_int(&in, "fs_partition", -1, 1024);
		s->spec.drive_size_bytes = (uint64_t)pp_json_int(&in, "drive_bytes", 0, INT64_MAX);
		s->formatted = true;
		json_decref(o);
		if (!in.ok)
			return -1;
	}
	return 0;
}
