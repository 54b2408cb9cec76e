/* SPDX-License-Identifier: MIT */
#include "alive.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/core/subprocess.h"
#include "template.h"

struct pp_alive {
	char *name, *host, *port;
	struct pp_pdu_request words; /* of a command */
	enum pp_alive_answer (*ask)(void *arg, int64_t timeout_ms);
	const char *(*boot)(void *arg);
	void *arg;
};

/* What the kernel says about one address. */
static enum pp_alive_answer meaning(int code)
{
	switch (code) {
	case 0:
		return PP_ALIVE_LIVES;
	case ECONNREFUSED:
	case ECONNRESET:
		return PP_ALIVE_REFUSES;
	case ETIMEDOUT:
	case EHOSTUNREACH: /* nobody answers ARP there */
	case EHOSTDOWN:
		return PP_ALIVE_SILENT;
	default: /* ENETUNREACH and the like: our own network */
		return PP_ALIVE_UNKNOWN;
	}
}

static enum pp_alive_answer try_address(const struct addrinfo *address, int64_t timeout_ms)
{
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	int code = 0;
	socklen_t bytes = sizeof(code);

	if (fd < 0)
		return PP_ALIVE_UNKNOWN;
	if (connect(fd, address->ai_addr, address->ai_addrlen) != 0)
		code = errno;
	if (code == EINPROGRESS) {
		code = poll(&pfd, 1, (int)timeout_ms) > 0 ? 0 : ETIMEDOUT;
		if (code == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &bytes) != 0)
			code = errno;
	}
	close(fd);
	return meaning(code);
}

static enum pp_alive_answer ask_tcp(void *arg, int64_t timeout_ms)
{
	struct pp_alive *alive = arg;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
	enum pp_alive_answer answer = PP_ALIVE_UNKNOWN;

	if (getaddrinfo(alive->host, alive->port, &hints, &list) != 0)
		return PP_ALIVE_UNKNOWN;
	for (const struct addrinfo *at = list; at && answer != PP_ALIVE_LIVES; at = at->ai_next)
		answer = try_address(at, timeout_ms);
	freeaddrinfo(list);
	return answer;
}

static enum pp_alive_answer run(const char *const *argv, int64_t timeout_ms, int unknown_from)
{
	struct pp_subprocess what = { .argv = argv, .timeout_ms = timeout_ms };
	struct pp_subprocess_result result;

	if (pp_subprocess_run(&what, &result, NULL) != 0)
		return PP_ALIVE_UNKNOWN;
	if (result.timed_out)
		return PP_ALIVE_SILENT;
	if (result.exit_status == 0)
		return PP_ALIVE_LIVES;
	return result.exit_status < 0 || result.exit_status >= unknown_from ? PP_ALIVE_UNKNOWN :
		PP_ALIVE_SILENT;
}

/* ping(8): 1 is no answer, 2 is trouble of its own. */
static enum pp_alive_answer ask_ping(void *arg, int64_t timeout_ms)
{
	struct pp_alive *alive = arg;
	char wait[16];
	const char *const argv[] = { "ping", "-n", "-q", "-c", "1", "-W", wait, alive->host, NULL };

	snprintf(wait, sizeof(wait), "%d", timeout_ms > 1000 ? (int)(timeout_ms / 1000) : 1);
	return run(argv, timeout_ms + 2000, 2);
}

/* 126 and 127 are how shells and env(1) say that there was nothing to run. */
static enum pp_alive_answer ask_command(void *arg, int64_t timeout_ms)
{
	struct pp_alive *alive = arg;

	return run((const char *const *)alive->words.argv, timeout_ms, 126);
}

struct pp_alive *pp_alive_of(const char *name, enum pp_alive_answer (*ask)(void *arg,
	int64_t timeout_ms), const char *(*boot)(void *arg), void *arg, struct pp_error *err)
{
	struct pp_alive *alive = calloc(1, sizeof(*alive));

	if (alive)
		alive->name = strdup(name);
	if (!alive || !alive->name) {
		free(alive);
		pp_fail(err, PP_ERR_SYSTEM, "out of memory");
		return NULL;
	}
	alive->ask = ask;
	alive->boot = boot;
	alive->arg = arg ? arg : alive;
	return alive;
}

static int take_host(struct pp_alive *alive, const char *text, bool with_port, struct pp_error *err)
{
	const char *colon = with_port ? strrchr(text, ':') : NULL;
	size_t bytes = colon ? (size_t)(colon - text) : strlen(text);

	if (bytes > 2 && text[0] == '[' && text[bytes - 1] == ']') {
		text++;
		bytes -= 2;
	}
	if (!bytes || text[0] == '-' || (with_port && (!colon || !colon[1] ||
	    strspn(colon + 1, "0123456789") != strlen(colon + 1))))
		return pp_fail(err, PP_ERR_USAGE, "'%s' is not %s", alive->name,
			with_port ? "tcp:HOST:PORT" : "ping:HOST");
	alive->host = strndup(text, bytes);
	alive->port = colon ? strdup(colon + 1) : NULL;
	return alive->host && (alive->port || !with_port) ? 0 :
		pp_fail(err, PP_ERR_SYSTEM, "out of memory");
}

static int take_words(struct pp_alive *alive, const char *text, struct pp_error *err)
{
	char *copy = strdup(text);
	struct pp_profile_request from = { .argv = copy };
	struct pp_values none = { .time_ms = -1 };
	int rc = copy ? pp_template_request(&alive->words, &from, &none, err) :
		pp_fail(err, PP_ERR_SYSTEM, "out of memory");

	free(copy);
	if (rc == 0 && !alive->words.argv_count)
		rc = pp_fail(err, PP_ERR_USAGE, "'%s' is not cmd:PROGRAM WORDS...", alive->name);
	return rc;
}

struct pp_alive *pp_alive_parse(const char *text, struct pp_error *err)
{
	struct pp_alive *alive = pp_alive_of(text, NULL, NULL, NULL, err);
	int rc;

	if (!alive)
		return NULL;
	if (strncmp(text, "tcp:", 4) == 0) {
		alive->ask = ask_tcp;
		rc = take_host(alive, text + 4, true, err);
	} else if (strncmp(text, "ping:", 5) == 0) {
		alive->ask = ask_ping;
		rc = take_host(alive, text + 5, false, err);
	} else if (strncmp(text, "cmd:", 4) == 0) {
		alive->ask = ask_command;
		rc = take_words(alive, text + 4, err);
	} else {
		rc = pp_fail(err, PP_ERR_USAGE, "'%s' is neither agent:KEYFILE, tcp:HOST:PORT, "
			"ping:HOST nor cmd:PROGRAM", text);
	}
	if (rc == 0)
		return alive;
	pp_alive_free(alive);
	return NULL;
}

void pp_alive_free(struct pp_alive *alive)
{
	if (!alive)
		return;
	pp_request_release(&alive->words);
	free(alive->name);
	free(alive->host);
	free(alive->port);
	free(alive);
}

const char *pp_alive_name(const struct pp_alive *alive)
{
	return alive->name;
}

const char *pp_alive_host(const struct pp_alive *alive)
{
	return alive->host;
}

const char *pp_alive_boot(const struct pp_alive *alive)
{
	return alive->boot ? alive->boot(alive->arg) : "";
}

enum pp_alive_answer pp_alive_ask(struct pp_alive *alive, int64_t timeout_ms)
{
	return alive->ask(alive->arg, timeout_ms);
}
