/* SPDX-License-Identifier: MIT
 *
 * A store into a mapping is made by read(2) from a file in memory: the kernel then takes the page
 * fault, and what would be a SIGBUS (no room, a read error) is an error code. The fault, the dirty
 * page and all that follows are those of a plain store.
 *
 * Whether pwritev2(2) knows a flag for this file is asked with a buffer that cannot be read: flags
 * are looked at first (EOPNOTSUPP), and with EFAULT nothing has been written.
 */
#include "method_io.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define RING_ENTRIES 2
#define PROBE_BYTES  65536

/* statx(2), STATX_WRITE_ATOMIC: Linux 6.11; headers may be older. */
#define ATOMIC_MASK        0x00010000U
#define ATOMIC_MIN_AT      0xa8 /* stx_atomic_write_unit_min, then _max: __u32 each */

static int64_t result(ssize_t n, int64_t *os_code)
{
	if (n < 0)
		*os_code = errno;
	return n;
}

/* ---- writes ---------------------------------------------------------------------------------- */

static int64_t write_plain(struct pp_method_io *io, const void *buf, uint32_t bytes, uint64_t offset,
	int64_t *os_code)
{
	return result(pwrite(io->fd, buf, bytes, (off_t)offset), os_code);
}

static int64_t write_flagged(struct pp_method_io *io, const void *buf, uint32_t bytes,
	uint64_t offset, int64_t *os_code)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = bytes };

	return result(pwritev2(io->fd, &iov, 1, (off_t)offset, io->method->rw_flags), os_code);
}

static int64_t write_uring(struct pp_method_io *io, const void *buf, uint32_t bytes, uint64_t offset,
	int64_t *os_code)
{
	bool linked = io->method->write == PP_WRITE_URING_LINKED;
	unsigned want = linked ? 2 : 1, i;
	int64_t answer[2] = { 0, 0 };
	struct io_uring_sqe *sqe = io_uring_get_sqe(io->ring);
	int rc;

	io_uring_prep_write(sqe, io->fd, buf, bytes, offset);
	sqe->rw_flags = io->method->rw_flags;
	sqe->user_data = 0;
	if (linked) {
		sqe->flags |= IOSQE_IO_LINK;
		sqe = io_uring_get_sqe(io->ring);
		io_uring_prep_fsync(sqe, io->fd, IORING_FSYNC_DATASYNC);
		sqe->user_data = 1;
	}
	do
		rc = io_uring_submit_and_wait(io->ring, want);
	while (rc == -EINTR);
	for (i = 0; i < want && rc >= 0; i++) {
		struct io_uring_cqe *cqe;

		do
			rc = io_uring_wait_cqe(io->ring, &cqe);
		while (rc == -EINTR);
		if (rc < 0)
			break;
		answer[cqe->user_data & 1] = cqe->res;
		io_uring_cqe_seen(io->ring, cqe);
	}
	if (rc >= 0 && (answer[0] < 0 || answer[0] != (int64_t)bytes))
		rc = answer[0] < 0 ? (int)answer[0] : 0;
	else if (rc >= 0 && answer[1] < 0)
		rc = (int)answer[1];
	if (rc < 0) {
		*os_code = -rc;
		return -1;
	}
	return answer[0];
}

static int map_whole(struct pp_method_io *io, uint64_t bytes)
{
	void *map = io->map ? mremap(io->map, io->map_bytes, bytes, MREMAP_MAYMOVE)
		: mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, io->fd, 0);

	if (map == MAP_FAILED)
		return -1;
	io->map = map;
	io->map_bytes = bytes;
	return 0;
}

