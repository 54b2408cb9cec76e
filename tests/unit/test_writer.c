/* SPDX-License-Identifier: MIT
 *
 * Goal: the lanes as threads on real files write what the layout says, ack it, keep their window,
 * own their descriptors and end as told (M2.3 to M2.6, M3.3).
 * Method: small targets in a folder of our own; this program's fdatasync stands before libc's and
 * can fail or hang in one lane; the files are read back and every cell is compared with what the
 * acks promise. No wall clock is asserted.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/core/clock.h"
#include "tests/janitor.h"
#include "writer/writer.h"

#define LANES 3
#define REC   4096U

/* ---- the fdatasync between the writer and libc ------------------------------------------------ */

static struct {
	_Atomic int calls, fail_call;      /* that call fails, and none after it is expected */
	_Atomic int hang_call;             /* that call waits for release */
	_Atomic int hanging;
	sem_t release;
	_Atomic int fds[64];               /* of the first calls */
} hook;

int fdatasync(int fd)
{
	int n = atomic_fetch_add(&hook.calls, 1) + 1;

	if (n <= 64)
		atomic_store(&hook.fds[n - 1], fd);
	if (n == atomic_load(&hook.fail_call)) {
		errno = EIO;
		return -1;
	}
	if (n == atomic_load(&hook.hang_call)) {
		atomic_store(&hook.hanging, 1);
		sem_wait(&hook.release);
	}
	return (int)syscall(SYS_fdatasync, fd);
}

/* ---- the witness ------------------------------------------------------------------------------ */

struct witness {
	pthread_mutex_t lock;
	struct pp_writer *writer;          /* echo to it at once */
	uint64_t acked[LANES];
	uint64_t most;                     /* echo nothing above; UINT64_MAX: all */
	bool after_end;                    /* an ack came when none may */
	bool ended;
	bool gap;
};

static void witness_ack(void *ctx, uint32_t lane, uint64_t first, uint64_t last)
{
	struct witness *w = ctx;
	struct pp_writer *writer;

	pthread_mutex_lock(&w->lock);
	w->after_end |= w->ended;
	w->gap |= first != w->acked[lane] + 1 || last < first;
	w->acked[lane] = last;
	writer = last <= w->most ? w->writer : NULL;
	pthread_mutex_unlock(&w->lock);
	if (writer && pp_writer_echo(writer, lane, last, NULL) != 0)
		w->gap = true;
}

struct fixture {
	char folder[64], path[128];
	struct witness witness;
	struct pp_writer_config config;
	struct pp_run_id base_id;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->folder, "/tmp/plugpull-test-XXXXXX");
	if (!janitor_mkdtemp(f->folder))
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/t", f->folder);
	pthread_mutex_init(&f->witness.lock, NULL);
	f->witness.most = UINT64_MAX;
	memset(&hook, 0, sizeof(hook));
	sem_init(&hook.release, 0, 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char name[160];
	int i;

	unlink(f->path);
	for (i = 0; i < LANES; i++) {
		snprintf(name, sizeof(name), "%s.append.%d", f->path, i);
		unlink(name);
	}
	rmdir(f->folder);
	free(f);
	return 0;
}

static void build(struct fixture *f, enum pp_workload workload, uint32_t group, const char *method)
{
	struct pp_error err = { 0 };

	f->config.method = pp_method_find(method);
	assert_non_null(f->config.method);
	f->config.path = f->path;
	f->config.peer.ctx = &f->witness;
	f->config.peer.ack = witness_ack;
	assert_int_equal(pp_run_id_draw(&f->config.run_id, NULL), 0);
	assert_int_equal(pp_run_id_draw(&f->base_id, NULL), 0);
	assert_int_equal(pp_layout_init(&f->config.layout, workload, LANES, group, REC, 4096, false, 0,
		(uint64_t)LANES * 260 * REC, NULL), 0);
	if (pp_writer_prewrite(&f->config.layout, f->path, &f->base_id, false, false, NULL, &err) != 0)
		fail_msg("%s", err.text);
}

static struct pp_writer *start(struct fixture *f)
{
	struct pp_error err = { 0 };
	struct pp_writer *writer;

