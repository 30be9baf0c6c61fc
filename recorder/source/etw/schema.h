/*
 * Layouts that come with the trace: of TraceLogging, of EventSource manifests, of TRACE_EVENT_INFO.
 *
 * All three become a list of struct etw_schema_field, and one reader walks a payload by it. Lists come
 * from outside: counts and lengths that another field gives are bounded by the payload and by a budget
 * of steps, structures by a depth.
 */
#ifndef SOURCE_ETW_SCHEMA_H
#define SOURCE_ETW_SCHEMA_H

#include "source/etw/render.h"

#define ETW_SCHEMA_MAX_FIELDS 128u

enum etw_by {
	ETW_BY_NONE,                         /* one value; its type says how long */
	ETW_BY_NUMBER,                       /* the number stands in the schema */
	ETW_BY_FIELD,                        /* an earlier field holds it: its index */
	ETW_BY_PREFIX,                       /* a u16 stands before it in the payload */
};

struct etw_schema_field {
	struct etw_field field;              /* its name is borrowed from the schema's owner */
	uint8_t count_by, length_by;         /* enum etw_by; length: BY_NUMBER or BY_FIELD, in characters */
	uint16_t count, length;
	uint16_t nmembers;                   /* a structure of so many fields, which follow; else 0 */
};

struct etw_schema {
	const struct etw_schema_field *fields;
	uint32_t nfields;
};

/* How a value is meant to be shown, where its type alone does not say. */
enum etw_shown {
	ETW_SHOWN_PLAIN, ETW_SHOWN_BOOL, ETW_SHOWN_HEX, ETW_SHOWN_PORT, ETW_SHOWN_IP4, ETW_SHOWN_SOCKET,
	ETW_SHOWN_TIME,
};

/*
 * The type of a value by its number of enum _TDH_IN_TYPE (tdh.h), which TraceLogging uses too;
 * ETW_TYPES for a number that is not known: nothing behind it can be read.
 */
uint8_t etw_schema_type(uint32_t in_type, enum etw_shown shown);

/*
 * Read a payload by a schema into event fields. A field that does not fit ends it; *cut of the render
 * says whether all were read.
 */
void etw_schema_read(const struct etw_schema *schema, const struct etw_record *record, struct etw_render *r);

#endif
