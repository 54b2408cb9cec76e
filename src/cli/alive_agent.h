/* SPDX-License-Identifier: MIT
 *
 * The agent's own heartbeat as the machine's sign of life (pdu/alive.h), for the power switch's
 * commands: the listener without a campaign.
 */
#ifndef PP_CLI_ALIVE_AGENT_H
#define PP_CLI_ALIVE_AGENT_H

#include "pdu/alive.h"

struct pp_alive_agent;

/* what is KEYFILE[@[ADDRESS:]PORT], port 7333 unless said. NULL on failure. */
struct pp_alive_agent *pp_alive_agent_open(const char *what, struct pp_error *err);
void pp_alive_agent_close(struct pp_alive_agent *agent);

/* For pp_alive_of(): lives while frames come; refuses once its connection was ended or reset, for that
 * took a running machine; unknown where our own side failed; silent otherwise. */
enum pp_alive_answer pp_alive_agent_ask(void *agent, int64_t timeout_ms);
/* For pp_alive_of(): of the agent that connected last. */
const char *pp_alive_agent_boot(void *agent);

#endif
