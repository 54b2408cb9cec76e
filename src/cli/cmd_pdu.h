/* SPDX-License-Identifier: MIT
 *
 * `plugpull pdu ...`; argv[0] is "pdu". Returns the exit status.
 */
#ifndef PP_CLI_CMD_PDU_H
#define PP_CLI_CMD_PDU_H

int pp_cmd_pdu(int argc, char **argv);

#endif
