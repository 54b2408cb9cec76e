/* SPDX-License-Identifier: MIT
 *
 * plugpull-dut: what the machine under test needs, small and static.
 */
#include "cmd_agent.h"
#include "command.h"

static const struct pp_command commands[] = {
	{ "agent", "do what the control host orders, on allowed targets", pp_cmd_agent },
};

static const struct pp_program program = {
	.name = "plugpull-dut",
	.about = "The part of plugpull that runs on the machine whose power is cut.\n",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
};

int main(int argc, char **argv)
{
	return pp_program_main(&program, argc, argv);
}
