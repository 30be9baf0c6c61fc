/*
 * What the files of the perf source share: perf_linux.c (its thread and its life), put_linux.c (a
 * record becomes an event).
 */
#pragma once

#include "source/perf/loader.h"
#include "source/perf/cpus_linux.h"
#include "source/perf/file_names_linux.h"
#include "source/perf/helpers.h"
#include "source/perf/managed_linux.h"
#include "source/perf/memory_linux.h"
#include "source/perf/python_linux.h"
#include "source/perf/state_linux.h"
#include "source/perf/time_linux.h"
#include "source/perf/walk_linux.h"
#include "source/probe/throw_linux.h"
#include "source/source.h"

#define TABLES_WAIT_NS (150 * NS_PER_MS) /* how long a sample waits for its unwind tables */

struct perf_source {
	struct source base;
	struct source_config cfg;
	struct perf_cpus cpus;               /* the rings of all CPUs */
	struct perf_state *state;
	uint64_t period_ns;
	uint64_t switched_ns, old_period_ns; /* samples before switched_ns weigh the old period */
	bool rate_due;                       /* EVENT_RATE is still to be put, after those */
	_Atomic uint64_t wanted;             /* freq_hz << 32 | stack_kb; 0 = no change */

	struct perf_python *python;          /* NULL = Python frames are not wanted */
	struct perf_unmaps unmaps;           /* the tracepoint's format */
	struct perf_memory *memory;          /* NULL = page faults are not recorded */
	struct perf_time *time;              /* NULL = context switches are not recorded */
	struct perf_files *files;            /* NULL = no event gives files by number */
	/* leaves of the stream event: the probe's number; NULL without probes */
	struct object *event_object;
	struct frame_ref event_frames[STACK_MAX_FRAMES];
	struct managed_thrown thrown;        /* of the last Java exception, and its fields */
	struct event_field thrown_fields[2];
	char event_name[PROBE_LABEL_BYTES];  /* the merge thread's */
	_Atomic bool stopping;
	bool rescan;                         /* side-band records were lost */
	bool filling;                        /* a ring is half full */
	struct helpers helpers;
	uint64_t next_check_ns, delivered_ns;
	uint64_t block_ns;                   /* time of the last one of the ring of heaps */
	struct busy *busy;                   /* NULL: expected samples are not known */

	struct perf_walker walker;           /* this source frees all but the state */

	_Atomic uint64_t events, lost, throttled, damaged;
};

/* Nothing for n = 0. */
void perf_put_lost(struct perf_source *s, enum loss_kind kind, uint64_t n, unsigned cpu,
		   uint64_t time_ns);
/* returns  false when the record is to stay in its ring for now */
bool perf_put_record(struct perf_source *s, const struct perf_ring *ring, uint64_t now_ns);
