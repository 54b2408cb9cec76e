/* SPDX-License-Identifier: MIT
 *
 * The plan of a campaign: an INI file that a person writes. Everything is checked when it is read,
 * before anything is touched: an unknown section, key, method, workload or unit, a repeated key, a
 * number out of range, a password. Messages name file and line.
 *
 *	[campaign]   criterion, how long to write before a cut, how many controls, ...
 *	[machine]    where its agent connects to, and how long it may take to boot
 *	[pdu]        the power switch and the outlets that feed the machine
 *	[drive NAME] one for each drive under test: serial, target, size
 *	[arms NAME]  methods and one workload; each with every drive is an arm
 *	[lab]        stands in for machine, power switch and drives; read by src/cli alone
 */
#ifndef PP_CAMPAIGN_PLAN_H
#define PP_CAMPAIGN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "src/core/error.h"
#include "src/core/layout.h"
#include "src/core/method.h"
#include "src/core/policy.h"
#include "src/core/stats.h"
#include "src/core/target.h"

#define PP_PLAN_DRIVES_MAX  16
#define PP_PLAN_ARMS_MAX    16
#define PP_PLAN_METHODS_MAX 64
#define PP_PLAN_POLICIES_MAX 4
#define PP_PLAN_LAB_MAX     64
#define PP_PLAN_OUTLETS_MAX 8
#define PP_PACE_NONE        0   /* as fast as it can */
#define PP_PACE_AUTO        UINT32_MAX /* as the slowest arm that it speaks for (M7.3) */
#define PP_BY_HAND          "by-hand" /* profile: a person pulls the plug (M5.5) */

struct pp_plan_drive {
	char name[64];                  /* of its section */
	char serial[PP_DRIVE_SERIAL_BYTES];
	enum pp_target_kind kind;
	char format[32];                /* file system to make; "" takes the one of uuid */
	char uuid[PP_TARGET_UUID_BYTES];
	char destroy[PP_DRIVE_SERIAL_BYTES]; /* must name the serial where format or raw destroys */
	char mount_options[256];
	char directory[256];            /* inside the file system */
	char path[PP_TARGET_PATH_BYTES];/* instead: a folder of a mounted file system */
	uint64_t size_bytes;            /* of the target, all arms together */
	bool cache_protected, boot_drive, force;
};

struct pp_plan_arms {
	char name[64];                  /* of its section; "" for [arms] */
	const struct pp_method *method[PP_PLAN_METHODS_MAX];
	uint32_t methods;
	enum pp_workload workload;
	uint32_t lanes, group, record_bytes;
	bool random;                    /* overwrite: pattern = random */
	bool sub_block, compressible, optional;
	bool noise;                     /* M7.6: unsynced writes beside the records */
	/* The write-cache policies, each an arm of its own; none: as it is found. A drive has arms of one
	 * kind only: all with a policy or none. */
	const struct pp_policy_setting *policy[PP_PLAN_POLICIES_MAX];
	uint32_t policies;
	bool on_drive[PP_PLAN_DRIVES_MAX]; /* all unless `drives` names some */
};

struct pp_plan_lab_key {
	char key[64], value[256];
	int line;
};

struct pp_plan {
	/* campaign */
	char name[96], operator[256], note[256];
	struct pp_criterion criterion;
	uint32_t cuts;                  /* trials of an arm, at most; 0: as the criterion needs */
	uint32_t write_min_ms, write_max_ms;
	uint32_t controls, controls_end, controls_max;
	uint32_t control_pace;          /* of `direct`: records a second of a lane, or PP_PACE_... */
	bool stop_at_first_loss, confirm_boot, unproven;
	bool has_seed;
	uint64_t seed;
	uint32_t matrix_ms;             /* of each row of the speed matrix; 0: none */
	uint32_t voids_max;             /* in a row for one reason (M5.6) */
	char earlier[8][256];           /* folders of earlier campaigns (M9.3) */
	uint32_t earlier_count;
	/* machine */
	char machine_name[96];          /* "" takes any agent with the key */
	char listen_address[64];
	uint16_t listen_port;
	char key_file[256];
	char machine_address[128];      /* the switch must not be it; "": not checked */
	uint32_t boot_deadline_s, poweroff_deadline_s, poweroff_settle_s, hold_up_ms, drive_wait_s;
	bool battery;
	/* power switch */
	char pdu_parameters[256];       /* "NAME=VALUE, ..." */
	char pdu_profile[256], pdu_url[256], pdu_credentials[256], pdu_identity[128], pdu_label[128];
	char pdu_ca[256], pdu_pin[128], pdu_state_dir[256];
	char pdu_proof[256];            /* "": the state folder's (pdu/prove.h) */
	char pdu_wake[96];              /* "MAC@ADDRESS" as pdu/limits.h takes it; "": none */
	bool pdu_insecure;
	char outlet[PP_PLAN_OUTLETS_MAX][64];
	uint32_t outlets;
	int64_t min_off_ms, min_on_ms, off_ms;
	int32_t cycles_per_hour;        /* 0: no limit */
	uint32_t cycles_max;            /* of an outlet, for ever; 0: no limit */
	int64_t device_restore_ms;
	int64_t verify_ms, stagger_ms, watts_stale_ms; /* -1: the profile's */
	uint32_t poll_ms;               /* between two read-backs; 0: the switch's default */
	/* what is tested */
	struct pp_plan_drive drive[PP_PLAN_DRIVES_MAX];
	uint32_t drives;
	struct pp_plan_arms arms[PP_PLAN_ARMS_MAX];
	uint32_t arm_sets;
	/* lab: kept as written, for whoever starts one */
	bool has_lab;
	struct pp_plan_lab_key lab[PP_PLAN_LAB_MAX];
	uint32_t lab_keys;
};

/* Reads and checks. With a [lab], machine and pdu need not be given: the lab fills them in. */
int pp_plan_load(struct pp_plan *plan, const char *path, struct pp_error *err);
/* The same from text; name stands in messages. For tests and fuzzing. */
int pp_plan_parse(struct pp_plan *plan, const char *text, const char *name, struct pp_error *err);
/* What must hold once a lab has (or has not) filled in its part. */
int pp_plan_check(const struct pp_plan *plan, struct pp_error *err);

#endif
