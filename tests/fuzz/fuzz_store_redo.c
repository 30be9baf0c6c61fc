/*
 * A record of the log beside a file of the history that somebody else wrote. Its CRCs are made
 * right, so that the patches are looked at: each of a sound record lies in a page of the file.
 * The bytes are also taken for changes of a page, from which a record is made and read again: it
 * must make the same page.
 */
#include "store/redo_private.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_record(const uint8_t *data, size_t size)
{
	uint8_t head[REDO_HEAD_BYTES], *packed;
	struct buf plain = {0};
	struct redo_record r;
	struct redo_patch p;
	size_t at = 0, n;

	if (size < sizeof(head))
		return;
	memcpy(head, data, sizeof(head));
	if (!redo_head(head, &r) || r.npacked_bytes > size - sizeof(head))
		return;
	n = r.npacked_bytes;
	packed = malloc(n + 1);
	if (!packed)
		return;
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
}

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* Each four bytes are a place in the page, a length, and what is added to the bytes there. */
static void change_page(const uint8_t *data, size_t size, uint8_t page[REDO_PAGE_BYTES])
{
	size_t i, k;

	for (i = 0; i + 4 <= size; i += 4) {
		uint32_t at = le16(data + i) % REDO_PAGE_BYTES;

		for (k = 0; k < data[i + 2] && at + k < REDO_PAGE_BYTES; k++)
			page[at + k] = (uint8_t)(page[at + k] + data[i + 3] + k);
	}
}

static void write_record(const uint8_t *data, size_t size)
{
	static struct deflater *deflater;    /* once: 268 KB to make */
	const struct redo_record meant = {.generation = size, .sequence = 7, .npages = 9,
					  .first_new = 8, .new_crc = 3};
	static const uint8_t old[REDO_PAGE_BYTES];
	uint8_t new[REDO_PAGE_BYTES] = {0}, made[REDO_PAGE_BYTES] = {0};
	struct columns patches = {0};
	struct buf out = {0}, plain = {0};
	struct redo_record r;
	struct redo_patch p;
	size_t at = 0;

	deflater = deflater ? deflater : deflater_new(false);
	must(deflater != NULL);
	change_page(data, size, new);
	redo_put_patches(&patches.raw, 5, old, new);
	must(!redo_put_record(deflater, 11, &meant, &patches, &out));
	must(redo_head((const uint8_t *)out.data, &r));
	must(r.generation == size && r.sequence == 7 && r.npages == 9 && r.first_new == 8);
	must(out.len == redo_blocks(r.npacked_bytes));
	must(!redo_sound(11, (const uint8_t *)out.data, out.data + REDO_HEAD_BYTES, &plain, &r));
	while (redo_patch_next(&r, &at, &p)) {
		must(p.page == 5);
		memcpy(made + p.offset, p.bytes, p.n);
	}
	must(!memcmp(made, new, sizeof(made)));
	must(redo_sound(12, (const uint8_t *)out.data, out.data + REDO_HEAD_BYTES, &plain, &r));
	columns_free(&patches);
	buf_free(&out);
	buf_free(&plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_record(data, size);
	write_record(data, size);
	return 0;
}
