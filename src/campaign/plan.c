/* SPDX-License-Identifier: MIT
 *
 * A table of keys drives the reading: section, key, type, range, place. What a person can get wrong
 * is said with file, line, and what would be right.
 */
#include "plan.h"
#include "plan_whole.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "orders.h"
#include "pdu/limits.h"
#include "src/core/file.h"
#include "src/core/text.h"

#define PLAN_BYTES_MAX (1U << 20)

enum section { CAMPAIGN, MACHINE, PDU, DRIVE, ARMS, LAB, SECTIONS };
static const char *const section_names[SECTIONS] = {
	"campaign", "machine", "pdu", "drive", "arms", "lab",
};

struct reader;
typedef int (*key_fn)(struct reader *r, const char *value);

enum key_type {
	K_TEXT, K_NUMBER, K_NUMBER64, K_BOOL, K_SECONDS_AS_MS, K_MIB, K_CALL,
};

struct plan_key {
	enum section section;
	const char *name;
	enum key_type type;
	size_t at, bytes;        /* in struct pp_plan, pp_plan_drive or pp_plan_arms */
	uint64_t min, max;
	key_fn call;
};

struct reader {
	struct pp_plan *plan;
	const char *file;
	int line;
	enum section section;
	const char *at;          /* text not yet read */
	void *base;              /* what offsets of this section's keys are from */
	uint64_t seen[2];        /* keys of this section already given, by their index */
	bool had[SECTIONS];
	char drives_named[PP_PLAN_ARMS_MAX][PP_PLAN_DRIVES_TEXT]; /* of arms: resolved at the end */
	char key[64];            /* the key being read, for messages of key_fn */
	struct pp_error *err;
};

