/* SPDX-License-Identifier: MIT
 *
 * What differs between two devices of one kind and is neither outlet nor address: which of the PDUs
 * behind a Redfish service, which host name of a pdudaemon. A profile names its parameters with the
 * values that most people need ([parameters] NAME = VALUE), a person gives others, and {NAME} stands
 * for the value in the profile's requests. A value is letters, digits and -._~/ only, so that it can
 * stand in a path as it is and can nowhere become more than it is.
 */
#ifndef PP_PDU_PARAMETER_H
#define PP_PDU_PARAMETER_H

#include "src/core/error.h"

#define PP_PARAMETERS_MAX       8
#define PP_PARAMETER_NAME_BYTES 10

struct pp_parameters {
	struct {
		char name[PP_PARAMETER_NAME_BYTES], value[200];
	} item[PP_PARAMETERS_MAX];
	int count;
};

/* One of a profile. Fails on a name or value that cannot be, twice the same, too many. */
int pp_parameters_declare(struct pp_parameters *parameters, const char *name, const char *value,
	struct pp_error *err);
/* "NAME=VALUE, NAME=VALUE": other values for declared ones. */
int pp_parameters_set(struct pp_parameters *parameters, const char *text, struct pp_error *err);
/* NULL: none of this name. parameters may be NULL. */
const char *pp_parameters_find(const struct pp_parameters *parameters, const char *name);

#endif
