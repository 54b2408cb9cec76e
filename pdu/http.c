/* SPDX-License-Identifier: MIT
 *
 * Authentication, in three traps that were seen with libcurl 7.88:
 *  - With CURLAUTH_DIGEST, libcurl sends the first POST with an empty body, counting on a 401. A
 *    device that asks for no password takes the empty body as the command. So Digest is only
 *    switched on after a 401, and the first request goes out whole and without credentials.
 *  - CURLAUTH_ANY lets the device choose Basic and would hand it the password in clear.
 *  - A nonce can expire or be exhausted (Shelly firmware 2), which looks like a wrong password. If
 *    the credentials have worked before, one retry with a fresh handle tells the two apart.
 */
#include "http.h"

#include <ctype.h>
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct http {
	char *url, *ca_file, *pin;
	enum pp_profile_auth auth;
	const struct pp_credentials *credentials;
	bool insecure;
	long connect_timeout_ms, request_timeout_ms;
	CURL *curl;
	bool challenged; /* the device has asked for a digest */
	bool good;       /* these credentials have been accepted before */
	char reason[CURL_ERROR_SIZE];
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int split_url(const char *url, char *whole, size_t bytes, struct pp_error *err)
{
	bool has_scheme = strstr(url, "://") != NULL;
	const char *host;
	size_t n;

	if (snprintf(whole, bytes, "%s%s", has_scheme ? "" : "http://", url) >= (int)bytes)
		return pp_fail(err, PP_ERR_USAGE, "the URL is too long");
	n = strlen(whole);
	if (n && whole[n - 1] == '/')
		whole[n - 1] = '\0';
	if (strncasecmp(whole, "http://", 7) != 0 && strncasecmp(whole, "https://", 8) != 0)
		return pp_fail(err, PP_ERR_USAGE, "only http:// and https:// URLs are served");
	host = strstr(whole, "://") + 3;
	if (strchr(host, '@'))
		return pp_fail(err, PP_ERR_USAGE,
			"a URL must not hold credentials (use the credentials file)");
	if (!*host || strpbrk(host, "/?# \t\r\n\\"))
		return pp_fail(err, PP_ERR_USAGE, "'%s' is not http://HOST[:PORT]", whole);
	return 0;
}

int pp_http_host_key(const char *url, char *out, size_t bytes, struct pp_error *err)
{
	char whole[512];
	const char *host, *end;

	if (split_url(url, whole, sizeof(whole), err) != 0)
		return -1;
	host = strstr(whole, "://") + 3;
	end = strrchr(host, ']');
	snprintf(out, bytes, "%s%s", host, strchr(end ? end : host, ':') ? "" :
		strncasecmp(whole, "https", 5) == 0 ? ":443" : ":80");
	for (; *out; out++)
		*out = (char)tolower((unsigned char)*out);
	return 0;
}

void *pp_http_open(const struct pp_http_config *config, struct pp_error *err)
{
	struct http *http = calloc(1, sizeof(*http));
	char whole[512];

	pthread_once(&curl_once, init_curl);
	if (split_url(config->url ? config->url : "", whole, sizeof(whole), err) != 0) {
		free(http);
		return NULL;
	}
	if (http) {
		http->url = strdup(whole);
		http->ca_file = config->ca_file ? strdup(config->ca_file) : NULL;
		http->pin = config->pin ? strdup(config->pin) : NULL;
		http->auth = config->auth;
		http->credentials = config->credentials;
		http->insecure = config->insecure;
		http->connect_timeout_ms = (long)config->connect_timeout_ms;
		http->request_timeout_ms = (long)config->request_timeout_ms;
		http->curl = curl_easy_init();
	}
	if (!http || !http->curl || !http->url) {
		if (http)
			pp_http_transport.close(http);
		pp_fail(err, PP_ERR_SYSTEM, "out of memory");
		return NULL;
	}
	return http;
}

static void close_http(void *self)
{
	struct http *http = self;

	curl_easy_cleanup(http->curl);
	free(http->url);
	free(http->ca_file);
	free(http->pin);
	free(http);
}

static size_t take_bytes(char *data, size_t size, size_t count, void *arg)
{
	struct pp_buf *body = arg;

	pp_buf_add(body, data, size * count);
	return body->failed ? 0 : size * count;
}

static void set_limits(struct http *http)
{
	CURL *curl = http->curl;

	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, http->connect_timeout_ms);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, http->request_timeout_ms);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(curl, CURLOPT_HTTP09_ALLOWED, 0L);
	curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, 1L);
	curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, http->reason);
	/* Self-signed is the normal case on these devices: a pin alone is enough, and is enforced
	 * without a chain. */
	if (http->pin)
		curl_easy_setopt(curl, CURLOPT_PINNEDPUBLICKEY, http->pin);
	if (http->ca_file)
		curl_easy_setopt(curl, CURLOPT_CAINFO, http->ca_file);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER,
		http->insecure || (http->pin && !http->ca_file) ? 0L : 1L);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST,
		http->insecure || (http->pin && !http->ca_file) ? 0L : 2L);
}