static int bad(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int bad(struct reader *r, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return pp_fail(r->err, PP_ERR_USAGE, "%s:%d: %s", r->file, r->line, text);
}

/* ---- keys that need more than a range ------------------------------------------------------ */

static int read_criterion(struct reader *r, const char *value)
{
	struct pp_error why;

	if (pp_criterion_parse(value, &r->plan->criterion, &why) != 0)
		return bad(r, "%s", why.text);
	return 0;
}

static int read_seed(struct reader *r, const char *value)
{
	char *end;

	errno = 0;
	r->plan->seed = strtoull(value, &end, 0);
	if (!*value || *end || errno || *value == '-')
		return bad(r, "seed is '%s', expected a number", value);
	r->plan->has_seed = true;
	return 0;
}

static int read_listen(struct reader *r, const char *value)
{
	const char *colon = strrchr(value, ':');
	char *end;
	unsigned long port;

	if (!colon || strlen(value) >= sizeof(r->plan->listen_address))
		return bad(r, "listen is '%s', expected ADDRESS:PORT, such as 0.0.0.0:7333", value);
	port = strtoul(colon + 1, &end, 10);
	if (!colon[1] || *end || port > 65535)
		return bad(r, "listen is '%s': '%s' is no port", value, colon + 1);
	memcpy(r->plan->listen_address, value, (size_t)(colon - value));
	r->plan->listen_address[colon - value] = '\0';
	r->plan->listen_port = (uint16_t)port;
	return 0;
}

/* Splits "a, b, c"; each is trimmed and must not be empty. */
static int each_item(struct reader *r, const char *value,
	int (*item)(struct reader *r, const char *text))
{
	char text[256];
	const char *at = value;

	for (;;) {
		size_t n = strcspn(at, ",");
		const char *next = at + n;

		while (n && isspace((unsigned char)*at)) {
			at++;
			n--;
		}
		while (n && isspace((unsigned char)at[n - 1]))
			n--;
		if (n == 0 || n >= sizeof(text))
			return bad(r, "%s has an empty or over-long item: '%s'", r->key, value);
		memcpy(text, at, n);
		text[n] = '\0';
		if (item(r, text) != 0)
			return -1;
		if (!*next)
			return 0;
		at = next + 1;
	}
}

static int add_outlet(struct reader *r, const char *text)
{
	if (r->plan->outlets == PP_PLAN_OUTLETS_MAX || strlen(text) >= sizeof(r->plan->outlet[0]))
		return bad(r, "at most %d outlets", PP_PLAN_OUTLETS_MAX);
	strcpy(r->plan->outlet[r->plan->outlets++], text);
	return 0;
}

static int read_outlets(struct reader *r, const char *value)
{
	return each_item(r, value, add_outlet);
}

static int add_earlier(struct reader *r, const char *text)
{
	if (r->plan->earlier_count == 8)
		return bad(r, "at most 8 earlier campaigns");
	pp_text_copy(r->plan->earlier[r->plan->earlier_count++], 256, text);
	return 0;
}

static int read_earlier(struct reader *r, const char *value)
{
	return each_item(r, value, add_earlier);
}

static int read_cycles(struct reader *r, const char *value)
{
	char *end;
	unsigned long n;

	if (strcmp(value, "none") == 0) {
		r->plan->cycles_per_hour = 0;
		return 0;
	}
	n = strtoul(value, &end, 10);
	if (!*value || *end || n < 1 || n > 3600)
		return bad(r, "cycles_per_hour is '%s', expected 1 to 3600, or none", value);
	r->plan->cycles_per_hour = (int32_t)n;
	return 0;
}

/* "wol MAC[@ADDRESS[:PORT]]"; wol is the only way there is, and may be left out. */
static int read_wake(struct reader *r, const char *value)
{
	const char *mac = strncmp(value, "wol ", 4) == 0 ? value + 4 + strspn(value + 4, " ") : value;
	struct pp_error ignored;

	if (strlen(mac) >= sizeof(r->plan->pdu_wake) || pp_wake_check(mac, &ignored) != 0)
		return bad(r, "wake is '%s', expected wol MAC[@ADDRESS[:PORT]], such as wol "
			"52:54:00:12:34:56@10.0.0.255", value);
	strcpy(r->plan->pdu_wake, mac);
	return 0;
}

static int read_control_pace(struct reader *r, const char *value)
{
	char *end;
	unsigned long n;

	if (strcmp(value, "auto") == 0 || strcmp(value, "none") == 0) {
		r->plan->control_pace = *value == 'a' ? PP_PACE_AUTO : PP_PACE_NONE;
		return 0;
	}
	n = strtoul(value, &end, 10);
	if (!*value || *end || n < 1 || n > PP_ORDER_PACE_MAX)
		return bad(r, "control_pace is '%s', expected auto, none, or 1 to %d records a second",
			value, PP_ORDER_PACE_MAX);
	r->plan->control_pace = (uint32_t)n;
	return 0;
}

static int read_target(struct reader *r, const char *value)
{
	struct pp_plan_drive *d = r->base;

	if (strcmp(value, "raw") == 0)
		d->kind = PP_TARGET_RAW;
	else if (strcmp(value, "file") == 0)
		d->kind = PP_TARGET_FILE;
	else
		return bad(r, "target is '%s', expected file or raw", value);
	return 0;
}

static int read_cache(struct reader *r, const char *value)
{
	struct pp_plan_drive *d = r->base;

	if (strcmp(value, "protected") != 0 && strcmp(value, "unknown") != 0)
		return bad(r, "cache is '%s', expected protected or unknown", value);
	d->cache_protected = strcmp(value, "protected") == 0;
	return 0;
}

static int read_format(struct reader *r, const char *value)
{
	struct pp_plan_drive *d = r->base;
	static const char *const known[] = { "ext4", "xfs", "btrfs" };
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(value, known[i]) == 0) {
			strcpy(d->format, value);
			return 0;
		}
	return bad(r, "format is '%s', expected ext4, xfs or btrfs", value);
}

static int add_method(struct reader *r, const char *text)
{
	struct pp_plan_arms *a = r->base;
	const struct pp_method *method = pp_method_find(text);
	uint32_t i;

	if (strcmp(text, "all") == 0 || strcmp(text, "all windows") == 0)
		return bad(r, "methods = all stands alone: it names every method already");
	if (!method)
		return bad(r, "no method '%s'; 'plugpull matrix' lists them", text);
	for (i = 0; i < a->methods; i++)
		if (a->method[i] == method)
			return bad(r, "method '%s' is named twice", text);
	if (a->methods == PP_PLAN_METHODS_MAX)
		return bad(r, "too many methods");
	a->method[a->methods++] = method;
	return 0;
}

