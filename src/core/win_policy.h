/* SPDX-License-Identifier: MIT
 *
 * policy.h on Windows' storage stack, living or made up; disk is "PhysicalDrive0".
 *
 * Reading sends the write-cache property's query, which flushes the drive. A set goes through
 * IOCTL_DISK_SET_CACHE_INFORMATION and _SET_CACHE_SETTING, which the class driver puts in force at once
 * and keeps in the registry; where a driver refuses them the registry is written, which holds after a
 * restart. Mind that the class driver stores UserWriteCacheSetting even when the drive refused.
 */
#ifndef PP_CORE_WIN_POLICY_H
#define PP_CORE_WIN_POLICY_H

#include "policy.h"
#include "win_storage.h"

int pp_win_policy_read(const struct pp_win_storage *s, const char *disk, struct pp_policy *policy,
	struct pp_error *err);
int pp_win_policy_save(const struct pp_win_storage *s, const char *disk,
	struct pp_policy_saved *saved, struct pp_error *err);
int pp_win_policy_set(const struct pp_win_storage *s, const char *disk,
	const struct pp_policy_setting *setting, struct pp_policy_saved *saved, struct pp_error *err);
int pp_win_policy_restore(const struct pp_win_storage *s, const char *disk,
	const struct pp_policy_saved *saved, struct pp_error *err);

#endif
