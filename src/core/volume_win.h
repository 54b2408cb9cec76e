/* SPDX-License-Identifier: MIT
 *
 * A volume in a drive's place, for where the disk beneath tells neither serial nor WWN (some USB
 * bridges and hypervisors; Wine): its id is "volume." and the volume's serial number in eight
 * upper-case hex digits, as `vol D:` shows it with a stroke. Formatting draws a new one, a clone has the
 * same; so it is a name for want of a better one, and good for files only, never for a raw drive.
 */
#ifndef PP_CORE_VOLUME_WIN_H
#define PP_CORE_VOLUME_WIN_H

#include <stdbool.h>

#include "drive.h"

#define PP_VOLUME_PREFIX "volume."

/* Of that form, whole. */
bool pp_volume_is_id(const char *id);
/* The volume of this id among those with a drive letter: name "D:", node "\\.\D:". Two of one id:
 * PP_ERR_EVIDENCE. None: PP_ERR_UNSUPPORTED. */
int pp_volume_find(const char *id, struct pp_drive_info *info, struct pp_error *err);
/* The volume that an open file or folder is on. */
int pp_volume_of_fd(int fd, struct pp_drive_info *info, struct pp_error *err);
/* Fixed and removable volumes with a letter and a medium; at most room of them; how many. */
size_t pp_volume_list(struct pp_drive_info *infos, size_t room);
/* The stack beneath that open file: file system, mount point, the one "disk" being the volume. */
int pp_volume_stack(int fd, const char *path, struct pp_stack *stack, struct pp_error *err);

#endif