static int read_methods(struct reader *r, const char *value)
{
	struct pp_plan_arms *a = r->base;
	size_t i;
	enum pp_system system = strcmp(value, "all") == 0 ? PP_SYSTEM_LINUX
		: strcmp(value, "all windows") == 0 ? PP_SYSTEM_WINDOWS : PP_SYSTEM_ANY;

	if (system == PP_SYSTEM_ANY)
		return each_item(r, value, add_method);
	for (i = 0; i < pp_method_count_of(system); i++)
		a->method[a->methods++] = pp_method_of(system, i);
	return 0;
}

static int add_policy(struct reader *r, const char *text)
{
	struct pp_plan_arms *a = r->base;
	const struct pp_policy_setting *setting = pp_policy_setting_find(text);
	uint32_t i;

	if (!setting)
		return bad(r, "no policy '%s'; there are cache-on, cache-off and flushing-off", text);
	for (i = 0; i < a->policies; i++)
		if (a->policy[i] == setting)
			return bad(r, "policy '%s' is named twice", text);
	a->policy[a->policies++] = setting; /* there are fewer than PP_PLAN_POLICIES_MAX */
	return 0;
}

static int read_policy(struct reader *r, const char *value)
{
	return each_item(r, value, add_policy);
}

static int read_workload(struct reader *r, const char *value)
{
	struct pp_plan_arms *a = r->base;

	if (!pp_workload_find(value, &a->workload))
		return bad(r, "no workload '%s'; there are overwrite, append, fallocated, create, "
			"create-nodir and rename", value);
	return 0;
}

static int read_pattern(struct reader *r, const char *value)
{
	struct pp_plan_arms *a = r->base;

	if (strcmp(value, "random") != 0 && strcmp(value, "sequential") != 0)
		return bad(r, "pattern is '%s', expected sequential or random", value);
	a->random = strcmp(value, "random") == 0;
	return 0;
}

static int read_drives(struct reader *r, const char *value)
{
	if (strlen(value) >= sizeof(r->drives_named[0]))
		return bad(r, "drives is too long");
	strcpy(r->drives_named[r->plan->arm_sets - 1], value);
	return 0;
}

/* ---- the table ------------------------------------------------------------------------------ */

#define AT(s, m) offsetof(struct s, m), sizeof(((struct s *)0)->m)
#define P(m)     AT(pp_plan, m)
#define D(m)     AT(pp_plan_drive, m)
#define A(m)     AT(pp_plan_arms, m)

