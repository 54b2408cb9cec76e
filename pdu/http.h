/* SPDX-License-Identifier: MIT
 *
 * HTTP(S) to a power switch by libcurl: no redirects, no proxy, exact authentication scheme, a
 * time limit on everything, a cap on the answer, TLS verified. One connection a request, because
 * small devices drop idle ones and a silent resend on a reused connection would blur what was sent.
 */
#ifndef PP_PDU_HTTP_H
#define PP_PDU_HTTP_H

#include "credentials.h"
#include "profile.h"
#include "transport.h"

struct pp_http_config {
	const char *url;      /* scheme://host[:port], no path, no user; http:// if there is none */
	enum pp_profile_auth auth;
	const struct pp_credentials *credentials; /* must outlive the transport */
	const char *ca_file, *pin;
	bool insecure;
	int64_t connect_timeout_ms, request_timeout_ms;
};

extern const struct pp_pdu_transport pp_http_transport;

/* The self of pp_http_transport; NULL on failure. Sends nothing. */
void *pp_http_open(const struct pp_http_config *config, struct pp_error *err);

/* "host:port", lower case, of such a URL: names the device's lock. */
int pp_http_host_key(const char *url, char *out, size_t bytes, struct pp_error *err);

#endif
