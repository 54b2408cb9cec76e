/* SPDX-License-Identifier: MIT
 *
 * Method. A reader is a thread with three buffers and its own descriptors. It does one job at a
 * time: fill a buffer with the blocks around a range. The caller waits for the job it wants, queues
 * the two that will be wanted next (two, so that the drive never waits for the caller to wake up),
 * and only then copies. Reader and caller each hold a reference; whoever lets go last frees it, so
 * that a reader left behind in a read writes into memory that is still its own.
 */
#include "scan_source.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scan_disk.h"
#include "src/core/clock.h"
#include "src/core/descriptor.h"
#include "src/core/thread.h"

#define READ_BYTES_MAX  (1U << 20)         /* the most that scan.c asks for at once */
#define ALIGN_MAX       (64U << 10)
#define BUFFER_BYTES    (READ_BYTES_MAX + 2 * ALIGN_MAX)
#define AHEAD_BYTES_MIN (64U << 10)        /* smaller reads are searches, not a walk */
#define MEMORY_ALIGN    4096U
#define NOT_OPEN        (-1)
#define JOBS            3

enum job_state { JOB_NONE, JOB_WAITING, JOB_RUNNING, JOB_DONE };

/* A range, widened to whole blocks, and what came of it. */
struct job {
	enum job_state state;
	uint64_t number;             /* the lowest is done first */
	uint32_t file;
	uint64_t offset, bytes;      /* what was asked for */
	uint64_t from;               /* where the buffer begins */
	size_t span;                 /* of the read itself */
	int64_t began_ns;
	int os_code;                 /* 0: the range is there */
	bool stale;                  /* began before this scan did: not to be used */
	uint8_t *buf;
};

struct paths {
	struct pp_layout layout;
	char **name;                 /* NULL-terminated; of folders where every slot is a file */
};

struct reader {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int references;
	bool quit, gone;             /* asked to end; has ended */
	struct job job[JOBS];
	uint64_t jobs;               /* how many there have been */
	bool buffered;
	struct pp_scan_io io;
	struct paths *path;          /* its own: it may outlive the source; NULL with the caller's io */
	uint32_t files;              /* that it keeps open; 1 where every slot is a file */
	uint32_t opened;             /* where every slot is a file: which one that is */
	bool each;                   /* every slot is a file */
	int *fd;
	bool *direct;
};

struct file_source {
	struct pp_scan_io io;
	struct paths *path;
	uint32_t files, open_files;  /* that there may be; that are kept open */
	bool each;                   /* every slot is a file */
	int64_t timeout_ns;
	uint32_t align_bytes;
	uint64_t *file_bytes;        /* as size last said: the read-ahead stops there; of open_files */
	struct reader *reader;
	bool buffered;
	unsigned stuck;
};

/* ---- the thread ---------------------------------------------------------------------------- */

static void free_paths(struct paths *paths)
{
	size_t i;

	for (i = 0; paths && paths->name && paths->name[i]; i++)
		free(paths->name[i]);
	if (paths)
		free(paths->name);
	free(paths);
}

static struct paths *copy_paths(const struct pp_layout *layout, const char *const *name,
	size_t count)
{
	struct paths *copy = calloc(1, sizeof(*copy));
	size_t i;

	if (!copy)
		return NULL;
	copy->layout = *layout;
	copy->name = calloc(count + 1, sizeof(*copy->name));
	for (i = 0; copy->name && i < count; i++) {
		copy->name[i] = strdup(name[i]);
		if (!copy->name[i])
			break;
	}
	if (copy->name && i == count)
		return copy;
	free_paths(copy);
	return NULL;
}

