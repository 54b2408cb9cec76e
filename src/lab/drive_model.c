/* SPDX-License-Identifier: MIT
 *
 * The cache is a slab of sectors. A hash chain finds a sector by its number, a list keeps the
 * order in which sectors became dirty, and the slab is dense (the last moves into a gap), so that
 * a random dirty sector is one draw. All sizes are fixed at creation: no request allocates.
 *
 * Every sector reaches the medium through persist() and every request through its own function;
 * lies about requests stand there. What a cut does to data that the medium already had is in
 * drive_injury.c; the table of all behaviours is drive_catalogue.c.
 */
#include "drive_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

	d->slots[n - 1] = (struct slot){ .sector = sector, .chain = *head, .older = d->youngest,
		.stamp = ++d->stamp, .dirty_ns = d->now_ns, .arrived_ns = d->now_ns };
	*head = n;
	*(d->youngest ? &d->slots[d->youngest - 1].younger : &d->oldest) = n;
	d->youngest = n;
	memcpy(slot_data(d, n), data, PP_DRIVE_SECTOR_BYTES);
}

/* A sector reaches the medium. */
static int persist(struct pp_sim_drive *d, uint64_t sector, const void *data)
{
	if (pp_drive_remember(d, sector) != 0)
		return -1;
	return d->medium.write(d->medium.ctx, data, PP_DRIVE_SECTOR_BYTES,
		sector * PP_DRIVE_SECTOR_BYTES);
}

static int destage_sector(struct pp_sim_drive *d, uint32_t n)
{
	if (persist(d, d->slots[n - 1].sector, slot_data(d, n)))
		return -1;
	drop(d, n);
	return 0;
}

/* Of an atomic write all that is still in the cache, or none: a cut falls before or behind. */
static int destage(struct pp_sim_drive *d, uint32_t n)
{
	struct slot s = d->slots[n - 1];
	uint32_t i;

	if (!s.group)
		return destage_sector(d, n);
	for (i = 0; i < s.group_sectors; i++) {
		n = find(d, s.group_first + i);
		if (n && d->slots[n - 1].group == s.group && destage_sector(d, n))
			return -1;
	}
	return 0;
}

static int destage_one(struct pp_sim_drive *d)
{
	bool any = d->config.order == PP_DRIVE_RANDOM || (d->does & PP_DRIVE_REORDERS);

	return destage(d, any ? 1 + (uint32_t)below(&d->random, d->used) : d->oldest);
}

static int destage_all(struct pp_sim_drive *d)
{
	while (d->used)
		if (destage_one(d))
			return -1;
	return 0;
}

/* The drives that flush when they feel like it. */
static int destage_lazily(struct pp_sim_drive *d)
{
	uint64_t amount = d->config.behaviour->amount;

	while ((d->does & PP_DRIVE_LAZY_TIME) && d->used
		&& d->slots[d->oldest - 1].dirty_ns + (int64_t)amount <= d->now_ns)
		if (destage(d, d->oldest))
			return -1;
	while ((d->does & PP_DRIVE_LAZY_BYTES) && (uint64_t)d->used * PP_DRIVE_SECTOR_BYTES > amount)
		if (destage(d, d->oldest))
			return -1;
	return 0;
}

int pp_sim_drive_tick(struct pp_sim_drive *d, int64_t now_ns)
{
	int64_t passed_ns = now_ns - d->destaged_ns;
	unsigned __int128 earned;

	if (now_ns > d->now_ns)
		d->now_ns = now_ns;
	if (!d->power || passed_ns <= 0)
		return 0;
	if (destage_lazily(d))
		return -1;
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
		d->slots[n - 1].arrived_ns = d->now_ns;
		d->slots[n - 1].group = 0;
		return 0;
	}
	if (d->used == d->capacity && destage_one(d))
		return -1;
	add(d, sector, data);
	return 0;
}

