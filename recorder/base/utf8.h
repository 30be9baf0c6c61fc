/* UTF-8: made safe to print, decoded, and encoded from code points and UTF-16. */
#pragma once

#include "base/buf.h"

/*
 * The length in bytes of the valid UTF-8 character at `at`, or 0 when the bytes are invalid
 * (overlong forms, surrogates and values over U+10FFFF are invalid).
 */
size_t utf8_char(const char *at, const char *end);

/* One code point as UTF-8; returns its 1 to 4 bytes. */
size_t utf8_encode(uint32_t c, char out[4]);

/*
 * The code point at unit *i of nunits of UTF-16LE; *i moves past it. A lone surrogate is U+FFFD.
 */
uint32_t utf16_next(const uint8_t *units, size_t nunits, size_t *i);

/*
 * The code point of the valid character of len bytes at `at` if nobody sees it, though it changes
 * how the rest is read: directions of writing, joiners, soft hyphens, tags (Unicode's category Cf
 * but the Arabic signs that are seen, and U+2028, U+2029). 0 = a character like any other.
 */
uint32_t utf8_unseen(const char *at, size_t len);

/* Such a character as people see it: "\u{202e}". */
void utf8_put_unseen(struct buf *out, uint32_t c);

/*
 * Append text with control characters as a space, unseen ones as "\u{202e}" and invalid bytes as
 * U+FFFD, cut at max_bytes with an ellipsis. The rule for every name in an export.
 */
void utf8_put_clean(struct buf *out, const char *text, size_t n, size_t max_bytes);
