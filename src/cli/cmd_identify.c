/* SPDX-License-Identifier: MIT
 *
 * plugpull identify: which drives are beneath a target, what they say of themselves, and the traps
 * that would make a measurement there mean something else than it seems.
 *
 * Everything becomes one JSON object first; the text is printed from it. The fields of a drive and the
 * traps are tables (identify_parts.h).
 */
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd_identify.h"
#include "identify_parts.h"
#include "src/campaign/plan.h"
#include "version.h"

#define COLUMNS 80
#define LABEL_COLUMNS 18
#define SMART_BYTES_MAX (1 << 20)

/* ---- options ------------------------------------------------------------------------------ */

struct options {
	const char *target, *sysroot;
	bool all, json, smart;
	const char *expected[PP_IDENTIFY_EXPECTED_MAX];
	size_t expected_count;
	struct pp_plan *plan;
};

static const struct {
	struct option option;
	const char *argument, *help;
} table[] = {
	{{"all", no_argument, NULL, 'a'}, NULL, "every drive of this machine"},
	{{"json", no_argument, NULL, 'j'}, NULL, "one JSON object"},
	{{"smart", no_argument, NULL, 's'}, NULL, "ask smartctl for power-loss counters"},
	{{"expect", required_argument, NULL, 'e'}, "SERIAL", "warn, exit 2, if it is another drive"},
	{{"plan", required_argument, NULL, 'p'}, "PLAN", "the same for the drives of a plan"},
	{{"sysroot", required_argument, NULL, 'R'}, "DIR", "a recorded machine: DIR holds sys and proc"},
	{{"version", no_argument, NULL, 'V'}, NULL, "print the version, exit"},
	{{"help", no_argument, NULL, 'h'}, NULL, "print this, exit"},
};
#define OPTIONS (sizeof(table) / sizeof(table[0]))

static int usage_error(const char *what, const char *subject)
{
	fprintf(stderr, "plugpull identify: %s%s%s%s\nTry 'plugpull identify --help'.\n", what,
		subject ? " '" : "", subject ? subject : "", subject ? "'" : "");
	return 2;
}

static int help(void)
{
	printf("Usage: plugpull identify [OPTION]... TARGET\n"
		"       plugpull identify [OPTION]... --all\n"
		"Says which drives are beneath TARGET (a file, folder, device, or a drive's\n"
		"serial or WWN), their cache policy, and what would spoil a measurement there.\n"
		"Writes nothing.\n\n");
	for (size_t i = 0; i < OPTIONS; i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", table[i].option.name,
			table[i].argument ? " " : "", table[i].argument ? table[i].argument : "");
		printf("  %-18s %s\n", left, table[i].help);
	}
	printf("\nExit status: 0 identified, 2 could not, or it is another drive.\n");
	return 0;
}

static int take_plan(struct options *o, const char *path)
{
	struct pp_error err;

	if (o->plan)
		return usage_error("a second plan", path);
	o->plan = calloc(1, sizeof(*o->plan));
	if (!o->plan || pp_plan_load(o->plan, path, &err) != 0) {
		fprintf(stderr, "plugpull identify: %s\n", o->plan ? err.text : "out of memory");
		return 2;
	}
	for (uint32_t i = 0; i < o->plan->drives; i++)
		if (o->plan->drive[i].serial[0] && o->expected_count < PP_IDENTIFY_EXPECTED_MAX)
			o->expected[o->expected_count++] = o->plan->drive[i].serial;
	if (!o->expected_count)
		return usage_error("no drive has a serial in the plan", path);
	return -1;
}

/* -1: go on; else the exit status. */
static int take_options(int argc, char **argv, struct options *o)
{
	struct option options[OPTIONS + 1] = {{NULL, 0, NULL, 0}};
	const char *expect = NULL, *plan = NULL;
	int c;

	for (size_t i = 0; i < OPTIONS; i++)
		options[i] = table[i].option;
	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (c == 'h')
			return help();
		if (c == 'V') {
			printf("plugpull %s (%s)\n", PP_VERSION, PP_COMMIT);
			return 0;
		}
		if (c == ':')
			return usage_error("an argument is missing after", argv[optind - 1]);
		if (c == '?')
			return usage_error("there is no option", argv[optind - 1]);
		o->all |= c == 'a';
		o->json |= c == 'j';
		o->smart |= c == 's';
		if (c == 'R')
			o->sysroot = optarg;
		if (c == 'e')
			expect = optarg;
		if (c == 'p')
			plan = optarg;
	}
	if (optind < argc)
		o->target = argv[optind++];
	if (optind < argc)
		return usage_error("a second target", argv[optind]);
	if (o->all == (o->target != NULL))
		return usage_error("name one target, or --all", NULL);
	if (expect)
		o->expected[o->expected_count++] = expect;
	return plan ? take_plan(o, plan) : -1;
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

