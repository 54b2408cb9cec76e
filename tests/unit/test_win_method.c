/* SPDX-License-Identifier: MIT
 *
 * Goal: on Windows each method makes the call that its row says and no other (M2.1, M2.2), what
 * this Windows or file system has not is unsupported with the reason and never something else in
 * its place, and a call that failed is never taken for one that was made.
 * Method: the calls of Windows are a fake that writes down what it is asked for and can refuse each;
 * rows of the table on both sides.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "src/core/win_method.h"

#define FILE_BYTES 65536U
#define BLOCK      4096U
#define THE_FILE   ((void *)&fake)
#define THE_VOLUME ((void *)&fake.volume_flushes)
#define THE_RING   ((void *)&fake.ring)

static struct {
	/* What this Windows is. */
	bool no_nt_flush, device;
	const char *fs;
	uint32_t ring_has;
	uint32_t nt_status, flush_code, volume_code, write_code, map_code, store_code, view_code;
	uint32_t written_less, submit_less;
	uint32_t write_result, flush_result; /* HRESULTs of completions */
	unsigned pops_missing;
	uint64_t foreign_user;
	bool flush_first;
	/* What was asked. */
	unsigned writes, flushes, commits, nt_flushes, volume_flushes, volumes_open, rings_open;
	uint32_t nt_flag;
	uint64_t view_at, view_bytes;
	struct { uint64_t user; uint32_t sqe_flags, mode; } ring[2];
	unsigned queued, popped;
	uint64_t size;
	uint8_t bytes[FILE_BYTES];
	unsigned maps;
} fake;

static uint32_t fake_write(void *file, const void *buf, uint32_t bytes, uint64_t offset,
	uint32_t *written)
{
	assert_ptr_equal(file, THE_FILE);
	fake.writes++;
	if (fake.write_code)
		return fake.write_code;
	*written = bytes - fake.written_less;
	memcpy(fake.bytes + offset, buf, *written);
	return 0;
}

static uint32_t fake_flush(void *handle)
{
	if (handle == THE_VOLUME)
		fake.volume_flushes++;
	else
		fake.flushes++;
	return fake.flush_code;
}

static uint32_t fake_commit(int fd)
{
	assert_int_equal(fd, 7);
	fake.commits++;
	return fake.flush_code;
}

static bool fake_has_nt_flush(void)
{
	return !fake.no_nt_flush;
}

static uint32_t fake_nt_flush(void *file, uint32_t flags)
{
	assert_ptr_equal(file, THE_FILE);
	assert_false(fake.no_nt_flush);
	fake.nt_flushes++;
	fake.nt_flag = flags;
	return fake.nt_status;
}

static uint32_t fake_open_volume(void *file, void **volume)
{
	assert_ptr_equal(file, THE_FILE);
	if (fake.volume_code)
		return fake.volume_code;
	fake.volumes_open++;
	*volume = THE_VOLUME;
	return 0;
}

static void fake_close(void *handle)
{
	assert_ptr_equal(handle, THE_VOLUME);
	fake.volumes_open--;
}

static bool fake_is_device(void *file)
{
	(void)file;
	return fake.device;
}

static void fake_fs_name(void *file, char *name, size_t bytes)
{
	(void)file;
	snprintf(name, bytes, "%s", fake.fs ? fake.fs : "");
}

static uint32_t fake_size(void *file, uint64_t *bytes)
{
	(void)file;
	*bytes = fake.size;
	return 0;
}

static uint32_t fake_set_size(void *file, uint64_t bytes)
{
	(void)file;
	fake.size = bytes;
	return 0;
}

static uint32_t fake_map(void *file, uint64_t bytes, uint8_t **view)
{
	(void)file;
	assert_true(bytes > 0 && bytes <= FILE_BYTES);
	if (fake.map_code)
		return fake.map_code;
	fake.maps++;
	*view = fake.bytes;
	return 0;
}

static void fake_unmap(uint8_t *view)
{
	assert_ptr_equal(view, fake.bytes);
	fake.maps--;
}