	/* Acks may come before start has returned: they wait for the lock to learn whom to echo to. */
	pthread_mutex_lock(&f->witness.lock);
	writer = f->witness.writer = pp_writer_start(&f->config, &err);
	pthread_mutex_unlock(&f->witness.lock);
	if (!writer)
		fail_msg("%s", err.text);
	return writer;
}

static void stop_and_free(struct fixture *f, struct pp_writer *writer,
	struct pp_writer_result *result)
{
	assert_int_equal(pp_writer_stop(writer, -1, NULL), 0);
	pthread_mutex_lock(&f->witness.lock);
	f->witness.ended = true;
	pthread_mutex_unlock(&f->witness.lock);
	pp_writer_result(writer, result);
	pp_writer_free(writer);
	assert_false(f->witness.after_end);
	assert_false(f->witness.gap);
}

static uint64_t acked_of(struct fixture *f, uint32_t lane)
{
	uint64_t acked;

	pthread_mutex_lock(&f->witness.lock);
	acked = f->witness.acked[lane];
	pthread_mutex_unlock(&f->witness.lock);
	return acked;
}

/* Every slot of every lane: the newest acked record, or a newer one of this lane, or the base. */
static void check_files(const struct fixture *f)
{
	const struct pp_layout *l = &f->config.layout;
	uint8_t buf[REC];
	char name[256];
	uint32_t lane;

	for (lane = 0; lane < LANES; lane++) {
		uint64_t slot, acked = f->witness.acked[lane];
		int fd;

		pp_layout_file_name(l, f->path, pp_layout_file_of(l, lane), name, sizeof(name));
		fd = open(name, O_RDONLY);
		assert_true(fd >= 0);
		for (slot = 0; slot < l->slots; slot++) {
			uint64_t offset = pp_layout_offset(l, lane, slot);
			uint64_t least = pp_layout_newest(l, lane, slot, acked);
			struct pp_record record;
			ssize_t n = pread(fd, buf, REC, (off_t)offset);

			if (l->workload == PP_APPEND && least == 0 && slot >= l->base_slots[lane])
				continue; /* may or may not have been written */
			assert_int_equal(n, REC);
			assert_true(pp_record_check(buf, REC / PP_CELL_BYTES, offset, &record));
			assert_int_equal(record.lane, lane);
			assert_true(record.seq >= least);
			assert_true(record.seq <= acked + pp_layout_window(l));
			assert_true(pp_run_id_equal(&record.run,
				record.seq ? &f->config.run_id : &f->base_id));
			/* M3.1: what was known to be durable at issue is below it. */
			assert_true(record.seq == 0 || record.durable < record.seq);
		}
		close(fd);
	}
}

/* ---- tests ------------------------------------------------------------------------------------ */

static void test_base(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	build(f, PP_OVERWRITE, 1, "fdatasync");
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_size, pp_writer_target_bytes(&f->config.layout));
	assert_true((uint64_t)st.st_blocks * 512 >= pp_writer_target_bytes(&f->config.layout));
	check_files(f);
	/* A longer file of an earlier layout is made exactly as long. */
	assert_int_equal(truncate(f->path, st.st_size + 1000000), 0);
	build(f, PP_OVERWRITE, 1, "fdatasync");
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_size, pp_writer_target_bytes(&f->config.layout));
	check_files(f);
}

static void test_too_small_for_base(void **state)
{
	struct fixture *f = *state;
	struct pp_layout huge;
	struct pp_error err = { 0 };

	assert_int_equal(pp_layout_init(&huge, PP_OVERWRITE, 1, 1, REC, 4096, false, 0, 1ULL << 60, &err),
		0);
	assert_int_equal(pp_writer_prewrite(&huge, f->path, &f->base_id, false, false, NULL, &err), -1);
	assert_int_equal(err.class, PP_ERR_USAGE);
	assert_non_null(strstr(err.text, "MB free"));
	assert_int_equal(access(f->path, F_OK), -1); /* nothing touched */
}

static void run_some(struct fixture *f, enum pp_workload workload, uint32_t group,
	const char *method)
{
	static struct pp_writer_result result;
	struct pp_writer *writer;
	uint32_t lane;

	memset(&f->witness.acked, 0, sizeof(f->witness.acked));
	f->witness.ended = false;
	build(f, workload, group, method);
	writer = start(f);
	for (lane = 0; lane < LANES; lane++)
		while (acked_of(f, lane) < 100 && !pp_writer_ended(writer))
			pp_clock_sleep_ms(1);
	stop_and_free(f, writer, &result);
	assert_false(result.failed);
	assert_true(result.records_acked >= LANES * 100);
	assert_true(result.records_issued >= result.records_acked);
	assert_true(result.latency.count > 0);
	check_files(f);
}

