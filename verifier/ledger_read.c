/* SPDX-License-Identifier: MIT
 *
 * Reading a ledger and asking it what the judge needs to know. Everything is checked once, here;
 * the questions then cannot fail.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ledger_format.h"
#include "src/core/file.h"

#define FILE_BYTES_MAX ((size_t)8 << 30)

void pp_ledger_data_release(struct pp_ledger_data *d)
{
	free(d->entries);
	free(d->lane_at);
	free(d->acks);
	memset(d, 0, sizeof(*d));
}

/* A bad entry is a torn end only if nothing good follows; otherwise somebody damaged the middle. */
static int check_tail(const uint8_t *entries, size_t whole, size_t bad, uint64_t seed,
	struct pp_error *err)
{
	struct pp_ledger_entry e;
	size_t i;

	for (i = bad + 1; i < whole; i++)
		if (pp_ledger_entry_get(entries + i * PP_LEDGER_ENTRY_BYTES, seed, i, &e))
			return pp_fail(err, PP_ERR_EVIDENCE, "entry %zu of the ledger is damaged, and entry "
				"%zu behind it is not", bad, i);
	return 0;
}

static int check_entry(const struct pp_ledger_entry *e, size_t number, uint64_t *acked,
	uint32_t lanes, struct pp_error *err)
{
	if (e->type < PP_LEDGER_ACK || e->type > PP_LEDGER_MARK || e->t_ns < 0)
		return pp_fail(err, PP_ERR_EVIDENCE, "entry %zu of the ledger is of an unknown type or "
			"time", number);
	if (e->type != PP_LEDGER_ACK)
		return 0;
	if (e->c >= lanes)
		return pp_fail(err, PP_ERR_EVIDENCE, "entry %zu of the ledger acks an unknown lane",
			number);
	if (pp_ledger_ack_check(acked, lanes, (uint32_t)e->c, e->a, e->b, err) != 0)
		return pp_fail_within(err, "entry %zu of the ledger", number);
	acked[e->c] = e->b;
	return 0;
}

static int read_entries(const uint8_t *at, size_t whole, struct pp_ledger_data *d, uint64_t *acked,
	struct pp_error *err)
{
	uint64_t seed = pp_ledger_seed(&d->run);
	size_t i;

	for (i = 0; i < whole; i++) {
		struct pp_ledger_entry *e = &d->entries[i];

		if (!pp_ledger_entry_get(at + i * PP_LEDGER_ENTRY_BYTES, seed, i, e)) {
			if (check_tail(at, whole, i, seed, err) != 0)
				return -1;
			break;
		}
		if (check_entry(e, i, acked, d->lanes, err) != 0)
			return -1;
	}
	d->count = i;
	return 0;
}

/* Sorts the ACK entries by lane, keeping their order: a count, a running sum, a fill. */
static int build_index(struct pp_ledger_data *d, struct pp_error *err)
{
	size_t acks = 0, i, *next;
	uint32_t lane;

	d->lane_at = calloc((size_t)d->lanes + 2, sizeof(*d->lane_at));
	for (i = 0; i < d->count; i++)
		acks += d->entries[i].type == PP_LEDGER_ACK;
	d->acks = malloc((acks ? acks : 1) * sizeof(*d->acks));
	if (!d->lane_at || !d->acks)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory for a ledger");
	/* one place further on, so that after the fill lane_at[i] is where lane i begins */
	next = d->lane_at + 1;
	for (i = 0; i < d->count; i++)
		if (d->entries[i].type == PP_LEDGER_ACK)
			next[d->entries[i].c + 1]++;
	for (lane = 0; lane < d->lanes; lane++)
		next[lane + 1] += next[lane];
	for (i = 0; i < d->count; i++)
		if (d->entries[i].type == PP_LEDGER_ACK)
			d->acks[next[d->entries[i].c]++] = i;
	return 0;
}

int pp_ledger_read(const void *bytes, size_t count, struct pp_ledger_data *d, struct pp_error *err)
{
	const uint8_t *at = bytes;
	size_t whole;
	uint64_t *acked = NULL;
	int rc = -1;

	memset(d, 0, sizeof(*d));
	if (count < PP_LEDGER_HEADER_BYTES)
		return pp_fail(err, PP_ERR_EVIDENCE, "not a ledger: only %zu bytes", count);
	if (pp_ledger_header_get(at, &d->run, &d->lanes, err) != 0)
		goto out;
	whole = (count - PP_LEDGER_HEADER_BYTES) / PP_LEDGER_ENTRY_BYTES;
	acked = calloc(d->lanes, sizeof(*acked));
	d->entries = malloc((whole ? whole : 1) * sizeof(*d->entries));
	if (!acked || !d->entries) {
		pp_fail(err, PP_ERR_SYSTEM, "out of memory for a ledger of %zu entries", whole);
		goto out;
	}
	if (read_entries(at + PP_LEDGER_HEADER_BYTES, whole, d, acked, err) != 0)
		goto out;
	d->dropped_bytes = count - PP_LEDGER_HEADER_BYTES - d->count * PP_LEDGER_ENTRY_BYTES;
	d->truncated = d->dropped_bytes != 0;
	rc = build_index(d, err);
out:
	free(acked);
	if (rc != 0)
		pp_ledger_data_release(d);
	return rc;
}

int pp_ledger_load(const char *path, struct pp_ledger_data *d, struct pp_error *err)
{
	struct pp_buf buf;
	int rc;

	memset(d, 0, sizeof(*d));
	pp_buf_init(&buf, FILE_BYTES_MAX);
	rc = pp_file_read(path, &buf, err);
	if (rc == 0) {
		rc = pp_ledger_read(buf.data, buf.bytes, d, err);
		if (rc != 0)
			pp_fail_within(err, "'%s'", path);
	}
	pp_buf_release(&buf);
	return rc;
}

