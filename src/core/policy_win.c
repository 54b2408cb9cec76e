/* SPDX-License-Identifier: MIT
 *
 * policy.h on the living storage stack (win_policy.h).
 */
#include "win_policy.h"

int pp_policy_read(const char *disk, struct pp_policy *policy, struct pp_error *err)
{
	return pp_win_policy_read(&pp_win_storage_live, disk, policy, err);
}

int pp_policy_save(const char *disk, struct pp_policy_saved *saved, struct pp_error *err)
{
	return pp_win_policy_save(&pp_win_storage_live, disk, saved, err);
}

int pp_policy_set(const char *disk, const struct pp_policy_setting *setting,
	struct pp_policy_saved *saved, struct pp_error *err)
{
	return pp_win_policy_set(&pp_win_storage_live, disk, setting, saved, err);
}

int pp_policy_restore(const char *disk, const struct pp_policy_saved *saved, struct pp_error *err)
{
	return pp_win_policy_restore(&pp_win_storage_live, disk, saved, err);
}
