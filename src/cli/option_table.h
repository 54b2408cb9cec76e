/* SPDX-License-Identifier: MIT
 *
 * A command's table of long options: it drives getopt, --help and what is said of a wrong call.
 */
#ifndef PP_CLI_OPTION_TABLE_H
#define PP_CLI_OPTION_TABLE_H

#include <stddef.h>

#define PP_OPTION_ROWS_MAX 16

struct pp_option_row {
	const char *name;     /* without its dashes */
	int letter;
	const char *argument; /* as --help shows it; NULL: takes none */
	const char *help;
};

/* --help and --version need no row. */
struct pp_option_table {
	const char *command;  /* "identify" */
	const char *usage;    /* the first lines of --help, with their newlines */
	const char *status;   /* its last: the exit status */
	int columns;          /* of option and argument in --help */
	const struct pp_option_row *rows;
	size_t count;         /* at most PP_OPTION_ROWS_MAX */
	int (*take)(void *ctx, int letter, const char *argument); /* -1: go on; else the exit status */
};

/* -1: go on, at the first word that is no option, optind; else the exit status, and all is said. */
int pp_option_table_read(const struct pp_option_table *table, int argc, char **argv, void *ctx);

/* Says what is wrong with the call, with a hint; subject may be NULL. Returns 2. */
int pp_usage_error(const char *command, const char *what, const char *subject);

#endif