static void reader_free(struct reader *r)
{
	uint32_t i;

	for (i = 0; r->fd && i < r->files; i++)
		if (r->fd[i] != NOT_OPEN)
			close(r->fd[i]);
	free_paths(r->path);
	free(r->fd);
	free(r->direct);
	for (i = 0; i < JOBS; i++)
		pp_aligned_free(r->job[i].buf);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* With the lock held; it is released. */
static void reader_let_go(struct reader *r)
{
	bool last = --r->references == 0;

	pthread_mutex_unlock(&r->lock);
	if (last)
		reader_free(r);
}

/* Where its descriptor is kept. */
static uint32_t place_of(const struct reader *r, uint32_t file)
{
	return r->each ? 0 : file;
}

/* 0 or the system's code. A file system without O_DIRECT refuses it with EINVAL. */
static int open_file(struct reader *r, uint32_t file, bool direct)
{
	uint32_t at = place_of(r, file);
	int fd = r->io.open(r->io.ctx, file, O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));

	if (fd < 0 && direct && errno == EINVAL)
		return open_file(r, file, false);
	if (fd < 0)
		return errno;
	if (r->fd[at] != NOT_OPEN)
		close(r->fd[at]);
	r->fd[at] = fd;
	r->direct[at] = direct;
	r->opened = file;
	return 0;
}

/* Reads until `need` bytes of at most `span` are there. 0 or the system's code. */
static int read_span(struct reader *r, const struct job *j, size_t need)
{
	uint32_t at = place_of(r, j->file);
	size_t have = 0;
	ssize_t n;

	if (!r->direct[at])
		scan_disk_forget(r->fd[at], j->from, j->span);
	while (have < need) {
		n = r->io.pread(r->io.ctx, r->fd[at], j->buf + have, j->span - have,
			(off_t)(j->from + have));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			return EIO; /* inside what size said was there */
		have += (size_t)n;
	}
	return 0;
}

static int do_job(struct reader *r, const struct job *j)
{
	size_t need = (size_t)(j->offset + j->bytes - j->from);
	uint32_t at = place_of(r, j->file);
	bool open = r->fd[at] != NOT_OPEN && (!r->each || r->opened == j->file);
	int code = open ? 0 : open_file(r, j->file, true);

	if (code != 0)
		return code;
	code = read_span(r, j, need);
	if (code != EINVAL || !r->direct[at])
		return code;
	/* Opened O_DIRECT, yet refuses it here: by an alignment of its own, or only at the read. */
	code = open_file(r, j->file, false);
	return code != 0 ? code : read_span(r, j, need);
}

static struct job *waiting_job(struct reader *r)
{
	struct job *first = NULL;
	int i;

	for (i = 0; i < JOBS; i++)
		if (r->job[i].state == JOB_WAITING && (!first || r->job[i].number < first->number))
			first = &r->job[i];
	return first;
}

static void *reader_main(void *arg)
{
	struct reader *r = arg;
	struct job *j;
	int code;

	pthread_mutex_lock(&r->lock);
	while (!r->quit) {
		j = waiting_job(r);
		if (!j) {
			pthread_cond_wait(&r->changed, &r->lock);
			continue;
		}
		j->state = JOB_RUNNING;
		j->began_ns = pp_clock_mono_ns();
		pthread_mutex_unlock(&r->lock);
		code = do_job(r, j);
		pthread_mutex_lock(&r->lock);
		j->os_code = code;
		j->state = JOB_DONE;
		r->buffered |= r->fd[place_of(r, j->file)] != NOT_OPEN &&
			!r->direct[place_of(r, j->file)];
		pthread_cond_broadcast(&r->changed);
	}
	r->gone = true;
	pthread_cond_broadcast(&r->changed);
	reader_let_go(r);
	return NULL;
}

static bool reader_allocate(struct reader *r, const struct file_source *s)
{
	uint32_t i, files = s->open_files;

	r->each = s->each;
	if (s->io.ctx == s->path) {
		r->path = copy_paths(&s->path->layout, (const char *const *)s->path->name,
			pp_layout_files(&s->path->layout));
		r->io.ctx = r->path;
		if (!r->path)
			return false;
	}
	r->files = files;
	r->fd = calloc(files, sizeof(*r->fd));
	r->direct = calloc(files, sizeof(*r->direct));
	for (i = 0; r->fd && i < files; i++)
		r->fd[i] = NOT_OPEN;
	for (i = 0; i < JOBS; i++) {
		r->job[i].buf = pp_aligned_alloc(MEMORY_ALIGN, BUFFER_BYTES);
		if (!r->job[i].buf)
			return false;
	}
	return r->fd && r->direct;
}

