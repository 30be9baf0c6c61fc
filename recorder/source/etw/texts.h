/*
 * Texts of a trace that are kept: paths, command lines, names of methods. Equal texts are kept once.
 * One thread adds; texts that are there may be read by any thread. Freed all together.
 */
#ifndef SOURCE_ETW_TEXTS_H
#define SOURCE_ETW_TEXTS_H

#include "base/slots.h"
#include "base/table.h"

#include <stdbool.h>

#define ETW_TEXTS_BYTES_MAX ((size_t)512 << 20)
#define ETW_TEXT_MAX 8192u                        /* bytes of one; longer ones are cut */

struct etw_texts {
	char **chunks;
	uint32_t nchunks, max_chunks;
	size_t used;                         /* of the last chunk */
	struct table by_text;
	struct slots texts;                  /* const char * */
	uint64_t refused;
};

int etw_texts_init(struct etw_texts *t);          /* 0 or ERR_MEMORY */
void etw_texts_free(struct etw_texts *t);
size_t etw_texts_bytes(const struct etw_texts *t);

/* The kept text with these n bytes (no NUL in them); NULL at the ceiling or without memory. */
const char *etw_texts_keep(struct etw_texts *t, const char *text, size_t n);

/*
 * UTF-16LE to UTF-8, up to a NUL or nunits; lone surrogates become U+FFFD. Writes at most max bytes,
 * whole characters, and a NUL; max is at least 1. Returns the bytes without the NUL.
 */
size_t etw_utf16(const uint8_t *units, size_t nunits, char *out, size_t max);

#endif
