/*
 * Payloads of known classes: u8 provider, u8 key of the class, u8 flags (1: 32-bit pointers), u8
 * version, then the payload.
 */
#include "source/etw/decode.h"
#include "tests/support/etw_bytes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct etw_record record = {.pid = 1, .tid = 2};
	struct etw_decode *decode = NULL;
	static struct etw_decoded out;
	uint8_t *payload;

	if (n < 4 || !etw_pick(data[0], data[1], &record) || etw_decode_new(&decode, NULL))
		return 0;
	payload = malloc(n - 4 ? n - 4 : 1);
	memcpy(payload, data + 4, n - 4);
	record.pointer_bytes = data[2] & 1 ? 4 : 8;
	record.version = data[3];
	record.payload = payload;
	record.payload_bytes = (uint32_t)(n - 4);
	for (int header = ETW_CLASSIC; header <= ETW_MANIFEST; header++) {
		record.header = (uint8_t)header;
		etw_decode_learn(decode, &record);
		etw_decode_event(decode, &record, &out);
		for (uint32_t i = 0; i < out.nfields; i++)
			if (out.fields[i].type == FIELD_TEXT &&
			    strlen(out.fields[i].v.text) >= EVENT_MAX_TEXT)
				abort();
	}
	free(payload);
	etw_decode_free(decode);
	return 0;
}
