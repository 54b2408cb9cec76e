/* SPDX-License-Identifier: MIT
 *
 * plugpull-lab-guest: the lab's machines run this as init, poweroff, reboot, smartctl and
 * plugpull-lab-cache; the name it is called by decides. The loop rig starts it as loop-hold and loop-boot.
 */
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

#include "lab/guest.h"
#include "lab/loop_machine.h"

int main(int argc, char **argv)
{
	const char *stroke = strrchr(argv[0], '\\'); /* Wine starts us by a Windows path */
	const char *slash = stroke ? stroke : strrchr(argv[0], '/');
	const char *name = slash ? slash + 1 : argv[0];

	if (!strcmp(name, "plugpull-lab-cache"))
		return guest_cache(argc, argv);
	if (!strcmp(name, "smartctl"))
		return guest_smartctl(argc, argv);
	if (!strcmp(name, "poweroff") && loop_inside())
		return loop_shut_down(RB_POWER_OFF) ? 2 : 0;
	if (!strcmp(name, "reboot") && loop_inside())
		return loop_shut_down(RB_AUTOBOOT) ? 2 : 0;
	if (!strcmp(name, "shutdown.exe") && loop_inside()) /* Wine's, of the agent for Windows: /s or /r */
		return loop_shut_down(argc > 1 && !strcmp(argv[1], "/r") ? RB_AUTOBOOT : RB_POWER_OFF) ? 2 : 0;
	if (argc == 3 && !strcmp(argv[1], "loop-hold"))
		return loop_hold(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "loop-boot"))
		return loop_boot(argv[2]);
	if (!strcmp(name, "poweroff"))
		return guest_shut_down(RB_POWER_OFF) ? 2 : 0;
	if (!strcmp(name, "reboot"))
		return guest_shut_down(RB_AUTOBOOT) ? 2 : 0;
	if (!strcmp(name, "init") && getpid() == 1)
		guest_init();
	fprintf(stderr, "%s: runs inside the machines of the lab only\n", name);
	return 2;
}