static int admit(struct pp_sim_drive *d, int64_t now_ns, size_t bytes, uint64_t offset)
{
	if (!d->power || d->dead) {
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
	if (d->flicker_left && d->flicker_sector - offset / PP_DRIVE_SECTOR_BYTES <
		bytes / PP_DRIVE_SECTOR_BYTES) {
		d->flicker_left--;
		errno = EIO;
		return -1;
	}
	if (d->medium.read(d->medium.ctx, data, bytes, offset))
		return -1;
	for (size_t at = 0; d->used && at < bytes; at += PP_DRIVE_SECTOR_BYTES) {
		uint32_t n = find(d, (offset + at) / PP_DRIVE_SECTOR_BYTES);

		if (n)
			memcpy((char *)data + at, slot_data(d, n), PP_DRIVE_SECTOR_BYTES);
	}
	return 0;
}

/* Bytes a second over the last few milliseconds. */
static void note_rate(struct pp_sim_drive *d, size_t bytes)
{
	int64_t passed_ns = d->now_ns - d->rate_from_ns;

	d->rate_bytes += bytes;
	if (passed_ns < 2000000)
		return;
	d->rate_bytes_per_s = (uint64_t)((unsigned __int128)d->rate_bytes * 1000000000 /
		(uint64_t)passed_ns);
	d->rate_from_ns = d->now_ns;
	d->rate_bytes = 0;
}

bool pp_sim_drive_ignores(const struct pp_sim_drive *d, unsigned request)
{
	return (d->does & request) || ((d->does & PP_DRIVE_FAST_LIES)
		&& d->rate_bytes_per_s > d->config.behaviour->amount);
}

static int admit_write(struct pp_sim_drive *d, int64_t now_ns,
	const struct pp_sim_drive_write *write)
{
	if (admit(d, now_ns, write->bytes, write->offset))
		return -1;
	d->counters.writes++;
	d->counters.fua_writes += write->fua;
	return 0;
}

/* Drives that flush by halves walk the cache sector by sector, and know no groups. */
static bool keeps_whole(const struct pp_sim_drive *d, const struct pp_sim_drive_write *write)
{
	return write->atomic && !(d->does & (PP_DRIVE_TEARS_ATOMIC | PP_DRIVE_FLUSHES_OLDEST |
		PP_DRIVE_FLUSHES_NEWEST | PP_DRIVE_FLUSH_RACES));
}

/* Room for all of it at once: nothing of it may be destaged before the rest is there. */
static int make_room(struct pp_sim_drive *d, uint32_t sectors, bool *through)
{
	*through |= sectors > d->capacity;
	while (!*through && d->capacity - d->used < sectors)
		if (destage_one(d))
			return -1;
	return 0;
}

static void bind_group(struct pp_sim_drive *d, uint64_t first, uint32_t sectors)
{
	uint32_t i, n;

	d->groups++;
	for (i = 0; i < sectors; i++) {
		n = find(d, first + i);
		if (!n)
			continue;
		d->slots[n - 1].group = d->groups;
		d->slots[n - 1].group_first = first;
		d->slots[n - 1].group_sectors = sectors;
	}
}

static int take_write(struct pp_sim_drive *d, int64_t now_ns, const struct pp_sim_drive_write *write)
{
	uint64_t first = write->offset / PP_DRIVE_SECTOR_BYTES;
	uint32_t sectors = (uint32_t)(write->bytes / PP_DRIVE_SECTOR_BYTES);
	bool through = write->fua && !pp_sim_drive_ignores(d, PP_DRIVE_IGNORES_FUA);

	if (pp_sim_drive_tick(d, now_ns))
		return -1;
	note_rate(d, write->bytes);
	if ((d->does & PP_DRIVE_CACHE_RETURNS) && d->counters.unsafe_shutdowns == 0)
		through = true;
	through |= d->cache_off;
	if (keeps_whole(d, write) && make_room(d, sectors, &through))
		return -1;
	for (uint32_t i = 0; i < sectors; i++)
		if (take(d, first + i, (const char *)write->data + (size_t)i * PP_DRIVE_SECTOR_BYTES,
			    through))
			return -1;
	if (keeps_whole(d, write) && !through)
		bind_group(d, first, sectors);
	return 0;
}

int pp_sim_drive_submit(struct pp_sim_drive *d, int64_t now_ns, struct pp_sim_drive_write *write)
{
	write->pending = false;
	if (admit_write(d, now_ns, write))
		return -1;
	write->pending = true;
	write->next = d->in_progress;
	d->in_progress = write;
	return 0;
}

int pp_sim_drive_complete(struct pp_sim_drive *d, int64_t now_ns, struct pp_sim_drive_write *write)
{
	struct pp_sim_drive_write **link = &d->in_progress;

	if (!write->pending) {
		errno = EIO;
		return -1;
	}
	while (*link != write)
		link = &(*link)->next;
	*link = write->next;
	write->pending = false;
	return take_write(d, now_ns, write);
}

int pp_sim_drive_write(struct pp_sim_drive *d, int64_t now_ns, const void *data, size_t bytes,
	uint64_t offset, bool fua)
{
	struct pp_sim_drive_write write = { .data = data, .bytes = bytes, .offset = offset,
		.fua = fua };

	if (admit_write(d, now_ns, &write))
		return -1;
	return take_write(d, now_ns, &write);
}

uint64_t pp_sim_drive_flush_begin(struct pp_sim_drive *d)
{
	return d->stamp;
}

/* What a flush that leaves some behind covers: true for the sector in slot n, the i-th oldest. */
static bool flush_covers(const struct pp_sim_drive *d, const struct slot *s, uint32_t i,
	uint32_t used)
{
	const struct pp_sim_drive_behaviour *b = d->config.behaviour;

	if (d->does & PP_DRIVE_FLUSHES_OLDEST)
		return (uint64_t)i * 100 < (uint64_t)used * b->chance_pct;
	if (d->does & PP_DRIVE_FLUSHES_NEWEST)
		return (uint64_t)(used - 1 - i) * 100 < (uint64_t)used * b->chance_pct;
	return s->arrived_ns + (int64_t)b->amount <= d->now_ns;
}

/* Dropping a slot moves another into its place, so each walk begins anew from what is left. */
static int flush_partly(struct pp_sim_drive *d)
{
	uint32_t used = d->used, i = 0, n, next;

	for (n = d->oldest; n; n = next, i++) {
		struct slot *s = &d->slots[n - 1];

		next = s->younger;
		if (!flush_covers(d, s, i, used))
			continue;
		/* The last slot moves into the gap: follow it. */
		if (next == d->used)
			next = n;
		if (destage(d, n))
			return -1;
	}
	return 0;
}

int pp_sim_drive_flush_end(struct pp_sim_drive *d, int64_t now_ns, uint64_t begun)
{
	if (admit(d, now_ns, 0, 0))
		return -1;
	d->counters.flushes++;
	if (pp_sim_drive_ignores(d, PP_DRIVE_IGNORES_FLUSH))
		return 0;
	if (d->does & (PP_DRIVE_FLUSHES_OLDEST | PP_DRIVE_FLUSHES_NEWEST | PP_DRIVE_FLUSH_RACES))
		return flush_partly(d);
	while (d->used && d->slots[d->oldest - 1].stamp <= begun)
		if (destage(d, d->oldest))
			return -1;
	return 0;
}

int pp_sim_drive_flush(struct pp_sim_drive *d, int64_t now_ns)
{
	return pp_sim_drive_flush_end(d, now_ns, pp_sim_drive_flush_begin(d));
}

/* What of its behaviour a drive shows in the power cycle that begins. */
static void settle_behaviour(struct pp_sim_drive *d)
{
	const struct pp_sim_drive_behaviour *b = d->config.behaviour;
	uint64_t number = d->counters.unsafe_shutdowns + 1; /* of the cut that may end it */

	d->does = b->flags;
	if ((d->does & PP_DRIVE_SOMETIMES) && below(&d->random, 100) >= b->chance_pct)
		d->does = 0;
	if (d->does & PP_DRIVE_CAPACITOR_DIES)
		d->does |= PP_DRIVE_IGNORES_FLUSH | PP_DRIVE_IGNORES_FUA |
			(number < b->amount ? PP_DRIVE_PROTECTED : 0);
}

void pp_sim_drive_power_on(struct pp_sim_drive *d, int64_t now_ns)
{
	if (d->power)
		return;
	d->power = true;
	d->cache_off = false;
	d->counters.power_cycles++;
	d->counters.unsafe_shutdowns += !d->counters.went_down_in_order;
	d->counters.went_down_in_order = false;
	d->at_power_on = d->counters;
	d->destaged_ns = d->now_ns = d->rate_from_ns = now_ns;
	d->credit_bytes = d->rate_bytes = d->rate_bytes_per_s = 0;
	d->undo_count = 0;
	d->epoch_bytes = 0;
	settle_behaviour(d);
	pp_drive_age(d);
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
	for (struct pp_sim_drive_write *w = d->in_progress; w; w = w->next) {
		bool whole = keeps_whole(d, w), all = whole && below(random, 100) < survive_pct;

		for (size_t at = 0; at < w->bytes; at += PP_DRIVE_SECTOR_BYTES)
			if ((whole ? all : below(random, 100) < survive_pct)
			    && persist(d, (w->offset + at) / PP_DRIVE_SECTOR_BYTES,
				    (const char *)w->data + at))
				return -1;
	}
	return 0;
}

/* One draw for all sectors of an atomic write. */
static bool survives(const struct slot *s, unsigned survive_pct, uint64_t of_cut, uint64_t *random)
{
	uint64_t of_group = of_cut ^ s->group * 0x9e3779b97f4a7c15U;

	return below(s->group ? &of_group : random, 100) < survive_pct;
}

int pp_sim_drive_cut(struct pp_sim_drive *d, int64_t now_ns, unsigned survive_pct, uint64_t seed)
{
	bool keeps = d->does & PP_DRIVE_PROTECTED;
	uint64_t of_cut = seed;
	int rc = 0;

	if (!d->power)
		return 0;
	rc = pp_sim_drive_tick(d, now_ns);
	for (uint32_t n = d->oldest; n && !rc; n = d->slots[n - 1].younger)
		if (keeps || survives(&d->slots[n - 1], survive_pct, of_cut, &seed))
			rc = persist(d, d->slots[n - 1].sector, slot_data(d, n));
	if (!rc)
		rc = tear(d, survive_pct, &seed);
	if (!rc)
		rc = pp_drive_injure(d, &seed);
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
	d->undo = calloc(UNDO_SECTORS, sizeof(*d->undo)); /* untouched, hence free, without a need */
	if (d->slots && d->data && d->heads && d->undo)
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
	free(d->undo);
	free(d);
}

void pp_sim_drive_set_behaviour(struct pp_sim_drive *d,
	const struct pp_sim_drive_behaviour *behaviour)
{
	d->config.behaviour = behaviour;
	settle_behaviour(d);
}

const struct pp_sim_drive_behaviour *pp_sim_drive_behaviour_of(const struct pp_sim_drive *d)
{
	return d->config.behaviour;
}

bool pp_sim_drive_behaviour_has_cache(const struct pp_sim_drive_behaviour *behaviour)
{
	return !(behaviour->flags & (PP_DRIVE_HIDES_CACHE | PP_DRIVE_CACHE_RETURNS));
}

bool pp_sim_drive_has_cache(const struct pp_sim_drive *d)
{
	return pp_sim_drive_behaviour_has_cache(d->config.behaviour);
}

int pp_sim_drive_set_cache(struct pp_sim_drive *d, int64_t now_ns, bool on)
{
	if (admit(d, now_ns, 0, 0))
		return -1;
	if (!on && destage_all(d))
		return -1;
	d->cache_off = !on;
	return 0;
}

bool pp_sim_drive_cache_is_on(const struct pp_sim_drive *d)
{
	return pp_sim_drive_has_cache(d) && !d->cache_off;
}

bool pp_sim_drive_is_dead(const struct pp_sim_drive *d)
{
	return d->power && d->dead;
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
