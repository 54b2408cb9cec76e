/* SPDX-License-Identifier: MIT */
#include "drive_host.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "core/clock.h"
#include "core/file.h"
#include "drive_model.h"

#define START_MS   10000
#define COMMAND_MS 30000
#define PAUSE_MS   2
#define SETTINGS   9
#define FRONT_WORDS_MAX 16

int pp_lab_drive_check(const struct pp_lab_drive *drive, struct pp_error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

	if (!drive->serial[0] || drive->serial[0] == '.'
	    || drive->serial[strspn(drive->serial, letters)])
		return pp_fail(err, PP_ERR_USAGE,
			"'%s' is no serial: letters, digits, '-', '_' and '.' only", drive->serial);
	if (!pp_sim_drive_behaviour_find(drive->behaviour))
		return pp_fail(err, PP_ERR_USAGE, "drive '%s' has an unknown behaviour '%s'",
			drive->serial, drive->behaviour);
	if (drive->survive_pct > 100)
		return pp_fail(err, PP_ERR_USAGE, "drive '%s': %u %% cannot survive", drive->serial,
			drive->survive_pct);
	if (drive->block_bytes != 512 && drive->block_bytes != 4096)
		return pp_fail(err, PP_ERR_USAGE, "drive '%s': a block has 512 or 4096 bytes, not %d",
			drive->serial, drive->block_bytes);
	if (!drive->size_bytes || drive->size_bytes % 4096 || drive->cache_bytes < 512)
		return pp_fail(err, PP_ERR_USAGE,
			"drive '%s': its size must be a multiple of 4096, its cache at least 512 bytes",
			drive->serial);
	return 0;
}

int pp_lab_connect(const char *path, int64_t timeout_ms, struct pp_error *err)
{
	int64_t until_ns = pp_clock_mono_ns() + timeout_ms * PP_NS_PER_MS;
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int code, fd;

	if (strlen(path) >= sizeof(at.sun_path))
		return pp_fail_os(err, ENAMETOOLONG, "cannot connect to '%s'", path);
	strcpy(at.sun_path, path);
	for (;;) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			return pp_fail_os(err, errno, "cannot make a socket");
		if (!connect(fd, (struct sockaddr *)&at, sizeof(at)))
			return fd;
		code = errno;
		close(fd);
		if ((code != ENOENT && code != ECONNREFUSED) || pp_clock_mono_ns() >= until_ns)
			return pp_fail_os(err, code, "cannot connect to '%s'", path);
		pp_clock_sleep_ms(PAUSE_MS);
	}
}

int pp_drive_host_start(struct pp_drive_host *host, const char *const front[], uint64_t seed,
	const char *log_path, struct pp_error *err)
{
	const struct pp_lab_drive *d = &host->drive;
	const char *argv[FRONT_WORDS_MAX + SETTINGS + 1] = { NULL };
	char words[SETTINGS][4200];
	int n = 0;

	for (; front[n]; n++) {
		assert(n < FRONT_WORDS_MAX);
		argv[n] = front[n];
	}
	for (int i = 0; i < SETTINGS; i++)
		argv[n++] = words[i];
	snprintf(words[0], sizeof(words[0]), "image=%s", host->image);
	snprintf(words[1], sizeof(words[1]), "size=%" PRIu64, d->size_bytes);
	snprintf(words[2], sizeof(words[2]), "behaviour=%s", d->behaviour);
	snprintf(words[3], sizeof(words[3]), "cache=%" PRIu64, d->cache_bytes);
	snprintf(words[4], sizeof(words[4]), "destage=%" PRIu64, d->destage_bytes_per_s);
	snprintf(words[5], sizeof(words[5]), "seed=%" PRIu64, seed);
	snprintf(words[6], sizeof(words[6]), "order=%s", d->random_order ? "random" : "oldest");
	snprintf(words[7], sizeof(words[7]), "latency_us=%u", d->latency_us);
	snprintf(words[8], sizeof(words[8]), "control=%s", host->control);
	unlink(host->control);
	host->pid = pp_child_start(argv, -1, log_path, err);
	if (host->pid < 0) {
		host->pid = 0;
		return -1;
	}
	return 0;
}

