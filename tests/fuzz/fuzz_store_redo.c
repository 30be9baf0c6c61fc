/*
 * A record of the log beside a file of the history that somebody else wrote. Its CRCs are made
 * right, so that the patches are looked at: each of a sound record lies in a page of the file.
 */
#include "store/redo_private.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t head[REDO_HEAD_BYTES], *packed;
	struct buf plain = {0};
	struct redo_record r;
	struct redo_patch p;
	size_t at = 0, n;

	if (size < sizeof(head))
		return 0;
	memcpy(head, data, sizeof(head));
	if (!redo_head(head, &r) || r.npacked_bytes > size - sizeof(head))
		return 0;
	n = r.npacked_bytes;
	packed = malloc(n + 1);
	if (!packed)
		return 0;
	memcpy(packed, data + sizeof(head), n);
	if (n >= 10 && packed[0] == BLOB_OTHER && packed[1] == 0) {  /* not deflated */
		put_le32(packed + 2, (uint32_t)n - 10);
		put_le32(packed + 6, blob_crc(packed + 10, n - 10));
	}
	put_le32(head + REDO_CRC_AT, redo_crc(0, head, packed, n));
	if (!redo_sound(0, head, packed, &plain, &r)) {
		while (redo_patch_next(&r, &at, &p)) {
			if (p.page >= r.npages || p.offset + p.n > REDO_PAGE_BYTES ||
			    p.bytes + p.n > r.patches + r.npatch_bytes)
				abort();
		}
	}
	buf_free(&plain);
	free(packed);
	return 0;
}
