/* SPDX-License-Identifier: MIT
 *
 * A judged trial, as the verdict needs it (docs/method.md, M5 to M8): what the judge made of one
 * drive's run, its cut and its scan. Built from the evidence alone (verifier/evidence.h), consumed
 * by verifier/verdict.h.
 */
#ifndef PP_VERIFIER_TRIAL_H
#define PP_VERIFIER_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "src/core/layout.h"
#include "src/core/method.h"
#include "src/core/record.h"

#define PP_TEXT_SHORT 96
#define PP_AGES_MAX   4
#define PP_WITHIN     3  /* the last 10, 100, 1000 ms before the end */
#define PP_WITHIN_100_MS 1 /* index of 100 ms in it */
#define PP_WITHIN_1_S    2
#define PP_TEAR_UNITS 12 /* 512 bytes << 0 ... 11: up to 1 MiB (M4.8) */

/* Classes of loss (M4.4); the order is that of reports. */
enum pp_loss_class {
	PP_LOSS_STALE, PP_LOSS_BLANK, PP_LOSS_TORN, PP_LOSS_CORRUPT, PP_LOSS_MISDIRECTED,
	PP_LOSS_UNREADABLE, PP_LOSS_FILE_GONE, PP_LOSS_FILE_SHORT, PP_LOSS_FS_GONE,
	PP_LOSS_DEVICE_GONE, PP_LOSS_CLASSES
};
const char *pp_loss_class_name(enum pp_loss_class class);

enum pp_trial_outcome {
	PP_TRIAL_CLEAN, /* proven, aftermath complete, no loss, nothing collateral */
	PP_TRIAL_LOSS,  /* proven, and something that should be there is not */
	PP_TRIAL_VOID,  /* not proven to be a cut of this drive's machine: counts for nothing ... */
	PP_TRIAL_OPEN,  /* proven, but the aftermath could not be settled (M6) */
};
const char *pp_trial_outcome_name(enum pp_trial_outcome outcome);

/* Did the disk see a flush or FUA for each sync (M8.2)? Zero: nobody can say. */
enum pp_asked { PP_ASKED_UNKNOWN, PP_ASKED, PP_ASKED_NOT };

/* The times before the end over which the effective exposure is counted: 10, 100, 1000. */
extern const uint32_t pp_within_ms[PP_WITHIN];

/* Everything that must be equal for trials to be pooled (M1.3). */
struct pp_arm_key {
	char serial[PP_TEXT_SHORT], model[PP_TEXT_SHORT], firmware[PP_TEXT_SHORT];
	char method[PP_TEXT_SHORT], workload[PP_TEXT_SHORT];
	char target[PP_TEXT_SHORT];      /* "raw", or "file" */
	char fs[PP_TEXT_SHORT], mount_options[256];
	char policy[PP_TEXT_SHORT];      /* write cache as read back from the drive: "write back, fua" */
	char setting[16];                /* that the plan's policy asks for: "cache-off"; "" for as found */
	char kernel[PP_TEXT_SHORT];
	char cut_kind[16];               /* "mains", "dc", "slot" */
	char pattern[16];                /* "sequential" or "random" */
	uint32_t lanes, group, record_bytes;
	bool noise;
};
bool pp_arm_key_equal(const struct pp_arm_key *a, const struct pp_arm_key *b);

struct pp_trial {
	struct pp_arm_key key;
	struct pp_run_id run_id;         /* no two runs ever have the same (M3.2) */
	uint32_t cut;                    /* number of the cut in its campaign, from 1 */
	enum pp_trial_outcome outcome;
	char reason[256];                /* of void and open: "died before the cut", ... */
	char resolution[256];            /* what a person wrote to clear an open or void trial (M6.5) */
	bool swapped;                    /* it records that the drive was taken out (M6.1) */
	bool proven;                     /* M5: the machine lost power */
	bool exposed;                    /* M8.1 */
	char unexposed_reason[PP_TEXT_SHORT]; /* "foreign flushes", "last ack too old", ... */
	bool collateral;                 /* M2.5 */
	bool fs_damaged, unserializable; /* flags of M6.3, M4.4 */
	bool policy_lost;                /* the cache policy did not survive power-up (M1.5) */
	char policy_after[PP_TEXT_SHORT];/* as which it came back then */
	bool lost_acked;                 /* also set in a void trial: acked data is missing (M5.6) */
	uint64_t acked_within[PP_WITHIN]; /* records acked so shortly before the machine's last frame */
	uint64_t records_acked;          /* D over all lanes: durable by the writer's own word */
	uint64_t records_lost;
	uint64_t lost[PP_LOSS_CLASSES];  /* records by class */
	int64_t lost_age_ns_min, lost_age_ns_max; /* of losses by ack; -1 where none (M4.9) */
	uint64_t in_flight, torn_in_flight;       /* M4.3 */
	uint64_t untorn_broken;          /* of records_lost: torn in flight by a method that promises
	                                  * that it cannot be; nothing up to D (M4.5) */
	/* M4.8, of direct arms; else 0: records of which something arrived, and how many of those had
	 * a block of 512 << i bytes, on a multiple of its size, of which not everything arrived. */
	uint64_t tears_in_flight, torn_at[PP_TEAR_UNITS];
	bool drive_lost_power;           /* M7.5, by counters, 0 W, or lost noise */
	bool no_volatile_cache;          /* the drive itself declares none (M7.4) */
	char drive_power_witness[PP_TEXT_SHORT];  /* which of M7.5 */
	bool noise_lost;                 /* acked noise was missing after this cut (M7.1, M7.6) */
	enum pp_asked asked;             /* M8.2 */
	double flushes_per_sync;
	bool via_flush;                  /* label of M8.4 */
};

#endif
