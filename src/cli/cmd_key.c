/* SPDX-License-Identifier: MIT
 *
 * plugpull key FILE: makes the key that control and agent share.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cmd_key.h"
#include "src/core/auth.h"

static const char usage[] =
	"Usage: plugpull key FILE\n"
	"Makes a shared key: 32 random bytes as hex, in a new file that only you can read\n"
	"(0600). Copy it to the machine under test; whoever has it can order writes\n"
	"there.\n"
	"\n"
	"      --help  show this\n";

int pp_cmd_key(int argc, char **argv)
{
	static const struct option options[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	struct pp_error err;
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c != 'h') {
			fputs("try 'plugpull key --help'\n", stderr);
			return 2;
		}
		fputs(usage, stdout);
		return fflush(stdout) == 0 ? 0 : 2;
	}
	if (argc - optind != 1) {
		fputs("plugpull key: expected one FILE; try 'plugpull key --help'\n", stderr);
		return 2;
	}
	if (pp_key_generate(argv[optind], &err) != 0) {
		fprintf(stderr, "plugpull key: %s\n", err.text);
		return 2;
	}
	return 0;
}
