/* SPDX-License-Identifier: MIT
 *
 * Asking: a request is rendered, sent under the device's lock, recorded, and its answer checked
 * against all that the profile demands. What to do with the answers is in switch.c.
 */
#include "pdu.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "exec.h"
#include "guard_wire.h"
#include "http.h"
#include "internal.h"
#include "limits.h"
#include "snmp.h"
#include "src/core/clock.h"

#define RECORD_TEXT_BYTES 300
#define LOCK_WAIT_MS      30000
#define DC_MIN_OFF_MS     30000

/* ---- opening ------------------------------------------------------------------------------ */

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

const char *pp_pdu_state_name(enum pp_pdu_state state)
{
	static const char *const names[] = { "unknown", "on", "off", "pending" };

	return names[state];
}

const char *pp_pdu_outcome_name(enum pp_pdu_outcome outcome)
{
	static const char *const names[] = {
		"verified", "refused", "failed", "state unknown", "not restored",
	};

	return names[outcome];
}

const char *pp_pdu_cuts_name(enum pp_pdu_cuts cuts)
{
	static const char *const names[] = { "mains", "dc", "slot" };

	return names[cuts];
}

/* ---- records ------------------------------------------------------------------------------ */

json_t *pp_pdu_record_text(struct pp_pdu *pdu, const char *text)
{
	size_t bytes = strlen(text);
	char *copy = strdup(text);
	json_t *json;

	if (!copy)
		return json_null();
	pp_credentials_redact(&pdu->credentials, copy); /* before it is cut, or half would stay */
	if (bytes > RECORD_TEXT_BYTES)
		copy[RECORD_TEXT_BYTES] = '\0';
	for (char *c = copy; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = isspace((unsigned char)*c) ? ' ' : '?';
	json = json_string(copy);
	free(copy);
	return json;
}

void pp_pdu_record(struct pp_pdu *pdu, json_t *json)
{
	char wall[32], *line;

	if (!json)
		return;
	if (pdu->config.record) {
		pp_clock_wall(wall, sizeof(wall));
		json_object_set_new(json, "time", json_string(wall));
		line = json_dumps(json, JSON_COMPACT);
		if (line)
			pdu->config.record(pdu->config.record_arg, line);
		free(line);
	}
	json_decref(json);
}

static void record_request(struct pp_pdu *pdu, const struct pp_ask *ask,
	const struct pp_pdu_request *request, const struct pp_pdu_reply *reply, bool good,
	const struct pp_error *err)
{
	json_t *json;

	if (!pdu->config.record)
		return;
	json = json_pack("{s:s, s:s, s:s, s:I, s:I, s:b}", "event", "request", "what", ask->what,
		"outlet", request->outlet ? request->outlet : "", "t_sent_ns",
		(json_int_t)ask->t_sent_ns, "t_done_ns", (json_int_t)ask->t_done_ns, "accepted",
		good);
	if (json && request->path) {
		json_object_set_new(json, "method", json_string(pdu->profile->transport !=
			PP_TRANSPORT_SNMP ? request->method : request->body ? "SET" : "GET"));
		json_object_set_new(json, "path", pp_pdu_record_text(pdu, request->path));
	}
	if (json && request->body)
		json_object_set_new(json, "body", pp_pdu_record_text(pdu, request->body));
	if (json && request->argv_count)
		json_object_set_new(json, "program", pp_pdu_record_text(pdu, request->argv[0]));
	if (json && ask->answered) {
		json_object_set_new(json, "status", json_integer(reply->status));
		json_object_set_new(json, "answer",
			pp_pdu_record_text(pdu, reply->body.data ? reply->body.data : ""));
	} else if (json) {
		json_object_set_new(json, "maybe_executed", json_boolean(ask->maybe_executed));
	}
	if (json && !good)
		json_object_set_new(json, "error", pp_pdu_record_text(pdu, err->text));
	pp_pdu_record(pdu, json);
}

/* ---- asking ------------------------------------------------------------------------------- */

int64_t pp_pdu_now_ns(struct pp_pdu *pdu)
{
	return pdu->transport->now_ns ? pdu->transport->now_ns(pdu->self) : pp_clock_mono_ns();
}

void pp_pdu_sleep_ms(struct pp_pdu *pdu, int64_t ms)
{
	if (ms <= 0)
		return;
	if (pdu->transport->sleep_ms)
		pdu->transport->sleep_ms(pdu->self, ms);
	else
		pp_clock_sleep_ms(ms);
}

static struct pp_values values_of(struct pp_pdu *pdu, int outlet, int64_t time_ms)
{
	return (struct pp_values){
		.outlet = outlet < 0 ? NULL : pdu->config.outlets[outlet],
		.index_base = pdu->profile->index_base,
		.host = pdu->host[0] ? pdu->host : NULL,
		.target = outlet < 0 ? NULL : pdu->target[outlet],
		.time_ms = time_ms,
		.credentials = &pdu->credentials,
	};
}

/* By address first, then by name: two addresses of one device still take turns. */
static int lock(struct pp_pdu *pdu, struct pp_error *err)
{
	int64_t wait_ms = LOCK_WAIT_MS;

	if (pdu->lock_fd < 0)
		return 0;
	if (pp_state_lock(pdu->lock_fd, wait_ms, err) != 0)
		return -1;
	if (pdu->identity_lock_fd < 0 || pp_state_lock(pdu->identity_lock_fd, wait_ms, err) == 0)
		return 0;
	pp_state_unlock(pdu->lock_fd);
	return -1;
}

static void unlock(struct pp_pdu *pdu)
{
	if (pdu->identity_lock_fd >= 0)
		pp_state_unlock(pdu->identity_lock_fd);
	if (pdu->lock_fd >= 0)
		pp_state_unlock(pdu->lock_fd);
}

/* A controller that slept past its deadline must not cut what the guard has just restored. */
static int check_fence(struct pp_pdu *pdu, int outlet, struct pp_error *err)
{
	struct pp_journal_entry entry;

	if (pdu->config.no_journal)
		return 0;
	if (pp_journal_read(pdu->state_dir, pdu->host_key, pdu->config.outlets[outlet],
	    pp_journal_me(), &entry, err) != 0)
		return -1;
	pp_journal_release(&entry);
	if (entry.state == PP_JOURNAL_MINE)
		return 0;
	return pp_fail(err, PP_ERR_REFUSED, "outlet '%s' was restored by another process meanwhile",
		pdu->config.outlets[outlet]);
}

static int send_locked(struct pp_pdu *pdu, struct pp_ask *ask,
	const struct pp_pdu_request *request, struct pp_pdu_reply *reply, struct pp_error *err)
{
	int rc;

	if (lock(pdu, err) != 0)
		return -1;
	if (ask->fenced && check_fence(pdu, ask->outlet, err) != 0) {
		unlock(pdu);
		return -1;
	}
	ask->t_sent_ns = pp_pdu_now_ns(pdu);
	rc = pdu->transport->request(pdu->self, request, reply, err);
	ask->t_done_ns = pp_pdu_now_ns(pdu);
	unlock(pdu);
	if (ask->request == &pdu->profile->off || ask->request == &pdu->profile->on ||
	    ask->request == &pdu->profile->timed_off)
		pdu->t_set_ns = ask->t_done_ns;
	ask->answered = rc == 0;
	ask->maybe_executed = rc == 0 || reply->maybe_executed;
	return rc;
}

int pp_pdu_ask(struct pp_pdu *pdu, struct pp_ask *ask, struct pp_answer **out,
	struct pp_error *err)
{
	struct pp_values values = values_of(pdu, ask->outlet, ask->time_ms);
	struct pp_pdu_request request = { .what = ask->what, .outlet = values.outlet };
	struct pp_pdu_reply reply = { 0 };
	struct pp_answer *answer = NULL;
	struct pp_error why = { 0 };
	int rc;

	ask->answered = ask->maybe_executed = false;
	ask->t_sent_ns = ask->t_done_ns = 0;
	pp_buf_init(&reply.body, PP_PDU_REPLY_BYTES_MAX);
	rc = pp_template_request(&request, ask->request, &values, &why);
	if (rc == 0)
		rc = send_locked(pdu, ask, &request, &reply, &why);
	if (rc == 0) {
		answer = pp_answer_parse(&reply.body);
		rc = answer ? pp_answer_check(answer, ask->request, reply.status, &values, &why) :
			pp_fail(&why, PP_ERR_SYSTEM, "out of memory");
	}
	record_request(pdu, ask, &request, &reply, rc == 0, &why);
	pp_request_release(&request);
	pp_buf_release(&reply.body);
	if (rc != 0) {
		pp_credentials_redact(&pdu->credentials, why.text);
		if (err)
			*err = why;
		pp_fail_within(err, "%s%s%s", ask->what, ask->outlet < 0 ? "" : " of outlet ",
			ask->outlet < 0 ? "" : pdu->config.outlets[ask->outlet]);
	}
	if (out)
		*out = answer;
	else
		pp_answer_free(answer);
	return rc;
}

static bool read_watts(struct pp_pdu *pdu, int outlet, struct pp_answer *status, double *watts)
{
	struct pp_values values = values_of(pdu, outlet, -1);
	struct pp_ask ask = { &pdu->profile->watts, "watts", outlet, -1, .fenced = false };
	struct pp_answer *answer = NULL;
	bool good;

	if (pdu->profile->status_watts)
		return pp_answer_number(status, pdu->profile->status_watts, &values, watts);
	if (!pdu->profile->watts.given)
		return false;
	good = pp_pdu_ask(pdu, &ask, &answer, NULL) == 0 &&
		pp_answer_number(answer, pdu->profile->watts_watts, &values, watts);
	pp_answer_free(answer);
	return good;
}

int pp_pdu_read_outlet(struct pp_pdu *pdu, int outlet, enum pp_pdu_state *state, bool *has_watts,
	double *watts, int64_t *t_ns, struct pp_error *err)
{
	struct pp_values values = values_of(pdu, outlet, -1);
	struct pp_ask ask = { &pdu->profile->status, "status", outlet, -1, .fenced = false };
	struct pp_answer *answer = NULL;
	int rc;

	*state = PP_PDU_UNKNOWN;
	*has_watts = false;
	if (!pdu->profile->status.given)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "profile '%s' cannot read a state back",
			pdu->profile->name);
	rc = pp_pdu_ask(pdu, &ask, &answer, err);
	if (rc == 0) {
		*state = pp_answer_state(answer, pdu->profile, &values);
		*has_watts = read_watts(pdu, outlet, answer, watts);
		*t_ns = ask.t_done_ns;
	}
	pp_answer_free(answer);
	return rc;
}

