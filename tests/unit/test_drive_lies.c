/* SPDX-License-Identifier: MIT
 *
 * Goal: each lie of the catalogue destroys what its row says, and nothing else; what was flushed on
 * an honest drive stays, whatever the seed (the reverse of test_drive_model, which tests promises).
 * Method: a small drive in memory, sectors that are told apart by their first byte; the same few
 * writes and flushes for every row, then a cut, over many seeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/lab/sim_disk.h"

#define SECTORS 256
#define SECTOR  PP_DRIVE_SECTOR_BYTES
#define MS      1000000LL
#define SEEDS   64

static struct pp_sim_disk disk;
static struct pp_sim_drive *drive;

static void open_drive(const char *behaviour, uint64_t seed)
{
	struct pp_sim_drive_config config = { .behaviour = pp_sim_drive_behaviour_find(behaviour),
		.size_bytes = SECTORS * SECTOR, .cache_bytes = SECTORS * SECTOR, .seed = seed };
	struct pp_sim_drive_medium medium;
	struct pp_error err;

	assert_non_null(config.behaviour);
	assert_int_equal(pp_sim_disk_init(&disk, SECTORS * SECTOR, &err), 0);
	pp_sim_disk_medium(&disk, &medium);
	drive = pp_sim_drive_new(&config, &medium, NULL, &err);
	assert_non_null(drive);
	pp_sim_drive_power_on(drive, 0);
}

static void close_drive(void)
{
	pp_sim_drive_free(drive);
	pp_sim_disk_release(&disk);
}

static void put(int64_t now_ns, uint64_t sector, unsigned count, uint8_t value)
{
	uint8_t data[16 * SECTOR];

	memset(data, value, count * SECTOR);
	assert_int_equal(pp_sim_drive_write(drive, now_ns, data, count * SECTOR, sector * SECTOR,
		false), 0);
}

static bool holds(uint64_t sector, uint8_t value)
{
	const uint8_t *at = disk.data + sector * SECTOR;

	return !disk.bad[sector] && at[0] == value && memcmp(at, at + 1, SECTOR - 1) == 0;
}

static unsigned count_of(uint64_t from, unsigned count, uint8_t value)
{
	unsigned i, n = 0;

	for (i = 0; i < count; i++)
		n += holds(from + i, value);
	return n;
}

static void flush(int64_t now_ns)
{
	assert_int_equal(pp_sim_drive_flush(drive, now_ns), 0);
}

static void cut(int64_t now_ns, uint64_t seed)
{
	assert_int_equal(pp_sim_drive_cut(drive, now_ns, 0, seed), 0);
}

/* ---- a flush that leaves some behind ------------------------------------------------------------ */

static const struct {
	const char *behaviour;
	int64_t wait_ns;       /* between the writes and the flush */
	int64_t then_ns;       /* between the flush and the cut */
	unsigned first, last;  /* of sectors 0 .. 7, written one by one: which survive */
} flushes[] = {
	{ "honest", 0, 0, 0, 7 },
	{ "flushes-oldest", 0, 0, 0, 5 },
	{ "flushes-newest", 0, 0, 2, 7 },
	{ "flush-races", 100000, 0, 0, 7 },
	{ "flush-races", 99999, 0, 1, 0 },
	{ "lazy-time", 0, 2 * MS, 0, 7 },
	{ "lazy-time", 0, 2 * MS - 1, 1, 0 },
	{ "lazy-time", MS, MS, 0, 7 },
	{ "ignores-flush", 10 * MS, 10 * MS, 1, 0 },
	{ "protected", 0, 0, 0, 7 },
	{ "cache-returns", 0, 0, 0, 7 },
	{ "capacitor-dies", 0, 0, 0, 7 },
};

