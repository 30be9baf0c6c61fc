/* SHA-256 (FIPS 180-4), and HMAC with it (RFC 2104). Any thread. */
#pragma once

#include "base/os.h"

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_HEX 65                        /* with the NUL */

struct sha256 {
	uint32_t state[8];
	uint64_t bytes;
	uint8_t block[64];
};

void sha256_init(struct sha256 *s);
void sha256_put(struct sha256 *s, const void *bytes, size_t n);
void sha256_end(struct sha256 *s, uint8_t out[SHA256_BYTES]);

void sha256_hex(const uint8_t digest[SHA256_BYTES], char out[SHA256_HEX]);
/* Of all of a text, as hexadecimal digits. */
void sha256_text(const void *bytes, size_t n, char out[SHA256_HEX]);
/* Of a part of a file. ERR_IO: it is shorter. */
int sha256_file(struct os_file *file, uint64_t from, uint64_t n, char out[SHA256_HEX],
		struct err *err);

void hmac_sha256(const void *key, size_t nkey, const void *bytes, size_t n,
		 uint8_t out[SHA256_BYTES]);
