/* SPDX-License-Identifier: MIT */
#include "prove.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "guard_wire.h"
#include "internal.h"
#include "src/core/clock.h"
#include "src/core/file.h"
#include "src/core/text.h"

#define PROOF_BYTES_MAX   65536
#define PROFILE_BYTES_MAX 65536
#define OTHERS_MAX        64
#define SILENT_STREAK     2

static int64_t or_default(int64_t given, int64_t fallback)
{
	return given > 0 ? given : fallback;
}

/* ---- the witness -------------------------------------------------------------------------- */

struct watching {
	int silent;             /* answers in a row */
	int64_t t_silent_ns;    /* of the first */
	int64_t t_low_ns;       /* since when the meter shows nothing; 0: it does not */
};

static void watch_machine(struct watching *watching, const struct pp_off_witness_config *config,
	struct pp_off_witness *witness)
{
	int64_t asked_ns = pp_clock_mono_ns();

	if (!config->alive)
		return;
	if (pp_alive_ask(config->alive, or_default(config->ask_ms, 1000)) != PP_ALIVE_SILENT) {
		watching->silent = 0;
		witness->lost = false;
		return;
	}
	if (watching->silent++ == 0)
		watching->t_silent_ns = asked_ns;
	witness->lost = watching->silent >= SILENT_STREAK;
	witness->t_lost_ns = watching->t_silent_ns;
}

/* 0, or -1 if the outlet does not read off any more. */
static int watch_switch(struct pp_pdu *pdu, struct watching *watching,
	const struct pp_off_witness_config *config, struct pp_off_witness *witness, struct pp_error *err)
{
	struct pp_pdu_status status;

	if (pp_pdu_status(pdu, &status, NULL) != 0) {
		watching->t_low_ns = 0; /* a gap proves nothing */
		return 0;
	}
	if (status.state != PP_PDU_OFF)
		return pp_fail(err, PP_ERR_PEER, "the outlet did not stay off: it reads %s",
			pp_pdu_state_name(status.state));
	witness->has_watts = status.has_watts;
	if (!status.has_watts)
		return 0;
	witness->watts = status.watts;
	if (status.watts > pdu->config.watts_off_max)
		watching->t_low_ns = 0;
	else if (!watching->t_low_ns && status.watts_fresh)
		watching->t_low_ns = status.t_ns;
	/* A load that was never seen cannot be seen to go. */
	witness->watts_low = pdu->load_before > 0 && watching->t_low_ns && status.t_ns -
		watching->t_low_ns >= or_default(config->dwell_ms, 3000) * PP_NS_PER_MS;
	return 0;
}

static int no_witness(struct pp_pdu *pdu, const struct pp_off_witness_config *config,
	const struct pp_off_witness *witness, struct pp_error *err)
{
	if (config->alive && !witness->lost)
		return pp_fail(err, PP_ERR_PEER, "the outlet reads off, but '%s' did not fall silent: "
			"another machine hangs on this outlet, or this one has a second supply",
			pp_alive_name(config->alive));
	if (pdu->load_before > 0)
		return pp_fail(err, PP_ERR_PEER, "the outlet reads off, but its meter did not stay "
			"at zero (%.1f W)", witness->watts);
	return pp_fail(err, PP_ERR_PEER, "the meter saw no load before the off, so it cannot see that it "
		"went; say how to ask the machine");
}

int pp_pdu_witness(struct pp_pdu *pdu, const struct pp_off_witness_config *config,
	struct pp_off_witness *witness, struct pp_error *err)
{
	int64_t deadline_ns = pp_clock_mono_ns() +
		(or_default(config->timeout_ms, 20000) + pdu->config.watts_stale_ms) * PP_NS_PER_MS;
	struct watching watching = { 0 };

	memset(witness, 0, sizeof(*witness));
	if (!config->alive && !pp_pdu_has_watts(pdu))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "no witness but the switch itself: it has no "
			"meter, and nobody said how to ask the machine");
	for (;;) {
		bool machine, meter;

		watch_machine(&watching, config, witness);
		if (watch_switch(pdu, &watching, config, witness, err) != 0)
			return -1;
		machine = !config->alive || witness->lost;
		meter = witness->watts_low || (config->alive && (!config->need_watts ||
			!witness->has_watts || pdu->load_before <= 0));
		if (machine && meter)
			return 0;
		if (pp_clock_mono_ns() >= deadline_ns)
			return no_witness(pdu, config, witness, err);
		pp_clock_sleep_ms(pdu->config.poll_ms);
	}
}

