/* SPDX-License-Identifier: MIT
 *
 * Promises are the documentation's, not our experience with drives: fsync(2), fdatasync(2), open(2)
 * (O_DSYNC, O_SYNC: "synchronized I/O data/file integrity completion"), and the kernel's
 * Documentation/block/writeback_cache_control.rst for what a flush and FUA ask of a drive.
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
	{ .name = "open_sync", .o_sync = true, .promise_file = PP_PROMISE_MEDIA,
		.promise_raw = PP_PROMISE_MEDIA, .coverage = PP_COVERS_WRITE,
		.source = "open(2), O_SYNC" },
	{ .name = "open_sync (direct)", .direct = true, .o_sync = true,
		.promise_file = PP_PROMISE_MEDIA, .promise_raw = PP_PROMISE_MEDIA,
		.coverage = PP_COVERS_WRITE, .source = "open(2), O_SYNC" },
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
