/* SPDX-License-Identifier: MIT */
#include "disk_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_KB "2048" /* a processor: about 20000 requests */

static const char *const mounts[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

static int set(const struct pp_disk_trace *trace, const char *name, const char *value,
	struct pp_error *err)
{
	char path[512];
	size_t bytes = strlen(value);
	ssize_t n;
	int fd, code;

	snprintf(path, sizeof(path), "%s/%s", trace->folder, name);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return pp_fail_os(err, errno, "cannot open '%s'", path);
	n = write(fd, value, bytes);
	code = errno;
	if (close(fd) != 0 || n != (ssize_t)bytes)
		return pp_fail_os(err, n < 0 ? code : EIO, "cannot write '%s'", path);
	return 0;
}

static int number_of(const char *disk, struct pp_disk_trace *trace, struct pp_error *err)
{
	char path[128];
	FILE *f;
	int n = 0;

	snprintf(path, sizeof(path), "/sys/block/%.64s/dev", disk);
	f = fopen(path, "re");
	if (f) {
		n = fscanf(f, "%u:%u", &trace->dev_major, &trace->dev_minor);
		fclose(f);
	}
	return n == 2 ? 0 : pp_fail(err, PP_ERR_UNSUPPORTED, "'%s' has no device number", disk);
}

static int make_instance(struct pp_disk_trace *trace, struct pp_error *err)
{
	int code = ENOENT;
	size_t i;

	for (i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		snprintf(trace->folder, sizeof(trace->folder), "%s/events/block/block_rq_issue",
			mounts[i]);
		if (access(trace->folder, X_OK) != 0)
			continue;
		snprintf(trace->folder, sizeof(trace->folder), "%s/instances/plugpull-%ld", mounts[i],
			(long)getpid());
		if (mkdir(trace->folder, 0700) == 0)
			return 0;
		code = errno;
	}
	trace->folder[0] = '\0';
	return pp_fail(err, PP_ERR_UNSUPPORTED, "no tracefs: %s", strerror(code));
}

int pp_disk_trace_open(struct pp_disk_trace *trace, const char *disk, struct pp_error *err)
{
	char filter[64];

	memset(trace, 0, sizeof(*trace));
	if (number_of(disk, trace, err) != 0 || make_instance(trace, err) != 0)
		return -1;
	snprintf(filter, sizeof(filter), "dev == %u", trace->dev_major << 20 | trace->dev_minor);
	if (set(trace, "tracing_on", "0", err) == 0 &&
		set(trace, "buffer_size_kb", BUFFER_KB, err) == 0 &&
		set(trace, "events/block/block_rq_issue/filter", filter, err) == 0 &&
		set(trace, "events/block/block_rq_issue/enable", "1", err) == 0)
		return 0;
	pp_disk_trace_close(trace);
	return -1;
}

int pp_disk_trace_start(struct pp_disk_trace *trace, struct pp_error *err)
{
	return set(trace, "trace", "", err) == 0 ? set(trace, "tracing_on", "1", err) : -1;
}

int pp_disk_trace_stop(struct pp_disk_trace *trace, struct pp_disk_trace_counts *counts,
	struct pp_error *err)
{
	char path[512], *line = NULL;
	uint64_t kept = 0, written = 0;
	size_t room = 0;
	FILE *f;

	memset(counts, 0, sizeof(*counts));
	if (set(trace, "tracing_on", "0", err) != 0)
		return -1;
	snprintf(path, sizeof(path), "%s/trace", trace->folder);
	f = fopen(path, "re");
	if (!f)
		return pp_fail_os(err, errno, "cannot open '%s'", path);
	while (getline(&line, &room, f) > 0) {
		sscanf(line, "# entries-in-buffer/entries-written: %" SCNu64 "/%" SCNu64, &kept,
			&written);
		pp_disk_trace_line(line, trace->dev_major, trace->dev_minor, counts);
	}
	free(line);
	fclose(f);
	if (kept != written)
		return pp_fail(err, PP_ERR_SYSTEM, "the kernel kept %" PRIu64 " of %" PRIu64
			" trace entries", kept, written);
	return 0;
}

void pp_disk_trace_close(struct pp_disk_trace *trace)
{
	if (!trace->folder[0])
		return;
	set(trace, "events/block/block_rq_issue/enable", "0", NULL);
	rmdir(trace->folder);
	trace->folder[0] = '\0';
}
