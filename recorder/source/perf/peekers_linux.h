/*
 * Peekers: one thread per CPU that reads what a sampled thread is in at the moment of the sample
 * (managed/python/peek.h).
 *
 * The sampling interrupt wakes the peeker of its CPU, which runs there before the sampled thread
 * runs on: it is pinned to the CPU and SCHED_FIFO 2. So what it reads is as of the sample. The lag,
 * from the sample's time to the beginning of the read, tells whether that was so; what was read
 * later is dropped. Without the right to SCHED_FIFO it is nice -20, and half the lag is allowed.
 *
 * A peeker follows the sampler's ring with a position and a mapping of its own. Its results wait in
 * a ring of its own, for one reader. Where the kernel has BPF, only samples of the processes that
 * are peeked at wake it (program_linux.h). Elsewhere each sample does, and nobody else may poll the
 * ring then: perf's poll() hands a wake-up to one poller only.
 *
 * A read can hang for ever (a page in a file whose server is gone). Such a peeker is abandoned
 * after a second and another one takes its place; the process is never peeked at again. After
 * PEEKERS_STUCK_MAX of these there is none any more.
 *
 * Threads: the source's thread only, unless stated otherwise.
 */
#pragma once

#include "base/log.h"
#include "base/os.h"
#include "managed/python/peek.h"
#include "source/ring/perf_ring_linux.h"

#define PEEK_LAG_NS (NS_PER_MS / 5)
#define PEEK_LAG_NICE_NS (NS_PER_MS / 10)
#define PEEKERS_STUCK_NS NS_PER_SEC
#define PEEKERS_STUCK_MAX 4u
#define PEEK_TARGETS 1024u

struct perf_peekers;
struct perf_program;

/*
 * program   at the samplers; NULL = none. Borrowed, as the next
 * wake      of the source's thread, when a ring is a quarter full
 */
int perf_peekers_new(const struct perf_program *program, struct os_wake *wake, struct log *log,
		     struct perf_peekers **out, struct err *err);
void perf_peekers_free(struct perf_peekers *p);      /* NULL allowed */

/* Peek at a process from now on. serial and pid of the target are set. false: no room */
bool perf_peekers_add(struct perf_peekers *p, const struct python_target *target);
/* Do only samples of these processes wake peekers? false: each sample must (perf_ask.peeked). */
bool perf_peekers_choose(const struct perf_peekers *p);
void perf_peekers_remove(struct perf_peekers *p, uint32_t pid, uint64_t now_ns);

/* Let the peeker of the ring's CPU follow this ring, or end: ring NULL. */
void perf_peekers_follow(struct perf_peekers *p, unsigned cpu, const struct perf_ring *ring);

/* Has the ring's peeker passed the record at a position of its ring? Also when there is none. */
bool perf_peekers_passed(const struct perf_peekers *p, unsigned cpu, uint64_t position);
/*
 * What was read for the record at this position. Older results are dropped; this one stays.
 * returns  false: nothing
 */
bool perf_peekers_get(struct perf_peekers *p, unsigned cpu, uint64_t position,
		      struct python_peek *out);

/* Call about once a second. */
void perf_peekers_look(struct perf_peekers *p, uint64_t now_ns);

struct perf_peeker_counts {                  /* of all so far */
	uint64_t peeks, ns, calls;
	uint32_t running, abandoned;
	bool fifo;
};
void perf_peekers_count(const struct perf_peekers *p, struct perf_peeker_counts *out); /* any */
