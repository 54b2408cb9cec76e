/* SPDX-License-Identifier: MIT
 *
 * Real reads for the scan (scan.h): of a raw device or of the lanes' files, past every cache of
 * this host, with two reads of read-ahead so that checking and reading overlap.
 *
 * The reads happen in a thread of the source's own. One that gives no answer for the timeout is
 * reported as ETIMEDOUT and left behind: a thread in an uninterruptible read cannot be ended, so it
 * keeps its buffer and its descriptors until the kernel lets it go, and a fresh thread with
 * fresh descriptors goes on. Everything else stays in the caller's thread; one caller at a time.
 */
#ifndef PP_VERIFIER_SCAN_SOURCE_H
#define PP_VERIFIER_SCAN_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "scan.h"

#define PP_SCAN_READ_TIMEOUT_MS 60000 /* M4.1 */

/* How files are opened and read. Called from more than one thread; ctx must outlive threads that
 * are left behind, as must what it points to. */
struct pp_scan_io {
	void *ctx;
	/* open(2) of file number `file`: a descriptor, or -1 with errno. */
	int (*open)(void *ctx, uint32_t file, int flags);
	/* pread(2). */
	ssize_t (*pread)(void *ctx, int fd, void *buf, size_t bytes, off_t offset);
};

struct pp_scan_source_options {
	int64_t timeout_ms;          /* 0: PP_SCAN_READ_TIMEOUT_MS */
	uint32_t align_bytes;        /* 0: the logical block as the system tells it */
	const struct pp_scan_io *io; /* NULL: open and pread by path; copied */
};

/*
 * Makes *source read these paths: one a file (or folder) of the layout (pp_layout_files), copied.
 * Where every slot is a file, io->open is asked for files as pp_layout_file_at counts them, and one
 * is open at a time. options may be NULL. A path that is missing is no failure here: the source's size says ENOENT. Fails for a
 * count that does not fit, or without memory.
 */
int pp_scan_source_open(const struct pp_layout *layout, const char *const *paths, size_t count,
	const struct pp_scan_source_options *options, struct pp_scan_source *source,
	struct pp_error *err);

/* True once a file had to be read without O_DIRECT (tmpfs, for one): its pages were dropped before
 * each read, but no system promises that. For a warning beside the scan. */
bool pp_scan_source_buffered(const struct pp_scan_source *source);

/* Threads left behind in a read that never came back. */
unsigned pp_scan_source_stuck(const struct pp_scan_source *source);

/* Ends the thread and closes what it had open; waits for a read in progress no longer than the
 * timeout. A source that was never opened (all zeros) is fine. */
void pp_scan_source_close(struct pp_scan_source *source);

#endif
