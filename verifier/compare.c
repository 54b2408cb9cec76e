/* SPDX-License-Identifier: MIT
 *
 * Method: counts first, then whether they may be compared at all, then the test. What a person has
 * to know to read the result stands in notes: a number of cuts that was not fixed before, cuts that
 * did not count, conditions other than the one that was meant to be compared.
 */
#include "compare.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/text.h"

#define LEVEL 0.05

static void note(struct pp_comparison *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void note(struct pp_comparison *c, const char *fmt, ...)
{
	va_list ap;

	if (c->note_count == PP_COMPARE_NOTES)
		return;
	va_start(ap, fmt);
	vsnprintf(c->notes[c->note_count++], sizeof(c->notes[0]), fmt, ap);
	va_end(ap);
}

/* ---- may it be compared? ------------------------------------------------------------------ */

static bool refuse(const struct pp_compare_side *side, char which, char *why, size_t bytes)
{
	const struct pp_verdict_arm *arm = side->arm;
	uint32_t unsettled = arm ? arm->cuts_open + arm->cuts_void_missing : 0;

	if (unsettled)
		return snprintf(why, bytes, "%u trial%s of %c may have lost data, and nobody settled it; "
			"'plugpull judge' names them", unsettled, unsettled == 1 ? "" : "s", which) > 0;
	if (side->cuts == 0)
		return snprintf(why, bytes, "%c has no cut that counts", which) > 0;
	/* Controls are repeated whatever they show (M1.4). */
	if (!arm || arm->control || side->lost == 0)
		return false;
	if (!side->stop_known)
		return snprintf(why, bytes, "the evidence of %c does not say whether it was stopped at "
			"its first loss; an arm that was has no unbiased rate", which) > 0;
	if (side->stop_at_first_loss)
		return snprintf(why, bytes, "%c was stopped at its first loss, so that the loss itself made "
			"the number of cuts: it has no unbiased rate; repeat it with a fixed number "
			"(stop_at_first_loss = no, cuts = N)", which) > 0;
	return false;
}

static void note_number(struct pp_comparison *c, int i)
{
	const struct pp_compare_side *side = &c->side[i];
	const struct pp_verdict_arm *arm = side->arm;
	uint32_t useless = arm ? arm->cuts_unexposed + arm->cuts_collateral : 0;
	char which = (char)('A' + i);

	if (!arm)
		return;
	if (side->cuts_fixed && side->cuts < side->cuts_fixed)
		note(c, "%u of the %u cuts that were planned for %c count: p holds only if it was not "
			"stopped for what it showed", side->cuts, side->cuts_fixed, which);
	else if (!side->cuts_fixed && side->lost)
		note(c, "the number of cuts of %c was not fixed before, but went on until enough were "
			"clean: p is approximate", which);
	if (useless)
		note(c, "%u cut%s of %c in which nothing was at risk, or others were damaged, do%s not "
			"count", useless, useless == 1 ? "" : "s", which, useless == 1 ? "es" : "");
}

/* ---- what differs besides ----------------------------------------------------------------- */

static void add_difference(char *text, size_t bytes, const char *what, const char *a, const char *b)
{
	size_t used = strlen(text);

	if (strcmp(a, b) != 0 && used < bytes)
		snprintf(text + used, bytes - used, "%s%s (%.40s / %.40s)", used ? ", " : "", what,
			a[0] ? a : "-", b[0] ? b : "-");
}

static void add_number(char *text, size_t bytes, const char *what, uint32_t a, uint32_t b)
{
	char x[16], y[16];

	snprintf(x, sizeof(x), "%u", a);
	snprintf(y, sizeof(y), "%u", b);
	add_difference(text, bytes, what, x, y);
}

static void note_conditions(struct pp_comparison *c)
{
	const struct pp_arm_key *a, *b;
	char text[320] = "";

	if (!c->side[0].arm || !c->side[1].arm)
		return;
	a = &c->side[0].arm->key;
	b = &c->side[1].arm->key;
	add_difference(text, sizeof(text), "drive", a->serial, b->serial);
	add_difference(text, sizeof(text), "model", a->model, b->model);
	add_difference(text, sizeof(text), "firmware", a->firmware, b->firmware);
	add_difference(text, sizeof(text), "method", a->method, b->method);
	add_difference(text, sizeof(text), "workload", a->workload, b->workload);
	add_difference(text, sizeof(text), "pattern", a->pattern, b->pattern);
	add_difference(text, sizeof(text), "target", a->target, b->target);
	add_difference(text, sizeof(text), "file system", a->fs, b->fs);
	add_difference(text, sizeof(text), "mount options", a->mount_options, b->mount_options);
	add_difference(text, sizeof(text), "policy", a->policy, b->policy);
	add_difference(text, sizeof(text), "policy setting", a->setting, b->setting);
	add_difference(text, sizeof(text), "kernel", a->kernel, b->kernel);
	add_difference(text, sizeof(text), "kind of cut", a->cut_kind, b->cut_kind);
	add_number(text, sizeof(text), "lanes", a->lanes, b->lanes);
	add_number(text, sizeof(text), "group", a->group, b->group);
	add_number(text, sizeof(text), "record bytes", a->record_bytes, b->record_bytes);
	add_number(text, sizeof(text), "noise", a->noise, b->noise);
	note(c, text[0] ? "A and B differ in: %s" : "A and B are alike in all conditions of an arm%s",
		text);
}

/* ---- the test ----------------------------------------------------------------------------- */

void pp_compare(struct pp_comparison *c, size_t together)
{
	const struct pp_compare_side *a = &c->side[0], *b = &c->side[1];
	uint32_t kept_a = a->cuts - a->lost, kept_b = b->cuts - b->lost;
	bool a_more = (uint64_t)a->lost * b->cuts >= (uint64_t)b->lost * a->cuts;
	int i;

	assert(a->lost <= a->cuts && b->lost <= b->cuts && together > 0);
	c->result = PP_COMPARE_NOT;
	c->refused[0] = '\0';
	c->note_count = 0;
	c->limit = LEVEL / (double)together;
	for (i = 0; i < 2; i++) {
		c->lower[i] = pp_stats_bound_lower(c->side[i].lost, c->side[i].cuts, 0.95);
		c->upper[i] = pp_stats_bound_upper(c->side[i].lost, c->side[i].cuts, 0.95);
	}
	for (i = 0; i < 2; i++)
		if (refuse(&c->side[i], (char)('A' + i), c->refused, sizeof(c->refused)))
			return;
	c->p_two_sided = pp_stats_fisher_two_sided(a->lost, kept_a, b->lost, kept_b);
	c->p_one_sided = a_more ? pp_stats_fisher_greater(a->lost, kept_a, b->lost, kept_b)
		: pp_stats_fisher_less(a->lost, kept_a, b->lost, kept_b);
	c->hopeless = pp_stats_fisher_two_sided(a->cuts, 0, 0, b->cuts) >= c->limit;
	c->result = c->p_two_sided >= c->limit ? PP_COMPARE_NONE_SHOWN
		: a_more ? PP_COMPARE_A_LOSES_MORE : PP_COMPARE_B_LOSES_MORE;
	note_conditions(c);
	if (!a->arm || !b->arm)
		note(c, "what was entered by hand is taken as settled, its number of cuts as fixed before");
	for (i = 0; i < 2; i++)
		note_number(c, i);
}

/* ---- sides -------------------------------------------------------------------------------- */

static const char *parse_count(const char *at, uint32_t *out)
{
	uint32_t value = 0;
	const char *first = at;

	for (; *at >= '0' && *at <= '9'; at++) {
		value = value * 10 + (uint32_t)(*at - '0');
		if (value > PP_STATS_N_MAX)
			return NULL;
	}
	*out = value;
	return at == first ? NULL : at;
}

bool pp_compare_counts(const char *text, struct pp_compare_side *side)
{
	uint32_t lost, cuts;
	const char *at = parse_count(text, &lost);

	if (!at || *at != '/')
		return false;
	at = parse_count(at + 1, &cuts);
	if (!at || *at || lost > cuts)
		return false;
	memset(side, 0, sizeof(*side));
	pp_text_copy(side->name, sizeof(side->name), text);
	side->lost = lost;
	side->cuts = cuts;
	return true;
}

int pp_compare_arm(const char *text, struct pp_compare_source *source, struct pp_error *err)
{
	const struct { char *out; } parts[] = { { source->method }, { source->workload },
		{ source->serial } };
	const char *at = text;
	size_t i;

	for (i = 0; i < 3; i++) {
		size_t bytes = strcspn(at, ",");

		/* A serial may have a comma: it is the last, and whole. */
		if (i == 2)
			bytes = strlen(at);
		if (bytes == 0 || bytes >= PP_TEXT_SHORT)
			break;
		memcpy(parts[i].out, at, bytes);
		parts[i].out[bytes] = '\0';
		at += bytes;
		if (!*at)
			return 0;
		at++;
	}
	return pp_fail(err, PP_ERR_USAGE, "'%s' names no arm: say METHOD[,WORKLOAD[,SERIAL]], as in "
		"'fdatasync,overwrite'", text);
}

void pp_compare_fill(struct pp_compare_side *side, const struct pp_compare_source *source,
	const struct pp_verdict_arm *arm)
{
	const struct pp_campaign_facts *facts = &source->evidence->facts;

	memset(side, 0, sizeof(*side));
	snprintf(side->name, sizeof(side->name), "%s: %s, %s on %s", source->folder, arm->key.method,
		arm->key.workload, arm->key.serial);
	side->arm = arm;
	side->lost = arm->cuts_loss;
	side->cuts = arm->cuts_loss + arm->cuts_clean;
	side->stop_known = facts->stop_known;
	side->stop_at_first_loss = facts->stop_at_first_loss;
	side->cuts_fixed = arm->control ? 0 : facts->cuts_fixed;
}

static bool fits(const struct pp_compare_source *source, const struct pp_verdict_arm *arm)
{
	if (arm->verdict == PP_ARM_NA || (!source->method[0] && arm->control))
		return false;
	return (!source->method[0] || strcmp(source->method, arm->key.method) == 0) &&
		(!source->workload[0] || strcmp(source->workload, arm->key.workload) == 0) &&
		(!source->serial[0] || strcmp(source->serial, arm->key.serial) == 0);
}

static size_t count_fitting(const struct pp_compare_source *source,
	const struct pp_verdict_arm **last)
{
	size_t i, n = 0;

	for (i = 0; i < source->verdict->arm_count; i++)
		if (fits(source, &source->verdict->arms[i])) {
			*last = &source->verdict->arms[i];
			n++;
		}
	return n;
}

const struct pp_verdict_arm *pp_compare_only(const struct pp_compare_source *source,
	struct pp_error *err)
{
	const struct pp_verdict_arm *arm = NULL;
	size_t n = count_fitting(source, &arm);

	if (n == 1)
		return arm;
	if (n == 0)
		pp_fail(err, PP_ERR_USAGE, "'%s' has no such arm%s%s", source->folder,
			source->method[0] ? ": " : "", source->method);
	else
		pp_fail(err, PP_ERR_USAGE, "%zu arms of '%s' fit: name one with "
			"#METHOD,WORKLOAD,SERIAL", n, source->folder);
	return NULL;
}

/* ---- campaigns ---------------------------------------------------------------------------- */

static bool alike(const struct pp_arm_key *a, const struct pp_arm_key *b)
{
	return strcmp(a->method, b->method) == 0 && strcmp(a->workload, b->workload) == 0 &&
		strcmp(a->target, b->target) == 0 && strcmp(a->pattern, b->pattern) == 0 &&
		a->lanes == b->lanes && a->group == b->group && a->record_bytes == b->record_bytes;
}

/* The like of an arm in another campaign; *several: there is more than one, and none stands out. */
static const struct pp_verdict_arm *like(const struct pp_compare_source *in,
	const struct pp_verdict_arm *arm, bool *several)
{
	const struct pp_verdict_arm *any = NULL, *same = NULL;
	size_t i, n = 0, n_same = 0;

	for (i = 0; i < in->verdict->arm_count; i++) {
		const struct pp_verdict_arm *other = &in->verdict->arms[i];

		if (!fits(in, other) || !alike(&other->key, &arm->key))
			continue;
		any = other;
		n++;
		if (strcmp(other->key.serial, arm->key.serial) == 0) {
			same = other;
			n_same++;
		}
	}
	*several = n_same ? n_same > 1 : n > 1;
	return *several ? NULL : n_same ? same : any;
}

static void add_pair(struct pp_comparisons *out, const struct pp_compare_source *a,
	const struct pp_verdict_arm *x, const struct pp_compare_source *b,
	const struct pp_verdict_arm *y)
{
	struct pp_comparison *c = &out->list[out->count++];

	memset(c, 0, sizeof(*c));
	pp_compare_fill(&c->side[0], a, x);
	pp_compare_fill(&c->side[1], b, y);
}

static int pair_all(const struct pp_compare_source *a, const struct pp_compare_source *b,
	struct pp_comparisons *out, struct pp_error *err)
{
	size_t i;

	for (i = 0; i < a->verdict->arm_count; i++) {
		const struct pp_verdict_arm *x = &a->verdict->arms[i], *y, *back;
		bool several, several_back = false;

		if (!fits(a, x))
			continue;
		y = like(b, x, &several);
		back = y ? like(a, y, &several_back) : NULL;
		if (several || several_back || (y && back != x))
			return pp_fail(err, PP_ERR_USAGE, "more than one arm is like %s, %s on %s: name "
				"both with DIR#METHOD,WORKLOAD,SERIAL", x->key.method, x->key.workload,
				x->key.serial);
		if (y)
			add_pair(out, a, x, b, y);
		else
			out->alone++;
	}
	for (i = 0; i < b->verdict->arm_count; i++) {
		bool several;

		out->alone += fits(b, &b->verdict->arms[i]) && !like(a, &b->verdict->arms[i], &several);
	}
	if (out->count == 0)
		return pp_fail(err, PP_ERR_USAGE, "no arm of '%s' is like one of '%s': name two with "
			"DIR#METHOD", a->folder, b->folder);
	return 0;
}

static int pair(const struct pp_compare_source *a, const struct pp_compare_source *b,
	struct pp_comparisons *out, struct pp_error *err)
{
	const struct pp_verdict_arm *x = NULL, *y = NULL;
	size_t i, left = count_fitting(a, &x), right = count_fitting(b, &y);

	if (left == 0 || right == 0) {
		pp_compare_only(left == 0 ? a : b, err);
		return -1;
	}
	if (left == 1 && right == 1)
		add_pair(out, a, x, b, y);
	else if (pair_all(a, b, out, err) != 0)
		return -1;
	if (!pp_evidence_same_campaign(a->evidence, b->evidence))
		return 0;
	for (i = 0; i < out->count; i++)
		if (pp_arm_key_equal(&out->list[i].side[0].arm->key, &out->list[i].side[1].arm->key))
			return pp_fail(err, PP_ERR_USAGE, "both are the same arm of one campaign: %s",
				out->list[i].side[0].name);
	return 0;
}

int pp_compare_campaigns(const struct pp_compare_source *a, const struct pp_compare_source *b,
	struct pp_comparisons *out, struct pp_error *err)
{
	size_t i;

	memset(out, 0, sizeof(*out));
	out->list = calloc(a->verdict->arm_count + 1, sizeof(*out->list));
	if (!out->list)
		return pp_fail(err, PP_ERR_SYSTEM, "cannot compare: out of memory");
	if (pair(a, b, out, err) != 0) {
		pp_comparisons_release(out);
		return -1;
	}
	for (i = 0; i < out->count; i++)
		pp_compare(&out->list[i], out->count);
	return 0;
}

void pp_comparisons_release(struct pp_comparisons *c)
{
	free(c->list);
	memset(c, 0, sizeof(*c));
}

int pp_comparisons_exit(const struct pp_comparisons *c)
{
	size_t i, refused = 0;

	for (i = 0; i < c->count; i++) {
		if (c->list[i].result > PP_COMPARE_NONE_SHOWN)
			return 1;
		refused += c->list[i].result == PP_COMPARE_NOT;
	}
	return refused || c->count == 0 ? 2 : 0;
}
