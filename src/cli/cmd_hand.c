/* SPDX-License-Identifier: MIT
 *
 * write --to IP TARGET, verify --from IP TARGET: turned into the words of `agent`, which does the rest.
 */
#include "cmd_hand.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cmd_agent.h"
#include "command.h"
#include "src/campaign/agent.h"

#define HELP(name, host, pad, does)                                                               \
	"Usage: plugpull-dut " name " --" host " IP[:PORT] [OPTION]... TARGET...\n"               \
	does                                                                                      \
	"TARGET is what may be written to, as after agent --allow; DATA THERE IS\n"               \
	"DESTROYED.\n"                                                                            \
	"\n"                                                                                      \
	"      --" host " IP[:PORT]" pad "  numeric address of the host where 'plugpull listen' runs\n" \
	"      --key FILE        the shared key (default: plugpull.key)\n"                        \
	"      --name NAME       of this machine in the report (default: its host name)\n"        \
	"      --help            show this\n"

static const struct hand {
	const char *name, *host, *help;
} write_words = { "write", "to", HELP("write", "to", "  ",
	"Writes, syncs and tells the listener, until the plug is pulled.\n") },
  verify_words = { "verify", "from", HELP("verify", "from", "",
	"After the plug was put back: shows the listener what survived, and goes on\nwriting.\n") };

static int hint(const struct hand *hand, const char *what)
{
	fprintf(stderr, "%s %s: %s; try '%s %s --help'\n", pp_program_name(), hand->name, what,
		pp_program_name(), hand->name);
	return 2;
}

static int run(const struct hand *hand, int argc, char **argv)
{
	const struct option options[] = {
		{ hand->host, required_argument, NULL, 't' }, { "key", required_argument, NULL, 'k' },
		{ "name", required_argument, NULL, 'n' }, { "help", no_argument, NULL, 'h' }, { 0 },
	};
	char *words[2 * PP_ALLOW_MAX + 10], *key = (char *)"plugpull.key", *name = NULL, *to = NULL;
	int c, n = 0;

	optind = 1;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 't': to = optarg; break;
		case 'k': key = optarg; break;
		case 'n': name = optarg; break;
		case 'h':
			fputs(hand->help, stdout);
			return 0;
		default:
			return hint(hand, "bad option");
		}
	}
	if (!to)
		return hint(hand, "the listener's address is missing");
	if (optind == argc || argc - optind > PP_ALLOW_MAX)
		return hint(hand, optind == argc ? "names no target" : "too many targets");
	words[n++] = (char *)"agent";
	words[n++] = (char *)"--once";
	words[n++] = (char *)"--control";
	words[n++] = to;
	words[n++] = (char *)"--key";
	words[n++] = key;
	if (name) {
		words[n++] = (char *)"--name";
		words[n++] = name;
	}
	for (; optind < argc; optind++) {
		words[n++] = (char *)"--allow";
		words[n++] = argv[optind];
	}
	words[n] = NULL;
	return pp_cmd_agent(n, words);
}

int pp_cmd_write(int argc, char **argv)
{
	return run(&write_words, argc, argv);
}

int pp_cmd_verify(int argc, char **argv)
{
	return run(&verify_words, argc, argv);
}
