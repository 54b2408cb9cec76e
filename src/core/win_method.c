/* SPDX-License-Identifier: MIT */
#include "win_method.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define USER_WRITE 1
#define USER_FLUSH 2
#define E_FAIL_HRESULT 0x80004005u /* where the system gave no code of its own */

_Static_assert(PP_WIN_FLUSH_DATA_ONLY == 1 && PP_WIN_FLUSH_NO_SYNC == 2 &&
	PP_WIN_FLUSH_DATA_SYNC_ONLY == 4, "NtFlushBuffersFileEx, Flags");
_Static_assert(PP_WIN_IORING_VERSION_3 == 300 && PP_WIN_IOSQE_DRAIN == 1 &&
	PP_WIN_FILE_FLUSH_DEFAULT == 0, "ntioring_x.h, ioringapi.h");

bool pp_win_is_refusal(uint32_t code)
{
	return code == PP_WIN_INVALID_FUNCTION || code == PP_WIN_NOT_SUPPORTED ||
		code == PP_WIN_INVALID_PARAMETER || code == PP_WIN_NOT_IMPLEMENTED;
}

bool pp_win_is_nt_refusal(uint32_t status)
{
	return status == PP_WIN_STATUS_NOT_IMPLEMENTED || status == PP_WIN_STATUS_INVALID_PARAMETER ||
		status == PP_WIN_STATUS_INVALID_DEVICE_REQUEST || status == PP_WIN_STATUS_NOT_SUPPORTED;
}

int64_t pp_win_os_code(uint32_t code)
{
	if (code == PP_WIN_FILE_NOT_FOUND || code == PP_WIN_PATH_NOT_FOUND)
		return ENOENT;
	return 0x80070000LL | (code & 0xffff);
}

/* 0 for 0; -1 with the code for anything else: of a Win32 code, of an HRESULT or NTSTATUS. */
static int done(uint32_t code, int64_t *os_code)
{
	if (code == 0)
		return 0;
	*os_code = pp_win_os_code(code);
	return -1;
}

static int status_done(uint32_t status, int64_t *os_code)
{
	if (status == 0)
		return 0;
	*os_code = status;
	return -1;
}

/* ---- writes ---------------------------------------------------------------------------------- */

static int64_t write_plain(struct pp_method_io *io, const void *buf, uint32_t bytes,
	uint64_t offset, int64_t *os_code)
{
	uint32_t written = 0;

	if (done(io->win->write(io->win_file, buf, bytes, offset, &written), os_code) != 0)
		return -1;
	return written;
}

static int map_whole(struct pp_method_io *io, int64_t *os_code)
{
	if (io->map)
		io->win->unmap(io->map);
	io->map = NULL;
	io->map_bytes = 0;
	if (done(io->win->map(io->win_file, io->size_bytes, &io->map), os_code) != 0) {
		io->map = NULL;
		return -1;
	}
	io->map_bytes = io->size_bytes;
	return 0;
}

static int64_t write_mapped(struct pp_method_io *io, const void *buf, uint32_t bytes,
	uint64_t offset, int64_t *os_code)
{
	uint64_t end = offset + bytes;

	if (end > io->size_bytes) {
		if (done(io->win->set_size(io->win_file, end), os_code) != 0)
			return -1;
		io->size_bytes = end;
	}
	if (end > io->map_bytes && map_whole(io, os_code) != 0)
		return -1;
	return done(io->win->store(io->map + offset, buf, bytes), os_code) == 0 ? (int64_t)bytes : -1;
}

/* Both answers, in whichever order they come. */
static int take_completions(struct pp_method_io *io, struct pp_win_completion *write,
	struct pp_win_completion *flush, int64_t *os_code)
{
	struct pp_win_completion one;
	unsigned seen = 0;

	while (seen != (USER_WRITE | USER_FLUSH)) {
		uint32_t result = io->win->ring_pop(io->win_ring, &one);

		/* Less than was waited for, or what was never asked for: the ring is not to be trusted. */
		if (result == 1 || (result == 0 && one.user != USER_WRITE && one.user != USER_FLUSH))
			result = E_FAIL_HRESULT;
		if (status_done(result, os_code) != 0)
			return -1;
		*(one.user == USER_WRITE ? write : flush) = one;
		seen |= (unsigned)one.user;
	}
	return 0;
}

