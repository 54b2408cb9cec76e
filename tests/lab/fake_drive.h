/* SPDX-License-Identifier: MIT
 *
 * A drive of the fake machine: the lab's drive model over plain memory, with the machine's page
 * cache in front of it, so that `write`, `direct` and the syncs differ as they do behind a kernel.
 * Power cuts are certain: what lies in a volatile cache is gone, every sector of it.
 */
#ifndef PP_TESTS_FAKE_DRIVE_H
#define PP_TESTS_FAKE_DRIVE_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/campaign/orders.h"
#include "src/core/clock.h"
#include "src/lab/drive_model.h"
#include "writer/lane.h"

#define FAKE_DRIVE_BYTES (8U << 20)
#define FAKE_SECTORS     (FAKE_DRIVE_BYTES / PP_DRIVE_SECTOR_BYTES)
#define FAKE_LANES       4
#define FAKE_UNIT_BYTES  4096
#define FAKE_SECOND_AT   (3U << 20) /* where the file of a second set of arms lies */
#define FAKE_NOISE_AT    (6U << 20) /* where the file of the noise lies (M7.6) */

struct fake_drive {
	char serial[64], behaviour[32];
	struct pp_sim_drive *sim;
	uint8_t *medium;             /* keeps its bytes without power */
	uint8_t *page;               /* page cache of the machine */
	bool dirty[FAKE_SECTORS];    /* of it */
	uint64_t writes, flushes;    /* as the machine's kernel counts what it sends */
	bool flushes_dropped;        /* the kernel believes write through (policy flushing-off) */
	bool set_off, set_dropped;   /* the policy that was set last */
	uint64_t kept_unsafe;        /* power losses that the drive's counter does not tell of */
	char uuid[PP_TARGET_UUID_BYTES]; /* of its file system; "" none */

	/* of the boot: */
	bool proven, running;
	enum pp_target_kind kind;
	uint32_t index;
	int64_t t_run_ns;
	struct pp_layout layout;
	struct pp_run run;
	struct pp_lane lane[FAKE_LANES];
	uint8_t *buf[FAKE_LANES];
	const struct pp_method *method;
	bool told;                   /* the trouble of this run has happened */
	bool noisy;                  /* noise runs beside it */
	uint64_t run_at, noise_at;
	struct pp_layout noise_layout;
	struct pp_lane noise;
	uint8_t *noise_buf;
};

static int medium_read(void *ctx, void *data, size_t bytes, uint64_t offset)
{
	memcpy(data, ((struct fake_drive *)ctx)->medium + offset, bytes);
	return 0;
}

static int medium_write(void *ctx, const void *data, size_t bytes, uint64_t offset)
{
	memcpy(((struct fake_drive *)ctx)->medium + offset, data, bytes);
	return 0;
}

static int fake_drive_open(struct fake_drive *d, const char *serial, const char *behaviour,
	struct pp_error *err)
{
	const struct pp_sim_drive_medium medium = { .ctx = d, .read = medium_read,
		.write = medium_write };
	struct pp_sim_drive_config config = {
		.behaviour = pp_sim_drive_behaviour_find(behaviour),
		.size_bytes = FAKE_DRIVE_BYTES, .cache_bytes = FAKE_DRIVE_BYTES, .seed = 1 };
	uint32_t i;

	if (!config.behaviour)
		return pp_fail(err, PP_ERR_USAGE, "no behaviour '%s'", behaviour);
	snprintf(d->serial, sizeof(d->serial), "%s", serial);
	snprintf(d->behaviour, sizeof(d->behaviour), "%s", behaviour);
	d->medium = calloc(1, FAKE_DRIVE_BYTES);
	d->page = calloc(1, FAKE_DRIVE_BYTES);
	for (i = 0; i < FAKE_LANES; i++)
		if (posix_memalign((void **)&d->buf[i], 4096, 1U << 16) != 0)
			return pp_fail(err, PP_ERR_SYSTEM, "no memory");
	if (posix_memalign((void **)&d->noise_buf, 4096, 1U << 16) != 0)
		return pp_fail(err, PP_ERR_SYSTEM, "no memory");
	d->sim = pp_sim_drive_new(&config, &medium, NULL, err);
	if (!d->sim)
		return -1;
	pp_sim_drive_power_on(d->sim, pp_clock_mono_ns());
	return 0;
}

/* ---- the kernel's half ------------------------------------------------------------------------ */

static int fake_write_back(struct fake_drive *d)
{
	uint32_t i;

	for (i = 0; i < FAKE_SECTORS; i++) {
		if (!d->dirty[i])
			continue;
		if (pp_sim_drive_write(d->sim, pp_clock_mono_ns(), d->page +
			(size_t)i * PP_DRIVE_SECTOR_BYTES, PP_DRIVE_SECTOR_BYTES,
			(uint64_t)i * PP_DRIVE_SECTOR_BYTES, false) != 0)
			return -1;
		d->dirty[i] = false;
		d->writes++;
	}
	return 0;
}

