/*
 * Events as text, one a line; as JSON objects; as CSV (RFC 4180); or as the XML that PerfView's
 * DumpEventsAsXml writes:
 *
 *	<Event MSec=   "295.1727" PID=  "3432" PName=    "test" TID=  "3572" EventName="Image/Load"
 *	 ProviderName="Windows Kernel" ImageBase="0x00400000" ImageChecksum="30,519,123"/>
 *
 * Values are padded before their quote, whole numbers have commas, addresses eight hex digits or
 * more. Source: TraceEvent.Prefix() and XmlAttrib() of PerfView.
 *
 * One thread.
 */
#pragma once

#include "listing/select.h"

enum event_format { EVENTS_TEXT, EVENTS_JSON, EVENTS_CSV, EVENTS_XML };

struct event_lines {
	struct event_select *select;
	enum event_format format;
	struct buf *out;
	size_t name_at, name_end;            /* in a line of text that was put: its name */
	struct buf plain;                    /* the text line, for --text */
	/* Of the event at hand: the fields that are shown besides columns of CSV. */
	struct event_field chosen[EVENT_MAX_FIELDS];
	const struct event_field *fields;
	uint32_t nfields;
	uint64_t hex_fields;
};

/* --format and --json; ERR_USAGE for one that is not there. */
int event_lines_format(const struct options *o, enum event_format *out, struct err *err);
void event_lines_free(struct event_lines *l);

/* Append what comes before the first event and after the last. */
void event_lines_begin(struct event_lines *l);
void event_lines_end(struct event_lines *l);
/*
 * Append an event. returns false: its text is not wanted, and nothing was appended.
 *
 * ms  since the trace's start
 */
bool event_lines_put(struct event_lines *l, const struct event *e,
		     const struct source_origin *origin, double ms);

/* uprobe:/path:function, PROVIDER/NAME */
void event_name_put(struct buf *out, const char *provider, const char *name);
