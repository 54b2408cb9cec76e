/* SPDX-License-Identifier: MIT
 *
 * The cache is a slab of sectors. A hash chain finds a sector by its number, a list keeps the
 * order in which sectors became dirty, and the slab is dense (the last moves into a gap), so that
 * a random dirty sector is one draw. All sizes are fixed at creation: no request allocates.
 *
 * Every sector reaches the medium through persist() and every request through its own function;
 * those are the two places where a new kind of lie goes in (a shorn, misplaced or rotten sector in
 * persist(), a lie about a request at the request), with one more flag and one more row.
 */
#include "drive_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct pp_sim_drive_behaviour behaviours[] = {
	{ "honest", "FLUSH and FUA return when the data is on the medium", 0 },
	{ "ignores-flush", "FLUSH returns at once, the cache stays volatile; FUA is honoured",
		PP_DRIVE_IGNORES_FLUSH },
	{ "ignores-fua", "a FUA write stays in the volatile cache; FLUSH is honoured",
		PP_DRIVE_IGNORES_FUA },
	{ "ignores-both", "FLUSH returns at once and FUA writes stay in the volatile cache",
		PP_DRIVE_IGNORES_FLUSH | PP_DRIVE_IGNORES_FUA },
	{ "protected", "capacitors destage the cache after a cut: all that completed survives",
		PP_DRIVE_PROTECTED },
	{ "hidden-cache", "says write-through, so no host flushes; has a volatile cache all the same",
		PP_DRIVE_HIDES_CACHE },
};

const struct pp_sim_drive_behaviour *pp_sim_drive_behaviour_at(size_t i)
{
	return i < sizeof(behaviours) / sizeof(behaviours[0]) ? &behaviours[i] : NULL;
}

const struct pp_sim_drive_behaviour *pp_sim_drive_behaviour_find(const char *name)
{
	const struct pp_sim_drive_behaviour *row;

	for (size_t i = 0; (row = pp_sim_drive_behaviour_at(i)); i++)
		if (!strcmp(row->name, name))
			return row;
	return NULL;
}

/* Slot numbers are kept plus one, so that zeroed memory reads "none". */
struct slot {
	uint64_t sector;
	uint32_t chain;          /* next in the hash chain */
	uint32_t older, younger; /* by the time it became dirty */
};

struct pp_sim_drive {
	struct pp_sim_drive_config config;
	struct pp_sim_drive_medium medium;
	struct pp_sim_drive_counters counters, at_power_on;
	bool power;

	struct slot *slots;
	unsigned char *data;     /* a sector a slot */
	uint32_t *heads;         /* of the hash chains */
	uint32_t capacity, used, head_mask;
	uint32_t oldest, youngest;

	int64_t destaged_ns;     /* destaging is accounted up to here */
	uint64_t credit_bytes;   /* earned, less than a sector */
	uint64_t random;
	struct pp_sim_drive_write *in_progress;
};

/* splitmix64 (Steele, Lea, Flood 2014): any seed is a good one, also 0, 1, 2. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint64_t below(uint64_t *state, uint64_t limit)
{
	return (uint64_t)((unsigned __int128)draw(state) * limit >> 64);
}

static uint32_t *chain_of(struct pp_sim_drive *d, uint64_t sector)
{
	uint64_t mixed = sector;

	return &d->heads[draw(&mixed) & d->head_mask];
}

static unsigned char *slot_data(struct pp_sim_drive *d, uint32_t number)
{
	return d->data + (size_t)(number - 1) * PP_DRIVE_SECTOR_BYTES;
}

static uint32_t find(struct pp_sim_drive *d, uint64_t sector)
{
	uint32_t n = *chain_of(d, sector);

	while (n && d->slots[n - 1].sector != sector)
		n = d->slots[n - 1].chain;
	return n;
}

/* Points at other slots what refers to slot `from`: its chain, its older and younger neighbour. */
static void redirect(struct pp_sim_drive *d, uint32_t from, uint32_t chain_to, uint32_t older_to,
	uint32_t younger_to)
{
	struct slot *s = &d->slots[from - 1];
	uint32_t *link = chain_of(d, s->sector);

	while (*link != from)
		link = &d->slots[*link - 1].chain;
	*link = chain_to;
	*(s->older ? &d->slots[s->older - 1].younger : &d->oldest) = older_to;
	*(s->younger ? &d->slots[s->younger - 1].older : &d->youngest) = younger_to;
}

