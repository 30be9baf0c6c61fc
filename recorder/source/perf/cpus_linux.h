/*
 * The perf rings of every CPU as one queue: a sampler, side-band, and those of probes for each that is online.
 *
 * Each ring is ordered, they are not among each other: perf_cpus_refresh() notes what they hold by now,
 * perf_cpus_oldest() gives the ring with the next record in order of time. CPUs that come and go are followed.
 * All functions belong to the source's thread, but perf_cpus_wake().
 */
#ifndef SOURCE_PERF_CPUS_LINUX_H
#define SOURCE_PERF_CPUS_LINUX_H

#include "base/log.h"
#include "source/ring/perf_ring_linux.h"
#include "source/probe/probes_linux.h"

struct perf_cpus {
	struct perf_ask ask;                 /* what samplers were opened with */
	struct perf_format format;           /* of what is in them, and in side-band rings */
	struct probes *probes;               /* ours; NULL = no rule asks for any */
	struct perf_cpu *all;                /* by CPU number */
	unsigned n;
	struct pollfd *polled;               /* the wake event, then the rings that are open */
	unsigned npolled;
	struct os_wake *wake;
};

/*
 * All rings of the CPUs that are online, disabled. ask->build_ids and ksymbols may be cleared in c->ask.
 * probes   which to open; its ncpus is set here
 * returns  0; ERR_UNSUPPORTED when no CPU could be opened; else what opening one of them came to. After a
 *          failure nothing is open
 */
int perf_cpus_open(struct perf_cpus *c, const struct perf_ask *ask, const struct probes_config *probes,
		   struct err *err);
void perf_cpus_close(struct perf_cpus *c);           /* {0} allowed */

/* Side-band rings, or samplers and probes. */
void perf_cpus_enable(struct perf_cpus *c, bool sideband, bool on);
/*
 * Close what went offline, open and enable what came online: its events stay off when a CPU returns.
 * returns  whether one came online: what started on it before now was not seen
 */
bool perf_cpus_follow(struct perf_cpus *c, struct log *log);

/* Wait for records; false: the time is over, or somebody woke it and does not want to wait for more of them. */
bool perf_cpus_wait(struct perf_cpus *c, uint64_t timeout_ns);
void perf_cpus_wake(struct perf_cpus *c);            /* any thread */

/* Look at what the kernel has written by now. */
void perf_cpus_refresh(struct perf_cpus *c);
/*
 * The ring with the oldest record, which is ring->record until perf_ring_next(); NULL = there is none. At
 * the same time side-band goes first: a map before its use.
 */
struct perf_ring *perf_cpus_oldest(struct perf_cpus *c);
/* Records that did not parse so far; counted as lost where they were, see perf_ring_peek(). */
uint64_t perf_cpus_damaged(const struct perf_cpus *c);

/* Another time between two samples, on all CPUs; 0, or the first errno. */
int perf_cpus_set_period(struct perf_cpus *c, uint64_t period_ns);

/*
 * Another copy of the stack, in three steps, so that what the old samplers hold can be read in order: open
 * samplers beside the old ones (c->n of them; all, or none and an error), end the old ones and let the new ones go
 * on (returns the moment between: what the old ones hold is older, on every CPU), then close the old ones and take
 * the new.
 */
int perf_cpus_open_samplers(const struct perf_cpus *c, const struct perf_ask *ask, struct perf_ring *fresh,
			    struct err *err);
uint64_t perf_cpus_start_samplers(struct perf_cpus *c, struct perf_ring *fresh);
void perf_cpus_take_samplers(struct perf_cpus *c, const struct perf_ask *ask, const struct perf_ring *fresh);

#endif
