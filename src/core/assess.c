/* SPDX-License-Identifier: MIT
 *
 * The rules of suspicion, a row each. Limits are physics (the rate of a link, a turn of the
 * platter, the way of a command there and back) or the disk's own counters; the two ratios are from
 * published results, in which they stand far from both sides: drives that waited for write-through
 * were 1.0 to 1.1 times as fast by it as by a flush (up to 2.1 with the cache off, NTFS), drives
 * that did not were 8.9 to 86 times as fast.
 */
#include "assess.h"

#include <stdio.h>
#include <string.h>

#include "text.h"

#define FOOTGUN_RATIO       5.0
#define LIKE_DIRECT_RATIO   0.8
#define FLUSH_NS_LEAST      5000.0
#define FLUSHES_A_SYNC      0.5
#define RPM_MOST            15000.0
#define READ_SEEN           0.9

#define SAY(finding, ...) (pp_text_format((finding)->text, sizeof((finding)->text), __VA_ARGS__), true)

static bool offends_link(const struct pp_assess_input *in, const struct pp_assess_row *row,
	struct pp_assess_finding *f)
{
	f->figure = row->bytes_per_s;
	f->limit = in->facts.link.bytes_per_s;
	/* What stays in RAM is no matter of the link. */
	if (f->limit <= 0 || f->figure <= f->limit || row->kind == PP_ASSESS_UNSYNCED)
		return false;
	return SAY(f, "%.0f MB/s, but the link (%s) carries at most %.0f MB/s: not all of it passed "
		"there", f->figure / 1e6, in->facts.link.text, f->limit / 1e6);
}

static bool offends_rotation(const struct pp_assess_input *in, const struct pp_assess_row *row,
	struct pp_assess_finding *f)
{
	double rpm = in->facts.rpm > 0 ? in->facts.rpm : RPM_MOST;

	if ((!in->facts.rotational && in->facts.rpm <= 0) || !row->media || row->threads > 1 ||
		!row->in_place)
		return false;
	f->figure = row->ops_per_s;
	f->limit = rpm / 60;
	if (f->figure <= f->limit)
		return false;
	return SAY(f, "%.0f syncs a second of the same block, but the platter turns %.0f times: the "
		"medium was not waited for", f->figure, f->limit);
}

/* The fastest flush of the same group. */
static const struct pp_assess_row *fastest(const struct pp_assess_input *in,
	const struct pp_assess_row *row, enum pp_assess_kind kind)
{
	const struct pp_assess_row *best = NULL;
	size_t i;

	for (i = 0; i < in->count; i++) {
		const struct pp_assess_row *other = &in->rows[i];

		if (other->kind == kind && (other->media || kind == PP_ASSESS_DIRECT) &&
			other->ops_per_s > 0 && strcmp(other->group, row->group) == 0 &&
			(!best || other->ops_per_s > best->ops_per_s))
			best = other;
	}
	return best;
}

static bool offends_footgun(const struct pp_assess_input *in, const struct pp_assess_row *row,
	struct pp_assess_finding *f)
{
	const struct pp_assess_row *flush = row->kind == PP_ASSESS_WRITE_THROUGH && row->media &&
		row->ops_per_s > 0 ? fastest(in, row, PP_ASSESS_FLUSH) : NULL;

	if (!flush)
		return false;
	f->figure = row->ops_per_s / flush->ops_per_s;
	f->limit = FOOTGUN_RATIO;
	if (f->figure < f->limit)
		return false;
	return SAY(f, "%.0f ops/s, %.1f times %s's %.0f (limit %.0f): write-through that is so much "
		"faster than a flush is not waited for", row->ops_per_s, f->figure, flush->label,
		flush->ops_per_s, f->limit);
}

static bool offends_no_flush(const struct pp_assess_input *in, const struct pp_assess_row *row,
	struct pp_assess_finding *f)
{
	(void)in;
	/* Where others' requests are taken off the counts, too few are left of ours now and then. */
	if (!row->media || row->passthrough || row->foreign || row->flushes_per_op < 0 ||
		(row->fua_per_op < 0 && row->may_send_fua))
		return false;
	f->figure = row->flushes_per_op + (row->fua_per_op > 0 ? row->fua_per_op : 0);
	f->limit = FLUSHES_A_SYNC / (row->threads > 1 ? row->threads : 1);
	if (f->figure >= f->limit)
		return false;
	return SAY(f, "%.2f flushes a sync reached the disk (limit %.2f): the kernel did not ask the "
		"drive", f->figure, f->limit);
}

