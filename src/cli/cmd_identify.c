/* SPDX-License-Identifier: MIT
 *
 * plugpull identify: which drives are beneath a target, what they say of themselves, and the traps
 * that would make a measurement there mean something else than it seems.
 *
 * Text and JSON come from one table of fields; the traps are one table of rules. A new field or
 * trap is a new row.
 */
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd_identify.h"
#include "src/core/drive.h"
#include "version.h"

#define COLUMNS 80
#define LABEL_COLUMNS 18
#define SMART_BYTES_MAX (1 << 20)

/* Everything known of one drive of one target; stack is NULL when drives alone are listed. */
struct subject {
	const struct pp_sysroot *sys;
	const struct pp_stack *stack;
	struct pp_drive_info drive;
	json_int_t power_cycles, unsafe_shutdowns; /* -1: unknown */
};

/* ---- options ------------------------------------------------------------------------------ */

struct options {
	const char *target, *sysroot;
	bool all, json, smart;
};

static const struct {
	struct option option;
	const char *argument, *help;
} table[] = {
	{{"all", no_argument, NULL, 'a'}, NULL, "every drive of this machine"},
	{{"json", no_argument, NULL, 'j'}, NULL, "one JSON object"},
	{{"smart", no_argument, NULL, 's'}, NULL, "ask smartctl for power-loss counters"},
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
	printf("\nExit status: 0 identified, 2 could not.\n");
	return 0;
}

/* -1: go on; else the exit status. */
static int take_options(int argc, char **argv, struct options *o)
{
	struct option options[OPTIONS + 1] = {{NULL, 0, NULL, 0}};
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
	}
	if (optind < argc)
		o->target = argv[optind++];
	if (optind < argc)
		return usage_error("a second target", argv[optind]);
	if (o->all == (o->target != NULL))
		return usage_error("name one target, or --all", NULL);
	return -1;
}

/* ---- fields ------------------------------------------------------------------------------- */

/* A value is a string, or an integer with a unit, or a truth; "" and -1 are unknown. */
struct value {
	enum { TEXT, NUMBER, BYTES, TRUTH } kind;
	char text[512];
	json_int_t number;
};

typedef void field_fn(const struct subject *, struct value *);

static void set_text(struct value *v, const char *text)
{
	v->kind = TEXT;
	snprintf(v->text, sizeof(v->text), "%s", text);
}

static void set_number(struct value *v, int kind, json_int_t number)
{
	v->kind = kind;
	v->number = number;
}

static void get_node(const struct subject *s, struct value *v)
{
	set_text(v, s->drive.node);
}

static void get_model(const struct subject *s, struct value *v)
{
	set_text(v, s->drive.model);
}

static void get_serial(const struct subject *s, struct value *v)
{
	set_text(v, s->drive.serial);
}

static void get_wwn(const struct subject *s, struct value *v)
{
	set_text(v, s->drive.wwn);
}

static void get_firmware(const struct subject *s, struct value *v)
{
	set_text(v, s->drive.firmware);
}

static void get_transport(const struct subject *s, struct value *v)
{
	set_text(v, pp_transport_name(s->drive.transport));
}

static void get_size(const struct subject *s, struct value *v)
{
	set_number(v, BYTES, (json_int_t)s->drive.size_bytes);
}

static void get_logical(const struct subject *s, struct value *v)
{
	set_number(v, NUMBER, s->drive.logical_block_bytes);
}

static void get_physical(const struct subject *s, struct value *v)
{
	set_number(v, NUMBER, s->drive.physical_block_bytes);
}

static void get_stripe(const struct subject *s, struct value *v)
{
	set_number(v, NUMBER, s->drive.stripe_bytes ? (json_int_t)s->drive.stripe_bytes : -1);
}

static void get_write_cache(const struct subject *s, struct value *v)
{
	set_text(v, s->drive.write_cache);
}

static void get_fua(const struct subject *s, struct value *v)
{
	set_number(v, TRUTH, s->drive.fua);
}

