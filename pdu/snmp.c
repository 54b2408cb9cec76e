/* SPDX-License-Identifier: MIT
 *
 * The session API of net-snmp (snmp_sess_*), which shares nothing between handles but the library's
 * start. A session is opened for each request: an SNMPv3 engine that has rebooted is then simply
 * discovered again.
 */
#ifdef PP_HAVE_NET_SNMP
/* First: its headers want to define features themselves. */
#include <net-snmp/net-snmp-config.h>
#include <net-snmp/net-snmp-includes.h>
#endif

#include "snmp.h"

#include <ctype.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int pp_snmp_host_key(const char *url, char *out, size_t bytes, struct pp_error *err)
{
	const char *host = strncasecmp(url, "snmp://", 7) == 0 ? url + 7 : url, *end;
	size_t n = strlen(host);

	if (n && host[n - 1] == '/')
		n--;
	if (!n || strpbrk(host, "/?# \t\r\n\\@") != (host[n] ? host + n : NULL) || host[0] == '-')
		return pp_fail(err, PP_ERR_USAGE, "'%s' is not [snmp://]HOST[:PORT]", url);
	end = strrchr(host, ']');
	if (snprintf(out, bytes, "%.*s%s", (int)n, host, strchr(end ? end : host, ':') ? "" :
	    ":161") >= (int)bytes)
		return pp_fail(err, PP_ERR_USAGE, "the host's name is too long");
	for (; *out; out++)
		*out = (char)tolower((unsigned char)*out);
	return 0;
}

#ifndef PP_HAVE_NET_SNMP

void *pp_snmp_open(const char *peer, const struct pp_profile *profile,
	const struct pp_credentials *credentials, int64_t timeout_ms, struct pp_error *err)
{
	(void)peer;
	(void)credentials;
	(void)timeout_ms;
	pp_fail(err, PP_ERR_UNSUPPORTED, "profile '%s' needs SNMP, which this program was built "
		"without; install libsnmp-dev and build again", profile->name);
	return NULL;
}

const struct pp_pdu_transport pp_snmp_transport = { 0 };

#else

#define OID_WORDS_MAX 64

struct snmp {
	char peer[300];
	const struct pp_profile *profile;
	const struct pp_credentials *credentials;
	int64_t timeout_ms;
	bool known; /* sysObjectID was read, and fits */
};

static const struct {
	const char *name;
	oid *words;
	size_t count;
	bool privacy;
} protocols[] = {
	{ "MD5", usmHMACMD5AuthProtocol, OID_LENGTH(usmHMACMD5AuthProtocol), false },
	{ "SHA", usmHMACSHA1AuthProtocol, OID_LENGTH(usmHMACSHA1AuthProtocol), false },
	{ "SHA-256", usmHMAC192SHA256AuthProtocol, OID_LENGTH(usmHMAC192SHA256AuthProtocol), false },
	{ "SHA-512", usmHMAC384SHA512AuthProtocol, OID_LENGTH(usmHMAC384SHA512AuthProtocol), false },
	{ "AES", usmAESPrivProtocol, OID_LENGTH(usmAESPrivProtocol), true },
	{ "DES", usmDESPrivProtocol, OID_LENGTH(usmDESPrivProtocol), true },
};

static pthread_once_t library_once = PTHREAD_ONCE_INIT;

/* The person's snmp.conf and MIB files must not change what a request says. */
static void start_library(void)
{
	char none[] = ":";

	snmp_disable_log();
	netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_DONT_READ_CONFIGS, 1);
	netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_DONT_PERSIST_STATE, 1);
	netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_DISABLE_PERSISTENT_LOAD, 1);
	netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_DISABLE_PERSISTENT_SAVE, 1);
	netsnmp_set_mib_directory("/nonexistent");
	set_persistent_directory("/dev/null"); /* where nothing can be made */
	register_mib_handlers();
	for (struct config_line *at = read_config_get_handlers("snmp"); at; at = at->next)
		if (strcasecmp(at->config_token, "mibs") == 0)
			at->parse_line("mibs", none);
	init_snmp("plugpull");
}

void *pp_snmp_open(const char *peer, const struct pp_profile *profile,
	const struct pp_credentials *credentials, int64_t timeout_ms, struct pp_error *err)
{
	struct snmp *snmp;

	if (!credentials->community[0] && !(credentials->user[0] && credentials->password[0])) {
		pp_fail(err, PP_ERR_USAGE, "SNMP needs 'community', or 'user' and 'password' (version "
			"3), in the credentials file");
		return NULL;
	}
	snmp = calloc(1, sizeof(*snmp));
	if (!snmp || snprintf(snmp->peer, sizeof(snmp->peer), "udp:%s", peer) >=
	    (int)sizeof(snmp->peer)) {
		free(snmp);
		pp_fail(err, PP_ERR_SYSTEM, "out of memory");
		return NULL;
	}
	pthread_once(&library_once, start_library);
	snmp->profile = profile;
	snmp->credentials = credentials;
	snmp->timeout_ms = timeout_ms;
	return snmp;
}