static enum pp_pdu_state combine(const enum pp_pdu_state *outlet, int count)
{
	enum pp_pdu_state all = outlet[0];

	for (int i = 1; i < count; i++) {
		if (all == PP_PDU_PENDING || outlet[i] == PP_PDU_PENDING)
			all = PP_PDU_PENDING;
		else if (outlet[i] != all)
			all = PP_PDU_UNKNOWN;
	}
	return all;
}

static void record_status(struct pp_pdu *pdu, const struct pp_pdu_status *status)
{
	json_t *json;

	if (!pdu->config.record)
		return;
	json = json_pack("{s:s, s:s, s:I}", "event", "state", "state",
		pp_pdu_state_name(status->state), "t_ns", (json_int_t)status->t_ns);
	if (json && status->has_watts) {
		json_object_set_new(json, "watts", json_real(status->watts));
		json_object_set_new(json, "watts_fresh", json_boolean(status->watts_fresh));
	}
	pp_pdu_record(pdu, json);
}

int pp_pdu_status(struct pp_pdu *pdu, struct pp_pdu_status *status, struct pp_error *err)
{
	int count = pdu->config.outlet_count;

	memset(status, 0, sizeof(*status));
	status->has_watts = true;
	for (int i = 0; i < count; i++) {
		bool has_watts;
		double watts = 0;

		if (pp_pdu_read_outlet(pdu, i, &status->outlet[i], &has_watts, &watts,
		    &status->t_ns, err) != 0)
			return -1;
		status->has_watts = status->has_watts && has_watts;
		status->watts += watts;
	}
	status->state = combine(status->outlet, count);
	if (status->has_watts && (!pdu->t_set_ns || status->t_ns - pdu->t_set_ns >=
	    pdu->config.watts_stale_ms * PP_NS_PER_MS) && (!pdu->t_fresh_ns ||
	    status->t_ns - pdu->t_fresh_ns >= pdu->config.watts_period_ms * PP_NS_PER_MS)) {
		status->watts_fresh = true;
		pdu->t_fresh_ns = status->t_ns;
	}
	record_status(pdu, status);
	return 0;
}