static int64_t write_ring(struct pp_method_io *io, const void *buf, uint32_t bytes,
	uint64_t offset, int64_t *os_code)
{
	const struct pp_win_calls *c = io->win;
	struct pp_win_completion write = { 0 }, flush = { 0 };
	uint32_t submitted = 0;

	if (status_done(c->ring_write(io->win_ring, io->win_file, buf, bytes, offset,
		PP_WIN_FILE_WRITE_NONE, USER_WRITE, PP_WIN_IOSQE_NONE), os_code) != 0 ||
		status_done(c->ring_flush(io->win_ring, io->win_file, PP_WIN_FILE_FLUSH_DEFAULT,
		USER_FLUSH, PP_WIN_IOSQE_DRAIN), os_code) != 0 ||
		status_done(c->ring_submit(io->win_ring, 2, &submitted), os_code) != 0)
		return -1;
	if (submitted != 2 || take_completions(io, &write, &flush, os_code) != 0) {
		if (submitted != 2)
			*os_code = E_FAIL_HRESULT;
		return -1;
	}
	if (status_done(write.result, os_code) != 0)
		return -1;
	if (write.bytes == bytes && status_done(flush.result, os_code) != 0)
		return -1;
	return (int64_t)write.bytes;
}

static int64_t (*const writes[])(struct pp_method_io *io, const void *buf, uint32_t bytes,
	uint64_t offset, int64_t *os_code) = {
	[PP_WRITE_PWRITE] = write_plain,
	[PP_WRITE_MAPPED] = write_mapped,
	[PP_WRITE_IORING] = write_ring,
};

int64_t pp_win_method_write(struct pp_method_io *io, const void *buf, uint32_t bytes,
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

static uint32_t sync_none(struct pp_method_io *io)
{
	(void)io;
	return 0;
}

static uint32_t sync_all(struct pp_method_io *io)
{
	return io->win->flush(io->win_file);
}

static uint32_t sync_commit(struct pp_method_io *io)
{
	return io->win->commit(io->fd);
}

static uint32_t sync_volume(struct pp_method_io *io)
{
	return io->win->flush(io->win_volume);
}

/* Microsoft: FlushViewOfFile does not wait for the hardware; FlushFileBuffers does. */
static uint32_t sync_view(struct pp_method_io *io)
{
	uint32_t code = io->to == io->from ? 0
		: io->win->flush_view(io->map + io->from, io->to - io->from);

	return code ? code : io->win->flush(io->win_file);
}

static uint32_t sync_data(struct pp_method_io *io)
{
	return io->win->nt_flush(io->win_file, PP_WIN_FLUSH_DATA_SYNC_ONLY);
}

static uint32_t sync_data_only(struct pp_method_io *io)
{
	return io->win->nt_flush(io->win_file, PP_WIN_FLUSH_DATA_ONLY);
}

static uint32_t sync_no_sync(struct pp_method_io *io)
{
	return io->win->nt_flush(io->win_file, PP_WIN_FLUSH_NO_SYNC);
}

/* What each sync call is, and which flag of NtFlushBuffersFileEx it needs. One without a row must not
 * pass for done. */
static const struct {
	uint32_t (*sync)(struct pp_method_io *io);
	uint32_t nt_flag;
} syncs[PP_SYNC_CALLS] = {
	[PP_SYNC_NONE] = { sync_none, 0 },
	[PP_SYNC_FDATASYNC] = { sync_data, PP_WIN_FLUSH_DATA_SYNC_ONLY },
	[PP_SYNC_FSYNC] = { sync_all, 0 },
	[PP_SYNC_COMMIT] = { sync_commit, 0 },
	[PP_SYNC_VOLUME] = { sync_volume, 0 },
	[PP_SYNC_VIEW] = { sync_view, 0 },
	[PP_SYNC_NT_DATA_ONLY] = { sync_data_only, PP_WIN_FLUSH_DATA_ONLY },
	[PP_SYNC_NT_NO_SYNC] = { sync_no_sync, PP_WIN_FLUSH_NO_SYNC },
};

int pp_win_method_sync(struct pp_method_io *io, int64_t *os_code)
{
	uint32_t code = syncs[io->method->sync].sync(io);

	io->from = io->to = 0;
	return syncs[io->method->sync].nt_flag ? status_done(code, os_code) : done(code, os_code);
}

/* ---- can it be had here? --------------------------------------------------------------------- */

/* "NTFS", for the reason beside an n/a. */
static const char *fs_of(const struct pp_method_io *io, char name[32])
{
	name[0] = '\0';
	io->win->fs_name(io->win_file, name, 32);
	return name[0] ? name : "this target";
}

/* A flush writes nothing, so it may be tried. */
static int probe_nt_flush(const struct pp_method_io *io, uint32_t flag, struct pp_error *err)
{
	char fs[32];
	uint32_t status;

	if (!io->win->has_nt_flush())
		return pp_fail(err, PP_ERR_UNSUPPORTED, "ntdll has no NtFlushBuffersFileEx here");
	if (!io->win_file)
		return 0;
	if (io->win->is_device(io->win_file))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "NtFlushBuffersFileEx with flag %u is for files, "
			"this is a device", flag);
	status = io->win->nt_flush(io->win_file, flag);
	if (status == 0)
		return 0;
	pp_fail(err, pp_win_is_nt_refusal(status) ? PP_ERR_UNSUPPORTED : PP_ERR_SYSTEM,
		"NtFlushBuffersFileEx with flag %u on %s: NTSTATUS 0x%08" PRIX32, flag, fs_of(io, fs),
		status);
	if (err)
		err->os_code = status;
	return -1;
}

