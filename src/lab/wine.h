/* SPDX-License-Identifier: MIT
 *
 * The Windows program in the rig `loop`: it runs under Wine in the machine, which is as all of that
 * rig's machines are. Wine makes no file systems, so the rig makes each drive's (ext4) before its first
 * power-on and mounts it at each boot, as D:, E: and so on in the order of the drives. Wine tells no
 * drive's serial either, but a volume's, from the file .windows-serial in its root; the agent calls
 * the drive by that, and so the rig's drives must be named: volume.XXXXXXXX, eight upper-case hex digits.
 *
 * Wine's own memory of the machine (the prefix) lies in the rig's run folder. A boot is a boot to the
 * program too: Wine's server starts anew, and with it the boot time that Windows programs see.
 */
#ifndef PP_LAB_WINE_H
#define PP_LAB_WINE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/error.h"

/* A folder of each volume that the agent may write to: D:\plugpull. */
#define PP_WINE_FOLDER "plugpull"

/* The machine-under-test program is one of Windows. dut may be NULL. */
bool pp_wine_wanted(const char *dut);

/* Makes run_dir/wine (some 0.7 GB, some seconds); guest_tool becomes its shutdown.exe. */
int pp_wine_open(const char *run_dir, const char *guest_tool, struct pp_error *err);
/* A new image with a file system, unless one is there. Refuses a serial that is no volume's. */
int pp_wine_format(const char *image, const char *serial, uint64_t size_bytes, const char *run_dir,
	struct pp_error *err);

/* Adds the lines of loop_machine.h that are for Wine; the agent's own words come after them. */
int pp_wine_conf(const char *run_dir, struct pp_buf *conf, struct pp_error *err);

#endif
