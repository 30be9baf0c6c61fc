/*
 * Fields that PerfView computes, for rules and exports: names behind keys, and times in
 * milliseconds instead of ticks.
 *
 *	FileName, DirectoryName, KeyName   of ETW_NAME_KEY; a name in the event itself comes first
 *	ElapsedTimeMSec                    of ETW_SINCE and ETW_TICKS
 *	DiskServiceTimeMSec                of requests to a disk: since they were made or since the
 *	                                   disk ended the one before, whichever is later
 *
 * One thread at a time. Source: TraceEvent (KernelTraceEventParser), which computes the same.
 */
#pragma once

#include "source/etw/decode.h"
#include "source/etw/state.h"

#define ETW_DISKS_MAX 256u                   /* whose last request is known */

#define ETW_COMPUTED_MAX 3u

struct etw_computed {
	int64_t done_ticks[ETW_DISKS_MAX];   /* when it ended its last request */
	bool has_done[ETW_DISKS_MAX];
	char text[ETW_TEXT_MAX];             /* of the field that was added last */
};

/*
 * Add the fields to those of a decoded record. Take every record of a disk, in time order. The
 * fields are valid until the next call.
 */
void etw_computed_add(struct etw_computed *c, const struct etw_state *state, uint64_t frequency_hz,
		      const struct etw_record *record, struct etw_decoded *decoded);

/* List the names of the fields that are added to events of a class; returns how many. */
uint32_t etw_computed_names(const struct etw_class *class, const char *names[ETW_COMPUTED_MAX]);