static bool offends_like_direct(const struct pp_assess_input *in, const struct pp_assess_row *row,
	struct pp_assess_finding *f)
{
	const struct pp_assess_row *direct = in->facts.cache == PP_ASSESS_CACHE_ON &&
		row->kind == PP_ASSESS_FLUSH && row->media && row->in_place && row->ops_per_s > 0
		? fastest(in, row, PP_ASSESS_DIRECT) : NULL;

	if (!direct)
		return false;
	f->figure = row->ops_per_s / direct->ops_per_s;
	f->limit = LIKE_DIRECT_RATIO;
	if (f->figure < f->limit)
		return false;
	return SAY(f, "%.0f ops/s, %.2f of plain direct writes' %.0f (limit %.2f), on a drive with a "
		"volatile cache: it is protected, or ignores the flush", row->ops_per_s, f->figure, direct->ops_per_s,
		f->limit);
}

static bool offends_round_trip(const struct pp_assess_input *in, const struct pp_assess_row *row,
	struct pp_assess_finding *f)
{
	(void)in;
	f->figure = row->latency_ns_p50;
	f->limit = FLUSH_NS_LEAST;
	if (!row->media || f->figure <= 0 || f->figure >= f->limit || row->threads > 1)
		return false;
	return SAY(f, "median %.2f us, faster than a command can reach a drive and come back "
		"(%.0f us)", f->figure / 1e3, f->limit / 1e3);
}

static bool offends_unseen_read(const struct pp_assess_input *in, const struct pp_assess_row *row,
	struct pp_assess_finding *f)
{
	(void)in;
	if (row->kind != PP_ASSESS_READ || row->disk_bytes < 0 || row->bytes_asked <= 0)
		return false;
	f->figure = row->disk_bytes / row->bytes_asked;
	f->limit = READ_SEEN;
	if (f->figure >= f->limit)
		return false;
	return SAY(f, "the disk delivered %.2f of what was read (limit %.2f): the rest came from RAM "
		"or was never stored", f->figure, f->limit);
}

static bool offends_foreign(const struct pp_assess_input *in, const struct pp_assess_row *row,
	struct pp_assess_finding *f)
{
	(void)in;
	f->figure = row->foreign_per_s;
	f->limit = 0;
	return row->foreign && SAY(f, "others sent %.0f requests a second to this disk: the counts are "
		"not of this test alone", f->figure);
}

const struct pp_assess_rule pp_assess_rules[] = {
	{ "link", "more bytes a second than the link to the drive carries", offends_link },
	{ "rotation", "more syncs a second than the platter turns", offends_rotation },
	{ "footgun", "write-through 5 times as fast as a flush, or more", offends_footgun },
	{ "no-flush", "fewer flushes than syncs, as the disk counted", offends_no_flush },
	{ "like-direct", "a flush as fast as none on a drive with a volatile cache",
		offends_like_direct },
	{ "round-trip", "faster than a command can reach a drive and come back",
		offends_round_trip },
	{ "unseen-read", "more was read than the disk delivered", offends_unseen_read },
	{ "foreign", "others use the disk: its counters are not of the test alone",
		offends_foreign },
};
const size_t pp_assess_rule_count = sizeof(pp_assess_rules) / sizeof(pp_assess_rules[0]);

size_t pp_assess(const struct pp_assess_input *input, struct pp_assess_finding *findings, size_t max)
{
	size_t count = 0, r, i;

	for (r = 0; r < pp_assess_rule_count; r++)
		for (i = 0; i < input->count; i++) {
			struct pp_assess_finding f = { .rule = pp_assess_rules[r].name,
				.row = &input->rows[i] };

			if (!pp_assess_rules[r].offends(input, &input->rows[i], &f))
				continue;
			if (count < max)
				findings[count] = f;
			count++;
		}
	return count;
}
