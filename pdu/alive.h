/* SPDX-License-Identifier: MIT
 *
 * Whether the machine on the outlet still lives, asked of the machine itself: the witness that does
 * not go through the power switch. Four answers, because "no answer" is two of them: a closed port that
 * refuses is a machine that runs, and a network that is down says nothing about any machine.
 */
#ifndef PP_PDU_ALIVE_H
#define PP_PDU_ALIVE_H

#include <stdint.h>

#include "src/core/error.h"

enum pp_alive_answer {
	PP_ALIVE_UNKNOWN = 0, /* could not ask: never counts, neither for nor against */
	PP_ALIVE_LIVES,
	PP_ALIVE_REFUSES,     /* something answers, but not as it should */
	PP_ALIVE_SILENT,
};

struct pp_alive;

/* "tcp:HOST:PORT" (a connection is accepted), "ping:HOST", "cmd:PROGRAM WORDS..." (exit 0; no shell,
 * quotes group). NULL on failure. */
struct pp_alive *pp_alive_parse(const char *text, struct pp_error *err);
/* A source of the caller's own; name is copied, arg is the caller's. boot (NULL: nobody can tell) gives
 * the identity of the boot that answered last, which no other boot has; "" if it is not known. */
struct pp_alive *pp_alive_of(const char *name, enum pp_alive_answer (*ask)(void *arg,
	int64_t timeout_ms), const char *(*boot)(void *arg), void *arg, struct pp_error *err);
void pp_alive_free(struct pp_alive *alive);

const char *pp_alive_name(const struct pp_alive *alive); /* as it was written */
const char *pp_alive_host(const struct pp_alive *alive); /* NULL where there is none */
const char *pp_alive_boot(const struct pp_alive *alive); /* as above; "" where nobody can tell */
enum pp_alive_answer pp_alive_ask(struct pp_alive *alive, int64_t timeout_ms);

#endif