static void set_auth(struct http *http)
{
	const struct pp_credentials *credentials = http->credentials;
	CURL *curl = http->curl;

	curl_easy_setopt(curl, CURLOPT_UNRESTRICTED_AUTH, 0L);
	if (!credentials)
		return;
	if (http->auth == PP_AUTH_BEARER && credentials->token[0]) {
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
		curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, credentials->token);
	} else if (credentials->password[0] && (http->auth == PP_AUTH_BASIC ||
	    (http->auth == PP_AUTH_DIGEST && http->challenged))) {
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH,
			(long)(http->auth == PP_AUTH_BASIC ? CURLAUTH_BASIC : CURLAUTH_DIGEST));
		curl_easy_setopt(curl, CURLOPT_USERNAME, credentials->user);
		curl_easy_setopt(curl, CURLOPT_PASSWORD, credentials->password);
	}
}

static struct curl_slist *headers_of(const struct pp_pdu_request *request)
{
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");

	for (int i = 0; list && i < request->header_count; i++) {
		struct curl_slist *grown = curl_slist_append(list, request->header[i]);

		if (!grown)
			curl_slist_free_all(list);
		list = grown;
	}
	return list;
}

/* No curl_easy_reset() between requests: it would forget the digest's nonce, and with it send every
 * POST first with an empty body. So each option that varies is set each time. */
static CURLcode perform(struct http *http, const struct pp_pdu_request *request,
	struct pp_pdu_reply *reply)
{
	struct curl_slist *headers = headers_of(request);
	CURL *curl = http->curl;
	bool bare = strcmp(request->method, "GET") == 0 && !request->body;
	char url[4096];
	CURLcode rc;

	if (!headers)
		return CURLE_OUT_OF_MEMORY;
	if (snprintf(url, sizeof(url), "%s%s", http->url, request->path) >= (int)sizeof(url)) {
		curl_slist_free_all(headers);
		return CURLE_URL_MALFORMAT;
	}
	pp_buf_clear(&reply->body);
	http->reason[0] = '\0';
	set_limits(http);
	set_auth(http);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reply->body);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, bare ? NULL : request->method);
	if (bare)
		curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
	else /* a POST without a body still needs "Content-Length: 0" (ESPHome) */
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body ? request->body : "");
	rc = curl_easy_perform(curl);
	curl_slist_free_all(headers);
	return rc;
}

/* pretransfer time is set once the connection (and TLS) stands and the request is about to go. */
static bool was_sent(CURL *curl)
{
	curl_off_t us = 0;

	curl_easy_getinfo(curl, CURLINFO_PRETRANSFER_TIME_T, &us);
	return us > 0;
}

static bool fresh_handle(struct http *http)
{
	CURL *curl = curl_easy_init();

	if (!curl)
		return false;
	curl_easy_cleanup(http->curl);
	http->curl = curl;
	return true;
}

static int request_http(void *self, const struct pp_pdu_request *request,
	struct pp_pdu_reply *reply, struct pp_error *err)
{
	struct http *http = self;
	bool with_auth = http->auth != PP_AUTH_DIGEST || http->challenged;
	long status = 0;
	CURLcode rc = perform(http, request, reply);

	reply->maybe_executed = false;
	if (rc == CURLE_OK)
		curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status == 401 && !with_auth && http->credentials && http->credentials->password[0]) {
		http->challenged = with_auth = true;
		rc = perform(http, request, reply);
	} else if (status == 401 && with_auth && http->good && fresh_handle(http)) {
		rc = perform(http, request, reply);
	}
	if (rc != CURLE_OK) {
		const char *why = http->reason[0] ? http->reason : curl_easy_strerror(rc);

		reply->maybe_executed = was_sent(http->curl);
		if (reply->body.failed)
			why = "the answer is larger than 64 KiB";
		return pp_fail(err, PP_ERR_PEER, "%s %s%s: %s", request->method, http->url,
			request->path, why);
	}
	curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200 && status < 300 && with_auth)
		http->good = true;
	reply->status = (int)status;
	return 0;
}

const struct pp_pdu_transport pp_http_transport = {
	.request = request_http,
	.close = close_http,
};
