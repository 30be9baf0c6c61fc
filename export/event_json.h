/* The fields of events as JSON. Any thread. */
#pragma once

#include "model/incident.h"

#include "base/json.h"

/*
 * The fields as one object. Integers over 2^53 are strings, because readers have doubles; so are
 * unsigned fields whose bit is set in hex_fields (addresses), as "0x7f00".
 */
void event_json_fields(struct json *j, const struct event_field *fields, uint32_t n,
		       uint64_t hex_fields);

/* The field DurationMSec, in ns; 0 when the event has none. */
uint64_t event_duration_ns(const struct incident *in, const struct incident_event *e);

/* Append an event's fields, or else its value, as a compact JSON object. */
void row_put_payload(struct buf *out, const struct incident *in, const struct incident_event *e);

/* Append the wall clock of a moment: "2026-01-02T03:04:05.678Z". */
void row_put_time(struct buf *out, const struct incident *in, uint64_t time_ns);
