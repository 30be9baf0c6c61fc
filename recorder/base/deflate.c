#include "base/deflate.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define LEVEL 3
#define GZIP_LEVEL 1
#define NOISE_LEAST_BYTES 256u              /* a block's own codes take some 60 */
#define NOISE_PAIRS 3u                     /* at most one pair of bytes in this many may be equal */
#define STEP_BYTES 16384u
#define OS_UNKNOWN 255                       /* else zlib writes the system it runs on */

struct deflater {
	z_stream z;
	gz_header header;
	bool gzip;
};

struct deflater *deflater_new(bool gzip)
{
	struct deflater *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->gzip = gzip;
	d->header.os = OS_UNKNOWN;
	if (deflateInit2(&d->z, gzip ? GZIP_LEVEL : LEVEL, Z_DEFLATED, MAX_WBITS + (gzip ? 16 : 0),
			 8, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(d);
		return NULL;
	}
	deflater_start(d);
	return d;
}

void deflater_free(struct deflater *d)
{
	if (d)
		deflateEnd(&d->z);
	free(d);
}

void deflater_start(struct deflater *d)
{
	deflateReset(&d->z);
	if (d->gzip)
		deflateSetHeader(&d->z, &d->header);
}

/* Compress until all of the input is taken, or with Z_FINISH until the stream has ended. */
static void compress_piece(struct deflater *d, const Bytef *bytes, uInt n, int flush,
			   struct buf *out)
{
	d->z.next_in = (Bytef *)bytes;
	d->z.avail_in = n;
	do {
		d->z.next_out = (Bytef *)buf_reserve(out, STEP_BYTES);
		if (!d->z.next_out)
			return;
		d->z.avail_out = STEP_BYTES;
		deflate(&d->z, flush);
		buf_advance(out, STEP_BYTES - d->z.avail_out);
	} while (!d->z.avail_out);
}

/* deflateParams() ends the block first, and may need more room than is left. */
void deflater_kind(struct deflater *d, enum deflate_kind kind, struct buf *out)
{
	int strategy = kind == DEFLATE_NOISE ? Z_RLE : Z_DEFAULT_STRATEGY, rc;

	d->z.next_in = NULL;
	d->z.avail_in = 0;
	do {
		d->z.next_out = (Bytef *)buf_reserve(out, STEP_BYTES);
		if (!d->z.next_out)
			return;
		d->z.avail_out = STEP_BYTES;
		rc = deflateParams(&d->z, LEVEL, strategy);
		buf_advance(out, STEP_BYTES - d->z.avail_out);
	} while (rc == Z_BUF_ERROR);
}

void deflater_put(struct deflater *d, const void *bytes, size_t n, struct buf *out)
{
	const Bytef *at = bytes;

	while (n && !out->failed) {
		uInt piece = n < (1u << 30) ? (uInt)n : 1u << 30;

		compress_piece(d, at, piece, Z_NO_FLUSH, out);
		at += piece;
		n -= piece;
	}
}

/*
 * Most columns of numbers differ from byte to byte by chance, and looking for repeats in them costs
 * time and codes. Where most bytes are equal, as in one busy loop, looking pays.
 */
enum deflate_kind deflate_kind_of(const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	uint32_t count[256] = {0}, i;
	uint64_t equal = 0;

	if (n < NOISE_LEAST_BYTES)
		return DEFLATE_TEXT;
	for (i = 0; i < n; i++)
		count[at[i]]++;
	for (i = 0; i < 256; i++)
		equal += (uint64_t)count[i] * count[i];
	return equal < (uint64_t)n * n / NOISE_PAIRS ? DEFLATE_NOISE : DEFLATE_TEXT;
}

void deflater_cut(struct deflater *d, struct buf *out)
{
	compress_piece(d, NULL, 0, Z_BLOCK, out);
}

void deflater_end(struct deflater *d, struct buf *out)
{
	compress_piece(d, NULL, 0, Z_FINISH, out);
}

static int inflate_all(const void *from, size_t n, void *to, size_t nraw, bool check)
{
	z_stream z = {.next_in = (Bytef *)from, .next_out = to};
	Bytef nothing;
	int rc;

	if (n > UINT32_MAX || nraw > UINT32_MAX)
		return ERR_FORMAT;
	z.avail_in = (uInt)n;
	z.avail_out = (uInt)nraw;
	if (!nraw)
		z.next_out = &nothing;
	if (inflateInit(&z) != Z_OK)
		return ERR_MEMORY;
	inflateValidate(&z, check);
	rc = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	if (rc == Z_MEM_ERROR)
		return ERR_MEMORY;
	return rc == Z_STREAM_END && !z.avail_out && !z.avail_in ? 0 : ERR_FORMAT;
}

int inflate_bytes(const void *from, size_t n, void *to, size_t nraw)
{
	return inflate_all(from, n, to, nraw, true);
}

int inflate_unchecked(const void *from, size_t n, void *to, size_t nraw)
{
	return inflate_all(from, n, to, nraw, false);
}
