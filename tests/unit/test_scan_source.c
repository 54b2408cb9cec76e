/* SPDX-License-Identifier: MIT
 *
 * Goal: real reads for the scan: right bytes whatever was read ahead, errors passed up as they are,
 * a read that hangs left behind within its time (M4.1), nothing served twice from memory (M4.7).
 * Method: a file in a temporary folder under a pread that the test can make fail, hang, stutter or
 * refuse O_DIRECT; and the scan of a real file against the scan of the same bytes in memory.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "oracle_world.h"
#include "tests/janitor.h"
#include "verifier/scan_source.h"

#define FILE_BYTES (8U << 20)
#define CHUNK (1U << 20)
#define HANG_MS 700 /* long enough for every read that does not hang, on a busy machine too */

struct fake {
	char dir[40], path[96];
	uint8_t *bytes;
	struct pp_layout layout;
	struct pp_scan_source source;
	struct pp_error err;
	/* what pread does; the lock is for the hang */
	pthread_mutex_t lock;
	pthread_cond_t released;
	uint64_t bad_from, bad_to;   /* EIO */
	uint64_t hang_from, hang_to; /* no answer until `release` */
	bool release, refuse_direct_open, refuse_direct_read;
	size_t most;                 /* bytes a pread gives at the most; 0 all */
	unsigned opens, preads, hung, direct_fds;
	uint64_t read_bytes;
};

static int fake_open(void *ctx, uint32_t file, int flags)
{
	struct fake *f = ctx;
	int fd;

	assert_int_equal(file, 0);
	if (flags & O_DIRECT && f->refuse_direct_open) {
		errno = EINVAL;
		return -1;
	}
	__atomic_add_fetch(&f->opens, 1, __ATOMIC_RELAXED);
	/* The test's file may be anywhere, also where O_DIRECT does not work: it is not what is tested. */
	fd = open(f->path, flags & ~O_DIRECT);
	if (flags & O_DIRECT && fd >= 0 && fd < 32)
		__atomic_or_fetch(&f->direct_fds, 1U << fd, __ATOMIC_RELAXED);
	else if (fd >= 0 && fd < 32)
		__atomic_and_fetch(&f->direct_fds, ~(1U << fd), __ATOMIC_RELAXED);
	return fd;
}

static bool overlaps(uint64_t from, uint64_t to, uint64_t at, size_t bytes)
{
	return from < to && at < to && from < at + bytes;
}

