/* SPDX-License-Identifier: MIT
 *
 * A lab: a machine under test with drives and a PDU, on one computer. What is inside is the rig's
 * (rig.h); to the campaign it is an HTTP address of a PDU and an agent that connects from
 * elsewhere. Everything happens in threads and children of the calling process; when that process
 * dies, in whatever way, a guard removes all of it (netns.h). `plugpull lab` is such a process, so
 * that a lab can outlive a controller that is killed.
 *
 * The control socket (unix, a command a line, a line of JSON back) is for tests:
 *   state                        outlet, machine, drives
 *   drive SERIAL COMMAND         to the drive's process: stat, behaviour NAME, ...
 *   guest LINE                   sh in the guest: {"ok": true, "status": N, "output": "..."}
 *   reset                        warm reboot, nothing loses power
 *   kill-machine                 the machine dies and its sockets close; nothing loses power
 *   kill-agent                   SIGKILL to the agent in the guest; the machine lives
 *   swap SERIAL NEW BYTES        from the next power-on another drive is in SERIAL's place
 *   remove SERIAL, insert SERIAL from the next power-on it is gone, or back
 *   no-boot 0|1                  from the next power-on the machine does not boot
 *   pdu FLAW [MS]                none, ignores, welded, slow (see sim_pdu.c)
 */
#ifndef PP_LAB_LAB_H
#define PP_LAB_LAB_H

#include "core/buf.h"
#include "core/error.h"
#include "drive_host.h"

#define PP_LAB_AGENT_PORT 7333

struct pp_lab_config {
	const char *rig;              /* "vm" or "loop" */
	const struct pp_lab_drive *drives;
	int drive_count;
	uint64_t seed;
	const char *work_dir;         /* keeps images and logs; NULL: they go at the end */
	const char *dut;              /* plugpull-dut; NULL: a machine without an agent */
	const char *guest_tool;       /* plugpull-lab-guest */
	const char *plugin;           /* plugpull-drive.so; vm only */
	const char *drive_tool;       /* plugpull-lab-drive; loop only */
	const char *kernel_dir;       /* NULL: Debian's cloud kernel */
	const char *accel;            /* NULL: what works */
	const char *key_file;         /* NULL: a new key */
	const char *password;         /* of the PDU; NULL: a new one */
	const char *control_socket;   /* NULL: in the run folder */
	int agent_port;               /* where the controller listens for the agent; 0: the default */
	const char *const *agent_words; /* more words for the agent's command line; NULL: none */
	void (*talk)(const char *text); /* NULL: silent */
};

struct pp_lab_info {
	char pdu_url[64];
	char pdu_id[64];
	char password_file[128];      /* 0600, one line */
	char listen_address[32];      /* of this host, as the agent reaches it; no port */
	int listen_port;
	char key_file[4096];
	char control_socket[108];
	char run_dir[64];
	char accel[8];
};

struct pp_lab;

/* Everything is ready and the outlet is off. The listener should be open before the PDU is told
 * `on`. NULL on failure. */
struct pp_lab *pp_lab_open(const struct pp_lab_config *config, struct pp_lab_info *info,
	struct pp_error *err);
/* Cuts the power and removes everything but work_dir. NULL is fine. */
void pp_lab_close(struct pp_lab *lab);

/* The path of a part that belongs to this program (plugpull-dut, plugpull-lab-guest,
 * plugpull-drive.so, plugpull-lab-drive): beside it, or in ../lib/plugpull where it is installed. */
int pp_lab_find_part(const char *name, char *out, size_t bytes, struct pp_error *err);

/* One command of the control socket; the answer, always one line of JSON, goes to out. */
void pp_lab_command(struct pp_lab *lab, const char *line, struct pp_buf *out);

#endif
