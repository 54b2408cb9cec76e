/* SPDX-License-Identifier: MIT
 *
 * Goal: the lab's network is there, its cable can be pulled so that the host sees no carrier and no
 * FIN (M5.1 rests on that silence), and nothing of it is left: when it is closed, when its owner is
 * killed, and when even its guard was. Method: as root, real namespaces; owners are children.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "lab/netns.h"

#define WAIT_MS 30000

static struct pp_error err;

static void cable_of(const struct pp_netns *ns, char *out, size_t bytes)
{
	snprintf(out, bytes, "pp%dh", ns->slot);
}

static int things(const struct pp_netns *ns)
{
	char cable[32];

	cable_of(ns, cable, sizeof(cable));
	return (access(ns->path, F_OK) == 0) + (access(ns->run_dir, F_OK) == 0) +
		(if_nametoindex(cable) != 0);
}

static void await_nothing(const struct pp_netns *ns)
{
	int64_t until = pp_clock_mono_ns() + WAIT_MS * PP_NS_PER_MS;

	while (things(ns) && pp_clock_mono_ns() < until)
		pp_clock_sleep_ms(10);
	assert_int_equal(things(ns), 0);
}

static void open_one(struct pp_netns *ns)
{
	if (pp_netns_open(ns, &err))
		fail_msg("%s", err.text);
	assert_int_equal(things(ns), 3);
}

/* A child in the namespace that connects to us and says a byte, then is killed. */
static pid_t talker(const struct pp_netns *ns, uint16_t port)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
		int space, fd;

		/* Not the guards' pipes: their ends are how guards hear of our death. */
		close_range(3, ~0U, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		space = open(ns->path, O_RDONLY);
		inet_pton(AF_INET, ns->host_address, &to.sin_addr);
		if (space < 0 || setns(space, CLONE_NEWNET))
			_exit(1);
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&to, sizeof(to)) || write(fd, "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	return pid;
}

static int listen_at(const struct pp_netns *ns, uint16_t *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, ns->host_address, &at.sin_addr);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
	*port = ntohs(at.sin_port);
	return fd;
}

static void wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int hear_from(int door, pid_t *pid, const struct pp_netns *ns, uint16_t port)
{
	char c;
	int fd;

	*pid = talker(ns, port);
	wait_readable(door);
	fd = accept(door, NULL, NULL);
	assert_true(fd >= 0);
	wait_readable(fd);
	assert_int_equal(read(fd, &c, 1), 1);
	return fd;
}

static void test_silence(void **state)
{
	struct pp_netns ns;
	struct pollfd p = { .events = POLLIN };
	uint16_t port;
	pid_t pid;
	int door, fd;
	char c;

	(void)state;
	open_one(&ns);
	door = listen_at(&ns, &port);
	/* Control: with the cable in, a killed process says FIN. */
	fd = hear_from(door, &pid, &ns, port);
	end(pid);
	wait_readable(fd);
	assert_int_equal(read(fd, &c, 1), 0);
	close(fd);
	/* Cable first: nothing is heard, also not once it is back. */
	fd = hear_from(door, &pid, &ns, port);
	assert_int_equal(pp_netns_link(&ns, false, &err), 0);
	end(pid);
	p.fd = fd;
	assert_int_equal(poll(&p, 1, 1500), 0);
	close(fd);
	assert_int_equal(pp_netns_link(&ns, true, &err), 0);
	fd = hear_from(door, &pid, &ns, port);
	end(pid);
	close(fd);
	close(door);
	pp_netns_close(&ns);
	assert_int_equal(ns.guard, -1);
}

static void test_close_leaves_nothing(void **state)
{
	struct pp_netns a, b, was_a, was_b;
	pid_t pid;
	uint16_t port;
	int door, fd;

	(void)state;
	open_one(&a);
	open_one(&b);
	was_a = a;
	was_b = b;
	assert_int_not_equal(a.slot, b.slot);
	door = listen_at(&a, &port);
	fd = hear_from(door, &pid, &a, port); /* still in there when it is closed */
	pp_netns_close(&a);
	assert_int_equal(things(&was_a), 0);
	assert_int_equal(things(&was_b), 3);
	assert_int_equal(waitpid(pid, NULL, 0), pid); /* the guard has killed it */
	pp_netns_close(&b);
	assert_int_equal(things(&was_b), 0);
	close(fd);
	close(door);
}

/* In a child that is killed; kill_guard: the guard first, so that only a sweep can help. */
static struct pp_netns left_by_the_dead(bool kill_guard)
{
	struct pp_netns ns = { 0 };
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (pp_netns_open(&ns, &err) || write(ends[1], &ns, sizeof(ns)) != sizeof(ns))
			_exit(1);
		for (;;)
			pause();
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &ns, sizeof(ns)), sizeof(ns));
	close(ends[0]);
	assert_int_equal(things(&ns), 3);
	if (kill_guard)
		kill(ns.guard, SIGKILL);
	end(pid);
	return ns;
}

static void test_killed_owner(void **state)
{
	struct pp_netns ns = left_by_the_dead(false);

	(void)state;
	await_nothing(&ns);
}

static void test_sweep(void **state)
{
	struct pp_netns alive, dead;

	(void)state;
	open_one(&alive);
	dead = left_by_the_dead(true);
	assert_int_equal(things(&dead), 3);
	pp_netns_sweep();
	assert_int_equal(things(&dead), 0);
	assert_int_equal(things(&alive), 3);
	pp_netns_close(&alive);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_close_leaves_nothing),
		cmocka_unit_test(test_killed_owner),
		cmocka_unit_test(test_sweep),
	};

	if (geteuid()) {
		printf("skip: needs root for a network namespace\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
