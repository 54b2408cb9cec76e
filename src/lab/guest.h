/* SPDX-License-Identifier: MIT
 *
 * The inside of the lab's virtual machine: what runs as its init. The machine is a Linux kernel
 * and an initramfs; everything that changes from boot to boot (the drives, where the controller
 * is, the key) comes in one file, GUEST_CONFIG, that the lab appends to the initramfs as a small
 * cpio of its own: long text on the kernel command line makes the kernel panic.
 *
 * Configuration, a line each, words split by one blank, in any order:
 *   address IP/PREFIX GATEWAY    of eth0
 *   nbd IP PORT SERIAL BLOCK     a drive: attached as /dev/nbd0, nbd1, ... in this order
 *   agent WORD                   the next word of the agent's command line; none: no agent
 */
#ifndef PP_LAB_GUEST_H
#define PP_LAB_GUEST_H

#include <stdbool.h>

#include "core/error.h"

#define GUEST_CONFIG  "/etc/plugpull-lab.conf"
#define GUEST_MODULES "/lib/modules/load"     /* paths of modules, in the order to load them */
#define GUEST_SMART   "/etc/smart"            /* SERIAL.json: what smartctl -j says about it */
#define GUEST_COMMAND "/dev/ttyS1"            /* the lab's command line into the machine */

/* A word that ends the output of each command on GUEST_COMMAND, followed by its exit status. */
#define GUEST_COMMAND_END "\036plugpull-end "

/* Prints to the console, after "plugpull-lab-guest: ". */
void guest_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* eth0 and lo (netdevice(7)). */
int guest_network_up(const char *address, int prefix_bits, const char *gateway,
	struct pp_error *err);

/* Handshake with the server at ip:port, then hands the connection to the kernel's nbd client as
 * /dev/nbd<index>, whose backend in sysfs is then the serial. */
int guest_nbd_attach(int index, const char *ip, int port, const char *serial, int block_bytes,
	struct pp_error *err);
/* A clean disconnect (NBD_CMD_DISC). */
int guest_nbd_detach(int index, struct pp_error *err);

/*
 * The write cache of a drive, which NBD has no command for. The lab's drives take it as the name of an
 * export that a client opens: PP_LAB_EXPORT_ON and _OFF switch it, PP_LAB_EXPORT_ASK asks; the answer is
 * the flag NBD_FLAG_SEND_FLUSH of that export. word is NULL (asks), "on" or "off".
 */
#define PP_LAB_EXPORT_ON  "plugpull-lab-cache-on"
#define PP_LAB_EXPORT_OFF "plugpull-lab-cache-off"
#define PP_LAB_EXPORT_ASK "plugpull-lab-cache"
int guest_nbd_cache(const char *ip, int port, const char *word, bool *on, struct pp_error *err);

/* init: never returns. */
void guest_init(void);
/* Unmounts what lies on nbd devices, detaches them, then powers off or reboots. Returns only on
 * failure. */
int guest_shut_down(int reboot_command);
/* A stub of smartctl(8) that knows -j -a, -x, -i, -A. Returns its exit status. */
int guest_smartctl(int argc, char **argv);
/* plugpull-lab-cache NODE [on|off]: the drive's own cache, for src/core/policy_lab_linux.c. */
int guest_cache(int argc, char **argv);

#endif
