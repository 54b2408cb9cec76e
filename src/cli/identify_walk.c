/* SPDX-License-Identifier: MIT
 *
 * The way of identify through a machine: the target or every drive, each handed to a visitor that prints
 * it or makes JSON of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "identify_parts.h"

/* A path where there is one, else a kernel name, else a serial or WWN. */
int identify_find_stack(const struct pp_sysroot *sys, const char *target, struct pp_stack *stack,
	struct pp_error *err)
{
	bool letter = target[0] && target[1] == ':'; /* Windows: "D:" itself is no file */
	bool is_path = letter || strpbrk(target, "/\\");
	struct pp_drive_info info;
	struct stat st;

	if (is_path && (sys->root[0] || (letter && strlen(target) <= 3) || stat(target, &st) == 0) &&
		pp_drive_find(sys, target, &info, NULL) != 0)
		return pp_drive_of_path(sys, target, stack, err);
	if (!is_path && !sys->root[0] && stat(target, &st) == 0)
		return pp_drive_of_path(sys, target, stack, err);
	if (pp_drive_of_name(sys, target, stack, NULL) == 0)
		return 0;
	if (pp_drive_find(sys, target, &info, err) != 0) {
		if (strchr(target, '/') && !sys->root[0] && stat(target, &st) != 0)
			return pp_fail_os(err, errno, "cannot open '%s', and no drive here has it for its "
				"serial or WWN", target);
		return -1;
	}
	return pp_drive_of_name(sys, info.name, stack, err);
}

bool identify_load_drive(struct identify_subject *s, size_t layer)
{
	const struct pp_stack_layer *l = &s->stack->layers[layer];

	if (!l->whole || pp_drive_read(s->sys, l->name, &s->drive, NULL) != 0)
		return false;
	pp_drive_detail_read(s->sys, &s->drive, &s->detail);
	s->counters = (struct identify_counters){
		.power_cycles = s->detail.power_cycles, .unsafe_shutdowns = s->detail.unsafe_shutdowns,
		.media_errors = s->detail.media_errors, .power_on_hours = s->detail.power_on_hours,
		.used_percent = s->detail.used_percent, .critical_warning = s->detail.critical_warning,
	};
	if (s->ask_counters && !pp_transport_layer(s->drive.transport))
		s->ask_counters(s);
	return true;
}

static int visit_one(const char *target, struct identify_subject *s,
	const struct identify_visitor *v, struct pp_error *err)
{
	size_t expected = s->expected_count;
	struct pp_stack stack;
	int rc;

	if (identify_find_stack(s->sys, target, &stack, err) != 0)
		return -1;
	s->expected_count = 0; /* the machine is not asked for a whole plan */
	v->machine(v->ctx, s);
	s->expected_count = expected;
	s->stack = &stack;
	v->target(v->ctx, s, target);
	rc = identify_as_expected(s) ? 0 : 2;
	s->stack = NULL;
	return rc;
}

int identify_visit(const char *target, struct identify_subject *s, const struct identify_visitor *v,
	struct pp_error *err)
{
	struct pp_drive_info *list, info;
	struct pp_stack stack;
	size_t count;
	int rc = 0;

	if (target)
		return visit_one(target, s, v, err);
	if (pp_drive_list(s->sys, &list, &count, err) != 0)
		return -1;
	v->machine(v->ctx, s);
	for (size_t i = 0; i < s->expected_count; i++)
		if (pp_drive_find(s->sys, s->expected[i], &info, NULL) != 0)
			rc = 2;
	s->expected_count = 0; /* others are here too: that is no fault of theirs */
	for (size_t i = 0; i < count; i++) {
		if (pp_drive_of_name(s->sys, list[i].name, &stack, NULL) != 0)
			continue;
		s->stack = &stack;
		v->target(v->ctx, s, list[i].node);
		s->stack = NULL;
	}
	free(list);
	return rc;
}
