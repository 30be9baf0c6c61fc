/* UTF-8 from outside made safe to print. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/buf.h"

/*
 * The length in bytes of the valid UTF-8 character at `at`, or 0 when the bytes there are none
 * (overlong forms, surrogates and values over U+10FFFF are none).
 */
size_t utf8_char(const char *at, const char *end);

/*
 * Append text with control characters as a space and invalid bytes as U+FFFD, cut at max_bytes
 * with an ellipsis. The rule for every name in an export (exports-and-store.md, section 1).
 */
void utf8_put_clean(struct buf *out, const char *text, size_t n, size_t max_bytes);

#endif