static void a_flush_covers_what_the_row_says(void **state)
{
	size_t i;
	unsigned s;

	(void)state;
	for (i = 0; i < sizeof(flushes) / sizeof(flushes[0]); i++) {
		open_drive(flushes[i].behaviour, 1);
		for (s = 0; s < 8; s++)
			put(0, s, 1, 0xaa);
		flush(flushes[i].wait_ns);
		cut(flushes[i].wait_ns + flushes[i].then_ns, 1);
		for (s = 0; s < 8; s++)
			if (holds(s, 0xaa) != (s >= flushes[i].first && s <= flushes[i].last))
				fail_msg("%s (row %zu): sector %u", flushes[i].behaviour, i, s);
		close_drive();
	}
}

static void a_lazy_cache_keeps_so_much(void **state)
{
	unsigned s;

	(void)state;
	open_drive("lazy-amount", 1);
	for (s = 0; s < SECTORS; s++)
		put(s * MS, s, 1, 0xaa);
	flush(SECTORS * MS);
	assert_int_equal(pp_sim_drive_dirty_bytes(drive), 64 << 10);
	cut(SECTORS * MS, 1);
	assert_int_equal(count_of(0, SECTORS - 128, 0xaa), SECTORS - 128);
	assert_int_equal(count_of(SECTORS - 128, 128, 0xaa), 0);
	close_drive();
}

/* A flush covers what had completed when it was submitted, and on a real drive may not cover more. */
static void a_flush_begins_when_it_is_submitted(void **state)
{
	uint64_t begun;

	(void)state;
	open_drive("honest", 1);
	put(0, 1, 1, 0xaa);
	begun = pp_sim_drive_flush_begin(drive);
	put(0, 2, 1, 0xbb);
	assert_int_equal(pp_sim_drive_flush_end(drive, 1, begun), 0);
	cut(2, 1);
	assert_true(holds(1, 0xaa));
	assert_false(holds(2, 0xbb));
	close_drive();
}

static void lies_at_speed_only(void **state)
{
	int64_t t;
	bool kept[2];
	int fast;

	(void)state;
	for (fast = 0; fast < 2; fast++) {
		open_drive("fast-lies", 1);
		/* 4 KiB every 100 us or every ms: 41 or 4 MB/s */
		for (t = 0; t < 20; t++) {
			put(t * (fast ? MS / 10 : MS), (uint64_t)t * 8 % SECTORS, 8, 0x11);
			flush(t * (fast ? MS / 10 : MS));
		}
		for (t = 20; t < 40; t++)
			put(t * (fast ? MS / 10 : MS), (uint64_t)t * 8 % SECTORS, 8, 0x22);
		flush(39 * (fast ? MS / 10 : MS));
		cut(40 * MS, 1);
		kept[fast] = holds(39 * 8 % SECTORS, 0x22);
		close_drive();
	}
	assert_true(kept[0]);
	assert_false(kept[1]);
}

/* ---- lies that come with the cuts ---------------------------------------------------------------- */

static bool survives_cut(int number)
{
	put(number * MS, 9, 1, (uint8_t)(0x40 + number));
	flush(number * MS);
	cut(number * MS, 1);
	pp_sim_drive_power_on(drive, number * MS);
	return holds(9, (uint8_t)(0x40 + number));
}

static void a_capacitor_dies(void **state)
{
	int n;

	(void)state;
	open_drive("capacitor-dies", 1);
	for (n = 1; n < 10; n++)
		assert_true(survives_cut(n) == (n < 6));
	close_drive();
}

static void a_cache_returns_untold(void **state)
{
	(void)state;
	open_drive("cache-returns", 1);
	assert_false(pp_sim_drive_has_cache(drive));
	put(0, 3, 1, 0xaa);
	cut(1, 1);
	assert_true(holds(3, 0xaa));
	pp_sim_drive_power_on(drive, 2);
	assert_false(pp_sim_drive_has_cache(drive));
	put(2, 3, 1, 0xbb);
	cut(3, 1);
	assert_true(holds(3, 0xaa));
	close_drive();
}

