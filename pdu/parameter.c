/* SPDX-License-Identifier: MIT */
#include "parameter.h"

#include <stdio.h>
#include <string.h>

/* {n} and the others of template.h are taken. */
static const char *const taken[] = { "n", "id", "host", "target", "secs", "ms", "ds", "user",
	"password", "token" };

static int check_value(const char *name, const char *value, struct pp_error *err)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";

	if (!*value || strlen(value) >= sizeof(((struct pp_parameters *)0)->item[0].value) ||
	    value[strspn(value, good)] || value[0] == '-' || strstr(value, ".."))
		return pp_fail(err, PP_ERR_USAGE, "parameter %s is '%.200s', expected letters, digits and "
			"-._~/ only, no '-' first and no '..'", name, value);
	return 0;
}

int pp_parameters_declare(struct pp_parameters *parameters, const char *name, const char *value,
	struct pp_error *err)
{
	size_t bytes = strlen(name);

	if (bytes < 2 || bytes >= PP_PARAMETER_NAME_BYTES ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyz") != bytes)
		return pp_fail(err, PP_ERR_USAGE, "'%.64s' is no name of a parameter: 2 to %d small letters",
			name, PP_PARAMETER_NAME_BYTES - 1);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (strcmp(taken[i], name) == 0)
			return pp_fail(err, PP_ERR_USAGE, "{%s} has a meaning of its own", name);
	if (pp_parameters_find(parameters, name) || parameters->count == PP_PARAMETERS_MAX)
		return pp_fail(err, PP_ERR_USAGE, "parameter '%s' is there twice, or there are more than "
			"%d", name, PP_PARAMETERS_MAX);
	if (check_value(name, value, err) != 0)
		return -1;
	snprintf(parameters->item[parameters->count].name, PP_PARAMETER_NAME_BYTES, "%s", name);
	snprintf(parameters->item[parameters->count].value, sizeof(parameters->item[0].value), "%s",
		value);
	parameters->count++;
	return 0;
}

static int set_one(struct pp_parameters *parameters, const char *text, struct pp_error *err)
{
	const char *equals = strchr(text, '=');

	for (int i = 0; equals && i < parameters->count; i++) {
		size_t bytes = strlen(parameters->item[i].name);
		const char *value = equals + 1 + strspn(equals + 1, " ");

		if (strncmp(parameters->item[i].name, text, bytes) != 0 ||
		    text + bytes + strspn(text + bytes, " ") != equals)
			continue;
		if (check_value(parameters->item[i].name, value, err) != 0)
			return -1;
		snprintf(parameters->item[i].value, sizeof(parameters->item[i].value), "%s", value);
		return 0;
	}
	return equals ? pp_fail(err, PP_ERR_USAGE, "the profile has no parameter '%.*s'",
		(int)strcspn(text, " ="), text) :
		pp_fail(err, PP_ERR_USAGE, "'%.100s' is not NAME=VALUE", text);
}

int pp_parameters_set(struct pp_parameters *parameters, const char *text, struct pp_error *err)
{
	char one[256];

	for (;;) {
		size_t bytes = strcspn(text, ","), end = bytes;
		size_t begin = strspn(text, " ");

		while (end > begin && text[end - 1] == ' ')
			end--;
		if (begin >= end || end - begin >= sizeof(one))
			return pp_fail(err, PP_ERR_USAGE, "'%.100s' is not NAME=VALUE, NAME=VALUE", text);
		memcpy(one, text + begin, end - begin);
		one[end - begin] = '\0';
		if (set_one(parameters, one, err) != 0)
			return -1;
		if (!text[bytes])
			return 0;
		text += bytes + 1;
	}
}

const char *pp_parameters_find(const struct pp_parameters *parameters, const char *name)
{
	for (int i = 0; parameters && i < parameters->count; i++)
		if (strcmp(parameters->item[i].name, name) == 0)
			return parameters->item[i].value;
	return NULL;
}
