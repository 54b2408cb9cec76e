/* SPDX-License-Identifier: MIT */
#include "method_io.h"

#include "handle_win.h"
#include "win_method.h"

static void *handle_or_null(int fd)
{
	return fd < 0 ? NULL : pp_handle_of(fd);
}

int pp_method_io_init(struct pp_method_io *io, const struct pp_method *method, int fd,
	struct pp_error *err)
{
	return pp_win_method_init(io, &pp_win_calls_live, method, fd, handle_or_null(fd), err);
}

void pp_method_io_like(struct pp_method_io *io, const struct pp_method_io *base, int fd)
{
	pp_win_method_like(io, base, fd, handle_or_null(fd));
}

void pp_method_io_release(struct pp_method_io *io)
{
	pp_win_method_release(io);
}

int64_t pp_method_io_write(struct pp_method_io *io, const void *buf, uint32_t bytes,
	uint64_t offset, int64_t *os_code)
{
	return pp_win_method_write(io, buf, bytes, offset, os_code);
}

int pp_method_io_sync(struct pp_method_io *io, int64_t *os_code)
{
	return pp_win_method_sync(io, os_code);
}
