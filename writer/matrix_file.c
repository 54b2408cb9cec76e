/* SPDX-License-Identifier: MIT
 *
 * The file that the tests overwrite, and its disk.
 */
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>

#include "matrix_parts.h"
#include "src/core/clock.h"
#include "src/core/record.h"
#include "src/core/text.h"

static int check_space(const struct pp_matrix_config *config, struct pp_error *err)
{
	uint64_t needed = matrix_bytes_needed(config);
	char copy[4096];
	const char *folder;
	uint64_t free_bytes;
	int64_t code;

	if (snprintf(copy, sizeof(copy), "%s", config->path) >= (int)sizeof(copy))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", config->path);
	folder = dirname(copy);
	code = disk_free_bytes(folder, &free_bytes);
	if (code)
		return pp_fail_os(err, code, "cannot find the free space of '%s'", folder);
	if (free_bytes < needed)
		return pp_fail(err, PP_ERR_USAGE, "'%s' has %" PRIu64 " kB free, but the test needs %"
			PRIu64 " kB", folder, free_bytes >> 10, needed >> 10);
	return 0;
}

/*
 * 16 MB that no drive can compress, written and synced; in the small writes of pg_test_fsync, since
 * the page cache keeps a large write in large folios, and a rewrite of one is slower (ext4, 6.18).
 */
static int fill_file(struct matrix_bench *b, int fd, struct pp_error *err)
{
	struct pp_record record = { .cells = PP_MATRIX_BLOCK_BYTES / PP_CELL_BYTES };
	uint64_t done;
	int64_t code;

	if (pp_run_id_draw(&record.run, err) != 0)
		return -1;
	for (done = 0; done < PP_MATRIX_FILE_BYTES; done += PP_MATRIX_BLOCK_BYTES) {
		uint32_t n;

		record.offset = b->at + done;
		pp_record_fill(b->buf, &record);
		code = disk_write(fd, b->buf, PP_MATRIX_BLOCK_BYTES, record.offset, &n);
		if (code)
			return pp_fail_os(err, code, "cannot write '%s'", b->config->path);
		if (n != PP_MATRIX_BLOCK_BYTES)
			return pp_fail(err, PP_ERR_SYSTEM, "short write to '%s'", b->config->path);
	}
	code = disk_sync(fd);
	return code ? pp_fail_os(err, code, "cannot sync '%s'", b->config->path) : 0;
}

/*
 * O_EXCL: never somebody's file (regular), never somebody's device (open(2), block devices); a
 * proven target holds its device already.
 */
static int make(struct matrix_bench *b, struct pp_error *err)
{
	const char *path = b->config->path;
	bool raw = b->config->raw;
	int flags = O_RDWR | (raw && b->config->target ? 0 : O_EXCL) | (raw ? 0 : O_CREAT);
	int64_t code;
	int fd, rc;

	if (!raw && check_space(b->config, err) != 0)
		return -1;
	code = disk_open(path, flags, &fd);
	if (disk_code_of(code) == DISK_CODE_EXISTS)
		return pp_fail(err, PP_ERR_REFUSED, "'%s' exists: the test would overwrite and remove it; "
			"give another name", path);
	if (raw && disk_code_of(code) == DISK_CODE_BUSY)
		return pp_fail(err, PP_ERR_REFUSED, "'%s' is in use: something on it is mounted, or it is "
			"part of a RAID, a volume group or another device", path);
	if (code)
		return pp_fail_os(err, code, "cannot %s '%s'", raw ? "open" : "create", path);
	b->created = !raw;
	rc = b->config->target ? pp_target_prove_fd(b->config->target, fd, err) : 0;
	if (rc == 0)
		rc = fill_file(b, fd, err);
	code = disk_close(fd);
	return code && rc == 0 ? pp_fail_os(err, code, "cannot close '%s'", path) : rc;
}

static void look_at_disk(struct matrix_bench *b)
{
	struct pp_matrix *matrix = b->matrix;
	struct pp_disk_counters counters;
	struct pp_error why = { 0 };

	if (pp_disk_source_open(b->config->path, &b->disk, &why) != 0) {
		pp_text_copy(matrix->no_disk_reason, sizeof(matrix->no_disk_reason), why.text);
		pp_text_copy(matrix->no_trace_reason, sizeof(matrix->no_trace_reason), why.text);
		return;
	}
	pp_text_copy(matrix->disk, sizeof(matrix->disk), b->disk.name);
	matrix->no_flushes = matrix_read_disk(b, &counters) && !counters.has_flushes;
	if (b->config->pg || b->config->no_trace)
		pp_text_copy(matrix->no_trace_reason, sizeof(matrix->no_trace_reason), "not asked for");
	else if (pp_disk_trace_open(&b->trace, b->disk.name, &why) != 0)
		pp_text_copy(matrix->no_trace_reason, sizeof(matrix->no_trace_reason), why.text);
}

static int remove_file(struct matrix_bench *b, struct pp_error *err)
{
	int64_t code = disk_remove(b->config->path);

	return code ? pp_fail_os(err, code, "cannot remove '%s'", b->config->path) : 0;
}

static void look(struct matrix_bench *b)
{
	look_at_disk(b);
	b->matrix->logical_block_bytes = disk_direct_block(b->config->path);
	b->matrix->direct_works = true;
}

const struct pp_matrix_calls pp_matrix_calls_live = {
	.make = make, .remove = remove_file, .look = look, .code = disk_code_of,
	.op_begin = matrix_op_begin, .op_full = matrix_op_full, .op_make_room = matrix_op_make_room,
	.op_do = matrix_op_do, .op_end = matrix_op_end, .throughput = matrix_throughput,
	.now_ns = pp_clock_mono_ns, .sleep_ms = pp_clock_sleep_ms,
};
