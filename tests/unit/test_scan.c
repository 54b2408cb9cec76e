/* SPDX-License-Identifier: MIT
 *
 * Goal: what scan_make saw is what scan_parse tells, whatever stands on the target and whatever its
 * reads do; and nothing else is ever taken for a scan (M4.1, M6.2).
 * Method: targets in memory (oracle_world.h). Round trips, a fault walk over every read, bad blocks
 * of both sizes, then damage to the scan's own bytes at every position.
 */
#include <unistd.h>

#include "oracle_world.h"

static const struct pp_scan_slot *slot_at(const struct pp_scan *scan, uint32_t lane, uint64_t slot)
{
	const struct pp_scan_slot *s = pp_scan_slot(scan, lane, slot);

	assert_non_null(s);
	return s;
}

static bool bit(const uint8_t *map, uint32_t i)
{
	return map[i / 8] >> i % 8 & 1;
}

static void assert_intact(const struct world *w, const struct pp_scan *scan, uint32_t lane,
	uint64_t slot, const struct pp_run_id *run, uint64_t seq)
{
	const struct pp_scan_slot *s = slot_at(scan, lane, slot);
	struct pp_record r = world_record(w, run, lane, slot, seq);

	assert_int_equal(s->kind, PP_SLOT_INTACT);
	assert_true(s->run < scan->run_count);
	assert_true(pp_run_id_equal(&scan->runs[s->run], run));
	assert_int_equal(s->lane, lane);
	assert_int_equal(s->seq, seq);
	assert_int_equal(s->issued_ns, r.issued_ns);
	assert_int_equal(s->durable, r.durable);
	assert_int_equal(s->flags, 0);
}

static void assert_same_slot(const struct pp_scan *a, const struct pp_scan *b, uint32_t lane,
	uint64_t slot)
{
	const struct pp_scan_slot *x = slot_at(a, lane, slot), *y = slot_at(b, lane, slot);
	size_t map = (a->record_bytes / PP_CELL_BYTES + 7) / 8;

	assert_int_equal(x->kind, y->kind);
	assert_int_equal(x->seq, y->seq);
	if (x->kind != PP_SLOT_RAW)
		return;
	assert_memory_equal(x->bytes, y->bytes, a->record_bytes);
	assert_memory_equal(x->unread, y->unread, map);
	assert_memory_equal(x->absent, y->absent, map);
}

static void tells_what_stands_there(void **state)
{
	uint32_t lanes, lane;

	(void)state;
	for (lanes = 1; lanes <= 4; lanes++) {
		struct world w;
		struct pp_record r;
		const struct pp_scan_slot *s;

		world_init(&w, PP_OVERWRITE, lanes, 1);
		world_lay(&w, w.layout.slots);
		lane = lanes - 1;
		world_put(&w, lane, 8);
		memset(world_slot(&w, lane, 1), 0, 2048);
		memset(world_slot(&w, lane, 2), 0xff, 2048);
		memset(world_slot(&w, lane, 3), 0, 2048);
		world_slot(&w, lane, 3)[2047] = 1;
		r = world_record(&w, &w.run, lane, 9, 10); /* whole, but meant for slot 9 */
		pp_record_fill(world_slot(&w, lane, 4), &r);
		world_set_bad(&w, lane, 5, 2, EIO);
		w.scan = world_take_scan(&w, NULL, 0);
		assert_int_equal(w.scan->lanes, lanes);
		assert_false(w.scan->sparse);
		assert_int_equal(w.scan->lane[lane].slots, w.layout.slots);
		assert_int_equal(w.scan->lane[lane].file_bytes, w.file[0].size);
		assert_intact(&w, w.scan, lane, 0, &w.before, 1);
		assert_intact(&w, w.scan, lane, 7, &w.run, 8);
		assert_intact(&w, w.scan, lane, w.layout.slots - 1, &w.before, w.layout.slots);
		assert_int_equal(slot_at(w.scan, lane, 1)->kind, PP_SLOT_ZERO);
		assert_int_equal(slot_at(w.scan, lane, 2)->kind, PP_SLOT_FF);
		s = slot_at(w.scan, lane, 3);
		assert_int_equal(s->kind, PP_SLOT_RAW);
		assert_memory_equal(s->bytes, world_slot(&w, lane, 3), 2048);
		assert_int_equal(slot_at(w.scan, lane, 4)->kind, PP_SLOT_RAW);
		s = slot_at(w.scan, lane, 5);
		assert_int_equal(s->kind, PP_SLOT_RAW);
		assert_true(bit(s->unread, 2) && !bit(s->unread, 1) && !bit(s->unread, 3));
		assert_memory_equal(s->bytes, world_slot(&w, lane, 5), 1024);
		assert_true(pp_bytes_all(s->bytes + 1024, 512, 0));
		assert_memory_equal(s->bytes + 1536, world_slot(&w, lane, 5) + 1536, 512);
		assert_intact(&w, w.scan, lane, 6, &w.before, 7);
		assert_null(pp_scan_slot(w.scan, lane, w.layout.slots));
		assert_null(pp_scan_slot(w.scan, lanes, 0));
		world_release(&w);
	}
}

