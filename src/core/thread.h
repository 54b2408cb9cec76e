/* SPDX-License-Identifier: MIT
 *
 * What POSIX threads leave to each system: threads that no signal reaches, waits whose deadline is
 * on the monotonic clock (pthread_condattr_setclock(3) where there is one), and aligned memory for
 * direct I/O.
 */
#ifndef PP_CORE_THREAD_H
#define PP_CORE_THREAD_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* pthread_create(3) with all signals blocked in the new thread: they belong to main's, and calls of
 * ours are never interrupted. 0, or an errno. */
int pp_thread_start(pthread_t *thread, void *(*main)(void *), void *arg);

/* A condition for pp_cond_wait_until. */
void pp_cond_init(pthread_cond_t *cond);
/* Waits as pthread_cond_wait(3) does, until pp_clock_mono_ns() is until_ns: 0, or ETIMEDOUT. May
 * return 0 for no reason, as that does. */
int pp_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns);

/* NULL: no memory. align_bytes is a power of two, bytes a multiple of it. */
void *pp_aligned_alloc(size_t align_bytes, size_t bytes);
void pp_aligned_free(void *memory); /* NULL is fine */

#endif
