/* SPDX-License-Identifier: MIT
 *
 * Goal: each row of the methods table says what its calls do (M2.1), the calls are made as the row
 * says, and what this system does not have is unsupported, never something else in its place.
 * Method: the table is walked; each method that can be had in a temporary folder writes a file and
 * the file is read back; commands past the block layer are caught by this program's own ioctl, which
 * stands before libc's, and can refuse. Requests of recorded traces are counted by their letters.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/nvme_ioctl.h>
#include <scsi/sg.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/core/disk_trace.h"
#include "src/core/method_io.h"

/* ---- the device that ioctl finds --------------------------------------------------------------- */

static struct {
	bool nvme, scsi;
	int refuse;                    /* errno of commands; < 0: the drive's own status */
	uint8_t sense_key;
	struct nvme_passthru_cmd nvme_last;
	uint8_t scsi_last[16];
	unsigned commands;
} fake;

static int fake_scsi(struct sg_io_hdr *h)
{
	fake.commands++;
	memcpy(fake.scsi_last, h->cmdp, h->cmd_len);
	assert_int_equal(h->interface_id, 'S');
	assert_int_equal(h->dxfer_direction, SG_DXFER_NONE);
	if (fake.sense_key) {
		h->status = 2;
		h->sb_len_wr = 8;
		memset(h->sbp, 0, 8);
		h->sbp[0] = 0x72;
		h->sbp[1] = fake.sense_key;
	}
	return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (fake.nvme && request == NVME_IOCTL_ID)
		return 7;
	if (fake.nvme && request == BLKSSZGET) {
		*(int *)arg = 4096;
		return 0;
	}
	if (fake.nvme && request == NVME_IOCTL_IO_CMD) {
		fake.commands++;
		memcpy(&fake.nvme_last, arg, sizeof(fake.nvme_last));
		errno = fake.refuse;
		return fake.refuse > 0 ? -1 : -fake.refuse;
	}
	if (fake.scsi && request == SG_IO)
		return fake_scsi(arg);
	if (request == NVME_IOCTL_ID || request == SG_IO) {
		errno = ENOTTY;
		return -1;
	}
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

/* What was asked to be synced, of calls that take a range. */
static struct { uint64_t from, bytes; unsigned calls; int flags; } range;

int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags)
{
	range.from = (uint64_t)offset;
	range.bytes = (uint64_t)bytes;
	range.flags = (int)flags;
	range.calls++;
	return (int)syscall(SYS_sync_file_range, fd, offset, bytes, flags);
}

