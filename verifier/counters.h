/* SPDX-License-Identifier: MIT
 *
 * The counters that a drive keeps of its own life, out of smartctl's JSON (docs/method.md, M5.3):
 * NVMe power_cycles and unsafe_shutdowns; ATA attribute 12 (Power_Cycle_Count) and 174 or 192
 * (unexpected power loss) where the drive is an SSD. 192 of a hard disk counts head retracts.
 */
#ifndef PP_VERIFIER_COUNTERS_H
#define PP_VERIFIER_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pp_drive_counters {
	bool has_power_cycles, has_unsafe;
	uint64_t power_cycles, unsafe_shutdowns;
	char serial[96];          /* as smartctl says; "" where it does not */
	uint64_t media_errors;
};

/* Garbage, an empty text and a drive that keeps no counters give one without counters. */
void pp_drive_counters_parse(const char *json, size_t bytes, struct pp_drive_counters *out);

#endif
