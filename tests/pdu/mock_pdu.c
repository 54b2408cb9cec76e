/* SPDX-License-Identifier: MIT
 *
 * Mock power switches, written from the vendors' documents and not from our profiles: a tiny HTTP
 * server on a free loopback port with relays behind it, which can fail in every way that real ones
 * were reported to. Raw sockets, because resets, halves and garbage are the point.
 *
 * Tests include this file with MOCK_PDU_EMBEDDED; alone it is a program that prints its port and
 * serves until its input ends: mock_pdu DIALECT [FAULT [USER:PASSWORD]].
 *
 * Relays change with what is asked, never with the clock: "slow" means after so many status reads.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <nettle/base64.h>
#include <nettle/md5.h>
#include <nettle/sha2.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOCK_OUTLETS 8

enum mock_fault {
	FAULT_NONE,
	FAULT_ERROR_IN_BODY, /* refused, the way the device says so, perhaps with 200 */
	FAULT_UNCHANGED,     /* "OK", and nothing happens */
	FAULT_SLOW,          /* obeys after slow_reads status reads */
	FAULT_PENDING,       /* says pending for slow_reads reads (dialects that can) */
	FAULT_FLAP,          /* off, on, off, on with each read */
	FAULT_WELDED,        /* reads off, watts flow */
	FAULT_OTHER_OUTLET,  /* status speaks of another outlet */
	FAULT_NO_STATE,      /* status without the state */
	FAULT_RESET_AFTER,   /* obeys, then resets the connection */
	FAULT_RESET_BEFORE,
	FAULT_HANG_AFTER,    /* obeys, then never answers */
	FAULT_HANG_BEFORE,
	FAULT_LATE,          /* never answers, and obeys when late_after more have been answered */
	FAULT_HALF,
	FAULT_BIG,
	FAULT_GARBAGE,
	FAULT_NOT_HTTP,
	FAULT_REDIRECT,
	FAULT_500,
	FAULT_403,
	FAULT_401,           /* stale nonce: a fresh handshake passes */
	FAULT_HTML,
	FAULT_EMPTY,
	FAULT_COUNT
};

static const char *const mock_fault_names[FAULT_COUNT] __attribute__((unused)) = {
	"none", "error-in-body", "unchanged", "slow", "pending", "flap", "welded", "other-outlet",
	"no-state", "reset-after", "reset-before", "hang-after", "hang-before", "late", "half", "big",
	"garbage", "not-http", "redirect", "500", "403", "401", "html", "empty",
};

enum mock_kind { KIND_OTHER = 1, KIND_OFF = 2, KIND_ON = 4, KIND_STATUS = 8, KIND_ANY = 15 };

struct mock;

struct mock_request {
	char method[16], path[2048], headers[8192], body[8192];
	size_t body_bytes;
};

struct mock_reply {
	int status;
	char body[8192];
	char headers[512];
};

/* What a request wants: filled by the dialect, carried out by the mock. */
struct mock_action {
	enum mock_kind kind;
	int outlet;      /* from 0; < 0: refused by the dialect itself */
	int timer_s;     /* after which the device is to turn on by itself; 0: none */
};

struct mock_dialect {
	const char *name;
	/* Reads the request; sets reply for what is wrong with it (status != 0). */
	void (*parse)(struct mock *, const struct mock_request *, struct mock_action *,
		struct mock_reply *);
	/* The good answer to the action, or the device's own way to refuse it. */
	void (*render)(struct mock *, const struct mock_request *, const struct mock_action *,
		bool was_on, bool refuse, struct mock_reply *);
	enum { MOCK_AUTH_NONE, MOCK_AUTH_BASIC, MOCK_AUTH_MD5, MOCK_AUTH_SHA256, MOCK_AUTH_BEARER } auth;
};

struct mock {
	const struct mock_dialect *dialect;
	int fd, port;
	pthread_t thread;
	pthread_mutex_t lock;
	int live; /* connections being served */
	bool stop;

	const char *user, *password; /* NULL: no authentication */
	const char *device_id;
	bool relay[MOCK_OUTLETS], target[MOCK_OUTLETS];
	int countdown[MOCK_OUTLETS]; /* status reads until relay = target; 0: it is */
	double load_w;
	int slow_reads;

