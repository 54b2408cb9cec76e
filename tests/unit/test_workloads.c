/* SPDX-License-Identifier: MIT
 *
 * Goal: every workload, from set-up to judgement, through the real writer, scan and oracle: what was
 * acked is found, run after run (no false loss), and what is hurt afterwards is found lost, by its
 * class (M2.2, M2.5, M2.6, M4.3 to M4.5).
 * Method: small targets in folders of our own: in the folder for temporary files and, as root, on
 * ext4 and xfs on loop devices, where direct I/O is what it is. A run ends without a cut, so that
 * everything that was written stands there; injuries are made by hand.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/core/clock.h"
#include "verifier/oracle.h"
#include "verifier/scan_source.h"
#include "writer/writer.h"

#define KB 1024U
#define MB (1024U * KB)

struct row {
	enum pp_workload workload;
	const char *method;
	uint32_t lanes, group, record_bytes, unit_bytes;
	bool sub_block, random, compressible;
};

static const struct row rows[] = {
	{ PP_OVERWRITE, "fdatasync", 2, 1, 4 * KB, 4 * KB, false, true, false },
	{ PP_OVERWRITE, "fdatasync", 3, 5, 8 * KB, 4 * KB, false, true, true },
	{ PP_OVERWRITE, "fsync", 1, 64, 512, 4 * KB, true, false, false },
	{ PP_OVERWRITE, "open_datasync", 2, 1, 512, 4 * KB, true, true, false },
	{ PP_OVERWRITE, "fdatasync", 1, 1, 1 * MB, 4 * KB, false, true, false },
	{ PP_OVERWRITE, "write", 64, 2, 512, 4 * KB, true, true, false },
	{ PP_APPEND, "fdatasync", 2, 3, 512, 4 * KB, true, false, true },
	{ PP_FALLOCATED, "fdatasync", 2, 1, 4 * KB, 4 * KB, false, false, false },
	{ PP_FALLOCATED, "open_sync", 3, 1, 64 * KB, 4 * KB, false, false, true },
	{ PP_FALLOCATED, "fsync", 1, 8, 1536, 4 * KB, true, false, false },
	{ PP_CREATE, "fdatasync", 2, 1, 4 * KB, 4 * KB, false, false, false },
	{ PP_CREATE, "fsync", 3, 4, 512, 4 * KB, true, false, true },
	{ PP_CREATE, "open_datasync", 1, 2, 8 * KB, 4 * KB, false, false, false },
	{ PP_CREATE, "write", 2, 1, 4 * KB, 4 * KB, false, false, false },
	{ PP_CREATE, "write", 64, 64, 512, 4 * KB, true, false, false },
	{ PP_CREATE, "fdatasync", 1, 1, 1 * MB, 4 * KB, false, false, false },
	{ PP_CREATE_NODIR, "fsync", 2, 3, 4 * KB, 4 * KB, false, false, false },
	{ PP_RENAME, "fdatasync", 2, 1, 4 * KB, 4 * KB, false, false, false },
	{ PP_RENAME, "fsync", 1, 64, 1536, 4 * KB, true, false, true },
	{ PP_RENAME, "open_sync", 2, 1, 512, 4 * KB, true, false, false },
	{ PP_RENAME, "write", 3, 2, 8 * KB, 4 * KB, false, false, false },
};

static const struct row direct_rows[] = {
	{ PP_OVERWRITE, "direct", 2, 1, 4 * KB, 4 * KB, false, true, false },
	{ PP_OVERWRITE, "open_datasync (direct)", 2, 1, 512, 4 * KB, true, true, false },
	{ PP_FALLOCATED, "open_datasync (direct)", 2, 1, 4 * KB, 4 * KB, false, false, false },
	{ PP_FALLOCATED, "fdatasync (direct)", 1, 4, 512, 4 * KB, true, false, false },
	{ PP_CREATE, "fdatasync (direct)", 2, 4, 4 * KB, 4 * KB, false, false, false },
	{ PP_CREATE, "open_datasync (direct)", 1, 1, 512, 4 * KB, true, false, false },
	{ PP_CREATE, "direct", 1, 1, 8 * KB, 4 * KB, false, false, false },
	{ PP_RENAME, "fsync (direct)", 2, 2, 4 * KB, 4 * KB, false, false, false },
	{ PP_RENAME, "open_sync (direct)", 1, 1, 64 * KB, 4 * KB, false, false, false },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- a target, its runs and scans ------------------------------------------------------------- */

