/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec ts;
	int rc = clock_gettime(id, &ts);

	assert(rc == 0);
	return (int64_t)ts.tv_sec * PP_NS_PER_S + ts.tv_nsec;
}

int64_t pp_clock_mono_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t pp_clock_boot_ns(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

void pp_clock_sleep_ms(int64_t ms)
{
	struct timespec left = {ms / 1000, (long)(ms % 1000) * 1000000L};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

void pp_clock_sleep_until_ns(int64_t mono_ns)
{
	struct timespec at = { mono_ns / PP_NS_PER_S, mono_ns % PP_NS_PER_S };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
		;
}

void pp_clock_wall(char *out, int bytes)
{
	time_t now = time(NULL);
	struct tm tm;

	assert(bytes >= 21);
	gmtime_r(&now, &tm);
	strftime(out, (size_t)bytes, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

void pp_clock_boot_id(char *out, int bytes)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, (size_t)bytes - 1);

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
}