int pp_pdu_fetch_targets(struct pp_pdu *pdu, struct pp_error *err)
{
	for (int i = 0; pdu->profile->target.given && i < pdu->config.outlet_count; i++) {
		struct pp_ask ask = { &pdu->profile->target, "target", i, -1, .fenced = false };
		struct pp_values values = values_of(pdu, i, -1);
		struct pp_answer *answer = NULL;
		const char *target = NULL;

		if (pp_pdu_ask(pdu, &ask, &answer, err) == 0) {
			target = pp_answer_text(answer, pdu->profile->target_target, &values);
			/* A path on this device and nothing else. */
			if (!target || target[0] != '/' || target[1] == '/' ||
			    strpbrk(target, " \t\r\n?#\\@") || strstr(target, ".."))
				target = NULL;
			if (!target)
				pp_fail(err, PP_ERR_PEER, "the device gave no usable path at '%s'",
					pdu->profile->target_target);
		}
		if (target) {
			free(pdu->target[i]);
			pdu->target[i] = strdup(target);
		}
		pp_answer_free(answer);
		if (!target)
			return -1;
	}
	return 0;
}

/* ---- who is it, and is it set up for this ------------------------------------------------- */

static int read_identity(struct pp_pdu *pdu, struct pp_pdu_identity *identity,
	struct pp_error *err)
{
	const struct pp_profile *profile = pdu->profile;
	struct pp_ask ask = { &profile->identity, "identity", -1, -1, .fenced = false };
	struct pp_values values = values_of(pdu, -1, -1);
	struct pp_answer *answer = NULL;
	const char *text;
	int rc;