struct bench {
	char folder[128], path[160];
	struct pp_writer_config config;
	struct pp_writer *writer;
	pthread_mutex_t lock;
	uint64_t acked[PP_LANES_MAX];
	struct pp_scan *base, *scan;
	struct pp_oracle_result result;
};

static struct bench b;
static char mounted[128], image[160];

static void ack(void *ctx, uint32_t lane, uint64_t first, uint64_t last)
{
	struct pp_writer *writer;

	(void)ctx;
	pthread_mutex_lock(&b.lock);
	assert_int_equal(first, b.acked[lane] + 1);
	b.acked[lane] = last;
	writer = b.writer;
	pthread_mutex_unlock(&b.lock);
	assert_int_equal(pp_writer_echo(writer, lane, last, NULL), 0);
}

struct bytes { uint8_t *data; size_t bytes, room; };

static int sink(void *ctx, const void *data, size_t bytes, struct pp_error *err)
{
	struct bytes *to = ctx;

	(void)err;
	if (to->bytes + bytes > to->room) {
		to->room = 2 * (to->bytes + bytes);
		to->data = realloc(to->data, to->room);
		assert_non_null(to->data);
	}
	memcpy(to->data + to->bytes, data, bytes);
	to->bytes += bytes;
	return 0;
}

static struct pp_scan *take_scan(const struct pp_scan_range *ranges, size_t count)
{
	static char name[PP_LANES_MAX][256];
	const struct pp_layout *l = &b.config.layout;
	const char *names[PP_LANES_MAX];
	struct pp_scan_source source;
	struct bytes bytes = { 0 };
	struct pp_error err = { 0 };
	struct pp_scan *scan = NULL;
	uint32_t i;

	for (i = 0; i < pp_layout_files(l); i++) {
		pp_layout_file_name(l, b.path, i, name[i], sizeof(name[i]));
		names[i] = name[i];
	}
	if (pp_scan_source_open(l, names, pp_layout_files(l), NULL, &source, &err) == 0 &&
		pp_scan_make(l, &source, ranges, count, sink, &bytes, &err) == 0)
		scan = pp_scan_parse(bytes.data, bytes.bytes, &err);
	if (!scan)
		fail_msg("scan: %s", err.text);
	pp_scan_source_close(&source);
	return scan;
}

static void set_up(const struct row *row)
{
	struct pp_layout *l = &b.config.layout;
	struct pp_run_id base_id;
	struct pp_error err = { 0 };
	uint64_t window = 2 * row->group > 64 ? 2 * row->group : 64, room = row->record_bytes;

	room = room > row->unit_bytes || !pp_workload_record_files(row->workload) ? room : row->unit_bytes;
	room = (5 * window + 64) * room * row->lanes;
	snprintf(b.path, sizeof(b.path), "%s/t", b.folder);
	memset(&b.config, 0, sizeof(b.config));
	b.config.method = pp_method_find(row->method);
	assert_non_null(b.config.method);
	b.config.path = b.path;
	b.config.compressible = row->compressible;
	b.config.peer.ack = ack;
	if (pp_layout_init(l, row->workload, row->lanes, row->group, row->record_bytes,
		row->unit_bytes, row->sub_block, 0, room, &err) != 0)
		fail_msg("%s", err.text);
	l->shuffle = row->random ? 0x1234567890abcdefULL : 0;
	assert_int_equal(pp_run_id_draw(&base_id, NULL), 0);
	if (pp_writer_prewrite(l, b.path, &base_id, row->compressible, false, NULL, &err) != 0)
		fail_msg("%s", err.text);
	b.base = take_scan(NULL, 0);
	assert_true(pp_scan_base_whole(b.base, l));
}

