/* SPDX-License-Identifier: MIT
 *
 * The catalogue of behaviours: what a drive may do with a power cut, the honest ways and the lies.
 * Each row stands for physics that somebody met. "FAST'13" is M. Zheng, J. Tucek, F. Qin and
 * M. Lillibridge, "Understanding the Robustness of SSDs under Power Fault" (15 SSDs, 13 failed).
 * The figures are chosen so that a lie is about as hard to see as on a real drive: milliseconds and
 * hundreds of kilobytes, not everything since power-on.
 */
#include "drive_model.h"

#include <string.h>

#define MS 1000000ULL

static const struct pp_sim_drive_behaviour behaviours[] = {
	/* ---- honest ---- */
	{ .name = "honest", .physics = "FLUSH and FUA return when the data is on the medium",
		.seen = "what the standards ask for", .honest = true },
	{ .name = "protected",
		.physics = "capacitors destage the cache after a cut: all that completed survives",
		.seen = "enterprise SSDs", .flags = PP_DRIVE_PROTECTED, .honest = true },
	{ .name = "reorders",
		.physics = "the cache is destaged in any order, and any subset of it survives a cut",
		.seen = "every drive with many channels; legal", .flags = PP_DRIVE_REORDERS,
		.honest = true },
	{ .name = "unreadable-in-flight",
		.physics = "a sector whose write was in progress cannot be read until written again",
		.seen = "hard disks: head retracted while writing; legal", .chance_pct = 60,
		.flags = PP_DRIVE_UNREADABLE, .honest = true },
	{ .name = "spoils-block",
		.physics = "a write in progress leaves its whole 4 KiB block unreadable, neighbours too",
		.seen = "512-byte sectors emulated on 4 KiB ones: read, modify, write; legal (M2.5)",
		.chance_pct = 60, .flags = PP_DRIVE_UNREADABLE, .amount = 4096, .honest = true },
	{ .name = "flickers",
		.physics = "after a cut a sector cannot be read at first, and later it can",
		.seen = "weak flash cells: the third retry with other thresholds succeeds",
		.flags = PP_DRIVE_FLICKERS, .honest = true },
	/* ---- the request was not honoured ---- */
	{ .name = "ignores-flush",
		.physics = "FLUSH returns at once, the cache stays volatile; FUA is honoured",
		.seen = "consumer SSDs with a flush below their own write time",
		.flags = PP_DRIVE_IGNORES_FLUSH },
	{ .name = "ignores-fua",
		.physics = "a FUA write stays in the volatile cache; FLUSH is honoured",
		.seen = "NVMe under Windows: write-through 9 to 86 times faster than a flush",
		.flags = PP_DRIVE_IGNORES_FUA },
	{ .name = "ignores-both",
		.physics = "FLUSH returns at once and FUA writes stay in the volatile cache",
		.seen = "virtual disks with cache=unsafe",
		.flags = PP_DRIVE_IGNORES_FLUSH | PP_DRIVE_IGNORES_FUA },
	{ .name = "hidden-cache",
		.physics = "says write-through, so no host flushes; has a volatile cache all the same",
		.seen = "USB bridges without the caching mode page", .flags = PP_DRIVE_HIDES_CACHE },
	{ .name = "lazy-time",
		.physics = "FLUSH only starts the destaging, which is done 2 ms later",
		.seen = "controllers that answer once the work is queued", .amount = 2 * MS,
		.flags = PP_DRIVE_IGNORES_FLUSH | PP_DRIVE_IGNORES_FUA | PP_DRIVE_LAZY_TIME },
	{ .name = "lazy-amount",
		.physics = "keeps the last 64 kB in RAM whatever is asked, and writes the rest",
		.seen = "controllers that fill a whole flash page before they program it",
		.amount = 64 << 10,
		.flags = PP_DRIVE_IGNORES_FLUSH | PP_DRIVE_IGNORES_FUA | PP_DRIVE_LAZY_BYTES },
	{ .name = "flushes-oldest", .physics = "FLUSH writes the older three quarters of the cache",
		.seen = "a queue that is walked only to the position where it was last seen",
		.flags = PP_DRIVE_FLUSHES_OLDEST, .chance_pct = 75 },
	{ .name = "flushes-newest", .physics = "FLUSH writes the newer three quarters of the cache",
		.seen = "a walk that gives up at a limit", .flags = PP_DRIVE_FLUSHES_NEWEST,
		.chance_pct = 75 },
	{ .name = "flush-races",
		.physics = "FLUSH does not wait for writes that were acknowledged within the last 100 us",
		.seen = "FLUSH overtakes writes still on their way inside the controller",
		.flags = PP_DRIVE_FLUSH_RACES, .amount = MS / 10 },
	{ .name = "fast-lies",
		.physics = "above 20 MB/s FLUSH and FUA return early, below they are honoured",
		.seen = "write-combining that is tuned for benchmarks", .flags = PP_DRIVE_FAST_LIES,
		.amount = 20 << 20 },
	{ .name = "sometimes", .physics = "in one power cycle of ten FLUSH and FUA are ignored",
		.seen = "a setting that firmware loses at some starts", .chance_pct = 10,
		.flags = PP_DRIVE_IGNORES_FLUSH | PP_DRIVE_IGNORES_FUA | PP_DRIVE_SOMETIMES },
	{ .name = "cache-returns",
		.physics = "the write cache that was switched off is on again after power-up, untold",
		.seen = "drives that do not save the caching mode page", .flags = PP_DRIVE_CACHE_RETURNS },
	{ .name = "capacitor-dies",
		.physics = "protected and flushes nothing; from its sixth cut on the capacitor is dead",
		.seen = "NVMe critical warning bit 4, ATA attribute 175", .amount = 6,
		.flags = PP_DRIVE_CAPACITOR_DIES },
	/* ---- the cut destroys what had been written ---- */
	{ .name = "shorn", .physics = "a cut leaves only the first 512-byte sectors of a 4 KiB write",
		.seen = "FAST'13: shorn writes, 3/8 and 7/8 of a block", .flags = PP_DRIVE_SHORN,
		.chance_pct = 60 },
	{ .name = "tears-sector", .physics = "a cut leaves a sector that is new in front, old behind",
		.seen = "sectors emulated on larger pages, without a checksum over them",
		.flags = PP_DRIVE_TEARS_SECTOR, .chance_pct = 60 },
	{ .name = "tears-atomic",
		.physics = "a write that it took as atomic is torn at sector borders like any other",
		.seen = "an atomic unit that is advertised per command and kept per page",
		.flags = PP_DRIVE_TEARS_ATOMIC },
	{ .name = "rots", .physics = "a cut flips bits in data that was flushed before",
		.seen = "FAST'13: bit corruption", .flags = PP_DRIVE_ROTS, .chance_pct = 60 },
	{ .name = "flies",
		.physics = "a flushed 4 KiB write lands two blocks on and destroys what was there",
		.seen = "FAST'13: flying writes", .flags = PP_DRIVE_FLIES, .chance_pct = 60 },
	{ .name = "rolls-back", .physics = "a cut undoes the last 5 ms, flushed or not",
		.seen = "FAST'13: unserializable writes", .flags = PP_DRIVE_ROLLS_BACK, .amount = 5 * MS,
		.chance_pct = 60 },
	{ .name = "old-epoch",
		.physics = "the mapping table is saved every 256 kB; a cut brings back the last saved one",
		.seen = "FAST'13: metadata corruption; flash translation layers without a journal",
		.flags = PP_DRIVE_OLD_EPOCH, .amount = 256 << 10, .chance_pct = 100 },
	{ .name = "paired-pages",
		.physics = "a page that is being programmed destroys its paired page, written long before",
		.seen = "MLC flash: lower and upper page share cells", .flags = PP_DRIVE_PAIRED_PAGES,
		.chance_pct = 60 },
	{ .name = "third-gone", .physics = "after eight cuts the first third cannot be read",
		.seen = "FAST'13: one SSD lost a third of its blocks after eight faults",
		.flags = PP_DRIVE_THIRD_GONE, .amount = 8 },
	{ .name = "third-blank", .physics = "after eight cuts the first third reads as zeros",
		.seen = "a lost part of a mapping table", .flags = PP_DRIVE_THIRD_BLANK, .amount = 8 },
	{ .name = "dies", .physics = "after ten cuts the drive does not answer any more",
		.seen = "FAST'13: one SSD was dead after 136 faults", .flags = PP_DRIVE_DIES,
		.amount = 10 },
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
