/* SPDX-License-Identifier: MIT
 *
 * Seeded draws of the lab (splitmix.h): any seed is a good one, and gives the same numbers on every
 * machine.
 */
#ifndef PP_LAB_DRAW_H
#define PP_LAB_DRAW_H

#include "src/core/splitmix.h"

static inline uint64_t draw(uint64_t *state)
{
	return pp_splitmix_next(state);
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
