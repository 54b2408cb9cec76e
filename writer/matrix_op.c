/* SPDX-License-Identifier: MIT
 *
 * One operation of a test. The first bytes of the block change with every operation: a drive that
 * notices equal data must not win by it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "matrix_parts.h"

static int do_writes(struct matrix_op *op, struct pp_method_io *io, uint64_t at)
{
	const struct matrix_test *t = op->test;
	uint32_t i;

	memcpy(op->buf, &op->number, sizeof(op->number));
	op->number++;
	for (i = 0; i < t->writes; i++) {
		int64_t code = 0, n = pp_method_io_write(io, op->buf, t->write_bytes,
			at + (uint64_t)i * t->write_bytes, &code);

		if (n != (int64_t)t->write_bytes)
			return matrix_op_fail(&op->e, "write", n < 0 ? code : 0);
	}
	return 0;
}

static int do_sync(struct matrix_op *op, struct pp_method_io *io)
{
	int64_t code = 0;

	if (op->method->sync == PP_SYNC_NONE || pp_method_io_sync(io, &code) == 0)
		return 0;
	return matrix_op_fail(&op->e, pp_sync_call_name(op->method->sync), code);
}

static int do_close(struct matrix_op *op, int fd, int rc)
{
	int64_t code = disk_close(fd);

	return code && rc == 0 ? matrix_op_fail(&op->e, "close", code) : rc;
}

/* ---- pg_test_fsync's question: does fsync reach what another descriptor wrote? ----------------- */

static int reopen(struct matrix_op *op, struct pp_method_io *io)
{
	int fd;
	int64_t code = disk_open(op->config->path, O_RDWR, &fd);

	if (code)
		return matrix_op_fail(&op->e, "open", code);
	pp_method_io_like(io, &op->io, fd);
	return 0;
}

/* Both open twice. */
static int reopen_op(struct matrix_op *op)
{
	bool sync_first = op->test->shape == WRITE_SYNC_CLOSE;
	struct pp_method_io io;
	int rc;

	if (reopen(op, &io) != 0)
		return -1;
	rc = do_writes(op, &io, op->at);
	if (rc == 0 && sync_first)
		rc = do_sync(op, &io);
	if (do_close(op, io.fd, rc) != 0 || reopen(op, &io) != 0)
		return -1;
	return do_close(op, io.fd, sync_first ? 0 : do_sync(op, &io));
}

/* ---- a file an operation --------------------------------------------------------------------- */

static void file_name(uint64_t number, char name[32])
{
	snprintf(name, 32, "%08" PRIu64, number);
}

static int create_op(struct matrix_op *op)
{
	struct pp_method_io io;
	char name[32];
	int64_t code;
	int fd, rc;

	file_name(op->files, name);
	code = disk_open_in(op->fd, op->name, name, O_RDWR | O_CREAT | O_EXCL |
		pp_method_open_flags(op->method), &fd);
	if (code)
		return matrix_op_fail(&op->e, "open", code);
	op->files++;
	pp_method_io_like(&io, &op->io, fd);
	rc = do_writes(op, &io, 0);
	if (rc == 0)
		rc = do_sync(op, &io);
	pp_method_io_release(&io);
	rc = do_close(op, fd, rc);
	/* M2.2: the file's own sync says nothing of its name. */
	code = rc == 0 && op->method->coverage != PP_COVERS_NOTHING
		? disk_sync_folder(op->fd) : 0;
	return code ? matrix_op_fail(&op->e, "fsync of the folder", code) : rc;
}

static int remove_files(struct matrix_op *op)
{
	char name[32];
	int64_t code;

	while (op->files) {
		file_name(op->files - 1, name);
		code = disk_remove_in(op->fd, op->name, name);
		if (code)
			return matrix_op_fail(&op->e, "unlink", code);
		op->files--;
	}
	return 0;
}

/* ---- any operation --------------------------------------------------------------------------- */

int matrix_op_do(struct matrix_op *op)
{
	uint64_t at = op->at;

	if (op->test->shape != SYNC_LOOP)
		return reopen_op(op);
	if (op->test->workload == PP_CREATE)
		return create_op(op);
	if (op->room_end)
		op->at += (uint64_t)op->test->writes * op->test->write_bytes;
	return do_writes(op, &op->io, at) == 0 ? do_sync(op, &op->io) : -1;
}

bool matrix_op_full(const struct matrix_op *op)
{
	if (op->test->workload == PP_CREATE)
		return op->files >= MATRIX_GROW_FILES;
	return op->room_end &&
		op->at + (uint64_t)op->test->writes * op->test->write_bytes > op->room_end;
}

