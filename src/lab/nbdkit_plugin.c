/* SPDX-License-Identifier: MIT
 *
 * The simulated drive as an nbdkit plugin (nbdkit-plugin(3), API version 2). One process is one
 * drive: starting it is power-on, `cut` or `orderly` on the control socket is power loss, SIGKILL
 * is a cut at which nothing survives. All requests share the one cache of the one drive, so a
 * flush on any connection covers all of them.
 *
 * Control: a unix stream socket, one command a line, one line of JSON back:
 *   stat                  state and counters (ground truth for tests)
 *   cut PCT SEED          power loss, see pp_sim_drive_cut(); all later I/O fails
 *   orderly               the cache reaches the image; all later I/O fails
 *   behaviour NAME        begins to lie, or stops
 *
 * Threads start in after_fork: those started before would not survive nbdkit's fork.
 */
#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

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

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#define DESTAGE_STEP_MS 5
#define LINE_BYTES 1024

static struct {
	char *image, *control;
	const char *behaviour, *order;
	uint64_t size_bytes, cache_bytes, destage_bytes_per_s, seed, latency_us;
} settings = { .behaviour = "honest", .order = "oldest", .cache_bytes = 8 << 20,
	.destage_bytes_per_s = 4 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pp_sim_drive *drive;
static struct pp_sim_drive_file file;
static int control_fd = -1;

static int complain(const struct pp_error *err)
{
	nbdkit_error("%s", err->text);
	return -1;
}

static int to_size(const char *value, uint64_t *out)
{
	int64_t n = nbdkit_parse_size(value);

	*out = (uint64_t)n;
	return n < 0 ? -1 : 0;
}

static int to_path(const char *value, char **out)
{
	free(*out);
	*out = nbdkit_absolute_path(value);
	return *out ? 0 : -1;
}

static int drive_config(const char *key, const char *value)
{
	if (!strcmp(key, "image"))
		return to_path(value, &settings.image);
	if (!strcmp(key, "control"))
		return to_path(value, &settings.control);
	if (!strcmp(key, "size"))
		return to_size(value, &settings.size_bytes);
	if (!strcmp(key, "cache"))
		return to_size(value, &settings.cache_bytes);
	if (!strcmp(key, "destage"))
		return to_size(value, &settings.destage_bytes_per_s);
	if (!strcmp(key, "seed"))
		return nbdkit_parse_uint64_t("seed", value, &settings.seed);
	if (!strcmp(key, "latency_us"))
		return nbdkit_parse_uint64_t("latency_us", value, &settings.latency_us);
	if (!strcmp(key, "behaviour")) {
		const struct pp_sim_drive_behaviour *row = pp_sim_drive_behaviour_find(value);

		settings.behaviour = row ? row->name : NULL;
		if (!row)
			nbdkit_error("unknown behaviour '%s'", value);
		return row ? 0 : -1;
	}
	if (!strcmp(key, "order") && (!strcmp(value, "oldest") || !strcmp(value, "random"))) {
		settings.order = value[0] == 'o' ? "oldest" : "random";
		return 0;
	}
	nbdkit_error("unknown setting '%s=%s'", key, value);
	return -1;
}

#define CONFIG_HELP \
	"image=FILE           (required) the persistent medium; FILE.counters lies beside it\n" \
	"size=BYTES           default: the size of the image\n" \
	"behaviour=NAME       honest, ignores-flush, ...: see plugpull simulate --list\n" \
	"cache=BYTES destage=BYTES_PER_S order=oldest|random seed=N latency_us=N\n" \
	"control=SOCKET       unix socket for stat, cut, orderly, behaviour"

static int drive_config_complete(void)
{
	if (settings.image)
		return 0;
	nbdkit_error("image=FILE is missing");
	return -1;
}

/* Power-on. Before the fork, so that a bad image stops nbdkit with a message. */
static int drive_get_ready(void)
{
	struct pp_sim_drive_config config = {
		.behaviour = pp_sim_drive_behaviour_find(settings.behaviour),
		.cache_bytes = settings.cache_bytes, .seed = settings.seed,
		.destage_bytes_per_s = settings.destage_bytes_per_s,
		.order = settings.order[0] == 'o' ? PP_DRIVE_OLDEST_FIRST : PP_DRIVE_RANDOM };
	struct pp_sim_drive_counters counters;
	struct pp_error err = { 0 };

	if (pp_sim_drive_file_open(&file, settings.image, settings.size_bytes, &err)
	    || pp_sim_drive_file_load(&file, &counters, &err))
		return complain(&err);
	config.size_bytes = file.size_bytes;
	drive = pp_sim_drive_new(&config, &file.medium, &counters, &err);
	if (!drive)
		return complain(&err);
	pp_sim_drive_power_on(drive, pp_clock_mono_ns());
	counters = pp_sim_drive_counters_of(drive, false);
	if (pp_sim_drive_file_save(&file, &counters, &err))
		return complain(&err);
	return 0;
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

	pp_buf_addf(out, "{\"ok\": true, \"power\": %s, \"behaviour\": \"%s\", \"size_bytes\": %" PRIu64
		", \"dirty_bytes\": %" PRIu64 ", \"power_cycles\": %" PRIu64
		", \"unsafe_shutdowns\": %" PRIu64, pp_sim_drive_has_power(drive) ? "true" : "false",
		pp_sim_drive_behaviour_of(drive)->name, pp_sim_drive_size_bytes(drive),
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

static void *destage_thread(void *unused)
{
	(void)unused;
	for (;;) {
		pp_clock_sleep_ms(DESTAGE_STEP_MS);
		pthread_mutex_lock(&lock);
		if (pp_sim_drive_tick(drive, pp_clock_mono_ns()))
			nbdkit_error("cannot destage: %s", strerror(errno));
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static int open_control(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	if (strlen(settings.control) >= sizeof(at.sun_path)) {
		nbdkit_error("'%s' is too long for a socket", settings.control);
		return -1;
	}
	strcpy(at.sun_path, settings.control);
	unlink(settings.control);
	control_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (control_fd < 0 || bind(control_fd, (struct sockaddr *)&at, sizeof(at))
	    || listen(control_fd, 8)) {
		nbdkit_error("cannot listen on '%s': %s", settings.control, strerror(errno));
		return -1;
	}
	return 0;
}

static int drive_after_fork(void)
{
	pthread_t thread;
	int rc;

	if (settings.control && open_control())
		return -1;
	rc = pthread_create(&thread, NULL, destage_thread, NULL);
	if (!rc && settings.control)
		rc = pthread_create(&thread, NULL, control_thread, NULL);
	if (rc)
		nbdkit_error("cannot start a thread: %s", strerror(rc));
	return rc ? -1 : 0;
}

/* ---- requests --------------------------------------------------------------------------- */

static void *drive_open(int readonly)
{
	(void)readonly;
	return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t drive_get_size(void *handle)
{
	(void)handle;
	return (int64_t)pp_sim_drive_size_bytes(drive);
}

static bool says_write_back(void)
{
	bool has;

	pthread_mutex_lock(&lock);
	has = pp_sim_drive_has_cache(drive);
	pthread_mutex_unlock(&lock);
	return has;
}

static int drive_can_flush(void *handle)
{
	(void)handle;
	return says_write_back();
}

static int drive_can_fua(void *handle)
{
	(void)handle;
	return says_write_back() ? NBDKIT_FUA_NATIVE : NBDKIT_FUA_NONE;
}

static int drive_can_multi_conn(void *handle)
{
	(void)handle;
	return 1;
}

static int drive_block_size(void *handle, uint32_t *minimum, uint32_t *preferred, uint32_t *maximum)
{
	(void)handle;
	*minimum = PP_DRIVE_SECTOR_BYTES;
	*preferred = 4096;
	*maximum = 32 << 20;
	return 0;
}

static int finish(int rc)
{
	int code = errno;

	pthread_mutex_unlock(&lock);
	if (rc)
		nbdkit_set_error(code);
	return rc;
}

static int drive_pread(void *handle, void *data, uint32_t bytes, uint64_t offset, uint32_t flags)
{
	(void)handle;
	(void)flags;
	pthread_mutex_lock(&lock);
	return finish(pp_sim_drive_read(drive, pp_clock_mono_ns(), data, bytes, offset));
}

static int drive_pwrite(void *handle, const void *data, uint32_t bytes, uint64_t offset,
	uint32_t flags)
{
	struct pp_sim_drive_write write = { .data = data, .bytes = bytes, .offset = offset,
		.fua = flags & NBDKIT_FLAG_FUA };
	int rc;

	(void)handle;
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

static int drive_flush(void *handle, uint32_t flags)
{
	(void)handle;
	(void)flags;
	pthread_mutex_lock(&lock);
	return finish(pp_sim_drive_flush(drive, pp_clock_mono_ns()));
}

static struct nbdkit_plugin plugin = {
	.name = "plugpull-drive",
	.longname = "plugpull simulated drive",
	.description = "a drive with a volatile write cache that honours flushes or lies on demand",
	.config = drive_config,
	.config_complete = drive_config_complete,
	.config_help = CONFIG_HELP,
	.magic_config_key = "image",
	.get_ready = drive_get_ready,
	.after_fork = drive_after_fork,
	.open = drive_open,
	.get_size = drive_get_size,
	.can_flush = drive_can_flush,
	.can_fua = drive_can_fua,
	.can_multi_conn = drive_can_multi_conn,
	.block_size = drive_block_size,
	.pread = drive_pread,
	.pwrite = drive_pwrite,
	.flush = drive_flush,
};

struct nbdkit_plugin *plugin_init(void); /* which the macro defines undeclared */

NBDKIT_REGISTER_PLUGIN(plugin)