/* Cells that differ in one field only are not one record, however valid each is. */
static void mixed_records_are_raw(void **state)
{
	int field;

	(void)state;
	for (field = 0; field < 6; field++) {
		struct world w;
		struct pp_record r;

		world_init(&w, PP_OVERWRITE, 1, 1);
		world_lay(&w, w.layout.slots);
		r = world_record(&w, &w.before, 0, 20, 21);
		switch (field) {
		case 0: r.seq += 256; break;
		case 1: r.issued_ns++; break;
		case 2: r.durable--; break;
		case 3: r.flags = PP_RECORD_COMPRESSIBLE; break;
		case 4: r.lane = 1; break;
		case 5: r.run = w.other; break;
		}
		world_write_cells(&w, &r, 0, 20, 3, 1);
		w.scan = world_take_scan(&w, NULL, 0);
		assert_int_equal(slot_at(w.scan, 0, 20)->kind, PP_SLOT_RAW);
		world_release(&w);
	}
}

static void files_end_where_they_end(void **state)
{
	static const struct { uint64_t bytes; uint64_t slots; uint8_t kind; unsigned absent; } cases[] = {
		{ 0, 0, 0, 0 }, { 1, 1, PP_SLOT_RAW, 0xf }, { 511, 1, PP_SLOT_RAW, 0xf },
		{ 512, 1, PP_SLOT_RAW, 0xe }, { 1100, 1, PP_SLOT_RAW, 0xc },
		{ 2047, 1, PP_SLOT_RAW, 0x8 }, { 2048, 1, PP_SLOT_INTACT, 0 },
		{ 2049, 2, PP_SLOT_RAW, 0xf }, { 3 * 2048 + 512, 4, PP_SLOT_RAW, 0xe },
	};
	uint32_t aligns[] = { 512, 4096 };
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (k = 0; k < 2; k++) {
			struct world w;
			const struct pp_scan_slot *s;
			uint32_t cell;

			world_init(&w, PP_APPEND, 2, 1);
			world_lay(&w, 10);
			w.source.align_bytes = aligns[k];
			w.file[1].size = cases[i].bytes;
			w.scan = world_take_scan(&w, NULL, 0);
			assert_int_equal(w.scan->lane[0].slots, 10);
			assert_int_equal(w.scan->lane[1].slots, cases[i].slots);
			assert_int_equal(w.scan->lane[1].file_bytes, cases[i].bytes);
			if (cases[i].slots) {
				s = slot_at(w.scan, 1, cases[i].slots - 1);
				assert_int_equal(s->kind, cases[i].kind);
				for (cell = 0; s->kind == PP_SLOT_RAW && cell < 4; cell++) {
					assert_int_equal(bit(s->absent, cell), cases[i].absent >> cell & 1);
					assert_false(bit(s->unread, cell));
					if (!bit(s->absent, cell)) /* whole cells before the end are kept */
						assert_memory_equal(s->bytes + cell * 512, world_slot(&w, 1,
							cases[i].slots - 1) + cell * 512, 512);
				}
			}
			world_release(&w);
		}
	}
}

static void tells_gone_from_failing(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, PP_APPEND, 2, 1);
	world_lay(&w, 3);
	w.file[1].gone = true;
	w.scan = world_take_scan(&w, NULL, 0);
	assert_int_equal(w.scan->lane[0].file_state, PP_FILE_PRESENT);
	assert_int_equal(w.scan->lane[1].file_state, PP_FILE_GONE);
	assert_int_equal(w.scan->lane[1].os_code, ENOENT);
	assert_int_equal(w.scan->lane[1].slots, 0);
	world_release(&w);
}

