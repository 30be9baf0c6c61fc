/*
 * TraceLogging: events that carry their own names and layout, in two extended items.
 *
 *	item 12, traits:    u16 size, provider's name with its NUL, then traits
 *	item 11, metadata:  u16 size, tag bytes up to one without bit 7, event's name with its NUL,
 *	                    fields
 *	field:              name with its NUL, u8 in; in & 0x80: u8 out; out & 0x80: tag bytes
 *	                    in & 0x60: 0x20 fixed count (u16 here), 0x40 u16 before the values,
 *	                    0x60 private encoding (u16 and so many bytes here)
 *	                    in & 0x1f: as enum _TDH_IN_TYPE; 24 = structure of (out & 0x7f) fields
 *
 * Source: TraceLoggingProvider.h of the Windows SDK; checked on real traces, but not 0x20, 0x60.
 */
#pragma once

#include "source/etw/schema.h"

struct etw_tracelogging {
	const char *provider;                /* borrowed from the record; "" = unknown */
	const char *name;
	bool cut;                            /* the metadata is cut or has an unknown field */
	uint32_t nfields;
	struct etw_schema_field fields[ETW_SCHEMA_MAX_FIELDS];
};

/* False for other records, and without a readable name. Texts are borrowed from the record. */
bool etw_tracelogging_read(const struct etw_record *record, struct etw_tracelogging *out);
