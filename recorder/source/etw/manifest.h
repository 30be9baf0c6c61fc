/*
 * Parsers of what a provider says about its events: EventSource manifests (XML) and
 * TRACE_EVENT_INFO.
 *
 * Both are events in the trace; both give a list of events with name and layout. A manifest has at
 * most ETW_MANIFEST_EVENTS and ETW_MANIFEST_FIELDS; the rest is left out (`cut`). Pure; any thread.
 *
 * Sources: [MS-EVEN6]-style instrumentation manifests as .NET's ManifestBuilder writes them
 * (System.Diagnostics.Tracing.EventSource); TRACE_EVENT_INFO and EVENT_PROPERTY_INFO of tdh.h; both
 * checked on a real trace.
 */
#pragma once

#include "source/etw/schema.h"

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
	bool cut;
	size_t nbytes;                       /* of memory */
	struct etw_schema_field *fields;     /* of all events; owned */
	char *texts;                         /* owned */
};

/*
 * Parse a manifest. A text without any event is refused with ERR_FORMAT.
 *
 * out      free with etw_manifest_free(); borrows nothing of xml
 * returns  0, ERR_FORMAT, ERR_MEMORY
 */
int etw_manifest_parse(const char *xml, size_t n, struct etw_manifest **out);

/*
 * Parse a TRACE_EVENT_INFO into a manifest of one event. guid and the event's id identify the
 * records that it describes: provider GUID and id, or for ETW_CLASSIC class GUID and opcode.
 *
 * returns  0; ERR_FORMAT: cut, or of a kind that describes itself (WPP, TraceLogging); ERR_MEMORY
 */
int etw_manifest_of_info(const uint8_t *info, size_t n, struct etw_guid *guid, uint8_t *header,
			 struct etw_manifest **out);

void etw_manifest_free(struct etw_manifest *manifest);       /* NULL allowed */

/* Find an event; NULL = none. */
const struct etw_manifest_event *etw_manifest_find(const struct etw_manifest *manifest, uint16_t id,
						   uint8_t version);
