/* SPDX-License-Identifier: MIT */
#include "tree.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned give_uid, give_gid; /* nftw(3) has no context; one thread gives at a time */

static int give_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	if (lchown(path, give_uid, give_gid) != 0)
		return 0;
	return 0;
}

void pp_tree_give(const char *path, unsigned uid, unsigned gid)
{
	give_uid = uid;
	give_gid = gid;
	nftw(path, give_one, 16, FTW_PHYS | FTW_MOUNT);
}

void pp_tree_give_to_sudo_user(const char *path)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");

	if (geteuid() == 0 && uid && gid)
		pp_tree_give(path, (unsigned)strtoul(uid, NULL, 10), (unsigned)strtoul(gid, NULL, 10));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

int pp_tree_remove(const char *path, struct pp_error *err)
{
	if (nftw(path, remove_one, 16, FTW_PHYS | FTW_MOUNT | FTW_DEPTH) != 0 && errno != ENOENT)
		return pp_fail_os(err, errno, "cannot remove '%s'", path);
	return 0;
}
