/* SPDX-License-Identifier: MIT
 *
 * Two things are kept apart because real devices keep them apart: `output`, which is what the
 * relay was told, and whether the outlet has power, which is what the machine sees.
 */
#include "sim_pdu.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/buf.h"
#include "core/clock.h"

#define DEVICE_ID       "shellyplugsg3-77a0c0ffee77"
#define DEVICE_MAC      "77A0C0FFEE77"
#define USER            "admin"
#define BODY_BYTES_MAX  65536
#define NONCE_SECONDS   3600
#define VOLTS           230.0
#define NO_SUCH_ID      (-105)
#define BAD_ARGUMENT    (-103)
#define NO_SUCH_METHOD  404

static const struct flaw {
	const char *name;
	bool relay_moves;  /* `output` follows the command */
	bool power_moves;  /* and so does the power */
	bool late;         /* only after the delay */
} flaws[] = {
	{ "none", true, true, false },
	{ "ignores", false, false, false }, /* answers success, does nothing */
	{ "welded", true, false, false },   /* reads back as told, the contacts stay as they are */
	{ "slow", true, true, true },       /* reads back at once, the power follows later */
};

/* Something that is due at a time; at_ns 0: nothing. */
struct due {
	int64_t at_ns;
	bool on;
};

struct pp_sim_pdu {
	struct pp_sim_outlet outlet;
	char *password;
	char url[64];
	struct MHD_Daemon *daemon;
	unsigned char random[16];
	pthread_t timer;
	bool timer_runs;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	const struct flaw *flaw;
	int64_t delay_ms;
	bool output, power, stop;
	struct due toggle, power_due;
	double toggle_s, toggle_started; /* as GetStatus shows them: seconds, and of the wall clock */
};

/* ---- the relay -------------------------------------------------------------------------- */

static int set_power(struct pp_sim_pdu *pdu, bool on)
{
	struct pp_error err = { 0 };

	pdu->power_due.at_ns = 0;
	if (pdu->power == on)
		return 0;
	if ((on ? pdu->outlet.on : pdu->outlet.off)(pdu->outlet.ctx, &err))
		return -1;
	pdu->power = on;
	return 0;
}

static int set_output(struct pp_sim_pdu *pdu, bool on)
{
	if (pdu->flaw->power_moves && pdu->flaw->late) {
		pdu->power_due = (struct due){ pp_clock_mono_ns() + pdu->delay_ms * PP_NS_PER_MS, on };
		pthread_cond_signal(&pdu->changed);
	} else if (pdu->flaw->power_moves && set_power(pdu, on)) {
		return -1;
	}
	if (pdu->flaw->relay_moves)
		pdu->output = on;
	return 0;
}

static void run_due(struct pp_sim_pdu *pdu)
{
	int64_t now_ns = pp_clock_mono_ns();

	if (pdu->power_due.at_ns && pdu->power_due.at_ns <= now_ns)
		set_power(pdu, pdu->power_due.on);
	if (pdu->toggle.at_ns && pdu->toggle.at_ns <= now_ns) {
		pdu->toggle.at_ns = 0;
		set_output(pdu, pdu->toggle.on);
	}
}

static int64_t next_due_ns(const struct pp_sim_pdu *pdu)
{
	int64_t a = pdu->toggle.at_ns, b = pdu->power_due.at_ns;

	return !a ? b : !b || a < b ? a : b;
}

static void *timer_thread(void *arg)
{
	struct pp_sim_pdu *pdu = arg;

	pthread_mutex_lock(&pdu->lock);
	while (!pdu->stop) {
		int64_t at_ns = next_due_ns(pdu);
		struct timespec at = { at_ns / PP_NS_PER_S, at_ns % PP_NS_PER_S };

		if (at_ns)
			pthread_cond_timedwait(&pdu->changed, &pdu->lock, &at);
		else
			pthread_cond_wait(&pdu->changed, &pdu->lock);
		if (!pdu->stop)
			run_due(pdu);
	}
	pthread_mutex_unlock(&pdu->lock);
	return NULL;
}

/* ---- methods ---------------------------------------------------------------------------- */

/* Return 0 with a result, or the code of an error with its message. */
typedef int method_fn(struct pp_sim_pdu *, const json_t *params, json_t **result, char *message,
	size_t bytes);

static int check_id(const json_t *params, char *message, size_t bytes)
{
	const json_t *id = json_object_get(params, "id");

	if (!json_is_integer(id)) {
		snprintf(message, bytes, "Missing or bad argument 'id'!");
		return BAD_ARGUMENT;
	}
	if (json_integer_value(id)) {
		snprintf(message, bytes, "Argument 'id', value %lld not found!",
			(long long)json_integer_value(id));
		return NO_SUCH_ID;
	}
	return 0;
}

