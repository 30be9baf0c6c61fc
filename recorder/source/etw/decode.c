#include "source/etw/decode.h"

#include "base/array.h"
#include "source/etw/manifest_store.h"
#include "source/etw/tracelogging.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEM_RELATED 1u

struct etw_decode {
	struct etw_manifest_store store;
	struct etw_tracelogging logging;
	struct etw_class_memo classes;
	char provider[ETW_GUID_TEXT], name[32];      /* of unknown events */
	char activity[ETW_GUID_TEXT], related[ETW_GUID_TEXT];
	char *text;                          /* the arena of struct etw_render */
};

int etw_decode_new(struct etw_decode **out, struct err *err)
{
	struct etw_decode *d = calloc(1, sizeof(*d));

	if (d)
		d->text = malloc(ETW_RENDER_BYTES);
	if (!d || !d->text || etw_manifest_store_init(&d->store)) {
		etw_decode_free(d);
		return err_memory(err, "for decoding events of Windows");
	}
	*out = d;
	return 0;
}

void etw_decode_free(struct etw_decode *d)
{
	if (!d)
		return;
	etw_manifest_store_free(&d->store);
	free(d->text);
	free(d);
}

void etw_decode_learn(struct etw_decode *d, const struct etw_record *record)
{
	etw_manifest_store_learn(&d->store, record);
}

void etw_decode_learned(const struct etw_decode *d, struct etw_learned *out)
{
	*out = d->store.counts;
	out->nbytes = etw_manifest_store_bytes(&d->store);
}

/* ---- kinds of descriptions ------------------------------------------------------------------- */

/* A text of the record, made safe to print. */
static const char *safe(struct etw_render *r, const char *text)
{
	etw_render_begin(r);
	etw_render_utf8(r, (const uint8_t *)text, strlen(text));
	return etw_render_end(r);
}

static void by_tracelogging(struct etw_decode *d, const struct etw_record *record,
			    struct etw_render *r, struct etw_decoded *out)
{
	struct etw_schema schema = {d->logging.fields, d->logging.nfields};

	if (*d->logging.provider)
		out->provider = safe(r, d->logging.provider);
	if (*d->logging.name)
		out->name = safe(r, d->logging.name);
	for (uint32_t i = 0; i < d->logging.nfields; i++)
		d->logging.fields[i].field.name = safe(r, d->logging.fields[i].field.name);
	etw_schema_read(&schema, record, r);
	r->cut |= d->logging.cut;
}

static void by_class(struct etw_decode *d, const struct etw_record *record,
		     struct etw_render *r, struct etw_decoded *out)
{
	const struct etw_manifest_event *event = NULL;
	struct etw_value values[ETW_CLASS_MAX_FIELDS];
	const struct etw_class *class = out->class;
	uint32_t n;

	out->provider = class->provider;
	out->name = class->name;
	if (!class->nfields)                 /* the trace may have the layout */
		event = etw_manifest_store_find(&d->store, record, &(const char *){NULL});
	if (event)
		etw_schema_read(&event->schema, record, r);
	n = etw_class_read(class, record, values, ETW_CLASS_MAX_FIELDS);
	for (uint32_t i = 0; i < n; i++)
		if (class->fields[i].name)
			etw_render_field(r, class->fields[i].name, &class->fields[i], &values[i],
					 record->pointer_bytes);
}

static bool by_manifest(struct etw_decode *d, const struct etw_record *record,
			struct etw_render *r, struct etw_decoded *out)
{
	const struct etw_manifest_event *event =
		etw_manifest_store_find(&d->store, record, &out->provider);

	if (!event)
		return false;
	out->name = event->name;
	etw_schema_read(&event->schema, record, r);
	return true;
}

/* A piece of a manifest is an event itself. */
static bool by_piece(const struct etw_record *record, struct etw_render *r, struct etw_decoded *out)
{
	static const struct etw_schema_field piece[] = {
		{.field = {.name = "Format", .type = ETW_U8}},
		{.field = {.name = "MajorVersion", .type = ETW_U8}},
		{.field = {.name = "MinorVersion", .type = ETW_U8}},
		{.field = {.name = "Magic", .type = ETW_U8}},
		{.field = {.name = "TotalChunks", .type = ETW_U16}},
		{.field = {.name = "ChunkNumber", .type = ETW_U16}},
	};
	static const struct etw_schema schema = {piece, COUNT_OF(piece)};

	if (record->header != ETW_MANIFEST || record->id != ETW_ID_MANIFEST)
		return false;
	out->name = "ManifestData";
	etw_schema_read(&schema, record, r);
	return true;
}

/* Nothing describes the event: numbers for provider and name, or the provider's name if known. */
static void by_numbers(struct etw_decode *d, const struct etw_record *record,
		       struct etw_decoded *out)
{
	out->provider = etw_class_provider(&record->guid);
	if (!out->provider)
		out->provider = etw_manifest_store_provider(&d->store, &record->guid, record->pid);
	if (!out->provider) {
		etw_guid_text(record->guid.bytes, d->provider);
		out->provider = d->provider;
	}
	snprintf(d->name, sizeof(d->name), "%s(%u)",
		 record->header == ETW_CLASSIC	  ? "Opcode"
		 : record->header == ETW_MANIFEST ? "EventID"
						  : "Message",
		 record->header == ETW_CLASSIC ? record->opcode : record->id);
	out->name = d->name;
}

static void put_activity(const char *name, const uint8_t guid[16], char text[ETW_GUID_TEXT],
			 struct etw_decoded *out)
{
	static const uint8_t none[16];

	if (memcmp(guid, none, sizeof(none)) == 0 || out->nfields == EVENT_MAX_FIELDS)
		return;
	etw_guid_text(guid, text);
	out->fields[out->nfields++] = (struct event_field){
		.name = name, .type = FIELD_TEXT, .v.text = text};
}

static void put_activities(struct etw_decode *d, const struct etw_record *record,
			   struct etw_decoded *out)
{
	uint32_t i;

	put_activity("ActivityID", record->activity.bytes, d->activity, out);
	for (i = 0; i < record->nitems; i++)
		if (record->items[i].type == ITEM_RELATED && record->items[i].nbytes == 16)
			put_activity("RelatedActivityID", record->items[i].bytes, d->related, out);
}

void etw_decode_event(struct etw_decode *d, const struct etw_record *record,
		      struct etw_decoded *out)
{
	struct etw_render r = {.fields = out->fields, .text = d->text};

	out->class = etw_class_recall(&d->classes, record);
	if (out->class) {
		by_class(d, record, &r, out);
	} else {
		by_numbers(d, record, out);
		if (record->nitems && etw_tracelogging_read(record, &d->logging))
			by_tracelogging(d, record, &r, out);
		else if (!by_piece(record, &r, out))
			by_manifest(d, record, &r, out);
	}
	out->nfields = r.nfields;
	out->hex = r.hex;
	out->cut = r.cut;
	if (!out->class)
		put_activities(d, record, out);
}
