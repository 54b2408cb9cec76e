/* SPDX-License-Identifier: MIT
 *
 * `plugpull listen`: a campaign where a person pulls the plug, without a plan to write. Exit status of
 * `campaign`.
 */
#ifndef PP_CLI_CMD_LISTEN_H
#define PP_CLI_CMD_LISTEN_H

int pp_cmd_listen(int argc, char **argv);

#endif
