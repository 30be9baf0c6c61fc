/*
 * Payloads of known classes: u8 the class, u8 flags (1: 32-bit pointers), u8 version, then the
 * payload.
 */
#include "source/etw/decode.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Make a record of class number i of all tables; false if there is none. */
static bool pick(uint32_t i, struct etw_record *record)
{
	const struct etw_class *classes;
	uint32_t nclasses;

	for (uint32_t t = 0; (classes = etw_class_table(t, &nclasses, &record->guid)); t++) {
		if (i < nclasses) {
			record->opcode = (uint8_t)classes[i].key;
			record->id = classes[i].key;
			return true;
		}
		i -= nclasses;
	}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct etw_record record = {.pid = 1, .tid = 2};
	struct etw_decode *decode = NULL;
	static struct etw_decoded out;
	uint8_t *payload;

	if (n < 3 || !pick(data[0], &record) || etw_decode_new(&decode, NULL))
		return 0;
	payload = malloc(n - 3 ? n - 3 : 1);
	memcpy(payload, data + 3, n - 3);
	record.pointer_bytes = data[1] & 1 ? 4 : 8;
	record.version = data[2];
	record.payload = payload;
	record.payload_bytes = (uint32_t)(n - 3);
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
