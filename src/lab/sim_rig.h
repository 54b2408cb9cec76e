/* SPDX-License-Identifier: MIT
 *
 * One simulated drive in one simulated machine, cut again and again: the product's own lanes write,
 * its scan reads, its oracle and judge judge, and the truth (sim_truth.h) looks over their shoulder.
 * No file, no process, no thread, no clock: the same set-up and seed give the same bytes.
 */
#ifndef PP_LAB_SIM_RIG_H
#define PP_LAB_SIM_RIG_H

#include "drive_model.h"
#include "sim_truth.h"
#include "verifier/trial.h"

struct pp_sim_setup {
	const struct pp_sim_drive_behaviour *behaviour;
	enum pp_workload workload;
	enum pp_target_kind kind;
	uint32_t lanes, group, record_bytes;
	uint32_t records;              /* of a run, over all lanes, about */
	int64_t run_ns;                /* instead: how long a run is, about; 0: by records */
	bool random_order;             /* overwrite */
	bool sub_block;                /* records below a page lie in units of one (M2.5) */
	bool fua;                      /* the drive has FUA */
	bool noise;                    /* beside the lanes (M7.6) */
	bool barriers;                 /* the file system sends flushes */
	unsigned io_error_pct;         /* of runs: a write or sync of the lanes fails */
	uint64_t cache_bytes, destage_bytes_per_s;
	enum pp_sim_drive_order order;
	int64_t net_delay_ns, net_loss_ns; /* at most: delay of a message; dark before the cut */
	unsigned survive_pct;          /* of a volatile cache, at a cut; above 100: drawn each time */
	uint64_t seed;
};

enum pp_sim_word {
	PP_SIM_AGREES,      /* the judge says exactly what is true */
	PP_SIM_INEXACT,     /* loss, rightly, but not these slots, classes or ages */
	PP_SIM_MISSED,      /* lost, and the judge did not see it */
	PP_SIM_FALSE,       /* nothing was lost, and the judge says loss */
	PP_SIM_CONTRADICTS, /* the judge calls the evidence impossible */
	PP_SIM_WORDS
};
const char *pp_sim_word_name(enum pp_sim_word word);

struct pp_sim_outcome {
	uint32_t cut;                  /* of this rig, from 1 */
	enum pp_sim_word word;
	char difference[240];          /* the first one, where it does not agree */
	struct pp_trial trial;         /* as judged */
	uint64_t lost;                 /* truly */
	uint64_t lost_of[PP_LOSS_CLASSES];
	uint64_t noise_lost;           /* acked records of the noise, truly (sim_noise.h) */
	bool io_error;                 /* a call failed: the run ended by itself (M2.3) */
	uint64_t veiled;               /* see sim_truth.h */
	uint64_t collateral, torn_only; /* see sim_truth.h */
	uint64_t records;              /* handed to the kernel */
	int64_t simulated_ns;
	bool spent;                    /* the drive will take no more cuts */
};

struct pp_sim_rig;

/* A line for --replay. */
typedef void (*pp_sim_trace)(void *ctx, const char *line);

struct pp_sim_rig *pp_sim_rig_new(const struct pp_sim_setup *setup, struct pp_error *err);
void pp_sim_rig_free(struct pp_sim_rig *rig);
/* Of the runs that follow: records a second of all lanes together, at most (M7.3); 0: no limit. */
void pp_sim_rig_pace(struct pp_sim_rig *rig, uint32_t records_per_s);
void pp_sim_rig_trace(struct pp_sim_rig *rig, pp_sim_trace trace, void *ctx);

/* A run with this method, its cut, scan and judgement. After a loss the target is built anew. -1:
 * no memory, or a fault of the simulator itself; never a finding. */
int pp_sim_rig_cut(struct pp_sim_rig *rig, const struct pp_method *method,
	struct pp_sim_outcome *outcome, struct pp_error *err);

#endif
