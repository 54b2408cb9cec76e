/* SPDX-License-Identifier: MIT */
#include "method.h"

#include "descriptor.h"

const enum pp_system pp_system_here = PP_SYSTEM_WINDOWS;

/* O_DIRECT becomes FILE_FLAG_NO_BUFFERING, O_DSYNC FILE_FLAG_WRITE_THROUGH (handle_win.h). */
int pp_method_open_flags(const struct pp_method *method)
{
	bool opened_so = method->write == PP_WRITE_PWRITE;

	return (method->direct ? O_DIRECT : 0) | (opened_so && method->o_dsync ? O_DSYNC : 0);
}
