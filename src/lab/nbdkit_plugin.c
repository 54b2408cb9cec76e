/* SPDX-License-Identifier: MIT
 *
 * The simulated drive as an nbdkit plugin (nbdkit-plugin(3), API version 2); what it does is in
 * drive_daemon.h. Threads start in after_fork: those started before would not survive nbdkit's
 * fork.
 */
#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "drive_daemon.h"
#include "drive_model.h"
#include "guest.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

static int complain(const struct pp_error *err)
{
	nbdkit_error("%s", err->text);
	return -1;
}

static void complain_later(const char *text)
{
	nbdkit_error("%s", text);
}

static int drive_config(const char *key, const char *value)
{
	bool is_path = !strcmp(key, "image") || !strcmp(key, "control");
	char *path = is_path ? nbdkit_absolute_path(value) : NULL;
	struct pp_error err = { 0 };
	int rc;

	if (is_path && !path)
		return -1;
	rc = pp_drive_daemon_set(key, is_path ? path : value, &err);
	free(path);
	return rc ? complain(&err) : 0;
}

#define CONFIG_HELP \
	"image=FILE           (required) the persistent medium; FILE.counters lies beside it\n" \
	"size=BYTES           default: the size of the image\n" \
	"behaviour=NAME       honest, ignores-flush, ...: see plugpull simulate --list\n" \
	"cache=BYTES destage=BYTES_PER_S order=oldest|random seed=N latency_us=N\n" \
	"control=SOCKET       unix socket for stat, cut, orderly, behaviour"

/* Power-on. Before the fork, so that a bad image stops nbdkit with a message. */
static int drive_get_ready(void)
{
	struct pp_error err = { 0 };

	return pp_drive_daemon_power_on(&err) ? complain(&err) : 0;
}

static int drive_after_fork(void)
{
	struct pp_error err = { 0 };

	return pp_drive_daemon_start(complain_later, &err) ? complain(&err) : 0;
}

/* A client that opens an export of these names has switched the cache by that, or asks for it (guest.h);
 * what it then reads in can_flush is the cache as it is now. The kernel's own connection keeps the
 * flags that it began with. */
static const char drive_itself, its_cache;

static void *drive_open(int readonly)
{
	const char *name = nbdkit_export_name();
	bool on = name && !strcmp(name, PP_LAB_EXPORT_ON);

	(void)readonly;
	if (!name || strncmp(name, PP_LAB_EXPORT_ASK, strlen(PP_LAB_EXPORT_ASK)))
		return (void *)(uintptr_t)&drive_itself;
	if ((on || !strcmp(name, PP_LAB_EXPORT_OFF)) && pp_drive_daemon_set_cache(on)) {
		nbdkit_error("cannot switch the cache: %s", strerror(errno));
		return NULL;
	}
	return (void *)(uintptr_t)&its_cache;
}

static int64_t drive_get_size(void *handle)
{
	(void)handle;
	return (int64_t)pp_drive_daemon_size_bytes();
}

static int drive_can_flush(void *handle)
{
	return handle == &its_cache ? pp_drive_daemon_cache_is_on() : pp_drive_daemon_has_cache();
}

static int drive_can_fua(void *handle)
{
	return drive_can_flush(handle) ? NBDKIT_FUA_NATIVE : NBDKIT_FUA_NONE;
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
	if (rc)
		nbdkit_set_error(errno);
	return rc;
}

static int drive_pread(void *handle, void *data, uint32_t bytes, uint64_t offset, uint32_t flags)
{
	(void)handle;
	(void)flags;
	return finish(pp_drive_daemon_read(data, bytes, offset));
}

static int drive_pwrite(void *handle, const void *data, uint32_t bytes, uint64_t offset,
	uint32_t flags)
{
	(void)handle;
	return finish(pp_drive_daemon_write(data, bytes, offset, flags & NBDKIT_FLAG_FUA));
}

static int drive_flush(void *handle, uint32_t flags)
{
	(void)handle;
	(void)flags;
	return finish(pp_drive_daemon_flush());
}

static struct nbdkit_plugin plugin = {
	.name = "plugpull-drive",
	.longname = "plugpull simulated drive",
	.description = "a drive with a volatile write cache that honours flushes or lies on demand",
	.config = drive_config,
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
