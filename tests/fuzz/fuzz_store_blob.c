/*
 * Blobs of a store that somebody else wrote: unpacked, and read as the lists of a segment or as its
 * columns. What the CRC would refuse is also decoded without it.
 */
#include "store/store_impl.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode(const void *raw, size_t n)
{
	struct segment_content content;
	uint32_t nthreads, nframes;
	int64_t *ids;

	if (!lists_decode(raw, n, &nthreads, &nframes, &ids, NULL))
		free(ids);
	if (!segment_decode(raw, n, &content, NULL))
		segment_content_free(&content);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf raw = {0};

	if (!blob_unpack(data, size, 1 << 20, &raw, NULL))
		decode(raw.data, raw.len);
	if (size)
		decode(data, size);
	buf_free(&raw);
	return 0;
}
