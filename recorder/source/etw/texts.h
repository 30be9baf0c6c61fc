/*
 * Interned texts of a trace: paths, command lines, names of methods. Equal texts are kept once, and
 * all are freed together. One thread adds; any thread may read texts that it got.
 */
#pragma once

#include "base/bytes.h"
#include "base/slots.h"
#include "base/table.h"

#include <stdbool.h>

#define ETW_TEXTS_BYTES_MAX ((size_t)512 << 20)
#define ETW_TEXT_MAX 8192u                        /* bytes of one text; cut beyond */

struct etw_texts {
	struct table by_text;
	struct slots texts;                  /* char * */
	struct etw_text_block *blocks;       /* that hold them; the latest first */
	size_t nbytes;                       /* of the texts */
	uint64_t refused;
};

int etw_texts_init(struct etw_texts *t);          /* 0 or ERR_MEMORY */
void etw_texts_free(struct etw_texts *t);
size_t etw_texts_bytes(const struct etw_texts *t);

/* Keep n bytes without a NUL as a text; NULL at the ceiling or without memory. */
const char *etw_texts_keep(struct etw_texts *t, const char *text, size_t n);
/* The same for a text that ends in a NUL; NULL allowed. */
const char *etw_texts_copy(struct etw_texts *t, const char *text);

/*
 * Convert UTF-16LE to UTF-8, up to a NUL or nunits; lone surrogates become U+FFFD. Writes whole
 * characters and a NUL, at most max (1 or more) bytes. Returns the length without the NUL.
 */
size_t etw_utf16(const uint8_t *units, size_t nunits, char *out, size_t max);

/* Put four units as characters; the units are below 0x80. */
static inline void etw_put_four(uint64_t units, char *out)
{
	units |= units >> 8;
	put_le32((uint8_t *)out, (uint32_t)(units & 0xffff) | (uint32_t)(units >> 32) << 16);
}
