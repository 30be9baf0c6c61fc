#include "net/sha256.h"

#include <string.h>

static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t turn(uint32_t v, unsigned n)
{
	return v >> n | v << (32 - n);
}

static void take_block(struct sha256 *s, const uint8_t *at)
{
	uint32_t w[64], v[8], t1, t2;
	unsigned i;

	for (i = 0; i < 16; i++)
		w[i] = (uint32_t)at[4 * i] << 24 | (uint32_t)at[4 * i + 1] << 16 |
		       (uint32_t)at[4 * i + 2] << 8 | at[4 * i + 3];
	for (; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, s->state, sizeof(v));
	for (i = 0; i < 64; i++) {
		t1 = v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25)) +
		     ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
		t2 = (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22)) +
		     ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (i = 0; i < 8; i++)
		s->state[i] += v[i];
}

void sha256_init(struct sha256 *s)
{
	*s = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
				       0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_put(struct sha256 *s, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	size_t used = s->bytes % 64, part;

	s->bytes += n;
	for (; n; at += part, n -= part, used = 0) {
		part = 64 - used < n ? 64 - used : n;
		memcpy(s->block + used, at, part);
		if (used + part == 64)
			take_block(s, s->block);
	}
}

void sha256_end(struct sha256 *s, uint8_t out[SHA256_BYTES])
{
	static const uint8_t pad[64] = {0x80};
	uint64_t bits = s->bytes * 8;
	uint8_t length[8];
	unsigned i;

	for (i = 0; i < 8; i++)
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_put(s, pad, 1 + (119 - s->bytes % 64) % 64);
	sha256_put(s, length, 8);
	for (i = 0; i < SHA256_BYTES; i++)
		out[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_hex(const uint8_t digest[SHA256_BYTES], char out[SHA256_HEX])
{
	static const char digits[] = "0123456789abcdef";
	unsigned i;

	for (i = 0; i < SHA256_BYTES; i++) {
		out[2 * i] = digits[digest[i] >> 4];
		out[2 * i + 1] = digits[digest[i] & 15];
	}
	out[2 * SHA256_BYTES] = '\0';
}

void sha256_text(const void *bytes, size_t n, char out[SHA256_HEX])
{
	uint8_t digest[SHA256_BYTES];
	struct sha256 s;

	sha256_init(&s);
	sha256_put(&s, bytes, n);
	sha256_end(&s, digest);
	sha256_hex(digest, out);
}

int sha256_file(struct os_file *file, uint64_t from, uint64_t n, char out[SHA256_HEX],
		struct err *err)
{
	uint8_t digest[SHA256_BYTES], bytes[16384];
	struct sha256 s;
	size_t got;
	int rc = 0;

	sha256_init(&s);
	while (!rc && n) {
		rc = os_pread(file, bytes, n < sizeof(bytes) ? (size_t)n : sizeof(bytes), from,
			      &got, err);
		if (!rc && !got)
			rc = err_set(err, ERR_IO, "a file to be sent got shorter");
		sha256_put(&s, bytes, rc ? 0 : got);
		from += rc ? 0 : got;
		n -= rc ? 0 : got;
	}
	sha256_end(&s, digest);
	sha256_hex(digest, out);
	return rc;
}

void hmac_sha256(const void *key, size_t nkey, const void *bytes, size_t n,
		 uint8_t out[SHA256_BYTES])
{
	uint8_t pad[64] = {0}, inner[SHA256_BYTES];
	struct sha256 s;
	unsigned i;

	if (nkey > sizeof(pad)) {
		sha256_init(&s);
		sha256_put(&s, key, nkey);
		sha256_end(&s, pad);
	} else if (nkey) {
		memcpy(pad, key, nkey);
	}
	for (i = 0; i < sizeof(pad); i++)
		pad[i] ^= 0x36;
	sha256_init(&s);
	sha256_put(&s, pad, sizeof(pad));
	sha256_put(&s, bytes, n);
	sha256_end(&s, inner);
	for (i = 0; i < sizeof(pad); i++)
		pad[i] ^= 0x36 ^ 0x5c;
	sha256_init(&s);
	sha256_put(&s, pad, sizeof(pad));
	sha256_put(&s, inner, sizeof(inner));
	sha256_end(&s, out);
}
