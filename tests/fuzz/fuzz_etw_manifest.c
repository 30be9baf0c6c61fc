/*
 * Manifests and schemas: u8 kind, u16 its size, its bytes, then a payload, which is read as each of
 * its events. Bits of the kind: 1 TRACE_EVENT_INFO, else a manifest; 2 a second process writes it,
 * too; 4, 8 in as many pieces more; 16 one piece is missing. It is read as it is, and learned from
 * records that carry it.
 */
#include "source/etw/manifest_store.h"

#include "tests/support/etw_bytes.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_HEAD 8u
#define SCHEMA_PROVIDER 0xc1                 /* KernelTraceControl, MetaData/EventInfo */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static uint8_t *copy(const uint8_t *data, size_t n)
{
	uint8_t *bytes = malloc(n ? n : 1);

	if (n)
		memcpy(bytes, data, n);
	return bytes;
}

/* ---- from records ---------------------------------------------------------------------------- */

static struct etw_decoded out;

static void learn_pieces(struct etw_decode *d, uint8_t kind, struct etw_record *r,
			 const uint8_t *text, size_t n)
{
	uint32_t npieces = 1 + (kind >> 2 & 3), left_out = kind & 16 ? npieces / 2 : npieces, i;
	uint8_t *piece = malloc(PIECE_HEAD + n);

	r->header = ETW_MANIFEST;
	r->id = ETW_ID_MANIFEST;
	r->payload = piece;
	for (i = 0; i < npieces; i++) {
		size_t from = n * i / npieces, to = n * (i + 1) / npieces;
		const uint8_t head[PIECE_HEAD] = {1, 1, 0, 0x5b, (uint8_t)npieces, 0, (uint8_t)i};

		memcpy(piece, head, sizeof(head));
		memcpy(piece + sizeof(head), text + from, to - from);
		r->payload_bytes = (uint32_t)(sizeof(head) + to - from);
		if (i != left_out)
			etw_decode_learn(d, r);
		etw_decode_event(d, r, &out);
	}
	free(piece);
}

/* A record of each event that they describe is decoded by their description. */
static void decode_all(struct etw_decode *d, const struct etw_manifest *manifest,
		       const struct etw_record *like)
{
	struct etw_record r = *like;
	uint32_t i;

	for (i = 0; manifest && i < manifest->nevents && i < 16; i++) {
		const struct etw_manifest_event *event = &manifest->events[i];

		event = etw_manifest_find(manifest, event->id, event->version);
		r.id = event->id;
		r.opcode = (uint8_t)event->id;
		r.version = event->version;
		etw_decode_event(d, &r, &out);
		if (r.id != ETW_ID_MANIFEST && !out.class && strcmp(out.name, event->name) != 0)
			abort();
	}
}

/* manifest: what the same bytes are by themselves; NULL = unreadable */
static void learn(uint8_t kind, const uint8_t *text, size_t n, const struct etw_manifest *manifest,
		  const struct etw_guid *info_guid, uint8_t info_header)
{
	static const uint8_t related[16] = {1};
	struct etw_record r = {.pid = 7, .pointer_bytes = 8}, event = {.pid = 9,
			       .activity = {{2}}, .nitems = 1, .items = {{1, 16, related}}};
	struct etw_decode *d = NULL;
	struct etw_learned learned;

	if (etw_decode_new(&d, NULL))
		abort();
	for (int twice = 0; twice <= (kind >> 1 & 1); twice++, r.pid++) {
		if (!(kind & 1)) {
			r.guid.bytes[0] = 7;
			learn_pieces(d, kind, &r, text, n);
		} else if (etw_pick(SCHEMA_PROVIDER, 32, &r)) {
			r.header = ETW_CLASSIC;
			r.payload = text;
			r.payload_bytes = (uint32_t)n;
			etw_decode_learn(d, &r);
		}
	}
	event.guid = kind & 1 ? *info_guid : r.guid;
	event.header = kind & 1 ? info_header : ETW_MANIFEST;
	etw_decode_event(d, &event, &out);
	etw_decode_learned(d, &learned);
	/* A piece that is missing, or empty, is no manifest. */
	if (!(kind & 16) && n > 3)
		decode_all(d, manifest, &event);
	etw_decode_free(d);
}

/* ---- by themselves --------------------------------------------------------------------------- */

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
	struct etw_guid guid = {{0}};
	uint8_t header = 0, *text, *payload;
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
	learn(data[0], text, nbytes, rc ? NULL : manifest, &guid, header);
	etw_manifest_free(manifest);
	etw_texts_free(&texts);
	free(payload);
	free(text);
	return 0;
}
