/* SPDX-License-Identifier: MIT
 *
 * The methods on Windows (method_io.h), over struct pp_win_calls. As there: nothing is retried and
 * nothing falls back; what is not there, or is refused, is PP_ERR_UNSUPPORTED with the reason and
 * the system's own code. Compiled everywhere, so that it is tested everywhere.
 *
 * Which call a row of the table makes:
 *
 *	open_datasync       nothing: the handle was opened with FILE_FLAG_WRITE_THROUGH
 *	fdatasync           NtFlushBuffersFileEx, FLUSH_FLAGS_FILE_DATA_SYNC_ONLY. Before Windows 10
 *	                    1607 an unknown flag that was taken for a full flush: more, never less
 *	fsync               FlushFileBuffers
 *	fsync_writethrough  _commit of the C library, which is what PostgreSQL calls by that name
 *	volume flush        FlushFileBuffers of the volume's handle
 *	FlushViewOfFile     of the range that was stored to, then FlushFileBuffers: the first starts
 *	                    the writes, only the second waits for the disk
 *	IoRing write+flush  two entries in one submission; the flush drains what came before it,
 *	                    without which it would cover nothing
 */
#ifndef PP_CORE_WIN_METHOD_H
#define PP_CORE_WIN_METHOD_H

#include "method_io.h"
#include "win_calls.h"

/* As pp_method_io_init. file is fd's handle; NULL where there is no file to ask. */
int pp_win_method_init(struct pp_method_io *io, const struct pp_win_calls *calls,
	const struct pp_method *method, int fd, void *file, struct pp_error *err);
/* As pp_method_io_like. */
void pp_win_method_like(struct pp_method_io *io, const struct pp_method_io *base, int fd,
	void *file);
void pp_win_method_release(struct pp_method_io *io);

int64_t pp_win_method_write(struct pp_method_io *io, const void *buf, uint32_t bytes,
	uint64_t offset, int64_t *os_code);
int pp_win_method_sync(struct pp_method_io *io, int64_t *os_code);

/* True for a code that means "there is no such thing here", and no failure of the device. */
bool pp_win_is_refusal(uint32_t win32_code);
bool pp_win_is_nt_refusal(uint32_t status);
/*
 * How a code travels as os_code, so that none is taken for another's: a Win32 code as the HRESULT of
 * its facility (0x8007....), but for "no such file", which is ENOENT everywhere; an HRESULT or an
 * NTSTATUS as it is.
 */
int64_t pp_win_os_code(uint32_t win32_code);

#endif
