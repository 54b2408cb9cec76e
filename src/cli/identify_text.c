/* SPDX-License-Identifier: MIT
 *
 * What identify found, for people, in 80 columns. No JSON in here: the program of the machine under test
 * prints it too.
 */
#include <stdio.h>
#include <string.h>

#include "identify_parts.h"

#define COLUMNS 80
#define LABEL_COLUMNS 18

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

static void print_warnings(const struct identify_subject *s, enum identify_scope scope)
{
	for (size_t i = 0; i < identify_trap_count; i++) {
		const struct identify_trap *trap = &identify_traps[i];
		struct identify_why why = {.text = ""};
		char text[1024];

		if (trap->scope != scope || !trap->applies(s, &why))
			continue;
		snprintf(text, sizeof(text), "%s%s%s%s", trap->text, why.text[0] ? " (" : "", why.text,
			why.text[0] ? ")" : "");
		print_row(trap->note ? "note" : "WARNING", text);
	}
}

static void print_drive(const struct identify_subject *s)
{
	printf("%s\n", s->drive.name);
	for (size_t i = 0; i < identify_field_count; i++) {
		struct identify_value v = {.kind = IDENTIFY_TEXT};
		char text[600];

		if (!identify_fields[i].label)
			continue;
		identify_fields[i].get(s, &v);
		if (!identify_is_known(&v))
			continue;
		identify_value_text(&v, text, sizeof(text));
		print_row(identify_fields[i].label, text);
	}
	for (size_t i = 0; i < s->detail.said_count; i++)
		print_row(s->detail.said[i].label, s->detail.said[i].text);
	print_warnings(s, IDENTIFY_OF_DRIVE);
}

static void print_member(const char *label, const char *text)
{
	if (text[0])
		print_row(label, text);
}

/* A row a layer, indented by its depth: what it is, what libblkid finds on it. */
static void print_layers(const struct identify_subject *s)
{
	const struct pp_stack *stack = s->stack;

	for (size_t i = 0; i < stack->layer_count; i++) {
		const struct pp_stack_layer *layer = &stack->layers[i];
		struct pp_layer_detail d = {.what = ""};
		char text[640];

		if (strcmp(layer->kind, "file system") != 0)
			pp_layer_detail_read(s->sys, layer->name, &d);
		snprintf(text, sizeof(text), "%*s%s: %s%s%s%s%s", (int)(layer->depth - stack->layers[0].depth),
			"", layer->name, d.what[0] ? d.what : layer->kind, d.file[0] ? " of " : "", d.file,
			d.content[0] ? ", holds " : "", d.content);
		print_row(i ? "" : "beneath", text);
	}
}

static void print_machine(const struct identify_subject *s)
{
	bool warns = false;

	for (size_t i = 0; i < identify_trap_count && !warns; i++) {
		struct identify_why why = {.text = ""};

		warns = identify_traps[i].scope == IDENTIFY_OF_MACHINE && identify_traps[i].applies(s, &why);
	}
	if (!warns)
		return;
	printf("this machine\n");
	print_member("made by", s->machine->vendor);
	print_member("product", s->machine->product);
	print_member("hypervisor", s->machine->hypervisor);
	print_warnings(s, IDENTIFY_OF_MACHINE);
	printf("\n");
}

static void print_heading(const struct identify_subject *s, const char *target)
{
	const struct pp_stack *stack = s->stack;

	printf("%s\n", target);
	print_member("file system", stack->fs_type);
	print_member("from", stack->fs_source);
	if (strcmp(stack->fs_root, "/") != 0)
		print_member("its folder", stack->fs_root);
	print_member("mounted on", stack->mount_point);
	print_member("mount options", stack->mount_options);
	print_layers(s);
	print_member("not followed", stack->incomplete_text);
	print_warnings(s, IDENTIFY_OF_TARGET);
}

/* With --all the target is the drive itself: its own heading is enough. */
static void print_target(struct identify_subject *s, const char *target, bool heading)
{
	bool first = true;

	if (heading)
		print_heading(s, target);
	for (size_t i = 0; i < s->stack->layer_count; i++) {
		if (!identify_load_drive(s, i))
			continue;
		if (!heading && !first)
			break; /* what is beneath a layer has a heading of its own */
		if (heading)
			printf("\n");
		print_drive(s);
		first = false;
	}
	if (!heading) {
		if (s->stack->layer_count > 1)
			print_layers(s);
		print_warnings(s, IDENTIFY_OF_TARGET);
	}
}

static void text_machine(void *ctx, struct identify_subject *s)
{
	(void)ctx;
	print_machine(s);
}

struct text_state {
	bool heading, begun;
};

static void text_target(void *ctx, struct identify_subject *s, const char *target)
{
	struct text_state *state = ctx;

	if (state->begun)
		printf("\n");
	state->begun = true;
	print_target(s, target, state->heading);
}

int identify_print(const char *target, struct identify_subject *s, struct pp_error *err)
{
	struct text_state state = {.heading = target != NULL};
	const struct identify_visitor visitor = {text_machine, text_target, &state};

	return identify_visit(target, s, &visitor, err);
}