static uint32_t fake_store(uint8_t *at, const void *buf, uint32_t bytes)
{
	if (fake.store_code)
		return fake.store_code;
	memcpy(at, buf, bytes);
	return 0;
}

static uint32_t fake_flush_view(uint8_t *at, uint64_t bytes)
{
	fake.view_at = (uint64_t)(at - fake.bytes);
	fake.view_bytes = bytes;
	return fake.view_code;
}

static uint32_t fake_ring_version(void)
{
	return fake.ring_has;
}

static uint32_t fake_ring_open(uint32_t version, void **ring)
{
	assert_int_equal(version, 300);
	fake.rings_open++;
	*ring = THE_RING;
	return 0;
}

static void fake_ring_close(void *ring)
{
	assert_ptr_equal(ring, THE_RING);
	fake.rings_open--;
}

static uint32_t fake_ring_write(void *ring, void *file, const void *buf, uint32_t bytes,
	uint64_t offset, uint32_t write_flags, uint64_t user, uint32_t sqe_flags)
{
	(void)ring;
	(void)file;
	assert_int_equal(write_flags, 0);
	memcpy(fake.bytes + offset, buf, bytes - fake.written_less);
	fake.ring[fake.queued].sqe_flags = sqe_flags;
	fake.ring[fake.queued++].user = user;
	return 0;
}

static uint32_t fake_ring_flush(void *ring, void *file, uint32_t mode, uint64_t user,
	uint32_t sqe_flags)
{
	(void)ring;
	(void)file;
	fake.ring[fake.queued].mode = mode;
	fake.ring[fake.queued].sqe_flags = sqe_flags;
	fake.ring[fake.queued++].user = user;
	return 0;
}

static uint32_t fake_ring_submit(void *ring, uint32_t wait_for, uint32_t *submitted)
{
	(void)ring;
	assert_int_equal(wait_for, 2);
	*submitted = fake.queued - fake.submit_less;
	fake.popped = 0;
	return 0;
}

static uint32_t fake_ring_pop(void *ring, struct pp_win_completion *one)
{
	unsigned i = fake.flush_first ? 1 - fake.popped : fake.popped;

	(void)ring;
	if (fake.popped + fake.pops_missing >= fake.queued)
		return 1;
	fake.popped++;
	one->user = fake.foreign_user ? fake.foreign_user : fake.ring[i].user;
	one->result = i == 0 ? fake.write_result : fake.flush_result;
	one->bytes = i == 0 ? BLOCK - fake.written_less : 0;
	return 0;
}

static const struct pp_win_calls calls = {
	.write = fake_write, .flush = fake_flush, .commit = fake_commit,
	.has_nt_flush = fake_has_nt_flush, .nt_flush = fake_nt_flush,
	.open_volume = fake_open_volume, .close = fake_close, .is_device = fake_is_device,
	.fs_name = fake_fs_name, .size = fake_size, .set_size = fake_set_size, .map = fake_map,
	.unmap = fake_unmap, .store = fake_store, .flush_view = fake_flush_view,
	.ring_version = fake_ring_version, .ring_open = fake_ring_open,
	.ring_close = fake_ring_close, .ring_write = fake_ring_write,
	.ring_flush = fake_ring_flush, .ring_submit = fake_ring_submit, .ring_pop = fake_ring_pop,
};

static struct pp_method_io io;
static uint8_t block[BLOCK];

static int reset(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.ring_has = 300;
	fake.fs = "NTFS";
	memset(block, 'x', sizeof(block));
	return 0;
}

static int init(const char *name, struct pp_error *err)
{
	memset(err, 0, sizeof(*err));
	return pp_win_method_init(&io, &calls, pp_method_find(name), 7, THE_FILE, err);
}

static void must_init(const char *name)
{
	struct pp_error err;

	if (init(name, &err) != 0)
		fail_msg("%s: %s", name, err.text);
}

/* Which calls a write and its sync are, after the probes of set-up: writes, FlushFileBuffers of the
 * file, _commit, NtFlushBuffersFileEx with which flag, FlushFileBuffers of the volume. */