	enum mock_fault fault;
	int kinds;       /* which requests it strikes */
	int fault_first; /* and which of all requests: from this one (counted from 1; 0: all) */
	int fault_count; /* so many; 0: for good */

	int requests, sets[2], status_reads, unauthorized, empty_posts, others_changed;
	int late_after;  /* FAULT_LATE: so many requests later */
	int late; /* outlet + 1 that a lost command will still change */
	bool late_on;
	unsigned nonce;
	int instead;        /* of status 200 and 204 for what it obeys: this one; 0: no */
	int redirect;       /* 302 */
	int first_set_after_reads; /* status reads before the first set */
	bool misconfigured; /* its settings are all what a campaign must not have */
	unsigned gang;   /* relays that go with whatever is switched */
	bool *blind;     /* set by the first off */
	int timed_s[MOCK_OUTLETS]; /* seconds until the device itself turns on; 0: no timer */
	char seen[1 << 16]; /* the heads of all requests */
};

/* ---- small helpers for dialects ------------------------------------------------------------- */

__attribute__((unused))
static bool mock_has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* The integer after key, or fallback. */
__attribute__((unused))
static int mock_int(const char *text, const char *key, int fallback)
{
	const char *at = strstr(text, key);

	if (!at)
		return fallback;
	at += strlen(key);
	while (*at == ' ' || *at == ':' || *at == '"')
		at++;
	return isdigit((unsigned char)*at) ? atoi(at) : fallback;
}

__attribute__((format(printf, 3, 4), unused))
static void mock_say(struct mock_reply *reply, int status, const char *fmt, ...)
{
	va_list ap;

	reply->status = status;
	va_start(ap, fmt);
	vsnprintf(reply->body, sizeof(reply->body), fmt, ap);
	va_end(ap);
}

static const char *mock_header(const struct mock_request *request, const char *name, char *out,
	size_t bytes)
{
	const char *at = request->headers;
	size_t n = strlen(name);

	out[0] = '\0';
	while ((at = strstr(at, "\r\n"))) {
		at += 2;
		if (strncasecmp(at, name, n) == 0 && at[n] == ':') {
			at += n + 1;
			while (*at == ' ')
				at++;
			snprintf(out, bytes, "%.*s", (int)strcspn(at, "\r"), at);
			return out;
		}
	}
	return out;
}

static double mock_watts(struct mock *mock, int outlet)
{
	return mock->relay[outlet] || mock->fault == FAULT_WELDED ? mock->load_w : 0;
}

/* ---- authentication (RFC 7617, RFC 7616) ---------------------------------------------------- */

static void mock_hash(bool sha256, const char *text, char *hex)
{
	unsigned char digest[SHA256_DIGEST_SIZE];
	size_t bytes = sha256 ? SHA256_DIGEST_SIZE : MD5_DIGEST_SIZE;

	if (sha256) {
		struct sha256_ctx ctx;

		sha256_init(&ctx);
		sha256_update(&ctx, strlen(text), (const unsigned char *)text);
		sha256_digest(&ctx, sizeof(digest), digest);
	} else {
		struct md5_ctx ctx;

		md5_init(&ctx);
		md5_update(&ctx, strlen(text), (const unsigned char *)text);
		md5_digest(&ctx, MD5_DIGEST_SIZE, digest);
	}
	for (size_t i = 0; i < bytes; i++)
		sprintf(hex + 2 * i, "%02x", digest[i]);
}

static void mock_param(const char *header, const char *name, char *out, size_t bytes)
{
	char key[64];
	const char *at;

	out[0] = '\0';
	snprintf(key, sizeof(key), " %s=", name);
	at = strstr(header, key);
	if (!at)
		return;
	at += strlen(key);
	if (*at == '"')
		snprintf(out, bytes, "%.*s", (int)strcspn(at + 1, "\""), at + 1);
	else
		snprintf(out, bytes, "%.*s", (int)strcspn(at, ", "), at);
}

