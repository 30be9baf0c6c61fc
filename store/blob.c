/*
 * Blobs: lists and data of segments, pages of frames and texts.
 *
 *	offset  bytes
 *	0       1      kind: 2 the lists of a segment, 1 anything else
 *	1       1      codec: 0 the bytes as they are, 1 zlib (RFC 1950)
 *	2       4      size of the raw bytes, little endian
 *	6       4      CRC-32 (that of zlib and gzip) of the raw bytes, little endian
 *	10      ...    the bytes
 *
 * `data` of segments is compressed within (model/segment.h), so it stands here as it is; all others
 * are deflated when that makes them smaller.
 */
#include "store/store_private.h"

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

static void put_header(uint8_t *to, enum blob_kind kind, uint8_t codec, const void *raw, size_t n)
{
	to[0] = (uint8_t)kind;
	to[1] = codec;
	put_u32(to + 2, (uint32_t)n);
	put_u32(to + 6, blob_crc(raw, n));
}

static int too_large(size_t n, struct err *err)
{
	return err_set(err, ERR_LIMIT, "a segment of %zu bytes is too large to store", n);
}

static int plain(enum blob_kind kind, const void *raw, size_t n, struct buf *out, struct err *err)
{
	uint8_t header[BLOB_HEADER_BYTES];

	buf_reset(out);
	put_header(header, kind, CODEC_RAW, raw, n);
	buf_put(out, header, sizeof(header));
	buf_put(out, raw, n);
	return buf_check(out, "a blob", err);
}

int blob_plain(const void *raw, size_t n, struct buf *out, struct err *err)
{
	if (n > UINT32_MAX / 2)
		return too_large(n, err);
	return plain(BLOB_OTHER, raw, n, out, err);
}

int blob_pack(struct deflater *d, enum blob_kind kind, const struct columns *c, struct buf *out,
	      struct err *err)
{
	uint8_t header[BLOB_HEADER_BYTES];
	size_t at = 0, n = c->raw.len;
	uint32_t i;
	int rc = buf_check(&c->raw, "a blob", err);

	if (rc)
		return rc;
	if (n > UINT32_MAX / 2)
		return too_large(n, err);
	buf_reset(out);
	put_header(header, kind, CODEC_ZLIB, c->raw.data, n);
	buf_put(out, header, sizeof(header));
	deflater_start(d);
	deflater_kind(d, c->kind, out);
	for (i = 0; i <= c->ncuts; i++) {
		size_t end = i < c->ncuts ? c->cuts[i] : n;

		deflater_put(d, c->raw.data + at, end - at, out);
		if (i < c->ncuts)
			deflater_cut(d, out);
		at = end;
	}
	deflater_end(d, out);
	if (!out->failed && out->len - BLOB_HEADER_BYTES >= n)
		return plain(kind, c->raw.data, n, out, err);
	return buf_check(out, "a blob", err);
}

int blob_unpack(const void *blob, size_t n, enum blob_kind kind, size_t max_raw, struct buf *out,
		struct err *err)
{
	const uint8_t *at = blob;
	size_t body, nraw;
	char *to;
	int rc = 0;

	if (n < BLOB_HEADER_BYTES)
		return err_set(err, ERR_FORMAT, "it ends after %zu bytes", n);
	if (at[0] != kind || at[1] > CODEC_ZLIB)
		return err_set(err, ERR_FORMAT, "its encoding is %u.%u, not known here", at[0],
			       at[1]);
	nraw = get_u32(at + 2);
	body = n - BLOB_HEADER_BYTES;
	if (nraw > max_raw || body > max_raw || (at[1] == CODEC_RAW && body != nraw))
		return err_set(err, ERR_FORMAT, "its size of %zu bytes is impossible", nraw);
	buf_reset(out);
	to = buf_reserve(out, nraw);
	if (!to)
		return err_memory(err, "while decompressing a segment");
	if (at[1] == CODEC_ZLIB)
		rc = inflate_bytes(at + BLOB_HEADER_BYTES, body, to, nraw);
	else if (nraw)
		memcpy(to, at + BLOB_HEADER_BYTES, nraw);
	if (rc == ERR_MEMORY)
		return err_memory(err, "while decompressing a segment");
	if (rc)
		return err_set(err, rc, "its compressed bytes are damaged");
	buf_advance(out, nraw);
	if (blob_crc(to, nraw) != get_u32(at + 6))
		return err_set(err, ERR_FORMAT, "its CRC is wrong");
	return 0;
}
