/* SPDX-License-Identifier: MIT
 *
 * A simulated drive: a persistent medium under a volatile write cache. What a drive promises is
 * about 512-byte sectors, so that is the grain of the cache: a write that completed lies in the
 * cache, sector by sector, until a flush, FUA, the background destaging or an orderly power-off
 * brings it to the medium. A cut loses what is still in the cache, each sector by a seeded draw.
 *
 * The cache is bounded and destages in the background. Without both, a drive that ignores flushes
 * would lose everything since power-on, which is far too easy to see; a real one loses the last
 * fraction of a second.
 *
 * Deterministic: no clock and no system randomness inside. Time comes in as now_ns (any monotonic
 * count), all draws come from the seeds. Not thread-safe; callers with threads bring a lock.
 *
 * A write is submitted and completed in two steps, so that a cut can fall in between: a write in
 * progress may be torn at sector borders by every drive, also by the most honest one. (A sector
 * is atomic here. A write that the host asks to be atomic is, whole, in the cache too, as NVMe's
 * AWUPF has it. ANSI T13/T10 promise that much on power loss to no one, but it is what drives
 * with a sector ECC do: new, old or unreadable.)
 */
#ifndef PP_LAB_DRIVE_MODEL_H
#define PP_LAB_DRIVE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

#define PP_DRIVE_SECTOR_BYTES 512

/* What keeps its content without power. Offsets and sizes are multiples of a sector.
 * read and write return 0, or -1 with errno. */
struct pp_sim_drive_medium {
	void *ctx;
	int (*read)(void *ctx, void *data, size_t bytes, uint64_t offset);
	int (*write)(void *ctx, const void *data, size_t bytes, uint64_t offset);
	/* The sector at offset reads as an error until it is written again. NULL: a medium that knows
	 * no such thing gets garbage (or, where the drive lost its map, zeros) instead. */
	void (*spoil)(void *ctx, uint64_t offset);
};

/* What a drive does. `amount` and `chance_pct` of the behaviour's row go with the flag. */
enum {
	/* About requests. */
	PP_DRIVE_IGNORES_FLUSH  = 1 << 0, /* FLUSH returns success, the cache stays as it is */
	PP_DRIVE_IGNORES_FUA    = 1 << 1, /* a FUA write is an ordinary cached write */
	PP_DRIVE_HIDES_CACHE    = 1 << 2, /* advertises write-through: the host never flushes */
	PP_DRIVE_PROTECTED      = 1 << 3, /* power-loss protection: what completed survives */
	PP_DRIVE_LAZY_TIME      = 1 << 4, /* what is older than amount ns goes to the medium by itself */
	PP_DRIVE_LAZY_BYTES     = 1 << 5, /* what exceeds amount bytes of cache does */
	PP_DRIVE_FLUSHES_OLDEST = 1 << 6, /* FLUSH covers the oldest chance_pct per cent only */
	PP_DRIVE_FLUSHES_NEWEST = 1 << 7, /* FLUSH covers the newest chance_pct per cent only */
	PP_DRIVE_FLUSH_RACES    = 1 << 8, /* FLUSH does not wait for what came in the last amount ns */
	PP_DRIVE_FAST_LIES      = 1 << 9, /* ignores FLUSH and FUA above amount bytes a second */
	PP_DRIVE_SOMETIMES      = 1 << 10, /* lies in chance_pct per cent of its power cycles only */
	PP_DRIVE_CACHE_RETURNS  = 1 << 11, /* writes through until the first cut, caches ever after */
	PP_DRIVE_CAPACITOR_DIES = 1 << 12, /* protected, but no longer at cut number amount and after */
	PP_DRIVE_REORDERS       = 1 << 13, /* destages in any order, whatever was configured */
	/* About what a cut does to data that was on the medium already, with chance_pct. */
	PP_DRIVE_SHORN          = 1 << 14, /* of one 4 KiB write only the first sectors stay */
	PP_DRIVE_TEARS_SECTOR   = 1 << 15, /* of one sector only the first bytes stay */
	PP_DRIVE_ROTS           = 1 << 16, /* bits flip */
	PP_DRIVE_FLIES          = 1 << 17, /* a 4 KiB write lies two blocks further on */
	PP_DRIVE_ROLLS_BACK     = 1 << 18, /* the last amount ns are undone */
	PP_DRIVE_OLD_EPOCH      = 1 << 19, /* all since the last saved map; it is saved every amount bytes */
	PP_DRIVE_PAIRED_PAGES   = 1 << 20, /* a write in progress takes its neighbour 16 KiB away along */
	PP_DRIVE_UNREADABLE     = 1 << 21, /* a write in progress leaves sectors that cannot be read */
	/* After cut number amount. */
	PP_DRIVE_THIRD_GONE     = 1 << 22, /* its first third cannot be read */
	PP_DRIVE_THIRD_BLANK    = 1 << 23, /* its first third reads as zeros */
	PP_DRIVE_DIES           = 1 << 24, /* it never answers again */
	/* After every cut. */
	PP_DRIVE_FLICKERS       = 1 << 25, /* a sector cannot be read a few times, then it can */
	PP_DRIVE_TEARS_ATOMIC   = 1 << 26, /* an atomic write is torn at sector borders like any other */
};