static void test_each(void **state)
{
	static const struct {
		const char *name;
		unsigned writes, flushes, commits, nt_flag, volume;
	} rows[] = {
		{ "write", 1, 0, 0, 0, 0 },
		{ "direct", 1, 0, 0, 0, 0 },
		{ "open_datasync", 1, 0, 0, 0, 0 },
		{ "open_datasync (direct)", 1, 0, 0, 0, 0 },
		{ "fdatasync", 1, 0, 0, 4, 0 },
		{ "fdatasync (direct)", 1, 0, 0, 4, 0 },
		{ "fsync", 1, 1, 0, 0, 0 },
		{ "fsync (direct)", 1, 1, 0, 0, 0 },
		{ "fsync_writethrough", 1, 0, 1, 0, 0 },
		{ "fsync_writethrough (direct)", 1, 0, 1, 0, 0 },
		{ "volume flush", 1, 0, 0, 0, 1 },
		{ "volume flush (direct)", 1, 0, 0, 0, 1 },
		{ "FlushViewOfFile", 0, 1, 0, 0, 0 },
		{ "IoRing write+flush", 0, 0, 0, 0, 0 },
		{ "IoRing write+flush (direct)", 0, 0, 0, 0, 0 },
		{ "NtFlush DATA_ONLY", 1, 0, 0, 1, 0 },
		{ "NtFlush NO_SYNC", 1, 0, 0, 2, 0 },
	};
	size_t i;

	assert_int_equal(sizeof(rows) / sizeof(rows[0]), pp_method_count_of(PP_SYSTEM_WINDOWS));
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t code = 0;

		reset(state);
		assert_string_equal(pp_method_of(PP_SYSTEM_WINDOWS, i)->name, rows[i].name);
		must_init(rows[i].name);
		assert_int_equal(fake.writes + fake.size, 0); /* asking has written nothing */
		fake.flushes = fake.commits = fake.nt_flushes = fake.volume_flushes = 0;
		fake.nt_flag = 0;
		assert_int_equal(pp_win_method_write(&io, block, BLOCK, 2 * BLOCK, &code), BLOCK);
		assert_int_equal(fake.flushes + fake.commits + fake.nt_flushes + fake.volume_flushes, 0);
		assert_memory_equal(fake.bytes + 2 * BLOCK, block, BLOCK);
		assert_int_equal(pp_win_method_sync(&io, &code), 0);
		assert_int_equal(fake.writes, rows[i].writes);
		assert_int_equal(fake.flushes, rows[i].flushes);
		assert_int_equal(fake.commits, rows[i].commits);
		assert_int_equal(fake.nt_flag, rows[i].nt_flag);
		assert_int_equal(fake.nt_flushes, rows[i].nt_flag != 0);
		assert_int_equal(fake.volume_flushes, rows[i].volume);
		pp_win_method_release(&io);
		assert_int_equal(fake.maps + fake.rings_open + fake.volumes_open, 0);
	}
}

