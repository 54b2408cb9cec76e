/* SPDX-License-Identifier: MIT */
#include "method.h"

#include <fcntl.h>

int pp_method_open_flags(const struct pp_method *method)
{
	return (method->direct ? O_DIRECT : 0) | (method->o_dsync ? O_DSYNC : 0) |
		(method->o_sync ? O_SYNC : 0);
}
