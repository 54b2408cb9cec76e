/* SPDX-License-Identifier: MIT
 *
 * The inside of a simulated rig, for sim_rig.c (what happens) and sim_judge.c (what is made of it).
 */
#ifndef PP_LAB_SIM_PARTS_H
#define PP_LAB_SIM_PARTS_H

#include "sim_disk.h"
#include "sim_kernel.h"
#include "sim_net.h"
#include "sim_noise.h"
#include "sim_rig.h"
#include "sim_truth.h"
#include "verifier/judge.h"

#define PP_SIM_MS 1000000LL

/* The controller's times of one cut. */
struct pp_sim_times {
	int64_t run_ns, off_sent_ns, cut_ns, off_read_ns, on_ns, boot_ns;
};

struct pp_sim_rig {
	struct pp_sim_setup setup;
	uint64_t random;
	struct pp_layout layout;
	struct pp_sim_disk disk;
	struct pp_sim_drive *drive;
	struct pp_sim_kernel *kernel;
	struct pp_sim_truth *truth;
	struct pp_sim_net net;
	struct pp_sim_noise noise;  /* where the set-up wants it */
	int64_t now_ns;
	uint32_t cuts;
	bool whole;                 /* the target is built, and base is its scan */
	struct pp_scan *base;
	struct pp_counter_history history;
	pp_sim_trace trace;
	void *trace_ctx;

	/* of the run */
	struct pp_run run;
	struct pp_run_id run_id;
	const struct pp_method *method;
	struct sim_lane {
		struct pp_sim_rig *rig;
		struct pp_lane lane;
		struct pp_lane_io kernel_io;
		uint8_t *buf;
		uint64_t written;
	} lane[PP_LANES_MAX];
	uint64_t heard, wanted;     /* records acked; so many, then the cut */
	int64_t wanted_ns;          /* or then */
	uint32_t pace_per_s;
	struct pp_sim_drive_counters before;
	struct pp_sim_times times;
	enum pp_aftermath after;
};

void pp_sim_say(struct pp_sim_rig *rig, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A scan of the target as it stands; sparse with ranges. NULL with err. */
struct pp_scan *pp_sim_scan(struct pp_sim_rig *rig, const struct pp_scan_range *ranges, size_t count,
	struct pp_error *err);

/* Judges the cut that has just happened and compares with the truth. *scan (*noise: of the noise) is
 * what was found, the caller's to free; NULL where there was nothing to scan. */
int pp_sim_judge(struct pp_sim_rig *rig, struct pp_sim_outcome *out, struct pp_scan **scan,
	struct pp_scan **noise, struct pp_error *err);

#endif
