/*
 * The events that the HTML report lists, and all of them as columns, for report/events.js.
 *
 * event_list_pack(): a line of JSON, {"n":2, "tick_us":1, "page":65536, "from_ms":-5000.000,
 * "names":["event Windows Kernel/DiskIO/Read", ...], "whos":["sh (12)", ...]}, blanks up to a
 * multiple of 8 bytes, then little-endian columns: n doubles (values), n times 32 bits each of the
 * time since the event before in ticks, the number of the name, and that of the process.
 * event_list_pack_lines(): the texts of the fields, a line each, EVENT_PAGE_LINES to a page, so
 * that a reader unpacks only those that it shows.
 */
#pragma once

#include "export/packer.h"
#include "export/report_data.h"

#define EVENT_LIST_MAX 1000000u              /* around the trigger */
#define EVENT_PAGE_LINES 65536u

/* Whether the page lists it: no events that come for every thread, or every CPU and second. */
bool event_is_listed(const struct incident_event *e);

/* Append "provider/name", "sh (12)", "Size=4096, File=x"; scratch text, cleaned. */
void event_put_name(const struct incident_event *e, struct buf *out);
void event_put_who(const struct incident *in, const struct export_options *opt,
		   const struct incident_event *e, struct buf *out);
void event_put_fields(const struct incident *in, const struct incident_event *e, struct buf *out);

/* Those of [first, first + n) of the listed ones. 0 or ERR_MEMORY. */
int event_list_pack(const struct incident *in, const struct export_options *opt, uint32_t first,
		    uint32_t n, struct packer *p, struct err *err);
/* Their lines, a page for each of the elements "events-0", "events-1", ... 0 or ERR_MEMORY. */
int event_list_pack_lines(const struct incident *in, uint32_t first, uint32_t n, struct out *out,
			  struct err *err);