static int64_t write_mapped(struct pp_method_io *io, const void *buf, uint32_t bytes,
	uint64_t offset, int64_t *os_code)
{
	uint64_t end = offset + bytes;
	ssize_t n;

	if (end > io->size_bytes) {
		if (ftruncate(io->fd, (off_t)end) != 0)
			return result(-1, os_code);
		io->size_bytes = end;
	}
	if (end > io->map_bytes && map_whole(io, io->size_bytes) != 0)
		return result(-1, os_code);
	n = pwrite(io->staging_fd, buf, bytes, 0);
	if (n == (ssize_t)bytes)
		n = pread(io->staging_fd, io->map + offset, bytes, 0);
	return result(n, os_code);
}

static int64_t (*const writes[])(struct pp_method_io *io, const void *buf, uint32_t bytes,
	uint64_t offset, int64_t *os_code) = {
	[PP_WRITE_PWRITE] = write_plain,
	[PP_WRITE_PWRITEV2] = write_flagged,
	[PP_WRITE_MAPPED] = write_mapped,
	[PP_WRITE_URING] = write_uring,
	[PP_WRITE_URING_LINKED] = write_uring,
	[PP_WRITE_NVME_FUA] = pp_method_nvme_write,
};

int64_t pp_method_io_write(struct pp_method_io *io, const void *buf, uint32_t bytes,
	uint64_t offset, int64_t *os_code)
{
	if (io->from == io->to)
		io->from = io->to = offset;
	if (offset < io->from)
		io->from = offset;
	if (offset + bytes > io->to)
		io->to = offset + bytes;
	return writes[io->method->write](io, buf, bytes, offset, os_code);
}

/* ---- syncs ----------------------------------------------------------------------------------- */

static int sync_none(struct pp_method_io *io)
{
	(void)io;
	return 0;
}

static int sync_data(struct pp_method_io *io)
{
	return fdatasync(io->fd);
}

static int sync_all(struct pp_method_io *io)
{
	return fsync(io->fd);
}

static int sync_map(struct pp_method_io *io)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = io->from / page * page;

	return io->to == io->from ? 0 : msync(io->map + from, io->to - from, MS_SYNC);
}

static int sync_range(struct pp_method_io *io)
{
	return sync_file_range(io->fd, (off_t)io->from, (off_t)(io->to - io->from),
		SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

static int sync_fs(struct pp_method_io *io)
{
	return syncfs(io->fd);
}

static int sync_everything(struct pp_method_io *io)
{
	(void)io;
	sync();
	return 0;
}

static int (*const syncs[PP_SYNC_CALLS])(struct pp_method_io *io) = {
	[PP_SYNC_NONE] = sync_none,
	[PP_SYNC_FDATASYNC] = sync_data,
	[PP_SYNC_FSYNC] = sync_all,
	[PP_SYNC_MSYNC] = sync_map,
	[PP_SYNC_FILE_RANGE] = sync_range,
	[PP_SYNC_SYNCFS] = sync_fs,
	[PP_SYNC_SYNC] = sync_everything,
};

int pp_method_io_sync(struct pp_method_io *io, int64_t *os_code)
{
	int rc;

	if (io->method->sync == PP_SYNC_NVME_FLUSH)
		rc = pp_method_nvme_flush(io, os_code);
	else if (io->method->sync == PP_SYNC_SCSI_CACHE)
		rc = pp_method_scsi_cache(io, os_code);
	else if ((rc = syncs[io->method->sync](io)) != 0)
		*os_code = errno;
	io->from = io->to = 0;
	return rc;
}

/* ---- can it be had here? --------------------------------------------------------------------- */

static int probe_flags(const struct pp_method_io *io, struct pp_error *err)
{
	void *hidden = mmap(NULL, PROBE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov = { .iov_base = hidden, .iov_len = PROBE_BYTES };
	ssize_t n;
	int code;

	if (hidden == MAP_FAILED)
		return pp_fail_os(err, errno, "cannot probe '%s'", io->method->name);
	n = pwritev2(io->fd, &iov, 1, 0, io->method->rw_flags);
	code = n < 0 ? errno : 0;
	munmap(hidden, PROBE_BYTES);
	if (code == EOPNOTSUPP || code == ENOSYS)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "this kernel or file system has no such write");
	return 0;
}

/* The advertised unit must be there: without it the kernel refuses, or worse, an old one ignores. */
static int probe_atomic(const struct pp_method_io *io, struct pp_error *err)
{
	union {
		struct statx stx;
		uint8_t bytes[256];
	} u;
	uint32_t unit[2];

	memset(&u, 0, sizeof(u));
	if (statx(io->fd, "", AT_EMPTY_PATH, ATOMIC_MASK, &u.stx) != 0)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "statx(2) does not answer here");
	memcpy(unit, &u.bytes[ATOMIC_MIN_AT], sizeof(unit));
	if (!(u.stx.stx_mask & ATOMIC_MASK) || unit[1] == 0)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "no atomic write unit is advertised here");
	return 0;
}