static bool mock_digest_good(struct mock *mock, const struct mock_request *request,
	const char *header)
{
	bool sha256 = mock->dialect->auth == MOCK_AUTH_SHA256;
	char ha1[65], ha2[65], want[65], text[4096];
	char user[128], realm[128], nonce[128], nc[32], cnonce[256], uri[2048], response[128];
	char ours[32];

	if (strncmp(header, "Digest ", 7) != 0)
		return false;
	mock_param(header, "username", user, sizeof(user));
	mock_param(header, "realm", realm, sizeof(realm));
	mock_param(header, "nonce", nonce, sizeof(nonce));
	mock_param(header, "nc", nc, sizeof(nc));
	mock_param(header, "cnonce", cnonce, sizeof(cnonce));
	mock_param(header, "uri", uri, sizeof(uri));
	mock_param(header, "response", response, sizeof(response));
	snprintf(ours, sizeof(ours), "%08x", mock->nonce);
	if (strcmp(user, mock->user) != 0 || strcmp(nonce, ours) != 0 ||
	    strcmp(uri, request->path) != 0)
		return false;
	snprintf(text, sizeof(text), "%s:%s:%s", mock->user, mock->device_id, mock->password);
	mock_hash(sha256, text, ha1);
	snprintf(text, sizeof(text), "%s:%s", request->method, uri);
	mock_hash(sha256, text, ha2);
	snprintf(text, sizeof(text), "%s:%s:%s:%s:auth:%s", ha1, nonce, nc, cnonce, ha2);
	mock_hash(sha256, text, want);
	return strcmp(want, response) == 0;
}

static bool mock_authorized(struct mock *mock, const struct mock_request *request)
{
	char header[4096], plain[512], encoded[1024];

	if (!mock->password || mock->dialect->auth == MOCK_AUTH_NONE)
		return true;
	mock_header(request, "Authorization", header, sizeof(header));
	if (mock->dialect->auth == MOCK_AUTH_BEARER) {
		snprintf(plain, sizeof(plain), "Bearer %s", mock->password);
		return strcmp(header, plain) == 0;
	}
	if (mock->dialect->auth == MOCK_AUTH_BASIC) {
		snprintf(plain, sizeof(plain), "%s:%s", mock->user, mock->password);
		memcpy(encoded, "Basic ", 6);
		base64_encode_raw(encoded + 6, strlen(plain), (const unsigned char *)plain);
		encoded[6 + BASE64_ENCODE_RAW_LENGTH(strlen(plain))] = '\0';
		return strcmp(header, encoded) == 0;
	}
	return mock_digest_good(mock, request, header);
}

static void mock_challenge(struct mock *mock, struct mock_reply *reply)
{
	reply->status = 401;
	reply->body[0] = '\0';
	if (mock->dialect->auth == MOCK_AUTH_BASIC)
		snprintf(reply->headers, sizeof(reply->headers),
			"WWW-Authenticate: Basic realm=\"%s\"\r\n", mock->device_id);
	else if (mock->dialect->auth != MOCK_AUTH_BEARER)
		snprintf(reply->headers, sizeof(reply->headers),
			"WWW-Authenticate: Digest qop=\"auth\", realm=\"%s\", nonce=\"%08x\"%s\r\n",
			mock->device_id, mock->nonce,
			mock->dialect->auth == MOCK_AUTH_SHA256 ? ", algorithm=SHA-256" : "");
}

/* ---- dialects ------------------------------------------------------------------------------- */

#include "mock_dialects.h"

/* ---- relays --------------------------------------------------------------------------------- */

/* outlet < 0: the answer is about all of them. */
static void mock_status_read(struct mock *mock, int outlet)
{
	if (outlet < 0) {
		for (int i = 0; i < MOCK_OUTLETS; i++)
			mock_status_read(mock, i);
		mock->status_reads -= MOCK_OUTLETS - 1;
		return;
	}
	mock->status_reads++;
	if (mock->fault == FAULT_FLAP && (mock->kinds & KIND_STATUS) && mock->sets[0])
		mock->relay[outlet] = !mock->relay[outlet];
	if (mock->countdown[outlet] && --mock->countdown[outlet] == 0)
		mock->relay[outlet] = mock->target[outlet];
}

