/*
 * How long each CPU was busy: what a sampler should have seen, whether it did or not.
 *
 * From /proc/stat (proc(5)): user, nice, system, irq and softirq time, in clock ticks of 10 ms; guest
 * time is part of user's. Steal is no busy time: the sampling clock stands still in it. The kernel
 * charges whole ticks to whoever runs at the tick, so one second may be off by some percent while a
 * minute is not. One thread.
 */
#ifndef SOURCE_BUSY_LINUX_H
#define SOURCE_BUSY_LINUX_H

#include <stdint.h>

struct busy;

struct busy *busy_open(void);                        /* NULL: no /proc/stat, or no memory */
void busy_close(struct busy *b);                     /* NULL allowed */

/* Call each for every CPU that was busy since the last call; the first call calls it for none. */
void busy_read(struct busy *b, void (*each)(void *ctx, unsigned cpu, uint64_t busy_ns), void *ctx);

#endif