static int fake_flush(struct fake_drive *d)
{
	if (d->flushes_dropped)
		return 0;
	d->flushes++;
	return pp_sim_drive_flush(d->sim, pp_clock_mono_ns());
}

static int fake_write(struct fake_drive *d, const struct pp_method *method, const void *data,
	size_t bytes, uint64_t offset)
{
	size_t i;

	if (offset + bytes > FAKE_DRIVE_BYTES) {
		errno = ENOSPC;
		return -1;
	}
	if (method && method->direct) {
		d->writes++;
		return pp_sim_drive_write(d->sim, pp_clock_mono_ns(), data, bytes, offset,
			(method->o_dsync || method->o_sync) && !d->flushes_dropped);
	}
	memcpy(d->page + offset, data, bytes);
	for (i = 0; i < bytes / PP_DRIVE_SECTOR_BYTES; i++)
		d->dirty[offset / PP_DRIVE_SECTOR_BYTES + i] = true;
	if (method && (method->o_dsync || method->o_sync))
		return fake_write_back(d) == 0 ? fake_flush(d) : -1;
	return 0;
}

static int fake_read(struct fake_drive *d, void *data, size_t bytes, uint64_t offset)
{
	if (fake_write_back(d) != 0) /* as a direct read makes the kernel do */
		return -1;
	return pp_sim_drive_read(d->sim, pp_clock_mono_ns(), data, bytes, offset);
}

/* ---- what a lane sees ------------------------------------------------------------------------- */

static int64_t lane_write(void *ctx, const void *buf, uint32_t bytes, uint64_t offset,
	int64_t *os_code)
{
	struct fake_drive *d = ctx;

	if (fake_write(d, d->method, buf, bytes, d->run_at + offset) == 0)
		return bytes;
	*os_code = errno;
	return -1;
}

static int64_t noise_write(void *ctx, const void *buf, uint32_t bytes, uint64_t offset,
	int64_t *os_code)
{
	struct fake_drive *d = ctx;

	if (fake_write(d, pp_method_find(PP_NOISE_METHOD), buf, bytes, d->noise_at + offset) == 0)
		return bytes;
	*os_code = errno;
	return -1;
}

static int lane_sync(void *ctx, enum pp_sync_call call, int64_t *os_code)
{
	struct fake_drive *d = ctx;

	(void)call;
	if (fake_write_back(d) == 0 && fake_flush(d) == 0)
		return 0;
	*os_code = errno;
	return -1;
}

static int64_t lane_now(void *ctx)
{
	(void)ctx;
	return pp_clock_mono_ns();
}

/* ---- power ------------------------------------------------------------------------------------- */

static void fake_forget(struct fake_drive *d)
{
	memset(d->dirty, 0, sizeof(d->dirty));
	d->running = d->noisy = d->proven = d->told = d->flushes_dropped = false;
}

static void fake_policy(const struct fake_drive *d, struct pp_policy *p)
{
	memset(p, 0, sizeof(*p));
	p->drive_cache = pp_sim_drive_cache_is_on(d->sim) ? PP_CACHE_ON : PP_CACHE_OFF;
	p->system_cache = p->flush_sent = p->fua_sent = d->flushes_dropped ? PP_TRUTH_NO : PP_TRUTH_YES;
	p->flushing = d->flushes_dropped && p->drive_cache == PP_CACHE_ON ? PP_TRUTH_NO : PP_TRUTH_YES;
	p->cache_changeable = p->flushing_changeable = PP_TRUTH_YES;
	p->lasts = PP_TRUTH_NO;
	snprintf(p->drive_words, sizeof(p->drive_words), "the fake drive says so");
}

static void fake_saved(const struct fake_drive *d, struct pp_policy_saved *saved)
{
	memset(saved, 0, sizeof(*saved));
	snprintf(saved->system, sizeof(saved->system), "linux");
	snprintf(saved->serial, sizeof(saved->serial), "%s", d->serial);
	snprintf(saved->queue_write_cache, sizeof(saved->queue_write_cache), "%s",
		d->flushes_dropped ? "write through" : "write back");
	saved->user_write_cache_setting = saved->cache_is_power_protected = -2;
	fake_policy(d, &saved->before);
}

static void fake_fill_info(const struct fake_drive *d, bool no_fua, struct pp_drive_info *info)
{
	memset(info, 0, sizeof(*info));
	snprintf(info->name, sizeof(info->name), "nvme0n1");
	snprintf(info->node, sizeof(info->node), "/dev/nvme0n1");
	snprintf(info->serial, sizeof(info->serial), "%s", d->serial);
	snprintf(info->model, sizeof(info->model), "FAKE 8M");
	snprintf(info->firmware, sizeof(info->firmware), "F1");
	snprintf(info->write_cache, sizeof(info->write_cache), "write back");
	info->transport = PP_TRANSPORT_NVME;
	info->size_bytes = FAKE_DRIVE_BYTES;
	info->logical_block_bytes = 512;
	info->physical_block_bytes = 4096;
	info->fua = !no_fua;
	info->drive_cache = PP_CACHE_ON;
}

#endif
