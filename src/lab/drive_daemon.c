/* SPDX-License-Identifier: MIT */
#include "drive_daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file.h"
#include "drive_file.h"
#include "drive_model.h"

#define DESTAGE_STEP_MS 5
#define LINE_BYTES 1024

static struct {
	char image[4096], control[sizeof(((struct sockaddr_un *)0)->sun_path)];
	const char *behaviour, *order;
	uint64_t size_bytes, cache_bytes, destage_bytes_per_s, seed, latency_us;
} settings = { .behaviour = "honest", .order = "oldest", .cache_bytes = 8 << 20,
	.destage_bytes_per_s = 4 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pp_sim_drive *drive;
static struct pp_sim_drive_file file;
static int control_fd = -1;
static void (*complain)(const char *text);

/* ---- settings --------------------------------------------------------------------------- */

static int to_number(const char *key, const char *value, uint64_t *out, struct pp_error *err)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;

	errno = 0;
	*out = strtoull(value, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	for (; unit && unit >= units; unit--)
		*out *= 1024;
	if (value[0] < '0' || value[0] > '9' || errno || (*end && (!strchr(units, *end) || end[1])))
		return pp_fail(err, PP_ERR_USAGE, "cannot use '%s=%s'", key, value);
	return 0;
}

static int to_path(const char *value, char *out, size_t bytes, struct pp_error *err)
{
	if (snprintf(out, bytes, "%s", value) >= (int)bytes)
		return pp_fail_os(err, ENAMETOOLONG, "cannot use '%s'", value);
	return 0;
}

static const struct {
	const char *key;
	uint64_t *number;
} numbers[] = {
	{ "size", &settings.size_bytes }, { "cache", &settings.cache_bytes },
	{ "destage", &settings.destage_bytes_per_s }, { "seed", &settings.seed },
	{ "latency_us", &settings.latency_us },
};

int pp_drive_daemon_set(const char *key, const char *value, struct pp_error *err)
{
	if (!strcmp(key, "image"))
		return to_path(value, settings.image, sizeof(settings.image), err);
	if (!strcmp(key, "control"))
		return to_path(value, settings.control, sizeof(settings.control), err);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!strcmp(key, numbers[i].key))
			return to_number(key, value, numbers[i].number, err);
	if (!strcmp(key, "behaviour")) {
		const struct pp_sim_drive_behaviour *row = pp_sim_drive_behaviour_find(value);

		settings.behaviour = row ? row->name : NULL;
		return row ? 0 : pp_fail(err, PP_ERR_USAGE, "unknown behaviour '%s'", value);
	}
	if (!strcmp(key, "order") && (!strcmp(value, "oldest") || !strcmp(value, "random"))) {
		settings.order = value[0] == 'o' ? "oldest" : "random";
		return 0;
	}
	return pp_fail(err, PP_ERR_USAGE, "unknown setting '%s=%s'", key, value);
}

int pp_drive_daemon_power_on(struct pp_error *err)
{
	struct pp_sim_drive_config config = {
		.behaviour = pp_sim_drive_behaviour_find(settings.behaviour),
		.cache_bytes = settings.cache_bytes, .seed = settings.seed,
		.destage_bytes_per_s = settings.destage_bytes_per_s,
		.order = settings.order[0] == 'o' ? PP_DRIVE_OLDEST_FIRST : PP_DRIVE_RANDOM };
	struct pp_sim_drive_counters counters;

	if (!settings.image[0])
		return pp_fail(err, PP_ERR_USAGE, "image=FILE is missing");
	if (pp_sim_drive_file_open(&file, settings.image, settings.size_bytes, err)
	    || pp_sim_drive_file_load(&file, &counters, err))
		return -1;
	config.size_bytes = file.size_bytes;
	drive = pp_sim_drive_new(&config, &file.medium, &counters, err);
	if (!drive)
		return -1;
	pp_sim_drive_power_on(drive, pp_clock_mono_ns());
	counters = pp_sim_drive_counters_of(drive, false);
	return pp_sim_drive_file_save(&file, &counters, err);
}

/* ---- control ---------------------------------------------------------------------------- */

