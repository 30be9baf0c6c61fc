/*
 * Start-stop activities: requests and the like, from pairs of events, and the thread time in them.
 *
 * Pairs are what rules with TriggerMSec measure (triggers/event_match.h): a start and a stop with
 * the same key. Those that are given come first; then each kind of start in the incident whose stop
 * follows from its name and is there, too: serve and serve%return of a program, Request/Start and
 * Request/Stop of an EventSource. What runtimes and the kernel tell of themselves is left out.
 *
 * An activity that starts in another, on the same thread or by an EventSource's path, is nested in
 * it. A thread is in an activity
 *
 *  - from its start on this thread to its stop, or until the next of the same kind starts there;
 *  - from an event with the activity's id on this thread, until one with another id;
 *  - while it executes a .NET task that was scheduled there.
 *
 * If another thread stops it, the starting thread has given it away at an unknown time: it is in it
 * until it first waits. What is left of an activity, in which no thread is and no nested one goes
 * on, is UNKNOWN_ASYNC. The views are PerfView's Thread Time (with Start-Stop Activities).
 *
 * Threads, processes and times are those of the incident from which they were found, which may be
 * filtered afterwards. One thread.
 */
#pragma once

#include "model/incident.h"

#define ACTIVITY_NONE UINT32_MAX
#define ACTIVITIES_MAX (1u << 18)            /* more are counted, and left out */

enum activity_time {
	SPENT_CPU, SPENT_BLOCKED, SPENT_DISK, SPENT_HARD_FAULT, SPENT_NETWORK, SPENT_READIED,
	SPENT_UNKNOWN, SPENT_ASYNC, SPENT_KINDS,
};

struct activity {
	const char *name, *text;             /* "Request"; what its start says, such as a URL */
	uint64_t t0_ns, t1_ns;
	uint32_t process, thread;            /* of its start; THREAD_NONE */
	uint32_t parent, depth;              /* ACTIVITY_NONE, 0 = it is in no other */
	bool ended;                          /* else t1_ns is where it was seen last, at most */
	/* By activities_measure(): thread time in it and in nested ones. */
	uint64_t spent_ns[SPENT_KINDS];
};

struct activity_span {
	uint64_t t0_ns, t1_ns;
	uint32_t thread, activity;
	bool to_first_wait;                  /* what comes after the first wait is not known */
};

struct activities {
	struct activity *items;              /* by start, parents before children */
	struct activity_span *spans;         /* by thread, then time; a thread's are disjoint */
	struct activity_span *gaps;          /* UNKNOWN_ASYNC, of thread THREAD_NONE */
	uint32_t n, nspans, ngaps, left_out;
	uint32_t *first;                     /* of each thread, its spans; nthreads + 1 */
	uint32_t nthreads;
};

/*
 * pairs    as StopOnEvent takes them; TriggerMSec may be missing
 * returns  0; ERR_USAGE for a pair that cannot be read; ERR_MEMORY. Without activities out->n is 0
 */
int activities_find(struct incident *in, char *const *pairs, uint32_t npairs,
		    struct activities *out, struct err *err);
void activities_free(struct activities *a);

/* The parts of samples in activities, in the order of samples; for points in time ns is 0. */
typedef int activity_part(void *ctx, const struct incident_sample *s, uint32_t activity,
			  uint64_t end_ns, uint64_t ns);

/* Sum up spent_ns and find the gaps. 0 or ERR_MEMORY. */
int activities_measure(const struct incident *in, struct activities *a, struct err *err);
/* Which kind of time a stack of thread time is. */
enum activity_time activity_time_of(const struct incident *in, uint32_t stack);
const char *activity_time_text(enum activity_time kind);     /* "BLOCKED_TIME" */
/* Call `put` for each part of a sample that is in an activity, and ACTIVITY_NONE for the rest. */
int activity_parts(const struct activities *a, const struct incident_sample *s, activity_part *put,
		   void *ctx);

/*
 * Put each process that has activities in this order: "(Activities)" in place of its threads, an
 * activity in each one it is nested in, its threads, their stacks; "(Non-Activities)" for the rest.
 * Gaps become samples of STREAM_OFF_CPU with the leaf UNKNOWN_ASYNC. 0 or ERR_MEMORY.
 */
int activities_group(struct incident *in, const struct activities *a, struct err *err);
