/* SPDX-License-Identifier: MIT */
#include "win_storage.h"

#include <stdio.h>

/* In words where a person can act on it; winerror.h. */
static const struct {
	uint32_t code;
	const char *text;
} errors[] = {
	{0, "success"},
	{PP_WIN_INVALID_FUNCTION, "this driver does not know the question"},
	{PP_WIN_NOT_FOUND, "not found"},
	{PP_WIN_ACCESS_DENIED, "access denied: run it as administrator"},
	{PP_WIN_NOT_SUPPORTED, "not supported"},
	{PP_WIN_INVALID_PARAMETER, "invalid parameter"},
	{PP_WIN_MORE_DATA, "more data than there is room for"},
	{PP_WIN_SHORT_ANSWER, "too short an answer"},
	{PP_WIN_NOT_ASKED, "not asked"},
};

const char *pp_win_error_text(uint32_t code, char out[64])
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].code == code) {
			if (code >= PP_WIN_SHORT_ANSWER)
				snprintf(out, 64, "%s", errors[i].text);
			else
				snprintf(out, 64, "%s, error %u", errors[i].text, (unsigned)code);
			return out;
		}
	snprintf(out, 64, "error %u", (unsigned)code);
	return out;
}