static int size_fails(void *ctx, uint32_t file, uint64_t *bytes, int32_t *os_code)
{
	(void)ctx; (void)file; (void)bytes;
	*os_code = EIO;
	return -1;
}

/* M6.2: a size that cannot be had is no scan at all; neither is one that nobody takes. */
static void ends_without_a_scan(void **state)
{
	struct world w;
	struct world_bytes b = { 0 };
	size_t whole, at;

	(void)state;
	world_init(&w, PP_OVERWRITE, 1, 1);
	world_lay(&w, w.layout.slots);
	memset(world_slot(&w, 0, 0), 0x5a, 200 * 2048); /* more than one buffer of output */
	assert_int_equal(pp_scan_make(&w.layout, &w.source, NULL, 0, world_sink, &b, &w.err), 0);
	whole = b.bytes;
	for (at = 1; at <= whole; at += whole / 7) {
		b.bytes = 0;
		b.fail_at = at;
		assert_int_equal(pp_scan_make(&w.layout, &w.source, NULL, 0, world_sink, &b, &w.err), -1);
		assert_int_equal(w.err.class, PP_ERR_PEER);
	}
	b.fail_at = 0;
	w.source.size = size_fails;
	assert_int_equal(pp_scan_make(&w.layout, &w.source, NULL, 0, world_sink, &b, &w.err), -1);
	assert_int_equal(w.err.os_code, EIO);
	free(b.data);
	world_release(&w);
}

static void sparse_scans_hold_what_was_asked(void **state)
{
	static const struct pp_scan_range good[] = { { 0, 3, 5 }, { 0, 9, 9 }, { 1, 0, 0 }, { 1, 255, 255 } };
	static const struct pp_scan_range wrong[] = { { 2, 0, 0 }, { 0, 256, 256 }, { 0, 0, UINT64_MAX } };
	struct world w;
	struct world_bytes b = { 0 };
	size_t i;

	(void)state;
	world_init(&w, PP_OVERWRITE, 2, 1);
	world_lay(&w, w.layout.slots);
	memset(world_slot(&w, 0, 9), 0x5a, 512);
	world_set_bad(&w, 0, 4, 0, EIO);
	w.reads = 0;
	w.scan = world_take_scan(&w, good, 4);
	assert_true(w.scan->sparse);
	assert_int_equal(w.scan->sparse_count, 6);
	assert_true(w.reads <= 6 + 4 + 1); /* nothing but what was asked for, and slot 4's cells */
	assert_intact(&w, w.scan, 0, 3, &w.before, 4);
	assert_true(bit(slot_at(w.scan, 0, 4)->unread, 0));
	assert_intact(&w, w.scan, 0, 5, &w.before, 6);
	assert_int_equal(slot_at(w.scan, 0, 9)->kind, PP_SLOT_RAW);
	assert_intact(&w, w.scan, 1, 0, &w.before, 1);
	assert_intact(&w, w.scan, 1, 255, &w.before, 256);
	assert_null(pp_scan_slot(w.scan, 0, 6));
	assert_null(pp_scan_slot(w.scan, 1, 3));
	for (i = 0; i < 3; i++) {
		assert_int_equal(pp_scan_make(&w.layout, &w.source, &wrong[i], 1, world_sink, &b,
			&w.err), -1);
		assert_int_equal(w.err.class, PP_ERR_USAGE);
	}
	free(b.data);
	world_release(&w);
}

/* ---- faults ----------------------------------------------------------------------------------- */

/* The k-th read fails, once: nothing is lost by it, since a smaller one follows. Walk on until k is
 * beyond the last read. And with two bad cells already there, so that the small reads are walked. */