static void thirds_and_death(void **state)
{
	static const char *const names[] = { "third-gone", "third-blank", "dies" };
	uint8_t data[SECTOR];
	unsigned i, n;

	(void)state;
	for (i = 0; i < 3; i++) {
		open_drive(names[i], 1);
		put(0, 0, 1, 0xaa);
		put(0, 200, 1, 0xbb);
		flush(0);
		for (n = 1; n <= (i == 2 ? 10 : 8); n++) {
			assert_false(pp_sim_drive_is_dead(drive));
			assert_int_equal(pp_sim_drive_read(drive, n, data, SECTOR, 0), 0);
			assert_int_equal(data[0], 0xaa);
			cut(n, n);
			pp_sim_drive_power_on(drive, n);
		}
		assert_true(pp_sim_drive_is_dead(drive) == (i == 2));
		assert_int_equal(pp_sim_drive_read(drive, n, data, SECTOR, 0), i == 1 ? 0 : -1);
		if (i == 1)
			assert_int_equal(data[0], 0);
		assert_int_equal(pp_sim_drive_read(drive, n, data, SECTOR, 200 * SECTOR), i == 2 ? -1 : 0);
		close_drive();
	}
}

static void flickers_and_then_reads(void **state)
{
	uint8_t data[SECTORS * SECTOR];
	unsigned failed, seed;

	(void)state;
	for (seed = 0; seed < SEEDS; seed++) {
		open_drive("flickers", seed);
		assert_int_equal(pp_sim_drive_read(drive, 0, data, sizeof(data), 0), 0);
		cut(1, 1);
		pp_sim_drive_power_on(drive, 2);
		for (failed = 0; failed < 10 &&
			pp_sim_drive_read(drive, 2, data, sizeof(data), 0) != 0; failed++)
			;
		assert_in_range(failed, 1, 5);
		close_drive();
	}
}

/* ---- injuries: a flushed 0xaa over 0x11, then a cut ------------------------------------------------ */

enum { AT = 64, UNIT = 8 };

static void write_twice(const char *behaviour, uint64_t seed)
{
	open_drive(behaviour, seed);
	put(0, AT, UNIT, 0x11);
	put(0, AT + 2 * UNIT, UNIT, 0x33);
	flush(0);
	/* Long ago: beyond what any window or epoch brings back, and its history forgotten. */
	assert_int_equal(pp_sim_drive_power_off(drive, MS), 0);
	pp_sim_drive_power_on(drive, 100 * MS);
	put(100 * MS, AT, UNIT, 0xaa);
	flush(100 * MS);
	cut(101 * MS, seed);
}

struct found {
	unsigned hurt, newer, older, moved;
	unsigned prefix, mixed;
};

static struct found injuries_of(const char *behaviour)
{
	struct found f = { 0 };
	uint64_t seed;

	for (seed = 0; seed < SEEDS; seed++) {
		unsigned now, old;
		bool flew;

		write_twice(behaviour, seed);
		now = count_of(AT, UNIT, 0xaa);
		old = count_of(AT, UNIT, 0x11);
		f.hurt += now != UNIT;
		f.newer += now;
		f.older += old;
		f.mixed += UNIT - now - old;
		f.prefix += now && now < UNIT && count_of(AT, now, 0xaa) == now &&
			old == UNIT - now;
		flew = count_of(AT + 2 * UNIT, UNIT, 0xaa) == UNIT;
		f.moved += flew;
		/* Nothing else is touched. */
		assert_int_equal(count_of(0, AT, 0), AT);
		assert_true(flew || count_of(AT + 2 * UNIT, UNIT, 0x33) == UNIT);
		close_drive();
	}
	return f;
}