int pp_pdu_await_life(struct pp_alive *alive, int64_t timeout_ms, struct pp_error *err)
{
	int64_t deadline_ns = pp_clock_mono_ns() + timeout_ms * PP_NS_PER_MS;

	while (pp_alive_ask(alive, 1000) != PP_ALIVE_LIVES) {
		if (pp_clock_mono_ns() >= deadline_ns)
			return pp_fail(err, PP_ERR_PEER, "'%s' does not answer as it should",
				pp_alive_name(alive));
		pp_clock_sleep_ms(100);
	}
	return 0;
}

/* ---- the file ----------------------------------------------------------------------------- */

static int proof_path(struct pp_pdu *pdu, char *out, size_t bytes, struct pp_error *err)
{
	char key[1400];
	int n = snprintf(key, sizeof(key), "%s", pdu->host_key);

	for (int i = 0; i < pdu->config.outlet_count && n < (int)sizeof(key); i++)
		n += snprintf(key + n, sizeof(key) - (size_t)n, "_%s", pdu->config.outlets[i]);
	return pp_state_path(pdu->state_dir, "proofs", key, ".json", out, bytes, err);
}

/* What must be the same for a proof to hold. */
static json_t *subject_of(struct pp_pdu *pdu, const struct pp_pdu_identity *identity,
	struct pp_error *err)
{
	json_t *json, *outlets = json_array(), *labels = json_array();
	struct pp_buf buf;
	char hash[20];

	pp_buf_init(&buf, PROFILE_BYTES_MAX);
	if (pp_file_read(pdu->profile->path, &buf, err) != 0) {
		pp_buf_release(&buf);
		json_decref(outlets);
		json_decref(labels);
		return NULL;
	}
	snprintf(hash, sizeof(hash), "%016llx",
		(unsigned long long)XXH3_64bits(buf.data ? buf.data : "", buf.bytes));
	pp_buf_release(&buf);
	for (int i = 0; i < pdu->config.outlet_count; i++) {
		json_array_append_new(outlets, json_string(pdu->config.outlets[i]));
		json_array_append_new(labels, json_string(identity->label[i]));
	}
	json = json_pack("{s:s, s:s, s:s, s:o, s:o, s:s}", "profile", pdu->profile->name,
		"profile_xxh3", hash, "device", pdu->host_key, "outlets", outlets, "labels", labels,
		"identity", identity->id);
	if (json && pdu->config.parameters)
		json_object_set_new(json, "parameters", json_string(pdu->config.parameters));
	if (!json)
		pp_fail(err, PP_ERR_SYSTEM, "cannot describe the power switch");
	return json;
}

/* The first member that differs, or NULL. */
static const char *difference(const json_t *a, const json_t *b)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)a, key, value)
		if (!json_equal(value, json_object_get(b, key)))
			return key;
	return NULL;
}

static json_t *load_proof(const char *path, struct pp_error *err)
{
	json_t *json = NULL;
	struct pp_buf buf;

	pp_buf_init(&buf, PROOF_BYTES_MAX);
	if (pp_file_read(path, &buf, err) == 0) {
		json = json_loadb(buf.data ? buf.data : "", buf.bytes, 0, NULL);
		if (!json)
			pp_fail(err, PP_ERR_EVIDENCE, "'%s' is damaged", path);
	}
	pp_buf_release(&buf);
	return json;
}