/* Writes until each lane has `most` acks, or no room. */
static void run(uint64_t most)
{
	static struct pp_writer_result result;
	struct pp_error err = { 0 };
	uint64_t acked = 0;
	uint32_t lane;

	memset(b.acked, 0, sizeof(b.acked));
	assert_int_equal(pp_run_id_draw(&b.config.run_id, NULL), 0);
	pthread_mutex_lock(&b.lock);
	b.writer = pp_writer_start(&b.config, &err);
	pthread_mutex_unlock(&b.lock);
	if (!b.writer)
		fail_msg("%s", err.text);
	for (lane = 0; lane < b.config.layout.lanes; lane++)
		for (acked = 0; acked < most && !pp_writer_ended(b.writer); pp_clock_sleep_ms(1)) {
			pthread_mutex_lock(&b.lock);
			acked = b.acked[lane];
			pthread_mutex_unlock(&b.lock);
		}
	assert_int_equal(pp_writer_stop(b.writer, -1, NULL), 0);
	pp_writer_result(b.writer, &result);
	if (result.failed)
		fail_msg("%s", result.error.text);
	pp_writer_free(b.writer);
	assert_true(result.records_acked > 0);
}

static void judge(void)
{
	struct pp_oracle_input in = { .layout = &b.config.layout, .run = b.config.run_id,
		.base = b.base, .kind = PP_TARGET_FILE };
	struct pp_error err = { 0 };

	pp_scan_free(b.scan);
	pp_oracle_release(&b.result);
	in.scan = b.scan = take_scan(NULL, 0);
	memcpy(in.acked, b.acked, sizeof(in.acked));
	if (pp_oracle_judge(&in, &b.result, &err) != 0)
		fail_msg("%s", err.text);
}

/* The scan is the base of the next run (M3.3). */
static void go_on(void)
{
	struct pp_layout *l = &b.config.layout;
	uint32_t lane;

	pp_scan_free(b.base);
	b.base = b.scan;
	b.scan = NULL;
	for (lane = 0; lane < l->lanes && pp_workload_grows(l->workload); lane++)
		l->base_slots[lane] = pp_scan_taken(b.base, l, lane);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	return ftw->level ? remove(path) : 0;
}

