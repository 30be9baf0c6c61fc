/*
 * Changes of the wall clock while recording: set by hand or by NTP, a machine that slept, a VM that
 * was paused. Events have the recorder clock, so their order and distances stay right. The time of
 * day of an incident is by the wall clock when it fired. Portable; one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLOCK_STEP_NS 500000000            /* less is no step: the clocks are read one by one */

/* Readings of os_now_ns(), os_wall_ns() and os_asleep_ns() at one moment; zeros = none yet. */
struct clock_reading {
	uint64_t now_ns, wall_ns, asleep_ns;
};

/* Whether the clock changed between two readings; out: a sentence that says how. */
bool clock_changed(const struct clock_reading *before, const struct clock_reading *now, char *out,
		   size_t n);
