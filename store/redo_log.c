/* The records of the log: read from bytes that anybody may have written; and what they say. */
#include "store/redo_private.h"

#include "base/bytes.h"

#include <string.h>
#include <zlib.h>

#define NEAR_BYTES 8u                        /* patches this close are one */

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
		.npages = le32(head + 20), .npatch_bytes = le32(head + 24),
		.first_new = le32(head + 28), .new_crc = le32(head + 32),
	};
	return memcmp(head, "recredo2", 8) == 0 && out->npatch_bytes <= REDO_PATCHES_MAX;
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

bool redo_sound(uint32_t before, const uint8_t head[REDO_HEAD_BYTES], const struct redo_record *r)
{
	struct redo_patch patch;
	size_t at = 0;

	if (redo_crc(before, head, r->patches, r->npatch_bytes) != le32(head + REDO_CRC_AT))
		return false;
	while (at < r->npatch_bytes) {
		if (!patch_at(r, &at, &patch))
			return false;
	}
	return true;
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
