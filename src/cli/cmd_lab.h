/* SPDX-License-Identifier: MIT
 *
 * `plugpull lab`: argv[0] is the command's own name; returns the exit status (0 served and closed,
 * 2 could not).
 */
#ifndef PP_CLI_CMD_LAB_H
#define PP_CLI_CMD_LAB_H

int pp_cmd_lab(int argc, char **argv);

#endif