static int probe_flush(const struct pp_method_io *io, void *handle, const char *what,
	struct pp_error *err)
{
	uint32_t code = handle ? io->win->flush(handle) : 0;
	char fs[32];

	if (code == 0)
		return 0;
	pp_fail_os(err, pp_win_os_code(code), "FlushFileBuffers of the %s on %s", what, fs_of(io, fs));
	if (err && pp_win_is_refusal(code))
		err->class = PP_ERR_UNSUPPORTED;
	return -1;
}

static int init_volume(struct pp_method_io *io, struct pp_error *err)
{
	uint32_t code;

	if (!io->win_file)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "there is no file to find the volume by");
	code = io->win->open_volume(io->win_file, &io->win_volume);
	if (code == PP_WIN_ACCESS_DENIED)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "only an administrator may open the volume");
	if (code != 0) {
		pp_fail_os(err, pp_win_os_code(code), "cannot open the volume");
		if (err)
			err->class = PP_ERR_UNSUPPORTED;
		return -1;
	}
	return probe_flush(io, io->win_volume, "volume", err);
}

static int init_ring(struct pp_method_io *io, struct pp_error *err)
{
	uint32_t version = io->win->ring_version(), result;

	if (version == 0)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "this Windows has no IoRing");
	if (version < PP_WIN_IORING_VERSION_3)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "IoRing here is version %" PRIu32 ", which "
			"cannot write: Windows 11 22H2 has it", version);
	result = io->win->ring_open(PP_WIN_IORING_VERSION_3, &io->win_ring);
	if (result == 0)
		return 0;
	io->win_ring = NULL;
	return pp_fail_os(err, result, "cannot make an IoRing");
}

static int init_map(struct pp_method_io *io, struct pp_error *err)
{
	uint32_t code = 0;
	int64_t os_code = 0;

	if (io->win_file)
		code = io->win->size(io->win_file, &io->size_bytes);
	if (code != 0)
		return pp_fail_os(err, pp_win_os_code(code), "cannot find the size to map");
	if (io->size_bytes && map_whole(io, &os_code) != 0) {
		pp_fail_os(err, os_code, "cannot map it");
		if (err && pp_win_is_refusal((uint32_t)os_code & 0xffff))
			err->class = PP_ERR_UNSUPPORTED;
		return -1;
	}
	return probe_flush(io, io->win_file, "file", err);
}

static int set_up(struct pp_method_io *io, struct pp_error *err)
{
	const struct pp_method *m = io->method;

	if (m->write == PP_WRITE_IORING)
		return init_ring(io, err);
	if (m->write == PP_WRITE_MAPPED)
		return init_map(io, err);
	if (m->sync == PP_SYNC_VOLUME)
		return init_volume(io, err);
	if (syncs[m->sync].nt_flag)
		return probe_nt_flush(io, syncs[m->sync].nt_flag, err);
	return m->sync == PP_SYNC_NONE ? 0 : probe_flush(io, io->win_file, "file", err);
}

int pp_win_method_init(struct pp_method_io *io, const struct pp_win_calls *calls,
	const struct pp_method *method, int fd, void *file, struct pp_error *err)
{
	memset(io, 0, sizeof(*io));
	io->method = method;
	io->fd = fd;
	io->staging_fd = -1;
	io->win = calls;
	io->win_file = file;
	if (!pp_method_on(method, PP_SYSTEM_WINDOWS))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "%s", pp_method_elsewhere(method));
	if (set_up(io, err) == 0)
		return 0;
	pp_win_method_release(io);
	return -1;
}

void pp_win_method_like(struct pp_method_io *io, const struct pp_method_io *base, int fd,
	void *file)
{
	*io = *base;
	io->fd = fd;
	io->win_file = file;
	io->shares = true;
	io->from = io->to = io->size_bytes = 0;
	io->map = NULL;
	io->map_bytes = 0;
}

void pp_win_method_release(struct pp_method_io *io)
{
	if (io->map)
		io->win->unmap(io->map);
	if (io->win_ring && !io->shares)
		io->win->ring_close(io->win_ring);
	if (io->win_volume && !io->shares)
		io->win->close(io->win_volume);
	io->map = NULL;
	io->map_bytes = 0;
	io->win_ring = io->win_volume = NULL;
}
