/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "handle_win.h"

/* The system's sentence without its full stop and line end, and the number, which people search for. */
void pp_os_text(int64_t code, char *out, unsigned out_bytes)
{
	bool win32 = (code & 0xffff0000LL) == 0x80070000LL;
	DWORD id = win32 ? (DWORD)(code & 0xffff) : (DWORD)code, n;
	DWORD from = win32 ? FORMAT_MESSAGE_FROM_SYSTEM : FORMAT_MESSAGE_FROM_HMODULE;
	wchar_t wide[256];
	char text[512];

	if (code < 0x10000) {
		snprintf(out, out_bytes, "%s", strerror((int)code));
		return;
	}
	/* In English, as all else here. */
	n = FormatMessageW(from | FORMAT_MESSAGE_IGNORE_INSERTS, GetModuleHandleA("ntdll.dll"), id,
		MAKELANGID(LANG_ENGLISH, SUBLANG_ENGLISH_US), wide, 256, NULL);
	if (!n)
		n = FormatMessageW(from | FORMAT_MESSAGE_IGNORE_INSERTS, GetModuleHandleA("ntdll.dll"),
			id, 0, wide, 256, NULL);
	while (n && (wide[n - 1] <= L' ' || wide[n - 1] == L'.'))
		n--;
	wide[n] = L'\0';
	pp_utf8_copy(text, sizeof(text), wide);
	text[strcspn(text, "\r\n")] = '\0';
	if (win32)
		snprintf(out, out_bytes, "%s%serror %lu", text, text[0] ? ", " : "", id);
	else
		snprintf(out, out_bytes, "%s%sstatus 0x%08lX", text, text[0] ? ", " : "", id);
}

int pp_os_errno(int64_t code)
{
	if (code > 0 && code < 0x10000)
		return (int)code;
	switch (code) {
	case 0x80070000LL | ERROR_ACCESS_DENIED:
	case 0x80070000LL | ERROR_SHARING_VIOLATION:
		return EACCES;
	case 0x80070000LL | ERROR_NOT_ENOUGH_MEMORY:
		return ENOMEM;
	case 0x80070000LL | ERROR_INVALID_PARAMETER:
	case 0x80070000LL | ERROR_NOT_SUPPORTED:
		return EINVAL;
	default:
		return EIO;
	}
}