static void injuries_are_those_of_the_row(void **state)
{
	struct found f;

	(void)state;
	f = injuries_of("honest");
	assert_int_equal(f.hurt, 0);
	f = injuries_of("shorn");
	assert_in_range(f.hurt, SEEDS / 4, SEEDS - 1);
	assert_int_equal(f.prefix, f.hurt);
	f = injuries_of("tears-sector");
	assert_in_range(f.hurt, SEEDS / 4, SEEDS - 1);
	assert_int_equal(f.mixed, f.hurt);
	f = injuries_of("rots");
	assert_in_range(f.hurt, SEEDS / 4, SEEDS - 1);
	assert_int_equal(f.older, 0);
	f = injuries_of("flies");
	assert_in_range(f.hurt, SEEDS / 4, SEEDS - 1);
	assert_int_equal(f.moved, f.hurt);
	assert_int_equal(f.older, UNIT * f.hurt);
	f = injuries_of("rolls-back");
	assert_in_range(f.hurt, SEEDS / 4, SEEDS - 1);
	assert_int_equal(f.older, UNIT * f.hurt);
	f = injuries_of("old-epoch");
	assert_int_equal(f.hurt, SEEDS);
	assert_int_equal(f.older, UNIT * SEEDS);
}

/* The window is a window: what is older than it stays. */
static void a_rollback_has_its_window(void **state)
{
	uint64_t seed;
	unsigned hurt = 0;

	(void)state;
	for (seed = 0; seed < SEEDS; seed++) {
		open_drive("rolls-back", seed);
		put(0, 1, 1, 0xaa);
		flush(0);
		put(6 * MS, 2, 1, 0xbb);
		flush(6 * MS);
		cut(7 * MS, seed);
		assert_true(holds(1, 0xaa));
		hurt += !holds(2, 0xbb);
		close_drive();
	}
	assert_in_range(hurt, SEEDS / 4, SEEDS - 1);
}

/* What a write in progress does to itself is allowed, to its neighbour it is not. */
static void writes_in_progress(void **state)
{
	static const char *const names[] = { "unreadable-in-flight", "paired-pages" };
	uint8_t data[UNIT * SECTOR];
	unsigned i, bad_here, bad_pair;
	uint64_t seed;

	(void)state;
	memset(data, 0x22, sizeof(data));
	for (i = 0; i < 2; i++) {
		for (seed = bad_here = bad_pair = 0; seed < SEEDS; seed++) {
			struct pp_sim_drive_write w = { .data = data, .bytes = sizeof(data),
				.offset = AT * SECTOR };

			open_drive(names[i], seed);
			put(0, AT ^ 32, UNIT, 0xaa);
			flush(0);
			assert_int_equal(pp_sim_drive_submit(drive, 1, &w), 0);
			cut(2, seed);
			bad_here += disk.bad[AT] || disk.bad[AT + 1] || disk.bad[AT + 2];
			bad_pair += count_of(AT ^ 32, UNIT, 0xaa) != UNIT;
			close_drive();
		}
		assert_true((bad_here > 0) == (i == 0));
		assert_true((bad_pair > 0) == (i == 1));
	}
}

/* A read-modify-write of a 4 KiB block takes what lies beside a small write along. */
static void a_block_is_spoilt_whole(void **state)
{
	uint8_t data[SECTOR];
	unsigned spoilt = 0, untouched = 0;
	uint64_t seed;

	(void)state;
	memset(data, 0x22, sizeof(data));
	for (seed = 0; seed < SEEDS; seed++) {
		struct pp_sim_drive_write w = { .data = data, .bytes = SECTOR, .offset = 19 * SECTOR };

		open_drive("spoils-block", seed);
		put(0, 8, 16, 0xaa);
		put(0, 24, 16, 0xaa);
		flush(0);
		assert_int_equal(pp_sim_drive_submit(drive, 1, &w), 0);
		cut(2, seed);
		spoilt += count_of(16, 8, 0xaa) == 0;
		untouched += count_of(16, 8, 0xaa) >= 7;
		assert_int_equal(count_of(8, 8, 0xaa) + count_of(24, 16, 0xaa), 24);
		close_drive();
	}
	assert_true(spoilt > 0 && untouched > 0);
}