/* NULL with errno. */
static struct reader *reader_new(const struct file_source *s)
{
	struct reader *r = calloc(1, sizeof(*r));
	pthread_t thread;
	int code = ENOMEM;

	if (!r)
		return NULL;
	r->io = s->io;
	r->references = 2;
	pthread_mutex_init(&r->lock, NULL);
	pp_cond_init(&r->changed);
	if (reader_allocate(r, s))
		code = pp_thread_start(&thread, reader_main, r);
	if (code != 0) {
		reader_free(r);
		errno = code;
		return NULL;
	}
	pthread_detach(thread);
	return r;
}

/* ---- the caller's side; the reader's lock is held ------------------------------------------- */

/* Waits for a change, at most until deadline_ns. */
static void wait_until(struct reader *r, int64_t deadline_ns)
{
	pp_cond_wait_until(&r->changed, &r->lock, deadline_ns);
}

static bool is_busy(const struct job *j)
{
	return j->state == JOB_WAITING || j->state == JOB_RUNNING;
}

/* True when the job is done, false when its read gave no answer in time. One that waits has as much
 * time for each before it; the caller asks for the oldest first. */
static bool job_finish(const struct file_source *s, struct reader *r, const struct job *j)
{
	int64_t asked_ns = pp_clock_mono_ns(), deadline_ns;

	while (is_busy(j)) {
		deadline_ns = (j->state == JOB_RUNNING ? j->began_ns : asked_ns) + s->timeout_ns;
		if (pp_clock_mono_ns() >= deadline_ns)
			return false;
		wait_until(r, deadline_ns);
	}
	return true;
}

static void job_start(struct file_source *s, struct reader *r, struct job *j, uint32_t file,
	uint64_t offset, uint64_t bytes)
{
	uint64_t align = s->align_bytes, end = offset + bytes;

	j->file = file;
	j->offset = offset;
	j->bytes = bytes;
	j->from = offset / align * align;
	j->span = (size_t)((end + align - 1) / align * align - j->from);
	j->number = r->jobs++;
	j->stale = false;
	j->state = JOB_WAITING;
	pthread_cond_broadcast(&r->changed);
}

static bool job_is(const struct job *j, uint32_t file, uint64_t offset, uint64_t bytes)
{
	if (j->state == JOB_NONE || j->stale || j->file != file || offset < j->offset ||
		offset + bytes > j->offset + j->bytes)
		return false;
	/* What failed as a part of more says nothing about the part. */
	return j->state != JOB_DONE || j->os_code == 0 ||
		(offset == j->offset && bytes == j->bytes);
}

/* Leaves a reader that hangs to itself. Its lock is held, and released. */
static void abandon(struct file_source *s, struct reader *r)
{
	s->reader = NULL;
	s->stuck++;
	r->quit = true;
	reader_let_go(r);
}

static struct job *job_find(struct reader *r, uint32_t file, uint64_t offset, uint64_t bytes)
{
	int i;

	for (i = 0; i < JOBS; i++)
		if (job_is(&r->job[i], file, offset, bytes))
			return &r->job[i];
	return NULL;
}

/* Waits until no job is under way, and forgets those that failed: they are tried again when asked
 * for. False where one hangs. */
static bool jobs_finish(const struct file_source *s, struct reader *r)
{
	struct job *j;
	int i;

	for (i = 0; i < JOBS; i++) /* what has not begun need not be waited for */
		if (r->job[i].state == JOB_WAITING)
			r->job[i].state = JOB_NONE;
	for (i = 0; i < JOBS; i++) {
		j = &r->job[i];
		if (!job_finish(s, r, j))
			return false;
		if (j->os_code != 0)
			j->state = JOB_NONE;
	}
	return true;
}

/*
 * The job for this range, done; NULL with *os_code. The lock of s->reader is held on success. Where
 * a read-ahead of something else hangs, that is not this range's fault: a fresh reader tries.
 */