static void drop(struct pp_sim_drive *d, uint32_t n)
{
	struct slot *s = &d->slots[n - 1];
	uint32_t last = d->used--;

	redirect(d, n, s->chain, s->younger, s->older);
	if (n == last)
		return;
	redirect(d, last, n, n, n);
	d->slots[n - 1] = d->slots[last - 1];
	memcpy(slot_data(d, n), slot_data(d, last), PP_DRIVE_SECTOR_BYTES);
}

static void add(struct pp_sim_drive *d, uint64_t sector, const void *data)
{
	uint32_t n = ++d->used, *head = chain_of(d, sector);

	d->slots[n - 1] = (struct slot){ .sector = sector, .chain = *head, .older = d->youngest };
	*head = n;
	*(d->youngest ? &d->slots[d->youngest - 1].younger : &d->oldest) = n;
	d->youngest = n;
	memcpy(slot_data(d, n), data, PP_DRIVE_SECTOR_BYTES);
}

/* A sector reaches the medium. */
static int persist(struct pp_sim_drive *d, uint64_t sector, const void *data)
{
	return d->medium.write(d->medium.ctx, data, PP_DRIVE_SECTOR_BYTES,
		sector * PP_DRIVE_SECTOR_BYTES);
}

static int destage_one(struct pp_sim_drive *d)
{
	uint32_t n = d->config.order == PP_DRIVE_RANDOM ? 1 + below(&d->random, d->used) : d->oldest;

	if (persist(d, d->slots[n - 1].sector, slot_data(d, n)))
		return -1;
	drop(d, n);
	return 0;
}

static int destage_all(struct pp_sim_drive *d)
{
	while (d->used)
		if (destage_one(d))
			return -1;
	return 0;
}

int pp_sim_drive_tick(struct pp_sim_drive *d, int64_t now_ns)
{
	int64_t passed_ns = now_ns - d->destaged_ns;
	unsigned __int128 earned;

	if (!d->power || passed_ns <= 0)
		return 0;
	/* An idle drive saves up no credit: the time before the first dirty sector is not work. */
	earned = (unsigned __int128)passed_ns * d->config.destage_bytes_per_s / 1000000000;
	if (!d->used) {
		d->credit_bytes = 0;
		d->destaged_ns = now_ns;
		return 0;
	}
	/* Short steps are left to add up instead of being rounded down to nothing. */
	if (earned < PP_DRIVE_SECTOR_BYTES)
		return 0;
	d->destaged_ns = now_ns;
	earned += d->credit_bytes;
	for (; d->used && earned >= PP_DRIVE_SECTOR_BYTES; earned -= PP_DRIVE_SECTOR_BYTES)
		if (destage_one(d))
			return -1;
	d->credit_bytes = d->used ? (uint64_t)earned : 0;
	return 0;
}

/* A completed sector, into the cache or straight to the medium. */
static int take(struct pp_sim_drive *d, uint64_t sector, const void *data, bool through)
{
	uint32_t n = find(d, sector);

	if (through) {
		if (persist(d, sector, data))
			return -1;
		if (n)
			drop(d, n);
		return 0;
	}
	if (n) {
		memcpy(slot_data(d, n), data, PP_DRIVE_SECTOR_BYTES);
		return 0;
	}
	if (d->used == d->capacity && destage_one(d))
		return -1;
	add(d, sector, data);
	return 0;
}

static int admit(struct pp_sim_drive *d, int64_t now_ns, size_t bytes, uint64_t offset)
{
	if (!d->power) {
		errno = EIO;
		return -1;
	}
	if (bytes % PP_DRIVE_SECTOR_BYTES || offset % PP_DRIVE_SECTOR_BYTES
	    || bytes > d->config.size_bytes || offset > d->config.size_bytes - bytes) {
		errno = EINVAL;
		return -1;
	}
	return pp_sim_drive_tick(d, now_ns);
}

