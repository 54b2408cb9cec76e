/* SPDX-License-Identifier: MIT
 *
 * `write` and `verify`: the machine's end where a person pulls the plug. Both are the agent under the
 * name of what it is there for, before the plug is pulled and after. Exit status of `agent`.
 */
#ifndef PP_CLI_CMD_HAND_H
#define PP_CLI_CMD_HAND_H

int pp_cmd_write(int argc, char **argv);
int pp_cmd_verify(int argc, char **argv);

#endif
