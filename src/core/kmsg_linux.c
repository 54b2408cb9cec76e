/* SPDX-License-Identifier: MIT
 *
 * A record of /dev/kmsg is "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS[,...];TEXT\n" and perhaps lines of
 * keys that begin with a blank. PRIORITY is facility * 8 + level; facility 0 is the kernel's.
 */
#include "kmsg.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD_BYTES 8192

/* A line matches if `before`, a device of ours, `after` stand in a row, `contains` anywhere. */
struct pattern {
	const char *before;
	const char *after;
	const char *contains; /* NULL: anything */
	enum pp_kmsg_class class;
};

static const struct pattern patterns[] = {
	/* block/blk-core.c, blk_errors[]: the word before is the kind of error. */
	{"I/O error, dev ", ",", NULL, PP_KMSG_IO_ERROR},
	{"critical medium error, dev ", ",", NULL, PP_KMSG_IO_ERROR},
	{"critical target error, dev ", ",", NULL, PP_KMSG_IO_ERROR},
	{"critical nexus error, dev ", ",", NULL, PP_KMSG_IO_ERROR},
	{"critical space allocation error, dev ", ",", NULL, PP_KMSG_IO_ERROR},
	{"timeout error, dev ", ",", NULL, PP_KMSG_IO_ERROR},
	{"recoverable transport error, dev ", ",", NULL, PP_KMSG_IO_ERROR},
	{"protection error, dev ", ",", NULL, PP_KMSG_IO_ERROR},
	{"device offline error, dev ", ",", NULL, PP_KMSG_IO_ERROR},
	{"kernel resource error, dev ", ",", NULL, PP_KMSG_IO_ERROR},
	{"device resource error, dev ", ",", NULL, PP_KMSG_IO_ERROR},
	/* fs/buffer.c and fs/mpage.c */
	{"Buffer I/O error on dev ", ",", NULL, PP_KMSG_IO_ERROR},
	{"Buffer I/O error on device ", ",", NULL, PP_KMSG_IO_ERROR},
	{"lost page write due to I/O error on ", "", NULL, PP_KMSG_IO_ERROR},
	{"lost sync page write due to I/O error on ", "", NULL, PP_KMSG_IO_ERROR},
	/* drivers */
	{"", ": I/O Cmd(", "error", PP_KMSG_IO_ERROR},
	{"[", "]", "FAILED Result", PP_KMSG_IO_ERROR},
	{"[", "]", "Sense Key : Medium Error", PP_KMSG_IO_ERROR},
	{"[", "]", "Sense Key : Hardware Error", PP_KMSG_IO_ERROR},
	{"block ", ": Other side returned error", NULL, PP_KMSG_IO_ERROR},
	{"Aborting journal on device ", "", NULL, PP_KMSG_FS_ERROR},
	{"JBD2: I/O error when updating journal superblock for ", "", NULL, PP_KMSG_FS_ERROR},
	/* file systems */
	{"EXT4-fs error (device ", ")", NULL, PP_KMSG_FS_ERROR},
	{"EXT4-fs warning (device ", ")", NULL, PP_KMSG_FS_ERROR},
	/* Not "error" alone: errors=remount-ro is told at every mount. */
	{"EXT4-fs (", ")", "I/O error", PP_KMSG_IO_ERROR},
	{"EXT4-fs (", ")", "with errors", PP_KMSG_FS_ERROR},
	{"EXT4-fs (", ")", "error count", PP_KMSG_FS_ERROR},
	{"EXT4-fs (", ")", "error loading journal", PP_KMSG_FS_ERROR},
	{"EXT4-fs (", ")", "rror reading", PP_KMSG_FS_ERROR},
	{"EXT4-fs (", ")", "failed", PP_KMSG_FS_ERROR},
	{"EXT4-fs (", ")", "corrupt", PP_KMSG_FS_ERROR},
	{"EXT4-fs (", ")", "Remounting filesystem read-only", PP_KMSG_FS_ERROR},
	{"XFS (", ")", "I/O error", PP_KMSG_IO_ERROR},
	{"XFS (", ")", "log I/O", PP_KMSG_IO_ERROR},
	{"XFS (", ")", "error", PP_KMSG_FS_ERROR},
	{"XFS (", ")", "orruption", PP_KMSG_FS_ERROR},
	{"XFS (", ")", "has been shut down", PP_KMSG_FS_ERROR},
	{"XFS (", ")", "failed", PP_KMSG_FS_ERROR},
	{"BTRFS error (device ", "", NULL, PP_KMSG_FS_ERROR},
	{"BTRFS critical (device ", "", NULL, PP_KMSG_FS_ERROR},
	{"BTRFS warning (device ", "", "failed", PP_KMSG_FS_ERROR},
	{"F2FS-fs (", ")", "rror", PP_KMSG_FS_ERROR},
	{"FAT-fs (", ")", "error", PP_KMSG_FS_ERROR},
	/* the way to the disk */
	{"nvme ", ": I/O tag ", "timeout", PP_KMSG_LINK},
	{"nvme ", ": I/O ", "timeout", PP_KMSG_LINK},
	{"nvme ", ": controller is down", NULL, PP_KMSG_LINK},
	{"nvme ", ": Device not ready", NULL, PP_KMSG_LINK},
	{"block ", ": Connection timed out", NULL, PP_KMSG_LINK},
	{"block ", ": Receive control failed", NULL, PP_KMSG_LINK},
	{"block ", ": shutting down sockets", NULL, PP_KMSG_LINK},
	{"", ": detected capacity change from ", " to 0", PP_KMSG_LINK},
};

