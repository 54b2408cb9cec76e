/* SPDX-License-Identifier: MIT
 *
 * plugpull-lab-guest: the lab's virtual machine runs this as init, poweroff, reboot and smartctl;
 * the name it is called by decides.
 */
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

#include "lab/guest.h"

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	const char *name = slash ? slash + 1 : argv[0];

	if (!strcmp(name, "smartctl"))
		return guest_smartctl(argc, argv);
	if (!strcmp(name, "poweroff"))
		return guest_shut_down(RB_POWER_OFF) ? 2 : 0;
	if (!strcmp(name, "reboot"))
		return guest_shut_down(RB_AUTOBOOT) ? 2 : 0;
	if (!strcmp(name, "init") && getpid() == 1)
		guest_init();
	fprintf(stderr, "%s: runs inside the virtual machine of the lab only\n", name);
	return 2;
}
