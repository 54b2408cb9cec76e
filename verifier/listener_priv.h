/* SPDX-License-Identifier: MIT
 *
 * What the three files of the listener share: listener.c (the controller's calls), listener_loop.c
 * (the thread: sockets, greeting, closing) and listener_frames.c (the hot path: frames, acks).
 *
 * One lock guards everything here except what is marked "thread": that belongs to the listener's
 * thread alone. Only that thread frees sessions, so it may use one without the lock.
 */
#ifndef PP_VERIFIER_LISTENER_PRIV_H
#define PP_VERIFIER_LISTENER_PRIV_H

#include <pthread.h>

#include "listener.h"
#include "src/core/wire.h"

#define SCRATCH_BYTES       (256 * 1024)
#define SMALL_REST_BYTES    4096
#define OUT_BYTES_MAX       (4u << 20)
#define QUEUED_BYTES_MAX    (8u << 20)
#define EVENT_COST_BYTES    256
#define PENDING_MAX         12288
#define REFUSED_QUEUED_MAX  64
#define CLOSED_KEPT_MAX     1024
#define GREETING_NS         (10 * 1000000000LL)
#define CALL_BIT            0x80000000u /* ids of pp_listener_call have it */
#define SLOT_BITS           20
#define ID_LISTEN           0 /* epoll's data; sessions begin at 1 << SLOT_BITS */
#define ID_WAKE             1

enum stage { STAGE_GREET1, STAGE_GREET3, STAGE_HELLO, STAGE_OPEN, STAGE_CLOSED };

/* A run of a session. The ledger is NULL after unbind or close. */
struct binding {
	uint32_t run_index, lanes;
	struct pp_ledger *ledger;
	bool ledger_failed, beaten; /* beaten: the beat being read names this run */
	uint64_t *acked;            /* by lane: highest received */
	uint64_t *pending_first;    /* by lane: first one not yet in the ledger, 0 if none */
	uint32_t *dirty, dirty_count; /* lanes with something pending */
	uint64_t acks, acks_dropped;
	int64_t t_last_ack_ns, t_last_beat_ns;
	uint64_t writes, sectors_written, flushes;
};

struct session {
	uint64_t id;
	int fd;
	enum stage stage;
	char peer[64];
	int64_t t_accepted_ns, t_connected_ns, t_last_ns, t_closed_ns;
	enum pp_close how;
	struct pp_error why;
	struct pp_greeting greeting;
	uint8_t greet_in[PP_GREET1_BYTES]; /* thread */
	size_t greet_bytes;                /* thread */
	struct pp_wire send, receive;      /* receive: thread */
	uint8_t *in;                       /* thread: the beginning of an unfinished frame */
	size_t in_bytes, in_capacity;      /* thread */
	struct pp_buf out;
	size_t out_sent;
	int send_errno;                    /* a send took the socket's error; see closed_how */
	uint32_t interest;                 /* epoll events asked for */
	bool paused;
	size_t queued_bytes;
	struct binding **bindings;
	size_t binding_count;
	/* wishes of other threads, for the listener's thread to do */
	bool attention, resume, end;
	enum pp_close end_how;
	struct pp_error end_why;
	struct session *next_attention;
	struct session *pending_before, *pending_after;
};

struct event_node {
	struct pp_event ev;
	struct event_node *next;
};

struct event_queue {
	struct event_node *first, **end;
};

struct call {
	uint64_t session;
	uint32_t id;
	struct event_queue queue;
	struct call *next;
};

struct pp_listener {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t news;
	struct pp_key key;
	int listen_fd, epoll_fd, wake_fd, spare_fd;
	uint16_t port;
	bool stop, woken, failed;
	struct pp_error why;
	struct session **slots;
	size_t slot_count, slot_hint;
	uint64_t serial;
	size_t open_count, pending_count, refused_queued;
	struct session *pending_first, *pending_last, *attention;
	uint64_t closed_ids[CLOSED_KEPT_MAX];
	size_t closed_next;
	struct event_queue queue;
	struct call *calls;
	uint32_t next_id;
	uint8_t scratch[SCRATCH_BYTES]; /* thread */
};

/* ---- listener.c: all with the lock held ---------------------------------------------------- */
struct session *listener_find(struct pp_listener *l, uint64_t id);
/* Queues an event of a session, with a copy of data. Out of memory ends the session. */
struct pp_event *listener_push(struct pp_listener *l, struct session *s, enum pp_event_type type,
	int64_t t_ns, const void *data, size_t bytes);
struct pp_event *listener_push_reply(struct pp_listener *l, struct session *s,
	enum pp_event_type type, int64_t t_ns, const struct pp_reply *reply);
void listener_refused(struct pp_listener *l, const struct session *s, const struct pp_error *why);
void listener_queue_release(struct event_queue *q);

/* ---- listener_loop.c ----------------------------------------------------------------------- */
void *listener_main(void *listener);
/* With the lock held. Asks the thread to end a session. */
void listener_want_end(struct pp_listener *l, struct session *s, enum pp_close how,
	const struct pp_error *why);
void listener_want_resume(struct pp_listener *l, struct session *s);
void listener_poke(struct pp_listener *l);
/* With the lock held: seals into the session's buffer; flush sends what the socket takes. */
void session_queue(struct pp_listener *l, struct session *s, uint16_t type, const void *a,
	size_t a_bytes, const void *b, size_t b_bytes);
void session_flush(struct pp_listener *l, struct session *s);
/* After the thread has ended. */
void listener_free_sessions(struct pp_listener *l);

/* ---- listener_frames.c: with the lock held -------------------------------------------------- */
/* Takes whole frames off the front of data, settles their acks; *used bytes are done with. -1: the
 * session must end for *err; what came before the bad frame has been settled. */
int session_frames(struct pp_listener *l, struct session *s, const uint8_t *data, size_t bytes,
	int64_t t_ns, size_t *used, size_t *need, struct pp_error *err);
/* Notes the session's last frame (and its end, unless NOT) in the ledger and lets go of it. */
void binding_let_go(struct session *s, struct binding *b, enum pp_close how, int64_t t_ns);
void binding_free(struct binding *b);
struct binding *session_binding(struct session *s, uint32_t run_index);

#endif