/* Not there, or refused: n/a with the reason, and nothing left behind. */
static void test_not_here(void **state)
{
	static const struct {
		const char *name, *fs;
		bool no_nt, device;
		uint32_t ring, status, flush, volume, map;
		enum pp_error_class class;
		const char *says;
	} rows[] = {
		{ .name = "fdatasync", .no_nt = true, .class = PP_ERR_UNSUPPORTED, .says = "ntdll has no" },
		{ .name = "NtFlush NO_SYNC", .no_nt = true, .class = PP_ERR_UNSUPPORTED,
			.says = "ntdll has no" },
		{ .name = "fdatasync", .fs = "FAT32", .status = 0xC000000D, .class = PP_ERR_UNSUPPORTED,
			.says = "flag 4 on FAT32: NTSTATUS 0xC000000D" },
		{ .name = "fdatasync (direct)", .fs = "ReFS", .status = 0xC00000BB,
			.class = PP_ERR_UNSUPPORTED, .says = "flag 4 on ReFS: NTSTATUS 0xC00000BB" },
		{ .name = "NtFlush DATA_ONLY", .fs = "exFAT", .status = 0xC0000010,
			.class = PP_ERR_UNSUPPORTED, .says = "flag 1 on exFAT" },
		{ .name = "fdatasync", .fs = "", .status = 0xC0000002, .class = PP_ERR_UNSUPPORTED,
			.says = "flag 4 on this target" },
		{ .name = "fdatasync", .device = true, .class = PP_ERR_UNSUPPORTED,
			.says = "this is a device" },
		/* A device that fails is no missing call. */
		{ .name = "fdatasync", .status = 0xC0000185, .class = PP_ERR_SYSTEM,
			.says = "NTSTATUS 0xC0000185" },
		/* Pending is not done. */
		{ .name = "fdatasync", .status = 0x103, .class = PP_ERR_SYSTEM, .says = "0x00000103" },
		{ .name = "fsync", .fs = "SMB", .flush = 50, .class = PP_ERR_UNSUPPORTED, .says = "on SMB" },
		{ .name = "fsync_writethrough", .flush = 1, .class = PP_ERR_UNSUPPORTED,
			.says = "FlushFileBuffers" },
		{ .name = "fsync", .flush = 1117, .class = PP_ERR_SYSTEM, .says = "FlushFileBuffers" },
		{ .name = "volume flush", .volume = 5, .class = PP_ERR_UNSUPPORTED,
			.says = "administrator" },
		{ .name = "volume flush", .volume = 3, .class = PP_ERR_UNSUPPORTED, .says = "volume" },
		{ .name = "volume flush (direct)", .flush = 50, .class = PP_ERR_UNSUPPORTED,
			.says = "volume" },
		{ .name = "FlushViewOfFile", .map = 50, .class = PP_ERR_UNSUPPORTED, .says = "map" },
		{ .name = "IoRing write+flush", .ring = 0, .class = PP_ERR_UNSUPPORTED,
			.says = "no IoRing" },
		{ .name = "IoRing write+flush", .ring = 1, .class = PP_ERR_UNSUPPORTED,
			.says = "version 1" },
		{ .name = "IoRing write+flush (direct)", .ring = 299, .class = PP_ERR_UNSUPPORTED,
			.says = "version 299" },
		{ .name = "io_uring write+fdatasync", .class = PP_ERR_UNSUPPORTED, .says = "only Linux" },
		{ .name = "open_sync", .class = PP_ERR_UNSUPPORTED, .says = "only Linux" },
	};
	struct pp_error err;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		reset(state);
		fake.no_nt_flush = rows[i].no_nt;
		fake.device = rows[i].device;
		fake.fs = rows[i].fs ? rows[i].fs : "NTFS";
		fake.ring_has = rows[i].ring;
		fake.nt_status = rows[i].status;
		fake.flush_code = rows[i].flush;
		fake.volume_code = rows[i].volume;
		fake.map_code = rows[i].map;
		fake.size = BLOCK;
		assert_int_equal(init(rows[i].name, &err), -1);
		if (err.class != rows[i].class || !strstr(err.text, rows[i].says))
			fail_msg("row %zu: class %d, '%s'", i, err.class, err.text);
		if (rows[i].status)
			assert_true(err.os_code == (rows[i].device ? 0 : (int64_t)rows[i].status));
		assert_int_equal(fake.writes, 0);
		assert_int_equal(fake.maps + fake.rings_open + fake.volumes_open, 0);
	}
}

/* Without a file to ask, what needs none is set up; the rest is asked by the first call. */
static void test_no_file(void **state)
{
	struct pp_error err = { 0 };

	(void)state;
	assert_int_equal(pp_win_method_init(&io, &calls, pp_method_find("fdatasync"), -1, NULL, &err),
		0);
	assert_int_equal(fake.nt_flushes, 0);
	assert_int_equal(pp_win_method_init(&io, &calls, pp_method_find("volume flush"), -1, NULL,
		&err), -1);
	assert_int_equal(err.class, PP_ERR_UNSUPPORTED);
}

