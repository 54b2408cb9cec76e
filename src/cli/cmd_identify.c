/* SPDX-License-Identifier: MIT
 *
 * plugpull identify: which drives are beneath a target, what they say of themselves, and the traps
 * that would make a measurement there mean something else than it seems.
 *
 * The fields of a drive and the traps are tables (identify_parts.h), from which text and JSON come.
 */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_identify.h"
#include "identify_parts.h"
#include "option_table.h"
#include "src/campaign/plan.h"

#define SMART_BYTES_MAX (1 << 20)

/* ---- options ------------------------------------------------------------------------------ */

struct options {
	const char *target, *sysroot, *expect, *plan_path;
	bool all, json, smart;
	const char *expected[PP_IDENTIFY_EXPECTED_MAX];
	size_t expected_count;
	struct pp_plan *plan;
};

static int take_plan(struct options *o, const char *path)
{
	struct pp_error err;

	o->plan = calloc(1, sizeof(*o->plan));
	if (!o->plan || pp_plan_load(o->plan, path, &err) != 0) {
		fprintf(stderr, "plugpull identify: %s\n", o->plan ? err.text : "out of memory");
		return 2;
	}
	for (uint32_t i = 0; i < o->plan->drives; i++)
		if (o->plan->drive[i].serial[0] && o->expected_count < PP_IDENTIFY_EXPECTED_MAX)
			o->expected[o->expected_count++] = o->plan->drive[i].serial;
	if (!o->expected_count)
		return pp_usage_error("identify", "no drive has a serial in the plan", path);
	return -1;
}

static int take(void *ctx, int letter, const char *argument)
{
	struct options *o = ctx;

	o->all |= letter == 'a';
	o->json |= letter == 'j';
	o->smart |= letter == 's';
	if (letter == 'R')
		o->sysroot = argument;
	if (letter == 'e')
		o->expect = argument;
	if (letter == 'p')
		o->plan_path = argument;
	return -1;
}

static const struct pp_option_row option_rows[] = {
	{"all", 'a', NULL, "every drive of this machine"},
	{"json", 'j', NULL, "one JSON object"},
	{"smart", 's', NULL, "ask smartctl for power-loss counters"},
	{"expect", 'e', "SERIAL", "warn, exit 2, if it is another drive"},
	{"plan", 'p', "PLAN", "the same for the drives of a plan"},
	{"sysroot", 'R', "DIR", "a recorded machine: DIR holds sys and proc"},
};

static const struct pp_option_table table = {
	.command = "identify",
	.usage = "Usage: plugpull identify [OPTION]... TARGET\n"
		"       plugpull identify [OPTION]... --all\n"
		"Says which drives are beneath TARGET (a file, folder, device, or a drive's\n"
		"serial or WWN), their cache policy, and what would spoil a measurement there.\n"
		"Writes nothing.\n",
	.status = "Exit status: 0 identified, 2 could not, or it is another drive.",
	.columns = 18,
	.rows = option_rows,
	.count = sizeof(option_rows) / sizeof(option_rows[0]),
	.take = take,
};

/* -1: go on; else the exit status. */
static int take_options(int argc, char **argv, struct options *o)
{
	int status = pp_option_table_read(&table, argc, argv, o);

	if (status >= 0)
		return status;
	if (optind < argc)
		o->target = argv[optind++];
	if (optind < argc)
		return pp_usage_error("identify", "a second target", argv[optind]);
	if (o->all == (o->target != NULL))
		return pp_usage_error("identify", "name one target, or --all", NULL);
	if (o->expect)
		o->expected[o->expected_count++] = o->expect;
	return o->plan_path ? take_plan(o, o->plan_path) : -1;
}

/* ---- JSON --------------------------------------------------------------------------------- */

