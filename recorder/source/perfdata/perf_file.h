/*
 * Files of `perf record`: what stands in them, and their records in time order.
 *
 *	0    "PERFILE2"
 *	8    u64 bytes of this header: 104; in a pipe's stream 16, and records follow at once
 *	16   u64 bytes of one entry of:
 *	24   attributes {u64 offset, bytes}: per event struct perf_event_attr, ids {offset, bytes}
 *	40   data {offset, bytes}: records; 0 bytes when perf was killed
 *	56   event types {offset, bytes}, not used any more
 *	72   4 x u64: a bit for each feature, whose {offset, bytes} follow the data in this order
 *
 * Between the kernel's records stand perf's own, from type 64 on. In a pipe's stream these bring
 * attributes, features and build ids. The kernel's come from one ring per CPU, each read in turn:
 * after FINISHED_ROUND nothing follows that is older than the newest record before the round before
 * it, so that far they are sorted.
 *
 * Source: tools/perf/Documentation/perf.data-file-format.txt, tools/perf/util/event.h, header.c and
 * ordered-events.c of the kernel. Portable; bytes are not trusted. One thread.
 */
#pragma once

#include "model/frame.h"
#include "source/perfdata/tracing.h"
#include "source/ring/perf_layout.h"
#include "symbol/bytes.h"

#include <stdatomic.h>

#define PERF_FILE_EVENTS_MAX 4096u
#define PERF_FILE_IDS_MAX (1u << 20)
#define PERF_FILE_PENDING_MAX (4u << 20)     /* records that wait to be sorted */

struct perf_file;

struct perf_file_event {
	struct perf_attr attr;
	char name[128];                      /* "cpu-clock", "sched:sched_switch" */
	const struct tracepoint *tracepoint; /* its fields; NULL = it has none, or not known */
	uint64_t nsamples, period_sum;       /* perf_file_survey(), as what is above */
};

struct perf_file_facts {
	bool pipe;
	bool cut;                            /* perf did not finish it, or its end is missing */
	char host[256], release[128], arch[64];
	uint64_t clock_ns, clock_wall_ns;    /* one moment on both clocks; 0 = not told */

	/* perf_file_survey(): */
	uint64_t first_ns, last_ns;          /* of records that have a time; 0 = none has one */
	uint64_t nrecords, nsamples;

	/* perf_file_run(), so far: */
	uint64_t damaged;
	uint64_t late;                       /* delivered out of order */
};

/* in and name are borrowed. ERR_FORMAT, ERR_UNSUPPORTED (byte order, compression), ERR_MEMORY. */
int perf_file_open(const struct bytes *in, const char *name, struct perf_file **out,
		   struct err *err);
void perf_file_close(struct perf_file *f);           /* NULL allowed */

/*
 * Read everything once, in the file's order: needed before perf_file_run(). Damage ends the reading
 * and is a fact; stopping ends it with ERR_STOPPED.
 */
int perf_file_survey(struct perf_file *f, const _Atomic bool *stopping, struct err *err);

/* Any result but 0 ends perf_file_run(), which returns it. event: which one it belongs to. */
typedef int perf_file_each(void *ctx, const struct perf_record *record, uint32_t event);
/* Hand over the records that parse, the oldest first; records without a time are in their place. */
int perf_file_run(struct perf_file *f, perf_file_each *each, void *ctx, struct err *err);

const struct perf_file_facts *perf_file_facts(const struct perf_file *f);
uint32_t perf_file_events(const struct perf_file *f);
const struct perf_file_event *perf_file_event(const struct perf_file *f, uint32_t event);
/* Set the build id of what is mapped by this path; false: it has none. */
bool perf_file_build_id(const struct perf_file *f, const char *path, struct object_key *key);