int pp_sim_drive_read(struct pp_sim_drive *d, int64_t now_ns, void *data, size_t bytes,
	uint64_t offset)
{
	if (admit(d, now_ns, bytes, offset))
		return -1;
	d->counters.reads++;
	if (d->medium.read(d->medium.ctx, data, bytes, offset))
		return -1;
	for (size_t at = 0; d->used && at < bytes; at += PP_DRIVE_SECTOR_BYTES) {
		uint32_t n = find(d, (offset + at) / PP_DRIVE_SECTOR_BYTES);

		if (n)
			memcpy((char *)data + at, slot_data(d, n), PP_DRIVE_SECTOR_BYTES);
	}
	return 0;
}

int pp_sim_drive_submit(struct pp_sim_drive *d, int64_t now_ns, struct pp_sim_drive_write *write)
{
	write->pending = false;
	if (admit(d, now_ns, write->bytes, write->offset))
		return -1;
	d->counters.writes++;
	d->counters.fua_writes += write->fua;
	write->pending = true;
	write->next = d->in_progress;
	d->in_progress = write;
	return 0;
}

int pp_sim_drive_complete(struct pp_sim_drive *d, int64_t now_ns, struct pp_sim_drive_write *write)
{
	struct pp_sim_drive_write **link = &d->in_progress;
	bool through = write->fua && !(d->config.behaviour->flags & PP_DRIVE_IGNORES_FUA);

	if (!write->pending) {
		errno = EIO;
		return -1;
	}
	while (*link != write)
		link = &(*link)->next;
	*link = write->next;
	write->pending = false;
	if (pp_sim_drive_tick(d, now_ns))
		return -1;
	for (size_t at = 0; at < write->bytes; at += PP_DRIVE_SECTOR_BYTES)
		if (take(d, (write->offset + at) / PP_DRIVE_SECTOR_BYTES,
			    (const char *)write->data + at, through))
			return -1;
	return 0;
}

int pp_sim_drive_write(struct pp_sim_drive *d, int64_t now_ns, const void *data, size_t bytes,
	uint64_t offset, bool fua)
{
	struct pp_sim_drive_write write = { .data = data, .bytes = bytes, .offset = offset,
		.fua = fua };

	if (pp_sim_drive_submit(d, now_ns, &write))
		return -1;
	return pp_sim_drive_complete(d, now_ns, &write);
}

int pp_sim_drive_flush(struct pp_sim_drive *d, int64_t now_ns)
{
	if (admit(d, now_ns, 0, 0))
		return -1;
	d->counters.flushes++;
	if (d->config.behaviour->flags & PP_DRIVE_IGNORES_FLUSH)
		return 0;
	return destage_all(d);
}

void pp_sim_drive_power_on(struct pp_sim_drive *d, int64_t now_ns)
{
	if (d->power)
		return;
	d->power = true;
	d->counters.power_cycles++;
	d->counters.unsafe_shutdowns += !d->counters.went_down_in_order;
	d->counters.went_down_in_order = false;
	d->at_power_on = d->counters;
	d->destaged_ns = now_ns;
	d->credit_bytes = 0;
}

static void lose_power(struct pp_sim_drive *d)
{
	memset(d->heads, 0, ((size_t)d->head_mask + 1) * sizeof(*d->heads));
	d->used = d->oldest = d->youngest = 0;
	for (; d->in_progress; d->in_progress = d->in_progress->next)
		d->in_progress->pending = false;
	d->power = false;
}

int pp_sim_drive_power_off(struct pp_sim_drive *d, int64_t now_ns)
{
	(void)now_ns;
	if (!d->power)
		return 0;
	if (destage_all(d))
		return -1;
	d->counters.went_down_in_order = true;
	lose_power(d);
	return 0;
}

/* Draws for every sector of the writes that were under way. What is drawn goes to the medium
 * after the cache, being the younger. */
