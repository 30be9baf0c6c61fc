/*
 * Blobs of a store that somebody else wrote: unpacked, and read as the lists of a segment, as its
 * columns, or as a page. The bytes are also decoded as they are, for the CRC refuses most blobs.
 */
#include "store/page_private.h"

#include "model/segment.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode_lists(const void *raw, size_t n)
{
	struct lists lists;

	if (!lists_decode(raw, n, &lists, NULL))
		free(lists.ids);
}

/* A segment may list any id, whatever the page has; one of these comes from the bytes. */
static void find_frames(const struct page_frame *items, uint32_t n, int64_t wild)
{
	const int64_t ids[] = {items[n / 2].id, items[0].id - 1, items[n - 1].id, wild, -wild, 0,
			       INT64_MIN, INT64_MAX};
	unsigned i;

	for (i = 0; i < COUNT_OF(ids); i++) {
		uint32_t at = frame_page_find(items, n, ids[i]);

		if (at != UINT32_MAX && (at >= n || items[at].id != ids[i]))
			abort();
	}
}

/* The first byte says where the second blob of a page of frames begins. */
static void decode_pages(const char *raw, size_t n)
{
	size_t cut = n ? (size_t)(uint8_t)raw[0] * n / 256 : 0;
	struct buf frames = {0}, functions = {0};
	struct page_frame *items;
	struct text_page texts;
	uint32_t nitems;
	int64_t wild = 0;

	if (n >= sizeof(wild))
		memcpy(&wild, raw, sizeof(wild));
	wild = wild == INT64_MIN ? 0 : wild;
	buf_put(&frames, raw + (n > 0), cut ? cut - 1 : 0);
	buf_put(&functions, raw + cut, n - cut);
	if (!frame_page_decode(&frames, &functions, 1, &items, &nitems, NULL)) {
		find_frames(items, nitems, wild);
		free(items);
	}
	if (!frame_page_decode(&frames, NULL, wild, &items, &nitems, NULL)) {
		find_frames(items, nitems, wild);
		free(items);
	}
	buf_reset(&frames);
	buf_put(&frames, raw, n);
	if (!text_page_decode(&frames, PAGE_TEXTS_MAX, &texts, NULL))
		text_page_free(&texts);
	buf_free(&frames);
	buf_free(&functions);
}

/* Processes, then threads. */
static void decode_rows(const char *bytes, size_t n)
{
	struct buf raw = {0};
	uint64_t *rows;
	uint32_t nrows;

	buf_put(&raw, bytes, n);
	if (!row_page_decode(&raw, PROCESS_COLUMNS, &rows, &nrows, NULL))
		free(rows);
	if (!row_page_decode(&raw, THREAD_COLUMNS, &rows, &nrows, NULL))
		free(rows);
	buf_free(&raw);
}

static void decode(const void *raw, size_t n)
{
	struct segment_content content;

	decode_lists(raw, n);
	decode_pages(raw, n);
	decode_rows(raw, n);
	if (!segment_decode(raw, n, &content, NULL))
		segment_content_free(&content);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct blob blob = {data, size};
	struct buf raw = {0};

	if (size && !blob_unpack(&blob, data[0], 1 << 20, &raw, NULL))
		decode(raw.data, raw.len);
	if (size)
		decode(data, size);
	buf_free(&raw);
	return 0;
}
