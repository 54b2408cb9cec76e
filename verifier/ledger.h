/* SPDX-License-Identifier: MIT
 *
 * The ledger of a run (acks.ledger): what the witness received and when, on the controller's
 * CLOCK_MONOTONIC. Written by the listener, marked by the controller, read by the judge.
 *
 * Format, little-endian. Header, 64 bytes: "PPLEDGER", u32 format 1, u32 lanes, u32 entry bytes
 * (40), u32 0, run id[16], 16 zeros, u64 XXH3-64 of the 56 bytes before. Then entries of 40 bytes:
 *   u32 check, u16 type, u16 small, i64 t_ns, u64 a, u64 b, u64 c
 * check is the low half of XXH3-64 over the 36 bytes behind it, seeded with the entry's number and
 * the run id, so an entry that was altered, moved or taken from another run does not verify.
 *   ACK   a first, b last, c lane     BEAT  a writes, b sectors written, c flushes
 *   FRAME another frame of the machine arrived (or the time of its last, written late)
 *   CLOSE small: how the connection ended (enum pp_close)
 *   MARK  small: what the controller did (enum pp_mark), a: a value of its own
 * Entries are appended in the order in which they were learnt; t_ns may step back a little.
 */
#ifndef PP_VERIFIER_LEDGER_H
#define PP_VERIFIER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/error.h"
#include "src/core/record.h"

#define PP_LEDGER_LANES_MAX 4096
#define PP_LEDGER_NEVER     (-1) /* of times: it did not happen */

enum pp_ledger_type {
	PP_LEDGER_ACK = 1, PP_LEDGER_BEAT, PP_LEDGER_FRAME, PP_LEDGER_CLOSE, PP_LEDGER_MARK
};

/* How a connection ended, as the kernel told it. A machine that lost its power says nothing:
 * its connection stays open (NOT), or ends in TIMEOUT long after. */
enum pp_close {
	PP_CLOSE_NOT = 0,
	PP_CLOSE_FIN,      /* the machine closed it in good order: it was running */
	PP_CLOSE_RST,      /* reset: the agent was killed, or a rebooted kernel answers */
	PP_CLOSE_TIMEOUT,  /* this host's kernel gave up: silence, host or network unreachable */
	PP_CLOSE_PROTOCOL, /* we ended it: bad MAC, ack gap, nonsense, or it reads nothing */
	PP_CLOSE_REPLACED, /* the controller ended it: a newer session took its place */
	PP_CLOSE_LOCAL,    /* the controller ended it, or the listener closed */
};
const char *pp_close_name(enum pp_close how); /* "open", "FIN", "RST", ... */

enum pp_mark {
	PP_MARK_WRITING = 1, /* the agent said that the run has begun */
	PP_MARK_OFF_SENT,    /* t_off: the first outlet's off was sent */
	PP_MARK_OFF_READ,    /* t_read: every outlet was read back off */
	PP_MARK_ON_SENT,     /* t_on */
	PP_MARK_ABANDONED,   /* the run ended without a cut */
	PP_MARK_FAILED,      /* the agent reported a failed write or sync (M2.3) */
};

/* ---- writing: any thread, a lock inside -------------------------------------------------- */
struct pp_ledger;

/* A new file (one that exists is refused), header and directory entry durable on return. */
struct pp_ledger *pp_ledger_create(const char *path, const struct pp_run_id *run, uint32_t lanes,
	struct pp_error *err);

/* Appends are buffered (64 KiB) until flush. The records of a lane are acked strictly in order
 * from 1: anything but first = highest acked + 1 and first <= last < UINT64_MAX, or a lane the
 * run has not, is PP_ERR_EVIDENCE, and nothing is appended. A failed write (full disk) is
 * PP_ERR_SYSTEM and final: the ledger is `failed`, what was there stays, every later append
 * fails. */
int pp_ledger_ack(struct pp_ledger *l, int64_t t_ns, uint32_t lane, uint64_t first, uint64_t last,
	struct pp_error *err);
int pp_ledger_beat(struct pp_ledger *l, int64_t t_ns, uint64_t writes, uint64_t sectors_written,
	uint64_t flushes, struct pp_error *err);
int pp_ledger_frame(struct pp_ledger *l, int64_t t_ns, struct pp_error *err);
int pp_ledger_closed(struct pp_ledger *l, int64_t t_ns, enum pp_close how, struct pp_error *err);
int pp_ledger_mark(struct pp_ledger *l, int64_t t_ns, enum pp_mark what, uint64_t value,
	struct pp_error *err); /* flushes too */

