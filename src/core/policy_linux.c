/* SPDX-License-Identifier: MIT */
#include "policy.h"

int pp_policy_read(const char *disk, struct pp_policy *policy, struct pp_error *err)
{
	(void)policy;
	return pp_fail(err, PP_ERR_UNSUPPORTED, "cannot read the policy of '%s': not there yet", disk);
}

int pp_policy_save(const char *disk, struct pp_policy_saved *saved, struct pp_error *err)
{
	(void)saved;
	return pp_fail(err, PP_ERR_UNSUPPORTED, "cannot save the policy of '%s': not there yet", disk);
}

int pp_policy_set(const char *disk, const struct pp_policy_setting *setting,
	struct pp_policy_saved *saved, struct pp_error *err)
{
	(void)setting;
	(void)saved;
	return pp_fail(err, PP_ERR_UNSUPPORTED, "cannot set the policy of '%s': not there yet", disk);
}

int pp_policy_restore(const char *disk, const struct pp_policy_saved *saved, struct pp_error *err)
{
	(void)saved;
	return pp_fail(err, PP_ERR_UNSUPPORTED, "cannot restore the policy of '%s': not there yet", disk);
}
