/* SPDX-License-Identifier: MIT
 *
 * Orders on a drive's target while no lanes run on it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent_parts.h"
#include "src/core/clock.h"
#include "src/core/descriptor.h"
#include "verifier/scan_source.h"
#include "writer/matrix.h"

#define PROVE_PAUSE_MS 250
#define MATRIX_FILE    "plugpull.matrix"

static const struct pp_allow *allow_of(const struct agent_slot *slot)
{
	return &slot->session->config->allow;
}

static bool is_running(struct agent_slot *slot)
{
	bool running;

	pthread_mutex_lock(&slot->lock);
	running = slot->writer != NULL;
	pthread_mutex_unlock(&slot->lock);
	return running;
}

int agent_need_idle(struct agent_slot *slot, struct pp_error *err)
{
	if (!slot->proven)
		return pp_fail(err, PP_ERR_REFUSED, "the target of drive %u has not been proven",
			slot->index);
	if (is_running(slot) || is_running(agent_noise_slot(slot)))
		return pp_fail(err, PP_ERR_REFUSED, "a run is on drive %u: stop it first", slot->index);
	return 0;
}

static int need_released(const struct agent_slot *slot, struct pp_error *err)
{
	if (slot->proven)
		return pp_fail(err, PP_ERR_REFUSED, "the target of drive %u is open: release it first",
			slot->index);
	return 0;
}

/* ---- proof --------------------------------------------------------------------------------- */

/* Waits here, not inside pp_target_prove, so that a broken connection ends the wait. */
static int prove_waiting(struct agent_slot *slot, const struct pp_order *order,
	struct pp_error *err)
{
	struct pp_target_spec spec = order->spec;
	int64_t wait_ms = spec.wait_ms < 0 ? PP_TARGET_WAIT_MS : spec.wait_ms;
	int64_t until_ns = pp_clock_mono_ns() + wait_ms * PP_NS_PER_MS;

	spec.wait_ms = 0;
	for (;;) {
		pp_target_init(&slot->target);
		if (pp_target_prove(&spec, &slot->target, err) == 0)
			return 0;
		if (slot->target.state != PP_TARGET_DRIVE_GONE || pp_clock_mono_ns() >= until_ns ||
			atomic_load(&slot->session->ending))
			return -1;
		pp_clock_sleep_ms(PROVE_PAUSE_MS);
	}
}

/* The folder that was opened is one that was allowed, whatever a symbolic link did meanwhile. */
static int check_opened_path(struct agent_slot *slot, const struct pp_target_spec *spec,
	struct pp_error *err)
{
	struct pp_target_spec real = *spec;

	if (spec->kind != PP_TARGET_FILE || !spec->path[0])
		return 0;
	if (pp_fd_path(slot->target.fd, real.path, sizeof(real.path), err) != 0)
		return -1;
	return pp_allow_check(allow_of(slot), &real, false, err);
}

int agent_prove(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	struct pp_error why = { 0 };
	struct pp_proof *proof;

	if (need_released(slot, err) != 0 ||
		pp_allow_check(allow_of(slot), &r->order.spec, false, err) != 0)
		return -1;
	slot->proven = prove_waiting(slot, &r->order, &why) == 0;
	if (slot->proven && check_opened_path(slot, &r->order.spec, err) != 0) {
		slot->proven = false;
		pp_target_release(&slot->target);
		return -1;
	}
	proof = malloc(sizeof(*proof));
	if (!proof)
		return pp_fail(err, PP_ERR_SYSTEM, "no memory for an answer");
	pp_proof_of(proof, &slot->target, &why);
	agent_host_kernel(proof->kernel, sizeof(proof->kernel));
	pp_proof_put(kv, proof);
	free(proof);
	return 0;
}

void agent_slot_release(struct agent_slot *slot, bool *lazy)
{
	*lazy = false;
	agent_noise_end(slot);
	agent_writer_end(slot, NULL);
	agent_unwatch(slot);
	if (!slot->proven)
		return;
	slot->proven = false;
	if (pp_target_unmount(&slot->target, 10000, lazy, NULL) != 0)
		pp_target_release(&slot->target);
	pp_target_init(&slot->target);
}

int agent_release(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	bool lazy;

	(void)r;
	(void)err;
	agent_slot_release(slot, &lazy);
	pp_kv_add_bool(kv, "lazy", lazy);
	return 0;
}

