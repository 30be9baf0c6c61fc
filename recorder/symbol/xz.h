/*
 * Unpacking .xz, by the system's liblzma.
 *
 * Host: the library is loaded at run time (linux-capture.md section 4), so that the recorder neither
 * needs it where nobody packs symbols (Debian) nor fails to start where it is missing.
 */
#ifndef SYMBOL_XZ_H
#define SYMBOL_XZ_H

#include "base/buf.h"

/*
 * in         a whole .xz stream of n bytes
 * max_bytes  ceiling of what comes out; memory beside it is bounded by XZ_MEMORY_BYTES
 * out        appended to an empty buffer
 * returns    0; ERR_FORMAT damaged; ERR_LIMIT a ceiling, or it took longer than XZ_MAX_NS;
 *            ERR_MEMORY; ERR_UNSUPPORTED there is no liblzma
 */
#define XZ_MEMORY_BYTES ((uint64_t)80 << 20)     /* xz -9 needs 65 MB */
#define XZ_MAX_NS (5 * NS_PER_SEC)
int xz_unpack(const void *in, size_t n, size_t max_bytes, struct buf *out, struct err *err);

#endif
