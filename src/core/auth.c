/* SPDX-License-Identifier: MIT */
#include "auth.h"

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
