/* SPDX-License-Identifier: MIT
 *
 * What control may ask of an agent, and what comes back: the kv text inside REQUEST, RESPONSE, DATA
 * and NOTE frames (src/core/wire.h) as structs. Both sides use this code, so that an order is read
 * by the rules by which it was written.
 *
 * Orders are strict: an unknown key, a missing or repeated one, a number out of its range, a method
 * that this build does not have, a layout that pp_layout_init would not have made, refuse the whole
 * order before anything is touched. Answers are read leniently: keys that nobody asks for are fine.
 *
 * order      fields                                  answer
 * ping                                               (nothing)
 * identify   serial ("*": all)                       pp_drive_put; for "*" DATA: blocks of it
 * smart      serial                                  DATA: smartctl's JSON, perhaps none
 * share      serial, other                           pp_share
 * format     index spec                              pp_formatted
 * prove      index spec                              pp_proof; keeps the target open under index
 * release    index                                   lazy=yes|no
 * check      index spec                              pp_checked
 * prewrite   index layout file run_id compressible direct   pp_layout_put (base_slots are set)
 * sizes      index layout file                       pp_sizes
 * watch      index                                   pp_started: beats from now on
 * run        index layout file method pace_per_s run_id compressible   pp_started
 * noise      index layout file run_id compressible   pp_started; beside a run of the same index
 * stop       index                                   pp_stopped, of the run; ends its noise too
 * scan       index layout file ranges                DATA: scan.bin; pp_scanned
 * policy     index spec                              pp_policy_answer, with what a restore needs
 * policy-set index spec setting                      pp_policy_answer, as read back afterwards
 * policy-restore index spec policy_...               pp_policy_answer, as read back afterwards
 * matrix     index methods seconds block region_offset      DATA: blocks as pp_matrix_row_put, ""
 * poweroff, reboot                                   (nothing); answers before it acts
 *
 * Orders of one index are done one after another; those of different drives side by side; ping and
 * the power orders wait for nobody. RESPONSE status PP_ANSWER_FAILED and _REFUSED carry error=TEXT.
 * Trouble of a drive is an answer (pp_proof.state), not a failure. The policy orders are refused while
 * a run is on the drive: on Windows the question itself flushes it (M1.5).
 */
#ifndef PP_CAMPAIGN_ORDERS_H
#define PP_CAMPAIGN_ORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/buf.h"
#include "src/core/drive.h"
#include "src/core/error.h"
#include "src/core/kv.h"
#include "src/core/layout.h"
#include "src/core/method.h"
#include "src/core/policy.h"
#include "src/core/record.h"
#include "src/core/target.h"
#include "verifier/scan.h"

#define PP_ORDER_INDEX_MAX    63     /* drives of a plan: 0 ... 63; also the run_index of acks */
#define PP_NOISE_INDEX        64     /* added to it: the run_index of a drive's noise (M7.6) */
#define PP_RUN_INDEX_MAX      (PP_NOISE_INDEX + PP_ORDER_INDEX_MAX)
#define PP_ORDER_METHODS_MAX  64
#define PP_ORDER_RANGES_MAX   65536
#define PP_ORDER_PACE_MAX     100000000 /* records a second of a lane */
#define PP_ORDER_FILE_BYTES   65
#define PP_ORDER_FILE         "plugpull.target" /* base name of a target's files */
#define PP_NOISE_FILE         "plugpull.noise"
#define PP_NOISE_METHOD       "direct" /* each write acked when it returned, nothing ever synced */
#define PP_ORDER_DATA_BYTES   (256u << 10)      /* of one DATA frame, at most */
#define PP_ORDER_BYTES_MAX    PP_KV_BYTES_MAX

enum pp_answer_status { PP_ANSWER_DONE = 0, PP_ANSWER_FAILED = 1, PP_ANSWER_REFUSED = 2 };

enum pp_order_kind {
	PP_ORDER_PING, PP_ORDER_IDENTIFY, PP_ORDER_SMART, PP_ORDER_SHARE, PP_ORDER_FORMAT,
	PP_ORDER_PROVE, PP_ORDER_RELEASE, PP_ORDER_CHECK, PP_ORDER_PREWRITE, PP_ORDER_SIZES,
	PP_ORDER_WATCH, PP_ORDER_RUN, PP_ORDER_NOISE, PP_ORDER_STOP, PP_ORDER_SCAN, PP_ORDER_MATRIX,
	PP_ORDER_POLICY, PP_ORDER_POLICY_SET, PP_ORDER_POLICY_RESTORE,
	PP_ORDER_POWEROFF, PP_ORDER_REBOOT,
	PP_ORDER_KINDS
};
const char *pp_order_name(enum pp_order_kind kind);
/* True for orders on one drive of the plan. */
bool pp_order_has_index(enum pp_order_kind kind);

