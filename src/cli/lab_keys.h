/* SPDX-License-Identifier: MIT
 *
 * The words in which a lab is described: the same for `plugpull lab` and for [lab] in a plan.
 */
#ifndef PP_CLI_LAB_KEYS_H
#define PP_CLI_LAB_KEYS_H

#include <stdint.h>

#include "src/campaign/plan.h"
#include "src/core/error.h"
#include "src/lab/lab.h"

extern const struct pp_lab_drive pp_lab_drive_defaults;

/* A number with K, M or G behind it: 0, or -1. */
int pp_lab_number(const char *text, uint64_t *out);

/* One key of a drive ("behaviour", "size", ...): 0, or -1 for a key or value that is none. */
int pp_lab_drive_set(struct pp_lab_drive *drive, const char *key, const char *value);

/* What a lab of a plan needs to live; release after pp_lab_close. */
struct pp_lab_of_plan {
	struct pp_lab_config config;
	struct pp_lab_drive drives[PP_PLAN_DRIVES_MAX];
	char dut[4160], guest_tool[4160], plugin[4160], drive_tool[4160], rig[16], agent[16], kernel[256], accel[16];
	char work_dir[4160];
	const char *words[3];
};

/*
 * Makes a lab's configuration of a plan's [lab]: its drives are the plan's, by their serials. Keys are
 * rig, accel, kernel, seed, and a drive's keys, for all drives ("survive = 50") or for one
 * ("behaviour.NAME = ignores-flush").
 */
int pp_lab_of_plan(struct pp_lab_of_plan *lab, const struct pp_plan *plan, const char *file,
	struct pp_error *err);

/* Puts into the plan what the running lab says of itself: its power switch, address and key. */
int pp_lab_fill_plan(struct pp_plan *plan, const struct pp_lab_info *info, struct pp_error *err);

#endif
