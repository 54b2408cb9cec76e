/* SPDX-License-Identifier: MIT */
#include "method.h"

#include <fcntl.h>

const enum pp_system pp_system_here = PP_SYSTEM_LINUX;

int pp_method_open_flags(const struct pp_method *method)
{
	bool opened_so = method->write == PP_WRITE_PWRITE;

	return (method->direct ? O_DIRECT : 0) | (opened_so && method->o_dsync ? O_DSYNC : 0) |
		(opened_so && method->o_sync ? O_SYNC : 0);
}
