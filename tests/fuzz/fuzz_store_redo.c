/*
 * A record of the log beside a file of the history that somebody else wrote. Its CRC is made right,
 * so that the patches are looked at: each of a sound record lies in a page of the file.
 */
#include "store/redo_private.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t head[REDO_HEAD_BYTES];
	struct redo_record r;
	struct redo_patch p;
	size_t at = 0;

	if (size < sizeof(head))
		return 0;
	memcpy(head, data, sizeof(head));
	if (!redo_head(head, &r) || r.npatch_bytes > size - sizeof(head))
		return 0;
	r.patches = data + sizeof(head);
	put_le32(head + REDO_CRC_AT, redo_crc(0, head, r.patches, r.npatch_bytes));
	if (!redo_sound(0, head, &r))
		return 0;
	while (redo_patch_next(&r, &at, &p)) {
		if (p.page >= r.npages || p.offset + p.n > REDO_PAGE_BYTES ||
		    p.bytes + p.n > data + size)
			abort();
	}
	return 0;
}
