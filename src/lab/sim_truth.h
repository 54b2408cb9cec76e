/* SPDX-License-Identifier: MIT
 *
 * The truth of a simulated cut: what was really lost. It rests on what the simulator saw happen, on a
 * fingerprint of every 512 bytes that a lane ever handed to the kernel, and on the bytes of the
 * medium, looked at past drive, scan and oracle. No record is parsed and no checksum of one is
 * trusted. The rules of docs/method.md, M4, are written here a second time, from the text; that is
 * the point: where the two readings differ, one of them is wrong.
 */
#ifndef PP_LAB_SIM_TRUTH_H
#define PP_LAB_SIM_TRUTH_H

#include "sim_kernel.h"
#include "verifier/facts.h"
#include "verifier/trial.h"

struct pp_sim_truth;

struct pp_sim_lost {
	uint32_t lane;
	uint64_t slot, seq;        /* the record that should be there; 0: the base */
	enum pp_loss_class class;
};

struct pp_sim_facts {
	struct pp_sim_lost *lost;  /* in order of lane and slot */
	size_t count;
	uint64_t total;            /* count, or all that was acked where everything is gone */
	uint64_t of[PP_LOSS_CLASSES];
	uint64_t torn_only;        /* of total: whole up to D, but torn where `untorn` is promised */
	uint64_t collateral;       /* slots damaged by a neighbour in the same unit (M2.5) */
	uint64_t durable[PP_LANES_MAX]; /* D */
	int64_t age_ns_min, age_ns_max; /* of losses by ack; -1: none */
	/* Slots where data up to D was destroyed, but a record may have been in flight by the rules
	 * (M4.3): nobody could accuse the drive of it. */
	uint64_t veiled;
};

struct pp_sim_truth *pp_sim_truth_new(const struct pp_sim_kernel *kernel,
	const struct pp_layout *layout, struct pp_error *err);
void pp_sim_truth_free(struct pp_sim_truth *truth);

/* What follows is written by the set-up, or by a new run of the lanes; untorn: by a method that
 * promises that each record arrives whole or not at all. */
int pp_sim_truth_begin(struct pp_sim_truth *truth, bool setup, bool untorn, struct pp_error *err);
/* A record of this lane, the next, was handed to the kernel for this slot. */
void pp_sim_truth_wrote(struct pp_sim_truth *truth, uint32_t lane, uint64_t slot, const void *record);
/* The lane gave its word that everything up to seq is durable ... */
void pp_sim_truth_word(struct pp_sim_truth *truth, uint32_t lane, uint64_t seq);
/* ... and the witness heard it then. */
void pp_sim_truth_heard(struct pp_sim_truth *truth, uint32_t lane, uint64_t seq, int64_t t_ns);

/* After cut, power-on and mount: what is lost. t_last_ns is the machine's last frame. The
 * result's list is the truth's own, until the next call. False without memory. */
bool pp_sim_truth_settle(struct pp_sim_truth *truth, enum pp_aftermath after, int64_t t_last_ns,
	struct pp_sim_facts *facts);
/* What stands there now is the base of the next run. */
void pp_sim_truth_base(struct pp_sim_truth *truth);

#endif
