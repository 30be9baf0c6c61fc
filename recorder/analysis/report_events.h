/* The tables of garbage collections and counters that `report` prints. */
#pragma once

#include "model/incident.h"

/*
 * The longest collections, from the runtime's GC/Start event to its GC/Stop; nothing when there are
 * none. A collection counts once, although .NET Framework 4 writes two starts.
 */
int report_collections(const struct incident *in, bool json, uint32_t top, struct buf *out,
		       struct err *err);

/* Each counter: value at the trigger, least, mean, most, and its course in 32 digits, 0 to 9. */
int report_counters(const struct incident *in, bool json, struct buf *out, struct err *err);
