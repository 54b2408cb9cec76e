/* SPDX-License-Identifier: MIT
 *
 * What agent and control say to each other, byte by byte (all integers little-endian). No sockets
 * here: the same code serves the listener, the agent, the tests and the fuzzer.
 *
 * Greeting. Both hold the same 32-byte key K. One message each way, twice:
 *   1. agent:   "plugpull" u32 version, u32 0, nonce[32]                                  48 bytes
 *   2. control: "plugpull" u32 version, u32 status, nonce[32], proof[32]                  80 bytes
 *   3. agent:   u32 status, u32 0, proof[32]                                              40 bytes
 *   4. control: u32 status, u32 0                                                          8 bytes
 * A proof is HMAC(K, label || message 1 || first 48 bytes of message 2), the label being 16 bytes
 * and another for each side, so that neither can be answered with its own words. Control proves
 * first; an agent that sees a wrong proof says so in message 3 (status wrong key, proof zeros) and
 * leaves. Both nonces are fresh, so an old greeting cannot be replayed. Statuses that are not
 * PP_GREET_OK are unauthenticated: they are for a person to read, and only ever end a connection.
 *
 * Frames. After the greeting each direction has a key of its own, HMAC(K, label || the same 96
 * bytes), and a counter that starts at 0:
 *   u32 payload bytes, u16 type, u16 0, payload, mac[16]
 *   mac = first 16 bytes of HMAC(direction's key, u64 counter || header || payload)
 * so a frame that is replayed, reordered, dropped, altered or spliced in from another connection
 * fails its MAC; the connection ends there. A partial frame at the end is dropped, never guessed.
 *
 * Payloads by type:
 *   HELLO    kv, agent's first frame, once
 *   REQUEST  u32 id, kv              control -> agent
 *   RESPONSE u32 id, u8 status, kv   status 0: done; 1: failed, with error=TEXT; other: refused
 *   DATA     u32 id, bytes           streams to the request's asker, before its RESPONSE
 *   NOTE     kv                      something happened in a run: agent -> control
 *   ACK      u32 run_index, u32 lane, u64 first, u64 last: the syncs of these records returned
 *   ECHO     u32 run_index, u32 lane, u64 last: the ledger has every ack up to here
 *   BEAT     u64 agent's monotonic ns, u32 n, n x { u32 run_index, u64 writes,
 *            u64 sectors written, u64 flushes }: the disk's own counters, every 10 ms
 *   BYE      empty; this side is about to close in good order
 */
#ifndef PP_CORE_WIRE_H
#define PP_CORE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "auth.h"
#include "error.h"

#define PP_WIRE_PORT          7333
#define PP_WIRE_VERSION       1
#define PP_WIRE_HEADER_BYTES  8
#define PP_WIRE_MAC_BYTES     16
#define PP_WIRE_OVERHEAD_BYTES (PP_WIRE_HEADER_BYTES + PP_WIRE_MAC_BYTES)
#define PP_WIRE_PAYLOAD_MAX   (1u << 20)

#define PP_ACK_BYTES          24
#define PP_ECHO_BYTES         16
#define PP_BEAT_HEAD_BYTES    12
#define PP_BEAT_DISK_BYTES    28
#define PP_BEAT_DISKS_MAX     256

enum pp_frame_type {
	PP_FRAME_HELLO = 1, PP_FRAME_REQUEST, PP_FRAME_RESPONSE, PP_FRAME_DATA, PP_FRAME_NOTE,
	PP_FRAME_ACK, PP_FRAME_ECHO, PP_FRAME_BEAT, PP_FRAME_BYE,
	PP_FRAME_TYPES
};
const char *pp_frame_type_name(unsigned type); /* "hello", ...; "unknown" */

/* One received frame; payload points into the receive buffer. */
struct pp_frame {
	uint16_t type;
	uint32_t bytes; /* of the payload */
	const uint8_t *payload;
};

/* ---- one direction of a connection ------------------------------------------------------- */
struct pp_wire {
	struct pp_mac mac;
	uint64_t counter;
};
void pp_wire_release(struct pp_wire *wire);

/* Writes the header and the MAC of a frame whose payload is in up to two parts (b may be NULL),
 * and counts it: frames must be sent whole and in the order of the calls. */
void pp_wire_seal(struct pp_wire *wire, uint16_t type, const void *a, size_t a_bytes, const void *b,
	size_t b_bytes, uint8_t header[PP_WIRE_HEADER_BYTES], uint8_t mac[PP_WIRE_MAC_BYTES]);

/* The same into one piece of memory of PP_WIRE_OVERHEAD_BYTES + bytes; returns that size. */
size_t pp_wire_pack(struct pp_wire *wire, uint16_t type, const void *payload, size_t bytes,
	uint8_t *out);

