/*
 * Layouts that come with the trace: TraceLogging, EventSource manifests, TRACE_EVENT_INFO.
 *
 * All three become a list of struct etw_schema_field, by which one reader walks a payload.
 * Schemas are not trusted: the payload and a budget of steps bound counts and lengths, a depth
 * bounds structures.
 */
#pragma once

#include "source/etw/render.h"

#define ETW_SCHEMA_MAX_FIELDS 128u

enum etw_by {
	ETW_BY_NONE,                         /* one value; its type gives the length */
	ETW_BY_NUMBER,                       /* a number in the schema */
	ETW_BY_FIELD,                        /* the value of an earlier field, by index */
	ETW_BY_PREFIX,                       /* a u16 before the values in the payload */
};

struct etw_schema_field {
	struct etw_field field;              /* name: borrowed from the schema's owner */
	uint8_t count_by, length_by;         /* enum etw_by; the length is in characters */
	uint16_t count, length;
	uint16_t nmembers;                   /* a structure of the next fields; 0 = none */
};

struct etw_schema {
	const struct etw_schema_field *fields;
	uint32_t nfields;
};

/* How to show a value, besides its type. */
enum etw_shown {
	ETW_SHOWN_PLAIN,
	ETW_SHOWN_BOOL,
	ETW_SHOWN_HEX,
	ETW_SHOWN_PORT,
	ETW_SHOWN_IP4,
	ETW_SHOWN_SOCKET,
};

/*
 * The type of a number of enum _TDH_IN_TYPE (tdh.h), which TraceLogging uses too. ETW_TYPES for an
 * unknown number: nothing behind such a field can be read.
 */
uint8_t etw_schema_type(uint32_t in_type, enum etw_shown shown);

/* Read a payload into event fields, up to a field that does not fit; then r->cut is set. */
void etw_schema_read(const struct etw_schema *schema, const struct etw_record *record,
		     struct etw_render *r);
