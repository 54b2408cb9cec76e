/* SPDX-License-Identifier: MIT */
#include "limits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/core/buf.h"
#include "src/core/file.h"

#define DENY_BYTES_MAX 65536

static bool names_host(const char *listed, const char *host_key)
{
	size_t bytes = strlen(listed);

	return strncasecmp(listed, host_key, bytes) == 0 &&
		(!host_key[bytes] || (host_key[bytes] == ':' && !strchr(host_key + bytes + 1, ':')));
}

static int check_line(char *line, int number, const char *path, const char *host_key,
	const char *outlet, struct pp_error *err)
{
	char *save = NULL, *host = strtok_r(line, " \t\r", &save), *which, *why;

	if (!host || host[0] == '#')
		return 0;
	which = strtok_r(NULL, " \t\r", &save);
	why = save ? save + strspn(save, " \t") : NULL;
	if (!which)
		return pp_fail(err, PP_ERR_REFUSED, "%s:%d: not 'HOST OUTLET': nothing is switched",
			path, number);
	if (!names_host(host, host_key) || (strcmp(which, "*") != 0 && strcmp(which, outlet) != 0))
		return 0;
	return pp_fail(err, PP_ERR_REFUSED, "outlet '%s' of '%s' must never be cut (%s:%d%s%s)",
		outlet, host_key, path, number, why && *why ? ": " : "", why ? why : "");
}

int pp_deny_check(const char *state_dir, const char *host_key, const char *outlet,
	struct pp_error *err)
{
	char path[PATH_MAX], *line, *save = NULL;
	struct pp_buf buf;
	int rc, number = 0;

	snprintf(path, sizeof(path), "%s/deny", state_dir);
	if (access(path, F_OK) != 0 && errno == ENOENT)
		return 0;
	pp_buf_init(&buf, DENY_BYTES_MAX);
	rc = pp_file_read(path, &buf, err);
	if (rc != 0) {
		if (err)
			err->class = PP_ERR_REFUSED;
		pp_buf_release(&buf);
		return -1;
	}
	/* strtok skips empty lines: they are counted here. */
	for (char *at = buf.data; at && rc == 0; at = save) {
		line = at;
		save = strchr(at, '\n');
		if (save)
			*save++ = '\0';
		rc = check_line(line, ++number, path, host_key, outlet, err);
	}
	pp_buf_release(&buf);
	return rc;
}

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
			((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 && memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		&((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

int pp_same_host_check(const char *pdu_host, const char *dut_host, struct pp_error *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *pdu = NULL, *dut = NULL;
	bool same = strcasecmp(pdu_host, dut_host) == 0;

	if (!same && getaddrinfo(pdu_host, NULL, &hints, &pdu) == 0 &&
	    getaddrinfo(dut_host, NULL, &hints, &dut) == 0)
		for (const struct addrinfo *a = pdu; a && !same; a = a->ai_next)
			for (const struct addrinfo *b = dut; b && !same; b = b->ai_next)
				same = same_address(a->ai_addr, b->ai_addr);
	if (pdu)
		freeaddrinfo(pdu);
	if (dut)
		freeaddrinfo(dut);
	return same ? pp_fail(err, PP_ERR_REFUSED, "the power switch '%s' and the machine '%s' are one: "
		"who would turn it on again", pdu_host, dut_host) : 0;
}

/* ---- waking ------------------------------------------------------------------------------- */

static int parse_wake(const char *wake, unsigned char mac[6], struct sockaddr_in *to,
	struct pp_error *err)
{
	char address[64] = "255.255.255.255", *colon;
	unsigned word[6];
	int used = 0;
	long port = 9;

	if (sscanf(wake, "%2x:%2x:%2x:%2x:%2x:%2x%n", &word[0], &word[1], &word[2], &word[3], &word[4],
	    &word[5], &used) != 6 || (wake[used] && wake[used] != '@'))
		return pp_fail(err, PP_ERR_USAGE, "'%s' is not MAC[@ADDRESS[:PORT]]", wake);
	for (int i = 0; i < 6; i++)
		mac[i] = (unsigned char)word[i];
	if (wake[used])
		snprintf(address, sizeof(address), "%s", wake + used + 1);
	colon = strchr(address, ':');
	if (colon) {
		*colon = '\0';
		port = strtol(colon + 1, NULL, 10);
	}
	*to = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	if (port < 1 || port > 65535 || inet_pton(AF_INET, address, &to->sin_addr) != 1)
		return pp_fail(err, PP_ERR_USAGE, "'%s' is not MAC[@ADDRESS[:PORT]]", wake);
	return 0;
}

int pp_wake_check(const char *wake, struct pp_error *err)
{
	unsigned char mac[6];
	struct sockaddr_in to;

	return parse_wake(wake, mac, &to, err);
}

int pp_wake_send(const char *wake, struct pp_error *err)
{
	unsigned char packet[6 + 16 * 6], mac[6];
	struct sockaddr_in to;
	int fd, yes = 1, sent = 0;

	if (parse_wake(wake, mac, &to, err) != 0)
		return -1;
	memset(packet, 0xff, 6);
	for (int i = 0; i < 16; i++)
		memcpy(packet + 6 + 6 * i, mac, 6);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return pp_fail_os(err, errno, "cannot wake '%s'", wake);
	setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &yes, sizeof(yes));
	for (int i = 0; i < 3; i++)
		sent += sendto(fd, packet, sizeof(packet), 0, (void *)&to, sizeof(to)) ==
			(ssize_t)sizeof(packet);
	if (!sent)
		pp_fail_os(err, errno, "cannot wake '%s'", wake);
	close(fd);
	return sent ? 0 : -1;
}
