/*
 * Blobs: bytes as they stand in a row, with their size and CRC; most of them deflated.
 *
 * The layout is drawn at the head of blob.c. One thread at a time for each deflater.
 */
#pragma once

#include "base/buf.h"
#include "base/deflate.h"

struct blob {
	const void *bytes;
	size_t n;
};

enum blob_kind { BLOB_OTHER = 1, BLOB_LISTS = 2 };

#define COLUMNS_CUTS 64

/* Bytes to be deflated. {0} is empty and valid; free with columns_free(). */
struct columns {
	struct buf raw;                      /* failure is sticky */
	size_t cuts[COLUMNS_CUTS];           /* where blocks with codes of their own begin */
	uint32_t ncuts;
	enum deflate_kind kind;
};

void columns_free(struct columns *c);

/*
 * Both replace what is in out: blob_pack() with the columns deflated, or as they are when that is
 * not larger; blob_plain() with the bytes as they are. ERR_LIMIT over 2 GB.
 */
int blob_pack(struct deflater *d, enum blob_kind kind, const struct columns *c, struct buf *out,
	      struct err *err);
int blob_plain(const void *raw, size_t n, struct buf *out, struct err *err);

/*
 * Replace what is in out by the bytes that were packed. ERR_FORMAT when it is no blob of this kind,
 * has more than max_raw bytes, or a wrong CRC.
 */
int blob_unpack(const struct blob *blob, enum blob_kind kind, size_t max_raw, struct buf *out,
		struct err *err);

/* The CRC-32 of zlib and gzip. */
uint32_t blob_crc(const void *raw, size_t n);
