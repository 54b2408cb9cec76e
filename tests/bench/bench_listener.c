/* SPDX-License-Identifier: MIT
 *
 * What the witness can take: acks a second of the listener's own CPU time, through MAC check,
 * ledger, write(2) and echo; and 10,000 connected agents. Budget: 1,000,000 acks/s on one core.
 * Method: frames are sealed before the clock starts; the agents live in this process (acks) or in a
 * child (10,000 of them); CPU time is the listener thread's, so a noisy host does not matter much.
 * Usage: bench_listener [FOLDER for the ledgers, default /tmp]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/clock.h"
#include "src/core/wire.h"
#include "verifier/listener.h"

#define ACKS         2000000
#define FRAME_BYTES  (PP_WIRE_OVERHEAD_BYTES + PP_ACK_BYTES)
#define AGENTS       10000
#define BUDGET       1e6
#define ROUNDS       20

static const struct pp_key key = { { 42 } };
static const struct pp_run_id run = { { 42 } };
static struct pp_error err;

static void die(const char *what)
{
	fprintf(stderr, "bench_listener: %s: %s\n", what, err.text[0] ? err.text : strerror(errno));
	exit(2);
}

static int greet(uint16_t port, struct pp_wire *send_wire, struct pp_wire *receive_wire)
{
	uint8_t one[PP_GREET1_BYTES], two[PP_GREET2_BYTES], three[PP_GREET3_BYTES];
	uint8_t four[PP_GREET4_BYTES], hello[64];
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct pp_greeting g;
	size_t n;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 ||
		pp_greet_agent_first(&g, one, &err) != 0 || send(fd, one, sizeof(one), 0) < 0 ||
		recv(fd, two, sizeof(two), MSG_WAITALL) != sizeof(two) ||
		pp_greet_agent_second(&g, &key, two, three, &n, &err) != 0 ||
		send(fd, three, n, 0) < 0 ||
		recv(fd, four, sizeof(four), MSG_WAITALL) != sizeof(four) ||
		pp_greet_agent_fourth(&g, &key, four, send_wire, receive_wire, &err) != 0)
		die("greeting");
	n = pp_wire_pack(send_wire, PP_FRAME_HELLO, "bench=yes\n", 10, hello);
	if (send(fd, hello, n, 0) < 0)
		die("hello");
	return fd;
}

static struct pp_event await(struct pp_listener *l, enum pp_event_type type)
{
	struct pp_event ev;

	if (pp_listener_wait(l, pp_clock_mono_ns() + 60 * PP_NS_PER_S, &ev, &err) != 1 ||
		ev.type != type)
		die("an event that did not come");
	pp_event_release(&ev);
	return ev;
}

/* Sends everything and drains the echoes, until every lane's last ack is echoed. */
static void pump(int fd, struct pp_wire *wire, const uint8_t *frames, size_t bytes, uint32_t lanes)
{
	static uint8_t in[1 << 20];
	size_t held = 0, at = 0, used, sent = 0;
	uint64_t echoed = 0, *last = calloc(lanes, sizeof(*last));
	struct pp_frame frame;
	struct pp_echo echo;

	while (echoed < bytes / FRAME_BYTES) {
		struct pollfd p = { fd, (short)(POLLIN | (sent < bytes ? POLLOUT : 0)), 0 };
		ssize_t n;

		poll(&p, 1, -1);
		if (p.revents & POLLOUT) {
			n = send(fd, frames + sent, bytes - sent, MSG_DONTWAIT);
			sent += n > 0 ? (size_t)n : 0;
		}
		n = recv(fd, in + held, sizeof(in) - held, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			die("the listener hung up");
		held += n > 0 ? (size_t)n : 0;
		for (at = 0; pp_wire_open(wire, in + at, held - at, &frame, &used, NULL, &err) == 1;
			at += used) {
			if (pp_echo_parse(&frame, &echo, &err) != 0)
				die("an echo");
			echoed += echo.last - last[echo.lane];
			last[echo.lane] = echo.last;
		}
		memmove(in, in + at, held - at);
		held -= at;
	}
	free(last);
}

static double acks_of(struct pp_listener *l, const char *folder, uint32_t lanes)
{
	char path[256];
	struct pp_wire out, in;
	struct pp_ledger *ledger;
	uint8_t *frames = malloc((size_t)ACKS * FRAME_BYTES), payload[PP_ACK_BYTES];
	int fd = greet(pp_listener_port(l), &out, &in);
	uint64_t session = await(l, PP_EVENT_CONNECTED).session, i;
	int64_t cpu_ns, wall_ns;

	snprintf(path, sizeof(path), "%s/bench-%d.ledger", folder, (int)getpid());
	unlink(path);
	ledger = pp_ledger_create(path, &run, lanes, &err);
	if (!frames || !ledger || pp_listener_bind(l, session, 0, ledger, &err) != 0)
		die("set-up");
	for (i = 0; i < ACKS; i++) {
		struct pp_ack ack = { 0, (uint32_t)(i % lanes), i / lanes + 1, i / lanes + 1 };

		pp_ack_put(&ack, payload);
		pp_wire_pack(&out, PP_FRAME_ACK, payload, sizeof(payload), frames + i * FRAME_BYTES);
	}
	cpu_ns = pp_listener_cpu_ns(l);
	wall_ns = pp_clock_mono_ns();
	pump(fd, &in, frames, (size_t)ACKS * FRAME_BYTES, lanes);
	cpu_ns = pp_listener_cpu_ns(l) - cpu_ns;
	wall_ns = pp_clock_mono_ns() - wall_ns;
	close(fd);
	await(l, PP_EVENT_CLOSED);
	pp_ledger_close(ledger, &err);
	unlink(path);
	free(frames);
	printf("acks, %4u lanes   %10.0f acks/s of CPU  %10.0f acks/s by the clock  %.2f x budget\n",
		lanes, ACKS * 1e9 / (double)cpu_ns, ACKS * 1e9 / (double)wall_ns,
		ACKS * 1e9 / (double)cpu_ns / BUDGET);
	fflush(stdout);
	return ACKS * 1e9 / (double)cpu_ns;
}

/* The child: agents that each send a beat a round. */
static void be_agents(uint16_t port, int go)
{
	static struct { int fd; struct pp_wire out; } agents[AGENTS];
	uint8_t payload[PP_BEAT_HEAD_BYTES + PP_BEAT_DISK_BYTES], frame[128];
	struct rlimit files = { 20000, 20000 };
	struct pp_beat_disk disk = { .run_index = 0 };
	struct pp_wire in;
	char byte;
	int i, r;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	for (i = 0; i < AGENTS; i++)
		agents[i].fd = greet(port, &agents[i].out, &in);
	for (r = 0; r < ROUNDS; r++) {
		if (read(go, &byte, 1) != 1)
			_exit(1);
		for (i = 0; i < AGENTS; i++) {
			size_t n = pp_beat_put((uint64_t)r, &disk, 1, payload);

			n = pp_wire_pack(&agents[i].out, PP_FRAME_BEAT, payload, n, frame);
			if (send(agents[i].fd, frame, n, MSG_NOSIGNAL) != (ssize_t)n)
				_exit(1);
		}
	}
	(void)!read(go, &byte, 1);
	_exit(0);
}

/* True when every session has heard from its agent since `since`. */
static bool all_heard(struct pp_listener *l, const uint64_t *sessions, int64_t since_ns)
{
	struct pp_session_state st;
	int i;

	for (i = 0; i < AGENTS; i++)
		if (pp_listener_snapshot(l, sessions[i], 0, &st, NULL, 0, &err) != 0 ||
			st.how != PP_CLOSE_NOT || st.t_last_frame_ns < since_ns)
			return false;
	return true;
}

static bool many_agents(struct pp_listener *l)
{
	static uint64_t sessions[AGENTS];
	int64_t t_ns = pp_clock_mono_ns(), cpu_ns, start_cpu_ns = pp_listener_cpu_ns(l);
	struct rlimit files;
	struct rusage usage;
	int go[2], i, r, status = 0;
	pid_t child;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_max < AGENTS + 100) {
		printf("%d agents: skipped, the hard limit of open files is %" PRIu64 "\n", AGENTS,
			(uint64_t)files.rlim_max);
		return true;
	}
	if (pipe(go) != 0)
		die("pipe");
	fflush(stdout);
	child = fork();
	if (child == 0) {
		close(go[1]);
		be_agents(pp_listener_port(l), go[0]);
	}
	for (i = 0; i < AGENTS; i++)
		sessions[i] = await(l, PP_EVENT_CONNECTED).session;
	printf("%d agents   connected in %.2f s, %.0f us of CPU each\n", AGENTS,
		(double)(pp_clock_mono_ns() - t_ns) / 1e9,
		(double)(pp_listener_cpu_ns(l) - start_cpu_ns) / 1e3 / AGENTS);
	cpu_ns = pp_listener_cpu_ns(l);
	for (r = 0; r < ROUNDS; r++) {
		t_ns = pp_clock_mono_ns();
		if (write(go[1], "", 1) != 1)
			die("pipe");
		while (!all_heard(l, sessions, t_ns))
			pp_clock_sleep_ms(2);
	}
	cpu_ns = pp_listener_cpu_ns(l) - cpu_ns;
	getrusage(RUSAGE_SELF, &usage);
	printf("%d agents   %d beats each heard, %.2f us of CPU a beat, peak memory %ld MiB\n", AGENTS,
		ROUNDS, (double)cpu_ns / 1e3 / AGENTS / ROUNDS, usage.ru_maxrss / 1024);
	close(go[1]);
	for (i = 0; i < AGENTS; i++)
		await(l, PP_EVENT_CLOSED);
	waitpid(child, &status, 0);
	return status == 0 && pp_listener_sessions(l) == 0;
}

int main(int argc, char **argv)
{
	static const uint32_t lanes[] = { 1, 64, 4096 };
	struct pp_listener *l = pp_listener_open("127.0.0.1", 0, &key, &err);
	double least = 1e18, rate;
	bool held;
	size_t i;

	if (!l)
		die("listener");
	for (i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++) {
		rate = acks_of(l, argc > 1 ? argv[1] : "/tmp", lanes[i]);
		least = rate < least ? rate : least;
	}
	held = many_agents(l);
	pp_listener_close(l);
	return held && least >= BUDGET ? 0 : 1;
}
