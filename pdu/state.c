/* SPDX-License-Identifier: MIT */
#include "state.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/clock.h"
#include "src/core/file.h"

#define HOUR_NS           (3600 * PP_NS_PER_S)
#define HISTORY_BYTES_MAX 65536

int pp_state_dir(const char *given, char *out, size_t bytes, struct pp_error *err)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *slash, *real, parent[PATH_MAX];
	int n;

	if (given && *given)
		n = snprintf(out, bytes, "%s", given);
	else if (state && *state == '/')
		n = snprintf(out, bytes, "%s/plugpull", state);
	else if (home && *home == '/')
		n = snprintf(out, bytes, "%s/.local/state/plugpull", home);
	else
		return pp_fail(err, PP_ERR_USAGE, "no state folder: set HOME or XDG_STATE_HOME");
	if (n >= (int)bytes || n >= PATH_MAX)
		return pp_fail(err, PP_ERR_USAGE, "the state folder's path is too long");
	snprintf(parent, sizeof(parent), "%s", out);
	slash = strrchr(parent, '/');
	if (slash && slash != parent) {
		*slash = '\0';
		if (pp_mkdirs(parent, err) != 0)
			return -1;
	}
	if (mkdir(out, 0700) != 0 && errno != EEXIST)
		return pp_fail_os(err, errno, "cannot make folder '%s'", out);
	real = realpath(out, NULL); /* the guard works in another folder */
	if (!real || snprintf(out, bytes, "%s", real) >= (int)bytes) {
		free(real);
		return pp_fail(err, PP_ERR_USAGE, "the state folder's path is too long");
	}
	free(real);
	return 0;
}

int pp_state_path(const char *dir, const char *folder, const char *key, const char *suffix,
	char *out, size_t bytes, struct pp_error *err)
{
	int n = snprintf(out, bytes, "%s/%s", dir, folder);

	if (n >= (int)bytes)
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", dir);
	if (mkdir(out, 0700) != 0 && errno != EEXIST)
		return pp_fail_os(err, errno, "cannot make folder '%s'", out);
	n += snprintf(out + n, bytes - (size_t)n, "/");
	for (; *key && n < (int)bytes - 4; key++) {
		unsigned char c = (unsigned char)*key;

		n += sprintf(out + n, isalnum(c) || strchr("-_.", c) ? "%c" : "%%%02X", c);
	}
	if (*key || snprintf(out + n, bytes - (size_t)n, "%s", suffix) >= (int)bytes - n)
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", dir);
	return 0;
}

int pp_state_lock_open(const char *dir, const char *key, struct pp_error *err)
{
	char path[PATH_MAX];
	int fd;

	if (pp_state_path(dir, "locks", key, ".lock", path, sizeof(path), err) != 0)
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return pp_fail_os(err, errno, "cannot open '%s'", path);
	return fd;
}

int pp_state_lock(int fd, int64_t wait_ms, struct pp_error *err)
{
	int64_t deadline_ns = pp_clock_mono_ns() + wait_ms * PP_NS_PER_MS;

	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return pp_fail_os(err, errno, "cannot lock the power switch");
		if (pp_clock_mono_ns() > deadline_ns)
			return pp_fail(err, PP_ERR_REFUSED,
				"another process holds the power switch for more than %lld ms",
				(long long)wait_ms);
		pp_clock_sleep_ms(2);
	}
	return 0;
}

void pp_state_unlock(int fd)
{
	flock(fd, LOCK_UN);
}

void pp_state_boot_id(char out[PP_BOOT_ID_BYTES])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, PP_BOOT_ID_BYTES - 1);

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

unsigned long long pp_state_process_start(pid_t pid)
{
	char path[64], text[1024], *at;
	unsigned long long start = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strrchr(text, ')'); /* the name may hold anything; field 3 follows it */
	if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
		return 0;
	for (int field = 3; at && field <= 22; field++)
		at = strchr(at + 1, ' ');
	if (at)
		start = strtoull(at + 1, NULL, 10);
	return start;
}

