/* SPDX-License-Identifier: MIT
 *
 * What `plugpull identify` is made of: the subject that fields and traps are asked about, the table
 * of fields (identify_fields.c) and the table of traps (identify_traps.c). No JSON in here.
 */
#ifndef PP_CLI_IDENTIFY_PARTS_H
#define PP_CLI_IDENTIFY_PARTS_H

#include "src/core/drive_detail.h"

#define PP_IDENTIFY_EXPECTED_MAX 17

/* smartctl's counters; -1: unknown. */
struct identify_counters {
	int64_t power_cycles, unsafe_shutdowns, media_errors, power_on_hours, used_percent;
	int64_t critical_warning;     /* NVMe: bits of the health log's first byte */
};

/* One drive of one target on one machine. A trap of the machine looks at no drive and no stack. */
struct identify_subject {
	const struct pp_sysroot *sys;
	const struct pp_machine *machine;
	const struct pp_stack *stack;
	struct pp_drive_info drive;
	struct pp_drive_detail detail;
	struct identify_counters counters;
	const char *const *expected;  /* serials or WWNs that a person or a plan names */
	size_t expected_count;
	/* Fills the counters of the drive; NULL leaves those that the system told itself. */
	void (*ask_counters)(struct identify_subject *);
};

/* ---- fields of a drive -------------------------------------------------------------------- */

/* "" and -1 are unknown. */
struct identify_value {
	enum { IDENTIFY_TEXT, IDENTIFY_NUMBER, IDENTIFY_BYTES, IDENTIFY_TRUTH } kind;
	char text[512];
	int64_t number;
};

struct identify_field {
	const char *key;   /* of JSON */
	const char *label; /* of the text; NULL: in JSON only */
	void (*get)(const struct identify_subject *, struct identify_value *);
};

extern const struct identify_field identify_fields[];
extern const size_t identify_field_count;

bool identify_is_known(const struct identify_value *value);
void identify_value_text(const struct identify_value *value, char *out, size_t out_bytes);

/* ---- traps -------------------------------------------------------------------------------- */

enum identify_scope { IDENTIFY_OF_DRIVE, IDENTIFY_OF_TARGET, IDENTIFY_OF_MACHINE };

/* What is particular to this case, for the end of the trap's text. */
struct identify_why {
	char text[320];
};

struct identify_trap {
	const char *id;
	enum identify_scope scope;
	bool note;        /* good to know; else a warning: a measurement would mislead */
	bool (*applies)(const struct identify_subject *, struct identify_why *why);
	const char *text;
};

extern const struct identify_trap identify_traps[];
extern const size_t identify_trap_count;

/* ---- the way through a machine (identify_walk.c) ------------------------------------------- */

struct identify_visitor {
	void (*machine)(void *ctx, struct identify_subject *);
	void (*target)(void *ctx, struct identify_subject *, const char *target); /* subject->stack is set */
	void *ctx;
};

/* What is meant: a path where there is one, else a kernel name, else a serial or WWN. */
int identify_find_stack(const struct pp_sysroot *sys, const char *target, struct pp_stack *stack,
	struct pp_error *err);

/* The drive of this layer into the subject; false where that is none. */
bool identify_load_drive(struct identify_subject *subject, size_t layer);

/* target NULL: every drive. 0; 2 where a drive is not the expected one; -1 on failure. */
int identify_visit(const char *target, struct identify_subject *subject,
	const struct identify_visitor *visitor, struct pp_error *err);

/* The same onto standard output, as text. */
int identify_print(const char *target, struct identify_subject *subject, struct pp_error *err);

/* True if a drive beneath the stack is one of those expected, or nothing is expected. */
bool identify_as_expected(const struct identify_subject *subject);

#endif
