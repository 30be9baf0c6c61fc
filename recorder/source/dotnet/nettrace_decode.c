#include "source/dotnet/nettrace_decode.h"

#include "base/bytes.h"
#include "source/etw/render.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nettrace_decode {
	struct etw_decode *known;
	char *text;                          /* the arena of struct etw_render */
	char activity[ETW_GUID_TEXT];
	char provider[64];                   /* the last one that guid_of() was asked for */
	struct etw_guid guid;                /* its, if the tables have it */
	bool has_guid;
	bool names_stay;                     /* of what was decoded last */
	struct etw_decoded decoded;
};

int nettrace_decode_new(struct nettrace_decode **out, struct err *err)
{
	struct nettrace_decode *d = calloc(1, sizeof(*d));
	int rc;

	if (d)
		d->text = malloc(ETW_RENDER_BYTES);
	if (!d || !d->text) {
		nettrace_decode_free(d);
		return err_memory(err, "for decoding events of .NET programs");
	}
	rc = etw_decode_new(&d->known, err);
	if (rc)
		nettrace_decode_free(d);
	else
		*out = d;
	return rc;
}

void nettrace_decode_free(struct nettrace_decode *d)
{
	if (!d)
		return;
	etw_decode_free(d->known);
	free(d->text);
	free(d);
}

/* ---- events of the runtime ------------------------------------------------------------------- */

/* The provider's GUID in the tables of classes. */
static bool search_guid(const char *provider, struct etw_guid *out)
{
	const struct etw_class *classes;
	uint32_t t, n;

	for (t = 0; (classes = etw_class_table(t, &n, out)) != NULL; t++)
		if (n && strncmp(classes->provider, "Microsoft-Windows-DotNETRuntime", 31) == 0 &&
		    strcmp(classes->provider, provider) == 0)
			return true;
	return false;
}

/* The same; most events are of one provider. */
static bool guid_of(struct nettrace_decode *d, const char *provider, struct etw_guid *out)
{
	if (strlen(provider) >= sizeof(d->provider))
		return search_guid(provider, out);
	if (strcmp(provider, d->provider) != 0) {
		snprintf(d->provider, sizeof(d->provider), "%s", provider);
		d->has_guid = search_guid(provider, &d->guid);
	}
	*out = d->guid;
	return d->has_guid;
}

static bool by_class(struct nettrace_decode *d, const struct nettrace_event *event,
		     uint32_t pointer_bytes, struct etw_decoded *out)
{
	const struct nettrace_meta *meta = event->meta;
	struct etw_guid guid;
	struct etw_record record;

	if (*meta->name || meta->event_id > UINT16_MAX || !guid_of(d, meta->provider, &guid))
		return false;
	record = (struct etw_record){
		.guid = guid, .pid = ETW_ID_UNKNOWN, .tid = ETW_ID_UNKNOWN, .header = ETW_MANIFEST,
		.pointer_bytes = (uint8_t)pointer_bytes, .id = (uint16_t)meta->event_id,
		.version = (uint16_t)meta->version, .payload = event->payload,
		.payload_bytes = event->payload_bytes,
	};
	etw_decode_event(d->known, &record, out);
	return true;
}

/* ---- events described by the stream ---------------------------------------------------------- */

static const uint8_t types[] = {
	[NETTRACE_BOOLEAN] = ETW_BOOL32, [NETTRACE_CHAR] = ETW_U16,
	[NETTRACE_I8] = ETW_I8,		 [NETTRACE_U8] = ETW_U8,
	[NETTRACE_I16] = ETW_I16,	 [NETTRACE_U16] = ETW_U16,
	[NETTRACE_I32] = ETW_I32,	 [NETTRACE_U32] = ETW_U32,
	[NETTRACE_I64] = ETW_I64,	 [NETTRACE_U64] = ETW_U64,
	[NETTRACE_F32] = ETW_F32,	 [NETTRACE_F64] = ETW_F64,
	[NETTRACE_DECIMAL] = ETW_BYTES,	 [NETTRACE_DATETIME] = ETW_FILETIME,
	[NETTRACE_GUID] = ETW_GUID,	 [NETTRACE_STRING] = ETW_UTF16Z,
};

