/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <unistd.h>

#include "core/subprocess.h"

#define RUN_MS (10 * 60 * 1000) /* a download on a slow line */

extern char **environ;

pid_t pp_child_start(const char *const argv[], int stdin_fd, const char *log_path,
	struct pp_error *err)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	pid_t pid;
	int rc;

	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	sigfillset(&all);
	if (stdin_fd < 0)
		posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	else
		posix_spawn_file_actions_adddup2(&files, stdin_fd, 0);
	posix_spawn_file_actions_addopen(&files, 1, log_path ? log_path : "/dev/null",
		O_WRONLY | O_CREAT | O_APPEND, 0600);
	posix_spawn_file_actions_adddup2(&files, 1, 2);
	posix_spawn_file_actions_addclosefrom_np(&files, 3);
	posix_spawnattr_setflags(&attr,
		POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	rc = posix_spawnp(&pid, argv[0], &files, &attr, (char *const *)argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	if (rc)
		return pp_fail_os(err, rc, "cannot start '%s'", argv[0]);
	return pid;
}

static const char *last_line(struct pp_buf *out)
{
	char *newline;

	while (out->bytes && out->data[out->bytes - 1] == '\n')
		out->data[--out->bytes] = '\0';
	newline = out->bytes ? strrchr(out->data, '\n') : NULL;
	return newline ? newline + 1 : out->bytes ? out->data : "no message";
}

int pp_child_run(const char *const argv[], struct pp_buf *out, struct pp_error *err)
{
	struct pp_buf own;
	struct pp_subprocess what = { .argv = argv, .timeout_ms = RUN_MS, .out = out ? out : &own };
	struct pp_subprocess_result result;
	int rc;

	pp_buf_init(&own, 1 << 20);
	rc = pp_subprocess_run(&what, &result, err);
	if (!rc && result.exit_status)
		rc = pp_fail(err, PP_ERR_SYSTEM, "'%s %s' failed: %s", argv[0], argv[1] ? argv[1] : "",
			result.timed_out ? "it did not end" : last_line(what.out));
	pp_buf_release(&own);
	return rc;
}