/* Only the fields that the table above names for its kind count. */
struct pp_order {
	enum pp_order_kind kind;
	uint32_t index;
	char serial[PP_DRIVE_SERIAL_BYTES];  /* or WWN */
	char other[PP_DRIVE_SERIAL_BYTES];
	struct pp_target_spec spec;
	struct pp_layout layout;
	char file[PP_ORDER_FILE_BYTES];      /* letters, digits, '.', '_', '-'; not first a dot */
	const struct pp_method *method;
	uint32_t pace_per_s;                 /* run: records of each lane, at most; 0: no limit */
	struct pp_run_id run_id;
	bool compressible;
	bool direct;                         /* prewrite with O_DIRECT */
	struct pp_scan_range *ranges;        /* scan: none means everything; ours after parse */
	size_t range_count;
	const struct pp_method *methods[PP_ORDER_METHODS_MAX]; /* matrix: none means all */
	size_t method_count;
	uint32_t seconds_ms;                 /* of each matrix row: 1 ms ... 1 h */
	uint32_t block_bytes;                /* of the matrix; 0: the default */
	uint64_t region_offset;              /* of the matrix on a raw device */
	const struct pp_policy_setting *setting; /* policy-set */
	struct pp_policy_saved saved;        /* policy-restore */
};

/* All defaults: file is PP_ORDER_FILE, spec as pp_target_spec_init, matrix 2 s. */
void pp_order_init(struct pp_order *order, enum pp_order_kind kind);
/* Appends the order's kv to buf. Fails for what parse would refuse. */
int pp_order_put(const struct pp_order *order, struct pp_buf *buf, struct pp_error *err);
/* Reads the kv text of a REQUEST (behind its id). On failure nothing needs release. */
int pp_order_parse(struct pp_order *order, const void *data, size_t bytes, struct pp_error *err);
void pp_order_release(struct pp_order *order);

/* "lane:first-last,lane:first-last"; "" is none. *ranges is malloc'ed, the caller frees it. */
int pp_ranges_parse(const char *text, struct pp_scan_range **ranges, size_t *count,
	struct pp_error *err);
void pp_ranges_put(struct pp_buf *buf, const struct pp_scan_range *ranges, size_t count);

/* The same keys that an order carries, for run.json's maker and the answer of prewrite. */
void pp_layout_put(struct pp_buf *buf, const struct pp_layout *layout);
int pp_layout_get(const struct pp_kv *kv, struct pp_layout *layout, struct pp_error *err);

/* ---- answers: put appends kv to buf (check buf->failed), get reads it ---------------------- */

struct pp_hello {
	uint32_t protocol;
	char version[32], commit[64];
	char name[128];           /* --name, else the host's */
	char boot_id[40];
	uint64_t uptime_ns;       /* CLOCK_BOOTTIME when the HELLO was made */
	uint64_t agent_ns;        /* CLOCK_MONOTONIC at the same time: the clock of beats */
	char kernel[128], os[32], machine[32];
	char sha256[65];          /* of the agent's own binary; "" if it could not be read */
	char allow[2048];         /* its allow list, a line each */
};
void pp_hello_put(struct pp_buf *buf, const struct pp_hello *hello);
int pp_hello_get(const struct pp_kv *kv, struct pp_hello *hello, struct pp_error *err);

/* All of pp_drive_info, and policy by pp_drive_policy; keys have this prefix ("" or "drive_"). */
struct pp_drive_answer {
	struct pp_drive_info info;
	char policy[96];
};
void pp_drive_put(struct pp_buf *buf, const char *prefix, const struct pp_drive_info *info);
int pp_drive_get(const struct pp_kv *kv, const char *prefix, struct pp_drive_answer *drive,
	struct pp_error *err);

/* Blocks of kv in a DATA stream end with an empty line. 1: *kv is the next block, to be released,
 * and *at points behind it; 0: the end; -1: garbage. */
int pp_block_next(const char **at, const char *end, struct pp_kv *kv, struct pp_error *err);

struct pp_share {
	bool shared;
	char why[256];
};
void pp_share_put(struct pp_buf *buf, const struct pp_share *share);
int pp_share_get(const struct pp_kv *kv, struct pp_share *share, struct pp_error *err);

struct pp_formatted {
	enum pp_target_state state;
	char error[512];          /* unless state is OK */
	char fs_uuid[PP_TARGET_UUID_BYTES], fs_type[32];
	int fs_partition;
	uint64_t drive_size_bytes;
};
void pp_formatted_put(struct pp_buf *buf, const struct pp_formatted *formatted);
int pp_formatted_get(const struct pp_kv *kv, struct pp_formatted *formatted, struct pp_error *err);

