/*
 * The clock of a trace or a live session: it turns a record's ticks into time. No state; any
 * thread.
 */
#pragma once

#include <stdint.h>

enum etw_clock_kind {
	ETW_CLOCK_UNSET,                     /* 0: taken as QPC */
	ETW_CLOCK_QPC,
	ETW_CLOCK_FILETIME,
	ETW_CLOCK_CYCLES,
};

struct etw_clock {
	int64_t t0_ticks;                    /* of the first record */
	uint64_t frequency_hz;               /* never 0 */
	enum etw_clock_kind kind;
};

/* The time since t0 in ns; 0 before t0, UINT64_MAX when it does not fit. */
uint64_t etw_clock_ns(const struct etw_clock *clock, int64_t ticks);
