/* SPDX-License-Identifier: MIT
 *
 * Noise beside a simulated run (docs/method.md, M7.6): unsynced direct writes to an area of their own
 * behind the target, by one of the product's lanes, acked over a stream of their own. And the truth
 * about it: which acked write of the noise the medium has truly lost.
 */
#ifndef PP_LAB_SIM_NOISE_H
#define PP_LAB_SIM_NOISE_H

#include "sim_disk.h"
#include "sim_net.h"
#include "verifier/scan.h"
#include "writer/lane.h"

struct pp_sim_noise {
	struct pp_sim_disk *disk;
	struct pp_sim_drive *drive;
	uint64_t area;              /* where on the disk it begins */
	uint64_t random;
	struct pp_layout layout;
	struct pp_lane lane;
	struct pp_run_id run_id;
	struct pp_sim_net net;
	struct pp_scan *base;
	uint8_t *buf;
	int64_t now_ns, end_ns;     /* end: of the write that is under way */
	bool busy, ok;
	struct pp_sim_drive_write write;
	uint64_t *print;            /* of record i + 1, and of what stood in each slot before the run */
	uint64_t count, room, *before;
	uint64_t heard;             /* highest sequence that the witness heard acked */
};

uint64_t pp_sim_noise_bytes(void);
int pp_sim_noise_init(struct pp_sim_noise *noise, struct pp_sim_disk *disk, struct pp_sim_drive *drive,
	uint64_t area, uint64_t seed, struct pp_error *err);
void pp_sim_noise_release(struct pp_sim_noise *noise);

/* Writes the area straight onto the medium, and scans it: the base. */
int pp_sim_noise_build(struct pp_sim_noise *noise, struct pp_error *err);
/* A run begins; it shares its end with the lanes. */
void pp_sim_noise_start(struct pp_sim_noise *noise, struct pp_run *run, int64_t now_ns,
	int64_t delay_ns_max);
/* When something is due, and what is due by now_ns done; the lane is stepped until it waits. */
int64_t pp_sim_noise_due_ns(const struct pp_sim_noise *noise);
void pp_sim_noise_advance(struct pp_sim_noise *noise, int64_t now_ns);
/* The power is gone; what was under way to the witness arrives by then, or never. */
void pp_sim_noise_cut(struct pp_sim_noise *noise, int64_t now_ns);

/* As it stands now, by the product's scan; sparse with ranges. NULL with err. */
struct pp_scan *pp_sim_noise_scan(struct pp_sim_noise *noise, const struct pp_scan_range *ranges,
	size_t count, struct pp_error *err);
/* Slots of which the newest acked record is gone and an older one stands there, whole. */
uint64_t pp_sim_noise_lost(const struct pp_sim_noise *noise);
/* The scan becomes the base of the next run; the noise's from now on. */
void pp_sim_noise_base(struct pp_sim_noise *noise, struct pp_scan *scan);

#endif
