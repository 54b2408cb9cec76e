/* SPDX-License-Identifier: MIT
 *
 * plugpull compare: see cmd_compare.c.
 */
#ifndef PP_CLI_CMD_COMPARE_H
#define PP_CLI_CMD_COMPARE_H

int pp_cmd_compare(int argc, char **argv);

#endif