static json_t *drive_to_json(struct identify_subject *s, bool smart)
{
	json_t *drive = json_object();

	s->counters = (struct identify_counters){-1, -1, -1, -1, -1, -1};
	pp_drive_detail_read(s->sys, &s->drive, &s->detail);
	if (smart && !pp_transport_layer(s->drive.transport))
		ask_smart(s);
	json_object_set_new(drive, "name", json_string(s->drive.name));
	for (size_t i = 0; i < identify_field_count; i++) {
		struct identify_value v = {.kind = IDENTIFY_TEXT};

		identify_fields[i].get(s, &v);
		json_object_set_new(drive, identify_fields[i].key, value_to_json(&v));
	}
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

static json_t *stack_to_json(const struct options *o, struct identify_subject *s,
	const char *target, const struct pp_stack *stack)
{
	json_t *object = json_object(), *drives = json_array();

	s->stack = stack;
	json_object_set_new(object, "target", json_string(target));
	json_object_set_new(object, "fs_type", text_or_null(stack->fs_type));
	json_object_set_new(object, "fs_source", text_or_null(stack->fs_source));
	json_object_set_new(object, "fs_root", text_or_null(stack->fs_root));
	json_object_set_new(object, "mount_point", text_or_null(stack->mount_point));
	json_object_set_new(object, "mount_options", text_or_null(stack->mount_options));
	json_object_set_new(object, "layers", layers_to_json(s->sys, stack));
	json_object_set_new(object, "incomplete", text_or_null(stack->incomplete_text));
	for (size_t i = 0; i < stack->layer_count; i++)
		if (stack->layers[i].whole &&
			pp_drive_read(s->sys, stack->layers[i].name, &s->drive, NULL) == 0)
			json_array_append_new(drives, drive_to_json(s, o->smart));
	json_object_set_new(object, "drives", drives);
	json_object_set_new(object, "warnings", find_traps(s, IDENTIFY_OF_TARGET));
	s->stack = NULL;
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

/* A path where there is one, else a kernel name, else a serial or WWN. */
static int find_stack(const struct pp_sysroot *sys, const char *target, struct pp_stack *stack,
	struct pp_error *err)
{
	struct pp_drive_info info;
	struct stat st;

	if (strchr(target, '/') && (sys->root[0] || stat(target, &st) == 0) &&
		pp_drive_find(sys, target, &info, NULL) != 0)
		return pp_drive_of_path(sys, target, stack, err);
	if (!strchr(target, '/') && !sys->root[0] && stat(target, &st) == 0)
		return pp_drive_of_path(sys, target, stack, err);
	if (pp_drive_of_name(sys, target, stack, NULL) == 0)
		return 0;
	if (pp_drive_find(sys, target, &info, err) != 0)
		return -1;
	return pp_drive_of_name(sys, info.name, stack, err);
}

/* 0, or 2 where a drive is not the expected one; -1 on failure. */
static int gather(const struct options *o, struct identify_subject *s, json_t *whole,
	struct pp_error *err)
{
	json_t *targets = json_array();
	struct pp_drive_info *list, info;
	struct pp_stack stack;
	size_t count;
	int rc = 0;

	json_object_set_new(whole, "format", json_integer(1));
	json_object_set_new(whole, "targets", targets);
	if (!o->all) {
		if (find_stack(s->sys, o->target, &stack, err) != 0)
			return -1;
		json_array_append_new(targets, stack_to_json(o, s, o->target, &stack));
		s->stack = &stack;
		rc = identify_as_expected(s) ? 0 : 2;
		s->expected_count = 0; /* the machine is not asked for a whole plan */
		s->stack = NULL;
		json_object_set_new(whole, "machine", machine_to_json(s));
		return rc;
	}
	if (pp_drive_list(s->sys, &list, &count, err) != 0)
		return -1;
	json_object_set_new(whole, "machine", machine_to_json(s));
	for (size_t i = 0; i < s->expected_count; i++)
		if (pp_drive_find(s->sys, s->expected[i], &info, NULL) != 0)
			rc = 2;
	s->expected_count = 0; /* others are here too: that is no fault of theirs */
	for (size_t i = 0; i < count; i++)
		if (pp_drive_of_name(s->sys, list[i].name, &stack, NULL) == 0)
			json_array_append_new(targets, stack_to_json(o, s, list[i].node, &stack));
	free(list);
	return rc;
}

/* ---- text --------------------------------------------------------------------------------- */

/* A label and its text, wrapped at blanks and commas to COLUMNS. */
static void print_row(const char *label, const char *text)
{
	size_t room = COLUMNS - 2 - LABEL_COLUMNS - 1;
	bool first = true;

	do {
		size_t n = strlen(text);

		if (n > room) {
			n = room;
			while (n && text[n - 1] != ' ' && text[n - 1] != ',')
				n--;
			if (!n)
				n = room;
		}
		printf("  %-*s %.*s\n", LABEL_COLUMNS, first ? label : "",
			(int)(n && text[n - 1] == ' ' ? n - 1 : n), text);
		text += n;
		first = false;
	} while (*text);
}

static void print_warnings(json_t *warnings)
{
	json_t *row;
	size_t i;

	json_array_foreach(warnings, i, row) {
		const char *level = json_string_value(json_object_get(row, "level"));
		const char *detail = json_string_value(json_object_get(row, "detail"));
		char text[1024];

		snprintf(text, sizeof(text), "%s%s%s%s",
			json_string_value(json_object_get(row, "text")), detail ? " (" : "",
			detail ? detail : "", detail ? ")" : "");
		print_row(strcmp(level, "note") == 0 ? "note" : "WARNING", text);
	}
}

static void print_drive(json_t *drive)
{
	printf("%s\n", json_string_value(json_object_get(drive, "name")));
	for (size_t i = 0; i < identify_field_count; i++) {
		json_t *json = json_object_get(drive, identify_fields[i].key);
		struct identify_value v = {.kind = IDENTIFY_NUMBER};
		char text[600];

		if (!identify_fields[i].label || json_is_null(json))
			continue;
		if (json_is_string(json)) {
			print_row(identify_fields[i].label, json_string_value(json));
			continue;
		}
		if (json_is_boolean(json))
			v.kind = IDENTIFY_TRUTH;
		else if (strcmp(identify_fields[i].key, "size_bytes") == 0)
			v.kind = IDENTIFY_BYTES;
		v.number = json_is_boolean(json) ? json_is_true(json) : json_integer_value(json);
		identify_value_text(&v, text, sizeof(text));
		print_row(identify_fields[i].label, text);
	}
	print_warnings(json_object_get(drive, "warnings"));
}

static void print_member(json_t *target, const char *key, const char *label)
{
	const char *text = json_string_value(json_object_get(target, key));

	if (text)
		print_row(label, text);
}

/* A row a layer, indented by its depth: what it is, what libblkid finds on it. */
static void print_layers(json_t *layers)
{
	json_int_t top = json_integer_value(json_object_get(json_array_get(layers, 0), "depth"));
	json_t *row;
	size_t i;

	json_array_foreach(layers, i, row) {
		const char *what = json_string_value(json_object_get(row, "what"));
		const char *content = json_string_value(json_object_get(row, "content"));
		const char *file = json_string_value(json_object_get(row, "backing_file"));
		char text[640];

		snprintf(text, sizeof(text), "%*s%s: %s%s%s%s%s",
			(int)(json_integer_value(json_object_get(row, "depth")) - top), "",
			json_string_value(json_object_get(row, "name")),
			what ? what : json_string_value(json_object_get(row, "kind")),
			file ? " of " : "", file ? file : "", content ? ", holds " : "",
			content ? content : "");
		print_row(i ? "" : "beneath", text);
	}
}

static void print_machine(json_t *machine)
{
	json_t *warnings = json_object_get(machine, "warnings");

	if (!json_array_size(warnings))
		return;
	printf("this machine\n");
	print_member(machine, "vendor", "made by");
	print_member(machine, "product", "product");
	print_member(machine, "hypervisor", "hypervisor");
	print_warnings(warnings);
	printf("\n");
}

/* With --all the target is the drive itself: its own heading is enough. */
static void print_target(json_t *target, bool heading)
{
	const char *root = json_string_value(json_object_get(target, "fs_root"));
	json_t *drive;
	size_t i;

	if (heading) {
		printf("%s\n", json_string_value(json_object_get(target, "target")));
		print_member(target, "fs_type", "file system");
		print_member(target, "fs_source", "from");
		if (root && strcmp(root, "/") != 0)
			print_member(target, "fs_root", "its folder");
		print_member(target, "mount_point", "mounted on");
		print_member(target, "mount_options", "mount options");
		print_layers(json_object_get(target, "layers"));
		print_member(target, "incomplete", "not followed");
		print_warnings(json_object_get(target, "warnings"));
	}
	json_array_foreach(json_object_get(target, "drives"), i, drive) {
		if (!heading && i)
			break; /* what is beneath a layer has a heading of its own */
		if (heading)
			printf("\n");
		print_drive(drive);
	}
	if (!heading) {
		if (json_array_size(json_object_get(target, "layers")) > 1)
			print_layers(json_object_get(target, "layers"));
		print_warnings(json_object_get(target, "warnings"));
	}
}

static void print_text(json_t *whole, bool heading)
{
	json_t *target;
	size_t i;

	print_machine(json_object_get(whole, "machine"));
	json_array_foreach(json_object_get(whole, "targets"), i, target) {
		if (i)
			printf("\n");
		print_target(target, heading);
	}
}

static int identify(const struct options *o)
{
	struct pp_sysroot sys = pp_sysroot_live;
	struct identify_subject s = {.sys = &sys, .expected = o->expected,
		.expected_count = o->expected_count};
	struct pp_machine machine;
	struct pp_error err;
	json_t *whole = json_object();
	int status;

	if (o->sysroot)
		sys = (struct pp_sysroot){.root = o->sysroot, .ops = NULL};
	pp_machine_read(&sys, &machine);
	s.machine = &machine;
	status = gather(o, &s, whole, &err);
	if (status < 0) {
		fprintf(stderr, "plugpull identify: %s\n", err.text);
		status = 2;
	} else if (o->json) {
		json_dumpf(whole, stdout, JSON_INDENT(2));
		printf("\n");
	} else {
		print_text(whole, !o->all);
	}
	json_decref(whole);
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
