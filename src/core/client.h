/* SPDX-License-Identifier: MIT
 *
 * The agent's end of the connection to control: one TCP connection, blocking, authenticated.
 * Numeric addresses only (no resolver: plugpull-dut is linked statically).
 *
 * Sending is safe from any number of threads; a frame goes out whole, in order, before the call
 * returns to the kernel's socket buffer. Receiving is for one thread. TCP_NODELAY is on; the
 * kernel gives the connection up when control has not answered for 10 s (TCP_USER_TIMEOUT,
 * keepalive: tcp(7)). After any failure every later call fails too, with the first reason.
 */
#ifndef PP_CORE_CLIENT_H
#define PP_CORE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "auth.h"
#include "buf.h"
#include "error.h"
#include "wire.h"

struct pp_client;

/* An IPv4 or IPv6 address in digits. */
bool pp_address_numeric(const char *address);

/* Connects and greets within timeout_ms. PP_ERR_PEER: it said that it will not have us (wrong key,
 * version, no plugpull); PP_ERR_SYSTEM: not reached, or reached and then silent or gone, as a busy
 * host or a cut network is: another try may well succeed. Send the HELLO next. */
struct pp_client *pp_client_connect(const char *address, uint16_t port, const struct pp_key *key,
	int timeout_ms, struct pp_error *err);

/* Fails when the frame has not gone to the kernel within 10 s. */
int pp_client_send(struct pp_client *c, uint16_t type, const void *payload, size_t bytes,
	struct pp_error *err);
int pp_client_send_ack(struct pp_client *c, uint32_t run_index, uint32_t lane, uint64_t first,
	uint64_t last, struct pp_error *err);
int pp_client_send_beat(struct pp_client *c, uint64_t agent_ns, const struct pp_beat_disk *disks,
	uint32_t count, struct pp_error *err);
int pp_client_respond(struct pp_client *c, uint32_t id, uint8_t status, const struct pp_buf *kv,
	struct pp_error *err);
/* At most PP_WIRE_PAYLOAD_MAX - 4 bytes a call. */
int pp_client_send_data(struct pp_client *c, uint32_t id, const void *data, size_t bytes,
	struct pp_error *err);

/* 1: *frame is valid until the next receive; 0: timeout_ms (-1: for ever) passed; -1: the
 * connection is over (control closed it, or broke the protocol). */
int pp_client_recv(struct pp_client *c, struct pp_frame *frame, int timeout_ms,
	struct pp_error *err);

/* Ends the connection so that a blocked receive or send of another thread returns. Safe from any
 * thread; the memory stays until close. */
void pp_client_shutdown(struct pp_client *c);

/* Closes (a FIN) and frees; NULL is fine. No other thread may be inside a call. */
void pp_client_close(struct pp_client *c);

#endif