static void get_drive_cache(const struct subject *s, struct value *v)
{
	static const char *const names[] = {
		[PP_CACHE_UNKNOWN] = "",
		[PP_CACHE_NONE] = "none",
		[PP_CACHE_OFF] = "off",
		[PP_CACHE_ON] = "on",
	};

	set_text(v, names[s->drive.drive_cache]);
}

static void get_policy(const struct subject *s, struct value *v)
{
	v->kind = TEXT;
	pp_drive_policy(&s->drive, v->text, sizeof(v->text));
}

static void get_rotational(const struct subject *s, struct value *v)
{
	set_number(v, TRUTH, s->drive.rotational);
}

static void get_removable(const struct subject *s, struct value *v)
{
	set_number(v, TRUTH, s->drive.removable);
}

static void get_partitions(const struct subject *s, struct value *v)
{
	set_number(v, TRUTH, s->drive.has_partitions);
}

static void get_power_cycles(const struct subject *s, struct value *v)
{
	set_number(v, NUMBER, s->power_cycles);
}

static void get_unsafe_shutdowns(const struct subject *s, struct value *v)
{
	set_number(v, NUMBER, s->unsafe_shutdowns);
}

static const struct {
	const char *key;   /* of JSON */
	const char *label; /* of the text; NULL: in JSON only */
	field_fn *get;
} fields[] = {
	{"device", "device", get_node},
	{"model", "model", get_model},
	{"serial", "serial", get_serial},
	{"wwn", "WWN", get_wwn},
	{"firmware", "firmware", get_firmware},
	{"transport", "transport", get_transport},
	{"size_bytes", "size", get_size},
	{"logical_block_bytes", "logical block", get_logical},
	{"physical_block_bytes", "physical block", get_physical},
	{"stripe_bytes", "parity stripe", get_stripe},
	{"policy", "cache policy", get_policy},
	{"kernel_write_cache", NULL, get_write_cache},
	{"fua", NULL, get_fua},
	{"drive_cache", "drive's own cache", get_drive_cache},
	{"rotational", NULL, get_rotational},
	{"removable", NULL, get_removable},
	{"partitions", NULL, get_partitions},
	{"power_cycles", "power cycles", get_power_cycles},
	{"unsafe_shutdowns", "unsafe shutdowns", get_unsafe_shutdowns},
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static bool is_known(const struct value *v)
{
	return v->kind == TEXT ? v->text[0] != '\0' : v->number >= 0;
}

static json_t *value_to_json(const struct value *v)
{
	if (!is_known(v))
		return json_null();
	if (v->kind == TEXT)
		return json_string(v->text);
	return v->kind == TRUTH ? json_boolean(v->number != 0) : json_integer(v->number);
}

static void value_to_text(const struct value *v, char *out, size_t out_bytes)
{
	if (v->kind == TEXT)
		snprintf(out, out_bytes, "%s", v->text);
	else if (v->kind == BYTES)
		snprintf(out, out_bytes, "%.1f GB (%" JSON_INTEGER_FORMAT " bytes)",
			(double)v->number / 1e9, v->number);
	else if (v->kind == NUMBER)
		snprintf(out, out_bytes, "%" JSON_INTEGER_FORMAT, v->number);
	else
		snprintf(out, out_bytes, "%s", v->number ? "yes" : "no");
}

/* ---- traps -------------------------------------------------------------------------------- */

static bool write_through_over_write_back(const struct subject *s)
{
	return strcmp(s->drive.write_cache, "write through") == 0 &&
		s->drive.drive_cache == PP_CACHE_ON;
}

/* sd.c, "Assuming drive cache: write through": what it says of a bridge that does not answer. */
static bool write_through_by_guess(const struct subject *s)
{
	return strcmp(s->drive.write_cache, "write through") == 0 &&
		s->drive.transport == PP_TRANSPORT_USB && s->drive.drive_cache == PP_CACHE_UNKNOWN;
}

static bool write_through_unasked(const struct subject *s)
{
	return strcmp(s->drive.write_cache, "write through") == 0 &&
		s->drive.drive_cache == PP_CACHE_UNKNOWN && !write_through_by_guess(s) &&
		!pp_transport_layer(s->drive.transport);
}

static bool is_remote(const struct subject *s)
{
	return pp_transport_remote(s->drive.transport);
}

static bool has_no_serial(const struct subject *s)
{
	return !s->drive.serial[0] && !s->drive.wwn[0];
}

static bool has_bridge_serial(const struct subject *s)
{
	return s->drive.serial_of_bridge;
}

static bool has_raid_card(const struct subject *s)
{
	return s->drive.raid_controller[0] != '\0';
}

static bool is_system_drive(const struct subject *s)
{
	char why[256];

	return pp_drive_carries_system(s->sys, s->drive.name, why, sizeof(why), NULL) == 1;
}

static bool has_no_cache(const struct subject *s)
{
	return s->drive.no_volatile_cache;
}

static bool has_no_barrier(const struct subject *s)
{
	return pp_stack_no_barrier(s->stack);
}

static bool has_no_drive(const struct subject *s)
{
	return s->stack->disk_count == 0;
}

static bool has_several_drives(const struct subject *s)
{
	return s->stack->disk_count > 1;
}

static bool is_overlay(const struct subject *s)
{
	return strcmp(s->stack->fs_type, "overlay") == 0;
}

struct trap {
	const char *id;
	bool of_stack; /* asked once a target; else once a drive */
	bool (*applies)(const struct subject *);
	const char *text;
};

static const struct trap traps[] = {
	{"write-through-over-write-back", false, write_through_over_write_back,
		"the kernel believes write through and drops every flush, but the drive's own cache is on: "
		"nothing here is safe from a power cut. Set it back: echo 'write back' > "
		"/sys/block/NAME/queue/write_cache"},
	{"write-through-guessed", false, write_through_by_guess,
		"the kernel assumes write through, as it does of a USB bridge that does not tell: no flush "
		"is ever sent, whatever cache the disk behind it has"},
	{"write-through-unasked", false, write_through_unasked,
		"the kernel sends no flush to this device (write through), and the drive could not be asked "
		"whether its own cache is on"},
	{"remote-drive", false, is_remote,
		"this device lives in a file, a hypervisor or another machine: cutting this machine's power "
		"need not reach the cache that matters"},
	{"no-serial", false, has_no_serial,
		"the drive tells no serial or WWN: no campaign can prove that it is the same drive after a "
		"cut"},
	{"bridge-serial", false, has_bridge_serial,
		"the serial may be the USB enclosure's: another disk in it would look the same"},
	{"raid-card", false, has_raid_card,
		"a RAID card with a cache of its own is above this disk: a verdict is about the two together"},
	{"system-drive", false, is_system_drive,
		"the drive carries the running system: it is a target only where the plan says boot_drive = "
		"yes"},
	{"no-volatile-cache", false, has_no_cache,
		"the drive declares no volatile cache: flushes are not sent, safety rests on its own "
		"protection alone"},
	{"no-barrier", true, has_no_barrier,
		"a mount option (barriers off, or volatile) keeps syncs from reaching the drive: losses here "
		"say nothing about the drive"},
	{"no-drive", true, has_no_drive,
		"no drive of this machine is beneath: what a sync means here cannot be judged by a power "
		"cut"},
	{"several-drives", true, has_several_drives,
		"more than one drive is beneath: a verdict is about the set, and no two of these drives can "
		"be tested in one cut"},
	{"overlay", true, is_overlay,
		"an overlay (a container's file system) is on top: use a folder that is mounted from the "
		"drive itself"},
};

/* Puts the id and text of each trap that applies into array. */
static void find_traps(const struct subject *s, bool of_stack, json_t *array)
{
	for (size_t i = 0; i < sizeof(traps) / sizeof(traps[0]); i++) {
		json_t *row;

		if (traps[i].of_stack != of_stack || !traps[i].applies(s))
			continue;
		row = json_object();
		json_object_set_new(row, "id", json_string(traps[i].id));
		json_object_set_new(row, "text", json_string(traps[i].text));
		json_array_append_new(array, row);
	}
}

/* ---- gathering ---------------------------------------------------------------------------- */

static json_int_t counter(json_t *from, const char *key)
{
	json_t *value = json_object_get(from, key);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

/* ATA drives count power losses as attribute 174 or 192, by vendor (smartmontools' drivedb). */
static json_int_t ata_unsafe_shutdowns(json_t *smart)
{
	json_t *rows = json_object_get(json_object_get(smart, "ata_smart_attributes"), "table"), *row;
	json_int_t found = -1;
	size_t i;

	json_array_foreach(rows, i, row) {
		json_int_t id = counter(row, "id");

		if (id == 174 || (id == 192 && found < 0))
			found = counter(json_object_get(row, "raw"), "value");
	}
	return found;
}

static void ask_smart(struct subject *s)
{
	struct pp_error err;
	struct pp_buf text;
	json_t *smart;

	pp_buf_init(&text, SMART_BYTES_MAX);
	if (pp_drive_smart_raw(&s->drive, &text, &err) != 0)
		fprintf(stderr, "plugpull identify: %s\n", err.text);
	smart = text.bytes ? json_loadb(text.data, text.bytes, 0, NULL) : NULL;
	if (smart) {
		json_t *nvme = json_object_get(smart, "nvme_smart_health_information_log");

		s->power_cycles = counter(smart, "power_cycle_count");
		if (nvme && s->power_cycles < 0)
			s->power_cycles = counter(nvme, "power_cycles");
		s->unsafe_shutdowns = nvme ? counter(nvme, "unsafe_shutdowns") :
			ata_unsafe_shutdowns(smart);
	}
	json_decref(smart);
	pp_buf_release(&text);
}

static json_t *drive_to_json(struct subject *s, bool smart)
{
	json_t *drive = json_object(), *warnings = json_array();

	s->power_cycles = s->unsafe_shutdowns = -1;
	if (smart && !pp_transport_layer(s->drive.transport))
		ask_smart(s);
	json_object_set_new(drive, "name", json_string(s->drive.name));
	for (size_t i = 0; i < FIELDS; i++) {
		struct value v = {.kind = TEXT};

		fields[i].get(s, &v);
		json_object_set_new(drive, fields[i].key, value_to_json(&v));
	}
	find_traps(s, false, warnings);
	json_object_set_new(drive, "warnings", warnings);
	return drive;
}

static json_t *layers_to_json(const struct pp_stack *stack)
{
	json_t *layers = json_array();

	for (size_t i = 0; i < stack->layer_count; i++) {
		json_t *row = json_object();

		json_object_set_new(row, "name", json_string(stack->layers[i].name));
		json_object_set_new(row, "kind", json_string(stack->layers[i].kind));
		json_object_set_new(row, "depth", json_integer(stack->layers[i].depth));
		json_array_append_new(layers, row);
	}
	return layers;
}

static json_t *text_or_null(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

static json_t *stack_to_json(const struct options *o, const struct pp_sysroot *sys,
	const char *target, const struct pp_stack *stack)
{
	json_t *object = json_object(), *drives = json_array(), *warnings = json_array();
	struct subject s = {.sys = sys, .stack = stack};

	json_object_set_new(object, "target", json_string(target));
	json_object_set_new(object, "fs_type", text_or_null(stack->fs_type));
	json_object_set_new(object, "fs_source", text_or_null(stack->fs_source));
	json_object_set_new(object, "mount_point", text_or_null(stack->mount_point));
	json_object_set_new(object, "mount_options", text_or_null(stack->mount_options));
	json_object_set_new(object, "layers", layers_to_json(stack));
	json_object_set_new(object, "incomplete", text_or_null(stack->incomplete_text));
	for (size_t i = 0; i < stack->layer_count; i++)
		if (stack->layers[i].whole &&
			pp_drive_read(sys, stack->layers[i].name, &s.drive, NULL) == 0)
			json_array_append_new(drives, drive_to_json(&s, o->smart));
	find_traps(&s, true, warnings);
	json_object_set_new(object, "drives", drives);
	json_object_set_new(object, "warnings", warnings);
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

static int gather(const struct options *o, const struct pp_sysroot *sys, json_t *targets,
	struct pp_error *err)
{
	struct pp_drive_info *list;
	struct pp_stack stack;
	size_t count;

	if (!o->all) {
		if (find_stack(sys, o->target, &stack, err) != 0)
			return -1;
		json_array_append_new(targets, stack_to_json(o, sys, o->target, &stack));
		return 0;
	}
	if (pp_drive_list(sys, &list, &count, err) != 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (pp_drive_of_name(sys, list[i].name, &stack, NULL) == 0)
			json_array_append_new(targets, stack_to_json(o, sys, list[i].node, &stack));
	free(list);
	return 0;
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

	json_array_foreach(warnings, i, row)
		print_row("WARNING", json_string_value(json_object_get(row, "text")));
}

static void print_drive(json_t *drive)
{
	printf("%s\n", json_string_value(json_object_get(drive, "name")));
	for (size_t i = 0; i < FIELDS; i++) {
		json_t *json = json_object_get(drive, fields[i].key);
		struct value v = {.kind = TEXT};
		char text[600];

		if (!fields[i].label || json_is_null(json))
			continue;
		if (json_is_string(json))
			set_text(&v, json_string_value(json));
		else
			set_number(&v, strcmp(fields[i].key, "size_bytes") == 0 ? BYTES : NUMBER,
				json_integer_value(json));
		value_to_text(&v, text, sizeof(text));
		print_row(fields[i].label, text);
	}
	print_warnings(json_object_get(drive, "warnings"));
}

static void print_member(json_t *target, const char *key, const char *label)
{
	const char *text = json_string_value(json_object_get(target, key));

	if (text)
		print_row(label, text);
}

static void print_layers(json_t *layers)
{
	char text[2048] = "";
	json_t *row;
	size_t i;

	json_array_foreach(layers, i, row) {
		size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used, "%s%s (%s)", used ? ", " : "",
			json_string_value(json_object_get(row, "name")),
			json_string_value(json_object_get(row, "kind")));
	}
	if (text[0])
		print_row("beneath", text);
}

/* With --all the target is the drive itself: its own heading is enough. */
static void print_target(json_t *target, bool heading)
{
	json_t *drive;
	size_t i;

	if (heading) {
		printf("%s\n", json_string_value(json_object_get(target, "target")));
		print_member(target, "fs_type", "file system");
		print_member(target, "fs_source", "from");
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
		print_layers(json_object_get(target, "layers"));
		print_warnings(json_object_get(target, "warnings"));
	}
}

int pp_cmd_identify(int argc, char **argv)
{
	struct options o = {.target = NULL};
	struct pp_sysroot sys = pp_sysroot_live;
	struct pp_error err;
	json_t *whole, *targets, *target;
	int status = take_options(argc, argv, &o);
	size_t i;

	if (status >= 0)
		return status;
	if (o.sysroot)
		sys = (struct pp_sysroot){.root = o.sysroot, .ops = NULL};
	whole = json_object();
	targets = json_array();
	json_object_set_new(whole, "format", json_integer(1));
	json_object_set_new(whole, "targets", targets);
	status = 0;
	if (gather(&o, &sys, targets, &err) != 0) {
		fprintf(stderr, "plugpull identify: %s\n", err.text);
		status = 2;
	} else if (o.json) {
		json_dumpf(whole, stdout, JSON_INDENT(2));
		printf("\n");
	} else {
		json_array_foreach(targets, i, target) {
			if (i)
				printf("\n");
			print_target(target, !o.all);
		}
	}
	json_decref(whole);
	return status;
}
