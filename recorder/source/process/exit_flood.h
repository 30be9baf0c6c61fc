/*
 * How many exits are looked at: what a process costs that starts and ends children without end is
 * bounded, and the exits of others are still seen. One parent's children fill at most half of a
 * second's room. Time comes with the exits. One thread; no memory; portable.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define EXIT_FLOOD_PER_CPU 400u              /* a second: 0.4 % of each CPU */
#define EXIT_FLOOD_PARENTS 256u

struct exit_flood {                          /* starts empty */
	uint64_t second;
	uint32_t taken;
	uint32_t of_parent[EXIT_FLOOD_PARENTS];      /* by pid; a few share a place */
};

/* Whether this exit is looked at. parent 0 = not known: such ones share as well. */
bool exit_flood_takes(struct exit_flood *f, unsigned ncpus, uint32_t parent, uint64_t time_ns);
