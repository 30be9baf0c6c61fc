/*
 * Blobs: the columns `lists` and `data` of a segment.
 *
 *	offset  bytes
 *	0       1      version = 1
 *	1       1      codec: 0 the bytes as they are, 1 zlib (RFC 1950)
 *	2       4      size of the raw bytes, little endian
 *	6       4      CRC-32 (that of zlib and gzip) of the raw bytes, little endian
 *	10      ...    the bytes
 *
 * zlib level 1: over sealed segments level 6 saves under 1 % and takes half as long again
 * (exports-and-store.md section 3.1). Codec 0 is used when deflating would not make it smaller.
 */
#include "store/store_impl.h"

#include <string.h>

enum { CODEC_RAW, CODEC_ZLIB };

static void put_u32(uint8_t *to, uint32_t v)
{
	to[0] = (uint8_t)v;
	to[1] = (uint8_t)(v >> 8);
	to[2] = (uint8_t)(v >> 16);
	to[3] = (uint8_t)(v >> 24);
}

static uint32_t get_u32(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

uint32_t blob_crc(const void *raw, size_t n)
{
	return (uint32_t)crc32_z(0, n ? raw : (const void *)"", n);
}

void codec_free(struct codec *c)
{
	if (c->deflating)
		deflateEnd(&c->deflate);
	if (c->inflating)
		inflateEnd(&c->inflate);
	memset(c, 0, sizeof(*c));
}

/* Deflate into at most n bytes; 0 when they do not suffice. ERR_MEMORY is the only failure. */
static int deflate_into(struct codec *c, const void *raw, size_t n, void *to, size_t *used)
{
	z_stream *z = &c->deflate;

	if (!c->deflating && deflateInit(z, 1) != Z_OK)
		return ERR_MEMORY;
	c->deflating = true;
	deflateReset(z);
	z->next_in = (Bytef *)raw;
	z->avail_in = (uInt)n;
	z->next_out = to;
	z->avail_out = (uInt)n;
	*used = deflate(z, Z_FINISH) == Z_STREAM_END ? n - z->avail_out : 0;
	return 0;
}

int blob_pack(struct codec *c, const void *raw, size_t n, struct buf *out, struct err *err)
{
	size_t used = 0;
	uint8_t *to;

	if (n > UINT32_MAX / 2)
		return err_set(err, ERR_LIMIT, "a segment of %zu bytes is too large to store", n);
	buf_reset(out);
	to = (uint8_t *)buf_reserve(out, BLOB_HEADER_BYTES + n);
	if (!to || (n && deflate_into(c, raw, n, to + BLOB_HEADER_BYTES, &used)))
		return err_set(err, ERR_MEMORY, "out of memory while compressing a segment");
	to[0] = BLOB_VERSION;
	to[1] = used ? CODEC_ZLIB : CODEC_RAW;
	put_u32(to + 2, (uint32_t)n);
	put_u32(to + 6, blob_crc(raw, n));
	if (!used && n)
		memcpy(to + BLOB_HEADER_BYTES, raw, n);
	buf_advance(out, BLOB_HEADER_BYTES + (used ? used : n));
	return 0;
}

static int inflate_into(struct codec *c, const uint8_t *from, size_t n, char *to, size_t nraw,
			struct err *err)
{
	z_stream *z = &c->inflate;
	int rc;

	if (!c->inflating && inflateInit(z) != Z_OK)
		return err_set(err, ERR_MEMORY, "out of memory while decompressing a segment");
	c->inflating = true;
	inflateReset(z);
	z->next_in = (Bytef *)from;
	z->avail_in = (uInt)n;
	z->next_out = (Bytef *)to;
	z->avail_out = (uInt)nraw;
	rc = inflate(z, Z_FINISH);
	if (rc == Z_MEM_ERROR)
		return err_set(err, ERR_MEMORY, "out of memory while decompressing a segment");
	if (rc != Z_STREAM_END || z->avail_out || z->avail_in)
		return err_set(err, ERR_FORMAT, "its compressed bytes are damaged");
	return 0;
}

int blob_unpack(struct codec *c, const void *blob, size_t n, size_t max_raw, struct buf *out,
		struct err *err)
{
	const uint8_t *at = blob;
	size_t body, nraw;
	char *to;
	int rc = 0;

	if (n < BLOB_HEADER_BYTES)
		return err_set(err, ERR_FORMAT, "it ends after %zu bytes", n);
	if (at[0] != BLOB_VERSION || at[1] > CODEC_ZLIB)
		return err_set(err, ERR_FORMAT, "its encoding is %u.%u, not known here", at[0],
			       at[1]);
	nraw = get_u32(at + 2);
	body = n - BLOB_HEADER_BYTES;
	if (nraw > max_raw || body > max_raw || (at[1] == CODEC_RAW && body != nraw))
		return err_set(err, ERR_FORMAT, "its size of %zu bytes is impossible", nraw);
	buf_reset(out);
	to = buf_reserve(out, nraw);
	if (!to)
		return err_set(err, ERR_MEMORY, "out of memory while decompressing a segment");
	if (at[1] == CODEC_ZLIB)
		rc = inflate_into(c, at + BLOB_HEADER_BYTES, body, to, nraw, err);
	else if (nraw)
		memcpy(to, at + BLOB_HEADER_BYTES, nraw);
	if (rc)
		return rc;
	buf_advance(out, nraw);
	if (blob_crc(to, nraw) != get_u32(at + 6))
		return err_set(err, ERR_FORMAT, "its CRC is wrong");
	return 0;
}
