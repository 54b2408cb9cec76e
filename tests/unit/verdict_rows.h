/* SPDX-License-Identifier: MIT
 *
 * The rows of test_verdict.c, which says how to read them.
 */
#ifndef PP_TESTS_VERDICT_ROWS_H
#define PP_TESTS_VERDICT_ROWS_H

#include "verifier/verdict.h"

#define SEEN "direct 3 loss; write 1 loss; "
#define HELD "fdatasync 29; "

struct row {
	const char *rule;
	const char *trials;
	enum pp_arm_verdict verdict;
	const char *says;      /* part of a reason; NULL: nothing asked */
	const char *says_not;  /* part of no reason */
	const char *earlier;
	const char *criterion; /* NULL: 95/90 */
	const char *arm;       /* METHOD[@WORKLOAD]; NULL: fdatasync */
	const char *protected_serial;
	int exit;
};

static const struct row rows[] = {
	/* The plain cases, and each of SAFE's conditions taken away alone. */
	{ .rule = "M8.3", .trials = HELD SEEN, .verdict = PP_ARM_SAFE, .exit = 0,
		.says = "`direct` lost in 3 of 3 cuts", .says_not = "via flush" },
	{ .rule = "M8.3", .trials = "fdatasync 28; " SEEN, .verdict = PP_ARM_INCONCLUSIVE, .exit = 2,
		.says = "28 of 29 clean cuts: 1 missing", .says_not = "rig too blind" },
	/* A published investigation kept 23, 24 and 29 cuts: only the last of them can be SAFE. */
	{ .rule = "M8.3", .trials = "fdatasync 23; " SEEN, .verdict = PP_ARM_INCONCLUSIVE, .exit = 2,
		.says = "23 of 29 clean cuts: 6 missing" },
	{ .rule = "M8.3", .trials = "fdatasync 24; " SEEN, .verdict = PP_ARM_INCONCLUSIVE, .exit = 2,
		.says = "24 of 29 clean cuts: 5 missing" },
	{ .rule = "M8.3", .trials = HELD SEEN, .criterion = "95/95", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "29 of 59 clean cuts: 30 missing" },
	{ .rule = "M8.3", .trials = "fdatasync 59; " SEEN, .criterion = "95/95",
		.verdict = PP_ARM_SAFE, .exit = 0 },
	{ .rule = "M8.3", .trials = HELD "fdatasync 1 open; " SEEN, .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "open, to be scanned or resolved: cut 30 (no-boot)" },
	{ .rule = "M8.3", .trials = HELD "fdatasync 5 open; " SEEN, .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "cut 32 (no-boot) and 2 more" },
	{ .rule = "M6.5", .trials = HELD "fdatasync 1 open resolved; " SEEN, .exit = 0,
		.verdict = PP_ARM_SAFE, .says = "cut 30 cleared by a person: cable pulled by hand" },
	{ .rule = "M6.5", .trials = HELD "fdatasync 1 open blank_resolution; " SEEN, .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "open, to be scanned" },
	{ .rule = "M6.5", .trials = "fdatasync 28; fdatasync 1 open resolved; " SEEN, .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "28 of 29 clean cuts" },
	{ .rule = "M5.6", .trials = HELD "fdatasync 1 io_error missing; " SEEN, .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "void, yet acked data is missing: cut 30 (I/O error)" },
	{ .rule = "M5.6", .trials = HELD "fdatasync 1 void missing; " SEEN, .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "void, yet acked data is missing" },
	{ .rule = "M5.6", .trials = HELD "fdatasync 4 void; " SEEN, .exit = 0,
		.verdict = PP_ARM_SAFE, .says = "void: died before the cut (4)" },
	{ .rule = "M5.6", .trials = "fdatasync 28; fdatasync 4 void; " SEEN, .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "28 of 29" },
	{ .rule = "M6.5", .trials = HELD "fdatasync 1 void missing resolved; " SEEN, .exit = 0,
		.verdict = PP_ARM_SAFE, .says = "cleared by a person" },
	{ .rule = "M5", .trials = "fdatasync 29 unproven; " SEEN, .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "0 of 29 clean cuts" },

	/* M8.2: one promised loss in a proven trial; never one that was not proven. */
	{ .rule = "M8.2", .trials = "fdatasync 28; fdatasync 1 loss; " SEEN, .exit = 1,
		.verdict = PP_ARM_UNSAFE, .says = "1 of 29 cuts (at least 0.2 % a cut, 95 %)",
		.says_not = "the kernel did not ask" },
	{ .rule = "M8.2", .trials = "fdatasync 1000; fdatasync 1 loss; " SEEN, .exit = 1,
		.verdict = PP_ARM_UNSAFE, .says = "1 of 1001 cuts (at least 0.0051 % a cut, 95 %)" },
	{ .rule = "M8.2", .trials = "fdatasync 1 loss", .exit = 1, .verdict = PP_ARM_UNSAFE,
		.says = "1 of 1 cut (at least 5.0 % a cut, 95 %)" },
	{ .rule = "M8.2", .trials = HELD "fdatasync 1 loss unexposed; " SEEN, .exit = 1,
		.verdict = PP_ARM_UNSAFE, .says = "1 of 30 cuts" },
	{ .rule = "M8.2", .trials = HELD "fdatasync 1 loss foreign; " SEEN, .exit = 1,
		.verdict = PP_ARM_UNSAFE },
	{ .rule = "M8.2", .trials = HELD "fdatasync 1 bare_loss; " SEEN, .exit = 1,
		.verdict = PP_ARM_UNSAFE },
	{ .rule = "M8.2", .trials = HELD "fdatasync 1 loss unproven; " SEEN, .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "void, yet acked data is missing" },
	{ .rule = "M8.2", .trials = HELD "fdatasync 1 loss resolved; " SEEN, .exit = 1,
		.verdict = PP_ARM_UNSAFE, .says = "cut 30 not cleared by the words: cable" },
	{ .rule = "M8.2", .trials = HELD "fdatasync 2 loss notasked; " SEEN, .exit = 1,
		.verdict = PP_ARM_UNSAFE, .says = "the kernel did not ask the drive" },
	{ .rule = "M8.2", .trials = HELD "fdatasync 1 loss notasked; fdatasync 1 loss; " SEEN,
		.exit = 1, .verdict = PP_ARM_UNSAFE, .says_not = "the kernel did not ask the drive" },
	{ .rule = "M8.2", .trials = HELD "fdatasync 1 loss nobodyknows; fdatasync 1 loss; " SEEN,
		.exit = 1, .verdict = PP_ARM_UNSAFE, .says_not = "asked the drive" },
	{ .rule = "M8.2", .trials = HELD "fdatasync 1 loss nobodyknows; " SEEN, .exit = 1,
		.verdict = PP_ARM_UNSAFE, .says = "not known whether the kernel asked the drive",
		.says_not = "the kernel did not ask" },
	{ .rule = "M8.2", .trials = HELD "fdatasync 1 loss nobodyknows; fdatasync 1 loss notasked; " SEEN,
		.exit = 1, .verdict = PP_ARM_UNSAFE, .says = "the kernel did not ask the drive" },
	{ .rule = "M8.2", .trials = HELD "fdatasync 1 loss; fdatasync 1 open; " SEEN, .exit = 1,
		.verdict = PP_ARM_UNSAFE, .says = "open, to be scanned" },
	{ .rule = "M6.1", .trials = HELD "fdatasync 1 gone; " SEEN, .exit = 1,
		.verdict = PP_ARM_UNSAFE },
	{ .rule = "M6.1", .trials = HELD "fdatasync 1 gone swapped; " SEEN, .exit = 0,
		.verdict = PP_ARM_SAFE, .says = "cleared by a person" },
	{ .rule = "M6.1", .trials = HELD "fdatasync 1 gone resolved; " SEEN, .exit = 1,
		.verdict = PP_ARM_UNSAFE, .says = "cut 30 not cleared by the words: cable" },
	{ .rule = "M6.5", .trials = HELD "fdatasync 1 loss swapped; " SEEN, .exit = 1,
		.verdict = PP_ARM_UNSAFE, .says = "not cleared" },
	{ .rule = "M6.1", .trials = HELD "fdatasync 1 gone_and_stale swapped; " SEEN, .exit = 1,
		.verdict = PP_ARM_UNSAFE, .says = "not cleared" },
	{ .rule = "M6.1", .trials = HELD "direct 3 loss; direct 1 gone; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "the drive was gone after cut 33 (direct, overwrite)" },
	{ .rule = "M6.1", .trials = HELD "direct 3 loss; direct 1 gone S2; write 1 loss", .exit = 0,
		.verdict = PP_ARM_SAFE },
	/* Evidence that contradicts itself reads as what is further from SAFE, and accuses nobody. */
	{ .rule = "M8.3", .trials = HELD "fdatasync 1 missing; " SEEN, .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "open, to be scanned or resolved: cut 30 (clean)" },

	/* M8.1: what is clean. */
	{ .rule = "M8.1", .trials = "fdatasync 28; fdatasync 1 unexposed; " SEEN, .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "1 not exposed: last ack too old (1)" },
	{ .rule = "M8.1", .trials = HELD "fdatasync 20 unexposed; " SEEN, .exit = 0,
		.verdict = PP_ARM_SAFE, .says_not = "foreign flushes" },
	{ .rule = "M2.5", .trials = "fdatasync 28; fdatasync 1 collateral; " SEEN, .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "1 with collateral damage" },
	{ .rule = "M2.5", .trials = HELD "fdatasync 1 collateral; " SEEN, .exit = 0,
		.verdict = PP_ARM_SAFE },
	{ .rule = "M8.1", .trials = "fdatasync 28; fdatasync 1 noacks; " SEEN, .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "nothing was acked (1)" },
	{ .rule = "M6.3", .trials = HELD "fdatasync 1 damaged_fs; " SEEN, .exit = 0,
		.verdict = PP_ARM_SAFE, .says = "fs-damaged in 1 cut" },

	/* M8.4: foreign flushes, more than 1 in 10. */
	{ .rule = "M8.4", .trials = "fdatasync 36; fdatasync 4 foreign; " SEEN, .exit = 0,
		.verdict = PP_ARM_SAFE, .says_not = "foreign flushes: in" },
	{ .rule = "M8.4", .trials = "fdatasync 35; fdatasync 4 foreign; " SEEN, .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "foreign flushes: in 4 of 39 cuts" },
	{ .rule = "M8.4", .trials = "fdatasync 35; fdatasync 4 foreign; fdatasync 5 void; " SEEN,
		.exit = 2, .verdict = PP_ARM_INCONCLUSIVE, .says = "foreign flushes: in 4 of 39 cuts" },

	/* M1.3: pooled within one arm only, each field of the key alone. */
#define HALVES(word) "fdatasync 15; fdatasync 14 " word "; " SEEN
	{ .rule = "M1.3", .trials = HALVES("S2"), .exit = 2, .says = "15 of 29" },
	{ .rule = "M1.3", .trials = HALVES("model2"), .exit = 2, .says = "15 of 29" },
	{ .rule = "M1.3", .trials = HALVES("fw2"), .exit = 2, .says = "15 of 29" },
	{ .rule = "M1.3", .trials = HALVES("nofua"), .exit = 2, .says = "15 of 29" },
	{ .rule = "M1.3", .trials = HALVES("k2"), .exit = 2, .says = "15 of 29" },
	{ .rule = "M1.3", .trials = HALVES("dc"), .exit = 2, .says = "15 of 29" },
	{ .rule = "M1.3", .trials = HALVES("lanes4"), .exit = 2, .says = "15 of 29" },
	{ .rule = "M1.3", .trials = HALVES("group8"), .exit = 2, .says = "15 of 29" },
	{ .rule = "M1.3", .trials = HALVES("small"), .exit = 2, .says = "15 of 29" },
	{ .rule = "M1.3", .trials = HALVES("noise"), .exit = 2, .says = "15 of 29" },
	{ .rule = "M1.3", .trials = HALVES("append"), .exit = 2, .says = "15 of 29" },
	{ .rule = "M1.3", .trials = HALVES("ext4"), .exit = 2, .says = "15 of 29" },
	{ .rule = "M1.3", .trials = "fdatasync 15 ext4; fdatasync 14 ext4_nobarrier; " SEEN,
		.exit = 2, .says = "15 of 29" },

	/* M7.1: the machine lost power. */
	{ .rule = "M7.1", .trials = HELD "direct 3 loss; write 3", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE,
		.says = "no sign that the machine lost power: `write` lost nothing" },
	{ .rule = "M7.1", .trials = HELD "direct 3 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE,
		.says = "no sign that the machine lost power: no control `write` was cut yet" },
	{ .rule = "M7.1", .trials = HELD "direct 3 loss noiselost", .exit = 0,
		.verdict = PP_ARM_SAFE, .says_not = "no sign" },
	{ .rule = "M7.1", .trials = HELD "direct 3 loss; write 1 void missing", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "no sign that the machine lost power" },
	{ .rule = "M7.1", .trials = HELD "direct 3 loss; write 1 loss unproven", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "no sign that the machine lost power" },
	{ .rule = "M7.1", .trials = HELD "direct 3 loss; write 1 loss dc", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "no sign that the machine lost power" },
	{ .rule = "M7.1", .trials = HELD "direct 3 loss; write 1 gone", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "no sign that the machine lost power" },
	{ .rule = "M7.1", .trials = HELD "direct 3 loss; write 1 short_file append ext4", .exit = 0,
		.verdict = PP_ARM_SAFE },
	{ .rule = "M7.1", .trials = HELD "direct 3 loss; write 1 loss S2", .exit = 0,
		.verdict = PP_ARM_SAFE },
	{ .rule = "M7.1", .trials = HELD "direct 3 loss", .earlier = "write 3 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "no sign that the machine lost power" },

	/* M7.2: where `direct` stands for the drive's cache. */
	{ .rule = "M7.2", .trials = "fdatasync 29 ext4; direct 3 loss ext4; write 1 loss",
		.verdict = PP_ARM_SAFE, .exit = 0 },
	{ .rule = "M7.2", .trials = "fdatasync 29 btrfs; direct 3 loss btrfs; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "rig too blind: no control `direct`" },
	{ .rule = "M7.2", .trials = "fdatasync 29 btrfs; direct 3 loss; write 1 loss", .exit = 0,
		.verdict = PP_ARM_SAFE },
	{ .rule = "M7.2", .trials = HELD "direct 3 loss btrfs_nodatacow; write 1 loss", .exit = 0,
		.verdict = PP_ARM_SAFE },
	{ .rule = "M7.2", .trials = HELD "direct 3 loss ext4_journal; write 1 loss", .exit = 2,
		.says = "rig too blind: no control `direct`" },
	{ .rule = "M7.2", .trials = HELD "direct 3 loss zfs; write 1 loss", .exit = 2,
		.says = "rig too blind: no control `direct`" },
	{ .rule = "M7.2", .trials = HELD "direct 3 loss unknown_fs; write 1 loss", .exit = 2,
		.says = "rig too blind: no control `direct`" },
	{ .rule = "M7.2", .trials = HELD "direct 3 loss append ext4; write 1 loss", .exit = 2,
		.says = "rig too blind: no control `direct`" },
	{ .rule = "M7.2", .trials = "direct 3 loss btrfs", .arm = "direct", .exit = 2,
		.verdict = PP_ARM_LOSES, .says = "shows RAM only" },
	{ .rule = "M7.2", .trials = "direct 3 loss", .arm = "direct", .exit = 2,
		.verdict = PP_ARM_LOSES, .says_not = "shows RAM only" },

	/* M7.3: q from the same drive in the same state, and the rule itself (n = 29). */
	{ .rule = "M7.3", .trials = HELD "direct 2 loss; write 1 loss", .verdict = PP_ARM_SAFE },
	{ .rule = "M7.3", .trials = HELD "direct 2 loss; direct 1; write 1 loss",
		.verdict = PP_ARM_SAFE },
	{ .rule = "M7.3", .trials = HELD "direct 3 loss; direct 5; write 1 loss",
		.verdict = PP_ARM_SAFE },
	/* A control that wrote faster than the arm says nothing of what the arm had at risk. */
	{ .rule = "M7.3", .trials = "fdatasync 29 slow; direct 4 loss quick; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE,
		.says = "`direct` lost in 0 of 0 cuts at this arm's pace (0.0 %); at least 2 more control "
			"cuts missing (4 that lost wrote more than twice as fast as this arm, or had stopped)" },
	/* One that had paused for a tenth of a second, or for longer, had filled the cache before. */
	{ .rule = "M7.3", .trials = "fdatasync 29 slow; direct 4 loss stalled; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "`direct` lost in 0 of 0 cuts at this arm's pace" },
	{ .rule = "M7.3", .trials = HELD "direct 3 loss unexposed; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "`direct` lost in 0 of 0 cuts at this arm's pace" },
	/* Nor one that wrote as many bytes, but far more records. */
	{ .rule = "M7.3", .trials = "fdatasync 29 slow; direct 4 loss brisk small; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "`direct` lost in 0 of 0 cuts at this arm's pace" },
	/* Five a second and forty look alike in 100 ms. */
	{ .rule = "M7.3", .trials = "fdatasync 29 sluggish; direct 4 loss forty; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "`direct` lost in 0 of 0 cuts at this arm's pace" },
	{ .rule = "M7.3", .trials = "fdatasync 29 sluggish; direct 4 loss sluggish; write 1 loss",
		.verdict = PP_ARM_SAFE },
	/* One that kept everything although it was quicker is a trial like any other. */
	{ .rule = "M7.3", .trials = "fdatasync 29 slow; direct 2 loss slow; direct 8 quick; "
		"direct 4 loss quick; write 1 loss", .exit = 2, .verdict = PP_ARM_INCONCLUSIVE,
		.says = "`direct` lost in 2 of 10 cuts at this arm's pace" },
	{ .rule = "M7.3", .trials = "fdatasync 29 slow; direct 2 loss slow; write 1 loss",
		.verdict = PP_ARM_SAFE },
	{ .rule = "M7.3", .trials = "fdatasync 29 quick; direct 2 loss slow; write 1 loss",
		.verdict = PP_ARM_SAFE },
	{ .rule = "M7.3", .trials = "fdatasync 29 slow; direct 2 loss slow; direct 1 loss quick; "
		"write 1 loss", .verdict = PP_ARM_SAFE },
	/* Nor one that wrote in another order: a drive writes what is in order down faster. */
	{ .rule = "M7.3", .trials = HELD "direct 4 loss shuffled; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "rig too blind: no control `direct`" },
	{ .rule = "M7.3", .trials = "fdatasync 29 shuffled; direct 4 loss; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "rig too blind: no control `direct`" },
	{ .rule = "M7.3", .trials = "fdatasync 29 shuffled; direct 4 loss shuffled; write 1 loss",
		.verdict = PP_ARM_SAFE },
	/* Nor does one that wrote as many records, but far more bytes. */
	{ .rule = "M7.3", .trials = "fdatasync 29 slow; direct 4 loss slow big; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "`direct` lost in 0 of 0 cuts at this arm's pace" },
	{ .rule = "M7.3", .trials = HELD "direct 1 loss; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE,
		.says = "rig too blind: `direct` lost in 1 of 1 cut (77.4 %); at least 1 more control cut missing" },
	{ .rule = "M7.3", .trials = HELD "direct 1 loss; direct 2; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "1 of 3 cuts (39.0 %); at least 2 more" },
	{ .rule = "M7.3", .trials = HELD "direct 3 loss; direct 7; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "3 of 10 cuts (92.9 %); at least 1 more" },
	{ .rule = "M7.3", .trials = "fdatasync 59; direct 1 loss; write 1 loss", .exit = 0,
		.verdict = PP_ARM_SAFE, .says = "(95.1 %)" },
	{ .rule = "M7.3", .trials = HELD "direct 2 loss; direct 1 unexposed; write 1 loss",
		.verdict = PP_ARM_SAFE },
	{ .rule = "M7.3", .trials = HELD "direct 3 loss; direct 7 unexposed; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "3 of 10 cuts" },
	{ .rule = "M7.3", .trials = HELD "direct 3 loss; direct 7 open; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "3 of 10 cuts" },
	{ .rule = "M7.3", .trials = HELD "direct 3 loss; direct 7 void; write 1 loss",
		.verdict = PP_ARM_SAFE, .says = "3 of 3 cuts" },
	{ .rule = "M7.3", .trials = HELD "direct 3 loss unproven; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "no control `direct`" },
	{ .rule = "M7.3", .trials = HELD "direct 3 corrupt; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "`direct` lost in 0 of 3 cuts" },
	{ .rule = "M7.3", .trials = HELD "write 1 loss", .exit = 2, .verdict = PP_ARM_INCONCLUSIVE,
		.says = "rig too blind: no control `direct` was cut yet; at least 2 cuts missing" },
	{ .rule = "M7.3", .trials = HELD "direct 3 loss btrfs; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "rig too blind: no control `direct` showed this "
			"drive's cache (raw or pre-written, same policy); at least 2 cuts missing" },
	{ .rule = "M7.3", .trials = HELD "write 1 loss", .earlier = "direct 9 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "no control `direct`" },
	{ .rule = "M7.3", .trials = HELD "fdatasync-direct 3 loss S2; write 1 loss", .exit = 1,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "no control `direct`" },
#define OTHER_CONTROL(word) HELD "direct 3 loss " word "; write 1 loss"
	{ .rule = "M7.3", .trials = OTHER_CONTROL("S2"), .exit = 2, .says = "no control `direct`" },
	{ .rule = "M7.3", .trials = OTHER_CONTROL("model2"), .exit = 2, .says = "no control" },
	{ .rule = "M7.3", .trials = OTHER_CONTROL("fw2"), .exit = 2, .says = "no control `direct`" },
	{ .rule = "M7.3", .trials = OTHER_CONTROL("wt"), .exit = 2, .says = "no control `direct`" },
	{ .rule = "M7.3", .trials = OTHER_CONTROL("k2"), .exit = 2, .says = "no control `direct`" },
	{ .rule = "M7.3", .trials = OTHER_CONTROL("dc"), .exit = 2, .says = "no control `direct`" },
	{ .rule = "M7.3", .trials = OTHER_CONTROL("noise"), .exit = 2, .says = "no control `direct`" },
	{ .rule = "M7.3", .trials = OTHER_CONTROL("lanes4"), .verdict = PP_ARM_SAFE },
	/* Two controls in valid places: the weaker decides, not the one that looks better. */
	{ .rule = "M7.3", .trials = HELD "direct 9 loss; direct 3 ext4; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "`direct` lost in 0 of 3 cuts" },
	{ .rule = "M7.3", .trials = HELD "direct 9 loss; direct 3 loss ext4; write 1 loss",
		.verdict = PP_ARM_SAFE, .says = "3 of 3 cuts" },

	/* M7.4, M7.5: `direct` kept everything. */
#define KEPT(words) "fdatasync 29 " words "; direct 29 " words "; write 1 loss"
	{ .rule = "M7.4", .trials = KEPT("powered nocache"), .verdict = PP_ARM_SAFE, .exit = 0,
		.says = "rests on protection; flush not tested", .says_not = "nothing was at risk" },
	{ .rule = "M7.4", .trials = KEPT("powered"), .protected_serial = "S1", .exit = 0,
		.verdict = PP_ARM_SAFE, .says = "rests on protection; flush not tested" },
	{ .rule = "M7.4", .trials = KEPT("powered"), .protected_serial = "S2", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "nothing was at risk" },
	{ .rule = "M7.4", .trials = KEPT("powered"), .exit = 2, .verdict = PP_ARM_INCONCLUSIVE,
		.says = "nothing was at risk: `direct` kept everything, the drive declares a volatile" },
	{ .rule = "M7.5", .trials = KEPT("nocache"), .exit = 2, .verdict = PP_ARM_INCONCLUSIVE,
		.says = "provably lost power in 0 clean cuts of this arm and 0 of `direct`" },
	{ .rule = "M7.5", .trials = KEPT("nocache"), .exit = 2, .protected_serial = "S1",
		.verdict = PP_ARM_INCONCLUSIVE, .says = "nothing was at risk" },
	{ .rule = "M7.5", .trials = "fdatasync 28 powered nocache; fdatasync 1 nocache; "
		"direct 29 powered nocache; write 1 loss", .exit = 2, .verdict = PP_ARM_INCONCLUSIVE,
		.says = "power in 28 clean cuts of this arm and 29 of `direct`" },
	{ .rule = "M7.5", .trials = "fdatasync 29 powered nocache; "
		"direct 28 powered nocache; direct 1 nocache; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "29 clean cuts of this arm and 28 of `direct`" },
	{ .rule = "M7.4", .trials = "fdatasync 29 powered nocache; direct 28 powered nocache; "
		"write 1 loss", .exit = 2, .verdict = PP_ARM_INCONCLUSIVE,
		.says = "kept everything in 28 exposed cuts, 1 more needed" },
	{ .rule = "M7.4", .trials = "fdatasync 29 powered nocache; direct 28 powered nocache; "
		"direct 1 powered nocache unexposed; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "28 exposed cuts" },
	{ .rule = "M7.4", .trials = "fdatasync 28 powered nocache; fdatasync 1 powered; "
		"direct 29 powered nocache; write 1 loss", .exit = 2, .verdict = PP_ARM_INCONCLUSIVE,
		.says = "declares a volatile cache" },
	{ .rule = "M7.4", .trials = "fdatasync 29 powered nocache; direct 28 powered nocache; "
		"direct 1 powered; write 1 loss", .exit = 2, .verdict = PP_ARM_INCONCLUSIVE,
		.says = "declares a volatile cache" },
	{ .rule = "M7.4", .trials = "fdatasync 29 powered; direct 29 powered; direct 1 loss; "
		"write 1 loss", .protected_serial = "S1", .exit = 2, .verdict = PP_ARM_INCONCLUSIVE,
		.says = "rig too blind: `direct` lost in 1 of 30", .says_not = "rests on" },
	{ .rule = "M7.4", .trials = "fdatasync 29 powered; direct 29 powered; direct 1 corrupt; "
		"write 1 loss", .protected_serial = "S1", .exit = 2, .verdict = PP_ARM_INCONCLUSIVE,
		.says = "rig too blind: `direct` lost in 0 of 30", .says_not = "rests on" },
	{ .rule = "M7.4", .trials = "fdatasync 29 powered; direct 29 powered; direct 1 open; "
		"write 1 loss", .protected_serial = "S1", .exit = 2, .verdict = PP_ARM_INCONCLUSIVE,
		.says = "`direct` has open cuts" },
	{ .rule = "M7.4", .trials = "fdatasync 29 powered; direct 29 powered; "
		"direct 9 loss ext4; write 1 loss", .protected_serial = "S1", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "rig too blind", .says_not = "rests on" },
	/* What is lost in random order, or with noise, stood in the same cache; what another policy, or
	 * another firmware, made of it says nothing of this one. */
	{ .rule = "M7.4", .trials = KEPT("powered") "; direct 1 loss shuffled", .protected_serial = "S1",
		.exit = 2, .verdict = PP_ARM_INCONCLUSIVE, .says = "the cache is not protected", .says_not = "rests on" },
	{ .rule = "M7.4", .trials = KEPT("powered") "; direct 1 loss noise", .protected_serial = "S1",
		.exit = 2, .verdict = PP_ARM_INCONCLUSIVE, .says = "the cache is not protected", .says_not = "rests on" },
	{ .rule = "M7.4", .trials = KEPT("powered nocache") "; direct 1 loss shuffled", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "the cache is not protected", .says_not = "rests on" },
	{ .rule = "M7.4", .trials = KEPT("powered"), .earlier = "direct 1 loss", .protected_serial = "S1",
		.exit = 2, .verdict = PP_ARM_INCONCLUSIVE, .says = "the cache is not protected" },
	{ .rule = "M7.4", .trials = KEPT("powered"), .earlier = "direct 1 loss fw2; direct 1 loss S2; "
		"direct 1 loss zfs; direct 1 loss unproven; direct 9; write 1 loss", .protected_serial = "S1",
		.exit = 0, .verdict = PP_ARM_SAFE, .says = "rests on protection" },
	{ .rule = "M7.4", .trials = KEPT("powered") "; direct 1 shuffled", .protected_serial = "S1",
		.exit = 0, .verdict = PP_ARM_SAFE, .says = "rests on protection" },
	{ .rule = "M7.4", .trials = KEPT("powered off nocache") "; direct 1 loss shuffled on", .exit = 0,
		.verdict = PP_ARM_SAFE, .says = "rests on the write cache being off" },
	{ .rule = "M7.4", .trials = KEPT("powered") "; direct 1 loss fw2", .protected_serial = "S1",
		.exit = 0, .verdict = PP_ARM_SAFE, .says = "rests on protection" },
	{ .rule = "M7.4", .trials = "fdatasync 28 powered; fdatasync 1 noiselost; "
		"direct 29 powered; write 1 loss", .protected_serial = "S1", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "acked noise was lost" },
	{ .rule = "M7.4", .trials = HELD "direct 3; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "rig too blind: `direct` lost in 0 of 3 cuts (0.0 %)" },
	{ .rule = "M7.4", .trials = HELD "direct 29; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "nothing was at risk" },

	/* M8.3: the same command, by the method's row and via_flush. */
	{ .rule = "M8.3", .trials = HELD "fsync 1 loss; " SEEN, .exit = 1,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "same command failed in fsync, overwrite (flush)" },
	{ .rule = "M8.3", .trials = HELD "fsync 1 loss S2; " SEEN, .exit = 1, .verdict = PP_ARM_SAFE },
	{ .rule = "M8.3", .trials = HELD "fdatasync 1 loss ext4; " SEEN, .exit = 1,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "same command failed in fdatasync" },
	{ .rule = "M8.3", .trials = HELD "fsync 1 loss fw2; " SEEN, .exit = 1,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "same command failed in fsync" },
	{ .rule = "M8.3", .trials = HELD "dsync-direct 1 loss; " SEEN, .exit = 1,
		.verdict = PP_ARM_SAFE, .says_not = "same command" },
	{ .rule = "M8.3", .trials = "dsync-direct 29; fsync 1 loss; " SEEN, .exit = 1,
		.arm = "dsync-direct", .verdict = PP_ARM_SAFE, .says_not = "same command" },
	{ .rule = "M8.3", .trials = "dsync-direct 29; dsync-direct 1 loss ext4; " SEEN, .exit = 1,
		.arm = "dsync-direct", .verdict = PP_ARM_INCONCLUSIVE, .says = "(FUA)" },
	{ .rule = "M8.3", .trials = "dsync-direct 29 ext4; dsync-direct 1 loss; " SEEN, .exit = 1,
		.arm = "dsync-direct", .verdict = PP_ARM_INCONCLUSIVE, .says = "(FUA)" },
	{ .rule = "M8.3", .trials = "dsync-direct 29 viaflush; fsync 1 loss; " SEEN, .exit = 1,
		.arm = "dsync-direct", .verdict = PP_ARM_INCONCLUSIVE, .says = "failed in fsync" },
	{ .rule = "M8.3", .trials = HELD "dsync-direct 1 loss viaflush; " SEEN, .exit = 1,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "failed in open_datasync (direct)" },
	{ .rule = "M8.3", .trials = HELD "dsync-direct 1 loss append; " SEEN, .exit = 1,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "failed in open_datasync (direct), append (flush)" },
	{ .rule = "M8.3", .trials = "dsync-direct 29 append; dsync-direct 1 loss; " SEEN, .exit = 1,
		.arm = "dsync-direct@append", .verdict = PP_ARM_SAFE, .says = "via flush" },
	{ .rule = "M8.3", .trials = "fdatasync 29 nofua; dsync-direct 1 loss nofua; direct 3 loss nofua;"
		" write 1 loss", .exit = 1, .verdict = PP_ARM_INCONCLUSIVE, .says = "same command" },
	/* Buffered, Linux adds a flush; Windows' write-through is FUA or nothing, never a flush. */
	{ .rule = "M8.3", .trials = "fsync 29; open_datasync 1 loss; " SEEN, .exit = 1, .arm = "fsync",
		.verdict = PP_ARM_INCONCLUSIVE, .says = "same command failed in open_datasync" },
	{ .rule = "M8.3", .trials = "fsync 29 windows; open_datasync 1 loss windows; direct 3 loss windows;"
		" write 1 loss windows", .exit = 1, .arm = "fsync", .verdict = PP_ARM_SAFE,
		.says_not = "same command" },
	{ .rule = "M8.3", .trials = "fsync 29 windows; open_datasync 1 loss windows append; direct 3 loss"
		" windows; write 1 loss windows", .exit = 1, .arm = "fsync",
		.verdict = PP_ARM_INCONCLUSIVE, .says = "same command" },
	{ .rule = "M8.3", .trials = "open_datasync 29 windows; fsync 1 loss windows; direct 3 loss windows;"
		" write 1 loss windows", .exit = 1, .arm = "open_datasync", .verdict = PP_ARM_SAFE,
		.says_not = "same command" },
	{ .rule = "M8.3", .trials = HELD "direct 3 loss; write 1 loss", .verdict = PP_ARM_SAFE,
		.says_not = "same command" },
	{ .rule = "M8.3", .trials = HELD "fsync 1 loss notasked; " SEEN, .exit = 1,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "there the kernel did not ask" },

	/* M4.5: torn where untorn is promised. Other methods' durability rests on no such word. */
	{ .rule = "M4.5", .trials = "atomic 29; atomic 1 tears; " SEEN, .arm = "atomic", .exit = 1,
		.verdict = PP_ARM_UNSAFE, .says = "torn: of 1 write in flight a part arrived, though "
		"RWF_ATOMIC+RWF_DSYNC (direct) promises each unit of 8192 bytes" },
	{ .rule = "M4.5", .trials = "atomic 29; atomic 1 tears notasked; " SEEN, .arm = "atomic",
		.exit = 1, .verdict = PP_ARM_UNSAFE, .says_not = "did not ask" },
	{ .rule = "M4.5", .trials = "atomic 1 tears; dsync-direct 29; " SEEN, .arm = "dsync-direct",
		.exit = 1, .verdict = PP_ARM_SAFE, .says_not = "same command" },
	/* But another arm's word that writes come whole does. */
	{ .rule = "M8.3", .trials = "atomic 29; atomic 1 tears ext4; " SEEN, .arm = "atomic", .exit = 1,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "same command failed in RWF_ATOMIC+RWF_DSYNC (direct), "
		"overwrite (untorn write)" },
	{ .rule = "M8.3", .trials = "atomic 29; atomic 1 tears lanes4 notasked; " SEEN, .arm = "atomic",
		.exit = 1, .verdict = PP_ARM_INCONCLUSIVE, .says = "same command", .says_not = "did not ask" },
	{ .rule = "M8.3", .trials = "atomic 29 off powered nocache; direct 29 off powered nocache; "
		"write 1 loss off; atomic 1 tears on", .arm = "atomic", .exit = 1,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "same command failed" },
	{ .rule = "M8.3", .trials = "atomic 29; atomic 1 tears S2; " SEEN, .arm = "atomic", .exit = 1,
		.verdict = PP_ARM_SAFE },
	{ .rule = "M4.5", .trials = "atomic 1 loss; dsync-direct 29; " SEEN, .arm = "dsync-direct",
		.exit = 1, .verdict = PP_ARM_INCONCLUSIVE, .says = "same command" },

	/* A policy is part of the arm (M1.3): what a flush that was dropped, or FUA under a cache that is
	 * on, came to there is no objection here; but a flush that failed with the cache off is one. */
#define ON(x)  "fdatasync 29 on; direct 3 loss on; write 1 loss on; " x
#define OFF(x) "fdatasync 29 off powered nocache; direct 29 off powered nocache; write 1 loss off; " x
	{ .rule = "M1.5", .trials = ON("fdatasync 1 loss dropped notasked"), .exit = 1,
		.verdict = PP_ARM_SAFE, .says = "same command failed in fdatasync, overwrite, flushing-off" },
	{ .rule = "M1.5", .trials = ON("fdatasync 1 loss dropped nobodyknows"), .exit = 1,
		.verdict = PP_ARM_SAFE },
	/* A flush that was counted although none should be sent: it failed all the same. */
	{ .rule = "M1.5", .trials = ON("fdatasync 1 loss dropped"), .exit = 1,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "same command failed" },
	{ .rule = "M1.5", .trials = ON("fdatasync 1 loss off nobodyknows"), .exit = 1,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "same command failed" },
	/* One loss that nobody asked for does not explain one of which nobody knows. */
	{ .rule = "M1.5", .trials = ON("fdatasync 2 loss off notasked"), .exit = 1,
		.verdict = PP_ARM_SAFE, .says = "same command failed" },
	{ .rule = "M1.5", .trials = ON("fdatasync 1 loss off notasked; fdatasync 1 loss off nobodyknows"),
		.exit = 1, .verdict = PP_ARM_INCONCLUSIVE, .says = "same command failed" },
	{ .rule = "M1.5", .trials = ON("fdatasync 1 loss off"), .exit = 1,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "same command failed in fdatasync, overwrite, cache-off" },
	{ .rule = "M1.5", .trials = ON("fdatasync 1 loss"), .exit = 1,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "same command failed" },
	{ .rule = "M1.5", .trials = OFF("fdatasync 1 loss on"), .exit = 1, .verdict = PP_ARM_SAFE,
		.says = "rests on the write cache being off, by the drive's own word" },
	/* A cache that is said to be off and loses is not off: then this arm rests on the flush as well. */
	{ .rule = "M1.5", .trials = "fdatasync 29 off nocache; direct 3 loss off; write 1 loss off; "
		"fdatasync 1 loss on", .exit = 1, .verdict = PP_ARM_INCONCLUSIVE,
		.says = "same command failed in fdatasync, overwrite, cache-on" },
	{ .rule = "M1.5", .trials = "fdatasync 29 off powered nocache; direct 3 loss on; write 1 loss on",
		.exit = 2, .verdict = PP_ARM_INCONCLUSIVE, .says = "rig too blind: no control `direct`" },
	{ .rule = "M1.5", .trials = "fdatasync 29 on; direct 29 off powered nocache; write 1 loss off",
		.exit = 2, .verdict = PP_ARM_INCONCLUSIVE, .says = "rig too blind: no control `direct`" },
	{ .rule = "M1.3", .trials = "fdatasync 28 named_on; fdatasync 1 named_off; direct 3 loss named_on; "
		"write 1 loss", .exit = 2, .verdict = PP_ARM_INCONCLUSIVE, .says = "28 of 29 clean cuts" },
	{ .rule = "M1.5", .trials = "fdatasync 29 named_off; direct 3 loss named_on; write 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "rig too blind: no control `direct`" },
	{ .rule = "M7.4", .trials = "fdatasync 29 off powered nocache; direct 28 off powered nocache; "
		"write 1 loss off", .exit = 2, .verdict = PP_ARM_INCONCLUSIVE, .says = "1 more needed" },
	{ .rule = "M7.4", .trials = "fdatasync 29 off powered; direct 29 off powered; write 1 loss off",
		.exit = 2, .verdict = PP_ARM_INCONCLUSIVE, .says = "declares a volatile cache" },
	{ .rule = "M1.5", .trials = "fdatasync 28 on; fdatasync 1 on came_back; direct 3 loss on; "
		"write 1 loss on", .exit = 0, .verdict = PP_ARM_SAFE,
		.says = "did not survive power-up in 1 cut (cut 29: it came back as 'drive cache on')" },

	/* M8.4: the label. */
	{ .rule = "M8.4", .trials = "dsync-direct 29 viaflush; " SEEN, .arm = "dsync-direct",
		.verdict = PP_ARM_SAFE, .says = "via flush: says nothing about FUA" },
	{ .rule = "M8.4", .trials = "dsync-direct 29; " SEEN, .arm = "dsync-direct",
		.verdict = PP_ARM_SAFE, .says_not = "via flush" },

	/* M9.3: earlier evidence of the same arm. */
	{ .rule = "M9.3", .trials = HELD SEEN, .earlier = "fdatasync 29; fdatasync 1 loss", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "loss in earlier evidence of this arm: 1 of 30 cuts" },
	{ .rule = "M9.3", .trials = HELD SEEN, .earlier = "fdatasync 29", .verdict = PP_ARM_SAFE,
		.says = "earlier evidence of this arm: 29 cuts, none lost" },
	{ .rule = "M9.3", .trials = "fdatasync 28; " SEEN, .earlier = "fdatasync 29", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "28 of 29 clean cuts" },
	{ .rule = "M9.3", .trials = HELD SEEN, .earlier = "fdatasync 2 loss fw2; fsync 1 loss",
		.verdict = PP_ARM_SAFE,
		.says = "earlier evidence of this drive: 2 cuts lost by this method under other" },
	{ .rule = "M9.3", .trials = HELD SEEN, .earlier = "fdatasync 1 loss S2; fsync 1 loss",
		.verdict = PP_ARM_SAFE, .says_not = "earlier" },
	{ .rule = "M9.3", .trials = HELD SEEN, .earlier = "fdatasync 1 loss unproven", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "earlier evidence of this arm has 1 unsettled cut" },
	{ .rule = "M9.3", .trials = HELD SEEN, .earlier = "fdatasync 1 open", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "unsettled" },
	{ .rule = "M9.3", .trials = HELD SEEN, .earlier = "fdatasync 1 open resolved",
		.verdict = PP_ARM_SAFE },

	/* M8.6: arms that promise nothing. */
	{ .rule = "M8.6", .trials = "write 2 loss; write 1", .arm = "write", .exit = 2,
		.verdict = PP_ARM_LOSES, .says = "2 of 3 cuts (at least 13.5 % a cut, 95 %)" },
	{ .rule = "M8.6", .trials = "write 40; " SEEN, .arm = "write", .exit = 2,
		.verdict = PP_ARM_LOSES },
	{ .rule = "M8.6", .trials = "direct 40", .arm = "direct", .exit = 2, .verdict = PP_ARM_KEEPS },
	{ .rule = "M8.6", .trials = "direct 4 void", .arm = "direct", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "no proven cut" },
	{ .rule = "M8.6", .trials = "direct 4 open", .arm = "direct", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "open" },
	{ .rule = "M8.4", .trials = "magic 29; " SEEN, .arm = "magic", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "method 'magic' on target 'raw' is not known" },
	{ .rule = "M8.4", .trials = "magic 1 loss; " SEEN, .arm = "magic", .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE },
	{ .rule = "M8.4", .trials = "fdatasync 29 odd_target; " SEEN, .exit = 2,
		.verdict = PP_ARM_INCONCLUSIVE, .says = "is not known here" },
};

#endif
