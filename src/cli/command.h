/* SPDX-License-Identifier: MIT
 *
 * The one table of commands that each program has: it drives dispatch and --help.
 */
#ifndef PP_CLI_COMMAND_H
#define PP_CLI_COMMAND_H

#include <stddef.h>

/* run gets the command's own name as argv[0] and returns the exit status. */
struct pp_command {
	const char *name;
	const char *summary;   /* of the list in --help: lower case, no full stop */
	int (*run)(int argc, char **argv);
};

struct pp_program {
	const char *name;      /* "plugpull" */
	const char *about;     /* first lines of --help, with their newlines */
	const struct pp_command *commands;
	size_t count;
};

/*
 * What main() returns. --help (also `help`, and `help COMMAND`) and --version go to stdout with 0; a
 * command that is none goes to stderr with 2 and a hint. Names match whole. A standard output that
 * could not be written to makes 2 of any status, since then nobody read the result.
 */
int pp_program_main(const struct pp_program *program, int argc, char **argv);

/* Of the program that runs, for the heads of messages. */
const char *pp_program_name(void);

/* The row of this name; NULL if there is none. */
const struct pp_command *pp_command_find(const struct pp_program *program, const char *name);

#endif