static int switch_set(struct pp_sim_pdu *pdu, const json_t *params, json_t **result, char *message,
	size_t bytes)
{
	const json_t *on = json_object_get(params, "on");
	const json_t *after = json_object_get(params, "toggle_after");
	double seconds = json_number_value(after);
	bool was_on = pdu->output;
	int code = check_id(params, message, bytes);

	if (code)
		return code;
	if (!json_is_boolean(on) || (after && (!json_is_number(after) || seconds <= 0))) {
		snprintf(message, bytes, "Missing or bad argument '%s'!",
			json_is_boolean(on) ? "toggle_after" : "on");
		return BAD_ARGUMENT;
	}
	pdu->toggle.at_ns = 0;
	if (set_output(pdu, json_is_true(on))) {
		snprintf(message, bytes, "Unable to switch");
		return -1;
	}
	if (after) {
		pdu->toggle = (struct due){ pp_clock_mono_ns() + (int64_t)(seconds * PP_NS_PER_S),
			!json_is_true(on) };
		pdu->toggle_s = seconds;
		pdu->toggle_started = (double)time(NULL);
		pthread_cond_signal(&pdu->changed);
	}
	*result = json_pack("{s:b}", "was_on", was_on);
	return 0;
}

static int switch_status(struct pp_sim_pdu *pdu, const json_t *params, json_t **result,
	char *message, size_t bytes)
{
	double watts = pdu->outlet.watts(pdu->outlet.ctx);
	int code = check_id(params, message, bytes);

	if (code)
		return code;
	*result = json_pack("{s:i, s:s, s:b, s:f, s:f, s:f, s:f, s:{s:f}, s:{s:f, s:f}}", "id", 0,
		"source", "HTTP_in", "output", pdu->output, "apower", watts, "voltage", VOLTS, "freq",
		50.0, "current", watts / VOLTS, "aenergy", "total", 77.0, "temperature", "tC", 31.4, "tF",
		88.5);
	if (pdu->toggle.at_ns) {
		json_object_set_new(*result, "timer_started_at", json_real(pdu->toggle_started));
		json_object_set_new(*result, "timer_duration", json_real(pdu->toggle_s));
	}
	return 0;
}

static int switch_config(struct pp_sim_pdu *pdu, const json_t *params, json_t **result,
	char *message, size_t bytes)
{
	int code = check_id(params, message, bytes);

	(void)pdu;
	if (!code)
		*result = json_pack("{s:i, s:s, s:s, s:b, s:f, s:b, s:f, s:i}", "id", 0, "name",
			"plugpull lab", "initial_state", "restore_last", "auto_on", 0, "auto_on_delay", 60.0,
			"auto_off", 0, "auto_off_delay", 60.0, "power_limit", 2500);
	return code;
}

static int device_info(struct pp_sim_pdu *pdu, const json_t *params, json_t **result, char *message,
	size_t bytes)
{
	(void)params;
	(void)message;
	(void)bytes;
	*result = json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:s, s:b}", "name", "plugpull lab", "id",
		DEVICE_ID, "mac", DEVICE_MAC, "model", "S3PL-00112EU", "gen", 3, "fw_id",
		"20260101-000000/1.7.0-lab", "ver", "1.7.0", "app", "PlugSG3", "auth_en",
		pdu->password != NULL);
	if (pdu->password)
		json_object_set_new(*result, "auth_domain", json_string(DEVICE_ID));
	return 0;
}

static const struct method {
	const char *name;
	method_fn *call;
	bool open; /* answers without a password */
} methods[] = {
	{ "Switch.Set", switch_set, false },
	{ "Switch.GetStatus", switch_status, false },
	{ "Switch.GetConfig", switch_config, false },
	{ "Shelly.GetDeviceInfo", device_info, true },
};

static const struct method *find_method(const char *name)
{
	for (size_t i = 0; name && i < sizeof(methods) / sizeof(methods[0]); i++)
		if (!strcmp(methods[i].name, name))
			return &methods[i];
	return NULL;
}

/* ---- HTTP ------------------------------------------------------------------------------- */

static enum MHD_Result send_json(struct MHD_Connection *c, unsigned status, json_t *body)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	struct MHD_Response *response;
	enum MHD_Result rc;

	json_decref(body);
	if (!text)
		return MHD_NO;
	response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
	MHD_add_response_header(response, "Content-Type", "application/json");
	rc = MHD_queue_response(c, status, response);
	MHD_destroy_response(response);
	return rc;
}