static void mock_set(struct mock *mock, int outlet, bool on, bool struck)
{
	if (!mock->sets[0] && !mock->sets[1])
		mock->first_set_after_reads = mock->status_reads;
	mock->sets[on]++;
	if (struck && (mock->fault == FAULT_UNCHANGED || mock->fault == FAULT_ERROR_IN_BODY))
		return;
	mock->target[outlet] = on;
	if (struck && (mock->fault == FAULT_SLOW || mock->fault == FAULT_PENDING))
		mock->countdown[outlet] = mock->slow_reads;
	else
		mock->countdown[outlet] = 0;
	if (!mock->countdown[outlet])
		mock->relay[outlet] = on;
	for (int i = 0; i < MOCK_OUTLETS; i++)
		if (mock->gang & 1U << i)
			mock->relay[i] = on;
	if (mock->blind && !on)
		*mock->blind = true;
}

/* ---- the server ----------------------------------------------------------------------------- */

static bool mock_read(int fd, struct mock_request *request)
{
	char raw[20000];
	size_t bytes = 0, head;
	char *end = NULL, length[32];
	size_t want;

	while (!end) {
		ssize_t n = recv(fd, raw + bytes, sizeof(raw) - 1 - bytes, 0);

		if (n <= 0)
			return false;
		bytes += (size_t)n;
		raw[bytes] = '\0';
		end = strstr(raw, "\r\n\r\n");
	}
	head = (size_t)(end - raw) + 2;
	snprintf(request->headers, sizeof(request->headers), "%.*s", (int)head, raw);
	if (sscanf(raw, "%15s %2047s", request->method, request->path) != 2)
		return false;
	mock_header(request, "Content-Length", length, sizeof(length));
	want = (size_t)atoi(length);
	head += 2;
	while (bytes - head < want) {
		ssize_t n = recv(fd, raw + bytes, sizeof(raw) - 1 - bytes, 0);

		if (n <= 0)
			return false;
		bytes += (size_t)n;
	}
	raw[bytes] = '\0';
	request->body_bytes = want;
	snprintf(request->body, sizeof(request->body), "%s", raw + head);
	return true;
}

static void mock_send(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t n = send(fd, text, bytes, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		text += n;
		bytes -= (size_t)n;
	}
}

static void mock_answer(int fd, const struct mock_reply *reply, size_t claim)
{
	char head[1024];
	size_t bytes = strlen(reply->body);

	snprintf(head, sizeof(head), "HTTP/1.1 %d X\r\n%sContent-Length: %zu\r\n"
		"Connection: close\r\n\r\n", reply->status, reply->headers, claim ? claim : bytes);
	mock_send(fd, head, strlen(head));
	mock_send(fd, reply->body, bytes);
}

static void mock_reset(int fd)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

static void mock_hang(struct mock *mock, int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	while (!mock->stop && poll(&pfd, 1, 20) == 0)
		;
}

/* How the answer fails to arrive. */
static void mock_spoil(struct mock *mock, int fd, struct mock_reply *reply)
{
	static char big[1 << 16];

	switch (mock->fault) {
	case FAULT_RESET_AFTER:
	case FAULT_RESET_BEFORE:
		mock_reset(fd);
		return;
	case FAULT_HANG_AFTER:
	case FAULT_HANG_BEFORE:
	case FAULT_LATE:
		mock_hang(mock, fd);
		return;
	case FAULT_HALF:
		reply->body[strlen(reply->body) / 2] = '\0';
		mock_answer(fd, reply, 5000);
		return;
	case FAULT_BIG:
		memset(big, ' ', sizeof(big));
		mock_send(fd, "HTTP/1.1 200 OK\r\nContent-Length: 10485760\r\n\r\n", 45);
		for (int i = 0; i < 160; i++)
			mock_send(fd, big, sizeof(big));
		return;
	case FAULT_GARBAGE:
		mock_say(reply, 200, "\x01\x02{]]\xff{{{\"output\":false");
		break;
	case FAULT_NOT_HTTP:
		mock_send(fd, "SSH-2.0-dropbear\r\n", 18);
		return;
	case FAULT_REDIRECT:
		mock_say(reply, mock->redirect ? mock->redirect : 302, "{\"output\":false}");
		snprintf(reply->headers, sizeof(reply->headers), "Location: /elsewhere\r\n");
		break;
	case FAULT_500:
		mock_say(reply, 500, "oops");
		break;
	case FAULT_403:
		mock_say(reply, 403, "forbidden");
		break;
	case FAULT_HTML:
		mock_say(reply, 200, "<html><body>Please log in</body></html>");
		break;
	case FAULT_EMPTY:
		mock_say(reply, 200, "%s", "");
		break;
	default:
		break;
	}
	mock_answer(fd, reply, 0);
}

