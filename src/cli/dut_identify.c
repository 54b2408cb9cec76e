/* SPDX-License-Identifier: MIT */
#include "dut_identify.h"

#include <getopt.h>
#include <stdio.h>

#include "identify_parts.h"
#include "option_table.h"

struct options {
	const char *expect;
	bool all;
};

static int take(void *ctx, int letter, const char *argument)
{
	struct options *o = ctx;

	o->all |= letter == 'a';
	if (letter == 'e')
		o->expect = argument;
	return -1;
}

static const struct pp_option_row option_rows[] = {
	{"all", 'a', NULL, "every drive of this machine"},
	{"expect", 'e', "SERIAL", "warn, exit 2, if it is another drive"},
};

static const struct pp_option_table table = {
	.command = "identify",
	.usage = "Usage: plugpull-dut identify [OPTION]... TARGET\n"
		"       plugpull-dut identify [OPTION]... --all\n"
		"Says which drives are beneath TARGET (a file, folder, device, or a drive's\n"
		"serial or WWN), their cache policy, and what would spoil a measurement there.\n"
		"Writes nothing. On Windows its questions flush the drive: not during a run.\n",
	.status = "Exit status: 0 identified, 2 could not, or it is another drive.",
	.columns = 18,
	.rows = option_rows,
	.count = sizeof(option_rows) / sizeof(option_rows[0]),
	.take = take,
};

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
	struct options o = {.expect = NULL};
	const char *target = NULL;
	int status = pp_option_table_read(&table, argc, argv, &o);

	if (status >= 0)
		return status;
	if (optind < argc)
		target = argv[optind++];
	if (optind < argc)
		return pp_usage_error("identify", "a second target", argv[optind]);
	if (o.all == (target != NULL))
		return pp_usage_error("identify", "name one target, or --all", NULL);
	return identify(target, o.expect);
}
