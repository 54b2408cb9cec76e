/* SPDX-License-Identifier: MIT
 *
 * `plugpull identify`: argv[0] is the command's own name; returns the exit status (0 identified,
 * 2 not).
 */
#ifndef PP_CLI_CMD_IDENTIFY_H
#define PP_CLI_CMD_IDENTIFY_H

int pp_cmd_identify(int argc, char **argv);

#endif
