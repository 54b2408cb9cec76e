/* SPDX-License-Identifier: MIT
 *
 * splitmix64 (Steele, Lea, Flood, OOPSLA 2014): numbers that look random out of any seed, also 0, 1, 2,
 * and are the same on every machine. Evidence rests on them (the random order of a run, layout.c), so
 * they never change. Not for secrets. Inline, for loops that fill what is written.
 */
#ifndef PP_CORE_SPLITMIX_H
#define PP_CORE_SPLITMIX_H

#include <stdint.h>

#define PP_SPLITMIX_STEP 0x9e3779b97f4a7c15u

/* The mixer alone: neighbours of x come out unlike each other; 0 stays 0. */
static inline uint64_t pp_splitmix_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* The next number of a sequence; *state is its seed before the first. */
static inline uint64_t pp_splitmix_next(uint64_t *state)
{
	return pp_splitmix_mix(*state += PP_SPLITMIX_STEP);
}

/* As if so many numbers had been taken. */
static inline void pp_splitmix_skip(uint64_t *state, uint64_t numbers)
{
	*state += PP_SPLITMIX_STEP * numbers;
}

#endif
