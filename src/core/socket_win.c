/* SPDX-License-Identifier: MIT
 *
 * Winsock. The socket never blocks by itself; WSAPoll waits, in slices, since a shutdown by another
 * thread does not wake it on every Windows.
 */
#include "socket.h"

#include <stdbool.h>
#include <string.h>

#include <winsock2.h>
#include <ws2tcpip.h>

#include "clock.h"
#include "handle_win.h"

#define SLICE_MS   100
#define IDLE_MS    3000
#define PROBE_MS   2000
#define TCP_MAXRT_S 10

#ifndef TCP_MAXRT
#define TCP_MAXRT 5
#endif

/* <mstcpip.h>'s tcp_keepalive and SIO_KEEPALIVE_VALS. */
struct keepalive {
	ULONG on, idle_ms, probe_ms;
};
#define KEEPALIVE_VALUES _WSAIOW(IOC_VENDOR, 4)

static int start_sockets(struct pp_error *err)
{
	static volatile LONG started;
	WSADATA data;
	int code;

	if (InterlockedCompareExchange(&started, 0, 0))
		return 0;
	code = WSAStartup(MAKEWORD(2, 2), &data); /* counted: twice in a race does no harm */
	if (code != 0)
		return pp_fail_win(err, (DWORD)code, "cannot use the network");
	InterlockedExchange(&started, 1);
	return 0;
}

/* 1: ready, 0: the deadline (-1: none) passed, -1 with WSAGetLastError(). */
static int wait_for(SOCKET s, short events, int64_t deadline_ns)
{
	WSAPOLLFD p = { .fd = s, .events = events };

	for (;;) {
		int64_t left = deadline_ns < 0 ? INT64_MAX : deadline_ns - pp_clock_mono_ns();
		int ms = left <= 0 ? 0 : left < SLICE_MS * PP_NS_PER_MS
			? (int)((left + 999999) / 1000000) : SLICE_MS;
		int n = WSAPoll(&p, 1, ms);

		if (n != 0)
			return n < 0 ? -1 : 1;
		if (left <= 0)
			return 0;
	}
}

static int parse_address(const char *address, uint16_t port, struct sockaddr_storage *out,
	int *bytes, struct pp_error *err)
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
	int bytes;

	return start_sockets(NULL) == 0 && parse_address(address, 0, &ignored, &bytes, NULL) == 0;
}

static void set_options(SOCKET s)
{
	struct keepalive keep = { 1, IDLE_MS, PROBE_MS };
	DWORD on = 1, give_up_s = TCP_MAXRT_S, got;
	u_long nonblocking = 1;

	ioctlsocket(s, FIONBIO, &nonblocking);
	/* each only makes a dead control noticed sooner; none is needed for correctness */
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, (const char *)&on, sizeof(on));
	setsockopt(s, IPPROTO_TCP, TCP_MAXRT, (const char *)&give_up_s, sizeof(give_up_s));
	WSAIoctl(s, KEEPALIVE_VALUES, &keep, sizeof(keep), NULL, 0, &got, NULL, NULL);
}

int pp_socket_connect(const char *address, uint16_t port, int64_t deadline_ns, pp_socket *out,
	struct pp_error *err)
{
	struct sockaddr_storage to;
	int bytes = 0, code = 0, size = sizeof(code), ready;
	SOCKET s;

	*out = -1;
	if (start_sockets(err) != 0 || parse_address(address, port, &to, &bytes, err) != 0)
		return -1;
	s = WSASocketW(to.ss_family, SOCK_STREAM, IPPROTO_TCP, NULL, 0, WSA_FLAG_OVERLAPPED |
		WSA_FLAG_NO_HANDLE_INHERIT);
	if (s == INVALID_SOCKET)
		return pp_fail_win(err, (DWORD)WSAGetLastError(), "cannot make a socket");
	set_options(s);
	if (connect(s, (struct sockaddr *)&to, bytes) != 0) {
		code = WSAGetLastError();
		if (code == WSAEWOULDBLOCK) {
			code = 0;
			ready = wait_for(s, POLLOUT, deadline_ns);
			if (ready == 0)
				code = WSAETIMEDOUT;
			else if (ready < 0 ||
				getsockopt(s, SOL_SOCKET, SO_ERROR, (char *)&code, &size) != 0)
				code = WSAGetLastError();
		}
		if (code != 0) {
			closesocket(s);
			return pp_fail_win(err, (DWORD)code, "cannot connect to control at %s port %u",
				address, port);
		}
	}
	*out = (pp_socket)s;
	return 0;
}

/* What has gone is taken off the front. */
static int advance(WSABUF *parts, int count, DWORD sent)
{
	int done = 0;

	while (done < count && sent >= parts[done].len)
		sent -= parts[done++].len;
	if (done < count) {
		parts[done].buf += sent;
		parts[done].len -= sent;
	}
	return done;
}

int pp_socket_send(pp_socket s, const struct pp_part *given, int count, int64_t deadline_ns,
	struct pp_error *err)
{
	WSABUF parts[PP_PARTS_MAX], *at = parts;
	int i, done;

	for (i = 0; i < count; i++)
		parts[i] = (WSABUF){ .len = (ULONG)given[i].bytes,
			.buf = (char *)(uintptr_t)given[i].data };
	while (count) {
		DWORD sent = 0;

		if (WSASend((SOCKET)s, at, (DWORD)count, &sent, 0, NULL, NULL) == 0) {
			done = advance(at, count, sent);
			at += done;
			count -= done;
			continue;
		}
		if (WSAGetLastError() != WSAEWOULDBLOCK)
			return pp_fail_win(err, (DWORD)WSAGetLastError(), "cannot send to control");
		done = wait_for((SOCKET)s, POLLOUT, deadline_ns);
		if (done == 0)
			return pp_fail_win(err, WSAETIMEDOUT, "cannot send to control");
		if (done < 0)
			return pp_fail_win(err, (DWORD)WSAGetLastError(), "cannot wait for control");
	}
	return 0;
}

enum pp_received pp_socket_receive(pp_socket s, void *buf, size_t bytes, size_t *got,
	int64_t deadline_ns, struct pp_error *err)
{
	for (;;) {
		int n = recv((SOCKET)s, buf, bytes > 1 << 30 ? 1 << 30 : (int)bytes, 0), ready;

		*got = n > 0 ? (size_t)n : 0;
		if (n >= 0)
			return n > 0 ? PP_RECEIVED_SOME : PP_RECEIVED_END;
		if (WSAGetLastError() != WSAEWOULDBLOCK) {
			pp_fail_win(err, (DWORD)WSAGetLastError(), "cannot receive from control");
			return PP_RECEIVED_FAILED;
		}
		ready = wait_for((SOCKET)s, POLLIN, deadline_ns);
		if (ready == 0)
			return PP_RECEIVED_LATE;
		if (ready < 0) {
			pp_fail_win(err, (DWORD)WSAGetLastError(), "cannot wait for control");
			return PP_RECEIVED_FAILED;
		}
	}
}

void pp_socket_shutdown(pp_socket s)
{
	shutdown((SOCKET)s, SD_BOTH);
}

void pp_socket_close(pp_socket s)
{
	closesocket((SOCKET)s);
}
