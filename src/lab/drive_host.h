/* SPDX-License-Identifier: MIT
 *
 * A drive of the lab as a process in the lab's namespace: nbdkit with the drive plugin, or the FUSE
 * daemon. Starting it is power-on; it is killed only after it was told how its power went.
 */
#ifndef PP_LAB_DRIVE_HOST_H
#define PP_LAB_DRIVE_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/buf.h"
#include "core/error.h"

#define PP_LAB_SERIAL_BYTES 64

/* What the lab's user says about a drive. */
struct pp_lab_drive {
	char serial[PP_LAB_SERIAL_BYTES];
	char behaviour[32];
	uint64_t size_bytes, cache_bytes, destage_bytes_per_s;
	unsigned survive_pct;   /* of the sectors in the cache at a cut */
	unsigned latency_us;    /* of a write; widens the window in which a cut can tear one */
	int block_bytes;        /* logical block that the guest sees: 512 or 4096 */
	bool random_order;      /* destages in random order instead of the oldest first */
};

struct pp_drive_host {
	pid_t pid;              /* 0: without power */
	char control[108];
	char image[4096];
	struct pp_lab_drive drive;
};

/* Serials become file names: letters, digits, '-', '_', '.', no dot first. */
int pp_lab_drive_check(const struct pp_lab_drive *drive, struct pp_error *err);

/* Starts it; front is its command line up to the settings (drive_daemon.h), which follow. */
int pp_drive_host_start(struct pp_drive_host *host, const char *const front[], uint64_t seed,
	const char *log_path, struct pp_error *err);
/* Waits until it answers. */
int pp_drive_host_await(struct pp_drive_host *host, const char *log_path, struct pp_error *err);
/* One command (drive_daemon.h), its line of JSON appended to out. An answer that is not ok is an
 * error. */
int pp_drive_host_command(const struct pp_drive_host *host, const char *command,
	struct pp_buf *out, struct pp_error *err);
/* What smartctl 7 prints of an NVMe drive, as far as anybody reads it, appended to json. */
int pp_drive_host_smart(const struct pp_drive_host *host, struct pp_buf *json,
	struct pp_error *err);
/* Kills the process and waits for its end. */
void pp_drive_host_kill(struct pp_drive_host *host);

/* Connects to a unix socket, trying for as long as timeout_ms while nobody listens yet. */
int pp_lab_connect(const char *path, int64_t timeout_ms, struct pp_error *err);

#endif
