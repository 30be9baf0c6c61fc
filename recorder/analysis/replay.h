/* The events of an incident once more, in the order in which they were first delivered. */
#pragma once

#include "model/event.h"
#include "model/incident.h"
#include "model/process.h"

/* The event is borrowed for the call. Returns 0 to go on. */
typedef int replay_each(void *ctx, const struct event *e, struct err *err);

/*
 * Give each event to `each`, with its process and thread.
 *
 * all      gets the incident's processes. One table for several incidents of one machine, the
 *          oldest first, keeps a process the same as long as the next one has it; others are freed
 *          then, so that a month of them does not fill the table
 * returns  0, what `each` returned, or ERR_MEMORY
 */
int replay_incident(const struct incident *in, struct processes *all, replay_each *each, void *ctx,
		    struct err *err);