static const struct plan_key keys[] = {
	{ CAMPAIGN, "name", K_TEXT, P(name), 0, 0, NULL },
	{ CAMPAIGN, "operator", K_TEXT, P(operator), 0, 0, NULL },
	{ CAMPAIGN, "note", K_TEXT, P(note), 0, 0, NULL },
	{ CAMPAIGN, "criterion", K_CALL, 0, 0, 0, 0, read_criterion },
	{ CAMPAIGN, "cuts", K_NUMBER, P(cuts), 1, 1000000, NULL },
	{ CAMPAIGN, "write_min_ms", K_NUMBER, P(write_min_ms), 0, 3600000, NULL },
	{ CAMPAIGN, "write_max_ms", K_NUMBER, P(write_max_ms), 1, 3600000, NULL },
	{ CAMPAIGN, "controls", K_NUMBER, P(controls), 0, 1000, NULL },
	{ CAMPAIGN, "controls_end", K_NUMBER, P(controls_end), 0, 1000, NULL },
	{ CAMPAIGN, "controls_max", K_NUMBER, P(controls_max), 0, 1000, NULL },
	{ CAMPAIGN, "control_pace", K_CALL, 0, 0, 0, 0, read_control_pace },
	{ CAMPAIGN, "stop_at_first_loss", K_BOOL, P(stop_at_first_loss), 0, 0, NULL },
	{ CAMPAIGN, "confirm_boot", K_BOOL, P(confirm_boot), 0, 0, NULL },
	{ CAMPAIGN, "unproven", K_BOOL, P(unproven), 0, 0, NULL },
	{ CAMPAIGN, "seed", K_CALL, 0, 0, 0, 0, read_seed },
	{ CAMPAIGN, "matrix_ms", K_NUMBER, P(matrix_ms), 0, 3600000, NULL },
	{ CAMPAIGN, "voids_max", K_NUMBER, P(voids_max), 1, 1000, NULL },
	{ CAMPAIGN, "earlier", K_CALL, 0, 0, 0, 0, read_earlier },
	{ MACHINE, "name", K_TEXT, P(machine_name), 0, 0, NULL },
	{ MACHINE, "listen", K_CALL, 0, 0, 0, 0, read_listen },
	{ MACHINE, "key", K_TEXT, P(key_file), 0, 0, NULL },
	{ MACHINE, "address", K_TEXT, P(machine_address), 0, 0, NULL },
	{ MACHINE, "boot_deadline_s", K_NUMBER, P(boot_deadline_s), 1, 86400, NULL },
	{ MACHINE, "poweroff_deadline_s", K_NUMBER, P(poweroff_deadline_s), 1, 86400, NULL },
	{ MACHINE, "poweroff_settle_s", K_NUMBER, P(poweroff_settle_s), 0, 3600, NULL },
	{ MACHINE, "hold_up_ms", K_NUMBER, P(hold_up_ms), 0, 600000, NULL },
	{ MACHINE, "drive_wait_s", K_NUMBER, P(drive_wait_s), 0, 86400, NULL },
	{ MACHINE, "battery", K_BOOL, P(battery), 0, 0, NULL },
	{ PDU, "profile", K_TEXT, P(pdu_profile), 0, 0, NULL },
	{ PDU, "url", K_TEXT, P(pdu_url), 0, 0, NULL },
	{ PDU, "parameters", K_TEXT, P(pdu_parameters), 0, 0, NULL },
	{ PDU, "outlets", K_CALL, 0, 0, 0, 0, read_outlets },
	{ PDU, "credentials", K_TEXT, P(pdu_credentials), 0, 0, NULL },
	{ PDU, "identity", K_TEXT, P(pdu_identity), 0, 0, NULL },
	{ PDU, "label", K_TEXT, P(pdu_label), 0, 0, NULL },
	{ PDU, "ca", K_TEXT, P(pdu_ca), 0, 0, NULL },
	{ PDU, "pin", K_TEXT, P(pdu_pin), 0, 0, NULL },
	{ PDU, "insecure", K_BOOL, P(pdu_insecure), 0, 0, NULL },
	{ PDU, "state_dir", K_TEXT, P(pdu_state_dir), 0, 0, NULL },
	{ PDU, "proof", K_TEXT, P(pdu_proof), 0, 0, NULL },
	{ PDU, "wake", K_CALL, 0, 0, 0, 0, read_wake },
	{ PDU, "off_s", K_SECONDS_AS_MS, P(off_ms), 0, 86400, NULL },
	{ PDU, "min_off_s", K_SECONDS_AS_MS, P(min_off_ms), 0, 86400, NULL },
	{ PDU, "min_on_s", K_SECONDS_AS_MS, P(min_on_ms), 0, 86400, NULL },
	{ PDU, "cycles_per_hour", K_CALL, 0, 0, 0, 0, read_cycles },
	{ PDU, "cycles_max", K_NUMBER, P(cycles_max), 1, 10000000, NULL },
	{ PDU, "device_restore_s", K_SECONDS_AS_MS, P(device_restore_ms), 1, 86400, NULL },
	{ PDU, "verify_s", K_SECONDS_AS_MS, P(verify_ms), 1, 3600, NULL },
	{ PDU, "poll_ms", K_NUMBER, P(poll_ms), 20, 60000, NULL },
	{ PDU, "stagger_s", K_SECONDS_AS_MS, P(stagger_ms), 0, 3600, NULL },
	{ PDU, "watts_stale_s", K_SECONDS_AS_MS, P(watts_stale_ms), 0, 3600, NULL },
	{ DRIVE, "serial", K_TEXT, D(serial), 0, 0, NULL },
	{ DRIVE, "target", K_CALL, 0, 0, 0, 0, read_target },
	{ DRIVE, "format", K_CALL, 0, 0, 0, 0, read_format },
	{ DRIVE, "uuid", K_TEXT, D(uuid), 0, 0, NULL },
	{ DRIVE, "destroy", K_TEXT, D(destroy), 0, 0, NULL },
	{ DRIVE, "mount_options", K_TEXT, D(mount_options), 0, 0, NULL },
	{ DRIVE, "directory", K_TEXT, D(directory), 0, 0, NULL },
	{ DRIVE, "path", K_TEXT, D(path), 0, 0, NULL },
	{ DRIVE, "size_mib", K_MIB, D(size_bytes), 1, 1U << 24, NULL },
	{ DRIVE, "cache", K_CALL, 0, 0, 0, 0, read_cache },
	{ DRIVE, "boot_drive", K_BOOL, D(boot_drive), 0, 0, NULL },
	{ DRIVE, "force", K_BOOL, D(force), 0, 0, NULL },
	{ ARMS, "methods", K_CALL, 0, 0, 0, 0, read_methods },
	{ ARMS, "policy", K_CALL, 0, 0, 0, 0, read_policy },
	{ ARMS, "workload", K_CALL, 0, 0, 0, 0, read_workload },
	{ ARMS, "pattern", K_CALL, 0, 0, 0, 0, read_pattern },
	{ ARMS, "drives", K_CALL, 0, 0, 0, 0, read_drives },
	{ ARMS, "lanes", K_NUMBER, A(lanes), 1, PP_LANES_MAX, NULL },
	{ ARMS, "group", K_NUMBER, A(group), 1, PP_GROUP_MAX, NULL },
	{ ARMS, "record_bytes", K_NUMBER, A(record_bytes), 512, 1U << 20, NULL },
	{ ARMS, "sub_block", K_BOOL, A(sub_block), 0, 0, NULL },
	{ ARMS, "compressible", K_BOOL, A(compressible), 0, 0, NULL },
	{ ARMS, "optional", K_BOOL, A(optional), 0, 0, NULL },
	{ ARMS, "noise", K_BOOL, A(noise), 0, 0, NULL },
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

/* ---- reading --------------------------------------------------------------------------------- */

static int read_number(struct reader *r, const struct plan_key *k, const char *value, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(value, &end, 10);
	if (!isdigit((unsigned char)value[0]) || *end || errno || *out < k->min || *out > k->max)
		return bad(r, "%s is '%s', expected a whole number from %" PRIu64 " to %" PRIu64,
			k->name, value, k->min, k->max);
	return 0;
}

static int read_value(struct reader *r, const struct plan_key *k, const char *value)
{
	char *at = (char *)r->base + k->at;
	uint64_t n;

	switch (k->type) {
	case K_TEXT:
		if (!value[0] || strlen(value) >= k->bytes)
			return bad(r, "%s is empty or longer than %zu characters", k->name, k->bytes - 1);
		strcpy(at, value);
		return 0;
	case K_BOOL:
		if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
			return bad(r, "%s is '%s', expected yes or no", k->name, value);
		*(bool *)at = strcmp(value, "yes") == 0;
		return 0;
	case K_CALL:
		return k->call(r, value);
	case K_NUMBER:
	case K_NUMBER64:
	case K_SECONDS_AS_MS:
	case K_MIB:
		break;
	}
	if (read_number(r, k, value, &n) != 0)
		return -1;
	if (k->type == K_NUMBER)
		*(uint32_t *)(void *)at = (uint32_t)n;
	else if (k->type == K_SECONDS_AS_MS)
		*(int64_t *)(void *)at = (int64_t)n * 1000;
	else
		*(uint64_t *)(void *)at = k->type == K_MIB ? n << 20 : n;
	return 0;
}

static void default_drive(struct pp_plan_drive *d, const char *name)
{
	memset(d, 0, sizeof(*d));
	pp_text_copy(d->name, sizeof(d->name), name);
	d->kind = PP_TARGET_FILE;
	d->size_bytes = 256ULL << 20;
}

static void default_arms(struct pp_plan_arms *a, const char *name)
{
	memset(a, 0, sizeof(*a));
	pp_text_copy(a->name, sizeof(a->name), name);
	a->lanes = a->group = 1;
	a->record_bytes = 8192;
}

/* "drive nvme" is section drive, name nvme; the others have no name, arms may have one. */
static int begin_section(struct reader *r, const char *text)
{
	const char *blank = strchr(text, ' '), *name = blank ? blank + 1 : "";
	size_t n = blank ? (size_t)(blank - text) : strlen(text);
	uint32_t i;
	int s;

	memset(r->seen, 0, sizeof(r->seen));
	for (s = 0; s < SECTIONS; s++)
		if (strlen(section_names[s]) == n && strncmp(section_names[s], text, n) == 0)
			break;
	if (s == SECTIONS)
		return bad(r, "no section [%s]; there are campaign, machine, pdu, drive NAME, arms and lab",
			text);
	r->section = (enum section)s;
	r->base = r->plan;
	if (name[0] && s != DRIVE && s != ARMS)
		return bad(r, "section [%s] takes no name", section_names[s]);
	if (strlen(name) >= sizeof(r->plan->drive[0].name))
		return bad(r, "name of section [%s] is too long", text);
	if (s != DRIVE && s != ARMS && r->had[s])
		return bad(r, "section [%s] is there twice", text);
	r->had[s] = true;
	r->plan->has_lab |= s == LAB;
	if (s == DRIVE) {
		for (i = 0; i < r->plan->drives; i++)
			if (strcmp(r->plan->drive[i].name, name) == 0)
				return bad(r, "drive '%s' is there twice", name);
		if (!name[0] || r->plan->drives == PP_PLAN_DRIVES_MAX)
			return bad(r, "a drive needs a name: [drive NAME]; at most %d", PP_PLAN_DRIVES_MAX);
		r->base = &r->plan->drive[r->plan->drives++];
		default_drive(r->base, name);
	} else if (s == ARMS) {
		for (i = 0; i < r->plan->arm_sets; i++)
			if (strcmp(r->plan->arms[i].name, name) == 0)
				return bad(r, "arms '%s' are there twice", name);
		if (r->plan->arm_sets == PP_PLAN_ARMS_MAX)
			return bad(r, "at most %d sections of arms", PP_PLAN_ARMS_MAX);
		r->base = &r->plan->arms[r->plan->arm_sets++];
		default_arms(r->base, name);
	}
	return 0;
}

/* A plan goes into the evidence and from there to whoever reads it: no secrets (design, Danger). */
static int refuse_secrets(struct reader *r, const char *name, const char *value)
{
	static const char *const words[] = { "password", "passwd", "secret", "token", "passphrase" };
	const char *scheme = strstr(value, "://");
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasestr(name, words[i]))
			return bad(r, "a plan holds no secrets ('%s'): put it into a file of mode 0600 and "
				"name that with credentials = FILE", name);
	if (scheme && memchr(scheme + 3, '@', strcspn(scheme + 3, "/")))
		return bad(r, "the URL of '%s' holds a user or password: put them into a file of mode "
			"0600 and name that with credentials = FILE", name);
	return 0;
}

