/*
 * Blobs: lists and data of segments, pages of frames, functions and texts.
 *
 *	offset  bytes
 *	0       1      kind: 2 the lists of a segment, 1 anything else
 *	1       1      codec: 0 the bytes as they are, 1 zlib (RFC 1950)
 *	2       4      size of the raw bytes, little endian
 *	6       4      CRC-32 (that of zlib and gzip) of the raw bytes, little endian
 *	10      ...    the bytes
 *
 * The `data` of a segment is compressed within (model/segment.h) and stored as it is. All other
 * blobs are deflated where that makes them smaller.
 */
#include "store/blob_private.h"

#include "base/bytes.h"

#include <zlib.h>

#define HEADER_BYTES 10

enum { CODEC_RAW, CODEC_ZLIB };

void columns_free(struct columns *c)
{
	buf_free(&c->raw);
	memset(c, 0, sizeof(*c));
}

uint32_t blob_crc(const void *raw, size_t n)
{
	return (uint32_t)crc32_z(0, n ? raw : (const void *)"", n);
}

/* Empties out and begins a blob there. */
static int put_header(struct buf *out, enum blob_kind kind, uint8_t codec, const void *raw,
		      size_t n, struct err *err)
{
	if (n > UINT32_MAX / 2)
		return err_set(err, ERR_LIMIT, "a segment of %zu bytes is too large to store", n);
	buf_reset(out);
	buf_putc(out, (char)kind);
	buf_putc(out, (char)codec);
	buf_put_le(out, n, 4);
	buf_put_le(out, blob_crc(raw, n), 4);
	return 0;
}

static int put_plain(struct buf *out, enum blob_kind kind, const void *raw, size_t n,
		     struct err *err)
{
	int rc = put_header(out, kind, CODEC_RAW, raw, n, err);

	if (rc)
		return rc;
	buf_put(out, raw, n);
	return buf_check(out, "a blob", err);
}

int blob_plain(const void *raw, size_t n, struct buf *out, struct err *err)
{
	return put_plain(out, BLOB_OTHER, raw, n, err);
}

int blob_pack(struct deflater *d, enum blob_kind kind, const struct columns *c, struct buf *out,
	      struct err *err)
{
	size_t at = 0, n = c->raw.len;
	uint32_t i;
	int rc = buf_check(&c->raw, "a blob", err);

	if (!rc)
		rc = put_header(out, kind, CODEC_ZLIB, c->raw.data, n, err);
	if (rc)
		return rc;
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
	if (!out->failed && out->len - HEADER_BYTES >= n)
		return put_plain(out, kind, c->raw.data, n, err);
	return buf_check(out, "a blob", err);
}

int blob_unpack(const struct blob *blob, enum blob_kind kind, size_t max_raw, struct buf *out,
		struct err *err)
{
	const uint8_t *at = blob->bytes;
	size_t body, nraw;
	char *to;
	int rc = 0;

	if (blob->n < HEADER_BYTES)
		return err_set(err, ERR_FORMAT, "it ends after %zu bytes", blob->n);
	if (at[0] != kind || at[1] > CODEC_ZLIB)
		return err_set(err, ERR_FORMAT, "its encoding %u.%u is unknown", at[0], at[1]);
	nraw = le32(at + 2);
	body = blob->n - HEADER_BYTES;
	if (nraw > max_raw || body > max_raw || (at[1] == CODEC_RAW && body != nraw))
		return err_set(err, ERR_FORMAT, "its size of %zu bytes is impossible", nraw);
	buf_reset(out);
	to = buf_reserve(out, nraw);
	if (!to)
		rc = ERR_MEMORY;
	else if (at[1] == CODEC_ZLIB)
		rc = inflate_unchecked(at + HEADER_BYTES, body, to, nraw);
	else if (nraw)
		memcpy(to, at + HEADER_BYTES, nraw);
	if (rc == ERR_MEMORY)
		return err_memory(err, "while decompressing a segment");
	if (rc)
		return err_set(err, rc, "its compressed bytes are damaged");
	buf_advance(out, nraw);
	if (blob_crc(to, nraw) != le32(at + 6))
		return err_set(err, ERR_FORMAT, "its CRC is wrong");
	return 0;
}
