/* SPDX-License-Identifier: MIT
 *
 * plugpull-dut identify: the text of plugpull identify, without JSON, plans and recorded machines.
 */
#ifndef PP_CLI_DUT_IDENTIFY_H
#define PP_CLI_DUT_IDENTIFY_H

int pp_dut_identify(int argc, char **argv);

#endif
