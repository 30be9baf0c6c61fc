/* TraceLogging: u16 size of traits, traits, u16 size of metadata, metadata, then the payload. */
#include "source/etw/decode.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A copy, so that sanitizers see every read beyond it. */
static uint8_t *take(const uint8_t **at, const uint8_t *end, size_t want, size_t *n)
{
	uint8_t *bytes;

	*n = want < (size_t)(end - *at) ? want : (size_t)(end - *at);
	bytes = malloc(*n ? *n : 1);
	if (*n)
		memcpy(bytes, *at, *n);
	*at += *n;
	return bytes;
}

static size_t size_of(const uint8_t **at, const uint8_t *end)
{
	size_t n = end - *at < 2 ? 0 : (*at)[0] | (size_t)(*at)[1] << 8;

	*at += end - *at < 2 ? end - *at : 2;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *at = data, *end = data + n;
	struct etw_record record = {.header = ETW_MANIFEST, .pointer_bytes = 8, .nitems = 2};
	struct etw_decode *decode = NULL;
	static struct etw_decoded out;
	uint8_t *parts[3];
	size_t sizes[3];

	if (etw_decode_new(&decode, NULL))
		return 0;
	parts[0] = take(&at, end, size_of(&at, end), &sizes[0]);
	parts[1] = take(&at, end, size_of(&at, end), &sizes[1]);
	parts[2] = take(&at, end, SIZE_MAX, &sizes[2]);
	record.items[0] = (struct etw_item){12, (uint16_t)sizes[0], parts[0]};
	record.items[1] = (struct etw_item){11, (uint16_t)sizes[1], parts[1]};
	record.payload = parts[2];
	record.payload_bytes = (uint32_t)sizes[2];
	etw_decode_event(decode, &record, &out);
	if (out.nfields > EVENT_MAX_FIELDS || strlen(out.provider) >= EVENT_MAX_TEXT)
		abort();
	for (int i = 0; i < 3; i++)
		free(parts[i]);
	etw_decode_free(decode);
	return 0;
}
