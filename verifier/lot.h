/* SPDX-License-Identifier: MIT
 *
 * The lot view (docs/method.md, M9.4): arms that are equal in everything but the drive's serial, over
 * several drives and campaigns. A verdict belongs to one drive; a lot has counts, a bound that says
 * what it assumes, and the drives one by one beneath.
 */
#ifndef PP_VERIFIER_LOT_H
#define PP_VERIFIER_LOT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/buf.h"
#include "src/core/error.h"
#include "verdict.h"

struct pp_lot_counts {
	uint32_t clean, loss, voids, open; /* open: and void ones that miss acked data */
	double loss_bound_95;              /* what is open counts as lost */
};

struct pp_lot_drive {
	char serial[PP_TEXT_SHORT];
	uint32_t campaigns;
	struct pp_lot_counts cuts;
	enum pp_arm_verdict verdict;       /* the worst of its campaigns' */
};

struct pp_lot {
	struct pp_arm_key key;             /* its serial is "" */
	enum pp_promise promise;
	bool control;
	struct pp_lot_counts cuts;         /* of all drives: the bound holds if they are alike */
	struct pp_lot_drive *drives;       /* by serial */
	size_t drive_count, drives_lost;
	uint32_t campaigns;                /* how many arms were pooled */
	double drive_bound_95;             /* share of drives that lose, if these are a random draw */
};

struct pp_lots {
	struct pp_lot *list;               /* by model and firmware, what promises less than media last */
	size_t count;
};

/*
 * Pools the arms of these verdicts, one a campaign; the caller sees to it that none is given twice.
 * Arms without a trial, and what only one campaign has on one drive, make no lot. Release also after
 * a failure, which is lack of memory.
 */
int pp_lots_make(struct pp_lots *lots, const struct pp_verdict *const *verdicts, size_t count,
	struct pp_error *err);
void pp_lots_release(struct pp_lots *lots);

/* Appends; -1 where it overflows. Nothing where there is no lot. */
int pp_lots_text(const struct pp_lots *lots, struct pp_buf *out, struct pp_error *err);

/* A new array; NULL without memory. */
json_t *pp_lots_json(const struct pp_lots *lots);

/* What the pooled figures say, in a sentence each. */
void pp_lot_sentence(const struct pp_lot *lot, char *out, size_t bytes);
void pp_lot_drives_sentence(const struct pp_lot *lot, char *out, size_t bytes);

#endif
