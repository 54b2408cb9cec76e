/* SPDX-License-Identifier: MIT */
#include "exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/clock.h"

#define ENV_MAX 512
#define OWN_MAX 6

extern char **environ;

struct exec {
	int64_t timeout_ms;
	char *env[ENV_MAX];
	char *own[OWN_MAX]; /* those of env that are ours to free */
};

static bool replaced(const struct exec *exec, const char *entry)
{
	size_t bytes = strcspn(entry, "=");

	for (size_t i = 0; i < OWN_MAX; i++)
		if (exec->own[i] && strncmp(exec->own[i], entry, bytes + 1) == 0)
			return true;
	return false;
}

void *pp_exec_open(int64_t timeout_ms, const struct pp_credentials *credentials,
	struct pp_error *err)
{
	struct exec *exec = calloc(1, sizeof(*exec));
	const struct {
		const char *name, *value;
	} secrets[OWN_MAX] = {
		{ "PLUGPULL_PDU_USER", credentials ? credentials->user : "" },
		{ "PLUGPULL_PDU_PASSWORD", credentials ? credentials->password : "" },
		{ "PLUGPULL_PDU_TOKEN", credentials ? credentials->token : "" },
		{ "IPMI_PASSWORD", credentials ? credentials->password : "" },
		{ "KASA_USERNAME", credentials ? credentials->user : "" },
		{ "KASA_PASSWORD", credentials ? credentials->password : "" },
	};
	int n = 0;

	if (!exec)
		goto no_memory;
	exec->timeout_ms = timeout_ms;
	for (size_t i = 0; i < OWN_MAX; i++) {
		if (!secrets[i].value[0])
			continue;
		if (asprintf(&exec->own[i], "%s=%s", secrets[i].name, secrets[i].value) < 0) {
			exec->own[i] = NULL;
			goto no_memory;
		}
		exec->env[n++] = exec->own[i];
	}
	for (char **entry = environ; *entry && n < ENV_MAX - 1; entry++)
		if (!replaced(exec, *entry))
			exec->env[n++] = *entry;
	return exec;
no_memory:
	if (exec)
		pp_exec_transport.close(exec);
	pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	return NULL;
}

static void close_exec(void *self)
{
	struct exec *exec = self;

	for (size_t i = 0; i < OWN_MAX; i++) {
		if (exec->own[i])
			explicit_bzero(exec->own[i], strlen(exec->own[i]));
		free(exec->own[i]);
	}
	free(exec);
}

/* Its own session: no terminal to ask for a password on, and one group to kill. */
static int spawn(struct exec *exec, const struct pp_pdu_request *request, int in, int out,
	pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr,
		POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	rc = posix_spawnp(pid, request->argv[0], &actions, &attr, request->argv, exec->env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

/* Reads to the end of file, the deadline or the cap. 0, or -1 and why. */
static int collect(int fd, struct pp_buf *body, int64_t deadline_ns, const char **why)
{
	char chunk[4096];

	for (;;) {
		int64_t left_ms = (deadline_ns - pp_clock_mono_ns()) / PP_NS_PER_MS;
		struct pollfd pfd = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (left_ms <= 0) {
			*why = "took too long";
			return -1;
		}
		if (poll(&pfd, 1, (int)left_ms) <= 0)
			continue;
		n = read(fd, chunk, sizeof(chunk));
		if (n == 0)
			return 0;
		if (n < 0)
			continue;
		pp_buf_add(body, chunk, (size_t)n);
		if (body->failed) {
			*why = "printed more than 64 KiB";
			return -1;
		}
	}
}

/* Sleeps until the process ends or the time is up, without looking again and again. */
static void await_end(pid_t pid, int64_t deadline_ns)
{
	int64_t left_ms = (deadline_ns - pp_clock_mono_ns()) / PP_NS_PER_MS;
	struct pollfd pfd = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };

	if (pfd.fd < 0) { /* an old kernel */
		pp_clock_sleep_ms(2);
		return;
	}
	poll(&pfd, 1, left_ms > 0 ? (int)left_ms : 0);
	close(pfd.fd);
}

/* Waits until the deadline, then kills the group; never leaves a process behind. */
static int reap(pid_t pid, int64_t deadline_ns, bool *in_time)
{
	int status = 0;

	*in_time = true;
	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid || (got < 0 && errno != EINTR))
			break;
		if (pp_clock_mono_ns() >= deadline_ns) {
			*in_time = false;
			kill(-pid, SIGKILL);
			kill(pid, SIGKILL);
			while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
				;
			return status;
		}
		await_end(pid, deadline_ns);
	}
	kill(-pid, SIGKILL); /* children that it left behind */
	return status;
}