/* Takes one frame off the front of received bytes. 1: *frame is it, *used bytes are done with;
 * 0: incomplete, *used is 0 (and *need, unless NULL, how many bytes it takes as far as known);
 * -1: forged, damaged or absurd (PP_ERR_PEER): the connection must end. A length over the maximum
 * or a reserved field that is not 0 is refused as soon as the header is there. */
int pp_wire_open(struct pp_wire *wire, const uint8_t *data, size_t bytes, struct pp_frame *frame,
	size_t *used, size_t *need, struct pp_error *err);

/* ---- greeting ---------------------------------------------------------------------------- */
#define PP_GREET1_BYTES 48
#define PP_GREET2_BYTES 80
#define PP_GREET3_BYTES 40
#define PP_GREET4_BYTES 8

enum pp_greet_status { PP_GREET_OK = 0, PP_GREET_WRONG_KEY = 1, PP_GREET_WRONG_VERSION = 2,
	PP_GREET_BUSY = 3 };

/* Both sides' state of a greeting; keep until the two pp_wire are derived. */
struct pp_greeting {
	uint8_t transcript[PP_GREET1_BYTES + 48];
};

/* Agent. first: makes message 1. second: checks message 2 and makes message 3, which is to be sent
 * also when this fails (unless *send_bytes is 0); the error says in plain words what is wrong.
 * fourth: checks message 4 and derives both directions. */
int pp_greet_agent_first(struct pp_greeting *g, uint8_t out[PP_GREET1_BYTES], struct pp_error *err);
int pp_greet_agent_second(struct pp_greeting *g, const struct pp_key *key,
	const uint8_t in[PP_GREET2_BYTES], uint8_t out[PP_GREET3_BYTES], size_t *send_bytes,
	struct pp_error *err);
int pp_greet_agent_fourth(const struct pp_greeting *g, const struct pp_key *key,
	const uint8_t in[PP_GREET4_BYTES], struct pp_wire *send, struct pp_wire *receive,
	struct pp_error *err);

/* Control. first: reads message 1, makes message 2 (also on failure, to be sent, unless
 * *send_bytes is 0: not our protocol at all). third: reads message 3, makes message 4 (to be sent
 * also on failure) and derives both directions. busy: the message 2 of a control that has no room. */
void pp_greet_control_busy(uint8_t out[PP_GREET2_BYTES]);
int pp_greet_control_first(struct pp_greeting *g, const struct pp_key *key,
	const uint8_t in[PP_GREET1_BYTES], uint8_t out[PP_GREET2_BYTES], size_t *send_bytes,
	struct pp_error *err);
int pp_greet_control_third(const struct pp_greeting *g, const struct pp_key *key,
	const uint8_t in[PP_GREET3_BYTES], uint8_t out[PP_GREET4_BYTES], struct pp_wire *send,
	struct pp_wire *receive, struct pp_error *err);

/* ---- payloads of fixed form: parse gives -1 (PP_ERR_PEER) on a wrong size ----------------- */
struct pp_ack { uint32_t run_index, lane; uint64_t first, last; };
void pp_ack_put(const struct pp_ack *ack, uint8_t out[PP_ACK_BYTES]);
int pp_ack_parse(const struct pp_frame *frame, struct pp_ack *ack, struct pp_error *err);

struct pp_echo { uint32_t run_index, lane; uint64_t last; };
void pp_echo_put(const struct pp_echo *echo, uint8_t out[PP_ECHO_BYTES]);
int pp_echo_parse(const struct pp_frame *frame, struct pp_echo *echo, struct pp_error *err);

struct pp_beat_disk { uint32_t run_index; uint64_t writes, sectors_written, flushes; };
struct pp_beat { uint64_t agent_ns; uint32_t disks; const uint8_t *at; /* of the first disk */ };
/* out holds PP_BEAT_HEAD_BYTES + disks * PP_BEAT_DISK_BYTES; returns that. */
size_t pp_beat_put(uint64_t agent_ns, const struct pp_beat_disk *disks, uint32_t count, uint8_t *out);
int pp_beat_parse(const struct pp_frame *frame, struct pp_beat *beat, struct pp_error *err);
void pp_beat_disk(const struct pp_beat *beat, uint32_t index, struct pp_beat_disk *out);

/* REQUEST, RESPONSE and DATA: the id (and status) off the front; *rest points behind them. */
struct pp_reply { uint32_t id; uint8_t status; const uint8_t *rest; uint32_t rest_bytes; };
int pp_reply_parse(const struct pp_frame *frame, struct pp_reply *reply, struct pp_error *err);

#endif
