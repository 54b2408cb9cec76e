/* SPDX-License-Identifier: MIT
 *
 * The product's scan of something simulated, in memory.
 */
#ifndef PP_LAB_SIM_SCAN_H
#define PP_LAB_SIM_SCAN_H

#include "verifier/scan.h"

/* Whole, or sparse with ranges. The caller frees it; NULL with err. */
struct pp_scan *pp_sim_scan_source(const struct pp_layout *layout, struct pp_scan_source *source,
	const struct pp_scan_range *ranges, size_t count, struct pp_error *err);

#endif
