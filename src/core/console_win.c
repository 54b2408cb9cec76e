/* SPDX-License-Identifier: MIT */
#include "console.h"

#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>

#include "handle_win.h"

#include <shellapi.h>

void pp_console_begin(int *argc, char ***argv)
{
	int count = 0, i;
	wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &count);
	char **utf8 = wide ? calloc((size_t)count + 1, sizeof(*utf8)) : NULL;

	for (i = 0; utf8 && i < count; i++)
		if (!(utf8[i] = pp_utf8(wide[i])))
			break;
	if (utf8 && i == count) {
		*argc = count;
		*argv = utf8; /* for as long as the program runs */
	}
	LocalFree(wide);
	SetConsoleOutputCP(CP_UTF8);
	_setmode(_fileno(stdout), _O_BINARY);
	_setmode(_fileno(stderr), _O_BINARY);
	_fmode = _O_BINARY; /* files of stdio too: evidence has the same bytes everywhere */
	setvbuf(stderr, NULL, _IONBF, 0);
}