struct pp_sim_drive_behaviour {
	const char *name;
	const char *physics; /* one line for people: what happens inside */
	const char *seen;    /* where such a thing was met or described */
	unsigned flags;
	uint64_t amount;     /* ns, bytes, bytes a second or number of a cut, as the flag says */
	unsigned chance_pct;
	bool honest;         /* keeps every promise: accusing it would be a false loss */
};

/* The row of that very name, or NULL. */
const struct pp_sim_drive_behaviour *pp_sim_drive_behaviour_find(const char *name);
/* Row i, or NULL past the last. */
const struct pp_sim_drive_behaviour *pp_sim_drive_behaviour_at(size_t i);

enum pp_sim_drive_order {
	PP_DRIVE_OLDEST_FIRST, /* the sector that has been dirty longest */
	PP_DRIVE_RANDOM,       /* a seeded draw: what a drive with many channels does to order */
};

struct pp_sim_drive_config {
	const struct pp_sim_drive_behaviour *behaviour;
	uint64_t size_bytes;              /* a multiple of a sector */
	uint64_t cache_bytes;             /* at least one sector */
	uint64_t destage_bytes_per_s;     /* 0: only a full cache destages */
	enum pp_sim_drive_order order;
	uint64_t seed;                    /* of the destaging order */
};

/* Persistent over power cycles where the owner keeps them (drive_file.h). As in NVMe, both power
 * counters move when the drive comes up: it then finds how it had gone down. */
struct pp_sim_drive_counters {
	uint64_t power_cycles;
	uint64_t unsafe_shutdowns;
	bool went_down_in_order; /* what the next power-on will find; true for a new drive */
	/* The rest is ground truth for tests, not for the method. */
	uint64_t reads;
	uint64_t writes; /* FUA or not */
	uint64_t fua_writes;
	uint64_t flushes;
};

struct pp_sim_drive;

/* A write in progress: the caller's memory, which has to stay until complete or cut. */
struct pp_sim_drive_write {
	const void *data;
	size_t bytes;
	uint64_t offset;
	bool fua;
	bool atomic;                  /* the host wants it whole or not at all after a cut */
	bool pending;                 /* submitted, neither completed nor cut */
	struct pp_sim_drive_write *next;
};

/* The drive starts without power. NULL on failure. counters is copied; NULL: a new drive. */
struct pp_sim_drive *pp_sim_drive_new(const struct pp_sim_drive_config *config,
	const struct pp_sim_drive_medium *medium, const struct pp_sim_drive_counters *counters,
	struct pp_error *err);
/* Frees memory only; what the cache held is gone, as without power. NULL is fine. */
void pp_sim_drive_free(struct pp_sim_drive *drive);

