/* SPDX-License-Identifier: MIT
 *
 * Seeded draws of the lab: splitmix64 (Steele, Lea, Flood 2014), for which any seed is a good one,
 * also 0, 1, 2. The same seed gives the same numbers on every machine.
 */
#ifndef PP_LAB_DRAW_H
#define PP_LAB_DRAW_H

#include <stdint.h>

static inline uint64_t draw(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* 0 ... limit - 1; 0 for limit 0. */
static inline uint64_t below(uint64_t *state, uint64_t limit)
{
	return (uint64_t)((unsigned __int128)draw(state) * limit >> 64);
}

/* low ... high */
static inline uint64_t between(uint64_t *state, uint64_t low, uint64_t high)
{
	return low + below(state, high - low + 1);
}

#endif
