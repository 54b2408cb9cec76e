/* SPDX-License-Identifier: MIT
 *
 * Method: a ring of what stood in each sector before it was last written. With it a cut can take
 * back what the medium already had, which is what the worse half of the catalogue does.
 * All injuries write to the medium directly: they are no writes of the drive's.
 */
#include "drive_parts.h"

#include <string.h>

#define SECTOR       PP_DRIVE_SECTOR_BYTES
#define UNIT_SECTORS 8   /* the 4 KiB that drives map */
#define RECENT       256 /* injuries hit what was written lately: the flash that was at work */

#define NEEDS_UNDO (PP_DRIVE_SHORN | PP_DRIVE_TEARS_SECTOR | PP_DRIVE_ROTS | PP_DRIVE_FLIES | \
	PP_DRIVE_ROLLS_BACK | PP_DRIVE_OLD_EPOCH)

static int read_sector(struct pp_sim_drive *d, uint64_t sector, void *data)
{
	return d->medium.read(d->medium.ctx, data, SECTOR, sector * SECTOR);
}

static int write_sector(struct pp_sim_drive *d, uint64_t sector, const void *data)
{
	return d->medium.write(d->medium.ctx, data, SECTOR, sector * SECTOR);
}

/* back = 0: the youngest. */
static struct undo *undo_at(struct pp_sim_drive *d, uint32_t back)
{
	return &d->undo[(d->undo_end + UNDO_SECTORS - 1 - back) % UNDO_SECTORS];
}

int pp_drive_remember(struct pp_sim_drive *d, uint64_t sector)
{
	struct undo *u;

	if (!(d->does & NEEDS_UNDO))
		return 0;
	/* The mapping table is saved: what was before cannot come back. */
	if ((d->does & PP_DRIVE_OLD_EPOCH) && d->epoch_bytes >= d->config.behaviour->amount) {
		d->epoch_bytes = 0;
		d->undo_count = 0;
	}
	d->epoch_bytes += SECTOR;
	u = &d->undo[d->undo_end];
	u->sector = sector;
	u->at_ns = d->now_ns;
	d->undo_end = (d->undo_end + 1) % UNDO_SECTORS;
	d->undo_count += d->undo_count < UNDO_SECTORS;
	/* What cannot be read cannot come back either. */
	if (read_sector(d, sector, u->old) != 0)
		memset(u->old, 0xa5, SECTOR);
	return 0;
}

static struct undo *pick(struct pp_sim_drive *d, uint64_t *random)
{
	uint32_t recent = d->undo_count < RECENT ? d->undo_count : RECENT;

	return undo_at(d, (uint32_t)below(random, recent));
}

/* What the sector held before its last write; NULL if that is not known. */
static const struct undo *before_last(struct pp_sim_drive *d, uint64_t sector)
{
	uint32_t i;

	for (i = 0; i < d->undo_count; i++)
		if (undo_at(d, i)->sector == sector)
			return undo_at(d, i);
	return NULL;
}

static int shear(struct pp_sim_drive *d, uint64_t *random)
{
	uint64_t unit = pick(d, random)->sector / UNIT_SECTORS, keeps = 1 + below(random, 7), i;

	for (i = keeps; i < UNIT_SECTORS; i++) {
		const struct undo *u = before_last(d, unit * UNIT_SECTORS + i);

		if (u && write_sector(d, u->sector, u->old) != 0)
			return -1;
	}
	return 0;
}

static int tear_sector(struct pp_sim_drive *d, uint64_t *random)
{
	const struct undo *u = pick(d, random);
	unsigned char now[SECTOR];
	uint64_t keeps = 1 + below(random, SECTOR - 1);

	u = before_last(d, u->sector);
	if (read_sector(d, u->sector, now) != 0)
		return 0;
	memcpy(now + keeps, u->old + keeps, SECTOR - keeps);
	return write_sector(d, u->sector, now);
}

static int rot(struct pp_sim_drive *d, uint64_t *random)
{
	uint64_t n = 1 + below(random, 4);
	unsigned char now[SECTOR];

	for (; n; n--) {
		uint64_t sector = pick(d, random)->sector;

		if (read_sector(d, sector, now) != 0)
			continue;
		now[below(random, SECTOR)] ^= (unsigned char)(1U << below(random, 8));
		if (write_sector(d, sector, now) != 0)
			return -1;
	}
	return 0;
}

static int fly(struct pp_sim_drive *d, uint64_t *random)
{
	uint64_t unit = pick(d, random)->sector / UNIT_SECTORS, i;
	uint64_t units = d->config.size_bytes / SECTOR / UNIT_SECTORS, to = (unit + 2) % units;
	unsigned char now[SECTOR];

	for (i = 0; i < UNIT_SECTORS; i++) {
		const struct undo *u = before_last(d, unit * UNIT_SECTORS + i);

		if (!u || read_sector(d, u->sector, now) != 0)
			continue;
		if (write_sector(d, u->sector, u->old) != 0 ||
			write_sector(d, to * UNIT_SECTORS + i, now) != 0)
			return -1;
	}
	return 0;
}