int pp_proof_check(struct pp_pdu *pdu, const char *path, struct pp_error *err)
{
	struct pp_pdu_identity identity;
	json_t *proof = NULL, *subject = NULL;
	struct pp_error why = { 0 };
	const char *differs;
	char own[PATH_MAX];
	int rc = -1;

	if (!path && proof_path(pdu, own, sizeof(own), err) != 0)
		return -1;
	if (pp_pdu_identify(pdu, &identity, err) != 0)
		return -1;
	proof = load_proof(path ? path : own, &why);
	if (!proof) {
		pp_fail(err, PP_ERR_REFUSED, "nobody has proven that outlet '%s' of '%s' feeds this "
			"machine (%.200s); run 'plugpull pdu prove' once", pdu->config.outlets[0],
			pdu->host_key, why.text);
		goto out;
	}
	subject = subject_of(pdu, &identity, err);
	if (!subject)
		goto out;
	differs = difference(subject, json_object_get(proof, "subject"));
	if (differs || !json_is_true(json_object_get(proof, "proven")))
		pp_fail(err, PP_ERR_REFUSED, "the proof of the wiring of outlet '%s' has expired: "
			"'%s' is not what it was; run 'plugpull pdu prove' again",
			pdu->config.outlets[0], differs ? differs : "proven");
	else
		rc = 0;
out:
	json_decref(proof);
	json_decref(subject);
	return rc;
}

/* ---- the other outlets -------------------------------------------------------------------- */

struct others {
	struct pp_pdu *pdu[OTHERS_MAX];
	enum pp_pdu_state before[OTHERS_MAX];
	int count;
};

static bool is_ours(const struct pp_pdu_config *config, const char *outlet)
{
	for (int i = 0; i < config->outlet_count; i++)
		if (strcmp(config->outlets[i], outlet) == 0)
			return true;
	return false;
}

static struct pp_pdu *open_other(const struct pp_pdu_config *config, const char *outlet,
	enum pp_pdu_state *state, struct pp_error *err)
{
	struct pp_pdu_config one = *config;
	struct pp_pdu_status status;
	struct pp_pdu *pdu;

	one.outlets[0] = outlet;
	one.outlet_count = 1;
	one.label = NULL;
	pdu = pp_pdu_open(&one, err);
	if (!pdu || pp_pdu_status(pdu, &status, err) != 0) {
		pp_pdu_close(pdu);
		return NULL;
	}
	*state = status.state;
	return pdu;
}

/* Named ones must be readable. */
static int open_named(struct others *others, const struct pp_prove_config *config,
	struct pp_error *err)
{
	for (int i = 0; i < config->others_count && others->count < OTHERS_MAX; i++) {
		int n = others->count;

		if (is_ours(config->pdu, config->others[i]))
			return pp_fail(err, PP_ERR_USAGE, "outlet '%s' is the machine's and another's",
				config->others[i]);
		others->pdu[n] = open_other(config->pdu, config->others[i], &others->before[n], err);
		if (!others->pdu[n])
			return -1;
		others->count++;
	}
	return 0;
}

/* "AA2" has the siblings AA1, AA3, ...: counts until one cannot be read. */
static void open_counted(struct others *others, const struct pp_pdu_config *config)
{
	const char *ours = config->outlets[0];
	size_t prefix = strlen(ours);
	bool begun = false;

	while (prefix && strchr("0123456789", ours[prefix - 1]))
		prefix--;
	if (!ours[prefix])
		return;
	for (int i = 0; i < OTHERS_MAX && others->count < OTHERS_MAX; i++) {
		int n = others->count;
		char outlet[160];

		snprintf(outlet, sizeof(outlet), "%.*s%d", (int)prefix, ours, i);
		if (is_ours(config, outlet)) {
			begun = true;
			continue;
		}
		others->pdu[n] = open_other(config, outlet, &others->before[n], NULL);
		if (!others->pdu[n] && begun && i > atoi(ours + prefix))
			break;
		if (!others->pdu[n])
			continue;
		begun = true;
		others->count++;
	}
}

/* 0 if each reads as before. The first that does not is named. */
static int others_unchanged(struct others *others, struct pp_error *err)
{
	for (int i = 0; i < others->count; i++) {
		struct pp_pdu_status status;

		if (pp_pdu_status(others->pdu[i], &status, err) != 0)
			return -1;
		if (status.state != others->before[i])
			return pp_fail(err, PP_ERR_PEER, "outlet '%s' changed too: it was %s and is %s",
				others->pdu[i]->config.outlets[0],
				pp_pdu_state_name(others->before[i]),
				pp_pdu_state_name(status.state));
	}
	return 0;
}

