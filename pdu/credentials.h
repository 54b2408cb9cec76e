/* SPDX-License-Identifier: MIT
 *
 * User name, password and token of a power switch; the community, or the pass phrases and protocols,
 * of one that speaks SNMP. They come from a file that only its owner can read, or else from the
 * environment (PLUGPULL_PDU_USER, PLUGPULL_PDU_PASSWORD, ...); never from a command line, plan or
 * profile. A process that has loaded one leaves no core dump and cannot be traced by others. Whatever is written anywhere passes pp_credentials_redact().
 */
#ifndef PP_PDU_CREDENTIALS_H
#define PP_PDU_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>

#include "src/core/error.h"

struct pp_credentials {
	char user[128], password[256], token[1024]; /* "" where not given */
	char community[128], privacy_password[256]; /* SNMP: version 2c or 1; version 3 */
	char auth[16], privacy[16]; /* SNMPv3: "SHA", "AES"; "" for those */
	char basic[600]; /* base64 of user:password, to be redacted too */
};

/* path NULL: from the environment. user: the profile's default name, or NULL. A file that group or
 * others can read is refused. */
int pp_credentials_load(struct pp_credentials *credentials, const char *path, const char *user,
	struct pp_error *err);

/* Overwrites each secret in text by asterisks, and what follows "Authorization:", "password=",
 * "pass=", "pwd=", "user=", "token=". In place; the length stays. */
void pp_credentials_redact(const struct pp_credentials *credentials, char *text);

/* Overwrites the struct so that no core dump after it holds a secret. */
void pp_credentials_wipe(struct pp_credentials *credentials);

#endif
