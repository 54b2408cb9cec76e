/* SPDX-License-Identifier: MIT
 *
 * `plugpull agent`, `plugpull-dut agent`: argv[0] is the command's own name; returns the exit status
 * (0 ended when asked to, 2 could not run).
 */
#ifndef PP_CLI_CMD_AGENT_H
#define PP_CLI_CMD_AGENT_H

int pp_cmd_agent(int argc, char **argv);

#endif