/* True: go on. False: an answer (401) has been queued, *rc says how that went. */
static bool authorised(struct pp_sim_pdu *pdu, struct MHD_Connection *c, enum MHD_Result *rc)
{
	struct MHD_Response *response;
	char *user;
	int known = MHD_NO;

	if (!pdu->password)
		return true;
	user = MHD_digest_auth_get_username(c);
	if (user && !strcmp(user, USER))
		known = MHD_digest_auth_check2(c, DEVICE_ID, USER, pdu->password, NONCE_SECONDS,
			MHD_DIGEST_ALG_SHA256);
	MHD_free(user);
	if (known == MHD_YES)
		return true;
	response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	*rc = MHD_queue_auth_fail_response2(c, DEVICE_ID, "plugpull", response,
		known == MHD_INVALID_NONCE, MHD_DIGEST_ALG_SHA256);
	MHD_destroy_response(response);
	return false;
}

static enum MHD_Result add_argument(void *ctx, enum MHD_ValueKind kind, const char *key,
	const char *value)
{
	json_t *parsed = value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;

	(void)kind;
	json_object_set_new(ctx, key, parsed ? parsed : json_string(value ? value : ""));
	return MHD_YES;
}

static int call(struct pp_sim_pdu *pdu, const struct method *method, const json_t *params,
	const char *name, json_t **result, json_t **error)
{
	char message[256] = "";
	int code = NO_SUCH_METHOD;

	if (method) {
		pthread_mutex_lock(&pdu->lock);
		code = method->call(pdu, params, result, message, sizeof(message));
		pthread_mutex_unlock(&pdu->lock);
	} else {
		snprintf(message, sizeof(message), "No handler for %.200s", name);
	}
	if (code)
		*error = json_pack("{s:i, s:s}", "code", code, "message", message);
	return code;
}

/* GET /rpc/METHOD?...: bare result; an error comes as 400 with its body. */
static enum MHD_Result answer_get(struct pp_sim_pdu *pdu, struct MHD_Connection *c,
	const char *name)
{
	const struct method *method = find_method(name);
	json_t *params, *result = NULL, *error = NULL;
	enum MHD_Result rc;
	int code;

	if (!(method && method->open) && !authorised(pdu, c, &rc))
		return rc;
	params = json_object();
	MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, add_argument, params);
	code = call(pdu, method, params, name, &result, &error);
	json_decref(params);
	if (!code)
		return send_json(c, MHD_HTTP_OK, result);
	return send_json(c, code == NO_SUCH_METHOD ? MHD_HTTP_NOT_FOUND : MHD_HTTP_BAD_REQUEST, error);
}

/* POST /rpc: a frame with the same id; an error comes inside a 200. */
static enum MHD_Result answer_post(struct pp_sim_pdu *pdu, struct MHD_Connection *c,
	const struct pp_buf *body)
{
	json_t *frame = json_loadb(body->data ? body->data : "", body->bytes, 0, NULL);
	const char *name = json_string_value(json_object_get(frame, "method"));
	const struct method *method = find_method(name);
	json_t *answer, *result = NULL, *error = NULL;
	enum MHD_Result rc = MHD_NO;

	if (!(method && method->open) && !authorised(pdu, c, &rc))
		goto done;
	if (!json_is_object(frame) || !name) {
		rc = send_json(c, MHD_HTTP_BAD_REQUEST,
			json_pack("{s:i, s:s}", "code", BAD_ARGUMENT, "message", "Invalid request"));
		goto done;
	}
	answer = json_pack("{s:O?, s:s}", "id", json_object_get(frame, "id"), "src", DEVICE_ID);
	if (call(pdu, method, json_object_get(frame, "params"), name, &result, &error))
		json_object_set_new(answer, "error", error);
	else
		json_object_set_new(answer, "result", result);
	rc = send_json(c, MHD_HTTP_OK, answer);
done:
	json_decref(frame);
	return rc;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *url,
	const char *verb, const char *version, const char *data, size_t *bytes, void **state)
{
	struct pp_sim_pdu *pdu = ctx;
	struct pp_buf *body = *state;

	(void)version;
	if (!body) {
		body = malloc(sizeof(*body));
		if (!body)
			return MHD_NO;
		pp_buf_init(body, BODY_BYTES_MAX);
		*state = body;
		return MHD_YES;
	}
	if (*bytes) {
		pp_buf_add(body, data, *bytes);
		*bytes = 0;
		return body->failed ? MHD_NO : MHD_YES;
	}
	if (!strcmp(verb, "POST") && !strcmp(url, "/rpc"))
		return answer_post(pdu, c, body);
	if (!strcmp(verb, "GET") && !strncmp(url, "/rpc/", 5))
		return answer_get(pdu, c, url + 5);
	if (!strcmp(verb, "GET") && !strcmp(url, "/shelly"))
		return answer_get(pdu, c, "Shelly.GetDeviceInfo");
	return send_json(c, MHD_HTTP_NOT_FOUND,
		json_pack("{s:i, s:s}", "code", NO_SUCH_METHOD, "message", "Not Found"));
}

