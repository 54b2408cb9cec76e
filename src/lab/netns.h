/* SPDX-License-Identifier: MIT
 *
 * The lab's own network: a network namespace that holds everything that loses its power, joined to
 * the host by one veth pair, the "cable". A process that is killed closes its sockets, and the
 * witness would see a FIN: a dead writer, not a dead machine. With the cable pulled first, the
 * witness sees silence.
 *
 * The cable is pulled at the far end. Taking the host's end down would remove its route, and the
 * host would send what is meant for the dead machine to its default gateway.
 *
 * A guard process stands beside us: when we are gone, in whatever way, it kills what is left in
 * the namespace, removes namespace and cable, and our run folder. pp_netns_close() uses the same
 * guard, so there is one way to clean up and it is used every time.
 */
#ifndef PP_LAB_NETNS_H
#define PP_LAB_NETNS_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/error.h"

struct pp_netns {
	char name[32];         /* pp-<pid>-<n> */
	char path[64];         /* for nsenter --net=PATH */
	char host_address[16]; /* 10.77.x.y: this side of the cable */
	char run_dir[64];      /* 0700, removed at the end; short enough for sockets */
	int slot;
	int lock_fd, guard_fd;
	int socket_fd;         /* of the namespace: works the far end of the cable */
	pid_t guard;
};

/* Needs root. */
int pp_netns_open(struct pp_netns *ns, struct pp_error *err);
void pp_netns_close(struct pp_netns *ns);
/* At once, without another process: between the silence and the drives' loss of power a machine must
 * have no time to write anything down. */
int pp_netns_link(const struct pp_netns *ns, bool up, struct pp_error *err);
/*
 * Up, with another address than last time (number counts the boots). Sockets of a machine that was
 * killed live on in the kernel for a second or so, and would go on sending what they hold, and a
 * FIN, if their address came back within that time: "lived after the off".
 */
int pp_netns_link_anew(const struct pp_netns *ns, unsigned number, struct pp_error *err);

/* Removes what labs left behind whose owner is dead. Only names of our own making are touched. */
void pp_netns_sweep(void);

#endif
