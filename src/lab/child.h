/* SPDX-License-Identifier: MIT
 *
 * Starting programs that stay (core/subprocess.h runs those that end) from a process that has
 * threads: posix_spawn(3) only, every descriptor above 2 closed, a session of their own (a ^C at
 * the terminal is not for them), signals reset.
 */
#ifndef PP_LAB_CHILD_H
#define PP_LAB_CHILD_H

#include <sys/types.h>

#include "core/buf.h"
#include "core/error.h"

/* Starts argv[0] (looked up in PATH). stdin_fd -1: /dev/null. Output goes to the end of log_path,
 * NULL: /dev/null. Returns the pid, or -1. */
pid_t pp_child_start(const char *const argv[], int stdin_fd, const char *log_path,
	struct pp_error *err);

/* Runs one to its end. out (may be NULL) gets its output, stderr included. An exit status other
 * than 0 is an error whose text ends with the last line of the output. */
int pp_child_run(const char *const argv[], struct pp_buf *out, struct pp_error *err);

#endif
