/*
 * Compressed bytes: zlib streams (RFC 1950), written piece by piece, read back whole.
 *
 * The level is 3. On segment columns it saves 1 % of what level 1 leaves, in the same time; level
 * 4, the first with lazy matching, takes half as long again and saves nothing. Gzip files use level
 * 1. One thread at a time per deflater.
 */
#pragma once

#include "base/buf.h"

struct deflater;

/*
 * 268 KB; NULL = no memory. gzip: for a gzip file (RFC 1952), without name or time, the same bytes
 * on every host.
 */
struct deflater *deflater_new(bool gzip);
void deflater_free(struct deflater *d);              /* NULL allowed */

/* Begin a stream; drops an unfinished one. */
void deflater_start(struct deflater *d);
/*
 * How to compress what comes next: DEFLATE_TEXT looks for repeats of earlier bytes; DEFLATE_NOISE
 * looks for runs of one byte only, which is quicker, and smaller where repeats are chance. Each
 * call starts a block with codes of its own. The kind holds until the next call, also for the next
 * stream; it starts as DEFLATE_TEXT.
 */
enum deflate_kind { DEFLATE_TEXT, DEFLATE_NOISE };
void deflater_kind(struct deflater *d, enum deflate_kind kind, struct buf *out);
/* The kind that is likely to suit small numbers, a byte each. */
enum deflate_kind deflate_kind_of(const void *bytes, size_t n);
/* End a block, so that what comes next has codes of its own. */
void deflater_cut(struct deflater *d, struct buf *out);
/* Compress n more bytes, appending to out; a failure stays in out (buf_check). */
void deflater_put(struct deflater *d, const void *bytes, size_t n, struct buf *out);
/* Append the end of the stream. */
void deflater_end(struct deflater *d, struct buf *out);

/*
 * Decompress a whole stream of n bytes that gives exactly nraw bytes.
 * returns  0; ERR_FORMAT when it is damaged or gives another number; ERR_MEMORY; no sentence
 */
int inflate_bytes(const void *from, size_t n, void *to, size_t nraw);
/* The same without comparing the stream's checksum: for bytes that another checksum covers. */
int inflate_unchecked(const void *from, size_t n, void *to, size_t nraw);
