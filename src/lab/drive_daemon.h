/* SPDX-License-Identifier: MIT
 *
 * A simulated drive as a process, whatever its front end (nbdkit_plugin.c, fuse_drive.c). One
 * process is one drive: starting it is power-on, `cut` or `orderly` on the control socket is power
 * loss, SIGKILL is a cut at which nothing survives. All requests share the one cache of the one
 * drive, so a flush on any way in covers all of them.
 *
 * Control: a unix stream socket, one command a line, one line of JSON back:
 *   stat                  state and counters (ground truth for tests)
 *   cut PCT SEED          power loss, see pp_sim_drive_cut(); all later I/O fails
 *   orderly               the cache reaches the image; all later I/O fails
 *   behaviour NAME        begins to lie, or stops
 *   cache on|off          its write cache, until the next power-on (pp_sim_drive_set_cache)
 *
 * Requests may come from any thread.
 */
#ifndef PP_LAB_DRIVE_DAEMON_H
#define PP_LAB_DRIVE_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/* One setting, before power-on: image, control (paths), size, cache, destage (bytes, K M G),
 * behaviour, order (oldest, random), seed, latency_us. */
int pp_drive_daemon_set(const char *key, const char *value, struct pp_error *err);

/* Opens the image, begins a power cycle. */
int pp_drive_daemon_power_on(struct pp_error *err);
/* The threads for destaging and control; complain (any thread) gets what goes wrong later. */
int pp_drive_daemon_start(void (*complain)(const char *text), struct pp_error *err);

uint64_t pp_drive_daemon_size_bytes(void);
/* What the drive says of itself: false is write-through. */
bool pp_drive_daemon_has_cache(void);
/* The same, unless the host has switched it off. */
bool pp_drive_daemon_cache_is_on(void);
/* 0, or -1 with errno. */
int pp_drive_daemon_set_cache(bool on);

/* 0, or -1 with errno. */
int pp_drive_daemon_read(void *data, size_t bytes, uint64_t offset);
int pp_drive_daemon_write(const void *data, size_t bytes, uint64_t offset, bool fua);
int pp_drive_daemon_flush(void);

#endif
