/*
 * Unpacking .xz, by the system's liblzma.
 *
 * Host: the library is loaded at run time, so the recorder does not need it where nobody packs
 * symbols (Debian), and starts where it is missing.
 */
#pragma once

#include "base/buf.h"

/*
 * in         a whole .xz stream of n bytes
 * max_bytes  ceiling of the output; other memory is bounded by XZ_MEMORY_BYTES
 * out        appended to an empty buffer
 * returns    0; ERR_FORMAT when damaged; ERR_LIMIT at a ceiling or after XZ_MAX_NS; ERR_MEMORY;
 *            ERR_UNSUPPORTED without liblzma
 */
#define XZ_MEMORY_BYTES ((uint64_t)80 << 20)     /* xz -9 needs 65 MB */
#define XZ_MAX_NS (5 * NS_PER_SEC)
int xz_unpack(const void *in, size_t n, size_t max_bytes, struct buf *out, struct err *err);

/* Linux: load liblzma for good, so that xz_unpack() opens no file. */
void xz_load(void);