static void test_methods(void **state)
{
	struct fixture *f = *state;

	run_some(f, PP_OVERWRITE, 1, "fdatasync");
	run_some(f, PP_OVERWRITE, 5, "fsync");
	run_some(f, PP_OVERWRITE, 1, "open_datasync");
	run_some(f, PP_OVERWRITE, 4, "write");
	run_some(f, PP_APPEND, 3, "fdatasync");
}

static void test_append_ends_full(void **state)
{
	struct fixture *f = *state;
	static struct pp_writer_result result;
	struct pp_writer *writer;
	uint32_t lane;

	build(f, PP_APPEND, 7, "write");
	writer = start(f);
	while (!pp_writer_ended(writer))
		pp_clock_sleep_ms(1);
	assert_int_equal(pp_writer_state(writer), PP_RUN_RUNNING);
	stop_and_free(f, writer, &result);
	assert_int_equal(result.lanes_full, LANES);
	for (lane = 0; lane < LANES; lane++)
		assert_int_equal(f->witness.acked[lane], pp_layout_seq_max(&f->config.layout));
	check_files(f);
	/* The files are no longer as the base says: a second run would overwrite, not append. */
	{
		struct pp_error err = { 0 };

		assert_null(pp_writer_start(&f->config, &err));
		assert_int_equal(err.class, PP_ERR_EVIDENCE);
	}
}

/* M2.4, with threads: without echoes the lanes sleep W records on, and an echo wakes them. */
static void test_window(void **state)
{
	struct fixture *f = *state;
	static struct pp_writer_result result;
	struct pp_writer_progress progress;
	struct pp_writer *writer;
	struct pp_error err = { 0 };
	uint32_t lane, window;

	build(f, PP_OVERWRITE, 1, "write");
	window = pp_layout_window(&f->config.layout);
	f->witness.most = 0;
	writer = start(f);
	for (lane = 0; lane < LANES; lane++)
		while (acked_of(f, lane) < window)
			pp_clock_sleep_ms(1);
	pp_clock_sleep_ms(20); /* a chance to run too far */
	for (lane = 0; lane < LANES; lane++) {
		pp_writer_progress(writer, lane, &progress);
		assert_int_equal(progress.issued, window);
	}
	assert_int_equal(pp_writer_echo(writer, 0, window + 1, &err), -1);
	assert_int_equal(err.class, PP_ERR_PEER);
	assert_int_equal(pp_writer_echo(writer, LANES, 1, &err), -1);
	assert_int_equal(pp_writer_echo(writer, 0, 10, NULL), 0);
	while (acked_of(f, 0) < window + 10)
		pp_clock_sleep_ms(1);
	pp_clock_sleep_ms(20);
	pp_writer_progress(writer, 0, &progress);
	assert_int_equal(progress.issued, window + 10);
	/* Sleeping lanes hear the end. */
	stop_and_free(f, writer, &result);
	check_files(f);
}

/* M2.3: one failed sync ends every lane, is told whole, and its record stays unacked. */
static void test_failed_sync(void **state)
{
	struct fixture *f = *state;
	static struct pp_writer_result result;
	struct pp_writer *writer;
	uint64_t total = 0;
	uint32_t lane;
	int calls;

	build(f, PP_OVERWRITE, 2, "fdatasync");
	atomic_store(&hook.calls, 0);
	atomic_store(&hook.fail_call, 20);
	writer = start(f);
	while (!pp_writer_ended(writer))
		pp_clock_sleep_ms(1);
	assert_int_equal(pp_writer_state(writer), PP_RUN_FAILED);
	calls = atomic_load(&hook.calls);
	stop_and_free(f, writer, &result);
	assert_int_equal(atomic_load(&hook.calls), calls);
	assert_true(result.failed && result.failure.first);
	assert_string_equal(result.failure.call, "fdatasync");
	assert_int_equal(result.failure.os_code, EIO);
	assert_true(result.failure.seq > f->witness.acked[result.failed_lane]);
	assert_non_null(strstr(result.error.text, f->path));
	assert_non_null(strstr(result.error.text, "fdatasync failed at record"));
	for (lane = 0; lane < LANES; lane++)
		total += f->witness.acked[lane];
	/* 19 syncs succeeded before; siblings in a call at that moment finish it, but never ack after. */
	assert_true(total <= 2 * (19 + (LANES - 1)));
	assert_int_equal(result.records_acked, total);
}

