/* SPDX-License-Identifier: MIT */
#include "trial.h"

#include <string.h>

const uint32_t pp_within_ms[PP_WITHIN] = { 10, 100, 1000 };

const char *pp_loss_class_name(enum pp_loss_class class)
{
	static const char *const names[PP_LOSS_CLASSES] = {
		[PP_LOSS_STALE] = "stale",
		[PP_LOSS_BLANK] = "blank",
		[PP_LOSS_TORN] = "torn",
		[PP_LOSS_CORRUPT] = "corrupt",
		[PP_LOSS_MISDIRECTED] = "misdirected",
		[PP_LOSS_UNREADABLE] = "unreadable",
		[PP_LOSS_FILE_GONE] = "file-gone",
		[PP_LOSS_FILE_SHORT] = "file-short",
		[PP_LOSS_FS_GONE] = "fs-gone",
		[PP_LOSS_DEVICE_GONE] = "device-gone",
	};

	return names[class];
}

const char *pp_trial_outcome_name(enum pp_trial_outcome outcome)
{
	static const char *const names[] = {
		[PP_TRIAL_CLEAN] = "clean",
		[PP_TRIAL_LOSS] = "loss",
		[PP_TRIAL_VOID] = "void",
		[PP_TRIAL_OPEN] = "open",
	};

	return names[outcome];
}

bool pp_arm_key_equal(const struct pp_arm_key *a, const struct pp_arm_key *b)
{
	return strcmp(a->serial, b->serial) == 0 && strcmp(a->model, b->model) == 0 &&
		strcmp(a->firmware, b->firmware) == 0 && strcmp(a->method, b->method) == 0 &&
		strcmp(a->workload, b->workload) == 0 && strcmp(a->pattern, b->pattern) == 0 &&
		strcmp(a->target, b->target) == 0 &&
		strcmp(a->fs, b->fs) == 0 && strcmp(a->mount_options, b->mount_options) == 0 &&
		strcmp(a->policy, b->policy) == 0 && strcmp(a->setting, b->setting) == 0 && strcmp(a->kernel, b->kernel) == 0 &&
		strcmp(a->cut_kind, b->cut_kind) == 0 && a->lanes == b->lanes &&
		a->group == b->group && a->record_bytes == b->record_bytes && a->noise == b->noise;
}
