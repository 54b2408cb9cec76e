/* SPDX-License-Identifier: MIT
 *
 * The agent: control's hands on the machine under test. It connects out, says who it is, and does
 * what it is ordered (orders.h), as far as its allow list goes. It keeps nothing on disk.
 *
 * Threads: the caller's (connection, echoes, ping), one for the orders of each drive, one for the
 * heartbeats (every 10 ms from the first `run` or `watch` on), one that minds the runs (failed calls,
 * the kernel log), and the lanes. So a drive that hangs holds up nothing but its own orders. When the
 * connection breaks, lanes end at once (no ack can be heard), targets are released, and the agent
 * connects again; what hangs is left behind and cleans up after itself if it ever returns.
 */
#ifndef PP_CAMPAIGN_AGENT_H
#define PP_CAMPAIGN_AGENT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/auth.h"
#include "src/core/error.h"
#include "src/core/target.h"

#define PP_ALLOW_MAX        32
#define PP_ALLOW_TEXT_BYTES 1024
#define PP_AGENT_NAME_BYTES 128

/*
 * What may be written to. Each entry is one of
 *   SERIAL          a drive's whole serial or WWN (a loop device's is its backing file): anything
 *                   on that drive
 *   policy:SERIAL   the cache policy of that drive, and nothing that is on it
 *   uuid:FSUUID     files on the file system of this UUID
 *   /ABSOLUTE/PATH  files in this folder and below
 */
struct pp_allow {
	char text[PP_ALLOW_MAX][PP_ALLOW_TEXT_BYTES];
	size_t count;
};

/* Refuses what is none of these, "/" and device nodes (a drive is named by its serial). */
int pp_allow_add(struct pp_allow *allow, const char *text, struct pp_error *err);

/*
 * May this target be written to? whole_drive: the order formats the drive. Touches nothing but sysfs.
 * PP_ERR_REFUSED, with a text that says which --allow would be needed.
 */
int pp_allow_check(const struct pp_allow *allow, const struct pp_target_spec *spec,
	bool whole_drive, struct pp_error *err);

/* May the cache policy of this drive be changed? As above. */
int pp_allow_policy(const struct pp_allow *allow, const char *serial, struct pp_error *err);

struct pp_agent_config {
	char address[64];             /* numeric */
	uint16_t port;
	struct pp_key key;
	struct pp_allow allow;
	char name[PP_AGENT_NAME_BYTES]; /* "" is the host's */
	/* Talk for a person, one line without its newline; from any thread. May be NULL. */
	void (*say)(void *ctx, const char *text);
	/* Switches the machine off (or restarts it); returns at once, 0 if it is under way. NULL:
	 * pp_agent_power. Called when every target that could be released has been. */
	int (*power)(void *ctx, bool restart, struct pp_error *err);
	void *ctx;
	volatile sig_atomic_t *stop;  /* may be NULL: nonzero ends the agent within half a second */
	bool once;                    /* ends, with 0, once control has answered and is gone for 10 s */
	uint32_t retry_ms;            /* first pause between attempts, doubled up to 2 s; 0: 100 */
	uint32_t retry_refused_ms;    /* after a wrong key or version; 0: 30 s */
};

/* Serves until *stop: then 0. -1 only for what no retry can mend (an address that is none). */
int pp_agent_run(const struct pp_agent_config *config, struct pp_error *err);

/* The same until this process is asked to end: by a signal, by Ctrl-C, or, where `service` says that
 * the system's service manager started it (Windows), by that. Sets config->stop. */
int pp_agent_serve(struct pp_agent_config *config, bool service, struct pp_error *err);

/* sync(2) for 10 s at most, then /sbin/poweroff or /sbin/reboot, then reboot(2). */
int pp_agent_power(void *ctx, bool restart, struct pp_error *err);

/* The agent as a service of the system (systemd, Windows) that starts this binary with these
 * arguments at every boot. */
int pp_agent_install(const char *const *arguments, struct pp_error *err);
int pp_agent_uninstall(struct pp_error *err);
/* The unit file's text; separate for the test. Fails for an argument that cannot be written there. */
struct pp_buf;
int pp_agent_unit_text(const char *binary, const char *const *arguments, struct pp_buf *buf,
	struct pp_error *err);

#endif
