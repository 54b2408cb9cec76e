/* SPDX-License-Identifier: MIT */
#include "thread.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "clock.h"

int pp_thread_start(pthread_t *thread, void *(*main)(void *), void *arg)
{
	sigset_t all, before;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(thread, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}

void pp_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

int pp_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns)
{
	struct timespec until = { until_ns / PP_NS_PER_S, until_ns % PP_NS_PER_S };

	return pthread_cond_timedwait(cond, lock, &until);
}

void *pp_aligned_alloc(size_t align_bytes, size_t bytes)
{
	return aligned_alloc(align_bytes, bytes);
}

void pp_aligned_free(void *memory)
{
	free(memory);
}
