/* SPDX-License-Identifier: MIT
 *
 * HMAC by nettle. Its context keeps the hashed inner and outer pads apart from the running state,
 * so a digest rearms it without touching the key again: two hash blocks a frame instead of four.
 */
#include "auth.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

_Static_assert(sizeof(struct hmac_sha256_ctx) <= sizeof(((struct pp_mac *)0)->state),
	"pp_mac is too small for this nettle");
_Static_assert(PP_MAC_BYTES == SHA256_DIGEST_SIZE, "HMAC-SHA-256");

static struct hmac_sha256_ctx *context(struct pp_mac *mac)
{
	return (struct hmac_sha256_ctx *)(void *)mac->state;
}

void pp_mac_init(struct pp_mac *mac, const void *key, size_t key_bytes)
{
	hmac_sha256_set_key(context(mac), key_bytes, key);
}

void pp_mac_update(struct pp_mac *mac, const void *data, size_t bytes)
{
	if (bytes)
		hmac_sha256_update(context(mac), bytes, data);
}

void pp_mac_digest(struct pp_mac *mac, void *out, size_t out_bytes)
{
	assert(out_bytes <= PP_MAC_BYTES);
	hmac_sha256_digest(context(mac), out_bytes, out);
}

void pp_mac_release(struct pp_mac *mac)
{
	pp_wipe(mac, sizeof(*mac));
}

void pp_wipe(void *secret, size_t bytes)
{
	explicit_bzero(secret, bytes);
}

bool pp_mac_equal(const void *a, const void *b, size_t bytes)
{
	return memeql_sec(a, b, bytes) != 0;
}

int pp_random_bytes(void *out, size_t bytes, struct pp_error *err)
{
	uint8_t *at = out;

	while (bytes) {
		ssize_t n = getrandom(at, bytes, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return pp_fail_os(err, errno, "cannot draw random bytes");
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

int pp_key_generate(const char *path, struct pp_error *err)
{
	struct pp_key key;
	char text[2 * PP_KEY_BYTES + 2];
	size_t i;
	int fd, rc = -1;

	if (pp_random_bytes(key.bytes, sizeof(key.bytes), err) != 0)
		return -1;
	for (i = 0; i < PP_KEY_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", key.bytes[i]);
	text[2 * PP_KEY_BYTES] = '\n';
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST) {
		pp_fail(err, PP_ERR_REFUSED, "'%s' exists: a key is never overwritten, since every "
			"machine that has a copy would be locked out; move it away first", path);
		goto forget;
	}
	if (fd < 0) {
		pp_fail_os(err, errno, "cannot create '%s'", path);
		goto forget;
	}
	/* fchmod: a umask may have taken more away than we want, never added */
	if (fchmod(fd, 0600) != 0 || pp_write_all(fd, text, 2 * PP_KEY_BYTES + 1) != 0 ||
		fsync(fd) != 0) {
		pp_fail_os(err, errno, "cannot write '%s'", path);
		close(fd);
		unlink(path);
		goto forget;
	}
	if (close(fd) != 0) {
		pp_fail_os(err, errno, "cannot close '%s'", path);
		unlink(path);
		goto forget;
	}
	rc = pp_file_sync_parent(path, err);
forget:
	explicit_bzero(&key, sizeof(key));
	explicit_bzero(text, sizeof(text));
	return rc;
}

static int check_mode(const char *path, int fd, struct pp_error *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return pp_fail_os(err, errno, "cannot examine '%s'", path);
	if (!S_ISREG(st.st_mode))
		return pp_fail(err, PP_ERR_USAGE, "'%s' is not a file", path);
	if (st.st_mode & 077)
		return pp_fail(err, PP_ERR_REFUSED, "key '%s' has mode %04o: others could read or "
			"change it; run: chmod 600 '%s'", path, (unsigned)st.st_mode & 07777, path);
	return 0;
}

int pp_key_load(const char *path, struct pp_key *key, struct pp_error *err)
{
	char text[2 * PP_KEY_BYTES + 2];
	int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC), rc = -1;
	ssize_t n;

	if (fd < 0 && errno == ENOENT)
		return pp_fail_os(err, errno, "cannot open key '%s' (plugpull key FILE makes one)",
			path);
	if (fd < 0)
		return pp_fail_os(err, errno, "cannot open key '%s'", path);
	if (check_mode(path, fd, err) != 0)
		goto out;
	n = read(fd, text, sizeof(text));
	if (n < 0)
		pp_fail_os(err, errno, "cannot read key '%s'", path);
	else if (!pp_key_parse(text, (size_t)n, key))
		pp_fail(err, PP_ERR_USAGE, "'%s' is not a key: expected one line of 64 hex digits",
			path);
	else
		rc = 0;
out:
	close(fd);
	explicit_bzero(text, sizeof(text));
	return rc;
}
