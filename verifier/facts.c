/* SPDX-License-Identifier: MIT
 *
 * One table of fields a file drives both directions, so that what is written is what is read.
 */
#include "facts.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "src/core/policy.h"

enum field_type { TEXT, TEXT_SINCE, I64, U32, U64, BOOL };

struct field {
	const char *key;
	enum field_type type;
	size_t at;
	int bytes;     /* of a TEXT */
};

#define F_TEXT(s, m) { #m, TEXT, offsetof(struct s, m), (int)sizeof(((struct s *)0)->m) }
/* Not in evidence of earlier versions: "" there. */
#define F_TEXT_SINCE(s, m) { #m, TEXT_SINCE, offsetof(struct s, m), (int)sizeof(((struct s *)0)->m) }
#define F_I64(s, m)  { #m, I64, offsetof(struct s, m), 0 }
#define F_U32(s, m)  { #m, U32, offsetof(struct s, m), 0 }
#define F_U64(s, m)  { #m, U64, offsetof(struct s, m), 0 }
#define F_BOOL(s, m) { #m, BOOL, offsetof(struct s, m), 0 }

static const struct field cut_fields[] = {
	F_U32(pp_cut_facts, number), F_TEXT(pp_cut_facts, state),
	F_TEXT(pp_cut_facts, host_boot_id), F_TEXT(pp_cut_facts, cut_kind),
	F_TEXT(pp_cut_facts, kernel), F_TEXT(pp_cut_facts, boot_before),
	F_U32(pp_cut_facts, runs), F_I64(pp_cut_facts, write_ms), F_I64(pp_cut_facts, t_run_ns),
	F_I64(pp_cut_facts, t_off_sent_ns), F_I64(pp_cut_facts, t_off_answered_ns),
	F_I64(pp_cut_facts, t_off_read_ns), F_I64(pp_cut_facts, t_on_sent_ns),
	F_I64(pp_cut_facts, t_on_read_ns), F_I64(pp_cut_facts, hold_up_ns),
	F_I64(pp_cut_facts, off_ns), F_BOOL(pp_cut_facts, off_verified),
	F_BOOL(pp_cut_facts, by_hand),
	F_TEXT(pp_cut_facts, off_outcome), F_BOOL(pp_cut_facts, watts_known),
	F_BOOL(pp_cut_facts, watts_zero), F_BOOL(pp_cut_facts, battery),
	F_U32(pp_cut_facts, power_cycles), F_TEXT(pp_cut_facts, void_reason),
};

static const struct field boot_fields[] = {
	F_I64(pp_boot_seen, t_ns), F_I64(pp_boot_seen, uptime_ns), F_TEXT(pp_boot_seen, boot_id),
};

static const struct field run_fields[] = {
	F_U32(pp_run_facts, index), F_TEXT(pp_run_facts, serial), F_TEXT(pp_run_facts, model),
	F_TEXT(pp_run_facts, firmware), F_TEXT(pp_run_facts, wwn), F_TEXT(pp_run_facts, transport),
	F_TEXT(pp_run_facts, method), F_TEXT(pp_run_facts, fs), F_TEXT(pp_run_facts, mount_options),
	F_TEXT_SINCE(pp_run_facts, setting), F_TEXT(pp_run_facts, policy_wanted),
	F_TEXT(pp_run_facts, policy), F_TEXT(pp_run_facts, policy_after), F_BOOL(pp_run_facts, fua),
	F_U32(pp_run_facts, pace_per_s), F_BOOL(pp_run_facts, no_volatile_cache), F_BOOL(pp_run_facts, noise),
	F_BOOL(pp_run_facts, cache_protected), F_U64(pp_run_facts, drive_bytes),
	F_TEXT(pp_run_facts, base), F_BOOL(pp_run_facts, failed), F_TEXT(pp_run_facts, failed_text),
	F_BOOL(pp_run_facts, full), F_TEXT(pp_run_facts, aftermath_reason),
	F_BOOL(pp_run_facts, fs_damaged), F_TEXT(pp_run_facts, fs_damaged_text),
	F_U32(pp_run_facts, rereads), F_BOOL(pp_run_facts, reread_other_boot),
	F_TEXT(pp_run_facts, resolution),
};

