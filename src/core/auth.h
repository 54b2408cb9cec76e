/* SPDX-License-Identifier: MIT
 *
 * Keyed authentication: HMAC-SHA-256 (RFC 2104, FIPS 180-4) behind four calls, so that nettle here
 * and BCrypt on Windows are interchangeable; random bytes; and the file that holds the shared key.
 *
 * The key file is one line of 64 lower-case hex digits (32 random bytes), readable by its owner
 * alone: a key that others could read authenticates nobody, so a wider mode is refused.
 */
#ifndef PP_CORE_AUTH_H
#define PP_CORE_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

#define PP_KEY_BYTES 32
#define PP_MAC_BYTES 32 /* of a whole HMAC-SHA-256; frames carry the first 16 */

struct pp_key {
	uint8_t bytes[PP_KEY_BYTES];
};

/* A keyed state that can be used again and again: the key's two hash blocks are computed once, in
 * init. Caller-allocated; holds no memory of its own on Linux, but release it all the same (after
 * init: BCrypt's handle is in it). Never copied. One thread at a time. */
struct pp_mac {
	_Alignas(16) uint8_t state[384];
};

void pp_mac_init(struct pp_mac *mac, const void *key, size_t key_bytes);
void pp_mac_update(struct pp_mac *mac, const void *data, size_t bytes);
/* The first out_bytes (at most PP_MAC_BYTES) of the MAC over all updates; ready for the next. */
void pp_mac_digest(struct pp_mac *mac, void *out, size_t out_bytes);
void pp_mac_release(struct pp_mac *mac); /* overwrites the state */

/* Overwrites what must not stay in memory; no compiler leaves it out. */
void pp_wipe(void *secret, size_t bytes);

/* Takes the same time wherever the first difference is. */
bool pp_mac_equal(const void *a, const void *b, size_t bytes);

/* From the system's generator (getrandom(2), BCryptGenRandom); never falls back to something weaker. */
int pp_random_bytes(void *out, size_t bytes, struct pp_error *err);

/* Makes a new key in a new file of mode 0600, synced; refuses when path exists. */
int pp_key_generate(const char *path, struct pp_error *err);

/* Refuses a file that group or others can read or write, or that is not exactly one key. */
int pp_key_load(const char *path, struct pp_key *key, struct pp_error *err);

/* The text of a key file; false when it is not exactly a key (one final newline is allowed). */
bool pp_key_parse(const char *text, size_t bytes, struct pp_key *key);

#endif