static void add_counters(struct pp_buf *out, const char *key, const struct pp_sim_drive_counters *c)
{
	pp_buf_addf(out, ", \"%s\": {\"reads\": %" PRIu64 ", \"writes\": %" PRIu64
		", \"fua_writes\": %" PRIu64 ", \"flushes\": %" PRIu64 "}", key, c->reads, c->writes,
		c->fua_writes, c->flushes);
}

static void say_state(struct pp_buf *out)
{
	struct pp_sim_drive_counters all = pp_sim_drive_counters_of(drive, false);
	struct pp_sim_drive_counters now = pp_sim_drive_counters_of(drive, true);

	pp_buf_addf(out, "{\"ok\": true, \"power\": %s, \"behaviour\": \"%s\", \"cache\": \"%s\", \"size_bytes\": %" PRIu64
		", \"dirty_bytes\": %" PRIu64 ", \"power_cycles\": %" PRIu64
		", \"unsafe_shutdowns\": %" PRIu64, pp_sim_drive_has_power(drive) ? "true" : "false",
		pp_sim_drive_behaviour_of(drive)->name, pp_sim_drive_cache_is_on(drive) ? "on"
		: pp_sim_drive_has_cache(drive) ? "off" : "none", pp_sim_drive_size_bytes(drive),
		pp_sim_drive_dirty_bytes(drive), all.power_cycles, all.unsafe_shutdowns);
	add_counters(out, "since_power_on", &now);
	add_counters(out, "total", &all);
	pp_buf_addf(out, "}\n");
}

static void say_refusal(struct pp_buf *out, const char *why)
{
	pp_buf_addf(out, "{\"ok\": false, \"error\": \"%s\"}\n", why);
}

/* The state as it was when the power went; the counters are saved as it left them. */
static void go_down(struct pp_buf *out, bool orderly, unsigned pct, uint64_t seed)
{
	int64_t now_ns = pp_clock_mono_ns();
	struct pp_sim_drive_counters counters;
	struct pp_error err = { 0 };
	struct pp_buf before;
	int rc;

	pp_buf_init(&before, 4096);
	say_state(&before);
	rc = orderly ? pp_sim_drive_power_off(drive, now_ns) : pp_sim_drive_cut(drive, now_ns, pct,
		seed);
	if (rc) {
		say_refusal(out, strerror(errno));
	} else {
		counters = pp_sim_drive_counters_of(drive, false);
		if (pp_sim_drive_file_save(&file, &counters, &err))
			say_refusal(out, "cannot save the counters");
		else
			pp_buf_add(out, before.data, before.bytes);
	}
	pp_buf_release(&before);
}

static void obey(const char *line, struct pp_buf *out)
{
	const struct pp_sim_drive_behaviour *row;
	uint64_t seed;
	unsigned pct;
	char end;

	if (!strcmp(line, "stat")) {
		say_state(out);
	} else if (!strcmp(line, "orderly")) {
		go_down(out, true, 0, 0);
	} else if (sscanf(line, "cut %u %" SCNu64 "%c", &pct, &seed, &end) == 2 && pct <= 100) {
		go_down(out, false, pct, seed);
	} else if (!strcmp(line, "cache on") || !strcmp(line, "cache off")) {
		if (pp_sim_drive_set_cache(drive, pp_clock_mono_ns(), !strcmp(line, "cache on")))
			say_refusal(out, strerror(errno));
		else
			say_state(out);
	} else if (!strncmp(line, "behaviour ", 10)) {
		row = pp_sim_drive_behaviour_find(line + 10);
		if (row) {
			pp_sim_drive_set_behaviour(drive, row);
			say_state(out);
		} else {
			say_refusal(out, "unknown behaviour");
		}
	} else {
		say_refusal(out, "unknown command");
	}
}