static int run(struct exec *exec, const struct pp_pdu_request *request, struct pp_pdu_reply *reply,
	int in[2], int out[2], struct pp_error *err)
{
	int64_t deadline_ns = pp_clock_mono_ns() + exec->timeout_ms * PP_NS_PER_MS;
	const char *why = NULL;
	bool in_time;
	int status, rc;
	pid_t pid;

	rc = spawn(exec, request, in[0], out[1], &pid);
	if (rc != 0)
		return pp_fail_os(err, rc, "cannot run '%s'", request->argv[0]);
	reply->maybe_executed = true;
	close(in[0]);
	close(out[1]);
	in[0] = out[1] = -1;
	/* At most PIPE_BUF bytes: fits the pipe whole, and a program that does not read it must not
	 * kill us. */
	if (request->input && write(in[1], request->input, strlen(request->input)) < 0)
		why = "does not take its input";
	close(in[1]);
	in[1] = -1;
	if (collect(out[0], &reply->body, deadline_ns, &why) != 0)
		deadline_ns = 0;
	status = reap(pid, deadline_ns, &in_time);
	if (!in_time && !why)
		why = "took too long";
	if (why)
		return pp_fail(err, PP_ERR_PEER, "'%s' %s", request->argv[0], why);
	if (!WIFEXITED(status))
		return pp_fail(err, PP_ERR_PEER, "'%s' was killed by signal %d", request->argv[0],
			WTERMSIG(status));
	reply->status = WEXITSTATUS(status) == 0 ? 200 : 1000 + WEXITSTATUS(status);
	return 0;
}

static int request_exec(void *self, const struct pp_pdu_request *request,
	struct pp_pdu_reply *reply, struct pp_error *err)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, rc = -1;
	sigset_t pipe_set, before;

	pp_buf_clear(&reply->body);
	reply->maybe_executed = false;
	if (!request->argv_count)
		return pp_fail(err, PP_ERR_USAGE, "argv is empty");
	if (request->input && strlen(request->input) > 4096)
		return pp_fail(err, PP_ERR_USAGE, "input is longer than 4096 bytes");
	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
		pp_fail_os(err, errno, "cannot make a pipe");
	} else {
		/* A SIGPIPE of our own write goes to this thread: held back, then swallowed. */
		sigemptyset(&pipe_set);
		sigaddset(&pipe_set, SIGPIPE);
		pthread_sigmask(SIG_BLOCK, &pipe_set, &before);
		rc = run(self, request, reply, in, out, err);
		if (!sigismember(&before, SIGPIPE)) {
			struct timespec none = { 0, 0 };

			while (sigtimedwait(&pipe_set, NULL, &none) == SIGPIPE)
				;
			pthread_sigmask(SIG_SETMASK, &before, NULL);
		}
	}
	for (int i = 0; i < 2; i++) {
		if (in[i] >= 0)
			close(in[i]);
		if (out[i] >= 0)
			close(out[i]);
	}
	return rc;
}

const struct pp_pdu_transport pp_exec_transport = {
	.request = request_exec,
	.close = close_exec,
};
