/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <version.h>

#include "src/core/console.h"

static const char *running = "plugpull";

const char *pp_program_name(void)
{
	return running;
}

const struct pp_command *pp_command_find(const struct pp_program *program, const char *name)
{
	size_t i;

	for (i = 0; i < program->count; i++)
		if (strcmp(program->commands[i].name, name) == 0)
			return &program->commands[i];
	return NULL;
}

static void print_help(const struct pp_program *program)
{
	int width = 0;
	size_t i;

	for (i = 0; i < program->count; i++)
		if ((int)strlen(program->commands[i].name) > width)
			width = (int)strlen(program->commands[i].name);
	printf("Usage: %s COMMAND [OPTION]...\n%s\nCommands:\n", program->name, program->about);
	for (i = 0; i < program->count; i++)
		printf("  %-*s  %s\n", width, program->commands[i].name, program->commands[i].summary);
	printf("\n'%s COMMAND --help' shows a command's own options.\n"
		"      --help     show this\n"
		"      --version  show the version\n", program->name);
}

static int unknown(const struct pp_program *program, const char *name)
{
	fprintf(stderr, "%s: '%s' is no command; try '%s --help'\n", program->name, name,
		program->name);
	return 2;
}

static int help(const struct pp_program *program, const char *name)
{
	const struct pp_command *command = name ? pp_command_find(program, name) : NULL;
	char option[] = "--help", *args[] = { (char *)name, option, NULL };

	if (command)
		return command->run(2, args);
	if (name)
		return unknown(program, name);
	print_help(program);
	return 0;
}

static int dispatch(const struct pp_program *program, int argc, char **argv)
{
	const struct pp_command *command;

	if (argc < 2) {
		fprintf(stderr, "%s: expected a command; try '%s --help'\n", program->name,
			program->name);
		return 2;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
		strcmp(argv[1], "help") == 0)
		return help(program, argv[1][0] == 'h' && argc > 2 ? argv[2] : NULL);
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("%s %s (%s)\n", program->name, PP_VERSION, PP_COMMIT);
		return 0;
	}
	command = pp_command_find(program, argv[1]);
	return command ? command->run(argc - 1, argv + 1) : unknown(program, argv[1]);
}

int pp_program_main(const struct pp_program *program, int argc, char **argv)
{
	int status;

	running = program->name;
	pp_console_begin(&argc, &argv);
	status = dispatch(program, argc, argv);
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "%s: cannot write the result: %s\n", program->name,
		errno ? strerror(errno) : "an earlier write failed");
	return 2;
}