static struct job *job_get(struct file_source *s, uint32_t file, uint64_t offset, uint64_t bytes,
	int32_t *os_code)
{
	struct reader *r;
	struct job *j;

again:
	if (!s->reader)
		s->reader = reader_new(s);
	if (!s->reader) {
		*os_code = errno;
		return NULL;
	}
	r = s->reader;
	pthread_mutex_lock(&r->lock);
	j = job_find(r, file, offset, bytes);
	if (!j) {
		if (!jobs_finish(s, r)) {
			abandon(s, r);
			goto again;
		}
		j = &r->job[0];
		job_start(s, r, j, file, offset, bytes);
	}
	if (!job_finish(s, r, j)) {
		bool began = j->state == JOB_RUNNING;

		abandon(s, r);
		if (!began)
			goto again;
		*os_code = ETIMEDOUT;
		return NULL;
	}
	if (!job_is(j, file, offset, bytes)) { /* a longer read-ahead, and it failed */
		j->state = JOB_NONE;
		pthread_mutex_unlock(&r->lock);
		goto again;
	}
	return j;
}

/* j was just used, and is still to be copied from. */
static void read_ahead(struct file_source *s, struct reader *r, const struct job *j)
{
	uint64_t here = j->offset + j->bytes, next = here, bytes = j->bytes;
	uint64_t end = s->each ? 0 : s->file_bytes[j->file]; /* a file is read as one */
	struct job *free_job;
	int i, k;

	for (k = 1; k < JOBS && bytes >= AHEAD_BYTES_MIN && next < end; k++, next += bytes) {
		if (bytes > end - next)
			bytes = end - next;
		if (job_find(r, j->file, next, bytes))
			continue;
		free_job = NULL;
		for (i = 0; i < JOBS; i++)
			if (&r->job[i] != j && !is_busy(&r->job[i]) && (r->job[i].state == JOB_NONE ||
				r->job[i].file != j->file || r->job[i].offset < here || r->job[i].stale))
				free_job = &r->job[i];
		if (!free_job)
			return;
		job_start(s, r, free_job, j->file, next, bytes);
	}
}

static int source_read(void *ctx, uint32_t file, uint64_t offset, void *buf, size_t bytes,
	int32_t *os_code)
{
	struct file_source *s = ctx;
	struct reader *r;
	struct job *j;
	int code;

	if (file >= s->files || bytes > READ_BYTES_MAX) {
		*os_code = EINVAL;
		return -1;
	}
	j = job_get(s, file, offset, bytes, os_code);
	if (!j)
		return -1;
	r = s->reader;
	s->buffered |= r->buffered;
	code = j->os_code;
	j->state = JOB_NONE; /* used once: whoever asks again wants it from the drive again */
	if (code == 0)
		read_ahead(s, r, j);
	pthread_mutex_unlock(&r->lock);
	if (code != 0) {
		*os_code = code;
		return -1;
	}
	/* A job at rest is nobody's but ours: the reader takes only those that wait. */
	memcpy(buf, j->buf + (offset - j->from), bytes);
	return 0;
}

/* A scan begins by asking for sizes; what an earlier one had read ahead is no answer to this one. */
static void forget_read_ahead(struct file_source *s)
{
	struct reader *r = s->reader;
	int i;

	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	for (i = 0; i < JOBS; i++)
		r->job[i].stale = true;
	pthread_mutex_unlock(&r->lock);
}

static int source_size(void *ctx, uint32_t file, uint64_t *bytes, int32_t *os_code)
{
	struct file_source *s = ctx;
	int fd, rc;

	*os_code = EINVAL;
	if (file >= s->files)
		return -1;
	forget_read_ahead(s);
	fd = s->io.open(s->io.ctx, file, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		*os_code = errno;
		return -1;
	}
	rc = scan_disk_size(fd, bytes);
	*os_code = rc == 0 ? 0 : errno;
	close(fd);
	if (rc == 0 && !s->each)
		s->file_bytes[file] = *bytes;
	return rc;
}

/* ---- open and close ------------------------------------------------------------------------- */

