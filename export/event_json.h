/* What an event carries, as JSON. Any thread. */
#ifndef EXPORT_EVENT_JSON_H
#define EXPORT_EVENT_JSON_H

#include "model/incident.h"

#include "base/json.h"

/* An object of the event's fields; integers over 2^53 are strings: readers have doubles. */
void event_json_fields(struct json *j, const struct incident *in, const struct incident_event *e);

/* The field DurationMSec in ns; 0 when it has none. */
uint64_t event_duration_ns(const struct incident *in, const struct incident_event *e);

#endif