static int setup(void **state)
{
	static char path[64];
	int fd;

	memset(&fake, 0, sizeof(fake));
	strcpy(path, "/tmp/plugpull-test-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0 || close(fd) != 0)
		return -1;
	*state = path;
	return 0;
}

static int teardown(void **state)
{
	return unlink(*state);
}

/* ---- the table ----------------------------------------------------------------------------------- */

static void test_table(void **state)
{
	size_t i, k;

	(void)state;
	for (i = 0; i < pp_method_count; i++) {
		const struct pp_method *m = &pp_methods[i];
		const char *end = strstr(m->name, " (direct)");
		bool write_syncs = m->o_dsync || m->o_sync;

		assert_ptr_equal(pp_method_find(m->name), m);
		assert_true(strlen(m->name) < 32 && !strchr(m->name, ','));
		for (k = 0; k < i; k++)
			assert_string_not_equal(m->name, pp_methods[k].name);
		/* M2.1: a bare name is buffered; direct is in the name, or is the name, or a command. */
		assert_int_equal(m->direct, end || strcmp(m->name, "direct") == 0 || m->passthrough);
		/* What promises more than nothing syncs somehow, once, and covers something. */
		if (m->promise_file > PP_PROMISE_NONE || m->promise_raw > PP_PROMISE_NONE) {
			assert_true(write_syncs != (m->sync != PP_SYNC_NONE));
			assert_int_not_equal(m->coverage, PP_COVERS_NOTHING);
			assert_false(m->control);
		} else {
			assert_true(!write_syncs && m->sync == PP_SYNC_NONE && m->control);
		}
		/* A sync in the write covers that write, or, linked behind it, the file. */
		if (write_syncs)
			assert_int_equal(m->coverage, m->write == PP_WRITE_URING_LINKED ||
				m->write == PP_WRITE_IORING ? PP_COVERS_FILE : PP_COVERS_WRITE);
		/* Only a direct write that is its own sync can be one FUA write (iomap). */
		assert_int_equal(m->may_send_fua, m->direct && m->o_dsync &&
			m->write != PP_WRITE_IORING);
		assert_int_equal(m->rw_flags != 0, m->write == PP_WRITE_PWRITEV2 ||
			m->write == PP_WRITE_URING);
		if (m->rw_flags & PP_RWF_DSYNC)
			assert_true(m->o_dsync);
		assert_int_equal(!!(m->rw_flags & PP_RWF_SYNC), m->o_sync && m->rw_flags);
		assert_int_equal(!!(m->rw_flags & PP_RWF_ATOMIC), m->untorn);
		if (m->write != PP_WRITE_PWRITE)
			assert_int_equal(pp_method_open_flags(m), m->direct ? O_DIRECT : 0);
		if (m->passthrough)
			assert_int_equal(m->promise_file, PP_PROMISE_NA);
		assert_true(m->source && *m->source);
		assert_true(*pp_sync_call_name(m->sync));
	}
	/* M2.1, by name: what is easily got wrong. */
	assert_int_equal(pp_method_find("syncfs")->promise_raw, PP_PROMISE_NA);
	assert_int_equal(pp_method_find("sync")->promise_raw, PP_PROMISE_NA);
	assert_int_equal(pp_method_find("sync_file_range")->promise_file, PP_PROMISE_DEVICE);
	assert_int_equal(pp_method_find("sync_file_range")->promise_raw, PP_PROMISE_DEVICE);
	assert_int_equal(pp_method_find("msync")->coverage, PP_COVERS_RANGE);
	assert_int_equal(pp_method_find("syncfs")->coverage, PP_COVERS_FS);
	assert_int_equal(pp_method_open_flags(pp_method_find("open_datasync (direct)")),
		O_DIRECT | O_DSYNC);
	assert_int_equal(pp_method_open_flags(pp_method_find("open_sync")), O_SYNC);
	assert_null(pp_method_find("RWF_DSYN"));
	assert_null(pp_method_find("rwf_dsync"));
}

/* ---- the calls ------------------------------------------------------------------------------------- */

#define BLOCK 4096U
#define BLOCKS 5

static void use(const struct pp_method *m, int fd, const char *path)
{
	static uint8_t buf[BLOCK] __attribute__((aligned(65536))), back[BLOCK];
	static const unsigned order[BLOCKS] = { 2, 0, 4, 1, 3 };
	struct pp_method_io io;
	struct pp_error err = { 0 };
	unsigned i, k;
	int plain;

	if (pp_method_io_init(&io, m, fd, &err) != 0) {
		assert_int_equal(err.class, PP_ERR_UNSUPPORTED);
		assert_true(err.text[0] != '\0');
		print_message("%s: %s\n", m->name, err.text);
		assert_int_equal(lseek(fd, 0, SEEK_END), 0); /* asking has written nothing */
		return;
	}
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	for (i = 0; i < BLOCKS; i++) {
		int64_t code = 0;

		memset(buf, 'a' + (int)order[i], sizeof(buf));
		if (pp_method_io_write(&io, buf, BLOCK, order[i] * BLOCK, &code) != BLOCK)
			fail_msg("%s: write: %s", m->name, strerror((int)code));
		/* Two, then three: a sync covers all that came since the one before. */
		if (i % 2 && pp_method_io_sync(&io, &code) != 0)
			fail_msg("%s: sync: %s", m->name, strerror((int)code));
	}
	pp_method_io_release(&io);
	plain = open(path, O_RDONLY);
	for (i = 0; i < BLOCKS; i++) {
		assert_int_equal(pread(plain, back, BLOCK, i * BLOCK), BLOCK);
		for (k = 0; k < BLOCK; k++)
			assert_int_equal(back[k], 'a' + i);
	}
	assert_int_equal(lseek(plain, 0, SEEK_END), BLOCKS * BLOCK);
	close(plain);
}

static void test_each(void **state)
{
	const char *path = *state;
	size_t i;

	for (i = 0; i < pp_method_count; i++) {
		const struct pp_method *m = &pp_methods[i];
		int fd;

		assert_int_equal(truncate(path, 0), 0);
		fd = open(path, O_RDWR | pp_method_open_flags(m));
		if (fd < 0 && m->direct && errno == EINVAL)
			continue; /* a temporary folder in RAM */
		assert_true(fd >= 0);
		use(m, fd, path);
		close(fd);
	}
}

/* M2.2: the range of a sync is all that was written since the one before it, and no less. */
static void test_range(void **state)
{
	static const struct { unsigned written[3], count; uint64_t from, bytes; } rows[] = {
		{ { 3 }, 1, 3 * BLOCK, BLOCK },
		{ { 1, 2, 3 }, 3, BLOCK, 3 * BLOCK },
		{ { 7, 2, 4 }, 3, 2 * BLOCK, 6 * BLOCK },
		{ { 0, 5 }, 2, 0, 6 * BLOCK },
	};
	static uint8_t buf[BLOCK];
	struct pp_method_io io;
	struct pp_error err = { 0 };
	int fd = open(*state, O_RDWR);
	int64_t code = 0;
	unsigned i, k;

	assert_int_equal(pp_method_io_init(&io, pp_method_find("sync_file_range"), fd, &err), 0);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		range.calls = 0;
		for (k = 0; k < rows[i].count; k++)
			assert_int_equal(pp_method_io_write(&io, buf, BLOCK,
				(uint64_t)rows[i].written[k] * BLOCK, &code), BLOCK);
		assert_int_equal(range.calls, 0);
		assert_int_equal(pp_method_io_sync(&io, &code), 0);
		assert_int_equal(range.calls, 1);
		assert_int_equal(range.from, rows[i].from);
		assert_int_equal(range.bytes, rows[i].bytes);
		assert_int_equal(range.flags, 7); /* wait, write, wait: less hands nothing over for sure */
	}
	pp_method_io_release(&io);
	close(fd);
}

