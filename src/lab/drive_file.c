/* SPDX-License-Identifier: MIT */
#include "drive_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"

/* The image lives on a host that keeps its power, so nothing here syncs: losing the process is the
 * worst that happens to it, and the page cache survives that. */
static int image_read(void *ctx, void *data, size_t bytes, uint64_t offset)
{
	struct pp_sim_drive_file *file = ctx;

	for (char *at = data; bytes;) {
		ssize_t n = pread(file->fd, at, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n ? errno : EIO;
			return -1;
		}
		at += n;
		offset += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int image_write(void *ctx, const void *data, size_t bytes, uint64_t offset)
{
	struct pp_sim_drive_file *file = ctx;

	for (const char *at = data; bytes;) {
		ssize_t n = pwrite(file->fd, at, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n ? errno : EIO;
			return -1;
		}
		at += n;
		offset += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

int pp_sim_drive_file_open(struct pp_sim_drive_file *file, const char *image, uint64_t size_bytes,
	struct pp_error *err)
{
	struct stat st;

	*file = (struct pp_sim_drive_file){ .fd = -1,
		.medium = { .ctx = file, .read = image_read, .write = image_write } };
	if (snprintf(file->counters_path, sizeof(file->counters_path), "%s.counters", image)
	    >= (int)sizeof(file->counters_path))
		return pp_fail_os(err, ENAMETOOLONG, "cannot name the counters of '%s'", image);
	file->fd = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file->fd < 0)
		return pp_fail_os(err, errno, "cannot open '%s'", image);
	if (fstat(file->fd, &st)) {
		pp_fail_os(err, errno, "cannot stat '%s'", image);
		goto close;
	}
	file->size_bytes = size_bytes ? size_bytes : (uint64_t)st.st_size;
	if (st.st_size >= (off_t)file->size_bytes)
		return 0;
	if (!ftruncate(file->fd, (off_t)file->size_bytes))
		return 0;
	pp_fail_os(err, errno, "cannot make '%s' %" PRIu64 " bytes long", image, file->size_bytes);
close:
	pp_sim_drive_file_close(file);
	return -1;
}

void pp_sim_drive_file_close(struct pp_sim_drive_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

/* Name and place of each counter in the file; one table for both directions. */
#define COUNTER(name) { #name, offsetof(struct pp_sim_drive_counters, name) }
static const struct {
	const char *name;
	size_t place;
} fields[] = {
	COUNTER(power_cycles), COUNTER(unsafe_shutdowns), COUNTER(reads), COUNTER(writes),
	COUNTER(fua_writes), COUNTER(flushes),
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static int set_field(struct pp_sim_drive_counters *counters, const char *name, uint64_t value)
{
	if (!strcmp(name, "went_down_in_order")) {
		counters->went_down_in_order = value;
		return 0;
	}
	for (size_t i = 0; i < FIELDS; i++)
		if (!strcmp(fields[i].name, name)) {
			memcpy((char *)counters + fields[i].place, &value, sizeof(value));
			return 0;
		}
	return -1;
}

int pp_sim_drive_file_load(const struct pp_sim_drive_file *file,
	struct pp_sim_drive_counters *counters,
	struct pp_error *err)
{
	struct pp_buf text;
	char *save = NULL;
	int rc = 0;

	*counters = (struct pp_sim_drive_counters){ .went_down_in_order = true };
	if (access(file->counters_path, F_OK) && errno == ENOENT)
		return 0;
	pp_buf_init(&text, 4096);
	if (pp_file_read(file->counters_path, &text, err))
		rc = -1;
	for (char *line = rc || !text.data ? NULL : strtok_r(text.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char name[32];
		uint64_t value;

		if (sscanf(line, "%31s %" SCNu64, name, &value) != 2
		    || set_field(counters, name, value)) {
			rc = pp_fail(err, PP_ERR_SYSTEM, "cannot understand '%s' in '%s'", line,
				file->counters_path);
			break;
		}
	}
	pp_buf_release(&text);
	return rc;
}

int pp_sim_drive_file_save(const struct pp_sim_drive_file *file,
	const struct pp_sim_drive_counters *counters,
	struct pp_error *err)
{
	struct pp_buf text;
	int rc;

	pp_buf_init(&text, 4096);
	for (size_t i = 0; i < FIELDS; i++) {
		uint64_t value;

		memcpy(&value, (const char *)counters + fields[i].place, sizeof(value));
		pp_buf_addf(&text, "%s %" PRIu64 "\n", fields[i].name, value);
	}
	pp_buf_addf(&text, "went_down_in_order %d\n", counters->went_down_in_order);
	rc = text.failed ? pp_fail_os(err, ENOMEM, "cannot write '%s'", file->counters_path)
		: pp_file_write(file->counters_path, text.data, text.bytes, 0600, err);
	pp_buf_release(&text);
	return rc;
}
