/* What report prints of an incident's events: garbage collections and counters. */
#ifndef REPORT_EVENTS_H
#define REPORT_EVENTS_H

#include "model/incident.h"

/*
 * The longest collections, from start to stop, as the runtime's GC/Start and GC/Stop events say; each
 * once, though .NET Framework 4 writes two starts. Nothing when there are none.
 */
int report_collections(const struct incident *in, bool json, uint32_t top, struct buf *out,
		       struct err *err);

/* Each counter: at the trigger, least, mean, most, and its course in 32 parts, 0 least to 9 most. */
int report_counters(const struct incident *in, bool json, struct buf *out, struct err *err);

#endif