static json_t *text_or_null(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

static json_t *value_to_json(const struct identify_value *v)
{
	if (!identify_is_known(v))
		return json_null();
	if (v->kind == IDENTIFY_TEXT)
		return json_string(v->text);
	return v->kind == IDENTIFY_TRUTH ? json_boolean(v->number != 0) : json_integer(v->number);
}

/* The traps of this scope that apply: id, level, text, and what is particular to this case. */
static json_t *find_traps(const struct identify_subject *s, enum identify_scope scope)
{
	json_t *array = json_array();

	for (size_t i = 0; i < identify_trap_count; i++) {
		const struct identify_trap *trap = &identify_traps[i];
		struct identify_why why = {.text = ""};
		json_t *row;

		if (trap->scope != scope || !trap->applies(s, &why))
			continue;
		row = json_object();
		json_object_set_new(row, "id", json_string(trap->id));
		json_object_set_new(row, "level", json_string(trap->note ? "note" : "warning"));
		json_object_set_new(row, "text", json_string(trap->text));
		json_object_set_new(row, "detail", text_or_null(why.text));
		json_array_append_new(array, row);
	}
	return array;
}

/* ---- gathering ---------------------------------------------------------------------------- */

static json_int_t counter(json_t *from, const char *key)
{
	json_t *value = json_object_get(from, key);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

/* ATA drives count power losses as attribute 174 or 192, by vendor (smartmontools' drivedb); 192 of
 * a hard disk counts head retracts (M5.3). */
static json_int_t ata_unsafe_shutdowns(json_t *smart, bool rotational)
{
	json_t *rows = json_object_get(json_object_get(smart, "ata_smart_attributes"), "table"), *row;
	json_int_t found = -1;
	size_t i;

	json_array_foreach(rows, i, row) {
		json_int_t id = counter(row, "id");

		if (id == 174 || (id == 192 && found < 0 && !rotational))
			found = counter(json_object_get(row, "raw"), "value");
	}
	return found;
}

static void ask_smart(struct identify_subject *s)
{
	struct identify_counters *c = &s->counters;
	struct pp_error err;
	struct pp_buf text;
	json_t *smart, *nvme;

	pp_buf_init(&text, SMART_BYTES_MAX);
	if (pp_drive_smart(s->sys, &s->drive, &text, &err) != 0)
		fprintf(stderr, "plugpull identify: %s\n", err.text);
	smart = text.bytes ? json_loadb(text.data, text.bytes, 0, NULL) : NULL;
	nvme = json_object_get(smart, "nvme_smart_health_information_log");
	c->power_cycles = counter(smart, "power_cycle_count");
	if (nvme && c->power_cycles < 0)
		c->power_cycles = counter(nvme, "power_cycles");
	c->unsafe_shutdowns = nvme ? counter(nvme, "unsafe_shutdowns") :
		ata_unsafe_shutdowns(smart, s->drive.rotational);
	c->media_errors = counter(nvme, "media_errors");
	c->used_percent = counter(nvme, "percentage_used");
	c->critical_warning = counter(nvme, "critical_warning");
	c->power_on_hours = counter(json_object_get(smart, "power_on_time"), "hours");
	json_decref(smart);
	pp_buf_release(&text);
}

static json_t *drive_to_json(const struct identify_subject *s)
{
	json_t *drive = json_object(), *asked = json_array();

	json_object_set_new(drive, "name", json_string(s->drive.name));
	for (size_t i = 0; i < identify_field_count; i++) {
		struct identify_value v = {.kind = IDENTIFY_TEXT};

		identify_fields[i].get(s, &v);
		json_object_set_new(drive, identify_fields[i].key, value_to_json(&v));
	}
	for (size_t i = 0; i < s->detail.said_count; i++)
		json_array_append_new(asked, json_pack("{s:s, s:s}", "question", s->detail.said[i].label,
			"answer", s->detail.said[i].text));
	if (json_array_size(asked))
		json_object_set(drive, "asked", asked);
	json_decref(asked);
	json_object_set_new(drive, "warnings", find_traps(s, IDENTIFY_OF_DRIVE));
	return drive;
}

static json_t *layers_to_json(const struct pp_sysroot *sys, const struct pp_stack *stack)
{
	json_t *layers = json_array();

	for (size_t i = 0; i < stack->layer_count; i++) {
		const struct pp_stack_layer *layer = &stack->layers[i];
		struct pp_layer_detail detail = {.what = ""};
		json_t *row = json_object();

		if (strcmp(layer->kind, "file system") != 0)
			pp_layer_detail_read(sys, layer->name, &detail);
		json_object_set_new(row, "name", json_string(layer->name));
		json_object_set_new(row, "kind", json_string(layer->kind));
		json_object_set_new(row, "depth", json_integer(layer->depth));
		json_object_set_new(row, "what", text_or_null(detail.what));
		json_object_set_new(row, "content", text_or_null(detail.content));
		json_object_set_new(row, "uuid", text_or_null(detail.uuid));
		json_object_set_new(row, "backing_file", text_or_null(detail.file));
		json_array_append_new(layers, row);
	}
	return layers;
}

static json_t *stack_to_json(struct identify_subject *s, const char *target)
{
	json_t *object = json_object(), *drives = json_array();
	const struct pp_stack *stack = s->stack;

	json_object_set_new(object, "target", json_string(target));
	json_object_set_new(object, "fs_type", text_or_null(stack->fs_type));
	json_object_set_new(object, "fs_source", text_or_null(stack->fs_source));
	json_object_set_new(object, "fs_root", text_or_null(stack->fs_root));
	json_object_set_new(object, "mount_point", text_or_null(stack->mount_point));
	json_object_set_new(object, "mount_options", text_or_null(stack->mount_options));
	json_object_set_new(object, "layers", layers_to_json(s->sys, stack));
	json_object_set_new(object, "incomplete", text_or_null(stack->incomplete_text));
	for (size_t i = 0; i < stack->layer_count; i++)
		if (identify_load_drive(s, i))
			json_array_append_new(drives, drive_to_json(s));
	json_object_set_new(object, "drives", drives);
	json_object_set_new(object, "warnings", find_traps(s, IDENTIFY_OF_TARGET));
	return object;
}

static json_t *machine_to_json(const struct identify_subject *s)
{
	const struct pp_machine *m = s->machine;
	json_t *object = json_object();

	json_object_set_new(object, "vendor", text_or_null(m->vendor));
	json_object_set_new(object, "product", text_or_null(m->product));
	json_object_set_new(object, "hypervisor", text_or_null(m->hypervisor));
	json_object_set_new(object, "container", json_boolean(m->container));
	json_object_set_new(object, "battery", text_or_null(m->battery));
	json_object_set_new(object, "warnings", find_traps(s, IDENTIFY_OF_MACHINE));
	return object;
}

static void json_machine(void *ctx, struct identify_subject *s)
{
	json_object_set_new(ctx, "machine", machine_to_json(s));
}

static void json_target(void *ctx, struct identify_subject *s, const char *target)
{
	json_array_append_new(json_object_get(ctx, "targets"), stack_to_json(s, target));
}

static int print_json(const char *target, struct identify_subject *s, struct pp_error *err)
{
	json_t *whole = json_object();
	const struct identify_visitor visitor = {json_machine, json_target, whole};
	int status;

	json_object_set_new(whole, "format", json_integer(1));
	json_object_set_new(whole, "targets", json_array());
	status = identify_visit(target, s, &visitor, err);
	if (status >= 0) {
		json_dumpf(whole, stdout, JSON_INDENT(2));
		printf("\n");
	}
	json_decref(whole);
	return status;
}

static int identify(const struct options *o)
{
	struct pp_sysroot sys = pp_sysroot_live;
	struct identify_subject s = {.sys = &sys, .expected = o->expected,
		.expected_count = o->expected_count};
	struct pp_machine machine;
	const char *target = o->all ? NULL : o->target;
	struct pp_error err;
	int status;

	if (o->smart)
		s.ask_counters = ask_smart;
	if (o->sysroot)
		sys = (struct pp_sysroot){.root = o->sysroot, .ops = NULL};
	pp_machine_read(&sys, &machine);
	s.machine = &machine;
	status = o->json ? print_json(target, &s, &err) : identify_print(target, &s, &err);
	if (status < 0) {
		fprintf(stderr, "plugpull identify: %s\n", err.text);
		status = 2;
	}
	return status;
}

int pp_cmd_identify(int argc, char **argv)
{
	struct options o = {.target = NULL};
	int status = take_options(argc, argv, &o);

	if (status < 0)
		status = identify(&o);
	free(o.plan);
	return status;
}