int agent_format(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	struct pp_target_spec spec = r->order.spec;
	struct pp_formatted answer = { .state = PP_TARGET_OK };
	struct pp_error why = { 0 };

	if (need_released(slot, err) != 0 || pp_allow_check(allow_of(slot), &spec, true, err) != 0)
		return -1;
	if (pp_target_format(&spec, &answer.state, &why) != 0)
		snprintf(answer.error, sizeof(answer.error), "%s", why.text);
	snprintf(answer.fs_uuid, sizeof(answer.fs_uuid), "%s", spec.fs_uuid);
	snprintf(answer.fs_type, sizeof(answer.fs_type), "%s", spec.fs_type);
	answer.fs_partition = spec.fs_partition;
	answer.drive_size_bytes = spec.drive_size_bytes;
	pp_formatted_put(kv, &answer);
	return 0;
}

int agent_check(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	struct pp_checked answer;

	if (need_released(slot, err) != 0 ||
		pp_allow_check(allow_of(slot), &r->order.spec, false, err) != 0)
		return -1;
	memset(&answer, 0, sizeof(answer));
	if (pp_target_check(&r->order.spec, &answer.check, err) != 0)
		return -1;
	pp_checked_put(kv, &answer);
	return 0;
}

/* ---- layout and files ---------------------------------------------------------------------- */

void agent_base_path(const struct agent_slot *slot, const char *file, char *out, size_t bytes)
{
	if (slot->target.kind == PP_TARGET_RAW)
		snprintf(out, bytes, "%s", slot->target.path);
	else
		snprintf(out, bytes, "%s/%s", slot->target.path, file);
}

/* A file of the layout below the proven target, never through a symbolic link. */
static int open_file(const struct pp_target *target, const struct pp_layout *layout,
	const char *base, uint32_t file, int flags, int *fd, struct pp_error *err)
{
	char name[PP_ORDER_FILE_BYTES + 32];

	if (target->kind == PP_TARGET_RAW)
		return pp_target_open(target, NULL, flags, 0, fd, err);
	pp_layout_file_name(layout, base, file, name, sizeof(name));
	return pp_target_open(target, name, flags | O_NOFOLLOW, 0, fd, err);
}

static int check_file(const struct agent_slot *slot, const struct pp_order *order, uint32_t file,
	bool may_miss, struct pp_error *err)
{
	struct pp_error why = { 0 };
	struct pp_fd_facts facts;
	int fd, rc = -1;

	if (open_file(&slot->target, &order->layout, order->file, file,
		O_RDONLY | O_NONBLOCK | O_CLOEXEC, &fd, &why) != 0) {
		if (may_miss && why.os_code == ENOENT)
			return 0;
		*err = why;
		return -1;
	}
	if (pp_fd_facts(fd, &facts, err) != 0)
		pp_fail_within(err, "file %u of the target", file);
	else if (pp_workload_record_files(order->layout.workload))
		rc = facts.is_folder ? 0
			: pp_fail(err, PP_ERR_REFUSED, "folder %u of the target is none", file);
	else if (slot->target.kind == PP_TARGET_FILE && (!facts.is_file || facts.names != 1))
		pp_fail(err, PP_ERR_REFUSED, "file %u of the target is no plain file with one name", file);
	else
		rc = 0;
	close(fd);
	return rc;
}

int agent_layout_check(const struct agent_slot *slot, const struct pp_order *order, bool may_miss,
	struct pp_error *err)
{
	const struct pp_layout *l = &order->layout;
	bool raw = slot->target.kind == PP_TARGET_RAW;
	uint32_t i;

	if (slot->target.unit_bytes && l->unit_bytes % slot->target.unit_bytes != 0)
		return pp_fail(err, PP_ERR_REFUSED, "the layout's unit of %u bytes is no multiple of this "
			"target's %u", l->unit_bytes, slot->target.unit_bytes);
	if (raw && pp_workload_own_files(l->workload))
		return pp_fail(err, PP_ERR_REFUSED, "workload '%s' needs files, the target is a device",
			pp_workload_name(l->workload));
	if (raw && pp_writer_target_bytes(l) > slot->target.size_bytes)
		return pp_fail(err, PP_ERR_REFUSED, "the layout needs %" PRIu64 " bytes, the device has %"
			PRIu64, pp_writer_target_bytes(l), slot->target.size_bytes);
	for (i = 0; i < pp_layout_files(l); i++)
		if (check_file(slot, order, i, may_miss, err) != 0)
			return -1;
	return 0;
}

