/* SPDX-License-Identifier: MIT
 *
 * A TCP connection as client.c needs it: each call waits, up to a deadline on pp_clock_mono_ns (-1:
 * none). Sending and receiving may go on in two threads at once.
 */
#ifndef PP_CORE_SOCKET_H
#define PP_CORE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

typedef intptr_t pp_socket; /* -1: none */

struct pp_part {
	const void *data;
	size_t bytes;
};
#define PP_PARTS_MAX 4

bool pp_address_numeric(const char *address); /* as in client.h */

/* TCP_NODELAY is on, and a control that is dead for 10 s is noticed. */
int pp_socket_connect(const char *address, uint16_t port, int64_t deadline_ns, pp_socket *out,
	struct pp_error *err);
/* All of it, or a failure. */
int pp_socket_send(pp_socket s, const struct pp_part *parts, int count, int64_t deadline_ns,
	struct pp_error *err);

enum pp_received { PP_RECEIVED_FAILED = -1, PP_RECEIVED_LATE, PP_RECEIVED_SOME, PP_RECEIVED_END };
/* At least one byte, at most `bytes`. END: the other end closed the connection. */
enum pp_received pp_socket_receive(pp_socket s, void *buf, size_t bytes, size_t *got,
	int64_t deadline_ns, struct pp_error *err);

void pp_socket_shutdown(pp_socket s); /* wakes who waits in another thread */
void pp_socket_close(pp_socket s);

#endif