/* A descriptor that cannot be written makes every call an error with the system's code. */
static void test_refused(void **state)
{
	static uint8_t buf[BLOCK] __attribute__((aligned(65536)));
	size_t i;

	for (i = 0; i < pp_method_count; i++) {
		const struct pp_method *m = &pp_methods[i];
		struct pp_method_io io;
		struct pp_error err = { 0 };
		int64_t code = 0;
		int fd;

		if (m->direct || m->passthrough)
			continue;
		fd = open(*state, O_RDONLY);
		if (m->write == PP_WRITE_MAPPED && pp_method_on(m, pp_system_here)) {
			/* An empty file is mapped at the first write. */
			assert_int_equal(pp_method_io_init(&io, m, fd, &err), 0);
		} else if (pp_method_io_init(&io, m, fd, &err) != 0) {
			assert_int_equal(err.class, PP_ERR_UNSUPPORTED);
			close(fd);
			continue;
		}
		assert_int_equal(pp_method_io_write(&io, buf, BLOCK, 0, &code), -1);
		assert_true(code == EBADF || code == EACCES || code == EINVAL);
		pp_method_io_release(&io);
		close(fd);
	}
}

/* The sync that is linked behind a write is not made good by the write's success. */
static void test_linked_failure(void **state)
{
	static uint8_t buf[BLOCK];
	const struct pp_method *m = pp_method_find("io_uring write+fdatasync");
	struct pp_method_io io;
	struct pp_error err = { 0 };
	int64_t code = 0;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0); /* takes writes, has no fdatasync: EINVAL */
	if (pp_method_io_init(&io, m, ends[1], &err) != 0) {
		print_message("skip: %s\n", err.text);
		skip();
	}
	assert_int_equal(pp_method_io_write(&io, buf, 16, 0, &code), -1);
	assert_true(code == EINVAL || code == ESPIPE);
	pp_method_io_release(&io);
	close(ends[0]);
	close(ends[1]);
}

/* ---- past the block layer ---------------------------------------------------------------------------- */

static void test_nvme(void **state)
{
	static uint8_t buf[8192];
	struct pp_method_io io;
	struct pp_error err = { 0 };
	int64_t code = 0;

	(void)state;
	assert_int_equal(pp_method_io_init(&io, pp_method_find("NVMe write FUA"), 0, &err), -1);
	assert_int_equal(err.class, PP_ERR_UNSUPPORTED);
	fake.nvme = true;
	assert_int_equal(pp_method_io_init(&io, pp_method_find("NVMe write FUA"), 0, &err), 0);
	assert_int_equal(fake.commands, 0);
	assert_int_equal(pp_method_io_write(&io, buf, 8192, (1ULL << 44) + 4096, &code), 8192);
	assert_int_equal(fake.nvme_last.opcode, 1);
	assert_int_equal(fake.nvme_last.nsid, 7);
	assert_int_equal(fake.nvme_last.data_len, 8192);
	assert_ptr_equal((void *)(uintptr_t)fake.nvme_last.addr, buf);
	assert_int_equal(fake.nvme_last.cdw10, 1); /* 2^32 + 1 blocks of 4096 */
	assert_int_equal(fake.nvme_last.cdw11, 1);
	assert_int_equal(fake.nvme_last.cdw12, 0x40000001); /* FUA; two blocks, counted from 0 */
	assert_int_equal(pp_method_io_write(&io, buf, 512, 0, &code), -1);
	assert_int_equal(code, EINVAL);
	assert_int_equal(pp_method_io_write(&io, buf, 4096, 512, &code), -1);
	fake.refuse = -0x281; /* the drive's own status is not success */
	assert_int_equal(pp_method_io_write(&io, buf, 4096, 0, &code), -1);
	assert_int_equal(code, EIO);
	fake.refuse = EACCES;
	assert_int_equal(pp_method_io_write(&io, buf, 4096, 0, &code), -1);
	assert_int_equal(code, EACCES);
	pp_method_io_release(&io);

	fake.refuse = 0;
	assert_int_equal(pp_method_io_init(&io, pp_method_find("NVMe flush"), 0, &err), 0);
	assert_int_equal(pp_method_io_sync(&io, &code), 0);
	assert_int_equal(fake.nvme_last.opcode, 0);
	assert_int_equal(fake.nvme_last.nsid, 7);
	assert_int_equal(fake.nvme_last.data_len, 0);
	fake.refuse = -6;
	assert_int_equal(pp_method_io_sync(&io, &code), -1);
	assert_int_equal(code, EIO);
	pp_method_io_release(&io);
}