struct pp_proof {
	enum pp_target_state state;
	char error[512];          /* unless state is OK; the rest counts only if it is */
	struct pp_drive_answer drive;
	enum pp_target_kind kind;
	char path[PP_TARGET_PATH_BYTES];
	uint32_t unit_bytes;
	uint64_t size_bytes;
	char fs_type[32], fs_uuid[PP_TARGET_UUID_BYTES], fs_node[PP_DRIVE_NODE_BYTES];
	int fs_partition;
	char mount_options[1600];
	bool no_barrier;
	char complaints[2048];
	char kernel[128];
};
/* kernel apart, what a proven (or not proven) target says. drive.policy is filled too. */
void pp_proof_of(struct pp_proof *proof, const struct pp_target *target, const struct pp_error *why);
void pp_proof_put(struct pp_buf *buf, const struct pp_proof *proof);
int pp_proof_get(const struct pp_kv *kv, struct pp_proof *proof, struct pp_error *err);

struct pp_checked {
	struct pp_target_check check;
};
void pp_checked_put(struct pp_buf *buf, const struct pp_checked *checked);
int pp_checked_get(const struct pp_kv *kv, struct pp_checked *checked, struct pp_error *err);

struct pp_sizes {
	uint32_t files;
	bool present[PP_LANES_MAX];
	uint64_t bytes[PP_LANES_MAX]; /* of the file; of the device for raw */
};
void pp_sizes_put(struct pp_buf *buf, const struct pp_sizes *sizes);
int pp_sizes_get(const struct pp_kv *kv, struct pp_sizes *sizes, struct pp_error *err);

struct pp_started {
	uint64_t agent_ns;        /* when the lanes had started (watch: when beats carry the disk) */
	char disk[PP_DRIVE_NAME_BYTES]; /* whose counters the beats carry; "" if it has none */
	bool log_watched;         /* false: the kernel log cannot be read here; log_error says why */
	char log_error[256];
};
void pp_started_put(struct pp_buf *buf, const struct pp_started *started);
int pp_started_get(const struct pp_kv *kv, struct pp_started *started, struct pp_error *err);

struct pp_stopped {
	uint64_t issued, acked;   /* records, all lanes */
	bool failed;              /* a call failed or the kernel log told of an I/O error */
	char error[512];          /* of that */
	uint32_t lanes_full, lanes_left_behind;
	int64_t latency_ns_p50, latency_ns_p99, latency_ns_max;
	uint64_t latency_count;
};
void pp_stopped_put(struct pp_buf *buf, const struct pp_stopped *stopped);
int pp_stopped_get(const struct pp_kv *kv, struct pp_stopped *stopped, struct pp_error *err);

struct pp_scanned {
	uint64_t bytes;           /* of the stream: all of it arrived only if this many did */
	bool direct;              /* false: O_DIRECT was not possible, caches were dropped instead */
};
void pp_scanned_put(struct pp_buf *buf, const struct pp_scanned *scanned);
int pp_scanned_get(const struct pp_kv *kv, struct pp_scanned *scanned, struct pp_error *err);

/* The policy as the drive and its system say it is, now. */
enum pp_policy_state {
	PP_POLICY_MADE,        /* done; policy says what it came to */
	PP_POLICY_UNSUPPORTED, /* this drive or system cannot be asked, or set so; nothing was changed */
	PP_POLICY_REFUSED,     /* by the agent: not on its allow list, or a run is on the drive */
	PP_POLICY_FAILED,      /* refused by the drive or the system; policy says what it is now */
};
struct pp_policy_answer {
	enum pp_policy_state state;
	char error[512];          /* unless state is MADE */
	struct pp_policy policy;  /* all unknown where it cannot be read */
	bool has_saved;           /* of order `policy` alone */
	struct pp_policy_saved saved;
};
void pp_policy_answer_put(struct pp_buf *buf, const struct pp_policy_answer *answer);
int pp_policy_answer_get(const struct pp_kv *kv, struct pp_policy_answer *answer,
	struct pp_error *err);

/* ---- notes -------------------------------------------------------------------------------- */

enum pp_note_event {
	PP_NOTE_FAILED, /* M2.3: the run acks no more: a write or sync of ours failed, or the kernel log
	                 * tells of an I/O error of this disk (call is "kernel log", seq 0) */
	PP_NOTE_FULL,   /* append: every lane's file is full; all is acked */
	PP_NOTE_LOG,    /* the kernel log: anything else about this disk; acks go on */
};
struct pp_note {
	enum pp_note_event event;
	uint32_t index, lane;
	uint64_t seq;
	char call[32];
	int64_t os_code;
	char text[512];
};
void pp_note_put(struct pp_buf *buf, const struct pp_note *note);
int pp_note_get(const struct pp_kv *kv, struct pp_note *note, struct pp_error *err);

#endif
