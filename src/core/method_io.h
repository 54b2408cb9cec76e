/* SPDX-License-Identifier: MIT
 *
 * The calls of a method on one open descriptor: what lanes and the speed matrix write and sync by,
 * so that what is measured is what is judged.
 *
 * Rests on pwrite(2), pwritev2(2), io_uring_enter(2) (a write and a sync in one submission are
 * unordered unless they are linked; a short write breaks the link), msync(2), sync_file_range(2),
 * <linux/nvme_ioctl.h>, the NVMe NVM Command Set (Write 01h, FUA; Flush 00h), <scsi/sg.h>, SBC-4
 * (SYNCHRONIZE CACHE (10)).
 *
 * Nothing is retried, nothing falls back: a call that this kernel, file system or device does not
 * have must never pass for one that was made. One thread uses one struct.
 */
#ifndef PP_CORE_METHOD_IO_H
#define PP_CORE_METHOD_IO_H

#include <stdint.h>

#include "error.h"
#include "method.h"

struct io_uring;
struct pp_win_calls;

struct pp_method_io {
	const struct pp_method *method;
	int fd;                      /* the caller's */
	uint64_t from, to;           /* what was written since the last sync lies in here */
	uint64_t size_bytes;         /* of the target, where that is needed */
	bool shares;                 /* ring and staging_fd are another's */
	struct io_uring *ring;
	int staging_fd;              /* mapped writes: see method_io_linux.c */
	uint8_t *map;
	uint64_t map_bytes;
	uint32_t nvme_namespace, block_bytes; /* passthrough */
	const struct pp_win_calls *win;       /* Windows: see win_method.h */
	void *win_file, *win_volume, *win_ring; /* the first is the caller's */
};

/*
 * Takes fd, opened with pp_method_open_flags, and finds out whether method can be had here without
 * writing anything: PP_ERR_UNSUPPORTED with the reason where kernel, file system or device has it
 * not. fd stays the caller's and must outlive it. After failure nothing needs a release.
 */
int pp_method_io_init(struct pp_method_io *io, const struct pp_method *method, int fd,
	struct pp_error *err);
/*
 * The same for a new, empty file beside the one that base was asked about; asks nothing again. It
 * uses what base has set up, which must outlive it.
 */
void pp_method_io_like(struct pp_method_io *io, const struct pp_method_io *base, int fd);
void pp_method_io_release(struct pp_method_io *io);

/* Bytes written, or -1 with the system's code in *os_code; where the sync is in the write, it is done. */
int64_t pp_method_io_write(struct pp_method_io *io, const void *buf, uint32_t bytes,
	uint64_t offset, int64_t *os_code);
/* The method's own sync, if it has one: 0, or -1 with the system's code. */
int pp_method_io_sync(struct pp_method_io *io, int64_t *os_code);

/* Private to method_io_linux.c and method_pass_linux.c. */
int pp_method_pass_init(struct pp_method_io *io, struct pp_error *err);
int64_t pp_method_nvme_write(struct pp_method_io *io, const void *buf, uint32_t bytes,
	uint64_t offset, int64_t *os_code);
int pp_method_nvme_flush(struct pp_method_io *io, int64_t *os_code);
int pp_method_scsi_cache(struct pp_method_io *io, int64_t *os_code);

#endif