static void close_snmp(void *self)
{
	free(self);
}

static int protocol(const char *name, const char *fallback, bool privacy, oid **words, size_t *count,
	struct pp_error *err)
{
	if (!*name)
		name = fallback;
	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++)
		if (protocols[i].privacy == privacy && strcasecmp(protocols[i].name, name) == 0) {
			*words = protocols[i].words;
			*count = protocols[i].count;
			return 0;
		}
	return pp_fail(err, PP_ERR_USAGE, "unknown SNMP %s protocol '%s' (%s)", privacy ? "privacy" :
		"authentication", name, privacy ? "AES, DES" : "MD5, SHA, SHA-256, SHA-512");
}

/* SNMPv3: the keys are made from the pass phrases here; the phrases never go out. */
static int set_user(struct snmp_session *session, const struct pp_credentials *credentials,
	struct pp_error *err)
{
	const char *privacy = credentials->privacy_password;

	session->version = SNMP_VERSION_3;
	session->securityName = (char *)credentials->user;
	session->securityNameLen = strlen(credentials->user);
	session->securityLevel = privacy[0] ? SNMP_SEC_LEVEL_AUTHPRIV : SNMP_SEC_LEVEL_AUTHNOPRIV;
	if (protocol(credentials->auth, "SHA", false, &session->securityAuthProto,
	    &session->securityAuthProtoLen, err) != 0)
		return -1;
	session->securityAuthKeyLen = USM_AUTH_KU_LEN;
	if (strlen(credentials->password) < USM_LENGTH_P_MIN || generate_Ku(session->securityAuthProto, (u_int)session->securityAuthProtoLen,
	    (const u_char *)credentials->password, strlen(credentials->password),
	    session->securityAuthKey, &session->securityAuthKeyLen) != SNMPERR_SUCCESS)
		return pp_fail(err, PP_ERR_USAGE, "SNMPv3 needs a password of at least 8 characters");
	if (!privacy[0])
		return 0;
	if (protocol(credentials->privacy, "AES", true, &session->securityPrivProto,
	    &session->securityPrivProtoLen, err) != 0)
		return -1;
	session->securityPrivKeyLen = USM_PRIV_KU_LEN;
	if (strlen(privacy) < USM_LENGTH_P_MIN || generate_Ku(session->securityAuthProto, (u_int)session->securityAuthProtoLen,
	    (const u_char *)privacy, strlen(privacy), session->securityPrivKey,
	    &session->securityPrivKeyLen) != SNMPERR_SUCCESS)
		return pp_fail(err, PP_ERR_USAGE,
			"SNMPv3 needs a privacy_password of at least 8 characters");
	return 0;
}

static void *open_session(struct snmp *snmp, struct pp_error *err)
{
	const struct pp_credentials *credentials = snmp->credentials;
	struct snmp_session session;
	void *handle = NULL;

	snmp_sess_init(&session);
	session.peername = snmp->peer;
	session.timeout = (long)snmp->timeout_ms * 1000;
	session.retries = 0;
	if (credentials->community[0]) {
		session.version = snmp->profile->snmp_version == 1 ? SNMP_VERSION_1 : SNMP_VERSION_2c;
		session.community = (u_char *)credentials->community;
		session.community_len = strlen(credentials->community);
	} else if (set_user(&session, credentials, err) != 0) {
		return NULL;
	}
	handle = snmp_sess_open(&session);
	if (!handle)
		pp_fail(err, PP_ERR_PEER, "cannot open SNMP to '%s': %s", snmp->peer,
			snmp_api_errstring(session.s_snmp_errno ? session.s_snmp_errno : snmp_errno));
	explicit_bzero(session.securityAuthKey, sizeof(session.securityAuthKey));
	explicit_bzero(session.securityPrivKey, sizeof(session.securityPrivKey));
	return handle;
}

static int parse_oid(const char *text, oid *words, size_t *count, struct pp_error *err)
{
	const char *at = text;

	for (*count = 0; *at == '.' && *count < OID_WORDS_MAX; (*count)++) {
		char *end;
		unsigned long word = strtoul(at + 1, &end, 10);

		if (!isdigit((unsigned char)at[1]) || word > 0xffffffffUL)
			break;
		words[*count] = word;
		at = end;
	}
	return *at || *count < 2 ? pp_fail(err, PP_ERR_USAGE, "'%s' is not an OID", text) : 0;
}

static json_t *text_of(const u_char *bytes, size_t count)
{
	bool printable = count > 0;
	char text[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < count; i++)
		printable = printable && isprint(bytes[i]);
	for (size_t i = 0; i < count && used < sizeof(text) - 4; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, printable ? "%c" : "%02x",
			bytes[i]);
	return json_string(text);
}

