/* SPDX-License-Identifier: MIT */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void pp_text_copy(char *to, size_t bytes, const char *from)
{
	size_t n = strlen(from);

	if (n >= bytes)
		n = bytes - 1;
	memcpy(to, from, n);
	to[n] = '\0';
}

bool pp_text_format(char *to, size_t bytes, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(to, bytes, fmt, ap);
	va_end(ap);
	return n >= 0 && (size_t)n < bytes;
}
