/* SPDX-License-Identifier: MIT
 *
 * Fills the {substitutions} of a profile's request: {n} the outlet as the person wrote it, {n0} its
 * distance from the lowest number on the case, {n1} one more than it says, {id} the same text as {n}, {host}, {target} (a path
 * the device itself gave), {secs} {ms} {ds} a time, and the profile's own parameters (parameter.h). Each value is escaped for the place it lands
 * in, so that no outlet name can add a parameter, a header or a JSON member. {user} may stand in a
 * program's words and input, {password} and {token} in its input only: nobody can read that.
 */
#ifndef PP_PDU_TEMPLATE_H
#define PP_PDU_TEMPLATE_H

#include "credentials.h"
#include "profile.h"
#include "transport.h"

enum pp_place { PP_PLACE_PATH, PP_PLACE_JSON, PP_PLACE_FORM, PP_PLACE_POINTER, PP_PLACE_RAW,
	PP_PLACE_ARGV, PP_PLACE_INPUT };

struct pp_values {
	const char *outlet; /* may be NULL: {n}, {n0}, {id} are then errors */
	int64_t index_base;
	const char *host;
	const char *target;
	int64_t time_ms;    /* < 0: {secs} {ms} {ds} are errors */
	const struct pp_parameters *parameters; /* of the profile; may be NULL */
	const struct pp_credentials *credentials; /* NULL: {user}, {password}, {token} are errors */
};

/* Appends text, filled, to out. A '{' that begins no known name stands for itself (JSON has many). */
int pp_template_fill(struct pp_buf *out, const char *text, enum pp_place place,
	const struct pp_values *values, struct pp_error *err);

/* request->what and ->outlet are the caller's. Release with pp_request_release in any case. */
int pp_template_request(struct pp_pdu_request *request, const struct pp_profile_request *from,
	const struct pp_values *values, struct pp_error *err);
void pp_request_release(struct pp_pdu_request *request);

#endif