static int keep_lab_key(struct reader *r, const char *name, const char *value)
{
	struct pp_plan *plan = r->plan;
	struct pp_plan_lab_key *k;
	uint32_t i;

	for (i = 0; i < plan->lab_keys; i++)
		if (strcmp(plan->lab[i].key, name) == 0)
			return bad(r, "%s is given twice", name);
	if (plan->lab_keys == PP_PLAN_LAB_MAX || strlen(name) >= sizeof(k->key) ||
		strlen(value) >= sizeof(k->value))
		return bad(r, "too many or too long keys in [lab]");
	k = &plan->lab[plan->lab_keys++];
	strcpy(k->key, name);
	strcpy(k->value, value);
	k->line = r->line;
	return 0;
}

static int read_key(struct reader *r, const char *name, const char *value)
{
	size_t i;

	if (refuse_secrets(r, name, value) != 0)
		return -1;
	if (r->section == LAB)
		return keep_lab_key(r, name, value);
	for (i = 0; i < KEYS; i++)
		if (keys[i].section == r->section && strcmp(keys[i].name, name) == 0)
			break;
	if (i == KEYS)
		return bad(r, "[%s] has no key '%s'", section_names[r->section], name);
	if (r->seen[i / 64] >> i % 64 & 1)
		return bad(r, "%s is given twice", name);
	r->seen[i / 64] |= 1ULL << i % 64;
	pp_text_copy(r->key, sizeof(r->key), name);
	return read_value(r, &keys[i], value);
}

