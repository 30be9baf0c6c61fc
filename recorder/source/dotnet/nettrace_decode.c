#include "source/dotnet/nettrace_decode.h"

#include "source/etw/render.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 3074u                     /* 1,024 UTF-16 units, and a slash */

struct nettrace_decode {
	struct etw_decode *known;
	char *text;                          /* the arena of struct etw_render */
	char name[NAME_BYTES], activity[ETW_GUID_TEXT];
	char provider[64];                   /* the last one that guid_of() was asked for */
	struct etw_guid guid;                /* its, if the tables have it */
	bool has_guid;
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
	struct etw_record record = {
		.pid = ETW_ID_UNKNOWN, .tid = ETW_ID_UNKNOWN, .header = ETW_MANIFEST,
		.pointer_bytes = (uint8_t)pointer_bytes, .id = (uint16_t)meta->event_id,
		.version = (uint16_t)meta->version, .payload = event->payload,
		.payload_bytes = event->payload_bytes,
	};

	if (*meta->name || meta->event_id > UINT16_MAX || !guid_of(d, meta->provider, &record.guid))
		return false;
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

static void put_fields(struct etw_render *r, const struct nettrace_event *event,
		       uint32_t pointer_bytes)
{
	const uint8_t *at = event->payload, *end = at + event->payload_bytes;
	uint32_t i;

	for (i = 0; at && i < event->meta->nfields; i++) {
		const struct nettrace_field *f = &event->meta->fields[i];
		struct etw_field field = {.name = f->name, .type = types[f->type],
					  .n = f->type == NETTRACE_DECIMAL ? 16 : 0};
		struct etw_value value = {0};

		at = etw_value_read(&field, pointer_bytes, at, end, &value);
		etw_render_field(r, f->name, &field, &value, pointer_bytes);
	}
}

/* As in an EventSource's manifest: the task, then the opcode that ends the name. */
static const char *name_of(struct nettrace_decode *d, const struct nettrace_meta *meta)
{
	static const char *const opcodes[] = {"Start", "Stop"};
	size_t n = strlen(meta->name), m, i;

	if (!n) {
		snprintf(d->name, sizeof(d->name), "EventID(%u)", meta->event_id);
		return d->name;
	}
	for (i = 0; i < 2; i++) {
		m = strlen(opcodes[i]);
		if (meta->opcode > 2 || n <= m || n + 2 > sizeof(d->name) ||
		    strcmp(meta->name + n - m, opcodes[i]) != 0 || strchr(meta->name, '/'))
			continue;
		memcpy(d->name, meta->name, n - m);
		d->name[n - m] = '/';
		memcpy(d->name + n - m + 1, opcodes[i], m + 1);
		return d->name;
	}
	return meta->name;
}

static void by_description(struct nettrace_decode *d, const struct nettrace_event *event,
			   uint32_t pointer_bytes, struct etw_decoded *out)
{
	struct etw_render r = {.fields = out->fields, .text = d->text};

	put_fields(&r, event, pointer_bytes);
	out->provider = event->meta->provider;
	out->name = name_of(d, event->meta);
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

	if (!by_class(d, event, pointer_bytes, out))
		by_description(d, event, pointer_bytes, out);
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
	if (process && threads && event->tid <= UINT32_MAX)
		out->thread = thread_add(threads, process, (uint32_t)event->tid);
}
