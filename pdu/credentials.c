/* SPDX-License-Identifier: MIT */
#include "credentials.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A shorter "secret" would blot out half of every line. */
#define REDACT_BYTES_MIN 4

static const struct {
	const char *key, *env;
	size_t offset, bytes;
} fields[] = {
	{ "user", "PLUGPULL_PDU_USER", offsetof(struct pp_credentials, user), 128 },
	{ "password", "PLUGPULL_PDU_PASSWORD", offsetof(struct pp_credentials, password), 256 },
	{ "token", "PLUGPULL_PDU_TOKEN", offsetof(struct pp_credentials, token), 1024 },
	{ "community", "PLUGPULL_PDU_COMMUNITY", offsetof(struct pp_credentials, community), 128 },
	{ "auth", "PLUGPULL_PDU_AUTH", offsetof(struct pp_credentials, auth), 16 },
	{ "privacy", "PLUGPULL_PDU_PRIVACY", offsetof(struct pp_credentials, privacy), 16 },
	{ "privacy_password", "PLUGPULL_PDU_PRIVACY_PASSWORD",
	  offsetof(struct pp_credentials, privacy_password), 256 },
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static int set_field(struct pp_credentials *credentials, size_t i, const char *value,
	struct pp_error *err)
{
	if (strlen(value) >= fields[i].bytes)
		return pp_fail(err, PP_ERR_USAGE, "%s is too long", fields[i].key);
	for (const char *c = value; *c; c++)
		if (iscntrl((unsigned char)*c))
			return pp_fail(err, PP_ERR_USAGE, "control character in %s", fields[i].key);
	strcpy((char *)credentials + fields[i].offset, value);
	return 0;
}

/* One line "key = value"; the value runs to the end of the line, for passwords hold anything. */
static int take_line(struct pp_credentials *credentials, const char *path, int number, char *line,
	struct pp_error *err)
{
	char *value = strchr(line, '=');
	size_t bytes;

	line += strspn(line, " \t");
	if (!*line || *line == '#')
		return 0;
	if (!value)
		return pp_fail(err, PP_ERR_USAGE, "%s:%d: not 'key = value'", path, number);
	bytes = (size_t)(value - line);
	while (bytes && strchr(" \t", line[bytes - 1]))
		bytes--;
	value++;
	value += strspn(value, " \t");
	for (size_t i = 0; i < FIELDS; i++)
		if (strlen(fields[i].key) == bytes && memcmp(fields[i].key, line, bytes) == 0)
			return set_field(credentials, i, value, err);
	return pp_fail(err, PP_ERR_USAGE, "%s:%d: unknown key (there are user, password, token, "
		"community, auth, privacy, privacy_password)",
		path, number);
}

static int load_file(struct pp_credentials *credentials, const char *path, struct pp_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), number = 0, rc = 0;
	char line[1400];
	struct stat st;
	FILE *file;

	if (fd < 0)
		return pp_fail_os(err, errno, "cannot open credentials file '%s'", path);
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (st.st_mode & 077) ||
	    (st.st_uid != geteuid() && st.st_uid != 0)) {
		close(fd);
		return pp_fail(err, PP_ERR_REFUSED, "credentials file '%s' must be a file of yours "
			"that nobody else can read; run: chmod 600 '%s'", path, path);
	}
	file = fdopen(fd, "r");
	if (!file) {
		close(fd);
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	}
	while (rc == 0 && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\r\n")] = '\0';
		rc = take_line(credentials, path, ++number, line, err);
	}
	if (rc == 0 && ferror(file))
		rc = pp_fail(err, PP_ERR_SYSTEM, "cannot read credentials file '%s'", path);
	explicit_bzero(line, sizeof(line));
	fclose(file);
	return rc;
}

static void encode_basic(struct pp_credentials *credentials)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char plain[400];
	size_t bytes = (size_t)snprintf(plain, sizeof(plain), "%s:%s", credentials->user,
		credentials->password);
	char *out = credentials->basic;

	for (size_t i = 0; i < bytes; i += 3) {
		unsigned a = (unsigned char)plain[i];
		unsigned b = i + 1 < bytes ? (unsigned char)plain[i + 1] : 0;
		unsigned c = i + 2 < bytes ? (unsigned char)plain[i + 2] : 0;

		*out++ = digits[a >> 2];
		*out++ = digits[(a & 3) << 4 | b >> 4];
		*out++ = i + 1 < bytes ? digits[(b & 15) << 2 | c >> 6] : '=';
		*out++ = i + 2 < bytes ? digits[c & 63] : '=';
	}
	*out = '\0';
	explicit_bzero(plain, sizeof(plain));
}

int pp_credentials_load(struct pp_credentials *credentials, const char *path, const char *user,
	struct pp_error *err)
{
	memset(credentials, 0, sizeof(*credentials));
	if (path && load_file(credentials, path, err) != 0)
		goto undo;
	for (size_t i = 0; !path && i < FIELDS; i++) {
		const char *value = getenv(fields[i].env);

		if (value && set_field(credentials, i, value, err) != 0)
			goto undo;
	}
	if (!credentials->user[0] && user && set_field(credentials, 0, user, err) != 0)
		goto undo;
	if (credentials->password[0])
		encode_basic(credentials);
	if (credentials->password[0] || credentials->token[0] || credentials->community[0] ||
	    credentials->privacy_password[0])
		prctl(PR_SET_DUMPABLE, 0);
	return 0;
undo:
	pp_credentials_wipe(credentials);
	return -1;
}

static void blot(char *text, const char *secret)
{
	size_t bytes = strlen(secret);

	if (bytes < REDACT_BYTES_MIN)
		return;
	while ((text = strstr(text, secret))) {
		memset(text, '*', bytes);
		text += bytes;
	}
}

/* The same as a URL would carry it. */
static void blot_encoded(char *text, const char *secret)
{
	char encoded[3 * 1024 + 1], *out = encoded;

	for (; *secret; secret++) {
		unsigned char c = (unsigned char)*secret;

		if (isalnum(c) || strchr("-._~", c))
			*out++ = (char)c;
		else
			out += sprintf(out, "%%%02X", c);
	}
	*out = '\0';
	blot(text, encoded);
	explicit_bzero(encoded, sizeof(encoded));
}

void pp_credentials_redact(const struct pp_credentials *credentials, char *text)
{
	static const struct {
		const char *label, *until;
	} labels[] = {
		{ "authorization:", "\r\n" }, { "password=", "&\"' \r\n" }, { "pass=", "&\"' \r\n" },
		{ "pwd=", "&\"' \r\n" },      { "user=", "&\"' \r\n" },     { "token=", "&\"' \r\n" },
	};

	if (credentials) {
		blot(text, credentials->password);
		blot(text, credentials->token);
		blot(text, credentials->basic);
		blot(text, credentials->community);
		blot(text, credentials->privacy_password);
		blot_encoded(text, credentials->password);
		blot_encoded(text, credentials->token);
	}
	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		char *at = text;

		while ((at = strcasestr(at, labels[i].label))) {
			at += strlen(labels[i].label);
			memset(at, '*', strcspn(at, labels[i].until));
		}
	}
}

void pp_credentials_wipe(struct pp_credentials *credentials)
{
	explicit_bzero(credentials, sizeof(*credentials));
}