/* M4.5: an atomic write, in progress or in the cache, comes whole or not at all; but not there. */
static void atomic_writes_are_whole(void **state)
{
	static const char *const names[] = { "honest", "reorders", "ignores-fua", "tears-atomic" };
	uint8_t data[16 * SECTOR], more[16 * SECTOR];
	unsigned i, n, cached, torn, whole;
	uint64_t seed;

	(void)state;
	memset(data, 0x22, sizeof(data));
	memset(more, 0x33, sizeof(more));
	for (i = 0; i < 4; i++) {
		for (seed = torn = whole = 0; seed < SEEDS; seed++) {
			struct pp_sim_drive_write w = { .data = data, .bytes = sizeof(data),
				.offset = 32 * SECTOR, .atomic = true };
			struct pp_sim_drive_write v = { .data = more, .bytes = sizeof(more),
				.offset = 64 * SECTOR, .atomic = true, .fua = true };

			open_drive(names[i], seed);
			put(0, 32, 8, 0x11); /* some of it is in the cache already */
			assert_int_equal(pp_sim_drive_submit(drive, 1, &w), 0);
			assert_int_equal(pp_sim_drive_complete(drive, 1, &w), 0);
			put(1, 128, 1, 0x44);
			assert_int_equal(pp_sim_drive_submit(drive, 1, &v), 0);
			assert_int_equal(pp_sim_drive_cut(drive, 2, 50, seed), 0);
			cached = count_of(32, 16, 0x22);
			n = count_of(64, 16, 0x33);
			torn += (cached && cached < 16) || (n && n < 16);
			whole += cached == 16;
			close_drive();
		}
		assert_true((torn > 0) == (i == 3));
		assert_true(i == 3 || (whole > 0 && whole < SEEDS));
	}
}

/* A cache smaller than all that is atomic at once must not destage half of one to fit the next. */
static void atomic_writes_fit_a_small_cache(void **state)
{
	struct pp_sim_drive_config config = { .behaviour = pp_sim_drive_behaviour_find("reorders"),
		.size_bytes = SECTORS * SECTOR, .cache_bytes = 20 * SECTOR };
	struct pp_sim_drive_medium medium;
	uint8_t data[8 * SECTOR];
	struct pp_error err;
	unsigned at, n;

	(void)state;
	memset(data, 0x22, sizeof(data));
	for (config.seed = 0; config.seed < SEEDS; config.seed++) {
		assert_int_equal(pp_sim_disk_init(&disk, SECTORS * SECTOR, &err), 0);
		pp_sim_disk_medium(&disk, &medium);
		drive = pp_sim_drive_new(&config, &medium, NULL, &err);
		pp_sim_drive_power_on(drive, 0);
		for (at = 0; at < SECTORS; at += 8) {
			struct pp_sim_drive_write w = { .data = data, .bytes = sizeof(data),
				.offset = (uint64_t)at * SECTOR, .atomic = true };

			assert_int_equal(pp_sim_drive_submit(drive, at, &w), 0);
			assert_int_equal(pp_sim_drive_complete(drive, at, &w), 0);
		}
		assert_int_equal(pp_sim_drive_cut(drive, SECTORS, 50, config.seed), 0);
		for (at = 0; at < SECTORS; at += 8) {
			n = count_of(at, 8, 0x22);
			assert_true(n == 0 || n == 8);
		}
		close_drive();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flush_covers_what_the_row_says),
		cmocka_unit_test(a_lazy_cache_keeps_so_much),
		cmocka_unit_test(a_flush_begins_when_it_is_submitted),
		cmocka_unit_test(lies_at_speed_only),
		cmocka_unit_test(a_capacitor_dies),
		cmocka_unit_test(a_cache_returns_untold),
		cmocka_unit_test(thirds_and_death),
		cmocka_unit_test(flickers_and_then_reads),
		cmocka_unit_test(injuries_are_those_of_the_row),
		cmocka_unit_test(a_rollback_has_its_window),
		cmocka_unit_test(writes_in_progress),
		cmocka_unit_test(a_block_is_spoilt_whole),
		cmocka_unit_test(atomic_writes_are_whole),
		cmocka_unit_test(atomic_writes_fit_a_small_cache),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
