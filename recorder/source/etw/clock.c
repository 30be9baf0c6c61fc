#include "source/etw/clock.h"

#include "base/os.h"

uint64_t etw_clock_since(const struct etw_clock *clock, int64_t ticks, uint64_t unit_hz)
{
	__extension__ typedef unsigned __int128 wide;
	wide v;

	if (ticks <= clock->t0_ticks)
		return 0;
	v = (wide)((uint64_t)ticks - (uint64_t)clock->t0_ticks) * unit_hz / clock->frequency_hz;
	return v > UINT64_MAX ? UINT64_MAX : (uint64_t)v;
}

uint64_t etw_clock_ns(const struct etw_clock *clock, int64_t ticks)
{
	return etw_clock_since(clock, ticks, NS_PER_SEC);
}
