/* SPDX-License-Identifier: MIT
 *
 * What a device's answer means: JSON pointers (RFC 6901, plus / alone for the whole document, and [KEY=VALUE] for the array element
 * whose member says so, because an outlet must be found by its own id and never by position),
 * assertions, and the map from values to states. A value that the profile does not name, a missing
 * one, and anything that is not the document it should be, is unknown.
 */
#ifndef PP_PDU_ANSWER_H
#define PP_PDU_ANSWER_H

#include "profile.h"
#include "template.h"
#include "transport.h"

struct pp_answer; /* the parsed body */

struct pp_answer *pp_answer_parse(const struct pp_buf *body); /* never NULL but out of memory */
void pp_answer_free(struct pp_answer *answer);

/* The scalar at the first of the "|"-separated pointers that exists, as text: true, 12.5, On. NULL if
 * there is none (or it is null, an object or array). Owned by the answer until the next call. */
const char *pp_answer_text(struct pp_answer *answer, const char *pointers,
	const struct pp_values *values);
/* The same as a finite number. */
bool pp_answer_number(struct pp_answer *answer, const char *pointers,
	const struct pp_values *values, double *number);

/* 0 if the status is on the list and each assertion holds; else -1 (PP_ERR_PEER) and why. */
int pp_answer_check(struct pp_answer *answer, const struct pp_profile_request *request, int status,
	const struct pp_values *values, struct pp_error *err);

enum pp_pdu_state pp_answer_state(struct pp_answer *answer, const struct pp_profile *profile,
	const struct pp_values *values);

/* Group 1 of an extended regular expression in the text of the answer into out; false: no match. */
bool pp_answer_match(struct pp_answer *answer, const char *pattern, char *out, size_t bytes);

#endif
