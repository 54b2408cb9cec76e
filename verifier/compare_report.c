/* SPDX-License-Identifier: MIT
 *
 * What a comparison says, in words for people and as JSON.
 */
#include "compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_fields.h"

/* "22.4 % to 100 %", and at the corners only the bound that says something. */
static void say_bounds(const struct pp_comparison *c, int i, char *out, size_t bytes)
{
	char low[16], high[16];

	pp_report_share(low, sizeof(low), c->lower[i]);
	pp_report_share(high, sizeof(high), c->upper[i]);
	if (c->side[i].lost == 0)
		snprintf(out, bytes, "at most %s", high);
	else if (c->side[i].lost == c->side[i].cuts)
		snprintf(out, bytes, "at least %s", low);
	else
		snprintf(out, bytes, "at least %s, at most %s", low, high);
}

static void add_side(struct pp_buf *out, const struct pp_comparison *c, int i)
{
	const struct pp_compare_side *side = &c->side[i];
	char lead[8], bounds[64], text[200];

	snprintf(lead, sizeof(lead), "%c  ", 'A' + i);
	if (side->arm) {
		pp_report_wrapped(out, lead, side->name);
		snprintf(lead, sizeof(lead), "   ");
	}
	say_bounds(c, i, bounds, sizeof(bounds));
	if (side->cuts == 0)
		snprintf(text, sizeof(text), "no cut that counts");
	else
		snprintf(text, sizeof(text), "lost in %u of %u cut%s: %s of cuts lose (95 %%)", side->lost,
			side->cuts, side->cuts == 1 ? "" : "s", bounds);
	pp_report_wrapped(out, lead, text);
}

/* Per cent of a probability, two figures. */
static const char *chance(char *out, size_t bytes, double p)
{
	if (p < 1e-6)
		snprintf(out, bytes, "less than 0.0001");
	else
		snprintf(out, bytes, p >= 0.0995 ? "%.0f" : "%.2g", 100.0 * p);
	return out;
}

static void say_difference(const struct pp_comparison *c, char *text, size_t bytes)
{
	bool a = c->result == PP_COMPARE_A_LOSES_MORE;
	char often[32];

	snprintf(text, bytes, "difference: %c loses in a larger share of cuts than %c. If both lost "
		"equally often, counts as far apart as these would come up in %s %% of comparisons.",
		a ? 'A' : 'B', a ? 'B' : 'A', chance(often, sizeof(often), c->p_two_sided));
}

static void say_none(const struct pp_comparison *c, char *text, size_t bytes)
{
	char often[32], high[2][16];

	pp_report_share(high[0], sizeof(high[0]), c->upper[0]);
	pp_report_share(high[1], sizeof(high[1]), c->upper[1]);
	snprintf(text, bytes, "no difference shown: counts as far apart as these come up by chance in "
		"%s %% of comparisons. That does not show that A and B are alike: A may lose in up to "
		"%s of cuts, B in up to %s.%s", chance(often, sizeof(often), c->p_two_sided), high[0],
		high[1], c->hopeless ?
		" With so few cuts no outcome could have shown a difference." : "");
}

static void add_one(struct pp_buf *out, const struct pp_comparison *c, size_t together)
{
	char text[700];
	size_t i;

	add_side(out, c, 0);
	add_side(out, c, 1);
	if (c->result == PP_COMPARE_NOT) {
		snprintf(text, sizeof(text), "not compared: %s", c->refused);
		pp_report_wrapped(out, "   ", text);
		return;
	}
	if (together > 1)
		snprintf(text, sizeof(text), "Fisher's exact test: p = %.2g two-sided, %.2g one-sided; "
			"%zu comparisons at once, so a difference needs p below %.2g", c->p_two_sided,
			c->p_one_sided, together, c->limit);
	else
		snprintf(text, sizeof(text), "Fisher's exact test: p = %.2g two-sided, %.2g one-sided; a "
			"difference needs two-sided p below %.2g", c->p_two_sided, c->p_one_sided,
			c->limit);
	pp_report_wrapped(out, "   ", text);
	if (c->result == PP_COMPARE_NONE_SHOWN)
		say_none(c, text, sizeof(text));
	else
		say_difference(c, text, sizeof(text));
	pp_report_wrapped(out, "   ", text);
	for (i = 0; i < c->note_count; i++)
		pp_report_wrapped(out, "   - ", c->notes[i]);
}