static void test_scsi(void **state)
{
	const struct pp_method *m = pp_method_find("SCSI SYNCHRONIZE CACHE");
	struct pp_method_io io;
	struct pp_error err = { 0 };
	int64_t code = 0;

	(void)state;
	assert_int_equal(pp_method_io_init(&io, m, 0, &err), -1);
	assert_int_equal(err.class, PP_ERR_UNSUPPORTED);
	fake.scsi = true;
	fake.sense_key = 5;
	assert_int_equal(pp_method_io_init(&io, m, 0, &err), -1);
	assert_int_equal(err.class, PP_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "refuses"));
	fake.sense_key = 0;
	assert_int_equal(pp_method_io_init(&io, m, 0, &err), 0);
	assert_int_equal(fake.scsi_last[0], 0x35);
	assert_int_equal(pp_method_io_sync(&io, &code), 0);
	assert_int_equal(fake.commands, 3);
	fake.sense_key = 3; /* medium error */
	assert_int_equal(pp_method_io_sync(&io, &code), -1);
	assert_int_equal(code, EIO);
	pp_method_io_release(&io);
}

/* ---- traces ------------------------------------------------------------------------------------------ */

static void test_trace(void **state)
{
	static const struct {
		const char *rwbs;
		uint64_t writes, fua, flushes, preflushes, metadata, others;
	} rows[] = {
		{ "W", 1, 0, 0, 0, 0, 0 },
		{ "WS", 1, 0, 0, 0, 0, 0 },
		{ "WFS", 1, 1, 0, 0, 0, 0 },
		{ "FWFS", 1, 1, 0, 1, 0, 0 },
		{ "FWS", 1, 0, 0, 1, 0, 0 },
		{ "FWFSM", 1, 1, 0, 1, 1, 0 },
		{ "WSM", 1, 0, 0, 0, 1, 0 },
		{ "WFSU", 1, 1, 0, 0, 0, 0 }, /* atomic */
		{ "FF", 0, 0, 1, 0, 0, 0 },
		{ "FFS", 0, 0, 1, 0, 0, 0 },
		{ "F", 0, 0, 1, 0, 0, 0 },
		{ "R", 0, 0, 0, 0, 0, 1 },
		{ "RA", 0, 0, 0, 0, 0, 1 },
		{ "DS", 0, 0, 0, 0, 0, 1 },
		{ "N", 0, 0, 0, 0, 0, 1 },
	};
	static const char *const not_ours[] = {
		"# tracer: nop", "", "  sh-1 [000] ..... 1.0: block_rq_complete: 254,0 WS () 8 + 8 [0]",
		"  sh-1 [000] ..... 1.0: block_rq_issue: 254,16 WS 4096 () 8 + 8 [sh]",
		"  sh-1 [000] ..... 1.0: block_rq_issue: 8,0 WS 4096 () 8 + 8 [sh]",
		"# sh-1 [000] ..... 1.0: block_rq_issue: 254,0 WS 4096 () 8 + 8 [sh]",
	};
	struct pp_disk_trace_counts c;
	char line[256];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(&c, 0, sizeof(c));
		snprintf(line, sizeof(line), "   kworker/0:1H-50      [001] .....   123.456789: "
			"block_rq_issue: 254,0 %s 8192 () 1234 + 16 none,0,0 [kworker/0:1H]\n", rows[i].rwbs);
		assert_true(pp_disk_trace_line(line, 254, 0, &c));
		assert_int_equal(c.requests, 1);
		if (c.writes != rows[i].writes || c.fua_writes != rows[i].fua ||
			c.flushes != rows[i].flushes || c.preflushes != rows[i].preflushes ||
			c.metadata != rows[i].metadata || c.others != rows[i].others ||
			c.write_bytes != 8192 * rows[i].writes)
			fail_msg("%s is counted wrong", rows[i].rwbs);
	}
	memset(&c, 0, sizeof(c));
	for (i = 0; i < sizeof(not_ours) / sizeof(not_ours[0]); i++)
		assert_false(pp_disk_trace_line(not_ours[i], 254, 0, &c));
	assert_int_equal(c.requests, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test_setup_teardown(test_each, setup, teardown),
		cmocka_unit_test_setup_teardown(test_range, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_linked_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nvme, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scsi, setup, teardown),
		cmocka_unit_test(test_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