static int tear(struct pp_sim_drive *d, unsigned survive_pct, uint64_t *random)
{
	for (struct pp_sim_drive_write *w = d->in_progress; w; w = w->next)
		for (size_t at = 0; at < w->bytes; at += PP_DRIVE_SECTOR_BYTES)
			if (below(random, 100) < survive_pct
			    && persist(d, (w->offset + at) / PP_DRIVE_SECTOR_BYTES,
				    (const char *)w->data + at))
				return -1;
	return 0;
}

int pp_sim_drive_cut(struct pp_sim_drive *d, int64_t now_ns, unsigned survive_pct, uint64_t seed)
{
	bool keeps = d->config.behaviour->flags & PP_DRIVE_PROTECTED;
	int rc = 0;

	if (!d->power)
		return 0;
	rc = pp_sim_drive_tick(d, now_ns);
	for (uint32_t n = d->oldest; n && !rc; n = d->slots[n - 1].younger)
		if (keeps || below(&seed, 100) < survive_pct)
			rc = persist(d, d->slots[n - 1].sector, slot_data(d, n));
	if (!rc)
		rc = tear(d, survive_pct, &seed);
	lose_power(d);
	return rc;
}

struct pp_sim_drive *pp_sim_drive_new(const struct pp_sim_drive_config *config,
	const struct pp_sim_drive_medium *medium, const struct pp_sim_drive_counters *counters,
	struct pp_error *err)
{
	uint64_t capacity = config->cache_bytes / PP_DRIVE_SECTOR_BYTES;
	struct pp_sim_drive *d;

	if (!config->size_bytes || config->size_bytes % PP_DRIVE_SECTOR_BYTES) {
		pp_fail(err, PP_ERR_USAGE, "a drive's size must be a multiple of 512 bytes, not %llu",
			(unsigned long long)config->size_bytes);
		return NULL;
	}
	if (!capacity || capacity > UINT32_MAX / 2) {
		pp_fail(err, PP_ERR_USAGE, "a drive's cache must be 512 bytes to 1 TB, not %llu",
			(unsigned long long)config->cache_bytes);
		return NULL;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		goto no_memory;
	*d = (struct pp_sim_drive){ .config = *config, .medium = *medium, .random = config->seed,
		.capacity = (uint32_t)capacity, .head_mask = 1,
		.counters = { .went_down_in_order = true } };
	if (counters)
		d->counters = *counters;
	while (d->head_mask < d->capacity)
		d->head_mask = d->head_mask << 1 | 1;
	d->slots = calloc(d->capacity, sizeof(*d->slots));
	d->data = malloc((size_t)d->capacity * PP_DRIVE_SECTOR_BYTES);
	d->heads = calloc((size_t)d->head_mask + 1, sizeof(*d->heads));
	if (d->slots && d->data && d->heads)
		return d;
no_memory:
	pp_sim_drive_free(d);
	pp_fail_os(err, ENOMEM, "cannot make a simulated drive");
	return NULL;
}

void pp_sim_drive_free(struct pp_sim_drive *d)
{
	if (!d)
		return;
	free(d->slots);
	free(d->data);
	free(d->heads);
	free(d);
}

void pp_sim_drive_set_behaviour(struct pp_sim_drive *d,
	const struct pp_sim_drive_behaviour *behaviour)
{
	d->config.behaviour = behaviour;
}

const struct pp_sim_drive_behaviour *pp_sim_drive_behaviour_of(const struct pp_sim_drive *d)
{
	return d->config.behaviour;
}

bool pp_sim_drive_has_power(const struct pp_sim_drive *d)
{
	return d->power;
}

uint64_t pp_sim_drive_size_bytes(const struct pp_sim_drive *d)
{
	return d->config.size_bytes;
}

uint64_t pp_sim_drive_dirty_bytes(const struct pp_sim_drive *d)
{
	return (uint64_t)d->used * PP_DRIVE_SECTOR_BYTES;
}

struct pp_sim_drive_counters pp_sim_drive_counters_of(const struct pp_sim_drive *d,
	bool since_power_on)
{
	struct pp_sim_drive_counters c = d->counters;

	if (since_power_on) {
		c.reads -= d->at_power_on.reads;
		c.writes -= d->at_power_on.writes;
		c.fua_writes -= d->at_power_on.fua_writes;
		c.flushes -= d->at_power_on.flushes;
	}
	return c;
}
