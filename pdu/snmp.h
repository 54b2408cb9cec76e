/* SPDX-License-Identifier: MIT
 *
 * A power switch that speaks SNMP, by net-snmp's library where the build had it. One GET or SET of
 * one integer a request; the answer is given on as JSON, {"oid": ..., "value": ...}, or
 * {"error": ...} where the agent refused, so that the profile's own rules judge it. Before a SET and
 * at the first GET the device's sysObjectID is read and must begin with what the profile is for: the
 * same numbers mean off on one device and on for its neighbour in the catalogue.
 *
 * Version 2c (or 1) with a community; version 3 with user and password. All come from the
 * credentials, none from a command line; no configuration file of net-snmp is read. Nothing is sent
 * twice: a lost answer to a SET is for the state to decide.
 */
#ifndef PP_PDU_SNMP_H
#define PP_PDU_SNMP_H

#include "credentials.h"
#include "profile.h"
#include "transport.h"

extern const struct pp_pdu_transport pp_snmp_transport;

/* peer is "host:port" (pp_snmp_host_key). NULL: PP_ERR_UNSUPPORTED where the build has no net-snmp. */
void *pp_snmp_open(const char *peer, const struct pp_profile *profile,
	const struct pp_credentials *credentials, int64_t timeout_ms, struct pp_error *err);

/* "host:161" of "snmp://HOST[:PORT]" or "HOST[:PORT]": names the device's lock. */
int pp_snmp_host_key(const char *url, char *out, size_t bytes, struct pp_error *err);

#endif
