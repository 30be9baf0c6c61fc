/*
 * Parsers of what a provider says about its events: EventSource manifests (XML) and
 * TRACE_EVENT_INFO.
 *
 * Both are events in the trace; both give a list of events with name and layout. A manifest has at
 * most ETW_MANIFEST_EVENTS and ETW_MANIFEST_FIELDS; the rest is left out (`cut`). Any thread.
 *
 * Sources: [MS-EVEN6]-style instrumentation manifests as .NET's ManifestBuilder writes them
 * (System.Diagnostics.Tracing.EventSource); TRACE_EVENT_INFO and EVENT_PROPERTY_INFO of tdh.h; both
 * checked on a real trace.
 */
#pragma once

#include "base/buf.h"
#include "source/etw/schema.h"
#include "source/etw/texts.h"

#define ETW_MANIFEST_MAX_BYTES (4u << 20)
#define ETW_MANIFEST_EVENTS 4096u
#define ETW_MANIFEST_FIELDS 16384u

struct etw_manifest_event {
	uint16_t id;
	uint8_t version;
	const char *name;                    /* "Tracing/Start" */
	struct etw_schema schema;
};

struct etw_manifest {
	const char *provider;                /* "" = unknown */
	struct etw_manifest_event *events;   /* sorted by id, version */
	uint32_t nevents;
	struct etw_schema_field *fields;     /* of all events */
	uint32_t nfields;
	bool cut;
};

/*
 * Parse a manifest. A text without any event is refused with ERR_FORMAT.
 *
 * texts    keeps the names; must outlive the manifest
 * out      free with etw_manifest_free(); borrows nothing of xml
 * returns  0, ERR_FORMAT, ERR_MEMORY
 */
int etw_manifest_parse(const char *xml, size_t n, struct etw_texts *texts,
		       struct etw_manifest **out);

/*
 * Parse a TRACE_EVENT_INFO into a manifest of one event. guid and the event's id identify the
 * records that it describes: provider GUID and id, or for ETW_CLASSIC class GUID and opcode.
 *
 * returns  0; ERR_FORMAT: cut, or of a kind that describes itself (WPP, TraceLogging); ERR_MEMORY
 */
int etw_manifest_of_info(const uint8_t *info, size_t n, struct etw_texts *texts,
			 struct etw_guid *guid, uint8_t *header, struct etw_manifest **out);

void etw_manifest_free(struct etw_manifest *manifest);       /* NULL allowed */
size_t etw_manifest_bytes(const struct etw_manifest *manifest);      /* without its texts */

/* Find an event; NULL = none. */
const struct etw_manifest_event *etw_manifest_find(const struct etw_manifest *manifest, uint16_t id,
						   uint8_t version);

/* Keep a text and empty its buffer; "" and *rc = ERR_MEMORY when it cannot be kept. */
const char *etw_manifest_text(struct etw_texts *texts, struct buf *text, int *rc);
/*
 * Append "Task/Opcode" as PerfView writes it: without the opcode "win:Info", without the prefix
 * "win:", and without the trailing blanks of message tables. An empty task: "EventID(n)".
 */
void etw_manifest_event_name(struct buf *out, const char *task, const char *opcode, uint16_t id);