static bool mock_struck(struct mock *mock, const struct mock_action *action)
{
	int first = mock->fault_first;

	if (mock->fault == FAULT_NONE || !(mock->kinds & (int)action->kind))
		return false;
	return mock->requests >= first &&
		(!mock->fault_count || mock->requests < first + mock->fault_count);
}

static bool obeys(enum mock_fault fault)
{
	switch (fault) {
	case FAULT_RESET_BEFORE:
	case FAULT_HANG_BEFORE:
	case FAULT_LATE:
	case FAULT_500:
	case FAULT_403:
	case FAULT_401:
	case FAULT_REDIRECT:
	case FAULT_NOT_HTTP:
	case FAULT_HTML:
		return false;
	default:
		return true;
	}
}

static void mock_serve_request(struct mock *mock, int fd, const struct mock_request *request)
{
	struct mock_action action = { .kind = KIND_OTHER, .outlet = 0 };
	struct mock_reply reply = { 0 };
	bool struck, was_on = false, sets;

	mock->dialect->parse(mock, request, &action, &reply);
	sets = action.kind == KIND_OFF || action.kind == KIND_ON;
	if (strcmp(request->method, "POST") == 0 && !request->body_bytes)
		mock->empty_posts++;
	/* KIND_OTHER: identity and the like are open on some devices; the dialect decides. */
	if (!mock_authorized(mock, request) && reply.status != 200) {
		mock->unauthorized++;
		mock_challenge(mock, &reply);
		mock_answer(fd, &reply, 0);
		return;
	}
	if (reply.status == 201)
		reply.status = 200;
	mock->requests++;
	struck = mock_struck(mock, &action);
	if (struck && mock->fault == FAULT_401) {
		mock->nonce += 7;
		mock_challenge(mock, &reply);
		mock_answer(fd, &reply, 0);
		mock->fault = FAULT_NONE;
		return;
	}
	if (reply.status == 0) {
		was_on = action.outlet >= 0 && mock->relay[action.outlet];
		if (sets && (!struck || obeys(mock->fault)))
			mock_set(mock, action.outlet, action.kind == KIND_ON, struck);
		if (sets && (!struck || obeys(mock->fault)))
			mock->timed_s[action.outlet] = action.timer_s;
		if (action.kind == KIND_STATUS)
			mock_status_read(mock, action.outlet);
		if (sets && struck && mock->fault == FAULT_LATE) {
			mock->late = action.outlet + 1;
			mock->late_on = action.kind == KIND_ON;
		}
		mock->dialect->render(mock, request, &action, was_on,
			struck && mock->fault == FAULT_ERROR_IN_BODY, &reply);
	}
	if (mock->instead && sets)
		reply.status = mock->instead;
	if (!struck) {
		mock_answer(fd, &reply, 0);
	} else if (mock->fault == FAULT_HANG_AFTER || mock->fault == FAULT_HANG_BEFORE ||
	    mock->fault == FAULT_LATE) {
		pthread_mutex_unlock(&mock->lock);
		mock_hang(mock, fd);
		pthread_mutex_lock(&mock->lock);
	} else {
		mock_spoil(mock, fd, &reply);
	}
	if (mock->late && !(sets && struck) && --mock->late_after <= 0) {
		mock_set(mock, mock->late - 1, mock->late_on, false);
		mock->late = 0;
	}
}

/* As if the time of each device-side timer had come. */
__attribute__((unused))
static void mock_fire_timers(struct mock *mock)
{
	pthread_mutex_lock(&mock->lock);
	for (int i = 0; i < MOCK_OUTLETS; i++)
		if (mock->timed_s[i]) {
			mock->timed_s[i] = 0;
			mock->relay[i] = mock->target[i] = true;
		}
	pthread_mutex_unlock(&mock->lock);
}

