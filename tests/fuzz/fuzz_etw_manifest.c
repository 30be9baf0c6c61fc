/*
 * Manifests and schemas: u8 kind (0 manifest, 1 TRACE_EVENT_INFO), u16 its size, its bytes, then a
 * payload, which is read as each of its events.
 */
#include "source/etw/manifest.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static uint8_t *copy(const uint8_t *data, size_t n)
{
	uint8_t *bytes = malloc(n ? n : 1);

	if (n)
		memcpy(bytes, data, n);
	return bytes;
}

static void read_all(const struct etw_manifest *manifest, const uint8_t *payload, size_t n)
{
	static char text[ETW_RENDER_BYTES];
	struct event_field fields[EVENT_MAX_FIELDS];
	struct etw_record record = {.payload = payload, .payload_bytes = (uint32_t)n,
				    .pointer_bytes = 8};

	for (uint32_t i = 0; i < manifest->nevents && i < 16; i++) {
		const struct etw_manifest_event *event = &manifest->events[i];
		struct etw_render r = {.fields = fields, .text = text};

		if (!etw_manifest_find(manifest, event->id, event->version))
			abort();
		etw_schema_read(&event->schema, &record, &r);
		if (r.used > ETW_RENDER_BYTES || r.nfields > EVENT_MAX_FIELDS)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct etw_manifest *manifest = NULL;
	struct etw_texts texts;
	struct etw_guid guid;
	uint8_t header, *text, *payload;
	size_t nbytes;
	int rc;

	if (n < 3 || etw_texts_init(&texts))
		return 0;
	nbytes = data[1] | (size_t)data[2] << 8;
	if (nbytes > n - 3)
		nbytes = n - 3;
	text = copy(data + 3, nbytes);
	payload = copy(data + 3 + nbytes, n - 3 - nbytes);
	rc = data[0] & 1 ? etw_manifest_of_info(text, nbytes, &texts, &guid, &header, &manifest)
			 : etw_manifest_parse((const char *)text, nbytes, &texts, &manifest);
	if (!rc)
		read_all(manifest, payload, n - 3 - nbytes);
	etw_manifest_free(manifest);
	etw_texts_free(&texts);
	free(payload);
	free(text);
	return 0;
}
