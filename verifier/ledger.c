/* SPDX-License-Identifier: MIT
 *
 * Writing: entries gather in a buffer and go out with one write(2) a flush. A file that takes only
 * part of a write (a disk that fills up) is cut back to whole entries, then the ledger is failed for
 * good: an ack that is not in it is never echoed.
 */
#include "ledger.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger_format.h"
#include "src/core/file.h"

#define BUFFER_ENTRIES 1638 /* 64 KiB */

struct pp_ledger {
	pthread_mutex_t lock;
	int fd;
	struct pp_run_id run;
	uint64_t seed;
	uint32_t lanes;
	uint64_t entries;  /* appended, buffered ones included */
	size_t buffered;
	int64_t t_last_ns; /* latest of ACK, BEAT and FRAME */
	bool failed;
	struct pp_error why;
	uint64_t *acked;   /* highest of each lane */
	char *path;
	uint8_t buffer[BUFFER_ENTRIES * PP_LEDGER_ENTRY_BYTES];
};

const char *pp_close_name(enum pp_close how)
{
	static const char *const names[] = {
		[PP_CLOSE_NOT] = "open", [PP_CLOSE_FIN] = "FIN", [PP_CLOSE_RST] = "RST",
		[PP_CLOSE_TIMEOUT] = "timeout", [PP_CLOSE_PROTOCOL] = "protocol error",
		[PP_CLOSE_REPLACED] = "replaced", [PP_CLOSE_LOCAL] = "closed by control",
	};

	return (size_t)how < sizeof(names) / sizeof(names[0]) ? names[how] : "unknown";
}

static int write_header(struct pp_ledger *l, struct pp_error *err)
{
	uint8_t header[PP_LEDGER_HEADER_BYTES];

	pp_ledger_header_put(&l->run, l->lanes, header);
	if (pp_write_all(l->fd, header, sizeof(header)) != 0)
		return pp_fail_os(err, errno, "cannot write '%s'", l->path);
	if (fsync(l->fd) != 0)
		return pp_fail_os(err, errno, "cannot sync '%s'", l->path);
	return pp_file_sync_parent(l->path, err);
}

static void release(struct pp_ledger *l)
{
	if (l->fd >= 0)
		close(l->fd);
	pthread_mutex_destroy(&l->lock);
	free(l->acked);
	free(l->path);
	free(l);
}

struct pp_ledger *pp_ledger_create(const char *path, const struct pp_run_id *run, uint32_t lanes,
	struct pp_error *err)
{
	struct pp_ledger *l;

	if (lanes == 0 || lanes > PP_LEDGER_LANES_MAX) {
		pp_fail(err, PP_ERR_USAGE, "a run of %u lanes (1 to %u)", lanes, PP_LEDGER_LANES_MAX);
		return NULL;
	}
	l = calloc(1, sizeof(*l));
	if (!l) {
		pp_fail(err, PP_ERR_SYSTEM, "out of memory for a ledger");
		return NULL;
	}
	pthread_mutex_init(&l->lock, NULL);
	l->fd = -1;
	l->run = *run;
	l->lanes = lanes;
	l->seed = pp_ledger_seed(run);
	l->t_last_ns = PP_LEDGER_NEVER;
	l->acked = calloc(lanes, sizeof(*l->acked));
	l->path = strdup(path);
	if (!l->acked || !l->path) {
		pp_fail(err, PP_ERR_SYSTEM, "out of memory for a ledger");
		goto undo;
	}
	l->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (l->fd < 0) {
		pp_fail_os(err, errno, "cannot create '%s'", path);
		goto undo;
	}
	if (write_header(l, err) == 0)
		return l;
	unlink(path);
undo:
	release(l);
	return NULL;
}

/* ---- with the lock held ------------------------------------------------------------------- */
static int fail_for_good(struct pp_ledger *l, struct pp_error *err)
{
	l->failed = true;
	if (err)
		*err = l->why;
	return -1;
}

static int flush(struct pp_ledger *l, struct pp_error *err)
{
	off_t whole = (off_t)(PP_LEDGER_HEADER_BYTES +
		(l->entries - l->buffered) * PP_LEDGER_ENTRY_BYTES);
	size_t bytes = l->buffered * PP_LEDGER_ENTRY_BYTES;

	if (l->failed)
		return fail_for_good(l, err);
	if (bytes == 0)
		return 0;
	if (pp_write_all(l->fd, l->buffer, bytes) == 0) {
		l->buffered = 0;
		return 0;
	}
	pp_fail_os(&l->why, errno, "cannot write '%s'", l->path);
	/* Keep the whole entries that went in; if even this fails, load drops the torn one. */
	whole += (lseek(l->fd, 0, SEEK_CUR) - whole) / PP_LEDGER_ENTRY_BYTES * PP_LEDGER_ENTRY_BYTES;
	if (ftruncate(l->fd, whole) != 0)
		l->why.os_code = l->why.os_code ? l->why.os_code : errno;
	return fail_for_good(l, err);
}

