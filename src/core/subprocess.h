/* SPDX-License-Identifier: MIT
 *
 * Runs another program: no shell, bounded output, bounded time. Safe in a program with threads
 * (posix_spawn(3)). The child gets its own process group, default signals, /dev/null as standard
 * input, LC_ALL=C, and no other descriptor of ours: one that held a drive open would keep it busy.
 */
#ifndef PP_CORE_SUBPROCESS_H
#define PP_CORE_SUBPROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "error.h"

struct pp_subprocess {
	const char *const *argv;  /* argv[0] without a slash is looked up by pp_subprocess_find */
	const char *const *env;   /* "NAME=value" that replace or join our environment; NULL: none */
	int64_t timeout_ms;       /* then the whole group is killed; 0 or less: 60 s */
	struct pp_buf *out;       /* appended; output past its maximum is read and dropped. NULL drops */
	struct pp_buf *err_out;   /* standard error; NULL: it goes where out goes */
};

struct pp_subprocess_result {
	int exit_status; /* -1 if a signal ended it, or nobody can tell */
	int signal;      /* 0 if it exited */
	bool timed_out;
	bool truncated;  /* out or err_out was too small */
};

/*
 * 0 once the program has ended, however it ended: *result says how. -1 if it is not installed
 * (PP_ERR_UNSUPPORTED) or could not be run.
 */
int pp_subprocess_run(const struct pp_subprocess *what, struct pp_subprocess_result *result,
	struct pp_error *err);

/* Full path of a program: in PATH, then in the usual bin and sbin folders. False if none. */
bool pp_subprocess_find(const char *program, char *path, size_t path_bytes);

#endif
