/* SPDX-License-Identifier: MIT
 *
 * Whole folders: given away, or removed. Neither follows links or leaves the file system.
 */
#ifndef PP_CORE_TREE_H
#define PP_CORE_TREE_H

#include "error.h"

/* chown of everything below path, and of path itself. What cannot be given away stays as it is. */
void pp_tree_give(const char *path, unsigned uid, unsigned gid);

/*
 * Under sudo: gives path to the user who said sudo (SUDO_UID, SUDO_GID), so that what was written
 * for them is theirs. Otherwise nothing.
 */
void pp_tree_give_to_sudo_user(const char *path);

/* rm -r. A path that is not there is fine. */
int pp_tree_remove(const char *path, struct pp_error *err);

#endif
