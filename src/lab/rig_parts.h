/* SPDX-License-Identifier: MIT
 *
 * What rig.c and the kinds of rig share. The functions of a kind are called with the rig's mutex
 * held, but for open, close, ready and run.
 */
#ifndef PP_LAB_RIG_PARTS_H
#define PP_LAB_RIG_PARTS_H

#include <pthread.h>
#include <sys/types.h>

#include "netns.h"
#include "rig.h"

/* How a machine's process ends: 0 it has powered itself off, this it wants to boot again. */
#define PP_RIG_EXIT_REBOOT 4

struct pp_rig_slot {
	struct pp_drive_host host;
	struct pp_lab_drive next; /* what stands here from the next power-on */
	bool present;
};

struct pp_rig_kind {
	const char *name;
	const char *key_path;         /* in the machine; NULL: run_dir/agent.key */
	const char *kill_agent_line;
	int kill_signal;              /* for the machine's process; it must end all of it */
	int (*open)(struct pp_rig *rig, const struct pp_rig_config *config, struct pp_error *err);
	void (*close)(struct pp_rig *rig);
	/* The drive's process; its settings go to pp_drive_host_start. */
	int (*start_drive)(struct pp_rig *rig, int i, uint64_t seed, const char *log_path,
		struct pp_error *err);
	bool fast;                    /* boots within the life of a dead machine's sockets */
	/* The machine's process, or -1. */
	pid_t (*boot)(struct pp_rig *rig, struct pp_error *err);
	/* The machine's process has ended; waits until nothing of it holds a drive. May be NULL. */
	void (*settle)(struct pp_rig *rig);
	int (*reset)(struct pp_rig *rig, struct pp_error *err);
	/* Whether this boot takes commands. */
	bool (*ready)(struct pp_rig *rig);
	int (*run)(struct pp_rig *rig, const char *line, int64_t until_ns, struct pp_buf *out,
		int *status, struct pp_error *err);
};

extern const struct pp_rig_kind pp_rig_kind_vm, pp_rig_kind_loop;

struct pp_rig {
	const struct pp_rig_kind *kind;
	void *own;               /* the kind's */
	pthread_mutex_t lock;
	pthread_cond_t machine_gone;
	struct pp_netns ns;
	struct pp_rig_slot slots[PP_RIG_DRIVES_MAX];
	int drive_count;
	uint64_t seed;
	char image_dir[3500], dut[4096], key_path[128], accel[8];
	unsigned boots, cuts;
	bool outlet_on, no_boot, killed_by_us;
	pid_t machine;           /* 0: none */
	struct pp_buf agent;     /* lines `agent WORD` for the machine's configuration */
	char *key;
	size_t key_bytes;
};

/* A file in the run folder, a file among the images and logs. */
void pp_rig_path(const struct pp_rig *rig, const char *name, char *out, size_t bytes);
void pp_rig_log_path(const struct pp_rig *rig, const char *name, char *out, size_t bytes);

/* With the mutex held: starts the machine's process and a thread that waits for its end. */
int pp_rig_start_machine(struct pp_rig *rig, struct pp_error *err);
/* With the mutex held: kills it and waits; killed_by_us keeps its drives as they are. */
void pp_rig_stop_machine(struct pp_rig *rig);

#endif