struct mock_connection {
	struct mock *mock;
	int fd;
};

static void *mock_connection_main(void *arg)
{
	struct mock_connection *connection = arg;
	struct mock *mock = connection->mock;
	struct mock_request *request = calloc(1, sizeof(*request));

	if (mock_read(connection->fd, request)) {
		pthread_mutex_lock(&mock->lock);
		strncat(mock->seen, request->headers, sizeof(mock->seen) - strlen(mock->seen) - 1);
		mock_serve_request(mock, connection->fd, request);
		pthread_mutex_unlock(&mock->lock);
	}
	shutdown(connection->fd, SHUT_WR);
	close(connection->fd);
	__atomic_sub_fetch(&mock->live, 1, __ATOMIC_SEQ_CST);
	free(request);
	free(connection);
	return NULL;
}

static void *mock_main(void *arg)
{
	struct mock *mock = arg;

	while (!mock->stop) {
		struct pollfd pfd = { .fd = mock->fd, .events = POLLIN };
		struct mock_connection *connection;
		pthread_t thread;
		int fd;

		if (poll(&pfd, 1, 20) <= 0)
			continue;
		fd = accept4(mock->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		connection = malloc(sizeof(*connection));
		*connection = (struct mock_connection){ mock, fd };
		__atomic_add_fetch(&mock->live, 1, __ATOMIC_SEQ_CST);
		if (pthread_create(&thread, NULL, mock_connection_main, connection) == 0)
			pthread_detach(thread);
	}
	return NULL;
}

/* All relays on, 42 W each, no password, no fault. */
static void mock_start(struct mock *mock, const char *dialect)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(address);

	memset(mock, 0, sizeof(*mock));
	for (size_t i = 0; i < sizeof(mock_dialects) / sizeof(mock_dialects[0]); i++)
		if (strcmp(mock_dialects[i].name, dialect) == 0)
			mock->dialect = &mock_dialects[i];
	if (!mock->dialect)
		abort();
	for (int i = 0; i < MOCK_OUTLETS; i++)
		mock->relay[i] = mock->target[i] = true;
	mock->load_w = 42;
	mock->slow_reads = 3;
	mock->late_after = 1;
	mock->kinds = KIND_ANY;
	mock->user = "admin";
	mock->device_id = "mock-device-0001";
	mock->nonce = 0x5eed;
	pthread_mutex_init(&mock->lock, NULL);
	mock->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (mock->fd < 0 || bind(mock->fd, (void *)&address, sizeof(address)) != 0 ||
	    listen(mock->fd, 64) != 0 || getsockname(mock->fd, (void *)&address, &bytes) != 0)
		abort();
	mock->port = ntohs(address.sin_port);
	if (pthread_create(&mock->thread, NULL, mock_main, mock) != 0)
		abort();
}

static void mock_stop(struct mock *mock)
{
	mock->stop = true;
	pthread_join(mock->thread, NULL);
	close(mock->fd);
	for (int i = 0; i < 3000 && __atomic_load_n(&mock->live, __ATOMIC_SEQ_CST); i++)
		usleep(1000);
	pthread_mutex_destroy(&mock->lock);
}

#ifndef MOCK_PDU_EMBEDDED
int main(int argc, char **argv)
{
	struct mock mock;
	char line[256];
	char *colon;

	if (argc < 2) {
		fprintf(stderr, "usage: mock_pdu DIALECT [FAULT [USER:PASSWORD]]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	mock_start(&mock, argv[1]);
	for (int i = 0; argc > 2 && i < FAULT_COUNT; i++)
		if (strcmp(argv[2], mock_fault_names[i]) == 0)
			mock.fault = (enum mock_fault)i;
	if (argc > 3 && (colon = strchr(argv[3], ':'))) {
		*colon = '\0';
		mock.user = argv[3];
		mock.password = colon + 1;
	}
	printf("%d\n", mock.port);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		printf("%d %d %d\n", mock.relay[0], mock.sets[0], mock.sets[1]);
		fflush(stdout);
	}
	mock_stop(&mock);
	return 0;
}
#endif
