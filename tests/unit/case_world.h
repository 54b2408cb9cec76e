/* SPDX-License-Identifier: MIT
 *
 * A trial for tests of judge and evidence: a good cut's facts, a ledger of a hundred acked records
 * with a flush each, scans of a target in memory. Times are milliseconds after the off was sent.
 */
#ifndef PP_TESTS_CASE_WORLD_H
#define PP_TESTS_CASE_WORLD_H

#include <unistd.h>

#include "oracle_world.h"
#include "verifier/facts.h"
#include "verifier/ledger.h"

#define CASE_MS(n)   ((100000LL + (n)) * 1000000LL)
#define CASE_RECORDS 100
#define CASE_LOST    50 /* the record that a liar loses */

/* Off sent at 0, read back at 500, on sent at 3000, hello of the new boot at 5000, up for 1500. */
static inline void case_cut(struct pp_cut_facts *cut)
{
	memset(cut, 0, sizeof(*cut));
	cut->number = 1;
	strcpy(cut->state, "judged");
	strcpy(cut->cut_kind, "mains");
	strcpy(cut->kernel, "Linux 6");
	strcpy(cut->boot_before, "A");
	cut->t_run_ns = CASE_MS(-4000);
	cut->t_off_sent_ns = CASE_MS(0);
	cut->t_off_read_ns = CASE_MS(500);
	cut->off_verified = true;
	cut->t_on_sent_ns = CASE_MS(3000);
	cut->t_on_read_ns = CASE_MS(3500);
	cut->hold_up_ns = 1000 * 1000000LL;
	cut->power_cycles = 1;
	cut->boots = 1;
	strcpy(cut->boot[0].boot_id, "B");
	cut->boot[0].t_ns = CASE_MS(5000);
	cut->boot[0].uptime_ns = 1500 * 1000000LL;
}

static inline void case_run(struct pp_run_facts *run, const struct world *w)
{
	memset(run, 0, sizeof(*run));
	run->run_id = w->run;
	strcpy(run->serial, "S1");
	strcpy(run->model, "M");
	strcpy(run->method, "fdatasync");
	strcpy(run->fs, "ext4");
	strcpy(run->policy, "write back, fua");
	strcpy(run->policy_wanted, run->policy);
	strcpy(run->transport, "nvme");
	strcpy(run->base, "setups/0001/S1/scan-0.bin");
	run->fua = true;
	run->kind = PP_TARGET_FILE;
	run->layout = w->layout;
	run->aftermath = PP_AFTER_SCANNED;
}

/* An ack and a flush each ms, the last at last_ack_ms; beats every 10 ms up to the off. */
static inline void case_ledger(const char *path, const struct world *w, int last_ack_ms,
	bool flushes)
{
	struct pp_error err = { 0 };
	struct pp_ledger *l = pp_ledger_create(path, &w->run, w->layout.lanes, &err);
	int ms, first = last_ack_ms - CASE_RECORDS + 1;
	uint64_t seq;

	assert_non_null(l);
	for (ms = first - 20; ms <= -5; ms++) {
		seq = ms < first ? 0 : ms > last_ack_ms ? CASE_RECORDS : (uint64_t)(ms - first + 1);
		if (ms >= first && ms <= last_ack_ms)
			assert_int_equal(pp_ledger_ack(l, CASE_MS(ms), 0, seq, seq, &err), 0);
		if ((ms - 5) % 10 == 0)
			assert_int_equal(pp_ledger_beat(l, CASE_MS(ms), seq, 8 * seq, flushes ? seq : 0,
				&err), 0);
	}
	assert_int_equal(pp_ledger_close(l, &err), 0);
}

static inline void case_world(struct world *w, bool lose)
{
	struct pp_record old;

	world_init(w, PP_OVERWRITE, 1, 1);
	world_lay(w, w->layout.slots);
	world_take_base(w);
	world_write_until(w, 0, CASE_RECORDS);
	w->acked[0] = CASE_RECORDS;
	if (lose) {
		uint64_t slot = pp_layout_slot(&w->layout, 0, CASE_LOST);

		old = world_record(w, &w->before, 0, slot, slot + 1);
		world_write_cells(w, &old, 0, slot, 0, old.cells);
	}
}

#endif