static ssize_t fake_pread(void *ctx, int fd, void *buf, size_t bytes, off_t offset)
{
	struct fake *f = ctx;
	uint64_t at = (uint64_t)offset;

	pthread_mutex_lock(&f->lock);
	f->preads++;
	f->read_bytes += bytes;
	if (overlaps(f->hang_from, f->hang_to, at, bytes)) {
		f->hung++;
		while (!f->release)
			pthread_cond_wait(&f->released, &f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	if (f->refuse_direct_read && f->direct_fds & 1U << fd) {
		errno = EINVAL;
		return -1;
	}
	if (overlaps(f->bad_from, f->bad_to, at, bytes)) {
		errno = EIO;
		return -1;
	}
	return pread(fd, buf, f->most && bytes > f->most ? f->most : bytes, offset);
}

static void open_source(struct fake *f, int64_t timeout_ms, uint32_t align_bytes)
{
	struct pp_scan_io io = { f, fake_open, fake_pread };
	struct pp_scan_source_options options = { timeout_ms, align_bytes, &io };
	const char *paths[] = { f->path };
	uint64_t size = 0;
	int32_t code = 0;

	assert_int_equal(pp_scan_source_open(&f->layout, paths, 1, &options, &f->source, &f->err), 0);
	assert_int_equal(f->source.size(f->source.ctx, 0, &size, &code), 0);
	assert_int_equal(size, FILE_BYTES);
}

static int set_up(void **state)
{
	/* Not on the heap: a thread that was left behind may still look at it for a moment. */
	static struct fake fakes[32];
	static size_t used;
	struct fake *f = &fakes[used++];
	size_t i;
	int fd;

	*state = f;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->released, NULL);
	strcpy(f->dir, "/tmp/pp-test-source-XXXXXX");
	if (!janitor_mkdtemp(f->dir))
		return -1;
	strcpy(f->path, f->dir);
	strcat(f->path, "/target");
	f->bytes = malloc(FILE_BYTES);
	for (i = 0; i < FILE_BYTES; i += 8) {
		uint64_t word = i * 0x9e3779b97f4a7c15ULL;

		memcpy(f->bytes + i, &word, 8);
	}
	fd = open(f->path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || write(fd, f->bytes, FILE_BYTES) != FILE_BYTES || close(fd) != 0)
		return -1;
	return pp_layout_init(&f->layout, PP_OVERWRITE, 1, 1, 4096, 4096, false, 0, FILE_BYTES, &f->err);
}

static void let_go(struct fake *f)
{
	pthread_mutex_lock(&f->lock);
	f->release = true;
	pthread_cond_broadcast(&f->released);
	pthread_mutex_unlock(&f->lock);
}

static int tear_down(void **state)
{
	struct fake *f = *state;

	let_go(f);
	pp_scan_source_close(&f->source);
	unlink(f->path);
	rmdir(f->dir);
	free(f->bytes);
	return 0;
}

static int read_at(struct fake *f, uint64_t offset, size_t bytes)
{
	static uint8_t buf[CHUNK];
	int32_t code = 0;

	memset(buf, 0, bytes);
	if (f->source.read(f->source.ctx, 0, offset, buf, bytes, &code) != 0)
		return code;
	assert_memory_equal(buf, f->bytes + offset, bytes);
	return 0;
}

static void reads_ahead(void **state)
{
	struct fake *f = *state;
	uint64_t at;

	open_source(f, 0, 4096);
	for (at = 0; at < FILE_BYTES; at += CHUNK)
		assert_int_equal(read_at(f, at, CHUNK), 0);
	assert_int_equal(f->preads, FILE_BYTES / CHUNK); /* each once: what was read ahead was used */
	assert_int_equal(f->opens, 2); /* size, reader */
	assert_false(pp_scan_source_buffered(&f->source));
}

/* Any order of any reads gives the file's bytes, whatever is being read ahead. */
static void reads_right_in_any_order(void **state)
{
	struct fake *f = *state;
	uint64_t x = 88172645463325252ULL;
	uint32_t aligns[] = { 512, 4096 };
	int i, k;

	for (k = 0; k < 2; k++) {
		open_source(f, 0, aligns[k]);
		for (i = 0; i < 600; i++) {
			uint64_t at, bytes;

			x ^= x << 13; x ^= x >> 7; x ^= x << 17;
			bytes = i % 3 ? CHUNK : (1 + x % 256) * 512;
			at = i % 4 == 3 ? (x >> 20) % (FILE_BYTES / 512) * 512 : (uint64_t)i % 8 * CHUNK;
			if (bytes > FILE_BYTES - at)
				bytes = FILE_BYTES - at;
			assert_int_equal(read_at(f, at, bytes), 0);
		}
		pp_scan_source_close(&f->source);
	}
}

/* The drive changes its mind. */
static void change_byte(struct fake *f, off_t at)
{
	int fd = open(f->path, O_WRONLY);

	f->bytes[at] ^= 1;
	assert_int_equal(pwrite(fd, f->bytes + at, 1, at), 1);
	close(fd);
}

/* M4.7: a re-read comes from the drive, not from what the first scan had read ahead or read. */
static void serves_nothing_twice(void **state)
{
	struct fake *f = *state;
	uint64_t size;
	int32_t code;
	unsigned before;

	open_source(f, 0, 512);
	assert_int_equal(read_at(f, 0, CHUNK), 0);
	change_byte(f, 5);
	assert_int_equal(read_at(f, 0, CHUNK), 0);
	usleep(20000); /* the read-ahead of the second chunk is there by now, or comes later: both fine */
	assert_int_equal(f->source.size(f->source.ctx, 0, &size, &code), 0);
	pthread_mutex_lock(&f->lock);
	before = f->preads;
	pthread_mutex_unlock(&f->lock);
	change_byte(f, CHUNK + 5);
	assert_int_equal(read_at(f, CHUNK, CHUNK), 0);
	pthread_mutex_lock(&f->lock);
	assert_true(f->preads > before);
	pthread_mutex_unlock(&f->lock);
}

static void passes_errors_up(void **state)
{
	struct fake *f = *state;

	open_source(f, 0, 512);
	f->bad_from = 3 * CHUNK + 5 * 512;
	f->bad_to = f->bad_from + 512;
	assert_int_equal(read_at(f, 2 * CHUNK, CHUNK), 0); /* reads ahead into it */
	assert_int_equal(read_at(f, 3 * CHUNK, CHUNK), EIO);
	assert_int_equal(read_at(f, 3 * CHUNK, 4096), EIO);
	assert_int_equal(read_at(f, 3 * CHUNK + 4 * 512, 512), 0);
	assert_int_equal(read_at(f, 3 * CHUNK + 5 * 512, 512), EIO);
	assert_int_equal(read_at(f, 3 * CHUNK + 6 * 512, 512), 0);
	/* a read-ahead that failed says nothing about a part of it */
	assert_int_equal(read_at(f, 2 * CHUNK, CHUNK), 0);
	assert_int_equal(read_at(f, 3 * CHUNK, 4 * 512), 0);
	/* and the drive that reads again is believed */
	f->bad_to = 0;
	assert_int_equal(read_at(f, 3 * CHUNK, CHUNK), 0);
	assert_int_equal(pp_scan_source_stuck(&f->source), 0);
}

/* Until a read-ahead is really under way, and stuck. */
static void await_hang(struct fake *f)
{
	unsigned hung = 0, ms = 0;

	while (!hung) {
		if (++ms > 10000)
			fail_msg("nothing is read ahead");
		usleep(1000);
		pthread_mutex_lock(&f->lock);
		hung = f->hung;
		pthread_mutex_unlock(&f->lock);
	}
}

static void leaves_a_hung_read_behind(void **state)
{
	struct fake *f = *state;

	open_source(f, HANG_MS, 4096);
	f->hang_from = 2 * CHUNK + 8192;
	f->hang_to = f->hang_from + 4096;
	assert_int_equal(read_at(f, 0, CHUNK), 0);
	assert_int_equal(read_at(f, CHUNK, CHUNK), 0);
	assert_int_equal(read_at(f, 2 * CHUNK, CHUNK), ETIMEDOUT); /* hung while read ahead */
	assert_int_equal(pp_scan_source_stuck(&f->source), 1);
	assert_int_equal(read_at(f, 2 * CHUNK, 8192), 0);
	assert_int_equal(read_at(f, 2 * CHUNK + 8192, 4096), ETIMEDOUT);
	assert_int_equal(read_at(f, 2 * CHUNK + 12288, 4096), 0);
	assert_int_equal(pp_scan_source_stuck(&f->source), 2);
	assert_int_equal(read_at(f, 3 * CHUNK, CHUNK), 0);
	assert_int_equal(f->hung, 2);
}

/* A read-ahead that hangs is no fault of the read that was asked for instead. */
static void hung_read_ahead_accuses_nobody(void **state)
{
	struct fake *f = *state;

	open_source(f, HANG_MS, 4096);
	f->hang_from = CHUNK;
	f->hang_to = CHUNK + 4096;
	assert_int_equal(read_at(f, 0, CHUNK), 0);
	await_hang(f);
	assert_int_equal(read_at(f, 5 * CHUNK, CHUNK), 0);
	assert_int_equal(pp_scan_source_stuck(&f->source), 1);
}

/* Closing waits no longer than the timeout, and what comes back later frees itself. */
static void closes_with_a_read_in_progress(void **state)
{
	struct fake *f = *state;

	open_source(f, 50, 4096);
	f->hang_from = CHUNK;
	f->hang_to = CHUNK + 4096;
	assert_int_equal(read_at(f, 0, CHUNK), 0);
	await_hang(f);
	pp_scan_source_close(&f->source);
	assert_null(f->source.ctx);
}

static void does_without_o_direct(void **state)
{
	struct fake *f = *state;
	int i;

	for (i = 0; i < 2; i++) {
		f->refuse_direct_open = i == 0;
		f->refuse_direct_read = i == 1;
		open_source(f, 0, 4096);
		assert_int_equal(read_at(f, 0, CHUNK), 0);
		assert_int_equal(read_at(f, CHUNK, CHUNK), 0);
		assert_true(pp_scan_source_buffered(&f->source));
		pp_scan_source_close(&f->source);
	}
}

static void puts_short_reads_together(void **state)
{
	struct fake *f = *state;
	int32_t code = 0;
	uint8_t buf[8192];
	uint64_t size;

	open_source(f, 0, 4096);
	f->most = 100000;
	assert_int_equal(read_at(f, 0, CHUNK), 0);
	assert_int_equal(truncate(f->path, CHUNK + 4096), 0);
	assert_int_equal(f->source.size(f->source.ctx, 0, &size, &code), 0); /* no read-ahead counts */
	assert_int_equal(f->source.read(f->source.ctx, 0, CHUNK, buf, 8192, &code), -1);
	assert_int_equal(code, EIO);
	assert_int_equal(read_at(f, CHUNK, 4096), 0);
}

static void missing_file_is_gone(void **state)
{
	struct fake *f = *state;
	const char *paths[] = { f->path, f->path };
	uint64_t size;
	int32_t code = 0;

	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(pp_scan_source_open(&f->layout, paths, 2, NULL, &f->source, &f->err), -1);
	assert_int_equal(f->err.class, PP_ERR_USAGE);
	assert_int_equal(pp_scan_source_open(&f->layout, paths, 1, NULL, &f->source, &f->err), 0);
	assert_int_equal(f->source.size(f->source.ctx, 0, &size, &code), -1);
	assert_int_equal(code, ENOENT);
	assert_int_equal(f->source.read(f->source.ctx, 0, 0, &size, 512, &code), -1);
	assert_int_equal(code, ENOENT);
}

/* The whole way: a real file, by path, O_DIRECT where the file system has it. The file ends inside a
 * block; both scans must be the same byte for byte. */
static void scans_a_real_file(void **state)
{
	struct fake *f = *state;
	const char *paths[] = { f->path };
	struct world w;
	struct world_bytes a = { 0 }, b = { 0 };
	int fd;

	world_init_sized(&w, PP_APPEND, 1, 1, 2048, 512, false, 2000);
	world_lay(&w, 1000);
	w.file[0].size -= 700;
	memset(world_slot(&w, 0, 500), 0x5a, 700);
	fd = open(f->path, O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, w.file[0].bytes, w.file[0].size), (ssize_t)w.file[0].size);
	assert_int_equal(fsync(fd), 0);
	close(fd);
	assert_int_equal(pp_scan_source_open(&w.layout, paths, 1, NULL, &f->source, &f->err), 0);
	assert_int_equal(pp_scan_make(&w.layout, &f->source, NULL, 0, world_sink, &a, &f->err), 0);
	assert_int_equal(pp_scan_make(&w.layout, &w.source, NULL, 0, world_sink, &b, &f->err), 0);
	assert_int_equal(a.bytes, b.bytes);
	assert_memory_equal(a.data, b.data, a.bytes);
	free(a.data);
	free(b.data);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reads_ahead, set_up, tear_down),
		cmocka_unit_test_setup_teardown(reads_right_in_any_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(serves_nothing_twice, set_up, tear_down),
		cmocka_unit_test_setup_teardown(passes_errors_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(leaves_a_hung_read_behind, set_up, tear_down),
		cmocka_unit_test_setup_teardown(hung_read_ahead_accuses_nobody, set_up, tear_down),
		cmocka_unit_test_setup_teardown(closes_with_a_read_in_progress, set_up, tear_down),
		cmocka_unit_test_setup_teardown(does_without_o_direct, set_up, tear_down),
		cmocka_unit_test_setup_teardown(puts_short_reads_together, set_up, tear_down),
		cmocka_unit_test_setup_teardown(missing_file_is_gone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(scans_a_real_file, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
