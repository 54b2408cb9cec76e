/* SPDX-License-Identifier: MIT
 *
 * The inside of the loop rig: a machine that is a set of namespaces. Its kernel is the host's, but
 * a boot is a boot to all that runs in it: processes begin with 1, /proc/sys/kernel/random/boot_id
 * is this boot's own (a file mounted over it), clocks count from its start (time_namespaces(7)),
 * /run is empty, and reboot(2) ends it and nothing else (reboot(2), "Behavior inside PID
 * namespaces"). So the agent needs no switch that would let it lie about its machine.
 *
 * Its configuration, a line each, paths without blanks:
 *   boot_id UUID
 *   folder PATH                the rig's run folder
 *   drive SERIAL BLOCK FILE    a drive, as a loop device whose reference is the serial
 *   env NAME=VALUE             of the agent's environment
 *   volumes FOLDER             mount each drive's file system, and link it there as d:, e:, ...
 *   agent WORD                 the next word of the agent's command line
 */
#ifndef PP_LAB_LOOP_MACHINE_H
#define PP_LAB_LOOP_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

#define LOOP_READY_FILE "machine.pid"       /* in the run folder: up; holds its init's pid */
#define LOOP_RUN        "/run/plugpull-lab" /* in the machine: that it is one */
#define LOOP_AGENT_PID  LOOP_RUN "/agent.pid"
#define LOOP_SMART      LOOP_RUN "/smart"

/* A mount namespace of its own that lives as long as this process; makes the file once it is
 * there. Returns an exit status. */
int loop_hold(const char *ready);

/*
 * Boots and stays until the machine has ended: 0 it has powered itself off, PP_RIG_EXIT_REBOOT it
 * wants to boot again, 1 it was killed, 2 it could not boot. SIGTERM kills all of it; this
 * process's own end, too.
 */
int loop_boot(const char *conf_path);

/* Whether this process runs in such a machine. */
bool loop_inside(void);
/* Where the counters of the drive behind a loop device lie, as smartctl's JSON; a path to nothing
 * where it is none of the machine's. */
void loop_smart_path(const char *node, char *out, size_t bytes);
/* The write cache of the drive behind a loop device, by its control socket in the run folder
 * (drive_daemon.h). word is NULL (asks), "on" or "off". */
struct pp_error;
int loop_cache(const char *node, const char *word, bool *on, struct pp_error *err);
/* Kills what runs, unmounts what lies on its drives, then ends the machine as reboot_command says
 * (reboot(2)). Returns only on failure. */
int loop_shut_down(int reboot_command);

#endif
