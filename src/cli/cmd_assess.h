/* SPDX-License-Identifier: MIT */
#ifndef PP_CLI_CMD_ASSESS_H
#define PP_CLI_CMD_ASSESS_H

/* plugpull assess; argv[0] is the command's own name. Returns the exit status. */
int pp_cmd_assess(int argc, char **argv);

#endif