static const struct field noise_fields[] = {
	F_TEXT(pp_noise_facts, base), F_BOOL(pp_noise_facts, scanned), F_U32(pp_noise_facts, rereads),
};

static const struct field layout_fields[] = {
	F_U32(pp_layout, lanes), F_U32(pp_layout, group), F_U32(pp_layout, record_bytes),
	F_U32(pp_layout, unit_bytes), F_BOOL(pp_layout, sub_block), F_U64(pp_layout, region_offset),
	F_U64(pp_layout, slots), F_U64(pp_layout, shuffle),
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const aftermaths[] = {
	[PP_AFTER_PENDING] = "pending", [PP_AFTER_SCANNED] = "scanned",
	[PP_AFTER_DEVICE_GONE] = "device-gone", [PP_AFTER_FS_GONE] = "fs-gone",
	[PP_AFTER_OPEN] = "open",
};

const char *pp_aftermath_name(enum pp_aftermath after)
{
	return aftermaths[after];
}

/* Evidence is for every machine: what is no UTF-8 becomes '?'. */
static json_t *text_of(const char *text)
{
	char clean[1024];
	json_t *value = json_string(text);
	size_t i;

	if (value)
		return value;
	snprintf(clean, sizeof(clean), "%s", text);
	for (i = 0; clean[i]; i++)
		if ((unsigned char)clean[i] >= 0x80)
			clean[i] = '?';
	return json_string(clean);
}

static void put_fields(json_t *object, const struct field *fields, size_t count, const void *from)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const char *at = (const char *)from + fields[i].at;
		json_t *value = NULL;

		switch (fields[i].type) {
		case TEXT:
		case TEXT_SINCE: value = text_of(at); break;
		case I64: value = json_integer(*(const int64_t *)(const void *)at); break;
		case U32: value = json_integer(*(const uint32_t *)(const void *)at); break;
		case U64: value = json_integer((int64_t)*(const uint64_t *)(const void *)at); break;
		case BOOL: value = json_boolean(*(const bool *)at); break;
		}
		json_object_set_new(object, fields[i].key, value);
	}
}

static void get_fields(struct pp_json_in *in, const struct field *fields, size_t count, void *to)
{
	size_t i;

	for (i = 0; i < count; i++) {
		char *at = (char *)to + fields[i].at;
		const char *key = fields[i].key;

		switch (fields[i].type) {
		case TEXT_SINCE:
			if (!json_object_get(in->object, key)) {
				at[0] = '\0';
				break;
			}
			/* fall through */
		case TEXT: pp_json_str(in, key, at, fields[i].bytes); break;
		case I64: *(int64_t *)(void *)at = pp_json_int(in, key, 0, INT64_MAX); break;
		case U32: *(uint32_t *)(void *)at = (uint32_t)pp_json_int(in, key, 0, UINT32_MAX); break;
		case U64: *(uint64_t *)(void *)at = (uint64_t)pp_json_int(in, key, 0, INT64_MAX); break;
		case BOOL: *(bool *)at = pp_json_bool(in, key); break;
		}
	}
}

int pp_cut_facts_save(const struct pp_cut_facts *facts, const char *path, struct pp_error *err)
{
	json_t *object = json_object(), *boots = json_array();
	uint32_t i;

	json_object_set_new(object, "format", json_integer(1));
	put_fields(object, cut_fields, COUNT(cut_fields), facts);
	for (i = 0; i < facts->boots; i++) {
		json_t *boot = json_object();

		put_fields(boot, boot_fields, COUNT(boot_fields), &facts->boot[i]);
		json_array_append_new(boots, boot);
	}
	json_object_set_new(object, "boots", boots);
	return pp_json_save(object, path, err);
}

