/*
 * The perf rings of all CPUs as one queue: each online CPU has a sampler ring, a side-band ring,
 * two of page faults and of unmapping, and the rings of its probes.
 *
 * Each ring is in time order; the rings are not ordered among each other. perf_cpus_refresh() notes
 * what they hold by now, and perf_cpus_oldest() returns the ring with the oldest record. CPUs that
 * come and go are followed. Only the source's thread may call these functions, except
 * perf_cpus_wake().
 */
#pragma once

#include "model/capture.h"
#include "base/log.h"
#include "source/ring/perf_ring_linux.h"
#include "source/perf/program_linux.h"
#include "source/probe/probes_linux.h"

struct perf_cpus {
	struct perf_ask ask;                 /* what samplers were opened with */
	uint32_t fault_period;               /* of page faults; 0 = none are recorded */
	uint32_t unmap_id;                   /* of the tracepoint of unmapping; 0 = not recorded */
	struct perf_program *program;        /* NULL = the kernel takes none */
	struct probes *probes;               /* owned; NULL = no rule asks for any */
	struct perf_cpu *all;                /* by CPU number */
	unsigned n;
	struct os_file *online;              /* the list of CPUs that are; NULL = not opened */
	struct perf_ring **open;             /* the rings that are open; side-band before sampler */
	unsigned nopen;
	struct perf_turn {
		uint64_t time_ns;            /* of its oldest record */
		unsigned rank;               /* among equal times; side-band is 0 */
		struct perf_ring *ring;
	} *turns;                            /* a heap of those that have a record; room for all */
	unsigned nturns;
	int watch;            /* epoll(7): the wake event, rings without a peeker; -1 = none */
	unsigned nwatched;
	struct epoll_event *ready;           /* what it has found; room for all */
	struct os_wake *wake;
	struct perf_ring heap;               /* of programs; nobody wakes for it */
};

/* What recording asks of each CPU's events, on a machine with so many. */
struct perf_ask perf_cpus_ask(const struct capture *c, unsigned ncpus);

/*
 * Open all rings of the online CPUs, disabled. Clears build_ids and ksymbols in c->ask where the
 * kernel does not have them.
 *
 * probes   which to open; ncpus is set here
 * faults   one page fault in so many is recorded; 0 = none
 * unmaps   the tracepoint that tells what is unmapped; 0 = none. Where the kernel refuses, neither
 *          is recorded, and c->fault_period or c->unmap_id is 0
 * returns  0; ERR_UNSUPPORTED when no CPU could be opened; else the error of the CPU that failed.
 *          After a failure nothing is open
 */
int perf_cpus_open(struct perf_cpus *c, const struct perf_ask *ask,
		   const struct probes_config *probes, uint32_t faults, uint32_t unmaps,
		   struct err *err);
void perf_cpus_close(struct perf_cpus *c);           /* {0} allowed */

/* Switch side-band rings on or off, or else all others. */
void perf_cpus_enable(struct perf_cpus *c, bool sideband, bool on);
/*
 * Close the rings of CPUs that went offline, once all in them is read; open and enable those of
 * CPUs that came online, because events stay off when a CPU returns.
 *
 * returns  true when a CPU came online: processes that started on it before now were not seen
 */
bool perf_cpus_follow(struct perf_cpus *c, struct log *log);

/* Wait for records. returns  false when the time is over, or after perf_cpus_wake() */
bool perf_cpus_wait(struct perf_cpus *c, uint64_t timeout_ns);
void perf_cpus_wake(struct perf_cpus *c);            /* any thread */

/* Read how far the kernel has written each ring. returns  whether one is half full */
bool perf_cpus_refresh(struct perf_cpus *c);
/*
 * The ring with the oldest record, which is ring->record until perf_ring_next(); NULL when all are
 * empty, or were at perf_cpus_refresh(). Of records with the same time, side-band comes first, so
 * that a mapping precedes its use. The time that it takes grows with the logarithm of the rings.
 */
struct perf_ring *perf_cpus_oldest(struct perf_cpus *c);
/* The ring of a CPU's samples; NULL = it is offline. */
const struct perf_ring *perf_cpus_sampler(const struct perf_cpus *c, unsigned cpu);
/* How many records could not be parsed so far. They are counted as lost; see perf_ring_peek(). */
uint64_t perf_cpus_damaged(const struct perf_cpus *c);

/* Change the sampling period on all CPUs. returns  0, or the first errno */
int perf_cpus_set_period(struct perf_cpus *c, uint64_t period_ns);
int perf_cpus_set_fault_period(struct perf_cpus *c, uint32_t period);
void perf_cpus_enable_unmaps(struct perf_cpus *c, bool on);

/*
 * Change the size of the stack copy, in three steps, so that the old samplers can be read to their
 * end:
 *
 *	open     new samplers beside the old ones: all, or none and an error
 *	start    stops the old samplers and starts the new ones; returns a moment that is later than
 *	         all records of the old ones, on every CPU
 *	take     closes the old samplers and uses the new ones
 */
int perf_cpus_open_samplers(struct perf_cpus *c, const struct perf_ask *ask, struct err *err);
uint64_t perf_cpus_start_samplers(struct perf_cpus *c);
void perf_cpus_take_samplers(struct perf_cpus *c, const struct perf_ask *ask);