bool pp_state_alive(pid_t pid, unsigned long long start, const char *boot_id)
{
	char now[PP_BOOT_ID_BYTES];

	pp_state_boot_id(now);
	return pid > 0 && strcmp(now, boot_id) == 0 && pp_state_process_start(pid) == start;
}

/* A first line "total N", then lines "BOOT_ID NANOSECONDS off|on". A line that is none is skipped: a limit, not evidence. */
static void read_line(const char *line, const char *boot_id, int64_t now_ns,
	struct pp_history *history)
{
	size_t bytes = strlen(boot_id);
	long long at;
	char what[4];

	if (sscanf(line, "total %lld", &at) == 1)
		history->offs_total = at;
	if (strncmp(line, boot_id, bytes) != 0 || sscanf(line + bytes, " %lld %3s", &at, what) != 2)
		return;
	if (strcmp(what, "on") == 0 && at > history->last_on_ns)
		history->last_on_ns = at;
	if (strcmp(what, "off") == 0 && now_ns - at < HOUR_NS) {
		history->offs_last_hour++;
		if (!history->oldest_off_ns || at < history->oldest_off_ns)
			history->oldest_off_ns = at;
	}
}

static int load(const char *path, struct pp_buf *buf, struct pp_error *err)
{
	pp_buf_init(buf, HISTORY_BYTES_MAX);
	return access(path, F_OK) == 0 ? pp_file_read(path, buf, err) : 0;
}

int pp_history_read(const char *dir, const char *key, struct pp_history *history,
	struct pp_error *err)
{
	char path[PATH_MAX], boot_id[PP_BOOT_ID_BYTES], *line, *save = NULL;
	int64_t now_ns = pp_clock_boot_ns();
	struct pp_buf buf;
	int rc;

	memset(history, 0, sizeof(*history));
	if (pp_state_path(dir, "history", key, ".txt", path, sizeof(path), err) != 0)
		return -1;
	rc = load(path, &buf, err);
	pp_state_boot_id(boot_id);
	for (line = buf.data ? strtok_r(buf.data, "\n", &save) : NULL; rc == 0 && line;
	     line = strtok_r(NULL, "\n", &save))
		read_line(line, boot_id, now_ns, history);
	pp_buf_release(&buf);
	return rc;
}

int pp_history_add(const char *dir, const char *key, const char *what, struct pp_error *err)
{
	char path[PATH_MAX], boot_id[PP_BOOT_ID_BYTES], *line, *save = NULL;
	int64_t now_ns = pp_clock_boot_ns();
	struct pp_history history;
	struct pp_buf before, after;
	int rc;

	if (pp_history_read(dir, key, &history, NULL) != 0)
		memset(&history, 0, sizeof(history));
	if (pp_state_path(dir, "history", key, ".txt", path, sizeof(path), err) != 0)
		return -1;
	if (load(path, &before, NULL) != 0)
		pp_buf_clear(&before); /* too long or unreadable: begin anew */
	pp_buf_init(&after, HISTORY_BYTES_MAX);
	pp_state_boot_id(boot_id);
	pp_buf_addf(&after, "total %lld\n", history.offs_total + (strcmp(what, "off") == 0));
	for (line = before.data ? strtok_r(before.data, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		size_t bytes = strlen(boot_id);
		long long at;

		if (strncmp(line, boot_id, bytes) == 0 && sscanf(line + bytes, " %lld", &at) == 1 &&
		    now_ns - at < HOUR_NS)
			pp_buf_addf(&after, "%s\n", line);
	}
	pp_buf_addf(&after, "%s %lld %s\n", boot_id, (long long)now_ns, what);
	rc = after.failed ? pp_fail(err, PP_ERR_SYSTEM, "history of '%s' is too long", key) :
		pp_file_write(path, after.data, after.bytes, 0600, err);
	pp_buf_release(&before);
	pp_buf_release(&after);
	return rc;
}
