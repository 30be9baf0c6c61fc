#include "source/etw/clock.h"

#include "base/os.h"

uint64_t etw_clock_ns(const struct etw_clock *clock, int64_t ticks)
{
	__extension__ typedef unsigned __int128 wide;
	wide v;

	if (ticks <= clock->t0_ticks)
		return 0;
	v = (wide)((uint64_t)ticks - (uint64_t)clock->t0_ticks) * NS_PER_SEC / clock->frequency_hz;
	return v > UINT64_MAX ? UINT64_MAX : (uint64_t)v;
}