static int open_path(void *ctx, uint32_t file, int flags)
{
	const struct paths *paths = ctx;
	char name[32], path[4096];
	uint32_t lane;

	if (!pp_workload_record_files(paths->layout.workload))
		return scan_disk_open(paths->name[file], flags);
	lane = pp_layout_record_name(&paths->layout, file, name, sizeof(name));
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", paths->name[lane], name) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return scan_disk_open(path, flags | O_NOFOLLOW);
}

static ssize_t pread_plain(void *ctx, int fd, void *buf, size_t bytes, off_t offset)
{
	(void)ctx;
	return pp_fd_pread(fd, buf, bytes, (uint64_t)offset);
}

static uint32_t logical_block(const struct pp_scan_io *io)
{
	int fd = io->open(io->ctx, 0, O_RDONLY | O_CLOEXEC);
	uint32_t bytes = fd >= 0 ? scan_disk_block(fd) : 0;

	if (fd >= 0)
		close(fd);
	/* Unknown: what suits every drive; a failed read then hides up to seven more cells. */
	return bytes >= PP_CELL_BYTES && bytes <= ALIGN_MAX && bytes % PP_CELL_BYTES == 0
		? bytes : 4096;
}

static void source_free(struct file_source *s)
{
	free_paths(s->path);
	free(s->file_bytes);
	free(s);
}

int pp_scan_source_open(const struct pp_layout *layout, const char *const *paths, size_t count,
	const struct pp_scan_source_options *options, struct pp_scan_source *source,
	struct pp_error *err)
{
	static const struct pp_scan_source_options defaults;
	struct file_source *s;

	memset(source, 0, sizeof(*source));
	if (!options)
		options = &defaults;
	if (count != pp_layout_files(layout))
		return pp_fail(err, PP_ERR_USAGE, "a scan of %u files was given %zu",
			pp_layout_files(layout), count);
	s = calloc(1, sizeof(*s));
	if (!s)
		return pp_fail_os(err, ENOMEM, "cannot scan");
	s->each = pp_workload_record_files(layout->workload);
	s->open_files = s->each ? 1 : (uint32_t)count;
	s->files = s->each ? (uint32_t)(layout->lanes * pp_layout_scan_slots(layout)) : (uint32_t)count;
	s->path = copy_paths(layout, paths, count);
	s->file_bytes = calloc(count, sizeof(*s->file_bytes));
	if (!s->path || !s->file_bytes) {
		source_free(s);
		return pp_fail_os(err, ENOMEM, "cannot scan");
	}
	if (options->io)
		s->io = *options->io;
	else
		s->io = (struct pp_scan_io){ s->path, open_path, pread_plain };
	s->timeout_ns = (options->timeout_ms ? options->timeout_ms : PP_SCAN_READ_TIMEOUT_MS) *
		PP_NS_PER_MS;
	s->align_bytes = options->align_bytes ? options->align_bytes : logical_block(&s->io);
	*source = (struct pp_scan_source){ s, source_size, source_read, s->align_bytes };
	return 0;
}

bool pp_scan_source_buffered(const struct pp_scan_source *source)
{
	return ((const struct file_source *)source->ctx)->buffered;
}

unsigned pp_scan_source_stuck(const struct pp_scan_source *source)
{
	return ((const struct file_source *)source->ctx)->stuck;
}

void pp_scan_source_close(struct pp_scan_source *source)
{
	struct file_source *s = source->ctx;
	struct reader *r = s ? s->reader : NULL;
	int64_t deadline_ns;

	if (!s)
		return;
	if (r) {
		pthread_mutex_lock(&r->lock);
		r->quit = true;
		pthread_cond_broadcast(&r->changed);
		deadline_ns = pp_clock_mono_ns() + s->timeout_ns;
		while (!r->gone && pp_clock_mono_ns() < deadline_ns)
			wait_until(r, deadline_ns);
		if (r->gone)
			reader_let_go(r);
		else
			abandon(s, r);
	}
	source_free(s);
	memset(source, 0, sizeof(*source));
}
