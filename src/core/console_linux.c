/* SPDX-License-Identifier: MIT */
#include "console.h"

void pp_console_begin(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
}
