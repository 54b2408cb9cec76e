/* SPDX-License-Identifier: MIT
 *
 * `plugpull simulate`: argv[0] is the command's own name; returns the exit status: 0 the judge said
 * what is true of every cut, 1 it did not, 2 could not run.
 */
#ifndef PP_CLI_CMD_SIMULATE_H
#define PP_CLI_CMD_SIMULATE_H

int pp_cmd_simulate(int argc, char **argv);

#endif
