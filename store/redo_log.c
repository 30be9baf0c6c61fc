/* The records of the log: read from bytes that anybody may have written; and what they say. */
#include "store/redo_private.h"

#include "base/bytes.h"

#include <string.h>
#include <zlib.h>

#define MAGIC "recredo4"
#define MAGIC_BYTES 7u                       /* "3" had no patches of new pages */
#define NEAR_BYTES 8u                        /* patches this close are one */

size_t redo_blocks(size_t npacked_bytes)
{
	return (npacked_bytes + REDO_HEAD_BYTES + REDO_PAGE_BYTES - 1) / REDO_PAGE_BYTES *
	       REDO_PAGE_BYTES;
}

uint32_t redo_crc(uint32_t before, const uint8_t head[REDO_HEAD_BYTES], const void *patches,
		  size_t n)
{
	uLong crc = crc32(before, head, REDO_CRC_AT);

	return (uint32_t)(n ? crc32(crc, patches, (uInt)n) : crc);
}

bool redo_head(const uint8_t head[REDO_HEAD_BYTES], struct redo_record *out)
{
	*out = (struct redo_record){
		.generation = le64(head + 8), .sequence = le32(head + 16),
		.npages = le32(head + 20), .npacked_bytes = le32(head + 24),
		.first_new = le32(head + 28), .new_crc = le32(head + 32),
	};
	return memcmp(head, MAGIC, MAGIC_BYTES) == 0 && (head[7] == '3' || head[7] == '4') &&
	       out->npacked_bytes <= REDO_PATCHES_MAX;
}

int redo_put_record(struct deflater *d, uint32_t before, const struct redo_record *r,
		    const struct columns *patches, struct buf *out)
{
	uint8_t head[REDO_HEAD_BYTES] = MAGIC;
	struct buf packed = {0};
	char *zeros;
	size_t n;
	int rc = patches->raw.len ? blob_pack(d, BLOB_OTHER, patches, &packed, NULL) : 0;

	put_le64(head + 8, r->generation);
	put_le32(head + 16, r->sequence);
	put_le32(head + 20, r->npages);
	put_le32(head + 24, (uint32_t)packed.len);
	put_le32(head + 28, r->first_new);
	put_le32(head + 32, r->new_crc);
	put_le32(head + REDO_CRC_AT, redo_crc(before, head, packed.data, packed.len));
	buf_reset(out);
	buf_put(out, head, sizeof(head));
	buf_put(out, packed.data, packed.len);
	n = redo_blocks(packed.len) - out->len;
	zeros = buf_reserve(out, n);
	if (zeros) {
		memset(zeros, 0, n);
		buf_advance(out, n);
	}
	buf_free(&packed);
	return rc ? rc : buf_check(out, "a record", NULL);
}

static bool patch_at(const struct redo_record *r, size_t *at, struct redo_patch *out)
{
	const uint8_t *p = r->patches + *at;

	if (r->npatch_bytes - *at < 8)
		return false;
	*out = (struct redo_patch){le32(p), le16(p + 4), le16(p + 6), p + 8};
	*at += 8 + (size_t)out->n;
	return *at <= r->npatch_bytes && out->page < r->npages &&
	       out->offset + out->n <= REDO_PAGE_BYTES;
}

int redo_sound(uint32_t before, const uint8_t head[REDO_HEAD_BYTES], const void *packed,
	       struct buf *plain, struct redo_record *r)
{
	const struct blob blob = {packed, r->npacked_bytes};
	struct redo_patch patch;
	size_t at = 0;
	int rc = 0;

	if (redo_crc(before, head, packed, blob.n) != le32(head + REDO_CRC_AT))
		return ERR_FORMAT;
	buf_reset(plain);
	if (blob.n)
		rc = blob_unpack(&blob, BLOB_OTHER, REDO_PATCHES_MAX, plain, NULL);
	r->patches = (const uint8_t *)plain->data;
	r->npatch_bytes = plain->len;
	while (!rc && at < r->npatch_bytes) {
		if (!patch_at(r, &at, &patch))
			rc = ERR_FORMAT;
	}
	return rc;
}

bool redo_patch_next(const struct redo_record *r, size_t *at, struct redo_patch *out)
{
	return *at < r->npatch_bytes && patch_at(r, at, out);
}

void redo_put_patches(struct buf *out, uint32_t page, const uint8_t *old, const uint8_t *new)
{
	uint32_t at = 0, end, same;

	while (at < REDO_PAGE_BYTES) {
		if (old[at] == new[at]) {
			at++;
			continue;
		}
		for (end = at + 1, same = 0; end < REDO_PAGE_BYTES && same < NEAR_BYTES; end++)
			same = old[end] == new[end] ? same + 1 : 0;
		end -= same;
		buf_put_le(out, page, 4);
		buf_put_le(out, at, 2);
		buf_put_le(out, end - at, 2);
		buf_put(out, new + at, end - at);
		at = end;
	}
}