static void one_failed_read_hides_nothing(void **state)
{
	struct world w;
	struct pp_scan *clean;
	unsigned k, unread;
	uint64_t slot;

	(void)state;
	world_init_sized(&w, PP_OVERWRITE, 1, 1, 8192, 4096, false, 256);
	world_lay(&w, w.layout.slots);
	world_set_bad(&w, 0, 7, 3, EIO);
	world_set_bad(&w, 0, 255, 15, EIO);
	clean = world_take_scan(&w, NULL, 0);
	for (k = 1; ; k++) {
		w.reads = 0;
		w.fail_read = k;
		w.scan = world_take_scan(&w, NULL, 0);
		unread = 0;
		for (slot = 0; slot < w.layout.slots; slot++) {
			const struct pp_scan_slot *s = slot_at(w.scan, 0, slot);
			uint32_t i;

			if (slot != 7 && slot != 255) {
				assert_same_slot(w.scan, clean, 0, slot);
				continue;
			}
			for (i = 0; i < 16; i++)
				unread += bit(s->unread, i);
		}
		assert_true(unread == 2 || unread == 3); /* one more where it was a cell's only try */
		pp_scan_free(w.scan);
		w.scan = NULL;
		if (w.reads < k)
			break;
	}
	assert_true(k > 30);
	pp_scan_free(clean);
	world_release(&w);
}

static void all_reads_fail_from_one_on(void **state)
{
	struct world w;
	uint64_t slot, from;

	(void)state;
	world_init_sized(&w, PP_OVERWRITE, 1, 1, 8192, 4096, false, 256); /* two chunks */
	world_lay(&w, w.layout.slots);
	for (from = 0; from < 256; from += 51) {
		memset(w.file[0].bad, 0, w.file[0].room / 512);
		memset(w.file[0].bad + from * 16, EIO, (256 - from) * 16);
		w.scan = world_take_scan(&w, NULL, 0);
		for (slot = 0; slot < 256; slot++) {
			const struct pp_scan_slot *s = slot_at(w.scan, 0, slot);

			if (slot < from)
				assert_intact(&w, w.scan, 0, slot, &w.before, slot + 1);
			else
				assert_true(s->kind == PP_SLOT_RAW && s->unread[0] == 0xff &&
					s->unread[1] == 0xff);
		}
		pp_scan_free(w.scan);
		w.scan = NULL;
	}
	world_release(&w);
}

/* M4.1: a bad sector costs its block, not its record: every cell once, both block sizes. */
static void bad_block_hides_no_neighbour(void **state)
{
	uint32_t aligns[] = { 512, 4096 }, cell, i, k;

	(void)state;
	for (k = 0; k < 2; k++) {
		struct world w;

		world_init_sized(&w, PP_OVERWRITE, 1, 1, 8192, 4096, false, 256);
		world_lay(&w, w.layout.slots);
		w.source.align_bytes = aligns[k];
		for (cell = 0; cell < 16; cell++) {
			const struct pp_scan_slot *s;
			uint32_t per = aligns[k] / 512;

			world_set_bad(&w, 0, 100, cell, EIO);
			w.scan = world_take_scan(&w, NULL, 0);
			s = slot_at(w.scan, 0, 100);
			assert_int_equal(s->kind, PP_SLOT_RAW);
			for (i = 0; i < 16; i++) {
				assert_int_equal(bit(s->unread, i), i / per == cell / per);
				if (!bit(s->unread, i))
					assert_memory_equal(s->bytes + i * 512,
						world_slot(&w, 0, 100) + i * 512, 512);
			}
			assert_intact(&w, w.scan, 0, 99, &w.before, 100);
			assert_intact(&w, w.scan, 0, 101, &w.before, 102);
			assert_true(w.read_bytes_min >= aligns[k]);
			world_set_bad(&w, 0, 100, cell, 0);
			pp_scan_free(w.scan);
			w.scan = NULL;
		}
		world_release(&w);
	}
}

/* A hung record costs two minutes, not one a cell; after enough of them the rest is unread. */
static void hangs_are_bounded(void **state)
{
	struct world w;
	uint64_t slot;

	(void)state;
	world_init(&w, PP_OVERWRITE, 1, 1);
	world_lay(&w, w.layout.slots);
	memset(w.file[0].bad + 100 * 4, ETIMEDOUT, 4);
	w.scan = world_take_scan(&w, NULL, 0);
	assert_int_equal(w.hangs, 2); /* the chunk, the record */
	assert_int_equal(slot_at(w.scan, 0, 100)->unread[0], 0xf);
	for (slot = 0; slot < w.layout.slots; slot++)
		if (slot != 100)
			assert_intact(&w, w.scan, 0, slot, &w.before, slot + 1);
	pp_scan_free(w.scan);
	memset(w.file[0].bad + 100 * 4, ETIMEDOUT, 100 * 4);
	w.hangs = 0;
	w.scan = world_take_scan(&w, NULL, 0);
	assert_int_equal(w.hangs, 8);
	assert_intact(&w, w.scan, 0, 99, &w.before, 100);
	for (slot = 100; slot < w.layout.slots; slot++)
		assert_int_equal(slot_at(w.scan, 0, slot)->unread[0], 0xf);
	world_release(&w);
}

