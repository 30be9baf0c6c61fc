/*
 * Events with stacks as samples, for views of the metrics event and alloc.
 *
 * Sources that sample events themselves (probes, EventPipe) put a sample beside the event. Those of
 * Windows traces have only the event, with its stack: here it becomes such a sample, of
 * STREAM_EVENT, whose leaf is "event!NAME" or "event!NAME TYPE"; GC/AllocationTick also one of
 * STREAM_ALLOC, in bytes, whose leaf is "event!LargeObject" if it is one, as in PerfView; where its
 * object was followed, its sample of STREAM_HEAP gets the same leaf. Those of memory: reserved.h;
 * of disks and files: io_samples.h. An event that has its sample already gets no second one, and
 * pictures of threads (provider Recorder) are no events of a program.
 */
#pragma once

#include "base/table.h"
#include "model/incident.h"

/* ERR_MEMORY. */
int event_samples_add(struct incident *in, struct err *err);

/* List the samples of events in an empty table, of their indices; 0 or ERR_MEMORY. */
int event_samples_list(const struct incident *in, struct table *out);
/* The sample beside an event, by time and thread: its index, or TABLE_NONE. */
uint32_t event_sample_of(const struct incident *in, const struct table *samples,
			 const struct incident_event *e);
