/* SPDX-License-Identifier: MIT
 *
 * plugpull-lab-drive FOLDER KEY=VALUE...: a simulated drive as the file FOLDER/disk, for the lab's
 * loop rig.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lab/drive_daemon.h"
#include "lab/fuse_drive.h"

static int run(int argc, char **argv, struct pp_error *err)
{
	for (int i = 2; i < argc; i++) {
		char *equals = strchr(argv[i], '=');

		if (!equals)
			return pp_fail(err, PP_ERR_USAGE, "'%s' is no KEY=VALUE", argv[i]);
		*equals = '\0';
		if (pp_drive_daemon_set(argv[i], equals + 1, err))
			return -1;
	}
	if (pp_drive_daemon_power_on(err))
		return -1;
	return pp_fuse_drive_serve(argv[1], err);
}

int main(int argc, char **argv)
{
	struct pp_error err = { 0 };

	if (argc < 3) {
		fprintf(stderr, "usage: plugpull-lab-drive FOLDER KEY=VALUE...\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	if (!run(argc, argv, &err))
		return 0;
	fprintf(stderr, "plugpull-lab-drive: %s\n", err.text);
	return 2;
}
