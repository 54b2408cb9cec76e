/* SPDX-License-Identifier: MIT
 *
 * What is shared between processes that use one power switch, as files in the state directory:
 * locks (one request in flight a device), the history of an outlet (rate limits), and who is who
 * (boot id, process start time), so that a process id that was used again is not mistaken.
 */
#ifndef PP_PDU_STATE_H
#define PP_PDU_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/core/error.h"

/* given, or $XDG_STATE_HOME/plugpull, or ~/.local/state/plugpull. Made with its parents (0700 for
 * the last part). */
int pp_state_dir(const char *given, char *out, size_t bytes, struct pp_error *err);

/* DIR/FOLDER/KEY.SUFFIX with every odd byte of key as %XX; makes the folder. */
int pp_state_path(const char *dir, const char *folder, const char *key, const char *suffix,
	char *out, size_t bytes, struct pp_error *err);

/* Opens (and makes) the lock file of key. The descriptor, or -1. */
int pp_state_lock_open(const char *dir, const char *key, struct pp_error *err);
/* Waits at most wait_ms for an exclusive flock(2). */
int pp_state_lock(int fd, int64_t wait_ms, struct pp_error *err);
void pp_state_unlock(int fd);

#define PP_BOOT_ID_BYTES 40
void pp_state_boot_id(char out[PP_BOOT_ID_BYTES]);
/* Start time of a process in clock ticks since boot (proc(5), stat field 22); 0: no such process. */
unsigned long long pp_state_process_start(pid_t pid);
/* Whether the process that was pid with this start time in this boot still runs. */
bool pp_state_alive(pid_t pid, unsigned long long start, const char *boot_id);

/* History: when an outlet was switched, CLOCK_BOOTTIME of this boot. Other boots are forgotten. */
struct pp_history {
	int offs_last_hour;
	int64_t oldest_off_ns; /* of those; 0: none */
	int64_t last_on_ns;    /* 0: unknown */
	long long offs_total;  /* ever, in all boots */
};
int pp_history_read(const char *dir, const char *key, struct pp_history *history,
	struct pp_error *err);
int pp_history_add(const char *dir, const char *key, const char *what, struct pp_error *err);

#endif