const char *pp_kmsg_class_name(enum pp_kmsg_class class)
{
	static const char *const names[] = {
		[PP_KMSG_IO_ERROR] = "I/O error",
		[PP_KMSG_FS_ERROR] = "file system error",
		[PP_KMSG_LINK] = "link",
		[PP_KMSG_MISSED] = "lines missed",
	};

	return names[class];
}

/*
 * Length of the device of ours that begins at text; 0 if none does. A partition belongs to its
 * disk: sda1, nvme0n1p1; the kernel puts a p where the disk's own name ends in a digit.
 */
static size_t match_name(const struct pp_kmsg *watch, const char *text)
{
	size_t token = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_!");

	for (size_t i = 0; i < watch->name_count; i++) {
		const char *name = watch->names[i];
		size_t n = strlen(name);
		const char *part = text + n;
		size_t left;

		if (token < n || strncmp(text, name, n) != 0)
			continue;
		left = token - n;
		if (left == 0)
			return token;
		/* jbd2 appends "-8", the journal's inode. */
		if (*part == '-' && strspn(part + 1, "0123456789") == left - 1)
			return token;
		if (isdigit((unsigned char)name[n - 1])) {
			if (*part != 'p')
				continue;
			part++;
			left--;
		}
		n = strspn(part, "0123456789");
		if (n && (n == left || part[n] == '-'))
			return token;
	}
	return 0;
}

static bool match_pattern(const struct pp_kmsg *watch, const struct pattern *p, const char *text)
{
	size_t before = strlen(p->before), after = strlen(p->after);

	for (const char *at = text; (at = strstr(at, p->before)) != NULL && *at; at++) {
		size_t n;

		/* An empty `before` means the start of the line, else any word would do. */
		if (!before && at != text)
			break;
		n = match_name(watch, at + before);
		if (n && strncmp(at + before + n, p->after, after) == 0)
			return !p->contains || strstr(text, p->contains);
	}
	return false;
}

bool pp_kmsg_match(const struct pp_kmsg *watch, const char *text, enum pp_kmsg_class *class)
{
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		if (!match_pattern(watch, &patterns[i], text))
			continue;
		*class = patterns[i].class;
		return true;
	}
	return false;
}

static ssize_t read_device(void *arg, char *record, size_t bytes)
{
	const struct pp_kmsg *watch = arg;

	return read(watch->fd, record, bytes);
}

bool pp_kmsg_add_name(struct pp_kmsg *watch, const char *name)
{
	if (!*name || watch->name_count == PP_KMSG_NAMES_MAX)
		return false;
	snprintf(watch->names[watch->name_count++], sizeof(watch->names[0]), "%s", name);
	return true;
}

void pp_kmsg_open_source(struct pp_kmsg *watch, const char *disk, struct pp_kmsg_source source)
{
	memset(watch, 0, sizeof(*watch));
	watch->fd = -1;
	watch->source = source;
	pp_kmsg_add_name(watch, disk);
}

int pp_kmsg_open(struct pp_kmsg *watch, const char *disk, struct pp_error *err)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	pp_kmsg_open_source(watch, disk, (struct pp_kmsg_source){NULL, NULL});
	if (fd < 0)
		return pp_fail_os(err, errno, "cannot open the kernel log '/dev/kmsg'");
	if (lseek(fd, 0, SEEK_END) < 0) {
		int code = errno;

		close(fd);
		return pp_fail_os(err, code, "cannot go to the end of the kernel log");
	}
	watch->fd = fd;
	return 0;
}

void pp_kmsg_close(struct pp_kmsg *watch)
{
	if (watch->fd >= 0)
		close(watch->fd);
	watch->fd = -1;
}

/* Cuts the record into its text and time; false if it is not the kernel's own. */
static bool parse_record(char *record, const char **text, uint64_t *log_us)
{
	char *semicolon = strchr(record, ';');
	char *at, *end;

	if (!semicolon)
		return false;
	if (strtoul(record, &at, 10) >> 3 != 0 || *at != ',')
		return false;
	strtoull(at + 1, &at, 10);
	if (*at != ',')
		return false;
	*log_us = strtoull(at + 1, NULL, 10);
	*text = semicolon + 1;
	end = strchr(semicolon, '\n');
	if (end)
		*end = '\0';
	return true;
}

int pp_kmsg_poll(struct pp_kmsg *watch, struct pp_kmsg_event *event, struct pp_error *err)
{
	ssize_t (*const source)(void *, char *, size_t) =
		watch->source.read ? watch->source.read : read_device;
	void *arg = watch->source.read ? watch->source.arg : watch;
	char record[RECORD_BYTES];

	if (!watch->source.read && watch->fd < 0)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "the kernel log is not open");
	for (;;) {
		ssize_t n = source(arg, record, sizeof(record) - 1);
		const char *text;

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || (n < 0 && errno == EAGAIN))
			return 0;
		if (n < 0 && errno == EPIPE) {
			*event = (struct pp_kmsg_event){.class = PP_KMSG_MISSED};
			snprintf(event->text, sizeof(event->text), "the kernel log overran its reader");
			return 1;
		}
		if (n < 0)
			return pp_fail_os(err, errno, "cannot read the kernel log");
		record[n] = '\0';
		if (!parse_record(record, &text, &event->log_us))
			continue;
		if (!pp_kmsg_match(watch, text, &event->class))
			continue;
		snprintf(event->text, sizeof(event->text), "%s", text);
		return 1;
	}
}