static json_t *value_of(const struct variable_list *variable)
{
	char text[OID_WORDS_MAX * 11] = "";
	size_t used = 0;

	switch (variable->type) {
	case ASN_INTEGER:
		return json_integer(*variable->val.integer);
	case ASN_GAUGE:
	case ASN_COUNTER:
	case ASN_TIMETICKS:
		return json_integer((json_int_t)(unsigned long)*variable->val.integer);
	case ASN_OCTET_STR:
		return text_of(variable->val.string, variable->val_len);
	case ASN_OBJECT_ID:
		for (size_t i = 0; i < variable->val_len / sizeof(oid) && i < OID_WORDS_MAX; i++)
			used += (size_t)snprintf(text + used, sizeof(text) - used, ".%lu",
				variable->val.objid[i]);
		return json_string(text);
	default:
		return NULL;
	}
}

/* The answer as JSON. An agent that has no such object says so in the value's type. */
static json_t *answer_of(struct snmp_pdu *response, const char *name)
{
	const struct variable_list *variable = response->variables;
	json_t *json = json_object(), *value = NULL;

	json_object_set_new(json, "oid", json_string(name));
	if (response->errstat != SNMP_ERR_NOERROR) {
		json_object_set_new(json, "error",
			json_string(snmp_errstring((int)response->errstat)));
	} else if (!variable || !(value = value_of(variable))) {
		json_object_set_new(json, "error", json_string("no such object"));
	} else {
		json_object_set_new(json, "value", value);
	}
	return json;
}

/* One exchange. value NULL: GET. 0 and an answer, or -1; *sent says whether the agent may have it. */
static int exchange(struct snmp *snmp, const char *name, const char *value, json_t **answer,
	bool *sent, struct pp_error *err)
{
	struct snmp_pdu *pdu, *response = NULL;
	oid words[OID_WORDS_MAX];
	size_t count;
	void *handle;
	int status;

	*sent = false;
	if (parse_oid(name, words, &count, err) != 0 || !(handle = open_session(snmp, err)))
		return -1;
	pdu = snmp_pdu_create(value ? SNMP_MSG_SET : SNMP_MSG_GET);
	if (!pdu || (value ? snmp_add_var(pdu, words, count, 'i', value) != 0 :
	    !snmp_add_null_var(pdu, words, count))) {
		snmp_free_pdu(pdu);
		snmp_sess_close(handle);
		return pp_fail(err, PP_ERR_USAGE, "cannot ask for '%s' (value '%s')", name,
			value ? value : "");
	}
	status = snmp_sess_synch_response(handle, pdu, &response);
	*sent = true;
	if (status != STAT_SUCCESS || !response) {
		char *why = NULL;
		int system_code, code;

		snmp_sess_error(handle, &system_code, &code, &why);
		pp_fail(err, PP_ERR_PEER, "%s %s %s: %s", value ? "SET" : "GET", snmp->peer, name,
			status == STAT_TIMEOUT ? "no answer (away, or another community)" :
			why ? why : "failed");
		free(why);
		snmp_sess_close(handle);
		return -1;
	}
	*answer = answer_of(response, name);
	snmp_free_pdu(response);
	snmp_sess_close(handle);
	return 0;
}

static bool begins_with(const char *text, const char *prefix)
{
	size_t bytes = strlen(prefix);

	return strncmp(text, prefix, bytes) == 0 && (!text[bytes] || text[bytes] == '.');
}

static int check_kind(struct snmp *snmp, struct pp_error *err)
{
	const struct pp_profile_list *wanted = &snmp->profile->sys_object;
	json_t *answer = NULL;
	const char *is;
	bool sent, fits = false;
	int rc;

	if (exchange(snmp, ".1.3.6.1.2.1.1.2.0", NULL, &answer, &sent, err) != 0)
		return -1;
	is = json_string_value(json_object_get(answer, "value"));
	for (int i = 0; is && i < wanted->count; i++)
		fits = fits || begins_with(is, wanted->item[i]);
	rc = fits ? 0 : pp_fail(err, PP_ERR_REFUSED, "the device at '%s' has sysObjectID %s, which "
		"profile '%s' is not for", snmp->peer, is ? is : "(none)", snmp->profile->name);
	snmp->known = fits;
	json_decref(answer);
	return rc;
}

static int request_snmp(void *self, const struct pp_pdu_request *request,
	struct pp_pdu_reply *reply, struct pp_error *err)
{
	struct snmp *snmp = self;
	json_t *answer = NULL;
	bool sent = false;
	char *text;

	pp_buf_clear(&reply->body);
	reply->maybe_executed = false;
	if ((request->body || !snmp->known) && check_kind(snmp, err) != 0)
		return -1;
	if (exchange(snmp, request->path, request->body, &answer, &sent, err) != 0) {
		reply->maybe_executed = sent;
		return -1;
	}
	text = json_dumps(answer, JSON_COMPACT);
	json_decref(answer);
	if (!text)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	pp_buf_add(&reply->body, text, strlen(text));
	free(text);
	reply->status = 200;
	return 0;
}

const struct pp_pdu_transport pp_snmp_transport = {
	.request = request_snmp,
	.close = close_snmp,
};

#endif