/* A failed or short call in the run: never success, and the system's own code. */
static void test_failures(void **state)
{
	static const struct {
		const char *name;
		uint32_t write, less, flush, status, store, view, ring_write, ring_flush, submit_less;
		unsigned pops_missing;
		uint64_t foreign;
		int64_t n, code;
		int sync;
	} rows[] = {
		{ .name = "write", .write = 112, .n = -1, .code = 0x80070070 },
		{ .name = "direct", .write = 87, .n = -1, .code = 0x80070057 },
		{ .name = "write", .less = 512, .n = BLOCK - 512 },
		{ .name = "fsync", .flush = 1117, .n = BLOCK, .code = 0x8007045D, .sync = -1 },
		{ .name = "fsync_writethrough", .flush = 23, .n = BLOCK, .code = 0x80070017, .sync = -1 },
		{ .name = "volume flush", .flush = 21, .n = BLOCK, .code = 0x80070015, .sync = -1 },
		{ .name = "fdatasync", .status = 0xC0000185, .n = BLOCK, .code = 0xC0000185, .sync = -1 },
		{ .name = "fdatasync", .status = 0x103, .n = BLOCK, .code = 0x103, .sync = -1 },
		{ .name = "NtFlush NO_SYNC", .status = 0x80000016, .n = BLOCK, .code = 0x80000016,
			.sync = -1 },
		{ .name = "FlushViewOfFile", .store = 299, .n = -1, .code = 0x8007012B },
		{ .name = "FlushViewOfFile", .view = 33, .n = BLOCK, .code = 0x80070021, .sync = -1 },
		{ .name = "FlushViewOfFile", .flush = 1117, .n = BLOCK, .code = 0x8007045D, .sync = -1 },
		{ .name = "IoRing write+flush", .ring_write = 0x80070070, .n = -1, .code = 0x80070070 },
		{ .name = "IoRing write+flush", .ring_flush = 0x8007045D, .n = -1, .code = 0x8007045D },
		{ .name = "IoRing write+flush", .ring_flush = 0x80460001, .n = -1, .code = 0x80460001 },
		{ .name = "IoRing write+flush", .less = 512, .n = BLOCK - 512 },
		{ .name = "IoRing write+flush", .submit_less = 1, .n = -1, .code = 0x80004005 },
		{ .name = "IoRing write+flush", .pops_missing = 1, .n = -1, .code = 0x80004005 },
		{ .name = "IoRing write+flush", .foreign = 9, .n = -1, .code = 0x80004005 },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t code = 0, n;

		reset(state);
		must_init(rows[i].name);
		fake.write_code = rows[i].write;
		fake.written_less = rows[i].less;
		fake.flush_code = rows[i].flush;
		fake.nt_status = rows[i].status;
		fake.store_code = rows[i].store;
		fake.view_code = rows[i].view;
		fake.write_result = rows[i].ring_write;
		fake.flush_result = rows[i].ring_flush;
		fake.submit_less = rows[i].submit_less;
		fake.pops_missing = rows[i].pops_missing;
		fake.foreign_user = rows[i].foreign;
		n = pp_win_method_write(&io, block, BLOCK, 0, &code);
		if (n == BLOCK)
			assert_int_equal(pp_win_method_sync(&io, &code), rows[i].sync);
		if (n != rows[i].n || code != rows[i].code)
			fail_msg("row %zu: %lld bytes, code %llx", i, (long long)n, (long long)code);
		pp_win_method_release(&io);
	}
}

/* The flush drains what came before it, in whichever order the answers are taken. */
static void test_ring_drains(void **state)
{
	int64_t code = 0;

	(void)state;
	must_init("IoRing write+flush");
	fake.flush_first = true;
	assert_int_equal(pp_win_method_write(&io, block, BLOCK, 0, &code), BLOCK);
	assert_int_equal(fake.queued, 2);
	assert_int_equal(fake.ring[0].sqe_flags, 0);
	assert_int_equal(fake.ring[1].sqe_flags, PP_WIN_IOSQE_DRAIN);
	assert_int_equal(fake.ring[1].mode, PP_WIN_FILE_FLUSH_DEFAULT);
	pp_win_method_release(&io);
}

