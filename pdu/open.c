/* SPDX-License-Identifier: MIT
 *
 * Opening: profile, credentials, defaults, names of device and outlets. Nothing is sent.
 */
#include "pdu.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec.h"
#include "guard_wire.h"
#include "http.h"
#include "internal.h"
#include "limits.h"
#include "snmp.h"

#define DC_MIN_OFF_MS 30000

static int64_t or_default(int64_t given, int64_t fallback)
{
	return given ? given : fallback;
}

/* A file's name must mean the same to the guard and to recovery, wherever those run. */
static char *absolute(const char *path)
{
	char *real = realpath(path, NULL);

	return real ? real : strdup(path);
}

static bool is_path(const char *profile)
{
	size_t bytes = strlen(profile);

	return strchr(profile, '/') || (bytes > 4 && strcmp(profile + bytes - 4, ".ini") == 0);
}

static int copy_strings(struct pp_pdu *pdu, const struct pp_pdu_config *from, struct pp_error *err)
{
	struct pp_pdu_config *to = &pdu->config;
	const struct {
		const char *from, **to;
		bool file;
	} copies[] = {
		{ from->profile, &to->profile, is_path(from->profile) },
		{ from->url, &to->url, false },
		{ from->parameters, &to->parameters, false },
		{ from->identity, &to->identity, false },
		{ from->label, &to->label, false },
		{ from->credentials_file, &to->credentials_file, true },
		{ from->ca_file, &to->ca_file, true },
		{ from->pin, &to->pin, false },
		{ from->dut_host, &to->dut_host, false },
		{ from->wake, &to->wake, false },
	};
	bool good = true;

	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++)
		*copies[i].to = NULL;
	memset(to->outlets, 0, sizeof(to->outlets));
	to->state_dir = pdu->state_dir;
	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
		if (!copies[i].from)
			continue;
		*copies[i].to = copies[i].file ? absolute(copies[i].from) : strdup(copies[i].from);
		good = good && *copies[i].to;
	}
	for (int i = 0; i < from->outlet_count; i++) {
		to->outlets[i] = strdup(from->outlets[i] ? from->outlets[i] : "");
		good = good && to->outlets[i];
	}
	return good ? 0 : pp_fail(err, PP_ERR_SYSTEM, "out of memory");
}

static void set_defaults(struct pp_pdu_config *config, const struct pp_profile *profile)
{
	config->min_off_ms = or_default(config->min_off_ms, 10000);
	/* A BMC that is told "on" too early drops it, and rails that are still up have cut nothing. */
	if (profile->cuts == PP_PDU_CUTS_DC && config->min_off_ms > 0 &&
	    config->min_off_ms < DC_MIN_OFF_MS)
		config->min_off_ms = DC_MIN_OFF_MS;
	config->min_on_ms = or_default(config->min_on_ms, 60000);
	if (!config->cycles_per_hour_max)
		config->cycles_per_hour_max = 30;
	config->connect_timeout_ms = or_default(config->connect_timeout_ms, 3000);
	config->request_timeout_ms = or_default(config->request_timeout_ms, 10000);
	config->verify_timeout_ms =
		or_default(config->verify_timeout_ms, profile->verify_timeout_ms);
	config->settle_ms = or_default(config->settle_ms, profile->settle_ms);
	config->poll_ms = or_default(config->poll_ms, 500);
	config->stagger_ms = or_default(config->stagger_ms, profile->stagger_ms);
	config->watts_period_ms = or_default(config->watts_period_ms, profile->watts_period_ms);
	config->watts_stale_ms = or_default(config->watts_stale_ms, profile->watts_stale_ms);
	if (config->watts_off_max <= 0)
		config->watts_off_max = 1.0;
}