/* Where every slot is a file: gone, empty, short, whole, unreadable, each by itself; and what the
 * machine cannot open for reasons of its own ends the scan: it is no loss. */
static void files_of_a_folder(void **state)
{
	static const int32_t damage[] = { EIO, EUCLEAN, EBADMSG }, trouble[] = { EACCES, EMFILE, ENOMEM };
	struct pp_scan_range range = { 1, 7, 8 };
	struct world_bytes b = { 0 };
	struct world w;
	size_t i;

	(void)state;
	world_init(&w, PP_CREATE, 2, 1);
	world_lay(&w, 20);
	w.file[1].slot_bytes[3] = WORLD_NO_FILE;
	w.file[1].slot_bytes[4] = 0;
	w.file[1].slot_bytes[5] = 2 * PP_CELL_BYTES + 100;
	world_set_bad(&w, 1, 6, 2, EIO);
	w.scan = world_take_scan(&w, NULL, 0);
	assert_int_equal(w.scan->lane[0].slots, w.layout.slots);
	assert_intact(&w, w.scan, 0, 3, &w.before, 4);
	assert_int_equal(slot_at(w.scan, 1, 3)->kind, PP_SLOT_GONE);
	assert_int_equal(slot_at(w.scan, 1, 4)->kind, PP_SLOT_ABSENT);
	assert_int_equal(slot_at(w.scan, 1, 5)->kind, PP_SLOT_RAW);
	assert_int_equal(slot_at(w.scan, 1, 5)->absent[0], 0xc);
	assert_int_equal(slot_at(w.scan, 1, 6)->unread[0], 0x4);
	assert_intact(&w, w.scan, 1, 7, &w.before, 8);
	assert_int_equal(slot_at(w.scan, 1, 20)->kind, PP_SLOT_GONE);
	assert_int_equal(pp_scan_taken(w.scan, &w.layout, 1), 20);
	assert_false(pp_scan_base_whole(w.scan, &w.layout));
	pp_scan_free(w.scan);
	for (i = 0; i < 3; i++) {
		w.file[1].slot_bytes[7] = WORLD_FAILS - damage[i];
		w.scan = world_take_scan(&w, &range, 1);
		assert_int_equal(slot_at(w.scan, 1, 7)->kind, PP_SLOT_RAW);
		assert_int_equal(slot_at(w.scan, 1, 7)->unread[0] & 0xf, 0xf);
		assert_intact(&w, w.scan, 1, 8, &w.before, 9);
		pp_scan_free(w.scan);
		w.scan = NULL;
	}
	for (i = 0; i < 3; i++) {
		w.file[1].slot_bytes[7] = WORLD_FAILS - trouble[i];
		assert_int_equal(pp_scan_make(&w.layout, &w.source, NULL, 0, world_sink, &b, &w.err), -1);
		assert_int_equal(w.err.os_code, trouble[i]);
		b.bytes = 0;
	}
	free(b.data);
	world_release(&w);
}

/* M2.8: a set-up's base is whole where what it wrote is, and nothing else is. */
static void bases_are_whole_or_not(void **state)
{
	static const struct { enum pp_workload workload; uint64_t laid; } rows[] = {
		{ PP_OVERWRITE, 256 }, { PP_APPEND, 1 }, { PP_FALLOCATED, 1 }, { PP_CREATE, 1 },
		{ PP_RENAME, 256 },
	};
	struct world w;
	size_t i;
	int k;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		world_init(&w, rows[i].workload, 2, 1);
		world_lay(&w, rows[i].laid);
		for (k = 0; k < 2; k++) {
			w.scan = world_take_scan(&w, NULL, 0);
			assert_int_equal(pp_scan_base_whole(w.scan, &w.layout), k == 0);
			if (pp_workload_grows(rows[i].workload))
				assert_int_equal(pp_scan_taken(w.scan, &w.layout, 1), 1);
			pp_scan_free(w.scan);
			world_slot(&w, 1, 0)[77] ^= 1;
		}
		w.scan = NULL;
		world_release(&w);
	}
}