/* flush: the kernel has it (write(2)), so it survives the listener's death. sync: flush and
 * fdatasync(2), so it survives this host's. A failed sync is final as well. */
int pp_ledger_flush(struct pp_ledger *l, struct pp_error *err);
int pp_ledger_sync(struct pp_ledger *l, struct pp_error *err);

const struct pp_run_id *pp_ledger_run(const struct pp_ledger *l);
uint32_t pp_ledger_lanes(const struct pp_ledger *l);
uint64_t pp_ledger_acked(struct pp_ledger *l, uint32_t lane); /* highest appended; 0: none */
bool pp_ledger_failed(struct pp_ledger *l);

/* Syncs, closes, frees. The memory is gone also when it fails. NULL is fine. */
int pp_ledger_close(struct pp_ledger *l, struct pp_error *err);

/* ---- reading ----------------------------------------------------------------------------- */
struct pp_ledger_entry {
	enum pp_ledger_type type;
	uint16_t small;
	int64_t t_ns;
	uint64_t a, b, c;
};

struct pp_ledger_data {
	struct pp_run_id run;
	uint32_t lanes;
	struct pp_ledger_entry *entries;
	size_t count;
	bool truncated;         /* a torn tail was dropped: see pp_ledger_load */
	uint64_t dropped_bytes;
	/* index over the ACK entries: those of lane i are acks[lane_at[i]] .. acks[lane_at[i+1] - 1] */
	size_t *lane_at, *acks;
};

/* Reads and checks a ledger. PP_ERR_EVIDENCE: not a ledger, damaged header, a bad entry with a good
 * one anywhere behind it, an unknown type, an ack out of order. A bad or partial end with nothing
 * good behind it is what a crash of this host leaves: dropped, `truncated` set. Acks that were
 * echoed may then be missing, so a truncated ledger can convict (what it holds is true) but must
 * never make a trial clean. Release data also only after success. */
int pp_ledger_load(const char *path, struct pp_ledger_data *data, struct pp_error *err);
/* The same from memory (the fuzzer's door). */
int pp_ledger_read(const void *bytes, size_t count, struct pp_ledger_data *data,
	struct pp_error *err);
void pp_ledger_data_release(struct pp_ledger_data *data);

/* Highest acked sequence of a lane (contiguous from 1: load refuses gaps); 0: none. */
uint64_t pp_ledger_data_acked(const struct pp_ledger_data *d, uint32_t lane);
/* Records acked over all lanes. */
uint64_t pp_ledger_data_records(const struct pp_ledger_data *d);
/* When the ack that covered this record was received; NEVER if none did (M4.9). */
int64_t pp_ledger_t_acked(const struct pp_ledger_data *d, uint32_t lane, uint64_t seq);
/* Last frame of the machine: the latest t_ns over ACK, BEAT and FRAME (M5.1); NEVER if none. A
 * machine with several drives: take the latest over the ledgers of the cut. */
int64_t pp_ledger_t_last(const struct pp_ledger_data *d);
/* Latest ACK, over all lanes; NEVER if none. */
int64_t pp_ledger_t_last_ack(const struct pp_ledger_data *d);
/* Median of the differences between one ACK entry's t_ns and the next's, all lanes together, in
 * order (the lower of the middle two; acks received in one piece share an entry). NEVER with fewer
 * than two ACK entries (M8.1). */
int64_t pp_ledger_median_ack_interval_ns(const struct pp_ledger_data *d);
/* The latest BEAT whose flush counter is greater than the BEAT's before it (M8.1). NEVER if none
 * rose; the first BEAT has nothing to rise from. */
int64_t pp_ledger_t_flush_rose(const struct pp_ledger_data *d);
/* First and last BEAT entry; NULL if none. */
const struct pp_ledger_entry *pp_ledger_first_beat(const struct pp_ledger_data *d);
const struct pp_ledger_entry *pp_ledger_last_beat(const struct pp_ledger_data *d);
/* The last CLOSE entry's how, and its time in *t_ns (unless NULL); PP_CLOSE_NOT and NEVER. */
enum pp_close pp_ledger_last_close(const struct pp_ledger_data *d, int64_t *t_ns);
/* The first CLOSE entry by FIN or RST, which a machine without power cannot send (M5.1). */
enum pp_close pp_ledger_first_orderly_close(const struct pp_ledger_data *d, int64_t *t_ns);
/* The first MARK of a kind; its time, NEVER if none. */
int64_t pp_ledger_t_mark(const struct pp_ledger_data *d, enum pp_mark what);

#endif
