/* Cells of the tables of events and counters. Any thread. */
#pragma once

#include "export/export.h"

/* Append the wall clock of a moment: "2026-01-02T03:04:05.678Z". */
void row_put_time(struct buf *out, const struct incident *in, uint64_t time_ns);

/* Append a CSV cell (RFC 4180) without a comma; quoted if need be; excel: never a formula. */
void row_put_cell(struct buf *out, const char *text, bool excel);

/* Append an event's fields, or else its value, as a compact JSON object. */
void row_put_payload(struct buf *out, const struct incident *in, const struct incident_event *e);

/* Split "Process:Working Set:java" into "Process:Working Set" and "java", which may be "". */
void row_split_counter(const char *name, size_t *counter_bytes, const char **instance);
