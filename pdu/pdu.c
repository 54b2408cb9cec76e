/* SPDX-License-Identifier: MIT
 *
 * Asking: a request is rendered, sent under the device's lock, recorded, and its answer checked
 * against all that the profile demands. What to do with the answers is in switch.c.
 */
#include "pdu.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "internal.h"
#include "src/core/clock.h"

#define RECORD_TEXT_BYTES 300
#define LOCK_WAIT_MS      30000

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
		.parameters = &pdu->profile->parameters,
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