static int check_outlets(struct pp_pdu *pdu, struct pp_error *err)
{
	const struct pp_pdu_config *config = &pdu->config;

	if (config->outlet_count < 1 || config->outlet_count > PP_PDU_OUTLETS_MAX)
		return pp_fail(err, PP_ERR_USAGE, "name the outlet (1 to %d of them)",
			PP_PDU_OUTLETS_MAX);
	for (int i = 0; i < config->outlet_count; i++) {
		const char *outlet = config->outlets[i];

		if (!*outlet || strlen(outlet) > 127)
			return pp_fail(err, PP_ERR_USAGE, "the outlet's name is empty or too long");
		for (const char *c = outlet; *c; c++)
			if (iscntrl((unsigned char)*c))
				return pp_fail(err, PP_ERR_USAGE, "control character in an outlet");
		if (regexec(&pdu->profile->outlet_regex, outlet, 0, NULL, 0) != 0)
			return pp_fail(err, PP_ERR_USAGE, "'%s' is not an outlet of a '%s' (%s); "
				"one outlet each, no ranges", outlet, pdu->profile->name,
				pdu->profile->outlet);
		for (int j = 0; j < i; j++)
			if (strcmp(config->outlets[j], outlet) == 0)
				return pp_fail(err, PP_ERR_USAGE, "outlet '%s' is named twice",
					outlet);
	}
	if (config->label && config->outlet_count != 1)
		return pp_fail(err, PP_ERR_USAGE, "a label can be expected of one outlet only");
	if (config->label && !pdu->profile->label.given)
		return pp_fail(err, PP_ERR_USAGE, "profile '%s' cannot read labels",
			pdu->profile->name);
	if (config->identity && !pdu->profile->identity.given)
		return pp_fail(err, PP_ERR_USAGE, "profile '%s' cannot read who the device is",
			pdu->profile->name);
	return 0;
}

static int check_device_restore(struct pp_pdu *pdu, struct pp_error *err)
{
	const struct pp_profile *profile = pdu->profile;
	int64_t unit_ms, units;

	if (!pdu->config.device_restore_ms || !profile->timed_off.given)
		return 0;
	unit_ms = strcmp(profile->timed_unit, "s") == 0 ? 1000 :
		strcmp(profile->timed_unit, "ds") == 0 ? 100 : 1;
	units = (pdu->config.device_restore_ms + unit_ms - 1) / unit_ms;
	if (units < profile->timed_min || units > profile->timed_max)
		return pp_fail(err, PP_ERR_USAGE, "profile '%s' restores after %lld to %lld %s only",
			profile->name, (long long)profile->timed_min, (long long)profile->timed_max,
			profile->timed_unit);
	return 0;
}

static int open_transport(struct pp_pdu *pdu, const struct pp_pdu_config *given,
	struct pp_error *err)
{
	const struct pp_pdu_config *config = &pdu->config;

	static const struct pp_pdu_transport *const transports[] = { &pp_http_transport,
		&pp_exec_transport, &pp_snmp_transport };

	pdu->transport = given->transport ? given->transport :
		transports[pdu->profile->transport];
	if (given->transport) {
		pdu->self = given->transport_arg;
		return 0;
	}
	if (pdu->profile->transport == PP_TRANSPORT_SNMP) {
		pdu->self = pp_snmp_open(pdu->host_key, pdu->profile, &pdu->credentials,
			config->request_timeout_ms, err);
		return pdu->self ? 0 : -1;
	}
	if (pdu->profile->transport == PP_TRANSPORT_EXEC) {
		pdu->self = pp_exec_open(config->request_timeout_ms, &pdu->credentials, err);
		return pdu->self ? 0 : -1;
	}
	pdu->self = pp_http_open(&(struct pp_http_config){
		.url = config->url, .auth = pdu->profile->auth, .credentials = &pdu->credentials,
		.ca_file = config->ca_file, .pin = config->pin, .insecure = config->insecure,
		.connect_timeout_ms = config->connect_timeout_ms,
		.request_timeout_ms = config->request_timeout_ms }, err);
	return pdu->self ? 0 : -1;
}

static int name_device(struct pp_pdu *pdu, struct pp_error *err)
{
	const char *url = pdu->config.url;

	if (pdu->profile->transport == PP_TRANSPORT_EXEC) {
		snprintf(pdu->host_key, sizeof(pdu->host_key), "%s:%s", pdu->profile->name,
			url ? url : "");
		snprintf(pdu->host, sizeof(pdu->host), "%s", url ? url : "");
		if (pdu->host[0] == '-')
			return pp_fail(err, PP_ERR_USAGE, "a host must not begin with '-'");
		return 0;
	}
	if (!url)
		return pp_fail(err, PP_ERR_USAGE, "the power switch has no URL");
	if ((pdu->profile->transport == PP_TRANSPORT_SNMP ? pp_snmp_host_key : pp_http_host_key)(url,
	    pdu->host_key, sizeof(pdu->host_key), err) != 0)
		return -1;
	snprintf(pdu->host, sizeof(pdu->host), "%s", pdu->host_key);
	if (strrchr(pdu->host, ':'))
		*strrchr(pdu->host, ':') = '\0';
	return 0;
}