/* Most fields are such. */
static const struct { uint8_t bytes, is_signed; } integers[NETTRACE_STRING + 1] = {
	[NETTRACE_I8] = {1, 1}, [NETTRACE_I16] = {2, 1}, [NETTRACE_I32] = {4, 1},
	[NETTRACE_I64] = {8, 1}, [NETTRACE_U8] = {1, 0}, [NETTRACE_U16] = {2, 0},
	[NETTRACE_U32] = {4, 0}, [NETTRACE_U64] = {8, 0},
};

static struct event_field integer(const struct nettrace_field *f, const uint8_t *at)
{
	const unsigned bytes = integers[f->type].bytes;
	struct event_field out = {.name = f->name, .type = FIELD_UINT, .v.u = le_sized(at, bytes)};

	if (integers[f->type].is_signed) {
		out.type = FIELD_INT;
		out.v.i = (int64_t)(out.v.u << (64 - 8 * bytes)) >> (64 - 8 * bytes);
	}
	return out;
}

/* No more fields than an event has, as a kind has no more (NETTRACE_FIELDS_MAX). */
static void put_fields(struct etw_render *r, const struct nettrace_event *event,
		       uint32_t pointer_bytes)
{
	const uint8_t *at = event->payload, *end = at + event->payload_bytes;
	uint32_t i;

	for (i = 0; at && i < event->meta->nfields; i++) {
		const struct nettrace_field *f = &event->meta->fields[i];

		if (integers[f->type].bytes && (size_t)(end - at) >= integers[f->type].bytes) {
			r->fields[r->nfields++] = integer(f, at);
			at += integers[f->type].bytes;
			continue;
		}
		struct etw_field field = {.name = f->name, .type = types[f->type],
					  .n = f->type == NETTRACE_DECIMAL ? 16 : 0};
		struct etw_value value = {0};

		at = etw_value_read(&field, pointer_bytes, at, end, &value);
		etw_render_field(r, f->name, &field, &value, pointer_bytes);
	}
}

static void by_description(struct nettrace_decode *d, const struct nettrace_event *event,
			   uint32_t pointer_bytes, struct etw_decoded *out)
{
	struct etw_render r = {.fields = out->fields, .text = d->text};

	put_fields(&r, event, pointer_bytes);
	out->provider = event->meta->provider;
	out->name = event->meta->event_name;
	out->class = NULL;
	out->cut = r.cut;
	out->nfields = r.nfields;
	out->hex = r.hex;
}

const struct etw_decoded *nettrace_decode_event(struct nettrace_decode *d,
						const struct nettrace_event *event,
						uint32_t pointer_bytes)
{
	struct etw_decoded *out = &d->decoded;

	d->names_stay = true;
	if (!by_class(d, event, pointer_bytes, out))
		by_description(d, event, pointer_bytes, out);
	else
		d->names_stay = out->class != NULL;
	if (event->activity && out->nfields < EVENT_MAX_FIELDS) {
		etw_guid_text(event->activity, d->activity);
		out->fields[out->nfields++] = (struct event_field){
			.name = "ActivityID", .type = FIELD_TEXT, .v.text = d->activity};
	}
	return out;
}

void nettrace_decode_queued(struct nettrace_decode *d, const struct dotnet_queued *queued,
			    uint32_t pointer_bytes, struct process *process,
			    struct processes *threads, struct event *out)
{
	const struct nettrace_event *event = &queued->event;

	*out = (struct event){
		.time_ns = queued->time_ns, .kind = EVENT_GENERIC, .stream = STREAM_EVENT,
		.stack = STACK_NONE, .process = process, .payload_bytes = event->payload_bytes,
		.cpu = event->cpu < CPU_NONE ? (uint16_t)event->cpu : CPU_NONE,
	};
	if (event->meta->event_id <= UINT16_MAX)
		out->flags = EVENT_FLAG_ID | event->meta->event_id << EVENT_ID_SHIFT;
	etw_decoded_fill(nettrace_decode_event(d, event, pointer_bytes), out);
	out->names_stay = d->names_stay;
	if (process && threads && event->tid <= UINT32_MAX)
		out->thread = thread_add(threads, process, (uint32_t)event->tid);
}
