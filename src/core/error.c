/* SPDX-License-Identifier: MIT */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int pp_fail(struct pp_error *err, enum pp_error_class class, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -1;
	err->class = class;
	err->os_code = 0;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -1;
}

int pp_fail_os(struct pp_error *err, int64_t code, const char *fmt, ...)
{
	va_list ap;
	char reason[200];
	size_t used;

	if (!err)
		return -1;
	err->class = PP_ERR_SYSTEM;
	err->os_code = code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	used = strlen(err->text);
	pp_os_text(code, reason, sizeof(reason));
	snprintf(err->text + used, sizeof(err->text) - used, ": %s", reason);
	return -1;
}

int pp_fail_within(struct pp_error *err, const char *fmt, ...)
{
	char what[sizeof(err->text)];
	char whole[2 * sizeof(err->text) + 3];
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	snprintf(whole, sizeof(whole), "%s: %s", what, err->text);
	memcpy(err->text, whole, sizeof(err->text) - 1);
	err->text[sizeof(err->text) - 1] = '\0';
	return -1;
}
