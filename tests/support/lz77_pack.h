/* The other direction of source/etl/lz77.h, for tests: a plain greedy compressor. */
#pragma once

#include "base/buf.h"

/* Append the stream that expands to these n bytes; all lengths' forms occur where they are due. */
void lz77_pack(const uint8_t *bytes, size_t n, struct buf *out);