static int append(struct pp_ledger *l, const struct pp_ledger_entry *e, struct pp_error *err)
{
	if (l->failed)
		return fail_for_good(l, err);
	if (l->buffered == BUFFER_ENTRIES && flush(l, err) != 0)
		return -1;
	pp_ledger_entry_put(e, l->seed, l->entries, l->buffer + l->buffered * PP_LEDGER_ENTRY_BYTES);
	l->buffered++;
	l->entries++;
	if (e->type <= PP_LEDGER_FRAME && e->t_ns > l->t_last_ns)
		l->t_last_ns = e->t_ns;
	return 0;
}

static int append_locked(struct pp_ledger *l, const struct pp_ledger_entry *e, bool and_flush,
	struct pp_error *err)
{
	int rc;

	pthread_mutex_lock(&l->lock);
	rc = append(l, e, err);
	if (rc == 0 && and_flush)
		rc = flush(l, err);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

/* ---- appending ---------------------------------------------------------------------------- */
int pp_ledger_ack(struct pp_ledger *l, int64_t t_ns, uint32_t lane, uint64_t first, uint64_t last,
	struct pp_error *err)
{
	struct pp_ledger_entry e = { .type = PP_LEDGER_ACK, .t_ns = t_ns, .a = first, .b = last,
		.c = lane };
	int rc;

	pthread_mutex_lock(&l->lock);
	rc = pp_ledger_ack_check(l->acked, l->lanes, lane, first, last, err);
	if (rc == 0)
		rc = append(l, &e, err);
	if (rc == 0)
		l->acked[lane] = last;
	pthread_mutex_unlock(&l->lock);
	return rc;
}

int pp_ledger_beat(struct pp_ledger *l, int64_t t_ns, uint64_t writes, uint64_t sectors_written,
	uint64_t flushes, struct pp_error *err)
{
	struct pp_ledger_entry e = { .type = PP_LEDGER_BEAT, .t_ns = t_ns, .a = writes,
		.b = sectors_written, .c = flushes };

	return append_locked(l, &e, false, err);
}

int pp_ledger_frame(struct pp_ledger *l, int64_t t_ns, struct pp_error *err)
{
	struct pp_ledger_entry e = { .type = PP_LEDGER_FRAME, .t_ns = t_ns };
	int rc = 0;

	pthread_mutex_lock(&l->lock);
	if (t_ns > l->t_last_ns)
		rc = append(l, &e, err);
	else if (l->failed)
		rc = fail_for_good(l, err);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

int pp_ledger_closed(struct pp_ledger *l, int64_t t_ns, enum pp_close how, struct pp_error *err)
{
	struct pp_ledger_entry e = { .type = PP_LEDGER_CLOSE, .small = (uint16_t)how, .t_ns = t_ns };

	return append_locked(l, &e, true, err);
}

int pp_ledger_mark(struct pp_ledger *l, int64_t t_ns, enum pp_mark what, uint64_t value,
	struct pp_error *err)
{
	struct pp_ledger_entry e = { .type = PP_LEDGER_MARK, .small = (uint16_t)what, .t_ns = t_ns,
		.a = value };

	return append_locked(l, &e, true, err);
}

int pp_ledger_flush(struct pp_ledger *l, struct pp_error *err)
{
	int rc;

	pthread_mutex_lock(&l->lock);
	rc = flush(l, err);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

/* The lock is not held while the disk works: acks go on being appended meanwhile. */
int pp_ledger_sync(struct pp_ledger *l, struct pp_error *err)
{
	int rc = pp_ledger_flush(l, err), code;

	if (rc != 0)
		return -1;
	rc = fdatasync(l->fd);
	code = errno;
	if (rc == 0)
		return 0;
	pthread_mutex_lock(&l->lock);
	if (!l->failed)
		pp_fail_os(&l->why, code, "cannot sync '%s'", l->path);
	rc = fail_for_good(l, err);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

const struct pp_run_id *pp_ledger_run(const struct pp_ledger *l)
{
	return &l->run;
}

uint32_t pp_ledger_lanes(const struct pp_ledger *l)
{
	return l->lanes;
}

uint64_t pp_ledger_acked(struct pp_ledger *l, uint32_t lane)
{
	uint64_t acked;

	pthread_mutex_lock(&l->lock);
	acked = lane < l->lanes ? l->acked[lane] : 0;
	pthread_mutex_unlock(&l->lock);
	return acked;
}

bool pp_ledger_failed(struct pp_ledger *l)
{
	bool failed;

	pthread_mutex_lock(&l->lock);
	failed = l->failed;
	pthread_mutex_unlock(&l->lock);
	return failed;
}

int pp_ledger_close(struct pp_ledger *l, struct pp_error *err)
{
	int rc, fd;

	if (!l)
		return 0;
	rc = pp_ledger_sync(l, err);
	fd = l->fd;
	l->fd = -1;
	if (close(fd) != 0 && rc == 0)
		rc = pp_fail_os(err, errno, "cannot close '%s'", l->path);
	release(l);
	return rc;
}