/* ---- the scan's own bytes ---------------------------------------------------------------------- */

static struct world_bytes small_scan(struct world *w, bool sparse)
{
	static const struct pp_scan_range ranges[] = { { 0, 0, 5 }, { 1, 2, 3 } };
	struct world_bytes b = { 0 };

	world_init_sized(w, PP_APPEND, 2, 1, 1024, 512, false, 256);
	world_lay(w, 6);
	memset(world_slot(w, 0, 1), 0, 1024);
	memset(world_slot(w, 0, 2), 0xff, 1024);
	memset(world_slot(w, 0, 3), 0x5a, 512);
	world_set_bad(w, 1, 2, 1, EIO);
	w->file[1].size -= 700;
	assert_int_equal(pp_scan_make(&w->layout, &w->source, ranges, sparse ? 2 : 0, world_sink, &b,
		&w->err), 0);
	return b;
}

static void assert_no_scan(const uint8_t *data, size_t bytes)
{
	struct pp_error err = { 0 };
	uint8_t *copy = malloc(bytes ? bytes : 1);

	memcpy(copy, data, bytes);
	assert_null(pp_scan_parse(copy, bytes, &err));
	assert_int_equal(err.class, PP_ERR_EVIDENCE);
	assert_true(err.text[0] != '\0');
}

static void truncated_scan_is_no_scan(void **state)
{
	size_t at;
	int sparse;

	(void)state;
	for (sparse = 0; sparse < 2; sparse++) {
		struct world w;
		struct world_bytes b = small_scan(&w, sparse);

		for (at = 0; at < b.bytes; at++)
			assert_no_scan(b.data, at);
		assert_int_equal(world_sink(&b, "", 1, NULL), 0); /* nor one with something behind it */
		assert_no_scan(b.data, b.bytes);
		free(b.data);
		world_release(&w);
	}
}

static void changed_scan_is_no_scan(void **state)
{
	size_t at;
	int sparse, k;

	(void)state;
	for (sparse = 0; sparse < 2; sparse++) {
		struct world w;
		struct world_bytes b = small_scan(&w, sparse);

		for (at = 0; at < b.bytes; at++) {
			for (k = 0; k < 3; k++) {
				uint8_t was = b.data[at];

				b.data[at] = k == 0 ? was ^ 1 : k == 1 ? was ^ 0x80 : (uint8_t)~was;
				assert_no_scan(b.data, b.bytes);
				b.data[at] = was;
			}
		}
		w.scan = pp_scan_parse(b.data, b.bytes, &w.err);
		assert_non_null(w.scan);
		world_release(&w);
	}
}

static void loads_from_a_file(void **state)
{
	struct world w;
	struct world_bytes b = small_scan(&w, false);
	char path[] = "/tmp/pp-test-scan-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_null(pp_scan_load(path, &w.err)); /* empty */
	assert_int_equal(w.err.class, PP_ERR_EVIDENCE);
	assert_non_null(strstr(w.err.text, path));
	assert_int_equal(write(fd, b.data, b.bytes), (ssize_t)b.bytes);
	close(fd);
	w.scan = pp_scan_load(path, &w.err);
	unlink(path);
	assert_non_null(w.scan);
	assert_int_equal(slot_at(w.scan, 0, 1)->kind, PP_SLOT_ZERO);
	assert_int_equal(slot_at(w.scan, 0, 2)->kind, PP_SLOT_FF);
	assert_null(pp_scan_load(path, &w.err)); /* missing */
	free(b.data);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_what_stands_there),
		cmocka_unit_test(mixed_records_are_raw),
		cmocka_unit_test(files_end_where_they_end),
		cmocka_unit_test(tells_gone_from_failing),
		cmocka_unit_test(ends_without_a_scan),
		cmocka_unit_test(sparse_scans_hold_what_was_asked),
		cmocka_unit_test(one_failed_read_hides_nothing),
		cmocka_unit_test(all_reads_fail_from_one_on),
		cmocka_unit_test(bad_block_hides_no_neighbour),
		cmocka_unit_test(hangs_are_bounded),
		cmocka_unit_test(files_of_a_folder),
		cmocka_unit_test(bases_are_whole_or_not),
		cmocka_unit_test(truncated_scan_is_no_scan),
		cmocka_unit_test(changed_scan_is_no_scan),
		cmocka_unit_test(loads_from_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
