/* SPDX-License-Identifier: MIT */
#include "option_table.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <version.h>

#include "command.h"

/* Not letters, so that no row's is one of them. */
enum { HELP = 256, VERSION };

int pp_usage_error(const char *command, const char *what, const char *subject)
{
	const char *program = pp_program_name();

	fprintf(stderr, "%s %s: %s%s%s%s\nTry '%s %s --help'.\n", program, command, what,
		subject ? " '" : "", subject ? subject : "", subject ? "'" : "", program, command);
	return 2;
}

static void print_row(int columns, const struct pp_option_row *row)
{
	char left[64];

	snprintf(left, sizeof(left), "--%s%s%s", row->name, row->argument ? " " : "",
		row->argument ? row->argument : "");
	printf("  %-*s %s\n", columns, left, row->help);
}

static int help(const struct pp_option_table *table)
{
	static const struct pp_option_row common[] = {
		{"version", VERSION, NULL, "print the version, exit"},
		{"help", HELP, NULL, "print this, exit"},
	};

	printf("%s\n", table->usage);
	for (size_t i = 0; i < table->count; i++)
		print_row(table->columns, &table->rows[i]);
	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		print_row(table->columns, &common[i]);
	printf("\n%s\n", table->status);
	return 0;
}

int pp_option_table_read(const struct pp_option_table *table, int argc, char **argv, void *ctx)
{
	struct option options[PP_OPTION_ROWS_MAX + 3] = {{NULL, 0, NULL, 0}};
	int c, status = -1;

	assert(table->count <= PP_OPTION_ROWS_MAX);
	for (size_t i = 0; i < table->count; i++)
		options[i] = (struct option){table->rows[i].name,
			table->rows[i].argument ? required_argument : no_argument, NULL, table->rows[i].letter};
	options[table->count] = (struct option){"version", no_argument, NULL, VERSION};
	options[table->count + 1] = (struct option){"help", no_argument, NULL, HELP};
	optind = 0;
	opterr = 0;
	while (status < 0 && (c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (c == HELP)
			return help(table);
		if (c == VERSION) {
			printf("%s %s (%s)\n", pp_program_name(), PP_VERSION, PP_COMMIT);
			return 0;
		}
		if (c == ':')
			return pp_usage_error(table->command, "an argument is missing after", argv[optind - 1]);
		if (c == '?')
			return pp_usage_error(table->command, "there is no option", argv[optind - 1]);
		status = table->take(ctx, c, optarg);
	}
	return status;
}
