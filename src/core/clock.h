/* SPDX-License-Identifier: MIT
 *
 * Time. Intervals come from CLOCK_MONOTONIC (clock_gettime(2)), never from the wall clock; the
 * wall clock only dates evidence for people.
 */
#ifndef PP_CORE_CLOCK_H
#define PP_CORE_CLOCK_H

#include <stdint.h>

#define PP_NS_PER_MS 1000000LL
#define PP_NS_PER_S  1000000000LL

int64_t pp_clock_mono_ns(void);            /* nanoseconds since an arbitrary start, never back */
int64_t pp_clock_boot_ns(void);            /* since this machine's kernel started (CLOCK_BOOTTIME) */
void pp_clock_sleep_ms(int64_t ms);        /* not cut short by signals */
void pp_clock_sleep_until_ns(int64_t mono_ns);
void pp_clock_wall(char *out, int bytes);  /* "2026-11-30T12:00:00Z" into out (>= 21 bytes) */
/* Names this boot of this machine's kernel, and so its monotonic clock; "" where it cannot be had. */
void pp_clock_boot_id(char *out, int bytes);

#endif
