/* SPDX-License-Identifier: MIT */
#include "error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void pp_os_text(int64_t code, char *out, unsigned out_bytes)
{
	snprintf(out, out_bytes, "%s", strerror((int)code));
}

int pp_os_errno(int64_t code)
{
	return code > 0 ? (int)code : EIO;
}
