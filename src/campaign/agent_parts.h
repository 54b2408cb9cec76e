/* SPDX-License-Identifier: MIT
 *
 * What the agent's files share. A session is one connection; it is shared by its threads and freed
 * by the last that lets go of it. A slot is one drive of the plan in one session.
 *
 * Locks: slot.lock guards the slot's queue, writer pointer, watch and flags, and is never held in a
 * call that a drive or the network could hold up. session.disks_lock guards the counters that the
 * heartbeats read. Order: slot.lock or disks_lock, never both, before session.lock.
 */
#ifndef PP_CAMPAIGN_AGENT_PARTS_H
#define PP_CAMPAIGN_AGENT_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent.h"
#include "orders.h"
#include "src/core/client.h"
#include "src/core/disk_counters.h"
#include "src/core/kmsg.h"
#include "src/core/os.h"
#include "src/core/target.h"
#include "writer/writer.h"

/* One a drive; one a drive's noise, which takes no orders; the last does orders of no drive. */
#define AGENT_SLOTS    (PP_RUN_INDEX_MAX + 2)
#define AGENT_GENERAL  (AGENT_SLOTS - 1)
#define AGENT_QUEUE    64                       /* orders that may wait in a slot */
#define AGENT_BEAT_MS  10                       /* M5 */
#define AGENT_STOP_MS  20000                    /* for a lane in a write or sync */
#define AGENT_LOG_NOTES_MAX 200                 /* of a run: a log can be endless */

struct agent_request {
	struct agent_request *next;
	uint32_t id;
	struct pp_order order;
};

struct agent_session;

struct agent_slot {
	struct agent_session *session;
	uint32_t index;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct agent_request *head;
	unsigned queued;
	bool has_worker;

	/* the worker's own */
	struct pp_target target;
	bool proven;

	/* under lock */
	struct pp_writer *writer;
	bool starting;                    /* echoes are kept until there is a writer */
	uint64_t early_echo[PP_LANES_MAX];
	bool borrowed;                    /* the minder is inside the writer, without the lock */
	bool stopping;                    /* the worker is */
	bool noted;                       /* the end of this run has been told */
	unsigned failed_ticks;
	bool io_error;                    /* the kernel log tells of one in this run */
	char io_error_text[480];
	struct pp_kmsg log;
	bool log_open;
	unsigned log_notes;
	char guarded[PP_DRIVE_NAME_BYTES]; /* the disk whose policy is not to be asked for in this run */
};

struct agent_session {
	const struct pp_agent_config *config;
	struct pp_client *client;
	atomic_bool ending;
	volatile sig_atomic_t ending_signal; /* the same, as the matrix wants it */
	pthread_mutex_t lock;
	pthread_cond_t let_go;
	unsigned references;
	bool minded;                      /* the beat and minder threads have been started */
	pthread_mutex_t disks_lock;
	struct pp_disk_source disks[AGENT_SLOTS]; /* fd -1: not in the beats */
	struct agent_slot slots[AGENT_SLOTS];
};

/* agent.c */
void agent_say(const struct pp_agent_config *config, const char *fmt, ...)
	__attribute__((format(PP_FORMAT, 2, 3)));
/* Ends the connection: the reader wakes and ends the session. Any thread. */
void agent_session_break(struct agent_session *s);
void agent_session_let_go(struct agent_session *s);
/* Starts a detached thread that holds a reference, all signals blocked. */
int agent_thread(struct agent_session *s, void *(*main)(void *), void *arg, struct pp_error *err);

/* agent_answer.c: RESPONSE frames. A connection that is gone is not the order's business. */
void agent_answer(struct agent_session *s, uint32_t id, const struct pp_buf *kv);
void agent_answer_error(struct agent_session *s, uint32_t id, const struct pp_error *why);
/* DATA frames of at most PP_ORDER_DATA_BYTES. */
int agent_data(struct agent_session *s, uint32_t id, const void *data, size_t bytes,
	struct pp_error *err);

/* agent_slot.c */
int agent_slot_queue(struct agent_slot *slot, struct agent_request *request, struct pp_error *err);
/* Waits until nobody else is inside the slot's writer; with the lock held. */
void agent_slot_own_writer(struct agent_slot *slot);

/* agent_target.c, agent_run.c, agent_general.c, agent_policy.c: one function
 * an order. 0 with *kv filled, or -1. */
typedef int agent_order_fn(struct agent_slot *slot, const struct agent_request *r,
	struct pp_buf *kv, struct pp_error *err);
agent_order_fn agent_identify, agent_smart, agent_share;
agent_order_fn agent_format, agent_prove, agent_release, agent_check, agent_prewrite, agent_sizes;
agent_order_fn agent_scan, agent_matrix;
agent_order_fn agent_policy, agent_policy_set, agent_policy_restore;
agent_order_fn agent_watch, agent_run, agent_noise, agent_stop;

/* agent_target.c: M2.5, M2.7: the layout suits the proven target, whose files, as far as they are
 * there, are plain files on it; missing ones are fine if may_miss. */
int agent_layout_check(const struct agent_slot *slot, const struct pp_order *order, bool may_miss,
	struct pp_error *err);
/* PATH/FILE, or the device: what the writer takes. */
void agent_base_path(const struct agent_slot *slot, const char *file, char *out, size_t bytes);
/* The target is proven, and no lanes run on it. */
int agent_need_idle(struct agent_slot *slot, struct pp_error *err);
/* Stops what runs, stops watching, unmounts; for every way out. */
void agent_slot_release(struct agent_slot *slot, bool *lazy);

/* agent_run.c */
/* Frees the slot's writer, if any; false if a lane of it hangs and was left behind. */
bool agent_writer_end(struct agent_slot *slot, struct pp_stopped *stopped);
/* The same for the noise beside the slot's run; a slot without is fine. */
bool agent_noise_end(struct agent_slot *slot);
/* Where that writer is: its thread is the drive's, only the writer, echoes and flags are its own. */
struct agent_slot *agent_noise_slot(struct agent_slot *slot);
void agent_unwatch(struct agent_slot *slot);
void agent_echo(struct agent_slot *slot, uint32_t lane, uint64_t last);

/* agent_mind.c */
int agent_mind_start(struct agent_session *s, struct pp_error *err);

/* agent_host_*.c: what HELLO says of this machine; the name comes from the configuration. */
int agent_host_hello(struct pp_hello *hello, struct pp_error *err);
/* Its kernel's version, as uname(2) has it; "" if it cannot be had. */
void agent_host_kernel(char *out, size_t bytes);

#endif