/* ---- questions ---------------------------------------------------------------------------- */
static const struct pp_ledger_entry *lane_ack(const struct pp_ledger_data *d, uint32_t lane,
	size_t index)
{
	return &d->entries[d->acks[d->lane_at[lane] + index]];
}

static size_t lane_acks(const struct pp_ledger_data *d, uint32_t lane)
{
	return lane < d->lanes ? d->lane_at[lane + 1] - d->lane_at[lane] : 0;
}

uint64_t pp_ledger_data_acked(const struct pp_ledger_data *d, uint32_t lane)
{
	size_t n = lane_acks(d, lane);

	return n ? lane_ack(d, lane, n - 1)->b : 0;
}

uint64_t pp_ledger_data_records(const struct pp_ledger_data *d)
{
	uint64_t records = 0;
	uint32_t lane;

	for (lane = 0; lane < d->lanes; lane++)
		records += pp_ledger_data_acked(d, lane);
	return records;
}

int64_t pp_ledger_t_acked(const struct pp_ledger_data *d, uint32_t lane, uint64_t seq)
{
	size_t low = 0, high = lane_acks(d, lane);

	if (seq == 0 || seq > pp_ledger_data_acked(d, lane))
		return PP_LEDGER_NEVER;
	/* the first ack whose last is not before seq */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lane_ack(d, lane, middle)->b < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return lane_ack(d, lane, low)->t_ns;
}

static int64_t latest(const struct pp_ledger_data *d, enum pp_ledger_type from,
	enum pp_ledger_type to)
{
	int64_t t = PP_LEDGER_NEVER;
	size_t i;

	for (i = 0; i < d->count; i++)
		if (d->entries[i].type >= from && d->entries[i].type <= to && d->entries[i].t_ns > t)
			t = d->entries[i].t_ns;
	return t;
}

int64_t pp_ledger_t_last(const struct pp_ledger_data *d)
{
	return latest(d, PP_LEDGER_ACK, PP_LEDGER_FRAME);
}

int64_t pp_ledger_t_last_ack(const struct pp_ledger_data *d)
{
	return latest(d, PP_LEDGER_ACK, PP_LEDGER_ACK);
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t pp_ledger_median_ack_interval_ns(const struct pp_ledger_data *d)
{
	size_t acks = d->lane_at[d->lanes], n = 0, i;
	const struct pp_ledger_entry *before = NULL;
	int64_t *intervals, median;

	if (acks < 2)
		return PP_LEDGER_NEVER;
	intervals = malloc((acks - 1) * sizeof(*intervals));
	if (!intervals)
		return PP_LEDGER_NEVER; /* then no trial is called exposed: the careful answer */
	for (i = 0; i < d->count; i++) {
		if (d->entries[i].type != PP_LEDGER_ACK)
			continue;
		if (before) {
			int64_t step = d->entries[i].t_ns - before->t_ns;

			intervals[n++] = step > 0 ? step : 0;
		}
		before = &d->entries[i];
	}
	qsort(intervals, n, sizeof(*intervals), compare);
	median = intervals[(n - 1) / 2];
	free(intervals);
	return median;
}

int64_t pp_ledger_t_flush_rose(const struct pp_ledger_data *d)
{
	const struct pp_ledger_entry *before = NULL;
	int64_t t = PP_LEDGER_NEVER;
	size_t i;

	for (i = 0; i < d->count; i++) {
		const struct pp_ledger_entry *e = &d->entries[i];

		if (e->type != PP_LEDGER_BEAT)
			continue;
		if (before && e->c > before->c)
			t = e->t_ns;
		before = e;
	}
	return t;
}

const struct pp_ledger_entry *pp_ledger_first_beat(const struct pp_ledger_data *d)
{
	size_t i;

	for (i = 0; i < d->count; i++)
		if (d->entries[i].type == PP_LEDGER_BEAT)
			return &d->entries[i];
	return NULL;
}

const struct pp_ledger_entry *pp_ledger_last_beat(const struct pp_ledger_data *d)
{
	size_t i;

	for (i = d->count; i-- > 0;)
		if (d->entries[i].type == PP_LEDGER_BEAT)
			return &d->entries[i];
	return NULL;
}

enum pp_close pp_ledger_last_close(const struct pp_ledger_data *d, int64_t *t_ns)
{
	size_t i;

	if (t_ns)
		*t_ns = PP_LEDGER_NEVER;
	for (i = d->count; i-- > 0;) {
		if (d->entries[i].type != PP_LEDGER_CLOSE)
			continue;
		if (t_ns)
			*t_ns = d->entries[i].t_ns;
		return (enum pp_close)d->entries[i].small;
	}
	return PP_CLOSE_NOT;
}

enum pp_close pp_ledger_first_orderly_close(const struct pp_ledger_data *d, int64_t *t_ns)
{
	size_t i;

	if (t_ns)
		*t_ns = PP_LEDGER_NEVER;
	for (i = 0; i < d->count; i++) {
		const struct pp_ledger_entry *e = &d->entries[i];

		if (e->type != PP_LEDGER_CLOSE ||
			(e->small != PP_CLOSE_FIN && e->small != PP_CLOSE_RST))
			continue;
		if (t_ns)
			*t_ns = e->t_ns;
		return (enum pp_close)e->small;
	}
	return PP_CLOSE_NOT;
}

int64_t pp_ledger_t_mark(const struct pp_ledger_data *d, enum pp_mark what)
{
	size_t i;

	for (i = 0; i < d->count; i++)
		if (d->entries[i].type == PP_LEDGER_MARK && d->entries[i].small == what)
			return d->entries[i].t_ns;
	return PP_LEDGER_NEVER;
}