static int init_ring(struct pp_method_io *io, struct pp_error *err)
{
	int rc;

	io->ring = calloc(1, sizeof(*io->ring));
	if (!io->ring)
		return pp_fail_os(err, ENOMEM, "cannot set up io_uring");
	rc = io_uring_queue_init(RING_ENTRIES, io->ring, 0);
	if (rc == 0)
		return 0;
	free(io->ring);
	io->ring = NULL;
	if (rc == -ENOSYS || rc == -EPERM || rc == -EACCES)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "io_uring is not allowed by this kernel: %s",
			strerror(-rc));
	return pp_fail_os(err, -rc, "cannot set up io_uring");
}

static int init_map(struct pp_method_io *io, struct pp_error *err)
{
	off_t end = io->fd < 0 ? 0 : lseek(io->fd, 0, SEEK_END);

	if (end < 0)
		return pp_fail_os(err, errno, "cannot find the size to map");
	io->size_bytes = (uint64_t)end;
	if (io->size_bytes && map_whole(io, io->size_bytes) != 0)
		return errno == ENODEV ? pp_fail(err, PP_ERR_UNSUPPORTED, "it cannot be mapped shared")
			: pp_fail_os(err, errno, "cannot map it");
	io->staging_fd = memfd_create("plugpull", MFD_CLOEXEC);
	if (io->staging_fd >= 0)
		return 0;
	pp_fail_os(err, errno, "cannot make a file in memory");
	pp_method_io_release(io);
	return -1;
}

int pp_method_io_init(struct pp_method_io *io, const struct pp_method *method, int fd,
	struct pp_error *err)
{
	memset(io, 0, sizeof(*io));
	io->method = method;
	io->fd = fd;
	io->staging_fd = -1;
	if (!pp_method_on(method, PP_SYSTEM_LINUX))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "%s", pp_method_elsewhere(method));
	/* No file to ask: the first write will tell. */
	if (fd >= 0 && method->rw_flags & PP_RWF_ATOMIC && probe_atomic(io, err) != 0)
		return -1;
	if (fd >= 0 && method->rw_flags && probe_flags(io, err) != 0)
		return -1;
	if (method->passthrough && pp_method_pass_init(io, err) != 0)
		return -1;
	if (method->write == PP_WRITE_URING || method->write == PP_WRITE_URING_LINKED)
		return init_ring(io, err);
	return method->write == PP_WRITE_MAPPED ? init_map(io, err) : 0;
}

void pp_method_io_like(struct pp_method_io *io, const struct pp_method_io *base, int fd)
{
	*io = *base;
	io->fd = fd;
	io->shares = true;
	io->from = io->to = io->size_bytes = 0;
	io->map = NULL;
	io->map_bytes = 0;
}

void pp_method_io_release(struct pp_method_io *io)
{
	if (io->ring && !io->shares) {
		io_uring_queue_exit(io->ring);
		free(io->ring);
	}
	if (io->map)
		munmap(io->map, io->map_bytes);
	if (io->staging_fd >= 0 && !io->shares)
		close(io->staging_fd);
	io->ring = NULL;
	io->map = NULL;
	io->staging_fd = -1;
}