/* The same beginning each time: an empty file, allocated or not, durable as such. */
static int empty(struct matrix_op *op)
{
	int64_t code = disk_set_size(op->fd, 0);

	if (code)
		return matrix_op_fail(&op->e, "truncate", code);
	if (op->test->workload == PP_FALLOCATED)
		code = disk_allocate(op->fd, MATRIX_GROW_BYTES);
	if (code)
		return matrix_op_fail(&op->e, "fallocate", code);
	code = disk_sync(op->fd);
	if (code)
		return matrix_op_fail(&op->e, "fsync", code);
	op->at = 0;
	return 0;
}

int matrix_op_make_room(struct matrix_op *op)
{
	if (op->test->workload == PP_CREATE) {
		int64_t code = remove_files(op) == 0 ? disk_sync_folder(op->fd) : -1;

		return code <= 0 ? (int)code : matrix_op_fail(&op->e, "fsync of the folder", code);
	}
	/* A mapping must not outlive what it maps: a new one is made when it is needed. */
	pp_method_io_release(&op->io);
	if (empty(op) != 0)
		return -1;
	return pp_method_io_init(&op->io, op->method, op->fd, &op->e.why) == 0 ? 0
		: matrix_op_fail(&op->e, "setting up", op->e.why.os_code);
}

/* ---- begin and end --------------------------------------------------------------------------- */

static int open_own(struct matrix_op *op, uint32_t thread)
{
	bool folder = op->test->workload == PP_CREATE;
	int64_t code = 0;
	int fd;

	if (snprintf(op->name, sizeof(op->name), "%s.%u", op->config->path, thread) >=
		(int)sizeof(op->name))
		return matrix_op_fail(&op->e, "open", ENAMETOOLONG);
	if (folder)
		code = disk_make_folder(op->name);
	if (code) {
		op->name[0] = '\0';
		return matrix_op_fail(&op->e, "mkdir", code);
	}
	code = folder ? disk_open_folder(op->name, &fd) : disk_open(op->name, O_RDWR |
		O_CREAT | O_EXCL | pp_method_open_flags(op->method), &fd);
	if (code) {
		/* Made before its flags were refused? (O_DIRECT, open(2)) Never somebody else's file. */
		if (!folder && disk_code_of(code) == DISK_CODE_EXISTS)
			op->name[0] = '\0';
		return matrix_op_fail(&op->e, "open", code);
	}
	op->fd = fd;
	op->room_end = folder ? 0 : MATRIX_GROW_BYTES;
	return folder ? 0 : empty(op);
}

static int open_shared(struct matrix_op *op)
{
	int flags = op->test->shape == SYNC_LOOP ? pp_method_open_flags(op->method) : 0;
	int64_t code = disk_open(op->config->path, O_RDWR | flags, &op->fd);

	return code ? matrix_op_fail(&op->e, "open", code) : 0;
}

/* A folder cannot be asked what its files can do; a file without a name can (open(2)). */
static int set_up(struct matrix_op *op)
{
	bool folder = op->test->workload == PP_CREATE;
	int fd = op->fd, rc;

	if (folder)
		disk_open_nameless(op->fd, op->name, pp_method_open_flags(op->method), &fd);
	rc = pp_method_io_init(&op->io, op->method, fd, &op->e.why);
	if (rc != 0)
		matrix_op_fail(&op->e, "setting up", op->e.why.os_code);
	if (folder && fd >= 0)
		disk_close(fd);
	return rc;
}

int matrix_op_begin(struct matrix_op *op, const struct matrix_bench *b,
	const struct matrix_test *test, uint32_t thread)
{
	uint64_t span = (uint64_t)test->writes * test->write_bytes;

	op->config = b->config;
	op->test = test;
	op->method = pp_method_find(test->method);
	op->fd = -1;
	op->io.staging_fd = -1;
	/* Neighbours in no block and no page. */
	op->at = b->at + thread * ((span + MATRIX_ALIGN_BYTES - 1) / MATRIX_ALIGN_BYTES *
		MATRIX_ALIGN_BYTES);
	if ((test->workload == PP_OVERWRITE ? open_shared(op) : open_own(op, thread)) != 0)
		return -1;
	return set_up(op);
}

int matrix_op_end(struct matrix_op *op)
{
	int64_t code = 0;
	int rc = 0;

	pp_method_io_release(&op->io);
	if (op->fd >= 0 && op->test->workload == PP_CREATE) {
		rc = remove_files(op);
	} else if (op->fd >= 0 && !op->e.call && (op->method->coverage < PP_COVERS_FILE)) {
		/* What was left in RAM must not reach the disk in the next test. */
		code = disk_sync(op->fd);
		if (code)
			rc = matrix_op_fail(&op->e, "fsync", code);
	}
	if (op->fd >= 0)
		rc = do_close(op, op->fd, rc);
	op->fd = -1;
	if (op->name[0])
		code = op->test->workload == PP_CREATE ? disk_remove_folder(op->name)
			: disk_remove(op->name);
	if (op->name[0] && code && disk_code_of(code) != DISK_CODE_MISSING && rc == 0)
		rc = matrix_op_fail(&op->e, "remove", code);
	op->name[0] = '\0';
	return rc;
}
