/* SPDX-License-Identifier: MIT
 *
 * The witness: receives what agents say, notes when, writes acks to the ledger and only then echoes
 * them. One thread of its own over epoll(7) serves every connection; the calls here are safe from
 * any other thread.
 *
 * A session is one authenticated connection. Its id is never reused, so events of a machine's life
 * before a cut cannot be taken for those after it. A machine that lost its power leaves its session
 * open and silent; the listener sends no keepalives and never ends a session for being silent. It
 * stays until the controller closes it or a rebooted kernel answers an echo with a reset.
 *
 * Every recv(2) is stamped once with CLOCK_MONOTONIC; all frames that arrived with it share the
 * stamp. Acks of one lane that arrive together become one ledger entry. Order: check, ledger,
 * write(2), echo. If the ledger fails, nothing is echoed and the writers stall within W records.
 *
 * Bounds: before authentication a connection holds less than 2 KiB, 10 s, and is one of at most
 * 12,288; after it, 1 MiB + 64 KiB of unfinished frame, 4 MiB of unsent bytes (an agent that does
 * not read is cut off), and 8 MiB of events the controller has not taken (then the socket is not
 * read until it has).
 */
#ifndef PP_VERIFIER_LISTENER_H
#define PP_VERIFIER_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger.h"
#include "src/core/auth.h"
#include "src/core/buf.h"
#include "src/core/error.h"
#include "src/core/kv.h"

struct pp_listener;

/* Raises the process's soft limit of open files to the hard one (10,000 agents are 10,000 files).
 * address NULL: every interface, IPv6 and IPv4. port 0: any free one. A port in use is said so. */
struct pp_listener *pp_listener_open(const char *address, uint16_t port, const struct pp_key *key,
	struct pp_error *err);
uint16_t pp_listener_port(const struct pp_listener *l);
/* Ends every session (CLOSE LOCAL in bound ledgers) and the thread. Ledgers stay the caller's. No
 * other thread may be inside a call. NULL is fine. */
void pp_listener_close(struct pp_listener *l);

/* ---- events ------------------------------------------------------------------------------ */
enum pp_event_type {
	PP_EVENT_NONE = 0,
	PP_EVENT_CONNECTED, /* authenticated, and its HELLO is here: data is the HELLO's kv */
	PP_EVENT_RESPONSE,  /* id, status, data: kv. Only of pp_listener_request; call keeps its own */
	PP_EVENT_DATA,      /* id, data: bytes */
	PP_EVENT_NOTE,      /* data: kv */
	PP_EVENT_LEDGER,    /* run_index: its ledger failed (full disk?), error says why; run is void */
	PP_EVENT_CLOSED,    /* how, error.text: the reason for a person; error.class EVIDENCE: ack gap */
	PP_EVENT_REFUSED,   /* session 0: somebody was turned away (wrong key, ...), error says who */
};

struct pp_event {
	enum pp_event_type type;
	uint64_t session;
	int64_t t_ns;       /* of the receive, or of what happened */
	uint32_t id;
	uint8_t status;
	uint32_t run_index;
	enum pp_close how;
	struct pp_error error;
	char *data;         /* owned by the event; terminated by a NUL that data_bytes does not count */
	size_t data_bytes;
};
void pp_event_release(struct pp_event *ev);

/* The next event, in the order of arrival. 1: *ev (release it); 0: deadline_ns (CLOCK_MONOTONIC)
 * passed; -1: the listener thread has failed. Lets itself be woken: pp_listener_wake. */
int pp_listener_wait(struct pp_listener *l, int64_t deadline_ns, struct pp_event *ev,
	struct pp_error *err);
/* Makes a wait or call in progress return as if its deadline had come. For signal handlers' ends
 * (not async-signal-safe itself). Until pp_listener_wake_clear every wait and call does so. */
void pp_listener_wake(struct pp_listener *l);
void pp_listener_wake_clear(struct pp_listener *l);

/* ---- talking to an agent ----------------------------------------------------------------- */
/* Queues a frame and returns. Fails for a session that is closed or unknown. */
int pp_listener_send(struct pp_listener *l, uint64_t session, uint16_t type, const void *payload,
	size_t bytes, struct pp_error *err);

/* Sends a REQUEST; *id names its RESPONSE and DATA events. kv as built by pp_kv_add. */
int pp_listener_request(struct pp_listener *l, uint64_t session, const struct pp_buf *kv,
	uint32_t *id, struct pp_error *err);

/* Takes a piece of a streamed answer; -1 with err filled gives the call up. Runs in the caller's
 * thread, without locks held. */
typedef int pp_listener_data_fn(void *context, const void *data, size_t bytes, struct pp_error *err);

/* A REQUEST and its whole answer. Other events keep queueing for pp_listener_wait meanwhile. 0:
 * *response (may be NULL) is to be released. -1: PP_ERR_PEER with the agent's own error=TEXT when it
 * answered "failed"; or the session ended, or timeout_ms passed without a frame of this answer (the
 * timeout restarts with every piece of data). Late answers are dropped. DATA without on_data is
 * dropped. */
int pp_listener_call(struct pp_listener *l, uint64_t session, const struct pp_buf *kv,
	struct pp_kv *response, int timeout_ms, pp_listener_data_fn *on_data, void *context,
	struct pp_error *err);

/* Ends a session; how is REPLACED or LOCAL. Its CLOSED event still comes. Closed twice is fine. */
int pp_listener_end(struct pp_listener *l, uint64_t session, enum pp_close how, struct pp_error *err);

/* ---- acks -------------------------------------------------------------------------------- */
/* From now on acks and beats of (session, run_index) go to this ledger, which must outlive the
 * binding; acks continue behind the highest that it has. Bind before the run is ordered: an ack of
 * a run_index never bound is a protocol error. One ledger may be bound to a later session too (the
 * network broke, the machine did not), after unbind. */
int pp_listener_bind(struct pp_listener *l, uint64_t session, uint32_t run_index,
	struct pp_ledger *ledger, struct pp_error *err);
/* After return nothing touches the ledger. The session's last frame time is noted in it, if it is
 * later than what it has. Acks that still come are dropped without an echo. Fine on a closed
 * session, or twice. */
void pp_listener_unbind(struct pp_listener *l, uint64_t session, uint32_t run_index);

struct pp_session_state {
	int64_t t_connected_ns, t_last_frame_ns; /* last: of any whole, authenticated frame */
	enum pp_close how;                       /* NOT while open */
	int64_t t_closed_ns;                     /* PP_LEDGER_NEVER while open */
	char peer[64];                           /* "192.168.1.20:40312" */
	/* of the run_index asked for; zeros and NEVER when it was never bound */
	bool bound, ledger_failed;
	uint64_t acks;                           /* records acked through this session */
	int64_t t_last_ack_ns;
	int64_t t_last_beat_ns;                  /* last beat that named this run */
	uint64_t writes, sectors_written, flushes; /* its counters */
	uint64_t acks_dropped;                   /* came after unbind or after the ledger failed */
};

/* lanes (may be NULL) gets the highest ack of up to lane_count lanes. A closed session can be asked
 * until 1,024 others have closed after it; -1 for one that is unknown. */
int pp_listener_snapshot(struct pp_listener *l, uint64_t session, uint32_t run_index,
	struct pp_session_state *out, uint64_t *lanes, size_t lane_count, struct pp_error *err);

/* Sessions that are open now. */
size_t pp_listener_sessions(struct pp_listener *l);

/* CPU time of the listener's thread (for the benchmark). */
int64_t pp_listener_cpu_ns(struct pp_listener *l);

#endif