/*
 * Hands inih one line at a time, as fgets(3) would, and knows its number. Section lines are taken
 * here, as inih says nothing of a section without keys; blanks in front are dropped, as inih would
 * read such a line as the rest of the one before.
 */
static char *next_line(char *out, int bytes, void *ctx)
{
	struct reader *r = ctx;
	char name[128];
	size_t n;

	if (!*r->at || r->err->class != PP_ERR_NONE)
		return NULL;
	r->line++;
	n = strcspn(r->at, "\n");
	while (n && isspace((unsigned char)*r->at)) {
		r->at++;
		n--;
	}
	if (n + 2 > (size_t)bytes) {
		bad(r, "line is longer than %d characters", bytes - 2);
		return NULL;
	}
	memcpy(out, r->at, n);
	out[n] = '\n';
	out[n + 1] = '\0';
	r->at += n + (r->at[n] == '\n');
	if (out[0] == '[') {
		size_t m = strcspn(out + 1, "]");

		if (out[m + 1] != ']' || m >= sizeof(name)) {
			bad(r, "a section is [NAME], with a ']' at its end");
			return NULL;
		}
		memcpy(name, out + 1, m);
		name[m] = '\0';
		if (begin_section(r, name) != 0)
			return NULL;
	}
	return out;
}

/* inih's handler: 1 goes on, 0 is an error; the first one is kept. */
static int on_key(void *ctx, const char *section, const char *name, const char *value)
{
	struct reader *r = ctx;

	if (r->err->class != PP_ERR_NONE)
		return 0;
	if (!section[0] || !r->base)
		return bad(r, "'%s' stands before the first [section]", name) == 0;
	return read_key(r, name, value) == 0;
}

