/* SPDX-License-Identifier: MIT
 *
 * The socket never blocks by itself; poll(2) waits, with a deadline.
 */
#include "socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"

#define GIVE_UP_MS 10000

/* 1: ready, 0: the deadline (-1: none) passed, -1 with errno. */
static int wait_for(int fd, short events, int64_t deadline_ns)
{
	struct pollfd p = { .fd = fd, .events = events };

	for (;;) {
		int64_t left = deadline_ns < 0 ? -1 : deadline_ns - pp_clock_mono_ns();
		int ms = deadline_ns < 0 ? -1 : left <= 0 ? 0 : (int)((left + 999999) / 1000000);
		int n = poll(&p, 1, ms);

		if (n < 0 && errno == EINTR)
			continue;
		return n < 0 ? -1 : n > 0;
	}
}

static int parse_address(const char *address, uint16_t port, struct sockaddr_storage *out,
	socklen_t *bytes, struct pp_error *err)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		*bytes = sizeof(*v4);
		return 0;
	}
	if (inet_pton(AF_INET6, address, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		*bytes = sizeof(*v6);
		return 0;
	}
	return pp_fail(err, PP_ERR_USAGE, "'%s' is not a numeric address (names are not looked up "
		"here: the machine under test may have no name service)", address);
}

bool pp_address_numeric(const char *address)
{
	struct sockaddr_storage ignored;
	socklen_t bytes;

	return parse_address(address, 0, &ignored, &bytes, NULL) == 0;
}

static void set_options(int fd)
{
	int on = 1, idle_s = 3, probe_s = 2, probes = 3;
	unsigned give_up_ms = GIVE_UP_MS;

	/* each only makes a dead control noticed sooner; none is needed for correctness */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe_s, sizeof(probe_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up_ms, sizeof(give_up_ms));
}

int pp_socket_connect(const char *address, uint16_t port, int64_t deadline_ns, pp_socket *out,
	struct pp_error *err)
{
	struct sockaddr_storage to;
	socklen_t bytes = 0, size = sizeof(int);
	int fd, code = 0, ready;

	*out = -1;
	if (parse_address(address, port, &to, &bytes, err) != 0)
		return -1;
	fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return pp_fail_os(err, errno, "cannot make a socket");
	set_options(fd);
	if (connect(fd, (struct sockaddr *)&to, bytes) != 0) {
		if (errno != EINPROGRESS) {
			code = errno;
			goto refused;
		}
		ready = wait_for(fd, POLLOUT, deadline_ns);
		if (ready == 0)
			code = ETIMEDOUT;
		else if (ready < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) != 0)
			code = errno;
		if (code)
			goto refused;
	}
	*out = fd;
	return 0;
refused:
	close(fd);
	return pp_fail_os(err, code, "cannot connect to control at %s port %u", address, port);
}

int pp_socket_send(pp_socket s, const struct pp_part *given, int count, int64_t deadline_ns,
	struct pp_error *err)
{
	struct iovec parts[PP_PARTS_MAX], *iov = parts;
	int i;

	for (i = 0; i < count; i++)
		parts[i] = (struct iovec){ (void *)(uintptr_t)given[i].data, given[i].bytes };
	while (count) {
		struct msghdr msg = { .msg_iov = iov, .msg_iovlen = (size_t)count };
		ssize_t n = sendmsg((int)s, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			int ready = wait_for((int)s, POLLOUT, deadline_ns);

			if (ready == 0)
				return pp_fail_os(err, ETIMEDOUT, "cannot send to control");
			if (ready < 0)
				return pp_fail_os(err, errno, "cannot wait for control");
			continue;
		}
		if (n < 0)
			return pp_fail_os(err, errno, "cannot send to control");
		for (; count && (size_t)n >= iov->iov_len; iov++, count--)
			n -= (ssize_t)iov->iov_len;
		if (count) {
			iov->iov_base = (char *)iov->iov_base + n;
			iov->iov_len -= (size_t)n;
		}
	}
	return 0;
}

enum pp_received pp_socket_receive(pp_socket s, void *buf, size_t bytes, size_t *got,
	int64_t deadline_ns, struct pp_error *err)
{
	for (;;) {
		ssize_t n = recv((int)s, buf, bytes, MSG_DONTWAIT);
		int ready;

		*got = n > 0 ? (size_t)n : 0;
		if (n >= 0)
			return n > 0 ? PP_RECEIVED_SOME : PP_RECEIVED_END;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EWOULDBLOCK) {
			pp_fail_os(err, errno, "cannot receive from control");
			return PP_RECEIVED_FAILED;
		}
		ready = wait_for((int)s, POLLIN, deadline_ns);
		if (ready == 0)
			return PP_RECEIVED_LATE;
		if (ready < 0) {
			pp_fail_os(err, errno, "cannot wait for control");
			return PP_RECEIVED_FAILED;
		}
	}
}

void pp_socket_shutdown(pp_socket s)
{
	shutdown((int)s, SHUT_RDWR);
}

void pp_socket_close(pp_socket s)
{
	close((int)s);
}
