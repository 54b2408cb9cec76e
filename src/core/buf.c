/* SPDX-License-Identifier: MIT */
#include "buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pp_buf_init(struct pp_buf *buf, size_t max_bytes)
{
	memset(buf, 0, sizeof(*buf));
	buf->max_bytes = max_bytes;
}

void pp_buf_release(struct pp_buf *buf)
{
	free(buf->data);
	pp_buf_init(buf, buf->max_bytes);
}

void pp_buf_clear(struct pp_buf *buf)
{
	buf->bytes = 0;
	buf->failed = false;
	if (buf->data)
		buf->data[0] = '\0';
}

static bool reserve(struct pp_buf *buf, size_t extra)
{
	size_t want = buf->capacity_bytes ? buf->capacity_bytes : 256;
	char *grown;

	if (buf->failed)
		return false;
	if (extra > buf->max_bytes || buf->bytes > buf->max_bytes - extra) {
		buf->failed = true;
		return false;
	}
	while (want < buf->bytes + extra + 1)
		want *= 2;
	if (want == buf->capacity_bytes)
		return true;
	grown = realloc(buf->data, want);
	if (!grown) {
		buf->failed = true;
		return false;
	}
	buf->data = grown;
	buf->capacity_bytes = want;
	return true;
}

void pp_buf_add(struct pp_buf *buf, const void *data, size_t bytes)
{
	if (!reserve(buf, bytes))
		return;
	if (bytes)
		memcpy(buf->data + buf->bytes, data, bytes);
	buf->bytes += bytes;
	buf->data[buf->bytes] = '\0';
}

void pp_buf_addf(struct pp_buf *buf, const char *fmt, ...)
{
	va_list ap, again;
	int need;

	va_start(ap, fmt);
	va_copy(again, ap);
	need = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	assert(need >= 0);
	if (reserve(buf, (size_t)need)) {
		vsnprintf(buf->data + buf->bytes, (size_t)need + 1, fmt, again);
		buf->bytes += (size_t)need;
	}
	va_end(again);
}

void pp_buf_consume(struct pp_buf *buf, size_t bytes)
{
	assert(bytes <= buf->bytes);
	if (bytes == 0)
		return;
	memmove(buf->data, buf->data + bytes, buf->bytes - bytes);
	buf->bytes -= bytes;
	buf->data[buf->bytes] = '\0';
}