static void on_completed(void *ctx, struct MHD_Connection *c, void **state,
	enum MHD_RequestTerminationCode how)
{
	struct pp_buf *body = *state;

	(void)ctx;
	(void)c;
	(void)how;
	if (body)
		pp_buf_release(body);
	free(body);
	*state = NULL;
}

/* ---- life ------------------------------------------------------------------------------- */

static int start_http(struct pp_sim_pdu *pdu, struct pp_error *err)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const union MHD_DaemonInfo *info;

	pdu->daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, on_request, pdu,
		MHD_OPTION_SOCK_ADDR, &at, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
		MHD_OPTION_DIGEST_AUTH_RANDOM, sizeof(pdu->random), pdu->random,
		MHD_OPTION_NONCE_NC_SIZE, 256u, MHD_OPTION_CONNECTION_TIMEOUT, 30u, MHD_OPTION_END);
	if (!pdu->daemon)
		return pp_fail_os(err, errno, "cannot start the simulated PDU");
	info = MHD_get_daemon_info(pdu->daemon, MHD_DAEMON_INFO_BIND_PORT);
	if (!info || !info->port)
		return pp_fail(err, PP_ERR_SYSTEM, "cannot learn the simulated PDU's port");
	snprintf(pdu->url, sizeof(pdu->url), "http://127.0.0.1:%u", (unsigned)info->port);
	return 0;
}

struct pp_sim_pdu *pp_sim_pdu_start(const struct pp_sim_pdu_config *config, struct pp_error *err)
{
	struct pp_sim_pdu *pdu = calloc(1, sizeof(*pdu));
	pthread_condattr_t attr;
	int rc;

	if (!pdu) {
		pp_fail_os(err, ENOMEM, "cannot make a simulated PDU");
		return NULL;
	}
	pdu->outlet = config->outlet;
	pdu->flaw = &flaws[0];
	pdu->output = pdu->power = config->starts_on;
	pthread_mutex_init(&pdu->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&pdu->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (config->password && !(pdu->password = strdup(config->password))) {
		pp_fail_os(err, ENOMEM, "cannot make a simulated PDU");
		goto fail;
	}
	if (getrandom(pdu->random, sizeof(pdu->random), 0) != sizeof(pdu->random)) {
		pp_fail_os(err, errno, "cannot draw random bytes");
		goto fail;
	}
	rc = pthread_create(&pdu->timer, NULL, timer_thread, pdu);
	if (rc) {
		pp_fail_os(err, rc, "cannot start a thread");
		goto fail;
	}
	pdu->timer_runs = true;
	if (start_http(pdu, err))
		goto fail;
	return pdu;
fail:
	pp_sim_pdu_stop(pdu);
	return NULL;
}

void pp_sim_pdu_stop(struct pp_sim_pdu *pdu)
{
	if (!pdu)
		return;
	if (pdu->daemon)
		MHD_stop_daemon(pdu->daemon);
	if (pdu->timer_runs) {
		pthread_mutex_lock(&pdu->lock);
		pdu->stop = true;
		pthread_cond_signal(&pdu->changed);
		pthread_mutex_unlock(&pdu->lock);
		pthread_join(pdu->timer, NULL);
	}
	pthread_cond_destroy(&pdu->changed);
	pthread_mutex_destroy(&pdu->lock);
	free(pdu->password);
	free(pdu);
}

const char *pp_sim_pdu_url(const struct pp_sim_pdu *pdu)
{
	return pdu->url;
}

const char *pp_sim_pdu_id(const struct pp_sim_pdu *pdu)
{
	(void)pdu;
	return DEVICE_ID;
}

int pp_sim_pdu_set_flaw(struct pp_sim_pdu *pdu, const char *name, int64_t delay_ms,
	struct pp_error *err)
{
	for (size_t i = 0; i < sizeof(flaws) / sizeof(flaws[0]); i++) {
		if (strcmp(flaws[i].name, name))
			continue;
		pthread_mutex_lock(&pdu->lock);
		pdu->flaw = &flaws[i];
		pdu->delay_ms = delay_ms;
		pthread_mutex_unlock(&pdu->lock);
		return 0;
	}
	return pp_fail(err, PP_ERR_USAGE, "the PDU has no flaw '%s'", name);
}
