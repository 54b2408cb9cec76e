/* SPDX-License-Identifier: MIT */
#include "subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

#define DEFAULT_TIMEOUT_MS 60000
#define SLICE_MS 20

extern char **environ;

bool pp_subprocess_find(const char *program, char *path, size_t path_bytes)
{
	static const char fixed[] = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin";
	const char *own = getenv("PATH");
	const char *lists[2] = {own ? own : "", fixed};

	if (strchr(program, '/')) {
		snprintf(path, path_bytes, "%s", program);
		return access(path, X_OK) == 0;
	}
	for (int i = 0; i < 2; i++) {
		for (const char *at = lists[i]; *at;) {
			size_t n = strcspn(at, ":");

			/* A relative or empty entry would run what lies in the current folder. */
			if (n && at[0] == '/' &&
			    snprintf(path, path_bytes, "%.*s/%s", (int)n, at, program) <
				    (int)path_bytes &&
			    access(path, X_OK) == 0)
				return true;
			at += n + (at[n] == ':');
		}
	}
	return false;
}

static bool same_variable(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return strncmp(a, b, n + 1) == 0;
}

/* Our environment with LC_ALL=C and the caller's variables in it; strings are borrowed. */
static const char **build_env(const char *const *extra)
{
	static const char locale[] = "LC_ALL=C";
	size_t n = 0, k = 0, used = 0;
	const char **env;

	while (environ && environ[n])
		n++;
	while (extra && extra[k])
		k++;
	env = calloc(n + k + 2, sizeof(*env));
	if (!env)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		bool replaced = same_variable(locale, environ[i]);

		for (size_t j = 0; j < k; j++)
			replaced |= same_variable(extra[j], environ[i]);
		if (!replaced)
			env[used++] = environ[i];
	}
	env[used++] = locale;
	for (size_t j = 0; j < k; j++)
		env[used++] = extra[j];
	return env;
}

struct stream {
	int fd; /* our end; -1 once at its end */
	struct pp_buf *buf;
	bool truncated;
};

static void keep(struct stream *s, const char *data, size_t bytes)
{
	size_t room;

	if (!s->buf)
		return;
	room = s->buf->max_bytes > s->buf->bytes ? s->buf->max_bytes - s->buf->bytes : 0;
	if (bytes > room) {
		s->truncated = true;
		bytes = room;
	}
	if (bytes)
		pp_buf_add(s->buf, data, bytes);
}

/* Reads what is there; closes the stream at its end. */
static void drain(struct stream *s)
{
	char chunk[8192];

	while (s->fd >= 0) {
		ssize_t n = read(s->fd, chunk, sizeof(chunk));

		if (n > 0) {
			keep(s, chunk, (size_t)n);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		close(s->fd);
		s->fd = -1;
	}
}

/* Until the child has ended. Output that a grandchild still holds open is not waited for. */
static void watch(pid_t pid, struct stream streams[2], int64_t deadline_ns,
	struct pp_subprocess_result *result)
{
	int status = 0;

	for (;;) {
		struct pollfd fds[2] = {{streams[0].fd, POLLIN, 0}, {streams[1].fd, POLLIN, 0}};
		pid_t done;

		/* Negative descriptors are ignored: then this is a short sleep. */
		poll(fds, 2, streams[0].fd < 0 && streams[1].fd < 0 ? 1 : SLICE_MS);
		drain(&streams[0]);
		drain(&streams[1]);
		done = waitpid(pid, &status, WNOHANG);
		if (done == pid || (done < 0 && errno != EINTR))
			break;
		if (pp_clock_mono_ns() > deadline_ns) {
			/*
			 * The group may sit in uninterruptible sleep on a dead drive; then this
			 * waits until the kernel lets go of it, which nothing can shorten.
			 */
			result->timed_out = true;
			kill(-pid, SIGKILL);
			while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
				;
			break;
		}
	}
	drain(&streams[0]);
	drain(&streams[1]);
	result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	result->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int spawn(const char *path, const struct pp_subprocess *what, int out_fd, int err_fd,
	pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	const char **env = build_env(what->env);
	sigset_t none, all;
	int code;

	if (!env)
		return ENOMEM;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
		POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	code = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	if (!code)
		code = posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
	if (!code)
		code = posix_spawn_file_actions_adddup2(&actions, err_fd, 2);
	if (!code)
		code = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	if (!code)
		code = posix_spawn(pid, path, &actions, &attr, (char *const *)what->argv,
			(char *const *)env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	free(env);
	return code;
}

/*
 * A pipe whose ends are close-on-exec and above 2, so that a dup2 onto 1 or 2 in the child is
 * never a dup2 onto itself, which would leave the flag set and the child without output.
 */
static int open_pipe(int ends[2])
{
	int low[2];

	if (pipe2(low, O_CLOEXEC) != 0)
		return errno;
	for (int i = 0; i < 2; i++) {
		ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 3);
		if (ends[i] < 0) {
			int code = errno;

			if (i)
				close(ends[0]);
			close(low[0]);
			close(low[1]);
			return code;
		}
	}
	close(low[0]);
	close(low[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	return 0;
}

int pp_subprocess_run(const struct pp_subprocess *what, struct pp_subprocess_result *result,
	struct pp_error *err)
{
	struct stream streams[2] = {{-1, what->out, false}, {-1, what->err_out, false}};
	int64_t timeout_ms = what->timeout_ms > 0 ? what->timeout_ms : DEFAULT_TIMEOUT_MS;
	int out[2], errs[2] = {-1, -1};
	char path[PATH_MAX];
	pid_t pid;
	int code;

	*result = (struct pp_subprocess_result){.exit_status = -1};
	if (!pp_subprocess_find(what->argv[0], path, sizeof(path)))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "'%s' is not installed", what->argv[0]);
	code = open_pipe(out);
	if (code)
		return pp_fail_os(err, code, "cannot make a pipe for '%s'", what->argv[0]);
	if (what->err_out)
		code = open_pipe(errs);
	if (code) {
		close(out[0]);
		close(out[1]);
		return pp_fail_os(err, code, "cannot make a pipe for '%s'", what->argv[0]);
	}
	code = spawn(path, what, out[1], what->err_out ? errs[1] : out[1], &pid);
	close(out[1]);
	if (errs[1] >= 0)
		close(errs[1]);
	streams[0].fd = out[0];
	streams[1].fd = errs[0];
	if (!code)
		watch(pid, streams, pp_clock_mono_ns() + timeout_ms * PP_NS_PER_MS, result);
	for (int i = 0; i < 2; i++)
		if (streams[i].fd >= 0)
			close(streams[i].fd);
	if (code)
		return pp_fail_os(err, code, "cannot run '%s'", path);
	result->truncated = streams[0].truncated || streams[1].truncated;
	return 0;
}
