/* SPDX-License-Identifier: MIT
 *
 * `plugpull key`: argv[0] is the command's own name; returns the exit status (0 made, 2 not).
 */
#ifndef PP_CLI_CMD_KEY_H
#define PP_CLI_CMD_KEY_H

int pp_cmd_key(int argc, char **argv);

#endif