static void defaults(struct pp_plan *plan)
{
	struct pp_error ignored;

	memset(plan, 0, sizeof(*plan));
	strcpy(plan->name, "campaign");
	pp_criterion_parse("95/90", &plan->criterion, &ignored);
	plan->write_min_ms = 500;
	plan->write_max_ms = 5000;
	plan->controls = 4;
	plan->controls_end = 1;
	plan->controls_max = 12;
	plan->control_pace = PP_PACE_AUTO;
	plan->stop_at_first_loss = plan->confirm_boot = true;
	plan->matrix_ms = 2000;
	plan->voids_max = 3;
	strcpy(plan->listen_address, "0.0.0.0");
	plan->listen_port = 7333;
	plan->boot_deadline_s = 300;
	plan->poweroff_deadline_s = 120;
	plan->poweroff_settle_s = 10;
	plan->hold_up_ms = 5000;
	plan->drive_wait_s = 300;
	plan->off_ms = 10000;
	plan->min_off_ms = 10000;
	plan->min_on_ms = 60000;
	plan->cycles_per_hour = 30;
	plan->verify_ms = plan->stagger_ms = plan->watts_stale_ms = -1;
}

int pp_plan_parse(struct pp_plan *plan, const char *text, const char *name, struct pp_error *err)
{
	struct pp_error why = { .class = PP_ERR_NONE };
	struct reader r = { .plan = plan, .file = name, .at = text, .err = &why };
	int rc;

	/* An editor's mark of UTF-8 at the start is no part of the text. */
	if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
		r.at += 3;
	defaults(plan);
	rc = ini_parse_stream(next_line, &r, on_key, &r);
	if (why.class == PP_ERR_NONE && rc != 0)
		pp_fail(&why, PP_ERR_USAGE, "%s:%d: not a line of an INI file: expected 'key = value'",
			name, rc > 0 ? rc : 0);
	if (why.class == PP_ERR_NONE)
		pp_plan_whole(plan, name, (const char (*)[PP_PLAN_DRIVES_TEXT])r.drives_named, &why);
	if (why.class == PP_ERR_NONE)
		return 0;
	if (err)
		*err = why;
	return -1;
}

int pp_plan_load(struct pp_plan *plan, const char *path, struct pp_error *err)
{
	struct pp_buf buf;
	int rc;

	pp_buf_init(&buf, PLAN_BYTES_MAX);
	rc = pp_file_read(path, &buf, err);
	if (rc == 0 && buf.bytes && memchr(buf.data, '\0', buf.bytes))
		rc = pp_fail(err, PP_ERR_USAGE, "%s: not a text file", path);
	if (rc == 0)
		rc = pp_plan_parse(plan, buf.data ? buf.data : "", path, err);
	pp_buf_release(&buf);
	return rc;
}
