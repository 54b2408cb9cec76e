/* SPDX-License-Identifier: MIT
 *
 * plugpull judge and plugpull report: see cmd_judge.c.
 */
#ifndef PP_CLI_CMD_JUDGE_H
#define PP_CLI_CMD_JUDGE_H

int pp_cmd_judge(int argc, char **argv);
int pp_cmd_report(int argc, char **argv);

#endif