struct pp_pdu *pp_pdu_open(const struct pp_pdu_config *config, struct pp_error *err)
{
	struct pp_pdu *pdu = calloc(1, sizeof(*pdu));

	if (!pdu) {
		pp_fail(err, PP_ERR_SYSTEM, "out of memory");
		return NULL;
	}
	pdu->lock_fd = pdu->identity_lock_fd = -1;
	pdu->config = *config;
	pdu->config.outlet_count = config->outlet_count > PP_PDU_OUTLETS_MAX ? 0 :
		config->outlet_count;
	if (!config->profile) {
		pdu->config = (struct pp_pdu_config){ 0 };
		pp_fail(err, PP_ERR_USAGE, "the power switch has no profile");
		goto undo;
	}
	if (copy_strings(pdu, config, err) != 0 ||
	    !(pdu->profile = pp_profile_load(pdu->config.profile, err)))
		goto undo;
	set_defaults(&pdu->config, pdu->profile);
	if (config->parameters &&
	    pp_parameters_set(&pdu->profile->parameters, config->parameters, err) != 0)
		goto undo;
	if ((config->wake && pp_wake_check(config->wake, err) != 0) ||
	    check_outlets(pdu, err) != 0 || check_device_restore(pdu, err) != 0 ||
	    name_device(pdu, err) != 0 ||
	    pp_credentials_load(&pdu->credentials, pdu->config.credentials_file,
		pdu->profile->auth_user, err) != 0 ||
	    open_transport(pdu, config, err) != 0)
		goto undo;
	if (config->no_journal)
		return pdu;
	if (pp_state_dir(config->state_dir, pdu->state_dir, sizeof(pdu->state_dir), err) != 0 ||
	    (pdu->lock_fd = pp_state_lock_open(pdu->state_dir, pdu->host_key, err)) < 0)
		goto undo;
	return pdu;
undo:
	pp_pdu_close(pdu);
	return NULL;
}

void pp_pdu_close(struct pp_pdu *pdu)
{
	struct pp_pdu_config *config;

	if (!pdu)
		return;
	config = &pdu->config;
	if (pdu->transport && pdu->transport->close && pdu->self)
		pdu->transport->close(pdu->self);
	if (pdu->lock_fd >= 0)
		close(pdu->lock_fd);
	if (pdu->identity_lock_fd >= 0)
		close(pdu->identity_lock_fd);
	for (int i = 0; i < PP_PDU_OUTLETS_MAX; i++) {
		free((void *)config->outlets[i]);
		free(pdu->target[i]);
	}
	free((void *)config->profile);
	free((void *)config->url);
	free((void *)config->parameters);
	free((void *)config->identity);
	free((void *)config->label);
	free((void *)config->credentials_file);
	free((void *)config->ca_file);
	free((void *)config->pin);
	free((void *)config->dut_host);
	free((void *)config->wake);
	pp_profile_free(pdu->profile);
	pp_credentials_wipe(&pdu->credentials);
	free(pdu);
}

enum pp_pdu_cuts pp_pdu_cuts(const struct pp_pdu *pdu)
{
	return pdu->profile->cuts;
}

bool pp_pdu_can_verify(const struct pp_pdu *pdu)
{
	return pdu->profile->status.given;
}

bool pp_pdu_has_watts(const struct pp_pdu *pdu)
{
	return pdu->profile->status_watts || pdu->profile->watts.given;
}

bool pp_pdu_has_device_restore(const struct pp_pdu *pdu)
{
	return pdu->profile->timed_off.given;
}

const char *pp_pdu_profile_name(const struct pp_pdu *pdu)
{
	return pdu->profile->name;
}

const char *pp_pdu_state_dir(const struct pp_pdu *pdu)
{
	return pdu->state_dir;
}

const char *pp_pdu_host_key(const struct pp_pdu *pdu)
{
	return pdu->host_key;
}

void pp_pdu_effective_config(const struct pp_pdu *pdu, struct pp_pdu_config *config)
{
	*config = pdu->config;
	config->record = NULL;
	config->record_arg = NULL;
	config->transport = NULL;
	config->transport_arg = NULL;
}
