/* SPDX-License-Identifier: MIT
 *
 * What Windows tells of this boot and of this installation.
 */
#ifndef PP_CORE_HOST_WIN_H
#define PP_CORE_HOST_WIN_H

#include <stddef.h>

#include "error.h"

/*
 * Names this boot, in the form of a UUID. Windows has no boot id as Linux has; this one is the
 * SHA-256 of the installation's MachineGuid and of the time of this boot as the kernel keeps it
 * (NtQuerySystemInformation, SystemTimeOfDayInformation: BootTime less BootTimeBias, to 100 ns). The
 * kernel moves BootTime when the clock is set, and BootTimeBias by as much, so the difference holds
 * for as long as the boot does.
 *
 * Limits: a fast start-up ("hybrid shutdown") resumes the kernel of before, but that follows a
 * shutdown, never a cut. A machine whose clock has no battery starts at the same time again and again,
 * yet not to 100 ns. Two clones of one installation are told apart by their boots only. Under Wine
 * it is the start of Wine's server, of which every machine, or boot of one, has its own.
 */
int pp_host_boot_id(char *out, size_t out_bytes, struct pp_error *err);

/* "Windows 10.0.19045": the version proper, not the one that GetVersionEx shows to old programs. */
void pp_host_version(char *out, size_t out_bytes);

/* SHA-256 of a whole file, in lower-case hex. */
int pp_host_sha256_file(const char *path, char hex[65], struct pp_error *err);

#endif
