/* SPDX-License-Identifier: MIT
 *
 * HMAC by nettle. Its context keeps the hashed inner and outer pads apart from the running state,
 * so a digest rearms it without touching the key again: two hash blocks a frame instead of four.
 */
#include "auth.h"

#include <assert.h>
#include <string.h>

#include <nettle/hmac.h>
#include <nettle/memops.h>

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
	explicit_bzero(mac, sizeof(*mac));
}

bool pp_mac_equal(const void *a, const void *b, size_t bytes)
{
	return memeql_sec(a, b, bytes) != 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

bool pp_key_parse(const char *text, size_t bytes, struct pp_key *key)
{
	size_t i;

	if (bytes == 2 * PP_KEY_BYTES + 1 && text[bytes - 1] == '\n')
		bytes--;
	if (bytes != 2 * PP_KEY_BYTES)
		return false;
	for (i = 0; i < PP_KEY_BYTES; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		key->bytes[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}
