/* SPDX-License-Identifier: MIT
 *
 * A growing byte buffer with a stated maximum. The caller owns the struct: init, use, release.
 * Appending past max_bytes or failing to allocate sets `failed` and appends nothing more, so a
 * whole message can be built and checked once at the end.
 */
#ifndef PP_CORE_BUF_H
#define PP_CORE_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "os.h"

struct pp_buf {
	char *data; /* always terminated by a NUL that bytes does not count; NULL while empty */
	size_t bytes;
	size_t capacity_bytes;
	size_t max_bytes;
	bool failed;
};

void pp_buf_init(struct pp_buf *buf, size_t max_bytes);
void pp_buf_release(struct pp_buf *buf);
void pp_buf_clear(struct pp_buf *buf);
void pp_buf_add(struct pp_buf *buf, const void *data, size_t bytes);
void pp_buf_addf(struct pp_buf *buf, const char *fmt, ...)
	__attribute__((format(PP_FORMAT, 2, 3)));
/* Drops the first bytes of the buffer (what a parser has consumed). */
void pp_buf_consume(struct pp_buf *buf, size_t bytes);

#endif
