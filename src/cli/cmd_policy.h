/* SPDX-License-Identifier: MIT
 *
 * plugpull policy, plugpull-dut policy: docs/man/plugpull-policy.1.
 */
#ifndef PP_CLI_CMD_POLICY_H
#define PP_CLI_CMD_POLICY_H

int pp_cmd_policy(int argc, char **argv);

#endif