/* M2.2: the view is flushed from the first to the last byte since the last sync, and no less. */
static void test_view_range(void **state)
{
	int64_t code = 0;

	(void)state;
	must_init("FlushViewOfFile");
	assert_int_equal(pp_win_method_write(&io, block, BLOCK, 3 * BLOCK, &code), BLOCK);
	assert_int_equal(fake.size, 4 * BLOCK);
	assert_int_equal(pp_win_method_write(&io, block, BLOCK, 1 * BLOCK, &code), BLOCK);
	assert_int_equal(pp_win_method_write(&io, block, BLOCK, 2 * BLOCK, &code), BLOCK);
	assert_int_equal(pp_win_method_sync(&io, &code), 0);
	assert_int_equal(fake.view_at, BLOCK);
	assert_int_equal(fake.view_bytes, 3 * BLOCK);
	assert_int_equal(pp_win_method_write(&io, block, BLOCK, 5 * BLOCK, &code), BLOCK);
	assert_int_equal(fake.maps, 1);
	assert_int_equal(pp_win_method_sync(&io, &code), 0);
	assert_int_equal(fake.view_at, 5 * BLOCK);
	assert_int_equal(fake.view_bytes, BLOCK);
	pp_win_method_release(&io);
	assert_int_equal(fake.maps, 0);
}

/* A record's own file uses the volume and ring of the folder's set-up and closes neither. */
static void test_like(void **state)
{
	struct pp_method_io one;
	int64_t code = 0;

	(void)state;
	must_init("volume flush");
	fake.volume_flushes = 0;
	pp_win_method_like(&one, &io, 7, THE_FILE);
	assert_int_equal(pp_win_method_write(&one, block, BLOCK, 0, &code), BLOCK);
	assert_int_equal(pp_win_method_sync(&one, &code), 0);
	assert_int_equal(fake.volume_flushes, 1);
	pp_win_method_release(&one);
	assert_int_equal(fake.volumes_open, 1);
	pp_win_method_release(&io);
	assert_int_equal(fake.volumes_open, 0);
}

/* The table: what is a control loses by design; NtFlushBuffersFileEx's other flags promise no more
 * than the driver documentation says of them. */
static void test_promises(void **state)
{
	(void)state;
	assert_int_equal(pp_method_find("NtFlush DATA_ONLY")->promise_file, PP_PROMISE_DEVICE);
	assert_int_equal(pp_method_find("NtFlush NO_SYNC")->promise_file, PP_PROMISE_DEVICE);
	assert_int_equal(pp_method_find("NtFlush NO_SYNC")->promise_raw, PP_PROMISE_NA);
	assert_int_equal(pp_method_find("volume flush")->promise_raw, PP_PROMISE_NA);
	assert_int_equal(pp_method_find("open_datasync")->promise_file, PP_PROMISE_MEDIA);
	assert_false(pp_method_on(pp_method_find("msync"), PP_SYSTEM_WINDOWS));
	assert_false(pp_method_on(pp_method_find("fsync_writethrough"), PP_SYSTEM_LINUX));
	assert_true(pp_method_on(pp_method_find("direct"), PP_SYSTEM_WINDOWS));
	assert_null(pp_method_of(PP_SYSTEM_WINDOWS, pp_method_count_of(PP_SYSTEM_WINDOWS)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_each, reset),
		cmocka_unit_test_setup(test_not_here, reset),
		cmocka_unit_test_setup(test_no_file, reset),
		cmocka_unit_test_setup(test_failures, reset),
		cmocka_unit_test_setup(test_ring_drains, reset),
		cmocka_unit_test_setup(test_view_range, reset),
		cmocka_unit_test_setup(test_like, reset),
		cmocka_unit_test_setup(test_promises, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