void pp_sim_drive_power_on(struct pp_sim_drive *drive, int64_t now_ns);
/* Orderly: the cache reaches the medium, then no power. Returns 0, or -1 with errno. */
int pp_sim_drive_power_off(struct pp_sim_drive *drive, int64_t now_ns);
/* Power loss: every dirty sector, and every sector of a write in progress, survives with
 * survive_pct percent probability drawn from seed; then no power. A protected drive keeps all that
 * completed. Returns 0, or -1 with errno. */
int pp_sim_drive_cut(struct pp_sim_drive *drive, int64_t now_ns, unsigned survive_pct,
	uint64_t seed);

/* Requests. They return 0, or -1 with errno: EIO without power, EINVAL off the grid or past the
 * end, else the medium's. Each does the destaging that was due by now_ns first. */
int pp_sim_drive_read(struct pp_sim_drive *drive, int64_t now_ns, void *data, size_t bytes,
	uint64_t offset);
int pp_sim_drive_submit(struct pp_sim_drive *drive, int64_t now_ns,
	struct pp_sim_drive_write *write);
/* -1 with EIO too if a cut has taken the write since. */
int pp_sim_drive_complete(struct pp_sim_drive *drive, int64_t now_ns,
	struct pp_sim_drive_write *write);
/* Submit and complete in one. */
int pp_sim_drive_write(struct pp_sim_drive *drive, int64_t now_ns, const void *data, size_t bytes,
	uint64_t offset, bool fua);
int pp_sim_drive_flush(struct pp_sim_drive *drive, int64_t now_ns);
/* The same in two steps: covers what had completed by begin, and not a sector more. */
uint64_t pp_sim_drive_flush_begin(struct pp_sim_drive *drive);
int pp_sim_drive_flush_end(struct pp_sim_drive *drive, int64_t now_ns, uint64_t begun);
/* Only the destaging that is due. */
int pp_sim_drive_tick(struct pp_sim_drive *drive, int64_t now_ns);

/* A drive that begins to lie, or stops. The cache keeps its content. What happens at power-on or
 * needs a history (rollbacks and the like) begins with the next power-on. */
void pp_sim_drive_set_behaviour(struct pp_sim_drive *drive,
	const struct pp_sim_drive_behaviour *behaviour);
const struct pp_sim_drive_behaviour *pp_sim_drive_behaviour_of(const struct pp_sim_drive *drive);

/* What the drive says of itself: true where it has, or admits to, a volatile cache. */
bool pp_sim_drive_has_cache(const struct pp_sim_drive *drive);
bool pp_sim_drive_behaviour_has_cache(const struct pp_sim_drive_behaviour *behaviour);
/* The write cache switched off (what it holds reaches the medium first, and from then on every write
 * does before it completes, whatever the drive does to FLUSH and FUA) or on; it is on again after each
 * power-on, as on a drive that does not save the setting. Returns 0, or -1 with errno. */
int pp_sim_drive_set_cache(struct pp_sim_drive *drive, int64_t now_ns, bool on);
/* What the drive says of it. */
bool pp_sim_drive_cache_is_on(const struct pp_sim_drive *drive);
/* Whether such a request (PP_DRIVE_IGNORES_FLUSH, PP_DRIVE_IGNORES_FUA) would do nothing just now:
 * for whoever models time, since a lie is quicker than the work. */
bool pp_sim_drive_ignores(const struct pp_sim_drive *drive, unsigned request);
/* It has power and does not answer (PP_DRIVE_DIES). */
bool pp_sim_drive_is_dead(const struct pp_sim_drive *drive);

bool pp_sim_drive_has_power(const struct pp_sim_drive *drive);
uint64_t pp_sim_drive_size_bytes(const struct pp_sim_drive *drive);
uint64_t pp_sim_drive_dirty_bytes(const struct pp_sim_drive *drive);
/* since_power_on: requests since then only (the two power counters are always of all time). */
struct pp_sim_drive_counters pp_sim_drive_counters_of(const struct pp_sim_drive *drive,
	bool since_power_on);

#endif
