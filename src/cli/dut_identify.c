/* SPDX-License-Identifier: MIT */
#include "dut_identify.h"

#include <getopt.h>
#include <stdio.h>
#include <version.h>

#include "identify_parts.h"

static const struct {
	struct option option;
	const char *argument, *help;
} table[] = {
	{{"all", no_argument, NULL, 'a'}, NULL, "every drive of this machine"},
	{{"expect", required_argument, NULL, 'e'}, "SERIAL", "warn, exit 2, if it is another drive"},
	{{"version", no_argument, NULL, 'V'}, NULL, "print the version, exit"},
	{{"help", no_argument, NULL, 'h'}, NULL, "print this, exit"},
};
#define OPTIONS (sizeof(table) / sizeof(table[0]))

static int usage_error(const char *what, const char *subject)
{
	fprintf(stderr, "plugpull-dut identify: %s%s%s%s\nTry 'plugpull-dut identify --help'.\n", what,
		subject ? " '" : "", subject ? subject : "", subject ? "'" : "");
	return 2;
}

static int help(void)
{
	printf("Usage: plugpull-dut identify [OPTION]... TARGET\n"
		"       plugpull-dut identify [OPTION]... --all\n"
		"Says which drives are beneath TARGET (a file, folder, device, or a drive's\n"
		"serial or WWN), their cache policy, and what would spoil a measurement there.\n"
		"Writes nothing. On Windows its questions flush the drive: not during a run.\n\n");
	for (size_t i = 0; i < OPTIONS; i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", table[i].option.name,
			table[i].argument ? " " : "", table[i].argument ? table[i].argument : "");
		printf("  %-18s %s\n", left, table[i].help);
	}
	printf("\nExit status: 0 identified, 2 could not, or it is another drive.\n");
	return 0;
}

static int identify(const char *target, const char *expect)
{
	struct identify_subject s = {.sys = &pp_sysroot_live, .expected = &expect,
		.expected_count = expect != NULL};
	struct pp_machine machine;
	struct pp_error err;
	int status;

	pp_machine_read(s.sys, &machine);
	s.machine = &machine;
	status = identify_print(target, &s, &err);
	if (status >= 0)
		return status;
	fprintf(stderr, "plugpull-dut identify: %s\n", err.text);
	return 2;
}

int pp_dut_identify(int argc, char **argv)
{
	struct option options[OPTIONS + 1] = {{NULL, 0, NULL, 0}};
	const char *target = NULL, *expect = NULL;
	bool all = false;
	int c;

	for (size_t i = 0; i < OPTIONS; i++)
		options[i] = table[i].option;
	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (c == 'h')
			return help();
		if (c == 'V') {
			printf("plugpull-dut %s (%s)\n", PP_VERSION, PP_COMMIT);
			return 0;
		}
		if (c == ':')
			return usage_error("an argument is missing after", argv[optind - 1]);
		if (c == '?')
			return usage_error("there is no option", argv[optind - 1]);
		all |= c == 'a';
		if (c == 'e')
			expect = optarg;
	}
	if (optind < argc)
		target = argv[optind++];
	if (optind < argc)
		return usage_error("a second target", argv[optind]);
	if (all == (target != NULL))
		return usage_error("name one target, or --all", NULL);
	return identify(target, expect);
}