static int roll_back(struct pp_sim_drive *d, int64_t since_ns)
{
	for (; d->undo_count && undo_at(d, 0)->at_ns >= since_ns; d->undo_count--) {
		if (write_sector(d, undo_at(d, 0)->sector, undo_at(d, 0)->old) != 0)
			return -1;
		d->undo_end = (d->undo_end + UNDO_SECTORS - 1) % UNDO_SECTORS;
	}
	return 0;
}

static int spoil(struct pp_sim_drive *d, uint64_t sector, unsigned char filler)
{
	unsigned char garbage[SECTOR];

	if (d->medium.spoil) {
		d->medium.spoil(d->medium.ctx, sector * SECTOR);
		return 0;
	}
	memset(garbage, filler, SECTOR);
	return write_sector(d, sector, garbage);
}

/* The physical blocks that a write only touches: read, changed and half written back. */
static int spoil_blocks(struct pp_sim_drive *d, const struct pp_sim_drive_write *w)
{
	uint64_t block = d->config.behaviour->amount, at = w->offset / block * block;
	uint64_t end = (w->offset + w->bytes + block - 1) / block * block;

	for (; at < end && at < d->config.size_bytes; at += SECTOR)
		if (spoil(d, at / SECTOR, 0xa5) != 0)
			return -1;
	return 0;
}

static int spoil_in_progress(struct pp_sim_drive *d, uint64_t *random)
{
	const struct pp_sim_drive_write *w;
	uint64_t sector;

	for (w = d->in_progress; w; w = w->next) {
		if (w->atomic) /* such a drive writes it elsewhere first */
			continue;
		if (d->config.behaviour->amount && spoil_blocks(d, w) != 0)
			return -1;
		for (sector = w->offset / SECTOR; sector * SECTOR < w->offset + w->bytes; sector++)
			if (below(random, 2) && spoil(d, sector, 0xa5) != 0)
				return -1;
	}
	return 0;
}

static int spoil_pairs(struct pp_sim_drive *d)
{
	const struct pp_sim_drive_write *w;
	uint64_t sector, pair;

	for (w = d->in_progress; w; w = w->next)
		for (sector = w->offset / SECTOR; sector * SECTOR < w->offset + w->bytes; sector++) {
			pair = sector ^ 32;
			if (pair * SECTOR < d->config.size_bytes && spoil(d, pair, 0xa5) != 0)
				return -1;
		}
	return 0;
}

int pp_drive_injure(struct pp_sim_drive *d, uint64_t *random)
{
	const struct pp_sim_drive_behaviour *b = d->config.behaviour;
	int rc = 0;

	if (!(d->does & (NEEDS_UNDO | PP_DRIVE_UNREADABLE | PP_DRIVE_PAIRED_PAGES)) ||
		below(random, 100) >= b->chance_pct)
		return 0;
	if (d->does & PP_DRIVE_UNREADABLE)
		rc |= spoil_in_progress(d, random);
	if (d->does & PP_DRIVE_PAIRED_PAGES)
		rc |= spoil_pairs(d);
	if (!d->undo_count)
		return rc;
	if (d->does & PP_DRIVE_SHORN)
		rc |= shear(d, random);
	if (d->does & PP_DRIVE_TEARS_SECTOR)
		rc |= tear_sector(d, random);
	if (d->does & PP_DRIVE_ROTS)
		rc |= rot(d, random);
	if (d->does & PP_DRIVE_FLIES)
		rc |= fly(d, random);
	if (d->does & PP_DRIVE_ROLLS_BACK)
		rc |= roll_back(d, d->now_ns - (int64_t)b->amount);
	if (d->does & PP_DRIVE_OLD_EPOCH)
		rc |= roll_back(d, INT64_MIN);
	return rc;
}

void pp_drive_age(struct pp_sim_drive *d)
{
	static const unsigned char zeros[SECTOR];
	uint64_t cuts = d->counters.unsafe_shutdowns, amount = d->config.behaviour->amount, sector;

	if (d->does & PP_DRIVE_DIES)
		d->dead = cuts >= amount;
	if ((d->does & PP_DRIVE_FLICKERS) && cuts) {
		d->flicker_sector = below(&d->random, d->config.size_bytes / SECTOR);
		d->flicker_left = 1 + (unsigned)below(&d->random, 5);
	}
	if (!(d->does & (PP_DRIVE_THIRD_GONE | PP_DRIVE_THIRD_BLANK)) || cuts != amount)
		return;
	for (sector = 0; sector < d->config.size_bytes / SECTOR / 3; sector++)
		if ((d->does & PP_DRIVE_THIRD_GONE ? spoil(d, sector, 0) :
			write_sector(d, sector, zeros)) != 0)
			return;
}
