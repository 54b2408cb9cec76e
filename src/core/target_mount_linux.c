/* SPDX-License-Identifier: MIT
 *
 * mount(2) and umount(2), by themselves: the machine under test may have no mount(8) at all.
 */
#include "target_parts.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>

#include "clock.h"
#include "drive_sysfs.h"
#include "kmsg.h"

#define BUSY_SLICE_MS 50

/* Options that are flags of mount(2); all others go to the file system as text. */
static const struct {
	const char *name;
	unsigned long set;
	unsigned long clear;
} flag_options[] = {
	{"defaults", 0, 0},
	{"rw", 0, MS_RDONLY},
	{"ro", MS_RDONLY, 0},
	{"noatime", MS_NOATIME, MS_RELATIME | MS_STRICTATIME},
	{"relatime", MS_RELATIME, MS_NOATIME | MS_STRICTATIME},
	{"strictatime", MS_STRICTATIME, MS_NOATIME | MS_RELATIME},
	{"nodiratime", MS_NODIRATIME, 0},
	{"lazytime", MS_LAZYTIME, 0},
	{"sync", MS_SYNCHRONOUS, 0},
	{"dirsync", MS_DIRSYNC, 0},
	{"nosuid", MS_NOSUID, 0},
	{"nodev", MS_NODEV, 0},
	{"noexec", MS_NOEXEC, 0},
};

static bool take_flag(const char *option, size_t bytes, unsigned long *flags)
{
	for (size_t i = 0; i < sizeof(flag_options) / sizeof(flag_options[0]); i++) {
		if (strlen(flag_options[i].name) != bytes ||
			strncmp(flag_options[i].name, option, bytes) != 0)
			continue;
		*flags = (*flags & ~flag_options[i].clear) | flag_options[i].set;
		return true;
	}
	return false;
}

static unsigned long split_options(const char *options, char *data, size_t data_bytes)
{
	unsigned long flags = MS_NOSUID | MS_NODEV;
	size_t used = 0;

	data[0] = '\0';
	for (const char *at = options; *at;) {
		size_t n = strcspn(at, ",");

		if (n && !take_flag(at, n, &flags) && used + n + 2 < data_bytes)
			used += (size_t)snprintf(data + used, data_bytes - used, "%s%.*s",
				used ? "," : "", (int)n, at);
		at += n + (at[n] == ',');
	}
	return flags;
}

static void take_complaints(struct pp_kmsg *watch, char *text, size_t text_bytes)
{
	struct pp_kmsg_event event;
	size_t used = strlen(text);

	while (pp_kmsg_poll(watch, &event, NULL) == 1 && used + 2 < text_bytes) {
		if (event.class == PP_KMSG_MISSED)
			continue;
		used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", used ? "\n" : "",
			event.text);
		if (used >= text_bytes)
			break;
	}
}

int pp_mount_fs(const struct pp_fs_found *fs, const char *disk, const char *dir,
	const char *options, char *text, size_t text_bytes)
{
	char data[256];
	unsigned long flags = split_options(options, data, sizeof(data));
	struct pp_kmsg watch;
	bool watching = pp_kmsg_open(&watch, disk, NULL) == 0;
	int code = 0;

	text[0] = '\0';
	if (watching && strcmp(disk, fs->name) != 0)
		pp_kmsg_add_name(&watch, fs->name);
	if (mount(fs->node, dir, fs->type, flags, data) != 0)
		code = errno;
	/*
	 * EINVAL is what damage and a misspelt option both give. Without options of its own only
	 * damage is left.
	 */
	if (code == EINVAL && data[0]) {
		if (mount(fs->node, dir, fs->type, flags, NULL) == 0) {
			umount2(dir, 0);
			code = ENOPROTOOPT;
		} else {
			code = errno;
		}
	}
	if (watching)
		take_complaints(&watch, text, text_bytes);
	pp_kmsg_close(&watch);
	return code;
}

bool pp_mount_errno_is_damage(int code)
{
	/* EUCLEAN and EBADMSG are the kernel's EFSCORRUPTED and EFSBADCRC. Others are in doubt. */
	static const int damage[] = {EUCLEAN, EBADMSG, EIO, EINVAL};

	for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++)
		if (code == damage[i])
			return true;
	return false;
}

/*
 * umount(2) of a file system on a dead device may never return, so it runs in a thread that is
 * left behind when the time is over; whoever comes last frees the job.
 */
struct umount_job {
	pthread_mutex_t lock;
	pthread_cond_t done_cond;
	char dir[PP_TARGET_PATH_BYTES];
	bool done, abandoned;
	int code;
};

static void free_job(struct umount_job *job)
{
	pthread_mutex_destroy(&job->lock);
	pthread_cond_destroy(&job->done_cond);
	free(job);
}

static void *run_umount(void *arg)
{
	struct umount_job *job = arg;
	int code = umount2(job->dir, UMOUNT_NOFOLLOW) == 0 ? 0 : errno;
	bool abandoned;

	pthread_mutex_lock(&job->lock);
	job->code = code;
	job->done = true;
	abandoned = job->abandoned;
	pthread_cond_signal(&job->done_cond);
	pthread_mutex_unlock(&job->lock);
	if (abandoned)
		free_job(job);
	return NULL;
}

static struct umount_job *new_job(const char *dir)
{
	struct umount_job *job = calloc(1, sizeof(*job));
	pthread_condattr_t attr;

	if (!job)
		return NULL;
	snprintf(job->dir, sizeof(job->dir), "%s", dir);
	pthread_mutex_init(&job->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&job->done_cond, &attr);
	pthread_condattr_destroy(&attr);
	return job;
}

/* One attempt, given until deadline_ns: 0, an errno, or ETIMEDOUT. */
static int try_umount(const char *dir, int64_t deadline_ns)
{
	struct timespec until = {deadline_ns / PP_NS_PER_S, deadline_ns % PP_NS_PER_S};
	struct umount_job *job = new_job(dir);
	pthread_t thread;
	int code, rc = 0;
	bool done;

	if (!job)
		return ENOMEM;
	code = pthread_create(&thread, NULL, run_umount, job);
	if (code) {
		free_job(job);
		return code;
	}
	pthread_detach(thread);
	pthread_mutex_lock(&job->lock);
	while (!job->done && rc == 0)
		rc = pthread_cond_timedwait(&job->done_cond, &job->lock, &until);
	done = job->done;
	code = done ? job->code : ETIMEDOUT;
	job->abandoned = !done;
	pthread_mutex_unlock(&job->lock);
	if (done)
		free_job(job);
	return code;
}

int pp_umount_fs(const char *dir, int64_t timeout_ms, bool *lazy)
{
	int64_t deadline_ns = pp_clock_mono_ns() + timeout_ms * PP_NS_PER_MS;
	int code;

	*lazy = false;
	for (;;) {
		code = try_umount(dir, deadline_ns);
		if (code != EBUSY || pp_clock_mono_ns() >= deadline_ns)
			break;
		pp_clock_sleep_ms(BUSY_SLICE_MS);
	}
	if (code == 0 || (code != EBUSY && code != ETIMEDOUT))
		return code;
	/* EINVAL: no mount point any more; the hanging call has detached it and waits for the device. */
	if (umount2(dir, MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && !(code == ETIMEDOUT && errno == EINVAL))
		return errno;
	*lazy = true;
	return 0;
}
