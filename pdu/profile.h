/* SPDX-License-Identifier: MIT
 *
 * A device as data: how one family of power switches is told and asked, read from an INI file
 * (docs/pdu.md is the reference, pdu/profiles the examples). A key or unit that is not known, a key
 * given twice and anything that looks like a password is an error that names file:line.
 * Nothing here talks to a device.
 */
#ifndef PP_PDU_PROFILE_H
#define PP_PDU_PROFILE_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parameter.h"
#include "pdu.h"

#define PP_PROFILE_LIST_MAX   16
#define PP_PROFILE_CHECKS_MAX 8

enum pp_profile_transport { PP_TRANSPORT_HTTP, PP_TRANSPORT_EXEC, PP_TRANSPORT_SNMP };
enum pp_profile_auth { PP_AUTH_NONE, PP_AUTH_BASIC, PP_AUTH_DIGEST, PP_AUTH_BEARER };

struct pp_profile_list {
	char *item[PP_PROFILE_LIST_MAX];
	int count;
};

/* One request, still with its {substitutions}; see template.h. */
struct pp_profile_request {
	bool given;
	char *method; /* GET unless said */
	char *path;
	char *body;
	struct pp_profile_list header;
	struct pp_profile_list status; /* exact HTTP codes (200) */
	struct pp_profile_list expect; /* "/pointer value|value", "/pointer? value": may be absent */
	struct pp_profile_list forbid; /* "/pointer": must be absent or null */
	char *expect_text; /* extended regex that the whole answer must match */
	char *forbid_text;
	char *argv;   /* exec: words, '...' and "..." group, no shell */
	struct pp_profile_list input; /* exec: lines of standard input */
	struct pp_profile_list exits; /* exec: exit statuses that are good (0); kept in status */
	char *oid;    /* SNMP: what is read or set */
	char *set;    /* SNMP: the integer that is written */
};

struct pp_profile_check {
	char *name;
	char *why; /* what to tell the person */
	struct pp_profile_request request;
};

struct pp_profile {
	char *path; /* the file it came from */
	char *name, *title;
	struct pp_profile_list notes;
	enum pp_profile_transport transport;
	struct pp_profile_list sys_object; /* SNMP: what sysObjectID must begin with */
	int64_t snmp_version; /* with a community: 2 (2c) or 1 */
	enum pp_pdu_cuts cuts;
	enum pp_profile_auth auth;
	char *auth_user; /* the user name when the credentials give none */
	char *outlet;    /* extended regex for what the person writes */
	regex_t outlet_regex;
	bool outlet_regex_ready;
	int64_t index_base; /* the lowest number printed on the case */
	int64_t settle_ms, verify_timeout_ms, stagger_ms;

	struct pp_parameters parameters;

	struct pp_profile_request off, on, status, identity, label, watts, timed_off, target;

	char *state;         /* JSON pointers, "|" between alternatives */
	char *state_regex;   /* or: group 1 of this, in the text of the answer */
	struct pp_profile_list state_on, state_off, state_pending;
	struct pp_profile_list pending_if; /* "/pointer value": pending, whatever the state says */
	char *status_watts, *watts_watts;
	int64_t watts_period_ms; /* how long the meter needs for a new sample */
	int64_t watts_stale_ms;  /* how long after a command its figure means nothing */
	char *identity_id, *identity_model, *identity_regex, *label_label;
	char *target_target;
	char *timed_unit;    /* "s", "ms" or "ds" */
	int64_t timed_min, timed_max;

	struct pp_profile_check check[PP_PROFILE_CHECKS_MAX];
	int check_count;
};

/* name: a profile's name or, if it contains '/' or ends in ".ini", a path. NULL on failure. */
struct pp_profile *pp_profile_load(const char *name, struct pp_error *err);
/* The same from memory; file is for messages. */
struct pp_profile *pp_profile_parse(const char *file, const char *text, size_t bytes,
	struct pp_error *err);
void pp_profile_free(struct pp_profile *profile);

/* Calls found() with the path of each profile on the search path, sorted by name, the first of a
 * name wins. Returns how many. */
int pp_profile_each(void (*found)(void *arg, const char *name, const char *path), void *arg);

#endif
