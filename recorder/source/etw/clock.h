/* The clock of a trace or a live session: it turns a record's ticks into time. Any thread. */
#pragma once

#include "base/os.h"

struct etw_clock {
	int64_t t0_ticks;                    /* of the first record */
	uint64_t frequency_hz;               /* never 0 */
};

/* The time since t0 in ns; 0 before t0, UINT64_MAX when it does not fit. */
static inline uint64_t etw_clock_ns(const struct etw_clock *clock, int64_t ticks)
{
	__extension__ typedef unsigned __int128 wide;
	wide v;

	if (ticks <= clock->t0_ticks)
		return 0;
	v = (wide)((uint64_t)ticks - (uint64_t)clock->t0_ticks) * NS_PER_SEC / clock->frequency_hz;
	return v > UINT64_MAX ? UINT64_MAX : (uint64_t)v;
}
