/*
 * Compressed bytes: zlib streams (RFC 1950), made from pieces, read back whole.
 *
 * Level 3: over the columns of segments it saves 1 % of what level 1 leaves, in the same time; level 4, the
 * first that looks twice, takes half as long again and saves nothing. Files (gzip) are of level 1. One thread at
 * a time per deflater.
 */
#ifndef BASE_DEFLATE_H
#define BASE_DEFLATE_H

#include "base/buf.h"

struct deflater;

struct deflater *deflater_new(void);                 /* 268 KB; NULL = no memory */
/* Of gzip files (RFC 1952), without a name or a time: the same bytes on every host. */
struct deflater *deflater_new_gzip(void);
void deflater_free(struct deflater *d);              /* NULL allowed */

/* Begin a stream; forgets an unfinished one. */
void deflater_start(struct deflater *d);
/*
 * What comes next is compressed so: DEFLATE_TEXT looks for repeats of what was before; DEFLATE_NOISE for
 * runs of one byte only, which is quicker, and smaller where repeats are chance. Each has its own codes. It
 * holds until the next, also for the next stream; at first it is DEFLATE_TEXT.
 */
enum deflate_kind { DEFLATE_TEXT, DEFLATE_NOISE };
void deflater_kind(struct deflater *d, enum deflate_kind kind, struct buf *out);
/* The one that is likely to suit small numbers, a byte each. */
enum deflate_kind deflate_kind_of(const void *bytes, size_t n);
/* End a block: what comes next has codes of its own. */
void deflater_cut(struct deflater *d, struct buf *out);
/* Append what n more bytes come to; a failure stays in out (buf_check). */
void deflater_put(struct deflater *d, const void *bytes, size_t n, struct buf *out);
/* Append the end of the stream. */
void deflater_end(struct deflater *d, struct buf *out);

/*
 * A whole stream of n bytes that gives exactly nraw bytes.
 * returns  0, ERR_FORMAT when it does not or is damaged, ERR_MEMORY; no sentence
 */
int inflate_bytes(const void *from, size_t n, void *to, size_t nraw);

#endif
