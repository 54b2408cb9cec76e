/* SPDX-License-Identifier: MIT
 *
 * The calls of Windows that writing and syncing rest on, as a struct of function pointers, so that
 * what is decided by their answers can be tested anywhere: a call that this Windows does not
 * export, a file system that refuses a flag, a write that is short. No header of Windows is needed
 * here; win_calls_win.c has the calls themselves.
 *
 * Rests on Microsoft's documentation: WriteFile, FlushFileBuffers, CreateFileMapping,
 * FlushViewOfFile, NtFlushBuffersFileEx (driver documentation), BuildIoRingWriteFile,
 * BuildIoRingFlushFile, SubmitIoRing. Numbers stand here because mingw's headers lack some; the live
 * file checks those that they have.
 *
 * A Win32 code is GetLastError's, 0 for success. An NTSTATUS is kept whole: 0 is success, and all
 * else is none, since a call that is still pending is not done.
 */
#ifndef PP_CORE_WIN_CALLS_H
#define PP_CORE_WIN_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NtFlushBuffersFileEx, Flags */
#define PP_WIN_FLUSH_DATA_ONLY      0x01u /* FLUSH_FLAGS_FILE_DATA_ONLY */
#define PP_WIN_FLUSH_NO_SYNC        0x02u /* FLUSH_FLAGS_NO_SYNC */
#define PP_WIN_FLUSH_DATA_SYNC_ONLY 0x04u /* FLUSH_FLAGS_FILE_DATA_SYNC_ONLY, Windows 10 1607 */

/* CreateFile, dwFlagsAndAttributes */
#define PP_WIN_WRITE_THROUGH 0x80000000u
#define PP_WIN_NO_BUFFERING  0x20000000u

/* IORING_VERSION, FILE_FLUSH_MODE, FILE_WRITE_FLAGS, IORING_SQE_FLAGS */
#define PP_WIN_IORING_VERSION_3     300u /* the first with writes and flushes */
#define PP_WIN_FILE_FLUSH_DEFAULT   0u   /* as FlushFileBuffers */
#define PP_WIN_FILE_WRITE_NONE      0u
#define PP_WIN_IOSQE_NONE           0u
#define PP_WIN_IOSQE_DRAIN          1u   /* IOSQE_FLAGS_DRAIN_PRECEDING_OPS */

/* winerror.h */
#define PP_WIN_INVALID_FUNCTION     1u
#define PP_WIN_FILE_NOT_FOUND       2u
#define PP_WIN_PATH_NOT_FOUND       3u
#define PP_WIN_ACCESS_DENIED        5u
#define PP_WIN_NOT_SUPPORTED        50u
#define PP_WIN_INVALID_PARAMETER    87u
#define PP_WIN_NOT_IMPLEMENTED      120u

/* ntstatus.h */
#define PP_WIN_STATUS_NOT_IMPLEMENTED        0xC0000002u
#define PP_WIN_STATUS_INVALID_PARAMETER      0xC000000Du
#define PP_WIN_STATUS_INVALID_DEVICE_REQUEST 0xC0000010u
#define PP_WIN_STATUS_NOT_SUPPORTED          0xC00000BBu

struct pp_win_completion {
	uint64_t user;      /* as given with the entry */
	uint32_t result;    /* an HRESULT: 0 is success */
	uint64_t bytes;
};

struct pp_win_calls {
	/* At an offset, on a handle without FILE_FLAG_OVERLAPPED: returns when it is done. */
	uint32_t (*write)(void *file, const void *buf, uint32_t bytes, uint64_t offset,
		uint32_t *written);
	uint32_t (*flush)(void *handle);           /* FlushFileBuffers */
	uint32_t (*commit)(int fd);                /* _commit */
	bool (*has_nt_flush)(void);                /* ntdll exports NtFlushBuffersFileEx */
	uint32_t (*nt_flush)(void *file, uint32_t flags); /* an NTSTATUS */
	/* The volume that a file is on, opened so that it can be flushed. */
	uint32_t (*open_volume)(void *file, void **volume);
	void (*close)(void *handle);
	bool (*is_device)(void *file);             /* a disk, not a file */
	void (*fs_name)(void *file, char *name, size_t bytes); /* "NTFS"; "" if not told */

	uint32_t (*size)(void *file, uint64_t *bytes);
	uint32_t (*set_size)(void *file, uint64_t bytes);
	uint32_t (*map)(void *file, uint64_t bytes, uint8_t **view); /* to read and write */
	void (*unmap)(uint8_t *view);
	/* A store into the view; what would be an exception (no room, a read error) is a code. */
	uint32_t (*store)(uint8_t *at, const void *buf, uint32_t bytes);
	uint32_t (*flush_view)(uint8_t *at, uint64_t bytes);

	/* The highest version that this Windows has; 0 where KernelBase lacks any of the calls. */
	uint32_t (*ring_version)(void);
	uint32_t (*ring_open)(uint32_t version, void **ring); /* HRESULTs, from here on */
	void (*ring_close)(void *ring);
	uint32_t (*ring_write)(void *ring, void *file, const void *buf, uint32_t bytes,
		uint64_t offset, uint32_t write_flags, uint64_t user, uint32_t sqe_flags);
	uint32_t (*ring_flush)(void *ring, void *file, uint32_t mode, uint64_t user,
		uint32_t sqe_flags);
	uint32_t (*ring_submit)(void *ring, uint32_t wait_for, uint32_t *submitted);
	uint32_t (*ring_pop)(void *ring, struct pp_win_completion *completion); /* 1: there is none */
};

/* This system's; on other systems than Windows there is none to link. */
extern const struct pp_win_calls pp_win_calls_live;

#endif
