/* SPDX-License-Identifier: MIT
 *
 * What the controller learnt of a cut and of each run that it ended, as the evidence keeps it:
 * cut.json (one a cut: the machine's part) and run.json (one a drive: the trial's own part). Facts
 * only; what they mean is proof.h's and judge.h's business, so that the judge needs nothing else.
 * Times are nanoseconds on the control host's CLOCK_MONOTONIC, 0 where a thing has not happened.
 */
#ifndef PP_VERIFIER_FACTS_H
#define PP_VERIFIER_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/core/error.h"
#include "src/core/layout.h"
#include "src/core/method.h"
#include "src/core/record.h"
#include "trial.h"

#define PP_BOOTS_MAX    16
#define PP_BOOT_ID_TEXT 48

/* An agent that said hello: one boot of the machine, or the same boot connecting again. */
struct pp_boot_seen {
	int64_t t_ns;                   /* when its hello was received */
	int64_t uptime_ns;              /* of the machine, by its own word in the hello */
	char boot_id[PP_BOOT_ID_TEXT];
};

struct pp_cut_facts {
	uint32_t number;
	char state[24];                 /* how far the controller came: "writing", "off-sent", ... */
	char host_boot_id[PP_BOOT_ID_TEXT]; /* of the control host: its clock's name */
	char cut_kind[16];              /* "mains", "dc", "slot" */
	char kernel[PP_TEXT_SHORT];     /* of the machine under test */
	char boot_before[PP_BOOT_ID_TEXT];
	uint32_t runs;                  /* how many drives had one; 0: not said */
	int64_t write_ms;               /* the drawn moment: from the first ack to the off */
	int64_t t_run_ns;               /* the runs were ordered */
	int64_t t_off_sent_ns, t_off_answered_ns, t_off_read_ns;
	int64_t t_on_sent_ns, t_on_read_ns;
	int64_t hold_up_ns;
	int64_t off_ns;                 /* how long the outlet was off, at least */
	bool off_verified;              /* every outlet that feeds the machine was read back off */
	bool by_hand;                   /* a person pulled the plug: M5.5 */
	char off_outcome[40];           /* what the power switch came to: "verified", "refused", ... */
	bool watts_known, watts_zero;   /* M7.5: 0 W in >= 3 fresh samples, off >= 10 s, read before on */
	bool battery;                   /* plan: the machine may have a battery or another supply */
	uint32_t boots;                 /* hellos since the run began, up to the scan */
	struct pp_boot_seen boot[PP_BOOTS_MAX];
	uint32_t power_cycles;          /* how often the outlet was cycled until it came back; 1 is normal */
	char void_reason[PP_TEXT_SHORT];/* what voids the cut by the controller's own knowledge, or "" */
};

enum pp_aftermath {
	PP_AFTER_PENDING,     /* not looked at yet: the controller was lost, or is still at it */
	PP_AFTER_SCANNED,     /* scan.bin is whole */
	PP_AFTER_DEVICE_GONE, /* M6.1 */
	PP_AFTER_FS_GONE,     /* M6.3: mount reported damage in two boots, drive readable */
	PP_AFTER_OPEN,        /* M6.2, M6.3: could not be settled; reason says why */
};
const char *pp_aftermath_name(enum pp_aftermath after);

/* M7.6: the unsynced writes beside a run, in an area of their own of the same drive. */
struct pp_noise_facts {
	struct pp_run_id run_id;
	struct pp_layout layout;
	char base[256];                 /* as the run's */
	bool scanned;                   /* noise.bin is whole */
	uint32_t rereads;               /* noise-reread-1.bin ... exist */
};

struct pp_run_facts {
	struct pp_run_id run_id;
	uint32_t index;                 /* of the drive in the plan: the wire's run index */
	char serial[PP_TEXT_SHORT], model[PP_TEXT_SHORT], firmware[PP_TEXT_SHORT], wwn[PP_TEXT_SHORT];
	char transport[32];
	char method[PP_TEXT_SHORT];
	enum pp_target_kind kind;
	struct pp_layout layout;
	char fs[PP_TEXT_SHORT], mount_options[256];
	char setting[16];               /* of the arm: "cache-off", ...; "" where its plan names none */
	char policy_wanted[PP_TEXT_SHORT]; /* of the arm: as it was when the campaign began, or when this
	                                 * setting was first made and read back (M1.5) */
	char policy[PP_TEXT_SHORT];     /* read back before the run */
	char policy_after[PP_TEXT_SHORT]; /* and after the boot; "" where it was not */
	uint32_t pace_per_s;            /* M7.3: records a second that each lane was held to; 0: none */
	bool fua, no_volatile_cache, noise;
	struct pp_noise_facts noise_run; /* where noise is set */
	bool cache_protected;           /* the plan says so */
	uint64_t drive_bytes;
	char base[256];                 /* path of the base scan, relative to the campaign's folder */
	bool failed;                    /* M2.3: a write or sync failed, or the kernel log said so */
	char failed_text[256];
	bool full;                      /* an append lane had no more room: the cut came early */
	enum pp_aftermath aftermath;
	char aftermath_reason[256];
	bool fs_damaged;                /* M6.3: mounts, but complains; or the check found damage */
	char fs_damaged_text[256];
	uint32_t rereads;               /* reread-1.bin ... exist */
	bool reread_other_boot;         /* the last of them was made after another boot */
	char resolution[256];           /* M6.5; of resolutions/, whatever run.json says */
	bool swapped;                   /* it records that the drive was taken out (M6.1) */
};

/* Both write the whole file at once (pp_file_write). */
int pp_cut_facts_save(const struct pp_cut_facts *facts, const char *path, struct pp_error *err);
int pp_run_facts_save(const struct pp_run_facts *facts, const char *path, struct pp_error *err);

/* A missing or wrong field, an unknown state or an impossible layout is PP_ERR_EVIDENCE. */
int pp_cut_facts_load(struct pp_cut_facts *facts, const char *path, struct pp_error *err);
int pp_run_facts_load(struct pp_run_facts *facts, const char *path, struct pp_error *err);

#endif