int pp_cut_facts_load(struct pp_cut_facts *facts, const char *path, struct pp_error *err)
{
	struct pp_json_in in = { .where = path, .err = err, .ok = true };
	json_t *object = pp_json_load(path, err);
	const json_t *boots;
	size_t i;

	memset(facts, 0, sizeof(*facts));
	if (!object)
		return -1;
	in.object = object;
	get_fields(&in, cut_fields, COUNT(cut_fields), facts);
	boots = pp_json_array(&in, "boots", PP_BOOTS_MAX);
	for (i = 0; in.ok && i < json_array_size(boots); i++) {
		in.object = json_array_get(boots, i);
		get_fields(&in, boot_fields, COUNT(boot_fields), &facts->boot[i]);
		facts->boots++;
	}
	json_decref(object);
	return in.ok ? 0 : -1;
}

static json_t *put_layout(const struct pp_layout *layout)
{
	json_t *object = json_object(), *bases = json_array();
	uint32_t lane;

	json_object_set_new(object, "workload", json_string(pp_workload_name(layout->workload)));
	put_fields(object, layout_fields, COUNT(layout_fields), layout);
	for (lane = 0; lane < layout->lanes; lane++)
		json_array_append_new(bases, json_integer((int64_t)layout->base_slots[lane]));
	json_object_set_new(object, "base_slots", bases);
	return object;
}

static json_t *put_noise(const struct pp_noise_facts *noise)
{
	char id[PP_RUN_ID_TEXT_BYTES];
	json_t *object = json_object();

	pp_run_id_format(&noise->run_id, id);
	json_object_set_new(object, "run_id", json_string(id));
	json_object_set_new(object, "layout", put_layout(&noise->layout));
	put_fields(object, noise_fields, COUNT(noise_fields), noise);
	return object;
}

int pp_run_facts_save(const struct pp_run_facts *facts, const char *path, struct pp_error *err)
{
	char id[PP_RUN_ID_TEXT_BYTES];
	json_t *object = json_object();

	pp_run_id_format(&facts->run_id, id);
	json_object_set_new(object, "format", json_integer(1));
	json_object_set_new(object, "run_id", json_string(id));
	json_object_set_new(object, "target", json_string(facts->kind == PP_TARGET_RAW ? "raw" : "file"));
	json_object_set_new(object, "layout", put_layout(&facts->layout));
	json_object_set_new(object, "aftermath", json_string(aftermaths[facts->aftermath]));
	put_fields(object, run_fields, COUNT(run_fields), facts);
	if (facts->noise)
		json_object_set_new(object, "noise_run", put_noise(&facts->noise_run));
	return pp_json_save(object, path, err);
}

/* The layout is what the oracle computes places from: an impossible one must not get that far. */
static int get_layout(struct pp_json_in *in, const json_t *object, struct pp_layout *layout)
{
	struct pp_layout whole;
	struct pp_error why;
	char workload[32];
	const json_t *bases;
	uint32_t lane;

	memset(layout, 0, sizeof(*layout));
	in->object = object;
	pp_json_str(in, "workload", workload, sizeof(workload));
	get_fields(in, layout_fields, COUNT(layout_fields), layout);
	bases = pp_json_array(in, "base_slots", PP_LANES_MAX);
	if (!in->ok)
		return -1;
	if (!pp_workload_find(workload, &layout->workload))
		return pp_fail(in->err, PP_ERR_EVIDENCE, "'%s': no workload '%s'", in->where, workload);
	if (layout->shuffle && layout->workload != PP_OVERWRITE)
		return pp_fail(in->err, PP_ERR_EVIDENCE, "'%s': a random order is for overwrite", in->where);
	if (layout->slots > (1ULL << 40))
		return pp_fail(in->err, PP_ERR_EVIDENCE, "'%s': impossible number of slots", in->where);
	if (pp_layout_init(&whole, layout->workload, layout->lanes, layout->group,
		layout->record_bytes, layout->unit_bytes, layout->sub_block, layout->region_offset,
		pp_layout_target_bytes(layout), &why) != 0 ||
		whole.slots != layout->slots || json_array_size(bases) != layout->lanes)
		return pp_fail(in->err, PP_ERR_EVIDENCE, "'%s': impossible layout", in->where);
	for (lane = 0; lane < layout->lanes; lane++) {
		const json_t *n = json_array_get(bases, lane);

		if (!json_is_integer(n) || json_integer_value(n) < 0 ||
			(uint64_t)json_integer_value(n) > layout->slots)
			return pp_fail(in->err, PP_ERR_EVIDENCE, "'%s': impossible base", in->where);
		layout->base_slots[lane] = (uint64_t)json_integer_value(n);
	}
	return 0;
}

