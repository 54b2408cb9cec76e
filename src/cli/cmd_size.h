/* SPDX-License-Identifier: MIT
 *
 * `plugpull size`: argv[0] is the command's own name; returns the exit status (0 printed, 2 not).
 */
#ifndef PP_CLI_CMD_SIZE_H
#define PP_CLI_CMD_SIZE_H

int pp_cmd_size(int argc, char **argv);

#endif