int agent_prewrite(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	struct pp_layout layout = r->order.layout;
	char path[PP_TARGET_PATH_BYTES + PP_ORDER_FILE_BYTES];

	if (agent_need_idle(slot, err) != 0 || agent_layout_check(slot, &r->order, true, err) != 0)
		return -1;
	agent_base_path(slot, r->order.file, path, sizeof(path));
	if (pp_writer_prewrite(&layout, path, &r->order.run_id, r->order.compressible, r->order.direct,
		&slot->target, err) != 0)
		return -1;
	pp_layout_put(kv, &layout);
	return 0;
}

int agent_sizes(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	const struct pp_order *o = &r->order;
	struct pp_sizes sizes = { .files = pp_layout_files(&o->layout) };
	struct pp_error why = { 0 };
	struct pp_fd_facts facts;
	uint32_t i;
	int fd, rc;

	if (agent_need_idle(slot, err) != 0)
		return -1;
	for (i = 0; i < sizes.files; i++) {
		if (open_file(&slot->target, &o->layout, o->file, i, O_RDONLY | O_CLOEXEC, &fd,
			&why) != 0) {
			if (why.os_code == ENOENT)
				continue;
			*err = why;
			return -1;
		}
		rc = pp_fd_facts(fd, &facts, err);
		if (rc != 0)
			pp_fail_within(err, "file %u of the target", i);
		close(fd);
		if (rc != 0)
			return -1;
		sizes.present[i] = true;
		sizes.bytes[i] = slot->target.kind == PP_TARGET_RAW ? slot->target.size_bytes
			: facts.size_bytes;
	}
	pp_sizes_put(kv, &sizes);
	return 0;
}

/* ---- scan ---------------------------------------------------------------------------------- */

/* Lives on, with its own descriptor of the folder, when a read that never returns may still use it. */
struct scanning {
	struct pp_target target;
	struct pp_layout layout;
	char file[PP_ORDER_FILE_BYTES];
};

/* A slot's own file, in the lane's folder: neither is a symbolic link. */
static int open_record(const struct scanning *scan, uint32_t file_at, int flags, int *fd,
	struct pp_error *err)
{
	char name[32];
	uint32_t lane = pp_layout_record_name(&scan->layout, file_at, name, sizeof(name));
	int folder, rc;

	if (open_file(&scan->target, &scan->layout, scan->file, lane,
		O_RDONLY | O_DIRECTORY | O_CLOEXEC, &folder, err) != 0)
		return -1;
	rc = pp_fd_open_in(folder, name, flags | O_NOFOLLOW, fd, err);
	close(folder);
	if (rc != 0)
		return -1;
	if (pp_target_prove_fd(&scan->target, *fd, err) == 0)
		return 0;
	close(*fd);
	return -1;
}

static int scan_open(void *ctx, uint32_t file, int flags)
{
	const struct scanning *scan = ctx;
	struct pp_error why = { 0 };
	int fd, rc;

	if (pp_workload_record_files(scan->layout.workload))
		rc = open_record(scan, file, flags, &fd, &why);
	else
		rc = open_file(&scan->target, &scan->layout, scan->file, file, flags, &fd, &why);
	if (rc == 0)
		return fd;
	errno = pp_os_errno(why.os_code);
	return -1;
}

static ssize_t scan_pread(void *ctx, int fd, void *buf, size_t bytes, off_t offset)
{
	(void)ctx;
	return pp_fd_pread(fd, buf, bytes, (uint64_t)offset);
}

struct sink {
	struct agent_session *session;
	uint32_t id;
	uint64_t bytes;
	size_t used;
	char data[PP_ORDER_DATA_BYTES];
};

static int sink_flush(struct sink *sink, struct pp_error *err)
{
	size_t bytes = sink->used;

	sink->used = 0;
	sink->bytes += bytes;
	return agent_data(sink->session, sink->id, sink->data, bytes, err);
}

static int sink_put(void *ctx, const void *data, size_t bytes, struct pp_error *err)
{
	struct sink *sink = ctx;
	const char *at = data;
	size_t now;

	while (bytes > 0) {
		now = sizeof(sink->data) - sink->used;
		now = bytes < now ? bytes : now;
		memcpy(sink->data + sink->used, at, now);
		sink->used += now;
		at += now;
		bytes -= now;
		if (sink->used == sizeof(sink->data) && sink_flush(sink, err) != 0)
			return -1;
	}
	return 0;
}

static struct scanning *scanning_new(const struct agent_slot *slot, const struct pp_order *o,
	struct pp_error *err)
{
	struct scanning *scan = malloc(sizeof(*scan));