static bool same_description(int a, int b)
{
	/* lseek(2) moves the offset of the open file description, whichever descriptor is used. */
	assert_int_equal(lseek(a, 4242, SEEK_SET), 4242);
	assert_true(lseek(b, 1111, SEEK_SET) == 1111);
	return lseek(a, 0, SEEK_CUR) != 4242;
}

/* M2.3: each lane has an open file description of its own. */
static void test_own_descriptions(void **state)
{
	struct fixture *f = *state;
	static struct pp_writer_result result;
	struct pp_writer *writer;
	int fds[LANES], found = 0, i, k;

	build(f, PP_OVERWRITE, 1, "fdatasync");
	atomic_store(&hook.calls, 0);
	writer = start(f);
	while (atomic_load(&hook.calls) < 64)
		pp_clock_sleep_ms(1);
	pp_clock_sleep_ms(1);
	for (i = 0; i < 64; i++) {
		int fd = atomic_load(&hook.fds[i]);

		for (k = 0; k < found && fds[k] != fd; k++)
			;
		if (k == found && found < LANES)
			fds[found++] = fd;
	}
	for (i = 0; i < found; i++)
		for (k = 0; k < i; k++)
			assert_false(same_description(fds[i], fds[k]));
	assert_true(found >= 2);
	stop_and_free(f, writer, &result);
}

/* A call that hangs does not hang us: the thread is left, the others are joined. */
static void test_hang(void **state)
{
	struct fixture *f = *state;
	static struct pp_writer_result result;
	struct pp_writer *writer;
	struct pp_error err = { 0 };

	build(f, PP_OVERWRITE, 1, "fdatasync");
	atomic_store(&hook.calls, 0);
	atomic_store(&hook.hang_call, 30);
	writer = start(f);
	while (!atomic_load(&hook.hanging))
		pp_clock_sleep_ms(1);
	assert_int_equal(pp_writer_stop(writer, 50, &err), -1);
	assert_non_null(strstr(err.text, "left behind lane"));
	pp_writer_result(writer, &result);
	assert_int_equal(result.lanes_left_behind, 1);
	pthread_mutex_lock(&f->witness.lock);
	f->witness.ended = true;
	pthread_mutex_unlock(&f->witness.lock);
	/* When it does return after all, nothing is acked, and it can be joined. */
	sem_post(&hook.release);
	stop_and_free(f, writer, &result);
	assert_int_equal(result.lanes_left_behind, 0);
}

static void test_refusals(void **state)
{
	struct fixture *f = *state;
	struct pp_error err = { 0 };

	build(f, PP_OVERWRITE, 1, "fdatasync");
	f->config.path = f->folder;
	assert_null(pp_writer_start(&f->config, &err));
	f->config.path = "/dev/null";
	assert_null(pp_writer_start(&f->config, &err));
	assert_non_null(strstr(err.text, "neither a file nor a block device"));
	f->config.path = f->path;
	assert_int_equal(truncate(f->path, (off_t)pp_writer_target_bytes(&f->config.layout) - 1), 0);
	assert_null(pp_writer_start(&f->config, &err));
	assert_int_equal(err.class, PP_ERR_EVIDENCE);
	assert_int_equal(unlink(f->path), 0);
	assert_null(pp_writer_start(&f->config, &err));
	assert_int_equal(err.os_code, ENOENT);
	assert_int_equal(access(f->path, F_OK), -1);
	assert_int_equal(pp_writer_prewrite(&f->config.layout, "/dev/null", &f->base_id, false, false,
		NULL, &err), -1);
	pp_writer_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_base, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_small_for_base, setup, teardown),
		cmocka_unit_test_setup_teardown(test_methods, setup, teardown),
		cmocka_unit_test_setup_teardown(test_append_ends_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_window, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failed_sync, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_descriptions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hang, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
