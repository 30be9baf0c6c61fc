/*
 * How long each CPU was busy, which is what a sampler should have seen. One thread.
 *
 * Linux: /proc/stat (proc(5)): user, nice, system, irq and softirq time in clock ticks of 10 ms;
 * guest time is part of user time. Steal is not busy time, because the sampling clock stands still
 * in it. The kernel charges whole ticks to whatever runs at the tick, so a second may be off by
 * some percent; a minute is not.
 *
 * Windows: SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION of each processor group (docs,
 * NtQuerySystemInformation()): kernel time, which includes idle time, interrupts and deferred
 * calls, plus user time, less idle time; in steps of the clock interrupt, normally 15.6 ms. CPUs
 * are numbered as in ETW: a group's CPUs follow all that the earlier groups can have.
 */
#pragma once

#include <stdint.h>

struct busy;

struct busy *busy_open(void);                        /* NULL: not available, or no memory */
void busy_close(struct busy *b);                     /* NULL allowed */

/*
 * Call each() for every CPU that was busy since the last busy_read(); the first call only starts.
 */
void busy_read(struct busy *b, void (*each)(void *ctx, unsigned cpu, uint64_t busy_ns), void *ctx);
