/*
 * How long each CPU was busy: what a sampler should have seen, whether it did or not. One thread.
 *
 * Linux: /proc/stat (proc(5)): user, nice, system, irq and softirq time, in clock ticks of 10 ms; guest
 * time is part of user's. Steal is no busy time: the sampling clock stands still in it. The kernel charges
 * whole ticks to whoever runs at the tick, so one second may be off by some percent while a minute is not.
 *
 * Windows: SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION of each processor group (docs,
 * NtQuerySystemInformation()): kernel time, which includes idle time and that of interrupts and deferred
 * calls, and user time, less idle time; in steps of the clock interrupt, 15.6 ms as a rule. CPUs are
 * numbered as ETW does it, a group's behind all that the groups before it can have.
 */
#ifndef SOURCE_BUSY_H
#define SOURCE_BUSY_H

#include <stdint.h>

struct busy;

struct busy *busy_open(void);                        /* NULL: nothing says it, or no memory */
void busy_close(struct busy *b);                     /* NULL allowed */

/* Call each for every CPU that was busy since the last call; the first call calls it for none. */
void busy_read(struct busy *b, void (*each)(void *ctx, unsigned cpu, uint64_t busy_ns), void *ctx);

#endif
