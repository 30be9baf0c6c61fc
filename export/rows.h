/* The tables of events and counters: cells, and lines of CSV (RFC 4180, but LF ends a line). */
#pragma once

#include "export/sums.h"

/* Append the wall clock of a moment: "2026-01-02T03:04:05.678Z". */
void row_put_time(struct buf *out, const struct incident *in, uint64_t time_ns);

/* Append an event's fields, or else its value, as a compact JSON object. */
void row_put_payload(struct buf *out, const struct incident *in, const struct incident_event *e);

/* A line of CSV that is being written, and its last cell. */
struct csv {
	const struct incident *in;
	struct buf line, cell;
	struct path path;                    /* scratch */
	bool excel;                          /* quote cells that a spreadsheet would compute */
};

/* Append the cell to the line, quoted if need be, and `after`; the cell becomes empty. */
void csv_end_cell(struct csv *c, char after);
/* A cell with a name, cleaned. */
void csv_put_name(struct csv *c, const char *name);

/*
 * Write a line with these titles, then a line for each counter value, or for each other event: its
 * time, its ms from the window's start, and what put() appends.
 */
int csv_write(const struct incident *in, const struct export_options *opt, const char *titles,
	      bool counters, void (*put)(struct csv *c, const struct incident_event *e),
	      struct out *out, struct err *err);
