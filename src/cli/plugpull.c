/* SPDX-License-Identifier: MIT
 *
 * plugpull: the whole tool, on the host that keeps its power.
 */
#include "cmd_agent.h"
#include "cmd_assess.h"
#include "cmd_campaign.h"
#include "cmd_compare.h"
#include "cmd_hand.h"
#include "cmd_identify.h"
#include "cmd_judge.h"
#include "cmd_key.h"
#include "cmd_lab.h"
#include "cmd_listen.h"
#include "cmd_matrix.h"
#include "cmd_pdu.h"
#include "cmd_policy.h"
#include "cmd_simulate.h"
#include "cmd_size.h"
#include "command.h"

static const struct pp_command commands[] = {
	{ "campaign", "cut the power of a machine until every arm has its verdict", pp_cmd_campaign },
	{ "judge", "the verdict again, from the evidence alone", pp_cmd_judge },
	{ "report", "what one or more campaigns found, as table, JSON or CSV", pp_cmd_report },
	{ "compare", "does one of two campaigns or arms lose more often than the other", pp_cmd_compare },
	{ "matrix", "the speed of each way to make a write durable here", pp_cmd_matrix },
	{ "assess", "which figures of a speed matrix are not plausible", pp_cmd_assess },
	{ "identify", "what drive is beneath a path, and what can be trusted of it", pp_cmd_identify },
	{ "policy", "the write cache of a drive: show, set, put back", pp_cmd_policy },
	{ "pdu", "the power switch by itself: on, off, cycle, status, ...", pp_cmd_pdu },
	{ "agent", "the machine under test's end of a campaign", pp_cmd_agent },
	{ "listen", "the same where a person pulls the plug: says when, and judges", pp_cmd_listen },
	{ "write", "the machine's end of that: write until the plug is pulled", pp_cmd_write },
	{ "verify", "and after it was put back: show what survived", pp_cmd_verify },
	{ "key", "make a key that control host and agent share", pp_cmd_key },
	{ "size", "how many cuts a criterion needs, and how many hours", pp_cmd_size },
	{ "lab", "a machine with drives and a power switch on this computer", pp_cmd_lab },
	{ "simulate", "power cuts in memory, by the thousand, to prove the judge", pp_cmd_simulate },
};

static const struct pp_program program = {
	.name = "plugpull",
	.about = "Proves by real power cuts whether storage keeps what it acknowledged.\n",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
};

int main(int argc, char **argv)
{
	return pp_program_main(&program, argc, argv);
}