int pp_comparisons_text(const struct pp_comparisons *c, struct pp_buf *out, struct pp_error *err)
{
	size_t i;

	for (i = 0; i < c->count; i++) {
		pp_buf_addf(out, "%s", i ? "\n" : "");
		add_one(out, &c->list[i], c->count);
	}
	if (c->alone)
		pp_buf_addf(out, "\n%zu arm%s of one side %s no like on the other\n", c->alone,
			c->alone == 1 ? "" : "s", c->alone == 1 ? "has" : "have");
	return out->failed ? pp_fail(err, PP_ERR_SYSTEM, "cannot print the comparison: out of memory")
		: 0;
}

/* ---- JSON --------------------------------------------------------------------------------- */

static json_t *text_value(const char *text)
{
	char ascii[512];

	return json_string(pp_report_ascii(ascii, sizeof(ascii), text));
}

static json_t *side_json(const struct pp_comparison *c, int i)
{
	const struct pp_compare_side *side = &c->side[i];
	json_t *o = json_object();

	json_object_set_new(o, "name", text_value(side->name));
	json_object_set_new(o, "by_hand", json_boolean(!side->arm));
	json_object_set_new(o, "cuts_lost", json_integer(side->lost));
	json_object_set_new(o, "cuts", json_integer(side->cuts));
	json_object_set_new(o, "loss_bound_95_lower", json_real(c->lower[i]));
	json_object_set_new(o, "loss_bound_95", json_real(c->upper[i]));
	return o;
}

static json_t *one_json(const struct pp_comparison *c)
{
	static const struct { const char *result, *more; } words[] = {
		[PP_COMPARE_NOT] = { "not compared", NULL },
		[PP_COMPARE_NONE_SHOWN] = { "no difference shown", NULL },
		[PP_COMPARE_A_LOSES_MORE] = { "difference", "a" },
		[PP_COMPARE_B_LOSES_MORE] = { "difference", "b" },
	};
	bool compared = c->result != PP_COMPARE_NOT;
	json_t *o = json_object(), *notes = json_array();
	size_t i;

	json_object_set_new(o, "a", side_json(c, 0));
	json_object_set_new(o, "b", side_json(c, 1));
	json_object_set_new(o, "result", json_string(words[c->result].result));
	json_object_set_new(o, "loses_more", words[c->result].more ?
		json_string(words[c->result].more) : json_null());
	json_object_set_new(o, "p_two_sided", compared ? json_real(c->p_two_sided) : json_null());
	json_object_set_new(o, "p_one_sided", compared ? json_real(c->p_one_sided) : json_null());
	json_object_set_new(o, "p_limit", json_real(c->limit));
	json_object_set_new(o, "hopeless", json_boolean(compared && c->hopeless));
	json_object_set_new(o, "reason", compared ? json_null() : text_value(c->refused));
	for (i = 0; i < c->note_count; i++)
		json_array_append_new(notes, text_value(c->notes[i]));
	json_object_set_new(o, "notes", notes);
	return o;
}

int pp_comparisons_json(const struct pp_comparisons *c, struct pp_buf *out, struct pp_error *err)
{
	json_t *o = json_object(), *list = json_array();
	char *text;
	size_t i;

	for (i = 0; i < c->count; i++)
		json_array_append_new(list, one_json(&c->list[i]));
	json_object_set_new(o, "format", json_integer(1));
	json_object_set_new(o, "comparisons", list);
	json_object_set_new(o, "arms_alone", json_integer((json_int_t)c->alone));
	text = json_dumps(o, JSON_INDENT(2) | JSON_REAL_PRECISION(6) | JSON_ENSURE_ASCII);
	if (text)
		pp_buf_addf(out, "%s\n", text);
	json_decref(o);
	if (!text || out->failed) {
		free(text);
		return pp_fail(err, PP_ERR_SYSTEM, "cannot print the comparison: out of memory");
	}
	free(text);
	return 0;
}
