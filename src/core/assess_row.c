/* SPDX-License-Identifier: MIT
 *
 * What a label means, and what a person says of a drive: for all forms of input.
 */
#include <stdlib.h>
#include <string.h>

#include "assess.h"
#include "text.h"

static enum pp_assess_kind kind_of(const struct pp_method *m)
{
	if (m->o_dsync || m->o_sync)
		return PP_ASSESS_WRITE_THROUGH;
	if (m->sync != PP_SYNC_NONE)
		return PP_ASSESS_FLUSH;
	return m->direct ? PP_ASSESS_DIRECT : PP_ASSESS_UNSYNCED;
}

void pp_assess_row_method(struct pp_assess_row *row, const struct pp_method *m)
{
	row->kind = kind_of(m);
	row->media = m->promise_file == PP_PROMISE_MEDIA || m->promise_raw == PP_PROMISE_MEDIA;
	row->may_send_fua = m->may_send_fua;
	row->passthrough = m->passthrough;
}

/* Names that are not of our table. */
static const struct {
	const char *label;
	enum pp_assess_kind kind;
	bool media;
} others[] = {
	{ "open_datasync (buffered)", PP_ASSESS_WRITE_THROUGH, true },
	{ "read", PP_ASSESS_READ, false },
	{ "sequential read", PP_ASSESS_READ, false },
	{ "sequential read (direct)", PP_ASSESS_READ, false },
	{ "random read", PP_ASSESS_READ, false },
	{ "random read (direct)", PP_ASSESS_READ, false },
	{ "sequential write", PP_ASSESS_WRITE, false },
	{ "sequential write (direct)", PP_ASSESS_WRITE, false },
	{ "random write", PP_ASSESS_WRITE, false },
	{ "random write (direct)", PP_ASSESS_WRITE, false },
};

void pp_assess_row_init(struct pp_assess_row *row, const char *label)
{
	const struct pp_method *m = pp_method_find(label);
	size_t i;

	memset(row, 0, sizeof(*row));
	row->threads = 1;
	row->in_place = true;
	row->flushes_per_op = row->fua_per_op = row->foreign_per_s = row->disk_bytes = -1;
	pp_text_copy(row->label, sizeof(row->label), label);
	if (m)
		pp_assess_row_method(row, m);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(others[i].label, label) == 0) {
			row->kind = others[i].kind;
			row->media = others[i].media;
		}
}

/* ---- facts ----------------------------------------------------------------------------------- */

int pp_assess_fact(const char *name, const char *value, struct pp_assess_facts *facts,
	struct pp_error *err)
{
	static const char *const caches[] = { [PP_ASSESS_CACHE_OFF] = "off",
		[PP_ASSESS_CACHE_ON] = "on", [PP_ASSESS_CACHE_PROTECTED] = "protected" };
	char *end;
	int i;

	if (strcmp(name, "link") == 0)
		return pp_link_parse(value, &facts->link) ? 0 : pp_fail(err, PP_ERR_USAGE,
			"link is '%s', expected the like of 'PCIe 3.0 x4', 'SATA 6.0 Gbps', 'USB 5000 Mbps' "
			"or '2000 MB/s'", value);
	if (strcmp(name, "rpm") == 0) {
		facts->rpm = strtod(value, &end);
		return end != value && !*end && facts->rpm >= 1000 && facts->rpm <= 30000 ? 0
			: pp_fail(err, PP_ERR_USAGE, "rpm is '%s', expected 1000 to 30000", value);
	}
	for (i = PP_ASSESS_CACHE_OFF; i <= PP_ASSESS_CACHE_PROTECTED; i++)
		if (strcmp(caches[i], value) == 0) {
			facts->cache = (enum pp_assess_cache)i;
			return 0;
		}
	return pp_fail(err, PP_ERR_USAGE, "cache is '%s', expected on, off or protected", value);
}