int pp_drive_host_await(struct pp_drive_host *host, const char *log_path, struct pp_error *err)
{
	int64_t until_ns = pp_clock_mono_ns() + START_MS * PP_NS_PER_MS;
	int fd;

	for (;;) {
		fd = pp_lab_connect(host->control, 0, err);
		if (fd >= 0) {
			close(fd);
			return 0;
		}
		if (waitpid(host->pid, NULL, WNOHANG) == host->pid) {
			host->pid = 0;
			return pp_fail(err, PP_ERR_SYSTEM, "drive '%s' did not start (see '%s')",
				host->drive.serial, log_path);
		}
		if (pp_clock_mono_ns() >= until_ns) {
			pp_drive_host_kill(host);
			return pp_fail_within(err, "drive '%s' did not start", host->drive.serial);
		}
		pp_clock_sleep_ms(PAUSE_MS);
	}
}

int pp_drive_host_command(const struct pp_drive_host *host, const char *command,
	struct pp_buf *out, struct pp_error *err)
{
	size_t start = out->bytes;
	char chunk[2048];
	int rc = 0, fd;

	if (!host->pid)
		return pp_fail(err, PP_ERR_PEER, "drive '%s' has no power", host->drive.serial);
	fd = pp_lab_connect(host->control, 0, err);
	if (fd < 0)
		return -1;
	snprintf(chunk, sizeof(chunk), "%s\n", command);
	if (pp_write_all(fd, chunk, strlen(chunk)))
		rc = pp_fail_os(err, errno, "cannot command drive '%s'", host->drive.serial);
	while (!rc && (out->bytes == start || out->data[out->bytes - 1] != '\n')) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n = poll(&p, 1, COMMAND_MS) == 1 ? read(fd, chunk, sizeof(chunk)) : 0;

		if (n <= 0)
			rc = pp_fail(err, PP_ERR_PEER, "drive '%s' did not answer '%s'",
				host->drive.serial, command);
		else
			pp_buf_add(out, chunk, (size_t)n);
	}
	close(fd);
	if (!rc && (out->failed || strncmp(out->data + start, "{\"ok\": true", 11)))
		rc = pp_fail(err, PP_ERR_PEER, "drive '%s' refused '%s': %s", host->drive.serial, command,
			out->failed ? "" : out->data + start);
	return rc;
}

void pp_drive_host_kill(struct pp_drive_host *host)
{
	if (!host->pid)
		return;
	kill(host->pid, SIGKILL);
	while (waitpid(host->pid, NULL, 0) < 0 && errno == EINTR)
		;
	host->pid = 0;
}

static uint64_t number_after(const char *json, const char *key)
{
	const char *at = strstr(json, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

int pp_drive_host_smart(const struct pp_drive_host *host, struct pp_buf *json,
	struct pp_error *err)
{
	unsigned long long cycles, unsafe;
	struct pp_buf stat;
	int rc;

	pp_buf_init(&stat, 1 << 14);
	rc = pp_drive_host_command(host, "stat", &stat, err);
	if (!rc) {
		cycles = number_after(stat.data, "\"power_cycles\": ");
		unsafe = number_after(stat.data, "\"unsafe_shutdowns\": ");
		pp_buf_addf(json, "{\"json_format_version\": [1, 0], \"smartctl\": {\"version\": [7, 3], "
			"\"exit_status\": 0}, \"device\": {\"type\": \"nvme\", \"protocol\": \"NVMe\"},\n"
			"\"model_name\": \"plugpull lab drive\", \"serial_number\": \"%s\", "
			"\"firmware_version\": \"LAB1\",\n\"user_capacity\": {\"bytes\": %llu}, "
			"\"logical_block_size\": %d, \"smart_status\": {\"passed\": true},\n"
			"\"nvme_smart_health_information_log\": {\"critical_warning\": 0, \"temperature\": 35, "
			"\"power_cycles\": %llu, \"power_on_hours\": 1, \"unsafe_shutdowns\": %llu, "
			"\"media_errors\": 0, \"num_err_log_entries\": 0},\n"
			"\"power_cycle_count\": %llu, \"power_on_time\": {\"hours\": 1}}\n",
			host->drive.serial, (unsigned long long)host->drive.size_bytes, host->drive.block_bytes,
			cycles, unsafe, cycles);
	}
	pp_buf_release(&stat);
	return rc;
}
