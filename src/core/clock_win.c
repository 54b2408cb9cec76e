/* SPDX-License-Identifier: MIT
 *
 * QueryPerformanceCounter for intervals (Microsoft Learn, "Acquiring high-resolution time stamps").
 * Sleeps by a high-resolution waitable timer (Windows 10 1803); where there is none the system's
 * tick is asked to be 1 ms, without which a heartbeat of 10 ms would come every 15.6.
 */
#include "clock.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "auth.h"
#include "handle_win.h"
#include "host_win.h"

#include <timeapi.h>

#ifndef CREATE_WAITABLE_TIMER_HIGH_RESOLUTION
#define CREATE_WAITABLE_TIMER_HIGH_RESOLUTION 2
#endif

int64_t pp_clock_mono_ns(void)
{
	static int64_t per_s; /* the same for all threads and for ever: a race writes it twice */
	LARGE_INTEGER value;

	if (!per_s) {
		QueryPerformanceFrequency(&value);
		per_s = value.QuadPart;
	}
	QueryPerformanceCounter(&value);
	return value.QuadPart / per_s * PP_NS_PER_S + value.QuadPart % per_s * PP_NS_PER_S / per_s;
}

/* Includes what the machine slept. Steps of 10 to 16 ms, never ahead. */
int64_t pp_clock_boot_ns(void)
{
	return (int64_t)GetTickCount64() * PP_NS_PER_MS;
}

void pp_clock_sleep_until_ns(int64_t mono_ns)
{
	static __thread HANDLE timer; /* lives as long as its thread, and the system closes it */
	static volatile LONG ticking;
	LARGE_INTEGER due;
	int64_t left_ns;

	if (!timer)
		timer = CreateWaitableTimerExW(NULL, NULL, CREATE_WAITABLE_TIMER_HIGH_RESOLUTION,
			TIMER_ALL_ACCESS);
	if (!timer && InterlockedExchange(&ticking, 1) == 0)
		timeBeginPeriod(1);
	while ((left_ns = mono_ns - pp_clock_mono_ns()) > 0) {
		due.QuadPart = -(left_ns / 100 + 1);
		if (timer && SetWaitableTimer(timer, &due, 0, NULL, NULL, FALSE))
			WaitForSingleObject(timer, INFINITE);
		else
			Sleep(left_ns < PP_NS_PER_MS ? 1 : (DWORD)(left_ns / PP_NS_PER_MS % 60000));
	}
}

void pp_clock_sleep_ms(int64_t ms)
{
	pp_clock_sleep_until_ns(pp_clock_mono_ns() + ms * PP_NS_PER_MS);
}

void pp_clock_wall(char *out, int bytes)
{
	SYSTEMTIME now;

	assert(bytes >= 21);
	GetSystemTime(&now);
	snprintf(out, (size_t)bytes, "%04u-%02u-%02uT%02u:%02u:%02uZ", now.wYear % 10000u, now.wMonth % 100u,
		now.wDay % 100u, now.wHour % 100u, now.wMinute % 100u, now.wSecond % 100u);
}

void pp_clock_boot_id(char *out, int bytes)
{
	if (pp_host_boot_id(out, (size_t)bytes, NULL) != 0)
		out[0] = '\0';
}
