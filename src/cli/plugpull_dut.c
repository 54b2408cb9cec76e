/* SPDX-License-Identifier: MIT
 *
 * plugpull-dut: what the machine under test needs, small and static.
 */
#include "cmd_agent.h"
#include "cmd_hand.h"
#include "cmd_matrix.h"
#include "cmd_policy.h"
#include "command.h"
#include "dut_identify.h"

static const struct pp_command commands[] = {
	{ "agent", "do what the control host orders, on allowed targets", pp_cmd_agent },
	{ "write", "write until a person pulls the plug", pp_cmd_write },
	{ "verify", "after it was put back: show what survived", pp_cmd_verify },
	{ "identify", "what drive is beneath a path, and what can be trusted of it", pp_dut_identify },
	{ "policy", "the write cache of a drive: show, set, put back", pp_cmd_policy },
	{ "matrix", "how fast each way to make a write durable is here", pp_cmd_matrix },
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
