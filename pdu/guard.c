/* SPDX-License-Identifier: MIT
 *
 * The controller's half: starts the guard and gives it orders, one packet each (SOCK_SEQPACKET), and
 * waits for the answer, so that an order counts only when the guard itself has confirmed it.
 */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard_wire.h"
#include "journal.h"
#include "src/core/clock.h"

extern char **environ;

struct pp_guard {
	int fd;
	pid_t pid;
};

/* timeout_ms < 0: as long as the guard lives. */
static int exchange(struct pp_guard *guard, json_t *order, json_t **answer, int timeout_ms,
	struct pp_error *err)
{
	char packet[PP_GUARD_PACKET_BYTES];
	struct pollfd pfd = { .fd = guard->fd, .events = POLLIN };
	char *text = order ? json_dumps(order, JSON_COMPACT) : NULL;
	ssize_t n;
	int ready;

	json_decref(order);
	if (!text || strlen(text) >= sizeof(packet)) {
		free(text);
		return pp_fail(err, PP_ERR_SYSTEM, "cannot make an order for the guard");
	}
	n = send(guard->fd, text, strlen(text), MSG_NOSIGNAL);
	free(text);
	if (n < 0)
		return pp_fail_os(err, errno, "the guard is gone");
	do {
		ready = poll(&pfd, 1, timeout_ms);
	} while (ready < 0 && errno == EINTR);
	if (ready == 0)
		return pp_fail(err, PP_ERR_PEER, "the guard does not answer");
	n = recv(guard->fd, packet, sizeof(packet) - 1, 0);
	if (n <= 0)
		return pp_fail(err, PP_ERR_PEER, "the guard is gone");
	packet[n] = '\0';
	*answer = json_loads(packet, 0, NULL);
	if (!*answer)
		return pp_fail(err, PP_ERR_PEER, "the guard's answer is not understood");
	if (json_is_true(json_object_get(*answer, "ok")))
		return 0;
	pp_fail(err, json_is_true(json_object_get(*answer, "fired")) ? PP_ERR_REFUSED : PP_ERR_PEER,
		"guard: %s", json_string_value(json_object_get(*answer, "error")));
	json_decref(*answer);
	*answer = NULL;
	return -1;
}

static int order(struct pp_guard *guard, const char *what, int64_t deadline_ns,
	struct pp_guard_restored *restored, int timeout_ms, struct pp_error *err)
{
	json_t *answer = NULL;
	int rc = exchange(guard, json_pack("{s:s, s:I}", "order", what, "deadline_ns",
		(json_int_t)deadline_ns), &answer, timeout_ms, err);

	if (restored) {
		restored->fired = json_is_true(json_object_get(answer, "fired"));
		restored->t_on_ns = json_integer_value(json_object_get(answer, "t_on_ns"));
	}
	json_decref(answer);
	return rc;
}

/* Own session, default signals, empty mask; the socket under a number of its own, so that it is the
 * only descriptor besides 0, 1, 2 that survives the exec. */
static int spawn_guard(const char *exe, int child_fd, pid_t *pid, struct pp_error *err)
{
	char number[16];
	char *argv[] = { (char *)"plugpull", (char *)"pdu", (char *)"guard", (char *)"--fd",
		number, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int rc;

	snprintf(number, sizeof(number), "%d", child_fd);
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	/* The same number twice clears close-on-exec in the child only. */
	posix_spawn_file_actions_adddup2(&actions, child_fd, child_fd);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr,
		POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	rc = posix_spawn(pid, exe, &actions, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return rc == 0 ? 0 : pp_fail_os(err, rc, "cannot start the guard '%s'", exe);
}

static void reap(struct pp_guard *guard)
{
	if (guard->fd >= 0)
		close(guard->fd);
	if (guard->pid > 0)
		while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
			;
	free(guard);
}

/* What the guard needs to be the same wherever it runs: the parent's idea of the state folder. */
static json_t *first_order(const struct pp_pdu_config *config, struct pp_error *err)
{
	struct pp_pdu *pdu = pp_pdu_open(config, err);
	struct pp_journal_owner me = pp_journal_me();
	struct pp_pdu_config whole;
	json_t *json = NULL;

	if (!pdu)
		return NULL;
	pp_pdu_effective_config(pdu, &whole);
	json = json_pack("{s:s, s:o, s:I, s:I}", "order", "start", "config",
		pp_config_to_json(&whole), "pid", (json_int_t)me.pid, "pid_start",
		(json_int_t)me.start);
	pp_pdu_close(pdu);
	if (!json)
		pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	return json;
}

struct pp_guard *pp_guard_start(const struct pp_pdu_config *config, const char *exe,
	struct pp_error *err)
{
	struct pp_guard *guard = calloc(1, sizeof(*guard));
	int pair[2] = { -1, -1 };
	json_t *json, *answer = NULL;

	if (!guard) {
		pp_fail(err, PP_ERR_SYSTEM, "out of memory");
		return NULL;
	}
	guard->fd = -1;
	json = first_order(config, err);
	if (!json)
		goto undo;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		pp_fail_os(err, errno, "cannot make a socket pair");
		json_decref(json);
		goto undo;
	}
	guard->fd = pair[0];
	if (spawn_guard(exe ? exe : "/proc/self/exe", pair[1], &guard->pid, err) != 0) {
		guard->pid = 0;
		close(pair[1]);
		json_decref(json);
		goto undo;
	}
	close(pair[1]);
	if (exchange(guard, json, &answer, -1, err) != 0)
		goto undo;
	json_decref(answer);
	return guard;
undo:
	reap(guard);
	return NULL;
}

int pp_guard_arm(struct pp_guard *guard, int64_t deadline_ns, struct pp_error *err)
{
	return order(guard, "arm", deadline_ns, NULL, PP_GUARD_ANSWER_MS, err);
}

int pp_guard_extend(struct pp_guard *guard, int64_t deadline_ns, struct pp_error *err)
{
	return order(guard, "extend", deadline_ns, NULL, PP_GUARD_ANSWER_MS, err);
}

int pp_guard_disarm(struct pp_guard *guard, struct pp_guard_restored *restored,
	struct pp_error *err)
{
	return order(guard, "disarm", 0, restored, PP_GUARD_ANSWER_MS, err);
}

int pp_guard_stop(struct pp_guard *guard, struct pp_error *err)
{
	int rc;

	if (!guard)
		return 0;
	rc = order(guard, "stop", 0, NULL, PP_GUARD_ANSWER_MS, err);
	reap(guard);
	return rc;
}

pid_t pp_guard_pid(const struct pp_guard *guard)
{
	return guard->pid;
}
