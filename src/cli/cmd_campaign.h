/* SPDX-License-Identifier: MIT
 *
 * plugpull campaign: see cmd_campaign.c.
 */
#ifndef PP_CLI_CMD_CAMPAIGN_H
#define PP_CLI_CMD_CAMPAIGN_H

int pp_cmd_campaign(int argc, char **argv);

#endif
