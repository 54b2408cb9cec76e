/* SPDX-License-Identifier: MIT */
#include "sim_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
	uint8_t *data;
	size_t bytes, room;
};

static int sink(void *ctx, const void *data, size_t bytes, struct pp_error *err)
{
	struct bytes *b = ctx;
	size_t room = 2 * (b->bytes + bytes);
	uint8_t *grown;

	if (b->bytes + bytes > b->room) {
		grown = realloc(b->data, room);
		if (!grown)
			return pp_fail_os(err, ENOMEM, "cannot keep a scan");
		b->data = grown;
		b->room = room;
	}
	memcpy(b->data + b->bytes, data, bytes);
	b->bytes += bytes;
	return 0;
}

struct pp_scan *pp_sim_scan_source(const struct pp_layout *layout, struct pp_scan_source *source,
	const struct pp_scan_range *ranges, size_t count, struct pp_error *err)
{
	struct bytes b = { 0 };

	if (pp_scan_make(layout, source, ranges, count, sink, &b, err) == 0)
		return pp_scan_parse(b.data, b.bytes, err);
	free(b.data);
	return NULL;
}