static int get_noise(struct pp_json_in *in, const json_t *object, struct pp_noise_facts *noise)
{
	char text[64];

	if (!json_is_object(object))
		return pp_fail(in->err, PP_ERR_EVIDENCE, "'%s': noise without a 'noise_run'", in->where);
	in->object = object;
	pp_json_str(in, "run_id", text, sizeof(text));
	if (in->ok && !pp_run_id_parse(text, &noise->run_id))
		return pp_fail(in->err, PP_ERR_EVIDENCE, "'%s': '%s' is no run id", in->where, text);
	get_fields(in, noise_fields, COUNT(noise_fields), noise);
	return in->ok ? get_layout(in, json_object_get(object, "layout"), &noise->layout) : -1;
}

static int get_run(struct pp_json_in *in, struct pp_run_facts *facts)
{
	const json_t *object = in->object;
	char text[64];
	size_t i;

	pp_json_str(in, "run_id", text, sizeof(text));
	if (in->ok && !pp_run_id_parse(text, &facts->run_id))
		return pp_fail(in->err, PP_ERR_EVIDENCE, "'%s': '%s' is no run id", in->where, text);
	pp_json_str(in, "target", text, sizeof(text));
	if (in->ok && strcmp(text, "raw") != 0 && strcmp(text, "file") != 0)
		return pp_fail(in->err, PP_ERR_EVIDENCE, "'%s': no target '%s'", in->where, text);
	facts->kind = strcmp(text, "raw") == 0 ? PP_TARGET_RAW : PP_TARGET_FILE;
	pp_json_str(in, "aftermath", text, sizeof(text));
	for (i = 0; i < COUNT(aftermaths) && strcmp(aftermaths[i], text) != 0; i++)
		;
	if (in->ok && i == COUNT(aftermaths))
		return pp_fail(in->err, PP_ERR_EVIDENCE, "'%s': no aftermath '%s'", in->where, text);
	facts->aftermath = in->ok ? (enum pp_aftermath)i : PP_AFTER_PENDING;
	get_fields(in, run_fields, COUNT(run_fields), facts);
	if (!in->ok)
		return -1;
	if (!pp_method_find(facts->method))
		return pp_fail(in->err, PP_ERR_EVIDENCE, "'%s': this tool knows no method '%s'", in->where,
			facts->method);
	/* What a policy means decides what speaks for what: one of a later version is not guessed at. */
	if (facts->setting[0] && !pp_policy_setting_find(facts->setting))
		return pp_fail(in->err, PP_ERR_EVIDENCE, "'%s': this tool knows no policy '%s'", in->where,
			facts->setting);
	if (facts->noise && get_noise(in, json_object_get(object, "noise_run"), &facts->noise_run) != 0)
		return -1;
	return get_layout(in, json_object_get(object, "layout"), &facts->layout);
}

int pp_run_facts_load(struct pp_run_facts *facts, const char *path, struct pp_error *err)
{
	struct pp_json_in in = { .where = path, .err = err, .ok = true };
	json_t *object = pp_json_load(path, err);
	int rc;

	memset(facts, 0, sizeof(*facts));
	if (!object)
		return -1;
	in.object = object;
	rc = get_run(&in, facts);
	json_decref(object);
	return rc;
}
