/* SPDX-License-Identifier: MIT
 *
 * Promises are the documentation's, not our experience with drives: fsync(2), fdatasync(2), open(2)
 * (O_DSYNC, O_SYNC: "synchronized I/O data/file integrity completion"), and the kernel's
 * Documentation/block/writeback_cache_control.rst for what a flush and FUA ask of a drive. Of syncfs
 * and sync, Linux waits for the data and lets the file system flush. On a device node both sync the
 * file system that the node is in: n/a (M2.1).
 *
 * On Windows the same names are the calls that PostgreSQL makes by them. Microsoft documents
 * FILE_FLAG_WRITE_THROUGH as "will not go through any intermediate cache" (CreateFile), and with
 * FILE_FLAG_NO_BUFFERING as a request to the hardware's cache too (Caching Behavior): both are taken
 * at their word. Of NtFlushBuffersFileEx's flags two leave "the underlying storage" out: `device`.
 * FlushFileBuffers and the data-sync-only flag flush its cache.
 */
#include "method.h"

#include <string.h>

const struct pp_method pp_methods[] = {
	{ .name = "write", .promise_file = PP_PROMISE_NONE, .promise_raw = PP_PROMISE_NONE,
		.coverage = PP_COVERS_NOTHING, .control = true, .source = "write(2), NOTES" },
	{ .name = "direct", .direct = true, .promise_file = PP_PROMISE_NONE,
		.promise_raw = PP_PROMISE_NONE, .coverage = PP_COVERS_NOTHING, .control = true,
		.source = "open(2), O_DIRECT" },
	{ .name = "open_datasync", .o_dsync = true, .promise_file = PP_PROMISE_MEDIA,
		.promise_raw = PP_PROMISE_MEDIA, .coverage = PP_COVERS_WRITE,
		.source = "open(2), O_DSYNC" },
	{ .name = "open_datasync (direct)", .direct = true, .o_dsync = true,
		.promise_file = PP_PROMISE_MEDIA, .promise_raw = PP_PROMISE_MEDIA,
		.coverage = PP_COVERS_WRITE, .may_send_fua = true, .source = "open(2), O_DSYNC" },
	{ .name = "fdatasync", .sync = PP_SYNC_FDATASYNC, .promise_file = PP_PROMISE_MEDIA,
		.promise_raw = PP_PROMISE_MEDIA, .coverage = PP_COVERS_FILE, .source = "fdatasync(2)" },
	{ .name = "fdatasync (direct)", .direct = true, .sync = PP_SYNC_FDATASYNC,
		.promise_file = PP_PROMISE_MEDIA, .promise_raw = PP_PROMISE_MEDIA,
		.coverage = PP_COVERS_FILE, .source = "fdatasync(2)" },
	{ .name = "fsync", .sync = PP_SYNC_FSYNC, .promise_file = PP_PROMISE_MEDIA,
		.promise_raw = PP_PROMISE_MEDIA, .coverage = PP_COVERS_FILE, .source = "fsync(2)" },
	{ .name = "fsync (direct)", .direct = true, .sync = PP_SYNC_FSYNC,
		.promise_file = PP_PROMISE_MEDIA, .promise_raw = PP_PROMISE_MEDIA,
		.coverage = PP_COVERS_FILE, .source = "fsync(2)" },
	{ .name = "open_sync", .system = PP_SYSTEM_LINUX,
		.o_sync = true, .promise_file = PP_PROMISE_MEDIA,
		.promise_raw = PP_PROMISE_MEDIA, .coverage = PP_COVERS_WRITE,
		.source = "open(2), O_SYNC" },
	{ .name = "open_sync (direct)", .system = PP_SYSTEM_LINUX,
		.direct = true, .o_sync = true,
		.promise_file = PP_PROMISE_MEDIA, .promise_raw = PP_PROMISE_MEDIA,
		.coverage = PP_COVERS_WRITE, .source = "open(2), O_SYNC" },
	{ .name = "RWF_DSYNC", .system = PP_SYSTEM_LINUX,
		.o_dsync = true, .write = PP_WRITE_PWRITEV2, .rw_flags = PP_RWF_DSYNC,
		.promise_file = PP_PROMISE_MEDIA, .promise_raw = PP_PROMISE_MEDIA,
		.coverage = PP_COVERS_WRITE, .source = "pwritev2(2), RWF_DSYNC" },
	{ .name = "RWF_DSYNC (direct)", .system = PP_SYSTEM_LINUX,
		.direct = true, .o_dsync = true, .write = PP_WRITE_PWRITEV2,
		.rw_flags = PP_RWF_DSYNC, .promise_file = PP_PROMISE_MEDIA,
		.promise_raw = PP_PROMISE_MEDIA, .coverage = PP_COVERS_WRITE, .may_send_fua = true,
		.source = "pwritev2(2), RWF_DSYNC" },
	{ .name = "RWF_SYNC", .system = PP_SYSTEM_LINUX,
		.o_sync = true, .write = PP_WRITE_PWRITEV2, .rw_flags = PP_RWF_SYNC,
		.promise_file = PP_PROMISE_MEDIA, .promise_raw = PP_PROMISE_MEDIA,
		.coverage = PP_COVERS_WRITE, .source = "pwritev2(2), RWF_SYNC" },
	{ .name = "RWF_ATOMIC+RWF_DSYNC (direct)", .system = PP_SYSTEM_LINUX,
		.direct = true, .o_dsync = true,
		.write = PP_WRITE_PWRITEV2, .rw_flags = PP_RWF_ATOMIC | PP_RWF_DSYNC,
		.promise_file = PP_PROMISE_MEDIA, .promise_raw = PP_PROMISE_MEDIA,
		.coverage = PP_COVERS_WRITE, .may_send_fua = true, .untorn = true,
		.source = "pwritev2(2), RWF_ATOMIC, RWF_DSYNC" },
	{ .name = "RWF_DONTCACHE+fdatasync", .system = PP_SYSTEM_LINUX,
		.write = PP_WRITE_PWRITEV2, .rw_flags = PP_RWF_DONTCACHE,
		.sync = PP_SYNC_FDATASYNC, .promise_file = PP_PROMISE_MEDIA,
		.promise_raw = PP_PROMISE_MEDIA, .coverage = PP_COVERS_FILE, .source = "fdatasync(2)" },
	{ .name = "io_uring write+fdatasync", .system = PP_SYSTEM_LINUX,
		.o_dsync = true, .write = PP_WRITE_URING_LINKED,
		.promise_file = PP_PROMISE_MEDIA, .promise_raw = PP_PROMISE_MEDIA,
		.coverage = PP_COVERS_FILE, .source = "io_uring_enter(2), IORING_OP_FSYNC, IOSQE_IO_LINK" },
	{ .name = "io_uring RWF_DSYNC (direct)", .system = PP_SYSTEM_LINUX,
		.direct = true, .o_dsync = true,
		.write = PP_WRITE_URING, .rw_flags = PP_RWF_DSYNC, .promise_file = PP_PROMISE_MEDIA,
		.promise_raw = PP_PROMISE_MEDIA, .coverage = PP_COVERS_WRITE, .may_send_fua = true,
		.source = "io_uring_enter(2), pwritev2(2), RWF_DSYNC" },
	{ .name = "msync", .system = PP_SYSTEM_LINUX,
		.write = PP_WRITE_MAPPED, .sync = PP_SYNC_MSYNC,
		.promise_file = PP_PROMISE_MEDIA, .promise_raw = PP_PROMISE_MEDIA,
		.coverage = PP_COVERS_RANGE, .source = "msync(2), MS_SYNC" },
	{ .name = "sync_file_range", .system = PP_SYSTEM_LINUX,
		.sync = PP_SYNC_FILE_RANGE, .promise_file = PP_PROMISE_DEVICE,
		.promise_raw = PP_PROMISE_DEVICE, .coverage = PP_COVERS_RANGE,
		.source = "sync_file_range(2), Warning" },
	{ .name = "syncfs", .system = PP_SYSTEM_LINUX,
		.sync = PP_SYNC_SYNCFS, .promise_file = PP_PROMISE_MEDIA,
		.promise_raw = PP_PROMISE_NA, .coverage = PP_COVERS_FS, .source = "syncfs(2)" },
	{ .name = "sync", .system = PP_SYSTEM_LINUX,
		.sync = PP_SYNC_SYNC, .promise_file = PP_PROMISE_MEDIA,
		.promise_raw = PP_PROMISE_NA, .coverage = PP_COVERS_FS, .source = "sync(2), NOTES" },
	{ .name = "NVMe write FUA", .system = PP_SYSTEM_LINUX,
		.direct = true, .o_dsync = true, .write = PP_WRITE_NVME_FUA,
		.promise_file = PP_PROMISE_NA, .promise_raw = PP_PROMISE_MEDIA,
		.coverage = PP_COVERS_WRITE, .may_send_fua = true, .passthrough = true,
		.source = "NVMe NVM Command Set Specification, Write, FUA" },
	{ .name = "NVMe flush", .system = PP_SYSTEM_LINUX,
		.direct = true, .sync = PP_SYNC_NVME_FLUSH,
		.promise_file = PP_PROMISE_NA, .promise_raw = PP_PROMISE_MEDIA,
		.coverage = PP_COVERS_FILE, .passthrough = true,
		.source = "NVMe Base Specification, Flush" },
	{ .name = "SCSI SYNCHRONIZE CACHE", .system = PP_SYSTEM_LINUX,
		.direct = true, .sync = PP_SYNC_SCSI_CACHE,
		.promise_file = PP_PROMISE_NA, .promise_raw = PP_PROMISE_MEDIA,
		.coverage = PP_COVERS_FILE, .passthrough = true,
		.source = "SBC-4, SYNCHRONIZE CACHE (10)" },
	{ .name = "fsync_writethrough", .system = PP_SYSTEM_WINDOWS, .sync = PP_SYNC_COMMIT,
		.promise_file = PP_PROMISE_MEDIA, .promise_raw = PP_PROMISE_MEDIA,
		.coverage = PP_COVERS_FILE, .source = "_commit; FlushFileBuffers" },
	{ .name = "fsync_writethrough (direct)", .system = PP_SYSTEM_WINDOWS, .direct = true,
		.sync = PP_SYNC_COMMIT, .promise_file = PP_PROMISE_MEDIA,
		.promise_raw = PP_PROMISE_MEDIA, .coverage = PP_COVERS_FILE,
		.source = "_commit; FlushFileBuffers" },
	{ .name = "volume flush", .system = PP_SYSTEM_WINDOWS, .sync = PP_SYNC_VOLUME,
		.promise_file = PP_PROMISE_MEDIA, .promise_raw = PP_PROMISE_NA,
		.coverage = PP_COVERS_FS, .source = "FlushFileBuffers, of a volume handle" },
	{ .name = "volume flush (direct)", .system = PP_SYSTEM_WINDOWS, .direct = true,
		.sync = PP_SYNC_VOLUME, .promise_file = PP_PROMISE_MEDIA, .promise_raw = PP_PROMISE_NA,
		.coverage = PP_COVERS_FS, .source = "FlushFileBuffers, of a volume handle" },
	{ .name = "FlushViewOfFile", .system = PP_SYSTEM_WINDOWS, .write = PP_WRITE_MAPPED,
		.sync = PP_SYNC_VIEW, .promise_file = PP_PROMISE_MEDIA, .promise_raw = PP_PROMISE_NA,
		.coverage = PP_COVERS_RANGE, .source = "FlushViewOfFile, Remarks; FlushFileBuffers" },
	{ .name = "IoRing write+flush", .system = PP_SYSTEM_WINDOWS, .o_dsync = true,
		.write = PP_WRITE_IORING, .promise_file = PP_PROMISE_MEDIA,
		.promise_raw = PP_PROMISE_MEDIA, .coverage = PP_COVERS_FILE,
		.source = "BuildIoRingFlushFile, FILE_FLUSH_DEFAULT" },
	{ .name = "IoRing write+flush (direct)", .system = PP_SYSTEM_WINDOWS, .direct = true,
		.o_dsync = true, .write = PP_WRITE_IORING, .promise_file = PP_PROMISE_MEDIA,
		.promise_raw = PP_PROMISE_MEDIA, .coverage = PP_COVERS_FILE,
		.source = "BuildIoRingFlushFile, FILE_FLUSH_DEFAULT" },
	{ .name = "NtFlush DATA_ONLY", .system = PP_SYSTEM_WINDOWS, .sync = PP_SYNC_NT_DATA_ONLY,
		.promise_file = PP_PROMISE_DEVICE, .promise_raw = PP_PROMISE_NA,
		.coverage = PP_COVERS_FILE,
		.source = "NtFlushBuffersFileEx, FLUSH_FLAGS_FILE_DATA_ONLY" },
	{ .name = "NtFlush NO_SYNC", .system = PP_SYSTEM_WINDOWS, .sync = PP_SYNC_NT_NO_SYNC,
		.promise_file = PP_PROMISE_DEVICE, .promise_raw = PP_PROMISE_NA,
		.coverage = PP_COVERS_FILE, .source = "NtFlushBuffersFileEx, FLUSH_FLAGS_NO_SYNC" },
};
const size_t pp_method_count = sizeof(pp_methods) / sizeof(pp_methods[0]);

