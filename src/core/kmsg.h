/* SPDX-License-Identifier: MIT
 *
 * Watches the kernel log from now on for trouble of one disk (docs/method.md, M2.3: an I/O error of
 * this disk ends all acks of the run), its partitions and what is named beside it.
 *
 * Lines come from /dev/kmsg (Documentation/ABI/testing/dev-kmsg); only the kernel's own count,
 * since root may write there too. The device must match whole: nbd1 is not nbd10, sda is not sdaa.
 * One thread at a time may use a watch.
 */
#ifndef PP_CORE_KMSG_H
#define PP_CORE_KMSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "error.h"

#define PP_KMSG_NAMES_MAX 16

enum pp_kmsg_class {
	PP_KMSG_IO_ERROR,  /* the disk failed a command */
	PP_KMSG_FS_ERROR,  /* a file system on it complains */
	PP_KMSG_LINK,      /* reset, timeout, gone: the way to the disk */
	PP_KMSG_MISSED,    /* the log overran us: lines were lost, nothing is known of them */
};

const char *pp_kmsg_class_name(enum pp_kmsg_class class);

struct pp_kmsg_event {
	enum pp_kmsg_class class;
	uint64_t log_us;     /* the kernel's own time stamp */
	char text[480];      /* the line */
};

/* Where records come from: like read(2) on a non-blocking /dev/kmsg, one record a call. */
struct pp_kmsg_source {
	ssize_t (*read)(void *arg, char *record, size_t bytes);
	void *arg;
};

struct pp_kmsg {
	int fd; /* for poll(2); -1 with a source of one's own */
	struct pp_kmsg_source source;
	char names[PP_KMSG_NAMES_MAX][64];
	size_t name_count;
};

/* From now on: what the log already holds does not count. disk is a kernel name, "nvme0n1". */
int pp_kmsg_open(struct pp_kmsg *watch, const char *disk, struct pp_error *err);
/* The same over another source; cannot fail. */
void pp_kmsg_open_source(struct pp_kmsg *watch, const char *disk, struct pp_kmsg_source source);
/* Another device of the stack ("dm-0", "md0", the controller "nvme0"). False when full. */
bool pp_kmsg_add_name(struct pp_kmsg *watch, const char *name);
void pp_kmsg_close(struct pp_kmsg *watch);

/* Never blocks: 1 with *event, 0 when the log has nothing (more) of this disk, -1 on failure. */
int pp_kmsg_poll(struct pp_kmsg *watch, struct pp_kmsg_event *event, struct pp_error *err);

/* True if this message (text alone, no prefix) is trouble of one of the watch's devices. */
bool pp_kmsg_match(const struct pp_kmsg *watch, const char *text, enum pp_kmsg_class *class);

#endif