static void clean_up(void)
{
	pp_oracle_release(&b.result);
	pp_scan_free(b.base);
	pp_scan_free(b.scan);
	b.base = b.scan = NULL;
	nftw(b.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void show(const struct row *row)
{
	print_message("%s, %s, %u lanes, groups of %u, %u bytes%s\n", pp_workload_name(row->workload),
		row->method, row->lanes, row->group, row->record_bytes, row->random ? ", random" : "");
}

/* ---- injuries --------------------------------------------------------------------------------- */

enum injury { REMOVED, EMPTY, HALF, BLANK, FLIPPED, SWAPPED };

static int open_slot(uint32_t lane, uint64_t slot, char *path, size_t bytes)
{
	const struct pp_layout *l = &b.config.layout;
	char file[256], name[32];
	int fd;

	pp_layout_file_name(l, b.path, pp_layout_file_of(l, lane), file, sizeof(file));
	pp_layout_record_name(l, pp_layout_file_at(l, lane, slot), name, sizeof(name));
	if (pp_workload_record_files(l->workload))
		snprintf(path, bytes, "%s/%s", file, name);
	else
		snprintf(path, bytes, "%s", file);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	return fd;
}

static void hurt(enum injury injury, uint32_t lane, uint64_t slot, uint64_t other)
{
	const struct pp_layout *l = &b.config.layout;
	uint64_t at = pp_layout_file_offset(l, lane, slot);
	uint8_t *buf = calloc(1, l->record_bytes), *two = calloc(1, l->record_bytes);
	char path[320], path2[320];
	int fd = open_slot(lane, slot, path, sizeof(path)), fd2;

	switch (injury) {
	case REMOVED:
		assert_int_equal(unlink(path), 0);
		break;
	case EMPTY:
		assert_int_equal(ftruncate(fd, 0), 0);
		break;
	case HALF:
		assert_int_equal(ftruncate(fd, (off_t)(at + l->record_bytes / 2)), 0);
		break;
	case BLANK:
		assert_int_equal(pwrite(fd, buf, l->record_bytes, (off_t)at), l->record_bytes);
		break;
	case FLIPPED:
		assert_int_equal(pread(fd, buf, 1, (off_t)(at + 100)), 1);
		buf[0] ^= 1;
		assert_int_equal(pwrite(fd, buf, 1, (off_t)(at + 100)), 1);
		break;
	case SWAPPED:
		fd2 = open_slot(lane, other, path2, sizeof(path2));
		assert_int_equal(pread(fd2, two, l->record_bytes,
			(off_t)pp_layout_file_offset(l, lane, other)), l->record_bytes);
		assert_int_equal(pwrite(fd, two, l->record_bytes, (off_t)at), l->record_bytes);
		close(fd2);
		break;
	}
	assert_int_equal(fsync(fd), 0);
	close(fd);
	free(buf);
	free(two);
}

static const struct {
	enum injury injury;
	bool folders, files; /* where it can happen alone */
	enum pp_loss_class class;
} injuries[] = {
	{ REMOVED, true, false, PP_LOSS_FILE_GONE }, { EMPTY, true, false, PP_LOSS_FILE_SHORT },
	{ HALF, true, false, PP_LOSS_FILE_SHORT }, { BLANK, true, true, PP_LOSS_BLANK },
	{ FLIPPED, true, true, PP_LOSS_CORRUPT }, { SWAPPED, true, true, PP_LOSS_MISDIRECTED },
};

static void put_back(const char *path, const uint8_t *kept, uint32_t lane, uint64_t slot)
{
	const struct pp_layout *l = &b.config.layout;
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	assert_int_equal(pwrite(fd, kept, l->record_bytes,
		(off_t)pp_layout_file_offset(l, lane, slot)), l->record_bytes);
	assert_int_equal(fsync(fd), 0);
	close(fd);
}

/* Each injury of an acked record is found, as what it is, and nothing else is; mended, nothing is. */
static void hurt_and_judge(void)
{
	const struct pp_layout *l = &b.config.layout;
	uint32_t lane = l->lanes - 1;
	uint64_t seq = b.acked[lane], slot = pp_layout_slot(l, lane, seq), i;
	uint64_t other = pp_layout_slot(l, lane, seq - 1);
	bool folders = pp_workload_record_files(l->workload);
	uint8_t *kept = malloc(l->record_bytes);
	char path[320];
	int fd = open_slot(lane, slot, path, sizeof(path));

	assert_int_equal(pread(fd, kept, l->record_bytes, (off_t)pp_layout_file_offset(l, lane, slot)),
		l->record_bytes);
	close(fd);
	for (i = 0; i < COUNT(injuries); i++) {
		if (!(folders ? injuries[i].folders : injuries[i].files) ||
			(injuries[i].injury == HALF && l->record_bytes == 512))
			continue;
		hurt(injuries[i].injury, lane, slot, other);
		judge();
		/* M2.5: beside a record in flight, in one block of the drive with it. */
		if (l->sub_block && !folders && injuries[i].injury == FLIPPED && b.result.collateral) {
			assert_int_equal(b.result.losses, 0);
			assert_int_equal(b.result.collateral, 1);
			put_back(path, kept, lane, slot);
			continue;
		}
		if (b.result.lost_total != 1 || b.result.loss[0].class != injuries[i].class)
			fail_msg("injury %d: %llu lost, first as %s", (int)injuries[i].injury,
				(unsigned long long)b.result.lost_total, b.result.losses
				? pp_loss_class_name(b.result.loss[0].class) : "nothing");
		assert_int_equal(b.result.loss[0].lane, lane);
		assert_int_equal(b.result.loss[0].slot, slot);
		assert_int_equal(b.result.loss[0].seq, seq);
		assert_true(b.result.loss[0].by_ack);
		put_back(path, kept, lane, slot);
	}
	judge();
	assert_int_equal(b.result.losses, 0);
	free(kept);
}

/* M4.7: the slots that look lost are read again, wherever they are. */
static void reread_one(void)
{
	const struct pp_layout *l = &b.config.layout;
	struct pp_scan_range range = { 0, pp_layout_slot(l, 0, b.acked[0]), 0 };
	const struct pp_scan_slot *slot;
	struct pp_scan *again;

	range.last = range.first;
	again = take_scan(&range, 1);
	slot = pp_scan_slot(again, 0, range.first);
	assert_non_null(slot);
	assert_int_equal(slot->kind, PP_SLOT_INTACT);
	assert_true(slot->seq >= b.acked[0]);
	pp_scan_free(again);
}

/* ---- tests ------------------------------------------------------------------------------------ */

static void check_row(const struct row *row)
{
	const struct pp_layout *l = &b.config.layout;
	uint32_t lane;
	int i;

	show(row);
	set_up(row);
	for (i = 0; i < 2; i++) {
		if (pp_layout_seq_max(l) < 64 + row->group)
			break; /* full */
		run(row->record_bytes > 100 * KB || row->lanes > 10 ? 40 : 100);
		judge();
		if (b.result.losses)
			fail_msg("%zu slots lost in run %d, first lane %u slot %llu as %s", b.result.losses,
				i + 1, b.result.loss[0].lane, (unsigned long long)b.result.loss[0].slot,
				pp_loss_class_name(b.result.loss[0].class));
		for (lane = 0; lane < l->lanes; lane++)
			assert_true(b.result.lane[lane].durable >= b.acked[lane]);
		if (l->workload != PP_APPEND)
			assert_int_equal(b.result.slots_checked, l->lanes * l->slots);
		assert_int_equal(b.result.unknown_runs, 0);
		assert_int_equal(b.result.collateral, 0);
		reread_one();
		if (i == 0 && l->lanes < 10)
			hurt_and_judge();
		go_on();
	}
	assert_true(i > 0);
	clean_up();
}

static void all_workloads_keep_what_they_ack(void **state)
{
	size_t i;

	(void)state;
	strcpy(b.folder, "/tmp/plugpull-test-XXXXXX");
	assert_non_null(mkdtemp(b.folder));
	for (i = 0; i < COUNT(rows); i++)
		check_row(&rows[i]);
	assert_int_equal(rmdir(b.folder), 0);
}

static int command(const char *program, const char *a, const char *c, const char *d)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 1);
		dup2(null, 2);
		execlp(program, program, a, c, d, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	return status;
}

static void unmount(void)
{
	if (mounted[0] && command("umount", mounted, NULL, NULL) == 0)
		rmdir(mounted);
	if (image[0])
		unlink(image);
	mounted[0] = image[0] = '\0';
}

static void end_by_signal(int number)
{
	unmount();
	signal(number, SIG_DFL);
	raise(number);
}

static bool mount_image(const char *fs)
{
	char mkfs[32];
	int fd;

	strcpy(image, "/tmp/plugpull-test-XXXXXX");
	fd = mkstemp(image);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 400 * MB), 0);
	close(fd);
	snprintf(mkfs, sizeof(mkfs), "mkfs.%s", fs);
	strcpy(mounted, "/tmp/plugpull-test-XXXXXX");
	assert_non_null(mkdtemp(mounted));
	if (command(mkfs, strcmp(fs, "ext4") == 0 ? "-F" : "-f", image, NULL) == 0 &&
		command("mount", "-oloop", image, mounted) == 0)
		return true;
	rmdir(mounted);
	mounted[0] = '\0';
	unmount();
	return false;
}

static void on_file_system(const char *fs)
{
	size_t i;

	if (geteuid() != 0 || !mount_image(fs)) {
		print_message("%s: no loop device or no mkfs here\n", fs);
		skip();
	}
	snprintf(b.folder, sizeof(b.folder), "%s", mounted);
	for (i = 0; i < COUNT(direct_rows); i++)
		check_row(&direct_rows[i]);
	for (i = 0; i < COUNT(rows); i++)
		if (rows[i].workload != PP_OVERWRITE && rows[i].lanes < 10 && rows[i].record_bytes < MB)
			check_row(&rows[i]);
}

static int unmount_after(void **state)
{
	(void)state;
	if (mounted[0])
		clean_up();
	unmount();
	return 0;
}

static void on_ext4(void **state)
{
	(void)state;
	on_file_system("ext4");
}

static void on_xfs(void **state)
{
	(void)state;
	on_file_system("xfs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_workloads_keep_what_they_ack),
		cmocka_unit_test_teardown(on_ext4, unmount_after),
		cmocka_unit_test_teardown(on_xfs, unmount_after),
	};

	pthread_mutex_init(&b.lock, NULL);
	signal(SIGINT, end_by_signal);
	signal(SIGTERM, end_by_signal);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