	if (!scan) {
		pp_fail(err, PP_ERR_SYSTEM, "no memory for a scan");
		return NULL;
	}
	scan->target = slot->target;
	scan->layout = o->layout;
	memcpy(scan->file, o->file, sizeof(scan->file));
	if (pp_fd_dup(slot->target.fd, &scan->target.fd, err) != 0) {
		pp_fail_within(err, "cannot scan '%s'", slot->target.path);
		free(scan);
		return NULL;
	}
	return scan;
}

static int scan_with(const struct agent_request *r, struct scanning *scan, struct sink *sink,
	struct pp_scanned *answer, unsigned *stuck, struct pp_error *err)
{
	const struct pp_order *o = &r->order;
	struct pp_scan_io io = { .ctx = scan, .open = scan_open, .pread = scan_pread };
	struct pp_scan_source_options options = { .io = &io };
	const char *paths[PP_LANES_MAX];
	struct pp_scan_source source;
	uint32_t i, files = pp_layout_files(&o->layout);
	int rc;

	for (i = 0; i < files; i++)
		paths[i] = scan->target.path; /* for messages; scan_open opens by number */
	if (pp_scan_source_open(&o->layout, paths, files, &options, &source, err) != 0)
		return -1;
	rc = pp_scan_make(&o->layout, &source, o->ranges, o->range_count, sink_put, sink, err);
	if (rc == 0)
		rc = sink_flush(sink, err);
	answer->bytes = sink->bytes;
	answer->direct = !pp_scan_source_buffered(&source);
	*stuck = pp_scan_source_stuck(&source);
	pp_scan_source_close(&source);
	return rc;
}

int agent_scan(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	struct pp_scanned answer = { 0 };
	struct scanning *scan;
	struct sink *sink;
	unsigned stuck = 0;
	int rc = -1;

	if (agent_need_idle(slot, err) != 0)
		return -1;
	scan = scanning_new(slot, &r->order, err);
	if (!scan)
		return -1;
	sink = calloc(1, sizeof(*sink));
	if (!sink) {
		pp_fail(err, PP_ERR_SYSTEM, "no memory for a scan");
		goto out;
	}
	sink->session = slot->session;
	sink->id = r->id;
	rc = scan_with(r, scan, sink, &answer, &stuck, err);
	if (rc == 0)
		pp_scanned_put(kv, &answer);
	free(sink);
out:
	if (stuck == 0) {
		close(scan->target.fd);
		free(scan);
	}
	return rc;
}

/* ---- matrix -------------------------------------------------------------------------------- */

struct matrix_rows {
	struct agent_session *session;
	uint32_t id;
};

static void send_row(void *ctx, const struct pp_matrix_row *row)
{
	const struct matrix_rows *rows = ctx;
	struct pp_buf text;

	pp_buf_init(&text, 1 << 16);
	pp_matrix_row_put(&text, "", row);
	pp_buf_add(&text, "\n", 1);
	if (!text.failed)
		agent_data(rows->session, rows->id, text.data, text.bytes, NULL);
	pp_buf_release(&text);
}

int agent_matrix(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	const struct pp_order *o = &r->order;
	struct matrix_rows rows = { slot->session, r->id };
	const char *only[PP_ORDER_METHODS_MAX];
	char path[PP_TARGET_PATH_BYTES + PP_ORDER_FILE_BYTES];
	struct pp_matrix_config config = { .path = path, .target = &slot->target,
		.raw_offset = o->region_offset, .only_count = o->method_count,
		.block_bytes = o->block_bytes, .seconds = o->seconds_ms / 1000.0,
		.stop = &slot->session->ending_signal, .done = send_row, .ctx = &rows };
	struct pp_matrix *matrix;
	size_t i;
	int rc;

	if (agent_need_idle(slot, err) != 0)
		return -1;
	for (i = 0; i < o->method_count; i++)
		only[i] = o->methods[i]->name;
	config.only = o->method_count ? only : NULL;
	config.raw = slot->target.kind == PP_TARGET_RAW;
	agent_base_path(slot, MATRIX_FILE, path, sizeof(path));
	matrix = calloc(1, sizeof(*matrix));
	if (!matrix)
		return pp_fail(err, PP_ERR_SYSTEM, "no memory for a matrix");
	rc = pp_matrix_run(&config, matrix, err);
	if (rc == 0) {
		pp_kv_add(kv, "disk", matrix->disk);
		pp_kv_add(kv, "no_disk_reason", matrix->no_disk_reason);
	}
	free(matrix);
	return rc;
}
