/* SPDX-License-Identifier: MIT
 *
 * The guard: a process of its own that turns the power on again when the controller cannot.
 *
 * pp_guard_start() spawns this very program as `pdu guard --fd N` (posix_spawn(3), own session, so
 * that neither Ctrl-C nor a closed terminal reaches it; safe from a threaded program). They talk
 * over a socketpair; the guard also holds a pidfd of the controller. While armed, any of these makes
 * it turn the outlets on: end of file, death of the controller, a deadline that passed. It then
 * tries for ever with back-off, says so on stderr and in STATE_DIR/guard.log, keeps watching for
 * a while (an off request may still have been on its way), and writes into the journal when the
 * outlets were read back on. SIGINT, SIGTERM and SIGHUP are ignored: its life ends with its duty.
 *
 * Secrets go by the credentials file's name or the inherited environment, never by argv.
 *
 *   guard = pp_guard_start(&pdu_config, NULL, err)   once; fails if the switch cannot be read
 *   pp_guard_arm(guard, deadline_ns, err)            before each pp_pdu_off(); -1: do not cut
 *   pp_guard_extend(guard, deadline_ns, err)         as long as all goes well
 *   pp_guard_disarm(guard, &restored, err)           after pp_pdu_on() was verified
 *   pp_guard_stop(guard, err)                        tells it to leave, waits for it, frees
 */
#ifndef PP_PDU_GUARD_H
#define PP_PDU_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "pdu.h"

struct pp_guard;

/* What the guard did while the controller lived but missed its deadline. */
struct pp_guard_restored {
	bool fired;
	int64_t t_on_ns; /* CLOCK_MONOTONIC, read back on; 0: not yet */
};

/* exe: the program to run [NULL: /proc/self/exe]; it must call pp_guard_main() for `pdu guard`. */
struct pp_guard *pp_guard_start(const struct pp_pdu_config *config, const char *exe,
	struct pp_error *err);

/* deadline_ns: CLOCK_MONOTONIC. 0 once the guard itself has confirmed. */
int pp_guard_arm(struct pp_guard *guard, int64_t deadline_ns, struct pp_error *err);
/* -1 (PP_ERR_REFUSED) too when the guard has fired meanwhile. */
int pp_guard_extend(struct pp_guard *guard, int64_t deadline_ns, struct pp_error *err);
int pp_guard_disarm(struct pp_guard *guard, struct pp_guard_restored *restored,
	struct pp_error *err);
/* Ends the guard and frees it. An armed guard restores the power first: may take its time. */
int pp_guard_stop(struct pp_guard *guard, struct pp_error *err);
pid_t pp_guard_pid(const struct pp_guard *guard);

/* The guard's own life, on the descriptor it was given. Returns an exit status. */
int pp_guard_main(int fd);

#endif
