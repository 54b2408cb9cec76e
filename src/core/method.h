/* SPDX-License-Identifier: MIT
 *
 * The methods table: each row is one way to make a write durable, with what the operating system's
 * own documentation promises of it (docs/method.md, M2.1). The writer acts by the row, the judge
 * judges by the row, the matrix prints the rows in this order. method_io.h makes the calls.
 */
#ifndef PP_CORE_METHOD_H
#define PP_CORE_METHOD_H

#include <stdbool.h>
#include <stddef.h>

enum pp_promise {
	PP_PROMISE_NA,     /* the call does not exist or does nothing on this kind of target */
	PP_PROMISE_NONE,   /* nothing: a control, or a buffered write */
	PP_PROMISE_DEVICE, /* handed to the device, perhaps only to its cache */
	PP_PROMISE_MEDIA,  /* survives power loss */
};

enum pp_target_kind { PP_TARGET_FILE, PP_TARGET_RAW };

/* Which operating system has a method. The control host knows those of all: a plan may name any. */
enum pp_system { PP_SYSTEM_ANY, PP_SYSTEM_LINUX, PP_SYSTEM_WINDOWS };
extern const enum pp_system pp_system_here;

/*
 * What one sync call covers (M2.1); a lane calls it once for each such unit of its group. A range is
 * the span of all that was written through the same descriptor since its last sync.
 */
enum pp_coverage { PP_COVERS_NOTHING, PP_COVERS_WRITE, PP_COVERS_RANGE, PP_COVERS_FILE, PP_COVERS_FS };

/* How the bytes get there. */
enum pp_write_call {
	PP_WRITE_PWRITE,       /* pwrite(2) */
	PP_WRITE_PWRITEV2,     /* pwritev2(2) with rw_flags */
	PP_WRITE_MAPPED,       /* a store into a shared mapping, mmap(2) */
	PP_WRITE_URING,        /* io_uring, with rw_flags */
	PP_WRITE_URING_LINKED, /* io_uring: a write, and linked behind it an fdatasync */
	PP_WRITE_NVME_FUA,     /* NVMe Write with FUA set, past the block layer */
	PP_WRITE_IORING,       /* Windows: IoRing, a write and a flush that drains what came before */
};

/*
 * The call after the write, if the method has one of its own. On Windows fdatasync is
 * NtFlushBuffersFileEx with FLUSH_FLAGS_FILE_DATA_SYNC_ONLY, fsync is FlushFileBuffers.
 */
enum pp_sync_call {
	PP_SYNC_NONE, PP_SYNC_FDATASYNC, PP_SYNC_FSYNC,
	PP_SYNC_MSYNC, PP_SYNC_FILE_RANGE, PP_SYNC_SYNCFS, PP_SYNC_SYNC,
	PP_SYNC_NVME_FLUSH, /* NVMe Flush, past the block layer */
	PP_SYNC_SCSI_CACHE, /* SCSI SYNCHRONIZE CACHE(10), past the block layer */
	/* Windows: */
	PP_SYNC_COMMIT,     /* _commit, the C library's */
	PP_SYNC_VOLUME,     /* FlushFileBuffers of the volume */
	PP_SYNC_VIEW,       /* FlushViewOfFile, then FlushFileBuffers */
	PP_SYNC_NT_DATA_ONLY, /* NtFlushBuffersFileEx, FLUSH_FLAGS_FILE_DATA_ONLY */
	PP_SYNC_NT_NO_SYNC, /* NtFlushBuffersFileEx, FLUSH_FLAGS_NO_SYNC */
	PP_SYNC_CALLS
};

/* Of pwritev2(2) and io_uring, as the kernel numbers them; headers may be older. */
#define PP_RWF_DSYNC     0x02
#define PP_RWF_SYNC      0x04
#define PP_RWF_ATOMIC    0x40 /* since Linux 6.11 */
#define PP_RWF_DONTCACHE 0x80 /* since Linux 6.14 */

struct pp_method {
	const char *name;        /* whole name, " (direct)" included */
	enum pp_system system;   /* the only one that has it, or PP_SYSTEM_ANY */
	bool direct;             /* O_DIRECT; FILE_FLAG_NO_BUFFERING */
	/*
	 * Each write is synchronised as O_DSYNC (FILE_FLAG_WRITE_THROUGH), or O_SYNC, does: opened so
	 * where the write is pwrite(2), else by what the write call says.
	 */
	bool o_dsync, o_sync;
	enum pp_write_call write;
	int rw_flags;            /* PP_RWF_*, for the calls that take them */
	enum pp_sync_call sync;  /* PP_SYNC_NONE where the sync is in the write, or nowhere */
	enum pp_promise promise_file;
	enum pp_promise promise_raw;
	enum pp_coverage coverage;
	bool control;            /* promises nothing and must lose if the rig works (M7) */
	/*
	 * On a pre-written block the kernel may send one FUA write and no flush (iomap's direct
	 * path since xfs 4.18, ext4 5.6): exposure then needs M8.1's flush rule.
	 */
	bool may_send_fua;
	/*
	 * The command itself goes to the drive, past the block layer: its counters do not see it, and
	 * no belief of the kernel about the cache stands in between.
	 */
	bool passthrough;
	bool untorn;             /* promises too that a record is whole or absent (M4.5) */
	const char *source;      /* the man page or kernel file that the promise rests on */
};

extern const struct pp_method pp_methods[];
extern const size_t pp_method_count;

/* The one lookup: the whole name must match. NULL if there is none. */
const struct pp_method *pp_method_find(const char *name);

/* The rows that a system has, in the table's order: how many; number i, or NULL. */
size_t pp_method_count_of(enum pp_system system);
const struct pp_method *pp_method_of(enum pp_system system, size_t i);
bool pp_method_on(const struct pp_method *method, enum pp_system system);
/* "this method is of Linux" or the like, for a row of another system. */
const char *pp_method_elsewhere(const struct pp_method *method);

enum pp_promise pp_method_promise(const struct pp_method *method, enum pp_target_kind kind);
const char *pp_promise_name(enum pp_promise promise);

/* True where the sync is in the write: such a method acks each record as its write returns (M2.2). */
bool pp_method_sync_in_write(const struct pp_method *method);

/* "fdatasync", "msync", ...; "none" */
const char *pp_sync_call_name(enum pp_sync_call call);

/* Flags for open(2), or pp_disk_open (src/core/disk_file.h), beyond the access mode. */
int pp_method_open_flags(const struct pp_method *method);

#endif