static void serve(int fd)
{
	char line[LINE_BYTES];
	size_t have = 0;
	ssize_t n;

	while ((n = read(fd, line + have, sizeof(line) - 1 - have)) > 0) {
		char *end;

		have += (size_t)n;
		while ((end = memchr(line, '\n', have))) {
			size_t used = (size_t)(end - line) + 1;
			struct pp_buf out;

			*end = '\0';
			pp_buf_init(&out, 8192);
			pthread_mutex_lock(&lock);
			obey(line, &out);
			pthread_mutex_unlock(&lock);
			if (!out.failed)
				pp_write_all(fd, out.data, out.bytes);
			pp_buf_release(&out);
			have -= used;
			memmove(line, line + used, have);
		}
		if (have == sizeof(line) - 1)
			break; /* no command is that long */
	}
	close(fd);
}

static void *control_thread(void *unused)
{
	(void)unused;
	for (;;) {
		int fd = accept4(control_fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0)
			serve(fd);
		else if (errno != EINTR && errno != ECONNABORTED)
			return NULL;
	}
}

/* ---- threads ---------------------------------------------------------------------------- */

static void *destage_thread(void *unused)
{
	char text[128];

	(void)unused;
	for (;;) {
		pp_clock_sleep_ms(DESTAGE_STEP_MS);
		pthread_mutex_lock(&lock);
		if (pp_sim_drive_tick(drive, pp_clock_mono_ns())) {
			snprintf(text, sizeof(text), "cannot destage: %s", strerror(errno));
			complain(text);
		}
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static int open_control(struct pp_error *err)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	strcpy(at.sun_path, settings.control);
	unlink(settings.control);
	control_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (control_fd < 0 || bind(control_fd, (struct sockaddr *)&at, sizeof(at))
	    || listen(control_fd, 8))
		return pp_fail_os(err, errno, "cannot listen on '%s'", settings.control);
	return 0;
}

int pp_drive_daemon_start(void (*complain_to)(const char *text), struct pp_error *err)
{
	pthread_t thread;
	int rc;

	complain = complain_to;
	if (settings.control[0] && open_control(err))
		return -1;
	rc = pthread_create(&thread, NULL, destage_thread, NULL);
	if (!rc && settings.control[0])
		rc = pthread_create(&thread, NULL, control_thread, NULL);
	return rc ? pp_fail_os(err, rc, "cannot start a thread") : 0;
}

/* ---- requests --------------------------------------------------------------------------- */

uint64_t pp_drive_daemon_size_bytes(void)
{
	return pp_sim_drive_size_bytes(drive);
}

bool pp_drive_daemon_has_cache(void)
{
	bool has;

	pthread_mutex_lock(&lock);
	has = pp_sim_drive_has_cache(drive);
	pthread_mutex_unlock(&lock);
	return has;
}

bool pp_drive_daemon_cache_is_on(void)
{
	bool on;

	pthread_mutex_lock(&lock);
	on = pp_sim_drive_cache_is_on(drive);
	pthread_mutex_unlock(&lock);
	return on;
}

static int finish(int rc)
{
	int code = errno;

	pthread_mutex_unlock(&lock);
	errno = code;
	return rc;
}

int pp_drive_daemon_read(void *data, size_t bytes, uint64_t offset)
{
	pthread_mutex_lock(&lock);
	return finish(pp_sim_drive_read(drive, pp_clock_mono_ns(), data, bytes, offset));
}

int pp_drive_daemon_write(const void *data, size_t bytes, uint64_t offset, bool fua)
{
	struct pp_sim_drive_write write = { .data = data, .bytes = bytes, .offset = offset,
		.fua = fua };
	int rc;

	pthread_mutex_lock(&lock);
	rc = pp_sim_drive_submit(drive, pp_clock_mono_ns(), &write);
	if (!rc && settings.latency_us) {
		pthread_mutex_unlock(&lock);
		usleep((useconds_t)settings.latency_us);
		pthread_mutex_lock(&lock);
	}
	if (!rc)
		rc = pp_sim_drive_complete(drive, pp_clock_mono_ns(), &write);
	return finish(rc);
}

int pp_drive_daemon_set_cache(bool on)
{
	pthread_mutex_lock(&lock);
	return finish(pp_sim_drive_set_cache(drive, pp_clock_mono_ns(), on));
}

int pp_drive_daemon_flush(void)
{
	pthread_mutex_lock(&lock);
	return finish(pp_sim_drive_flush(drive, pp_clock_mono_ns()));
}
