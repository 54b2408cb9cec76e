/* SPDX-License-Identifier: MIT
 *
 * winpthreads counts a deadline on the wall clock alone, which a time service may set at any time;
 * so a wait is cut into slices, and the monotonic clock decides.
 */
#include "thread.h"

#include <errno.h>
#include <malloc.h>
#include <time.h>

#include "clock.h"

#define SLICE_NS (500 * PP_NS_PER_MS)

int pp_thread_start(pthread_t *thread, void *(*main)(void *), void *arg)
{
	return pthread_create(thread, NULL, main, arg);
}

void pp_cond_init(pthread_cond_t *cond)
{
	pthread_cond_init(cond, NULL);
}

int pp_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns)
{
	int64_t left_ns = until_ns - pp_clock_mono_ns(), wall_ns;
	struct timespec until;
	int code;

	if (left_ns <= 0)
		return ETIMEDOUT;
	clock_gettime(CLOCK_REALTIME, &until);
	wall_ns = until.tv_sec * PP_NS_PER_S + until.tv_nsec + (left_ns < SLICE_NS ? left_ns : SLICE_NS);
	until = (struct timespec){ wall_ns / PP_NS_PER_S, (long)(wall_ns % PP_NS_PER_S) };
	code = pthread_cond_timedwait(cond, lock, &until);
	return code == ETIMEDOUT && pp_clock_mono_ns() < until_ns ? 0 : code;
}

void *pp_aligned_alloc(size_t align_bytes, size_t bytes)
{
	return _aligned_malloc(bytes, align_bytes);
}

void pp_aligned_free(void *memory)
{
	_aligned_free(memory);
}