static void close_others(struct others *others)
{
	for (int i = 0; i < others->count; i++)
		pp_pdu_close(others->pdu[i]);
}

/* ---- the proof ---------------------------------------------------------------------------- */

struct proving {
	const struct pp_prove_config *config;
	struct pp_pdu *pdu;
	struct pp_guard *guard;
	struct others others;
	struct pp_pdu_identity identity;
	struct pp_pdu_times off;
	struct pp_off_witness witness;
	char boot_before[64];
	int64_t t_back_ns;
};

static void say(const struct proving *proving, const char *step)
{
	if (proving->config->say)
		proving->config->say(proving->config->say_arg, step);
}

/* On, alive, and everything readable that will be compared. */
static int begin(struct proving *proving, struct pp_error *err)
{
	const struct pp_prove_config *config = proving->config;
	struct pp_pdu_status status;

	if (pp_pdu_identify(proving->pdu, &proving->identity, err) != 0 ||
	    pp_pdu_status(proving->pdu, &status, err) != 0)
		return -1;
	if (status.state != PP_PDU_ON) {
		say(proving, "turning the outlet on");
		if (pp_pdu_on(proving->pdu, NULL, err) != 0)
			return -1;
	}
	say(proving, "waiting until the machine answers");
	if (pp_pdu_await_life(config->alive, or_default(config->back_ms, 600000), err) != 0)
		return -1;
	pp_text_copy(proving->boot_before, sizeof(proving->boot_before), pp_alive_boot(config->alive));
	if (config->others_count)
		return open_named(&proving->others, config, err);
	/* A program may take any name for the one outlet that it knows. */
	if (proving->pdu->profile->transport != PP_TRANSPORT_EXEC)
		open_counted(&proving->others, config->pdu);
	return 0;
}

/* Off, and every witness says so. The power is off when this returns 0. */
static int dark(struct proving *proving, struct pp_error *err)
{
	const struct pp_prove_config *config = proving->config;
	struct pp_off_witness_config witness = config->witness;

	witness.alive = config->alive;
	witness.need_watts = true;
	say(proving, "turning it off");
	if (pp_pdu_off(proving->pdu, &proving->off, err) != 0)
		return -1;
	say(proving, "it reads off; waiting until the machine falls silent");
	if (pp_pdu_witness(proving->pdu, &witness, &proving->witness, err) != 0)
		return -1;
	say(proving, "comparing the other outlets");
	return others_unchanged(&proving->others, err);
}

/* Power on in any case; 0 only if it is. */
static int bright(struct proving *proving, enum pp_pdu_outcome *outcome, struct pp_error *err)
{
	struct pp_pdu_times on;

	say(proving, "turning it on");
	if (pp_pdu_on(proving->pdu, &on, err) != 0) {
		*outcome = PP_PDU_NOT_RESTORED;
		return -1;
	}
	pp_guard_disarm(proving->guard, NULL, NULL);
	return 0;
}

static int write_proof(struct proving *proving, struct pp_error *err)
{
	const struct pp_off_witness *witness = &proving->witness;
	char path[PATH_MAX], wall[32], *text = NULL;
	json_t *json, *subject, *others = json_array();
	int rc = -1;

	for (int i = 0; i < proving->others.count; i++)
		json_array_append_new(others,
			json_string(proving->others.pdu[i]->config.outlets[0]));
	subject = subject_of(proving->pdu, &proving->identity, err);
	if (!subject) {
		json_decref(others);
		return -1;
	}
	pp_clock_wall(wall, sizeof(wall));
	json = json_pack("{s:i, s:b, s:s, s:o, s:s, s:s, s:s, s:I, s:I, s:I, s:b, s:f, s:f, s:o}",
		"format", 1, "proven", true, "time", wall, "subject", subject, "model",
		proving->identity.model, "cuts", pp_pdu_cuts_name(pp_pdu_cuts(proving->pdu)), "alive",
		pp_alive_name(proving->config->alive), "off_read_ms", (json_int_t)
		((proving->off.t_read_ns - proving->off.t_sent_ns) / PP_NS_PER_MS), "silent_after_ms",
		(json_int_t)((witness->t_lost_ns - proving->off.t_sent_ns) / PP_NS_PER_MS),
		"back_after_ms", (json_int_t)(proving->t_back_ns / PP_NS_PER_MS), "watts_seen",
		witness->watts_low, "watts_before", proving->off.watts_before, "watts_off",
		witness->watts, "others_unchanged", others);
	text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
	if (!text)
		pp_fail(err, PP_ERR_SYSTEM, "cannot write the proof");
	else if (proof_path(proving->pdu, path, sizeof(path), err) == 0 &&
	    pp_file_write(path, text, strlen(text), 0644, err) == 0 && (!proving->config->path ||
	    pp_file_write(proving->config->path, text, strlen(text), 0644, err) == 0))
		rc = 0;
	free(text);
	json_decref(json);
	return rc;
}

