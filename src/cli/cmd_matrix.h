/* SPDX-License-Identifier: MIT
 *
 * `plugpull matrix`: argv[0] is the command's own name; returns the exit status (0 measured, 2 not).
 */
#ifndef PP_CLI_CMD_MATRIX_H
#define PP_CLI_CMD_MATRIX_H

int pp_cmd_matrix(int argc, char **argv);

#endif