	if (!profile->identity.given)
		return 0;
	rc = pp_pdu_ask(pdu, &ask, &answer, err);
	if (rc == 0 && profile->identity_regex) {
		pp_answer_match(answer, profile->identity_regex, identity->id, sizeof(identity->id));
	} else if (rc == 0) {
		text = pp_answer_text(answer, profile->identity_id, &values);
		snprintf(identity->id, sizeof(identity->id), "%s", text ? text : "");
	}
	if (rc == 0 && profile->identity_model) {
		text = pp_answer_text(answer, profile->identity_model, &values);
		snprintf(identity->model, sizeof(identity->model), "%s", text ? text : "");
	}
	if (rc == 0 && !identity->id[0])
		rc = pp_fail(err, PP_ERR_PEER, "the device does not say who it is");
	pp_answer_free(answer);
	return rc;
}

static int read_labels(struct pp_pdu *pdu, struct pp_pdu_identity *identity, struct pp_error *err)
{
	for (int i = 0; pdu->profile->label.given && i < pdu->config.outlet_count; i++) {
		struct pp_ask ask = { &pdu->profile->label, "label", i, -1, .fenced = false };
		struct pp_values values = values_of(pdu, i, -1);
		struct pp_answer *answer = NULL;
		const char *text;

		if (pp_pdu_ask(pdu, &ask, &answer, err) != 0) {
			pp_answer_free(answer);
			return -1;
		}
		text = pp_answer_text(answer, pdu->profile->label_label, &values);
		snprintf(identity->label[i], sizeof(identity->label[i]), "%s", text ? text : "");
		pp_answer_free(answer);
	}
	return 0;
}

int pp_pdu_identify(struct pp_pdu *pdu, struct pp_pdu_identity *identity, struct pp_error *err)
{
	const struct pp_pdu_config *config = &pdu->config;
	struct pp_pdu_identity here;

	if (!identity)
		identity = &here;
	memset(identity, 0, sizeof(*identity));
	pdu->identified = false;
	/* What nobody expects need not be readable; a device that is away shows in its status. */
	if (read_identity(pdu, identity, err) != 0 && config->identity)
		return -1;
	if (config->identity && strcasecmp(config->identity, identity->id) != 0)
		return pp_fail(err, PP_ERR_REFUSED,
			"the device at '%s' is '%s', not '%s': nothing is switched", pdu->host_key,
			identity->id, config->identity);
	if (read_labels(pdu, identity, err) != 0 && config->label)
		return -1;
	if (config->label && strcmp(config->label, identity->label[0]) != 0)
		return pp_fail(err, PP_ERR_REFUSED,
			"outlet '%s' is called '%s', not '%s': nothing is switched",
			config->outlets[0], identity->label[0], config->label);
	if (identity->id[0] && !config->no_journal && pdu->identity_lock_fd < 0) {
		char key[160];

		snprintf(key, sizeof(key), "id_%s", identity->id);
		pdu->identity_lock_fd = pp_state_lock_open(pdu->state_dir, key, err);
		if (pdu->identity_lock_fd < 0)
			return -1;
	}
	pdu->identified = true;
	if (err)
		*err = (struct pp_error){ 0 };
	return 0;
}

int pp_pdu_preflight(struct pp_pdu *pdu, void (*say)(void *arg, const char *complaint), void *arg,
	struct pp_error *err)
{
	int complaints = 0;

	for (int c = 0; c < pdu->profile->check_count; c++) {
		const struct pp_profile_check *check = &pdu->profile->check[c];

		for (int i = 0; i < pdu->config.outlet_count; i++) {
			struct pp_ask ask = { &check->request, check->name, i, -1, .fenced = false };
			struct pp_error why = { 0 };
			char text[1200];

			if (pp_pdu_ask(pdu, &ask, NULL, &why) == 0)
				continue;
			if (!ask.answered) {
				if (err)
					*err = why;
				return -1;
			}
			snprintf(text, sizeof(text), "outlet '%s': %s (%s)", pdu->config.outlets[i],
				check->why ? check->why : check->name, why.text);
			say(arg, text);
			complaints++;
		}
	}
	return complaints;
}

void pp_pdu_effective_config(const struct pp_pdu *pdu, struct pp_pdu_config *config)
{
	*config = pdu->config;
	config->record = NULL;
	config->record_arg = NULL;
	config->transport = NULL;
	config->transport_arg = NULL;
}
