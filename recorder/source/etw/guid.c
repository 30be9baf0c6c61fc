#include "source/etw/wanted.h"

#include "base/text.h"

#include <string.h>

/* ---- text ------------------------------------------------------------------------------------ */

/* The position of each byte in the text; the first three groups are little-endian. */
static const uint8_t position[16] = {6, 4, 2, 0, 11, 9, 16, 14, 19, 21, 24, 26, 28, 30, 32, 34};

bool etw_guid_read(const char *text, struct etw_guid *out)
{
	size_t n = strlen(text), i;
	struct etw_guid guid;

	if (n == 38 && text[0] == '{' && text[37] == '}') {
		text++;
		n -= 2;
	}
	if (n != 36)
		return false;
	for (i = 8; i <= 23; i += 5)
		if (text[i] != '-')
			return false;
	for (i = 0; i < 16; i++) {
		int high = hex_digit(text[position[i]]), low = hex_digit(text[position[i] + 1]);

		if (high < 0 || low < 0)
			return false;
		guid.bytes[i] = (uint8_t)(high << 4 | low);
	}
	*out = guid;
	return true;
}

/* ---- the GUID of a name ---------------------------------------------------------------------- */

static uint32_t rotate(uint32_t v, unsigned bits)
{
	return v << bits | v >> (32 - bits);
}

/* One block of SHA-1 (FIPS 180-4, section 6.1). */
static void sha1_block(uint32_t state[5], const uint8_t block[64])
{
	static const uint32_t constant[4] = {0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6};
	uint32_t w[80], v[5], f, t;
	unsigned i;

	for (i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	memcpy(v, state, sizeof(v));
	for (i = 0; i < 80; i++) {
		f = i < 20 ? (v[1] & v[2]) | (~v[1] & v[3])
		  : i >= 40 && i < 60 ? (v[1] & v[2]) | (v[1] & v[3]) | (v[2] & v[3])
				      : v[1] ^ v[2] ^ v[3];
		t = rotate(v[0], 5) + f + v[4] + constant[i / 20] + w[i];
		v[4] = v[3];
		v[3] = v[2];
		v[2] = rotate(v[1], 30);
		v[1] = v[0];
		v[0] = t;
	}
	for (i = 0; i < 5; i++)
		state[i] += v[i];
}

/*
 * The hash of the namespace's bytes, then of the name in UTF-16BE with ASCII letters in capitals. A
 * message for SHA-1 ends in a bit 1, zeros, and its length in bits, big-endian (FIPS 180-4, 5.1.1).
 */
void etw_guid_of_name(const char *name, struct etw_guid *out)
{
	uint8_t text[(16 + 2 * PROVIDER_NAME_MAX + 9 + 63) / 64 * 64] = {
		0x48, 0x2C, 0x2D, 0xB2, 0xC3, 0x90, 0x47, 0xC8,
		0x87, 0xF8, 0x1A, 0x15, 0xBF, 0xC1, 0x30, 0xFB};
	uint32_t state[5] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
	size_t n = 16, end, i;

	for (; *name && n + 2 <= 16 + 2 * PROVIDER_NAME_MAX; name++) {
		text[n++] = 0;
		text[n++] = (uint8_t)(*name >= 'a' && *name <= 'z' ? *name - 32 : *name);
	}
	end = (n + 9 + 63) / 64 * 64;
	text[n] = 0x80;
	text[end - 2] = (uint8_t)(n * 8 >> 8);
	text[end - 1] = (uint8_t)(n * 8);
	for (i = 0; i < end; i += 64)
		sha1_block(state, text + i);
	for (i = 0; i < sizeof(out->bytes); i++)
		out->bytes[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
	out->bytes[7] = (uint8_t)((out->bytes[7] & 0x0F) | 0x50);
}