const struct pp_method *pp_method_find(const char *name)
{
	size_t i;

	for (i = 0; i < pp_method_count; i++)
		if (strcmp(pp_methods[i].name, name) == 0)
			return &pp_methods[i];
	return NULL;
}

bool pp_method_on(const struct pp_method *method, enum pp_system system)
{
	return method->system == PP_SYSTEM_ANY || method->system == system;
}

const struct pp_method *pp_method_of(enum pp_system system, size_t i)
{
	size_t k;

	for (k = 0; k < pp_method_count; k++)
		if (pp_method_on(&pp_methods[k], system) && i-- == 0)
			return &pp_methods[k];
	return NULL;
}

size_t pp_method_count_of(enum pp_system system)
{
	size_t i, count = 0;

	for (i = 0; i < pp_method_count; i++)
		count += pp_method_on(&pp_methods[i], system);
	return count;
}

const char *pp_method_elsewhere(const struct pp_method *method)
{
	return method->system == PP_SYSTEM_WINDOWS ? "only Windows has it" : "only Linux has it";
}

enum pp_promise pp_method_promise(const struct pp_method *method, enum pp_target_kind kind)
{
	return kind == PP_TARGET_RAW ? method->promise_raw : method->promise_file;
}

const char *pp_promise_name(enum pp_promise promise)
{
	static const char *const names[] = {
		[PP_PROMISE_NA] = "n/a",
		[PP_PROMISE_NONE] = "none",
		[PP_PROMISE_DEVICE] = "device",
		[PP_PROMISE_MEDIA] = "media",
	};

	return names[promise];
}

bool pp_method_sync_in_write(const struct pp_method *method)
{
	return method->sync == PP_SYNC_NONE;
}

const char *pp_sync_call_name(enum pp_sync_call call)
{
	static const char *const names[PP_SYNC_CALLS] = {
		[PP_SYNC_NONE] = "none",
		[PP_SYNC_FDATASYNC] = "fdatasync",
		[PP_SYNC_FSYNC] = "fsync",
		[PP_SYNC_MSYNC] = "msync",
		[PP_SYNC_FILE_RANGE] = "sync_file_range",
		[PP_SYNC_SYNCFS] = "syncfs",
		[PP_SYNC_SYNC] = "sync",
		[PP_SYNC_NVME_FLUSH] = "NVMe flush",
		[PP_SYNC_SCSI_CACHE] = "SYNCHRONIZE CACHE",
		[PP_SYNC_COMMIT] = "_commit",
		[PP_SYNC_VOLUME] = "FlushFileBuffers of the volume",
		[PP_SYNC_VIEW] = "FlushViewOfFile",
		[PP_SYNC_NT_DATA_ONLY] = "NtFlushBuffersFileEx",
		[PP_SYNC_NT_NO_SYNC] = "NtFlushBuffersFileEx",
	};

	return names[call];
}