/* Silence is not darkness: what feeds the machine's network alone silences it too. */
static int lived_through(const struct proving *proving, struct pp_error *err)
{
	if (!proving->boot_before[0] ||
	    strcmp(proving->boot_before, pp_alive_boot(proving->config->alive)) != 0)
		return 0;
	return pp_fail(err, PP_ERR_PEER, "the machine fell silent, but ran on: the same boot answers as before "
		"the off; this outlet feeds its network, or it has another supply");
}

/* The off, the looking around, and the on, whatever was seen. */
static int cycle(struct proving *proving, int64_t off_ms, enum pp_pdu_outcome *outcome,
	struct pp_error *err)
{
	struct pp_error why = { 0 };
	int rc = dark(proving, err);
	int64_t left_ms = off_ms - (pp_clock_mono_ns() - proving->off.t_read_ns) / PP_NS_PER_MS;

	*outcome = proving->off.outcome;
	if (*outcome == PP_PDU_NOT_RESTORED)
		return -1; /* the guard stays on duty */
	if (*outcome != PP_PDU_VERIFIED) {
		pp_guard_disarm(proving->guard, NULL, NULL);
		return -1;
	}
	if (rc == 0 && left_ms > 0)
		pp_clock_sleep_ms(left_ms);
	*outcome = PP_PDU_STATE_UNKNOWN; /* off it was, but proven it is not */
	if (bright(proving, outcome, &why) != 0) {
		if (err)
			*err = why;
		return pp_fail_within(err, "POWER NOT RESTORED");
	}
	return rc;
}

static int prove(struct proving *proving, enum pp_pdu_outcome *outcome, struct pp_error *err)
{
	const struct pp_prove_config *config = proving->config;
	int64_t off_ms = or_default(config->off_ms, 10000), since_ns;

	if (begin(proving, err) != 0 || pp_guard_arm(proving->guard,
	    pp_clock_mono_ns() + (off_ms + 300000) * PP_NS_PER_MS, err) != 0 ||
	    cycle(proving, off_ms, outcome, err) != 0)
		return -1;
	since_ns = pp_clock_mono_ns();
	say(proving, "it reads on; waiting until the machine answers again");
	if (pp_pdu_await_life(config->alive, or_default(config->back_ms, 600000), err) != 0)
		return pp_fail_within(err, "after the power came back");
	proving->t_back_ns = pp_clock_mono_ns() - since_ns;
	if (lived_through(proving, err) != 0 || others_unchanged(&proving->others, err) != 0 ||
	    write_proof(proving, err) != 0)
		return -1;
	*outcome = PP_PDU_VERIFIED;
	return 0;
}

int pp_prove(const struct pp_prove_config *config, enum pp_pdu_outcome *outcome,
	struct pp_error *err)
{
	struct proving proving = { .config = config };
	int rc = -1;

	*outcome = PP_PDU_REFUSED;
	if (!config->alive)
		return pp_fail(err, PP_ERR_USAGE, "a proof needs a way to ask the machine");
	proving.pdu = pp_pdu_open(config->pdu, err);
	if (!proving.pdu)
		return -1;
	proving.guard = pp_guard_start(config->pdu, config->guard_exe, err);
	if (proving.guard) {
		rc = prove(&proving, outcome, err);
		pp_guard_stop(proving.guard, NULL);
	}
	close_others(&proving.others);
	pp_pdu_close(proving.pdu);
	return rc;
}
